//! Here-documents: texts that stand below the line that asks for them.

use crate::atoms::Quoting;
use crate::atoms::{Atoms, WordRules};
use crate::cursor::{ParseStop, Result};
use crate::reader::{HeredocBody, PendingHeredoc, WordReader};
use crate::{MarkKind, Piece, Word};

/// More than this many on one line, and bash gives up.
const MAX_PENDING: usize = 16;

impl WordReader<'_> {
    /// Takes the delimiter after `<<`, which began at `start`, and reads the body if it has
    /// been found.
    pub(crate) fn here_document(
        &mut self,
        operator: usize,
        strip: bool,
        start: usize,
        delimiter: &Word,
    ) -> Result<Word> {
        let delimiter = delimiter
            .literal()
            .ok_or(ParseStop("a delimiter that is not plain"))?;
        let raw = self.text[start..self.pos].replace("\\\n", "");
        let quoted = raw.contains(['\'', '"', '\\']);
        if self.pending.len() >= MAX_PENDING {
            return Err(ParseStop("too many here-documents"));
        }
        if delimiter.contains('\n') {
            return Err(ParseStop("a delimiter of several lines"));
        }
        self.pending.push(PendingHeredoc {
            operator,
            delimiter,
            quoted,
            strip,
        });
        match self.bodies.get(&operator).copied() {
            Some(body) => self.body_word(body),
            None => Ok(Word::default()),
        }
    }

    /// Finds the bodies that follow a line.
    pub(crate) fn read_bodies(&mut self) {
        for pending in std::mem::take(&mut self.pending) {
            let start = self.pos.min(self.end);
            let end = self.body_end(&pending);
            let PendingHeredoc {
                operator,
                quoted,
                strip,
                ..
            } = pending;
            self.bodies.insert(
                operator,
                HeredocBody {
                    start,
                    end,
                    quoted,
                    strip,
                },
            );
        }
    }

    /// Goes past a body and its delimiter, and returns where the body ends.
    /// A missing delimiter means the end of the text, as in bash.
    fn body_end(&mut self, pending: &PendingHeredoc) -> usize {
        loop {
            let start = self.pos;
            if start >= self.end {
                return self.end;
            }
            let line = self.logical_line(!pending.quoted);
            let line = if pending.strip {
                line.trim_start_matches('\t')
            } else {
                &line
            };
            let Some(rest) = line.strip_prefix(pending.delimiter.as_str()) else {
                continue;
            };
            if rest.is_empty() {
                let after = self.pos;
                let newline = self.text[start..after].ends_with('\n');
                self.pos -= usize::from(newline);
                self.mark(start, MarkKind::Operator);
                self.pos = after;
                return start;
            }
            // Inside a substitution, bash accepts `EOF)` as well.
            if self.closer != 0 && rest.as_bytes().contains(&self.closer) {
                let newline = self.text[start..self.pos].ends_with('\n');
                self.pos -= usize::from(newline) + rest.len();
                self.mark(start, MarkKind::Operator);
                self.bashism(start);
                return start;
            }
        }
    }

    /// Reads a line; where nothing is quoted, a backslash joins the next to it.
    fn logical_line(&mut self, joins: bool) -> String {
        let bytes = &self.text.as_bytes()[..self.end];
        let mut line = String::new();
        loop {
            let rest = &bytes[self.pos..];
            let length = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
            let part = &self.text[self.pos..self.pos + length];
            let slashes = part.bytes().rev().take_while(|&b| b == b'\\').count();
            self.pos = (self.pos + length + 1).min(self.end);
            if !joins || slashes % 2 == 0 || length == rest.len() {
                line.push_str(part);
                return line;
            }
            line.push_str(&part[..part.len() - 1]);
        }
    }

    /// Reads a body. Errors inside only show when it is expanded, and so they
    /// do not spoil the command.
    fn body_word(&mut self, body: HeredocBody) -> Result<Word> {
        let known = self.bodies.len();
        let save = self.save();
        let word = self.within(body.start, body.end, |inner| inner.expanded(body));
        if self.bodies.len() == known {
            return Ok(word);
        }
        // It has here-documents of its own, whose bodies are known only now.
        self.restore(&save);
        self.spend(body.end - body.start)?;
        Ok(self.within(body.start, body.end, |inner| inner.expanded(body)))
    }

    fn expanded(&mut self, body: HeredocBody) -> Word {
        let mut atoms = Atoms::default();
        if body.quoted {
            let text = &self.text[body.start..body.end];
            let stripped = body.strip.then(|| strip_tabs(text));
            atoms.quoted(stripped.as_deref().unwrap_or(text));
        } else if let Err(ParseStop(why)) = self.here_atoms(&mut atoms, body.strip) {
            self.pos = body.end;
            let span = self.unknown(body.start, why);
            atoms.piece(Piece::Unknown(span));
        }
        self.pos = body.end;
        Word {
            pieces: atoms.pieces(WordRules::SUBJECT),
            span: self.span(body.start),
        }
    }

    fn here_atoms(&mut self, atoms: &mut Atoms, strip: bool) -> Result<()> {
        let mut line_start = true;
        while !self.done() {
            if strip && line_start {
                while self.byte(self.pos) == b'\t' {
                    self.pos += 1;
                }
            }
            let start = self.pos;
            line_start = self.peek() == b'\n';
            match self.peek() {
                b'\\' => self.double_escape(atoms, b"$`\\"),
                b'$' => self.dollar(atoms, Quoting::Here)?,
                b'`' => self.backquote(atoms, Quoting::Here)?,
                b'\n' => {
                    self.pos += 1;
                    atoms.quoted("\n");
                }
                0 => {}
                _ => {
                    let run = self.run(|b| matches!(b, b'\\' | b'$' | b'`' | b'\n'));
                    atoms.quoted(run);
                }
            }
            // Bash joins the lines before it looks at them, so even where a
            // backslash would stay as it is: in single quotes, in a comment,
            // in a quoted here-document further in. Other shells do not.
            let read = &self.text[start..self.pos];
            if read.starts_with(['$', '`']) && read.contains("\\\n") {
                let span = self.unknown(start, "a line that goes on inside a here-document");
                atoms.piece(Piece::Unknown(span));
            }
            if strip && self.text[start..self.pos].contains("\n\t") {
                let span = self.unknown(start, "tabs that a here-document drops");
                atoms.piece(Piece::Unknown(span));
            }
        }
        Ok(())
    }
}

fn strip_tabs(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| line.trim_start_matches('\t'))
        .collect()
}
