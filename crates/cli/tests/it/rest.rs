//! The REST door, over the socket and over TCP.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::Home;

#[test]
fn a_command_is_created_looked_at_and_listed() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let (status, ran) = home.api(
        "POST",
        "/commands",
        &json!({ "command": "echo hi; exit 2", "session_id": "s1" }),
    );
    assert_eq!(
        (status, &ran["state"], &ran["status"]),
        (200, &json!("failed"), &json!("failed"))
    );
    assert_eq!(
        (&ran["stdout"], &ran["exit_code"]),
        (&json!("hi\n"), &json!(2))
    );
    let id = ran["command_id"].as_str().unwrap();
    let (status, shown) = home.api("GET", &format!("/commands/{id}"), &Value::Null);
    assert_eq!((status, &shown), (200, &ran));
    let (_, blocked) = home.api("POST", "/commands", &json!({ "command": "sudo ls" }));
    assert_eq!(
        (&blocked["state"], &blocked["status"]),
        (&json!("blocked"), &json!("rejected"))
    );
    assert_eq!(
        blocked["reason"]["text"],
        "Command is not allowed by terminal blacklist."
    );
    let (_, list) = home.api("GET", "/commands?limit=1", &Value::Null);
    assert_eq!(list["commands"][0]["command"], "sudo ls");
    let cursor = list["cursor"].as_str().unwrap();
    let (_, rest) = home.api("GET", &format!("/commands?cursor={cursor}"), &Value::Null);
    assert_eq!(rest["commands"][0]["command_id"], id);
    assert_eq!(rest["cursor"], Value::Null);
    let (_, failed) = home.api("GET", "/commands?state=failed&q=ECHO", &Value::Null);
    assert_eq!(failed["commands"].as_array().unwrap().len(), 1);
    let (_, audit) = home.api("GET", &format!("/commands/{id}/audit"), &Value::Null);
    let kinds: Vec<&str> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["run.started", "run.ended"]);
}

#[test]
fn a_long_command_answers_with_a_handle() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let (status, begun) = home.api(
        "POST",
        "/commands",
        &json!({ "command": "sleep 0.3; echo ok", "wait_ms": 10 }),
    );
    assert_eq!(
        (status, &begun["state"], &begun["status"]),
        (202, &json!("running"), &json!("approved"))
    );
    let id = begun["short_id"].as_str().unwrap();
    let (status, ended) = home.api(
        "GET",
        &format!("/commands/{id}?wait_ms=20000"),
        &Value::Null,
    );
    assert_eq!(
        (status, &ended["state"], &ended["stdout"]),
        (200, &json!("succeeded"), &json!("ok\n"))
    );
}

#[test]
fn a_run_is_stopped_with_all_it_started() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let body = json!({ "command": "setsid sleep 99 & sleep 99", "background": true, "env": { "WL_MARK": home.mark } });
    let (_, begun) = home.api("POST", "/commands", &body);
    let id = begun["command_id"].as_str().unwrap();
    let (status, stopped) = home.api("POST", &format!("/commands/{id}/stop"), &json!({}));
    assert_eq!((status, &stopped["state"]), (200, &json!("killed")));
    assert!(
        stopped["reason"]["text"]
            .as_str()
            .unwrap()
            .starts_with(&format!("Stopped by {}", home.me()))
    );
    assert!(home.processes().is_empty());
    let (status, problem) = home.api("POST", &format!("/commands/{id}/stop"), &json!({}));
    assert_eq!((status, &problem["code"]), (409, &json!("run_ended")));
}

