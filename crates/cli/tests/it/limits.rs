//! Limits that administrators set while the server runs, what a sandbox sets
//! for its commands, and choosing its directory.

use std::process::Command;

use serde_json::{Value, json};

use crate::crew::{Crew, text};
use crate::support::eventually;

#[test]
fn limits_count_at_once_after_a_restart_and_are_on_record() {
    let mut crew = Crew::new();
    let was = crew.call("owner").get("/limits").expect(200);
    assert_eq!(was["now"], was["file"]);
    assert_eq!(was["now"]["timeout_default_seconds"], 120);
    let other = json!({ "timeout_default_seconds": 7, "expire_seconds": 60, "always": false });
    crew.call("ana").ask("PUT", "/limits", &other).expect(403);
    crew.call("coder").ask("PUT", "/limits", &other).expect(403);
    for wrong in [
        json!({ "expire_seconds": 1 }),
        json!({ "timeout_default_seconds": 90, "timeout_max_seconds": 60 }),
        json!({ "output_mib": 0 }),
        json!({ "output_days": 100_000 }),
    ] {
        let said = crew.call("owner").ask("PUT", "/limits", &wrong).expect(400);
        assert_eq!(said["code"], "bad_limits", "{said}");
    }
    crew.call("owner").ask("PUT", "/limits", &other).expect(200);
    let run = crew.ask("coder", "true", Value::Null).expect(200);
    assert_eq!(run["timeout_ms"], 7000);
    let asked = crew.waiting("coder", "touch x", json!({ "review": "before" }));
    assert!(crew.card(&asked)["expires_in_seconds"].as_u64().unwrap() <= 60);
    let path = format!("/approvals/{}/rule-proposals", text(&asked, "approval_id"));
    assert_eq!(crew.call("ana").get(&path).expect(200)["offered"], false);
    crew.restart();
    let now = crew.call("ana").get("/limits").expect(200);
    assert_eq!(now["now"]["timeout_default_seconds"], 7);
    assert_eq!(now["set"]["timeout_max_seconds"], Value::Null);
    let entries = crate::caller::audit(&crew.home, "");
    assert!(
        entries
            .iter()
            .any(|entry| entry["kind"] == "settings.changed")
    );
}

#[test]
fn secrets_reach_only_what_was_allowed_and_nobody_who_asks() {
    let crew = Crew::new();
    let dir = crew.home.base().join("shop");
    std::fs::create_dir(&dir).unwrap();
    let new = json!({ "label": "shop", "path": dir, "guard": { "set": { "STAGE": "test" } },
                      "secrets": { "SHOP_SIGN": "s3cret-value" } });
    let made = crew.call("owner").post("/sandboxes", &new).expect(201);
    assert_eq!(made["secrets"], json!(["SHOP_SIGN"]));
    assert!(!made.to_string().contains("s3cret"));
    let there = |command: &str, wishes: Value| {
        let mut body = json!({ "command": command, "sandbox_id": "shop" });
        for (name, wish) in wishes.as_object().into_iter().flatten() {
            body[name] = wish.clone();
        }
        crew.call("owner").post("/commands", &body)
    };
    // Proved to read, and tried on a copy: whoever asks sees their output.
    let read = there("printenv STAGE SHOP_SIGN", Value::Null).expect(200);
    assert_eq!(read["stdout"], "test\n");
    let tried = there(
        "sh -c 'echo $STAGE-$SHOP_SIGN'; touch made",
        json!({ "preview": true }),
    )
    .expect(202);
    assert_eq!(tried["stdout"], "test-\n", "{tried}");
    let asked = there(
        "printf %s \"$SHOP_SIGN\" | cksum && touch made",
        json!({ "review": "before" }),
    )
    .expect(202);
    let card = crew.card(&asked);
    crew.approve("ana", &card).expect(200);
    let expected = Command::new("sh")
        .args(["-c", "printf s3cret-value | cksum"])
        .output();
    let expected = String::from_utf8(expected.unwrap().stdout).unwrap();
    assert_eq!(crew.ended(&asked)["stdout"], expected);
    let path = format!("/sandboxes/{}", text(&made, "sandbox_id"));
    let gone = json!({ "secrets": { "SHOP_SIGN": null } });
    let now = crew.call("owner").ask("PATCH", &path, &gone).expect(200);
    assert_eq!(now["secrets"], json!([]));
    let wrong = json!({ "secrets": { "A=B": "x" } });
    crew.call("owner").ask("PATCH", &path, &wrong).expect(400);
    let record = serde_json::to_string(&crate::caller::audit(&crew.home, "")).unwrap();
    assert!(!record.contains("s3cret-value"));
}

