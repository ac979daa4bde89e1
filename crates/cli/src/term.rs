//! The terminal that a person sits at.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;

/// Prints a line of our own. That nobody reads it does not matter.
macro_rules! say {
    ($($word:tt)*) => {{
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", format_args!($($word)*)));
    }};
}
pub(crate) use say;

/// Rows and columns where nobody can say: those of the first terminals.
const USUAL: (usize, usize) = (24, 80);

/// Tells whether a person can be asked.
pub(crate) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Returns rows and columns.
pub(crate) fn size() -> (usize, usize) {
    size_of(std::io::stderr())
}

/// Returns those of the terminal that is written to.
pub(crate) fn size_of(stream: impl AsFd) -> (usize, usize) {
    match rustix::termios::tcgetwinsize(stream) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
            (usize::from(size.ws_row), usize::from(size.ws_col))
        }
        _ => USUAL,
    }
}

/// Asks, and leaves the cursor behind it.
pub(crate) fn prompt(text: &str) {
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "{text}");
    let _ = stderr.flush();
}
