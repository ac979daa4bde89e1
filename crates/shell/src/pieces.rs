//! Atoms become pieces: tildes and patterns are found.

use crate::Piece;
use crate::atoms::{Atom, Atoms, Tilde, WordRules};
use crate::cursor::{in_name, starts_name};

impl Atoms {
    pub(crate) fn pieces(self, rules: WordRules) -> Vec<Piece> {
        let mut pieces = Vec::with_capacity(self.0.len());
        let last_close = self.0.iter().rposition(has_close).unwrap_or(0);
        let count = self.0.len();
        let value = match rules.tilde {
            Tilde::Only => None,
            _ => self.0.first().and_then(value_start),
        };
        for (place, atom) in self.0.into_iter().enumerate() {
            match atom {
                Atom::Piece(piece) => pieces.push(piece),
                Atom::Plain(text) if count == 1 && !text.contains(['~', '*', '?', '[']) => {
                    pieces.push(Piece::Text {
                        text,
                        quoted: false,
                    });
                }
                Atom::Quoted(text) => push(&mut pieces, &text, true),
                Atom::Plain(text) => {
                    let closes = place < last_close;
                    let scan = UnquotedText {
                        text: &text,
                        first: place == 0,
                        last: place + 1 == count,
                        value: if place == 0 { value } else { value.map(|_| 0) },
                    };
                    scan.split(rules, closes, &mut pieces);
                }
            }
        }
        drop_empty(&mut pieces);
        pieces
    }
}

fn has_close(atom: &Atom) -> bool {
    matches!(atom, Atom::Plain(text) | Atom::Quoted(text) if text.contains(']'))
}

/// One run of unquoted text.
struct UnquotedText<'a> {
    text: &'a str,
    first: bool,
    last: bool,
    /// Where the value begins, in a word that looks like an assignment.
    value: Option<usize>,
}

impl UnquotedText<'_> {
    /// Splits at tildes and patterns. `closes`: there is a `]` further on.
    fn split(&self, rules: WordRules, closes: bool, pieces: &mut Vec<Piece>) {
        let bytes = self.text.as_bytes();
        let last_close = self.text.rfind(']').unwrap_or(0);
        let (mut from, mut at) = (0, 0);
        while at < bytes.len() {
            let found = match bytes[at] {
                b'~' if self.expands_tilde(at, rules) => self.tilde(at, rules),
                b'*' | b'?' if rules.globs => Some(
                    at + bytes[at..]
                        .iter()
                        .take_while(|b| matches!(b, b'*' | b'?'))
                        .count(),
                ),
                b'[' if rules.globs && (closes || last_close > at) => Some(bracket(bytes, at)),
                _ => None,
            };
            let Some(end) = found else {
                at += 1;
                continue;
            };
            push(pieces, &self.text[from..at], false);
            let text = self.text[at..end].to_owned();
            let tilde = bytes[at] == b'~';
            pieces.push(if tilde {
                Piece::Tilde(text)
            } else {
                Piece::Glob(text)
            });
            (from, at) = (end, end);
        }
        push(pieces, &self.text[from..], false);
    }

    fn expands_tilde(&self, at: usize, rules: WordRules) -> bool {
        if at == 0 {
            return self.first;
        }
        let assigned = self.value == Some(at);
        let colon = self.text.as_bytes()[at - 1] == b':';
        assigned || (colon && (rules.tilde == Tilde::Value || self.value.is_some_and(|v| v < at)))
    }

    /// Returns where `~user` ends, unless a quote or an expansion is in it.
    fn tilde(&self, at: usize, rules: WordRules) -> Option<usize> {
        let colons = rules.tilde == Tilde::Value || self.value.is_some();
        let rest = &self.text[at..];
        let length = rest.find(|c| c == '/' || (colons && c == ':'));
        match length {
            Some(length) => Some(at + length),
            None => self.last.then_some(self.text.len()),
        }
    }
}

/// Returns where the value begins in what looks like an assignment.
fn value_start(atom: &Atom) -> Option<usize> {
    let Atom::Plain(text) = atom else {
        return None;
    };
    let bytes = text.as_bytes();
    if !starts_name(*bytes.first()?) {
        return None;
    }
    let mut at = bytes.iter().position(|&b| !in_name(b))?;
    if bytes[at] == b'[' {
        at += bytes[at..].iter().position(|&b| b == b']')? + 1;
    }
    at += usize::from(bytes.get(at) == Some(&b'+'));
    (bytes.get(at) == Some(&b'=')).then_some(at + 1)
}

/// Returns where `[…]` ends; just after `[` if it ends in another atom.
fn bracket(bytes: &[u8], at: usize) -> usize {
    let mut first = at + 1;
    if matches!(bytes.get(first), Some(b'!' | b'^')) {
        first += 1;
    }
    // A `]` in front is one of the characters. Looking further than a long
    // list of them would make a row of opening brackets slow.
    let limit = bytes.len().min(at + 256);
    let mut end = first + usize::from(bytes.get(first) == Some(&b']'));
    while end < limit && bytes[end] != b']' {
        let class = bytes[end..limit].starts_with(b"[:");
        let length = bytes[end..limit].windows(2).position(|pair| pair == b":]");
        end += if class {
            length.map_or(1, |length| length + 2)
        } else {
            1
        };
    }
    if end < limit { end + 1 } else { at + 1 }
}

fn push(pieces: &mut Vec<Piece>, more: &str, is_quoted: bool) {
    if more.is_empty() && !is_quoted {
        return;
    }
    match pieces.last_mut() {
        Some(Piece::Text { text, quoted }) if *quoted == is_quoted => text.push_str(more),
        _ => pieces.push(Piece::Text {
            text: more.to_owned(),
            quoted: is_quoted,
        }),
    }
}

/// Empty quotes only matter where nothing else keeps the word from vanishing.
fn drop_empty(pieces: &mut Vec<Piece>) {
    if pieces.iter().any(stays) {
        pieces.retain(|piece| !matches!(piece, Piece::Text { text, .. } if text.is_empty()));
    }
}

fn stays(piece: &Piece) -> bool {
    match piece {
        Piece::Text { text, .. } => !text.is_empty(),
        Piece::Parameter(parameter) => parameter.quoted,
        Piece::Command(command) => command.quoted,
        Piece::Arithmetic { quoted, .. } => *quoted,
        _ => false,
    }
}
