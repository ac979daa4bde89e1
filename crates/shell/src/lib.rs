//! Parses shell text as the shell would.
//!
//! Total: any text gives a [`Script`], and what is not understood is said.
//!
//! ```
//! use weighlock_shell::{CommandKind, Dialect, parse};
//!
//! let script = parse("r\\m -rf \"$HOME\"/{a,b}", Dialect::Bash);
//! let CommandKind::Simple(command) = &script.body.items[0].pipeline.stages[0].kind else {
//!     panic!("it is a simple command");
//! };
//! assert_eq!(command.words[0].literal().as_deref(), Some("rm"));
//! assert_eq!(command.words.len(), 4);
//! assert!(script.unknowns.is_empty());
//!
//! // A policy must assume the worst when something is not understood.
//! assert_eq!(parse("echo 'open", Dialect::Bash).unknowns[0].why, "an unclosed quote");
//! ```

mod arithmetic;
mod assign;
mod atoms;
mod brace;
mod cmd;
mod command;
mod compound;
mod condition;
mod cursor;
mod dollar;
mod grammar;
mod heredoc;
mod list;
mod operand;
mod parameter;
mod pieces;
mod powershell;
mod quote;
mod reader;
mod redirect;
mod script;
mod sequence;
mod visit;
mod windows;
mod word;

use cmd::Cmd;
use grammar::{CommandReader, GRAMMAR};
use powershell::PowerShell;
use reader::WordReader;
pub use script::*;
pub use visit::Visit;
use windows::{WindowsReader, WindowsSyntax};

/// Why a text is not read to its end that has too much in it.
pub const TOO_COMPLEX: &str = "a text that is too complex to analyse";

/// Longer texts are no commands that anyone wrote.
const MAX_BYTES: usize = 1 << 20;

/// Reads a text. Runs nothing, and always comes to an end.
pub fn parse(text: &str, dialect: Dialect) -> Script {
    let mut reader = WordReader::new(text, dialect == Dialect::Posix, GRAMMAR);
    let words = &mut reader;
    let body = if text.len() > MAX_BYTES {
        words.nothing("a text that is too long")
    } else if text.contains('\0') {
        words.nothing("a text with a zero byte")
    } else {
        match dialect {
            Dialect::Bash | Dialect::Posix => CommandReader { words }.program(),
            Dialect::PowerShell => read_windows(words, &PowerShell),
            Dialect::Cmd => read_windows(words, &Cmd),
        }
    };
    let mut notes = reader.into_cursor().notes;
    // The text of a here-document is read before the rest of its line.
    notes.marks.sort_by_key(|(span, _)| span.start);
    let (marks, bashisms, unknowns) = (notes.marks, notes.bashisms, notes.unknowns);
    Script {
        dialect,
        body,
        marks,
        bashisms,
        unknowns,
    }
}

fn read_windows(words: &mut WordReader<'_>, syntax: &'static dyn WindowsSyntax) -> List {
    WindowsReader { words, syntax }.program()
}
