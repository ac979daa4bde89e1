//! A person at a terminal, who is asked whether a command may run.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Home, eventually, have, signal};
use crate::tty::Tty;

/// What follows the lines that say who asks, where and when.
const QUESTION: &str = "
  $ touch made

Why    `touch` writes files                                   default (built-in)
  touch made  makes files, or gives them another time  Needs approval  default
     writes: made

  [o] run once   [w] always…   [e] edit   [r] reject…
  [t] try in a copy   [x] explain   [q] decide later   [^C] withdraw
> ";

fn run(home: &Home, command: &str) -> Tty {
    Tty::start(home.weighlock(&["run", "--", command]))
}

fn made(home: &Home) -> bool {
    home.base().join("made").exists()
}

#[test]
fn o_and_enter_run_it_once() {
    let home = Home::strict();
    let mut tty = run(&home, "touch made");
    let card = tty.expect("[^C] withdraw\n> ");
    let mut lines = card.splitn(4, '\n');
    let mut next = || lines.next().unwrap();
    let header = format!("◔ Needs approval · {} in default · waiting 0:0", home.me());
    assert!(next().starts_with(&header), "{card}");
    assert_eq!(next(), "Writes made");
    assert_eq!(next(), format!("{} · network off", home.base().display()));
    assert_eq!(next(), QUESTION);
    tty.press("o");
    tty.expect("Enter = yes, any other key = no");
    assert!(!made(&home));
    tty.press("\r");
    tty.expect("exit 0");
    assert_eq!(tty.end(), Some(0));
    assert!(made(&home));
    let last = home.show("@last");
    assert_eq!(last["approved_by"], home.me(), "{last}");
    // Once is once.
    let done = home.run(&["--no-wait"], "touch made");
    assert_eq!(done.code, Some(75));
    home.assert_audit_verifies();
}

#[test]
fn keys_that_were_meant_for_something_else_decide_nothing() {
    let home = Home::strict();
    let mut tty = run(&home, "touch made");
    // Typed ahead, pasted, too soon, Enter alone, an arrow.
    tty.send("o\r");
    tty.expect("> ");
    tty.send("o\r");
    tty.press("o\r");
    tty.press("\r");
    tty.press("\x1b[A");
    // A double press, and a person who then thinks better of it.
    tty.press("o");
    tty.expect("Enter = yes, any other key = no");
    tty.send("\r");
    tty.press("n");
    tty.expect("no\n");
    tty.expect("> ");
    assert!(!made(&home));
    tty.press("q");
    tty.expect("◔ Still waiting — weighlock approve ap_");
    assert_eq!(tty.end(), Some(75));
    assert!(!made(&home));
    assert_eq!(home.show("@last")["state"], "waiting");
}

#[test]
fn ctrl_c_leaves_without_a_decision() {
    let home = Home::strict();
    let mut tty = run(&home, "touch made");
    tty.expect("> ");
    tty.send("\x03");
    assert_eq!(tty.end(), Some(75));
    assert_eq!(home.show("@last")["state"], "withdrawn");
}

#[test]
fn a_rejection_says_why() {
    let home = Home::strict();
    let mut tty = run(&home, "touch made");
    tty.expect("> ");
    tty.press("r");
    tty.expect("why?");
    tty.press("Not heee\x7f\x7fre, please\r");
    tty.expect("⊘ Rejected — nothing was run\n");
    tty.expect("‘Not here, please’ Nothing was run.");
    assert_eq!(tty.end(), Some(126));
    let last = home.show("@last");
    assert_eq!(last["state"], "rejected");
    assert!(!made(&home));
}

#[test]
fn always_makes_a_grant_and_runs() {
    let home = Home::strict();
    let mut tty = run(&home, "touch made && ls");
    tty.expect("> ");
    tty.press("x");
    tty.expect("Rules tried: ");
    tty.expect("> ");
    tty.press("w");
    // The one part that is asked about is what is suggested.
    tty.expect("1 touch made $ — 1 of the last 1");
    tty.expect("allow which commands? touch made $");
    tty.press("\r");
    tty.expect("for how long? (or revoked) 8h");
    tty.press("\r");
    tty.expect("save this rule and run it? Enter = yes, any other key = no");
    tty.press("\r");
    tty.expect("exit 0");
    assert_eq!(tty.end(), Some(0));
    assert!(made(&home));
    assert_eq!(home.run(&[], "touch made").code, Some(0));
    assert_eq!(home.run(&["--no-wait"], "touch other").code, Some(75));
    let grants = home.call(&["policy", "grants", "--json"]);
    let grants: Value = serde_json::from_str(&grants.out).unwrap();
    assert_eq!(grants[0]["pattern"], "touch made $");
    assert_eq!(grants[0]["sandbox"], "default");
}