#[test]
fn what_is_secret_is_used_and_not_seen() {
    const VALUE: &str = "s3cret/Value-9";
    let crew = Crew::new();
    let dir = crew.home.base().join("shop");
    std::fs::create_dir(&dir).unwrap();
    let new = json!({ "label": "shop", "path": dir, "secrets": { "SHOP_SIGN": VALUE } });
    crew.call("owner").post("/sandboxes", &new).expect(201);
    let allowed = |command: &str, wishes: Value| {
        let mut body = json!({ "command": command, "sandbox_id": "shop", "review": "before" });
        for (name, wish) in wishes.as_object().into_iter().flatten() {
            body[name] = wish.clone();
        }
        let asked = crew.call("owner").post("/commands", &body).expect(202);
        crew.approve("ana", &crew.card(&asked)).expect(200);
        asked
    };
    let script = "echo \"it is $SHOP_SIGN.\"; echo $SHOP_SIGN >&2; \
                  printf %.6s \"$SHOP_SIGN\"; sleep 0.2; echo \"${SHOP_SIGN#??????}\"; \
                  printf 'x%s' \"$SHOP_SIGN\" | base64; printf %s \"$SHOP_SIGN\" > kept; ls";
    let ended = crew.ended(&allowed(script, Value::Null));
    let stars = "*".repeat(VALUE.len());
    let said = text(&ended, "stdout");
    let expected = format!("it is {stars}.\ns3c{}\n", &stars[3..]);
    assert!(said.starts_with(&expected), "{said}");
    assert!(said.ends_with("\nkept\n"), "{said}");
    assert_eq!(ended["stderr"], format!("{stars}\n"));
    // Not what it does with it.
    assert_eq!(std::fs::read_to_string(dir.join("kept")).unwrap(), VALUE);
    // Whoever was not given it sees no more than that.
    let body = json!({ "command": "cat kept", "sandbox_id": "shop" });
    let other = crew.call("owner").post("/commands", &body).expect(200);
    assert_eq!(other["stdout"], stars);
    // A task's file is no way around.
    let task = allowed(
        "touch made; echo $SHOP_SIGN; exec -a \"$SHOP_SIGN\" sleep 60",
        json!({ "background": true, "shell": "bash" }),
    );
    let id = text(&task, "command_id");
    eventually("output", || {
        let run = crew.call("owner").get(&format!("/commands/{id}")).json();
        run["output"]["bytes"].as_u64() > Some(0)
    });
    let tasks = crew.call("owner").get("/tasks").json().to_string();
    assert!(tasks.contains("************** 60"), "{tasks}");
    assert!(!tasks.contains(VALUE), "{tasks}");
    let stop = format!("/commands/{id}/stop");
    crew.call("owner").post(&stop, &json!({})).expect(200);
    crew.ended(&task);
    let state = crew.home.state();
    for part in [&VALUE[3..], "JldC9WYWx1"] {
        let found = Command::new("grep")
            .args(["-rl", part])
            .args(["runs", "tasks"])
            .current_dir(&state)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "", "{part}");
    }
}

