//! A live tree that is not as the run saw it.

use std::fs;
use std::path::Path;

use weighlock_effects::{Changes, Error, Time};

use crate::world::{World, said, text, time_of};

/// Runs a script in a layer, then another in the live tree, and compares what
/// is said to be in the way.
fn check(setup: &str, run: &str, meanwhile: &str, expected: &[&str]) {
    let Some(mut world) = World::new(setup) else {
        return;
    };
    world.run(run);
    let changes = world.scan();
    assert_eq!(changes.conflicts().unwrap(), []);
    world.in_live(meanwhile);
    let what = format!("`{run}` on `{setup}`, then `{meanwhile}`");
    assert_eq!(conflicts(&changes), expected, "{what}");
}

fn conflicts(changes: &Changes) -> Vec<String> {
    let all = changes.conflicts().unwrap().into_iter();
    all.map(|conflict| format!("{} {}", text(&conflict.path), conflict.why))
        .collect()
}

#[test]
fn what_others_changed_is_in_the_way() {
    check(
        "echo 1 > f",
        "echo 2 > f",
        "echo 3 > f",
        &["f was changed meanwhile"],
    );
    check(
        "echo 1 > f",
        "echo 2 > f",
        "echo 3 > f; touch -r /etc/passwd f",
        &["f was changed meanwhile"],
    );
    check(
        "echo 1 > f",
        "echo 2 > f",
        "chmod 600 f",
        &["f was changed meanwhile"],
    );
    check(
        "echo 1 > f",
        "rm f",
        "echo 3 > g; mv g f",
        &["f was changed meanwhile"],
    );
    check("echo 1 > f", "echo 2 > f", "rm f", &["f is gone"]);
    check(
        "echo 1 > f",
        "echo 2 > f",
        "rm f; mkdir f",
        &["f is now a directory"],
    );
    check(
        "echo 1 > f",
        "echo 2 > f",
        "rm f; ln -s x f",
        &["f is now a link"],
    );
    check(
        "mkdir f",
        "chmod 700 f",
        "rmdir f; echo 1 > f",
        &["f is now a file"],
    );
    check(
        "ln -s a l",
        "ln -sfn b l",
        "ln -sfn c l",
        &["l was changed meanwhile"],
    );
    check(
        "mkdir d",
        "chmod 700 d",
        "chmod 711 d",
        &["d was changed meanwhile"],
    );
}

#[test]
fn a_content_set_back_is_still_another_one() {
    // Same size and time; only the content and the time of change tell.
    let setup = "echo 1 > f; touch -d @5 f";
    check(
        setup,
        "echo 2 > f",
        "echo 3 > f; touch -d @5 f",
        &["f was changed meanwhile"],
    );
}

#[test]
fn another_name_is_no_change() {
    check("echo 1 > f", "echo 2 > f", "ln f g", &[]);
    check("echo 1 > f", "echo 2 > g", "echo 3 > f", &[]);
    check("mkdir d", "chmod 700 d", "touch d/new", &[]);
    check("mkdir d", "touch d/f", "touch d/g", &[]);
    check("mkdir d", "touch -d @5 d", "touch d/g", &[]);
}

#[test]
fn what_appeared_is_in_the_way() {
    check("", "echo 2 > f", "echo 3 > f", &["f appeared meanwhile"]);
    check("", "ln -s x f", "mkdir f", &["f appeared meanwhile"]);
    check(
        "mkdir d; echo 1 > d/f",
        "rm -r d",
        "touch d/g",
        &["d/g appeared meanwhile"],
    );
    check(
        "mkdir d",
        "touch d/f",
        "rmdir d",
        &["d/f is in a directory that is gone"],
    );
    check(
        "mkdir d",
        "touch d/f",
        "rmdir d; ln -s /etc d",
        &["d/f is in a directory that is gone"],
    );
    check(
        "mkdir d; touch d/f",
        "rm d/f",
        "mv d e; ln -s e d",
        &["d/f is gone"],
    );
}

#[test]
fn both_names_of_a_renamed_file_count() {
    check(
        "echo 1 > f",
        "mv f g",
        "echo 2 > f",
        &["f was changed meanwhile"],
    );
    check(
        "echo 1 > f",
        "mv f g",
        "echo 2 > g",
        &["g appeared meanwhile"],
    );
    check("echo 1 > f", "mv f g", "rm f", &["f is gone"]);
}

#[test]
fn what_makes_way_is_not_in_the_way() {
    check("echo 1 > x", "rm x; mkdir x; touch x/y", "", &[]);
    check("mkdir x; echo 1 > x/y", "rm -r x; echo 2 > x", "", &[]);
    check("mkdir x; echo 1 > x/y", "rm -r x; ln -s y x", "", &[]);
}

