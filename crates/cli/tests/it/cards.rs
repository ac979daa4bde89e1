//! One question for all who ask the same, and every way in which it ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use weighlock_api::{ApprovalState, State};
use weighlock_engine::Approvals;

use crate::caller::audit;
use crate::crew::{Crew, only, text};
use crate::desk::Office;
use crate::support::{Home, PATIENCE};

const HOUR: i64 = 3600;
const YEAR: i64 = 365 * 24 * HOUR;

/// Asks for the same so many times.
fn same(crew: &Crew, command: &str, times: usize) -> Vec<Value> {
    let one = |_| crew.waiting("coder", command, Value::Null);
    (0..times).map(one).collect()
}

fn ids(runs: &[Value]) -> Vec<&Value> {
    runs.iter().map(|run| &run["command_id"]).collect()
}

#[test]
fn who_asks_the_same_shares_a_question_and_its_answer() {
    let crew = Crew::new();
    let runs = same(&crew, "echo x >> ran", 3);
    let cards = crew.inbox();
    assert_eq!(cards.len(), 1, "{cards:?}");
    assert_eq!(cards[0]["count"], 3);
    assert_eq!(json!(cards[0]["command_ids"]), json!(ids(&runs)));
    let card = crew.card(&runs[2]);
    // A list tells the same, but for what only one question tells.
    for (name, listed) in cards[0].as_object().expect("an object") {
        // The clock runs.
        if name != "expires_in_seconds" {
            assert_eq!(listed, &card[name], "{name}");
        }
    }
    for run in &runs {
        let expected = json!({
            "code": "pending_approval",
            "text": format!(
                "Waiting for approval ({}). A person has been asked. It expires at {} UTC. Poll \
                 the run or continue with other work.",
                text(&card, "short_id"),
                &text(&card, "expires_at")[11..16],
            ),
        });
        assert_eq!(only(&run["reason"], &["code", "text"]), expected);
        let expected = json!({ "state": "waiting", "status": "pending", "exit_code": null,
                               "approval_id": card["approval_id"], "approved_by": null });
        let names = ["state", "status", "exit_code", "approval_id", "approved_by"];
        assert_eq!(only(run, &names), expected);
    }
    let settled = crew.approve("ana", &card).expect(200);
    let expected = json!({ "state": "approved", "decided_by": "ana", "count": 3,
                           "situation": "over" });
    assert_eq!(
        only(&settled, &["state", "decided_by", "count", "situation"]),
        expected
    );
    for run in &runs {
        let ended = crew.ended(run);
        assert_eq!(ended["state"], "succeeded", "{ended}");
        let told = ["run.waiting", "run.approved", "run.started", "run.ended"];
        assert_eq!(crew.told(run), told);
    }
    assert_eq!(crew.home.lines("ran"), ["x"; 3]);
    // An answer is used once.
    let again = crew.waiting("coder", "echo x >> ran", Value::Null);
    assert_ne!(again["approval_id"], card["approval_id"]);
    crew.assert_agrees();
}

#[test]
fn a_list_says_who_waits_for_the_answer() {
    let crew = Crew::new();
    let went = crew.waiting("coder", "touch went", Value::Null);
    let situation = |run: &Value| {
        let cards = crew.inbox();
        let of = |card: &&Value| card["approval_id"] == run["approval_id"];
        let listed = cards.iter().find(of).expect("it waits")["situation"].clone();
        assert_eq!(crew.card(run)["situation"], listed);
        listed
    };
    assert_eq!(situation(&went), "went_on");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| crew.ask("coder", "touch waits", json!({ "wait_ms": 20000 })));
        let card = loop {
            let cards = crew.inbox();
            let of = |card: &Value| card["command"] == "touch waits";
            if let Some(card) = cards.into_iter().find(of) {
                break card;
            }
        };
        // Recorded first, and then waited for.
        crate::support::eventually("somebody waits", || situation(&card) == "waiting");
        crew.approve("ana", &card).expect(200);
        let ended = waits.join().unwrap().expect(200);
        assert_eq!(ended["state"], "succeeded", "{ended}");
    });
    crew.assert_agrees();
}

