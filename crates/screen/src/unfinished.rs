//! Follows escape sequences just closely enough to know what is begun and not
//! ended.
//!
//! A snapshot of a screen knows nothing of half a sequence: without it, the
//! other half would become text.

/// More of a sequence is not kept; the strings that are longer mean nothing.
const MOST_BYTES: usize = 4096;

const ESCAPE: u8 = 0x1B;

/// The end of the output, from the start of an unfinished sequence.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedOutput {
    bytes: Vec<u8>,
}

impl UnfinishedOutput {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        match memchr::memrchr(ESCAPE, bytes) {
            Some(begins) if is_open(&bytes[begins..]) => {
                self.bytes.clear();
                self.bytes.extend_from_slice(&bytes[begins..]);
            }
            Some(_) => self.bytes.clear(),
            None if self.bytes.is_empty() => return,
            None => {
                self.bytes.extend_from_slice(bytes);
                if !is_open(&self.bytes) {
                    self.bytes.clear();
                }
            }
        }
        if self.bytes.len() > MOST_BYTES {
            self.bytes.truncate(2);
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

fn is_open(bytes: &[u8]) -> bool {
    let (kind, rest) = match bytes {
        [_, kind, rest @ ..] => (kind, rest),
        _ => return true,
    };
    match kind {
        // Bell ends the first of these, and cancel and substitute all.
        b']' => !rest.iter().any(|byte| matches!(byte, 0x07 | 0x18 | 0x1A)),
        b'P' | b'X' | b'^' | b'_' => !rest.iter().any(|byte| matches!(byte, 0x18 | 0x1A)),
        b'[' => !rest.iter().any(ends),
        b' '..=b'/' => rest.is_empty(),
        _ => false,
    }
}

/// Tells whether a byte ends a control sequence.
fn ends(byte: &u8) -> bool {
    matches!(byte, b'@'..=b'~' | 0x18 | 0x1A) || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(pieces: &[&str]) -> String {
        let mut sequence = UnfinishedOutput::default();
        pieces
            .iter()
            .for_each(|piece| sequence.feed(piece.as_bytes()));
        String::from_utf8(sequence.bytes().to_vec()).unwrap()
    }

    #[test]
    fn half_a_sequence_is_noticed() {
        for (pieces, expected) in [
            (&["a\x1b"][..], "\x1b"),
            (&["\x1b[", "31"], "\x1b[31"),
            (&["a\x1b]0;tit"], "\x1b]0;tit"),
            (&["\x1b]0;", "tit", "le"], "\x1b]0;title"),
            (&["\x1bP1", "x"], "\x1bP1x"),
            (&["\x1b("], "\x1b("),
            (&["\x1b]0;x\x1b"], "\x1b"),
        ] {
            assert_eq!(left(pieces), expected);
        }
        let long = "x".repeat(5000);
        assert_eq!(left(&["\x1b]", &long]), "\x1b]");
    }

    #[test]
    fn a_whole_one_is_over() {
        for pieces in [
            &["plain"][..],
            &["\x1b[", "31", "m"],
            &["\x1b]0;tit", "le\x07"],
            &["\x1b]0;x\x1b", "\\"],
            &["\x1bP1", "x\x1b\\"],
            &["\x1b(", "B"],
            &["\x1b7", "x"],
        ] {
            assert_eq!(left(pieces), "");
        }
    }
}
