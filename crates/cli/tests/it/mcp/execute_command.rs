//! `ExecuteCommand`.

use serde_json::{Value, json};

use super::client::Called;
use super::{Client, each_way};
use crate::caller::{Caller, add_here};
use crate::support::{Home, eventually};

const QUERY: &str = "toolset=execute-command";

fn execute(agent: &Client, command: &str) -> Called {
    agent.call("ExecuteCommand", json!({ "command": command }))
}

/// A text, and whether something went wrong; nothing for programs.
fn said(text: &str, failed: bool) -> Called {
    Called {
        text: text.into(),
        data: Value::Null,
        failed,
    }
}

/// A home with settings of its own.
fn home_with(settings: &'static str) -> impl Fn() -> Home {
    move || {
        let home = Home::strict();
        home.put("settings/weighlock/config.toml", settings);
        home
    }
}

#[test]
fn it_answers_with_exit_code_and_both_streams() {
    each_way(Home::new, QUERY, |home, agent| {
        for (command, text) in [
            ("echo hi", "ExitCode: 0\nStdout: hi\nStderr: "),
            (
                "echo hi; echo oh >&2; exit 3",
                "ExitCode: 3\nStdout: hi\nStderr: oh",
            ),
            ("true", "ExitCode: 0\nStdout: \nStderr: "),
            (" \n false\t", "ExitCode: 1\nStdout: \nStderr: "),
            ("printf 'a\\n\\nb'", "ExitCode: 0\nStdout: a\n\nb\nStderr: "),
            ("kill -9 $$", "ExitCode: 137\nStdout: \nStderr: "),
            // A shell reads it, and it is that one.
            (
                "echo a | tr a b; echo \"$0\"",
                "ExitCode: 0\nStdout: b\n/bin/sh\nStderr: ",
            ),
        ] {
            assert_eq!(execute(agent, command), said(text, false), "{command}");
        }
        // What was asked for is on record, with its limit.
        assert_eq!(home.newest()["timeout_ms"], 60_000);
    });
}

#[test]
fn its_shape_is_the_one_of_the_document() {
    each_way(Home::new, QUERY, |_, agent| {
        let tools = agent.tools();
        let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["ExecuteCommand", "wait"]);
        let tool = &tools[0];
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["required"], json!(["command"]));
        assert_eq!(
            schema["properties"]["command"],
            json!({
                "type": "string",
                "description": "The shell command line to run (e.g. `dotnet build`, `git status`).",
            })
        );
        assert_eq!(schema["properties"]["workingDirectory"]["type"], "string");
        assert_eq!(schema["properties"].as_object().unwrap().len(), 2);
        assert_eq!(tool["outputSchema"], Value::Null, "plain text");
        assert_eq!(tool["annotations"]["destructiveHint"], true);
    });
}

#[test]
fn what_is_refused_is_a_short_text() {
    each_way(Home::new, QUERY, |_, agent| {
        let blacklist = "Command is not allowed by terminal blacklist.";
        for command in ["rm -rf /", "  echo x;  RM   -Rf\t/ ", "echo; DD if=x"] {
            assert_eq!(execute(agent, command), said(blacklist, true), "{command}");
        }
    });
    // Other rules have other reasons, and say what to do.
    each_way(home_with(""), QUERY, |home, agent| {
        let told = execute(agent, "sudo ls");
        let text = "Command is not allowed: `sudo` raises privileges\n\
                    Do it with the rights there are, or ask a person to do it.";
        assert_eq!(told, said(text, true));
        // A list that a person saved counts there, too.
        let list = json!({ "commandBlacklist": ["git status"] });
        let (status, _) = home.api("PUT", "/blacklist", &list);
        assert_eq!(status, 200);
        let text = "Command is not allowed by terminal blacklist.";
        assert_eq!(execute(agent, "git  STATUS -s"), said(text, true));
    });
}

#[test]
fn a_rule_that_calls_itself_a_blacklist_is_none() {
    let home = Home::strict();
    let rules = "[[rule]]\nreject = \"echo\"\ncode = \"blacklist\"\nsays = \"No echo.\"\n";
    home.put("settings/weighlock/rules.toml", rules);
    let _server = home.serve(&[]);
    let agent = Client::stdio(&home, &["--toolset", "execute-command"]);
    let told = execute(&agent, "echo hi");
    assert_eq!(told, said("Command is not allowed: No echo.", true));
}

