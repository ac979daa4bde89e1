//! What is told, when, and how often.

use serde_json::json;

use super::Desk;
use super::receiver::{Answer, Receiver};
use crate::support::eventually;

#[test]
fn a_question_is_told_with_all_it_takes_to_know_but_nothing_that_decides() {
    let desk = Desk::new();
    let receiver = Receiver::new(Answer::OK);
    let made = desk.tell(&receiver, json!({}));
    let secret = made["secret"].as_str().unwrap();
    let long = format!("touch 'a\u{202e}b' {}", "x".repeat(2000));
    let id = desk.ask("coder", &long);

    let told = receiver.next();
    assert!(told.is_signed_with(secret), "{told:?}");
    assert!(!told.is_signed_with("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"));
    assert_eq!(told.path, "/hook/secret-path");
    let address = desk.server.as_ref().unwrap().address();
    let message = told.json();
    assert_eq!(message["type"], "approval.waiting");
    assert_eq!(message["data"]["agent"], "coder");
    assert_eq!(message["data"]["count"], 1);
    let one = &message["data"]["approvals"][0];
    assert_eq!(one["approval_id"], id.as_str());
    assert_eq!(one["sandbox"], "default");
    assert_eq!(one["link"], format!("http://{address}/a/{id}"));
    let command = one["command"].as_str().unwrap();
    assert_eq!(command.chars().count(), 1000);
    assert!(command.starts_with("touch 'a⟦U+202E⟧b' xxx"), "{command}");
    assert!(one["left_out_characters"].as_u64().unwrap() > 1000);
    let shown = desk.owner().get(&format!("/approvals/{id}")).expect(200);
    let fingerprint = shown["fingerprint"].as_str().unwrap();
    assert!(!told.body.contains(fingerprint), "{}", told.body);
    assert_eq!(one["risk"], shown["risk"]);
}

#[test]
fn what_is_decided_in_time_is_not_told() {
    let desk = Desk::new();
    let receiver = Receiver::new(Answer::OK);
    let made = desk.tell(
        &receiver,
        json!({ "delay_seconds": 2, "high_risk_at_once": false }),
    );
    let decided = desk.ask("coder", "touch decided");
    desk.decide(&decided, "reject");
    desk.ask("linter", "touch waiting");
    // Both would be due by now, and the first of them first.
    let told = receiver.next();
    assert_eq!(told.commands(), ["touch waiting"]);
    let notices = desk.notices(&made);
    let dropped = notices.iter().find(|one| one["agent"] == "coder").unwrap();
    assert_eq!(dropped["state"], "dropped", "{notices:?}");
    assert_eq!(notices.len(), 2, "nor that it is over: {notices:?}");
}

#[test]
fn who_was_told_hears_when_it_is_over() {
    let desk = Desk::new();
    let receiver = Receiver::new(Answer::OK);
    desk.tell(&receiver, json!({}));
    for (kind, state) in [("reject", "rejected"), ("approve_once", "approved")] {
        let id = desk.ask("coder", &format!("touch {kind}"));
        assert_eq!(receiver.next().kind(), "approval.waiting");
        desk.decide(&id, kind);
        let closed = receiver.next();
        assert_eq!(closed.kind(), "approval.closed");
        let one = closed.json()["data"]["approvals"][0].clone();
        assert_eq!(one["approval_id"], id.as_str());
        assert_eq!(one["state"], state);
        assert_eq!(one["decided_by"], desk.home.me());
    }
    let id = desk.ask("coder", "touch withdrawn");
    assert_eq!(receiver.next().kind(), "approval.waiting");
    let run = desk.owner().get(&format!("/approvals/{id}")).expect(200)["command_ids"][0].clone();
    let path = format!("/commands/{}/withdraw", run.as_str().unwrap());
    desk.caller("coder").post(&path, &json!(null)).expect(200);
    let one = receiver.next().json()["data"]["approvals"][0].clone();
    assert_eq!(one["state"], "withdrawn");
}

#[test]
fn what_comes_close_together_is_told_together() {
    let desk = Desk::new();
    let (release, held) = Answer::held();
    let receiver = Receiver::new(held);
    desk.tell(&receiver, json!({}));
    desk.ask("coder", "touch 1");
    assert_eq!(receiver.next().commands(), ["touch 1"]);
    // As long as one is under way, nothing else is told there.
    for number in 2..=4 {
        desk.ask("coder", &format!("touch {number}"));
    }
    receiver.answers(Answer::OK);
    release.send(()).unwrap();
    let told = receiver.next();
    assert_eq!(told.commands(), ["touch 2", "touch 3", "touch 4"]);
    assert_eq!(told.json()["data"]["count"], 3);
}

