//! The emergency brake: what is asked for meanwhile is held, not lost, and goes
//! on once.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use weighlock_api::{DecisionKind, State};
use weighlock_engine::Outcome;

use crate::crew::{Crew, only};
use crate::desk::{Office, races};
use crate::support::{Home, eventually};

/// A command that needs nobody, and leaves a trace.
const AUTO: &str = "echo auto | tee -a ran";

fn crew() -> Crew {
    let crew = Crew::new();
    let grant = json!({ "pattern": "tee -a ran" });
    let given = crew.call("owner").post("/policies/grants", &grant);
    assert!(given.status < 300, "{given:?}");
    crew
}

fn pause(crew: &Crew, whom: Value) {
    let pauses = crew.call("olga").post("/pause", &whom).expect(200);
    assert_eq!(pauses["pauses"][0]["by"], "olga", "{pauses}");
}

fn resume(crew: &Crew, whom: Value) {
    let pauses = crew.call("olga").post("/resume", &whom).expect(200);
    assert_eq!(pauses["pauses"], json!([]), "{pauses}");
}

#[track_caller]
fn held(crew: &Crew, who: &str, command: &str) -> Value {
    let run = crew.ask(who, command, Value::Null).expect(202);
    let expected = json!({ "state": "held", "status": "pending", "approval_id": null });
    assert_eq!(only(&run, &["state", "status", "approval_id"]), expected);
    run
}

#[test]
fn everything_is_held_and_goes_on_when_resumed() {
    let crew = crew();
    let before = crew.waiting("coder", "touch before", Value::Null);
    pause(&crew, json!({ "reason": "looking into it" }));
    let auto = held(&crew, "coder", AUTO);
    let asked = [(); 2].map(|()| held(&crew, "linter", "echo asked >> ran"));
    let own = held(&crew, "owner", AUTO);
    let told = "All work is paused by olga. The run is held and will start or be answered when \
                resumed.";
    let expected = json!({ "code": "paused", "text": told });
    assert_eq!(only(&auto["reason"], &["code", "text"]), expected);
    // What is never run is never run.
    let blocked = crew.ask("coder", "rm -rf /", Value::Null).expect(200);
    assert_eq!(blocked["state"], "blocked", "{blocked}");
    assert_eq!(crew.home.lines("ran"), Vec::<String>::new());

    // Nothing is approved meanwhile; a no does no harm.
    let card = crew.card(&before);
    for kind in ["approve_once", "approve_always", "approve_edited"] {
        let decision = json!({ "kind": kind, "command": "touch other" });
        let refused = crew.decide("ana", &card, decision);
        assert_eq!(refused.outcome(), (409, "paused".into()), "{kind}");
    }
    let refused = crew.with_run("ana", &before, "approve", Value::Null);
    assert_eq!(refused.outcome(), (409, "paused".into()));
    for run in [&auto, &asked[0]] {
        let refused = crew.with_run("ana", run, "approve", Value::Null);
        assert_eq!(refused.outcome(), (409, "not_waiting".into()));
    }
    assert_eq!(crew.card(&before)["state"], "pending");
    let taken = held(&crew, "coder", AUTO);
    let taken = crew
        .with_run("coder", &taken, "withdraw", Value::Null)
        .expect(200);
    assert_eq!(taken["state"], "withdrawn", "{taken}");

    resume(&crew, Value::Null);
    for run in [&auto, &own] {
        assert_eq!(crew.ended(run)["state"], "succeeded");
        assert_eq!(crew.told(run), ["run.held", "run.started", "run.ended"]);
    }
    eventually("they are asked about", || {
        asked.iter().all(|run| crew.run(run)["state"] == "waiting")
    });
    let card = crew.card(&crew.run(&asked[0]));
    assert_eq!(card["count"], 2, "{card}");
    crew.approve("ana", &card).expect(200);
    for run in &asked {
        assert_eq!(crew.ended(run)["state"], "succeeded");
        let told = [
            "run.held",
            "run.waiting",
            "run.approved",
            "run.started",
            "run.ended",
        ];
        assert_eq!(crew.told(run), told);
    }
    crew.approve("ana", &crew.card(&before)).expect(200);
    let mut ran = crew.home.lines("ran");
    ran.sort();
    assert_eq!(ran, ["asked", "asked", "auto", "auto"]);
    assert_eq!(crew.ended(&before)["state"], "succeeded");
    crew.assert_agrees();
}

