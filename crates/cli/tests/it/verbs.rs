//! The other verbs of the command line.

use serde_json::Value;

use crate::support::Home;

#[test]
fn the_blacklist_blocks_before_anything_runs() {
    let home = Home::new();
    let done = home.run(&[], "touch ran;  SUDO   ls");
    assert_eq!(done.code, Some(126));
    assert!(
        done.err.starts_with("⛔ Blocked — nothing was run\n"),
        "{done:?}"
    );
    assert!(
        done.err
            .contains("Command is not allowed by terminal blacklist."),
        "{done:?}"
    );
    assert!(!home.base().join("ran").exists());
}

#[test]
fn a_blacklist_of_ones_own_replaces_the_built_in_one_at_once() {
    let home = Home::new();
    let file = home.base().join(".agents/terminal.json");
    assert_eq!(home.call(&["blacklist"]).out.lines().count(), 18);
    assert!(!file.exists(), "looking saves nothing");
    assert_eq!(home.call(&["blacklist", "add", "deploy"]).code, Some(0));
    let saved: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(saved["commandBlacklist"].as_array().unwrap().len(), 19);
    assert_eq!(home.run(&[], "echo DEPLOY").code, Some(126));
    for wrong in ["deploy", " "] {
        assert_eq!(home.call(&["blacklist", "add", wrong]).code, Some(1));
    }
    assert_eq!(home.call(&["blacklist", "remove", "deploy"]).code, Some(0));
    assert_eq!(home.run(&[], "echo DEPLOY").code, Some(0));
    std::fs::write(&file, r#"{"commandBlacklist":["only this"]}"#).unwrap();
    assert_eq!(home.run(&[], "echo sudo x").code, Some(0));
    assert_eq!(home.run(&[], "echo only  this").code, Some(126));
    std::fs::write(&file, "broken").unwrap();
    let done = home.run(&[], "echo sudo x");
    assert_eq!(
        done.code,
        Some(126),
        "a broken file means the built-in list"
    );
    let done = home.run(&[], "true");
    assert!(
        done.err.contains("warning: ") && done.err.contains("built-in"),
        "{done:?}"
    );
    assert_eq!(home.call(&["doctor"]).code, Some(1));
    assert_eq!(home.call(&["blacklist", "add", "x"]).code, Some(1));
    assert_eq!(std::fs::read(&file).unwrap(), b"broken", "not overwritten");
    assert_eq!(home.call(&["blacklist", "reset"]).code, Some(0));
    assert!(!file.exists());
    assert_ne!(home.show("@last")["requested_by"], "doctor");
    home.assert_audit_verifies();
}

#[test]
fn runs_are_listed_and_found_by_short_ids() {
    let home = Home::new();
    home.run(&[], "echo one");
    home.run(&[], "echo two; exit 3");
    let list = home.call(&["runs"]).out;
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[0].contains("echo two; exit 3") && lines[0].ends_with("✗ 3"),
        "{list}"
    );
    assert_eq!(home.call(&["runs", "failed"]).out.lines().count(), 1);
    assert_eq!(home.call(&["runs", "ECHO ONE"]).out.lines().count(), 1);
    assert_eq!(home.call(&["runs", "nothing"]).out, "No runs.\n");
    let run = home.show("@last");
    for id in ["command_id", "short_id"] {
        let id = run[id].as_str().unwrap();
        assert_eq!(home.show(id), run);
    }
    let short = run["short_id"].as_str().unwrap();
    assert_eq!(home.show(&short[..6]), run);
    let done = home.call(&["show", "r_zzzz"]);
    assert_eq!(done.code, Some(1));
    assert!(
        done.err.starts_with("error: no run `r_zzzz`\nhint: "),
        "{done:?}"
    );
}

#[test]
fn stop_all_ends_everything() {
    let home = Home::new();
    for _ in 0..2 {
        home.run(&["--bg"], "sleep 99");
    }
    home.run(&["--keep"], "sleep 99 &");
    assert_eq!(home.call(&["stop", "--all"]).out.lines().count(), 3);
    home.assert_gone();
    assert_eq!(home.call(&["stop", "--all"]).out, "Nothing runs.\n");
}

