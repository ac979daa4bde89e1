//! A yes counts for what was shown. Whatever has changed since, nothing runs,
//! and a person is asked anew.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};
use weighlock_api::{ApprovalState, DecisionKind};

use crate::caller::{audit, sandbox};
use crate::crew::{Crew, only, text};
use crate::desk::{Office, races};
use crate::support::Home;

/// A yes to something that has changed is refused, and shows what is asked
/// now; that can be approved, and runs once.
#[track_caller]
fn check_asked_anew(crew: &Crew, run: &Value, change: impl FnOnce()) -> Value {
    let card = crew.card(run);
    assert_eq!(card["version"], 1, "{card}");
    // Looking changes nothing.
    assert_eq!(crew.card(run)["fingerprint"], card["fingerprint"]);
    change();
    let refused = crew.approve("ana", &card).expect(409);
    assert_eq!(refused["code"], "payload_changed", "{refused}");
    let now = refused["approval"].clone();
    let expected = json!({ "approval_id": card["approval_id"], "state": "pending", "version": 2 });
    assert_eq!(only(&now, &["approval_id", "state", "version"]), expected);
    assert_ne!(now["fingerprint"], card["fingerprint"]);
    assert_eq!(crew.run(run)["state"], "waiting");
    assert_eq!(crew.told(run), ["run.waiting"]);
    let renewed = audit(&crew.home, "kind=approval.renewed").pop();
    let renewed = renewed.expect("an entry")["detail"].clone();
    let expected = json!({ "approval": card["approval_id"], "was": card["fingerprint"],
                           "fingerprint": now["fingerprint"] });
    assert_eq!(renewed, expected);
    // The old answer is void for good.
    let again = crew.approve("ana", &card).expect(409);
    assert_eq!(again["code"], "payload_changed", "{again}");
    let settled = crew.approve("ben", &now).expect(200);
    let expected = json!({ "state": "approved", "decided_by": "ben", "version": 2 });
    assert_eq!(
        only(&settled, &["state", "decided_by", "version"]),
        expected
    );
    let ended = crew.ended(run);
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(ended["approved_by"], "ben", "{ended}");
    crew.assert_agrees();
    now
}

