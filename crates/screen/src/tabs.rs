//! The columns at which a tab ends.

/// As on every terminal.
const APART: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tabs(Vec<bool>);

impl Tabs {
    pub(crate) fn new(columns: usize) -> Self {
        let mut tabs = Self(vec![]);
        tabs.resize(columns);
        tabs
    }

    pub(crate) fn resize(&mut self, columns: usize) {
        let known = self.0.len().min(columns);
        self.0.truncate(known);
        self.0
            .extend((known..columns).map(|column| column % APART == 0));
    }

    pub(crate) fn set(&mut self, column: usize, stop: bool) {
        if let Some(tab) = self.0.get_mut(column) {
            *tab = stop;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(false);
    }

    /// Sets the usual stops again.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.0.len());
    }

    /// Columns with a stop.
    pub(crate) fn stops(&self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.0.len()).filter(|&column| self.0[column])
    }

    /// Returns where so many tabs lead to, at most to the last column.
    pub(crate) fn forward(&self, column: usize, count: u16) -> usize {
        let last = self.0.len() - 1;
        let skip = usize::from(count.max(1)) - 1;
        let mut stops = self.stops().filter(|&stop| stop > column);
        stops.nth(skip).unwrap_or(last).max(column)
    }

    /// Returns where so many tabs to the left lead to, at most to the first
    /// column.
    pub(crate) fn backward(&self, column: usize, count: u16) -> usize {
        let skip = usize::from(count.max(1)) - 1;
        let mut stops = self.stops().rev().filter(|&stop| stop < column);
        stops.nth(skip).unwrap_or(0)
    }
}
