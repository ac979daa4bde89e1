//! Judging with the preset `strict`, and the corpora.

#![expect(
    dead_code,
    reason = "each test binary uses the part of it that it needs"
)]

use std::sync::LazyLock;

use serde::Deserialize;
use weighlock_policy::{
    Judgement, Place, Preset, Reader, Rules, Settings, Subject, Verdict, understand,
};

static RULES: LazyLock<Rules> =
    LazyLock::new(|| Rules::base(&[Preset::Strict], &Settings::default()));

/// The place that cases and corpora imagine.
static PLACE: LazyLock<Place> = LazyLock::new(|| Place {
    root: "/home/dev/proj".into(),
    cwd: "/home/dev/proj".into(),
    home: "/home/dev".into(),
});

/// One line of a corpus.
#[derive(Debug, Deserialize)]
pub(crate) struct Line {
    pub(crate) id: String,
    pub(crate) command: String,
    pub(crate) expect: Verdict,
    #[serde(default)]
    pub(crate) also_ok: Vec<Verdict>,
}

/// Lines that others wrote, each with where it comes from.
pub(crate) fn dev() -> Vec<Line> {
    lines(include_str!("../corpus/policy-dev.jsonl"))
}

/// Lines of our own.
pub(crate) fn own() -> Vec<Line> {
    lines(include_str!("../corpus/own.jsonl"))
}

fn lines(text: &str) -> Vec<Line> {
    let line = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    text.lines().map(line).collect()
}

pub(crate) fn judge(text: &str) -> Judgement {
    judge_as(text, Reader::Either)
}

pub(crate) fn judge_as(text: &str, reader: Reader) -> Judgement {
    let facts = understand(text, reader, &[], &PLACE);
    let subject = Subject {
        text,
        ..Subject::default()
    };
    RULES.decide(facts, &subject)
}

pub(crate) fn verdict(text: &str) -> Verdict {
    judge(text).verdict
}

/// Says which part decided and why, in one line.
pub(crate) fn decider(judgement: &Judgement) -> String {
    let Some(reason) = judgement.reasons.first() else {
        return "only reads".into();
    };
    let decides = |at: &usize| judgement.parts[*at].verdict == judgement.verdict;
    let part = (0..judgement.parts.len()).find(decides);
    let words = part.map_or(String::new(), |at| {
        let part = &judgement.facts.parts[at];
        let words = part.argv.iter().map(|word| word.as_deref().unwrap_or("…"));
        format!(" [{:?} {}]", part.kind, words.collect::<Vec<_>>().join(" "))
    });
    format!("{}{words}", reason.text)
}

/// Fails with all that went wrong, not only the first.
pub(crate) fn report(wrong: &[String], of: usize) {
    assert!(
        wrong.is_empty(),
        "{} of {of} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
