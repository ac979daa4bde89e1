//! What a commit does, and that an undo takes it all back.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use weighlock_effects::{Applied, CommitError, Recovered, forget_images, recover};
use weighlock_policy::ChangeQuestion;
use weighlock_testing::skip;

use crate::stage::{Stage, apply, leftovers};
use crate::tree::{assert_same, tree};

/// A bit of everything.
pub(crate) fn mixed() -> Stage {
    let mut stage = Stage::new();
    stage.file("same", "untouched");
    stage.file("notes/a", "old");
    stage.file("notes/b", "gone soon");
    stage.file("gone/deep/x", "1");
    stage.file("gone/deep/y", "2");
    stage.file("gone/z", "3");
    stage.file("mode", "m");
    stage.file("was-file", "f");
    stage.file("was-dir/inside", "d");
    stage.file("moved-from/f", "moves");
    stage.link("link", "here");
    stage.link("link-to-file", "x");
    stage.file("first-name", "shared");
    stage.hard("second-name", "first-name");
    stage.new_file("notes/a", "new content");
    stage.delete("notes/b");
    stage.delete("gone");
    stage.new_mode("mode", 0o751);
    stage.delete("was-file");
    stage.new_file("was-file/now-in-it", "x");
    stage.delete("was-dir");
    stage.new_file("was-dir", "now a file");
    stage.rename("moved-from/f", "moved-to");
    stage.new_link("link", "elsewhere");
    stage.new_file("link-to-file", "now a file");
    stage.new_file("fresh/tree/with/file", "f");
    stage.new_file("fresh/tree/other", "o");
    stage.new_link("fresh/link", "tree/other");
    stage.new_dir("fresh/empty");
    stage.new_hard("fresh/hard", "fresh/tree/other");
    stage
}

#[test]
fn everything_is_applied_and_undone_and_redone() {
    let stage = mixed();
    let applied = stage.there_and_back();
    assert!(applied.files > 0 && applied.bytes > 0);
    assert_eq!(
        leftovers(&tree(&stage.live())),
        Vec::<&std::path::PathBuf>::new()
    );
}

#[test]
fn the_same_holds_with_a_promise_against_loss_of_power() {
    let stage = mixed();
    let mut place = stage.place("first");
    place.durable = true;
    let (before, after) = (tree(&stage.live()), stage.expected());
    let applied = apply(&stage.changes(), &place).unwrap();
    assert_same(&tree(&stage.live()), &after, "after the commit");
    let mut undo = stage.place("undo");
    undo.durable = true;
    apply(&applied.inverse(&place.dir), &undo).unwrap();
    assert_same(&tree(&stage.live()), &before, "after the undo");
}

#[test]
fn the_record_can_be_loaded_and_undone_later() {
    let stage = mixed();
    let before = tree(&stage.live());
    let place = stage.place("first");
    let applied = stage.commit().unwrap();
    assert_eq!(Applied::load(&place.dir).unwrap(), Some(applied));
    assert_eq!(recover(&place.dir).unwrap(), Recovered::Nothing);
    // The layer is removed once its changes are applied.
    fs::remove_dir_all(stage.upper()).unwrap();
    let loaded = Applied::load(&place.dir).unwrap().unwrap();
    apply(&loaded.inverse(&place.dir), &stage.place("undo")).unwrap();
    assert_same(&tree(&stage.live()), &before, "after the undo");
}

#[test]
fn forgotten_images_cannot_be_undone() {
    let stage = mixed();
    let place = stage.place("first");
    let applied = stage.commit().unwrap();
    forget_images(&place.dir).unwrap();
    let after = tree(&stage.live());
    let undone = apply(&applied.inverse(&place.dir), &stage.place("undo"));
    assert!(matches!(undone, Err(CommitError::Io { .. })), "{undone:?}");
    assert_same(&tree(&stage.live()), &after, "after the attempt");
}

#[test]
fn a_permit_for_something_else_applies_nothing() {
    let stage = mixed();
    let before = tree(&stage.live());
    let permit = ChangeQuestion::about("other").approved_by("ana");
    let done = weighlock_effects::commit(&stage.changes(), permit, &stage.place("first"));
    assert!(matches!(done, Err(CommitError::OtherHash)));
    assert_same(&tree(&stage.live()), &before, "after the attempt");
}

#[test]
fn a_layer_that_changed_after_it_was_shown_is_not_applied() {
    let stage = mixed();
    let changes = stage.changes();
    let before = tree(&stage.live());
    fs::write(stage.upper().join("notes/a"), "something worse").unwrap();
    let done = apply(&changes, &stage.place("first"));
    assert!(matches!(done, Err(CommitError::OtherHash)), "{done:?}");
    assert_same(&tree(&stage.live()), &before, "after the attempt");
}

#[test]
fn all_conflicts_are_told_and_nothing_is_touched() {
    let stage = mixed();
    let changes = stage.changes();
    fs::write(stage.live().join("notes/a"), "edited by ana").unwrap();
    fs::write(stage.live().join("gone/deep/new"), "ana's").unwrap();
    fs::remove_file(stage.live().join("moved-from/f")).unwrap();
    fs::create_dir(stage.live().join("fresh")).unwrap();
    fs::set_permissions(stage.live().join("mode"), fs::Permissions::from_mode(0o600)).unwrap();
    let before = tree(&stage.live());
    let Err(CommitError::Conflicts(found)) = apply(&changes, &stage.place("first")) else {
        panic!("it should conflict");
    };
    let paths: Vec<_> = found
        .iter()
        .map(|one| one.path.path().to_str().unwrap())
        .collect();
    let all = ["fresh", "gone/deep/new", "mode", "moved-from/f", "notes/a"];
    assert_eq!(paths, all);
    assert_same(&tree(&stage.live()), &before, "after the conflicts");
}

