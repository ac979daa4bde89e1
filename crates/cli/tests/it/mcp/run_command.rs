//! `run_command`.

use serde_json::{Value, json};

use super::{Client, each_way, fields, refused};
use crate::support::Home;

/// A home whose agents have files: what everybody has, and what each of them
/// has of its own.
pub(super) fn crew(defaults: &str, experts: &[(&str, &str)]) -> Home {
    let home = Home::new();
    home.put("agents/defaults.yaml", defaults);
    for (name, config) in experts {
        home.put(&format!("agents/experts/{name}/config.yaml"), config);
    }
    let settings = format!(
        "preset = \"agents\"\n[effects]\nreview = \"before\"\n[policy]\nagents = \"{}\"\n",
        home.around().join("agents").display()
    );
    home.put("settings/weighlock/config.toml", &settings);
    home
}

fn home() -> Home {
    crew(
        "tools:\n  shell: [run_command]\n",
        &[
            ("coder", ""),
            ("writer", "shell:\n  allow: [wc, cat, ls, touch]\n"),
            ("researcher", "shell:\n  deny: [git, touch]\n"),
            ("hasty", "shell:\n  default_timeout: 1\n"),
            ("talker", "tools:\n  shell: []\n"),
        ],
    )
}

#[test]
fn it_can_be_waited_for() {
    each_way(home, "toolset=shell&agent=coder", |_, agent| {
        let tools = agent.tools();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(names, ["run_command", "wait"]);
        assert_eq!(fields(&tools[0]), ["command", "working_dir", "timeout"]);
        assert_eq!(tools[0]["inputSchema"]["required"], json!(["command"]));
        let types = ["command", "timeout", "working_dir"]
            .map(|name| tools[0]["inputSchema"]["properties"][name]["type"].clone());
        assert_eq!(types, ["string", "integer", "string"]);
    });
}

#[test]
fn a_command_runs() {
    each_way(home, "toolset=run_command&agent=coder", |home, agent| {
        let said = agent.call("run_command", json!({ "command": "echo hi; echo oh >&2" }));
        assert_eq!(said.text, "Exit code: 0\n\nSTDOUT:\nhi\n\nSTDERR:\noh");
        assert_eq!(
            (said.data, said.failed),
            (
                json!({ "exit_code": 0, "stdout": "hi\n", "stderr": "oh\n", "truncated": false,
                        "timed_out": false }),
                false
            )
        );
        for (command, text) in [
            ("exit 3", "Exit code: 3"),
            ("echo oh >&2; exit 3", "Exit code: 3\n\nSTDERR:\noh"),
            ("printf 'a\n\n'", "Exit code: 0\n\nSTDOUT:\na"),
        ] {
            let said = agent.call("run_command", json!({ "command": command }));
            assert_eq!(
                (said.text.as_str(), said.failed),
                (text, false),
                "{command}"
            );
        }
        std::fs::create_dir(home.base().join("below")).unwrap();
        let pwd = json!({ "command": "pwd", "working_dir": "below", "more": 1 });
        let said = agent.call("run_command", pwd);
        assert_eq!(
            said.data["stdout"],
            format!("{}\n", home.base().join("below").display())
        );
    });
}

#[test]
fn nothing_runs_outside() {
    each_way(home, "toolset=shell&agent=coder", |home, agent| {
        std::fs::create_dir(home.base().join("below")).unwrap();
        std::os::unix::fs::symlink("/etc", home.base().join("away")).unwrap();
        for (working_dir, code) in [
            ("/etc", "outside_base"),
            ("..", "outside_base"),
            ("below/../..", "outside_base"),
            ("away", "outside_base"),
            ("missing", "bad_directory"),
        ] {
            let arguments = json!({ "command": "touch made", "working_dir": working_dir });
            let said = agent.call("run_command", arguments);
            let error = &said.data["error"]["code"];
            assert_eq!((said.failed, error), (true, &json!(code)), "{said:?}");
        }
        assert_eq!(home.newest(), Value::Null, "nothing was run");
    });
}

