//! What belongs together is closed together.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use weighlock_api::{OnClose, State};
use weighlock_engine::{Outcome, Request};

use crate::crew::{Crew, only, text};
use crate::desk::{Office, races};
use crate::support::eventually;

fn session(crew: &Crew, who: &str, wishes: Value) -> String {
    let run = crew.ask(who, "ls", wishes).expect(200);
    text(&run, "session_id")
}

fn close(crew: &Crew, who: &str, id: &str, how: Value) -> (u16, String) {
    crew.call(who)
        .post(&format!("/sessions/{id}/close"), &how)
        .outcome()
}

#[test]
fn every_request_belongs_to_a_session() {
    let mut crew = Crew::new();
    let named = |name: &str| json!({ "session_id": name });
    let own = session(&crew, "coder", Value::Null);
    let work = session(&crew, "coder", named("work"));
    let theirs = session(&crew, "linter", named("work"));
    assert!(own != work && work != theirs && own != theirs);
    for _ in 0..2 {
        assert_eq!(session(&crew, "coder", Value::Null), own);
        assert_eq!(session(&crew, "coder", named("work")), work);
        assert_eq!(session(&crew, "coder", named(&work)), work);
        assert_eq!(session(&crew, "linter", named("work")), theirs);
        // Another's id is a name like any other.
        assert_ne!(session(&crew, "linter", named(&work)), work);
        crew.restart();
    }
    let list = |who: &str| {
        let list = crew.call(who).get("/sessions").expect(200);
        let list = list["sessions"].as_array().expect("a list").clone();
        let mut ids: Vec<_> = list.iter().map(|one| text(one, "session_id")).collect();
        ids.sort();
        ids
    };
    let mut mine = vec![own.clone(), work.clone()];
    mine.sort();
    assert_eq!(list("coder"), mine);
    assert_eq!(list("ana").len(), 4);
    let one = crew
        .call("coder")
        .get(&format!("/sessions/{work}"))
        .expect(200);
    let expected = json!({ "session_id": work, "principal_id": "coder", "label": "work",
                           "sandbox_id": "default", "status": "executed", "closed_at": null });
    let names = [
        "session_id",
        "principal_id",
        "label",
        "sandbox_id",
        "status",
        "closed_at",
    ];
    assert_eq!(only(&one, &names), expected);
    let runs = crew
        .call("coder")
        .get(&format!("/commands?session={work}"))
        .expect(200);
    assert_eq!(runs["commands"].as_array().map(Vec::len), Some(5), "{runs}");
    let hidden = crew.call("coder").get(&format!("/sessions/{theirs}"));
    assert_eq!(hidden.outcome(), (404, "no_such_session".into()));
}

#[test]
fn closing_withdraws_what_waits_and_stops_or_keeps_what_runs() {
    let crew = Crew::new();
    let grant = json!({ "pattern": "sleep *" });
    crew.call("owner").post("/policies/grants", &grant);
    for (how, state) in [
        (Value::Null, "killed"),
        (json!({ "runs": "stop" }), "killed"),
        (json!({ "runs": "keep" }), "running"),
    ] {
        let wish = json!({ "session_id": "work" });
        let waits = crew.waiting("coder", "touch made", wish.clone());
        // The same from elsewhere shares the question, and is none of that.
        let other = crew.waiting("coder", "touch made", Value::Null);
        assert_eq!(waits["approval_id"], other["approval_id"]);
        let long = json!({ "session_id": "work", "background": true });
        let runs = crew.ask("coder", "sleep 60", long).expect(202);
        assert_eq!(runs["state"], "running", "{runs}");
        crew.call("olga").post("/pause", &Value::Null).expect(200);
        let held = crew.ask("coder", "ls", wish.clone()).expect(202);
        assert_eq!(held["state"], "held", "{held}");
        let id = text(&waits, "session_id");
        assert_eq!(
            close(&crew, "linter", &id, Value::Null),
            (404, "no_such_session".into())
        );
        assert_eq!(
            close(&crew, "ana", &id, Value::Null),
            (403, "not_allowed".into())
        );
        let closed = crew
            .call("coder")
            .post(&format!("/sessions/{id}/close"), &how);
        assert!(closed.expect(200)["closed_at"].is_string());
        crew.call("olga").post("/resume", &Value::Null).expect(200);
        for run in [&waits, &held] {
            let run = crew.run(run);
            assert_eq!(run["state"], "withdrawn", "{run}");
            assert_eq!(
                run["reason"]["text"],
                "Withdrawn by coder. Nothing was run."
            );
        }
        eventually("what runs has ended, or goes on", || {
            crew.run(&runs)["state"] == state
        });
        assert_eq!(crew.card(&other)["count"], 1);
        crew.with_run("coder", &other, "withdraw", Value::Null)
            .expect(200);
        if state == "running" {
            crew.with_run("coder", &runs, "stop", json!({})).expect(200);
        }
        // Its id is closed, and its name begins anew.
        let refused = crew.ask("coder", "ls", json!({ "session_id": id }));
        assert_eq!(refused.outcome(), (409, "session_closed".into()));
        assert_ne!(session(&crew, "coder", wish), id);
        // Once more changes nothing.
        assert_eq!(close(&crew, "coder", &id, Value::Null).0, 200);
    }
    crew.assert_agrees();
}

