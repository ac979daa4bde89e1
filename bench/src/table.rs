//! Samples, and the one table that they become.

use std::fmt::{Display, Write};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use crate::machine::Fact;

/// Measurements of one thing.
#[derive(Default)]
pub(crate) struct Samples(Vec<f64>);

/// What a row's figures count.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Millis,
    Micros,
    MegabytesPerSecond,
    RunsPerSecond,
    RequestsPerSecond,
    OpenedPerSecond,
    Mebibytes,
}

/// What a row is to reach.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// Its median is below so many of its unit.
    Under(f64),
    /// It is no more than so many times what it is held against.
    AtMost(f64),
    /// It is so many times what it is held against, or more.
    AtLeast(f64),
    /// It is what it is held against, give or take a half.
    Alike,
}

/// What others could not be measured since the last time somebody asked: its
/// name, and why.
static FAILED: Mutex<Vec<(String, String)>> = Mutex::new(vec![]);

/// Notes that something of others cannot be measured. It becomes a row of its
/// own, and the rest is measured all the same.
pub(crate) fn not_measured(what: &str, why: impl Display) {
    let why = why.to_string();
    let why = why.lines().next().unwrap_or("it does not say why");
    eprintln!("{what} is not measured: {why}");
    let mut failed = FAILED.lock().unwrap_or_else(|lock| lock.into_inner());
    if !failed.iter().any(|(known, _)| known == what) {
        failed.push((what.to_owned(), why.to_owned()));
    }
}

/// Returns the rows of what was not measured since the last call.
pub(crate) fn rows_not_measured() -> Vec<Row> {
    let mut failed = FAILED.lock().unwrap_or_else(|lock| lock.into_inner());
    let row = |(what, why)| Row {
        failed: Some(why),
        ..Row::new(what, Unit::Millis, &Samples::default())
    };
    failed.drain(..).map(row).collect()
}

/// One line of the table.
pub(crate) struct Row {
    what: String,
    /// The group that measured it.
    group: &'static str,
    unit: Unit,
    /// How often it was measured.
    samples: usize,
    /// The good end, which load from elsewhere touches least.
    best: f64,
    median: f64,
    /// The bad end: only one sample in twenty is worse.
    bad: f64,
    /// What it is held against, and how many times as much it is.
    ratio: Option<(f64, &'static str)>,
    goal: Option<Goal>,
    /// The goal is one of the design's.
    promised: bool,
    /// Why it was not measured.
    failed: Option<String>,
}

impl Samples {
    pub(crate) fn of(samples: &[f64]) -> Self {
        Self(samples.to_vec())
    }

    pub(crate) fn push(&mut self, sample: f64) {
        self.0.push(sample);
    }

    pub(crate) fn push_millis(&mut self, time: Duration) {
        self.push(time.as_secs_f64() * 1e3);
    }

    /// Returns the sample that this share of the others is below.
    pub(crate) fn at(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1) as f64;
        sorted
            .get((last * share).round() as usize)
            .copied()
            .unwrap_or(f64::NAN)
    }

    pub(crate) fn median(&self) -> f64 {
        self.at(0.5)
    }
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Millis => "ms",
            Self::Micros => "µs",
            Self::MegabytesPerSecond => "MB/s",
            Self::RunsPerSecond => "runs/s",
            Self::RequestsPerSecond => "req/s",
            Self::OpenedPerSecond => "opened/s",
            Self::Mebibytes => "MiB",
        }
    }

    fn more_is_better(self) -> bool {
        matches!(
            self,
            Self::MegabytesPerSecond
                | Self::RunsPerSecond
                | Self::RequestsPerSecond
                | Self::OpenedPerSecond
        )
    }

    fn show(self, figure: f64) -> String {
        let digits = match self {
            Self::Millis if figure < 10.0 => 3,
            Self::Micros | Self::Mebibytes if figure < 1.0 => 3,
            Self::Millis | Self::Micros | Self::Mebibytes => 1,
            _ => 0,
        };
        format!("{figure:.digits$} {}", self.name())
    }
}

impl Row {
    pub(crate) fn new(what: impl Into<String>, unit: Unit, samples: &Samples) -> Self {
        let (best, bad) = if unit.more_is_better() {
            (1.0, 0.05)
        } else {
            (0.0, 0.95)
        };
        Self {
            what: what.into(),
            group: "",
            unit,
            samples: samples.0.len(),
            best: samples.at(best),
            median: samples.median(),
            bad: samples.at(bad),
            ratio: None,
            goal: None,
            promised: false,
            failed: None,
        }
    }

