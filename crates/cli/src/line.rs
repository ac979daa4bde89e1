//! One line that a person writes.

use crate::text::safe;

/// The text so far, and where the cursor is in it.
pub(crate) struct LineEditor {
    before: String,
    after: String,
    /// The beginning of a letter whose rest is still to come.
    open: Vec<u8>,
}

/// What became of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineState {
    More,
    Enter,
    GivenUp,
}

impl LineEditor {
    pub(crate) fn new(filled: &str) -> Self {
        Self {
            before: filled.to_owned(),
            after: String::new(),
            open: vec![],
        }
    }

    /// Returns what was written.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.before, self.after).trim().to_owned()
    }

    /// Returns the part around the cursor that fits, with what puts the cursor
    /// back to its place.
    pub(crate) fn shown(&self, room: usize) -> String {
        let before: Vec<char> = visible(&self.before).chars().collect();
        let start = (before.len() + 1).saturating_sub(room);
        let after = visible(&self.after);
        let left = room.saturating_sub(before.len() - start);
        let after: String = after.chars().take(left).collect();
        let mut shown: String = before[start..].iter().collect();
        shown.push_str(&after);
        match after.chars().count() {
            0 => shown,
            back => format!("{shown}\x1b[{back}D"),
        }
    }

    /// Returns the same with the cursor drawn, where no other is.
    pub(crate) fn drawn(&self, room: usize) -> String {
        let before = visible(&self.before);
        let start = (before.chars().count() + 1).saturating_sub(room);
        let before: String = before.chars().skip(start).collect();
        let after = visible(&self.after);
        let mut after = after.chars();
        let under = after.next().unwrap_or(' ');
        let left = room.saturating_sub(before.chars().count() + 1);
        let after: String = after.take(left).collect();
        format!("{before}\x1b[7m{under}\x1b[27m{after}")
    }

    /// Takes what was typed.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> LineState {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match byte {
                27 if !rest.is_empty() => rest = self.escaped(rest),
                3 | 4 | 27 => return LineState::GivenUp,
                b'\r' | b'\n' => return LineState::Enter,
                _ => self.typed(byte),
            }
        }
        LineState::More
    }

    fn typed(&mut self, byte: u8) {
        match byte {
            // Ctrl A, Ctrl E, Ctrl U, Ctrl K.
            1 => self.home(),
            5 => self.end(),
            21 => self.before.clear(),
            11 => self.after.clear(),
            8 | 127 => drop(self.before.pop()),
            32.. => {
                self.open.push(byte);
                if let Ok(letter) = str::from_utf8(&self.open) {
                    self.before.push_str(letter);
                    self.open.clear();
                } else if self.open.len() >= 4 {
                    self.open.clear();
                }
            }
            _ => {}
        }
    }

    /// Does what a key means that sends several bytes; returns what follows.
    fn escaped<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let last = { bytes.iter().skip(1) }.position(|byte| (0x40..=0x7e).contains(byte));
        let Some(last) = last.map(|at| at + 1).filter(|_| b"[O".contains(&bytes[0])) else {
            return &[];
        };
        match &bytes[1..=last] {
            b"D" => self.left(),
            b"C" => self.right(),
            b"H" | b"1~" => self.home(),
            b"F" | b"4~" => self.end(),
            b"3~" => {
                self.right();
                self.before.pop();
            }
            _ => {}
        }
        &bytes[last + 1..]
    }

    fn left(&mut self) {
        if let Some(letter) = self.before.pop() {
            self.after.insert(0, letter);
        }
    }

    fn right(&mut self) {
        if !self.after.is_empty() {
            self.before.push(self.after.remove(0));
        }
    }

    fn home(&mut self) {
        self.after.insert_str(0, &std::mem::take(&mut self.before));
    }

    fn end(&mut self) {
        self.before.push_str(&std::mem::take(&mut self.after));
    }
}

fn visible(text: &str) -> String {
    safe(text).replace('\n', "⏎")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(filled: &str, bytes: &[u8]) -> String {
        let mut line = LineEditor::new(filled);
        assert_eq!(line.take(bytes), LineState::More);
        line.text()
    }

    #[test]
    fn a_line_can_be_changed_anywhere() {
        assert_eq!(typed("", "für".as_bytes()), "für");
        assert_eq!(typed("abc", b"\x7f\x7fx"), "ax");
        assert_eq!(typed("abc", b"\x1b[D\x1b[Dx"), "axbc");
        assert_eq!(typed("abc", b"\x01x\x05y"), "xabcy");
        assert_eq!(typed("abc", b"\x1b[H\x1b[3~"), "bc");
        assert_eq!(typed("abc", b"\x15new"), "new");
        assert_eq!(typed("a\nb", b"c"), "a\nbc");
    }

    #[test]
    fn enter_ends_it_and_escape_gives_it_up() {
        assert_eq!(LineEditor::new("").take(b"a\r"), LineState::Enter);
        assert_eq!(LineEditor::new("").take(b"\x1b"), LineState::GivenUp);
        assert_eq!(LineEditor::new("").take(b"\x03"), LineState::GivenUp);
    }

    #[test]
    fn what_does_not_fit_moves_along() {
        let mut line = LineEditor::new("abcdef");
        assert_eq!(line.shown(10), "abcdef");
        assert_eq!(line.shown(4), "def");
        line.take(b"\x01");
        assert_eq!(line.shown(4), "abcd\x1b[4D");
        assert_eq!(line.drawn(4), "\x1b[7ma\x1b[27mbcd");
        assert_eq!(LineEditor::new("abcdef").drawn(4), "def\x1b[7m \x1b[27m");
        assert_eq!(LineEditor::new("a\nb\x1b").shown(20), "a⏎b⟦U+001B⟧");
    }
}
