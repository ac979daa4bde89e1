//! PowerShell, read conservatively.
//!
//! Only what is needed to find commands and their words. Statements, types
//! and expressions are not told apart from commands: what is not plainly a
//! word is unknown.

use crate::atoms::{Atoms, Quoting};
use crate::cursor::{Cursor, ParseStop, Result};
use crate::reader::WordReader;
use crate::windows::{Separator, WindowsReader, WindowsSyntax, joint, remark, wildcard};
use crate::{List, Piece, Substitution};

/// How PowerShell's words and commands end.
pub(crate) struct PowerShell;

impl WindowsSyntax for PowerShell {
    fn split(&self, parser: &Cursor<'_>, at: usize) -> Separator {
        match parser.byte(at) {
            b'\n' | b';' => Separator::Sequence(1),
            b'&' if parser.byte(at + 1) == b'&' => Separator::And,
            b'|' if parser.byte(at + 1) == b'|' => Separator::Or,
            b'|' => Separator::Pipe,
            // At the start of a command it calls what follows; elsewhere it
            // puts what precedes in the background.
            b'&' => Separator::Sequence(1),
            b')' | b'}' => Separator::Close,
            _ => Separator::None,
        }
    }

    fn blank(&self, parser: &mut Cursor<'_>) {
        loop {
            let rest = &parser.text[parser.pos..parser.end];
            if rest.starts_with([' ', '\t', '\r']) {
                parser.pos += 1;
            } else if rest.starts_with("`\n") || rest.starts_with("`\r\n") {
                joint(parser, rest.find('\n').map_or(1, |at| at + 1));
            } else if rest.starts_with("<#") {
                let length = rest.find("#>").map_or(rest.len(), |at| at + 2);
                remark(parser, length);
            } else if rest.starts_with('#') {
                remark(parser, rest.find('\n').unwrap_or(rest.len()));
            } else {
                return;
            }
        }
    }

    fn atom(&self, parser: &mut WordReader<'_>, atoms: &mut Atoms) -> Result<()> {
        let start = parser.pos;
        match parser.byte(start) {
            b'\'' => single(parser, atoms),
            b'"' => double(parser, atoms),
            b'@' if matches!(parser.byte(start + 1), b'\'' | b'"') => {
                Err(ParseStop("a here-string"))
            }
            b'@' if matches!(parser.byte(start + 1), b'(' | b'{') => {
                parser.pos += 1;
                block(parser, atoms, start, false)
            }
            b'`' => {
                parser.pos += 1;
                escape(parser, atoms);
                Ok(())
            }
            b'$' => dollar(parser, atoms, false),
            b'(' | b'{' => block(parser, atoms, start, false),
            b'*' | b'?' => {
                wildcard(parser, atoms);
                Ok(())
            }
            _ => {
                let text = parser.character();
                // Quotes that look better mean the same.
                if matches!(
                    text,
                    "\u{2018}" | "\u{2019}" | "\u{201c}" | "\u{201d}" | "\u{201e}"
                ) {
                    return Err(ParseStop("typographic quotes"));
                }
                atoms.plain(text);
                Ok(())
            }
        }
    }
}

/// Reads `'…'`, in which `''` is a quote.
fn single(parser: &mut WordReader<'_>, atoms: &mut Atoms) -> Result<()> {
    loop {
        parser.single(atoms)?;
        if parser.byte(parser.pos) != b'\'' {
            return Ok(());
        }
        atoms.quoted("'");
    }
}

fn double(parser: &mut WordReader<'_>, atoms: &mut Atoms) -> Result<()> {
    parser.pos += 1;
    atoms.quoted("");
    loop {
        let run = parser.run(|b| matches!(b, b'"' | b'`' | b'$'));
        atoms.quoted(run);
        if parser.pos >= parser.end {
            return Err(ParseStop("an unclosed quote"));
        }
        match parser.byte(parser.pos) {
            b'$' => dollar(parser, atoms, true)?,
            b'`' => {
                parser.pos += 1;
                escape(parser, atoms);
            }
            _ if parser.byte(parser.pos + 1) == b'"' => {
                parser.pos += 2;
                atoms.quoted("\"");
            }
            _ => {
                parser.pos += 1;
                return Ok(());
            }
        }
    }
}

/// Reads the character after a backtick.
fn escape(parser: &mut WordReader<'_>, atoms: &mut Atoms) {
    let start = parser.pos;
    match parser.character() {
        "n" => atoms.quoted("\n"),
        "t" => atoms.quoted("\t"),
        "r" => atoms.quoted("\r"),
        // Versions differ in which of these they know.
        "\n" | "0" | "a" | "b" | "e" | "f" | "v" | "u" => {
            let span = parser.unknown(start, "an escape that not every version knows");
            atoms.piece(Piece::Unknown(span));
        }
        other => atoms.quoted(other),
    }
}

fn dollar(parser: &mut WordReader<'_>, atoms: &mut Atoms, quoted: bool) -> Result<()> {
    let start = parser.pos;
    parser.pos += 1;
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b':';
    let name = match parser.byte(parser.pos) {
        b'(' => return block(parser, atoms, start, quoted),
        b'{' => {
            let name = parser.run(|b| b == b'}').trim_start_matches('{').to_owned();
            parser.pos = (parser.pos + 1).min(parser.end);
            name
        }
        b'$' | b'?' | b'^' => parser.character().to_owned(),
        _ => parser.run(|b| !is_name(b)).to_owned(),
    };
    if name.is_empty() {
        atoms.text("$", Quoting::Bare);
        return Ok(());
    }
    atoms.piece(parser.parameter(name, start, quoted));
    Ok(())
}

/// Reads `(…)` or `{…}`: whatever runs in there is found as a command.
fn block(parser: &mut WordReader<'_>, atoms: &mut Atoms, start: usize, quoted: bool) -> Result<()> {
    let close = if parser.byte(parser.pos) == b'{' {
        b'}'
    } else {
        b')'
    };
    parser.pos += 1;
    let syntax = &PowerShell;
    let body: List = parser.nested(|words| WindowsReader { words, syntax }.list())?;
    if parser.byte(parser.pos) != close {
        return Err(ParseStop("an unclosed block"));
    }
    parser.pos += 1;
    let span = parser.span(start);
    atoms.piece(Piece::Command(Substitution { body, quoted, span }));
    Ok(())
}