#[test]
fn an_undo_does_not_touch_what_was_edited_since() {
    let stage = mixed();
    let applied = stage.commit().unwrap();
    fs::write(stage.live().join("notes/a"), "edited after the commit").unwrap();
    let edited = tree(&stage.live());
    let undo = applied.inverse(&stage.place("first").dir);
    let undone = apply(&undo, &stage.place("undo"));
    assert!(matches!(undone, Err(CommitError::Conflicts(found)) if found.len() == 1));
    assert_same(&tree(&stage.live()), &edited, "after the attempt");
}

#[test]
fn a_file_changed_in_place_changes_under_all_its_names() {
    let mut stage = Stage::new();
    stage.file("a", "old");
    stage.hard("b", "a");
    stage.new_file("a", "new and longer");
    let upper = stage.upper().join("a");
    let mark = rustix::fs::setxattr(
        &upper,
        "user.overlay.origin",
        b"",
        rustix::fs::XattrFlags::empty(),
    );
    if mark.is_err() {
        return skip("this file system has no extended attributes");
    }
    let before = tree(&stage.live());
    let inode = fs::metadata(stage.live().join("a")).unwrap().ino();
    let applied = stage.commit().unwrap();
    assert_eq!(
        fs::read_to_string(stage.live().join("b")).unwrap(),
        "new and longer"
    );
    assert_eq!(fs::metadata(stage.live().join("a")).unwrap().ino(), inode);
    let undo = applied.inverse(&stage.place("first").dir);
    let undone = apply(&undo, &stage.place("undo")).unwrap();
    assert_same(&tree(&stage.live()), &before, "after the undo");
    let redo = undone.inverse(&stage.place("undo").dir);
    apply(&redo, &stage.place("redo")).unwrap();
    assert_eq!(
        fs::read_to_string(stage.live().join("b")).unwrap(),
        "new and longer"
    );
}

#[test]
fn a_place_serves_one_commit_only() {
    let stage = mixed();
    let applied = stage.commit().unwrap();
    let undo = applied.inverse(&stage.place("first").dir);
    let again = apply(&undo, &stage.place("first"));
    assert!(matches!(again, Err(CommitError::Io { .. })), "{again:?}");
}

#[test]
fn what_builds_on_an_earlier_layer_needs_only_the_same_content() {
    let mut stage = Stage::new();
    stage.file("a", "from an earlier run");
    stage.new_file("a", "from this run");
    let mut changes = stage.changes();
    let entry = &mut changes.entries[0];
    entry.built_on = Some(0);
    let before = entry.before.as_mut().unwrap();
    (before.inode, before.ctime) = (1, weighlock_effects::Time::default());
    let mut other = changes.clone();
    other.entries[0].before.as_mut().unwrap().content = Some("other".into());
    let done = apply(&other, &stage.place("other"));
    assert!(matches!(done, Err(CommitError::Conflicts(_))), "{done:?}");
    apply(&changes, &stage.place("first")).unwrap();
    assert_eq!(
        fs::read_to_string(stage.live().join("a")).unwrap(),
        "from this run"
    );
}

#[test]
fn several_directories_are_changed_together_or_not_at_all() {
    let (one, two) = (mixed(), mixed());
    let mut changes = one.changes();
    let more = two.changes();
    changes.roots.extend(more.roots);
    changes.entries.extend(
        more.entries
            .into_iter()
            .map(|entry| weighlock_effects::Change { root: 1, ..entry }),
    );
    let (place, before) = (one.place("first"), [tree(&one.live()), tree(&two.live())]);
    let expected = [one.expected(), two.expected()];
    let applied = apply(&changes, &place).unwrap();
    assert_same(&tree(&one.live()), &expected[0], "the first");
    assert_same(&tree(&two.live()), &expected[1], "the second");
    let undo = applied.inverse(&place.dir);
    fs::write(two.live().join("notes/a"), "edited").unwrap();
    let done = apply(&undo, &one.place("conflict"));
    assert!(matches!(done, Err(CommitError::Conflicts(found)) if found[0].root == 1));
    assert_same(
        &tree(&one.live()),
        &expected[0],
        "the first after a conflict",
    );
    assert_ne!(before[0], expected[0]);
}

#[test]
fn a_root_that_is_away_keeps_its_journal() {
    let stage = mixed();
    let place = stage.place("first").dir;
    fs::create_dir_all(&place).unwrap();
    let changes = serde_json::to_string(&stage.changes()).unwrap();
    let line = format!("{{\"begin\":{{\"changes\":{changes},\"durable\":false}}}}\n");
    fs::write(place.join("journal"), line).unwrap();
    let away = stage.temp.path().join("away");
    fs::rename(stage.live(), &away).unwrap();
    assert!(matches!(recover(&place), Err(CommitError::Stuck { .. })));
    fs::rename(&away, stage.live()).unwrap();
    assert_eq!(recover(&place).unwrap(), Recovered::RolledBack);
    assert_eq!(recover(&place).unwrap(), Recovered::Nothing);
}
