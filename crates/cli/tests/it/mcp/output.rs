//! What commands write, and how it is read.

use serde_json::{Value, json};

use super::each_way;
use crate::support::{Home, have};

#[test]
fn what_takes_too_long_is_ended_and_says_so() {
    each_way(Home::new, "", |_, agent| {
        let said = agent.call(
            "run",
            json!({ "command": "echo begun; sleep 60", "timeout": 1.5 }),
        );
        assert_eq!(said.data["state"], "timed_out");
        assert_eq!(said.data["stdout"], "begun\n");
        assert!(
            said.text.contains("Stopped after 1.5 s (limit)."),
            "{}",
            said.text
        );
    });
}

#[test]
fn long_output_is_cut_and_read_in_pieces() {
    each_way(Home::new, "", |_, agent| {
        let all: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
        let said = agent.call("run", json!({ "command": "seq 1 100000" }));
        let id = &said.data["id"];
        let left_out = all.len() as u64 - 30_000;
        assert_eq!(said.data["left_out_chars"], left_out);
        let told = format!(
            "\n[{left_out} characters left out: read {} with lines 1:100000, or search]",
            id.as_str().unwrap()
        );
        assert!(said.text.ends_with(&told), "{told}");

        let mut read = String::new();
        let mut cursor = json!(0);
        loop {
            let piece = agent.call("read", json!({ "id": id, "cursor": cursor }));
            read.push_str(piece.data["text"].as_str().unwrap());
            cursor = piece.data["cursor"].clone();
            if piece.data["more"] == false {
                break;
            }
            let told = format!(
                "\n[more: read {} with cursor {cursor}]",
                id.as_str().unwrap()
            );
            assert!(piece.text.ends_with(&told), "{told}");
        }
        assert_eq!(read, all);

        let reads = |arguments: Value| {
            let mut wanted = json!({ "id": id });
            let more = arguments.as_object().unwrap().clone();
            wanted.as_object_mut().unwrap().extend(more);
            agent.call("read", wanted).text
        };
        assert_eq!(
            reads(json!({ "lines": "5000:5001" })),
            "5000: 5000\n5001: 5001"
        );
        assert_eq!(reads(json!({ "lines": "-1" })), "100000: 100000");
        assert_eq!(
            reads(json!({ "lines": "99999:200000" })),
            "99999: 99999\n100000: 100000"
        );
        assert_eq!(reads(json!({ "search": "^77077$" })), "77077: 77077");
        assert_eq!(reads(json!({ "search": "x" })), "[no line matches]");
        assert_eq!(
            reads(json!({ "lines": "7:6" })),
            "[no such lines; there are 100000]"
        );
        let most = reads(json!({ "lines": "1:100000" }));
        assert!(most.ends_with("\n2000: 2000\n[more: lines 2001:100000]"));
        let over = format!(
            "[nothing from byte 900000 on; {} is succeeded]",
            id.as_str().unwrap()
        );
        assert_eq!(reads(json!({ "cursor": 900_000 })), over);
    });
}

#[test]
fn a_search_that_finds_too_much_is_continued() {
    each_way(Home::new, "", |_, agent| {
        let id = agent.call("run", json!({ "command": "seq 15000" })).data["id"].clone();
        let reads = |lines: Value| {
            let asked = json!({ "id": id, "search": "[05]$", "lines": lines });
            agent.call("read", asked)
        };
        let wanted = |numbers: std::ops::RangeInclusive<u32>| {
            let lines = numbers
                .step_by(5)
                .map(|number| format!("{number}: {number}"));
            lines.collect::<Vec<_>>().join("\n")
        };
        let first = reads(Value::Null);
        let next = "\n[more match: search again with lines 10001:]";
        assert!(first.text == wanted(5..=10_000) + next, "{}", first.text);
        assert_eq!(first.data["more"], true);
        let second = reads(json!("10001:"));
        assert!(second.text == wanted(10_005..=15_000), "{}", second.text);
        assert_eq!(second.data["more"], false);
    });
}

#[test]
fn no_character_is_cut_in_two() {
    each_way(Home::new, "", |_, agent| {
        // Three bytes each, so that no piece ends between two of them.
        let wanted = "€".repeat(50_000);
        let command = "printf '€%.0s' $(seq 50000)";
        let id = agent.call("run", json!({ "command": command })).data["id"].clone();
        let mut read = String::new();
        let mut cursor = json!(0);
        while read.len() < wanted.len() {
            let piece = agent.call("read", json!({ "id": id, "cursor": cursor }));
            read.push_str(piece.data["text"].as_str().unwrap());
            cursor = piece.data["cursor"].clone();
        }
        assert!(read == wanted);
    });
}

#[test]
fn what_is_no_text_is_not_shown() {
    each_way(Home::new, "", |_, agent| {
        let said = agent.call("run", json!({ "command": "printf '\\000\\001\\377'" }));
        assert_eq!(said.data["stdout"], "[binary output, 3 bytes]");
        assert_eq!(said.data["cursor"], 3);
        assert!(
            said.text.contains("\n[binary output, 3 bytes]\n"),
            "{}",
            said.text
        );
    });
}

#[test]
fn what_goes_on_is_waited_for() {
    if !have(&["python3"]) {
        return;
    }
    each_way(Home::new, "", |_, agent| {
        let serve = "echo one; echo two; exec python3 -m http.server 8123";
        let begun = agent.call("run", json!({ "command": serve, "background": true }));
        let id = begun.data["id"].clone();
        assert_eq!(begun.data["state"], "running");
        let told = format!(
            "It goes on: wait for {0}, read {0}, or stop {0}.",
            id.as_str().unwrap()
        );
        assert!(begun.text.ends_with(&told), "{}", begun.text);

        let line = json!({ "id": id, "until": "output", "pattern": "^t.o$" });
        let line = agent.call("wait", line);
        assert_eq!(
            (&line.data["met"], &line.data["line"]),
            (&json!(true), &json!("two"))
        );
        let cursor = json!({ "id": id, "until": "output", "pattern": "one", "cursor": 4,
                             "timeout": 0 });
        assert_eq!(agent.call("wait", cursor).data["timed_out"], true);
        let port = agent.call("wait", json!({ "id": id, "until": "port", "port": 8123 }));
        assert_eq!(port.data["port"], 8123);
        assert!(
            port.text.starts_with("listens on port 8123\n"),
            "{}",
            port.text
        );
        let idle = agent.call("wait", json!({ "id": id, "until": "idle", "ms": 50 }));
        assert_eq!(idle.data["met"], true);

        let tasks = agent.call("list", json!({ "what": "tasks" })).data["tasks"].clone();
        assert_eq!((&tasks[0]["id"], &tasks[0]["ports"]), (&id, &json!([8123])));
        let stopped = agent.call("stop", json!({ "id": id }));
        assert_eq!(stopped.data["state"], "killed");
        let never = agent.call(
            "wait",
            json!({ "id": id, "until": "output", "pattern": "three" }),
        );
        assert!(!never.failed);
        assert_eq!(never.data["met"], false);
        let told = "It will not happen: the run has ended.\n";
        assert!(never.text.starts_with(told), "{}", never.text);
    });
}
