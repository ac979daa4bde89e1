//! What runs, and others, might try.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use weighlock_effects::{Changes, CommitError, Place};
use weighlock_testing::not_as_this_user;

use crate::basic::mixed;
use crate::stage::{Stage, apply, is_root, leftovers};
use crate::tree::{assert_same, tree};

#[test]
fn a_link_to_outside_is_only_a_link() {
    let mut stage = Stage::new();
    stage.file("dir/file", "inside");
    let outside = stage.temp.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "outside").unwrap();
    let seen = tree(&outside);
    stage.delete("dir");
    stage.new_link("dir", outside.to_str().unwrap());
    stage.new_link("passwd", "/etc/passwd");
    stage.there_and_back();
    assert_same(&tree(&outside), &seen, "outside");
}

#[test]
fn a_directory_swapped_for_a_link_is_a_conflict() {
    let mut stage = Stage::new();
    stage.file("dir/changed", "old");
    stage.file("dir/gone", "old");
    stage.new_file("dir/changed", "new");
    stage.new_file("dir/new", "new");
    stage.delete("dir/gone");
    let changes = stage.changes();
    let outside = stage.temp.path().join("outside");
    fs::rename(stage.live().join("dir"), &outside).unwrap();
    symlink(&outside, stage.live().join("dir")).unwrap();
    let seen = tree(&outside);
    let done = apply(&changes, &stage.place("first"));
    assert!(matches!(done, Err(CommitError::Conflicts(found)) if found.len() == 3));
    assert_same(&tree(&outside), &seen, "outside");
}

#[test]
fn swapping_a_directory_all_the_time_changes_nothing_outside() {
    let outside = tempfile::tempdir().unwrap();
    for name in ["changed", "gone", "mode"] {
        fs::write(outside.path().join(name), "outside").unwrap();
    }
    let seen = tree(outside.path());
    for round in 0..100 {
        let mut stage = Stage::new();
        for name in ["changed", "gone", "mode"] {
            stage.file(format!("dir/{name}"), "old");
        }
        stage.new_file("dir/changed", "new");
        stage.new_file("dir/new", "new");
        stage.new_mode("dir/mode", 0o600);
        stage.delete("dir/gone");
        let (before, after) = (tree(&stage.live()), stage.expected());
        let changes = stage.changes();
        let (dir, trap) = (stage.live().join("dir"), stage.temp.path().join("trap"));
        symlink(outside.path(), &trap).unwrap();
        let done = while_looping(
            || {
                for _ in 0..2 {
                    renameat_with(CWD, &dir, CWD, &trap, RenameFlags::EXCHANGE).unwrap();
                }
            },
            || apply(&changes, &stage.place("first")),
        );
        assert_same(&tree(outside.path()), &seen, "outside");
        let stuck = !matches!(done, Ok(_) | Err(CommitError::Conflicts(_)));
        if stuck {
            weighlock_effects::recover(&stage.place("first").dir).unwrap();
        }
        let (mut now, mut wanted) = (
            tree(&stage.live()),
            if done.is_ok() { after } else { before },
        );
        for all in [&mut now, &mut wanted] {
            // Swapping changes the times of both.
            all.remove(Path::new(""));
            all.get_mut(Path::new("dir")).unwrap().mtime = (0, 0);
        }
        assert!(leftovers(&now).is_empty(), "{round}: {done:?}");
        if done.is_ok() {
            assert_same(&now, &wanted, &format!("round {round}: {done:?}"));
        }
    }
}

/// Does one thing again and again until the other is done.
fn while_looping<T>(again: impl Fn() + Sync, once: impl FnOnce() -> T) -> T {
    let (stop, turns) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                again();
                turns.fetch_add(1, Ordering::Release);
            }
        });
        while turns.load(Ordering::Acquire) == 0 {
            std::hint::spin_loop();
        }
        let done = once();
        stop.store(true, Ordering::Release);
        done
    })
}

/// Whatever a person saves during a commit is in the tree afterwards: either
/// there is a conflict and theirs stays, or ours came first and theirs after.
#[test]
fn an_edit_during_a_commit_is_never_lost() {
    let (mut conflicts, mut ours) = (0, 0);
    for round in 0..300_usize {
        let mut stage = Stage::new();
        for name in ["a", "b", "c", "gone"] {
            stage.file(name, "old");
        }
        for name in ["a", "b", "c"] {
            stage.new_file(name, "new");
        }
        stage.delete("gone");
        let changes = stage.changes();
        let name = ["b", "gone"][round % 2];
        let (path, aside) = (stage.live().join(name), stage.temp.path().join("aside"));
        let saves = AtomicUsize::new(0);
        let done = std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1..4 + round % 40 {
                    fs::write(&aside, format!("edit {number}")).unwrap();
                    fs::rename(&aside, &path).unwrap();
                    saves.store(number, Ordering::Release);
                }
            });
            // Each round begins at another point of the editing.
            while saves.load(Ordering::Acquire) == 0 && round % 3 == 0 {
                std::hint::spin_loop();
            }
            apply(&changes, &stage.place("first"))
        });
        let last = format!("edit {}", saves.load(Ordering::Acquire));
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            last,
            "round {round}: {done:?}"
        );
        let other = fs::read_to_string(stage.live().join("a")).unwrap();
        match done {
            Ok(_) => {
                ours += 1;
                assert_eq!(other, "new");
            }
            Err(CommitError::Conflicts(_)) => {
                conflicts += 1;
                assert_eq!(other, "old");
            }
            Err(error) => panic!("round {round}: {error:?}"),
        }
        assert!(leftovers(&tree(&stage.live())).is_empty());
    }
    eprintln!("{conflicts} conflicts, {ours} applied");
}

