//! Reads TOML so that every mistake is reported with its line, not only the
//! first.

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, ValueDeserializer};

use super::load::example_place;
use super::rule::Understand;
use crate::Place;

/// Shorter than this, a file with mistakes has them all reported; a program
/// that writes rules wrongly makes thousands.
const MAX_ERRORS: usize = 1_000;

/// A mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoadError {
    /// The file's name as it was given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            file,
            line,
            column,
            message,
            ..
        } = self;
        write!(f, "{file}:{line}:{column}: {message}")
    }
}

impl std::error::Error for LoadError {}

/// Collects what is wrong with one file.
pub(crate) struct Loader<'a> {
    file: &'a str,
    pub(super) text: &'a str,
    /// Where each line starts.
    lines: Vec<usize>,
    pub(crate) understand: Option<&'a Understand<'a>>,
    pub(crate) errors: Vec<LoadError>,
    /// Where examples are thought to run.
    pub(super) place: Place,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(
        file: &'a str,
        text: &'a str,
        understand: Option<&'a Understand<'a>>,
    ) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            file,
            text,
            lines: std::iter::once(0).chain(breaks).collect(),
            understand,
            errors: vec![],
            place: example_place(),
        }
    }

    /// Notes a mistake.
    pub(crate) fn error(&mut self, at: usize, message: impl Into<String>, hint: impl Into<String>) {
        let (line, column) = self.position(at);
        self.errors.push(LoadError {
            file: self.file.to_owned(),
            line,
            column,
            message: message.into(),
            hint: hint.into(),
        });
    }

    /// Returns line and column, from 1.
    pub(super) fn position(&self, at: usize) -> (usize, usize) {
        let at = at.min(self.text.len());
        let line = self.lines.partition_point(|start| *start <= at);
        let start = self.lines[line - 1];
        let before = self.text.get(start..at).unwrap_or("");
        (line, before.chars().count() + 1)
    }

    pub(crate) fn finish(mut self) -> Vec<LoadError> {
        self.errors.sort();
        self.errors.dedup();
        self.errors.truncate(MAX_ERRORS);
        self.errors
    }

    /// Reads the text as TOML. What is recovered from broken text would only
    /// give rise to further, wrong complaints.
    pub(super) fn table(&mut self) -> Option<DeTable<'a>> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            let at = error.span().map_or(0, |span| span.start);
            self.error(at, error.message(), "");
        }
        errors.is_empty().then(|| table.into_inner())
    }

    /// Reads the whole text as one thing.
    pub(crate) fn parse<T: DeserializeOwned>(&mut self) -> Option<T> {
        let table = self.table()?;
        self.read(&Spanned::new(0..self.text.len(), DeValue::Table(table)))
    }

    /// Reads a value as what it should be, noting everything that is wrong.
    pub(crate) fn read<T: DeserializeOwned>(&mut self, value: &Spanned<DeValue<'_>>) -> Option<T> {
        let whole = match from::<T>(value.clone()) {
            Ok(read) => return Some(read),
            Err(error) => error,
        };
        // Reading stops at the first mistake. All keys are optional, so each
        // value can be read alone in its place, and says its own.
        let mut found = false;
        for (at, alone) in alone(value) {
            if let Err(error) = from::<T>(alone) {
                found = true;
                self.wrong(at, &error);
            }
        }
        if !found {
            self.wrong(value.span().start, &whole);
        }
        None
    }

    fn wrong(&mut self, at: usize, error: &toml::de::Error) {
        let at = error.span().map_or(at, |span| span.start);
        let message = error.message();
        let mut quoted = message.split('`').skip(1).step_by(2);
        let name = quoted.next().unwrap_or("").to_owned();
        let known: Vec<&str> = quoted.collect();
        if message.starts_with("unknown field") {
            let hint = match nearest(&name, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known are {}", known.join(", ")),
            };
            self.error(at, format!("unknown key `{name}`"), hint);
        } else if message.starts_with("unknown variant") {
            let hint = format!("one of {}", known.join(", "));
            self.error(at, format!("`{name}` is not a word for this"), hint);
        } else {
            self.error(at, message, "");
        }
    }
}

fn from<T: DeserializeOwned>(value: Spanned<DeValue<'_>>) -> Result<T, toml::de::Error> {
    T::deserialize(ValueDeserializer::from(value))
}

/// Returns each value inside a value alone, in the tables and lists around it,
/// and where it stands.
fn alone<'i>(value: &Spanned<DeValue<'i>>) -> Vec<(usize, Spanned<DeValue<'i>>)> {
    let around = |inner| Spanned::new(value.span(), inner);
    match value.get_ref() {
        DeValue::Table(table) if !table.is_empty() => table
            .iter()
            .flat_map(|(key, inner)| {
                alone(inner).into_iter().map(|(at, inner)| {
                    let mut table = DeTable::new();
                    table.insert(key.clone(), inner);
                    (at, around(DeValue::Table(table)))
                })
            })
            .collect(),
        DeValue::Array(array) if !array.is_empty() => array
            .iter()
            .flat_map(|inner| {
                alone(inner).into_iter().map(|(at, inner)| {
                    let array: DeArray<'i> = std::iter::once(inner).collect();
                    (at, around(DeValue::Array(array)))
                })
            })
            .collect(),
        _ => vec![(value.span().start, value.clone())],
    }
}

/// Returns the known word that a mistyped one is near to.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    if word.len() > 40 {
        return None;
    }
    known
        .iter()
        .map(|near| (distance(word, near), *near))
        .min()
        .filter(|(distance, near)| *distance <= 2 && *distance < near.len())
        .map(|(_, near)| near)
}

/// Counts the letters to change, add or leave out.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, c) in a.chars().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, d) in b.iter().enumerate() {
            let change = corner + usize::from(c != *d);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}
