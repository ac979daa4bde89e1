//! A server that dies around an answer: what was answered stays answered, what
//! was approved begins, and nothing runs twice.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use weighlock_api::{ApprovalState, DecisionKind, State};

use crate::caller::Caller;
use crate::crash::{end, kill_at};
use crate::crew::{Crew, text};
use crate::desk::{Office, decision, races};
use crate::support::is_alive;

/// Each run of it says which one it is.
const COMMAND: &str = "echo $WEIGHLOCK_RUN >> ran";

/// Asks a server and does something to it meanwhile; whether there was an
/// answer is not known.
fn ask_the_dying(caller: &Caller, path: &str, body: &Value, meanwhile: impl FnOnce()) {
    let address = format!("/agent/terminal{path}");
    let mut line = caller.open("POST", &address, body.to_string().as_bytes());
    meanwhile();
    let _ = line.read_to_end(&mut vec![]);
}

/// Kills it after a moment.
fn ask_and_kill(crew: &mut Crew, caller: &Caller, path: &str, body: &Value, moment: Duration) {
    ask_the_dying(caller, path, body, || {
        std::thread::sleep(moment);
        crew.kill();
    });
}

fn approving(card: &Value) -> (String, Value) {
    let path = format!("/approvals/{}/decision", text(card, "approval_id"));
    let body = json!({ "kind": "approve_once", "fingerprint": card["fingerprint"] });
    (path, body)
}

/// How often each run has run.
fn ran(crew: &Crew) -> BTreeMap<String, usize> {
    let mut ran = BTreeMap::new();
    for id in crew.home.lines("ran") {
        *ran.entry(id).or_default() += 1;
    }
    ran
}

/// After a restart everything is either as if nobody had answered, and can be
/// answered; or it was approved, and has run at most once. Returns whether it
/// was.
fn check(crew: &Crew, runs: &[Value], when: &str) -> bool {
    let card = crew.card(&runs[0]);
    let approved = card["state"] == "approved";
    if !approved {
        assert_eq!(card["state"], "pending", "{when}: {card}");
        let begun: Vec<_> = { runs.iter() }
            .filter(|run| ran(crew).contains_key(&text(run, "command_id")))
            .collect();
        assert_eq!(begun, Vec::<&Value>::new(), "{when}");
        crew.approve("ben", &card).expect(200);
    }
    for run in runs {
        let run = crew.ended(run);
        let by = ["ben", "ana"][usize::from(approved)];
        assert_eq!(run["approved_by"], by, "{when}: {run}");
        let times = ran(crew).get(&text(&run, "command_id")).copied();
        let times = times.unwrap_or_default();
        let state = (run["state"].as_str(), run["reason"]["code"].as_str());
        match state {
            (Some("succeeded"), None) => assert_eq!(times, 1, "{when}: {run}"),
            (Some("lost"), Some("never_began")) => assert_eq!(times, 0, "{when}: {run}"),
            (Some("lost"), Some("lost")) => assert!(times <= 1, "{when}: {run}"),
            _ => panic!("{when}: {run}"),
        }
    }
    let waiting = crew.inbox();
    assert_eq!(waiting, Vec::<Value>::new(), "{when}");
    crew.assert_agrees();
    approved
}

#[test]
fn killed_at_any_write_between_answer_and_start_runs_each_at_most_once() {
    let mut crew = Crew::new();
    let (mut approved, mut hit) = (0, 0);
    let points = [
        ("pwrite64", &[1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 30][..]),
        ("mkdir", &[1, 2, 4]),
        ("sendmsg", &[1, 2]),
        ("sendto", &[1, 2, 3]),
        ("unlink", &[1, 2]),
    ];
    for (call, nths) in points {
        for &nth in nths {
            let runs = [(); 3].map(|()| crew.waiting("coder", COMMAND, Value::Null));
            let (path, body) = approving(&crew.card(&runs[0]));
            let Some(strace) = kill_at(crew.server(), call, nth) else {
                return;
            };
            ask_the_dying(&crew.call("ana"), &path, &body, || ());
            hit += usize::from(!is_alive(crew.server().child.id()));
            crew.kill();
            end(strace);
            crew.restart();
            approved += usize::from(check(&crew, &runs, &format!("{call} {nth}")));
        }
    }
    println!("{approved} of 22 approved before the end, {hit} killed by strace");
    assert!(hit > 0, "strace never killed it");
}

