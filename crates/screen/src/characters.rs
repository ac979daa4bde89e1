//! Keeps characters whole that come in two pieces.
//!
//! The parser below does so too, but loses a character when the next one is
//! cut as well (vte 0.15).

use std::borrow::Cow;

#[derive(Debug, Default)]
pub(crate) struct Characters {
    /// The beginning of a character whose rest is still to come.
    open: Vec<u8>,
}

impl Characters {
    /// Returns what can be read now.
    pub(crate) fn whole<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut bytes = Cow::Borrowed(bytes);
        if !self.open.is_empty() {
            let mut joined = std::mem::take(&mut self.open);
            joined.extend_from_slice(&bytes);
            bytes = Cow::Owned(joined);
        }
        let whole = bytes.len() - open_length(&bytes);
        self.open.extend_from_slice(&bytes[whole..]);
        match bytes {
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[..whole]),
            Cow::Owned(mut bytes) => {
                bytes.truncate(whole);
                Cow::Owned(bytes)
            }
        }
    }

    /// The beginning of a character that was not ended.
    pub(crate) fn open(&self) -> &[u8] {
        &self.open
    }
}

/// Length of the beginning of a character at the end.
fn open_length(bytes: &[u8]) -> usize {
    let is_open = |length: &usize| {
        let Some(start) = bytes.len().checked_sub(*length) else {
            return false;
        };
        std::str::from_utf8(&bytes[start..])
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    (1..=3).find(is_open).unwrap_or(0)
}
