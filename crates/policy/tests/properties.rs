//! What holds for every command, whatever it is. The commands are those of
//! the corpora; what is done with them is drawn with fixed seeds.

mod common;

use std::collections::HashSet;

use common::{Line, report, verdict};
use weighlock_policy::Verdict;
use weighlock_shell::{CommandKind, Dialect, List, Span, Word, parse};

/// As many as take a few seconds without optimisation.
const DRAWS: usize = 2_000;

/// What one command can be put into. `A` stands for it.
const AROUND: &[&str] = &[
    "( A )",
    "{ A; }",
    "! A",
    "time A",
    "A &",
    "echo $( A )",
    "echo \"$( A )\"",
    "echo ${x:-$( A )}",
    "cat <( A )",
    "x=$( A )",
    "cat <<E\n$( A )\nE",
    "[[ -n $( A ) ]]",
    "f() { A; }; f",
    "function f { A; }",
    "if A; then ls; fi",
    "if ls; then A; fi",
    "if ls; then :; else A; fi",
    "while A; do ls; done",
    "until ls; do A; done",
    "for i in 1 2; do A; done",
    "for ((i = 0; i < 2; i++)); do A; done",
    "case x in x) A;; esac",
    "case x in y) ls;; *) A;; esac",
    "coproc { A; }",
    "( ( ( A ) ) )",
    "echo $( echo $( A ) )",
    "{ A; } 2>&1 | head",
    "A > /dev/null",
    "true && A",
    "A || true",
    "ls; A",
    "A; ls",
    "ls\nA\nls",
    "ls & A",
];

/// What two commands can be joined with.
const BETWEEN: &[&str] = &[
    "A && B",
    "A; B",
    "A | { B; }",
    "A || B",
    "A & B",
    "A\nB",
    "if A; then B; fi",
    "while A; do B; done",
    "{ A; B; }",
    "( A; B )",
    "echo $( A ) $( B )",
    "{ A; } && ( B )",
];

/// Programs that run the command that follows.
const WRAPPERS: &[&str] = &[
    "env",
    "env -i",
    "command",
    "nohup",
    "timeout 5",
    "timeout -k 1 5s",
    "nice",
    "nice -n 5",
    "ionice -c3",
    "setsid",
    "stdbuf -oL",
    "time",
    "exec",
    "xargs -I{}",
    "env nice timeout 5",
];

/// Programs that run a text.
const SHELLS: &[&str] = &["sh -c", "bash -c", "bash -lc", "eval", "command eval"];

#[test]
fn nothing_around_a_command_makes_it_milder() {
    let lines = plain_lines();
    let mut dice = Dice(1);
    let wrong = repeat(|| {
        let line = dice.pick(&lines);
        let text = dice.pick(AROUND).replace('A', line);
        milder(&text, verdict(line))
    });
    report(&wrong, DRAWS);
}

#[test]
fn a_chain_is_judged_by_its_worst_link() {
    let lines = plain_lines();
    let mut dice = Dice(2);
    let wrong = repeat(|| {
        let (a, b) = (dice.pick(&lines), dice.pick(&lines));
        let frame = dice.pick(BETWEEN);
        let text: String = frame
            .chars()
            .map(|c| match c {
                'A' => (*a).to_owned(),
                'B' => (*b).to_owned(),
                other => other.to_string(),
            })
            .collect();
        // What comes first may well explain what comes later.
        let least = match leaves_nothing_behind(a) {
            true => verdict(a).max(verdict(b)),
            false => verdict(a),
        };
        milder(&text, least)
    });
    report(&wrong, DRAWS);
}

#[test]
fn adding_links_never_makes_a_chain_milder() {
    let lines = plain_lines();
    let lines: Vec<&str> = lines
        .into_iter()
        .filter(|line| leaves_nothing_behind(line))
        .collect();
    let mut dice = Dice(3);
    let mut wrong = vec![];
    for _ in 0..DRAWS / 10 {
        let mut chain = dice.pick(&lines).to_string();
        let mut least = verdict(&chain);
        for _ in 0..6 {
            let joint = dice.pick(&[" && ", "; ", " | ", " || ", " & ", "\n"]);
            chain = match dice.below(2) {
                0 => format!("{chain}{joint}{}", dice.pick(&lines)),
                _ => format!("{}{joint}{chain}", dice.pick(&lines)),
            };
            wrong.extend(milder(&chain, least));
            least = least.max(verdict(&chain));
        }
    }
    report(&wrong, DRAWS);
}

#[test]
fn a_word_means_the_same_however_it_is_quoted() {
    let mut lines = all_lines();
    // bash only takes `declare a=(…)` from a `declare` without quotes.
    lines.retain(|line| !line.contains("=("));
    let mut dice = Dice(4);
    let wrong = repeat(|| {
        let line = dice.pick(&lines);
        let words = literal_words(line);
        let text = rewritten(line, &words, |word| dice.requote(&word.text));
        different(&text, line)
    });
    report(&wrong, DRAWS);
}