#[test]
fn one_that_is_withdrawn_leaves_the_others() {
    let crew = Crew::new();
    let runs = same(&crew, "echo x >> ran", 3);
    let withdraw = |who: &str, run: &Value| crew.with_run(who, run, "withdraw", Value::Null);
    let gone = withdraw("coder", &runs[1]).expect(200);
    let expected = json!({ "state": "withdrawn", "status": "rejected",
                           "approval_id": runs[1]["approval_id"] });
    assert_eq!(only(&gone, &["state", "status", "approval_id"]), expected);
    assert_eq!(
        only(&gone["reason"], &["code", "text"]),
        json!({ "code": "withdrawn", "text": "Withdrawn by coder. Nothing was run." })
    );
    let again = withdraw("coder", &runs[1]);
    assert_eq!(again.outcome(), (409, "not_waiting".into()));
    assert_eq!(
        withdraw("linter", &runs[0]).outcome(),
        (404, "no_such_run".into())
    );
    let card = crew.card(&runs[0]);
    assert_eq!(
        (&card["state"], &card["count"]),
        (&json!("pending"), &json!(2))
    );
    crew.approve("ana", &card).expect(200);
    assert_eq!(crew.ended(&runs[0])["state"], "succeeded");
    assert_eq!(crew.ended(&runs[2])["state"], "succeeded");
    assert_eq!(crew.run(&runs[1])["state"], "withdrawn");
    assert_eq!(crew.home.lines("ran"), ["x"; 2]);

    // With the last one, the question goes too.
    let runs = same(&crew, "echo x >> ran", 2);
    let card = crew.card(&runs[0]);
    withdraw("coder", &runs[0]).expect(200);
    withdraw("olga", &runs[1]).expect(200);
    assert_eq!(crew.inbox(), Vec::<Value>::new());
    let late = crew.approve("ana", &card).expect(409);
    assert_eq!(late["code"], "already_decided", "{late}");
    assert_eq!(late["detail"], "already withdrawn by olga", "{late}");
    let closed = json!({ "state": "withdrawn", "decided_by": "olga" });
    assert_eq!(only(&late["approval"], &["state", "decided_by"]), closed);
    crew.assert_agrees();
}

#[test]
fn an_edited_text_runs_instead_once_for_each_that_asked() {
    let crew = Crew::new();
    let runs = same(&crew, "echo asked >> ran", 2);
    let card = crew.card(&runs[0]);
    let edit = |text: &str| {
        let decision = json!({ "kind": "approve_edited", "command": text });
        crew.decide("ana", &card, decision)
    };
    let missing = crew.decide("ana", &card, json!({ "kind": "approve_edited" }));
    assert_eq!(missing.outcome(), (400, "no_command".into()));
    assert_eq!(edit("").outcome(), (400, "empty_command".into()));
    assert_eq!(edit("rm -rf /").outcome(), (400, "blocked".into()));
    assert_eq!(crew.card(&runs[0])["state"], "pending");
    let settled = edit("echo edited >> ran").expect(200);
    assert_eq!(settled["answers"][0]["edited"], "echo edited >> ran");
    for run in &runs {
        let ended = crew.ended(run);
        let expected = json!({ "state": "succeeded", "command": "echo edited >> ran",
                               "original": "echo asked >> ran", "approved_by": "ana" });
        let names = ["state", "command", "original", "approved_by"];
        assert_eq!(only(&ended, &names), expected);
        assert_eq!(
            ended["warnings"],
            json!([
                "Approved by ana with a change. Ran: `echo edited >> ran` instead of \
                   `echo asked >> ran`."
            ])
        );
    }
    assert_eq!(crew.home.lines("ran"), ["edited"; 2]);
    crew.assert_agrees();
}

