//! A client's person is asked where the protocol has no questions in the middle
//! of a call: instead of an answer, and the call is made again with theirs.

use serde_json::{Value, json};

use super::ask::{able, accept};
use super::decide;
use super::revisions::{Asks, ask_as, each_way_without_handshake, with_meta};
use crate::caller::{add, audit};
use crate::support::{Home, eventually};

/// A call of a tool, as it is made and made again.
fn call(tool: &str, arguments: Value) -> Value {
    json!({ "name": tool, "arguments": arguments })
}

fn touch() -> Value {
    call(
        "run",
        json!({ "command": "touch x", "description": "Make x" }),
    )
}

/// Makes a call whose answer is a question; returns that.
#[track_caller]
fn asked(ask: Asks<'_>, call: &Value) -> Value {
    let answer = ask("tools/call", call.clone());
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    answer["result"].clone()
}

fn message(question: &Value) -> &str {
    let request = &question["inputRequests"]["approval"];
    assert_eq!(request["method"], "elicitation/create");
    request["params"]["message"].as_str().unwrap()
}

/// The same call again, with what came back.
fn again(call: &Value, question: &Value, answer: Value) -> Value {
    let mut again = call.clone();
    again["requestState"] = question["requestState"].clone();
    again["inputResponses"] = json!({ "approval": answer });
    again
}

/// Makes a call whose answer is one.
#[track_caller]
fn done(ask: Asks<'_>, call: Value) -> Value {
    let answer = ask("tools/call", call);
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    answer["result"].clone()
}

/// Makes a call that is refused for what it says about an earlier one.
#[track_caller]
fn refused(ask: Asks<'_>, call: Value) {
    let answer = ask("tools/call", call);
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let code = &answer["error"]["data"]["code"];
    assert_eq!(code, "request_state_refused", "{answer}");
}

fn runs(home: &Home) -> Vec<Value> {
    let (_, list) = home.api("GET", "/commands?limit=50", &Value::Null);
    list["commands"].as_array().unwrap().clone()
}

#[test]
fn a_yes_is_a_yes_and_the_record_says_how() {
    each_way_without_handshake(Home::strict, "ask=true", able(), |home, ask| {
        let call = touch();
        let question = asked(ask, &call);
        let text = message(&question);
        assert!(text.contains("\n$ touch x\n"), "{text}");
        assert!(text.contains("The agent says: “Make x”"), "{text}");
        let schema = &question["inputRequests"]["approval"]["params"]["requestedSchema"];
        assert_eq!(
            schema["properties"]["decision"]["enum"],
            json!(["approve", "reject"])
        );
        let yes = again(&call, &question, accept("approve", "fine"));
        let ran = done(ask, yes.clone());
        assert_eq!(ran["structuredContent"]["exit_code"], 0, "{ran}");
        assert!(home.base().join("x").exists());
        let entries = audit(home, "kind=approval.approved").into_iter();
        let through = entries.filter(|entry| entry.to_string().contains("elicitation"));
        assert_eq!(through.count(), 1);
        // An answer that got lost is had by making the call once more; nothing
        // is decided or run again.
        std::fs::remove_file(home.base().join("x")).unwrap();
        let no = again(&call, &question, accept("reject", ""));
        for repeated in [yes, no] {
            let told = done(ask, repeated);
            assert_eq!(
                told["structuredContent"]["id"],
                ran["structuredContent"]["id"]
            );
            assert_eq!(told["structuredContent"]["state"], "succeeded");
        }
        assert_eq!(runs(home).len(), 1);
        assert!(!home.base().join("x").exists());
    });
}

