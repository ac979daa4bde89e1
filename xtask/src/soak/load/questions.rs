//! Commands that a person is asked about before they run: approved, rejected,
//! withdrawn, left alone, and decided by two people at once.

use serde_json::{Value, json};

use super::Actor;
use crate::soak::client::{Client, Said};
use crate::soak::ledger::{Kind, Order, Told};

pub(super) fn act(actor: &mut Actor<'_>) {
    let mark = actor.mark();
    let exit = actor.dice.below(2) as i64 * 3;
    let text = format!("touch asked-{mark}; echo {mark} >> ran; exit {exit}");
    let (coder, ana, ben) = {
        let crew = actor.crew();
        (crew.coder.clone(), crew.ana.clone(), crew.ben.clone())
    };
    let told = coder.post("/commands", &json!({ "command": text }));
    let told = actor.ledger().told(told);
    actor.ledger().count("questions asked");
    if let Told::Run(run) = &told
        && let Some(card) = actor.card(&ana, run)
    {
        decide(actor, &mark, &card, (&ana, &ben));
        if actor.dice.below(8) == 0 {
            withdraw(actor, &mark, &coder, run);
        }
    }
    actor.ledger().order(Order {
        mark,
        kind: Kind::Asked,
        exit,
        told,
    });
}

fn decide(actor: &mut Actor<'_>, mark: &str, card: &Value, people: (&Client, &Client)) {
    let (ana, ben) = people;
    match actor.dice.below(8) {
        0..=2 => answer(actor, mark, card, ana, true),
        3 => answer(actor, mark, card, ben, false),
        4 => both(actor, mark, card, people, false),
        5 => both(actor, mark, card, people, true),
        6 => {
            // What was never shown cannot be approved.
            let mut other = card.clone();
            other["fingerprint"] = "0000".into();
            answer(actor, mark, &other, ben, true);
        }
        // Nobody answers: it expires.
        _ => {}
    }
}

/// Two people answer at the same time, and may disagree.
fn both(actor: &Actor<'_>, mark: &str, card: &Value, (ana, ben): (&Client, &Client), agree: bool) {
    actor.ledger().count("questions decided by two at once");
    let ledger = actor.ledger();
    std::thread::scope(|scope| {
        scope.spawn(|| ledger.decide(mark, true, &put(ana, card, true)));
        ledger.decide(mark, agree, &put(ben, card, agree));
    });
}

fn answer(actor: &Actor<'_>, mark: &str, card: &Value, who: &Client, yes: bool) {
    actor.ledger().decide(mark, yes, &put(who, card, yes));
}

fn put(who: &Client, card: &Value, yes: bool) -> Said {
    let id = card["approval_id"].as_str().unwrap_or_default();
    let kind = if yes { "approve_once" } else { "reject" };
    let body = json!({ "kind": kind, "fingerprint": card["fingerprint"] });
    who.post(&format!("/approvals/{id}/decision"), &body)
}

fn withdraw(actor: &Actor<'_>, mark: &str, coder: &Client, run: &Value) {
    let id = run["command_id"].as_str().unwrap_or_default();
    let said = coder.post(&format!("/commands/{id}/withdraw"), &Value::Null);
    actor.ledger().count("questions withdrawn");
    actor.ledger().decide(mark, false, &said);
}
