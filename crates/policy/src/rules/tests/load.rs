//! What is said about wrong files.

use super::{Dice, understand};
use crate::{Layer, LayerKind, Subject, Who};

/// Loads a server's file and returns the mistakes with their hints.
fn mistakes(kind: LayerKind, text: &str) -> Vec<String> {
    match Layer::load(kind, "rules.toml", text, &understand) {
        Ok(_) => vec![],
        Err(errors) => errors
            .iter()
            .map(|error| match error.hint.as_str() {
                "" => error.to_string(),
                hint => format!("{error} | {hint}"),
            })
            .collect(),
    }
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let found = mistakes(LayerKind::Server, text);
    assert_eq!(found.len(), expected.len(), "{text}\n{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            found
                .strip_prefix("rules.toml:")
                .is_some_and(|found| found.starts_with(expected)),
            "{text}\nfound    {found}\nexpected {expected}"
        );
    }
}

#[test]
fn unknown_keys_and_wrong_types_are_named() {
    check(
        "[[rule]]\nask = 'ls'\nbecuase = 'x'",
        &["3:1: unknown key `becuase` | did you mean `because`?"],
    );
    check(
        "[[rule]]\nask = 'ls'\nfrobnicate = 'x'",
        &["3:1: unknown key `frobnicate` | known are name, auto"],
    );
    check(
        "rules = 1",
        &["1:1: unknown key `rules` | did you mean `rule`?"],
    );
    check(
        "[[rule]]\nask = 3",
        &["2:7: invalid type: integer `3`, expected a pattern, a list of patterns or a table"],
    );
    check(
        "[[rule]]\nask = ['ls', 3]",
        &["2:14: invalid type: integer `3`"],
    );
    check(
        "[[rule]]\nask = { program = 'ls', foo = 1 }",
        &["2:25: unknown key `foo`"],
    );
    check(
        "[[rule]]\nask = { effects = ['netwrok'] }",
        &["2:20: `netwrok` is not a word for this | one of read, write"],
    );
    check(
        "[rule]\nask = 'ls'",
        &["1:1: `rule` must be a list of tables | write [[rule]] with two brackets"],
    );
    check("rule = 3", &["1:8: `rule` must be a list of tables"]);
    check("rule = [3]", &["1:9: `rule` must be a list of tables"]);
    check(
        "otherwise = 'auto'",
        &["1:13: `auto` is not a word for this | one of ask, reject"],
    );
    check("max_deletions = -1", &["1:17: "]);
    check(
        "default = 'auto'",
        &["1:11: `default` can only be set by a preset"],
    );
}

#[test]
fn rules_must_make_sense() {
    check("[[rule]]\nname = 'x'", &["1:1: the rule has no verdict"]);
    check(
        "[[rule]]\nask = 'ls'\nreject = 'ls'",
        &["3:10: the rule has more than one verdict"],
    );
    check("[[rule]]\nask = ''", &["2:7: the pattern is empty"]);
    check(
        "[[rule]]\nask = []",
        &["2:7: the list of patterns is empty"],
    );
    check(
        "[[rule]]\nask = 'a | b'",
        &["2:7: `a | b` has a `|`, but a pattern is about one command | `a|b` without spaces"],
    );
    check(
        "[[rule]]\nask = 'a|'",
        &["2:7: `a|` has an empty alternative"],
    );
    check("[[rule]]\nask = 'a $x'", &["2:7: `a $x` has a `$` in it"]);
    check(
        "[[rule]]\nask = \"a 'b\"",
        &["2:7: `a 'b` has a quote that is not closed"],
    );
    check("[[rule]]\nask = {}", &["2:7: the table is empty"]);
    check(
        "[[rule]]\nask = { paths = ['a[b'] }",
        &["2:18: `a[b` has a `[` that is not closed"],
    );
    check(
        "[[rule]]\nask = { regex = 'a(' }",
        &["2:17: `a(` is not a regular expression: unclosed group"],
    );
    check(
        "[[rule]]\nask = { regex = '(a{1000}){1000}' }",
        &["2:17: `(a{1000}){1000}` is not a regular expression: Compiled regex exceeds size limit"],
    );
    check(
        "[[rule]]\nask = { regex = 'a', text = 'b' }",
        &["2:29: `text`, `contains`, `regex` and `first_word` are about the whole"],
    );
    check(
        "[[rule]]\nask = { program = 'a', text = 'b' }",
        &["2:31: `text`, `contains`"],
    );
    check(
        "[[rule]]\nask = { text = 'b', ignore_case = true }",
        &["2:35: `ignore_case` is only for `regex`"],
    );
    check(
        "[[rule]]\nask = { text = ' ' }",
        &["2:16: the text is empty"],
    );
    check(
        "[[rule]]\nask = { program = [] }",
        &["2:19: the list is empty"],
    );
    check(
        "[[rule]]\nask = { options = ['force'] }",
        &["2:20: `force` is not an option"],
    );
    check(
        "[[rule]]\nauto = '*'",
        &["2:8: `*` would allow every program"],
    );
    check(
        "[[rule]]\nauto = { text = 'ls' }",
        &["2:17: a rule about the text of a command cannot allow it"],
    );
    check(
        "[[rule]]\nauto = { effects = ['write'] }",
        &["2:8: a rule that allows", "2:20: `effects` says"],
    );
    check(
        "[[rule]]\nauto = { paths = ['x'] }",
        &["2:8: a rule that allows something must name a program"],
    );
    check(
        "[[rule]]\nname = 'a'\nask = 'x'\n[[rule]]\nname = 'a'\nask = 'y'",
        &["5:8: there is another rule `a` in line 2"],
    );
    check(
        "[[rule]]\nname = ''\nask = 'x'",
        &["2:8: the name is empty"],
    );
    check("[[change]]\nask = '../x'", &["2:7: `../x` contains `..`"]);
    check(
        "[[change]]\nask = 'x'\nkinds = ['gone']",
        &["3:10: `gone` is not a word for this | one of created"],
    );
    check(
        "[[change]]\nask = 'x/*'\nmatches = ['x/y', 'y']\nmisses = ['x/z']",
        &[
            "3:19: the rule does not match its example `y`",
            "4:11: the rule matches `x/z`, which",
        ],
    );
}

