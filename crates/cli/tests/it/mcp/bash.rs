//! `Bash`, `TaskOutput`, `TaskStop` and `TaskList`.

use serde_json::{Value, json};

use super::client::Called;
use super::{Client, each_way, fields, refused};
use crate::support::{Home, eventually};

/// A home in which commands are judged as the tool's own host would.
pub(super) fn home() -> Home {
    let home = Home::new();
    let settings = "preset = \"bash\"\n[effects]\nreview = \"before\"\n";
    home.put("settings/weighlock/config.toml", settings);
    home
}

/// What was answered, without what differs from time to time. Its text says
/// the same.
pub(super) fn told(mut called: Called) -> Value {
    let text: Value = serde_json::from_str(&called.text).unwrap_or_else(|_| panic!("{called:?}"));
    assert_eq!(text, called.data);
    // Of what has run; for everything else it is exactly 0, or not there.
    if called.data["duration_ms"].is_u64() && called.data["truncated"].is_boolean() {
        called.data["duration_ms"] = "some".into();
    }
    called.data
}

#[test]
fn there_are_four_of_them() {
    each_way(home, "toolset=bash", |_, agent| {
        let tools = agent.tools();
        let shapes: Vec<_> = { tools.iter() }
            .map(|tool| {
                let required = tool["inputSchema"]["required"].clone();
                (tool["name"].as_str().unwrap(), fields(tool), required)
            })
            .collect();
        let all = [
            "command",
            "description",
            "timeout",
            "run_in_background",
            "cwd",
            "env",
        ];
        assert_eq!(
            shapes,
            [
                ("Bash", all.to_vec(), json!(["command"])),
                (
                    "TaskOutput",
                    vec!["task_id", "block", "timeout"],
                    json!(["task_id"])
                ),
                ("TaskStop", vec!["task_id"], json!(["task_id"])),
                ("TaskList", vec![], Value::Null),
            ]
        );
    });
}

#[test]
fn a_command_runs() {
    each_way(home, "toolset=Bash", |_, agent| {
        let said = agent.call("Bash", json!({ "command": "echo hi; echo oh >&2" }));
        assert!(!said.failed);
        assert_eq!(
            told(said),
            json!({ "success": true, "stdout": "hi\n", "stderr": "oh\n", "exit_code": 0,
                    "duration_ms": "some", "truncated": false })
        );
        let said = agent.call("Bash", json!({ "command": "echo hi; exit 3" }));
        assert!(!said.failed, "it ran");
        assert_eq!(
            told(said),
            json!({ "success": false, "stdout": "hi\n",
                    "stderr": "Command failed: echo hi; exit 3\n", "exit_code": 3,
                    "duration_ms": "some", "truncated": false })
        );
        let said = agent.call("Bash", json!({ "command": "echo why >&2; kill -9 $$" }));
        let said = told(said);
        assert_eq!(
            (&said["stderr"], &said["exit_code"]),
            (&json!("why\n"), &json!(1))
        );
    });
}

#[test]
fn what_is_blocked_is_not_run() {
    each_way(home, "toolset=bash", |home, agent| {
        let said = agent.call("Bash", json!({ "command": "touch made; rm -rf /" }));
        assert!(said.failed);
        let mut said = told(said);
        assert!(said["id"].take().is_string());
        let reason = "Command contains blocked pattern: rm -rf /";
        assert_eq!(
            said,
            json!({ "success": false, "stdout": "", "stderr": reason, "exit_code": -1,
                    "duration_ms": 0, "state": "blocked", "id": null,
                    "error": { "code": "blocked", "message": reason,
                               "hint": "If you need to delete files, specify exact paths." } })
        );
        assert!(!home.base().join("made").exists());
    });
}

#[test]
fn time_is_limited() {
    let home = home();
    let _server = home.serve(&[]);
    let agent = Client::stdio(&home, &["--toolset", "bash"]);
    let command = json!({ "command": "echo a; echo b >&2; sleep 600", "timeout": 300 });
    let said = told(agent.call("Bash", command));
    assert_eq!(
        (
            &said["success"],
            &said["stdout"],
            &said["exit_code"],
            &said["state"]
        ),
        (&json!(false), &json!("a\n"), &json!(1), &json!("timed_out"))
    );
    let text = said["stderr"].as_str().unwrap();
    assert!(
        text.starts_with("b\nStopped after 0.3 s (limit). "),
        "{text}"
    );

    let limit = |arguments: Value| {
        told(agent.call("Bash", arguments));
        home.newest()["timeout_ms"].clone()
    };
    for (timeout, expected) in [
        (Value::Null, 120_000),
        (json!(0), 120_000),
        (json!(0.5), 1),
        (json!(1500), 1500),
        (json!(600_000), 600_000),
    ] {
        let arguments = json!({ "command": "true", "timeout": timeout });
        assert_eq!(limit(arguments), expected, "{timeout}");
    }
    // Nobody waits for it, and it has the longest there is.
    let arguments = json!({ "command": "true", "timeout": 5, "run_in_background": true });
    assert_eq!(limit(arguments), 600_000);
}