#[test]
fn secrets_are_not_where_somebody_goes_on_typing() {
    let crew = Crew::new();
    let dir = crew.home.base().join("shop");
    std::fs::create_dir(&dir).unwrap();
    let new = json!({ "label": "shop", "path": dir, "secrets": { "TOK": "s3cret-value" } });
    crew.call("owner").post("/sandboxes", &new).expect(201);
    let open = json!({ "command": "touch made; read x; echo $TOK | rev", "sandbox_id": "shop",
                       "review": "before", "background": true, "stdin_open": true });
    let asked = crew.call("owner").post("/commands", &open).expect(202);
    crew.approve("ana", &crew.card(&asked)).expect(200);
    let id = text(&asked, "command_id");
    let shown = || crew.call("owner").get(&format!("/commands/{id}")).json();
    eventually("it runs", || shown()["state"] == "running");
    let said = shown()["warnings"].to_string();
    assert!(said.contains("secrets are not set"), "{said}");
}

#[test]
fn what_a_sandbox_sets_for_programs_is_known_to_who_judges_them() {
    let crew = Crew::new();
    let dir = crew.home.base().join("shop");
    std::fs::create_dir(&dir).unwrap();
    let new = json!({ "label": "shop", "path": dir,
                      "guard": { "set": { "GIT_EXTERNAL_DIFF": "./evil" } } });
    crew.call("owner").post("/sandboxes", &new).expect(201);
    let judged = |sandbox: &str| {
        let body = json!({ "command": "git diff", "sandbox": sandbox });
        let said = crew
            .call("owner")
            .post("/policies/explain", &body)
            .expect(200);
        text(&said, "verdict")
    };
    assert_eq!(judged("default"), "auto");
    assert_ne!(judged("shop"), "auto");
}

#[test]
fn directories_are_shown_below_the_allowed_roots_and_nowhere_else() {
    let crew = Crew::new();
    let base = crew.home.base().canonicalize().unwrap();
    std::fs::create_dir_all(base.join("shop/src")).unwrap();
    std::fs::write(base.join("shop/a"), "12345").unwrap();
    std::os::unix::fs::symlink("/etc", base.join("shop/out")).unwrap();
    let look = |path: &str| crew.call("owner").get(&format!("/folders?path={path}"));
    let roots = crew.call("owner").get("/folders").expect(200);
    assert_eq!(roots["folders"][0]["path"], json!(base));
    assert!(
        roots["guard"]["hidden"]
            .as_array()
            .unwrap()
            .contains(&json!("~/.ssh"))
    );
    let shop = look(&base.join("shop").to_string_lossy()).expect(200);
    assert_eq!(shop["bytes"], 5 + "/etc".len());
    assert_eq!(shop["refused"], Value::Null);
    let inside: Vec<String> = { shop["folders"].as_array().unwrap().iter() }
        .map(|folder| text(folder, "name"))
        .collect();
    assert_eq!(inside, ["src"]);
    // Whether it is there or not, and however it is written.
    let out = format!("{}/shop/out", base.display());
    let up = format!("{}/../..", base.display());
    for elsewhere in ["/etc", "/etc/nowhere", "shop", &out, &up] {
        let said = look(elsewhere).expect(400);
        assert_eq!(said["code"], "no_such_folder", "{elsewhere}: {said}");
    }
    crew.call("ana").get("/folders").expect(403);
}

#[test]
fn the_end_of_a_long_list_is_found_without_what_comes_before() {
    let crew = Crew::new();
    for n in 0..5 {
        crew.ask("coder", &format!("echo {n}"), Value::Null)
            .expect(200);
    }
    let listed = |who: &str, query: &str| -> Vec<String> {
        let list = crew
            .call(who)
            .get(&format!("/commands?{query}"))
            .expect(200);
        let commands = list["commands"].as_array().unwrap().iter();
        commands.map(|run| text(run, "command")).collect()
    };
    for who in ["owner", "coder", "ana"] {
        assert_eq!(
            listed(who, "skip=3&limit=10"),
            ["echo 1", "echo 0"],
            "{who}"
        );
        assert_eq!(listed(who, "skip=1&limit=2"), ["echo 3", "echo 2"], "{who}");
        assert!(listed(who, "skip=5").is_empty(), "{who}");
    }
    let run = crew.call("owner").get("/commands?limit=1").expect(200);
    assert!(run["commands"][0]["token"].is_string(), "{run}");
}
