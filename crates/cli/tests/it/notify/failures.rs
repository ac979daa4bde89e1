//! Receivers that are down, slow, odd or gone, and servers that die.

use serde_json::json;

use super::receiver::{Answer, Receiver, authority, free_port};
use super::{Desk, QUICK, path};
use crate::support::eventually;

#[test]
fn a_server_that_is_killed_forgets_nothing_and_tells_nothing_twice() {
    let mut desk = Desk::new();
    let receiver = Receiver::new(Answer::OK);
    desk.tell(&receiver, json!({}));
    let mut asked = vec![];
    for number in 0..5 {
        // At whatever moment of telling it is.
        asked.push(format!("touch {number}"));
        desk.ask("coder", &asked[number]);
        desk.kill_and_serve();
    }
    let (mut ids, mut told) = (vec![], vec![]);
    while told.len() < asked.len() {
        let next = receiver.next();
        // Who was killed in the middle of telling says it again, by the same
        // name; receivers know it by that.
        if !ids.contains(&next.id().to_owned()) {
            ids.push(next.id().to_owned());
            told.extend(next.commands());
        }
    }
    told.sort();
    assert_eq!(told, asked);
}

#[test]
fn a_server_that_is_killed_while_it_tells_tells_it_again_by_the_same_name() {
    let mut desk = Desk::new();
    let (_release, held) = Answer::held();
    let receiver = Receiver::new(held);
    let made = desk.tell(&receiver, json!({}));
    let id = desk.ask("coder", "touch x");
    let first = receiver.next();
    receiver.answers(Answer::OK);
    desk.kill_and_serve();
    let again = receiver.next();
    assert_eq!(again.id(), first.id());
    assert_eq!(again.commands(), first.commands());
    assert!(again.is_signed_with(made["secret"].as_str().unwrap()));
    eventually("it is noted", || desk.webhook(&made)["told_at"].is_string());
    // And not a third time: what comes next is that it is over.
    desk.kill_and_serve();
    desk.decide(&id, "reject");
    assert_eq!(receiver.next().kind(), "approval.closed");
}

#[test]
fn what_was_decided_while_the_server_was_away_is_over_for_who_was_told() {
    let mut desk = Desk::with(&format!("{QUICK}[approvals]\nexpire = \"1s\"\n"));
    let receiver = Receiver::new(Answer::OK);
    let made = desk.tell(&receiver, json!({}));
    desk.ask("coder", "touch x");
    assert_eq!(receiver.next().kind(), "approval.waiting");
    eventually("it is noted", || desk.webhook(&made)["told_at"].is_string());
    desk.kill_and_serve();
    let closed = receiver.next();
    assert_eq!(closed.kind(), "approval.closed");
    assert_eq!(closed.json()["data"]["approvals"][0]["state"], "expired");
}

#[test]
fn a_receiver_that_was_down_is_told_when_it_is_back() {
    let desk = Desk::new();
    let port = free_port();
    let wish = json!({ "url": format!("http://127.0.0.1:{port}/x"), "delay_seconds": 0,
                       "label": "on call" });
    let made = desk.owner().post("/webhooks", &wish).expect(201);
    desk.ask("coder", "touch x");
    eventually("it has failed a few times", || {
        desk.webhook(&made)["failures"].as_u64().unwrap() >= 2
    });
    let failing = desk.webhook(&made);
    assert!(
        failing["trouble"]
            .as_str()
            .unwrap()
            .starts_with("cannot connect"),
        "{failing}"
    );
    assert!(failing["retry_at"].is_string());
    let checks = desk.owner().get("/health/checks").expect(200);
    let check =
        { checks["checks"].as_array().unwrap().iter() }.find(|check| check["name"] == "webhooks");
    let found = check.unwrap()["found"].as_str().unwrap().to_owned();
    assert!(found.contains("on call: cannot connect"), "{found}");
    let doctor = desk.home.call(&["doctor"]);
    assert!(doctor.out.contains("on call: cannot connect"), "{doctor:?}");

    let receiver = Receiver::at(port, Answer::Status(503, "retry-after: 0\r\n"), None);
    let first = receiver.next();
    receiver.answers(Answer::OK);
    let second = receiver.next();
    assert_eq!(second.id(), first.id());
    eventually("all is well", || {
        let now = desk.webhook(&made);
        now["failures"] == 0 && now["trouble"].is_null() && now["told_at"].is_string()
    });
}

