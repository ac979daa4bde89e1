//! Calls that make no sense: each is answered as a tool answers, and the next
//! one works.

use serde_json::{Value, json};

use super::{Client, each_way, refused};
use crate::support::Home;

/// More than any message of a tool's own, less than one message may have.
const HUGE: usize = 10 * 1024 * 1024;

#[track_caller]
fn works(agent: &Client) {
    let said = agent.call("run", json!({ "command": "echo fine" }));
    assert_eq!(said.data["stdout"], "fine\n");
}

#[test]
fn what_is_missing_unknown_or_of_another_kind_is_said() {
    let kinds = [
        json!(true),
        json!(-1),
        json!("x"),
        json!([]),
        json!({ "x": 1 }),
    ];
    each_way(Home::new, "", |_, agent| {
        // Null is nothing.
        let listed = agent.call("list", json!({ "what": null, "all_sessions": null }));
        assert_eq!(listed.text, "Nothing has run yet.");
        for tool in agent.tools() {
            let name = tool["name"].as_str().unwrap();
            let schema = &tool["inputSchema"];
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let valid = valid(&required);
            if !required.is_empty() {
                for less in [json!({}), Value::Null] {
                    assert_eq!(refused(agent, agent.begin(name, less)), "invalid_arguments");
                }
                let params = json!({ "name": name });
                assert_eq!(
                    refused(agent, agent.ask("tools/call", params)),
                    "invalid_arguments"
                );
            }
            let more = with(&valid, "no_such_thing", json!(1));
            assert_eq!(refused(agent, agent.begin(name, more)), "invalid_arguments");
            for (field, about) in schema["properties"].as_object().unwrap() {
                for wrong in kinds.iter().filter(|kind| !is_of(kind, about)) {
                    let wrong = with(&valid, field, (*wrong).clone());
                    let code = refused(agent, agent.begin(name, wrong));
                    assert_eq!(code, "invalid_arguments", "{name}: {field}");
                }
            }
        }
        works(agent);
    });
}

/// Arguments that are understood, of what is not there.
fn valid(required: &[Value]) -> Value {
    let fields = required.iter().map(|field| match field.as_str().unwrap() {
        "command" => ("command", "true"),
        other => (other, "r_none"),
    });
    let mut valid = json!({});
    for (field, value) in fields {
        valid[field] = value.into();
    }
    valid
}

fn with(arguments: &Value, field: &str, value: Value) -> Value {
    let mut with = arguments.clone();
    with[field] = value;
    with
}

/// Whether a value is of the kind that a schema asks for.
fn is_of(value: &Value, about: &Value) -> bool {
    match about["type"].as_str().unwrap() {
        "string" => value.is_string() && about["enum"].is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => false,
        other => panic!("no such kind: {other}"),
    }
}

#[test]
fn nonsense_is_refused_and_nothing_is_run() {
    let huge = "x".repeat(HUGE);
    let run =
        |field: &str, value: Value| ("run", with(&json!({ "command": "true" }), field, value));
    let read = |field: &str, value: Value| ("read", with(&json!({ "id": "r_none" }), field, value));
    let wait = |field: &str, value: Value| ("wait", with(&json!({ "id": "r_none" }), field, value));
    let send = |field: &str, value: Value| ("send", with(&json!({ "id": "none" }), field, value));
    let calls = [
        (run("command", json!("")), "empty_command"),
        (run("command", json!("echo a\0b")), "invalid_command"),
        (run("command", json!(huge)), "body_too_large"),
        (
            run("command", json!("x".repeat(200_000))),
            "command_too_long",
        ),
        (run("cwd", json!("a\0b")), "bad_directory"),
        (run("cwd", json!("/")), "outside_base"),
        (run("cwd", json!("none")), "bad_directory"),
        (run("env", json!({ "A=": "b" })), "invalid_environment"),
        (run("env", json!({ "A": "b\0" })), "invalid_environment"),
        (run("env", json!({ "A": 5 })), "invalid_arguments"),
        (run("timeout", json!(1e300)), "invalid_time"),
        (run("timeout", json!(-1)), "invalid_time"),
        (run("timeout", json!(0)), "invalid_time"),
        (run("terminal", json!("")), "missing_name"),
        (run("terminal", json!("a\0b")), "invalid_name"),
        (run("terminal", json!("r_01")), "invalid_name"),
        (read("id", json!("")), "invalid_id"),
        (read("id", json!("a\0b")), "no_such_run"),
        (read("id", json!("../../me")), "no_such_run"),
        (read("id", json!(huge)), "no_such_run"),
        (read("cursor", json!(-1)), "invalid_arguments"),
        (read("cursor", json!(1e30)), "invalid_arguments"),
        (
            read("lines", json!("18446744073709551616")),
            "invalid_arguments",
        ),
        (read("lines", json!("1:x")), "invalid_arguments"),
        (read("search", json!(huge)), "invalid_arguments"),
        (send("text", json!("x")), "not_found"),
        (wait("timeout", json!(-1)), "invalid_arguments"),
        (wait("timeout", json!(1e300)), "no_such_run"),
        (wait("ms", json!(u64::MAX)), "invalid_wait"),
        (wait("port", json!(65536)), "invalid_arguments"),
        (("stop", json!({ "id": "r_none" })), "no_such_run"),
        (("none", json!({})), "no_such_tool"),
    ];
    each_way(Home::new, "", |_, agent| {
        for ((tool, arguments), code) in &calls {
            let said = refused(agent, agent.begin(tool, arguments.clone()));
            let brief: String = arguments.to_string().chars().take(200).collect();
            assert_eq!(said, *code, "{tool} {brief}");
        }
        let listed = agent.call("list", json!({ "all_sessions": true }));
        assert_eq!(listed.text, "Nothing.");
        works(agent);
    });
}

