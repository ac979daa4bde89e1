//! Rule files, agents and grants, as a server uses them.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::caller::{Caller, add_here, sandbox};
use crate::support::{Done, Home, eventually};

const RULES: &str = "settings/weighlock/rules.toml";

fn verdict(home: &Home, command: &str) -> Value {
    verdict_of(home, command, json!({}))
}

fn verdict_of(home: &Home, command: &str, wishes: Value) -> Value {
    let mut body = json!({ "command": command });
    for (name, wish) in wishes.as_object().unwrap() {
        body[name] = wish.clone();
    }
    let (status, judged) = home.api("POST", "/policies/explain", &body);
    assert_eq!(status, 200, "{judged}");
    judged["verdict"].clone()
}

#[test]
fn a_changed_file_counts_at_once_and_a_broken_one_never() {
    let home = Home::strict();
    let file = home.put(RULES, "[[rule]]\nauto = \"make build\"\n");
    let _server = home.serve(&[]);
    assert_eq!(verdict(&home, "make build"), "auto");
    home.put(
        RULES,
        "[[rule]]\nreject = \"make build\"\nbecause = \"is not for agents\"\n",
    );
    assert_eq!(verdict(&home, "make build"), "reject");
    let done = home.run(&[], "make build");
    assert_eq!(done.code, Some(126));
    assert!(done.err.contains("(server)"), "{}", done.err);

    home.put(
        RULES,
        "[[rule]]\nreject = \"make build\"\n\n[[rule]]\nnonsense = 1\n",
    );
    let done = home.call(&["explain", "make build"]);
    let place = format!("{}:5:1: ", file.display());
    assert!(
        done.out.starts_with("⛔ Blocked"),
        "the old ones: {}",
        done.out
    );
    assert!(done.err.contains(&place), "{}", done.err);
    assert!(
        done.err
            .contains("the rules before this change stay in force"),
        "{}",
        done.err
    );
    let done = home.call(&["doctor"]);
    let line = done
        .out
        .lines()
        .find(|line| line.contains(" policy "))
        .unwrap();
    assert_eq!(done.code, Some(1));
    assert!(line.starts_with('✗') && line.contains(&place), "{line}");

    home.put(RULES, "[[rule]]\nauto = \"make build\"\n");
    assert_eq!(verdict(&home, "make build"), "auto");
    let done = home.call(&["doctor"]);
    let expected = format!("✓ policy       strict, {} ok, no agents", file.display());
    assert!(
        done.out.lines().any(|line| line == expected),
        "{}",
        done.out
    );
}

#[test]
fn a_server_does_not_start_with_rules_that_it_cannot_read() {
    let home = Home::strict();
    let mut rules = String::new();
    for number in 0..1000 {
        let verb = if number == 617 { "alow" } else { "auto" };
        let _ = writeln!(rules, "[[rule]]\n{verb} = \"tool{number} run\"");
    }
    let file = home.put(RULES, &rules);
    let place = format!("{}:{}:1: ", file.display(), 617 * 2 + 2);
    let done = home.try_serve(&[]).map(drop).unwrap_err();
    assert!(done.err.contains(&place), "{}", done.err);
    // The same for one that starts by itself.
    let done = home.run(&[], "ls");
    assert_eq!(done.code, Some(125));
    assert!(done.err.contains(&place), "{}", done.err);
    let done = home.call(&["policy", "test", file.to_str().unwrap()]);
    assert_eq!(done.code, Some(1));
    assert!(done.out.starts_with(&place), "{}", done.out);
    let done = home.call(&["check", "ls"]);
    assert_eq!(done.code, Some(1));
    assert!(done.err.contains(&place), "{}", done.err);
}

