//! Many calls at once.

use std::io::{BufReader, Read, Write};

use serde_json::{Value, json};

use super::client::REVISION;
use super::revisions::{ask_as, with_meta};
use super::wire::{greeted, hello, open_post, post, request, speaking};
use super::{Client, each_way};
use crate::caller::{Caller, add, read_head};
use crate::support::{Home, eventually};

/// What one principal may have under way.
const MOST: usize = 96;

/// Sessions that one principal may have.
const SESSIONS: usize = 64;

/// Connections that `weighlock mcp` keeps while nothing is asked.
const MOST_IDLE: usize = 8;

#[test]
fn each_of_fifty_calls_is_answered_by_itself() {
    each_way(Home::new, "", |home, agent| {
        // One waits for the others: it ends once they have.
        let gate = home.base().join("gate");
        let command = "while ! test -e gate; do sleep 0.01; done; echo slow";
        let slow = agent.begin("run", json!({ "command": command }));
        let calls: Vec<u64> = (0..50)
            .map(|number| agent.begin("run", json!({ "command": format!("echo {number}") })))
            .collect();
        for (number, call) in calls.into_iter().enumerate() {
            let said = agent.answered(call);
            assert_eq!(said.data["stdout"], format!("{number}\n"));
        }
        assert!(!agent.has_answer(slow));
        std::fs::write(gate, "").unwrap();
        assert_eq!(agent.answered(slow).data["stdout"], "slow\n");
    });
}

#[test]
fn calls_that_are_over_leave_few_connections() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let agent = Client::stdio(&home, &[]);
    let task = json!({ "command": "sleep 600", "background": true });
    let task = json!({ "id": agent.call("run", task).data["id"] });
    let before = sockets(agent.pid());
    let waits: Vec<u64> = { 0..3 * MOST_IDLE }
        .map(|_| agent.begin("wait", task.clone()))
        .collect();
    eventually("each has a connection", || {
        sockets(agent.pid()) >= before + waits.len() - 1
    });
    agent.call("stop", task);
    for wait in waits {
        assert_eq!(agent.answered(wait).data["met"], true);
    }
    eventually("most are closed", || {
        sockets(agent.pid()) < before + MOST_IDLE
    });
}

/// How many sockets a process has.
fn sockets(pid: u32) -> usize {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let links = all.filter_map(|one| std::fs::read_link(one.ok()?.path()).ok());
    links
        .filter(|link| link.to_string_lossy().starts_with("socket:"))
        .count()
}

#[test]
fn whose_places_are_taken_is_refused_until_one_is_free() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let agent = greeted(&server, &home.token(&home.me()));
    let other = add(&home, "other", "operator", json!({}));
    let other = greeted(&server, &other);
    let ping = request("ping", json!({}));
    // Whoever is told to go on has a place.
    let half = agent.with("expect", "100-continue");
    let mut all: Vec<_> = (0..MOST)
        .map(|number| {
            let ping = json!({ "jsonrpc": "2.0", "id": number, "method": "ping" }).to_string();
            let mut line = half.begin("POST", "/mcp", ping.len());
            assert_eq!(read_head(&mut BufReader::new(&mut line)).0, 100);
            (line, ping)
        })
        .collect();
    let refused = agent.send("POST", "/mcp", ping.to_string().as_bytes());
    assert_eq!(refused.status, 429);
    assert_eq!(
        String::from_utf8_lossy(&refused.bytes),
        "too many calls are under way; wait for one of them"
    );
    assert_eq!(post(&other, "", &ping).1["result"], json!({}));

    let (mut line, text) = all.pop().unwrap();
    line.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    line.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    eventually("there is a place", || {
        read_head(&mut open_post(&agent, &ping)).0 == 200
    });
    drop(all);
}

#[test]
fn a_second_request_with_an_id_that_is_in_use_is_refused() {
    each_way(Home::new, "", |home, agent| {
        let call = |id: u64, command: &str| {
            let params = json!({ "name": "run", "arguments": { "command": command } });
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
        };
        let gate = "touch at; while ! test -e gate; do sleep 0.01; done; echo first";
        let first = agent.begin("run", json!({ "command": gate }));
        eventually("it runs", || home.base().join("at").exists());
        agent.send(call(first, "touch second"));
        let is_refusal = |message: &Value| message["id"] == first && message["error"].is_object();
        let refused = agent.hears("a refusal", is_refusal);
        let error = &refused["error"];
        assert_eq!(
            (&error["code"], &error["data"]["code"]),
            (&json!(-32600), &json!("id_in_use"))
        );
        agent.forget();
        std::fs::write(home.base().join("gate"), "").unwrap();
        assert_eq!(agent.answered(first).data["stdout"], "first\n");
        assert!(!home.base().join("second").exists());
        // It is free now.
        agent.forget();
        agent.send(call(first, "echo third"));
        assert_eq!(agent.answered(first).data["stdout"], "third\n");
    });
}

#[test]
fn who_has_no_session_takes_nobody_elses_away() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let token = home.token(&home.me());
    let all: Vec<Caller> = (0..SESSIONS).map(|_| greeted(&server, &token)).collect();
    let ping = |agent: &Caller| {
        let mut line = open_post(agent, &request("ping", json!({})));
        read_head(&mut line).0
    };
    let list = || {
        let params = with_meta(json!({}), &json!({}));
        ask_as(&server, &token, "", "tools/list", params)
    };
    assert_eq!(list()["result"]["tools"][0]["name"], "run");
    assert!(all.iter().all(|agent| ping(agent) == 200));
    // One session more is what makes the one go that was silent the longest.
    let more = greeted(&server, &token);
    assert_eq!((ping(&all[0]), ping(&more)), (404, 200));
    // Where each is in use there is no place for another, and still an answer.
    let in_use = all[1..].iter().chain([&more]);
    let listening: Vec<_> = in_use
        .map(|agent| {
            let mut line = BufReader::new(agent.open("GET", "/mcp", b""));
            assert_eq!(read_head(&mut line).0, 200);
            line
        })
        .collect();
    let hello = request("initialize", hello(REVISION));
    let mut line = open_post(&speaking(&server).bearing(&token), &hello);
    assert_eq!(read_head(&mut line).0, 429);
    assert_eq!(list()["result"]["tools"][0]["name"], "run");
    drop(listening);
}
