//! Tasks of `Bash`: what goes on, or waits for a person.

use serde_json::{Value, json};

use super::bash::{home, told};
use super::{Client, each_way};
use crate::support::{Home, eventually};

#[test]
fn a_person_is_asked() {
    each_way(Home::strict, "toolset=bash", |home, agent| {
        let asked = told(agent.call("Bash", json!({ "command": "echo hi; touch made" })));
        let text = asked["stderr"].as_str().unwrap();
        assert!(text.starts_with("Waiting for approval (ap_"), "{text}");
        assert!(
            text.contains(". A person has been asked. It expires at "),
            "{text}"
        );
        let task = &asked["task_id"];
        assert!(text.contains(&format!(
            "use TaskOutput to wait for {}",
            task.as_str().unwrap()
        )));
        assert_eq!(
            (
                &asked["success"],
                &asked["exit_code"],
                &asked["duration_ms"],
                &asked["state"]
            ),
            (&json!(false), &json!(-1), &json!(0), &json!("waiting"))
        );
        let now = json!({ "task_id": task, "block": false });
        let waits = told(agent.call("TaskOutput", now));
        assert_eq!(
            (&waits["status"], &waits["output"]),
            (&json!("waiting"), &json!(""))
        );
        assert!(
            waits["message"]
                .as_str()
                .unwrap()
                .starts_with("Waiting for approval")
        );
        assert!(!home.base().join("made").exists());

        let waits = agent.begin("TaskOutput", json!({ "task_id": task }));
        answer(home, &asked, "approve", Value::Null);
        let ended = told(agent.answered(waits));
        assert_eq!(
            (&ended["status"], &ended["exit_code"], &ended["output"]),
            (&json!("completed"), &json!(0), &json!("hi\n"))
        );
        assert!(home.base().join("made").exists());
    });
}

#[test]
fn a_no_is_passed_on() {
    each_way(Home::strict, "toolset=bash", |home, agent| {
        let command = json!({ "command": "touch made", "run_in_background": true });
        let asked = told(agent.call("Bash", command));
        assert_eq!(asked["state"], "waiting", "{asked}");
        answer(home, &asked, "reject", json!({ "reason": "Use build." }));
        let ended = told(agent.call("TaskOutput", json!({ "task_id": asked["task_id"] })));
        assert_eq!(
            (&ended["status"], &ended["message"]),
            (
                &json!("failed"),
                &json!(format!(
                    "Rejected by {}: ‘Use build.’ Nothing was run.",
                    home.me()
                ))
            )
        );
        // What nobody has answered can be taken back.
        let asked = told(agent.call("Bash", json!({ "command": "touch other" })));
        let back = told(agent.call("TaskStop", json!({ "task_id": asked["task_id"] })));
        let message = format!("Withdrawn by {}. Nothing was run.", home.me());
        assert_eq!(
            (&back["status"], &back["message"]),
            (&json!("failed"), &json!(message))
        );
        assert!(!home.base().join("made").exists() && !home.base().join("other").exists());
    });
}

/// Answers the question about a run.
fn answer(home: &Home, asked: &Value, how: &str, body: Value) {
    let path = format!("/commands/{}/{how}", asked["id"].as_str().unwrap());
    let (status, run) = home.api("POST", &path, &body);
    assert_eq!(status, 200, "{run}");
}

#[test]
fn tasks_go_on_in_the_background() {
    each_way(home, "toolset=bash", |home, agent| {
        let command = "echo one; until test -e go; do sleep 0.01; done; echo two >&2; exit 4";
        let started = told(agent.call(
            "Bash",
            json!({ "command": command, "description": "Count", "run_in_background": true }),
        ));
        let task = started["task_id"].as_str().unwrap();
        let file = started["output_file"].as_str().unwrap();
        assert!(task.starts_with("bash-") && file.ends_with(&format!("/{task}.log")));
        assert_eq!(
            started,
            json!({ "success": true, "stdout": format!("Background task started: {task}"),
                    "stderr": "", "exit_code": 0, "duration_ms": 0, "task_id": task,
                    "output_file": file })
        );
        let mut output = String::new();
        eventually("it has begun", || {
            let now = json!({ "task_id": task, "block": false });
            let got = told(agent.call("TaskOutput", now));
            assert_eq!(got["status"], "running");
            output.push_str(got["output"].as_str().unwrap());
            output == "one\n"
        });
        let mut listed = told(agent.call("TaskList", json!({})));
        assert!(listed["tasks"][0]["started_at"].take().is_string());
        assert_eq!(
            listed,
            json!({ "tasks": [{ "task_id": task, "status": "running", "command": command,
                                "description": "Count", "started_at": null,
                                "output_file": file }] })
        );
        let short = json!({ "task_id": task, "timeout": 1 });
        assert_eq!(told(agent.call("TaskOutput", short))["status"], "running");

        let waits = agent.begin("TaskOutput", json!({ "task_id": task, "timeout": 600_000 }));
        std::fs::write(home.base().join("go"), "").unwrap();
        let expected = json!({ "task_id": task, "status": "failed", "exit_code": 4,
                               "output": "two\n", "truncated": false, "more": false,
                               "output_file": file });
        assert_eq!(told(agent.answered(waits)), expected);
        let again = told(agent.call("TaskOutput", json!({ "task_id": task })));
        assert_eq!(
            (&again["status"], &again["output"]),
            (&json!("failed"), &json!(""))
        );
        assert_eq!(std::fs::read_to_string(file).unwrap(), "one\ntwo\n");
    });
}

