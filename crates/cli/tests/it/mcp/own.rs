//! Our own six tools.

use serde_json::{Value, json};

use super::{Client, decide, each_way, fields};
use crate::support::Home;

#[test]
fn a_command_runs_and_is_read() {
    each_way(Home::new, "", |_, agent| {
        let said = agent.call("run", json!({ "command": "echo hi; echo oh >&2; exit 3" }));
        assert_eq!(said.data["exit_code"], 3);
        assert_eq!(said.data["stdout"], "hi\n");
        assert_eq!(said.data["stderr"], "oh\n");
        assert!(said.text.starts_with("exit 3 in "), "{}", said.text);
        let read = agent.call("read", json!({ "id": said.data["id"], "lines": "1:1" }));
        assert_eq!(read.text, "1: hi");
    });
}

#[test]
fn there_are_six_of_them() {
    each_way(Home::new, "", |_, agent| {
        let tools = agent.tools();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(names, ["run", "read", "send", "wait", "list", "stop"]);
        assert_eq!(fields(&tools[5]), ["id"]);
        // What matters most comes first.
        let run = fields(&tools[0]);
        assert_eq!(run[..3], ["command", "description", "cwd"]);
    });
}

#[test]
fn every_answer_is_as_its_schema_says() {
    each_way(Home::strict, "", |_, agent| {
        let tools = agent.tools();
        let called = |name: &str, arguments: Value| {
            let said = agent.call(name, arguments);
            let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
            fits(&tool["outputSchema"], &said.data, name);
            said.data
        };
        called("list", json!({}));
        let id = called("run", json!({ "command": "echo hi" }))["id"].clone();
        called("run", json!({ "command": "sudo ls" }));
        called("run", json!({ "command": "ls /none" }));
        called("run", json!({ "command": "touch x" }));
        called("run", json!({ "command": "" }));
        called("run", json!({ "command": "ls", "background": true }));
        called("run", json!({ "command": "ls", "terminal": "t" }));
        called("send", json!({ "id": "t", "text": "ls" }));
        called("read", json!({ "id": "t" }));
        called("read", json!({ "id": id }));
        called("read", json!({ "id": id, "lines": "1:2" }));
        called("read", json!({ "id": id, "search": "hi" }));
        called("read", json!({ "id": "r_none" }));
        called("wait", json!({ "id": id }));
        called(
            "wait",
            json!({ "id": id, "until": "output", "pattern": "hi" }),
        );
        called("list", json!({}));
        called("stop", json!({ "id": "t" }));
    });
}

/// Checks what a program relies on: kinds, what is required, and nothing else.
fn fits(schema: &Value, value: &Value, place: &str) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let wanted = schema["type"].as_str().unwrap();
    let wanted = if wanted == "integer" {
        "number"
    } else {
        wanted
    };
    assert_eq!(kind, wanted, "{place}: {value}");
    for required in schema["required"].as_array().into_iter().flatten() {
        let name = required.as_str().unwrap();
        assert!(!value[name].is_null(), "{place}: no {name}: {value}");
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        let schema = &schema["properties"][name];
        assert!(schema.is_object(), "{place}: {name} is not in the schema");
        fits(schema, value, &format!("{place}.{name}"));
    }
    for (number, value) in value.as_array().into_iter().flatten().enumerate() {
        fits(&schema["items"], value, &format!("{place}[{number}]"));
    }
}

#[test]
fn a_command_is_given_what_it_needs() {
    each_way(Home::new, "", |home, agent| {
        std::fs::create_dir(home.base().join("below")).unwrap();
        let said = agent.call(
            "run",
            json!({ "command": "cat; echo $A; basename $PWD", "stdin": "in\n",
                    "env": { "A": "b c" }, "cwd": "below", "timeout": 60,
                    "description": "Look around" }),
        );
        assert_eq!(said.data["stdout"], "in\nb c\nbelow\n");
        let runs = agent.call("list", json!({ "what": "runs" })).data["runs"].clone();
        assert_eq!(runs[0]["description"], "Look around");
    });
}

#[test]
fn what_is_refused_says_why_and_what_to_do() {
    each_way(Home::strict, "", |_, agent| {
        let said = agent.call("run", json!({ "command": "sudo ls" }));
        let id = said.data["id"].as_str().unwrap();
        assert!(said.failed);
        assert_eq!(said.data["state"], "blocked");
        assert_eq!(said.data["status"], "rejected");
        assert_eq!(
            said.text,
            format!(
                "blocked · {id}\n\
                 Blocked by rule no-privileges: `sudo` raises privileges. Nothing was run, and no \
                 approval is possible.\n\
                 Do it with the rights there are, or ask a person to do it."
            )
        );
    });
}

#[test]
fn what_meets_a_wall_says_which() {
    each_way(Home::new, "", |_, agent| {
        let said = agent.call("run", json!({ "command": "touch /etc/x" }));
        assert_eq!(said.data["state"], "failed");
        assert!(!said.failed, "it did run");
        let told = "cannot write /etc/x: outside the sandbox: if it should be allowed, a person \
                    can add `/etc` to `write` of sandbox `default`";
        assert!(said.text.contains(told), "{}", said.text);
    });
}

