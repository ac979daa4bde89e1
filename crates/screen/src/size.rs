//! How large a screen is.

use alacritty_terminal::grid::Dimensions;
use serde::{Deserialize, Serialize};

/// The columns and rows of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawSize")]
pub struct Size {
    columns: u16,
    rows: u16,
}

/// A size that no screen has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a screen has {LEAST_COLUMNS} to {MOST} columns and 1 to {MOST} rows")]
pub struct SizeError;

/// A wide character takes two columns and has to fit.
const LEAST_COLUMNS: u16 = 2;

/// More than the largest monitor shows, and a million cells at most.
const MOST: u16 = 1000;

impl Size {
    /// Returns the size, if a screen can have it.
    pub fn new(columns: u16, rows: u16) -> Result<Self, SizeError> {
        if (LEAST_COLUMNS..=MOST).contains(&columns) && (1..=MOST).contains(&rows) {
            Ok(Self { columns, rows })
        } else {
            Err(SizeError)
        }
    }

    /// How many characters fit beside each other.
    pub fn columns(self) -> u16 {
        self.columns
    }

    /// How many lines fit below each other.
    pub fn rows(self) -> u16 {
        self.rows
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSize {
    columns: u16,
    rows: u16,
}

impl TryFrom<RawSize> for Size {
    type Error = SizeError;

    fn try_from(raw: RawSize) -> Result<Self, SizeError> {
        Self::new(raw.columns, raw.rows)
    }
}

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        usize::from(self.rows)
    }

    fn columns(&self) -> usize {
        usize::from(self.columns)
    }
}
