//! Git makes of a patch exactly what was shown.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod trees;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use trees::{Dice, Thing, Tree, Trees, file, link, one, program, read, write};
use weighlock_effects::{Changes, Error, Kind};

fn patch(changes: &Changes) -> Vec<u8> {
    let mut patch = vec![];
    changes.patch(&mut patch).unwrap();
    patch
}

fn git(dir: &Path, arguments: &[&str]) {
    let done = Command::new("git")
        .current_dir(dir)
        .env("HOME", dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "git {arguments:?}: {said}");
}

/// Applies the patch to a copy of what was, and takes it back again.
#[track_caller]
fn check(before: &Tree, after: &Tree, renamed: &[(&[u8], &[u8])]) {
    let (trees, at) = check_forward(before, after, renamed);
    if before == after {
        return;
    }
    let copy = trees.dir().join("copy");
    git(&copy, &["apply", "--whitespace=nowarn", "-R", &at]);
    assert!(
        contents(&read(&copy)) == contents(before),
        "back: {}",
        fs::read(at).unwrap().escape_ascii()
    );
}

/// What is in a tree: of what was deleted, git brings back no modes.
fn contents(tree: &Tree) -> Vec<(&[u8], &[u8])> {
    tree.iter()
        .map(|(name, thing)| (&name[..], thing.content()))
        .collect()
}

#[track_caller]
fn check_forward(before: &Tree, after: &Tree, renamed: &[(&[u8], &[u8])]) -> (Trees, String) {
    let trees = Trees::new(before, after);
    let patch = patch(&trees.changes(renamed));
    let copy = trees.dir().join("copy");
    write(&copy, before);
    let at = trees.dir().join("patch");
    fs::write(&at, &patch).unwrap();
    let at = at.to_str().unwrap().to_owned();
    if before == after {
        assert_eq!(patch.escape_ascii().to_string(), "");
        return (trees, at);
    }
    git(&copy, &["init", "-q", "--template="]);
    git(&copy, &["apply", "--whitespace=nowarn", &at]);
    assert!(&read(&copy) == after, "{}", patch.escape_ascii());
    (trees, at)
}

#[track_caller]
fn check_one(before: Option<Thing>, after: Option<Thing>) {
    let tree = |thing: Option<Thing>| thing.map(|thing| (b"f".to_vec(), thing));
    let (before, after) = (tree(before), tree(after));
    check(
        &before.into_iter().collect(),
        &after.into_iter().collect(),
        &[],
    );
}

fn tree(things: &[(&[u8], Option<Thing>)]) -> Tree {
    let things = things.iter().cloned();
    things
        .filter_map(|(name, thing)| Some((name.to_vec(), thing?)))
        .collect()
}

#[test]
fn text_is_applied() {
    check_one(None, file("a\nb\n"));
    check_one(file("a\nb\n"), None);
    check_one(file("a\nb\n"), file("a\nc\nb\n"));
    check_one(file("a\nb"), file("a\nb\n"));
    check_one(file("a\nb\n"), file("a\nb"));
    check_one(file("a\nb"), file("c\nb"));
    check_one(None, file("no newline"));
    check_one(file("a\r\nb\r\n"), file("a\nb\r\nc\r\n"));
    check_one(file("a\rb\rc"), file("a\rb\rd"));
    check_one(file("--- a/f\n+++ b/f\n"), file("--- a/f\n@@ -1 +1 @@\n"));
    check_one(
        file(b"d\xe9j\xe0 vu, mais pas encore lu\n"),
        file("deja vu\n"),
    );
    check_one(
        file(b"caf\xe9, mais un grand\n"),
        file(b"caf\xe9, mais un petit\n"),
    );
    check_one(file(" \n\t\n\n\n"), file("\n\n \n"));
}

#[test]
fn empty_files_are_applied() {
    check_one(None, file(""));
    check_one(file(""), None);
    check_one(file(""), file("a\n"));
    check_one(file("a\n"), file(""));
    check_one(None, program(""));
    check_one(file(""), program(""));
}