#[test]
fn examples_are_checked() {
    check(
        "[[rule]]\nask = 'git push'\nmatches = ['git push x', 'git pull']\nmisses = ['git status', 'git push']",
        &[
            "3:26: the rule does not match its example `git pull`",
            "4:25: the rule matches `git push`, which it should miss",
        ],
    );
    check(
        "[[rule]]\nauto = 'git diff'\nmatches = 'git diff --output=x'",
        &[
            "3:11: the rule does not match its example `git diff --output=x` | it does more than the pattern by itself (read, write); end",
        ],
    );
    check(
        "[[rule]]\nauto = 'git status'\nmatches = 'git status > x'",
        &["3:11: the rule does not match"],
    );
    check(
        "[[rule]]\nreject = { regex = 'x+' }\nmatches = ['axb', 'b']",
        &["3:19: the rule does not match its example `b`"],
    );
}

#[test]
fn lower_layers_cannot_allow() {
    for kind in [LayerKind::Sandbox, LayerKind::Agent] {
        let found = mistakes(kind, "[[rule]]\nauto = 'git push'\n[[change]]\nauto = '**'");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with(&format!(
            "rules.toml:2:8: a rule for one {} cannot allow anything",
            kind.name()
        )));
        assert!(found[1].starts_with("rules.toml:4:8: "));
        assert_eq!(
            mistakes(kind, "otherwise = 'ask'\n[[rule]]\nauto = 'git push'"),
            [""; 0]
        );
    }
}

#[test]
fn all_mistakes_are_reported_in_order() {
    check(
        "[[rule]]\nask = { program = 1, effects = ['x', 'y'], oops = 2 }\nname = 3\n\n[[rule]]\nask = ''\n\n[[rule]]\n\n[[change]]\nask = 1\nfoo = 2\n\n[extra]\n",
        &[
            "2:19: invalid type",
            "2:33: `x` is not",
            "2:38: `y` is not",
            "2:44: unknown key `oops`",
            "3:8: invalid type",
            "6:7: the pattern is empty",
            "8:1: the rule has no verdict",
            "11:7: invalid type",
            "12:1: unknown key `foo`",
            "14:2: unknown key `extra`",
        ],
    );
    check("a = \n[[rule]\nb = ]", &["1:5: ", "2:8: ", "3:5: "]);
}

#[test]
fn one_mistake_in_a_thousand_lines_is_found() {
    let good = "[[rule]]\nask = 'git push'\nbecause = 'x'\nmatches = ['git push']\n";
    for at in [0, 1, 124, 249] {
        let mut rules = vec![good.to_owned(); 250];
        rules[at] =
            "[[rule]]\nask = 'git push'\nbecause = 'ü'\nmatches = ['ü', 'git push']\n".into();
        let line = at * 4 + 4;
        check(
            &rules.concat(),
            &[&format!(
                "{line}:12: the rule does not match its example `ü`"
            )],
        );
    }
}

