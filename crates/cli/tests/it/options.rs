//! How people are asked, where that is set up: by whom, by how many, about how
//! much, and for how long.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use weighlock_api::{ApprovalState, DecisionKind, State};
use weighlock_engine::{Approvals, Decision, Outcome, Scope};

use crate::caller::sandbox;
use crate::crew::{Crew, only};
use crate::desk::{Office, decision, races};

#[test]
fn with_four_eyes_nobody_approves_what_they_asked_for() {
    let crew = Crew::with("[approvals]\nfour_eyes = true\n");
    for who in ["ana", "owner"] {
        let run = crew.waiting(who, "touch made", Value::Null);
        let card = crew.card(&run);
        for kind in ["approve_once", "approve_always", "approve_edited"] {
            let decision = json!({ "kind": kind, "command": "touch other" });
            let refused = crew.decide(who, &card, decision);
            assert_eq!(refused.outcome(), (403, "own_request".into()), "{who}");
        }
        let refused = crew.with_run(who, &run, "approve", Value::Null);
        assert_eq!(refused.outcome(), (403, "own_request".into()), "{who}");
        assert_eq!(crew.run(&run)["state"], "waiting");
        crew.approve("ben", &card).expect(200);
        assert_eq!(crew.ended(&run)["approved_by"], "ben");
        // A no is as good as a withdrawal.
        let run = crew.waiting(who, "touch more", Value::Null);
        crew.with_run(who, &run, "reject", Value::Null).expect(200);
    }
    crew.assert_agrees();
}

/// A command that changes what is outside.
const HIGH: &str = "touch /srv/made";

#[test]
fn a_command_of_high_risk_needs_two_people() {
    let crew = Crew::with("[approvals]\ntwo_for_high_risk = true\n");
    let low = crew.waiting("coder", "touch made", Value::Null);
    assert_eq!(crew.card(&low)["needed"], 1);
    crew.approve("ana", &crew.card(&low)).expect(200);
    assert_eq!(crew.ended(&low)["state"], "succeeded");

    let ask = || crew.waiting("coder", HIGH, json!({ "executor": "external" }));
    let runs = [ask(), ask()];
    let card = crew.card(&runs[0]);
    assert_eq!(
        only(&card, &["risk", "needed", "count"]),
        json!({ "risk": "high", "needed": 2, "count": 2 })
    );
    let one = crew.approve("ana", &card).expect(200);
    assert_eq!(
        (&one["state"], &one["decided_by"]),
        (&json!("pending"), &Value::Null)
    );
    assert_eq!(one["answers"][0]["by"], "ana");
    let again = crew.approve("ana", &card);
    assert_eq!(again.outcome(), (409, "answered_already".into()));
    assert_eq!(crew.run(&runs[0])["state"], "waiting");
    let edited = json!({ "kind": "approve_edited", "command": "touch other" });
    let edited = crew.decide("ben", &card, edited);
    assert_eq!(edited.outcome(), (400, "two_must_see_it".into()));
    let two = crew.approve("ben", &card).expect(200);
    assert_eq!(
        (&two["state"], &two["decided_by"]),
        (&json!("approved"), &json!("ben"))
    );
    for run in &runs {
        let run = crew.run(run);
        assert_eq!(
            (&run["state"], &run["approved_by"]),
            (&json!("running"), &json!("ben"))
        );
    }

    // One no ends it, also from somebody who said yes.
    for who in ["ben", "ana"] {
        let run = ask();
        let card = crew.card(&run);
        crew.approve("ana", &card).expect(200);
        let no = crew
            .decide(who, &card, json!({ "kind": "reject" }))
            .expect(200);
        assert_eq!(
            (&no["state"], &no["decided_by"]),
            (&json!("rejected"), &json!(who))
        );
        assert_eq!(crew.run(&run)["state"], "rejected");
    }

    // Nobody gets around it with an edit.
    let run = crew.waiting("coder", "touch low", Value::Null);
    let edited = json!({ "kind": "approve_edited", "command": HIGH });
    let edited = crew.decide("ana", &crew.card(&run), edited);
    assert_eq!(edited.outcome(), (400, "two_must_see_it".into()));
    crew.assert_agrees();
}

