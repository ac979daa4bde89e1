//! `terminal`: one tool with an action.

use serde_json::{Value, json};

use super::client::Called;
use super::{Client, each_way};
use crate::caller::{add, add_here};
use crate::support::{Home, Server, eventually};

const QUERY: &str = "toolset=terminal";

/// Calls it, and checks that its answer has the one shape that answers have.
pub(crate) fn call(agent: &Client, arguments: Value) -> Value {
    let Called { text, data, failed } = agent.call("terminal", arguments.clone());
    let fields: Vec<&String> = data.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["success", "output", "error", "metadata"]);
    assert_eq!(data["output"], text.as_str(), "{arguments}: {data}");
    assert_eq!(data["success"], !failed, "{arguments}: {data}");
    assert_eq!(data["error"].is_string(), failed, "{arguments}: {data}");
    assert!(data["metadata"].is_object(), "{arguments}: {data}");
    data
}

/// Runs a command.
pub(crate) fn run(agent: &Client, command: &str) -> Value {
    call(agent, json!({ "action": "run", "command": command }))
}

/// Its error, and what it says.
pub(crate) fn refused(agent: &Client, arguments: Value) -> (String, String) {
    let told = call(agent, arguments);
    let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
    (text("error"), text("output"))
}

/// The same of a command.
fn blocked(agent: &Client, command: &str) -> (String, String) {
    refused(agent, json!({ "action": "run", "command": command }))
}

/// What is told of an error.
pub(crate) fn error(code: &str, text: &str) -> (String, String) {
    (code.into(), text.into())
}

/// Opens a terminal.
pub(crate) fn open(agent: &Client, name: &str, command: &str, background: bool) -> Value {
    let asked = json!({ "action": "open", "terminal_name": name, "description": "for a test",
                        "command": command, "background": background });
    call(agent, asked)
}

/// Does something with a terminal.
pub(crate) fn with(agent: &Client, action: &str, name: &str) -> Value {
    call(agent, json!({ "action": action, "terminal_name": name }))
}

pub(crate) fn send(agent: &Client, name: &str, input: &str) -> Value {
    let asked = json!({ "action": "send_input", "terminal_name": name, "input": input });
    call(agent, asked)
}

/// Waits until the last lines of a terminal have a text.
pub(crate) fn shows(agent: &Client, name: &str, wanted: &str) {
    eventually(wanted, || {
        let told = with(agent, "status", name);
        told["output"].as_str().unwrap().contains(wanted)
    });
}

/// A server for several users, and a client of one who is no administrator.
pub(crate) fn user(home: &Home, more: &str) -> (Server, Client) {
    let settings = format!("preset = \"multi-user\"\n{more}");
    let config = home.config(&settings);
    let server = home.serve(&["--config", &config, "--listen", "127.0.0.1:0"]);
    let token = add(home, "alice", "agent", json!({}));
    let alice = Client::http(&server, &token, QUERY);
    (server, alice)
}

#[test]
fn its_shape_is_the_one_of_its_origin() {
    each_way(Home::new, QUERY, |_, agent| {
        let tools = agent.tools();
        let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["terminal", "wait"]);
        let answer = &tools[0]["outputSchema"];
        let all = json!(["success", "output", "error", "metadata"]);
        assert_eq!(answer["required"], all);
        assert_eq!(
            answer["properties"]["error"]["anyOf"],
            json!([{ "type": "string" }, { "type": "null" }])
        );
        assert_eq!(tools[0]["annotations"]["destructiveHint"], true);
        assert_eq!(tools[0]["annotations"]["readOnlyHint"], false);
    });
}

