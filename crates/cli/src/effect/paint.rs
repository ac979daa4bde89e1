//! Colours, where somebody sees them and did not ask for none.

use std::io::IsTerminal;

use super::Style;

/// Whether a stream is a terminal that has colours, and is to show them.
pub(crate) fn has_colors(stream: &impl IsTerminal) -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stream.is_terminal() && !unwanted && !dumb
}

/// Whether lines are coloured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(bool);

impl Paint {
    /// Colours for a stream, if it is a terminal that has them.
    pub(crate) fn on(stream: &impl IsTerminal) -> Self {
        Self(has_colors(stream))
    }

    pub(crate) fn line(self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Head => "1",
            Style::Hunk => "36",
            Style::Added => "32",
            Style::Removed => "31",
            Style::Plain => "",
        };
        match self.0 && !code.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}
