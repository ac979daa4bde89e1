//! What a person would see.

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;
use alacritty_terminal::term::TermMode;
use serde::{Deserialize, Serialize};

use crate::emulator::Emulator;
use crate::glyph;
use crate::size::Size;

/// A screen at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// How large it is.
    pub size: Size,
    /// The text of each row, from the top, without blanks at its end.
    pub rows: Vec<String>,
    /// Where the program writes next.
    pub cursor: Cursor,
    /// The name the program gave its window; empty if none.
    pub title: String,
    /// A full-screen program is shown instead of the lines before it.
    pub alternate: bool,
    /// What the program asked the terminal for.
    pub modes: Modes,
}

/// A place on the screen, counted from 0 at the top left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Rows above it.
    pub row: u16,
    /// Columns to its left.
    pub column: u16,
    /// The program lets it be seen.
    pub visible: bool,
}

/// What a program asked for that decides how it is to be typed to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modes {
    /// Arrow keys are sent as `ESC O A` instead of `ESC [ A`.
    pub application_cursor: bool,
    /// The keys of the number pad are sent as sequences.
    pub application_keypad: bool,
    /// Pasted text is marked as such.
    pub bracketed_paste: bool,
    /// The program wants to hear when its window is looked at.
    pub focus: bool,
    /// What the program wants to hear of the mouse.
    pub mouse: Mouse,
}

/// What a program wants to hear of the mouse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mouse {
    /// Nothing.
    #[default]
    Off,
    /// Buttons.
    Click,
    /// Buttons, and movement while one is held.
    Drag,
    /// Everything.
    Motion,
}

impl View {
    pub(crate) fn of(emulator: &Emulator, size: Size) -> Self {
        let grid = emulator.term.grid();
        let mode = *emulator.term.mode();
        let rows = (0..grid.screen_lines())
            .map(|row| {
                let mut text = String::new();
                glyph::text(grid, Line(row as i32), &mut text);
                text.truncate(text.trim_end_matches(' ').len());
                text
            })
            .collect();
        let point = grid.cursor.point;
        View {
            size,
            rows,
            cursor: Cursor {
                row: place(point.line.0.unsigned_abs() as usize),
                column: place(point.column.0),
                visible: mode.contains(TermMode::SHOW_CURSOR),
            },
            title: emulator.title.text().to_owned(),
            alternate: mode.contains(TermMode::ALT_SCREEN),
            modes: Modes::of(mode),
        }
    }
}

impl Modes {
    pub(crate) fn of(mode: TermMode) -> Self {
        Self {
            application_cursor: mode.contains(TermMode::APP_CURSOR),
            application_keypad: mode.contains(TermMode::APP_KEYPAD),
            bracketed_paste: mode.contains(TermMode::BRACKETED_PASTE),
            focus: mode.contains(TermMode::FOCUS_IN_OUT),
            mouse: if mode.contains(TermMode::MOUSE_MOTION) {
                Mouse::Motion
            } else if mode.contains(TermMode::MOUSE_DRAG) {
                Mouse::Drag
            } else if mode.contains(TermMode::MOUSE_REPORT_CLICK) {
                Mouse::Click
            } else {
                Mouse::Off
            },
        }
    }
}

/// Sizes are checked, so places fit.
fn place(value: usize) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}