#[test]
fn output_is_read_by_lines_by_search_and_raw() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let (_, ran) = home.api(
        "POST",
        "/commands",
        &json!({ "command": "echo one; sleep 0.01; echo two >&2; sleep 0.01; echo three" }),
    );
    let id = ran["command_id"].as_str().unwrap();
    let (_, lines) = home.api(
        "GET",
        &format!("/commands/{id}/output?from=2&lines=5"),
        &Value::Null,
    );
    let found: Vec<(u64, &str, &str)> = lines["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| {
            (
                l["line"].as_u64().unwrap(),
                l["stream"].as_str().unwrap(),
                l["text"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(found, [(2, "stderr", "two"), (3, "stdout", "three")]);
    let (_, found) = home.api(
        "GET",
        &format!("/commands/{id}/output/find?q=t%5Bwh%5D"),
        &Value::Null,
    );
    assert_eq!(found["lines"].as_array().unwrap().len(), 2);
    let raw = |query: &str| {
        home.api_raw("GET", &format!("/commands/{id}/output/raw{query}"), b"")
            .1
    };
    assert_eq!(raw(""), b"one\ntwo\nthree\n");
    assert_eq!(raw("?stream=stderr"), b"two\n");
    assert_eq!(raw("?from=4&limit=3"), b"two");
    assert_eq!(raw("?frames=true&limit=4"), b"\x01\0\0\0\0\0\0\x04one\n");
}

#[test]
fn input_is_given_whole_or_in_pieces() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let (_, ran) = home.api(
        "POST",
        "/commands",
        &json!({ "command": "tr a-z A-Z", "stdin": "hello" }),
    );
    assert_eq!(ran["stdout"], "HELLO");
    let (_, begun) = home.api(
        "POST",
        "/commands",
        &json!({ "command": "cat", "stdin_open": true, "background": true }),
    );
    let id = begun["command_id"].as_str().unwrap();
    assert_eq!(
        home.api_raw("POST", &format!("/commands/{id}/stdin"), b"a\xff")
            .0,
        204
    );
    assert_eq!(
        home.api_raw("POST", &format!("/commands/{id}/stdin?last=true"), b"b")
            .0,
        204
    );
    let (_, ended) = home.api(
        "GET",
        &format!("/commands/{id}?wait_ms=20000"),
        &Value::Null,
    );
    assert_eq!(
        (&ended["state"], &ended["stdout"]),
        (&json!("succeeded"), &json!("a\u{FFFD}b"))
    );
}

#[test]
fn a_stuck_reader_can_be_stopped_while_it_is_fed() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let (_, begun) = home.api(
        "POST",
        "/commands",
        &json!({ "command": "sleep 99", "stdin_open": true, "background": true }),
    );
    let id = begun["command_id"].as_str().unwrap().to_owned();
    std::thread::scope(|scope| {
        let feeding = scope
            .spawn(|| home.api_raw("POST", &format!("/commands/{id}/stdin"), &[b'x'; 2_000_000]));
        let (status, stopped) = home.api("POST", &format!("/commands/{id}/stop"), &json!({}));
        assert_eq!((status, &stopped["state"]), (200, &json!("killed")));
        // Refused, or taken by a pipe whose reader had just died.
        assert!(matches!(feeding.join().unwrap().0, 409 | 204));
    });
}

