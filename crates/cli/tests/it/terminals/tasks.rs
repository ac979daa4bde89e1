//! What goes on while nobody waits for it.

use std::fs::File;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};

use super::Desk;
use crate::crew::text;
use crate::support::eventually;

impl Desk {
    fn background(&self, command: &str) -> Value {
        let body = json!({ "command": command, "background": true, "description": "a task",
                           "env": self.env, "session_id": "all" });
        self.coder().post("/commands", &body).expect(202)
    }

    fn task(&self, id: &str) -> Value {
        self.coder().get(&format!("/tasks/{id}")).expect(200)
    }

    fn new_output(&self, id: &str, more: &str) -> Value {
        self.coder()
            .get(&format!("/tasks/{id}/output{more}"))
            .expect(200)
    }

    fn until(&self, id: &str, pattern: &str) {
        let body = json!({ "for": [{ "id": id, "until": "output", "pattern": pattern }] });
        assert_eq!(self.coder().post("/wait", &body).expect(200)["met"], true);
    }
}

#[test]
fn a_task_has_an_id_a_file_and_new_output_since_the_last_call() {
    let desk = Desk::lenient();
    let gate = desk.gate();
    let run = desk.background("echo one; read x < gate; echo two >&2; exit 3");
    let task = desk.task(&text(&run, "command_id"));
    let id = text(&task, "task_id");
    assert!(id.starts_with("bash-"), "{id}");
    assert_eq!(text(&task, "status"), "running");
    assert_eq!(text(&task, "description"), "a task");
    desk.until(&id, "one");
    assert_eq!(text(&desk.new_output(&id, ""), "output"), "one\n");
    // Who asks for a place of their own changes nothing for the next call.
    let beyond = desk.new_output(&id, &format!("?from={}", u64::MAX));
    assert_eq!(text(&beyond, "output"), "");
    // Another reader of the same principal has read nothing yet.
    assert_eq!(
        text(&desk.new_output(&id, "?reader=other"), "output"),
        "one\n"
    );
    assert_eq!(text(&desk.new_output(&id, ""), "output"), "");
    // All of it for whoever asks for that, and for others.
    assert_eq!(text(&desk.new_output(&id, "?from=0"), "output"), "one\n");
    let file = text(&task, "output_file");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n");
    std::fs::write(&gate, "x\n").unwrap();
    let ended = desk.new_output(&id, "?block=true");
    assert_eq!(text(&ended, "output"), "two\n");
    assert_eq!(text(&ended["task"], "status"), "failed");
    assert_eq!(ended["task"]["exit_code"], 3);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\ntwo\n");
    // Later runs of its session can read the file, and those of others not.
    let look = |session: &str| {
        let body = json!({ "command": format!("cat {file}"), "session_id": session });
        desk.coder().post("/commands", &body).json()["exit_code"].clone()
    };
    assert_eq!(look("all"), 0);
    assert_ne!(look("another"), 0);
}

#[test]
fn a_clock_that_is_far_ahead_does_not_remove_the_file_of_what_goes_on() {
    let mut desk = Desk::lenient();
    let gate = desk.gate();
    let run = desk.background("echo one; read x < gate; echo two");
    let id = text(&run, "command_id");
    desk.until(&id, "one");
    let file = PathBuf::from(text(&desk.task(&id), "output_file"));
    let left = file.with_file_name("bash-left.log");
    std::fs::write(&left, "").unwrap();
    desk.kill();
    for file in [&file, &left] {
        let file = File::options().write(true).open(file).unwrap();
        file.set_modified(UNIX_EPOCH).unwrap();
    }
    desk.serve();
    assert!(!left.exists(), "old files of nobody are removed");
    std::fs::write(&gate, "x\n").unwrap();
    eventually("the rest is there", || {
        std::fs::read_to_string(&file).is_ok_and(|output| output == "one\ntwo\n")
    });
}

#[test]
fn a_call_that_blocks_comes_back_when_its_time_is_up() {
    let desk = Desk::lenient();
    let id = text(&desk.background("echo begun; sleep 100"), "command_id");
    desk.until(&id, "begun");
    let output = desk.new_output(&id, "?block=true&timeout_ms=50");
    assert_eq!(text(&output["task"], "status"), "running");
    assert_eq!(text(&output, "output"), "begun\n");
}

#[test]
fn tasks_are_listed_with_what_they_use_and_what_was_left_running() {
    let desk = Desk::lenient();
    let busy = text(&desk.background("sleep 1000 & sleep 1000"), "command_id");
    let left = json!({ "command": "sleep 1000 & echo started", "keep": true, "env": desk.env });
    let left = text(&desk.coder().post("/commands", &left).json(), "command_id");
    let tasks = || {
        let list = desk.coder().get("/tasks").expect(200);
        list["tasks"].as_array().cloned().unwrap_or_default()
    };
    let find = |id: &str| {
        tasks()
            .into_iter()
            .find(|task| text(task, "command_id") == id)
    };
    eventually("both sleepers", || {
        find(&busy).is_some_and(|task| {
            let processes = task["processes"].as_array().unwrap();
            let sleepers = { processes.iter() }
                .filter(|process| text(process, "command").starts_with("sleep"));
            sleepers.count() == 2
        })
    });
    let busy_task = find(&busy).unwrap();
    assert!(busy_task["memory_bytes"].as_u64().unwrap() > 0);
    assert!(busy_task["until"].is_string(), "{busy_task}");
    let adopted = find(&left).expect("what was left is a task");
    assert_eq!(adopted["adopted"], true);
    assert_eq!(text(&adopted, "status"), "running");
    assert_eq!(text(&adopted, "requested_by"), "coder");
    for id in [&busy, &left] {
        let stop = format!("/commands/{id}/stop");
        desk.coder().post(&stop, &json!({ "grace_ms": 0 }));
        eventually("stopped", || desk.task(id)["processes"] == json!([]));
    }
    assert_eq!(text(&desk.task(&busy), "status"), "stopped");
    desk.home.assert_gone();
}

#[test]
fn an_output_file_is_bounded_and_says_so() {
    let home = crate::support::Home::new();
    let desk = Desk::at(home, "[output]\nper_run_mib = 1\n", json!({}));
    let run = desk.background("yes | head -c 5000000");
    let id = text(&run, "command_id");
    desk.new_output(&id, "?block=true");
    let file = std::fs::read(text(&desk.task(&id), "output_file")).unwrap();
    assert!(file.len() < 2 * 1024 * 1024, "{}", file.len());
    assert!(String::from_utf8_lossy(&file).contains("this file is full"));
}

#[test]
fn half_a_character_comes_with_its_other_half() {
    let desk = Desk::lenient();
    let gate = desk.gate();
    let run = desk.background(r"printf 'up\na\303'; read x < gate; printf '\251b\n'");
    let id = text(&desk.task(&text(&run, "command_id")), "task_id");
    desk.until(&id, "up");
    assert_eq!(text(&desk.new_output(&id, ""), "output"), "up\na");
    std::fs::write(gate, "go\n").unwrap();
    let rest = desk.new_output(&id, "?block=true");
    assert_eq!(text(&rest, "output"), "éb\n");
}
