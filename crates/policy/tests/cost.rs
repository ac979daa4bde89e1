//! Texts that are made to be costly: how much is kept of them is bounded, they
//! are never `auto`, and what is refused stays refused among them.
//!
//! How long they take is measured by `bench policy`, and searched for by the
//! fuzz target `cost`.

mod common;

use common::{judge, verdict};
use weighlock_policy::{Facts, Reader, Verdict, example_place, understand};

/// The longest command that a server takes.
const LONGEST: usize = 128 * 1024 - 1;

/// Parts of any text: each costs time with everybody who looks at them.
const MOST_PARTS: usize = 25_000;

/// Bytes of words, paths and texts in all parts.
const MOST_BYTES: usize = 16 << 20;

const UNITS: &[&str] = &[
    "a;",
    "a ",
    "sudo ",
    "env ",
    "{a,b}{c,d}{e,f}{g,h} ",
    "{a,b}",
    "{a,",
    "$(a)",
    "`a`",
    "$a",
    "a=1 ",
    "a=$a$a;",
    ">b ",
    "[a-z]* ",
    "f(){ f;};f;",
    "for i in $i;do $i;done;",
    "if a;then b;fi;",
    "cat <<a\n$(b)\na\n",
    "xargs ",
    "sh -c 'a';",
    "eval ",
    "git -c a=b ",
    "curl a|sh;",
    "@(a|b)",
    "${a:-$(b)}",
    "x=\"$x a\";$x;",
    "((a=1));",
    "timeout 1 ",
];

fn filled(before: &str, unit: &str, after: &str) -> String {
    let count = (LONGEST - before.len() - after.len()) / unit.len();
    format!("{before}{}{after}", unit.repeat(count))
}

/// Each unit over and over: by itself, as words, as text that others run.
fn texts() -> Vec<String> {
    let mut texts = vec![];
    for unit in UNITS {
        let (double, single) = (unit.replace('\'', "\""), unit.replace('"', "'"));
        texts.push(filled("", unit, "ls"));
        texts.push(filled("mytool ", unit, ""));
        texts.push(filled("f(){ ", unit, ";};f;f;f"));
        texts.push(filled("sh -c '", &double, "'"));
        texts.push(filled("python3 -c '", &double, "'"));
        texts.push(filled("echo \"", &single, "\" | sh"));
        texts.push(filled("a=\"", &single, "\";$a;$a;eval $a"));
    }
    let call = |n: usize| format!("f{n}(){{ f{0};f{0};}};", n + 1);
    texts.push((0..5_000).map(call).collect::<String>() + "f0");
    for level in [24, 60, 99] {
        let inner = "ls;".repeat((LONGEST - 3 * level) / 3 - 2);
        texts.push(format!(
            "{}{inner}ls{}",
            "$(".repeat(level),
            ")".repeat(level)
        ));
        texts.push(format!(
            "{}{inner}ls{}",
            "( ".repeat(level),
            ")".repeat(level)
        ));
    }
    texts
}

fn bytes(facts: &Facts) -> usize {
    let parts = facts.parts.iter();
    parts
        .map(|part| {
            let words: usize = part.argv.iter().flatten().map(String::len).sum();
            let paths = part.paths.iter();
            let paths: usize = paths.map(|path| path.path.len() + path.written.len()).sum();
            words + paths + 24 * part.argv.len() + part.text.as_ref().map_or(0, String::len)
        })
        .sum()
}

#[test]
fn what_is_kept_of_any_text_is_bounded() {
    for text in texts() {
        let facts = understand(&text, Reader::Either, &[], &example_place());
        let (parts, bytes) = (facts.parts.len(), bytes(&facts));
        let what = &text[..text.floor_char_boundary(60)];
        assert!(parts <= MOST_PARTS, "{parts} parts: {what}");
        assert!(bytes <= MOST_BYTES, "{bytes} bytes: {what}");
    }
}

#[test]
fn what_is_too_complex_is_asked_about_and_says_so() {
    for text in [
        filled("mytool ", "sudo ", ""),
        filled("", "env ", "ls"),
        filled("ls ", "{a,b}{c,d}{e,f}{g,h} ", ""),
        filled("", "ls;", "ls"),
        filled("sh -c '", "ls;", "'"),
        // Each component of a path is compared with the names of secrets, and a
        // pattern with all of them.
        filled("ls ", "a/", ""),
        filled("ls ", "[a-z]*/", ""),
        filled("cat ", "?[a]*/x ", ""),
        filled("cat ", "*a*a*a*a*a*a* ", ""),
    ] {
        let judgement = judge(&text);
        let mut reasons = judgement.reasons.iter();
        assert!(judgement.verdict >= Verdict::Ask, "{}", &text[..60]);
        assert!(
            reasons.any(|reason| reason.text.contains("too complex to analyse")),
            "{}: {:?}",
            &text[..60],
            judgement.reasons
        );
    }
}

#[test]
fn a_long_script_is_not_too_complex() {
    for text in [
        "grep -n pattern src/main.rs | head -5\n".repeat(1_500),
        format!("cat {}", "src/main.rs ".repeat(5_000)),
        "ls -l src/*.rs tests/[a-z]*.py\n".repeat(150),
    ] {
        assert_eq!(verdict(&text), Verdict::Auto, "{}", &text[..60]);
    }
}

#[test]
fn nothing_makes_a_refused_command_milder() {
    for unit in UNITS {
        for last in ["sudo id", "env sudo id", "rm -rf /"] {
            let (before, after) = (filled("", unit, ""), format!("{last}\n"));
            let after = format!("{after}{}", &before[..before.len() - after.len()]);
            let verdict = verdict(&after);
            assert_eq!(verdict, Verdict::Reject, "{last} before {unit:?}");
        }
    }
    for unit in [
        "a;",
        "ls;",
        "$(a);",
        "f(){ f;};f;",
        "if a;then b;fi;",
        "true && ",
        "a=1 ",
    ] {
        for last in ["sudo id", "env sudo id", "rm -rf /"] {
            let text = filled("", unit, &format!("\n{last}"));
            let verdict = verdict(&text);
            assert_eq!(verdict, Verdict::Reject, "{last} after {unit:?}");
        }
    }
}
