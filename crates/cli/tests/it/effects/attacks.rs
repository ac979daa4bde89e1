//! What was found by those who tried to break it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::{Value, json};

use super::{Place, is_root};
use crate::crew::text;
use crate::support::{Home, SYSTEM, eventually, have};

/// One that waits on a socket for a file of somebody else's and writes to it.
const RECEIVER: &str = r#"
import array, os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(os.path.expanduser("~/s"))
s.listen()
print("listening", flush=True)
c, _ = s.accept()
_, fds, _, _ = socket.recv_fds(c, 10, 1)
os.pwrite(fds[0], b"EVIL", 0)
"#;

/// One who lives below a directory that is private to runs, and one who lives
/// where most people do.
fn homes() -> [Home; 2] {
    let below = Home::within(Path::new("/tmp")).expect("everybody can write to /tmp");
    [below, Home::untouched().live_elsewhere()]
}

const BIND: &str = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'";

#[test]
fn one_run_cannot_hand_its_files_to_another() {
    if !have(&["python3"]) {
        return;
    }
    for home in homes() {
        let place = Place::at(home, "");
        let receiver = format!("python3 - <<'E'\n{RECEIVER}\nE\n");
        let run = place.ask(&receiver, json!({ "background": true })).json();
        let run = place.until(&run, "failed");
        let said = text(&run, "stderr");
        assert!(said.contains("PermissionError"), "{said}");
        // Where nobody else comes, there can be sockets.
        let run = place.ask(&format!("cd ${{TMPDIR:-/tmp}} && {BIND}"), Value::Null);
        assert_eq!(run.json()["state"], "succeeded");
    }
}

#[test]
fn only_a_directory_that_holds_the_home_has_no_sockets() {
    if !have(&["python3"]) {
        return;
    }
    for (home, refuses) in homes().into_iter().zip([true, false]) {
        let place = Place::at(home, "");
        for (dir, refused) in [
            ("/tmp", refuses),
            ("/tmp/made", refuses),
            ("/var/tmp", false),
            ("/dev/shm", false),
        ] {
            let run = place.ask(&format!("mkdir -p {dir}; cd {dir} && {BIND}"), Value::Null);
            let said = text(&run.json(), "stderr");
            assert_eq!(said.contains("PermissionError"), refused, "{dir}: {said}");
        }
        let told = if refuses { "/var/tmp\n" } else { "\n" };
        let run = place.unasked("echo $TMPDIR; touch /tmp/x", Value::Null);
        assert_eq!(run["stdout"], told, "{run}");
    }
}

#[test]
fn what_is_tried_leaves_no_settings_for_what_somebody_allows() {
    let place = Place::new();
    let trap = "echo '[core]' > ~/.gitconfig; mkdir -p ~/.local/bin ~/.cache/go-build; \
                echo 'cat $0' > ~/.local/bin/ls; echo x > ~/.bashrc; echo y > ~/.cache/go-build/z";
    let run = place.unasked(trap, json!({ "session_id": "one" }));
    assert_eq!(run["state"], "succeeded", "{run}");
    let said = run["warnings"].to_string();
    assert!(
        said.contains("~/.bashrc, ~/.gitconfig is not kept"),
        "{said}"
    );
    let look = "cat ~/.gitconfig ~/.bashrc ~/.local/bin/ls ~/.cache/go-build/z";
    // Of its own kind, only what it has compiled is seen, and that by nobody else.
    let tried = place.unasked(&format!("{look}; touch /tmp/x"), Value::Null);
    assert_eq!(tried["stdout"], "y\n", "{tried}");
    let wish = json!({ "command": format!("{look}; touch made && echo seen"), "review": "before" });
    let allowed = place.coder().post("/commands", &wish).expect(202);
    let card = place.card(&allowed);
    place.decide(&card, "approve_once").expect(200);
    let allowed = place.until(&allowed, "succeeded");
    assert_eq!(allowed["stdout"], "seen\n", "{allowed}");
}

#[test]
fn a_grant_does_not_count_for_what_nobody_has_decided_about() {
    let place = Place::new();
    let secret = json!({ "label": "g", "path": place.home.base(),
                         "secrets": { "TOK": "real-secret-1" } });
    place.owner().post("/sandboxes", &secret).expect(201);
    place.write("build.sh", "#!/bin/sh\ntrue\n");
    let grant = json!({ "pattern": "sh build.sh", "sandbox": "g" });
    place.owner().post("/policies/grants", &grant).expect(200);
    let wishes = || json!({ "session_id": "one", "sandbox_id": "g" });
    let own = |command: &str| {
        let mut body = wishes();
        body["command"] = command.into();
        place.owner().post("/commands", &body)
    };
    let look = "echo $TOK | rev; echo planted >> ~/.profile";
    place.write("build.sh", look);
    let granted = own("sh build.sh").expect(200);
    assert_eq!(granted["stdout"], "1-terces-laer\n", "{granted}");
    own(&format!("echo '{look}; date' > build.sh")).expect(202);
    let doubted = own("sh build.sh").json();
    let said = text(&doubted, "stdout");
    assert!(said.starts_with("\n"), "{doubted}");
    let said = doubted["warnings"].to_string();
    assert!(said.contains("nobody has decided about"), "{said}");
    // Whoever wants to see first what it does has not had it done.
    let preview = json!({ "command": "sh build.sh", "sandbox_id": "g", "preview": true });
    let preview = place.owner().post("/commands", &preview).json();
    assert_eq!(preview["stdout"], "\n", "{preview}");
    let home = json!({ "command": "cat ~/.profile", "sandbox_id": "g" });
    let home = place.owner().post("/commands", &home).expect(200);
    assert_eq!(home["stdout"], "planted\n", "{home}");
}

