//! Commands that run on a copy: what they change is applied, thrown away,
//! undone, or left. Each changes a file that others before it have changed,
//! makes three, and removes one.

use std::fs;

use serde_json::{Value, json};

use super::Actor;
use crate::soak::client::Client;
use crate::soak::ledger::{Kind, Order, Told};

pub(super) fn act(actor: &mut Actor<'_>) {
    let mark = actor.mark();
    let kind = match actor.dice.below(4) {
        0 => Kind::Applied,
        _ => Kind::Copied,
    };
    let place = if kind == Kind::Copied {
        "asked"
    } else {
        "free"
    };
    let doomed = actor
        .stage
        .world
        .copies()
        .join(place)
        .join(format!("{mark}-gone"));
    if fs::write(&doomed, "before\n").is_err() {
        return;
    }
    let text = format!(
        "cd {place} && echo {mark} >> {slot} && mkdir {mark} && echo {mark} > {mark}/1 && \
         echo {mark} > {mark}/2 && echo {mark} > {mark}/3 && rm {mark}-gone",
        slot = actor.name,
    );
    let (coder, ana) = (actor.crew().coder.clone(), actor.crew().ana.clone());
    let wish = json!({ "command": text, "sandbox_id": "copies", "session_id": mark });
    let told = actor.ledger().told(coder.post("/commands", &wish));
    actor.ledger().count("runs on a copy");
    if let Told::Run(run) = &told {
        if kind == Kind::Copied {
            settle(actor, &mark, (&coder, &ana), run);
        }
        if actor.dice.below(4) == 0 {
            undo(actor, &ana, run);
        }
    }
    actor.ledger().order(Order {
        mark,
        kind,
        exit: 0,
        told,
    });
}

fn settle(actor: &mut Actor<'_>, mark: &str, (coder, ana): (&Client, &Client), run: &Value) {
    let id = run["command_id"].as_str().unwrap_or_default();
    match actor.dice.below(6) {
        0 => {
            let said = coder.post(&format!("/commands/{id}/withdraw"), &Value::Null);
            actor.ledger().decide(mark, false, &said);
        }
        1 => {}
        how => {
            let Some(card) = actor.card(ana, run) else {
                return;
            };
            let yes = how > 2;
            let kind = if yes { "apply_effect" } else { "reject" };
            let body = json!({ "kind": kind, "fingerprint": card["fingerprint"] });
            let approval = card["approval_id"].as_str().unwrap_or_default();
            let said = ana.post(&format!("/approvals/{approval}/decision"), &body);
            actor.ledger().decide(mark, yes, &said);
        }
    }
}

fn undo(actor: &Actor<'_>, who: &Client, run: &Value) {
    let id = run["command_id"].as_str().unwrap_or_default();
    let said = who.post(&format!("/commands/{id}/revert"), &Value::Null);
    actor.ledger().look(&said);
    if said.status() == Some(200) {
        actor.ledger().count("changes undone");
    }
}
