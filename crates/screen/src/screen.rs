//! A screen that bytes are written to.

use std::fmt;
use std::time::Duration;

use alacritty_terminal::term::TermMode;
use alacritty_terminal::vte::ansi::{Processor, Timeout};

use crate::characters::Characters;
use crate::emulator::Emulator;
use crate::history;
use crate::repeats;
use crate::size::Size;
use crate::snapshot;
use crate::strings::Strings;
use crate::unfinished::UnfinishedOutput;
use crate::view::View;

/// What a terminal shows, and what it showed before.
pub struct Screen {
    size: Size,
    characters: Characters,
    strings: Strings,
    unfinished: UnfinishedOutput,
    parser: Processor<Never>,
    emulator: Emulator,
}

impl Screen {
    /// Returns a blank screen that keeps so many lines above it; fewer where
    /// they are very long.
    pub fn new(size: Size, scrollback_lines: usize) -> Self {
        Self {
            size,
            characters: Characters::default(),
            strings: Strings::default(),
            unfinished: UnfinishedOutput::default(),
            parser: Processor::new(),
            emulator: Emulator::new(size, scrollback_lines),
        }
    }

    /// Takes what the program wrote, cut anywhere. Returns what the terminal
    /// answers, to be written to the program as if it was typed.
    #[must_use = "a program that asked waits for the answer"]
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let bytes = repeats::bounded(self.characters.whole(bytes));
        self.unfinished.feed(&bytes);
        self.strings.feed(&bytes, |piece| {
            self.parser.advance(&mut self.emulator, piece);
        });
        self.emulator.answers.take()
    }

    /// Changes the size. Long lines are broken anew, except on the alternate
    /// screen: its program draws it again.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
        self.emulator.resize(size);
    }

    /// Returns what a person would see now.
    pub fn view(&self) -> View {
        View::of(&self.emulator, self.size)
    }

    /// Tells whether a full-screen program is shown, without looking at its
    /// rows.
    pub fn is_alternate(&self) -> bool {
        self.emulator.term.mode().contains(TermMode::ALT_SCREEN)
    }

    /// Returns the last lines of the scrollback and the screen; on the
    /// alternate screen, which keeps no scrollback, only those shown.
    pub fn history(&self, last: usize) -> Vec<String> {
        history::lines(self.emulator.term.grid(), last)
    }

    /// Returns each row as text in its colours, no wider than so many columns.
    /// A caller that draws a row on another terminal moves to its beginning
    /// first.
    pub fn drawn(&self, columns: usize) -> Vec<String> {
        snapshot::rows(&self.emulator, columns)
    }

    /// Returns bytes that bring a fresh terminal of this size to the same
    /// state, with up to so many of the lines above the screen.
    pub fn snapshot(&mut self, scrollback_lines: usize) -> Vec<u8> {
        snapshot::take(&mut self.emulator, scrollback_lines)
    }

    /// Returns the unfinished end of the output: half of a sequence, and half
    /// of a character. A reader that continues from a snapshot begins with
    /// these.
    pub fn unfinished(&self) -> [&[u8]; 2] {
        [self.unfinished.bytes(), self.characters.open()]
    }
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screen")
            .field("view", &self.view())
            .finish()
    }
}

/// Shows synchronized updates as they come. Holding them back needs a clock,
/// and a buffer that a program may leave open.
#[derive(Debug, Default)]
struct Never;

impl Timeout for Never {
    fn set_timeout(&mut self, _: Duration) {}

    fn clear_timeout(&mut self) {}

    fn pending_timeout(&self) -> bool {
        false
    }
}
