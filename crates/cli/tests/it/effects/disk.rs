//! A disk that is full: it is said, nothing is half done, and it works again
//! when there is room.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use super::tree::Tree;
use super::{SYSTEM, is_root};
use crate::caller::Caller;
use crate::crew::text;
use crate::support::{Home, Server, eventually, not_as_this_user, skip};

/// How long there is no room for what wants to be recorded.
const FULL_FOR: Duration = Duration::from_millis(300);

/// A server whose state is on a small disk. Its commands and copies take room
/// there.
fn small(mebibytes: u32) -> Option<(Home, Server)> {
    if !is_root() {
        not_as_this_user("only root can mount a small disk for the state directory");
        return None;
    }
    let mut home = Home::untouched();
    home.set("PATH", SYSTEM);
    let setup = format!("mount -t tmpfs -o size={mebibytes}m small \"$WEIGHLOCK_STATE_DIR\"");
    match home.try_serve_after(&setup) {
        Ok(server) => Some((home, server)),
        Err(done) => {
            skip(&format!("no server on a small disk: {done:?}"));
            None
        }
    }
}

fn ask(home: &Home, command: &str) -> Value {
    let body = json!({ "command": command, "shell": "bash" });
    Caller::owner(home).post("/commands", &body).json()
}

fn yes(home: &Home, run: &Value) -> (u16, Value) {
    let owner = Caller::owner(home);
    let path = format!("/approvals/{}", text(run, "approval_id"));
    let card = owner.get(&path).expect(200);
    let body = json!({ "kind": "apply_effect", "fingerprint": card["fingerprint"] });
    let said = owner.post(&format!("{path}/decision"), &body);
    (said.status, said.json())
}

/// Takes all but this much of the room that is left.
fn fill(home: &Home, leave_kib: u64) -> std::path::PathBuf {
    let path = home.state().join("filler");
    let stat = rustix::fs::statvfs(home.state()).unwrap();
    let free = stat.f_bavail * stat.f_frsize;
    let bytes = free.saturating_sub(leave_kib * 1024);
    std::fs::write(&path, vec![1; bytes as usize]).unwrap();
    path
}

#[test]
fn a_disk_that_fills_up_while_it_runs_is_an_error_of_the_command() {
    let Some((home, _server)) = small(48) else {
        return;
    };
    std::fs::write(home.base().join("file"), "one\n").unwrap();
    let before = Tree::of(&home.base());
    let run = ask(&home, "echo x > a; head -c 100000000 /dev/zero > large");
    assert_ne!(run["exit_code"], 0, "{run}");
    assert_eq!(Tree::of(&home.base()), before);
    // What it had written by then can be thrown away, and then there is room.
    if run["state"] == "waiting" {
        let path = format!("/commands/{}/finalize", text(&run, "command_id"));
        let body = json!({ "changes": "discard" });
        Caller::owner(&home).post(&path, &body).expect(200);
    }
    // Its copy goes away behind the answer.
    let mut run = Value::Null;
    eventually("there is room", || {
        run = ask(&home, "echo small > small");
        run["code"] != "storage_full"
    });
    assert_eq!(run["changes"]["state"], "held", "{run}");
    assert_eq!(yes(&home, &run).0, 200);
    assert_eq!(
        std::fs::read_to_string(home.base().join("small")).unwrap(),
        "small\n"
    );
    home.assert_audit_verifies();
}

#[test]
fn a_full_disk_at_the_answer_applies_nothing_and_keeps_the_changes() {
    let Some((home, _server)) = small(64) else {
        return;
    };
    let base = home.base();
    // What undo needs does not fit.
    std::fs::write(base.join("large"), vec![7; 12 << 20]).unwrap();
    let before = Tree::of(&base);
    let run = ask(&home, "echo x > a; printf short > large");
    assert_eq!(run["changes"]["state"], "held", "{run}");
    let filler = fill(&home, 2048);
    let (status, said) = yes(&home, &run);
    let after = Tree::of(&base);
    let now = Caller::owner(&home).get(&format!("/commands/{}", text(&run, "command_id")));
    let now = now.expect(200);
    println!("{status} {said} {}", now["reason"]);
    assert_eq!(after, before, "{status} {said}");
    assert_ne!(now["changes"]["state"], "applied", "{now}");
    assert!(
        said.to_string().contains("full") || now.to_string().contains("full"),
        "{said}\n{now}"
    );
    let reason = text(&now["reason"], "text");
    assert!(reason.starts_with("It ran on a copy, "), "{reason}");
    assert!(reason.ends_with("Its changes are kept."), "{reason}");
    std::fs::remove_file(filler).unwrap();
    let path = format!("/commands/{}/finalize", text(&run, "command_id"));
    Caller::owner(&home)
        .post(&path, &json!({ "changes": "commit" }))
        .expect(200);
    assert_eq!(
        std::fs::read_to_string(base.join("large")).unwrap(),
        "short"
    );
    home.assert_audit_verifies();
}

#[test]
fn a_full_disk_at_an_undo_takes_nothing_back() {
    let Some((home, _server)) = small(64) else {
        return;
    };
    let base = home.base();
    std::fs::write(base.join("file"), "one\n").unwrap();
    let before = Tree::of(&base);
    let run = ask(
        &home,
        "head -c 12000000 /dev/zero > large; echo two >> file",
    );
    assert_eq!(yes(&home, &run).0, 200);
    let applied = Tree::of(&base);
    let filler = fill(&home, 1024);
    let path = format!("/commands/{}/revert", text(&run, "command_id"));
    let refused = Caller::owner(&home).post(&path, &Value::Null);
    println!("{} {}", refused.status, refused.json());
    assert_ne!(refused.status, 200, "{}", refused.json());
    assert_eq!(Tree::of(&base), applied);
    std::fs::remove_file(filler).unwrap();
    Caller::owner(&home).post(&path, &Value::Null).expect(200);
    assert_eq!(Tree::of(&base), before);
    home.assert_audit_verifies();
}