#[test]
fn nobody_is_told_of_one_agent_twice_in_a_short_time() {
    let mut desk = Desk::with("[notify]\ncollapse = \"1h\"\n");
    let receiver = Receiver::new(Answer::OK);
    desk.tell(&receiver, json!({}));
    desk.ask("coder", "touch 1");
    assert_eq!(receiver.next().commands(), ["touch 1"]);
    eventually("it is noted", || {
        let list = desk.owner().get("/webhooks").expect(200);
        list["webhooks"][0]["told_at"].is_string()
    });
    desk.ask("coder", "touch 2");
    desk.ask("coder", "touch 3");
    desk.ask("linter", "touch 4");
    assert_eq!(receiver.next().commands(), ["touch 4"]);
    receiver.assert_silent();
    // Not forgotten, either.
    let put_off = |desk: &Desk| {
        let list = desk.owner().get("/webhooks").expect(200)["webhooks"][0].clone();
        let notices = desk.notices(&list);
        let coders = notices.iter().filter(|one| one["agent"] == "coder");
        coders.filter(|one| one["state"] == "due").count()
    };
    assert_eq!(put_off(&desk), 2);
    desk.settings = super::QUICK.into();
    desk.kill_and_serve();
    assert_eq!(put_off(&desk), 2);
}

#[test]
fn high_risk_is_told_at_once_and_the_rest_is_not() {
    let desk = Desk::new();
    let receiver = Receiver::new(Answer::OK);
    let made = desk.tell(&receiver, json!({ "delay_seconds": 3600 }));
    desk.ask("coder", "touch later");
    let id = desk.ask("linter", "git push --force origin main");
    let shown = desk.owner().get(&format!("/approvals/{id}")).expect(200);
    assert_eq!(shown["risk"], "high", "{shown}");
    let told = receiver.next();
    assert_eq!(told.json()["data"]["risk"], "high");
    assert_eq!(told.json()["data"]["agent"], "linter");
    let notices = desk.notices(&made);
    let later = notices.iter().find(|one| one["agent"] == "coder").unwrap();
    assert_eq!(later["state"], "due", "{notices:?}");
}

#[test]
fn nobody_is_told_of_what_was_there_before_nor_in_quiet_hours() {
    let desk = Desk::new();
    desk.ask("coder", "touch before");
    let receiver = Receiver::new(Answer::OK);
    let quiet = Receiver::new(Answer::OK);
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let hour = |by: i64| {
        (now.clone() + jiff::Span::new().hours(by))
            .strftime("%H:%M")
            .to_string()
    };
    let hours = json!({ "from": hour(-1), "to": hour(2), "zone": "UTC" });
    let silent = desk.tell(&quiet, json!({ "quiet": hours }));
    let loud = desk.tell(&receiver, json!({}));
    let id = desk.ask("linter", "touch after");
    assert_eq!(receiver.next().commands(), ["touch after"]);
    eventually("it is put off", || {
        let notices = desk.notices(&silent);
        assert_eq!(notices.len(), 1, "{notices:?}");
        notices[0]["due_at"].as_str() > notices[0]["created_at"].as_str()
    });
    // What nobody was told of is nothing to take back.
    desk.decide(&id, "reject");
    assert_eq!(receiver.next().kind(), "approval.closed");
    eventually("it is dropped", || {
        desk.notices(&silent)[0]["state"] == "dropped"
    });
    quiet.assert_silent();
    assert_eq!(desk.notices(&loud).len(), 2);
}

#[test]
fn other_things_are_told_if_wanted() {
    let desk = Desk::new();
    let receiver = Receiver::new(Answer::OK);
    let topics = json!({ "topics": ["run.failed", "run.finished", "agent.paused"],
                         "long_minutes": 0 });
    desk.tell(&receiver, topics);
    desk.ask("coder", "touch unasked");
    desk.caller("coder")
        .post("/commands", &json!({ "command": "ls /nowhere" }))
        .expect(200);
    let told = receiver.next();
    assert_eq!(told.kind(), "run.failed");
    let event = told.json()["data"]["events"][0].clone();
    assert_eq!(event["command"], "ls /nowhere");
    assert_eq!(
        (&event["agent"], &event["state"]),
        (&json!("coder"), &json!("failed"))
    );
    desk.caller("linter")
        .post("/commands", &json!({ "command": "pwd" }))
        .expect(200);
    assert_eq!(receiver.next().kind(), "run.finished");
    let pause = json!({ "principal": "coder", "reason": "lunch" });
    desk.owner().post("/pause", &pause).expect(200);
    let told = receiver.next();
    assert_eq!(told.kind(), "agent.paused");
    assert_eq!(told.json()["data"]["events"][0]["reason"], "lunch");
}

#[test]
fn administrators_are_told_when_the_audit_was_changed() {
    let desk = Desk::new();
    let receiver = Receiver::new(Answer::OK);
    // Not even wanted.
    desk.tell(&receiver, json!({ "topics": [] }));
    let file = desk.home.state().join("weighlock.db");
    let database = rusqlite::Connection::open(file).unwrap();
    let sql = "UPDATE audit SET body = replace(body, 'coder', 'other') WHERE kind = 'person.added'";
    assert!(database.execute(sql, []).unwrap() > 0);
    for _ in 0..2 {
        let found = desk.owner().post("/audit/verify", &json!(null)).expect(200);
        assert!(found["fault"].is_object(), "{found}");
    }
    let told = receiver.next();
    assert_eq!(told.kind(), "audit.failed");
    // Once of each fault.
    desk.owner().get("/health/checks").expect(200);
    receiver.assert_silent();
}
