//! What is shown of a change is what changes.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod trees;

use std::fs;
use std::os::unix::fs::symlink;

use trees::{Dice, Thing, Trees, file, link, one, program};
use weighlock_effects::{
    Changes, Error, FileDiff, Hunk, Kind, Line, More, Page, Shape, Side, Source,
};

const WHOLE: Page = Page {
    offset: 0,
    limit: u64::MAX,
    reveal: false,
};

fn diff(trees: &Trees) -> FileDiff {
    trees.changes(&[]).diff(0, WHOLE).unwrap()
}

fn texts(before: &str, after: &str) -> FileDiff {
    diff(&one(file(before), file(after)))
}

fn numbers(range: std::ops::RangeInclusive<u32>) -> String {
    range.map(|number| format!("{number}\n")).collect()
}

/// A diff in one line for each of its own.
fn written(diff: &FileDiff) -> Vec<String> {
    let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
    let line = |line: &Line| {
        let sign = match line.side {
            Side::Context => ' ',
            Side::Added => '+',
            Side::Removed => '-',
        };
        let end = if line.no_newline { "$" } else { "" };
        let (old, new) = (number(line.old), number(line.new));
        format!("{old} {new} {sign}{}{end}", line.text)
    };
    let head = |hunk: &Hunk| {
        let Hunk {
            old_start,
            old_lines,
            new_start,
            new_lines,
            ..
        } = hunk;
        format!("@ {old_start},{old_lines} {new_start},{new_lines}")
    };
    let all = |hunk| [head(hunk)].into_iter().chain(hunk.lines.iter().map(line));
    diff.hunks.iter().flat_map(all).collect()
}

#[test]
fn lines_have_the_numbers_of_both_sides() {
    let before = numbers(1..=20);
    let after = before.replace("3\n4\n", "3\nnew\n4\n").replace("18\n", "");
    let diff = texts(&before, &after);
    assert_eq!((diff.added, diff.removed), (1, 1));
    assert_eq!(
        written(&diff),
        [
            "@ 1,6 1,7",
            "1 1  1",
            "2 2  2",
            "3 3  3",
            "- 4 +new",
            "4 5  4",
            "5 6  5",
            "6 7  6",
            "@ 15,6 16,5",
            "15 16  15",
            "16 17  16",
            "17 18  17",
            "18 - -18",
            "19 19  19",
            "20 20  20",
        ]
    );
}

#[test]
fn near_changes_are_one_hunk() {
    let before = numbers(1..=20);
    let near = before.replace("5\n6\n", "6\n").replace("\n12\n", "\n");
    assert_eq!(texts(&before, &near).hunks.len(), 1);
    let far = before.replace("5\n6\n", "6\n").replace("\n13\n", "\n");
    assert_eq!(texts(&before, &far).hunks.len(), 2);
}

#[test]
fn missing_newlines_are_shown() {
    assert_eq!(
        written(&texts("a\nb", "a\nb\n")),
        ["@ 1,2 1,2", "1 1  a", "2 - -b$", "- 2 +b"]
    );
    assert_eq!(
        written(&texts("a\r\n", "a\n")),
        ["@ 1,1 1,1", "1 - -a\r", "- 1 +a"]
    );
}

#[test]
fn new_and_deleted_files_are_shown_whole() {
    let new = diff(&one(None, file("a\nb\n")));
    assert_eq!((new.kind, new.added, new.removed), (Kind::Created, 2, 0));
    assert_eq!(written(&new), ["@ 0,0 1,2", "- 1 +a", "- 2 +b"]);
    let gone = diff(&one(file("a\n"), None));
    assert_eq!(written(&gone), ["@ 1,1 0,0", "1 - -a"]);
    let empty = diff(&one(None, file("")));
    assert_eq!((empty.shape, empty.hunks), (Shape::Text, vec![]));
}

/// Makes of the one text the other, by what is shown alone.
fn applied(before: &str, diff: &FileDiff) -> String {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let mut new: Vec<String> = vec![];
    let mut at = 0;
    for hunk in &diff.hunks {
        let start = (hunk.old_start - u64::from(hunk.old_lines > 0)) as usize;
        new.extend(old[at..start].iter().map(|line| (*line).to_owned()));
        at = start;
        let first = new.len();
        for line in &hunk.lines {
            let text = format!("{}{}", line.text, if line.no_newline { "" } else { "\n" });
            if line.side != Side::Added {
                assert_eq!((line.old, old[at]), (Some(at as u64 + 1), &text[..]));
                at += 1;
            }
            if line.side != Side::Removed {
                new.push(text);
                assert_eq!(line.new, Some(new.len() as u64));
            }
        }
        assert_eq!(hunk.old_lines, (at - start) as u64);
        assert_eq!(hunk.new_lines, (new.len() - first) as u64);
        assert_eq!(
            hunk.new_start,
            (first + usize::from(hunk.new_lines > 0)) as u64
        );
    }
    new.extend(old[at..].iter().map(|line| (*line).to_owned()));
    new.concat()
}