#[test]
fn a_command_runs_and_says_how_it_ended() {
    each_way(Home::new, QUERY, |_, agent| {
        for (command, output, code) in [
            ("echo hi", "hi\n", 0),
            ("  echo hi\t", "hi\n", 0),
            ("true", "(no output)", 0),
            ("exit 4", "(no output)", 4),
            ("echo hi; echo oh >&2", "hi\n\n[stderr]\noh\n", 0),
            ("echo oh >&2; exit 1", "[stderr]\noh\n", 1),
            ("printf 'a\\377b'", "a\u{fffd}b", 0),
            ("kill -9 $$", "(no output)", -9),
            ("echo a | tr a b && (cd / && pwd)", "b\n/\n", 0),
        ] {
            let told = run(agent, command);
            assert_eq!(told["output"], output, "{command}: {told}");
            assert_eq!(told["metadata"]["returncode"], code, "{command}: {told}");
            let error = match code {
                0 => Value::Null,
                code => json!(format!("Exit code {code}")),
            };
            assert_eq!(told["error"], error, "{command}: {told}");
        }
    });
}

#[test]
fn output_is_cut_at_five_thousand_characters() {
    each_way(Home::new, QUERY, |_, agent| {
        let long = |count: usize| format!("printf 'é%.0s' $(seq {count})");
        assert_eq!(run(agent, &long(5000))["output"], "é".repeat(5000));
        let cut = format!("{}\n…[truncated — 5001 chars total]", "é".repeat(5000));
        assert_eq!(run(agent, &long(5001))["output"], cut);
        // Both streams count, with what stands between them.
        let both = "printf 'a%.0s' $(seq 4995); echo oh >&2";
        let cut = format!(
            "{}\n[std\n…[truncated — 5008 chars total]",
            "a".repeat(4995)
        );
        assert_eq!(run(agent, both)["output"], cut);
        // In a terminal, what is seen counts: no colours, no line ends of two.
        let seen = "printf '\\033[31m%s\\n\\033[0m' $(seq 1000 1999)";
        let told = open(agent, "seen", seen, false);
        let lines: String = (1000..2000).map(|number| format!("{number}\n")).collect();
        assert_eq!(told["output"], lines, "5000 characters are not cut");
        let told = open(agent, "seen", &format!("{seen}; echo"), false);
        assert_eq!(
            told["output"],
            format!("{lines}\n…[truncated — 5001 chars total]")
        );
    });
}

#[test]
fn what_takes_too_long_is_ended_and_says_what_it_wrote() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let agent = Client::stdio(&home, &["--toolset", "terminal"]);
    let begin = |action: &str, command: &str, timeout: Value| {
        let asked = json!({ "action": action, "terminal_name": command, "description": "slow",
                            "command": command, "timeout": timeout });
        agent.begin("terminal", asked)
    };
    let calls = [
        (begin("run", "sleep 1000", json!(1)), ""),
        (
            begin("run", "echo begun; sleep 1001", json!(-7)),
            "\nbegun\n",
        ),
        (
            begin("run", "echo begun; sleep 1002", json!(1.9)),
            "\nbegun\n",
        ),
        (
            begin("open", "echo begun; sleep 1003", json!("1")),
            "\nbegun\n",
        ),
    ];
    for (call, wrote) in calls {
        let told = agent.answered(call);
        assert_eq!(told.text, format!("Timed out after 1s{wrote}"));
        assert_eq!(told.data["error"], "timeout", "{told:?}");
    }
    let list = call(&agent, json!({ "action": "list" }));
    assert_eq!(list["output"], "No active terminals for this session.");
}