#[test]
fn long_output_loses_its_middle() {
    let command = |first: u32, last: u32| {
        let lines = format!("for i in $(seq {first} {last}); do echo \"€ $i\"; done");
        format!("{lines}; {{ {lines}; }} >&2")
    };
    let whole = |first: u32, last: u32| -> String {
        (first..=last)
            .map(|number| format!("€ {number}\n"))
            .collect()
    };
    each_way(home, "toolset=bash", |_, agent| {
        // 30,000 characters and 8 more.
        let said = told(agent.call("Bash", json!({ "command": command(10_001, 13_750) })));
        let expected = whole(10_001, 13_750);
        assert_eq!(expected.chars().count(), 30_000);
        assert_eq!(
            (&said["stdout"], &said["stderr"], &said["truncated"]),
            (&json!(expected), &json!(expected), &json!(false))
        );
        let said = told(agent.call("Bash", json!({ "command": command(10_001, 13_751) })));
        let expected = truncate(&whole(10_001, 13_751));
        assert!(expected.contains("\n\n... (8 characters truncated) ...\n\n"));
        assert_eq!(
            (&said["stdout"], &said["stderr"], &said["truncated"]),
            (&json!(expected), &json!(expected), &json!(true))
        );
        // All of it is still there.
        let uri = format!("weighlock://runs/{}/output", said["id"].as_str().unwrap());
        let read = agent.request("resources/read", json!({ "uri": uri }));
        let text = read["contents"][0]["text"].as_str().unwrap();
        assert_eq!(text.matches("€ 12000\n").count(), 2);
        // It is said of standard error, too.
        let command = json!({ "command": "seq 10000 >&2" });
        assert_eq!(told(agent.call("Bash", command))["truncated"], true);
    });
}

/// As the tool's own host cuts, written anew.
pub(super) fn truncate(output: &str) -> String {
    const MAX: usize = 30_000;
    let all: Vec<char> = output.chars().collect();
    if all.len() <= MAX {
        return output.to_owned();
    }
    let (half, truncated) = (MAX / 2, all.len() - MAX);
    let head: String = all[..half].iter().collect();
    let tail: String = all[all.len() - half..].iter().collect();
    format!("{head}\n\n... ({truncated} characters truncated) ...\n\n{tail}")
}

#[test]
fn how_far_it_is_is_told() {
    each_way(home, "toolset=bash", |home, agent| {
        let command = "echo Installing; until test -e go; do sleep 0.01; done; echo done";
        let call = agent.begin_with_progress("Bash", json!({ "command": command }), "far");
        let told_of = |line: &str| {
            agent.hears(line, |message| {
                message["method"] == "notifications/progress"
                    && message["params"]["progressToken"] == "far"
                    && message["params"]["message"] == line
            })
        };
        told_of("Installing");
        std::fs::write(home.base().join("go"), "").unwrap();
        assert_eq!(told(agent.answered(call))["stdout"], "Installing\ndone\n");
    });
}

#[test]
fn what_nobody_wants_any_more_is_ended() {
    each_way(home, "toolset=bash", |home, agent| {
        let call = agent.begin("Bash", json!({ "command": "sleep 600" }));
        eventually("it runs", || home.newest()["state"] == "running");
        agent.cancel(call);
        eventually("it was ended", || home.newest()["open"] == false);
        assert_eq!(home.newest()["state"], "killed");
    });
}

#[test]
fn where_and_with_what() {
    each_way(home, "toolset=bash", |home, agent| {
        let out = |arguments: Value| told(agent.call("Bash", arguments))["stdout"].clone();
        let base = home.base();
        std::fs::create_dir(base.join("below it")).unwrap();
        let below = base.join("below it");
        let pwd = |cwd: Value| out(json!({ "command": "pwd", "cwd": cwd }));
        assert_eq!(pwd(Value::Null), format!("{}\n", base.display()));
        assert_eq!(pwd(json!("")), format!("{}\n", base.display()));
        assert_eq!(pwd(json!("below it")), format!("{}\n", below.display()));
        assert_eq!(pwd(json!(below)), format!("{}\n", below.display()));
        let env = json!({ "A": "a b", "B": "" });
        let command = "echo \"$A\" \"${B-unset}\" \"${BASH_VERSION:+bash}\"";
        assert_eq!(
            out(json!({ "command": command, "env": env })),
            "a b  bash\n"
        );
        for cwd in ["/etc", "..", "missing"] {
            let said = agent.call("Bash", json!({ "command": "touch made", "cwd": cwd }));
            assert!(
                said.failed && said.data["error"]["code"].is_string(),
                "{cwd}: {said:?}"
            );
        }
        assert!(!base.join("made").exists());
    });
}

