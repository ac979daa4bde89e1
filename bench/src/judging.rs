//! Understanding and judging a command, beside what others take for it.
//!
//! A list of first words costs next to nothing and cannot tell `git status`
//! from `git status; rm -rf ~`: this is what understanding costs.

use std::collections::HashSet;
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use weighlock_policy::{
    Place, Preset, Reader, Rules, Settings, Subject, Verdict, example_place, load_knowledge,
    tokens, understand,
};
use weighlock_shell::{Dialect, parse};

use crate::table::{Goal, Row, Samples, Unit};
use crate::{Effort, Result};

/// Stands for the process that measures a start.
pub(crate) const VERB: &str = "--judging-start";

/// Stands for the process that measures one costly text, by its number.
pub(crate) const COSTLY_VERB: &str = "--judging-costly";

/// The longest command that a server takes.
const LONGEST: usize = 128 * 1024 - 1;

/// Texts made to be costly: what is before, what is repeated, what is after.
const COSTLY: &[(&str, &str, &str)] = &[
    ("", "a;", ""),
    ("", "ls;", ""),
    ("mytool ", "sudo ", ""),
    ("", "env ", "ls"),
    ("ls ", "{a,b}{c,d}{e,f}{g,h} ", ""),
    ("sh -c '", "{a,b}", "'"),
    ("f(){ ", "env ", ";};f;f;f"),
    ("f(){ ", "a=1 ", ";};f;f;f"),
    ("", ">b ", ""),
    ("", "`a`", ""),
    ("", "${a:-$(b)}", ""),
    ("", "cat <<a\n$(b)\na\n", ""),
    ("", "for i in $i;do $i;done;", ""),
    ("a=\"", "rm -rf ./x ", "\";$a;eval $a;$a|sh"),
    ("python3 -c '", "os.system(\"a b\");", "'"),
    ("", "grep -n pattern src/main.rs | head -5\n", ""),
    ("", "<a ", ""),
    ("ls ", "a/", ""),
    ("ls ", "[a-z]*", ""),
    ("cat ", "?[a]*/x ", ""),
    ("cat ", "*a*a*a*a*a*a* ", ""),
    ("cat ", "src/main.rs ", ""),
];

/// Commands as agents write them, harmless and not, collected for tests.
const LINES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../crates/policy/tests/corpus/policy-dev.jsonl"
);

/// A text with this many commands is no accident.
const MANY: usize = 10_000;

/// What a list of harmless first words usually has on it.
const HARMLESS: &[&str] = &[
    "ls", "cat", "head", "tail", "pwd", "echo", "grep", "rg", "find", "wc", "sort", "uniq", "cut",
    "diff", "stat", "file", "du", "df", "date", "tree", "git", "which", "env", "ps", "whoami",
];

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let mut rows = start(effort)?;
    rows.extend(lines(effort)?);
    rows.push(many(effort)?);
    rows.extend(costly(effort)?);
    Ok(rows)
}

/// Says how long the start takes, and how much memory, of a fresh process.
pub(crate) fn serve() -> Result<()> {
    let before = resident()?;
    let (began, busy) = (Instant::now(), busy_nanos());
    load_knowledge();
    let knowledge = began.elapsed().as_nanos();
    let busy = busy_nanos() - busy;
    black_box(rules());
    let all = began.elapsed().as_nanos();
    let memory = resident()?.saturating_sub(before);
    println!("{knowledge} {busy} {all} {memory}");
    Ok(())
}

/// Returns the time that this process was on a processor, which others who
/// want it too do not lengthen.
fn busy_nanos() -> i64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn start(effort: &Effort) -> Result<Vec<Row>> {
    let [mut knowledge, mut busy, mut all, mut memory] = <[Samples; 4]>::default();
    for _ in 0..effort.runs / 3 {
        let said = Command::new(std::env::current_exe()?)
            .arg(VERB)
            .stdin(Stdio::null())
            .output()?;
        let said = String::from_utf8(said.stdout)?;
        let figures: Vec<f64> = said
            .split_whitespace()
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?;
        let [first, second, third, fourth] = figures[..] else {
            return Err(format!("a start said `{said}`").into());
        };
        knowledge.push(first / 1e6);
        busy.push(second / 1e6);
        all.push(third / 1e6);
        memory.push(fourth / (1024.0 * 1024.0));
    }
    Ok(vec![
        Row::new("start: all knowledge", Unit::Millis, &knowledge).goal(Goal::Under(10.0)),
        Row::new("the same, processor time", Unit::Millis, &busy),
        Row::new("start: knowledge and rules", Unit::Millis, &all).goal(Goal::Under(10.0)),
        Row::new("memory of knowledge and rules", Unit::Mebibytes, &memory).goal(Goal::Under(20.0)),
    ])
}