    /// Says which group measured it.
    pub(crate) fn of(mut self, group: &'static str) -> Self {
        self.group = group;
        self
    }

    /// Holds it against other samples of the same unit.
    pub(crate) fn against(mut self, name: &'static str, other: &Samples) -> Self {
        self.ratio = Some((self.median / other.median(), name));
        self
    }

    pub(crate) fn goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    /// Gives it a goal that the design has.
    pub(crate) fn promise(mut self, goal: Goal) -> Self {
        self.promised = true;
        self.goal(goal)
    }

    /// Returns whether it has reached its goal.
    fn met(&self) -> Option<bool> {
        let ratio = self.ratio.map_or(f64::NAN, |(ratio, _)| ratio);
        self.goal.map(|goal| match goal {
            Goal::Under(figure) => self.median < figure,
            Goal::AtMost(times) => ratio <= times,
            Goal::AtLeast(times) => ratio >= times,
            Goal::Alike => (2.0 / 3.0..=1.5).contains(&ratio),
        })
    }

    fn goal_text(&self) -> Option<String> {
        self.goal.map(|goal| match goal {
            Goal::Under(figure) => format!("under {figure} {}", self.unit.name()),
            Goal::AtMost(times) => format!("at most {times}x"),
            Goal::AtLeast(times) => format!("at least {times}x"),
            Goal::Alike => "about 1x".into(),
        })
    }

    fn cells(&self) -> [String; 6] {
        if let Some(why) = &self.failed {
            let mut cells: [String; 6] = Default::default();
            cells[0] = self.what.clone();
            cells[5] = format!("not measured: {why}");
            return cells;
        }
        let goal = self.goal_text().unwrap_or_default();
        [
            self.what.clone(),
            self.unit.show(self.best),
            self.unit.show(self.median),
            self.unit.show(self.bad),
            self.ratio.map_or(String::new(), |(ratio, of)| match ratio {
                small if small < 0.1 => format!("{small:.4}x {of}"),
                ratio => format!("{ratio:.2}x {of}"),
            }),
            match self.met() {
                Some(false) => format!("{goal}: missed"),
                _ => goal,
            },
        ]
    }

    fn json(&self) -> Value {
        if let Some(why) = &self.failed {
            return json!({ "group": self.group, "what": self.what, "not_measured": why });
        }
        json!({
            "group": self.group, "what": self.what, "unit": self.unit.name(),
            "samples": self.samples, "best": self.best, "median": self.median,
            "worst_of_twenty": self.bad, "ratio": self.ratio.map(|(ratio, _)| ratio),
            "against": self.ratio.map(|(_, of)| of),
            "goal": self.goal_text(), "met": self.met(), "promised": self.promised,
        })
    }
}

/// Writes the table for people.
pub(crate) fn text(facts: &[Fact], rows: &[Row]) -> String {
    let mut text = String::new();
    for (name, value) in facts {
        let _ = writeln!(text, "{name}: {value}");
    }
    let promised: Vec<&Row> = rows.iter().filter(|row| row.promised).collect();
    if !promised.is_empty() {
        let met = promised
            .iter()
            .filter(|row| row.met() == Some(true))
            .count();
        let _ = writeln!(
            text,
            "\nGoals of the design: {met} of {} met",
            promised.len()
        );
        lines(&mut text, &promised);
    }
    text.push_str("\nEverything\n");
    lines(&mut text, &rows.iter().collect::<Vec<_>>());
    text
}

fn lines(text: &mut String, rows: &[&Row]) {
    let head = ["what", "best", "median", "1 in 20", "ratio", "goal"].map(String::from);
    let rows = rows.iter().map(|row| row.cells());
    let lines: Vec<[String; 6]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: [usize; 6] = std::array::from_fn(|column| width(column).unwrap_or(0));
    for [what, best, median, bad, ratio, goal] in &lines {
        let [w0, w1, w2, w3, w4, _] = widths;
        let line =
            format!("{what:w0$}  {best:>w1$}  {median:>w2$}  {bad:>w3$}  {ratio:w4$}  {goal}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// Writes the table for programs.
pub(crate) fn json(facts: &[Fact], rows: &[Row]) -> Value {
    let facts: serde_json::Map<String, Value> = facts
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    json!({ "machine": facts, "rows": rows.iter().map(Row::json).collect::<Vec<_>>() })
}
