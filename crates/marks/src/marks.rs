//! The marks in a terminal's bytes.

use crate::mark::Mark;
use crate::nonce::Nonce;
use crate::scan::{MarkScanner, OutputPart};

/// Finds the marks in bytes that are cut anywhere. Forged ones are passed
/// over. Holds no more than one mark.
#[derive(Debug)]
pub struct Marks {
    scan: MarkScanner,
}

impl Marks {
    /// Starts at `offset` of the terminal's output.
    pub fn new(nonce: &Nonce, offset: u64) -> Self {
        Self {
            scan: MarkScanner::new(nonce, offset),
        }
    }

    /// Returns the marks that end in these bytes, which follow those before.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Mark> {
        let mut found = vec![];
        self.scan.feed(bytes, |part| {
            if let OutputPart::Mark(mark) = part {
                found.push(mark);
            }
        });
        found
    }
}