#[test]
fn tasks_are_stopped() {
    each_way(home, "toolset=bash", |home, agent| {
        let command = json!({ "command": "sleep 600 & wait", "run_in_background": true });
        let started = told(agent.call("Bash", command));
        let task = &started["task_id"];
        let mut stopped = told(agent.call("TaskStop", json!({ "task_id": task })));
        let message = stopped["message"].take();
        let message = message.as_str().unwrap();
        assert!(
            message.starts_with(&format!("Stopped by {}. ", home.me())),
            "{message}"
        );
        assert_eq!(
            stopped,
            json!({ "task_id": task, "status": "stopped", "message": null,
                    "command": "sleep 600 & wait" })
        );
        let got = told(agent.call("TaskOutput", json!({ "task_id": task })));
        assert_eq!(got["status"], "stopped");
        let again = agent.call("TaskStop", json!({ "task_id": task }));
        assert_eq!(
            (again.failed, &again.data["error"]["code"]),
            (true, &json!("run_ended"))
        );
    });
}

#[test]
fn much_output_of_a_task_comes_in_pieces() {
    let home = home();
    let _server = home.serve(&[]);
    let agent = Client::stdio(&home, &["--toolset", "bash"]);
    let command = json!({ "command": "seq 100000", "run_in_background": true });
    let started = told(agent.call("Bash", command));
    let task = &started["task_id"];
    let first = told(agent.call("TaskOutput", json!({ "task_id": task })));
    let text = first["output"].as_str().unwrap();
    assert!(text.starts_with("1\n2\n3\n") && text.contains(" characters truncated) ..."));
    assert_eq!(
        (&first["truncated"], &first["more"]),
        (&json!(true), &json!(true))
    );
    let mut last = first;
    while last["more"] == true {
        last = told(agent.call("TaskOutput", json!({ "task_id": task })));
    }
    assert!(last["output"].as_str().unwrap().ends_with("\n100000\n"));
}

/// The longest test here: clients give up after a minute, and calls answer
/// before that.
pub(super) fn what_takes_too_long_goes_on() {
    let home = home();
    let _server = home.serve(&[]);
    let bash = Client::stdio(&home, &["--toolset", "bash"]);
    let shell = Client::stdio(&home, &["--toolset", "shell"]);
    let command = "echo begun; until test -e go; do sleep 0.1; done; echo done";
    let first = bash.begin("Bash", json!({ "command": command, "timeout": 600_000 }));
    let other = shell.begin("run_command", json!({ "command": command, "timeout": 600 }));

    let left = told(bash.answered(first));
    let task = left["task_id"].as_str().unwrap();
    assert_eq!(
        (
            &left["success"],
            &left["stdout"],
            &left["exit_code"],
            &left["state"]
        ),
        (
            &json!(true),
            &json!("begun\n"),
            &json!(0),
            &json!("running")
        )
    );
    let text = left["stderr"].as_str().unwrap();
    assert!(
        text.starts_with("Still running after ") && text.contains(task),
        "{text}"
    );
    let listed = told(bash.call("TaskList", json!({})));
    assert_eq!(listed["tasks"][0]["task_id"], task);

    let handle = shell.answered(other);
    let id = handle.data["id"].as_str().unwrap();
    assert_eq!(
        handle.text,
        format!("Still running: {id}. Do not run it again; wait for {id}.\n\nSTDOUT:\nbegun")
    );
    assert_eq!(handle.data["state"], "running");
    assert!(handle.data["exit_code"].is_null() && !handle.failed);

    std::fs::write(home.base().join("go"), "").unwrap();
    let ended = told(bash.call("TaskOutput", json!({ "task_id": task })));
    assert_eq!(
        (&ended["status"], &ended["output"]),
        (&json!("completed"), &json!("begun\ndone\n"))
    );
    let ended = shell.call("wait", json!({ "id": id }));
    assert_eq!(ended.data["run"]["stdout"], "begun\ndone\n");
}

/// Where the client's person is asked, the call goes on with the answer; and
/// is cut as it would have been without.
#[test]
fn the_clients_person_is_asked() {
    let home = Home::strict();
    let _server = home.serve(&[]);
    let flags = ["--toolset", "bash", "--ask"];
    let agent = Client::stdio_with(&home, &flags, json!({ "elicitation": {} }));
    let command = json!({ "command": "touch made; seq 10000" });
    let call = agent.begin("Bash", command);
    let asked = agent.hears("a question", |message| {
        message["method"] == "elicitation/create"
    });
    let fields = &asked["params"]["requestedSchema"]["properties"];
    assert_eq!(
        fields["decision"]["enum"],
        json!(["approve", "reject"]),
        "{asked}"
    );
    assert_eq!(fields["reason"]["type"], "string", "{asked}");
    let content = json!({ "decision": "approve", "reason": null });
    let answer = json!({ "action": "accept", "content": content });
    agent.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    let said = told(agent.answered(call));
    let text = said["stdout"].as_str().unwrap();
    assert_eq!(
        (&said["success"], &said["truncated"]),
        (&json!(true), &json!(true))
    );
    assert!(
        text.starts_with("1\n2\n") && text.ends_with("\n10000\n"),
        "{text}"
    );
    assert!(home.base().join("made").exists());
}