#[test]
fn terminals_are_opened_listed_typed_at_and_closed() {
    each_way(Home::new, QUERY, |home, agent| {
        let opened = open(agent, " calc ", "cat", true);
        let pid = opened["metadata"]["pid"].as_u64().unwrap();
        assert_eq!(
            opened["output"],
            format!("Terminal 'calc' opened in background. PID: {pid}.")
        );
        let base = home.base();
        let summary = &opened["metadata"];
        assert_eq!(summary["name"], "calc");
        assert_eq!(summary["description"], "for a test");
        assert_eq!(summary["command"], "cat");
        assert_eq!(summary["cwd"], json!(base));
        let again = open(agent, "calc", "cat", true);
        assert_eq!(again["error"], "already_exists", "{again}");
        assert_eq!(
            send(agent, "calc", "one\n")["output"],
            "Sent input to 'calc'."
        );
        shows(agent, "calc", "Output tail:\n  one\n  one");
        eventually("it waits for more", || {
            let told = with(agent, "status", "calc");
            told["metadata"]["status"] == "idle"
        });
        let told = with(agent, "status", "calc");
        let (uptime, active) = (
            &told["metadata"]["uptime_seconds"],
            told["metadata"]["last_active"].as_str().unwrap(),
        );
        assert_eq!(
            told["output"],
            format!(
                "Terminal: calc\nDescription: for a test\nCommand: cat\nStatus: idle\nPID: {pid}\n\
                 CWD: {}\nUptime: {uptime}s\nLast active: {active}\nOutput tail:\n  one\n  one",
                base.display()
            )
        );
        let list = call(agent, json!({ "action": "list" }));
        let item = &list["metadata"]["terminals"][0];
        assert_eq!(
            list["output"],
            format!(
                "Active terminals (1):\n  ⚪ calc: for a test (idle, PID {pid}, uptime {}s)",
                item["uptime_seconds"]
            )
        );
        assert_eq!(
            with(agent, "close", "calc")["output"],
            "Terminal 'calc' closed."
        );
        for action in ["close", "status"] {
            let told = with(agent, action, "calc");
            assert_eq!(told["error"], "not_found");
            assert_eq!(told["output"], "Terminal 'calc' not found.");
        }
        // The name is free at once, and the next one is another.
        let busy = open(agent, "calc", "sleep 1000", true);
        assert_ne!(busy["metadata"]["pid"], pid);
        let list = call(agent, json!({ "action": "list" }));
        let line = format!(
            "  🟢 calc: for a test (busy, PID {}",
            busy["metadata"]["pid"]
        );
        assert!(list["output"].as_str().unwrap().contains(&line), "{list}");
    });
}

#[test]
fn one_in_the_foreground_is_waited_for_and_closed() {
    each_way(Home::new, QUERY, |home, agent| {
        let told = open(
            agent,
            "front",
            "printf '10%%\\r99%%\\n'; tty; exit 4",
            false,
        );
        assert_eq!(told["output"], "99%\n/dev/pts/0\n");
        assert_eq!(told["error"], "Exit code 4");
        let known = &told["metadata"];
        assert_eq!(known["returncode"], 4);
        assert_eq!(
            (&known["name"], &known["status"]),
            (&json!("front"), &json!("closed"))
        );
        assert_eq!(known["cwd"], json!(home.base()));
        let told = open(agent, "front", "true", false);
        assert_eq!(
            (&told["output"], &told["error"]),
            (&json!("(no output)"), &json!(null))
        );
        let list = call(agent, json!({ "action": "list" }));
        assert_eq!(list["output"], "No active terminals for this session.");
    });
}

#[test]
fn one_that_has_ended_by_itself_says_how() {
    each_way(Home::new, QUERY, |_, agent| {
        // A name that could be the beginning of an id.
        let told = open(agent, "e", "echo broken; exit 7", true);
        assert_eq!(told["success"], true, "{told}");
        shows(agent, "e", "Status: closed");
        let told = with(agent, "status", "e");
        assert_eq!(told["metadata"]["exit_code"], 7, "{told}");
        let output = told["output"].as_str().unwrap();
        assert!(output.ends_with("Output tail:\n  broken"), "{output}");
        let unsent = send(agent, "e", "x\n");
        assert_eq!(unsent["error"], "send_failed");
        assert_eq!(
            unsent["output"],
            "Cannot send input to 'e'. Terminal may be closed or not accepting input."
        );
        assert_eq!(with(agent, "close", "e")["output"], "Terminal 'e' closed.");
    });
}

