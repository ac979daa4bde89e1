//! `cmd.exe`, read conservatively.

use crate::atoms::Atoms;
use crate::cursor::{Cursor, Result};
use crate::reader::WordReader;
use crate::windows::{Separator, WindowsSyntax, joint, separator_sign, wildcard};

/// How the words and commands of `cmd.exe` end.
pub(crate) struct Cmd;

impl WindowsSyntax for Cmd {
    fn split(&self, parser: &Cursor<'_>, at: usize) -> Separator {
        match parser.byte(at) {
            b'\n' => Separator::Sequence(1),
            b'&' if parser.byte(at + 1) == b'&' => Separator::And,
            b'&' => Separator::Sequence(1),
            b'|' if parser.byte(at + 1) == b'|' => Separator::Or,
            b'|' => Separator::Pipe,
            // Parentheses group commands; finding the commands is enough.
            b'(' | b')' => Separator::Sequence(1),
            _ => Separator::None,
        }
    }

    fn blank(&self, parser: &mut Cursor<'_>) {
        loop {
            let rest = &parser.text[parser.pos..parser.end];
            if rest.starts_with([' ', '\t', '\r', ',', ';', '=', '@']) {
                separator_sign(parser);
            } else if rest.starts_with("^\n") || rest.starts_with("^\r\n") {
                joint(parser, rest.find('\n').map_or(1, |at| at + 1));
            } else {
                return;
            }
        }
    }

    fn atom(&self, parser: &mut WordReader<'_>, atoms: &mut Atoms) -> Result<()> {
        match parser.byte(parser.pos) {
            b'"' => quoted(parser, atoms),
            b'^' => {
                parser.pos += 1;
                // A line's end disappears, and what follows it is escaped.
                if !parser.eat("\r\n") {
                    parser.eat("\n");
                }
                let next = parser.character();
                atoms.quoted(next);
            }
            b'%' | b'!' => variable(parser, atoms, false),
            b'*' | b'?' => wildcard(parser, atoms),
            _ => {
                let text = parser.character();
                atoms.plain(text);
            }
        }
        Ok(())
    }
}

/// Reads `"…"`; a line's end closes it too.
fn quoted(parser: &mut WordReader<'_>, atoms: &mut Atoms) {
    parser.pos += 1;
    atoms.quoted("");
    loop {
        let run = parser.run(|b| matches!(b, b'"' | b'%' | b'!' | b'\n'));
        atoms.quoted(run);
        match parser.byte(parser.pos) {
            b'%' | b'!' => variable(parser, atoms, true),
            b'"' => {
                parser.pos += 1;
                return;
            }
            _ => return,
        }
    }
}

/// Reads `%name%`, `!name!`, `%1` or `%%x`; alone the sign is text.
fn variable(parser: &mut WordReader<'_>, atoms: &mut Atoms, quoted: bool) {
    let start = parser.pos;
    let sign = parser.byte(start);
    parser.pos += 1;
    let mut name = parser.run(|b| b == sign || b == b'\n').to_owned();
    if parser.byte(parser.pos) == sign && !name.is_empty() {
        parser.pos += 1;
    } else {
        // A loop's variable has two signs in a file and one on a line.
        parser.pos = start + 1 + usize::from(parser.byte(start + 1) == sign);
        let next = parser.byte(parser.pos);
        if sign == b'!' || !(next.is_ascii_alphanumeric() || next == b'*' || next == b'~') {
            atoms.plain(char::from(sign).encode_utf8(&mut [0; 4]));
            return;
        }
        name = parser.character().to_owned();
    }
    atoms.piece(parser.parameter(name, start, quoted));
}