#[test]
fn a_test_runs_the_examples_and_a_draft_is_compared() {
    let home = Home::strict();
    home.put(
        "base/good.toml",
        "[[rule]]\nask = \"git status\"\nmatches = [\"git status\"]\n",
    );
    home.put(
        "base/bad.toml",
        "[[rule]]\nauto = \"npm test\"\nmatches = [\"npm install\"]\n",
    );
    let done = home.call(&["policy", "test", "good.toml", "bad.toml"]);
    assert_eq!(done.code, Some(1));
    assert!(
        done.out.starts_with("good.toml: ok\nbad.toml:3:"),
        "{}",
        done.out
    );
    assert!(!home.state().exists(), "no server is needed");

    let done = home.call(&["policy", "check", "good.toml", "--", "git", "status"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let first = done.out.lines().next().unwrap();
    assert_eq!(first, "now: ✓ Allowed → draft: ◔ Needs approval");
    let done = home.call(&["policy", "schema"]);
    let schema: Value = serde_json::from_str(&done.out).unwrap();
    assert!(schema["properties"]["rule"].is_object(), "{schema}");
}

#[test]
fn the_policy_is_shown_whole() {
    let home = Home::strict();
    let file = home.put(RULES, "[[rule]]\nname = \"tests\"\nauto = \"npm test\"\n");
    let done = home.call(&["policy", "show"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    let expected = format!(
        "presets     strict\nrule file   {}\nagents      none\n\n\
         Rules, in their order; the strictest that matches decides:\n   \
         1  built-in    Blocked         no-privileges             raises privileges\n",
        file.display()
    );
    assert!(done.out.starts_with(&expected), "{}", done.out);
    let rule = "  server      Allowed         tests                     npm test\n";
    assert!(done.out.contains(rule), "{}", done.out);
    assert!(
        done.out.ends_with("\nAlways allowed:\n  nothing\n"),
        "{}",
        done.out
    );
}

#[test]
fn grants_survive_a_restart_and_end() {
    let home = Home::strict();
    let server = home.serve(&[]);
    let given = |args: &[&str]| -> Value {
        let done = home.call(&[&["policy", "grant", "--json"], args].concat());
        serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{done:?}"))
    };
    let long = given(&["touch made", "--agent", "coder", "--until", "1h"]);
    let short = given(&["mkdir made", "--until", "1s"]);
    assert!(short["until"].as_i64() < long["until"].as_i64());
    let coder = json!({ "agent": "coder" });
    assert_eq!(verdict(&home, "touch made"), "ask", "only for one agent");
    assert_eq!(server.terminate(), Some(0));

    let _server = home.serve(&[]);
    assert_eq!(verdict_of(&home, "touch made", coder.clone()), "auto");
    assert_eq!(
        verdict_of(&home, "touch made; sudo ls", coder.clone()),
        "reject"
    );
    eventually("it has ended", || verdict(&home, "mkdir made") == "ask");
    let id = long["id"].as_str().unwrap();
    assert_eq!(home.call(&["policy", "revoke", id]).code, Some(0));
    assert_eq!(verdict_of(&home, "touch made", coder), "ask");
    let done = home.call(&["policy", "revoke", id]);
    assert_eq!(done.code, Some(1));
    let done = home.call(&["policy", "grant", "'"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    home.assert_audit_verifies();
}

#[test]
fn agents_make_the_rules_stricter() {
    let home = Home::strict();
    home.put("agents/defaults.yaml", "tools:\n  shell: [run_command]\n");
    home.put(
        "agents/experts/coder/config.yaml",
        "name: coder\nshell:\n  allow: [git, ls]\n  default_timeout: 7\n",
    );
    home.put("agents/experts/writer/config.yaml", "tools:\n  shell: []\n");
    let agents = home.around().join("agents");
    let _server = home.serve_with(&format!("[policy]\nagents = \"{}\"\n", agents.display()));
    let as_agent =
        |agent: &str, command: &str| verdict_of(&home, command, json!({ "agent": agent }));
    assert_eq!(as_agent("coder", "git status"), "auto");
    assert_eq!(as_agent("coder", "git push"), "ask", "never milder");
    assert_eq!(as_agent("coder", "cat x"), "reject");
    assert_eq!(as_agent("writer", "ls"), "reject");
    let stranger = json!({ "command": "ls", "agent": "coderr" });
    let (status, problem) = home.api("POST", "/policies/explain", &stranger);
    assert_eq!((status, &problem["code"]), (404, &json!("no_such_agent")));
    let run = home.result(&["--agent", "coder"], "ls");
    assert_eq!(run["timeout_ms"], 7000, "{run}");
    let done = home.call(&["doctor"]);
    assert!(done.out.contains("agents coder, writer"), "{}", done.out);
}

#[test]
fn restricted_users_start_programs_without_a_shell() {
    let home = Home::strict();
    let _server =
        home.serve_with("preset = \"multi-user\"\n[policy]\nallowed_commands = \"echo,ls\"\n");
    let run = home.result(&[], "echo a; touch made");
    assert_eq!(run["state"], "succeeded", "{run}");
    assert_eq!(run["text"], "a; touch made\n", "its arguments, as they are");
    assert!(!home.base().join("made").exists());
    let Done { code, err, .. } = home.run(&[], "touch made");
    assert_eq!(code, Some(126), "{err}");
}

#[test]
fn a_sandbox_makes_the_rules_stricter() {
    let home = Home::strict();
    let rules = home.put("sandbox-rules.toml", "[[rule]]\nreject = \"git status\"\n");
    let shop = home.around().join("shop");
    std::fs::create_dir(&shop).unwrap();
    let _server = home.serve_with(&format!(
        "[sandbox.shop]\ndirectory = \"{}\"\nrules = \"{}\"\n",
        shop.display(),
        rules.display()
    ));
    assert_eq!(verdict(&home, "git status"), "auto");
    let there = home.call(&["explain", "-s", "shop", "git status"]);
    assert!(there.out.starts_with("⛔ Blocked"), "{}", there.out);
}

#[test]
fn a_grant_counts_where_it_was_given() {
    let home = Home::strict();
    let _server = home.serve(&[]);
    let owner = Caller::owner(&home);
    let id = sandbox(&home, "shop", json!({}))["sandbox_id"].clone();
    let in_shop = |command: &str| verdict_of(&home, command, json!({ "sandbox": "shop" }));
    // By name and by id alike.
    for (pattern, name) in [("touch a", json!("shop")), ("touch b", id.clone())] {
        let grant = json!({ "pattern": pattern, "sandbox": name });
        let given = owner.post("/policies/grants", &grant).expect(200);
        assert_eq!(given["sandbox"], id);
        assert_eq!(
            (in_shop(pattern), verdict(&home, pattern)),
            (json!("auto"), json!("ask"))
        );
    }
    // It stays with the sandbox, whatever that is called.
    let renamed = json!({ "label": "webshop" });
    owner.ask("PATCH", "/sandboxes/shop", &renamed).expect(200);
    sandbox(&home, "shop", json!({}));
    assert_eq!(in_shop("touch a"), "ask");
    let there = json!({ "sandbox": "webshop" });
    assert_eq!(verdict_of(&home, "touch a", there), "auto");
    let nowhere = json!({ "pattern": "touch c", "sandbox": "nowhere" });
    assert_eq!(owner.post("/policies/grants", &nowhere).status, 404);
}

#[test]
fn a_grant_for_a_session_counts_in_that_one_only() {
    let home = Home::strict();
    let _server = home.serve(&[]);
    let owner = Caller::owner(&home);
    let agent = |name: &str| owner.bearing(&add_here(&home, name, "agent"));
    let (coder, other) = (agent("coder"), agent("other"));
    let ask = |who: &Caller, command: &str, session: Option<&str>| {
        let mut body = json!({ "command": command, "wait_ms": 0 });
        if let Some(session) = session {
            body["session_id"] = session.into();
        }
        who.post("/commands", &body).json()
    };
    for (command, own, others) in [
        ("touch a", Some("talk"), Some("work")),
        ("touch b", None, Some("talk")),
    ] {
        let ask = |who: &Caller, session| ask(who, command, session);
        let asked = ask(&coder, own);
        assert_eq!(asked["state"], "waiting", "{asked}");
        let path = format!("/approvals/{}", asked["approval_id"].as_str().unwrap());
        let shown = owner.get(&path).expect(200);
        assert_eq!(shown["session"], asked["session_id"]);
        let rule = json!({ "pattern": command, "session": shown["session"] });
        let decision = json!({ "kind": "approve_always", "fingerprint": shown["fingerprint"],
                               "rules": [rule] });
        owner
            .post(&format!("{path}/decision"), &decision)
            .expect(200);
        let id = asked["command_id"].as_str().unwrap();
        assert_eq!(home.ended(id)["state"], "succeeded", "it runs, too");
        let again = ask(&coder, own);
        assert_ne!(again["state"], "waiting", "{again}");
        assert_eq!(again["session_id"], asked["session_id"]);
        // Neither in another of its own, nor in one of the same name.
        assert_eq!(ask(&coder, others)["state"], "waiting", "{own:?}");
        assert_eq!(ask(&other, own)["state"], "waiting", "{own:?}");
        let close = format!("/sessions/{}/close", asked["session_id"].as_str().unwrap());
        coder.post(&close, &Value::Null).expect(200);
        assert_eq!(
            ask(&coder, own)["state"],
            "waiting",
            "it is over with its session"
        );
        assert_eq!(owner.get("/policies/grants").json(), json!([]));
    }
    let nowhere = json!({ "pattern": "touch made", "session": "talk" });
    let said = owner.post("/policies/grants", &nowhere);
    assert_eq!(said.outcome(), (404, "no_such_session".into()));
}