#[test]
fn what_raises_rights_is_refused() {
    for mode in [0o4755, 0o2755] {
        let mut stage = mixed();
        stage.new_file("tool", "x");
        let rights = fs::Permissions::from_mode(mode);
        fs::set_permissions(stage.upper().join("tool"), rights).unwrap();
        is_refused(&stage, &stage.changes(), "tool");
    }
}

#[test]
fn a_directory_keeps_the_group_bit_only_from_its_parent() {
    let mut stage = Stage::new();
    stage.file("shared/x", "x");
    let rights = |mode| fs::Permissions::from_mode(mode);
    fs::set_permissions(stage.live().join("shared"), rights(0o2755)).unwrap();
    stage.new_dir("shared/new/deep");
    for path in ["shared/new", "shared/new/deep"] {
        fs::set_permissions(stage.upper().join(path), rights(0o2755)).unwrap();
    }
    stage.there_and_back();
    let mut stage = Stage::new();
    stage.new_dir("own");
    fs::set_permissions(stage.upper().join("own"), rights(0o2755)).unwrap();
    is_refused(&stage, &stage.changes(), "own");
}

#[test]
fn devices_and_pipes_are_refused() {
    let stage = mixed();
    mknodat(
        CWD,
        stage.upper().join("pipe"),
        FileType::Fifo,
        Mode::RWXU,
        0,
    )
    .unwrap();
    is_refused(&stage, &stage.changes(), "pipe");
    if !is_root() {
        return not_as_this_user("only root makes devices");
    }
    let stage = mixed();
    let null = rustix::fs::makedev(1, 3);
    mknodat(
        CWD,
        stage.upper().join("device"),
        FileType::CharacterDevice,
        Mode::RWXU,
        null,
    )
    .unwrap();
    is_refused(&stage, &stage.changes(), "device");
}

#[test]
fn what_would_belong_to_others_is_refused() {
    if !is_root() {
        return not_as_this_user("only root gives files away");
    }
    let mut stage = mixed();
    stage.new_file("foreign", "x");
    std::os::unix::fs::chown(stage.upper().join("foreign"), Some(1234), None).unwrap();
    is_refused(&stage, &stage.changes(), "foreign");
}

#[test]
fn paths_that_lead_elsewhere_are_refused() {
    for path in [
        "../outside",
        "/etc/passwd",
        "a/../../b",
        ".weighlock-12345678-0/x",
    ] {
        let mut stage = Stage::new();
        stage.new_file("x", "x");
        let mut changes = stage.changes();
        changes.entries[0].path = Path::new(path).into();
        is_refused(&stage, &changes, path);
    }
}

#[test]
fn with_any_refusal_nothing_is_applied() {
    let stage = mixed();
    let mut changes = stage.changes();
    changes.refused.push(weighlock_effects::Refusal {
        root: 0,
        path: Path::new("x").into(),
        why: "for the test".into(),
    });
    is_refused(&stage, &changes, "x");
}

fn is_refused(stage: &Stage, changes: &Changes, path: &str) {
    let before = tree(&stage.live());
    match apply(changes, &stage.place("first")) {
        Err(CommitError::Refused(found)) => {
            let paths: Vec<&Path> = found.iter().map(|one| one.path.path()).collect();
            assert_eq!(paths, [Path::new(path)]);
        }
        other => panic!("{other:?}"),
    }
    assert_same(&tree(&stage.live()), &before, "after the refusal");
}

#[test]
fn another_directory_in_place_of_the_root_is_a_conflict() {
    let stage = mixed();
    let changes = stage.changes();
    fs::rename(stage.live(), stage.temp.path().join("away")).unwrap();
    fs::create_dir(stage.live()).unwrap();
    let done = apply(&changes, &stage.place("first"));
    assert!(matches!(done, Err(CommitError::Conflicts(_))));
    assert_eq!(fs::read_dir(stage.live()).unwrap().count(), 0);
}

/// What somebody who still has the file open could do: the size and the time
/// of modification are those that were shown.
fn write_secretly(path: &Path, text: &str) {
    let meta = fs::metadata(path).unwrap();
    fs::write(path, text).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(meta.modified().unwrap()).unwrap();
    assert_eq!(file.metadata().unwrap().len(), meta.len());
}

#[test]
fn what_is_written_after_it_was_shown_is_not_applied() {
    let large = "x".repeat(2 << 20);
    for (text, other) in [("good", "evil"), (&large, &large.replace('x', "y"))] {
        let mut stage = Stage::new();
        stage.file("file", "old");
        stage.new_file("file", text);
        stage.new_file("new", text);
        let changes = stage.changes();
        let before = tree(&stage.live());
        write_secretly(&stage.upper().join("new"), other);
        let place = Place {
            alone: false,
            ..stage.place("first")
        };
        let done = apply(&changes, &place);
        assert!(matches!(done, Err(CommitError::OtherHash)), "{done:?}");
        assert_same(&tree(&stage.live()), &before, "live");
    }
}

#[test]
fn nobody_keeps_a_hold_on_what_is_applied_among_others() {
    let mut stage = Stage::new();
    stage.new_file("new", "good");
    let place = Place {
        alone: false,
        ..stage.place("first")
    };
    let changes = stage.changes();
    apply(&changes, &place).unwrap();
    fs::write(stage.upper().join("new"), "evil").unwrap();
    assert_eq!(
        fs::read_to_string(stage.live().join("new")).unwrap(),
        "good"
    );
}