#[test]
fn each_agent_has_its_own_lists() {
    let not_allowed = "Command not allowed: 'touch'. Allowed: cat, ls, wc";
    let writer = "shell:\n  allow: [wc, cat, ls]\n";
    let home = || crew("tools:\n  shell: [run_command]\n", &[("writer", writer)]);
    each_way(home, "toolset=coding&agent=writer", |home, agent| {
        let said = agent.call("run_command", json!({ "command": "touch made" }));
        assert!(said.failed);
        assert_eq!(said.text.lines().next(), Some(not_allowed));
        let error = json!({ "code": "not_allowed", "message": not_allowed,
                            "hint": "Use one of the allowed commands." });
        assert_eq!(said.data["error"], error);
        assert_eq!(said.data["state"], "blocked");
        assert!(!home.base().join("made").exists());
        let said = agent.call("run_command", json!({ "command": "ls | wc -l" }));
        assert_eq!(said.data["stdout"], "0\n");
    });
}

#[test]
fn what_is_denied_is_told() {
    let home = home();
    let _server = home.serve(&[]);
    for (agent, command, code, text) in [
        (
            "researcher",
            "touch made",
            "denied",
            "`touch` is denied to this agent",
        ),
        (
            "researcher",
            "ls; git log",
            "denied",
            "`git log` is denied to this agent",
        ),
        (
            "coder",
            "sudo ls",
            "blocked_command",
            "`sudo` is on the list of blocked commands",
        ),
        (
            "writer",
            "ls | sudo cat",
            "blocked_command",
            "`sudo` is on the list of blocked commands",
        ),
        (
            "talker",
            "ls",
            "no_tool",
            "Agent 'talker' may not run commands: run_command is not among its tools.",
        ),
    ] {
        let client = Client::stdio(&home, &["--toolset", "shell", "--agent", agent]);
        let said = client.call("run_command", json!({ "command": command }));
        assert_eq!(said.text.lines().next(), Some(text), "{said:?}");
        assert_eq!(
            (said.failed, &said.data["error"]["code"]),
            (true, &json!(code))
        );
    }
    let nobody = Client::stdio(&home, &["--toolset", "shell", "--agent", "nobody"]);
    let said = nobody.call("run_command", json!({ "command": "ls" }));
    assert_eq!(said.data["error"]["code"], "no_such_agent");
    assert!(!home.base().join("made").exists());
}

#[test]
fn time_is_limited() {
    let home = home();
    let _server = home.serve(&[]);
    let hasty = Client::stdio(&home, &["--toolset", "shell", "--agent", "hasty"]);
    let said = hasty.call("run_command", json!({ "command": "echo a; sleep 600" }));
    assert!(
        said.text.starts_with("Exit code: none (signal "),
        "{said:?}"
    );
    assert!(
        said.text
            .contains("\n\nSTDOUT:\na\n\nStopped after 1 s (limit). "),
        "{said:?}"
    );
    assert_eq!(
        (
            &said.data["timed_out"],
            &said.data["state"],
            &said.data["exit_code"]
        ),
        (&json!(true), &json!("timed_out"), &Value::Null)
    );
    assert!(!said.failed, "it ran");

    let coder = Client::stdio(&home, &["--toolset", "shell", "--agent", "coder"]);
    for (client, timeout, expected) in [
        (&coder, Value::Null, 120),
        (&coder, json!(7), 7),
        (&coder, json!(600), 600),
        (&coder, json!(601), 600),
        (&coder, json!(i64::MAX), 600),
        (&hasty, Value::Null, 1),
        (&hasty, json!(300), 300),
    ] {
        client.call(
            "run_command",
            json!({ "command": "true", "timeout": timeout }),
        );
        let run = home.newest();
        assert_eq!(run["timeout_ms"], expected * 1000, "{timeout}");
        assert_eq!(run["warnings"], json!([]), "{timeout}");
    }
}

/// Whatever the server's own preset, which has others.
#[test]
fn longer_time_than_there_is_is_lowered() {
    each_way(Home::new, "toolset=shell", |home, agent| {
        let arguments = json!({ "command": "true", "timeout": 86_400 });
        agent.call("run_command", arguments);
        assert_eq!(home.newest()["timeout_ms"], 600_000);
    });
}

