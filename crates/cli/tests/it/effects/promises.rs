//! Nothing real is lost, nothing secret is shown, and nothing is claimed that
//! is not known.

use std::fs;

use serde_json::{Value, json};

use super::Place;
use super::tree::Tree;
use crate::caller::sandbox;
use crate::crew::text;
use crate::support::{Home, have};

#[test]
fn whatever_deletes_the_home_directory_deletes_nothing_real() {
    for preset in ["strict", "guarded", "bash", "blacklist"] {
        let mut home = Home::untouched();
        // The sandbox is in the home directory.
        home.set("HOME", home.around());
        home.put("letters/mine.txt", "dear\n");
        home.put(".ssh/id_ed25519", "key\n");
        home.put("base/src/main.rs", "fn main() {}\n");
        let place = Place::at(home, &format!("preset = \"{preset}\"\n"));
        let around = place.home.around();
        let real = || {
            let dirs = ["letters", ".ssh", "base"];
            dirs.map(|dir| Tree::of(&around.join(dir)))
        };
        let before = real();
        let there = around.display();
        for command in [
            "rm -rf \"$HOME\"".to_owned(),
            "rm -rf ~".into(),
            "rm -rf /".into(),
            "rm -rf --no-preserve-root /".into(),
            "find ~ -delete".into(),
            "cd ~ && rm -rf *".into(),
            "cd ~ && rm -rf .[!.]* *".into(),
            "rm -rf ./*".into(),
            "rm -rf .[!.]* *".into(),
            "rm -rf ..".into(),
            "rm -rf ../*".into(),
            format!("rm -rf {there}"),
            format!("x={there}; rm -rf $x/*"),
            format!("find {there} -type f -delete"),
            "find / -xdev -type f -delete".into(),
            "python3 -c 'import shutil, os; shutil.rmtree(os.path.expanduser(\"~\"), True)'".into(),
            "mv ~/* /tmp/".into(),
            "chmod -R 000 ~ .".into(),
            "for f in $(find / -name main.rs); do : > $f; done".into(),
        ] {
            let run = place.ask(&command, Value::Null).json();
            assert_eq!(real(), before, "{preset}: {command}: {run}");
            if run["state"] == "waiting" {
                place.decide(&place.card(&run), "reject").expect(200);
            }
            assert_eq!(real(), before, "{preset}: {command}: {run}");
        }
    }
}

#[test]
fn secrets_in_a_diff_are_masked_until_somebody_wants_to_see_them() {
    let place = Place::new();
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let run = place.held(
        &format!("echo 'token = \"{secret}\"' > settings.toml"),
        Value::Null,
    );
    let show = |query: &str| {
        let diff = place.of_run(&run, &format!("changes/0/diff{query}"));
        diff.expect(200).to_string()
    };
    assert!(!show("").contains(secret), "{}", show(""));
    assert!(
        show("?reveal=true").contains(secret),
        "{}",
        show("?reveal=true")
    );
    let applied = place.apply(&run);
    assert!(place.read("settings.toml").contains(secret));
    let diff = place
        .of_run(&applied, "changes/0/diff")
        .expect(200)
        .to_string();
    assert!(!diff.contains(secret), "{diff}");
}

#[test]
fn with_a_network_what_uses_it_is_asked_before_and_the_rest_is_tried_offline() {
    let place = Place::with("[sandbox.default]\nnetwork = \"on\"\n");
    let run = place
        .ask("curl -o page http://127.0.0.1:9/", Value::Null)
        .expect(202);
    assert_eq!(run["changes"], Value::Null, "{run}");
    assert_eq!(run["started_at"], Value::Null, "{run}");
    place.decide(&place.card(&run), "reject").expect(200);
    if !have(&["python3"]) {
        return;
    }
    // What is tried has no network, whatever it does.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    place.write(
        "call.py",
        &format!("import socket\nopen('made', 'w').write('x')\nsocket.create_connection(('127.0.0.1', {port}), 2)\n"),
    );
    let run = place.held("python3 call.py", Value::Null);
    assert_eq!(run["exit_code"], 1, "{run}");
    assert_eq!(run["sandbox"]["network"], "off", "{run}");
    assert!(text(&run, "stderr").contains("refused"), "{run}");
    let header = text(&place.card(&run)["effect"], "header");
    assert!(
        header.ends_with("nothing else was touched, no network"),
        "{header}"
    );
}

#[test]
fn changes_of_what_could_reach_the_network_are_not_said_to_be_all() {
    let rules = "[[rule]]\nname = \"fetch\"\nauto = \"./fetch *\"\n";
    let home = Home::untouched();
    let path = home.put("rules.toml", rules);
    let settings = format!(
        "[policy]\nrules = \"{}\"\n[sandbox.default]\nnetwork = \"on\"\n",
        path.display()
    );
    home.put_program("base/fetch", "#!/bin/sh\necho fetched > .envrc\n");
    let place = Place::at(home, &settings);
    let run = place.held("./fetch https://example.org/x", Value::Null);
    assert_eq!(run["sandbox"]["network"], "on", "{run}");
    let header = text(&place.card(&run)["effect"], "header");
    assert!(!header.contains("nothing else was touched"), "{header}");
    assert!(header.contains("had network access"), "{header}");
    assert!(run["changes"]["network"].is_array(), "{run}");
}

#[test]
fn another_writable_directory_is_seen_through_a_copy_too() {
    let home = Home::untouched();
    let shared = home.put("shared/file", "one\n");
    let settings = format!(
        "[sandbox.default]\nwrite = [\"{}\"]\n",
        shared.parent().unwrap().display()
    );
    let place = Place::at(home, &settings);
    let command = format!("echo two >> {}; echo x > x", shared.display());
    let run = place.held(&command, Value::Null);
    assert_eq!(fs::read_to_string(&shared).unwrap(), "one\n");
    let applied = place.apply(&run);
    assert_eq!(fs::read_to_string(&shared).unwrap(), "one\ntwo\n");
    place.with_run(&applied, "revert", &Value::Null).expect(200);
    assert_eq!(fs::read_to_string(&shared).unwrap(), "one\n");
}

#[test]
fn sandboxes_are_asked_about_as_each_of_them_says() {
    let place = Place::new();
    sandbox(&place.home, "trusting", json!({ "review": "none" }));
    sandbox(&place.home, "careful", json!({ "review": "before" }));
    let me = place.owner();
    let ask = |name: &str| {
        let body = json!({ "command": "echo x > x", "sandbox_id": name });
        me.post("/commands", &body).json()
    };
    let run = ask("trusting");
    assert_eq!(run["changes"]["state"], "applied", "{run}");
    let run = ask("careful");
    assert_eq!(
        (&run["state"], &run["changes"]),
        (&json!("waiting"), &Value::Null),
        "{run}"
    );
}
