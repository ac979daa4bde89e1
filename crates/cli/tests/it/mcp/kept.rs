//! Answers that nobody was there for.

use std::io::{BufRead, Read};

use serde_json::{Value, json};

use super::wire::{call, greeted, next_data, next_id, open_post, resume};
use crate::caller::{Caller, read_head};
use crate::support::Home;

#[test]
fn of_large_answers_only_the_newest_are_kept() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let agent = greeted(&server, &home.token(&home.me()));
    let writes = json!({ "command": "head -c 32768 /dev/zero | tr '\\0' '\\1'" });
    let (_, said) = whole(&agent, &call("run", writes));
    let id = &said["result"]["structuredContent"]["id"];
    // Each byte takes six as it is sent, and stands there twice: two such
    // answers are less than is kept, three are more.
    let read = call("read", json!({ "id": id, "cursor": 0 }));
    let answers: Vec<String> = (0..4).map(|_| whole(&agent, &read).0).collect();
    whole(&agent, &call("list", json!({})));
    let kept: Vec<bool> = { answers.iter() }
        .map(|event| {
            let mut text = String::new();
            resume(&agent, event).read_to_string(&mut text).unwrap();
            text.contains("\\u0001")
        })
        .collect();
    assert_eq!(kept, [false, false, true, true]);
}

/// Posts a request and reads the answer to its end; returns its first event.
fn whole(agent: &Caller, request: &Value) -> (String, Value) {
    let mut line = open_post(agent, request);
    assert_eq!(read_head(&mut line).0, 200);
    let first = next_id(&mut line);
    let answer = next_data(&mut line);
    while line.read_line(&mut String::new()).unwrap() > 0 {}
    (first, answer)
}