#[test]
fn whatever_is_wrong_has_a_code() {
    each_way(Home::new, QUERY, |home, agent| {
        let no_action = error("missing_action", "Missing 'action' parameter.");
        for nothing in [
            json!({}),
            json!({ "action": null }),
            json!({ "action": "" }),
            json!({ "action": 0 }),
            json!({ "action": [] }),
        ] {
            assert_eq!(refused(agent, nothing.clone()), no_action, "{nothing}");
        }
        for (action, told) in [
            (json!("Run"), "Run"),
            (json!(5), "5"),
            (json!(["run"]), "[\"run\"]"),
        ] {
            let expected = error("invalid_action", &format!("Unknown action: {told}"));
            assert_eq!(refused(agent, json!({ "action": action })), expected);
        }
        let wrong = |name: &str, kind: &str| {
            error("invalid_parameters", &format!("'{name}' must be {kind}."))
        };
        for (name, value, kind) in [
            ("command", json!(5), "a string"),
            ("command", json!(["ls"]), "a string"),
            ("working_dir", json!(5), "a string"),
            ("timeout", json!("soon"), "an integer"),
            ("timeout", json!([1]), "an integer"),
            ("description", json!({ "a": 1 }), "a string"),
        ] {
            for action in ["run", "open"] {
                let mut asked = json!({ "action": action, "terminal_name": "x",
                                        "description": "y", "command": "ls" });
                asked[name] = value.clone();
                assert_eq!(refused(agent, asked.clone()), wrong(name, kind), "{asked}");
            }
        }
        for action in ["open", "close", "status", "send_input"] {
            let asked = json!({ "action": action, "terminal_name": 5 });
            assert_eq!(refused(agent, asked), wrong("terminal_name", "a string"));
            let missing = format!("Missing 'terminal_name' for {action}.");
            for name in [json!(null), json!(""), json!("  ")] {
                let asked = json!({ "action": action, "terminal_name": name, "input": "" });
                assert_eq!(refused(agent, asked), error("missing_name", &missing));
            }
        }
        let asked = json!({ "action": "send_input", "terminal_name": "x", "input": 5 });
        assert_eq!(refused(agent, asked), wrong("input", "a string"));
        for arguments in [json!([]), json!("run"), json!(5)] {
            assert_eq!(refused(agent, arguments).0, "invalid_parameters");
        }
        for (command, begins) in [
            (
                "x\0".to_owned(),
                "Execution error: the command has a NUL byte",
            ),
            (
                "x".repeat(200_000),
                "Execution error: the command has 200000 bytes",
            ),
        ] {
            let told = run(agent, &command);
            let output = told["output"].as_str().unwrap();
            assert!(output.starts_with(begins), "{output:.200}");
            let what = told["error"].as_str().unwrap();
            assert_eq!(output, format!("Execution error: {what}"));
        }
        assert_eq!(run(agent, &"x".repeat(3_000_000))["success"], false);
        let named = open(agent, "r_1", "ls", true);
        assert_eq!(named["metadata"]["code"], "invalid_name", "{named}");
        let output = named["output"].as_str().unwrap();
        assert!(output.starts_with("Failed to open terminal: "), "{output}");
        let (_, list) = home.api("GET", "/commands", &Value::Null);
        assert_eq!(list["commands"], json!([]), "nothing ran");
        // What nobody knows is ignored, and nobody is somebody else.
        let more = json!({ "action": "run", "command": "echo hi", "user_role": "admin",
                           "role": "admin", "user_id": "x", "session_id": 5, "sandbox": "y" });
        assert_eq!(call(agent, more)["output"], "hi\n");
    });
}

#[test]
fn working_directories_stay_inside() {
    each_way(Home::new, QUERY, |home, agent| {
        std::fs::create_dir(home.base().join("sub")).unwrap();
        let at = |dir: Value| {
            let asked = json!({ "action": "run", "command": "pwd", "working_dir": dir });
            call(agent, asked)
        };
        let base = home.base().display().to_string();
        for (dir, place) in [
            (json!(null), &base),
            (json!(""), &base),
            (json!(0), &base),
            (json!("sub"), &format!("{base}/sub")),
            (json!(base), &base),
        ] {
            assert_eq!(at(dir)["output"], format!("{place}\n"));
        }
        let outside = "Working directory is outside your sandbox.";
        for dir in ["..", "/", "/etc", "sub/../.."] {
            let told = at(json!(dir));
            assert_eq!(told["error"], "sandbox_violation", "{told}");
            assert_eq!(told["output"], outside);
            let asked = json!({ "action": "open", "terminal_name": "x", "description": "y",
                                "command": "ls", "working_dir": dir });
            assert_eq!(refused(agent, asked), error("sandbox_violation", outside));
        }
        let told = at(json!("nowhere"));
        assert_eq!(told["metadata"]["code"], "bad_directory", "{told}");
    });
}