#[test]
fn an_export_is_verified_anywhere() {
    let home = Home::new();
    home.run(&[], "true");
    let file = home.base().join("audit.jsonl");
    let path = file.to_str().unwrap();
    assert_eq!(home.call(&["audit", "export", "-o", path]).code, Some(0));
    let elsewhere = Home::new();
    let done = elsewhere.call(&["audit", "verify", "--file", path]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.starts_with("✓ 4 entries, chain ok"), "{done:?}");
    assert_eq!(
        elsewhere.call(&["audit", "verify"]).code,
        Some(1),
        "there is none there"
    );
}

#[test]
fn doctor_tells_what_each_wall_is_made_of() {
    let home = Home::new();
    let done = home.call(&["doctor", "-v"]);
    for line in ["namespaces", "proc", "Landlock", "seccomp", "walls", "run"] {
        let mark = done
            .out
            .lines()
            .find(|text| text[3..].starts_with(&format!(" {line}")));
        assert!(mark.is_some(), "{line}: {done:?}");
    }
    let json: Value = serde_json::from_str(&home.call(&["doctor", "--json"]).out).unwrap();
    let (status, checks) = home.api("GET", "/health/checks", &Value::Null);
    assert_eq!(status, 200);
    for found in [&json, &checks] {
        let primitives = found["primitives"].as_array().unwrap();
        assert!(primitives.len() > 20, "{found}");
        for one in primitives {
            let name = one["name"].as_str().unwrap();
            assert!(done.out.contains(&format!(" {name}")), "{name}: {done:?}");
            let explained = one["error"].is_string() && !one["means"].is_null();
            assert!(one["ok"] == true || explained, "{one}");
        }
    }
    // What is wrong makes the difference, and is counted.
    let wrong = |level: &str| {
        let checks = json["checks"].as_array().unwrap();
        checks
            .iter()
            .filter(|check| check["level"] == level)
            .count()
    };
    assert_eq!(done.code, Some(i32::from(wrong("problem") > 0)), "{done:?}");
    let counted = format!("{} problem", wrong("problem"));
    assert!(done.out.lines().last().unwrap().starts_with(&counted));
}

#[test]
fn hidden_characters_are_shown_to_people() {
    let home = Home::new();
    home.run(&[], "echo \u{202E}x\u{200B} # ex\u{0430}mple");
    let list = home.call(&["runs"]).out;
    assert!(
        list.contains("⟦U+202E⟧x⟦U+200B⟧ # ex⟦U+0430⟧mple"),
        "{list}"
    );
}

#[test]
fn an_unwritable_place_is_a_clear_error() {
    let home = Home::new();
    let done = home
        .weighlock(&["run", "--", "true"])
        .env("WEIGHLOCK_STATE_DIR", "/proc/nowhere")
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(125));
    assert!(
        err.starts_with("error: cannot start the server") && err.contains("hint: "),
        "{err}"
    );
}

#[test]
fn without_a_server_the_bare_word_says_what_to_do() {
    let home = Home::new();
    let done = home.call::<&str>(&[]);
    assert_eq!(done.code, Some(0));
    assert!(done.out.contains("weighlock run -- "), "{done:?}");
    assert!(
        !home.state().join("lock").exists(),
        "looking starts nothing"
    );
}

#[test]
fn every_verb_has_help_with_examples_first() {
    let home = Home::new();
    for verb in [
        "run",
        "runs",
        "show",
        "output",
        "preview",
        "diff",
        "commit",
        "discard",
        "undo",
        "draft",
        "stop",
        "term",
        "replay",
        "blacklist",
        "audit",
        "serve",
        "mcp",
        "doctor",
    ] {
        let done = home.call(&[verb, "--help"]);
        assert!(done.out.starts_with("Examples:"), "{verb}: {done:?}");
    }
    for (verb, parts) in [
        ("draft", "list show diff commit discard export"),
        (
            "policy",
            "show test check edit log back schema grant grants revoke",
        ),
    ] {
        for part in parts.split(' ') {
            let done = home.call(&[verb, part, "--help"]);
            let examples = format!("Examples:\n  weighlock {verb} ");
            assert!(done.out.starts_with(&examples), "{verb} {part}: {done:?}");
            assert!(
                done.out.contains(&format!("\n  weighlock {verb} {part}")),
                "{verb} {part}: {done:?}"
            );
        }
    }
    for shell in ["bash", "zsh", "fish", "powershell"] {
        assert!(home.call(&["completions", shell]).out.contains("weighlock"));
    }
}