#[test]
fn answers_to_what_has_changed_do_not_count_for_what_it_is_now() {
    let crew = Crew::with("[approvals]\ntwo_for_high_risk = true\n");
    let shop = sandbox(&crew.home, "shop", json!({}));
    let wish = json!({ "executor": "external", "sandbox_id": shop["sandbox_id"] });
    let run = crew.waiting("coder", HIGH, wish);
    let card = crew.card(&run);
    crew.approve("ana", &card).expect(200);
    let path = format!("/sandboxes/{}", shop["sandbox_id"].as_str().unwrap());
    let patch = json!({ "guard": { "network": "on" } });
    crew.call("owner").ask("PATCH", &path, &patch).expect(200);
    let now = crew.approve("ben", &card).expect(409)["approval"].clone();
    assert_eq!(now["version"], 2, "{now}");
    let one = crew.approve("ben", &now).expect(200);
    assert_eq!(one["state"], "pending", "ana has not seen it: {one}");
    crew.approve("ana", &now).expect(200);
    assert_eq!(crew.run(&run)["state"], "running");
    crew.assert_agrees();
}

#[test]
fn two_people_who_approve_at_once_start_it_once() {
    let office = Office::with(Approvals {
        two_for_high_risk: true,
        ..Approvals::default()
    });
    office.open(async |desk| {
        for n in 0..races(100) {
            let command = format!("touch /srv/{n}");
            let (run, card) = desk.question(desk.external("coder", &command)).await;
            assert_eq!(card.needed, 2);
            let approve = |who| desk.try_decide(who, &card, DecisionKind::ApproveOnce);
            let (ana, ben) = tokio::join!(approve("ana"), approve("ben"));
            // Both have answered, and both hear so.
            let states = [ana.unwrap().state, ben.unwrap().state];
            assert!(states.contains(&ApprovalState::Approved), "{states:?}");
            let run = desk.run(&run.command_id);
            assert_eq!(run.state, State::Running);
            let card = desk.card(&card.approval_id).await;
            assert_eq!(card.answers.len(), 2);
            assert_eq!(run.approved_by, card.decided_by);
        }
        desk.assert_agrees();
    });
}

#[test]
fn nobody_has_more_waiting_than_may_wait() {
    let crew = Crew::with("[approvals]\nmax_pending = 3\n");
    let first = crew.waiting("coder", "touch 1", Value::Null);
    for command in ["touch 1", "touch 2"] {
        crew.waiting("coder", command, Value::Null);
    }
    for command in ["touch 1", "touch 3"] {
        let refused = crew.ask("coder", command, Value::Null);
        assert_eq!(refused.outcome(), (429, "too_many_waiting".into()));
    }
    // Others are not in the way of that, and what needs nobody runs.
    crew.waiting("linter", "touch 1", Value::Null);
    assert_eq!(
        crew.ask("coder", "ls", Value::Null).expect(200)["state"],
        "succeeded"
    );
    crew.with_run("coder", &first, "withdraw", Value::Null)
        .expect(200);
    crew.waiting("coder", "touch 3", Value::Null);
    // What is held counts, too, and is not turned away when work goes on.
    crew.call("olga").post("/pause", &Value::Null).expect(200);
    let refused = crew.ask("coder", "touch 4", Value::Null);
    assert_eq!(refused.outcome(), (429, "too_many_waiting".into()));
    for command in ["touch 2", "touch 3"] {
        assert_eq!(
            crew.ask("linter", command, Value::Null).expect(202)["state"],
            "held"
        );
    }
    crew.call("olga").post("/resume", &Value::Null).expect(200);
    crate::support::eventually("they are asked about", || {
        let cards = crew.inbox();
        cards
            .iter()
            .filter(|card| card["requested_by"] == "linter")
            .count()
            == 3
    });
    crew.assert_agrees();
}