#[test]
fn a_command_means_the_same_over_several_lines() {
    let lines = all_lines();
    let mut dice = Dice(5);
    let wrong = repeat(|| {
        let line = dice.pick(&lines);
        let words = literal_words(line);
        let text = rewritten(line, &words, |word| {
            let source = &line[word.span.start..word.span.end];
            let inside = source == word.text && source.is_ascii() && dice.below(2) == 0;
            match inside && !source.contains(['\\', '\n']) {
                true => {
                    let at = dice.below(source.len() + 1);
                    format!("{}\\\n{}", &source[..at], &source[at..])
                }
                false => format!("\\\n{source}"),
            }
        });
        different(&text, line)
    });
    report(&wrong, DRAWS);
}

#[test]
fn no_wrapper_makes_a_command_milder() {
    let lines: Vec<&str> = plain_lines()
        .into_iter()
        .filter(|line| is_one_program(line))
        .collect();
    let mut dice = Dice(6);
    let wrong = repeat(|| {
        let line = dice.pick(&lines);
        let text = format!("{} {line}", dice.pick(WRAPPERS));
        milder(&text, verdict(line))
    });
    report(&wrong, DRAWS);
}

#[test]
fn no_shell_in_between_makes_a_command_milder() {
    let lines = all_lines();
    let mut dice = Dice(7);
    let wrong = repeat(|| {
        let line = dice.pick(&lines);
        let text = format!("{} {}", dice.pick(SHELLS), dice.requote(line));
        milder(&text, verdict(line))
    });
    report(&wrong, DRAWS);
}

#[test]
fn nothing_is_too_long_to_be_rejected() {
    let harmless = "true && ".repeat(10_000);
    assert_eq!(verdict(&format!("{harmless}sudo id")), Verdict::Reject);
    assert_eq!(verdict(&format!("{harmless}rm x")), Verdict::Ask);
    let lines = "ls\n".repeat(10_000);
    assert_eq!(verdict(&format!("{lines}sudo id")), Verdict::Reject);
    assert_eq!(verdict(&format!("sudo id\n{lines}")), Verdict::Reject);
    let words = "x ".repeat(50_000);
    assert_eq!(verdict(&format!("echo {words}; sudo id")), Verdict::Reject);
}

#[test]
fn nothing_is_too_deep_to_be_asked_about() {
    for depth in [10, 100, 1_000, 10_000] {
        for (open, close) in [
            ("( ", " )"),
            ("{ ", "; }"),
            ("echo $(", ")"),
            ("if ls; then ", "; fi"),
        ] {
            let text = format!("{}rm x{}", open.repeat(depth), close.repeat(depth));
            assert_ne!(verdict(&text), Verdict::Auto, "{depth} times {open:?}");
        }
    }
}

/// Runs a check again and again; returns what it found, each once.
fn repeat(mut check: impl FnMut() -> Option<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let found = (0..DRAWS).filter_map(|_| check());
    found.filter(|wrong| seen.insert(wrong.clone())).collect()
}

fn milder(text: &str, least: Verdict) -> Option<String> {
    let got = verdict(text);
    (got < least).then(|| format!("{got:?} and not {least:?}: {text:?}"))
}

fn different(text: &str, line: &str) -> Option<String> {
    let (got, meant) = (verdict(text), verdict(line));
    (got != meant).then(|| format!("{got:?} and not {meant:?}: {text:?}\n    for {line:?}"))
}

/// Every command that is understood as a whole and ends where its text ends.
fn all_lines() -> Vec<&'static str> {
    let lines: Vec<Line> = common::dev().into_iter().chain(common::own()).collect();
    let texts = lines.into_iter().map(|line| &*line.command.leak());
    texts.filter(|text| stands_alone(text)).collect()
}

fn stands_alone(text: &str) -> bool {
    let alone = parse(text, Dialect::Bash);
    let longer = parse(&format!("{text}\n: end"), Dialect::Bash);
    alone.unknowns.is_empty()
        && longer.unknowns.is_empty()
        && longer.body.items.len() == alone.body.items.len() + 1
        && !text.contains('\0')
}

/// Those that can be put inside others as they are.
fn plain_lines() -> Vec<&'static str> {
    let mut lines = all_lines();
    lines.retain(|line| !line.contains(['\n', '#']) && !line.contains("<<"));
    lines.retain(|line| !line.trim_end().ends_with(['&', ';', '\\']));
    lines
}

/// Returns whether a command cannot change how a later one is understood.
fn leaves_nothing_behind(line: &str) -> bool {
    let marks = [
        "cd", "pushd", "popd", "set", "()", "function", "=", "read", "for", "mapfile", "getopts",
        "eval", "select", "((", "PATH", "exec", "coproc", "{",
    ];
    !marks.iter().any(|mark| line.contains(mark))
}