#[test]
fn what_asks_for_too_much_gets_what_there_is() {
    each_way(Home::new, "", |_, agent| {
        let id = agent.call("run", json!({ "command": "seq 3" })).data["id"].clone();
        let read = |lines: &str| agent.call("read", json!({ "id": id, "lines": lines })).text;
        let all = format!("1:{}", u64::MAX);
        assert_eq!(read(&all), "1: 1\n2: 2\n3: 3");
        assert_eq!(read(&format!("-{}", u64::MAX)), "1: 1\n2: 2\n3: 3");
        assert_eq!(
            read(&format!("{0}:{0}", u64::MAX)),
            "[no such lines; there are 3]"
        );
        let cursor = agent.call("read", json!({ "id": id, "cursor": u64::MAX }));
        assert_eq!(cursor.data["more"], false);
        let waits = json!({ "id": id, "timeout": 1e300 });
        assert_eq!(agent.call("wait", waits).data["met"], true);
        works(agent);
    });
}

#[test]
fn a_call_that_cannot_be_read_is_answered() {
    let head = r#"{"jsonrpc":"2.0","id":"odd","method":"tools/call","params":"#;
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let odd = [
        "[1, 2]".to_owned(),
        "null".into(),
        "5".into(),
        r#"{"name":5}"#.into(),
        r#"{"arguments":{}}"#.into(),
        r#"{"name":"run","arguments":"x"}"#.into(),
        r#"{"name":"run","arguments":[]}"#.into(),
        r#"{"name":"run","arguments":5}"#.into(),
        r#"{"name":"run","arguments":{"command":"echo \ud800"}}"#.into(),
        r#"{"name":"run","arguments":{"command":"true","timeout":1e999}}"#.into(),
        format!(r#"{{"name":"run","arguments":{deep}}}"#),
        deep,
    ];
    each_way(Home::new, "", |_, agent| {
        for params in &odd {
            agent.forget();
            agent.send_text(&format!("{head}{params}}}"));
            let answer = agent.hears("an answer", |message| message["id"] == "odd");
            let brief: String = params.chars().take(100).collect();
            let error = &answer["result"]["structuredContent"]["error"];
            assert_eq!(error["code"], "invalid_arguments", "{brief}: {answer}");
            assert_eq!(answer["result"]["isError"], true);
        }
        works(agent);
    });
}

#[test]
fn what_is_no_request_of_ours_is_said_to_be_none() {
    each_way(Home::new, "", |_, agent| {
        let errors = [
            ("no/such", json!({}), -32601),
            ("resources/read", json!({}), -32602),
            ("resources/read", json!({ "uri": 5 }), -32602),
            ("completion/complete", json!({}), -32602),
            ("logging/setLevel", json!({ "level": "loud" }), -32602),
            ("prompts/get", json!({ "name": "x" }), -32601),
        ];
        for (method, params, code) in errors {
            let answer = agent.answer(agent.ask(method, params.clone()));
            assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
        }
        works(agent);
    });
}

#[test]
fn lines_that_are_no_messages_end_nothing() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let agent = Client::stdio(&home, &[]);
    let long = "x".repeat(17 * 1024 * 1024);
    for line in ["hello", "", "{}", "[]", "\u{feff}", &long] {
        agent.send_text(line);
    }
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    agent.send_text(batch);
    works(&agent);
    let said = |message: &Value| message["error"]["message"] == "this message is too long";
    agent.hears("that it is too long", said);
}