#[test]
fn users_are_told_what_they_may_not_in_the_words_of_its_origin() {
    let home = Home::strict();
    let (_server, alice) = user(
        &home,
        "[policy]\nuser_allowed_commands = [\"ls\", \"echo\"]\n",
    );
    let dangerous = error(
        "dangerous_command",
        "Blocked: Command contains disallowed patterns for non-admin users.",
    );
    assert_eq!(blocked(&alice, "echo $(curl x)"), dangerous);
    let list = "Allowed: ['ls', 'echo'].";
    let not_listed = format!("Command 'id' is not in the allowed list for non-admin users. {list}");
    assert_eq!(blocked(&alice, "id -u"), error("not_allowed", &not_listed));
    let syntax = error(
        "No closing quotation",
        "Invalid command syntax: No closing quotation",
    );
    assert_eq!(blocked(&alice, "ls 'a"), syntax);
    assert_eq!(
        run(&alice, "echo a | tr a b")["output"],
        "b\n",
        "it has a shell"
    );
    // A terminal has none, and words of its own.
    let open = |command: &str| {
        let asked = json!({ "action": "open", "terminal_name": "x", "description": "y",
                            "command": command });
        refused(&alice, asked)
    };
    assert_eq!(open("echo $(curl x)"), dangerous);
    let not_listed = format!("Command 'id' not allowed for non-admin users. {list}");
    assert_eq!(open("id -u"), error("not_allowed", &not_listed));
    assert_eq!(open("ls 'a"), syntax);
    assert_eq!(
        open("echo a; id"),
        error("", "a; id\n"),
        "words, and no commands"
    );
    let not_listed = format!("Command 'ls;' not allowed for non-admin users. {list}");
    assert_eq!(open("ls; id"), error("not_allowed", &not_listed));
    // A directory of their own, and no other.
    let own = home.base().join("user_data/alice");
    assert_eq!(run(&alice, "ls")["output"], "(no output)");
    assert!(own.is_dir());
    for dir in ["..", "/etc", "~", "../bob", "nowhere"] {
        let asked = json!({ "action": "run", "command": "ls", "working_dir": dir });
        let outside = "Working directory is outside your sandbox.";
        assert_eq!(refused(&alice, asked), error("sandbox_violation", outside));
    }
}

#[test]
fn users_are_in_their_own_directory_wherever_they_are_started() {
    let mut home = Home::strict();
    let server = home.serve_with("preset = \"multi-user\"\n");
    let token = add(&home, "alice", "agent", json!({}));
    home.set("WEIGHLOCK_TOKEN", token);
    let alice = Client::stdio(&home, &["--toolset", "terminal"]);
    let own = home.base().join("user_data/alice");
    let told = run(&alice, "echo $PWD");
    assert_eq!(told["output"], format!("{}\n", own.display()));
    drop(server);
}