#[test]
fn applied_layers_are_known_by_their_content() {
    let Some(mut world) = World::new("echo 0 > f; touch -d @5 f") else {
        return;
    };
    world.run("echo 1 > f; touch -d @6 f; mkdir d");
    world.run("echo 2 > f; touch d/g");
    let changes = world.scan();
    let expected = [
        "d/g is in a directory that is gone",
        "f was changed meanwhile",
    ];
    assert_eq!(conflicts(&changes), expected);
    world.in_live("echo 1 > f; touch -d @6 f; mkdir d");
    assert_eq!(conflicts(&changes), [""; 0]);
    world.in_live("echo 3 > f; touch -d @6 f");
    assert_eq!(conflicts(&changes), ["f was changed meanwhile"]);
}

#[test]
fn another_directory_is_not_the_root() {
    let Some(mut world) = World::new("echo 1 > f") else {
        return;
    };
    world.run("echo 2 > f");
    let (changes, root) = (world.scan(), world.root());
    fs::rename(world.live(), world.path("old")).unwrap();
    let lost = [" is no longer the same directory"];
    assert_eq!(conflicts(&changes), lost);
    fs::create_dir(world.live()).unwrap();
    fs::write(world.live().join("f"), "1\n").unwrap();
    assert_eq!(conflicts(&changes), lost);
    let again = Changes::scan(vec![root], Time::default());
    assert!(matches!(again, Err(Error::Replaced { .. })));
}

/// Changes the live tree until the clock of files has moved on.
fn after(world: &World, since: Time, script: &str, path: &str) {
    loop {
        world.in_live(script);
        if time_of(&world.live().join(path)) > since {
            return;
        }
    }
}

#[test]
fn what_changed_while_it_ran_is_overtaken() {
    let Some(mut world) = World::new("echo 1 > f; echo 1 > g; mkdir d; echo 1 > d/f") else {
        return;
    };
    let since = world.now();
    world.run("echo 2 > f; echo 2 > g; rm -r d");
    after(&world, since, "echo 3 > g", "g");
    after(&world, since, "echo 3 > d/f", "d/f");
    let changes = world.scan_since(since);
    assert_eq!(
        said(&changes),
        ["deleted d", "deleted d/f", "modified f", "modified g"]
    );
    let overtaken: Vec<_> = changes
        .entries
        .iter()
        .map(|change| change.overtaken)
        .collect();
    assert_eq!(overtaken, [false, true, false, true]);
    let expected = ["d/f was changed while it ran", "g was changed while it ran"];
    assert_eq!(conflicts(&changes), expected);
}

#[test]
fn a_file_that_went_while_it_was_edited_is_overtaken() {
    let Some(mut world) = World::new("echo 1 > f; echo 1 > h") else {
        return;
    };
    let since = world.now();
    world.run("echo 2 > f");
    after(&world, since, "rm -f f; touch x", "");
    let changes = world.scan_since(since);
    assert_eq!(said(&changes), ["created f"]);
    assert_eq!(conflicts(&changes), ["f was changed while it ran"]);
}

#[test]
fn a_moved_file_is_not_overtaken_by_its_neighbours() {
    let Some(mut world) = World::new("echo 1 > f") else {
        return;
    };
    let since = world.now();
    world.run("mv f g; echo 2 >> g");
    after(&world, since, "touch x; rm x", "");
    let changes = world.scan_since(since);
    assert_eq!(said(&changes), ["deleted f", "created g"]);
    assert_eq!(conflicts(&changes), [""; 0]);
}

#[test]
fn the_time_of_a_directory_that_others_write_to_is_nobody_s() {
    let Some(mut world) = World::new("mkdir d") else {
        return;
    };
    let since = world.now();
    world.run("touch d/f; rm d/f");
    after(&world, since, "touch d/g; rm d/g", "d");
    assert!(world.scan_since(since).is_empty());
}

#[test]
fn a_directory_that_another_took_the_place_of_is_not_what_the_run_saw() {
    let setup = "mkdir -p d x/s d.new x.new/s e e.new; echo 1 > d/f; echo 1 > x/s/f; echo 1 > d/g
        echo mine > d.new/f; echo mine > x.new/s/only; echo 1 > e/f; echo mine > e.new/f";
    let Some(mut world) = World::new(setup) else {
        return;
    };
    let since = world.now();
    world.run("echo 2 >> d/f; rm -r x/s; rm d/g; rm -r e; mkdir e; echo z > e/z");
    world.in_live("for n in d x e; do mv $n $n.old; mv $n.new $n; done");
    let changes = world.scan_since(since);
    let conflicts = conflicts(&changes);
    assert_eq!(conflicts.len(), changes.entries.len(), "{conflicts:?}");
    let lost =
        ["d/f", "x/s", "x/s/only", "e/f"].map(|path| format!("{path} was changed while it ran"));
    assert!(
        lost.iter().all(|line| conflicts.contains(line)),
        "{conflicts:?}"
    );
}

#[test]
fn a_directory_in_which_others_work_is_the_same() {
    let Some(mut world) = World::new("mkdir d; echo 1 > d/f") else {
        return;
    };
    let since = world.now();
    world.run("echo 2 >> d/f");
    world.in_live("echo mine > d/other; chmod 700 d");
    let changes = world.scan_since(since);
    assert!(
        !changes
            .entries
            .iter()
            .any(|change| change.path.path() == Path::new("d/f") && change.overtaken)
    );
}
