//! What makes no sense is refused with a word for it, and nothing is run.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::{Home, Server};

/// What every command here would leave behind.
const COMMAND: &str = "touch ran";

fn serve() -> (Home, Server) {
    let home = Home::new();
    let base = home.base();
    let server = home.serve(&["--base", base.to_str().expect("plain")]);
    (home, server)
}

/// Refused with a code over REST, with the same words on the command line.
#[track_caller]
fn check(home: &Home, body: &Value, code: &str) {
    let (status, problem) = home.api("POST", "/commands", body);
    let shown: String = body.to_string().chars().take(200).collect();
    assert_eq!(problem["code"], code, "{shown}: {problem}");
    assert!(matches!(status, 400 | 422), "{shown}: {problem}");
    for field in ["detail", "hint"] {
        let text = problem[field].as_str().unwrap_or_default();
        assert!(!text.is_empty() && text.len() < 1000, "{shown}: {problem}");
    }
    check_nothing_ran(home);
}

#[track_caller]
fn check_nothing_ran(home: &Home) {
    assert!(!home.base().join("ran").exists());
    let (_, list) = home.api("GET", "/commands", &Value::Null);
    assert_eq!(list["commands"], json!([]));
}

fn line<'a>(args: &[&'a str]) -> Vec<&'a OsStr> {
    args.iter().map(|arg| OsStr::new(*arg)).collect()
}

/// Refused by the command line itself or by the server behind it.
#[track_caller]
fn check_line(home: &Home, args: &[&OsStr], said: &str) {
    let done = home.call(args);
    assert!(matches!(done.code, Some(2 | 125)), "{done:?}");
    assert!(done.err.contains(said), "{done:?}");
    check_nothing_ran(home);
}

#[test]
fn commands_that_no_shell_can_read() {
    let (home, _server) = serve();
    for (command, code) in [
        ("", "empty_command"),
        (" \t\n", "empty_command"),
        ("touch ran\0", "invalid_command"),
        ("\0", "invalid_command"),
        (
            &format!("{COMMAND}; #{}", "x".repeat(1024 * 1024)),
            "command_too_long",
        ),
        (
            &format!("{COMMAND}; #{}", "x".repeat(128 * 1024)),
            "command_too_long",
        ),
    ] {
        check(&home, &json!({ "command": command }), code);
    }
    home.assert_audit_verifies();
}

#[test]
fn the_longest_command_that_fits_is_run() {
    let (home, _server) = serve();
    let start = "printf %s '";
    let room = 128 * 1024 - 1 - start.len() - 1;
    let command = format!("{start}{}'", "x".repeat(room));
    let (status, run) = home.ask(&command, Value::Null);
    assert_eq!(
        (status, &run["exit_code"]),
        (200, &json!(0)),
        "{}",
        run["reason"]
    );
    assert_eq!(run["output"]["bytes"], room, "{}", run["output"]);
}

