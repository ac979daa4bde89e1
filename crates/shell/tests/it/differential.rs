//! Bash itself, as the judge.

#![expect(
    clippy::disallowed_types,
    reason = "the real shell is what is compared with"
)]

use std::process::{Command, Stdio};
use std::thread;

use weighlock_shell::{CommandKind, Dialect, Script, Word, parse};

use crate::random::Random;
use crate::seeds::{PARTS, SEEDS, TOKENS};

/// Lines that are bent and judged. Bash takes a millisecond for each.
const CASES: usize = 3000;

/// What is understood is also accepted by bash. The other way round it need
/// not be so: what is unknown is merely asked about.
#[test]
fn understood_means_that_bash_accepts() {
    if !weighlock_testing::have(&["bash"]) {
        return;
    }
    let mut random = Random(26);
    let cases: Vec<String> = (0..CASES).map(|_| bend(&mut random)).collect();
    let accepted = judge(&cases);
    let mut refused = 0;
    let mut wrong = vec![];
    for (text, accepted) in cases.iter().zip(accepted) {
        let understood = parse(text, Dialect::Bash).unknowns.is_empty();
        refused += usize::from(accepted && !understood);
        if understood && !accepted {
            wrong.push(text);
        }
    }
    eprintln!("{CASES} lines; bash accepts {refused} that are not understood");
    assert!(wrong.is_empty(), "bash refuses {}: {wrong:#?}", wrong.len());
}

/// What is said to be plain text is what bash makes of it.
#[test]
fn literal_words_are_what_bash_makes_of_them() {
    if !weighlock_testing::have(&["bash"]) {
        return;
    }
    let mut random = Random(6);
    let mut cases = vec![];
    while cases.len() < CASES {
        let text: String = (0..2 + random.below(9))
            .map(|_| *random.pick(PARTS))
            .collect();
        cases.extend(literals(&text).map(|words| (text, words)));
    }
    for chunk in cases.chunks(100) {
        let lines: String = chunk.iter().map(|(text, _)| line(text)).collect();
        let printed = run(&lines);
        let mut all = printed.split("<next>");
        for (text, words) in chunk {
            let ours: String = words.iter().map(|word| format!("{word}\0")).collect();
            assert_eq!(all.next(), Some(ours.as_str()), "in {text:?}");
        }
    }
}

fn line(text: &str) -> String {
    format!("printf '%s\\0' x {text}\nprintf '<next>'\n")
}

/// Returns the words of a line, if nothing in it is expanded when it runs.
fn literals(text: &str) -> Option<Vec<String>> {
    let script = parse(&line(text), Dialect::Bash);
    if !script.unknowns.is_empty() || script.body.items.len() != 2 {
        return None;
    }
    let stage = &script.body.items[0].pipeline.stages[0];
    let (CommandKind::Simple(simple), "printf") = (&stage.kind, second_name(&script).as_str())
    else {
        return None;
    };
    let words: Option<Vec<String>> = simple.words.iter().skip(2).map(Word::literal).collect();
    words.filter(|_| stage.redirections.is_empty() && simple.assignments.is_empty())
}

fn second_name(script: &Script) -> String {
    let span = script.body.items[1].pipeline.span;
    let CommandKind::Simple(simple) = &script.body.items[1].pipeline.stages[0].kind else {
        return String::new();
    };
    let plain = span.end - span.start == "printf '<next>'".len();
    simple
        .words
        .first()
        .and_then(Word::literal)
        .filter(|_| plain)
        .unwrap_or_default()
}

/// Runs lines that only print, where there is nothing to find.
fn run(lines: &str) -> String {
    let empty = tempfile::tempdir().expect("a directory can be made");
    let mut bash = Command::new("bash");
    bash.env_clear()
        .env("LC_ALL", "C.UTF-8")
        .current_dir(empty.path())
        .stdin(Stdio::null());
    let output = bash.args(["-c", lines]).output().expect("bash starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Changes a line in one to three places.
fn bend(random: &mut Random) -> String {
    let mut text = random.pick(SEEDS).to_string();
    for _ in 0..=random.below(3) {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        if places.len() < 3 {
            continue;
        }
        let at = *random.pick(&places);
        match random.below(5) {
            0 => drop(text.remove(at)),
            1 | 2 => text.insert_str(at, random.pick::<&str>(TOKENS)),
            3 => {
                let end = places.iter().copied().find(|&place| place > at + 5);
                text.replace_range(at..end.unwrap_or(text.len()), "");
            }
            _ => text.truncate(at),
        }
    }
    text
}

/// Asks bash about each, on two threads.
fn judge(cases: &[String]) -> Vec<bool> {
    let half = cases.len() / 2;
    thread::scope(|scope| {
        let first = scope.spawn(|| cases[..half].iter().map(|text| accepts(text)).collect());
        let second: Vec<bool> = cases[half..].iter().map(|text| accepts(text)).collect();
        let mut all: Vec<bool> = first.join().expect("no case panics");
        all.extend(second);
        all
    })
}

/// Asks bash to read a text without running it. It exits with zero after some
/// errors, and warns about texts that it accepts, so its words decide.
fn accepts(text: &str) -> bool {
    let mut bash = Command::new("bash");
    bash.env_clear()
        .env("LC_ALL", "C.UTF-8")
        .args(["-n", "-c", "--", text])
        .stdin(Stdio::null());
    let output = bash.output().expect("bash starts");
    let words = String::from_utf8_lossy(&output.stderr);
    words.lines().all(|line| line.contains("warning:"))
}
