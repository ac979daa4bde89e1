//! Preset `multi-user`: everybody who is no administrator works in a directory
//! of their own, and nowhere else.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::caller::{Caller, add, add_here, audit, sandbox};
use crate::support::{Home, Server};

/// Where the private directories are.
const PRIVATE: &str = "user_data";

fn serve(home: &Home) -> Server {
    home.serve_with("preset = \"multi-user\"\n")
}

fn agent(home: &Home, name: &str) -> Caller {
    Caller::owner(home).bearing(&add(home, name, "agent", json!({})))
}

fn own(home: &Home, name: &str) -> PathBuf {
    home.base().join(PRIVATE).join(name)
}

/// Runs a command in a directory, and returns what became of it.
fn run(who: &Caller, command: &str, cwd: Option<&str>) -> Value {
    let mut body = json!({ "command": command });
    if let Some(cwd) = cwd {
        body["cwd"] = cwd.into();
    }
    let said = who.post("/commands", &body);
    assert_eq!(said.status, 200, "{command} in {cwd:?}: {said:?}");
    said.json()
}

#[test]
fn a_directory_of_ones_own_is_made_when_it_is_first_used() {
    let home = Home::strict();
    let _server = serve(&home);
    let (alice, bob) = (agent(&home, "alice"), agent(&home, "bob"));
    let dir = own(&home, "alice");
    assert!(!home.base().join(PRIVATE).exists(), "nobody has used it");
    let ran = run(&alice, "touch mine", None);
    assert_eq!(
        (&ran["state"], &ran["cwd"]),
        (&json!("succeeded"), &json!(dir)),
        "{ran}"
    );
    assert_eq!(ran["sandbox_id"], "user-alice");
    let meta = dir.metadata().unwrap();
    assert_eq!(
        (meta.permissions().mode() & 0o7777, meta.is_dir()),
        (0o700, true)
    );
    let above = home.base().join(PRIVATE).metadata().unwrap();
    assert_eq!(
        above.permissions().mode() & 0o066,
        0,
        "nobody looks through it"
    );
    assert!(dir.join("mine").exists());
    if !rustix::process::geteuid().is_root() {
        assert_eq!(meta.uid(), rustix::process::geteuid().as_raw());
    }
    // The whole path, a part of it, its id: all lead there.
    std::fs::create_dir(dir.join("sub")).unwrap();
    for cwd in ["", ".", "./", "sub/..", "../alice", dir.to_str().unwrap()] {
        assert_eq!(run(&alice, "pwd", Some(cwd))["cwd"], json!(dir), "{cwd}");
    }
    assert_eq!(
        run(&alice, "pwd", Some("sub"))["cwd"],
        json!(dir.join("sub"))
    );
    let named = json!({ "command": "ls", "sandbox_id": "user-alice" });
    assert_eq!(
        alice.post("/commands", &named).expect(200)["text"],
        "mine\nsub\n"
    );
    let others = bob.post("/commands", &named);
    assert_eq!(others.outcome(), (404, "no_such_sandbox".into()));
    assert!(!own(&home, "bob").exists());
}

