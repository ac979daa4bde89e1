//! Colours, where somebody sees them and did not ask for none.

use std::io::IsTerminal;

use super::DiffLineKind;

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

    pub(crate) fn line(self, style: DiffLineKind, text: &str) -> String {
        let code = match style {
            DiffLineKind::Head => "1",
            DiffLineKind::Hunk => "36",
            DiffLineKind::Added => "32",
            DiffLineKind::Removed => "31",
            DiffLineKind::Plain => "",
        };
        match self.0 && !code.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}