#[test]
fn resuming_says_what_was_resumed_and_what_is_still_paused() {
    let home = Home::strict();
    let said = |args: &[&str]| home.call(args).out;
    assert_eq!(said(&["resume"]), "Work was not paused.\n");
    said(&["pause"]);
    said(&["people", "add", "coder", "--agent"]);
    said(&["pause", "coder"]);
    let resumed = said(&["resume"]);
    let mut lines = resumed.lines();
    assert_eq!(
        lines.next(),
        Some("Resumed. Held runs start, and new runs are accepted.")
    );
    let left = lines.next().unwrap_or_default();
    assert!(left.starts_with("coder is paused by "), "{resumed}");
    assert_eq!(
        said(&["people", "resume", "coder"]),
        "coder is resumed. Held runs start, and new runs are accepted.\n"
    );
}

#[test]
fn one_can_be_paused_alone() {
    let crew = crew();
    pause(&crew, json!({ "principal": "coder" }));
    let run = held(&crew, "coder", AUTO);
    let told = "All work of coder is paused by olga. The run is held and will start or be \
                answered when resumed.";
    assert_eq!(run["reason"]["text"], told);
    assert_eq!(
        crew.ask("linter", AUTO, Value::Null).expect(200)["state"],
        "succeeded"
    );
    let theirs = crew.waiting("linter", "touch made", Value::Null);
    crew.approve("ana", &crew.card(&theirs)).expect(200);
    // Whoever is paused twice goes on when both pauses are over.
    pause(&crew, Value::Null);
    let one = crew
        .call("olga")
        .post("/resume", &json!({ "principal": "coder" }))
        .expect(200);
    assert_eq!(one["pauses"].as_array().map(Vec::len), Some(1), "{one}");
    assert_eq!(crew.run(&run)["state"], "held");
    held(&crew, "linter", AUTO);
    resume(&crew, Value::Null);
    assert_eq!(crew.ended(&run)["state"], "succeeded");
    eventually("all ran", || crew.home.lines("ran").len() == 3);
    let unknown = crew
        .call("olga")
        .post("/pause", &json!({ "principal": "nobody" }));
    assert_eq!(unknown.outcome(), (404, "no_such_person".into()));
    crew.assert_agrees();
}

#[test]
fn a_pause_and_what_it_holds_outlive_the_server() {
    let mut crew = crew();
    pause(&crew, json!({ "reason": "for the night" }));
    let auto = held(&crew, "coder", AUTO);
    let asked = held(&crew, "coder", "touch made");
    crew.restart();
    let pauses = crew.call("coder").get("/pauses").expect(200);
    let expected = json!({ "principal": null, "by": "olga", "reason": "for the night" });
    assert_eq!(
        only(&pauses["pauses"][0], &["principal", "by", "reason"]),
        expected
    );
    held(&crew, "coder", AUTO);
    for run in [&auto, &asked] {
        assert_eq!(crew.run(run)["state"], "held");
    }
    resume(&crew, Value::Null);
    // It may die at any moment of what follows.
    crew.restart();
    assert_eq!(crew.ended(&auto)["state"], "succeeded");
    eventually("it is asked about", || {
        crew.run(&asked)["state"] == "waiting"
    });
    eventually("all ran", || crew.home.lines("ran").len() == 2);
    crew.restart();
    assert_eq!(crew.card(&crew.run(&asked))["count"], 1);
    assert_eq!(crew.home.lines("ran"), ["auto"; 2]);
    crew.assert_agrees();
}