#[test]
fn what_is_listed_says_how_it_ended_and_what_it_is_for() {
    each_way(Home::new, "", |_, agent| {
        let why = json!({ "command": "exit 3", "description": "Fail\nfor once" });
        let id = agent.call("run", why).data["id"].clone();
        let listed = agent.call("list", json!({ "what": "runs" })).text;
        let told = format!(
            "Runs:\n  {} failed, exit 3: exit 3 # Fail",
            id.as_str().unwrap()
        );
        assert_eq!(listed, told);
        let odd = agent.call("run", json!({ "command": "ls", "timeout": -1 }));
        assert!(
            odd.text.starts_with("-1 s is not valid as time limit"),
            "{odd:?}"
        );
    });
}

/// What an agent is told to do is something that it can.
#[test]
fn hints_are_for_the_tools_that_there_are() {
    for (toolset, tool, id, hint) in [
        ("weighlock", "wait", "id", "`list` shows them all."),
        ("shell", "wait", "id", "Give the id of an earlier answer."),
        ("bash", "TaskOutput", "task_id", "TaskList shows them all."),
        ("bash", "TaskStop", "task_id", "TaskList shows them all."),
    ] {
        let home = Home::new();
        let _server = home.serve(&[]);
        let agent = Client::stdio(&home, &["--toolset", toolset]);
        let said = agent.call(tool, json!({ id: "r_nothing" }));
        assert!(said.failed, "{said:?}");
        assert_eq!(said.data["error"]["hint"], hint, "{toolset}");
    }
}

#[test]
fn a_person_is_waited_for_and_quoted() {
    each_way(Home::strict, "", |home, agent| {
        let asked = |file: &str| {
            let said = agent.call("run", json!({ "command": format!("touch {file}") }));
            let approval = said.data["approval_id"].as_str().unwrap();
            assert!(!said.failed);
            assert_eq!(said.data["state"], "waiting");
            assert_eq!(said.data["status"], "pending");
            let told = format!(
                "Waiting for approval ({approval}). A person has been asked. It expires at "
            );
            assert!(said.text.contains(&told), "{}", said.text);
            let id = said.data["id"].as_str().unwrap();
            let next = format!("\nDo not repeat it: wait for {id}, or go on with other work.");
            assert!(said.text.ends_with(&next), "{}", said.text);
            said.data
        };
        let waited = |run: &Value, kind: &str, words: &str| {
            let waits = agent.begin("wait", json!({ "id": run["id"] }));
            decide(home, &run["approval_id"], kind, words);
            agent.answered(waits)
        };
        let me = home.me();

        let yes = waited(&asked("x"), "approve_once", "");
        assert_eq!(yes.data["run"]["exit_code"], 0);
        assert!(
            yes.text.ends_with(&format!("\nApproved by {me}.")),
            "{}",
            yes.text
        );
        let yes = waited(&asked("y"), "approve_once", "but only once");
        let quoted = format!("\nApproved by {me}: ‘but only once’");
        assert!(yes.text.ends_with(&quoted), "{}", yes.text);
        assert!(home.base().join("x").exists() && home.base().join("y").exists());

        let no = waited(&asked("z"), "reject", "Keep it as it is.");
        assert_eq!(no.data["met"], true);
        assert_eq!(no.data["run"]["state"], "rejected");
        let quoted = format!("Rejected by {me}: ‘Keep it as it is.’ Nothing was run.");
        assert!(no.text.contains(&quoted), "{}", no.text);
        assert!(!home.base().join("z").exists());
    });
}

#[test]
fn what_waits_is_listed_and_taken_back() {
    each_way(Home::strict, "", |_, agent| {
        let run = agent.call("run", json!({ "command": "touch x" })).data;
        let runs = agent.call("list", json!({})).data["runs"].clone();
        assert_eq!(
            (&runs[0]["id"], &runs[0]["state"]),
            (&run["id"], &json!("waiting"))
        );
        let not_yet = agent.call("wait", json!({ "id": run["id"], "timeout": 0 }));
        assert_eq!(not_yet.data["timed_out"], true);
        assert!(not_yet.text.starts_with("Not yet; "), "{}", not_yet.text);
        let back = agent.call("stop", json!({ "id": run["id"] }));
        assert_eq!(back.data["state"], "withdrawn");
        assert!(!back.failed, "that is what was asked for");
    });
}

#[test]
fn changes_are_held_until_a_person_has_seen_them() {
    each_way(Home::untouched, "", |home, agent| {
        let held = agent.call("run", json!({ "command": "touch x && echo made" }));
        assert_eq!(held.data["state"], "waiting");
        assert_eq!(held.data["exit_code"], 0);
        assert_eq!(held.data["stdout"], "made\n");
        assert_eq!(held.data["changes"], "1 file is created");
        let told = "It ran on a copy (exit 0): 1 file is created. A person has been asked to apply \
                    that. Later commands of this session see the changes already";
        assert!(held.text.contains(told), "{}", held.text);
        assert!(!home.base().join("x").exists());
        let seen = agent.call("run", json!({ "command": "ls" }));
        assert_eq!(seen.data["stdout"], "x\n");

        let waits = agent.begin("wait", json!({ "id": held.data["id"] }));
        decide(home, &held.data["approval_id"], "apply_effect", "");
        let applied = agent.answered(waits);
        assert_eq!(applied.data["run"]["state"], "succeeded");
        let told = format!(
            "Approved by {}. The previewed changes were applied (1 file).",
            home.me()
        );
        assert!(applied.text.contains(&told), "{}", applied.text);
        assert!(home.base().join("x").exists());
    });
}

