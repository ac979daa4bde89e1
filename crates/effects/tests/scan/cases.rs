//! One run over a live tree: each way to change something.

use weighlock_testing::have;

use crate::world::{World, check, said};

#[test]
fn a_run_that_only_reads_changes_nothing() {
    check("echo a > f; mkdir d", "cat f; ls d", &[]);
    // Opened for writing, and so copied, but left as it was.
    check("echo a > f", ": >> f", &[]);
    check(
        "mkdir d; echo a > d/f",
        "touch d/new; rm d/new; touch -r f f 2>/dev/null || :",
        &["times d"],
    );
}

#[test]
fn content_that_differs_is_modified() {
    check("echo a > f", "echo b > f", &["modified f"]);
    check("echo a > f", "echo b >> f", &["modified f"]);
    check("echo a > f", "sed -i s/a/b/ f", &["modified f"]);
    check("echo a > f", ": > f", &["modified f"]);
    check(
        "mkdir -p a/b; echo a > a/b/f",
        "echo b > a/b/f",
        &["modified a/b/f"],
    );
    // The same size, and the old time set back.
    check(
        "echo a > f; touch -d @5 f",
        "echo b > f; touch -d @5 f",
        &["modified f"],
    );
}

#[test]
fn large_files_are_compared_by_content() {
    let large = "head -c 3000000 /dev/zero > f; touch -d @5 f";
    check(large, ": >> f", &[]);
    let edit = "printf x | dd of=f bs=1 seek=2000000 conv=notrunc 2>/dev/null; touch -d @5 f";
    check(large, edit, &["modified f"]);
    check(large, "touch -d @6 f", &["times f"]);
    check(large, "chmod 600 f", &["mode f"]);
}

#[test]
fn rights_and_times_have_kinds_of_their_own() {
    check("echo a > f; chmod 644 f", "chmod 755 f", &["mode f"]);
    check("echo a > f", "touch -d @5 f", &["times f"]);
    check("mkdir d; chmod 755 d", "chmod 700 d", &["mode d"]);
    check("mkdir d", "touch -d @5 d", &["times d"]);
    // A time that follows from what happened in it says nothing.
    check("mkdir d", "touch d/x", &["created d/x"]);
    check("mkdir d; touch d/x", "rm d/x", &["deleted d/x"]);
}

#[test]
fn new_things_are_created() {
    check("", "echo a > f", &["created f"]);
    check("", ": > empty", &["created empty"]);
    check(
        "",
        "mkdir -p a/b; echo x > a/b/c",
        &["created a", "created a/b", "created a/b/c"],
    );
    check("", "echo x > a; ln a b", &["created a", "created b"]);
}

#[test]
fn deleted_trees_have_an_entry_for_everything() {
    check("echo a > f", "rm f", &["deleted f"]);
    check(
        "mkdir -p d/e; echo 1 > d/e/x; ln -s x d/e/l; mkdir d/empty",
        "rm -rf d",
        &[
            "deleted d",
            "deleted d/e",
            "deleted d/e/l",
            "deleted d/e/x",
            "deleted d/empty",
        ],
    );
    check("", "touch f; rm f; mkdir d; rmdir d", &[]);
}

#[test]
fn renamed_files_are_one_entry() {
    check("echo abc > old", "mv old new", &["renamed old -> new"]);
    check(
        "echo abc > old; mkdir d",
        "mv old d/old",
        &["renamed old -> d/old"],
    );
    check(
        "echo abc > old",
        "cp old new; rm old",
        &["renamed old -> new"],
    );
    // Nothing says where an empty file comes from.
    check(": > old", "mv old new", &["created new", "deleted old"]);
    // Who keeps its name goes first.
    check(
        "mkdir a; echo s > a/x; echo s > a/y",
        "mkdir b; mv a/y b/y; mv a/x b/0",
        &["created b", "renamed a/x -> b/0", "renamed a/y -> b/y"],
    );
    check(
        "echo abc > old",
        "mv old new; echo d >> new",
        &["created new", "deleted old"],
    );
    // Larger than what is always hashed.
    check("seq 400000 > old", "mv old new", &["renamed old -> new"]);
}

#[test]
fn a_moved_directory_is_moved_files() {
    check(
        "mkdir -p d/e; echo 1 > d/x; echo 2 > d/e/y",
        "mv d new",
        &[
            "deleted d",
            "deleted d/e",
            "created new",
            "created new/e",
            "renamed d/e/y -> new/e/y",
            "renamed d/x -> new/x",
        ],
    );
}