#[test]
fn working_directories_are_below_the_base() {
    each_way(Home::new, QUERY, |home, agent| {
        let base = home.base();
        std::fs::create_dir(base.join("sub")).unwrap();
        std::os::unix::fs::symlink("/etc", base.join("out")).unwrap();
        let pwd = |directory: Value| {
            let asked = json!({ "command": "pwd", "workingDirectory": directory });
            agent.call("ExecuteCommand", asked)
        };
        let sub = base.join("sub");
        for (directory, place) in [
            (json!(null), &base),
            (json!(""), &base),
            (json!("."), &base),
            (json!("sub"), &sub),
            (json!("sub/../sub"), &sub),
            (json!(sub), &sub),
            (json!(base), &base),
        ] {
            let text = format!("ExitCode: 0\nStdout: {}\nStderr: ", place.display());
            assert_eq!(pwd(directory.clone()), said(&text, false), "{directory}");
        }
        let outside = "Working directory is outside the base directory.";
        for directory in ["..", "/", "/etc", "sub/../..", "out"] {
            assert_eq!(pwd(json!(directory)), said(outside, true), "{directory}");
        }
        for directory in ["nowhere", "\0", &"x/".repeat(5000)] {
            let told = pwd(json!(directory));
            assert!(told.failed, "{told:?}");
            let begins = told.text.starts_with("Working directory is not valid: ");
            assert!(begins, "{told:?}");
        }
        let (_, list) = home.api("GET", "/commands", &Value::Null);
        assert_eq!(list["commands"].as_array().unwrap().len(), 7, "{list}");
    });
}

#[test]
fn whatever_is_wrong_is_a_short_text() {
    each_way(Home::new, QUERY, |home, agent| {
        let empty = "Command is empty.";
        let no_text = "command must be a string.";
        let no_directory = "workingDirectory must be a string.";
        for (arguments, text) in [
            (json!({}), empty),
            (json!({ "command": null }), empty),
            (json!({ "command": "" }), empty),
            (json!({ "command": " \t\n" }), empty),
            (json!({ "command": 5 }), no_text),
            (json!({ "command": ["ls"] }), no_text),
            (json!({ "command": { "a": 1 } }), no_text),
            (json!({ "command": true }), no_text),
            (
                json!({ "command": "ls", "workingDirectory": 1 }),
                no_directory,
            ),
            (
                json!({ "command": "ls", "workingDirectory": [] }),
                no_directory,
            ),
            (
                json!({ "command": "ls\0" }),
                "The command has a NUL byte, which no shell can read; nothing was run. \
                 Remove the NUL byte.",
            ),
        ] {
            let told = agent.call("ExecuteCommand", arguments.clone());
            assert_eq!(told, said(text, true), "{arguments}");
        }
        for huge in ["x".repeat(200_000), "x".repeat(3_000_000)] {
            let told = execute(agent, &huge);
            assert!(told.failed && told.text.len() < 500, "{:.300}", told.text);
        }
        for arguments in [json!([]), json!("ls"), json!(5), json!(true)] {
            let told = agent.call("ExecuteCommand", arguments);
            let text = "The call is not understood; nothing was done. Give `name`, and \
                        `arguments` as an object.";
            assert_eq!(told, said(text, true));
        }
        // What nobody knows is ignored, and nobody is somebody else.
        let more = json!({ "command": "echo hi", "workdir": "/etc", "agent": "x", "user": 1,
                           "timeout": "never", "sandbox": "other", "session": 5 });
        let told = agent.call("ExecuteCommand", more);
        assert_eq!(told, said("ExitCode: 0\nStdout: hi\nStderr: ", false));
        let (_, list) = home.api("GET", "/commands", &Value::Null);
        assert_eq!(list["commands"].as_array().unwrap().len(), 1, "{list}");
        home.assert_audit_verifies();
    });
}