#[test]
fn nobody_leaves_their_directory() {
    let home = Home::strict();
    let _server = serve(&home);
    let (alice, bob) = (agent(&home, "alice"), agent(&home, "bob"));
    run(&alice, "touch secret", None);
    run(&bob, "mkdir sub", None);
    let (alices, bobs) = (own(&home, "alice"), own(&home, "bob"));
    symlink(&alices, bobs.join("link")).unwrap();
    symlink("/etc", bobs.join("etc")).unwrap();
    symlink("missing", bobs.join("dangling")).unwrap();
    symlink("loop", bobs.join("loop")).unwrap();
    std::fs::write(bobs.join("file"), "").unwrap();
    let (alices, bobs) = (alices.to_str().unwrap(), bobs.to_str().unwrap());
    let base = home.base();
    for cwd in [
        "..",
        "../",
        "../..",
        "sub/../..",
        "../alice",
        "../nobody",
        alices,
        &format!("{alices}/"),
        &format!("{bobs}/../alice"),
        &format!("{bobs}x"),
        base.to_str().unwrap(),
        "link",
        "link/.",
        "etc",
        "dangling",
        "loop",
        "file",
        "missing",
        "/",
        "/etc",
        "/root",
        "/proc/self/cwd",
        "//",
        "~",
        "~/",
        "~root",
        "$HOME",
        "sub\0",
        "\0",
        "%2e%2e",
        "..%2falice",
        "\u{2024}\u{2024}",
        &"x/".repeat(5000),
        &"../".repeat(5000),
        &"x".repeat(300),
    ] {
        let shown: String = cwd.chars().take(50).collect();
        for path in ["/commands", "/policies/explain"] {
            let said = bob.post(path, &json!({ "command": "ls", "cwd": cwd }));
            let told = said.json();
            assert_eq!(
                said.outcome(),
                (400, "sandbox_violation".into()),
                "{path} {shown}"
            );
            // What is there, or not, is none of their business.
            assert_eq!(
                (&told["detail"], &told["hint"]),
                (
                    &json!("Working directory is outside your sandbox."),
                    &json!("use a relative path inside it, or none")
                ),
                "{path} {shown}"
            );
        }
    }
    let (_, list) = home.api("GET", "/commands", &Value::Null);
    assert_eq!(
        list["commands"].as_array().unwrap().len(),
        2,
        "nothing else ran: {list}"
    );
    home.assert_audit_verifies();
}

#[test]
fn what_holds_everybodys_directories_is_for_administrators() {
    let home = Home::strict();
    let _server = serve(&home);
    let (alice, bob) = (agent(&home, "alice"), agent(&home, "bob"));
    run(&alice, "touch secret", None);
    for sandbox in ["default", "user-alice", "..", "user_data", ""] {
        for path in ["/commands", "/policies/explain"] {
            let said = bob.post(path, &json!({ "command": "ls", "sandbox_id": sandbox }));
            assert_eq!(
                said.outcome(),
                (404, "no_such_sandbox".into()),
                "{path} {sandbox}"
            );
        }
    }
    assert_eq!(bob.get("/sandboxes").expect(200)["sandboxes"], json!([]));
    assert_eq!(bob.get("/sandboxes/default").status, 404);

    // Neither an administrator nor one for whom it is named sees into them.
    let named = add_here(&home, "named", "agent");
    let named = Caller::owner(&home).bearing(&named);
    for who in [&Caller::owner(&home), &named] {
        for command in [
            "ls user_data/alice",
            "cat user_data/alice/secret",
            "ls user_data",
        ] {
            let said = run(who, command, None);
            assert_ne!(said["state"], "succeeded", "{said}");
        }
        let said = who.post(
            "/commands",
            &json!({ "command": "ls", "cwd": "user_data/alice" }),
        );
        assert_eq!(said.outcome(), (400, "sandbox_violation".into()));
    }
    assert!(own(&home, "alice").join("secret").exists());

    // A sandbox that an administrator sets up for somebody is another matter.
    sandbox(&home, "shop", json!({ "agents": ["bob"] }));
    let there = json!({ "command": "pwd", "sandbox_id": "shop" });
    assert_eq!(
        bob.post("/commands", &there).expect(200)["state"],
        "succeeded"
    );
    assert_eq!(alice.post("/commands", &there).status, 404);
}