#[test]
fn environments_that_no_program_can_have() {
    let (home, _server) = serve();
    let with = |env: Value| json!({ "command": COMMAND, "env": env });
    let many: Value = (0..20_000)
        .map(|n| (format!("V{n}"), json!("x".repeat(100))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    check(&home, &with(many), "environment_too_large");
    let long = "x".repeat(200 * 1024);
    check(&home, &with(json!({ "A": long })), "environment_too_large");
    check(&home, &with(json!({ "": "x" })), "invalid_environment");
    check(&home, &with(json!({ "A=B": "x" })), "invalid_environment");
    check(&home, &with(json!({ "A\0": "x" })), "invalid_environment");
    let name = "=".repeat(100_000);
    check(&home, &with(json!({ name: "x" })), "invalid_environment");
    check(&home, &with(json!({ "A": "\0" })), "invalid_environment");
}

#[test]
fn the_largest_environment_that_fits_is_had() {
    let (home, _server) = serve();
    let env: serde_json::Map<_, _> = (0..10)
        .map(|n| (format!("V{n}"), json!("x".repeat(100_000))))
        .collect();
    let (status, run) = home.ask("echo ${#V0} ${#V9}", json!({ "env": env }));
    assert_eq!(
        (status, &run["stdout"]),
        (200, &json!("100000 100000\n")),
        "{run}"
    );
}

#[test]
fn times_that_make_no_sense() {
    let (home, _server) = serve();
    let year = 366 * 24 * 3600 * 1000_i64;
    for millis in [0, -1, i64::MIN, i64::MAX, year + 1] {
        for limit in ["timeout_ms", "idle_ms"] {
            let body = json!({ "command": COMMAND, limit: millis });
            check(&home, &body, "invalid_time");
        }
    }
    for millis in [-1, i64::MIN, i64::MAX] {
        let body = json!({ "command": COMMAND, "wait_ms": millis });
        check(&home, &body, "invalid_time");
    }
    for odd in [
        json!(1e300),
        json!(1.5),
        json!("1s"),
        json!(true),
        json!([]),
    ] {
        let body = json!({ "command": COMMAND, "timeout_ms": odd });
        check(&home, &body, "invalid_body");
    }
    for time in [
        "0",
        "0s",
        "-1s",
        "9999999d",
        "99999999999999999999s",
        "soon",
        "",
    ] {
        let args = ["run", "--timeout", time, "--", COMMAND].map(OsStr::new);
        check_line(&home, &args, "");
    }
}

#[test]
fn directories_that_are_not_below_the_base() {
    let (home, _server) = serve();
    let base = home.base();
    fs::write(base.join("file"), "").unwrap();
    fs::create_dir(base.join("dir")).unwrap();
    symlink("/", base.join("out")).unwrap();
    symlink("loop", base.join("loop")).unwrap();
    symlink("missing", base.join("dangling")).unwrap();
    for (cwd, code) in [
        ("/", "outside_base"),
        ("..", "outside_base"),
        ("dir/../..", "outside_base"),
        ("out", "outside_base"),
        ("out/tmp", "outside_base"),
        ("missing", "bad_directory"),
        ("dangling", "bad_directory"),
        ("loop", "bad_directory"),
        ("file", "bad_directory"),
        ("file/..", "bad_directory"),
        ("dir\0", "bad_directory"),
        (&"d/".repeat(10_000), "bad_directory"),
    ] {
        check(&home, &json!({ "command": COMMAND, "cwd": cwd }), code);
    }
    for (cwd, said) in [("/", "where commands run"), ("missing", "does not exist")] {
        let args = ["run", "--cwd", cwd, "--", COMMAND].map(OsStr::new);
        check_line(&home, &args, said);
    }
}

#[test]
fn arguments_that_are_not_text() {
    let (home, _server) = serve();
    let odd = OsStr::from_bytes(b"touch ran; echo \xff");
    check_line(
        &home,
        &[&line(&["run", "--"])[..], &[odd]].concat(),
        "not valid UTF-8",
    );
    let mut args = line(&["run", "--env"]);
    let variable = OsStr::from_bytes(b"A=\xff");
    args.extend([variable, OsStr::new("--"), OsStr::new(COMMAND)]);
    check_line(&home, &args, "UTF-8");
    // A directory with such a name must not be taken for another one.
    let dir = OsStr::from_bytes(b"\xff");
    fs::create_dir(home.base().join(dir)).unwrap();
    fs::create_dir(home.base().join("\u{fffd}")).unwrap();
    let mut args = line(&["run", "--cwd"]);
    args.extend([dir, OsStr::new("--"), OsStr::new("touch ../ran")]);
    check_line(&home, &args, "UTF-8");
}

#[test]
fn bodies_that_are_no_request() {
    let (home, _server) = serve();
    for body in [
        &b""[..],
        b"{",
        b"[]",
        b"null",
        b"{}",
        br#"{"command": 1}"#,
        br#"{"command": "touch ran", "unknown": 1}"#,
        br#"{"command": "touch ran", "shell": "fish"}"#,
        b"{\"command\": \"touch ran \xff\"}",
        br#"{"command": "touch ran \ud800"}"#,
    ] {
        let (status, bytes) = home.api_raw("POST", "/commands", body);
        let problem: Value = serde_json::from_slice(&bytes).unwrap();
        let shown = String::from_utf8_lossy(body);
        assert_eq!(problem["code"], "invalid_body", "{shown}: {problem}");
        assert!((400..=422).contains(&status), "{shown}: {problem}");
        check_nothing_ran(&home);
    }
}