#[test]
fn faults_are_problem_documents() {
    let home = Home::new();
    let _server = home.serve(&[]);
    for (method, path, body, status, code) in [
        ("GET", "/nowhere", "", 404, "no_such_address"),
        ("DELETE", "/commands", "", 405, "no_such_method"),
        ("GET", "/commands/r_zzzzzz", "", 404, "no_such_run"),
        ("GET", "/commands?state=strange", "", 400, "invalid_query"),
        ("GET", "/commands?color=red", "", 400, "invalid_query"),
        ("POST", "/commands", "{", 400, "invalid_body"),
        ("POST", "/commands", "{}", 422, "invalid_body"),
        (
            "POST",
            "/commands",
            r#"{"command":"x","walls":"off"}"#,
            422,
            "invalid_body",
        ),
        (
            "POST",
            "/commands",
            r#"{"command":" "}"#,
            400,
            "empty_command",
        ),
        (
            "POST",
            "/commands",
            r#"{"command":"a\u0000b"}"#,
            400,
            "invalid_command",
        ),
        (
            "POST",
            "/commands",
            r#"{"command":"x","timeout_ms":0}"#,
            400,
            "invalid_time",
        ),
        (
            "POST",
            "/commands",
            r#"{"command":"x","timeout_ms":-5}"#,
            400,
            "invalid_time",
        ),
        (
            "POST",
            "/commands",
            r#"{"command":"x","timeout_ms":1e30}"#,
            422,
            "invalid_body",
        ),
        (
            "POST",
            "/commands",
            r#"{"command":"x","wait_ms":-1}"#,
            400,
            "invalid_time",
        ),
        (
            "POST",
            "/commands",
            r#"{"command":"x","cwd":"/etc"}"#,
            400,
            "outside_base",
        ),
        (
            "POST",
            "/commands",
            r#"{"command":"x","cwd":"no"}"#,
            400,
            "bad_directory",
        ),
        (
            "PUT",
            "/blacklist",
            r#"{"commandBlacklist":["a"," "]}"#,
            400,
            "invalid_blacklist",
        ),
    ] {
        let (found, bytes) = home.api_raw(method, path, body.as_bytes());
        let problem: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            (found, &problem["code"]),
            (status, &json!(code)),
            "{method} {path} {body}"
        );
        assert_eq!(problem["status"], status);
        for field in ["title", "detail", "hint"] {
            assert!(
                !problem[field].as_str().unwrap().is_empty(),
                "{field} of {code}"
            );
        }
    }
    let huge = format!(r#"{{"command":"{}"}}"#, "x".repeat(8 << 20));
    assert_eq!(home.api_raw("POST", "/commands", huge.as_bytes()).0, 413);
}

#[test]
fn over_tcp_only_a_token_opens() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let (address, token) = (server.address(), home.token(&home.me()));
    let ask = |headers: &str| {
        let mut tcp = TcpStream::connect(&address).unwrap();
        let request =
            format!("GET /agent/terminal/health HTTP/1.1\r\n{headers}connection: close\r\n\r\n");
        tcp.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        tcp.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    let host = format!("host: {address}\r\n");
    let bearer = format!("authorization: Bearer {token}\r\n");
    assert_eq!(ask(&host), 401);
    assert_eq!(
        ask(&format!("{host}authorization: Bearer wl_wrong\r\n")),
        401
    );
    assert_eq!(ask(&format!("{host}{bearer}")), 200);
    assert_eq!(ask(&format!("host: evil.test\r\n{bearer}")), 403);
    assert_eq!(
        ask(&format!("{host}{bearer}origin: http://evil.test\r\n")),
        403
    );
    let kept = std::fs::read_dir(home.state()).unwrap();
    for file in kept.filter_map(|entry| std::fs::read(entry.ok()?.path()).ok()) {
        assert!(
            !file
                .windows(token.len())
                .any(|part| part == token.as_bytes()),
            "only a hash is kept"
        );
    }
}

#[test]
fn the_audit_is_verified_and_exported() {
    let home = Home::new();
    let _server = home.serve(&[]);
    home.api("POST", "/commands", &json!({ "command": "true" }));
    let (status, found) = home.api("POST", "/audit/verify", &json!({}));
    assert_eq!(
        (status, &found["entries"], &found["fault"]),
        (200, &json!(4), &Value::Null)
    );
    let (status, export) = home.api_raw("GET", "/audit/export", b"");
    let lines: Vec<Value> = String::from_utf8(export)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((status, lines.len()), (200, 5));
    assert_eq!(lines[4]["head"]["hash"], found["head"]);
}

#[test]
fn a_public_address_is_refused() {
    let home = Home::new();
    let refused = home.try_serve(&["--listen", "0.0.0.0:0"]).err().unwrap();
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("127.0.0.1"), "{refused:?}");
}

#[test]
fn the_description_is_the_committed_one() {
    let home = Home::new();
    let printed = home.call(&["openapi"]).out;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        printed == committed,
        "run: weighlock openapi > docs/openapi.json"
    );
    let _server = home.serve(&[]);
    let (_, served) = home.api("GET", "/openapi.json", &Value::Null);
    assert_eq!(served, serde_json::from_str::<Value>(&printed).unwrap());
}
