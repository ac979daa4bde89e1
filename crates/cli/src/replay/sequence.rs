//! Follows escape sequences just closely enough to know that none is open.
//!
//! A snapshot of a screen knows nothing of half a sequence: taken there, the
//! other half would become text.

/// More of an open sequence is not looked at.
const MOST_BYTES: usize = 4096;

/// The end of what was written, from where a sequence begins.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    open: String,
}

impl Sequence {
    pub(super) fn feed(&mut self, text: &str) {
        match text.rfind('\x1b') {
            Some(begins) => text[begins..].clone_into(&mut self.open),
            None if self.open.is_empty() => return,
            None => self.open.push_str(text),
        }
        if !is_open(&self.open) {
            self.open.clear();
        } else if self.open.len() > MOST_BYTES {
            self.open = self.open.chars().take(2).collect();
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }
}

fn is_open(text: &str) -> bool {
    let mut rest = text.chars().skip(1);
    match rest.next() {
        None => true,
        // Bell ends the first of these, and cancel and substitute all.
        Some(']') => !rest.any(|c| matches!(c, '\x07' | '\x18' | '\x1a')),
        Some('P' | 'X' | '^' | '_') => !rest.any(|c| matches!(c, '\x18' | '\x1a')),
        Some('[') => !rest.any(ends),
        Some(' '..='/') => rest.next().is_none(),
        Some(_) => false,
    }
}

/// Tells whether a character ends a control sequence.
fn ends(c: char) -> bool {
    matches!(c, '@'..='~' | '\x18' | '\x1a') || !c.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::Sequence;

    fn is_open(pieces: &[&str]) -> bool {
        let mut sequence = Sequence::default();
        pieces.iter().for_each(|piece| sequence.feed(piece));
        sequence.is_open()
    }

    #[test]
    fn half_a_sequence_is_noticed() {
        for pieces in [
            &["a\x1b"][..],
            &["\x1b[", "31"],
            &["\x1b]0;tit"],
            &["\x1b]0;", "tit", "le"],
            &["\x1bP1", "x"],
            &["\x1b("],
            &["\x1b]0;x\x1b"],
        ] {
            assert!(is_open(pieces), "{pieces:?}");
        }
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
            assert!(!is_open(pieces), "{pieces:?}");
        }
    }
}