#[test]
fn long_output_has_both_ends_and_can_be_read() {
    each_way(Home::new, QUERY, |_, agent| {
        let told = execute(agent, "seq 1 20000; echo oh >&2");
        let text = &told.text;
        assert!(
            text.starts_with("ExitCode: 0\nStdout: 1\n2\n3\n"),
            "{text:.80}"
        );
        // 108,894 characters, of which 30,000 are there.
        let gap = "\n\n... (78894 characters truncated) ...\n\n";
        assert_eq!(text.matches(gap).count(), 1);
        let (_, end) = text.split_once("\n20000\nStderr: oh\n[").unwrap();
        let (said, uri) = end.split_once(" Read it as the resource ").unwrap();
        assert!(
            said.starts_with("Output cut: 78894 characters left out. Full output: run r_"),
            "{said}"
        );
        let uri = uri.strip_suffix(".]").unwrap();
        let read = agent.request("resources/read", json!({ "uri": uri }));
        let whole = read["contents"][0]["text"].as_str().unwrap();
        assert!(whole.contains("\n10000\n") && whole.contains("oh\n"));
    });
}

#[test]
fn a_command_that_takes_too_long_is_ended_and_says_what_it_wrote() {
    let home = Home::new();
    let limit = "[limits]\ntimeout_default = \"2s\"\ntimeout_max = \"2s\"\n";
    let _server = home.serve_with(&format!("preset = \"blacklist\"\n{limit}"));
    let agent = Client::stdio(&home, &["--toolset", "execute-command"]);
    let loud = agent.begin(
        "ExecuteCommand",
        json!({ "command": "echo begun; echo oh >&2; sleep 1000" }),
    );
    let quiet = execute(&agent, "sleep 1000");
    let text = "Command timed out after 2 seconds.";
    assert_eq!(quiet, said(text, true));
    let text = "Command timed out after 2 seconds.\nStdout: begun\nStderr: oh";
    assert_eq!(agent.answered(loud), said(text, true));
}

#[test]
fn one_that_needs_a_person_answers_at_once_and_can_be_waited_for() {
    each_way(Home::strict, QUERY, |home, agent| {
        let told = execute(agent, "echo hi > made");
        assert!(!told.failed, "{told:?}");
        let run = home.newest();
        let id = run["short_id"].as_str().unwrap();
        let why = run["reason"]["text"].as_str().unwrap();
        assert!(why.starts_with("Waiting for approval (ap_"), "{why}");
        assert!(why.ends_with("Poll the run or continue with other work."));
        let text = format!(
            "{why}\nRun {id} is waiting. Call `wait` with id {id}, or go on with other work; do \
             not repeat the command."
        );
        assert_eq!(told, said(&text, false));
        assert!(!home.base().join("made").exists());
        let approve = format!("/commands/{id}/approve");
        let (status, said) = home.api("POST", &approve, &json!({}));
        assert_eq!(status, 200, "{said}");
        let waited = agent.call("wait", json!({ "id": id }));
        assert_eq!(waited.data["run"]["exit_code"], 0, "{waited:?}");
        assert!(home.base().join("made").exists());
    });
}

#[test]
fn what_ran_on_a_copy_says_what_it_did_there() {
    let home = Home::untouched();
    let _server = home.serve(&[]);
    let agent = Client::stdio(&home, &["--toolset", "execute-command"]);
    let told = execute(&agent, "echo hi > made; cat made");
    assert!(!told.failed, "{told:?}");
    let (why, rest) = told.text.split_once("\nRun r_").unwrap();
    assert!(why.contains("It ran on a copy (exit 0): "), "{why}");
    let (_, ended) = rest.split_once("do not repeat the command.\n").unwrap();
    assert_eq!(ended, "ExitCode: 0\nStdout: hi\nStderr: ");
    assert!(!home.base().join("made").exists());
}

