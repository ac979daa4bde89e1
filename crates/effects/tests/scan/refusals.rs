//! What is never applied.

use std::process::{Command, Stdio};

use weighlock_testing::{have, not_as_this_user};

use crate::world::{World, is_root, said, text};

fn refused(setup: &str, script: &str, expected: &[&str]) {
    let Some(mut world) = World::new(setup) else {
        return;
    };
    world.run(script);
    let changes = world.scan();
    let refused: Vec<String> = said(&changes)
        .into_iter()
        .filter_map(|line| line.strip_prefix("refused ").map(str::to_owned))
        .collect();
    assert_eq!(refused, expected, "after `{script}` on `{setup}`");
    assert!(!changes.is_empty() || expected.is_empty());
}

#[test]
fn pipes_sockets_and_devices_are_refused() {
    refused(
        "",
        "mkfifo p",
        &["p: is a named pipe, which cannot be applied"],
    );
    refused(
        "mkfifo p",
        "rm p",
        &["p: was a named pipe, which could not be brought back"],
    );
    refused(
        "mkfifo p",
        "rm p; echo 1 > p",
        &["p: was a named pipe, which could not be brought back"],
    );
    // As empty and as old as what it takes the place of.
    refused(
        ": > p; touch -d @5 p",
        "rm p; mkfifo p; touch -d @5 p",
        &["p: is a named pipe, which cannot be applied"],
    );
    refused(
        "mkdir p",
        "rmdir p; mkfifo p",
        &["p: is a named pipe, which cannot be applied"],
    );
    if is_root() {
        refused(
            "",
            "mknod d c 1 3",
            &["d: is a device, which cannot be applied"],
        );
    }
}

#[test]
fn rights_of_others_are_refused() {
    let why = "would give whoever runs it the rights of another";
    refused("", "touch f; chmod 4755 f", &[&format!("f: {why}")]);
    refused("touch f", "chmod 2755 f", &[&format!("f: {why}")]);
    refused("", "mkdir d; chmod 2755 d", &[&format!("d: {why}")]);
    // What was so before, or comes from the directory above, is no news.
    refused(
        "mkdir d; chmod 2755 d",
        "mkdir d/e; chmod 2700 d; touch d/e/f",
        &[],
    );
    if is_root() && have(&["setfattr"]) {
        let grant = "setfattr -n security.capability -v 0x0100000200040000000000000000000000000000";
        refused("", &format!("touch f; {grant} f"), &[&format!("f: {why}")]);
        refused(&format!("echo 1 > f; {grant} f"), "chmod 600 f", &[]);
    }
}

#[test]
fn owners_that_are_not_the_sandbox_s_are_refused() {
    if !is_root() {
        return not_as_this_user("only root gives files away");
    }
    refused(
        "",
        "touch f; chown 7 f",
        &["f: belongs to another user (7)"],
    );
    refused("touch f", "chgrp 7 f", &["f: belongs to another group (7)"]);
    refused("echo 1 > f; chown 7:7 f", "echo 2 > f", &[]);
    refused("mkdir d; chgrp 7 d; chmod 2755 d", "echo 1 > d/f", &[]);
}

#[test]
fn what_took_away_its_own_rights_is_refused_if_we_need_them() {
    if is_root() {
        return not_as_this_user("root reads everything");
    }
    let why = "cannot be read: its rights forbid it";
    refused("", "echo 1 > f; chmod 000 f", &[&format!("f: {why}")]);
    refused(
        "",
        "mkdir d; touch d/f; chmod 000 d",
        &[&format!("d: {why}")],
    );
}

/// Says that the test is alone in a mount namespace.
const INSIDE: &str = "WEIGHLOCK_TEST_INSIDE";

#[test]
fn mount_points_are_left_alone() {
    if !is_root() {
        return not_as_this_user("only root mounts without becoming another user");
    }
    if std::env::var_os(INSIDE).is_none() {
        let again = Command::new("unshare")
            .arg("-m")
            .arg(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "refusals::mount_points_are_left_alone",
                "--nocapture",
            ])
            .env(INSIDE, "1")
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&again.stdout);
        assert!(
            again.status.success() && said.contains("1 passed"),
            "{said}"
        );
        return;
    }
    let why = "is where another file system is mounted";
    let mount = "mkdir m; echo 1 > m/hidden; echo 1 > f; mount -t tmpfs none m; touch m/mounted";
    refused(mount, "echo 2 > m/new", &[&format!("m: {why}")]);
    refused(mount, "rm -r m", &[&format!("m: {why}")]);
    refused(mount, "echo 2 > f", &[]);
}

#[test]
fn what_would_be_a_mark_of_layers_outside_is_refused() {
    if !have(&["setfattr"]) {
        return;
    }
    let Some(mut world) = World::new("echo 1 > old") else {
        return;
    };
    world.run("touch new; setfattr -n user.overlay.whiteout -v y new; echo 2 >> old");
    let changes = world.scan();
    let refused: Vec<String> = { changes.refused.iter() }
        .map(|refusal| format!("{} {}", text(&refusal.path), refusal.why))
        .collect();
    assert_eq!(refused, ["new has attributes by which layers are marked"]);
}

#[test]
fn a_file_with_other_names_is_told_from_one_that_took_its_place() {
    let Some(mut world) = World::new("echo 1 > a; ln a b; echo 1 > c; ln c d; ln c e") else {
        return;
    };
    world.run("echo 2 >> a; echo 2 > new; mv new c; rm e");
    let changes = world.scan();
    let shared = changes.entries.iter().filter(|change| change.shared);
    let shared: Vec<String> = shared.map(|change| text(&change.path)).collect();
    // Of an ordinary user's, a copy is a file of its own.
    let expected: &[&str] = if is_root() { &["a"] } else { &[] };
    assert_eq!(shared, expected);
}

#[test]
fn names_that_a_commit_needs_are_refused() {
    refused(
        "",
        "mkdir d; touch d/.weighlock-abc",
        &["d/.weighlock-abc: has a name that weighlock uses itself"],
    );
}
