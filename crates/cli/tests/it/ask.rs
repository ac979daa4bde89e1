//! A person at a terminal, who is asked whether a command may run.

use serde_json::{Value, json};

use crate::support::Home;
use crate::tty::Tty;

const QUESTION: &str = "\
◔ Needs approval                                                      in default

  $ touch made

Why:  `touch` writes files                                    default (built-in)
  touch made  makes files, or gives them another time  Needs approval  default
     writes: made

  [o] run once   [w] always…   [r] reject…   [x] explain   [q] quit
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
    assert_eq!(tty.expect("[q] quit\n> "), QUESTION);
    tty.press("o");
    tty.expect("Enter = yes, any other key = no");
    assert!(!made(&home));
    tty.press("\r");
    tty.expect("exit 0");
    assert_eq!(tty.end(), Some(0));
    assert!(made(&home));
    let last = home.show("@last");
    assert!(
        last["approved_by"]
            .as_str()
            .is_some_and(|who| who.starts_with("uid:")),
        "{last}"
    );
    // Once is once.
    let done = home.run(&[], "touch made");
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
    tty.expect("nothing was run");
    assert_eq!(tty.end(), Some(75));
    assert!(!made(&home));
    assert_eq!(home.call(&["runs"]).out, "No runs.\n");
}

#[test]
fn ctrl_c_leaves_without_a_decision() {
    let home = Home::strict();
    let mut tty = run(&home, "touch made");
    tty.expect("> ");
    tty.send("\x03");
    assert_eq!(tty.end(), Some(75));
    assert_eq!(home.call(&["runs"]).out, "No runs.\n");
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
    tty.expect("allow which commands? touch made");
    tty.press("\r");
    tty.expect("for how long? (or revoked) 8h");
    tty.press("\r");
    tty.expect("Allowed beforehand: g_");
    tty.expect("exit 0");
    assert_eq!(tty.end(), Some(0));
    assert!(made(&home));
    assert_eq!(home.run(&[], "touch made").code, Some(0));
    assert_eq!(home.run(&[], "touch other").code, Some(75));
    let grants = home.call(&["policy", "grants", "--json"]);
    let grants: Value = serde_json::from_str(&grants.out).unwrap();
    assert_eq!(grants[0]["pattern"], "touch made");
    assert_eq!(grants[0]["sandbox"], "default");
}

#[test]
fn what_cannot_be_foreseen_cannot_be_allowed_beforehand() {
    let home = Home::strict();
    for command in ["cat > made <<X\n1\nX", "$TOOL x"] {
        let mut tty = run(&home, command);
        tty.expect("[o] run once   [r] reject…   [x] explain   [q] quit\n> ");
        tty.press("w");
        tty.press("q");
        assert_eq!(tty.end(), Some(75), "{command}");
    }
}

#[test]
fn nobody_is_asked_without_a_terminal() {
    let home = Home::strict();
    let done = home.run(&[], "rm -r x");
    assert_eq!((done.code, done.out.as_str()), (Some(75), ""));
    assert_eq!(
        done.err,
        "◔ Needs approval — nothing was run (pending_approval)\n  \
         Why:  `rm` removes files                                                          \
         default (built-in)\n\
         hint: let a person run it with `weighlock run` in a terminal, which asks, or allow it \
         with `weighlock policy grant`; or use a command that only reads\n"
    );
    let done = home.run(&["--json"], "rm -r x");
    let problem: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(done.code, Some(75));
    assert_eq!(problem["code"], "pending_approval");
    assert_eq!(problem["question"]["verdict"], "ask");
}

#[test]
fn a_run_decides_nothing() {
    let mut home = Home::strict();
    home.set("WEIGHLOCK_RUN", "r_1");
    let mut tty = run(&home, "touch made");
    tty.expect("nothing is decided inside a run of weighlock");
    assert_eq!(tty.end(), Some(75));
    let done = home.call(&["policy", "grant", "touch *"]);
    assert_eq!(done.code, Some(1));
    assert!(done.err.contains("inside a run"), "{}", done.err);
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
fn an_answer_counts_for_what_was_asked_and_only_from_this_machine() {
    let home = Home::strict();
    let server = home.serve(&["--listen", "127.0.0.1:0", "--new-token"]);
    let (status, problem) = home.ask("touch made", json!({}));
    assert_eq!(status, 409, "{problem}");
    let fingerprint = problem["question"]["fingerprint"].clone();
    let approval = json!({ "fingerprint": fingerprint, "approved": true });
    let (status, other) = home.ask("touch other", json!({ "approval": approval }));
    assert_eq!((status, &other["code"]), (409, &json!("stale_approval")));

    let word = |name: &str| {
        let line = server
            .said
            .lines()
            .find(|line| line.trim().starts_with(name));
        line.unwrap().split_whitespace().nth(1).unwrap().to_owned()
    };
    let (address, token) = (word("address"), word("token"));
    let address = address.split('/').nth(2).unwrap().to_owned();
    let body = home
        .wish("touch made", json!({ "approval": approval }))
        .to_string();
    let said = post(&address, &token, "/commands", &body);
    assert!(said.starts_with("HTTP/1.1 403"), "{said}");
    assert!(said.contains("not_for_tokens"), "{said}");
    let said = post(
        &address,
        &token,
        "/policies/grants",
        r#"{"pattern": "touch *"}"#,
    );
    assert!(said.starts_with("HTTP/1.1 403"), "{said}");
    assert!(!made(&home));

    let (status, run) = home.ask("touch made", json!({ "approval": approval }));
    assert_eq!((status, &run["state"]), (200, &json!("succeeded")), "{run}");
    assert!(made(&home));
}

fn post(address: &str, token: &str, path: &str, body: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /agent/terminal{path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}