#[test]
fn bad_input_is_told() {
    let bad = [
        ("Bash", json!({}), "invalid_arguments"),
        ("Bash", json!({ "command": null }), "invalid_arguments"),
        ("Bash", json!({ "command": 3 }), "invalid_arguments"),
        ("Bash", json!({ "command": ["ls"] }), "invalid_arguments"),
        ("Bash", json!({ "command": "" }), "empty_command"),
        ("Bash", json!({ "command": "a\0b" }), "invalid_command"),
        (
            "Bash",
            json!({ "command": "x".repeat(200_000) }),
            "command_too_long",
        ),
        (
            "Bash",
            json!({ "command": "ls", "description": 3 }),
            "invalid_arguments",
        ),
        (
            "Bash",
            json!({ "command": "ls", "timeout": "1" }),
            "invalid_arguments",
        ),
        (
            "Bash",
            json!({ "command": "ls", "timeout": -1 }),
            "invalid_arguments",
        ),
        (
            "Bash",
            json!({ "command": "ls", "timeout": 600_001 }),
            "invalid_arguments",
        ),
        (
            "Bash",
            json!({ "command": "ls", "timeout": 1e300 }),
            "invalid_arguments",
        ),
        (
            "Bash",
            json!({ "command": "ls", "run_in_background": "yes" }),
            "invalid_arguments",
        ),
        (
            "Bash",
            json!({ "command": "ls", "cwd": 3 }),
            "invalid_arguments",
        ),
        (
            "Bash",
            json!({ "command": "ls", "cwd": "a\0b" }),
            "bad_directory",
        ),
        (
            "Bash",
            json!({ "command": "ls", "env": ["A"] }),
            "invalid_arguments",
        ),
        (
            "Bash",
            json!({ "command": "ls", "env": { "A": 1 } }),
            "invalid_arguments",
        ),
        (
            "Bash",
            json!({ "command": "ls", "env": { "A=B": "" } }),
            "invalid_environment",
        ),
        ("TaskOutput", json!({}), "invalid_arguments"),
        ("TaskOutput", json!({ "task_id": "" }), "invalid_arguments"),
        (
            "TaskOutput",
            json!({ "task_id": "bash-zzzzzz" }),
            "no_such_run",
        ),
        (
            "TaskOutput",
            json!({ "task_id": "../people" }),
            "no_such_run",
        ),
        (
            "TaskOutput",
            json!({ "task_id": "x", "timeout": 600_001 }),
            "invalid_arguments",
        ),
        (
            "TaskOutput",
            json!({ "task_id": "x", "block": "no" }),
            "invalid_arguments",
        ),
        ("TaskStop", json!({}), "invalid_arguments"),
        ("TaskStop", json!({ "task_id": 3 }), "invalid_arguments"),
        (
            "TaskStop",
            json!({ "task_id": "bash-zzzzzz" }),
            "no_such_run",
        ),
    ];
    each_way(home, "toolset=bash", |home, agent| {
        for (tool, arguments, code) in &bad {
            let call = agent.begin(tool, arguments.clone());
            assert_eq!(refused(agent, call), *code, "{tool} {arguments}");
        }
        let said = agent.answered(agent.ask("tools/call", json!({ "name": "Bash" })));
        assert_eq!(said.data["error"]["code"], "invalid_arguments");
        assert_eq!(home.newest(), Value::Null, "nothing was run");
        // What nobody knows is left alone, as the tool's own host does.
        let more = json!({ "command": "echo hi", "dangerouslyDisableSandbox": true });
        assert_eq!(told(agent.call("Bash", more))["stdout"], "hi\n");
        assert_eq!(
            told(agent.call("TaskList", json!({ "all": 1 }))),
            json!({ "tasks": [] })
        );
    });
}

#[test]
fn a_description_can_be_required() {
    each_way(
        home,
        "toolset=bash&require_description=true",
        |home, agent| {
            for description in [Value::Null, json!(""), json!(" ")] {
                let command = json!({ "command": "touch made", "description": description });
                let said = agent.call("Bash", command);
                assert_eq!(
                    said.data["error"]["code"], "missing_description",
                    "{said:?}"
                );
            }
            assert!(!home.base().join("made").exists());
            let said = agent.call("Bash", json!({ "command": "true", "description": "Try" }));
            assert_eq!(told(said)["success"], true);
        },
    );
}