#[test]
fn a_no_is_a_no_and_nothing_said_is_nothing() {
    each_way_without_handshake(Home::strict, "ask=true", able(), |home, ask| {
        let call = touch();
        for (answer, state) in [
            (accept("reject", "Not today."), "rejected"),
            (json!({ "action": "decline" }), "rejected"),
            (json!({ "action": "cancel" }), "waiting"),
            (accept("maybe", ""), "waiting"),
            (json!({ "action": "accept" }), "waiting"),
            (json!(12345), "waiting"),
        ] {
            let question = asked(ask, &call);
            let told = done(ask, again(&call, &question, answer.clone()));
            let data = &told["structuredContent"];
            assert_eq!(data["state"], state, "{answer}");
            assert_eq!(told["isError"], state == "rejected", "{answer}");
            if answer["content"]["reason"] == "Not today." {
                let text = told["content"][0]["text"].as_str().unwrap();
                assert!(text.contains("‘Not today.’"), "{text}");
            }
        }
        assert!(!home.base().join("x").exists());
    });
}

#[test]
fn a_question_that_did_not_come_back_is_put_again() {
    each_way_without_handshake(Home::strict, "ask=true", able(), |home, ask| {
        let call = touch();
        let first = asked(ask, &call);
        let mut lost = again(&call, &first, Value::Null);
        lost["inputResponses"] = json!({ "other": accept("approve", "") });
        let second = asked(ask, &lost);
        assert_eq!(message(&second), message(&first));
        assert_eq!(runs(home).len(), 1);
        let ran = done(ask, again(&call, &second, accept("approve", "")));
        assert_eq!(ran["structuredContent"]["exit_code"], 0, "{ran}");
    });
}

#[test]
fn a_yes_to_one_is_none_to_those_that_have_come_since() {
    each_way_without_handshake(Home::strict, "ask=true", able(), |home, ask| {
        let call = touch();
        let first = asked(ask, &call);
        let second = asked(ask, &call);
        assert!(
            message(&second).contains("2 identical requests"),
            "{second}"
        );
        // It was about one, and now it is about two: it is put again.
        let now = asked(ask, &again(&call, &first, accept("approve", "")));
        assert_eq!(message(&now), message(&second));
        assert!(!home.base().join("x").exists());
        let ran = done(ask, again(&call, &now, accept("approve", "")));
        assert_eq!(ran["structuredContent"]["exit_code"], 0, "{ran}");
    });
}

#[test]
fn changes_are_shown_and_applied() {
    each_way_without_handshake(Home::untouched, "ask=true", able(), |home, ask| {
        let call = call("run", json!({ "command": "touch x" }));
        let question = asked(ask, &call);
        let told = "It ran on a copy: 1 file is created. Approving applies that:\n  A x";
        assert!(message(&question).contains(told), "{question}");
        assert!(!home.base().join("x").exists());
        let ran = done(ask, again(&call, &question, accept("approve", "")));
        assert_eq!(ran["structuredContent"]["state"], "succeeded");
        assert!(home.base().join("x").exists());
    });
}

#[test]
fn what_has_changed_meanwhile_was_not_answered() {
    each_way_without_handshake(Home::strict, "ask=true", able(), |home, ask| {
        std::fs::write(home.base().join("s.sh"), "touch x\n").unwrap();
        let call = call("run", json!({ "command": "sh s.sh" }));
        let question = asked(ask, &call);
        std::fs::write(home.base().join("s.sh"), "touch y\n").unwrap();
        let told = done(ask, again(&call, &question, accept("approve", "")));
        assert_eq!(told["structuredContent"]["state"], "waiting", "{told}");
        let text = told["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("What your person answered does not count"),
            "{text}"
        );
        assert!(!home.base().join("y").exists());
    });
}

#[test]
fn whoever_is_faster_decides() {
    each_way_without_handshake(Home::strict, "ask=true", able(), |home, ask| {
        let call = touch();
        let question = asked(ask, &call);
        let approval = runs(home)[0]["approval_id"].clone();
        decide(home, &approval, "reject", "Mine.");
        let told = done(ask, again(&call, &question, accept("approve", "")));
        assert_eq!(told["structuredContent"]["state"], "rejected");
        assert!(!home.base().join("x").exists());
    });
}