#[test]
fn an_undo_is_all_or_nothing_however_little_room_there_is() {
    let Some((home, _server)) = small(64) else {
        return;
    };
    let base = home.base();
    std::fs::write(base.join("file"), "one\n").unwrap();
    let before = Tree::of(&base);
    let mut run = ask(&home, "mkdir new; touch new/{1..40}; echo two >> file");
    assert_eq!(yes(&home, &run).0, 200);
    let applied = Tree::of(&base);
    let mut undone = 0;
    for leave_kib in (0..320).step_by(8) {
        let filler = fill(&home, leave_kib);
        let path = format!("/commands/{}/revert", text(&run, "command_id"));
        let (answer, answered) = mpsc::channel();
        let said = std::thread::scope(|scope| {
            scope.spawn(|| answer.send(Caller::owner(&home).post(&path, &Value::Null)));
            // What is done and cannot be recorded is not answered before it is.
            let early = answered.recv_timeout(FULL_FOR);
            std::fs::remove_file(filler).unwrap();
            early.or_else(|_| answered.recv()).unwrap()
        });
        let now = Tree::of(&base);
        match said.status {
            200 => {
                assert_eq!(now, before, "{leave_kib} KiB: {}", said.json());
                let path = format!("/commands/{}/revert", text(&said.json(), "command_id"));
                run = Caller::owner(&home).post(&path, &Value::Null).expect(200);
                undone += 1;
            }
            507 => assert_eq!(now, applied, "{leave_kib} KiB: {}", said.json()),
            _ => panic!("{leave_kib} KiB: {}", said.json()),
        }
    }
    assert!(undone > 0, "there was never enough room");
    home.assert_audit_verifies();
}

/// A server whose state is on a disk that can take so many files.
fn few_files(inodes: u64) -> Option<(Home, Server)> {
    if !is_root() {
        not_as_this_user("only root can mount a disk for few files");
        return None;
    }
    let mut home = Home::untouched();
    home.set("PATH", SYSTEM);
    let setup = format!("mount -t tmpfs -o nr_inodes={inodes} few \"$WEIGHLOCK_STATE_DIR\"");
    match home.try_serve_after(&setup) {
        Ok(server) => Some((home, server)),
        Err(done) => {
            skip(&format!("no server on a disk for few files: {done:?}"));
            None
        }
    }
}

fn free_inodes(home: &Home) -> u64 {
    rustix::fs::statvfs(home.state()).unwrap().f_favail
}

/// Makes files until the disk takes no more, and goes on trying.
const MAKER: &str = "i=0; while :; do : > f$((i+=1)); done 2>/dev/null";

/// Expects that a run was ended for the files it made, and throws them away.
#[track_caller]
fn assert_made_too_many(home: &Home, run: &Value) {
    let said = text(&run["reason"], "text");
    let limit = "files made on a copy reached";
    assert!(
        said.contains(limit) || said.contains("few inodes"),
        "{said}"
    );
    if run["state"] == "waiting" {
        let path = format!("/commands/{}/finalize", text(run, "command_id"));
        let body = json!({ "changes": "discard" });
        Caller::owner(home).post(&path, &body).expect(200);
    }
}

#[test]
fn a_try_cannot_take_all_files_of_the_disk() {
    let Some((home, _server)) = few_files(20_000) else {
        return;
    };
    let before = free_inodes(&home);
    let run = ask(&home, MAKER);
    // Others find room meanwhile, and all of it is given back.
    let other = ask(&home, "echo small > small");
    assert_eq!(other["changes"]["state"], "held", "{other}");
    assert_made_too_many(&home, &run);
    eventually("the copy is gone", || free_inodes(&home) + 1000 > before);
}

#[test]
fn files_that_only_a_process_holds_count_and_so_do_those_in_caches() {
    if !crate::support::have(&["python3"]) {
        return;
    }
    let Some((home, _server)) = few_files(20_000) else {
        return;
    };
    let nameless = "import os, resource, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
for each in range(16):
    if os.fork() == 0:
        held = []
        while True:
            try: held.append(open('f%d' % os.getpid(), 'x'))
            except OSError: time.sleep(1)
            else: os.unlink('f%d' % os.getpid())
time.sleep(1000)";
    let caches = "import os, time
os.chdir(os.path.expanduser('~/.cache/go-build'))
i = 0
while True:
    try: i += 1; open('f%d' % i, 'w').close()
    except OSError: time.sleep(1)";
    for script in [nameless, caches] {
        std::fs::write(home.base().join("make.py"), script).unwrap();
        assert_made_too_many(&home, &ask(&home, "python3 make.py"));
    }
}

#[test]
fn what_is_left_of_a_disks_inodes_is_kept_for_others() {
    let Some((home, _server)) = few_files(4000) else {
        return;
    };
    let filler = home.state().join("filler");
    std::fs::create_dir(&filler).unwrap();
    let mut made = 0;
    while free_inodes(&home) >= 190 {
        made += 1;
        std::fs::write(filler.join(made.to_string()), "").unwrap();
    }
    let refused = ask(&home, "echo x > a");
    assert_eq!(refused["code"], "storage_full", "{refused}");
    assert!(
        text(&refused, "detail").contains("of 4000 inodes"),
        "{refused}"
    );
    // What only reads needs no copy.
    assert_eq!(ask(&home, "ls")["state"], "succeeded");
    std::fs::remove_dir_all(filler).unwrap();
    let run = ask(&home, "echo x > a");
    assert_eq!(run["changes"]["state"], "held", "{run}");
}
