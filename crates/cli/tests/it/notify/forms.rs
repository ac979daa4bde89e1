//! The forms in which something is told, and the command line.

use serde_json::json;

use super::Desk;
use super::receiver::{Answer, Receiver};
use crate::support::have;

#[test]
fn a_phone_is_told_in_the_form_of_ntfy() {
    let desk = Desk::new();
    let receiver = Receiver::new(Answer::OK);
    let made = desk.tell(&receiver, json!({ "format": "ntfy", "secret": "tk_abc" }));
    assert!(made["secret"].is_null());
    let id = desk.ask("coder", "git push --force origin main");
    let told = receiver.next();
    let header = |name: &str| told.headers[name].as_str();
    assert_eq!(header("title"), "coder needs approval");
    assert_eq!(header("priority"), "5");
    assert_eq!(header("authorization"), "Bearer tk_abc");
    assert_eq!(header("x-sequence-id"), id);
    assert!(header("click").ends_with(&format!("/a/{id}")));
    assert!(
        told.body
            .starts_with("git push --force origin main\nHigh risk · in default, until ")
    );
    desk.decide(&id, "reject");
    let over = receiver.next();
    assert_eq!(
        over.headers["x-sequence-id"], id,
        "takes the place of the first"
    );
    assert!(
        over.headers["title"].starts_with("coder: rejected by "),
        "{over:?}"
    );
    assert_eq!(over.headers["priority"], "2");
}

#[test]
fn a_chat_is_told_in_its_form_and_an_agent_writes_no_links_into_it() {
    let desk = Desk::new();
    let receiver = Receiver::new(Answer::OK);
    desk.tell(&receiver, json!({ "format": "chat" }));
    let id = desk.ask("coder", "touch '<!channel>' '<https://evil|Approve>' '```'");
    let told = receiver.next();
    let text = told.json()["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("*coder needs approval*\n"), "{text}");
    assert!(
        text.contains("touch '&lt;!channel&gt;' '&lt;https://evil|Approve&gt;'"),
        "{text}"
    );
    assert_eq!(text.matches("```").count(), 2, "{text}");
    assert!(text.ends_with(&format!("/a/{id}")), "{text}");
}

#[test]
fn the_guide_checks_signatures_as_they_are_made() {
    if !have(&["python3"]) {
        return;
    }
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/notifications.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, code) = guide.split_once("```python\n").unwrap();
    let (code, _) = code.split_once("```").unwrap();
    let desk = Desk::new();
    let receiver = Receiver::new(Answer::OK);
    let made = desk.tell(&receiver, json!({}));
    desk.test(&made);
    let told = receiver.next();
    let tried = "
import json, sys
given = json.load(sys.stdin)
body = given['body'].encode()
print(is_ours(given['secret'], given['headers'], body))
print(is_ours(given['secret'], given['headers'], body + b' '))
print(is_ours('whsec_' + 'A' * 32, given['headers'], body))
given['headers']['webhook-timestamp'] = '1614265330'
print(is_ours(given['secret'], given['headers'], body))
";
    let given = json!({ "secret": made["secret"], "headers": told.headers, "body": told.body });
    let file = desk.home.put("given.json", &given.to_string());
    let done = std::process::Command::new("python3")
        .args(["-c", &format!("{code}{tried}")])
        .stdin(std::fs::File::open(file).unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert_eq!(said, "True\nFalse\nFalse\nFalse\n", "{done:?}");
}

#[test]
fn a_webhook_can_be_set_up_from_the_command_line() {
    let desk = Desk::new();
    let receiver = Receiver::new(Answer::OK);
    let call = |args: &[&str]| desk.home.call(&[&["notify"], args].concat());
    let none = call(&["list"]);
    assert_eq!((none.code, none.out.as_str()), (Some(0), ""));
    let hours = ["--quiet", "22:00-07:00", "--zone", "UTC"];
    let added = call(
        &[
            &["add", &receiver.url, "--label", "on call", "--delay", "2m"],
            &hours[..],
        ]
        .concat(),
    );
    assert_eq!(added.code, Some(0), "{added:?}");
    let secret = added.out.trim();
    assert!(secret.starts_with("whsec_"), "{added:?}");
    let id = added
        .err
        .split_once("Added ")
        .unwrap()
        .1
        .split('.')
        .next()
        .unwrap();

    let tested = call(&["test", id]);
    assert_eq!(
        (tested.code, tested.out.as_str()),
        (Some(0), "The receiver has taken it.\n")
    );
    let test = receiver.next();
    assert!(test.is_signed_with(secret));
    assert_eq!(test.kind(), "test");
    receiver.answers(Answer::Status(404, ""));
    let failed = call(&["test", id]);
    assert_eq!(
        (failed.code, failed.err.as_str()),
        (Some(1), "It was not taken: answered 404\n")
    );

    let list = call(&["list"]);
    assert!(
        list.out.contains(id) && list.out.contains("on call"),
        "{list:?}"
    );
    assert!(
        list.out.contains("answered 404") && !list.out.contains("secret-path"),
        "{list:?}"
    );
    let topics = ["--topic", "approval.waiting", "--topic", "run.failed"];
    let edited = call(&[&["edit", id, "--delay", "5s", "--never-quiet"], &topics[..]].concat());
    assert_eq!(edited.code, Some(0), "{edited:?}");
    assert!(
        edited.out.contains("delay      5 s, high risk at once"),
        "{edited:?}"
    );
    assert!(
        edited.out.contains("approval.waiting, run.failed"),
        "{edited:?}"
    );
    assert!(!edited.out.contains("quiet"), "{edited:?}");
    let renewed = call(&["secret", id]);
    assert!(renewed.out.starts_with("whsec_") && renewed.out.trim() != secret);
    let bad = call(&["add", "http://example.com/x"]);
    assert_eq!(bad.code, Some(1));
    assert!(
        bad.err.contains("only https://") && bad.err.contains("hint:"),
        "{bad:?}"
    );
    assert_eq!(call(&["remove", id]).code, Some(0));
    assert_eq!(call(&["show", id]).code, Some(1));
}

#[test]
fn the_guide_shows_a_message_as_it_is() {
    let guide = crate::generated::read("docs/notifications.md");
    let (_, shown) = guide.split_once("```json\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let shown: serde_json::Value = serde_json::from_str(shown).unwrap();
    let desk = Desk::new();
    let receiver = Receiver::new(Answer::OK);
    desk.tell(&receiver, json!({}));
    desk.ask("coder", "rm -rf build/");
    let told = receiver.next().json();
    assert_eq!(keys(&shown), keys(&told), "{told}");
}

/// What a value has keys for, at any depth.
fn keys(value: &serde_json::Value) -> std::collections::BTreeSet<String> {
    let mut all = std::collections::BTreeSet::new();
    if let Some(fields) = value.as_object() {
        for (name, value) in fields {
            all.extend(keys(value).iter().map(|below| format!("{name}.{below}")));
            all.insert(name.clone());
        }
    }
    for value in value.as_array().into_iter().flatten() {
        all.extend(keys(value));
    }
    all
}
