//! `$` and backquotes: what is expanded, and the code inside of it.

use crate::atoms::{Atoms, Quoting};
use crate::cursor::{EXPANSION_NODES, ParseStop, Result, in_name, starts_name};
use crate::reader::WordReader;
use crate::{List, Operation, Parameter, Piece, Span, Substitution};

impl WordReader<'_> {
    /// Reads what `$` begins; alone it is plain text.
    pub(crate) fn dollar(&mut self, atoms: &mut Atoms, quoting: Quoting) -> Result<()> {
        self.grow(EXPANSION_NODES)?;
        self.peek();
        let start = self.pos;
        let next = self.peek_at(1);
        match next {
            b'(' => {
                let piece = self.nested(|inner| inner.parenthesis(quoting.quoted()))?;
                atoms.piece(piece);
            }
            b'{' => {
                let piece = self.nested(|inner| inner.braced(quoting))?;
                atoms.piece(piece);
            }
            b'[' => {
                let piece = self.nested(|inner| inner.bracketed(quoting.quoted()))?;
                atoms.piece(piece);
            }
            b'\'' if quoting == Quoting::Bare => {
                self.bump();
                self.peek();
                self.ansi(atoms)?;
                self.bashism(start);
            }
            b'"' if quoting == Quoting::Bare => {
                self.bump();
                self.peek();
                self.double(atoms)?;
                self.bashism(start);
            }
            _ if in_name(next) || is_parameter(next) => {
                let piece = self.short(quoting.quoted());
                atoms.piece(piece);
            }
            _ => {
                self.bump();
                atoms.text("$", quoting);
            }
        }
        Ok(())
    }

    /// Reads `$name`.
    fn short(&mut self, quoted: bool) -> Piece {
        let start = self.pos;
        let name = self.short_name();
        self.parameter(name, start, quoted)
    }

    /// Makes the value of a variable that began at `start`.
    pub(crate) fn parameter(&self, name: String, start: usize, quoted: bool) -> Piece {
        Piece::Parameter(Box::new(Parameter {
            name,
            index: None,
            operation: Operation::Plain,
            operands: vec![],
            quoted,
            span: self.span(start),
        }))
    }

    /// Reads the name after `$`.
    fn short_name(&mut self) -> String {
        self.bump();
        let first = self.peek();
        if starts_name(first) {
            return self.name();
        }
        self.bump();
        char::from(first).to_string()
    }

    /// Reads `$(…)` or `$((…))`.
    fn parenthesis(&mut self, quoted: bool) -> Result<Piece> {
        let start = self.pos;
        self.bump();
        self.bump();
        if self.peek() == b'(' {
            return match self.double_parenthesis()? {
                Some(word) => Ok(Piece::Arithmetic {
                    expression: Box::new(word),
                    quoted,
                }),
                None => self.late_command(start, quoted),
            };
        }
        let body = self.enclosed(b')')?;
        self.bump();
        Ok(Piece::Command(Substitution {
            body,
            quoted,
            span: self.span(start),
        }))
    }

    /// Reads `$((…) …)`, which bash only parses when it runs.
    fn late_command(&mut self, start: usize, quoted: bool) -> Result<Piece> {
        let from = self.pos;
        let close = self.matching(from)?;
        let body = self.within(from, close, |inner| (inner.grammar.program)(inner));
        self.spend(close - from)?;
        self.pos = close + 1;
        Ok(Piece::Command(Substitution {
            body,
            quoted,
            span: self.span(start),
        }))
    }

    /// Finds the parenthesis that closes, as bash does where it does not parse.
    fn matching(&self, from: usize) -> Result<usize> {
        let bytes = &self.text.as_bytes()[..self.end];
        let (mut depth, mut at, mut quote) = (0usize, from, 0u8);
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if quote != b'\'' => at += 1,
                byte if quote != 0 && byte == quote => quote = 0,
                b'$' | b'`' if quote == b'"' => return Err(ParseStop("ambiguous parentheses")),
                _ if quote != 0 => {}
                byte @ (b'\'' | b'"') => quote = byte,
                // Comments, here-documents and patterns of `case` can have a
                // parenthesis that is none.
                b'`' | b'#' | b'<' => return Err(ParseStop("ambiguous parentheses")),
                b'c' if bytes[at..].starts_with(b"case") => {
                    return Err(ParseStop("ambiguous parentheses"));
                }
                b'(' => depth += 1,
                b')' if depth == 0 => return Ok(at),
                b')' => depth -= 1,
                _ => {}
            }
            at += 1;
        }
        Err(ParseStop("an unclosed parenthesis"))
    }

    /// Reads a list up to the byte that closes it, which it leaves.
    pub(crate) fn enclosed(&mut self, close: u8) -> Result<List> {
        let from = self.pos;
        let pending = std::mem::take(&mut self.pending);
        let closer = std::mem::replace(&mut self.closer, close);
        let list = (self.grammar.substitution)(self)?;
        self.blank();
        if self.peek() != close {
            return Err(ParseStop("an unclosed substitution"));
        }
        if !self.pending.is_empty() {
            return Err(ParseStop("a here-document without its text"));
        }
        if !pending.is_empty() && self.text[from..self.pos].contains('\n') {
            return Err(ParseStop("a line's end before a here-document's text"));
        }
        self.pending = pending;
        self.closer = closer;
        Ok(list)
    }

    /// Reads `<(…)` or `>(…)`.
    pub(crate) fn process(&mut self, atoms: &mut Atoms) -> Result<()> {
        let start = self.pos;
        let input = self.peek() == b'<';
        self.bump();
        self.bump();
        let body = self.nested(|inner| inner.enclosed(b')'))?;
        self.bump();
        self.bashism(start);
        let span = self.span(start);
        atoms.piece(Piece::Process { input, body, span });
        Ok(())
    }

    /// Reads a command in backquotes. Errors inside only show when it runs.
    pub(crate) fn backquote(&mut self, atoms: &mut Atoms, quoting: Quoting) -> Result<()> {
        self.grow(EXPANSION_NODES)?;
        let start = self.pos;
        let close = self.closing_backquote()?;
        let raw = &self.text[start + 1..close];
        let plain = unescape(raw, quoting == Quoting::Double);
        self.pos = close + 1;
        let span = self.span(start);
        let body = self.nested(|outer| match plain {
            None => Ok(outer.within(start + 1, close, |inner| (inner.grammar.program)(inner))),
            Some(text) => outer.apart(&text, span),
        })?;
        let quoted = quoting.quoted();
        atoms.piece(Piece::Command(Substitution { body, quoted, span }));
        Ok(())
    }

    fn closing_backquote(&self) -> Result<usize> {
        let mut at = self.pos + 1;
        while at < self.end {
            match self.byte(at) {
                b'`' => return Ok(at),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        Err(ParseStop("an unclosed backquote"))
    }

    /// Reads a text that is not in the original as it stands.
    fn apart(&mut self, text: &str, span: Span) -> Result<List> {
        self.spend(text.len())?;
        let mut inner = WordReader::new(text, self.posix, self.grammar);
        inner.fixed = Some(span);
        inner.depth = self.depth;
        (inner.fuel, inner.nodes) = (self.fuel, self.nodes);
        std::mem::swap(&mut inner.notes, &mut self.notes);
        let list = (inner.grammar.program)(&mut inner);
        std::mem::swap(&mut inner.notes, &mut self.notes);
        (self.fuel, self.nodes) = (inner.fuel, inner.nodes);
        Ok(list)
    }
}

/// Tells whether a byte is a parameter with a name of one sign.
pub(crate) fn is_parameter(byte: u8) -> bool {
    matches!(byte, b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!')
}

/// Removes the backslashes that backquotes need; none if there are none.
fn unescape(raw: &str, quoted: bool) -> Option<String> {
    let removable = |c: char| matches!(c, '$' | '`' | '\\' | '\n') || (quoted && c == '"');
    if !raw.contains('\\') {
        return None;
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw.chars();
    while let Some(next) = rest.next() {
        if next != '\\' {
            out.push(next);
            continue;
        }
        match rest.next() {
            Some('\n') => {}
            Some(escaped) if removable(escaped) => out.push(escaped),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    (out.len() != raw.len()).then_some(out)
}
