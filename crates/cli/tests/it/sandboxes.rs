//! Sandboxes that are set up, changed and taken away while the server runs.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::caller::{Caller, Said, add, audit, sandbox};
use crate::support::{Home, Server};

/// A server below whose roots is everything of its home.
fn serve(home: &Home) -> Server {
    home.serve_with(&format!("roots = [\"{}\"]\n", home.dir().display()))
}

fn list(owner: &Caller) -> Value {
    owner.get("/sandboxes").expect(200)
}

fn run_in(who: &Caller, sandbox: &str, command: &str) -> Said {
    who.post(
        "/commands",
        &json!({ "command": command, "sandbox_id": sandbox }),
    )
}

fn patch(owner: &Caller, sandbox: &str, change: Value) -> Said {
    owner.ask("PATCH", &format!("/sandboxes/{sandbox}"), &change)
}

fn problem(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn a_default_that_holds_more_than_a_project_says_so() {
    let home = Home::untouched();
    let at_home = home.around().join("home");
    std::fs::create_dir_all(&at_home).unwrap();
    let said = |server: &Server| { server.said.lines() }.any(|line| line.starts_with("  note "));
    let server = home.serve(&["--base", at_home.to_str().unwrap()]);
    assert!(said(&server), "{}", server.said);
    let owner = Caller::owner(&home);
    let default = list(&owner)["sandboxes"][0].clone();
    assert_eq!(default["source"], "built-in");
    let warning = text(&default["warning"]);
    assert!(warning.contains("is the home directory"), "{warning}");
    let refused = patch(&owner, "default", json!({ "label": "x" })).expect(409);
    assert_eq!(
        refused["detail"],
        "sandbox `default` is built in; nothing was changed"
    );
    server.terminate();
    // One that is a project's says nothing.
    let server = home.serve(&[]);
    assert!(!said(&server), "{}", server.said);
    assert_eq!(list(&owner)["sandboxes"][0]["warning"], Value::Null);
}

#[test]
fn what_is_no_workplace_is_refused() {
    let home = Home::new();
    let outside = tempfile::tempdir().unwrap();
    let at = |name: &str| {
        let dir = home.around().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        dir.to_str().unwrap().to_owned()
    };
    let (ok, odd) = (at("ok"), at("odd\nname"));
    at("home/project");
    home.put("file", "");
    let (links, file) = (home.around().join("links"), home.around().join("file"));
    std::fs::create_dir(&links).unwrap();
    for (name, to) in [
        ("out", outside.path().to_str().unwrap()),
        ("system", "/etc"),
        ("state", home.state().to_str().unwrap()),
        ("dangling", "nowhere"),
        ("loop", "loop"),
        ("odd", &odd),
        ("file", file.to_str().unwrap()),
    ] {
        symlink(to, links.join(name)).unwrap();
    }
    let _server = serve(&home);
    let owner = Caller::owner(&home);
    let before = list(&owner);
    let link = |name: &str| links.join(name).to_str().unwrap().to_owned();
    let state = home.state();
    for path in [
        "",
        ".",
        "ok",
        "./ok",
        "~/project",
        "~root",
        "/",
        "/etc",
        "/etc/ssl",
        "/usr",
        "/usr/bin",
        "/proc/self",
        "/dev/shm",
        "/tmp",
        "/home",
        "/nonexistent/dir",
        outside.path().to_str().unwrap(),
        home.around().join("missing").to_str().unwrap(),
        file.to_str().unwrap(),
        &format!("{ok}/../../../etc"),
        // What is weighlock's own, and what holds that.
        state.to_str().unwrap(),
        state.join("runs").to_str().unwrap(),
        home.around().to_str().unwrap(),
        // The home directory, and what holds it.
        home.around().join("home").to_str().unwrap(),
        &format!("{ok}\0"),
        &odd,
        &format!("{ok}\n"),
        &link("out"),
        &link("system"),
        &link("state"),
        &link("dangling"),
        &link("loop"),
        &link("odd"),
        &link("file"),
        &format!("/{}", "x".repeat(5000)),
        &"/x".repeat(5000),
    ] {
        let said = owner.post("/sandboxes", &json!({ "label": "new", "path": path }));
        let shown: String = path.chars().take(60).collect();
        assert_eq!(said.outcome(), problem(400, "bad_sandbox"), "{shown:?}");
        assert!(
            said.json()["detail"]
                .as_str()
                .unwrap()
                .ends_with("; nothing was changed")
        );
    }
    assert_eq!(list(&owner), before);
    assert_eq!(audit(&home, "kind=sandbox."), [Value::Null; 0]);
    owner
        .post("/sandboxes", &json!({ "label": "new", "path": ok }))
        .expect(201);
    let below = home.around().join("home/project");
    owner
        .post("/sandboxes", &json!({ "label": "below", "path": below }))
        .expect(201);
}

#[test]
fn without_roots_only_the_base_directory_has_sandboxes() {
    let home = Home::strict();
    let server = home.serve_with("preset = \"multi-user\"\n");
    let owner = Caller::owner(&home);
    let add_at = |label: &str, path: &Path, for_whom: &str| {
        let new = json!({ "label": label, "path": path, "owner_principal_id": for_whom });
        owner.post("/sandboxes", &new).outcome()
    };
    for name in ["alice", "bob"] {
        let caller = owner.bearing(&add(&home, name, "agent", json!({})));
        caller
            .post("/commands", &json!({ "command": "mkdir sub" }))
            .expect(200);
    }
    let private = home.base().join("user_data");
    let beside = home.around().join("beside");
    std::fs::create_dir(&beside).unwrap();
    let refused = problem(400, "bad_sandbox");
    assert_eq!(add_at("beside", &beside, "alice"), refused);
    assert_eq!(add_at("all", &private, "alice"), refused);
    assert_eq!(add_at("bobs", &private.join("bob"), "alice"), refused);
    assert_eq!(add_at("bobs", &private.join("bob/sub"), "alice"), refused);
    assert_eq!(
        add_at("mine", &private.join("alice/sub"), &home.me()),
        refused
    );
    assert_eq!(
        add_at("no-one", &private.join("bob"), "nobody-at-all").0,
        404
    );
    assert_eq!(
        add_at("hers", &private.join("alice/sub"), "alice"),
        (201, String::new())
    );
    drop(server);
}

#[test]
fn another_directory_in_its_place_is_not_used() {
    let home = Home::new();
    let _server = serve(&home);
    let owner = Caller::owner(&home);
    let (real, aside) = (home.around().join("real"), home.around().join("aside"));
    let elsewhere = home.around().join("elsewhere");
    std::fs::create_dir_all(real.join("deep/shop")).unwrap();
    std::fs::create_dir_all(elsewhere.join("deep/shop")).unwrap();
    symlink("real", home.around().join("link")).unwrap();
    let through = home.around().join("link/deep/shop");
    let new = json!({ "label": "shop", "path": through, "guard": { "rules": "[[rule]]\nask = \"cp *\"\n" } });
    let made = owner.post("/sandboxes", &new).expect(201);
    let dir = real.join("deep/shop");
    assert_eq!(made["path"], json!(dir), "what a link leads to");
    let waiting = run_in(&owner, "shop", "cp a b").expect(202);
    assert_eq!(
        run_in(&owner, "shop", "pwd").expect(200)["stdout"],
        format!("{}\n", dir.display())
    );
    // Where the link leads to now is of no matter.
    std::fs::remove_file(home.around().join("link")).unwrap();
    symlink("elsewhere", home.around().join("link")).unwrap();
    assert_eq!(
        run_in(&owner, "shop", "pwd").expect(200)["stdout"],
        format!("{}\n", dir.display())
    );

    type Swap<'a> = &'a dyn Fn();
    let gone: Swap = &|| {};
    let made_anew: Swap = &|| std::fs::create_dir_all(&dir).unwrap();
    let linked: Swap = &|| {
        std::fs::create_dir_all(dir.parent().unwrap()).unwrap();
        symlink(elsewhere.join("deep/shop"), &dir).unwrap();
    };
    let linked_to_itself: Swap = &|| symlink(&aside, &real).unwrap();
    let linked_above: Swap = &|| symlink(&elsewhere, &real).unwrap();
    let a_file: Swap = &|| {
        std::fs::create_dir_all(dir.parent().unwrap()).unwrap();
        std::fs::write(&dir, "").unwrap();
    };
    let runs = || {
        owner.get("/commands").expect(200)["commands"]
            .as_array()
            .unwrap()
            .len()
    };
    for (name, swap) in [
        ("gone", gone),
        ("made anew", made_anew),
        ("a link", linked),
        ("a link to itself", linked_to_itself),
        ("a link above it", linked_above),
        ("a file", a_file),
    ] {
        std::fs::rename(&real, &aside).unwrap();
        swap();
        let before = runs();
        let said = run_in(&owner, "shop", "touch planted");
        assert_eq!(said.outcome(), problem(409, "sandbox_changed"), "{name}");
        assert_eq!(
            patch(&owner, "shop", json!({ "is_active": true })).status,
            200
        );
        assert_eq!(
            run_in(&owner, "shop", "ls").status,
            409,
            "{name}: it is not pinned anew"
        );
        let path = format!("/commands/{}/approve", text(&waiting["command_id"]));
        let said = owner.post(&path, &Value::Null);
        assert_eq!(said.outcome(), problem(409, "sandbox_changed"), "{name}");
        let path = format!("/approvals/{}", text(&waiting["approval_id"]));
        assert_eq!(owner.get(&path).expect(200)["state"], "pending", "{name}");
        assert_eq!(runs(), before, "{name}");
        let _ = std::fs::remove_file(&real);
        let _ = std::fs::remove_dir_all(&real);
        std::fs::rename(&aside, &real).unwrap();
        assert_eq!(
            run_in(&owner, "shop", "true").expect(200)["state"],
            "succeeded",
            "{name}"
        );
    }
    let planted = [&dir, &elsewhere.join("deep/shop")].map(|dir| dir.join("planted").exists());
    assert_eq!(planted, [false, false]);
}

#[test]
fn one_that_is_switched_off_takes_no_new_runs() {
    let home = Home::new();
    let server = serve(&home);
    let owner = Caller::owner(&home);
    sandbox(
        &home,
        "shop",
        json!({ "rules": "[[rule]]\nask = \"cp *\"\n" }),
    );
    let wish = json!({ "command": "while ! test -e go; do sleep 0.02; done", "sandbox_id": "shop",
                       "background": true });
    let running = owner.post("/commands", &wish).expect(202);
    let waiting = run_in(&owner, "shop", "cp a b").expect(202);
    let off = patch(&owner, "shop", json!({ "is_active": false })).expect(200);
    assert_eq!(off["is_active"], false);
    assert_eq!(
        run_in(&owner, "shop", "true").outcome(),
        problem(409, "sandbox_inactive")
    );
    let explained = owner.post(
        "/policies/explain",
        &json!({ "command": "ls", "sandbox": "shop" }),
    );
    assert_eq!(explained.outcome(), problem(409, "sandbox_inactive"));
    let path = format!("/commands/{}", text(&waiting["command_id"]));
    let approved = owner.post(&format!("{path}/approve"), &Value::Null);
    assert_eq!(approved.outcome(), problem(409, "sandbox_inactive"));
    let asked = owner.get(&format!("/approvals/{}", text(&waiting["approval_id"])));
    assert_eq!(asked.expect(200)["state"], "pending");
    assert_eq!(server.terminate(), Some(0));

    // Off it stays; what ran goes on.
    let _server = serve(&home);
    assert_eq!(
        run_in(&owner, "shop", "true").outcome(),
        problem(409, "sandbox_inactive")
    );
    assert_eq!(home.get(text(&running["command_id"]))["state"], "running");
    std::fs::write(home.base().join("shop/go"), "").unwrap();
    assert_eq!(
        home.ended(text(&running["command_id"]))["state"],
        "succeeded"
    );
    patch(&owner, "shop", json!({ "is_active": true })).expect(200);
    assert_eq!(
        run_in(&owner, "shop", "true").expect(200)["state"],
        "succeeded"
    );
    assert_eq!(
        owner.post(&format!("{path}/approve"), &Value::Null).status,
        200
    );
}

#[test]
fn one_that_is_taken_away_leaves_its_runs_and_its_directory() {
    let home = Home::new();
    let _server = serve(&home);
    let owner = Caller::owner(&home);
    let asks = json!({ "rules": "[[rule]]\nask = \"touch *\"\n" });
    let made = sandbox(&home, "shop", asks.clone());
    let id = text(&made["sandbox_id"]).to_owned();
    let grant = json!({ "pattern": "touch *", "sandbox": "shop" });
    owner.post("/policies/grants", &grant).expect(200);
    let ran = run_in(&owner, "shop", "touch made").expect(200);
    assert_eq!(ran["state"], "succeeded", "what was allowed counts: {ran}");
    owner
        .ask("DELETE", "/sandboxes/shop", &Value::Null)
        .expect(204);
    for name in ["shop", &id] {
        assert_eq!(
            run_in(&owner, name, "true").outcome(),
            problem(404, "no_such_sandbox")
        );
        let path = format!("/sandboxes/{name}");
        for method in ["GET", "DELETE"] {
            let said = owner.ask(method, &path, &Value::Null);
            assert_eq!(said.outcome(), problem(404, "no_such_sandbox"), "{method}");
        }
        let said = patch(&owner, name, json!({ "is_active": true }));
        assert_eq!(said.outcome(), problem(404, "no_such_sandbox"));
    }
    let runs = owner.get(&format!("/commands?sandbox={id}")).expect(200);
    assert_eq!(runs["commands"][0]["command_id"], ran["command_id"]);
    assert_eq!(
        owner
            .get(&format!("/commands/{}", text(&ran["command_id"])))
            .expect(200),
        ran
    );
    let entries = audit(&home, &format!("sandbox={id}"));
    let kinds: Vec<&Value> = entries.iter().map(|entry| &entry["kind"]).collect();
    assert_eq!(
        kinds,
        [
            "sandbox.created",
            "run.started",
            "run.ended",
            "sandbox.deleted"
        ]
    );
    assert!(
        home.base().join("shop/made").exists(),
        "the directory is not touched"
    );

    // Its name is free, and what was allowed there is not allowed here.
    let again = sandbox(&home, "shop", asks);
    assert_ne!(again["sandbox_id"], json!(id));
    assert_eq!(
        run_in(&owner, "shop", "touch again").expect(202)["state"],
        "waiting"
    );
}

#[test]
fn a_name_belongs_to_one() {
    let home = Home::new();
    let other = home.around().join("other");
    std::fs::create_dir(&other).unwrap();
    let settings = format!(
        "roots = [\"{}\"]\n[sandbox.fixed]\ndirectory = \"{}\"\n",
        home.dir().display(),
        other.display()
    );
    let _server = home.serve_with(&settings);
    let owner = Caller::owner(&home);
    let id = text(&sandbox(&home, "shop", json!({}))["sandbox_id"]).to_owned();
    sandbox(&home, "notes", json!({}));
    let before = list(&owner);
    let new = |label: &str| owner.post("/sandboxes", &json!({ "label": label, "path": other }));
    for label in ["shop", "default", "fixed", &id, "user-coder"] {
        assert_eq!(new(label).outcome(), problem(409, "name_taken"), "{label}");
        let said = patch(&owner, "notes", json!({ "label": label }));
        assert_eq!(said.outcome(), problem(409, "name_taken"), "{label}");
    }
    for label in [
        "",
        ".",
        "..",
        "a/b",
        "a b",
        "a\0",
        "a\n",
        "é",
        "a'b",
        "%2e",
        &"a".repeat(65),
    ] {
        assert_eq!(
            new(label).outcome(),
            problem(400, "bad_sandbox"),
            "{label:?}"
        );
        let said = patch(&owner, "notes", json!({ "label": label }));
        assert_eq!(said.outcome(), problem(400, "bad_sandbox"), "{label:?}");
    }
    // What the settings say, only the settings change.
    for name in ["default", "fixed"] {
        let said = patch(&owner, name, json!({ "is_active": false }));
        assert_eq!(said.outcome(), problem(409, "in_settings"));
        let said = owner.ask("DELETE", &format!("/sandboxes/{name}"), &Value::Null);
        assert_eq!(said.outcome(), problem(409, "in_settings"));
    }
    assert_eq!(list(&owner), before);

    // One that is called otherwise is the same.
    patch(&owner, "shop", json!({ "label": "webshop" })).expect(200);
    assert_eq!(owner.get("/sandboxes/shop").status, 404);
    assert_eq!(
        owner.get("/sandboxes/webshop").expect(200)["sandbox_id"],
        json!(id)
    );
    new("shop").expect(201);
}

#[test]
fn a_change_is_made_to_what_was_read() {
    let home = Home::new();
    let _server = serve(&home);
    let owner = Caller::owner(&home);
    sandbox(&home, "shop", json!({}));
    let read = owner.get("/sandboxes/shop");
    assert_eq!(read.header("etag"), Some("\"1\""));
    let before = read.expect(200);
    for stale in [
        "\"0\"",
        "\"2\"",
        "2",
        "\"x\"",
        "W/\"1\"",
        "",
        "\"1\", \"2\"",
    ] {
        let with = owner.with("if-match", stale);
        let said = patch(&with, "shop", json!({ "label": "changed" }));
        assert_eq!(said.outcome(), problem(412, "changed_meanwhile"), "{stale}");
        let said = with.ask("DELETE", "/sandboxes/shop", &Value::Null);
        assert_eq!(said.outcome(), problem(412, "changed_meanwhile"), "{stale}");
        let said = with.ask("PATCH", &format!("/people/{}", home.me()), &json!({}));
        assert_eq!(said.outcome(), problem(412, "changed_meanwhile"), "{stale}");
    }
    assert_eq!(owner.get("/sandboxes/shop").expect(200), before);
    let changed = patch(
        &owner.with("if-match", "\"1\""),
        "shop",
        json!({ "is_active": false }),
    );
    assert_eq!(
        (changed.status, changed.header("etag")),
        (200, Some("\"2\""))
    );
    assert_eq!(
        patch(&owner.with("if-match", "\"1\""), "shop", json!({})).status,
        412
    );
    assert_eq!(
        patch(&owner.with("if-match", "*"), "shop", json!({})).status,
        200
    );
    let with = owner.with("if-match", "\"3\"");
    with.ask("DELETE", "/sandboxes/shop", &Value::Null)
        .expect(204);
}

#[test]
fn a_change_changes_only_what_is_given() {
    let home = Home::new();
    let _server = serve(&home);
    let owner = Caller::owner(&home);
    add(&home, "coder", "agent", json!({}));
    let guard = json!({ "network": "on", "agents": ["coder"], "presets": ["strict"],
                        "limits": { "memory_mib": 512, "processes": 64 } });
    let mut expected = sandbox(&home, "shop", guard);
    let mut check = |change: Value, set: &[(&str, Value)]| {
        let mut now = patch(&owner, "shop", change.clone()).expect(200);
        for (pointer, value) in set {
            *expected.pointer_mut(pointer).unwrap() = value.clone();
        }
        expected["version"] = (expected["version"].as_i64().unwrap() + 1).into();
        expected["updated_at"] = now["updated_at"].take();
        now["updated_at"] = expected["updated_at"].clone();
        assert_eq!(now, expected, "{change}");
        assert_eq!(
            owner.get("/sandboxes/shop").expect(200),
            expected,
            "{change}"
        );
    };
    check(json!({}), &[]);
    check(
        json!({ "is_active": false }),
        &[("/is_active", json!(false))],
    );
    check(json!({ "is_active": true }), &[("/is_active", json!(true))]);
    check(
        json!({ "guard": { "files": "read" } }),
        &[("/files", json!("read"))],
    );
    let half = json!({ "guard": { "limits": { "memory_mib": 256 } } });
    check(half, &[("/limits/memory_mib", json!(256))]);
    let open = json!({ "guard": { "agents": null, "network": "off" } });
    check(
        open,
        &[("/agents", Value::Null), ("/network", json!("off"))],
    );
    check(
        json!({ "guard": { "presets": [] } }),
        &[("/presets", json!([]))],
    );
    let owned = json!({ "owner_principal_id": "coder" });
    check(owned, &[("/owner_principal_id", json!("coder"))]);

    let before = owner.get("/sandboxes/shop").expect(200);
    for (wrong, status, code) in [
        (json!({ "path": "/" }), 422, "invalid_body"),
        (json!({ "sandbox_id": "x" }), 422, "invalid_body"),
        (
            json!({ "owner_principal_id": "no-such-person" }),
            404,
            "no_such_person",
        ),
        (json!({ "guard": { "unknown": 1 } }), 400, "bad_sandbox"),
        (json!({ "guard": { "files": "all" } }), 400, "bad_sandbox"),
        (
            json!({ "guard": { "limits": { "memory_mib": -1 } } }),
            400,
            "bad_sandbox",
        ),
        (
            json!({ "guard": { "presets": ["none"] } }),
            400,
            "bad_sandbox",
        ),
        (json!({ "guard": { "read": ["etc"] } }), 400, "bad_sandbox"),
        (
            json!({ "guard": { "write": ["/x/../etc"] } }),
            400,
            "bad_sandbox",
        ),
        (
            json!({ "guard": { "rules": "[[rule]]\nnonsense = 1\n" } }),
            400,
            "bad_rules",
        ),
        (json!({ "guard": { "user": "root" } }), 400, "bad_sandbox"),
        (json!({ "guard": { "user": "no one" } }), 400, "bad_sandbox"),
        (
            json!({ "guard": { "review": "sometimes" } }),
            400,
            "bad_sandbox",
        ),
        // Half of it is right, and none of it is done.
        (
            json!({ "label": "new", "guard": { "files": "all" } }),
            400,
            "bad_sandbox",
        ),
    ] {
        let said = patch(&owner, "shop", wrong.clone());
        assert_eq!(said.outcome(), problem(status, code), "{wrong}");
        assert_eq!(owner.get("/sandboxes/shop").expect(200), before, "{wrong}");
    }
}

#[test]
fn its_rules_and_presets_make_the_policy_stricter_and_never_milder() {
    let home = Home::strict();
    let _server = serve(&home);
    let owner = Caller::owner(&home);
    let rules = "[[rule]]\nreject = \"git status\"\nbecause = \"is not for here\"\n";
    sandbox(&home, "shop", json!({ "rules": rules }));
    let milder = format!("{rules}\n[[rule]]\nauto = \"touch *\"\n");
    let said = patch(&owner, "shop", json!({ "guard": { "rules": milder } }));
    assert_eq!(said.outcome(), problem(400, "bad_rules"));
    let verdict = |sandbox: &str, command: &str| {
        let asked = json!({ "command": command, "sandbox": sandbox });
        owner.post("/policies/explain", &asked).expect(200)["verdict"].clone()
    };
    for (command, default, shop) in [
        ("ls", "auto", "auto"),
        ("git status", "auto", "reject"),
        ("touch x", "ask", "ask"),
        ("rm -rf /", "reject", "reject"),
    ] {
        assert_eq!(verdict("default", command), default, "{command}");
        assert_eq!(verdict("shop", command), shop, "{command}");
    }
    let blocked = run_in(&owner, "shop", "git status").expect(200);
    assert_eq!(
        (&blocked["state"], &blocked["reason"]["layer"]),
        (&json!("blocked"), &json!("sandbox"))
    );
    let preset = json!({ "guard": { "rules": null, "presets": ["blacklist", "approval"] } });
    patch(&owner, "shop", preset).expect(200);
    assert_eq!(
        verdict("shop", "git status"),
        "ask",
        "the strictest of them"
    );
    assert_eq!(
        verdict("shop", "touch x"),
        "ask",
        "a preset that would run it does not count"
    );
    assert_eq!(verdict("shop", "echo sudo x"), "reject");
    patch(&owner, "shop", json!({ "guard": { "presets": [] } })).expect(200);
    assert_eq!(verdict("shop", "git status"), "auto");
}

#[test]
fn its_files_can_be_for_reading_only() {
    let home = Home::new();
    let _server = serve(&home);
    let owner = Caller::owner(&home);
    sandbox(&home, "shop", json!({ "files": "read" }));
    std::fs::write(home.base().join("shop/file"), "text").unwrap();
    assert_eq!(
        run_in(&owner, "shop", "cat file").expect(200)["stdout"],
        "text"
    );
    assert_eq!(
        run_in(&owner, "shop", "touch made").expect(200)["state"],
        "failed"
    );
    assert_eq!(
        run_in(&owner, "shop", "cat ../../config.toml").expect(200)["state"],
        "failed"
    );
    assert!(!home.base().join("shop/made").exists());
}

#[test]
fn a_list_of_who_may_use_it_keeps_others_out() {
    let home = Home::new();
    let _server = serve(&home);
    let owner = Caller::owner(&home);
    sandbox(&home, "shop", json!({ "agents": ["coder"] }));
    let coder = owner.bearing(&add(&home, "coder", "agent", json!({})));
    let other = owner.bearing(&add(&home, "other", "agent", json!({})));
    let admin = owner.bearing(&add(&home, "admin", "administrator", json!({})));
    for who in [&coder, &owner, &admin] {
        assert_eq!(
            run_in(who, "shop", "true").expect(200)["state"],
            "succeeded"
        );
    }
    let id = owner.get("/sandboxes/shop").expect(200)["sandbox_id"].clone();
    for name in ["shop", text(&id)] {
        let said = run_in(&other, name, "true");
        assert_eq!(said.outcome(), problem(404, "no_such_sandbox"));
        let absent = run_in(&other, "nowhere", "true").json();
        assert_eq!(
            said.json()["hint"],
            absent["hint"],
            "as if it were not there"
        );
        assert_eq!(other.get(&format!("/sandboxes/{name}")).status, 404);
    }
    // Whoever is taken off the list is out, with what waits.
    patch(
        &owner,
        "shop",
        json!({ "guard": { "rules": "[[rule]]\nask = \"true\"\n" } }),
    )
    .expect(200);
    let waiting = run_in(&coder, "shop", "true").expect(202);
    patch(&owner, "shop", json!({ "guard": { "agents": ["other"] } })).expect(200);
    assert_eq!(run_in(&coder, "shop", "true").status, 404);
    let approve = format!("/commands/{}/approve", text(&waiting["command_id"]));
    assert_eq!(
        owner.post(&approve, &Value::Null).outcome(),
        problem(404, "no_such_sandbox")
    );
    assert_eq!(home.get(text(&waiting["command_id"]))["state"], "waiting");
}

#[test]
fn nobody_picks_a_sandbox_for_a_request() {
    let home = Home::new();
    let _server = serve(&home);
    let owner = Caller::owner(&home);
    sandbox(&home, "shop", json!({}));
    sandbox(&home, "secret", json!({ "agents": [] }));
    let coder = owner.bearing(&add(&home, "coder", "agent", json!({})));
    for path in ["/commands", "/policies/explain"] {
        let said = coder.post(path, &json!({ "command": "true" }));
        assert_eq!(said.outcome(), problem(400, "no_sandbox_named"), "{path}");
        assert_eq!(said.json()["hint"], "name one of: default, shop");
    }
    let default = json!({ "default_sandbox": "shop" });
    owner.ask("PATCH", "/people/coder", &default).expect(200);
    let ran = coder
        .post("/commands", &json!({ "command": "pwd" }))
        .expect(200);
    assert_eq!(ran["cwd"], json!(home.base().join("shop")));
    owner
        .ask("PATCH", "/people/coder", &json!({ "default_sandbox": "" }))
        .expect(200);
    let said = coder.post("/commands", &json!({ "command": "true" }));
    assert_eq!(said.outcome(), problem(400, "no_sandbox_named"));
    for wrong in [
        json!({ "default_sandbox": "nowhere" }),
        json!({ "sandboxes": ["nowhere"] }),
    ] {
        let said = owner.ask("PATCH", "/people/coder", &wrong);
        assert_eq!(said.outcome(), problem(404, "no_such_sandbox"), "{wrong}");
    }
    // A list that is empty is nowhere, not everywhere.
    owner
        .ask("PATCH", "/people/coder", &json!({ "sandboxes": [] }))
        .expect(200);
    assert_eq!(
        run_in(&coder, "shop", "true").outcome(),
        problem(404, "no_such_sandbox")
    );
    owner
        .ask("PATCH", "/people/coder", &json!({ "everywhere": true }))
        .expect(200);
    assert_eq!(
        run_in(&coder, "shop", "true").expect(200)["state"],
        "succeeded"
    );
}
