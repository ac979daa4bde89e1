//! What could always be allowed: proposals for a question, and what becomes of
//! the one that is taken.

use serde_json::{Value, json};

use crate::crew::{Crew, only, text};

fn proposals(crew: &Crew, run: &Value) -> Value {
    let path = format!("/approvals/{}/rule-proposals", text(run, "approval_id"));
    crew.call("ana").get(&path).expect(200)
}

fn reject(crew: &Crew, command: &str) {
    let run = crew.waiting("coder", command, json!({}));
    let card = crew.card(&run);
    crew.decide("ana", &card, json!({ "kind": "reject" }))
        .expect(200);
}

#[test]
fn what_is_offered_is_counted_in_the_past_and_holds_once_it_is_taken() {
    let crew = Crew::new();
    crew.home.put("config/app.toml", "");
    reject(&crew, "mv config/keys.toml config/old.toml");
    let command = "ls && mv config/app.toml config/web.toml && rm config/x";
    let run = crew.waiting("coder", command, json!({}));
    let offered = proposals(&crew, &run);
    assert_eq!(
        only(&offered, &["offered", "why", "allowed", "looked_at"]),
        json!({ "offered": true, "why": null, "allowed": ["ls"], "looked_at": 2 })
    );
    let labels: Vec<&Value> = { offered["scopes"].as_array().unwrap().iter() }
        .map(|scope| &scope["label"])
        .collect();
    // An approver allows things where they were asked.
    assert_eq!(labels, ["coder in default", "Everyone in default"]);
    let moved = &offered["groups"][0];
    assert_eq!(
        only(moved, &["text", "program", "selected"]),
        json!({ "text": "mv config/app.toml config/web.toml", "program": "mv", "selected": null }),
    );
    let inside = &moved["choices"][1];
    assert_eq!(
        only(inside, &["pattern", "label", "matched"]),
        json!({ "pattern": "mv config/* config/* $", "label": "mv inside config/", "matched": 2 })
    );
    assert_eq!(
        inside["refused"][0]["command"],
        "mv config/keys.toml config/old.toml"
    );
    assert_eq!(moved["choices"][0]["refused"], json!([]));
    assert_eq!(offered["groups"][1]["selected"], Value::Null);
    let scope = &offered["scopes"][0];
    let rules = [inside, &offered["groups"][1]["choices"][0]].map(|choice| {
        json!({ "pattern": choice["pattern"], "agent": scope["agent"],
                "sandbox": scope["sandbox"], "until": 4_000_000_000_i64 })
    });
    let card = crew.card(&run);
    let always = json!({ "kind": "approve_always", "rules": rules });
    crew.decide("ana", &card, always).expect(200);
    crew.ended(&run);
    // The same agent is not asked again; another is.
    crew.ask("coder", "mv config/web.toml config/b.toml", json!({}))
        .expect(200);
    crew.waiting("linter", "mv config/b.toml config/c.toml", json!({}));
    let grants = crew.call("owner").get("/policies/grants").expect(200);
    assert_eq!(grants[0]["pattern"], "mv config/* config/* $");
    assert_eq!(grants[0]["until"], 4_000_000_000_i64);
    // It is decided: there is nothing left to propose.
    let path = format!("/approvals/{}/rule-proposals", text(&run, "approval_id"));
    let over = crew.call("ana").get(&path).expect(409);
    assert_eq!(over["code"], "already_decided");
    crew.assert_agrees();
}

#[test]
fn what_only_writes_begins_with_the_narrowest() {
    let crew = Crew::new();
    let run = crew.waiting("coder", "touch a/b", json!({}));
    let offered = proposals(&crew, &run);
    let group = &offered["groups"][0];
    assert_eq!(group["selected"], 0);
    assert_eq!(group["choices"][0]["pattern"], "touch a/b $");
}

#[test]
fn what_cannot_be_foreseen_is_not_offered_and_says_why() {
    let crew = Crew::new();
    for (command, why) in [
        (
            "cat > made <<X\n1\nX",
            "It hands a text over to a program, which no rule looks at.",
        ),
        ("eval \"$X\"", "`eval \"$X\"` cannot be analysed."),
        (
            "rm \"$X\"",
            "What `rm \"$X\"` does is only known when it runs.",
        ),
    ] {
        let run = crew.waiting("coder", command, json!({}));
        let offered = proposals(&crew, &run);
        assert_eq!(
            only(&offered, &["offered", "why", "groups"]),
            json!({ "offered": false, "why": why, "groups": [] })
        );
    }
}

#[test]
fn an_agent_is_told_nothing_of_it() {
    let crew = Crew::new();
    let run = crew.waiting("coder", "touch a", json!({}));
    let path = format!("/approvals/{}/rule-proposals", text(&run, "approval_id"));
    crew.call("coder").get(&path).expect(403);
}

#[test]
fn what_is_rejected_can_be_blocked_for_everybody_by_those_who_write_rules() {
    let crew = Crew::new();
    let run = crew.waiting("coder", "rm -rf build", json!({}));
    let pattern = proposals(&crew, &run)["groups"][0]["choices"][0]["pattern"].clone();
    let card = crew.card(&run);
    let no = json!({ "kind": "reject", "blocks": [pattern] });
    crew.decide("ana", &card, no.clone()).expect(403);
    assert_eq!(crew.card(&run)["state"], "pending");
    let wrong = json!({ "kind": "reject", "blocks": ["rm &&"] });
    crew.decide("owner", &card, wrong).expect(400);
    assert_eq!(crew.card(&run)["state"], "pending");
    crew.decide("owner", &card, no).expect(200);
    let again = crew
        .call("coder")
        .post("/commands", &json!({ "command": "rm -rf build" }));
    assert_eq!(again.expect(200)["state"], "blocked");
    crew.waiting("coder", "rm -rf other", json!({}));
    let rules = crew.call("owner").get("/policies/server").expect(200);
    let rule = &rules["rules"][0];
    assert_eq!(rule["verdict"], "reject");
    assert!(text(rule, "name").starts_with("blocked-ap_"), "{rule}");
    assert!(
        text(rule, "because").starts_with("was blocked by "),
        "{rule}"
    );
}