#[test]
fn what_cannot_be_foreseen_cannot_be_allowed_beforehand() {
    let home = Home::strict();
    for command in ["cat > made <<X\n1\nX", "$TOOL x"] {
        let mut tty = run(&home, command);
        tty.expect("[o] run once   [e] edit   [r] reject…\n  [t] try in a copy   [x] explain   [q] decide later   [^C] withdraw\n> ");
        tty.press("w");
        tty.press("q");
        assert_eq!(tty.end(), Some(75), "{command}");
    }
}

#[test]
fn nobody_is_asked_without_a_terminal() {
    let home = Home::strict();
    let done = home.run(&["--no-wait"], "rm -r x");
    let run = home.show("@last");
    let id = run["short_id"].as_str().unwrap();
    let (_, inbox) = home.api("GET", "/approvals", &Value::Null);
    let approval = inbox["approvals"][0]["short_id"].as_str().unwrap();
    assert_eq!((done.code, done.out), (Some(75), format!("{id}\n")));
    let lines: Vec<&str> = done.err.lines().collect();
    let asked = format!(" {approval}, expires in ");
    assert!(
        lines[0].starts_with("◔ Needs approval — asked a person "),
        "{lines:?}"
    );
    assert!(lines[0].contains(&asked), "{lines:?}");
    assert_eq!(
        lines[1..],
        [
            "   `rm` removes files                                 default (built-in)",
            &format!("  weighlock show {id}    weighlock output {id} --follow"),
        ]
    );
    let done = home.run(&["--no-wait", "--json"], "rm -r x");
    let waiting: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(done.code, Some(75));
    assert_eq!(waiting["state"], "waiting");
    assert_eq!(waiting["reason"]["code"], "pending_approval");
}

#[test]
fn whoever_asks_without_a_terminal_waits_for_the_answer() {
    let home = Home::strict();
    let server = home.serve(&[]);
    let mut asking = home.weighlock(&["run", "--", "touch made && echo ran"]);
    let asking = asking.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut approval = Value::Null;
    eventually("a person is asked", || {
        let (_, list) = home.api("GET", "/approvals", &Value::Null);
        approval = list["approvals"][0].clone();
        approval.is_object()
    });
    let id = approval["approval_id"].as_str().unwrap();
    let decision = json!({ "kind": "approve_once", "fingerprint": approval["fingerprint"] });
    let (status, _) = home.api("POST", &format!("/approvals/{id}/decision"), &decision);
    assert_eq!(status, 200);
    let done = asking.unwrap().wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(
        (done.status.code(), done.stdout),
        (Some(0), b"ran\n".to_vec()),
        "{said}"
    );
    assert!(
        said.contains(&format!("✓ approved by {}", home.me())),
        "{said}"
    );
    assert!(made(&home));
    drop(server);
}

#[test]
fn a_run_decides_nothing() {
    let mut home = Home::strict();
    home.set("WEIGHLOCK_RUN", "r_1");
    let mut tty = run(&home, "touch made");
    // Whoever sits there is not asked: it could be the run.
    tty.expect("◔ Needs approval — asked a person");
    tty.expect("(Ctrl C withdraws the request)");
    signal(tty.pid(), "INT");
    tty.expect("◌ Withdrawn — nothing was run");
    assert_eq!(tty.end(), Some(75));
    for verb in [
        &["policy", "grant", "touch *"][..],
        &["approve"],
        &["inbox"],
    ] {
        let done = home.call(verb);
        let decides = verb != ["inbox"];
        assert_eq!(done.code, Some(i32::from(decides)), "{done:?}");
        assert_eq!(done.err.contains("inside a run"), decides, "{done:?}");
    }
    assert!(!made(&home));
}

#[test]
fn a_run_that_hides_what_it_is_decides_nothing_either() {
    let home = Home::new();
    let ours = home.base().join("weighlock");
    std::fs::copy(env!("CARGO_BIN_EXE_weighlock"), &ours).unwrap();
    let done = home.run(&[], "env -i ./weighlock --state-dir . policy grant ls");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("is a keeper"), "{}", done.err);
}