#[test]
fn the_clients_person_is_asked_if_they_may_decide() {
    let home = Home::strict();
    let _server = home.serve(&[]);
    let flags = ["--toolset", "execute-command", "--ask"];
    let agent = Client::stdio_with(&home, &flags, json!({ "elicitation": {} }));
    let answer = |id: u64, content: Value| {
        let asked = agent.hears("a question", |one| {
            one["method"] == "elicitation/create" && one["id"] == json!(id)
        });
        let result = json!({ "action": "accept", "content": content });
        agent.send(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        asked
    };
    let call = agent.begin(
        "ExecuteCommand",
        json!({ "command": "touch made; echo ok" }),
    );
    let asked = answer(0, json!({ "decision": "approve" }));
    let question = asked["params"]["message"].as_str().unwrap();
    assert!(question.contains("$ touch made; echo ok"), "{question}");
    let text = "ExitCode: 0\nStdout: ok\nStderr: ";
    assert_eq!(agent.answered(call), said(text, false));
    let call = agent.begin("ExecuteCommand", json!({ "command": "touch more" }));
    answer(1, json!({ "decision": "reject", "reason": "Not now." }));
    let told = agent.answered(call);
    assert!(told.failed && told.text.contains("‘Not now.’"), "{told:?}");
    assert!(!home.base().join("more").exists());
}

#[test]
fn who_runs_it_is_whose_token_it_is() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let token = add_here(&home, "coder", "agent");
    let agent = Client::http(&server, &token, "toolset=execute-command&session=mine");
    execute(&agent, "echo hi");
    let run = home.newest();
    assert_eq!(run["requested_by"], "coder", "{run}");
    let id = run["session_id"].as_str().unwrap();
    let session = Caller::owner(&home).get(&format!("/sessions/{id}"));
    assert_eq!(session.expect(200)["label"], "mine");
}

#[test]
fn a_call_that_is_cancelled_ends_its_command() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let agent = Client::stdio(&home, &["--toolset", "execute-command"]);
    let call = agent.begin("ExecuteCommand", json!({ "command": "sleep 1000" }));
    eventually("it runs", || home.newest()["state"] == "running");
    agent.cancel(call);
    eventually("it was stopped", || home.newest()["state"] == "killed");
}

/// Without anybody who is told of progress, calls end before clients give up.
pub(super) fn a_call_that_may_not_last_says_that_its_command_goes_on() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let flags = ["--toolset", "execute-command", "--toolset", "terminal"];
    let agent = Client::stdio(&home, &flags);
    // They end when they are stopped.
    let command = "echo begun; sleep 1000";
    let alone = agent.begin("ExecuteCommand", json!({ "command": command }));
    let run = json!({ "action": "run", "command": command, "timeout": 300 });
    let run = agent.begin("terminal", run);
    let open = json!({ "action": "open", "terminal_name": "long", "description": "takes long",
                       "command": command, "timeout": 300 });
    let open = agent.begin("terminal", open);
    let goes_on = |text: &str| {
        let (head, rest) = text.split_once('\n').unwrap();
        let id = head.split_whitespace().find(|word| word.starts_with("r_"));
        let id = id.unwrap().trim_end_matches('.').to_owned();
        let expected = format!(
            "It takes longer than this call may, and goes on as run {id}. Call `wait` with id \
             {id} for the rest; do not repeat the command."
        );
        assert_eq!(head, expected);
        (id, rest.to_owned())
    };
    let told = agent.answered(alone);
    let (first, rest) = goes_on(&told.text);
    assert_eq!(rest, "Stdout: begun\nStderr: ");
    assert!(!told.failed);
    for call in [run, open] {
        let told = agent.answered(call);
        let (id, rest) = goes_on(&told.text);
        assert_eq!(rest, "begun\n");
        assert_eq!(told.data["error"], "running", "{told:?}");
        assert_eq!(told.data["metadata"]["id"], id.as_str());
        assert_eq!(home.get(&id)["state"], "running");
    }
    let stop = format!("/commands/{first}/stop");
    assert_eq!(home.api("POST", &stop, &json!({})).0, 200);
    let waited = agent.call("wait", json!({ "id": first }));
    assert_eq!(waited.data["run"]["state"], "killed", "{waited:?}");
    assert_eq!(waited.data["run"]["stdout"], "begun\n");
    let close = json!({ "action": "close", "terminal_name": "long" });
    assert_eq!(
        agent.call("terminal", close).text,
        "Terminal 'long' closed."
    );
}