fn lines(effort: &Effort) -> Result<Vec<Row>> {
    let text =
        std::fs::read_to_string(LINES).map_err(|error| format!("cannot read {LINES}: {error}"))?;
    let lines: Vec<String> = text
        .lines()
        .map(|line| Ok(serde_json::from_str::<serde_json::Value>(line)?))
        .map(|line: Result<_>| Ok(line?["command"].as_str().unwrap_or_default().to_owned()))
        .collect::<Result<_>>()?;
    let (rules, place) = (rules(), example_place());
    let harmless: HashSet<&str> = HARMLESS.iter().copied().collect();
    let mut first_word = Timed::default();
    let mut split = Timed::default();
    let mut parsed = Timed::default();
    let mut judged = Timed::default();
    for round in 0..=effort.runs / 10 {
        for line in &lines {
            let word = || {
                let first = line.split_whitespace().next();
                first.is_some_and(|first| harmless.contains(first))
            };
            first_word.take(word);
            split.take(|| words(line));
            parsed.take(|| parse(line, Dialect::Posix));
            judged.take(|| judge(&rules, &place, line));
        }
        // The first round only fills caches.
        for timed in [&mut first_word, &mut split, &mut parsed, &mut judged] {
            timed.end_round(round > 0);
        }
    }
    let row = |what, timed: &Timed| {
        Row::new(what, Unit::Micros, &timed.all).against("first word", &first_word.all)
    };
    let slowest = |what, timed: &Timed| Row::new(what, Unit::Micros, &timed.slowest);
    Ok(vec![
        row("a list of first words, which is no protection", &first_word),
        row("splitting at blanks outside of quotes", &split),
        row("parsing alone", &parsed),
        row("understanding and judging", &judged).promise(Goal::Under(50.0)),
        slowest("the same, the slowest line in 100", &judged),
    ])
}

/// Judges one costly text; says how long that took and how much memory.
pub(crate) fn serve_costly(number: &str) -> Result<()> {
    let (before, unit, after) = COSTLY[number.parse::<usize>()?];
    let count = (LONGEST - before.len() - after.len()) / unit.len();
    let text = format!("{before}{}{after}", unit.repeat(count));
    let (rules, place) = (rules(), example_place());
    judge(&rules, &place, "ls");
    let (memory, busy) = (peak()?, busy_nanos());
    judge(&rules, &place, &text);
    black_box(tokens(&text));
    println!("{} {}", busy_nanos() - busy, peak()? - memory);
    Ok(())
}

/// The dearest of the costly texts: a bound that no text may pass.
fn costly(effort: &Effort) -> Result<Vec<Row>> {
    let [mut time, mut memory] = <[Samples; 2]>::default();
    for _ in 0..(effort.runs / 30).max(1) {
        let (mut slowest, mut largest) = (0f64, 0f64);
        for number in 0..COSTLY.len() {
            let said = Command::new(std::env::current_exe()?)
                .args([COSTLY_VERB, &number.to_string()])
                .stdin(Stdio::null())
                .output()?;
            let said = String::from_utf8(said.stdout)?;
            let (nanos, bytes) = said.trim().split_once(' ').ok_or("no figures")?;
            slowest = slowest.max(nanos.parse::<f64>()? / 1e6);
            largest = largest.max(bytes.parse::<f64>()? / (1024.0 * 1024.0));
        }
        time.push(slowest);
        memory.push(largest);
    }
    let texts = COSTLY.len();
    Ok(vec![
        Row::new(
            format!("the slowest of {texts} texts of 128 KB made to be costly"),
            Unit::Millis,
            &time,
        )
        .promise(Goal::Under(100.0)),
        Row::new(
            "the most memory that one of them takes",
            Unit::Mebibytes,
            &memory,
        )
        .promise(Goal::Under(32.0)),
    ])
}

fn many(effort: &Effort) -> Result<Row> {
    let (rules, place) = (rules(), example_place());
    let text = "true && ".repeat(MANY) + "sudo id";
    let mut samples = Samples::default();
    for _ in 0..effort.runs / 10 {
        let began = Instant::now();
        let verdict = judge(&rules, &place, &text);
        samples.push_millis(began.elapsed());
        if verdict != Verdict::Reject {
            return Err(format!("{MANY} commands hide the last one: {verdict:?}").into());
        }
    }
    let what = format!("{MANY} times `true &&`, then `sudo id`");
    Ok(Row::new(what, Unit::Millis, &samples).promise(Goal::Under(50.0)))
}

/// Times of one way, line by line.
#[derive(Default)]
struct Timed {
    round: Vec<f64>,
    all: Samples,
    /// One for each round: only one line in a hundred took longer.
    slowest: Samples,
}

impl Timed {
    fn take<T>(&mut self, run: impl FnOnce() -> T) {
        let began = Instant::now();
        black_box(run());
        self.round.push(micros(began.elapsed()));
    }

    fn end_round(&mut self, counts: bool) {
        let round = std::mem::take(&mut self.round);
        if counts {
            self.slowest.push(Samples::of(&round).at(0.99));
            round.into_iter().for_each(|time| self.all.push(time));
        }
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn rules() -> Rules {
    Rules::base(&[Preset::Strict], &Settings::default())
}

fn judge(rules: &Rules, place: &Place, text: &str) -> Verdict {
    let facts = understand(text, Reader::Either, &[], place);
    let subject = Subject {
        text,
        place: Some(place),
        ..Subject::default()
    };
    rules.decide(facts, &subject).verdict
}

/// What many take for parsing: quotes and backslashes, and nothing else.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (vec![], None::<String>, None);
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        match (quote, next) {
            (Some(open), _) if open == next => quote = None,
            (Some('\''), _) => word.get_or_insert_default().push(next),
            (_, '\\') => word.get_or_insert_default().extend(rest.next()),
            (Some(_), _) => word.get_or_insert_default().push(next),
            (None, '\'' | '"') => {
                quote = Some(next);
                word.get_or_insert_default();
            }
            (None, _) if next.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(next),
        }
    }
    words.extend(word);
    words
}

/// Returns the most bytes of memory that this process has held.
fn peak() -> Result<usize> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib.ok_or("status has no VmHWM")?.parse::<usize>()? * 1024)
}

/// Returns the bytes of memory that this process holds.
fn resident() -> Result<usize> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: usize = text
        .split_whitespace()
        .nth(1)
        .ok_or("statm has no second figure")?
        .parse()?;
    Ok(pages * rustix::param::page_size())
}