#[test]
fn nothing_counts_but_what_was_sealed_for_this_call() {
    each_way_without_handshake(Home::strict, "ask=true", able(), |home, ask| {
        let call = touch();
        let question = asked(ask, &call);
        let yes = || again(&call, &question, accept("approve", ""));
        let sealed = question["requestState"].as_str().unwrap();
        let mut middle = sealed.to_owned();
        let turned = match &middle[20..21] {
            "A" => "B",
            _ => "A",
        };
        middle.replace_range(20..21, turned);
        for forged in [&format!("{sealed}A"), &middle, "", "rs1.e30.e30"] {
            let mut forged_call = yes();
            forged_call["requestState"] = json!(forged);
            refused(ask, forged_call);
        }
        let mut other = yes();
        other["arguments"]["command"] = json!("touch y");
        refused(ask, other);
        let mut other = yes();
        other["name"] = json!("wait");
        refused(ask, other);
        assert_eq!(runs(home).len(), 1);
        assert_eq!(runs(home)[0]["state"], "waiting");
        assert!(!home.base().join("x").exists());
    });
}

#[test]
fn an_answer_without_its_question_is_no_first_call() {
    let approval = || json!({ "approval": accept("approve", "") });
    for (toolset, tool, answer) in [
        ("weighlock", "run", approval()),
        ("weighlock", "run", json!({ "other": 1 })),
        ("execute-command", "ExecuteCommand", approval()),
        ("terminal", "terminal", approval()),
    ] {
        let query = format!("ask=true&toolset={toolset}");
        each_way_without_handshake(Home::strict, &query, able(), |home, ask| {
            let command = match tool {
                "terminal" => json!({ "command": "touch x", "action": "run" }),
                _ => json!({ "command": "touch x" }),
            };
            let mut without = call(tool, command.clone());
            without["inputResponses"] = answer.clone();
            let told = done(ask, without.clone());
            assert_eq!(told["isError"], true, "{tool}: {told}");
            let said = told["content"][0]["text"].as_str().unwrap();
            assert!(said.contains("`requestState`"), "{tool}: {said}");
            let error = &told["structuredContent"]["error"];
            match tool {
                "run" => assert_eq!(error["code"], "request_state_missing"),
                "terminal" => assert_eq!(error, "invalid_parameters"),
                // It has nothing but text.
                _ => assert_eq!(error, &Value::Null),
            }
            assert_eq!(runs(home), Vec::<Value>::new());
            // Nothing that came back is nothing.
            without["inputResponses"] = json!({});
            asked(ask, &without);
        });
    }
}

#[test]
fn what_was_to_be_typed_in_a_terminal_that_is_gone_is_typed_nowhere() {
    each_way_without_handshake(Home::strict, "ask=true&session=s", able(), |home, ask| {
        let open = call("run", json!({ "terminal": "t", "command": "true" }));
        let opens = |ask: Asks<'_>| {
            let waits = done(ask, open.clone())["structuredContent"].clone();
            decide(home, &waits["approval_id"], "approve_once", "");
            let id = waits["id"].as_str().unwrap();
            eventually("it is open", || home.get(id)["state"] == "running");
        };
        opens(ask);
        let calls = ["touch x", "touch y"]
            .map(|command| call("run", json!({ "terminal": "t", "command": command })));
        let questions = { calls.iter() }.map(|call| asked(ask, call));
        let questions: Vec<Value> = questions.collect();
        done(ask, call("stop", json!({ "id": "t" })));
        let gone = |at: usize| {
            let yes = again(&calls[at], &questions[at], accept("approve", ""));
            let told = done(ask, yes);
            assert_eq!(told["structuredContent"]["state"], "withdrawn", "{told}");
            let said = told["content"][0]["text"].as_str().unwrap();
            assert!(said.contains("closed"), "{said}");
        };
        gone(0);
        // Nor in another that has its name.
        opens(ask);
        gone(1);
        assert!(
            ["x", "y"]
                .iter()
                .all(|name| !home.base().join(name).exists())
        );
        let (_, list) = home.api("GET", "/terminals", &Value::Null);
        assert_eq!(list["terminals"].as_array().unwrap().len(), 1);
    });
}