#[test]
fn what_a_run_tries_to_decide_is_refused_and_on_record() {
    if !have(&["curl"]) {
        return;
    }
    let mut home = Home::strict();
    let _server = home.serve(&[]);
    let (_, run) = home.ask("touch made", json!({}));
    let [run, approval] = ["command_id", "approval_id"].map(|id| run[id].as_str().unwrap());
    let (_, asked) = home.api("GET", &format!("/approvals/{approval}"), &Value::Null);
    let decision = json!({ "kind": "approve_once", "fingerprint": asked["fingerprint"] });
    let tries = [
        (format!("/approvals/{approval}/decision"), decision),
        (format!("/commands/{run}/approve"), json!({})),
        (
            format!("/commands/{run}/finalize"),
            json!({ "changes": "commit" }),
        ),
        (format!("/commands/{run}/revert"), json!({})),
        (
            "/sessions/any/draft".to_owned(),
            json!({ "changes": "commit" }),
        ),
        ("/policies/grants".to_owned(), json!({ "pattern": "touch" })),
        ("/signin/link".to_owned(), json!({})),
    ];
    // As its owner, past the walls: all that is left is where it comes from.
    for (path, body) in &tries {
        let said = Command::new("curl")
            .args(["--silent", "--unix-socket"])
            .arg(home.state().join("weighlock.sock"))
            .args(["--header", "content-type: application/json", "--data"])
            .arg(body.to_string())
            .arg(format!("http://weighlock/agent/terminal{path}"))
            .env("WEIGHLOCK_RUN", "r_1")
            .output()
            .unwrap();
        let said: Value = serde_json::from_slice(&said.stdout).unwrap();
        let told = (&said["status"], &said["code"]);
        assert_eq!(told, (&json!(403), &json!("inside_a_run")), "{path} {said}");
    }
    home.set("WEIGHLOCK_RUN", "r_1");
    for verb in [&["approve", approval][..], &["reject", approval]] {
        let done = home.call(verb);
        assert!(done.err.contains("inside a run"), "{done:?}");
    }
    let (_, audit) = home.api("GET", "/audit?kind=agent.refused", &Value::Null);
    let tried = |(path, _): &(String, Value)| format!("POST /agent/terminal{path}");
    let mut expected: Vec<String> = tries.iter().map(tried).collect();
    expected.extend([tried(&tries[0]), tried(&tries[0])]);
    let entries = audit["entries"].as_array().unwrap().iter();
    let found: Vec<&str> = { entries }
        .map(|entry| entry["detail"]["what"].as_str().unwrap())
        .collect();
    assert_eq!(found, expected);
    assert_eq!(home.get(run)["state"], "waiting");
    assert!(!made(&home));
}

#[test]
fn behind_walls_the_run_that_tried_to_approve_is_on_record_with_what_it_was_told() {
    let home = Home::new();
    let ours = home.base().join("weighlock");
    std::fs::copy(env!("CARGO_BIN_EXE_weighlock"), &ours).unwrap();
    let run = home.result(&[], "./weighlock --state-dir . approve ap_1");
    assert_eq!(run["exit_code"], 1, "{run}");
    let said = run["stderr"].as_str().unwrap();
    assert!(said.contains("refused inside a weighlock run"), "{run}");
    let path = format!("/commands/{}/audit", run["command_id"].as_str().unwrap());
    let (_, audit) = home.api("GET", &path, &Value::Null);
    let first = &audit["entries"][0]["detail"]["command"];
    assert_eq!(first, "./weighlock --state-dir . approve ap_1", "{audit}");
    home.assert_audit_verifies();
}

#[test]
fn blocked_names_the_part_the_rule_and_what_to_do() {
    let home = Home::strict();
    let done = home.run(&[], "ls && rm -rf /");
    assert_eq!(done.code, Some(126));
    assert_eq!(
        done.err,
        "⛔ Blocked — nothing was run\n   \
         rm -rf /   `rm` is a recursive delete from the root, a home or the system  \
         rule no-root-delete (built-in)\n   \
         To delete files, name exact paths inside the sandbox.\n"
    );
}

#[test]
fn an_answer_counts_for_what_was_asked() {
    let home = Home::strict();
    let _server = home.serve(&[]);
    let (status, run) = home.ask("touch made", json!({}));
    assert_eq!((status, &run["state"]), (202, &json!("waiting")), "{run}");
    let path = format!("/approvals/{}", run["approval_id"].as_str().unwrap());
    let (_, asked) = home.api("GET", &path, &Value::Null);
    let (_, other) = home.ask("touch other", json!({}));
    let other = format!(
        "/approvals/{}/decision",
        other["approval_id"].as_str().unwrap()
    );
    let decision = json!({ "kind": "approve_once", "fingerprint": asked["fingerprint"] });
    let (status, problem) = home.api("POST", &other, &decision);
    assert_eq!(
        (status, &problem["code"]),
        (409, &json!("payload_changed")),
        "{problem}"
    );
    assert_eq!(problem["approval"]["command"], "touch other", "{problem}");
    let (status, answered) = home.api("POST", &format!("{path}/decision"), &decision);
    assert_eq!(
        (status, &answered["state"]),
        (200, &json!("approved")),
        "{answered}"
    );
    let run = home.ended(run["command_id"].as_str().unwrap());
    assert_eq!(
        (&run["state"], &run["approved_by"]),
        (&json!("succeeded"), &json!(home.me()))
    );
    assert!(made(&home));
    assert!(!home.base().join("other").exists());
    let (status, problem) = home.api("POST", &format!("{path}/decision"), &decision);
    assert_eq!(
        (status, &problem["code"]),
        (409, &json!("already_decided")),
        "{problem}"
    );
}