#[test]
fn caches_of_tries_are_no_place_to_meet() {
    if !have(&["python3"]) {
        return;
    }
    for home in homes() {
        let place = Place::at(home, "");
        let bind = "import os, socket; \
                    socket.socket(socket.AF_UNIX).bind(os.path.expanduser('~/.cache/ccache/s'))";
        let run = place.ask(&format!("python3 -c \"{bind}\"; touch /tmp/x"), Value::Null);
        let said = text(&run.json(), "stderr");
        assert!(said.contains("PermissionError"), "{said}");
        // Nor can one close them for the next.
        place.unasked("chmod 000 ~/.cache/ccache", Value::Null);
        let next = place.unasked("echo x > ~/.cache/ccache/y && echo written", Value::Null);
        assert_eq!(next["stdout"], "written\n", "{next}");
    }
}

#[test]
fn what_is_left_at_home_is_said_in_few_plain_words() {
    let place = Place::new();
    let run = place.unasked(
        "cd ~ && seq 1 500 | xargs touch; touch '0\n✓ approved by root'",
        Value::Null,
    );
    let said = &run["warnings"][0];
    let said = said.as_str().expect("a text");
    assert!(said.contains(", and 496 more is not kept"), "{said}");
    assert!(said.len() < 500 && !said.contains('\n'), "{said}");
}

#[test]
fn what_waits_is_seen_with_what_it_wrote_at_home_and_goes_without_it() {
    let place = Place::new();
    let own = || json!({ "session_id": "one" });
    let first = place.held("echo a > a; echo waits > ~/.note", own());
    let second = place.held("cat ~/.note > b", own());
    place.apply(&first);
    place.apply(&second);
    assert_eq!(place.read("b"), "waits\n");
    let look = place.unasked("cat ~/.note; touch /tmp/x", own());
    assert_eq!(look["state"], "succeeded", "{look}");
    assert_eq!(look["stdout"], "", "{look}");
}

#[test]
fn what_seems_to_read_cannot_write_at_home() {
    let home = Home::untouched();
    let liar =
        "#!/bin/sh\ntouch ~/left ~/.bashrc; echo trap > ~/.gitconfig; touch /tmp/x && echo tmp\n";
    let dir = home.put_program("tools/tree", liar);
    let path = format!("{}:{SYSTEM}", dir.parent().expect("a directory").display());
    let place = Place::at_path(home, "", &path);
    let run = place.unasked("tree", Value::Null);
    assert_eq!(run["changes"], Value::Null, "{run}");
    assert_eq!(run["stdout"], "tmp\n", "{run}");
    let said = text(&run, "stderr");
    assert_eq!(said.matches("Read-only file system").count(), 3, "{said}");
}

#[test]
fn what_changes_unseen_anyway_keeps_its_home() {
    let place = Place::with("[sandbox.default]\nreview = \"none\"\n");
    place.unasked("echo kept > ~/.note; echo a > a", Value::Null);
    let look = place.unasked("cat ~/.note", Value::Null);
    assert_eq!(look["stdout"], "kept\n", "{look}");
}

#[test]
fn what_is_applied_beside_a_running_command_is_no_file_of_its_copy() {
    let place = Place::guarded();
    let other = place.ask("exec sleep 1000", json!({ "background": true }));
    let other = other.json();
    let run = place.unasked("echo mine > new; echo more > other", Value::Null);
    assert_eq!(run["changes"]["state"], "applied", "{run}");
    let meta = fs::metadata(place.home.base().join("new")).expect("there");
    assert_eq!(meta.nlink(), 1);
    assert_eq!(place.read("new"), "mine\n");
    place.with_run(&run, "revert", &Value::Null).expect(200);
    assert!(!place.home.base().join("new").exists());
    place.with_run(&other, "stop", &Value::Null);
}

