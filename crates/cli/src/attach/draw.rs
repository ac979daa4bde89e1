//! Draws a terminal into another one, with a line of our own below.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use weighlock_screen::{Modes, Screen};

use crate::client::Failure;
use crate::effect::has_colors;

/// What the line below says.
pub(super) struct StatusLine {
    /// No wider than the window.
    pub(super) text: String,
    /// The person's keys go to the program.
    pub(super) typing: bool,
}

/// What is drawn already.
#[derive(Default)]
pub(super) struct Canvas {
    rows: Vec<String>,
    status: String,
    keys: Option<(bool, bool)>,
    window: (usize, usize),
}

impl Canvas {
    /// Draws what is not drawn yet, in a window of so many rows and columns.
    pub(super) fn draw(
        &mut self,
        screen: &Screen,
        status: &StatusLine,
        window: (usize, usize),
    ) -> Result<(), Failure> {
        let mut out = String::from("\x1b[?2026h\x1b[?25l");
        if window != self.window {
            *self = Self {
                window,
                ..Self::default()
            };
            out.push_str("\x1b[0m\x1b[2J");
        }
        let (height, width) = (window.0.saturating_sub(1), window.1);
        let view = screen.view();
        let first = part(view.rows.len(), height, usize::from(view.cursor.row));
        let mut rows = screen.drawn(width);
        let rows = rows.drain(first..).take(height).collect::<Vec<_>>();
        for (at, row) in rows.iter().enumerate() {
            if self.rows.get(at) != Some(row) {
                put(&mut out, at, row);
            }
        }
        for at in rows.len()..self.rows.len() {
            put(&mut out, at, "");
        }
        self.rows = rows;
        self.bottom(&mut out, status, height);
        self.keys(&mut out, &view.modes, status.typing);
        let row = usize::from(view.cursor.row).checked_sub(first);
        let column = usize::from(view.cursor.column);
        if let Some(row) = row.filter(|&row| row < height && column < width && view.cursor.visible)
        {
            let _ = write!(out, "\x1b[{};{}H\x1b[?25h", row + 1, column + 1);
        }
        out.push_str("\x1b[?2026l");
        let mut stdout = io::stdout();
        let written = { stdout.write_all(out.as_bytes()) }.and_then(|()| stdout.flush());
        written.map_err(|error| Failure::new(format!("cannot draw: {error}"), ""))
    }

    fn bottom(&mut self, out: &mut String, status: &StatusLine, height: usize) {
        let style = match (status.typing, has_colors(&io::stdout())) {
            // Violet, as everything that a person does by hand.
            (true, true) => "\x1b[0;1;97;48;5;55m",
            _ => "\x1b[0;7m",
        };
        // Erased before: behind a line as wide as the window, the cursor still
        // is on its last character.
        let line = format!("{style}\x1b[K{}\x1b[0m", status.text);
        if line != self.status {
            let _ = write!(out, "\x1b[{};1H{line}", height + 1);
            self.status = line;
        }
    }

    /// Makes the person's keys come as the program wants them.
    fn keys(&mut self, out: &mut String, modes: &Modes, typing: bool) {
        let wanted = (
            typing && modes.application_cursor,
            typing && modes.bracketed_paste,
        );
        if self.keys != Some(wanted) {
            let letter = |on| if on { 'h' } else { 'l' };
            let (cursor, paste) = (letter(wanted.0), letter(wanted.1));
            let _ = write!(out, "\x1b[?1{cursor}\x1b[?2004{paste}");
            self.keys = Some(wanted);
        }
    }
}

fn put(out: &mut String, at: usize, row: &str) {
    let _ = write!(out, "\x1b[{};1H\x1b[0m\x1b[K{row}", at + 1);
}

/// The first row that is shown where not all fit: so that the cursor is seen.
fn part(rows: usize, height: usize, cursor: usize) -> usize {
    let most = rows.saturating_sub(height);
    (cursor + 1).saturating_sub(height).min(most)
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn the_part_that_is_shown_has_the_cursor() {
        assert_eq!(part(24, 23, 0), 0);
        assert_eq!(part(24, 30, 23), 0);
        assert_eq!(part(50, 20, 49), 30);
        assert_eq!(part(50, 20, 25), 6);
    }
}
