//! Commands, the verdicts they get, and why: `cases/*.txt`.
//!
//! One line per case, `COMMAND => VERDICT: REASON`, where the reason is part
//! of the first one told and may be left out. A command of several lines has
//! its verdict on a line of its own. One that starts like a comment, or has
//! characters that do not show, is written `json "…"`. Lines that begin with
//! `#`, and empty ones, between two cases are for people.
//!
//! ```text
//! git status            => auto
//! git diff --output=x   => ask: writes files
//!
//! cat <<EOF
//! $(sudo id)
//! EOF
//! => reject: raises privileges
//! ```

#![expect(
    clippy::disallowed_methods,
    reason = "the tests read their cases; the crate itself reads nothing"
)]
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use common::{decider, report};
use serde::Deserialize;
use weighlock_policy::{Effect, Judgement, Reader, Verdict};

/// Fewest cases for one file of knowledge. The smallest families have about
/// as many programs.
const FEWEST: usize = 8;

#[test]
fn every_case_gets_its_verdict_and_reason() {
    let files = files("tests/cases", "txt");
    let mut wrong = vec![];
    let mut count = 0;
    for path in &files {
        for case in read(path) {
            count += 1;
            wrong.extend(case.fault(path));
        }
    }
    report(&wrong, count);
}

#[test]
fn every_file_of_knowledge_has_cases_for_all_that_it_says() {
    let mut wrong = vec![];
    let knowledge = files("knowledge", "toml");
    for path in &knowledge {
        let family = stem(path);
        let cases = here(&format!("tests/cases/{family}.txt"));
        if !cases.exists() {
            wrong.push(format!("{family}: has no cases"));
            continue;
        }
        let judged: Vec<(Case, Judgement)> = read(&cases)
            .into_iter()
            .map(|case| {
                let judgement = case.judge(&cases);
                (case, judgement)
            })
            .collect();
        let family_says = programs(path);
        wrong.extend(lacks(&judged, &family_says).map(|lack| format!("{family}: {lack}")));
    }
    report(&wrong, knowledge.len());
}

/// What is missing among the cases of a family.
fn lacks<'a>(
    judged: &'a [(Case, Judgement)],
    programs: &'a [Program],
) -> impl Iterator<Item = String> + 'a {
    let few = (judged.len() < FEWEST).then(|| format!("only {} cases", judged.len()));
    let autos = judged
        .iter()
        .filter(|(case, _)| case.verdict == Verdict::Auto)
        .count();
    let harmless = programs.iter().any(Program::may_only_read);
    let mild = (harmless && autos == 0).then(|| "no case that is auto".to_owned());
    let strict = (autos == judged.len()).then(|| "only cases that are auto".to_owned());
    let mut met: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for part in judged
        .iter()
        .flat_map(|(_, judgement)| &judgement.facts.parts)
    {
        let found = met.entry(part.program.as_str()).or_default();
        let effects = EFFECTS
            .iter()
            .filter(|(_, effect)| part.effects.has(*effect));
        found.extend(effects.map(|(name, _)| *name));
    }
    let unmet = programs
        .iter()
        .filter({
            let met = met.clone();
            move |program| !program.names.iter().any(|name| is_met(&met, name))
        })
        .map(|program| format!("no case for `{}`", program.names[0]));
    let said: BTreeSet<&str> = programs.iter().flat_map(Program::effects).collect();
    let names: BTreeSet<&str> = programs
        .iter()
        .flat_map(|program| program.names.iter().map(String::as_str))
        .collect();
    let shown: BTreeSet<&str> = met
        .iter()
        .filter(|(name, _)| names.contains(*name))
        .flat_map(|(_, effects)| effects.iter().copied())
        .collect();
    let unshown: Vec<String> = said
        .difference(&shown)
        .map(|effect| format!("no case that has the effect `{effect}`"))
        .collect();
    few.into_iter()
        .chain(mild)
        .chain(strict)
        .chain(unmet)
        .chain(unshown)
}

fn is_met(met: &BTreeMap<&str, BTreeSet<&str>>, name: &str) -> bool {
    match name.strip_suffix('*') {
        Some(start) => met.keys().any(|met| met.starts_with(start)),
        None => met.contains_key(name),
    }
}

/// One command and what should become of it.
struct Case {
    line: usize,
    command: String,
    verdict: Verdict,
    reason: String,
}

impl Case {
    fn judge(&self, path: &Path) -> Judgement {
        common::judge_as(&self.command, reader(path))
    }

