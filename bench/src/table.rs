//! Samples, and the one table that they become.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

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

/// One line of the table.
pub(crate) struct Row {
    what: String,
    unit: Unit,
    /// The good end, which load from elsewhere touches least.
    best: f64,
    median: f64,
    /// The bad end: only one sample in twenty is worse.
    bad: f64,
    /// What it is held against, and how many times as much it is.
    ratio: Option<(f64, &'static str)>,
    goal: &'static str,
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
            unit,
            best: samples.at(best),
            median: samples.median(),
            bad: samples.at(bad),
            ratio: None,
            goal: "",
        }
    }

    /// Holds it against other samples of the same unit.
    pub(crate) fn against(mut self, name: &'static str, other: &Samples) -> Self {
        self.ratio = Some((self.median / other.median(), name));
        self
    }

    pub(crate) fn goal(mut self, goal: &'static str) -> Self {
        self.goal = goal;
        self
    }

    fn cells(&self) -> [String; 6] {
        [
            self.what.clone(),
            self.unit.show(self.best),
            self.unit.show(self.median),
            self.unit.show(self.bad),
            self.ratio.map_or(String::new(), |(ratio, of)| match ratio {
                small if small < 0.1 => format!("{small:.4}x {of}"),
                ratio => format!("{ratio:.2}x {of}"),
            }),
            self.goal.into(),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "what": self.what, "unit": self.unit.name(),
            "best": self.best, "median": self.median,
            "worst_of_twenty": self.bad, "ratio": self.ratio.map(|(ratio, _)| ratio),
            "against": self.ratio.map(|(_, of)| of),
            "goal": (!self.goal.is_empty()).then_some(self.goal),
        })
    }
}

/// Writes the table for people.
pub(crate) fn text(facts: &[(&str, String)], rows: &[Row]) -> String {
    let mut text = String::new();
    for (name, value) in facts {
        let _ = writeln!(text, "{name}: {value}");
    }
    text.push('\n');
    let head = ["what", "best", "median", "1 in 20", "ratio", "goal"].map(String::from);
    let lines: Vec<[String; 6]> = std::iter::once(head)
        .chain(rows.iter().map(Row::cells))
        .collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: [usize; 6] = std::array::from_fn(|column| width(column).unwrap_or(0));
    for [what, best, median, bad, ratio, goal] in &lines {
        let [w0, w1, w2, w3, w4, _] = widths;
        let line =
            format!("{what:w0$}  {best:>w1$}  {median:>w2$}  {bad:>w3$}  {ratio:w4$}  {goal}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Writes the table for programs.
pub(crate) fn json(facts: &[(&str, String)], rows: &[Row]) -> Value {
    let facts: serde_json::Map<String, Value> = facts
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    json!({ "machine": facts, "rows": rows.iter().map(Row::json).collect::<Vec<_>>() })
}