#[test]
fn nobody_sees_others_from_inside() {
    let home = Home::strict();
    let _server = serve(&home);
    let (alice, bob) = (agent(&home, "alice"), agent(&home, "bob"));
    run(&alice, "touch secret-of-alice", None);
    let theirs = own(&home, "alice").join("secret-of-alice");
    let above = home.base();
    for command in [
        "ls ../".to_owned(),
        "ls -la ..".into(),
        "ls ../alice".into(),
        format!("ls {}", theirs.display()),
        format!("cat {}", theirs.display()),
        format!("find {} -name 'secret*'", above.display()),
        "find / -name 'secret-of*'".into(),
        format!("touch {}", theirs.with_file_name("planted").display()),
        format!("cp -r {} copy", theirs.parent().unwrap().display()),
        "ls -d ../*".into(),
    ] {
        let said = run(&bob, &command, None);
        let text = said["text"].as_str().unwrap_or_default();
        // Its own words may be repeated by an error.
        let told = text.lines().filter(|line| !line.contains("No such file"));
        let told: Vec<&str> = told.filter(|line| line.contains("alice")).collect();
        assert_eq!(told, [""; 0], "{command}: {said}");
    }
    assert_eq!(run(&bob, "ls ../", None)["text"], "bob\n");
    let left = std::fs::read_dir(own(&home, "alice")).unwrap().count();
    assert_eq!(left, 1, "nothing was planted");
    // Not from the other side, either.
    symlink(own(&home, "alice"), own(&home, "bob").join("door")).unwrap();
    assert_ne!(run(&bob, "ls door/", None)["state"], "succeeded");
}

#[test]
fn a_link_in_the_place_of_a_directory_leads_nowhere() {
    let home = Home::strict();
    let _server = serve(&home);
    let alice = agent(&home, "alice");
    run(&alice, "touch secret", None);
    let above = home.base().join(PRIVATE);
    let refused = |name: &str| {
        let said = agent(&home, name).post("/commands", &json!({ "command": "touch planted" }));
        assert_eq!(said.outcome(), (400, "sandbox_violation".into()), "{name}");
    };
    symlink(above.join("alice"), above.join("to-another")).unwrap();
    symlink("alice", above.join("to-a-neighbour")).unwrap();
    symlink("..", above.join("up")).unwrap();
    symlink("/etc", above.join("to-the-system")).unwrap();
    symlink("nowhere", above.join("dangling")).unwrap();
    symlink("loop", above.join("loop")).unwrap();
    std::fs::write(above.join("file"), "").unwrap();
    for name in [
        "to-another",
        "to-a-neighbour",
        "up",
        "to-the-system",
        "dangling",
        "loop",
        "file",
    ] {
        refused(name);
    }
    assert!(
        !above.join("nowhere").exists(),
        "nothing is made through a link"
    );
    assert!(!above.join("alice/planted").exists());

    // Nor what holds them all.
    let moved = home.base().join("moved");
    std::fs::rename(&above, &moved).unwrap();
    std::fs::create_dir(home.base().join("elsewhere")).unwrap();
    symlink("elsewhere", &above).unwrap();
    refused("late");
    let made = std::fs::read_dir(home.base().join("elsewhere"))
        .unwrap()
        .count();
    assert_eq!(made, 0, "nothing is made through a link");
    std::fs::remove_file(&above).unwrap();
    std::fs::rename(&moved, &above).unwrap();
    assert_eq!(run(&alice, "ls", None)["text"], "secret\n");
}