#[test]
fn always_allows_it_from_now_on_and_nothing_else() {
    let crew = Crew::new();
    let run = crew.waiting("coder", "touch made", Value::Null);
    let other = crew.waiting("coder", "touch other", Value::Null);
    let card = crew.card(&run);
    let always = |pattern: &str| {
        let rules = json!([{ "pattern": pattern, "agent": "coder", "sandbox": "default" }]);
        crew.decide(
            "owner",
            &card,
            json!({ "kind": "approve_always", "rules": rules }),
        )
    };
    assert_eq!(always("").outcome(), (400, "bad_rules".into()));
    assert_eq!(crew.card(&run)["state"], "pending");
    always("touch made").expect(200);
    assert_eq!(crew.ended(&run)["state"], "succeeded");
    let next = crew.ask("coder", "touch made", Value::Null).expect(200);
    let expected = json!({ "state": "succeeded", "approval_id": null, "approved_by": null });
    assert_eq!(
        only(&next, &["state", "approval_id", "approved_by"]),
        expected
    );
    crew.waiting("coder", "touch more", Value::Null);
    crew.waiting("linter", "touch made", Value::Null);
    assert_eq!(crew.run(&other)["state"], "waiting");
    let given = audit(&crew.home, "kind=grant.given");
    assert_eq!(given.len(), 1, "{given:?}");
    assert_eq!(
        given[0]["detail"]["grant"]["allows"],
        json!({ "pattern": "touch made" })
    );
    crew.assert_agrees();
}

#[test]
fn a_rejection_says_why_word_for_word() {
    let crew = Crew::new();
    let long = "Keep build/reports; delete only build/cache. ".repeat(80);
    for (n, why) in ["No.", " ‘quoted’ \"too\"\nsecond line \u{1F600}\t", &long]
        .iter()
        .enumerate()
    {
        let runs = same(&crew, &format!("touch {n}"), 2);
        let card = crew.card(&runs[0]);
        let answer = crew.decide("ana", &card, json!({ "kind": "reject", "reason": why }));
        let answer = answer.expect(200);
        assert_eq!(answer["answers"][0]["reason"], json!(why));
        for run in &runs {
            let run = crew.run(run);
            let expected = json!({
                "code": "rejected",
                "text": format!("Rejected by ana: ‘{why}’ Nothing was run."),
            });
            assert_eq!(only(&run["reason"], &["code", "text"]), expected);
            assert_eq!(crew.told(&run), ["run.waiting", "run.rejected"]);
        }
    }
    // Without a reason, and by the run.
    let run = crew.waiting("coder", "touch last", Value::Null);
    let run = crew
        .with_run("ben", &run, "reject", Value::Null)
        .expect(200);
    assert_eq!(run["reason"]["text"], "Rejected by ben. Nothing was run.");
    let run = crew.waiting("coder", "touch last", Value::Null);
    let why = json!({ "reason": "x".repeat(5000) });
    let refused = crew.with_run("ben", &run, "reject", why);
    assert_eq!(refused.outcome(), (400, "reason_too_long".into()));
    assert_eq!(crew.run(&run)["state"], "waiting");
    crew.assert_agrees();
}

