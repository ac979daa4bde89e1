//! Commands that whoever asked runs itself: judged, asked about, and reported
//! once.

use serde_json::{Value, json};
use weighlock_api::State;
use weighlock_engine::Report;

use crate::crew::{Crew, only, text};
use crate::desk::{Office, races};

fn external(crew: &Crew, command: &str) -> Value {
    let wish = json!({ "executor": "external", "wait_ms": 20000 });
    crew.ask("coder", command, wish).expect(202)
}

#[test]
fn a_report_is_recorded_once_and_can_be_read() {
    let mut crew = Crew::new();
    // What needs nobody may be run at once, and nothing is run here.
    let run = external(&crew, "echo x");
    let expected = json!({ "state": "running", "status": "approved", "executor": "external" });
    assert_eq!(only(&run, &["state", "status", "executor"]), expected);
    assert_eq!(crew.home.processes(), Vec::<u32>::new());
    let report = json!({ "stdout": "a\nb\n", "stderr": "oops\n", "exit_code": 3 });
    let done = crew
        .with_run("coder", &run, "finalize", report.clone())
        .expect(200);
    let expected = json!({ "state": "failed", "status": "failed", "exit_code": 3,
                           "stdout": "a\nb\n", "stderr": "oops\n", "open": false });
    let names = ["state", "status", "exit_code", "stdout", "stderr", "open"];
    assert_eq!(only(&done, &names), expected);
    assert_eq!(crew.told(&run), ["run.started", "run.ended"]);
    for _ in 0..2 {
        let other = json!({ "stdout": "other", "stderr": "", "exit_code": 0 });
        for again in [&report, &other] {
            let refused = crew.with_run("coder", &run, "finalize", again.clone());
            assert_eq!(refused.outcome(), (409, "already_final".into()));
        }
        assert_eq!(only(&crew.run(&run), &names), expected);
        let id = text(&run, "command_id");
        assert_eq!(crew.home.output(&id), b"a\nb\noops\n");
        let path = format!("/commands/{id}/output?from=2&lines=1");
        let lines = crew.call("coder").get(&path).expect(200);
        assert_eq!(lines["lines"][0]["text"], "b", "{lines}");
        crew.restart();
    }
    crew.assert_agrees();
}

#[test]
fn what_needs_a_person_waits_and_may_be_run_then() {
    let mut crew = Crew::new();
    let run = crew.waiting("coder", "touch made", json!({ "executor": "external" }));
    let early = crew.with_run("coder", &run, "finalize", json!({ "exit_code": 0 }));
    assert_eq!(early.outcome(), (409, "not_begun".into()));
    crew.approve("ana", &crew.card(&run)).expect(200);
    let now = crew.run(&run);
    let expected = json!({ "state": "running", "approved_by": "ana", "open": false });
    assert_eq!(only(&now, &["state", "approved_by", "open"]), expected);
    assert!(!crew.home.base().join("made").exists());
    // It is not ours to end or to lose.
    crew.restart();
    assert_eq!(crew.run(&run)["state"], "running");
    let done = crew
        .with_run("coder", &run, "finalize", json!({ "exit_code": 0 }))
        .expect(200);
    let expected = json!({ "state": "succeeded", "exit_code": 0, "approved_by": "ana" });
    assert_eq!(
        only(&done, &["state", "exit_code", "approved_by"]),
        expected
    );
    let told = ["run.waiting", "run.approved", "run.started", "run.ended"];
    assert_eq!(crew.told(&run), told);

    // Whoever runs it is told what to run.
    let run = crew.waiting("coder", "touch made", json!({ "executor": "external" }));
    let edited = json!({ "kind": "approve_edited", "command": "touch other" });
    crew.decide("ana", &crew.card(&run), edited).expect(200);
    let now = crew
        .call("coder")
        .get(&format!("/commands/{}", text(&run, "command_id")));
    let expected = json!({ "command": "touch other", "original": "touch made" });
    assert_eq!(only(&now.expect(200), &["command", "original"]), expected);

    // What was refused is never reported.
    let refused = crew.waiting("coder", "touch no", json!({ "executor": "external" }));
    crew.with_run("ana", &refused, "reject", Value::Null)
        .expect(200);
    let blocked = crew
        .ask("coder", "rm -rf /", json!({ "executor": "external" }))
        .expect(200);
    for run in [&refused, &blocked] {
        let report = crew.with_run("coder", run, "finalize", json!({ "exit_code": 0 }));
        assert_eq!(report.outcome(), (409, "already_final".into()));
    }
    crew.assert_agrees();
}

