//! Files that are not like others.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags, XattrFlags, mkdirat, openat, setxattr};
use weighlock_effects::{Change, Changes, Kind, Node};
use weighlock_testing::{not_as_this_user, skip};

use crate::stage::{Stage, apply, is_root};
use crate::tree::{assert_same, tree};

#[test]
fn names_of_any_bytes_are_fine() {
    let mut stage = Stage::new();
    let odd = |bytes: &'static [u8]| Path::new(OsStr::from_bytes(bytes)).to_owned();
    stage.file(odd(b"not\xffutf8/in it"), "1");
    stage.file(odd(b"line\nbreak"), "2");
    stage.new_file(odd(b"not\xffutf8/in it"), "changed");
    stage.new_file(odd(b"new\xfe\xfd/\n"), "3");
    stage.new_file(odd(b"\"quoted\" \\ '$(x)"), "4");
    stage.delete("line\nbreak");
    stage.there_and_back();
}

#[test]
fn empty_directories_come_and_go() {
    let mut stage = Stage::new();
    let live = stage.live();
    stage.dirs(&live, Path::new("old/empty"));
    stage.new_dir("new/empty/deep");
    stage.delete("old/empty");
    stage.there_and_back();
}

#[test]
fn files_of_mode_zero_are_replaced_and_removed_unread() {
    let mut stage = Stage::new();
    for name in ["replaced", "removed", "opened"] {
        stage.file(name, "secret");
        let shut = fs::Permissions::from_mode(0o0);
        fs::set_permissions(stage.live().join(name), shut).unwrap();
    }
    stage.new_file("replaced", "new");
    stage.new_file("made", "also shut");
    for name in ["replaced", "made"] {
        let shut = fs::Permissions::from_mode(0o0);
        fs::set_permissions(stage.upper().join(name), shut).unwrap();
    }
    stage.delete("removed");
    stage.there_and_back();
}

#[test]
fn read_only_directories_are_worked_in_and_stay_read_only() {
    let mut stage = Stage::new();
    stage.file("shut/old", "1");
    stage.file("shut/kept", "2");
    stage.file("shut/gone/x", "3");
    stage.file("opened/x", "4");
    stage.new_file("shut/old", "new");
    stage.new_file("shut/new", "new");
    stage.delete("shut/gone");
    stage.new_file("made/shut/x", "5");
    stage.new_file("opened/y", "6");
    let shut = |path: std::path::PathBuf, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    shut(stage.live().join("shut/gone"), 0o555);
    shut(stage.live().join("shut"), 0o555);
    shut(stage.upper().join("shut"), 0o555);
    shut(stage.upper().join("made/shut"), 0o555);
    shut(stage.upper().join("made"), 0o555);
    shut(stage.live().join("opened"), 0o555);
    stage.there_and_back();
    for path in ["shut", "made/shut", "made"] {
        shut(stage.live().join(path), 0o755);
        shut(stage.upper().join(path), 0o755);
    }
}

#[test]
fn rights_and_attributes_change_and_come_back() {
    let mut stage = Stage::new();
    stage.file("plain", "p");
    stage.file("dir/x", "x");
    stage.file("big", &"b".repeat(2 << 20));
    let set = |path: &Path, name: &str, value: &[u8]| {
        setxattr(path, name, value, XattrFlags::empty()).is_ok()
    };
    if !set(&stage.live().join("plain"), "user.old", b"1") {
        return skip("this file system has no extended attributes");
    }
    stage.new_mode("plain", 0o640);
    stage.new_mode("dir", 0o700);
    stage.new_mode("big", 0o600);
    stage.new_file("new", "n");
    set(&stage.upper().join("plain"), "user.new", b"2");
    set(&stage.upper().join("dir"), "user.dir", b"3");
    set(&stage.upper().join("dir"), "user.overlay.impure", b"y");
    set(&stage.upper().join("new"), "user.overlay.origin", b"");
    set(&stage.upper().join("new"), "user.kept", b"4");
    stage.there_and_back();
}

#[test]
fn what_the_run_set_as_attributes_of_layers_comes_out_as_such() {
    let mut stage = Stage::new();
    stage.new_file("new", "n");
    let name = "user.overlay.overlay.mine";
    if setxattr(stage.upper().join("new"), name, b"1", XattrFlags::empty()).is_err() {
        return skip("this file system has no extended attributes");
    }
    stage.commit().unwrap();
    let seen = &tree(&stage.live())[Path::new("new")];
    assert_eq!(
        seen.attributes,
        [("user.overlay.mine".to_owned(), b"1".to_vec())]
    );
}

#[test]
fn only_times_change_and_come_back() {
    let mut stage = Stage::new();
    stage.file("touched", "t");
    stage.link("link", "x");
    stage.new_file("touched", "t");
    stage.new_link("link", "x");
    stage.there_and_back();
}

#[test]
fn hard_links_stay_together_also_across_file_systems() {
    let mut stage = match on_another_file_system() {
        Some(stage) => stage,
        None => return,
    };
    stage.file("old/a", "shared");
    stage.hard("old/b", "old/a");
    stage.delete("old");
    stage.new_file("new/a", "shared too");
    stage.new_hard("new/b", "new/a");
    stage.new_hard("c", "new/a");
    stage.there_and_back();
}

#[test]
fn everything_works_across_file_systems() {
    let Some(mut stage) = on_another_file_system() else {
        return;
    };
    stage.file("a/b", "old");
    stage.file("gone/x", "x");
    stage.link("link", "1");
    stage.new_file("a/b", "new");
    stage.new_file("fresh/deep/file", &"long ".repeat(100_000));
    stage.new_link("link", "2");
    stage.delete("gone");
    stage.there_and_back();
}