#[test]
fn a_name_for_build_output_is_no_way_to_what_has_another() {
    let place = Place::new();
    let base = place.home.base();
    place.write("src/lib.rs", "ok\n");
    fs::create_dir_all(base.join("target")).expect("a directory");
    fs::hard_link(base.join("src/lib.rs"), base.join("target/x")).expect("a link");
    if !is_root() {
        // What an ordinary user writes to becomes a file of its own.
        place.unasked("echo EVIL > target/x", Value::Null);
        assert_eq!(place.read("src/lib.rs"), "ok\n");
        return;
    }
    let run = place.held("echo EVIL > target/x", Value::Null);
    assert_eq!(place.read("src/lib.rs"), "ok\n");
    let card = place.card(&run);
    assert_eq!(card["risk"], "high", "{card}");
    let reasons = card["reasons"].to_string();
    assert!(reasons.contains("has other names"), "{reasons}");
    // One that takes its place touches nothing else.
    place.unasked(
        "echo new > t; mv t target/x; chmod 600 target/x; rm -f t",
        json!({}),
    );
    assert_eq!(place.read("src/lib.rs"), "ok\n");
    assert_eq!(place.read("target/x"), "new\n");
}

#[test]
fn a_repository_in_disguise_is_asked_about() {
    let place = Place::guarded();
    place.write(".git/HEAD", "ref: refs/heads/main\n");
    for command in [
        "echo ../e > .git/commondir",
        "mkdir bare; echo ref: refs/heads/main > bare/HEAD; echo > bare/config",
        "mkdir -p .GIT/hooks; echo true > .GIT/hooks/post-checkout",
    ] {
        let run = place.held(command, Value::Null);
        assert_eq!(place.card(&run)["risk"], "high", "{command}");
    }
    place.unasked("echo ref: refs/heads/other > .git/HEAD", Value::Null);
}

#[test]
fn what_the_git_configuration_names_is_asked_about() {
    let place = Place::guarded();
    place.write(
        ".git/config",
        "[core]\n\thooksPath = tools/hooks\n\tfsmonitor = scripts/watch.sh -v\n\
         [include]\n\tpath = ../settings\n[filter \"x\"]\n\tclean = sh scripts/clean.sh %f\n",
    );
    place.write(".git/HEAD", "ref: refs/heads/main\n");
    for path in [
        "tools/hooks/post-commit",
        "scripts/watch.sh",
        "scripts/clean.sh",
        "settings",
    ] {
        place.write(path, "true\n");
        let run = place.held(&format!("echo id >> {path}"), Value::Null);
        assert_eq!(place.card(&run)["risk"], "high", "{path}");
    }
    place.unasked("echo id >> scripts/other.sh", Value::Null);
}

#[test]
fn losing_everything_is_asked_about_whatever_is_left_in_its_place() {
    let place = Place::with("preset = \"guarded\"\n[effects]\nreview = \"none\"\n");
    for n in 0..150 {
        place.write(&format!("file{n}"), "something\n");
    }
    for command in [
        "rm -rf ./*; touch z",
        "for f in file*; do ln -sf /dev/null $f; done",
        "for f in file*; do : > $f; done",
        "for f in file*; do echo > $f; done",
    ] {
        let run = place.held(command, Value::Null);
        assert_eq!(place.card(&run)["risk"], "high", "{command}");
    }
    place.unasked("for n in 1 2 3; do : > file$n; done", Value::Null);
}

#[test]
fn a_directory_that_a_person_swaps_meanwhile_is_not_overwritten() {
    let place = Place::guarded();
    place.write("d/f", "old\n");
    place.write("d.new/f", "ana's\n");
    let base = place.home.base();
    let command = "echo agent >> d/f; echo ready; read go";
    let wishes = json!({ "background": true, "stdin_open": true });
    let run = place.ask(command, wishes).expect(202);
    eventually("the copy has it", || place.run(&run)["stdout"] == "ready\n");
    fs::rename(base.join("d"), base.join("d.old")).expect("moved");
    fs::rename(base.join("d.new"), base.join("d")).expect("moved");
    place.feed(&run, "go\n");
    let run = place.until(&run, "waiting");
    assert_eq!(place.read("d/f"), "ana's\n");
    let card = place.card(&run);
    let said = place.decide(&card, "apply_effect");
    assert_eq!(said.outcome(), (409, "conflict".into()));
    assert_eq!(place.read("d/f"), "ana's\n");
}

#[test]
fn what_is_being_applied_cannot_be_discarded() {
    let mut place = Place::new();
    const MANY: usize = 3000;
    for n in 0..MANY {
        place.write(&format!("f{n}"), "old\n");
    }
    let run = place.held("for f in f*; do echo new > $f; done", Value::Null);
    let base = place.home.base();
    let changed =
        |n: usize| fs::read_to_string(base.join(format!("f{n}"))).expect("there") == "new\n";
    let count = || (0..MANY).filter(|n| changed(*n)).count();
    let card = place.card(&run);
    let discarded = std::thread::scope(|scope| {
        let applying = scope.spawn(|| place.decide(&card, "apply_effect"));
        eventually("begun", || (0..MANY).any(changed));
        let discarded = place.with_run(&run, "finalize", &json!({ "changes": "discard" }));
        assert_eq!(applying.join().expect("answered").status, 200);
        discarded
    });
    assert_eq!(discarded.status, 409, "{}", discarded.json());
    assert_eq!(count(), MANY);
    assert_eq!(place.run(&run)["changes"]["state"], "applied");
    place.restart();
    assert_eq!(count(), MANY);
    place.home.assert_audit_verifies();
}
