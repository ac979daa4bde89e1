//! What webhooks must not become: a way into networks, a leak, or an agent's.

use serde_json::{Value, json};

use super::receiver::{Answer, Receiver, free_port};
use super::{Desk, path};
use crate::caller::{Caller, add, sandbox};
use crate::support::{Home, eventually};

#[test]
fn only_administrators_reach_what_is_inside_and_nobody_what_hands_out_credentials() {
    let desk = Desk::new();
    let receiver = Receiver::new(Answer::OK);
    let token = add(&desk.home, "maria", "operator", json!({}));
    let maria = Caller::stranger(desk.server.as_ref().unwrap()).bearing(&token);
    for (who, url, part) in [
        (
            &maria,
            receiver.url.clone(),
            "only an administrator's webhook",
        ),
        (
            &maria,
            format!("https://localhost:{}/", receiver.port),
            "only an administrator's webhook",
        ),
        (
            &maria,
            format!("https://[::ffff:127.0.0.1]:{}/", receiver.port),
            "only an administrator's webhook",
        ),
        (
            &desk.owner(),
            "https://169.254.169.254/latest/".into(),
            "no webhook may reach",
        ),
        (
            &desk.owner(),
            "https://[fd00:ec2::254]/latest/".into(),
            "no webhook may reach",
        ),
        (
            &desk.owner(),
            "https://[::ffff:a9fe:a9fe]/".into(),
            "no webhook may reach",
        ),
        (
            &desk.owner(),
            "https://2852039166/".into(),
            "no webhook may reach",
        ),
        (
            &desk.owner(),
            "https://0.0.0.0/".into(),
            "no webhook may reach",
        ),
    ] {
        let made = who
            .post("/webhooks", &json!({ "url": url, "delay_seconds": 0 }))
            .expect(201);
        let tested = who
            .post(&format!("{}/test", path(&made)), &Value::Null)
            .expect(200);
        let why = tested["trouble"].as_str().unwrap();
        assert!(why.contains(part), "{url}: {why}");
    }
    receiver.assert_silent();
    for url in [
        "http://169.254.169.254/",
        "http://10.0.0.1/",
        "https://a:b@host/",
        "gopher://x/",
    ] {
        let refused = desk.owner().post("/webhooks", &json!({ "url": url }));
        assert_eq!(refused.outcome(), (400, "bad_webhook".into()), "{url}");
    }
    // Who is no administrator any more does not reach it either.
    desk.owner()
        .ask(
            "PATCH",
            "/people/maria",
            &json!({ "role": "administrator" }),
        )
        .expect(200);
    let made = maria.post(
        "/webhooks",
        &json!({ "url": receiver.url, "delay_seconds": 0 }),
    );
    let made = made.expect(201);
    let test = format!("{}/test", path(&made));
    assert_eq!(
        maria.post(&test, &Value::Null).expect(200)["delivered"],
        true
    );
    receiver.next();
    desk.owner()
        .ask("PATCH", "/people/maria", &json!({ "role": "viewer" }))
        .expect(200);
    assert_eq!(
        maria.post(&test, &Value::Null).expect(200)["delivered"],
        false
    );
    receiver.assert_silent();
}

#[test]
fn people_are_told_of_what_they_may_see_and_nothing_once_they_are_gone() {
    let desk = Desk::new();
    sandbox(&desk.home, "near", json!({ "review": "before" }));
    let token = add(
        &desk.home,
        "maria",
        "approver",
        json!({ "sandboxes": ["near"] }),
    );
    let maria = Caller::stranger(desk.server.as_ref().unwrap()).bearing(&token);
    let url = format!("http://127.0.0.1:{}/", free_port());
    let wish = json!({ "url": url, "delay_seconds": 3600, "high_risk_at_once": false });
    let made = maria.post("/webhooks", &wish).expect(201);
    let ask = |sandbox: &str, command: &str| {
        let wish = json!({ "command": command, "sandbox_id": sandbox });
        desk.caller("coder").post("/commands", &wish).expect(202)["approval_id"].clone()
    };
    ask("default", "touch far");
    let near = ask("near", "touch near");
    let notices = || {
        let told = maria.get(&format!("{}/notices", path(&made))).expect(200);
        told["notices"].as_array().unwrap().clone()
    };
    eventually("there is a notice", || notices().len() == 1);
    assert_eq!(notices()[0]["approval_id"], near);
    // Another's webhook is not there, for anybody but administrators.
    let token = add(&desk.home, "peter", "operator", json!({}));
    let peter = Caller::stranger(desk.server.as_ref().unwrap()).bearing(&token);
    assert_eq!(peter.get("/webhooks").expect(200)["webhooks"], json!([]));
    assert_eq!(
        peter.get(&path(&made)).outcome(),
        (404, "no_such_webhook".into())
    );
    let server = json!({ "url": url, "server": true });
    assert_eq!(
        peter.post("/webhooks", &server).outcome(),
        (403, "not_allowed".into())
    );
    desk.owner()
        .ask("PATCH", "/people/maria", &json!({ "is_active": false }))
        .expect(200);
    ask("near", "touch more");
    let told = desk
        .owner()
        .get(&format!("{}/notices", path(&made)))
        .expect(200);
    assert_eq!(told["notices"].as_array().unwrap().len(), 1);
}