#[test]
fn a_directory_made_anew_is_compared_with_the_old() {
    let tree = "mkdir d; chmod 755 d; echo 1 > d/same; echo 2 > d/other; echo 3 > d/gone; \
                touch -d @5 d/same";
    check(
        tree,
        "rm -rf d; mkdir d; echo 1 > d/same; touch -d @5 d/same; echo 4 > d/other",
        &["deleted d/gone", "modified d/other"],
    );
    check(
        tree,
        "rm -rf d; mkdir d",
        &["deleted d/gone", "deleted d/other", "deleted d/same"],
    );
}

#[test]
fn what_becomes_another_kind_is_deleted_first() {
    check(
        "echo 1 > x",
        "rm x; mkdir x; echo 2 > x/y",
        &["deleted x", "created x", "created x/y"],
    );
    check(
        "mkdir x; echo 1 > x/y",
        "rm -r x; echo 2 > x",
        &["deleted x", "created x", "deleted x/y"],
    );
    // Not taken for renames: the path is needed for something else.
    check(
        "echo 1 > x",
        "mv x t; mkdir x; mv t x/y",
        &["deleted x", "created x", "created x/y"],
    );
    check(
        "mkdir x; echo 1 > x/y",
        "mv x/y t; rmdir x; mv t x",
        &["deleted x", "created x", "deleted x/y"],
    );
}

#[test]
fn links_are_never_followed() {
    check("", "ln -s /etc/passwd l", &["link l"]);
    check("ln -s a l", "ln -sfn b l", &["link l"]);
    check("ln -s a l", "rm l", &["deleted l"]);
    check("ln -s a l; echo 1 > a", "rm l; echo 1 > l", &["link l"]);
    check("echo 1 > f", "rm f; ln -s x f", &["link f"]);
    check(
        "mkdir d; echo 1 > d/f",
        "rm -r d; ln -s /etc d",
        &["deleted d", "link d", "deleted d/f"],
    );
    check(
        "ln -s /etc d",
        "rm d; mkdir d; echo 1 > d/f",
        &["deleted d", "created d", "created d/f"],
    );
    check("ln -s a l", "touch -h -d @5 l", &["times l"]);
    check("mkdir d; ln -s d l", "echo 1 > l/f", &["created d/f"]);
}

#[test]
fn names_are_any_bytes() {
    check(
        "",
        "touch 'ä ö' \"a\nb\"",
        &["created a\\nb", "created ä ö"],
    );
    check(
        r#"touch "$(printf 'x\377')""#,
        r#"echo 1 > "$(printf 'x\377')"; touch "$(printf '\376')""#,
        &["modified x\\xff", "created \\xfe"],
    );
    let long = "n".repeat(255);
    check("", &format!("touch {long}"), &[&format!("created {long}")]);
}

#[test]
fn attributes_of_the_run_count_and_those_of_the_layer_do_not() {
    if !have(&["setfattr"]) {
        return;
    }
    check("echo 1 > f", "setfattr -n user.x -v 1 f", &["mode f"]);
    check("echo 1 > f; setfattr -n user.x -v 1 f", ": >> f", &[]);
    check(
        "echo 1 > f; setfattr -n user.x -v 1 f",
        "setfattr -x user.x f",
        &["mode f"],
    );
    check(
        "echo 1 > f",
        "setfattr -n user.overlay.x -v 1 f",
        &[
            "mode f",
            "refused f: has attributes by which layers are marked",
        ],
    );
    check("mkdir d", "setfattr -n user.x -v 1 d", &["mode d"]);
    check(
        "mkdir d; setfattr -n user.x -v 1 d",
        "touch d/f",
        &["created d/f"],
    );
}

#[test]
fn a_live_file_that_went_by_itself_is_no_deletion() {
    let Some(mut world) = World::new("echo 1 > f; mkdir d; echo 2 > d/f") else {
        return;
    };
    world.run("rm f; rm -r d");
    world.in_live("rm -r f d");
    assert!(world.scan().is_empty());
}

#[test]
fn deleted_files_may_be_marked_by_an_attribute() {
    let Some(mut world) = World::new("mkdir d; echo 1 > d/f; echo 2 > d/g") else {
        return;
    };
    world.run("touch d/f d/new");
    let (dir, file) = (world.upper().join("d"), world.upper().join("d/f"));
    std::fs::write(&file, "").unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(&file, "user.overlay.whiteout", b"", flags).unwrap();
    rustix::fs::setxattr(&dir, "user.overlay.opaque", b"x", flags).unwrap();
    assert_eq!(said(&world.scan()), ["deleted d/f", "created d/new"]);
}