#[test]
fn a_list_for_administrators_starts_programs_without_a_shell() {
    let home = Home::strict();
    let config = "preset = \"multi-user\"\n[policy]\nallowed_commands = \"echo, gone,ls\"\n";
    let _server = home.serve_with(config);
    let admin = Client::stdio(&home, &["--toolset", "terminal"]);
    let list = "Allowed: ['echo', 'gone', 'ls'].";
    let not_listed = format!(
        "Command 'id' is not in the allowed list. {list} Set TERMINAL_ALLOWED_COMMANDS=* to allow \
         all."
    );
    assert_eq!(blocked(&admin, "id"), error("not_allowed", &not_listed));
    assert_eq!(
        run(&admin, "echo a; id | tr a b > c")["output"],
        "a; id | tr a b > c\n"
    );
    let missing = error("not_found", "Command not found: gone");
    assert_eq!(blocked(&admin, "gone away"), missing);
    assert_eq!(blocked(&admin, "'gone'"), missing);
    let asked = json!({ "action": "open", "terminal_name": "x", "description": "y",
                        "command": "id" });
    let not_listed = format!("Command 'id' not allowed. {list}");
    assert_eq!(refused(&admin, asked), error("not_allowed", &not_listed));
}

#[test]
fn other_policies_have_their_own_words() {
    each_way(Home::strict, QUERY, |_, agent| {
        let no = error("blocked", "`sudo` raises privileges");
        assert_eq!(blocked(agent, "sudo ls"), no);
        let asked = json!({ "action": "open", "terminal_name": "x", "description": "y",
                            "command": "sudo ls", "background": true });
        assert_eq!(refused(agent, asked), no);
    });
}

#[test]
fn one_that_needs_a_person_answers_at_once_and_can_be_waited_for() {
    each_way(Home::strict, QUERY, |home, agent| {
        let opened = open(agent, "maker", "touch opened; sleep 1000", true);
        for told in [run(agent, "touch made"), opened] {
            assert_eq!(told["error"], "pending", "{told}");
            assert_eq!(told["metadata"]["state"], "waiting");
            let id = told["metadata"]["id"].as_str().unwrap();
            let run = home.get(id);
            let expected = format!(
                "{}\nRun {id} is waiting. Call `wait` with id {id}, or go on with other work; do \
                 not repeat the command.",
                run["reason"]["text"].as_str().unwrap()
            );
            assert_eq!(told["output"], expected);
            let (status, _) = home.api("POST", &format!("/commands/{id}/approve"), &json!({}));
            assert_eq!(status, 200);
        }
        eventually("both were begun", || {
            ["made", "opened"]
                .iter()
                .all(|name| home.base().join(name).exists())
        });
        let list = call(agent, json!({ "action": "list" }));
        assert!(list["output"].as_str().unwrap().contains("maker"), "{list}");
    });
}

#[test]
fn what_was_changed_on_a_copy_is_asked_about_when_it_is_closed() {
    let home = Home::untouched();
    let _server = home.serve(&[]);
    let agent = Client::stdio(&home, &["--toolset", "terminal"]);
    let told = open(&agent, "maker", "touch made; echo ready; cat", true);
    assert_eq!(told["success"], true, "{told}");
    shows(&agent, "maker", "\n  ready");
    let told = with(&agent, "close", "maker");
    let (closed, why) = told["output"].as_str().unwrap().split_once('\n').unwrap();
    assert_eq!(closed, "Terminal 'maker' closed.");
    assert!(why.starts_with("Waiting for approval (ap_"), "{why}");
    assert_eq!(told["metadata"]["state"], "waiting");
    assert!(!home.base().join("made").exists());
    // The same of one in the foreground, and of a command.
    let told = open(&agent, "maker", "touch more; echo done", false);
    assert_eq!(told["error"], "pending", "{told}");
    assert_eq!(told["metadata"]["returncode"], 0);
    assert!(told["output"].as_str().unwrap().ends_with("\ndone\n"));
}

#[test]
fn one_that_waits_can_be_closed() {
    let home = Home::strict();
    let _server = home.serve(&[]);
    let agent = Client::stdio(&home, &["--toolset", "terminal"]);
    let told = open(&agent, "maker", "touch made", true);
    assert_eq!(told["error"], "pending", "{told}");
    let status = with(&agent, "status", "maker");
    assert_eq!(status["metadata"]["status"], "waiting", "{status}");
    assert_eq!(send(&agent, "maker", "x")["error"], "send_failed");
    assert_eq!(with(&agent, "close", "maker")["success"], true);
    assert_eq!(with(&agent, "status", "maker")["error"], "not_found");
    assert!(!home.base().join("made").exists());
}