#[test]
fn every_end_is_told_apart() {
    let home = Home::strict();
    let rules = home.put("rules.toml", "");
    let settings = format!("[policy]\nrules = {rules:?}\n[approvals]\nexpire = \"4s\"\n");
    let crew = Crew::at(home, &settings);
    let ask = |command: &str| crew.waiting("coder", command, Value::Null);
    let expired = ask("touch expired");
    let waited = crew
        .ask("coder", "touch waited", json!({ "wait_ms": 20000 }))
        .expect(200);
    let expired = crew.ended(&expired);
    let rejected = ask("touch rejected");
    crew.with_run("ana", &rejected, "reject", Value::Null)
        .expect(200);
    let withdrawn = ask("touch withdrawn");
    crew.with_run("coder", &withdrawn, "withdraw", Value::Null)
        .expect(200);
    let blocked = ask("touch blocked");
    std::fs::write(
        rules,
        "[[rule]]\nreject = \"touch blocked\"\nbecause = \"of that\"\n",
    )
    .unwrap();
    let refused = crew.approve("ana", &crew.card(&blocked));
    assert_eq!(refused.outcome(), (409, "already_decided".into()));

    let nobody = "Nobody answered within 4 seconds. This is not a refusal. Nothing was run. Ask \
                  again when a person is available, or use a command that needs no approval.";
    for (run, state, by, text) in [
        (&expired, "expired", "clock", nobody),
        (&waited, "expired", "clock", nobody),
        (
            &rejected,
            "rejected",
            "ana",
            "Rejected by ana. Nothing was run.",
        ),
        (
            &withdrawn,
            "withdrawn",
            "coder",
            "Withdrawn by coder. Nothing was run.",
        ),
        (&blocked, "blocked", "policy", "of that"),
    ] {
        let run = crew.run(run);
        assert_eq!(run["state"], state, "{run}");
        assert_eq!(run["status"], "rejected", "{run}");
        let told = run["reason"]["text"].as_str().unwrap_or_default();
        assert!(told.contains(text), "{run}");
        assert_eq!(
            crew.told(&run),
            ["run.waiting".to_owned(), format!("run.{state}")]
        );
        let card = crew.card(&run);
        let expected = json!({ "state": state, "decided_by": by });
        assert_eq!(only(&card, &["state", "decided_by"]), expected);
        let list = crew
            .call("owner")
            .get(&format!("/approvals?status={state}"))
            .expect(200);
        let list = list["approvals"].as_array().expect("a list").clone();
        assert!(
            list.iter()
                .any(|listed| listed["approval_id"] == card["approval_id"])
        );
        assert!(list.iter().all(|listed| listed["state"] == state));
    }
    assert!(!crew.home.base().join("expired").exists());
    assert_eq!(crew.inbox(), Vec::<Value>::new());
    crew.assert_agrees();
}

#[test]
fn a_wall_clock_that_jumps_neither_ends_a_question_nor_keeps_it() {
    let office = Office::with(Approvals {
        expire: Duration::from_secs(4),
        ..Approvals::default()
    });
    office.open(async |desk| {
        for jump in [-HOUR, YEAR, -2 * YEAR] {
            let (first, card) = desk.question(desk.external("coder", "touch made")).await;
            assert!(card.expires_in_seconds <= 4, "{card:?}");
            office.jump.fetch_add(jump, Ordering::Relaxed);
            // Whoever joins does not set it anew.
            let second = desk.ask(desk.external("coder", "touch made")).await;
            assert_eq!(second.approval_id, first.approval_id);
            let now = desk.card(&card.approval_id).await;
            assert_eq!((now.state, now.count), (ApprovalState::Pending, 2));
            assert!(now.expires_in_seconds <= 4, "{now:?}");
            let ana = desk.who("ana");
            let more = desk
                .engine
                .inbox()
                .extend(&card.approval_id, 1, ana)
                .await
                .unwrap();
            assert!((1..=5).contains(&more.expires_in_seconds), "{more:?}");
            // It can be answered, and it ends.
            let other = desk.question(desk.external("coder", "touch other")).await;
            desk.approve("ana", &other.1).await.unwrap();
            let began = std::time::Instant::now();
            for run in [first, second] {
                let run = desk.ended(&run.command_id).await;
                assert_eq!(run.state, State::Expired, "after a jump of {jump}");
            }
            let took = began.elapsed();
            assert!(took < PATIENCE, "{took:?} after a jump of {jump}");
        }
        desk.assert_agrees();
    });
}

#[test]
fn a_wall_clock_set_back_between_two_servers_gives_no_more_time() {
    let office = Office::with(Approvals {
        expire: Duration::from_secs(2),
        ..Approvals::default()
    });
    let run = office.open(async |desk| desk.ask(desk.external("coder", "touch made")).await);
    office.jump.store(-YEAR, Ordering::Relaxed);
    office.open(async |desk| {
        let ended = tokio::time::timeout(PATIENCE, desk.ended(&run.command_id));
        assert_eq!(ended.await.unwrap().state, State::Expired);
        desk.assert_agrees();
    });
    // One that went ahead meanwhile has eaten it up.
    let run = office.open(async |desk| desk.ask(desk.external("coder", "touch made")).await);
    office.jump.store(YEAR, Ordering::Relaxed);
    office.open(async |desk| {
        assert_eq!(desk.ended(&run.command_id).await.state, State::Expired);
        desk.assert_agrees();
    });
}