fn random_text(dice: &mut Dice) -> String {
    let kinds = 1 + dice.roll(30);
    let mut text: String = (0..dice.roll(60))
        .map(|_| format!("{}{}\n", " ".repeat(dice.roll(3)), dice.roll(kinds)))
        .collect();
    if dice.roll(4) == 0 {
        text.pop();
    }
    text
}

#[test]
fn hunks_make_of_any_text_any_other() {
    let mut dice = Dice(0xd1ff);
    for _ in 0..500 {
        let (before, after) = (random_text(&mut dice), random_text(&mut dice));
        let trees = one(file(&before), file(&after));
        let mut changes = trees.changes(&[]);
        changes.entries[0].kind = Kind::Modified;
        let diff = changes.diff(0, WHOLE).unwrap();
        assert_eq!(applied(&before, &diff), after);
        let shown = |side| {
            let lines = diff.hunks.iter().flat_map(|hunk| &hunk.lines);
            lines.filter(|line| line.side == side).count() as u64
        };
        assert_eq!(
            (diff.added, diff.removed),
            (shown(Side::Added), shown(Side::Removed))
        );
        assert_eq!(changes.counts(0), Some((diff.added, diff.removed)));
    }
}

#[test]
fn all_pages_together_are_the_whole() {
    let before = numbers(1..=200);
    let after = before.replace("7\n", "seven\n");
    let trees = one(file(&before), file(&after));
    let changes = trees.changes(&[]);
    let whole = changes.diff(0, WHOLE).unwrap();
    assert!(whole.hunks.len() > 3);
    for limit in [1, 2, 5, 13, 1_000] {
        let mut joined: Vec<Hunk> = vec![];
        let mut next = Some(More {
            offset: 0,
            lines: 0,
        });
        while let Some(More { offset, .. }) = next {
            let page = changes
                .diff(
                    0,
                    Page {
                        offset,
                        limit,
                        ..WHOLE
                    },
                )
                .unwrap();
            assert_eq!((page.added, page.removed), (whole.added, whole.removed));
            let lines: usize = page.hunks.iter().map(|hunk| hunk.lines.len()).sum();
            assert!(lines as u64 <= limit && lines > 0);
            for hunk in page.hunks {
                match joined.last_mut() {
                    Some(last) if last.old_start == hunk.old_start => last.lines.extend(hunk.lines),
                    _ => joined.push(hunk),
                }
            }
            next = page.more;
        }
        assert_eq!(joined, whole.hunks);
    }
    let past = Page {
        offset: 1 << 40,
        ..WHOLE
    };
    assert_eq!(changes.diff(0, past).unwrap().hunks, []);
}

#[test]
fn what_is_no_text_is_named() {
    let shape = |before: Option<Thing>, after: Option<Thing>| diff(&one(before, after)).shape;
    let binary = |before, after, guess: Option<&str>| Shape::Binary {
        before,
        after,
        guess: guess.map(str::to_owned),
    };
    assert_eq!(
        shape(None, file(b"\x89PNG\r\n\x1a\n\0")),
        binary(None, Some(9), Some("PNG image"))
    );
    assert_eq!(
        shape(file("SQLite format 3\0"), file("text\n")),
        binary(Some(16), Some(5), Some("SQLite database"))
    );
    assert_eq!(
        shape(file([0xfe; 100]), None),
        binary(Some(100), None, None)
    );
    let long = "a\n".repeat(2 << 20) + "b\n";
    let too_large = |before, after| Shape::TooLarge { before, after };
    assert_eq!(
        shape(file("a\n"), file(&long)),
        too_large(Some(2), Some((4 << 20) + 2))
    );
    assert_eq!(
        shape(file("\n".repeat(100_001)), None),
        too_large(Some(100_001), None)
    );
}