#[test]
fn what_nobody_takes_is_given_up_at_last() {
    let desk = Desk::with(&format!("{QUICK}give_up = \"1ms\"\n"));
    let receiver = Receiver::new(Answer::Status(500, ""));
    let made = desk.tell(&receiver, json!({}));
    desk.ask("coder", "touch x");
    receiver.next();
    eventually("it is given up", || {
        desk.notices(&made)[0]["state"] == "failed"
    });
}

#[test]
fn who_is_slow_holds_up_nobody_else() {
    let desk = Desk::new();
    let (_release, held) = Answer::held();
    let (slow, quick) = (Receiver::new(held), Receiver::new(Answer::OK));
    desk.tell(&slow, json!({}));
    desk.tell(&quick, json!({}));
    desk.ask("coder", "touch 1");
    slow.next();
    quick.next();
    desk.ask("linter", "touch 2");
    assert_eq!(quick.next().commands(), ["touch 2"]);
    slow.assert_silent();
}

#[test]
fn of_an_answer_only_as_much_is_read_as_counts() {
    let desk = Desk::new();
    let receiver = Receiver::new(Answer::Endless);
    let made = desk.tell(&receiver, json!({}));
    assert_eq!(desk.test(&made)["delivered"], true);
    receiver.answers(Answer::EndlessHead);
    let tested = desk.test(&made);
    assert_eq!(tested["delivered"], false);
    let why = tested["trouble"].as_str().unwrap();
    assert!(why.starts_with("invalid answer"), "{why}");
}

#[test]
fn a_redirect_is_not_followed() {
    let desk = Desk::new();
    let elsewhere = Receiver::new(Answer::OK);
    let location = format!("location: {}\r\n", elsewhere.url);
    let receiver = Receiver::new(Answer::Status(307, location.leak()));
    let made = desk.tell(&receiver, json!({}));
    let tested = desk.test(&made);
    assert_eq!(
        tested["trouble"],
        "answered 307; redirects are not followed"
    );
    elsewhere.assert_silent();
}

#[test]
fn who_wants_no_more_is_told_no_more() {
    let desk = Desk::new();
    let receiver = Receiver::new(Answer::Status(410, ""));
    let made = desk.tell(&receiver, json!({}));
    desk.ask("coder", "touch 1");
    receiver.next();
    eventually("it is switched off", || {
        desk.webhook(&made)["is_active"] == false
    });
    let off = desk.owner().get("/audit?kind=webhook.off").expect(200);
    assert_eq!(off["entries"].as_array().unwrap().len(), 1);
    desk.ask("coder", "touch 2");
    // Switched on again, it is told of what comes, and not of what it missed.
    receiver.answers(Answer::OK);
    let on = json!({ "is_active": true });
    desk.owner().ask("PATCH", &path(&made), &on).expect(200);
    desk.ask("linter", "touch 3");
    assert_eq!(receiver.next().commands(), ["touch 3"]);
}

#[test]
fn who_speaks_tls_is_told_if_their_certificate_is_trusted_and_for_them() {
    let mut desk = Desk::new();
    let (ca, tls) = authority(&desk.home, "127.0.0.1");
    let receiver = Receiver::at(0, Answer::OK, Some(tls));
    let made = desk.tell(&receiver, json!({}));
    let stranger = desk.test(&made);
    assert!(
        stranger["trouble"]
            .as_str()
            .unwrap()
            .contains("UnknownIssuer"),
        "{stranger}"
    );
    receiver.assert_silent();

    desk.settings = format!("{QUICK}ca_file = \"{}\"\n", ca.display());
    desk.kill_and_serve();
    assert_eq!(desk.test(&made)["delivered"], true);
    assert!(
        receiver
            .next()
            .is_signed_with(made["secret"].as_str().unwrap())
    );
    desk.ask("coder", "touch x");
    assert_eq!(receiver.next().commands(), ["touch x"]);

    // By the same authority, but for somebody else.
    let (_, tls) = authority(&desk.home, "hooks.example.com");
    let other = Receiver::at(0, Answer::OK, Some(tls));
    let made = desk.tell(&other, json!({}));
    let refused = desk.test(&made);
    assert!(
        refused["trouble"]
            .as_str()
            .unwrap()
            .contains("not valid for name"),
        "{refused}"
    );
    other.assert_silent();
}
