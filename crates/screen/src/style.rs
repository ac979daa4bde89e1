//! Colours and attributes as escape sequences.

use std::fmt::Write;

use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, Rgb};

/// How characters look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellStyle {
    foreground: Color,
    background: Color,
    underline: Option<Color>,
    flags: Flags,
}

/// Each attribute with what sets it.
const ATTRIBUTES: [(Flags, &str); 11] = [
    (Flags::BOLD, ";1"),
    (Flags::DIM, ";2"),
    (Flags::ITALIC, ";3"),
    (Flags::UNDERLINE, ";4"),
    (Flags::DOUBLE_UNDERLINE, ";4:2"),
    (Flags::UNDERCURL, ";4:3"),
    (Flags::DOTTED_UNDERLINE, ";4:4"),
    (Flags::DASHED_UNDERLINE, ";4:5"),
    (Flags::INVERSE, ";7"),
    (Flags::HIDDEN, ";8"),
    (Flags::STRIKEOUT, ";9"),
];

impl CellStyle {
    pub(crate) fn of(cell: &Cell) -> Self {
        let kept = ATTRIBUTES
            .iter()
            .fold(Flags::empty(), |all, (flag, _)| all | *flag);
        Self {
            foreground: cell.fg,
            background: cell.bg,
            underline: cell.underline_color(),
            flags: cell.flags & kept,
        }
    }

    /// Sets exactly this, whatever was set before.
    pub(crate) fn write(self, out: &mut String) {
        out.push_str("\x1b[0");
        for (flag, code) in ATTRIBUTES {
            if self.flags.contains(flag) {
                out.push_str(code);
            }
        }
        color(out, self.foreground, 30);
        color(out, self.background, 40);
        if let Some(underline) = self.underline {
            color(out, underline, 50);
        }
        out.push('m');
    }
}

impl Default for CellStyle {
    fn default() -> Self {
        Self::of(&Cell::default())
    }
}

/// Adds a colour; 30 is for the foreground, 40 for the background and 50,
/// which has no names for colours, for the line below.
fn color(out: &mut String, color: Color, base: usize) {
    // Writing to a string cannot fail.
    let _ = match color {
        Color::Spec(Rgb { r, g, b }) => write!(out, ";{};2;{r};{g};{b}", base + 8),
        Color::Indexed(index) => write!(out, ";{};5;{index}", base + 8),
        Color::Named(name) => match name as usize {
            index @ 0..8 => write!(out, ";{}", base + index),
            index @ 8..16 => write!(out, ";{}", base + 60 + index - 8),
            // The usual one, which is set already.
            _ => Ok(()),
        },
    };
}