#[test]
fn links_and_modes_are_named() {
    let to = |before: Option<&str>, after: Option<&str>| Shape::Link {
        before: before.map(str::to_owned),
        after: after.map(str::to_owned),
    };
    assert_eq!(
        diff(&one(link("a"), link("b"))).shape,
        to(Some("a"), Some("b"))
    );
    assert_eq!(diff(&one(link("a"), None)).shape, to(Some("a"), None));
    // What the link replaces is shown too.
    let replaced = diff(&one(file("a\n"), link("b")));
    assert_eq!(replaced.shape, to(None, Some("b")));
    assert_eq!(written(&replaced), ["@ 1,1 0,0", "1 - -a"]);
    let mode = one(file("a\n"), program("a\n")).changes(&[]);
    assert_eq!(mode.diff(0, WHOLE).unwrap().shape, Shape::Nothing);
    assert_eq!(mode.counts(0), None);
}

#[test]
fn long_lines_are_cut_with_a_mark() {
    let diff = diff(&one(None, file("ü".repeat(2_100))));
    let text = &diff.hunks[0].lines[0].text;
    assert!(text.ends_with("ü … 100 more characters"), "{text}");
    assert_eq!(text.chars().filter(|&c| c == 'ü').count(), 2_000);
}

#[test]
fn secrets_are_hidden_until_asked_for() {
    let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\nkqhkiG9w0BAQ\n-----END PRIVATE KEY-----\n";
    let after = format!("{key}password = \"hunter22\"\nplain\n");
    let trees = one(None, file(&after));
    let changes = trees.changes(&[]);
    let lines = |page| -> Vec<(String, bool)> {
        let diff = changes.diff(0, page).unwrap();
        let lines = diff.hunks.into_iter().flat_map(|hunk| hunk.lines);
        lines.map(|line| (line.text, line.masked)).collect()
    };
    let shown: Vec<(&str, bool)> = vec![
        ("-----BEGIN PRIVATE KEY-----", false),
        ("•••", true),
        ("•••", true),
        ("-----END PRIVATE KEY-----", false),
        ("password = \"•••\"", true),
        ("plain", false),
    ];
    let owned = |(text, masked): &(&str, bool)| ((*text).to_owned(), *masked);
    assert_eq!(lines(WHOLE), shown.iter().map(owned).collect::<Vec<_>>());
    let revealed = lines(Page {
        reveal: true,
        ..WHOLE
    });
    let all: Vec<(String, bool)> = after.lines().map(|line| (line.to_owned(), false)).collect();
    assert_eq!(revealed, all);
}

#[test]
fn a_key_is_hidden_even_where_only_its_middle_is_shown() {
    let key = |middle: &str| {
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQ\n".repeat(10);
        format!(
            "-----BEGIN RSA PRIVATE KEY-----\n{line}{middle}\n{line}-----END RSA PRIVATE KEY-----\n"
        )
    };
    let diff = texts(&key("abcd"), &key("efgh"));
    let lines: Vec<&Line> = diff.hunks.iter().flat_map(|hunk| &hunk.lines).collect();
    assert_eq!(lines.len(), 8);
    assert!(lines.iter().all(|line| line.masked && line.text == "•••"));
}

#[test]
fn certificates_are_no_secrets() {
    let body = "MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n";
    let text = format!("-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n");
    let diff = diff(&one(None, file(text)));
    assert!(diff.hunks[0].lines.iter().all(|line| !line.masked));
}

fn is_stale(changes: &Changes) -> bool {
    assert_eq!(changes.counts(0), None);
    matches!(changes.diff(0, WHOLE), Err(Error::Stale { .. }))
}

#[test]
fn what_changed_meanwhile_is_not_shown() {
    for side in ["live", "upper"] {
        let make = || {
            let trees = one(file("a\n"), file("b\n"));
            let changes = trees.changes(&[]);
            let at = trees.dir().join(side).join("f");
            (trees, changes, at)
        };
        let (_trees, changes, at) = make();
        fs::write(&at, "other\n").unwrap();
        assert!(is_stale(&changes));

        let (_trees, changes, at) = make();
        fs::remove_file(&at).unwrap();
        assert!(is_stale(&changes));

        let (trees, changes, at) = make();
        let elsewhere = trees.dir().join("elsewhere");
        fs::rename(&at, &elsewhere).unwrap();
        symlink(&elsewhere, &at).unwrap();
        assert!(is_stale(&changes));
    }
}

