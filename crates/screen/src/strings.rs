//! Cuts strings that a program sends to its terminal and never ends.
//!
//! The parser below keeps a whole operating system command (`ESC ]`) in
//! memory until it ends. This follows the bytes just closely enough to know
//! when one is open, and lets no more than its beginning through.

/// Titles and colours are much shorter.
const MOST_BYTES: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Strings {
    state: StringState,
}

#[derive(Debug, Default, Clone, Copy)]
enum StringState {
    #[default]
    Text,
    Escape,
    /// Inside of a string, of which so many bytes were let through.
    String(usize),
}

const BELL: u8 = 0x07;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1A;
const ESCAPE: u8 = 0x1B;

impl Strings {
    /// Passes on what is let through, in order.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut pass: impl FnMut(&[u8])) {
        let mut rest = bytes;
        // What was looked at and not yet passed on.
        let mut from = 0;
        while from < rest.len() {
            match self.state {
                StringState::Text => match memchr::memchr(ESCAPE, &rest[from..]) {
                    Some(at) => {
                        from += at + 1;
                        self.state = StringState::Escape;
                    }
                    None => from = rest.len(),
                },
                StringState::Escape => {
                    self.state = after_escape(rest[from]);
                    from += 1;
                }
                StringState::String(length) => {
                    let run = run_length(&rest[from..]);
                    let kept = run.min(MOST_BYTES - length);
                    if kept < run {
                        pass(&rest[..from + kept]);
                        rest = &rest[from + run..];
                        from = 0;
                    } else {
                        from += run;
                    }
                    self.state = StringState::String(length + kept);
                    if let Some(&end) = rest.get(from) {
                        self.state = if end == ESCAPE {
                            StringState::Escape
                        } else {
                            StringState::Text
                        };
                        from += 1;
                    }
                }
            }
        }
        pass(rest);
    }
}

/// Bytes before the one that ends the string.
fn run_length(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|byte| matches!(*byte, BELL | CANCEL | SUBSTITUTE | ESCAPE))
        .unwrap_or(bytes.len())
}

fn after_escape(byte: u8) -> StringState {
    match byte {
        b']' => StringState::String(0),
        CANCEL | SUBSTITUTE => StringState::Text,
        // Controls are carried out, and the sequence goes on.
        0x00..=0x1F | 0x7F.. => StringState::Escape,
        _ => StringState::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &[u8], expected: &[u8]) {
        for size in [1, 2, 3, 1000, input.len()] {
            let mut strings = Strings::default();
            let mut passed = vec![];
            for piece in input.chunks(size) {
                strings.feed(piece, |bytes| passed.extend_from_slice(bytes));
            }
            assert!(passed == expected, "in pieces of {size}");
        }
    }

    #[test]
    fn ordinary_bytes_pass_unchanged() {
        let bytes = b"a\x1b[1mb\x1b]0;title\x07c\x1b]0;t\x1b\\d\x1b\x1b]2;x\x18\xff";
        check(bytes, bytes);
    }

    #[test]
    fn long_strings_are_cut_and_what_follows_is_kept() {
        for end in [
            &b"\x07after"[..],
            b"\x1b\\after",
            b"\x18after",
            b"\x1b]0;next\x07",
        ] {
            let input = [b"\x1b]", &[b'x'; 10_000][..], end].concat();
            let expected = [b"\x1b]", &[b'x'; MOST_BYTES][..], end].concat();
            check(&input, &expected);
        }
    }
}