/// Returns whether it is one command that a program is run by, and no builtin.
fn is_one_program(line: &str) -> bool {
    let script = parse(line, Dialect::Bash);
    let [item] = script.body.items.as_slice() else {
        return false;
    };
    let [stage] = item.pipeline.stages.as_slice() else {
        return false;
    };
    let CommandKind::Simple(simple) = &stage.kind else {
        return false;
    };
    let name = simple.words.first().and_then(Word::literal);
    let builtins = [
        "eval",
        "trap",
        "source",
        ".",
        "exec",
        "command",
        "builtin",
        "cd",
        "pushd",
        "popd",
        "set",
        "export",
        "declare",
        "typeset",
        "local",
        "readonly",
        "shopt",
        "alias",
        "read",
        "mapfile",
        "let",
        "unset",
        "type",
        "enable",
        "hash",
        "printf",
        "readarray",
    ];
    simple.assignments.is_empty()
        && stage.redirections.is_empty()
        && !item.pipeline.timed
        && !item.pipeline.negated
        && name.is_some_and(|name| !builtins.contains(&name.as_str()))
}

struct Literal {
    span: Span,
    text: String,
}

/// Returns the words of simple commands that are plain text, in order.
fn literal_words(line: &str) -> Vec<Literal> {
    let script = parse(line, Dialect::Bash);
    let mut words = vec![];
    collect(&script.body, &mut words);
    // Braces make several words of one, which are all at the same place.
    let mut at: Vec<Span> = words.iter().map(|word| word.span).collect();
    at.sort_by_key(|span| span.start);
    let shared = |span: Span| {
        let meets = |other: &&Span| other.start < span.end && span.start < other.end;
        at.iter().filter(meets).count() > 1
    };
    let alone = words.into_iter().filter(|word| !shared(word.span));
    let texts = alone.filter_map(|word| {
        let (span, text) = (word.span, word.literal()?);
        Some(Literal { span, text })
    });
    let mut texts: Vec<Literal> = texts.collect();
    texts.sort_by_key(|word| word.span.start);
    texts
}

fn collect(list: &List, words: &mut Vec<Word>) {
    for stage in list.items.iter().flat_map(|item| &item.pipeline.stages) {
        match &stage.kind {
            CommandKind::Simple(simple) => words.extend(simple.words.iter().cloned()),
            CommandKind::Group(list) | CommandKind::Subshell(list) => collect(list, words),
            _ => {}
        }
    }
}

fn rewritten(line: &str, words: &[Literal], mut write: impl FnMut(&Literal) -> String) -> String {
    let mut text = String::new();
    let mut at = 0;
    for word in words {
        text.push_str(&line[at..word.span.start]);
        text.push_str(&write(word));
        at = word.span.end;
    }
    text + &line[at..]
}

/// Random numbers that are the same every time (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Writes a word in one of the ways that mean the same.
    fn requote(&mut self, word: &str) -> String {
        if word.is_empty() {
            return (*self.pick(&["''", "\"\"", "$''"])).to_owned();
        }
        if self.below(3) > 0 {
            return self.quoted(word);
        }
        let mut cut = self.below(word.len() + 1);
        while !word.is_char_boundary(cut) {
            cut -= 1;
        }
        let (start, end) = word.split_at(cut);
        self.quoted(start) + &self.quoted(end)
    }

    fn quoted(&mut self, text: &str) -> String {
        match self.below(4) {
            0 => format!("'{}'", text.replace('\'', "'\\''")),
            1 => escaped(text, "\"\\$`")
                .map_or_else(|| self.quoted(text), |text| format!("\"{text}\"")),
            2 => backslashed(text).unwrap_or_else(|| self.quoted(text)),
            _ => format!("$'{}'", numbered(text)),
        }
    }
}

fn escaped(text: &str, special: &str) -> Option<String> {
    // `!` is for history, and a backslash before a new line goes away.
    let fine = !text.contains("\\\n");
    fine.then(|| {
        let each = text.chars().map(|c| match special.contains(c) {
            true => format!("\\{c}"),
            false => c.to_string(),
        });
        each.collect()
    })
}

fn backslashed(text: &str) -> Option<String> {
    let fine = !text.is_empty() && !text.contains('\n');
    fine.then(|| text.chars().map(|c| format!("\\{c}")).collect())
}

fn numbered(text: &str) -> String {
    let each = text.chars().map(|c| match c.is_ascii() {
        true => format!("\\x{:02x}", c as u32),
        false => c.to_string(),
    });
    each.collect()
}

/// Whatever words a program gets, each is looked at once: the number of parts
/// does not grow with the number of dangerous names among them.
#[test]
fn words_of_a_program_are_not_tried_again_and_again() {
    let starts = [
        "mytool",
        "watchexec",
        "docker run",
        "timeout --no-such-option",
    ];
    let words = ["sudo ", "-a sudo ", "watchexec ", "-x env ", "sh -c "];
    let mut wrong = vec![];
    for start in starts {
        for word in words {
            let most = |count| {
                let text = format!("{start} {}", word.repeat(count));
                common::judge(&text).facts.parts.len()
            };
            let (some, many) = (most(200), most(400));
            if many > some {
                wrong.push(format!("{start} {word}: {some} parts, then {many}"));
            }
        }
    }
    report(&wrong, starts.len() * words.len());
}