#[test]
fn no_link_on_the_way_is_followed() {
    let tree = |text: &str| [(b"d/f".to_vec(), Thing::File(text.into()))].into();
    let trees = Trees::new(&tree("a\n"), &tree("b\n"));
    let mut changes = trees.changes(&[]);
    changes
        .entries
        .retain(|change| change.path.path().ends_with("f"));
    for side in [trees.live(), trees.upper()] {
        let elsewhere = trees.dir().join("elsewhere");
        fs::rename(side.join("d"), &elsewhere).unwrap();
        symlink(&elsewhere, side.join("d")).unwrap();
        assert!(is_stale(&changes));
        fs::remove_file(side.join("d")).unwrap();
        fs::rename(&elsewhere, side.join("d")).unwrap();
        assert!(changes.diff(0, WHOLE).is_ok());
    }
    changes.entries[0].path = trees::raw(b"../live/d/f");
    assert!(changes.diff(0, WHOLE).is_err());
}

#[test]
fn another_directory_in_place_of_the_root_is_not_read() {
    let trees = one(file("a\n"), file("b\n"));
    let mut changes = trees.changes(&[]);
    changes.roots[0].is.inode += 1;
    assert!(is_stale(&changes));
}

#[test]
fn a_pipe_in_place_of_a_file_is_not_waited_for() {
    let trees = one(file("a\n"), file("b\n"));
    let changes = trees.changes(&[]);
    fs::remove_file(trees.live().join("f")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(trees.live().join("f"))
        .status();
    assert!(made.unwrap().success());
    assert!(is_stale(&changes));
}

#[test]
fn earlier_layers_and_images_are_read_too() {
    let trees = one(file("live\n"), file("new\n"));
    let below = one(file("layer\n"), None);
    let mut changes = trees.changes(&[]);
    changes.roots[0].below = vec![below.live()];
    changes.entries[0].built_on = Some(0);
    changes.entries[0].before = below.changes(&[]).entries[0].before.clone();
    let lines = ["@ 1,1 1,1", "1 - -layer", "- 1 +new"];
    assert_eq!(written(&changes.diff(0, WHOLE).unwrap()), lines);

    fs::rename(trees.upper().join("f"), trees.upper().join("17")).unwrap();
    let index = r#"{"kept":{},"dirs":[],"bytes":4,"files":1}"#;
    fs::write(trees.upper().join("index"), index).unwrap();
    changes.roots[0].source = Source::Images(trees.upper());
    changes.entries[0].image = Some(17);
    assert_eq!(written(&changes.diff(0, WHOLE).unwrap()), lines);
}

#[test]
fn a_renamed_file_is_shown_with_both_names() {
    let tree = |name: &[u8]| [(name.to_vec(), Thing::File(b"a\n".to_vec()))].into();
    let trees = Trees::new(&tree(b"old"), &tree(b"new"));
    let diff = trees.changes(&[(b"old", b"new")]).diff(0, WHOLE).unwrap();
    assert_eq!(
        (diff.kind, diff.from, diff.path, diff.shape),
        (
            Kind::Renamed,
            Some(trees::raw(b"old")),
            trees::raw(b"new"),
            Shape::Nothing
        )
    );
}

#[test]
fn there_is_no_change_beyond_the_last() {
    let changes = one(None, file("a")).changes(&[]);
    assert!(matches!(
        changes.diff(1, WHOLE),
        Err(Error::NoSuch { index: 1 })
    ));
    assert_eq!(changes.counts(1), None);
}

/// Texts on which the usual algorithms take minutes or all of the stack.
#[test]
fn no_text_is_too_hard_to_compare() {
    let many = 50_000;
    let mut dice = Dice(7);
    let mut random = |kinds| -> String {
        (0..many)
            .map(|_| format!("{}\n", dice.roll(kinds)))
            .collect()
    };
    let other = |odd: &str| -> String {
        let line = |number| {
            if number % 2 == 0 {
                format!("{number}\n")
            } else {
                format!("{odd}{number}\n")
            }
        };
        (0..many).map(line).collect()
    };
    // In which each part that is found is right of all that are not yet.
    let deep = |junk: &str| -> String {
        let twice: String = (0..5_000)
            .map(|number| format!("d{number}\ne{number}\n"))
            .collect();
        let part =
            |number| format!("u{number}\n{junk}a{number}\nd{number}\ne{number}\n{junk}b{number}\n");
        let parts: String = (0..5_000).map(part).collect();
        if junk == "x" { twice + &parts } else { parts }
    };
    let cases = [
        (random(2), random(2)),
        (random(60), random(60)),
        (random(1_000), random(1_000)),
        (random(50_000), random(50_000)),
        ("x\ny\n".repeat(many / 2), "y\nx\n".repeat(many / 2)),
        (other("a"), other("b")),
        (deep("x"), deep("y")),
    ];
    for (before, after) in cases {
        let diff = texts(&before, &after);
        assert!(applied(&before, &diff) == after);
    }
}