#[test]
fn the_clients_person_is_asked_before_a_terminal_is_opened() {
    let home = Home::strict();
    let _server = home.serve(&[]);
    let flags = ["--toolset", "terminal", "--ask"];
    let agent = Client::stdio_with(&home, &flags, json!({ "elicitation": {} }));
    let asked = json!({ "action": "open", "terminal_name": "maker", "description": "makes",
                        "command": "touch made; sleep 1000", "background": true });
    let call = agent.begin("terminal", asked);
    let question = agent.hears("a question", |one| one["method"] == "elicitation/create");
    let content = json!({ "decision": "approve" });
    agent.send(json!({ "jsonrpc": "2.0", "id": question["id"],
                       "result": { "action": "accept", "content": content } }));
    let told = agent.answered(call);
    assert!(
        told.text
            .starts_with("Terminal 'maker' opened in background. PID: "),
        "{told:?}"
    );
    eventually("it is made", || home.base().join("made").exists());
}

#[test]
fn a_line_for_a_shell_is_judged_and_may_wait_for_a_person() {
    let home = Home::strict();
    let rules = "[[rule]]\nauto = \"echo read\"\nbecause = \"A person allows it.\"\n";
    std::fs::write(home.dir().join("rules.toml"), rules).unwrap();
    let config = home.config("preset = \"guarded\"\n");
    let server = home.serve(&["--config", &config, "--listen", "127.0.0.1:0"]);
    let token = add_here(&home, "coder", "agent");
    let coder = Client::http(&server, &token, QUERY);
    let told = open(&coder, "shell", "bash", true);
    if told["error"] == "pending" {
        let id = told["metadata"]["id"].as_str().unwrap();
        home.api("POST", &format!("/commands/{id}/approve"), &json!({}));
    }
    shows(&coder, "shell", "Status: idle");
    assert_eq!(send(&coder, "shell", "echo read\n")["success"], true);
    shows(&coder, "shell", "\n  read\n");
    let told = send(&coder, "shell", "touch made\n");
    assert_eq!(told["error"], "pending", "{told}");
    let output = told["output"].as_str().unwrap();
    assert!(output.starts_with("Waiting for approval (ap_"), "{output}");
    let id = told["metadata"]["id"].as_str().unwrap();
    assert_eq!(home.get(id)["command"], "touch made");
    let told = send(&coder, "shell", "sudo ls\n");
    assert_eq!(told["error"], "blocked", "{told}");
    assert_eq!(told["output"], "`sudo` raises privileges");
    assert!(!home.base().join("made").exists());
}

#[test]
fn a_session_that_is_closed_has_no_terminals() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let (_, ran) = home.ask("true", json!({ "session_id": "mine" }));
    let id = ran["session_id"].as_str().unwrap();
    let (status, said) = home.api("POST", &format!("/sessions/{id}/close"), &json!({}));
    assert!((200..300).contains(&status), "{said}");
    let token = home.token(&home.me());
    let agent = Client::http(&server, &token, &format!("{QUERY}&session={id}"));
    let told = open(&agent, "x", "cat", true);
    assert_eq!(told["error"], "no_session", "{told}");
    assert_eq!(
        told["output"],
        "Persistent terminals require a session context."
    );
}

#[test]
fn clients_do_not_see_each_others_terminals() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let one = Client::stdio(&home, &["--toolset", "terminal"]);
    let other = Client::stdio(&home, &["--toolset", "terminal"]);
    open(&one, "mine", "cat", true);
    let list = call(&other, json!({ "action": "list" }));
    assert_eq!(list["output"], "No active terminals for this session.");
    for action in ["status", "close"] {
        assert_eq!(with(&other, action, "mine")["error"], "not_found");
    }
    assert_eq!(send(&other, "mine", "x\n")["error"], "send_failed");
    assert_eq!(open(&other, "mine", "cat", true)["success"], true);
}