#[test]
fn what_is_no_text_is_applied() {
    let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    check_one(None, file(&bytes));
    check_one(file(&bytes), None);
    check_one(file(&bytes), file(&bytes[1..]));
    check_one(file(&bytes), file("text\n"));
    check_one(file(""), file("\0"));
    check_one(file("\0"), program("\0\0"));
    let late = ["text\n".repeat(4_000).as_bytes(), b"\0\n"].concat();
    check_one(file("text\n"), file(late));
    for length in 1..60 {
        let mut dice = Dice(length as u64);
        let bytes: Vec<u8> = (0..length).map(|_| dice.roll(256) as u8).collect();
        check_one(None, file([b"\0", &bytes[..]].concat()));
    }
}

#[test]
fn much_text_is_applied() {
    let line = |number: usize| format!("line {number} of many, with some more to it\n");
    let lines: Vec<String> = (0..30_000).map(line).collect();
    let text = lines.concat();
    assert!(text.len() > 1 << 20);
    let mut other = lines.clone();
    for at in [0, 7, 12_000, 29_999] {
        other[at] = "another\n".to_owned();
    }
    other.insert(500, "one more\n".to_owned());
    check_one(file(&text), file(other.concat()));
    check_one(None, file(&text));
    let rest: String = lines.iter().step_by(2).cloned().collect();
    check_one(file(&text), file(rest));
    // Too much to be compared.
    check_one(file("a\n"), file("a\n".repeat(3 << 20)));
    check_one(file("a\n".repeat(100_002)), file("a\n"));
}

#[test]
fn rights_and_links_are_applied() {
    check_one(file("a\n"), program("a\n"));
    check_one(program("a\n"), file("b\n"));
    check_one(None, link("somewhere"));
    check_one(link("somewhere"), None);
    check_one(link("somewhere"), link("else where\nand on"));
    check_one(link("x"), file("x"));
    check_one(file("x"), link("x"));
    check_one(program("#!/bin/sh\n"), link(b"/bin/\xff"));
}

#[test]
fn unusual_names_are_applied() {
    let names: [&[u8]; 22] = [
        b"a b",
        b" a",
        b"a ",
        b"c d/c d",
        b"x b/x",
        b"a/b b/a/b",
        b"\"",
        b"a\"b\"",
        b"a\\b",
        b"tab\there",
        b"new\nline",
        b"\r",
        b"\x01\x7f",
        "schön/漢字🎈".as_bytes(),
        b"\xff\xfe",
        b"d\xe9j\xe0 vu",
        b"-n",
        b"#x",
        b"'",
        b"dev/null",
        b"$(x)`y`*?[z]",
        b"a\tb c\n",
    ];
    let all = |thing: Option<Thing>| -> Tree {
        names
            .iter()
            .map(|name| (name.to_vec(), thing.clone().unwrap()))
            .collect()
    };
    check(&Tree::new(), &all(file("a\n")), &[]);
    check(&all(file("a\n")), &all(file("b\n")), &[]);
    check(&all(file("a\n")), &all(program("a\n")), &[]);
    check(&all(file("a\n")), &Tree::new(), &[]);
    check(&Tree::new(), &all(file("")), &[]);
    check(&all(file("\0")), &all(file("\0\0")), &[]);
    check(&all(link("x")), &all(link("y")), &[]);
    for name in names {
        let (before, after) = (tree(&[(b"old", file("a\n"))]), tree(&[(name, file("a\n"))]));
        check(&before, &after, &[(b"old", name)]);
        check(&after, &before, &[(name, b"old")]);
    }
}

#[test]
fn renames_are_applied() {
    let (one, two) = (file("one\n"), file("two\n"));
    check(
        &tree(&[(b"a", one.clone())]),
        &tree(&[(b"d/b", program("one\n"))]),
        &[(b"a", b"d/b")],
    );
    // Round in a circle.
    check(
        &tree(&[(b"a", one.clone()), (b"b", two.clone())]),
        &tree(&[(b"a", two.clone()), (b"b", one.clone())]),
        &[(b"a", b"b"), (b"b", b"a")],
    );
    // Something new at the old name; that git cannot take back.
    check_forward(
        &tree(&[(b"a", one.clone())]),
        &tree(&[(b"a", two.clone()), (b"b", one.clone())]),
        &[(b"a", b"b")],
    );
    check(
        &tree(&[(b"a", link("x")), (b"b", file("\0"))]),
        &tree(&[(b"c", link("x")), (b"d", file("\0"))]),
        &[(b"a", b"c"), (b"b", b"d")],
    );
}