#[test]
fn an_agent_sets_up_no_webhook_and_sees_none() {
    let desk = Desk::new();
    let receiver = Receiver::new(Answer::OK);
    let made = desk.tell(&receiver, json!({}));
    let agent = desk.caller("coder");
    let never = (403, "never_agents".to_owned());
    let body = json!({ "url": receiver.url });
    assert_eq!(agent.get("/webhooks").outcome(), never);
    assert_eq!(agent.post("/webhooks", &body).outcome(), never);
    for deed in ["/test", "/secret"] {
        let path = format!("{}{deed}", path(&made));
        assert_eq!(agent.post(&path, &Value::Null).outcome(), never);
    }
    for method in ["GET", "PATCH", "DELETE"] {
        let said = agent.ask(method, &path(&made), &json!({ "is_active": false }));
        assert_eq!(said.outcome(), never, "{method}");
    }
    assert_eq!(desk.webhook(&made)["is_active"], true);
    receiver.assert_silent();
    let tried = desk.owner().get("/audit?kind=agent.refused").expect(200);
    assert_eq!(tried["entries"].as_array().unwrap().len(), 7);
}

#[test]
fn a_run_sets_up_no_webhook_with_its_owners_name() {
    let home = Home::new();
    let _server = home.serve_with("[sandbox.default]\nnetwork = \"on\"\n");
    // Where the run can start it.
    let ours = home.base().join("weighlock");
    std::fs::copy(env!("CARGO_BIN_EXE_weighlock"), &ours).unwrap();
    let state = home.state();
    let add = format!(
        "./weighlock --state-dir {} notify add https://evil.example/x",
        state.display()
    );
    for (hidden, refusal) in [
        ("", "inside a run"),
        ("env -u WEIGHLOCK_RUN ", "is a keeper"),
    ] {
        let done = home.run(&[], &format!("{hidden}{add}"));
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.err.contains(refusal), "{done:?}");
    }
    let (_, list) = home.api("GET", "/webhooks", &Value::Null);
    assert_eq!(list["webhooks"], json!([]));
}

#[test]
fn secrets_are_in_no_answer_no_record_and_no_log() {
    let mut desk = Desk::new();
    desk.server.take().unwrap().kill();
    desk.home.set("WEIGHLOCK_LOG", "trace");
    let log = desk.home.around().join("log");
    let config = desk.home.config(&desk.settings);
    // What the server says is kept, too.
    let tee = "exec \"$@\" 2> >(exec tee -a \"$0\" >&2)";
    let through = ["bash", "-c", tee, log.to_str().unwrap()];
    let options = ["--config", &config, "--listen", "127.0.0.1:0"];
    desk.server = Some(desk.home.serve_in(&through, &options).unwrap());

    let receiver = Receiver::new(Answer::Status(500, ""));
    let made = desk.tell(&receiver, json!({ "label": "x" }));
    let secret = made["secret"].as_str().unwrap().to_owned();
    let given = "whsec_Z2l2ZW4gYnkgYSBwZXJzb24gYW5kIG5ldmVyIHNob3du";
    let token = "tk_never_shown_either";
    for wish in [
        json!({ "secret": given }),
        json!({ "secret": token, "format": "ntfy" }),
    ] {
        let other = desk.tell(&receiver, wish);
        assert_eq!(other["secret"], Value::Null);
        desk.test(&other);
    }
    desk.ask("coder", "touch x");
    eventually("it has failed", || desk.webhook(&made)["failures"] != 0);
    let renewed = desk
        .owner()
        .post(&format!("{}/secret", path(&made)), &Value::Null);
    let renewed = renewed.expect(201)["secret"].as_str().unwrap().to_owned();
    let secrets = [&secret, given, token, &renewed, "secret-path"];
    let changed = desk
        .owner()
        .ask("PATCH", &path(&made), &json!({ "url": receiver.url }));
    let mut all = vec![String::from_utf8(changed.bytes).unwrap()];
    for path in [
        "/webhooks".to_owned(),
        path(&made),
        format!("{}/notices", path(&made)),
        "/audit".into(),
        "/audit/export".into(),
        "/health/checks".into(),
        "/me".into(),
    ] {
        let said = desk.owner().get(&path);
        assert_eq!(said.status, 200, "{path}");
        all.push(String::from_utf8_lossy(&said.bytes).into_owned());
    }
    for args in [
        &["notify", "list"][..],
        &["notify", "list", "--json"],
        &["doctor", "-v"],
    ] {
        let done = desk.home.call(args);
        all.extend([done.out, done.err]);
    }
    desk.server.take().unwrap().terminate();
    all.push(std::fs::read_to_string(&log).unwrap());
    assert!(
        all.last()
            .unwrap()
            .contains("a delivery to a webhook failed")
    );
    for text in &all {
        for secret in secrets {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}