#[test]
fn columns_count_characters() {
    check(
        "[[rule]]\nask = { program = 'üüü', foo = 1 }",
        &["2:26: unknown key `foo`"],
    );
}

#[test]
fn nothing_in_a_file_makes_loading_panic() {
    let seeds = [
        include_str!("../../../presets/strict.toml"),
        include_str!("../../../presets/always.toml"),
        include_str!("../../../presets/bash.toml"),
        include_str!("../../../presets/multi-user.toml"),
        "otherwise = 'ask'\n[[rule]]\nauto = ['git status|log *', 'ls -l=3 $']\nwho = 'users'\nmatches = 'ls'\n[[change]]\nreject = '{a,b}/[a-z]?/**'\nkinds = ['mode']",
    ];
    let spice = [
        "'",
        "\"",
        "[",
        "]",
        "[[",
        "{",
        "}",
        "=",
        "*",
        "**",
        "|",
        "$",
        "\\",
        "\n",
        "(",
        ")",
        "ü",
        "\u{0}",
        "\u{feff}",
        ",",
        "{a,b}",
        "rule",
        "auto",
        "1e9",
        "-",
        "--",
        "~",
        "/",
        "..",
        "[[rule]]\n",
        "'''",
        "#",
        "(?x",
        "{99999}",
        "nan",
        "1979-05-27",
        "inf",
    ];
    let mut dice = Dice(0x5eed);
    for _ in 0..3_000 {
        let mut chars: Vec<char> = seeds[dice.roll(seeds.len())].chars().collect();
        let start = dice.roll(chars.len());
        chars.drain(..start);
        chars.truncate(1 + dice.roll(600));
        for _ in 0..dice.roll(8) {
            let at = dice.roll(chars.len() + 1);
            match dice.roll(3) {
                0 => drop(chars.drain(at..(at + dice.roll(6)).min(chars.len()))),
                _ => drop(chars.splice(at..at, spice[dice.roll(spice.len())].chars())),
            }
        }
        let text: String = chars.iter().collect();
        for kind in [LayerKind::Server, LayerKind::Agent] {
            if let Err(errors) = Layer::load(kind, "f", &text, &understand) {
                assert!(!errors.is_empty(), "{text}");
                assert!(errors.is_sorted(), "{text}");
                let lines = text.matches('\n').count() + 1;
                assert!(
                    errors.iter().all(|error| (1..=lines).contains(&error.line)),
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn the_examples_in_the_guide_load() {
    let guide = include_str!("../../../../../docs/rules.md");
    let examples: Vec<&str> = guide
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(examples.len() >= 5);
    for example in examples {
        // A list of what is allowed is for one agent; the rest for everybody.
        let kind = match example.contains("otherwise") {
            true => LayerKind::Agent,
            false => LayerKind::Server,
        };
        assert_eq!(mistakes(kind, example), [""; 0], "{example}");
    }
}

#[test]
fn large_and_deep_files_are_refused() {
    check(&"#".repeat(2 << 20), &["1:1: the file is too large"]);
    let deep = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(!mistakes(LayerKind::Server, &deep).is_empty());
    let keys = format!("{}a = 1", "a.".repeat(50_000));
    assert!(!mistakes(LayerKind::Server, &keys).is_empty());
}

#[test]
fn a_rule_can_be_for_some_agents_in_some_sandboxes_until_some_time() {
    let text = "[[rule]]\nname = \"mine\"\nreject = \"ls\"\nagents = [\"coder\"]\n\
                sandboxes = [\"webshop\"]\nuntil = \"2026-11-20\"\nmatches = [\"ls\"]\n";
    let mut rules = super::strict();
    rules.add(super::layer(LayerKind::Server, text));
    let last = 1_795_219_199;
    for (agent, sandbox, now, expected) in [
        ("coder", "webshop", last, "reject mine"),
        ("coder", "webshop", last + 1, "auto"),
        ("writer", "webshop", last, "auto"),
        ("coder", "notes", last, "auto"),
    ] {
        let subject = Subject {
            text: "ls",
            who: Who {
                agent: Some(agent),
                sandbox_name: Some(sandbox),
                ..Who::default()
            },
            now,
            ..Subject::default()
        };
        let judged = rules.decide(understand("ls"), &subject);
        assert_eq!(super::said(&judged), expected, "{agent} {sandbox} {now}");
    }
    let wrong = "[[rule]]\nask = \"ls\"\nagents = []\nuntil = \"soon\"\n";
    let errors = Layer::load(LayerKind::Server, "rules.toml", wrong, &understand);
    assert_eq!(errors.unwrap_err().len(), 2);
}