#[test]
fn a_directory_makes_way_for_a_file_and_back() {
    let dir = tree(&[(b"d/x", file("x\n")), (b"d/e/y", link("x"))]);
    let flat = tree(&[(b"d", file("d\n"))]);
    let linked = tree(&[(b"d", link("e")), (b"e/x", file("x\n"))]);
    check(&dir, &flat, &[]);
    check(&flat, &dir, &[]);
    check(&dir, &linked, &[]);
    check(&linked, &dir, &[]);
}

#[test]
fn any_tree_becomes_any_other() {
    let mut dice = Dice(0x5eed_0f7e_5715);
    for round in 0..200 {
        let before = random_tree(&mut dice);
        let after = match round % 2 {
            0 => random_tree(&mut dice),
            _ => altered(&mut dice, &before),
        };
        check(&before, &after, &[]);
    }
}

fn random_tree(dice: &mut Dice) -> Tree {
    let names: [&[u8]; 8] = [
        b"a", b"b c", b"d/e", b"d/f", b"g/h/i", b"\xff", b"j\n", b"k/l",
    ];
    let some: Vec<_> = names
        .iter()
        .filter(|_| dice.roll(3) > 0 || dice.roll(2) == 0)
        .collect();
    some.into_iter()
        .map(|name| (name.to_vec(), random_thing(dice)))
        .collect()
}

fn random_thing(dice: &mut Dice) -> Thing {
    match dice.roll(8) {
        0 => Thing::Link(b"x".repeat(1 + dice.roll(9))),
        1 => Thing::Program(random_text(dice)),
        2 => Thing::File((0..dice.roll(300)).map(|_| dice.roll(256) as u8).collect()),
        3 => Thing::File(vec![]),
        _ => Thing::File(random_text(dice)),
    }
}

/// Few different lines, so that much of it is found again elsewhere.
fn random_text(dice: &mut Dice) -> Vec<u8> {
    let lines = ["a\n", "  b\n", "\n", "c\r\n", "}\n", "\td\n", "\u{fc}\n"];
    let mut text: String = (0..dice.roll(40))
        .map(|_| lines[dice.roll(lines.len())])
        .collect();
    if dice.roll(3) == 0 {
        text.push_str("end");
    }
    text.into_bytes()
}

fn altered(dice: &mut Dice, tree: &Tree) -> Tree {
    let mut altered = tree.clone();
    for thing in altered.values_mut() {
        if let Thing::File(content) | Thing::Program(content) = thing {
            let mut lines: Vec<Vec<u8>> = content
                .split_inclusive(|&byte| byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect();
            for _ in 0..dice.roll(4) {
                let at = dice.roll(lines.len() + 1);
                match dice.roll(2) {
                    0 => lines.insert(at, b"new\n".to_vec()),
                    _ => lines.truncate(at.max(lines.len().saturating_sub(2))),
                }
            }
            *content = lines.concat();
        }
    }
    altered
}

#[test]
fn what_has_no_place_in_a_patch_is_said() {
    let trees = one(file("a\n"), file("b\n"));
    for dir in ["empty\n", "made", ".git/objects"] {
        fs::create_dir_all(trees.upper().join(dir)).unwrap();
    }
    fs::create_dir(trees.live().join("gone")).unwrap();
    fs::write(trees.upper().join("made/file"), "").unwrap();
    fs::set_permissions(trees.upper().join("f"), Permissions::from_mode(0o600)).unwrap();
    fs::write(trees.upper().join("s"), "").unwrap();
    fs::set_permissions(trees.upper().join("s"), Permissions::from_mode(0o4755)).unwrap();
    let mut changes = trees.changes(&[]);
    let mut hook = changes.entries[0].clone();
    hook.path = trees::raw(b"sub/.Git/hooks/post-commit");
    changes.entries.push(hook);
    let patch = String::from_utf8(patch(&changes)).unwrap();
    let notes: Vec<&str> = patch.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        notes,
        [
            r#"# weighlock: created directory "empty\n/""#,
            "# weighlock: changed mode from 0644 to 0600 f",
            "# weighlock: deleted directory gone/",
            "# weighlock: created with mode 4755 s",
            "# weighlock: left out 1 changes of git's own, which git would refuse: sub/.Git",
        ]
    );
    assert!(!patch.contains("hooks"));
    assert!(patch.starts_with('#'));
}