#[test]
fn what_was_allowed_for_a_session_ends_with_it() {
    let crew = Crew::new();
    let wish = json!({ "session_id": "work" });
    let run = crew.waiting("coder", "touch made", wish.clone());
    let id = text(&run, "session_id");
    let card = crew.card(&run);
    let rules = json!([{ "pattern": "touch *", "session": id }]);
    let always = json!({ "kind": "approve_always", "rules": rules });
    crew.decide("owner", &card, always).expect(200);
    let again = crew.ask("coder", "touch more", wish.clone()).expect(200);
    assert_eq!(again["state"], "succeeded", "{again}");
    // In no other session.
    crew.waiting("coder", "touch more", Value::Null);
    crew.waiting("linter", "touch more", wish.clone());
    assert_eq!(close(&crew, "coder", &id, Value::Null).0, 200);
    crew.waiting("coder", "touch more", wish);
    let policy = crew.call("owner").get("/policies").expect(200);
    assert_eq!(policy["grants"], json!([]), "{policy}");
    crew.assert_agrees();
}

#[test]
fn nothing_waits_in_a_session_that_is_closed() {
    let office = Office::new();
    office.open(async |desk| {
        let desk = Arc::new(desk);
        let (mut late, times) = (0, races(150));
        for n in 0..times {
            let request = |command: String| Request {
                session: Some("work".into()),
                ..desk.external("coder", &command)
            };
            let first = desk.ask(request(format!("touch {n}"))).await;
            let id = first.session_id.clone().expect("a session");
            let tasks: Vec<_> = (0..4)
                .map(|m| {
                    let (desk, request) = (Arc::clone(&desk), request(format!("touch {n}-{m}")));
                    tokio::spawn(async move {
                        match desk.engine.run(request).await {
                            Ok(Outcome::Waiting(run) | Outcome::Refused(run)) => Some(run),
                            Ok(other) => panic!("neither waits nor is refused: {other:?}"),
                            Err(error) => {
                                assert_eq!(error.problem().code, "session_closed");
                                None
                            }
                        }
                    })
                })
                .collect();
            tokio::time::sleep(Duration::from_micros(n as u64 % 5 * 500)).await;
            let coder = desk.who("coder");
            let closed = desk
                .engine
                .life()
                .close_session(&id, Some(OnClose::Stop), coder)
                .await;
            assert!(closed.unwrap().closed_at.is_some());
            for task in tasks {
                let Some(run) = task.await.unwrap() else {
                    continue;
                };
                let now = desk.run(&run.command_id);
                let in_it = now.session_id.as_deref() == Some(&*id);
                let state = [State::Waiting, State::Withdrawn][usize::from(in_it)];
                assert_eq!(now.state, state, "{now:?}");
                late += usize::from(!in_it);
            }
            // Whoever comes now gets another, which is open.
            let next = desk.ask(request("touch next".into())).await;
            let next = next.session_id.expect("a session");
            assert_ne!(next, id);
            let open = desk.engine.sessions().find(&next, coder).unwrap();
            assert_eq!(open.closed_at, None);
            desk.engine
                .life()
                .close_session(&next, None, coder)
                .await
                .unwrap();
        }
        println!("{late} of {} in the next session", times * 4);
        assert_eq!(desk.inbox(), []);
        desk.assert_agrees();
    });
}