#[test]
fn whatever_comes_while_work_is_paused_and_resumed_goes_on_once() {
    let office = Office::new();
    office.open(async |desk| {
        let desk = Arc::new(desk);
        let times = races(100);
        let mut asking = vec![];
        for n in 0..4 {
            let desk = Arc::clone(&desk);
            asking.push(tokio::spawn(async move {
                let mut runs = vec![];
                for m in 0..times {
                    let command = match m % 2 {
                        0 => "ls".to_owned(),
                        _ => format!("touch {n}-{m}"),
                    };
                    match desk
                        .engine
                        .run(desk.external("coder", &command))
                        .await
                        .unwrap()
                    {
                        Outcome::Waiting(run) | Outcome::Running(run) => runs.push(run),
                        other => panic!("neither waits nor runs: {other:?}"),
                    }
                }
                runs
            }));
        }
        let olga = desk.who("olga");
        while asking.iter().any(|task| !task.is_finished()) {
            desk.engine.pauses().pause(None, None, olga).await.unwrap();
            tokio::task::yield_now().await;
            // Twice, as two people would.
            let (one, two) = tokio::join!(
                desk.engine.life().resume(None, olga),
                desk.engine.life().resume(None, olga)
            );
            assert_eq!((one.unwrap(), two.unwrap()), (vec![], vec![]));
        }
        let mut held = 0;
        for task in asking {
            for run in task.await.unwrap() {
                let expected = match run.command.as_str() {
                    "ls" => State::Running,
                    _ => State::Waiting,
                };
                for tries in 0.. {
                    let now = desk.run(&run.command_id);
                    if now.state == expected {
                        break;
                    }
                    assert!(tries < 2000, "held for ever: {now:?}");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                let told = desk.told(&run.command_id);
                held += usize::from(told[0] == "run.held");
                let told = told.iter().filter(|kind| *kind != "run.held").count();
                assert_eq!(told, 1, "{:?}", desk.told(&run.command_id));
            }
        }
        println!("{held} of {} held", times * 4);
        assert!(held > 0, "nothing came while work was paused");
        assert!(desk.inbox().iter().all(|card| card.count == 1));
        desk.assert_agrees();
    });
}

#[test]
fn more_than_may_run_at_once_goes_on_one_after_the_other() {
    let mut office = Office::new();
    office.config.max_running = 2;
    office.open(async |desk| {
        let olga = desk.who("olga");
        desk.engine.pauses().pause(None, None, olga).await.unwrap();
        let mut runs = vec![];
        for _ in 0..5 {
            runs.push(
                desk.ask(desk.request("coder", "sleep 0.3; echo auto"))
                    .await,
            );
        }
        desk.engine.life().resume(None, olga).await.unwrap();
        for run in &runs {
            assert_eq!(desk.ended(&run.command_id).await.state, State::Succeeded);
        }
        // The same for what is approved.
        let request = desk.request("coder", "sleep 0.3; echo x >> ran");
        let mut runs = vec![];
        for _ in 0..5 {
            runs.push(desk.ask(request.clone()).await);
        }
        let card = desk.inbox().pop().expect("a question");
        desk.approve("ana", &card).await.unwrap();
        for run in &runs {
            assert_eq!(desk.ended(&run.command_id).await.state, State::Succeeded);
        }
        let ran = std::fs::read_to_string(office.base().join("ran")).unwrap();
        assert_eq!(ran, "x\n".repeat(5));
        desk.assert_agrees();
    });
}

#[test]
fn what_is_held_is_withdrawn_or_goes_on_and_not_both() {
    let office = Office::new();
    office.open(async |desk| {
        let desk = Arc::new(desk);
        let (mut withdrawn, times) = (0, races(150));
        let olga = desk.who("olga");
        for n in 0..times {
            desk.engine.pauses().pause(None, None, olga).await.unwrap();
            let command = ["ls".to_owned(), format!("touch {n}")][n % 2].clone();
            let run = desk.ask(desk.external("coder", &command)).await;
            assert_eq!(run.state, State::Held);
            desk.engine.life().resume(None, olga).await.unwrap();
            tokio::time::sleep(Duration::from_micros(n as u64 % 7 * 300)).await;
            let coder = desk.who("coder");
            let gone = desk.engine.inbox().withdraw(&run, coder).await;
            let gone = gone.map_err(|error| error.problem().code);
            match &gone {
                Ok(run) => {
                    assert_eq!(run.state, State::Withdrawn);
                    withdrawn += 1;
                }
                Err(code) => assert_eq!(*code, "not_waiting"),
            }
            let expected = match (gone.is_ok(), n % 2) {
                (true, _) => State::Withdrawn,
                (false, 0) => State::Running,
                // It was asked about just then.
                (false, _) => State::Waiting,
            };
            assert_eq!(desk.run(&run.command_id).state, expected);
            if expected == State::Waiting {
                let card = desk.inbox().pop().expect("a question");
                desk.decide("ana", &card, DecisionKind::Reject)
                    .await
                    .unwrap();
            }
        }
        println!("{withdrawn} of {times} withdrawn");
        desk.assert_agrees();
    });
}
