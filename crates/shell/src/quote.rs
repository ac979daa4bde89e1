//! Quotes: `'…'`, `"…"`, `$'…'`.

use crate::Piece;
use crate::atoms::Atoms;
use crate::atoms::Quoting;
use crate::cursor::{ParseStop, Result};
use crate::reader::WordReader;

impl WordReader<'_> {
    /// Reads `'…'`, in which nothing means anything.
    pub(crate) fn single(&mut self, atoms: &mut Atoms) -> Result<()> {
        self.pos += 1;
        let text = self.run(|b| b == b'\'');
        if self.pos >= self.end {
            return Err(ParseStop("an unclosed quote"));
        }
        self.pos += 1;
        atoms.quoted(text);
        Ok(())
    }

    /// Reads `"…"`.
    pub(crate) fn double(&mut self, atoms: &mut Atoms) -> Result<()> {
        self.pos += 1;
        atoms.quoted("");
        self.nested(|inner| inner.double_rest(atoms))
    }

    fn double_rest(&mut self, atoms: &mut Atoms) -> Result<()> {
        loop {
            let run = self.run(|b| matches!(b, b'"' | b'$' | b'`' | b'\\'));
            if !run.is_empty() {
                atoms.quoted(run);
            }
            if self.done() {
                return Err(ParseStop("an unclosed quote"));
            }
            match self.peek() {
                b'"' => {
                    self.pos += 1;
                    return Ok(());
                }
                b'$' => self.dollar(atoms, Quoting::Double)?,
                b'`' => self.backquote(atoms, Quoting::Double)?,
                b'\\' => self.double_escape(atoms, b"$`\"\\"),
                _ => {}
            }
        }
    }

    /// Reads a backslash that only escapes some characters.
    pub(crate) fn double_escape(&mut self, atoms: &mut Atoms, special: &[u8]) {
        self.pos += 1;
        if special.contains(&self.byte(self.pos)) {
            let next = self.character();
            atoms.quoted(next);
        } else {
            atoms.quoted("\\");
        }
    }

    /// Reads `$'…'`, from the quote on.
    pub(crate) fn ansi(&mut self, atoms: &mut Atoms) -> Result<()> {
        let start = self.pos;
        self.pos += 1;
        let inside = self.pos;
        loop {
            self.run(|b| b == b'\'' || b == b'\\');
            if self.pos >= self.end {
                return Err(ParseStop("an unclosed quote"));
            }
            if self.byte(self.pos) == b'\'' {
                break;
            }
            self.pos += 1;
            self.character();
        }
        let decoded = decode(&self.text.as_bytes()[inside..self.pos]);
        self.pos += 1;
        match decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
            Some(text) => atoms.quoted(&text),
            None => {
                let span = self.unknown(start, "bytes that are no text");
                atoms.piece(Piece::Unknown(span));
            }
        }
        Ok(())
    }
}

/// Resolves the escapes of `$'…'` as bash does. None if that depends on more
/// than the text.
fn decode(raw: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        let byte = raw[at];
        at += 1;
        if byte != b'\\' || at == raw.len() {
            out.push(byte);
            continue;
        }
        let code = raw[at];
        at += 1;
        let value = match code {
            b'a' => 7,
            b'b' => 8,
            b'e' | b'E' => 27,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'\\' | b'\'' | b'"' | b'?' => code,
            b'0'..=b'7' => octal(raw, &mut at),
            b'x' => match hex(raw, &mut at) {
                Some(value) => value,
                None => {
                    out.push(b'\\');
                    b'x'
                }
            },
            b'u' | b'U' => {
                unicode(raw, code, &mut at, &mut out)?;
                continue;
            }
            b'c' if at < raw.len() => control(raw, &mut at)?,
            _ => {
                out.push(b'\\');
                code
            }
        };
        // A string of C ends here.
        if value == 0 {
            return Some(out);
        }
        out.push(value);
    }
    out.iter()
        .position(|&b| b == 0)
        .inspect(|&end| out.truncate(end));
    Some(out)
}

fn octal(raw: &[u8], at: &mut usize) -> u8 {
    *at -= 1;
    let (value, _) = digits(raw, at, 3, 8);
    value as u8
}

fn hex(raw: &[u8], at: &mut usize) -> Option<u8> {
    let braced = raw.get(*at) == Some(&b'{');
    if !braced {
        let (value, count) = digits(raw, at, 2, 16);
        return (count > 0).then_some(value as u8);
    }
    *at += 1;
    let (value, _) = digits(raw, at, usize::MAX, 16);
    if raw.get(*at) == Some(&b'}') {
        *at += 1;
    }
    Some(value as u8)
}

fn unicode(raw: &[u8], code: u8, at: &mut usize, out: &mut Vec<u8>) -> Option<()> {
    let (value, count) = digits(raw, at, if code == b'u' { 4 } else { 8 }, 16);
    if count == 0 {
        out.extend([b'\\', code]);
        return Some(());
    }
    let character = char::from_u32(value)?;
    out.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
    Some(())
}

fn control(raw: &[u8], at: &mut usize) -> Option<u8> {
    let byte = raw[*at];
    *at += 1;
    if byte == b'\\' && raw.get(*at) == Some(&b'\\') {
        *at += 1;
    }
    match byte {
        b'?' => Some(0x7f),
        _ if byte.is_ascii() => Some(byte.to_ascii_uppercase() & 0x1f),
        _ => None,
    }
}

/// Reads up to `most` digits, and returns their value and how many they were.
fn digits(raw: &[u8], at: &mut usize, most: usize, base: u32) -> (u32, usize) {
    let (mut value, mut count) = (0u32, 0);
    while count < most
        && let Some(digit) = raw.get(*at).and_then(|&b| char::from(b).to_digit(base))
    {
        value = value.wrapping_mul(base).wrapping_add(digit);
        *at += 1;
        count += 1;
    }
    (value, count)
}
