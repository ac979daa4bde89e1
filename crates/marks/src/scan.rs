//! Parts a terminal's bytes into marks and everything else.

use std::fmt;
use std::ops::Range;

use crate::mark::{Mark, Sign};
use crate::nonce::Nonce;

/// How a mark begins: an operating system command of the number that shells
/// use for prompts.
const OPENING: &[u8] = b"\x1b]133;";

/// A longer one is not ours. A command takes up to 4096 bytes, a path as
/// many, and each may become three by encoding.
const MOST_BYTES: usize = 16 * 1024;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// Reads bytes that are cut anywhere.
pub(crate) struct MarkScanner {
    nonce: Nonce,
    /// What may become a mark.
    held: Vec<u8>,
    /// Where the next byte is in the terminal's output.
    offset: u64,
}

/// A part of the bytes.
pub(crate) enum OutputPart<'a> {
    /// Not a mark of ours. Neighbours may come apart.
    Plain(&'a [u8], Range<u64>),
    Mark(Mark),
}

enum ScanStep {
    More,
    Complete,
    /// The bytes held are no mark, and this byte is none of them.
    Not,
}

impl MarkScanner {
    pub(crate) fn new(nonce: &Nonce, offset: u64) -> Self {
        Self {
            nonce: nonce.clone(),
            held: vec![],
            offset,
        }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(OutputPart<'_>)) {
        let mut rest = bytes;
        while let Some(&byte) = rest.first() {
            if self.held.is_empty() {
                let plain = memchr::memchr(ESCAPE, rest).unwrap_or(rest.len());
                self.plain(&rest[..plain], &mut each);
                rest = &rest[plain..];
                if let Some(after) = rest.get(1..) {
                    self.hold(ESCAPE);
                    rest = after;
                }
                continue;
            }
            match self.step(byte) {
                ScanStep::More => self.hold(byte),
                ScanStep::Complete => {
                    self.hold(byte);
                    self.complete(&mut each);
                }
                ScanStep::Not => {
                    self.let_go(&mut each);
                    continue;
                }
            }
            rest = &rest[1..];
        }
    }

    /// Gives what was held, as nothing more will come.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(OutputPart<'_>)) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            each(OutputPart::Plain(&held, self.before(held.len())));
        }
    }

    fn step(&self, byte: u8) -> ScanStep {
        if self.held.len() < OPENING.len() {
            return match OPENING[self.held.len()] == byte {
                true => ScanStep::More,
                false => ScanStep::Not,
            };
        }
        let escaped = self.held.last() == Some(&ESCAPE);
        match byte {
            b'\\' if escaped => ScanStep::Complete,
            _ if escaped => ScanStep::Not,
            BELL => ScanStep::Complete,
            ESCAPE => ScanStep::More,
            // Our shells encode these, so something else wrote in between.
            0..0x20 | 0x7f => ScanStep::Not,
            _ if self.held.len() == MOST_BYTES => ScanStep::Not,
            _ => ScanStep::More,
        }
    }

    fn hold(&mut self, byte: u8) {
        self.held.push(byte);
        self.offset += 1;
    }

    fn complete(&mut self, each: &mut impl FnMut(OutputPart<'_>)) {
        let held = std::mem::take(&mut self.held);
        let closing = match held.last() {
            Some(&BELL) => 1,
            _ => 2,
        };
        let body = &held[OPENING.len()..held.len() - closing];
        let at = self.before(held.len());
        match Sign::read(body, &self.nonce) {
            Some(sign) => each(OutputPart::Mark(Mark { at, sign })),
            None => each(OutputPart::Plain(&held, at)),
        }
    }

    /// Gives what was held; only an escape at its end may still begin a mark.
    fn let_go(&mut self, each: &mut impl FnMut(OutputPart<'_>)) {
        let held = std::mem::take(&mut self.held);
        let at = self.before(held.len());
        match held.split_last() {
            Some((&ESCAPE, head)) if !head.is_empty() => {
                each(OutputPart::Plain(head, at.start..at.end - 1));
                self.held.push(ESCAPE);
            }
            _ => each(OutputPart::Plain(&held, at)),
        }
    }

    fn plain(&mut self, bytes: &[u8], each: &mut impl FnMut(OutputPart<'_>)) {
        if !bytes.is_empty() {
            self.offset += bytes.len() as u64;
            each(OutputPart::Plain(bytes, self.before(bytes.len())));
        }
    }

    fn before(&self, len: usize) -> Range<u64> {
        self.offset - len as u64..self.offset
    }
}

/// Without what is held, in which the nonce may be.
impl fmt::Debug for MarkScanner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Scan");
        shown.field("offset", &self.offset).finish_non_exhaustive()
    }
}