    /// Says what is wrong, if anything.
    fn fault(&self, path: &Path) -> Option<String> {
        let judgement = self.judge(path);
        let first = judgement.reasons.first().map(|reason| reason.text.as_str());
        let right = judgement.verdict == self.verdict
            && (self.reason.is_empty() || first.is_some_and(|text| text.contains(&self.reason)));
        (!right).then(|| {
            format!(
                "{}:{}: {:?}\n    should be {:?}: {}\n    but is    {:?}: {}",
                path.file_name().unwrap_or_default().display(),
                self.line,
                self.command,
                self.verdict,
                self.reason,
                judgement.verdict,
                decider(&judgement)
            )
        })
    }
}

/// Some shells have files of their own.
fn reader(path: &Path) -> Reader {
    match stem(path).as_str() {
        "powershell" => Reader::PowerShell,
        "cmd" => Reader::Cmd,
        "sh" => Reader::Sh,
        _ => Reader::Either,
    }
}

fn read(path: &Path) -> Vec<Case> {
    let text = fs::read_to_string(path).unwrap();
    let mut cases = vec![];
    let mut open: Vec<&str> = vec![];
    for (number, line) in text.lines().enumerate() {
        if open.is_empty() && (line.is_empty() || line.starts_with('#')) {
            continue;
        }
        let Some((command, verdict)) = verdict_in(line) else {
            open.push(line);
            continue;
        };
        open.extend(command);
        let (verdict, reason) = verdict.split_once(": ").unwrap_or((verdict, ""));
        cases.push(Case {
            line: number + 1,
            command: plain(&open.join("\n")),
            verdict: serde_json::from_value(verdict.into()).unwrap(),
            reason: reason.to_owned(),
        });
        open.clear();
    }
    assert!(open.is_empty(), "{}: no verdict: {open:?}", path.display());
    cases
}

/// Splits a line that ends in a verdict.
fn verdict_in(line: &str) -> Option<(Option<&str>, &str)> {
    let (command, verdict) = match line.strip_prefix("=> ") {
        Some(verdict) => (None, verdict),
        None => {
            let (command, verdict) = line.split_once(" => ")?;
            (Some(command.trim_end()), verdict)
        }
    };
    let word = verdict.split(':').next();
    matches!(word, Some("auto" | "ask" | "reject")).then_some((command, verdict))
}

fn plain(command: &str) -> String {
    match command.strip_prefix("json ") {
        Some(quoted) => serde_json::from_str(quoted).unwrap(),
        None => command.to_owned(),
    }
}

const EFFECTS: [(&str, Effect); 9] = [
    ("write", Effect::Write),
    ("delete", Effect::Delete),
    ("execute", Effect::Execute),
    ("network", Effect::Network),
    ("privilege", Effect::Privilege),
    ("device", Effect::Device),
    ("secret", Effect::Secret),
    ("process", Effect::Process),
    ("shell", Effect::Shell),
];

#[derive(Deserialize)]
struct File {
    program: Vec<Program>,
}

/// What is needed of a program here.
#[derive(Deserialize)]
struct Program {
    names: Vec<String>,
    #[serde(default)]
    effects: String,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    operands: Vec<String>,
    #[serde(default)]
    mode: BTreeMap<String, Mode>,
    #[serde(default)]
    sub: Vec<Program>,
}

#[derive(Deserialize)]
struct Mode {
    #[serde(default)]
    effects: String,
}

impl Program {
    /// Returns every effect that is declared somewhere in it.
    fn effects(&self) -> Vec<&str> {
        let marked = self.options.iter().chain(&self.operands).flat_map(|text| {
            let words = text.split(" : ").next().unwrap_or(text).split(' ');
            words.filter_map(|word| word.strip_prefix('!'))
        });
        let modes = self.mode.values().map(|mode| mode.effects.as_str());
        let lists = modes.chain([self.effects.as_str()]);
        let listed = lists
            .flat_map(str::split_whitespace)
            .filter(|word| *word != "read");
        let subs = self.sub.iter().flat_map(Program::effects);
        marked.chain(listed).chain(subs).collect()
    }

    fn may_only_read(&self) -> bool {
        self.effects.is_empty() && self.sub.iter().all(Program::may_only_read)
    }
}

fn programs(path: &Path) -> Vec<Program> {
    let file: File = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    file.program
}

fn files(dir: &str, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(here(dir)).unwrap();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