#[test]
fn killed_at_any_moment_around_an_answer_runs_each_at_most_once() {
    let mut crew = Crew::new();
    let (mut approved, times) = (0, races(25));
    for n in 0..times {
        let runs = [(); 3].map(|()| crew.waiting("coder", COMMAND, Value::Null));
        let (path, body) = approving(&crew.card(&runs[0]));
        let ana = crew.call("ana");
        let moment = Duration::from_micros(n as u64 * 7919 % 25_000);
        ask_and_kill(&mut crew, &ana, &path, &body, moment);
        crew.restart();
        approved += usize::from(check(&crew, &runs, &format!("{moment:?}")));
    }
    println!("{approved} of {times} approved before the end");
}

#[test]
fn a_no_that_was_heard_stays_a_no() {
    let mut crew = Crew::new();
    for n in 0..races(5) {
        let command = format!("touch {n}");
        let runs = [(); 2].map(|()| crew.waiting("coder", &command, Value::Null));
        let card = crew.card(&runs[0]);
        let no = json!({ "kind": "reject", "reason": "not today" });
        crew.decide("ana", &card, no).expect(200);
        crew.restart();
        let late = crew.approve("ben", &card);
        assert_eq!(late.outcome(), (409, "already_decided".into()));
        for run in &runs {
            let run = crew.run(run);
            assert_eq!(run["state"], "rejected", "{run}");
            let told = "Rejected by ana: ‘not today’ Nothing was run.";
            assert_eq!(run["reason"]["text"], told);
        }
    }
    crew.assert_agrees();
}

#[test]
fn a_request_that_is_made_again_after_a_crash_runs_at_most_once() {
    let mut crew = Crew::new();
    let grant = json!({ "pattern": "tee -a ran" });
    crew.call("owner").post("/policies/grants", &grant);
    let times = races(20);
    for n in 0..times {
        let key = n.to_string();
        let body = json!({ "command": "echo $WEIGHLOCK_RUN | tee -a ran" });
        let coder = crew.call("coder").with("idempotency-key", &key);
        let moment = Duration::from_micros(n as u64 * 7919 % 25_000);
        ask_and_kill(&mut crew, &coder, "/commands", &body, moment);
        crew.restart();
        let before = crew.home.lines("ran").len();
        let run = coder.post("/commands", &body).expect(200);
        let count = ran(&crew).get(&text(&run, "command_id")).copied();
        let lost = run["state"] == "lost";
        assert_eq!(count.unwrap_or_default() == 0, lost, "{moment:?}: {run}");
        assert!(count.unwrap_or_default() <= 1, "{moment:?}: {run}");
        assert!(crew.home.lines("ran").len() <= before + 1);
    }
    let all = crew.call("coder").get("/commands?limit=500").expect(200);
    assert_eq!(all["commands"].as_array().map(Vec::len), Some(times));
    assert!(ran(&crew).values().all(|&count| count == 1));
    crew.assert_agrees();
}

#[test]
fn what_was_approved_while_the_database_is_held_begins_when_it_is_free() {
    let office = Office::new();
    office.open(async |desk| {
        let mut runs = vec![];
        for _ in 0..60 {
            runs.push(desk.ask(desk.external("coder", "touch made")).await);
        }
        let card = desk.inbox().pop().expect("a question");
        let engine = desk.engine.clone();
        let ana = desk.who("ana").clone();
        let decision = decision(DecisionKind::ApproveOnce, &card);
        let id = card.approval_id.clone();
        let answer = tokio::spawn(async move { engine.inbox().decide(&id, decision, &ana).await });
        // Another process takes the database when some have begun, and gives
        // it back when we have given up waiting.
        let database = Connection::open(office.config.state_dir.join("weighlock.db")).unwrap();
        let begun = || {
            let sql = "SELECT count(*) FROM terminal_commands WHERE state = 'running'";
            database
                .query_row(sql, [], |row| row.get::<_, usize>(0))
                .unwrap()
        };
        let held = loop {
            if begun() > 0 && database.execute_batch("BEGIN IMMEDIATE").is_ok() {
                break begun();
            }
            tokio::task::yield_now().await;
        };
        println!("{held} of {} had begun", runs.len());
        assert!(held < runs.len(), "all of them had begun");
        tokio::time::sleep(Duration::from_secs(7)).await;
        database.execute_batch("ROLLBACK").unwrap();
        assert_eq!(
            answer.await.unwrap().unwrap().state,
            ApprovalState::Approved
        );
        for run in &runs {
            for tries in 0.. {
                let now = desk.run(&run.command_id);
                if now.state == State::Running {
                    break;
                }
                assert_eq!(now.state, State::Waiting, "{now:?}");
                assert!(tries < 1000, "it never began: {now:?}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        desk.assert_agrees();
    });
}
