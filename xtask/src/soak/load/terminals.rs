//! Terminals: opened, watched, typed at, closed; and commands that are typed
//! at a shell, each with its mark.

use serde_json::{Value, json};

use super::Actor;
use crate::soak::ledger::{Kind, Order};

/// How many commands one gets before it is closed.
const EACH: u64 = 6;

pub(super) fn act(actor: &mut Actor<'_>) {
    let name = format!("t-{}", actor.mark());
    let owner = actor.crew().owner.clone();
    let open = json!({ "name": name, "description": "for the soak", "command": "bash" });
    let said = owner.post("/terminals", &open);
    actor.ledger().look(&said);
    if said.status().is_none_or(|status| status >= 300) {
        return;
    }
    actor.ledger().count("terminals opened");
    let watcher = owner.watch(&format!("/terminals/{name}/stream")).ok();
    for _ in 0..actor.dice.below(EACH) + 1 {
        let mark = actor.mark();
        let exit = actor.dice.below(2) as i64 * 5;
        let text = format!("echo {mark} >> ran; sh -c 'exit {exit}'");
        let said = owner.post(
            &format!("/terminals/{name}/exec"),
            &json!({ "command": text }),
        );
        let told = actor.ledger().told(said);
        actor.ledger().order(Order {
            mark,
            kind: Kind::Typed,
            exit,
            told,
        });
        let input = json!({ "text": "true", "submit": true });
        actor
            .ledger()
            .look(&owner.post(&format!("/terminals/{name}/input"), &input));
        actor
            .ledger()
            .look(&owner.get(&format!("/terminals/{name}/screen")));
        let size =
            json!({ "columns": 40 + actor.dice.below(80), "rows": 10 + actor.dice.below(30) });
        actor
            .ledger()
            .look(&owner.post(&format!("/terminals/{name}/size"), &size));
        actor.pause(5, 40);
    }
    drop(watcher);
    // Some are left to whoever tidies up.
    if actor.dice.below(4) > 0 {
        actor
            .ledger()
            .look(&owner.ask("DELETE", &format!("/terminals/{name}"), &Value::Null));
    }
}