#[test]
fn what_moves_out_of_gits_own_directory_is_new_and_into_it_gone() {
    let check = |from: &[u8], to: &[u8], mode: &str| {
        let before = tree(&[(from, file("a\n"))]);
        let after = tree(&[(to, file("a\n"))]);
        let mut trees = one(file("a\n"), file("a\n")).changes(&[]);
        let live = Trees::new(&before, &after);
        trees.roots = vec![live.root()];
        let change = &mut trees.entries[0];
        (change.kind, change.path) = (Kind::Renamed, trees::raw(to));
        change.from = Some(trees::raw(from));
        for (node, dir) in [
            (
                &mut change.before,
                live.live().join(trees::raw(from).path()),
            ),
            (&mut change.after, live.upper().join(trees::raw(to).path())),
        ] {
            *node = Some(trees::node(&dir, &fs::symlink_metadata(&dir).unwrap()));
        }
        let patch = String::from_utf8(patch(&trees)).unwrap();
        assert!(patch.contains("# weighlock: left out 1 changes"), "{patch}");
        assert!(
            patch.contains(&format!("diff --git a/f b/f\n{mode}")),
            "{patch}"
        );
    };
    check(b".git/x", b"f", "new file mode");
    check(b"f", b".git/x", "deleted file mode");
}

#[test]
fn other_roots_have_sections_of_their_own() {
    let (first, second) = (one(None, file("1\n")), one(None, file("2\n")));
    let (mut changes, other) = (first.changes(&[]), second.changes(&[]));
    changes.roots.extend(other.roots);
    changes.entries.extend(other.entries);
    changes.entries[1].root = 1;
    let patch = String::from_utf8(patch(&changes)).unwrap();
    let (one, two) = patch.split_once("# weighlock: below ").unwrap();
    assert!(one.ends_with("+1\n"), "{one}");
    assert!(two.starts_with(second.live().to_str().unwrap()));
    assert!(two.ends_with("+2\n"), "{two}");
}

#[test]
fn a_patch_looks_as_git_writes_it() {
    let text: String = (1..=20).map(|number| format!("{number}\n")).collect();
    let trees = one(file(&text), program(text.replace("10\n", "ten\n")));
    assert_eq!(
        String::from_utf8(patch(&trees.changes(&[]))).unwrap(),
        "diff --git a/f b/f\n\
         old mode 100644\n\
         new mode 100755\n\
         index 0ff3bbb9c8bba2291654cd64067fa417ff54c508..\
         6c69c71ba46ca288c1a04df59bbbdc8f0d66908f\n\
         --- a/f\n\
         +++ b/f\n\
         @@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"
    );
}

#[test]
fn nothing_is_written_of_what_changed_meanwhile() {
    let trees = one(file("a\n"), file("b\n"));
    let changes = trees.changes(&[]);
    fs::write(trees.live().join("f"), "another\n").unwrap();
    let failed = changes.patch(&mut vec![]);
    assert!(matches!(failed, Err(Error::Stale { .. })), "{failed:?}");
}

#[test]
fn times_alone_are_no_patch() {
    let trees = one(file("a\n"), file("a\n"));
    let mut changes = trees.changes(&[]);
    changes.entries[0].kind = Kind::Times;
    assert_eq!(patch(&changes), b"");
}