fn write_script(path: &Path, word: &str) {
    fs::write(path, format!("#!/bin/sh\necho {word} >> ran\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_script_that_was_edited_is_asked_about_anew() {
    let crew = Crew::new();
    let script = crew.home.base().join("deploy.sh");
    for command in [
        "./deploy.sh",
        "sh deploy.sh",
        "cd . && ./deploy.sh > /dev/null",
    ] {
        // As long as before, and a moment later.
        write_script(&script, "one");
        let run = crew.waiting("coder", command, Value::Null);
        check_asked_anew(&crew, &run, || write_script(&script, "two"));
        assert_eq!(crew.home.lines("ran"), ["two"], "{command}");
        fs::remove_file(crew.home.base().join("ran")).unwrap();
    }
}

#[test]
fn a_script_that_is_edited_at_once_is_asked_about_anew() {
    let office = Office::new();
    office.open(async |desk| {
        let script = office.base().join("deploy.sh");
        for n in 0..races(100) {
            // As fast as can be: clocks of files are coarse.
            write_script(&script, "one");
            let (_, card) = desk.question(desk.external("coder", "./deploy.sh")).await;
            write_script(&script, "two");
            let answer = desk.approve("ana", &card).await;
            assert_eq!(answer.err(), Some("payload_changed"), "{n}");
            let now = desk.card(&card.approval_id).await;
            let gone = desk.decide("ana", &now, DecisionKind::Reject).await;
            assert_eq!(gone.unwrap().state, ApprovalState::Rejected);
        }
        desk.assert_agrees();
    });
}

#[test]
fn a_script_that_was_replaced_is_asked_about_anew() {
    let crew = Crew::new();
    let base = crew.home.base();
    write_script(&base.join("deploy.sh"), "one");
    write_script(&base.join("other.sh"), "two");
    let run = crew.waiting("coder", "./deploy.sh", Value::Null);
    check_asked_anew(&crew, &run, || {
        fs::rename(base.join("other.sh"), base.join("deploy.sh")).unwrap();
    });
    assert_eq!(crew.home.lines("ran"), ["two"]);
}

#[test]
fn a_program_on_the_path_that_was_replaced_is_asked_about_anew() {
    let mut home = Home::strict();
    let tools = home.base().join("tools");
    let path = std::env::var("PATH").unwrap_or_default();
    home.set(
        "PATH",
        format!("{0}/none:{0}/other:{0}:{path}", tools.display()),
    );
    fs::create_dir_all(&tools).unwrap();
    write_script(&tools.join("deploy"), "one");
    let crew = Crew::at(home, "");
    let run = crew.waiting("coder", "deploy", Value::Null);
    check_asked_anew(&crew, &run, || write_script(&tools.join("deploy"), "two"));
    // One that is found before it, and cannot be run.
    let plain = tools.join("other/deploy");
    fs::create_dir_all(plain.parent().unwrap()).unwrap();
    fs::write(&plain, "").unwrap();
    let run = crew.waiting("coder", "deploy", Value::Null);
    check_asked_anew(&crew, &run, || write_script(&tools.join("deploy"), "ten"));
    // Another that is found before it.
    let run = crew.waiting("coder", "deploy", Value::Null);
    check_asked_anew(&crew, &run, || {
        fs::create_dir(tools.join("none")).unwrap();
        write_script(&tools.join("none/deploy"), "six");
    });
    assert_eq!(crew.home.lines("ran"), ["two", "ten", "six"]);
}

#[test]
fn a_working_directory_that_was_swapped_is_asked_about_anew() {
    let crew = Crew::new();
    let base = crew.home.base();
    let dir = |name: &str| {
        fs::create_dir(base.join(name)).unwrap();
        fs::set_permissions(base.join(name), fs::Permissions::from_mode(0o777)).unwrap();
    };
    dir("work");
    let run = crew.waiting("coder", "touch made", json!({ "cwd": "work" }));
    check_asked_anew(&crew, &run, || {
        fs::rename(base.join("work"), base.join("old")).unwrap();
        dir("work");
    });
    assert!(base.join("work/made").exists() && !base.join("old/made").exists());

    let run = crew.waiting("coder", "touch linked", json!({ "cwd": "work" }));
    let now = check_asked_anew(&crew, &run, || {
        fs::rename(base.join("work"), base.join("new")).unwrap();
        symlink("old", base.join("work")).unwrap();
    });
    assert_eq!(now["cwd"], json!(base.join("old")));
    assert!(base.join("old/linked").exists());

    // A way out is no place at all.
    let run = crew.waiting("coder", "touch out", json!({ "cwd": "new" }));
    let card = crew.card(&run);
    fs::rename(base.join("new"), base.join("away")).unwrap();
    symlink(crew.home.around(), base.join("new")).unwrap();
    assert_eq!(
        crew.approve("ana", &card).outcome(),
        (400, "outside_base".into())
    );
    assert_eq!(crew.run(&run)["state"], "waiting");
    // It can still be looked at, and rejected.
    assert_eq!(
        only(&crew.card(&run), &["state", "cwd"]),
        only(&card, &["state", "cwd"])
    );
    let rejected = crew.decide("ana", &card, json!({ "kind": "reject" }));
    assert_eq!(rejected.expect(200)["state"], "rejected");
    crew.assert_agrees();
}

#[test]
fn a_sandbox_whose_directory_was_swapped_runs_nothing() {
    let crew = Crew::new();
    let base = crew.home.base();
    let shop = sandbox(&crew.home, "shop", json!({}));
    fs::set_permissions(base.join("shop"), fs::Permissions::from_mode(0o777)).unwrap();
    let run = crew.waiting(
        "coder",
        "touch made",
        json!({ "sandbox_id": shop["sandbox_id"] }),
    );
    let card = crew.card(&run);
    fs::rename(base.join("shop"), base.join("old")).unwrap();
    symlink("old", base.join("shop")).unwrap();
    let refused = crew.approve("ana", &card);
    assert_eq!(refused.outcome(), (409, "sandbox_changed".into()));
    assert_eq!(crew.run(&run)["state"], "waiting");
    assert!(!base.join("old/made").exists());
    // Put back, it is what was shown.
    fs::remove_file(base.join("shop")).unwrap();
    fs::rename(base.join("old"), base.join("shop")).unwrap();
    crew.approve("ana", &card).expect(200);
    assert_eq!(crew.ended(&run)["state"], "succeeded");
    assert!(base.join("shop/made").exists());
    crew.assert_agrees();
}

#[test]
fn walls_that_were_changed_are_asked_about_anew() {
    let crew = Crew::new();
    let shop = sandbox(&crew.home, "shop", json!({}));
    fs::set_permissions(
        crew.home.base().join("shop"),
        fs::Permissions::from_mode(0o777),
    )
    .unwrap();
    let id = text(&shop, "sandbox_id");
    let run = crew.waiting("coder", "touch made", json!({ "sandbox_id": id }));
    assert_eq!(crew.card(&run)["network"], "off");
    let now = check_asked_anew(&crew, &run, || {
        let patch = json!({ "guard": { "network": "on" } });
        let path = format!("/sandboxes/{id}");
        crew.call("owner").ask("PATCH", &path, &patch).expect(200);
    });
    assert_eq!(now["network"], "on");
    assert_eq!(crew.run(&run)["sandbox"]["network"], "on");
}

#[test]
fn requests_that_differ_in_anything_that_counts_share_no_question() {
    let crew = Crew::new();
    fs::create_dir(crew.home.base().join("sub")).unwrap();
    sandbox(&crew.home, "shop", json!({}));
    let wishes = [
        json!({}),
        json!({ "env": { "MODE": "a" } }),
        json!({ "env": { "MODE": "b" } }),
        json!({ "env": { "OTHER": "a" } }),
        json!({ "stdin": "a" }),
        json!({ "stdin": "b" }),
        json!({ "stdin_open": true }),
        json!({ "cwd": "sub" }),
        json!({ "sandbox_id": "shop" }),
        json!({ "shell": "bash" }),
        json!({ "timeout_ms": 1000 }),
        json!({ "idle_ms": 1000 }),
        json!({ "keep": true }),
        json!({ "executor": "external" }),
    ];
    let mut seen = vec![];
    for wish in &wishes {
        let run = crew.waiting("coder", "touch made", wish.clone());
        let id = text(&run, "approval_id");
        assert!(!seen.contains(&id), "{wish}");
        // The same once more does.
        let again = crew.waiting("coder", "touch made", wish.clone());
        assert_eq!(again["approval_id"], json!(id), "{wish}");
        seen.push(id);
    }
    // What it is said to be for, and for how long somebody waits, do not.
    let wish = json!({ "description": "makes it", "wait_ms": 1, "session_id": "mine" });
    let run = crew.waiting("coder", "touch made", wish);
    assert_eq!(run["approval_id"], json!(seen[0]));
    // Others ask for themselves.
    let run = crew.waiting("linter", "touch made", json!({}));
    assert!(!seen.contains(&text(&run, "approval_id")));
    crew.assert_agrees();
}

#[test]
fn what_the_rules_reject_by_now_is_blocked() {
    let home = Home::strict();
    let rules = home.put("rules.toml", "");
    let crew = Crew::at(home, &format!("[policy]\nrules = {rules:?}\n"));
    let runs = [(); 2].map(|()| crew.waiting("coder", "touch made", Value::Null));
    let card = crew.card(&runs[0]);
    let rule = "[[rule]]\nname = \"no-touching\"\nreject = \"touch *\"\nbecause = \"leave it\"\n";
    fs::write(rules, rule).unwrap();
    let refused = crew.approve("ana", &card).expect(409);
    assert_eq!(refused["code"], "already_decided", "{refused}");
    let now = only(
        &refused["approval"],
        &["approval_id", "state", "decided_by"],
    );
    let expected = json!({ "approval_id": card["approval_id"], "state": "blocked",
                           "decided_by": "policy" });
    assert_eq!(now, expected);
    for run in &runs {
        let run = crew.run(run);
        let expected = json!({ "state": "blocked", "status": "rejected", "approved_by": null });
        assert_eq!(only(&run, &["state", "status", "approved_by"]), expected);
        assert_eq!(run["reason"]["rule"], "no-touching", "{run}");
        assert_eq!(crew.told(&run), ["run.waiting", "run.blocked"]);
    }
    assert!(!crew.home.base().join("made").exists());
    assert_eq!(crew.inbox(), Vec::<Value>::new());
    crew.assert_agrees();
}

#[test]
fn what_was_allowed_meanwhile_can_still_be_approved_and_runs_once() {
    let crew = Crew::new();
    let run = crew.waiting("coder", "touch made", Value::Null);
    let card = crew.card(&run);
    let grant = json!({ "pattern": "touch *" });
    let given = crew.call("owner").post("/policies/grants", &grant);
    assert!(given.status < 300, "{given:?}");
    // It is still what was shown.
    assert_eq!(crew.card(&run)["fingerprint"], card["fingerprint"]);
    assert_eq!(crew.approve("ana", &card).expect(200)["state"], "approved");
    assert_eq!(crew.ended(&run)["state"], "succeeded");
    assert!(crew.home.base().join("made").exists());
    crew.assert_agrees();
}

#[test]
fn a_yes_by_the_run_counts_for_what_was_asked_first() {
    let crew = Crew::new();
    let script = crew.home.base().join("deploy.sh");
    write_script(&script, "one");
    let run = crew.waiting("coder", "./deploy.sh", Value::Null);
    write_script(&script, "two");
    let approve = |body: Value| crew.with_run("ana", &run, "approve", body);
    // Whether somebody has looked at it meanwhile or not.
    for _ in 0..2 {
        let refused = approve(Value::Null);
        assert_eq!(refused.outcome(), (409, "payload_changed".into()));
    }
    let now = crew.card(&run)["fingerprint"].clone();
    let other = approve(json!({ "fingerprint": "0" }));
    assert_eq!(other.outcome(), (409, "payload_changed".into()));
    let begun = approve(json!({ "fingerprint": now })).expect(200);
    assert_eq!(begun["approved_by"], "ana", "{begun}");
    assert_eq!(crew.ended(&run)["state"], "succeeded");
    assert_eq!(crew.home.lines("ran"), ["two"]);
    crew.assert_agrees();
}

/// Scripts and programs that a command names in a roundabout way.
#[test]
fn a_script_that_is_named_in_other_ways_is_asked_about_anew_too() {
    let crew = Crew::new();
    let base = crew.home.base();
    fs::create_dir_all(base.join("sub")).unwrap();
    for (command, script) in [
        ("cd sub && ./x.sh", "sub/x.sh"),
        ("(cd sub; . ./x.sh)", "sub/x.sh"),
        ("sh < x.sh", "x.sh"),
        ("cat x.sh | sh", "x.sh"),
        ("env PATH=sub:/bin:/usr/bin x.sh", "sub/x.sh"),
        ("PATH=sub:$PATH x.sh", "sub/x.sh"),
        ("export PATH=$PWD/sub:$PATH; x.sh", "sub/x.sh"),
    ] {
        let script = base.join(script);
        write_script(&script, "one");
        let run = crew.waiting("coder", command, Value::Null);
        let card = crew.card(&run);
        write_script(&script, "two");
        let refused = crew.approve("ana", &card).expect(409);
        assert_eq!(refused["code"], "payload_changed", "{command}: {refused}");
    }
}

#[test]
fn what_a_variable_of_the_request_runs_is_part_of_the_question() {
    let crew = Crew::new();
    let base = crew.home.base();
    fs::create_dir_all(base.join("sub")).unwrap();
    let path = format!("{}/sub:/usr/bin:/bin", base.display());
    let startup = base.join("x.sh").to_string_lossy().into_owned();
    for (command, script, wishes) in [
        ("x.sh; true", "sub/x.sh", json!({ "env": { "PATH": path } })),
        (
            "touch y",
            "x.sh",
            json!({ "env": { "BASH_ENV": startup }, "shell": "bash" }),
        ),
    ] {
        let script = base.join(script);
        write_script(&script, "one");
        let run = crew.waiting("coder", command, wishes);
        let card = crew.card(&run);
        write_script(&script, "two");
        let refused = crew.approve("ana", &card).expect(409);
        assert_eq!(refused["code"], "payload_changed", "{command}: {refused}");
    }
}

/// To a shell its input is a command, and some variables are.
#[test]
fn input_and_variables_are_shown() {
    let crew = Crew::new();
    let wishes = json!({ "stdin": "echo owned > owned\n",
                         "env": { "BASH_ENV": "./x", "API_TOKEN": "t0p" } });
    let run = crew.waiting("coder", "sh", wishes);
    let card = crew.card(&run);
    assert_eq!(card["input"], "echo owned > owned\n");
    let shown = json!(["API_TOKEN=•••• (secret)", "BASH_ENV=./x"]);
    assert_eq!(card["environment"], shown);
    let run = crew.waiting("coder", "cat | sh", json!({ "stdin_open": true }));
    assert_eq!(crew.card(&run)["input_follows"], true);
}