#[test]
fn the_end_of_each_stream_is_kept() {
    each_way(home, "toolset=shell&agent=coder", |_, agent| {
        let lines =
            |from: u32| -> String { (from..=20_000).map(|n| format!("ä {n}\n")).collect() };
        let all = lines(1);
        let count = all.chars().count();
        let last: String = all.chars().skip(count - 50_000).collect();
        let command = "for i in $(seq 20000); do echo \"ä $i\"; done; echo x >&2";
        let said = agent.call("run_command", json!({ "command": command }));
        assert_eq!(said.data["stdout"], last);
        assert_eq!(
            (&said.data["stderr"], &said.data["truncated"]),
            (&json!("x\n"), &json!(true))
        );
        let note =
            |left_out| format!("[… {left_out} characters truncated, showing the last 50000]\n");
        let expected = format!(
            "Exit code: 0\n\nSTDOUT:\n{}{}\n\nSTDERR:\nx",
            note(count - 50_000),
            last.trim_end()
        );
        assert_eq!(said.text, expected);
        // Each by itself.
        let command = "printf %050001d 7; printf %060000d 8 >&2";
        let said = agent.call("run_command", json!({ "command": command }));
        let of = |digit| format!("{}{digit}", "0".repeat(49_999));
        let expected = format!(
            "Exit code: 0\n\nSTDOUT:\n{}{}\n\nSTDERR:\n{}{}",
            note(1),
            of('7'),
            note(10_000),
            of('8')
        );
        assert_eq!(said.text, expected);
        let said = agent.call("run_command", json!({ "command": "printf %050000d 7" }));
        assert_eq!(
            (said.text, &said.data["truncated"]),
            (
                format!("Exit code: 0\n\nSTDOUT:\n{}", of('7')),
                &json!(false)
            )
        );
    });
}

#[test]
fn a_person_is_asked() {
    each_way(Home::strict, "toolset=shell", |home, agent| {
        let asked = agent.call("run_command", json!({ "command": "echo hi; touch made" }));
        let id = asked.data["id"].as_str().unwrap();
        assert!(
            asked.text.starts_with("Waiting for approval (ap_"),
            "{asked:?}"
        );
        assert!(
            asked.text.ends_with(&format!(
                "\nDo not run it again: wait for {id}, or go on with other work."
            )),
            "{asked:?}"
        );
        assert_eq!(
            (&asked.data["state"], asked.failed),
            (&json!("waiting"), false)
        );
        let waits = agent.begin("wait", json!({ "id": id }));
        let (status, _) = home.api("POST", &format!("/commands/{id}/approve"), &Value::Null);
        assert_eq!(status, 200);
        let ended = agent.answered(waits);
        assert_eq!(ended.data["run"]["stdout"], "hi\n", "{ended:?}");
        assert!(home.base().join("made").exists());
    });
}

/// What was tried on a copy has said something already.
#[test]
fn a_person_is_asked_about_changes() {
    let home = Home::untouched();
    let _server = home.serve(&[]);
    let agent = Client::stdio(&home, &["--toolset", "shell", "--toolset", "bash"]);
    let asked = agent.call("run_command", json!({ "command": "echo hi; touch made" }));
    assert!(
        asked.text.contains(" It ran on a copy (exit 0): "),
        "{asked:?}"
    );
    assert!(asked.text.ends_with("\n\nSTDOUT:\nhi"), "{asked:?}");
    assert!(asked.data["exit_code"].is_null(), "it has not counted yet");
    let asked = agent.call("Bash", json!({ "command": "echo ho; touch other" }));
    let said = ["success", "stdout", "exit_code", "state"].map(|name| asked.data[name].clone());
    assert_eq!(
        said,
        [json!(false), json!("ho\n"), json!(-1), json!("waiting")]
    );
    assert!(!home.base().join("made").exists());
}

#[test]
fn bad_input_is_told() {
    let bad = [
        (json!({}), "invalid_arguments"),
        (json!({ "command": null }), "invalid_arguments"),
        (json!({ "command": ["ls"] }), "invalid_arguments"),
        (json!({ "command": " " }), "empty_command"),
        (json!({ "command": "a\0b" }), "invalid_command"),
        (
            json!({ "command": "x".repeat(200_000) }),
            "command_too_long",
        ),
        (
            json!({ "command": "ls", "working_dir": 3 }),
            "invalid_arguments",
        ),
        (
            json!({ "command": "ls", "timeout": "1" }),
            "invalid_arguments",
        ),
        (
            json!({ "command": "ls", "timeout": 1.5 }),
            "invalid_arguments",
        ),
        (
            json!({ "command": "ls", "timeout": 1e30 }),
            "invalid_arguments",
        ),
        (json!({ "command": "ls", "timeout": 0 }), "invalid_time"),
        (
            json!({ "command": "ls", "timeout": i64::MIN }),
            "invalid_time",
        ),
    ];
    each_way(home, "toolset=shell&agent=coder", |home, agent| {
        for (arguments, code) in &bad {
            let call = agent.begin("run_command", arguments.clone());
            assert_eq!(refused(agent, call), *code, "{arguments}");
        }
        assert_eq!(home.newest(), Value::Null, "nothing was run");
    });
}
