//! What a shell really does, held against what was said that it would do.
//!
//! Scripts are made up; the ones that are judged `auto` are run for real, by
//! `sh` and by bash, in a place where every program is a stand-in that notes
//! how it was called. Then each call must be among the commands that were
//! seen, no file may have changed, and no secret may have come out.
//!
//! One run is the same as the next. A long run, by whoever has the time:
//!
//! ```text
//! DIFFERENTIAL_CASES=1000000 DIFFERENTIAL_SEED=7 \
//!     cargo test --release -p weighlock-policy --test differential -- --ignored --nocapture
//! ```

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the crate does nothing by itself; its tests have to"
)]

mod arena;
mod generate;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arena::{Arena, Deeds, Shell};
use generate::{Generator, Random};
use weighlock_policy::{
    Part, PartKind, Place, Preset, Reader, Rules, Settings, Subject, Verdict, understand,
};

/// Enough to meet every construct many times; about ten seconds.
const SHORT_CASES: u64 = 6_000;

/// On a slow machine fewer cases have to do.
const SHORT_TIME: Duration = Duration::from_secs(20);

/// What must not come out of a command that was allowed unasked.
const CANARY: &str = "canary-4711";

/// More than these and the first would scroll away.
const MOST_HOLES: usize = 40;

/// How often a script that fails is run again to make it smaller.
const MOST_TRIES: usize = 600;

#[test]
fn what_runs_was_seen() {
    let cases = Cases {
        count: SHORT_CASES,
        seed: 1,
        time: SHORT_TIME,
    };
    check(&cases);
}

#[test]
#[ignore = "takes as long as DIFFERENTIAL_CASES says"]
fn what_runs_was_seen_in_a_long_run() {
    let number = |name, or| std::env::var(name).map_or(or, |text| text.parse().expect(name));
    let cases = Cases {
        count: number("DIFFERENTIAL_CASES", 200_000),
        seed: number("DIFFERENTIAL_SEED", 1),
        time: Duration::MAX,
    };
    check(&cases);
}

/// Says what becomes of one script, for whoever looks into a hole.
#[test]
#[ignore = "needs DIFFERENTIAL_SCRIPT"]
fn one_script() {
    let Ok(script) = std::env::var("DIFFERENTIAL_SCRIPT") else {
        return;
    };
    let Some(seen) = Judge::new().allows(&script) else {
        return eprintln!("it would not run by itself");
    };
    let mut arena = Arena::build(&programs()).expect("an arena");
    for shell in seen.shells() {
        let deeds = arena.run(*shell, 0, &script).expect("it runs");
        eprintln!("{shell:?}: {deeds:#?}\n{:?}", seen.hole(&deeds));
    }
}

struct Cases {
    count: u64,
    seed: u64,
    time: Duration,
}

#[derive(Default)]
struct Tally {
    next: AtomicU64,
    made: AtomicU64,
    auto: AtomicU64,
    runs: AtomicU64,
    calls: AtomicU64,
    late: AtomicU64,
    holes: Mutex<Vec<String>>,
}

fn check(cases: &Cases) {
    let programs = programs();
    if let Err(why) = Arena::build(&programs) {
        return weighlock_testing::skip(&format!("scripts cannot be run harmlessly: {why}"));
    }
    let lines = lines();
    let tally = Tally::default();
    let began = Instant::now();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers.min(4) {
            scope.spawn(|| work(cases, &programs, &lines, &tally, began));
        }
    });
    let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
    let holes = tally.holes.into_inner().expect("no worker panicked");
    eprintln!(
        "{} scripts, {} of them auto; {} runs, {} programs started, {} stopped; {} holes; {:.0?}",
        count(&tally.made),
        count(&tally.auto),
        count(&tally.runs),
        count(&tally.calls),
        count(&tally.late),
        holes.len(),
        began.elapsed()
    );
    assert!(holes.is_empty(), "\n{}", holes.join("\n\n"));
    assert!(count(&tally.calls) > 0, "nothing was run at all");
}

fn work(cases: &Cases, programs: &[String], lines: &[String], tally: &Tally, began: Instant) {
    let judge = Judge::new();
    let mut arena = Arena::build(programs).expect("the first could be built");
    while began.elapsed() < cases.time {
        let case = tally.next.fetch_add(1, Ordering::Relaxed);
        if case >= cases.count {
            return;
        }
        let mood = u8::try_from(case % 3).expect("below three");
        let script = Generator::new(Random::new(cases.seed, case), lines).script();
        tally.made.fetch_add(1, Ordering::Relaxed);
        let Some(seen) = judge.allows(&script) else {
            continue;
        };
        tally.auto.fetch_add(1, Ordering::Relaxed);
        for shell in seen.shells() {
            let hole = match arena.run(*shell, mood, &script) {
                Ok(deeds) => {
                    tally.runs.fetch_add(1, Ordering::Relaxed);
                    let calls = u64::try_from(deeds.runs.len()).unwrap_or(0);
                    tally.calls.fetch_add(calls, Ordering::Relaxed);
                    tally
                        .late
                        .fetch_add(u64::from(deeds.late), Ordering::Relaxed);
                    seen.hole(&deeds)
                }
                Err(_) => Some("it brought the arena down".to_owned()),
            };
            let Some(what) = hole else { continue };
            if what.contains("arena down") {
                arena = Arena::build(programs).expect("the first could be built");
            }
            let small = shrink(&script, |text| {
                let again = judge.allows(text)?;
                again.hole(&arena.run(*shell, mood, text).ok()?)
            });
            let (small, what) = small.unwrap_or((script.clone(), what));
            let mut holes = tally.holes.lock().expect("no worker panicked");
            let hole = format!(
                "case {case}, {shell:?}, mood {mood}: {what}\n  {small:?}\n  from {script:?}"
            );
            eprintln!("{hole}");
            holes.push(hole);
            if holes.len() >= MOST_HOLES {
                tally.next.store(cases.count, Ordering::Relaxed);
            }
            break;
        }
    }
}