#[test]
fn only_whoever_asked_reports_and_never_of_a_run_of_ours() {
    let crew = Crew::new();
    let run = external(&crew, "echo x");
    let report =
        |who: &str, run: &Value| crew.with_run(who, run, "finalize", json!({ "exit_code": 0 }));
    assert_eq!(
        report("linter", &run).outcome(),
        (404, "no_such_run".into())
    );
    assert_eq!(report("ana", &run).outcome(), (403, "not_allowed".into()));
    assert_eq!(report("olga", &run).outcome(), (403, "not_allowed".into()));
    let ours = crew.ask("coder", "sleep 30", json!({ "background": true }));
    let ended = crew.ask("coder", "echo x", Value::Null).expect(200);
    let waits = crew.waiting("coder", "touch made", Value::Null);
    for ours in [&ours.json(), &ended, &waits] {
        assert_eq!(
            report("coder", ours).outcome(),
            (409, "not_external".into())
        );
    }
    assert_eq!(crew.run(&ended)["stdout"], "x\n");
    assert_eq!(crew.run(&run)["state"], "running");
    report("owner", &run).expect(200);
    crew.assert_agrees();
}

#[test]
fn of_ten_reports_at_once_one_is_recorded() {
    let crew = Crew::new();
    for _ in 0..5 {
        let run = external(&crew, "echo x");
        let answers: Vec<_> = std::thread::scope(|scope| {
            let report = |n: usize| {
                let text = format!("{n}\n").repeat(1000 * (n + 1));
                let report = json!({ "stdout": text, "stderr": "", "exit_code": n });
                crew.with_run("coder", &run, "finalize", report)
            };
            let tasks: Vec<_> = (0..10).map(|n| scope.spawn(move || report(n))).collect();
            tasks.into_iter().map(|task| task.join().unwrap()).collect()
        });
        let firsts: Vec<_> = (0..10).filter(|&n| answers[n].status == 200).collect();
        assert_eq!(firsts.len(), 1, "{answers:?}");
        for answer in answers.iter().filter(|answer| answer.status != 200) {
            assert_eq!(answer.outcome(), (409, "already_final".into()));
        }
        // All that is recorded is of the one.
        let n = firsts[0];
        assert_eq!(crew.run(&run)["exit_code"], json!(n));
        let output = crew.home.output(&text(&run, "command_id"));
        assert_eq!(output, format!("{n}\n").repeat(1000 * (n + 1)).into_bytes());
    }
    crew.assert_agrees();
}

#[test]
fn reported_output_is_removed_like_any_other_and_no_more_than_that() {
    const KEPT: usize = 100_000;
    let mut office = Office::new();
    office.config.output_total = 10 * KEPT as u64;
    office.open(async |desk| {
        let mut runs = vec![];
        for n in 0..races(30) {
            let outcome = desk.engine.run(desk.external("coder", "ls")).await.unwrap();
            let weighlock_engine::Outcome::Running(run) = outcome else {
                panic!("it may run: {outcome:?}");
            };
            let report = Report {
                stdout: format!("{n}\n").repeat(KEPT / format!("{n}\n").len()),
                ..Report::default()
            };
            let coder = desk.who("coder");
            let done = desk
                .engine
                .life()
                .finalize(&run.command_id, report, coder)
                .await
                .unwrap();
            assert_eq!(done.state, State::Succeeded);
            runs.push(run.command_id);
            let kept = |id: &&String| !desk.run(id).detail.output.removed;
            let kept: Vec<_> = runs.iter().filter(kept).collect();
            let newest = runs.iter().rev().take(kept.len()).rev();
            assert_eq!(kept, newest.collect::<Vec<_>>());
            assert!(kept.len() >= runs.len().min(9), "{} are left", kept.len());
        }
    });
}