#[test]
fn a_session_is_ones_own_unless_all_are_asked_for() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let [one, other] = ["one", "other"].map(|name| Client::stdio(&home, &["--session", name]));
    assert_eq!(one.call("list", json!({})).text, "Nothing has run yet.");
    one.call("run", json!({ "command": "echo 1" }));
    other.call("run", json!({ "command": "echo 2" }));
    let runs = |agent: &Client, all: bool| {
        let listed = agent.call("list", json!({ "all_sessions": all })).data;
        let runs = listed["runs"].as_array().unwrap().clone();
        let commands = runs.iter().map(|run| run["command"].clone());
        commands.collect::<Vec<_>>()
    };
    assert_eq!(runs(&one, false), ["echo 1"]);
    assert_eq!(runs(&other, false), ["echo 2"]);
    assert_eq!(runs(&one, true), ["echo 2", "echo 1"]);
    // Terminals of the same name are each session's own.
    one.call("run", json!({ "command": "cd /usr", "terminal": "t" }));
    let there = other.call(
        "run",
        json!({ "command": "cd /etc && pwd", "terminal": "t" }),
    );
    assert_eq!(there.data["stdout"], "/etc\n");
    let still = one.call("run", json!({ "command": "pwd", "terminal": "t" }));
    assert_eq!(still.data["stdout"], "/usr\n");
}

#[test]
fn a_terminal_that_is_opened_for_a_shell_is_that_shell() {
    each_way(Home::new, "", |_, agent| {
        let opened = agent.call("run", json!({ "command": "sh", "terminal": "t" }));
        assert_eq!(opened.data["state"], "running", "{}", opened.text);
        assert_eq!(opened.data["terminal"], "t");
        let next = "The shell is open: run commands with terminal t.";
        assert_eq!(opened.data["next"], next);
        let ran = agent.call("run", json!({ "command": "echo hi", "terminal": "t" }));
        assert_eq!(ran.data["stdout"], "hi\n", "{}", ran.text);
        let terminals = agent.call("list", json!({})).data["terminals"].clone();
        assert_eq!(terminals[0]["command"], "sh", "{terminals}");
    });
}

#[test]
fn a_description_can_be_required() {
    each_way(Home::new, "require_description=true", |_, agent| {
        let no = agent.call("run", json!({ "command": "true" }));
        assert_eq!(no.data["error"]["code"], "missing_description");
        let yes = agent.call("run", json!({ "command": "true", "description": "Try" }));
        assert_eq!(yes.data["exit_code"], 0);
    });
}

#[test]
fn what_is_ended_with_a_command_is_told_and_ending_twice_is_no_mistake() {
    each_way(Home::new, "", |_, agent| {
        let said = agent.call("run", json!({ "command": "sleep 600 & echo started" }));
        let told = "Ended with the command: sleep 600. To keep it, start it in the background or \
                    in a terminal.";
        assert_eq!(said.data["warnings"], json!([told]), "{}", said.text);
        let stopped = agent.call("stop", json!({ "id": said.data["id"] }));
        assert!(!stopped.failed, "{}", stopped.text);
        assert_eq!(stopped.data["exit_code"], 0);
    });
}

#[test]
fn a_token_that_does_not_count_is_said_at_the_start() {
    let mut home = Home::new();
    let _server = home.serve(&[]);
    home.set("WEIGHLOCK_TOKEN", "wl_bad");
    let done = home.call(&["mcp"]);
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(
        done.err.contains("WEIGHLOCK_TOKEN does not count"),
        "{}",
        done.err
    );
}

#[test]
fn a_secret_file_is_read_when_a_person_was_asked_first() {
    each_way(Home::untouched, "", |home, agent| {
        home.put("base/.env", "TOKEN=hunter2\n");
        let said = agent.call("run", json!({ "command": "grep -r TOKEN ." }));
        assert!(!said.text.contains("hunter2"), "{}", said.text);
        assert!(said.text.contains("secret files"), "{}", said.text);
        assert!(said.text.contains("ask_first"), "{}", said.text);
        let wish = json!({ "command": "grep -r TOKEN .", "ask_first": true });
        let said = agent.call("run", wish);
        let id = said.data["id"].clone();
        let run = home.get(id.as_str().expect("an id"));
        assert_eq!(run["state"], "waiting", "{run}");
        decide(home, &run["approval_id"], "approve_once", "");
        let said = agent.call("wait", json!({ "id": id }));
        assert!(said.text.contains("hunter2"), "{}", said.text);
    });
}
