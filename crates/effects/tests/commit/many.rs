//! Many files, and no room for them.

use std::fs;
use std::path::Path;
use std::process::Command;

use weighlock_effects::CommitError;
use weighlock_testing::{not_as_this_user, skip};

use crate::stage::{Stage, apply, is_root, leftovers};
use crate::tree::{assert_same, tree};

#[test]
fn ten_thousand_files_are_made_changed_and_removed() {
    let mut stage = Stage::new();
    for number in 0..2000 {
        stage.file(format!("old/{}/{number}", number % 50), "old");
        stage.file(format!("gone/{}/{number}", number % 50), "gone");
    }
    for number in 0..2000 {
        stage.new_file(format!("old/{}/{number}", number % 50), "changed");
    }
    for number in 0..6000 {
        stage.new_file(format!("new/{}/{number}", number % 100), "new");
    }
    stage.delete("gone");
    stage.there_and_back();
}

const INSIDE: &str = "WEIGHLOCK_TEST_SMALL_DISK";

#[test]
fn a_full_disk_leaves_everything_as_it_was() {
    if let Ok(small) = std::env::var(INSIDE) {
        return on_a_small_disk(Path::new(&small));
    }
    if !is_root() {
        return not_as_this_user("only root can mount a small file system");
    }
    let small = tempfile::tempdir().unwrap();
    let this = std::env::current_exe().unwrap();
    let script = "mount -t tmpfs -o size=1m none \"$1\" && exec \"$0\" --exact \
        many::a_full_disk_leaves_everything_as_it_was";
    let done = Command::new("unshare")
        .args(["-m", "sh", "-c", script])
        .arg(this)
        .arg(small.path())
        .env(INSIDE, small.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let failed = String::from_utf8_lossy(&done.stderr).into_owned();
    if failed.contains("unshare failed") || failed.contains("permission denied") {
        return skip(&format!("cannot mount here: {failed}"));
    }
    assert!(done.status.success(), "{said}{failed}");
    assert!(said.contains("1 passed"), "{said}{failed}");
}

fn on_a_small_disk(small: &Path) {
    let mut stage = Stage::with(Some(tempfile::tempdir_in(small).unwrap()));
    stage.file("a", "old");
    stage.file("b", "gone soon");
    stage.new_file("a", "new");
    stage.new_file("big/one", &"x".repeat(700_000));
    stage.new_file("big/two", &"y".repeat(700_000));
    stage.delete("b");
    let before = tree(&stage.live());
    let done = stage.commit();
    assert!(matches!(done, Err(CommitError::Full)), "{done:?}");
    let after = tree(&stage.live());
    assert!(leftovers(&after).is_empty());
    assert_same(&after, &before, "after there was no room");
    assert!(!stage.place("first").dir.join("images").exists());
    // No room for the images is the same.
    let mut stage = Stage::new();
    stage.file("a", &"x".repeat(900_000));
    stage.new_file("a", "new");
    let used = small.join("used");
    fs::write(&used, "y".repeat(500_000)).unwrap();
    let before = tree(&stage.live());
    let mut place = stage.place("first");
    place.dir = small.join("state");
    let done = apply(&stage.changes(), &place);
    assert!(matches!(done, Err(CommitError::Full)), "{done:?}");
    assert_same(&tree(&stage.live()), &before, "after there was no room");
    fs::remove_file(used).unwrap();
    apply(&stage.changes(), &place).unwrap();
}