/// The live tree in memory, all else on disk.
pub(crate) fn on_another_file_system() -> Option<Stage> {
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        skip("/dev/shm cannot be written");
        return None;
    };
    let stage = Stage::with(Some(other));
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    if device(&stage.live()) == device(&stage.upper()) {
        skip("temporary files are in memory too");
        return None;
    }
    Some(stage)
}

#[test]
fn holes_stay_holes() {
    for other in [false, true] {
        let mut stage = match other {
            true => match on_another_file_system() {
                Some(stage) => stage,
                None => continue,
            },
            false => Stage::new(),
        };
        stage.file("old", "");
        stage.file("x", "");
        sparse(&stage.live().join("old"));
        let old = stage.live().join("old");
        stage.age(&old);
        stage.new_file("new", "");
        sparse(&stage.upper().join("new"));
        let new = stage.upper().join("new");
        stage.age(&new);
        stage.new_file("old", "small");
        let applied = stage.there_and_back();
        assert!(blocks(&stage.live().join("new")) < 1024);
        assert_eq!(applied.bytes, 64 << 20);
        let image = stage.place("first").dir.join("images");
        let total: u64 = fs::read_dir(image)
            .unwrap()
            .map(|one| blocks(&one.unwrap().path()))
            .sum();
        assert!(total < 1024, "{total}");
    }
}

fn sparse(path: &Path) {
    let mut file = File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(32 << 20)).unwrap();
    file.write_all(b"in the middle").unwrap();
    file.set_len(64 << 20).unwrap();
}

fn blocks(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks()
}

#[test]
fn a_large_file_can_be_undone_after_its_layer_is_gone() {
    let mut stage = Stage::new();
    stage.file("large", &"o".repeat(3 << 20));
    stage.new_file("large", &"n".repeat(2 << 20));
    let before = tree(&stage.live());
    let applied = stage.commit().unwrap();
    fs::remove_dir_all(stage.upper()).unwrap();
    let undo = applied.inverse(&stage.place("first").dir);
    apply(&undo, &stage.place("undo")).unwrap();
    assert_same(&tree(&stage.live()), &before, "after the undo");
}

#[test]
fn three_thousand_levels_are_made_and_taken_back() {
    let stage = Stage::new();
    let changes = deep_changes(&stage, 3000);
    let before = fs::metadata(stage.live()).unwrap().mtime();
    let applied = apply(&changes, &stage.place("first")).unwrap();
    assert_eq!(depth(&stage.live()), 3000);
    let undo = applied.inverse(&stage.place("first").dir);
    let undone = apply(&undo, &stage.place("undo")).unwrap();
    assert_eq!(depth(&stage.live()), 0);
    assert_eq!(fs::metadata(stage.live()).unwrap().mtime(), before);
    let redo = undone.inverse(&stage.place("undo").dir);
    apply(&redo, &stage.place("redo")).unwrap();
    assert_eq!(depth(&stage.live()), 3000);
    remove_deep(&stage.live());
    remove_deep(&stage.upper());
}

#[test]
fn a_deep_tree_that_cannot_be_put_is_removed_again() {
    let mut stage = Stage::new();
    stage.new_file("zz", "shown");
    let mut last = stage.changes().entries.pop().unwrap();
    assert_eq!(last.path.path(), Path::new("zz"));
    let mut changes = deep_changes(&stage, 3000);
    changes.entries.remove(0);
    // Not what is in the layer.
    last.after.as_mut().unwrap().size += 1;
    changes.entries.push(last);
    assert!(apply(&changes, &stage.place("first")).is_err());
    assert_eq!(fs::read_dir(stage.live()).unwrap().count(), 0);
    remove_deep(&stage.upper());
}

fn deep_changes(stage: &Stage, levels: usize) -> Changes {
    let mut changes = stage.changes();
    let mut dir = File::open(stage.upper()).unwrap();
    let mut path = std::path::PathBuf::new();
    for _ in 0..levels {
        mkdirat(&dir, "d", Mode::RWXU).unwrap();
        path.push("d");
        changes.entries.push(Change {
            root: 0,
            path: path.clone().into(),
            kind: Kind::Created,
            from: None,
            before: None,
            after: Node::read(&dir, OsStr::new("d")).unwrap(),
            built_on: None,
            overtaken: false,
            shared: false,
            alike: false,
            image: None,
        });
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        dir = File::from(openat(&dir, "d", flags, Mode::empty()).unwrap());
    }
    changes
}

/// The standard library opens a file for each level, which are too many.
fn remove_deep(base: &Path) {
    while fs::rename(base.join("d/d"), base.join("e")).is_ok() {
        fs::remove_dir(base.join("d")).unwrap();
        fs::rename(base.join("e"), base.join("d")).unwrap();
    }
}

fn depth(base: &Path) -> usize {
    let mut dir = File::open(base).unwrap();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut levels = 0;
    while let Ok(next) = openat(&dir, "d", flags, Mode::empty()) {
        dir = File::from(next);
        levels += 1;
    }
    levels
}

#[test]
fn root_gives_files_to_their_owner_and_back() {
    if !is_root() {
        return not_as_this_user("only root has files of others");
    }
    let mut stage = match on_another_file_system() {
        Some(stage) => stage,
        None => Stage::new(),
    };
    stage.file("theirs", "old");
    stage.file("gone", "old");
    stage.new_file("theirs", "new");
    stage.delete("gone");
    for path in [
        stage.live().join("theirs"),
        stage.upper().join("theirs"),
        stage.live().join("gone"),
    ] {
        std::os::unix::fs::chown(path, Some(1234), Some(1234)).unwrap();
    }
    stage.there_and_back();
}
