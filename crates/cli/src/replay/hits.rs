//! What was found, and which of it is chosen.

use std::time::Duration;

use super::clock;
use super::find::{Hit, MOST_HITS};
use crate::text::{fit, one_line};

/// Never empty.
pub(super) struct Hits {
    query: String,
    list: Vec<Hit>,
    chosen: usize,
}

impl Hits {
    /// Takes what was found and chooses the first after a time.
    pub(super) fn new(query: String, list: Vec<Hit>, time: Duration) -> Option<Self> {
        let after = list.partition_point(|hit| hit.time <= time);
        let chosen = if after < list.len() { after } else { 0 };
        (!list.is_empty()).then_some(Self {
            query,
            list,
            chosen,
        })
    }

    pub(super) fn is_single(&self) -> bool {
        self.list.len() == 1
    }

    pub(super) fn chosen(&self) -> &Hit {
        &self.list[self.chosen]
    }

    pub(super) fn step(&mut self, by: isize) {
        let last = self.list.len() - 1;
        self.chosen = self.chosen.saturating_add_signed(by).min(last);
    }

    /// Chooses the next one, and after the last the first; or the other way.
    pub(super) fn turn(&mut self, by: isize) {
        let count = self.list.len() as isize;
        self.chosen = (self.chosen as isize + by).rem_euclid(count) as usize;
    }

    /// `2 of 14 for "error"`
    pub(super) fn place(&self) -> String {
        format!(
            "{} of {} for “{}”: {}",
            self.chosen + 1,
            self.count(),
            one_line(&self.query, 30),
            one_line(&self.chosen().line, 200)
        )
    }

    /// Returns as many lines, with the chosen one among them.
    pub(super) fn lines(&self, rows: usize, columns: usize) -> Vec<String> {
        let first = (self.chosen + 1).saturating_sub(rows);
        let hits = self.list.iter().enumerate().skip(first).take(rows);
        let mut lines: Vec<String> = hits
            .map(|(at, hit)| {
                let sign = if at == self.chosen { "›" } else { " " };
                let time = clock::shown(hit.time);
                fit(
                    &format!("{sign} {time:>8}  {}", one_line(&hit.line, columns)),
                    columns,
                )
            })
            .collect();
        lines.resize(rows, String::new());
        lines
    }

    pub(super) fn count(&self) -> String {
        match self.list.len() {
            MOST_HITS => format!("the first {MOST_HITS}"),
            count => count.to_string(),
        }
    }
}