#[test]
fn many_first_uses_at_once_make_one_directory() {
    let home = Home::strict();
    let _server = serve(&home);
    let alice = agent(&home, "alice");
    let states: Vec<Value> = std::thread::scope(|scope| {
        let first = || run(&alice, "pwd", None)["state"].clone();
        let all: Vec<_> = (0..8).map(|_| scope.spawn(first)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(states, vec![json!("succeeded"); 8]);
}

#[test]
fn names_that_would_lead_elsewhere_cannot_be_added() {
    let home = Home::strict();
    let _server = serve(&home);
    let owner = Caller::owner(&home);
    let before = owner.get("/people").expect(200);
    for name in [
        "",
        ".",
        "..",
        "../alice",
        "a/b",
        "/etc",
        "a/../b",
        ".hidden",
        "-rf",
        "_x",
        "a b",
        "a\0",
        "a\n",
        "Alice",
        "älice",
        "al\u{200b}ice",
        "\u{430}lice",
        "~",
        "%2e%2e",
        "a'; DROP TABLE principals; --",
        &"a".repeat(65),
        "root",
        "clock",
        "everyone",
        "policy",
        "weighlock",
        "doctor",
    ] {
        // Root is root's own name, and taken by it.
        let codes = ["bad_person", "name_taken"];
        let new = json!({ "principal_id": name, "role": "agent" });
        let (status, code) = owner.post("/people", &new).outcome();
        assert!(
            matches!(status, 400 | 409) && codes.contains(&code.as_str()),
            "{name:?}: {code}"
        );
    }
    assert_eq!(owner.get("/people").expect(200), before);
    for name in ["a", "a..b", "a-b_c.d", "0", &"a".repeat(64)] {
        assert_eq!(
            run(&agent(&home, name), "pwd", None)["cwd"],
            json!(own(&home, name))
        );
    }
}

#[test]
fn administrators_run_what_they_like_and_others_what_is_listed() {
    let home = Home::strict();
    let _server = serve(&home);
    let (owner, alice) = (Caller::owner(&home), agent(&home, "alice"));
    let admin = add_here(&home, "admin", "administrator");
    let approver = add(&home, "approver", "approver", json!({}));
    let (admin, approver) = (owner.bearing(&admin), owner.bearing(&approver));
    // The words are those of the tool that this preset is of.
    let patterns = "Blocked: Command contains disallowed patterns for non-admin users.";
    for (command, code, text) in [
        ("echo $(curl example.com)", "dangerous_command", patterns),
        ("echo sudo", "dangerous_command", patterns),
        ("python3 -c 'print(1)'", "dangerous_command", patterns),
        ("node -e 1", "dangerous_command", patterns),
        ("ls; eval ls", "dangerous_command", patterns),
        ("echo x > /dev/null", "dangerous_command", patterns),
        ("ls; rm -rf /", "dangerous_command", patterns),
        (
            "id",
            "not_allowed",
            "Command 'id' is not in the allowed list for non-admin users.",
        ),
        (
            "sh -c ls",
            "not_allowed",
            "Command 'sh' is not in the allowed list",
        ),
        (
            "./ls",
            "not_allowed",
            "Command './ls' is not in the allowed list",
        ),
        (
            "A=1 ls",
            "not_allowed",
            "Command 'A=1' is not in the allowed list",
        ),
    ] {
        for who in [&alice, &approver] {
            let said = run(who, command, None);
            assert_eq!(
                (&said["state"], &said["reason"]["code"]),
                (&json!("blocked"), &json!(code)),
                "{command}: {said}"
            );
            let told = said["reason"]["text"].as_str().unwrap();
            assert!(told.starts_with(text), "{command}: {told}");
        }
        for who in [&owner, &admin] {
            let judged = who.post("/policies/explain", &json!({ "command": command }));
            let by_list = judged.expect(200)["reasons"].to_string();
            assert!(!by_list.contains("non-admin"), "{command}: {by_list}");
        }
    }
    assert_eq!(
        run(&owner, "id -u > /dev/null; sh -c 'echo ok'", None)["text"],
        "ok\n"
    );
    assert_eq!(run(&admin, "sh -c 'echo ok'", None)["text"], "ok\n");
    assert_eq!(
        run(&alice, "echo a | tr a b", None)["text"],
        "b\n",
        "a shell reads it"
    );
    let blocked = audit(&home, "kind=run.blocked&owner=alice");
    assert_eq!(blocked.len(), 11);
}

#[test]
fn without_the_preset_a_directory_of_that_name_is_nothing_special() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let owner = Caller::owner(&home);
    let dir = own(&home, "shop");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("file"), "").unwrap();
    let (_, ran) = home.ask("ls user_data/shop", json!({}));
    assert_eq!(ran["stdout"], "file\n", "{ran}");
    let (_, ran) = home.ask("ls", json!({ "cwd": "user_data/shop" }));
    assert_eq!(ran["stdout"], "file\n", "{ran}");
    owner
        .post("/sandboxes", &json!({ "label": "shop", "path": dir }))
        .expect(201);
}