struct Judge {
    rules: Rules,
    place: Place,
}

/// What was seen in a script that may run.
struct Seen {
    parts: Vec<Part>,
    needs_bash: bool,
}

impl Judge {
    fn new() -> Self {
        Self {
            rules: Rules::base(&[Preset::Strict], &Settings::default()),
            place: Place {
                root: "/home/dev/proj".into(),
                cwd: "/home/dev/proj".into(),
                home: "/home/dev".into(),
            },
        }
    }

    fn allows(&self, text: &str) -> Option<Seen> {
        // No shell can be given one.
        if text.contains('\0') {
            return None;
        }
        let facts = understand(text, Reader::Either, &[], &self.place);
        let subject = Subject {
            text,
            place: Some(&self.place),
            ..Subject::default()
        };
        let judgement = self.rules.decide(facts, &subject);
        (judgement.verdict == Verdict::Auto).then_some(Seen {
            parts: judgement.facts.parts,
            needs_bash: judgement.facts.needs_bash,
        })
    }
}

impl Seen {
    /// Returns who may come to read it: `sh` may be bash, too.
    fn shells(&self) -> &'static [Shell] {
        match self.needs_bash {
            true => &[Shell::Bash],
            false => &[Shell::Sh, Shell::Bash],
        }
    }

    /// Returns what was done that was not seen.
    fn hole(&self, deeds: &Deeds) -> Option<String> {
        if !deeds.changes.is_empty() {
            return Some(deeds.changes.clone());
        }
        if deeds.output.contains(CANARY)
            || deeds
                .runs
                .iter()
                .flatten()
                .any(|word| word.contains(CANARY))
        {
            return Some("a secret came out".into());
        }
        let feeds = self.parts.iter().any(|part| part.program == "xargs");
        let seen = |run: &[String]| {
            // Without a command of its own, `xargs` runs this one.
            feeds && run[0] == "echo" || self.parts.iter().any(|part| covers(part, run))
        };
        let unseen = deeds
            .runs
            .iter()
            .find(|run| !seen(run) && !seen(timed(run)))?;
        Some(format!("{unseen:?} was run"))
    }
}

/// Returns what `time` measures: a word of the shell for bash, and for another
/// `sh` a program that does the same.
fn timed(run: &[String]) -> &[String] {
    match run {
        [time, p, rest @ ..] if time == "time" && p == "-p" => rest,
        [time, rest @ ..] if time == "time" && !rest.is_empty() => rest,
        _ => run,
    }
}

/// Returns whether a part says that this program is run with these words.
fn covers(part: &Part, run: &[String]) -> bool {
    let Some((program, args)) = run.split_first() else {
        return false;
    };
    let Some((name, words)) = part.argv.split_first() else {
        return false;
    };
    let base = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
    part.kind == PartKind::Command
        && !part.possible
        && name
            .as_deref()
            .is_none_or(|name| base(name) == base(program))
        && fits(words, args)
}

/// Compares words; one that is not known may become any number of words.
fn fits(words: &[Option<String>], args: &[String]) -> bool {
    match (words.split_first(), args.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((None, rest)), _) => (0..=args.len()).any(|taken| fits(rest, &args[taken..])),
        (Some((Some(word), rest)), Some((arg, more))) => same(word, arg) && fits(rest, more),
        (Some((Some(_), _)), None) => false,
    }
}

/// A byte that is no character shows as a replacement on both sides.
fn same(word: &str, arg: &str) -> bool {
    word == arg || (arg.contains('\u{fffd}') && word.contains('\u{fffd}'))
}

/// Takes away from a script what it can lose and still fail.
fn shrink(script: &str, mut fails: impl FnMut(&str) -> Option<String>) -> Option<(String, String)> {
    let mut small = script.to_owned();
    let mut what = fails(&small)?;
    let mut size = small.len() / 2;
    let mut tries = 0;
    while size > 0 {
        let (mut at, mut better) = (0, false);
        while at < small.len() && tries < MOST_TRIES {
            let to = small.ceil_char_boundary((at + size).min(small.len()));
            let mut less = small.clone();
            less.replace_range(at..to, "");
            tries += 1;
            match fails(&less) {
                Some(found) => {
                    (small, what, better) = (less, found, true);
                }
                None => at = to,
            }
        }
        if !better || size > 1 {
            size /= 2;
        }
    }
    Some((small, what))
}

/// Returns the lines of the corpora that are there.
fn lines() -> Vec<String> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    let mut lines = vec![];
    for name in ["policy-dev", "own"] {
        let text = std::fs::read_to_string(format!("{dir}/{name}.jsonl")).unwrap_or_default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let value: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
            lines.extend(value["command"].as_str().map(str::to_owned));
        }
    }
    lines
}

/// Returns the names of all programs that something is known about.
fn programs() -> Vec<String> {
    let mut names = vec![];
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/knowledge");
    for entry in std::fs::read_dir(dir)
        .expect("knowledge is there")
        .flatten()
    {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        let listed = text.lines().filter(|line| line.starts_with("names"));
        for name in listed.flat_map(|line| line.split('"').skip(1).step_by(2)) {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte);
            if !name.is_empty()
                && !name.starts_with('-')
                && name != "stage"
                && name.bytes().all(plain)
            {
                names.push(name.to_owned());
            }
        }
    }
    names.extend(["npm", "make", "nosuchtool"].map(str::to_owned));
    names.sort();
    names.dedup();
    names
}