#[test]
fn it_counts_for_nobody_else() {
    let home = Home::strict();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let owner = home.token(&home.me());
    let ben = add(&home, "ben", "administrator", json!({}));
    let coder = add(
        &home,
        "coder",
        "agent",
        json!({ "default_sandbox": "default" }),
    );
    let as_one = |token: &str, params: Value| {
        let params = with_meta(params, &able());
        ask_as(&server, token, "ask=true", "tools/call", params)
    };
    let call = touch();
    let question = asked(&|_, params| as_one(&owner, params), &call);
    let yes = again(&call, &question, accept("approve", ""));
    refused(&|_, params| as_one(&ben, params), yes.clone());
    refused(&|_, params| as_one(&coder, params), yes.clone());
    // An agent is not asked, and cannot have been.
    let waits = done(&|_, params| as_one(&coder, params), call.clone());
    assert_eq!(waits["structuredContent"]["state"], "waiting");
    // Nor does it where the client's person could not have been asked; and what
    // was asked for before is not run for that.
    for (query, capabilities) in [("ask=true", json!({})), ("", able())] {
        let unable: Asks<'_> = &|_, params| {
            let params = with_meta(params, &capabilities);
            ask_as(&server, &owner, query, "tools/call", params)
        };
        let waits = done(unable, yes.clone());
        assert_eq!(waits["structuredContent"]["state"], "waiting");
    }
    assert_eq!(runs(&home).len(), 2);
    assert!(!home.base().join("x").exists());
    let ran = done(&|_, params| as_one(&owner, params), yes);
    assert_eq!(ran["structuredContent"]["exit_code"], 0, "{ran}");
}

#[test]
fn who_is_not_able_or_does_not_want_it_is_not_asked() {
    let only_links = json!({ "elicitation": { "url": {} } });
    for (query, capabilities) in [
        ("ask=true", json!({})),
        ("ask=true", only_links),
        ("", able()),
    ] {
        each_way_without_handshake(Home::strict, query, capabilities, |_, ask| {
            let told = done(ask, touch());
            assert_eq!(told["structuredContent"]["state"], "waiting");
        });
    }
}

#[test]
fn every_tool_that_begins_something_asks() {
    let query = "ask=true&toolset=weighlock&toolset=execute-command&toolset=terminal\
                 &toolset=shell&toolset=bash&session=s";
    let home = Home::strict();
    let _server = home.serve(&[]);
    let flags = super::flags(query);
    let agent = super::Client::start(super::client::mcp(&home, &flags));
    let ask: Asks<'_> =
        &|method, params| agent.answer(agent.ask(method, with_meta(params, &able())));
    // The shell of a terminal is asked about when it is opened.
    let open = call("run", json!({ "terminal": "f", "command": "true" }));
    let opens = done(ask, open)["structuredContent"].clone();
    decide(&home, &opens["approval_id"], "approve_once", "");
    let command = |name: &str| format!("touch {name}; echo made");
    for (name, tool, arguments) in [
        ("a", "ExecuteCommand", json!({ "command": command("a") })),
        ("b", "run_command", json!({ "command": command("b") })),
        ("c", "Bash", json!({ "command": command("c") })),
        (
            "d",
            "terminal",
            json!({ "action": "run", "command": command("d") }),
        ),
        (
            "e",
            "terminal",
            json!({ "action": "open", "terminal_name": "e", "description": "e",
                    "command": command("e") }),
        ),
        (
            "f",
            "run",
            json!({ "terminal": "f", "command": command("f") }),
        ),
    ] {
        let call = call(tool, arguments);
        let question = asked(ask, &call);
        assert!(!home.base().join(name).exists(), "{name}");
        let told = done(ask, again(&call, &question, accept("approve", "")));
        assert_ne!(told["isError"], true, "{told}");
        let text = told["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("made"), "{name}: {text}");
        assert!(home.base().join(name).exists(), "{name}");
    }
}