#[test]
fn people_can_take_more_time() {
    let office = Office::with(Approvals {
        expire: Duration::from_secs(4),
        ..Approvals::default()
    });
    office.open(async |desk| {
        let (run, card) = desk.question(desk.external("coder", "touch made")).await;
        let (short, _) = desk.question(desk.external("coder", "touch other")).await;
        let extend = |who: &str, seconds| {
            let who = desk.who(who).clone();
            let (engine, id) = (desk.engine.clone(), card.approval_id.clone());
            async move {
                let extended = engine.inbox().extend(&id, seconds, &who).await;
                extended.map_err(|error| error.problem().code)
            }
        };
        assert_eq!(extend("coder", 60).await.err(), Some("never_agents"));
        let more = extend("ana", 60).await.unwrap();
        assert!((60..=64).contains(&more.expires_in_seconds), "{more:?}");
        assert_eq!(desk.ended(&short.command_id).await.state, State::Expired);
        assert_eq!(desk.run(&run.command_id).state, State::Waiting);
        desk.approve("ana", &card).await.unwrap();
        assert_eq!(extend("ana", 60).await.err(), Some("already_decided"));
        assert_eq!(desk.run(&run.command_id).state, State::Running);
        desk.assert_agrees();
    });
}

#[test]
fn more_time_at_the_last_moment_is_more_time_or_none() {
    let office = Office::with(Approvals {
        expire: Duration::from_millis(30),
        ..Approvals::default()
    });
    office.open(async |desk| {
        let (mut delay, mut extended) = (Duration::from_millis(25), 0);
        let times = races(200);
        for n in 0..times {
            let run = desk
                .ask_briefly(desk.external("coder", &format!("touch {n}")))
                .await;
            let id = run.approval_id.clone().expect("a question");
            tokio::time::sleep(delay).await;
            let more = desk.engine.inbox().extend(&id, 3600, desk.who("ana")).await;
            // Longer than it had.
            match more.map_err(|error| error.problem().code) {
                Ok(more) => {
                    assert_eq!(more.state, ApprovalState::Pending);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    assert_eq!(desk.run(&run.command_id).state, State::Waiting);
                    let card = desk.card(&id).await;
                    desk.decide("ana", &card, DecisionKind::Reject)
                        .await
                        .unwrap();
                    delay += Duration::from_micros(700);
                    extended += 1;
                }
                Err(code) => {
                    assert_eq!(code, "already_decided");
                    assert_eq!(desk.run(&run.command_id).state, State::Expired);
                    delay = delay.saturating_sub(Duration::from_micros(500));
                }
            }
        }
        println!("{extended} of {times} extended");
        desk.assert_agrees();
    });
}

#[test]
fn what_is_allowed_for_an_hour_is_asked_about_again_after_it() {
    let office = Office::new();
    let jump = Arc::clone(&office.jump);
    office.open(async |desk| {
        let (_, card) = desk.question(desk.external("coder", "rm -rf ./tmp")).await;
        let proposed = desk
            .engine
            .inbox()
            .rule_proposals(&card.approval_id, desk.who("ana"));
        let pattern = proposed.await.unwrap().groups[0].choices[0].pattern.clone();
        let scope = Scope {
            agent: Some("coder".into()),
            sandbox: Some("default".into()),
            session: None,
        };
        let until = jiff::Timestamp::now().as_second() + 3600;
        let always = Decision {
            grants: vec![(pattern, scope, Some(until))],
            ..decision(DecisionKind::ApproveAlways, &card)
        };
        let decided = desk
            .engine
            .inbox()
            .decide(&card.approval_id, always, desk.who("ana"));
        decided.await.unwrap();
        let asked = async |command: &str| {
            let outcome = desk.engine.run(desk.external("coder", command)).await;
            matches!(outcome.unwrap(), Outcome::Waiting(_))
        };
        assert!(!asked("rm -rf ./tmp").await);
        assert!(asked("rm -rf ./src").await);
        jump.store(3599 - 60, Ordering::Relaxed);
        assert!(!asked("rm -rf ./tmp").await);
        jump.store(3601, Ordering::Relaxed);
        assert!(asked("rm -rf ./tmp").await);
    });
}
