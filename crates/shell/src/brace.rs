//! Brace expansion: `{a,b}` and `{1..5}`.

use crate::atoms::{Atom, Atoms, WordRules};
use crate::reader::WordReader;
use crate::sequence::{BraceWords, MAX_WORDS, TooMany, Unit, plain, sequence};
use crate::{Piece, Word};

/// Units that all of the words together may have, so that a long word is not
/// multiplied.
const MAX_UNITS: usize = 1 << 18;

impl WordReader<'_> {
    /// Adds the words that a word becomes.
    pub(crate) fn spread(&mut self, start: usize, atoms: Atoms, words: &mut Vec<Word>) {
        let span = self.span(start);
        if !atoms.0.iter().any(has_open) {
            words.push(Word {
                pieces: atoms.pieces(WordRules::ARGUMENT),
                span,
            });
            return;
        }
        let units = units(&atoms);
        match self.braces(&units) {
            Ok(all) if all.len() == 1 && all[0] == units => {
                words.push(Word {
                    pieces: atoms.pieces(WordRules::ARGUMENT),
                    span,
                });
            }
            Ok(all) => {
                self.bashism(start);
                let joined = self.text[start..self.pos].contains("\\\n");
                let apart = self.fixed.is_some() || joined;
                for units in all.iter().filter(|units| !units.is_empty()) {
                    let pieces = match gather(units, &atoms, apart) {
                        Some(atoms) => atoms.pieces(WordRules::MADE),
                        None => vec![Piece::Unknown(self.unknown(start, "braces after a dollar"))],
                    };
                    words.push(Word { pieces, span });
                }
            }
            Err(TooMany) => {
                let span = self.unknown(start, "braces that make too many words");
                words.push(Word {
                    pieces: vec![Piece::Unknown(span)],
                    span,
                });
            }
        }
    }

    /// Tells whether braces would change a word.
    pub(crate) fn expands(&mut self, atoms: &Atoms) -> bool {
        if !atoms.0.iter().any(has_open) {
            return false;
        }
        let units = units(atoms);
        match self.braces(&units) {
            Ok(all) => all.len() != 1 || all[0] != units,
            Err(TooMany) => true,
        }
    }

    /// Expands a word, as long as there is fuel: many words can be multiplied
    /// as much as one.
    fn braces(&mut self, units: &[Unit]) -> BraceWords {
        let budget = MAX_UNITS.min(self.fuel);
        let mut expansion = Expansion { budget };
        let words = expansion.expand(units, 0);
        self.fuel -= budget - expansion.budget;
        words
    }
}

fn has_open(atom: &Atom) -> bool {
    matches!(atom, Atom::Plain(text) if text.contains('{'))
}

fn units(atoms: &Atoms) -> Vec<Unit> {
    let mut units = vec![];
    for (place, atom) in atoms.0.iter().enumerate() {
        match atom {
            Atom::Plain(text) => units.extend(text.chars().map(Unit::Plain)),
            _ => units.push(Unit::Atom(place)),
        }
    }
    units
}

/// Puts a word together again. Returns none if that would create an expansion
/// that was not there (`{$,x}HOME`), or a longer name (`$x{1,2}`).
fn gather(units: &[Unit], atoms: &Atoms, apart: bool) -> Option<Atoms> {
    let mut out = Atoms::default();
    for (at, unit) in units.iter().enumerate() {
        let next = units.get(at + 1);
        match unit {
            Unit::Plain('$') if next.is_some_and(|next| !separates(next)) => return None,
            Unit::Plain(c) => out.plain(c.encode_utf8(&mut [0; 4])),
            Unit::Atom(place) => {
                let atom = &atoms.0[*place];
                if is_short(atom, apart)
                    && next
                        .and_then(plain)
                        .is_some_and(|c| c.is_alphanumeric() || c == '_')
                {
                    return None;
                }
                out.0.push(atom.clone());
            }
        }
    }
    Some(out)
}

/// Tells whether `$` in front of a unit stays a dollar.
fn separates(unit: &Unit) -> bool {
    matches!(
        unit,
        Unit::Plain('/' | '.' | ',' | ':' | '=' | '%' | '+' | '~' | '^' | ']' | '}')
    )
}

/// Tells whether an atom may be `$name`, without braces around the name.
/// `apart`: spans do not tell.
fn is_short(atom: &Atom, apart: bool) -> bool {
    match atom {
        Atom::Piece(Piece::Parameter(parameter)) => {
            let name = parameter.name.as_str();
            !parameter.quoted
                && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && (apart || parameter.span.end - parameter.span.start < name.len() + 3)
        }
        _ => false,
    }
}

/// The work that may still be done.
struct Expansion {
    budget: usize,
}

impl Expansion {
    fn spend(&mut self, units: usize) -> Result<(), TooMany> {
        self.budget = self.budget.checked_sub(units).ok_or(TooMany)?;
        Ok(())
    }

    /// Does what bash does, in its order: the first pair of braces that
    /// closes, what is inside, what follows.
    fn expand(&mut self, mut units: &[Unit], depth: usize) -> BraceWords {
        if depth > 50 {
            return Err(TooMany);
        }
        let mut words = vec![vec![]];
        loop {
            let Some((open, close)) = self.pair(units)? else {
                return self.product(words, vec![units.to_vec()]);
            };
            words = self.product(words, vec![units[..open].to_vec()])?;
            let inside = &units[open + 1..close];
            let made = self.inside(inside, depth)?;
            let whole = vec![units[open..=close].to_vec()];
            words = self.product(words, made.unwrap_or(whole))?;
            units = &units[close + 1..];
        }
    }

    /// Finds the first brace that has a partner with a comma or `..` between.
    fn pair(&mut self, units: &[Unit]) -> Result<Option<(usize, usize)>, TooMany> {
        for open in 0..units.len() {
            if units[open] != Unit::Plain('{') {
                continue;
            }
            // Bash leaves `{}` alone at the start of a word, and after a blank,
            // which here can only be a quoted one.
            let empty = units.get(open + 1) == Some(&Unit::Plain('}'));
            if empty && open == 0 {
                continue;
            }
            self.spend(units.len() - open)?;
            let Some(close) = partner(units, open + 1) else {
                continue;
            };
            if empty && matches!(units[open - 1], Unit::Atom(_)) {
                return Err(TooMany);
            }
            return Ok(Some((open, close)));
        }
        Ok(None)
    }

    /// Expands what is between braces; none if that is plain text.
    fn inside(&mut self, inside: &[Unit], depth: usize) -> Result<Option<Vec<Vec<Unit>>>, TooMany> {
        // Bash looks for any comma, even one in inner braces.
        if !inside.contains(&Unit::Plain(',')) {
            return sequence(inside);
        }
        let mut words = vec![];
        for part in split(inside) {
            words.extend(self.expand(part, depth + 1)?);
            if words.len() > MAX_WORDS {
                return Err(TooMany);
            }
        }
        Ok(Some(words))
    }

    fn product(&mut self, left: Vec<Vec<Unit>>, right: Vec<Vec<Unit>>) -> BraceWords {
        if left.len() * right.len() > MAX_WORDS {
            return Err(TooMany);
        }
        let mut words = Vec::with_capacity(left.len() * right.len());
        for first in &left {
            for second in &right {
                self.spend(first.len() + second.len())?;
                words.push([first.as_slice(), second].concat());
            }
        }
        Ok(words)
    }
}

fn partner(units: &[Unit], from: usize) -> Option<usize> {
    let (mut level, mut separated) = (0usize, false);
    for at in from..units.len() {
        match units[at] {
            Unit::Plain('}') if level == 0 && separated => return Some(at),
            Unit::Plain('{') => level += 1,
            Unit::Plain('}') => level = level.saturating_sub(1),
            Unit::Plain(',') if level == 0 => separated = true,
            Unit::Plain('.') if level == 0 && units.get(at + 1) == Some(&Unit::Plain('.')) => {
                separated |= units.get(at + 2) != Some(&Unit::Plain('}'));
            }
            _ => {}
        }
    }
    None
}

/// Splits at commas outside of inner braces.
fn split(units: &[Unit]) -> Vec<&[Unit]> {
    let (mut parts, mut level, mut from) = (vec![], 0usize, 0);
    for (at, unit) in units.iter().enumerate() {
        match unit {
            Unit::Plain('{') => level += 1,
            Unit::Plain('}') => level = level.saturating_sub(1),
            Unit::Plain(',') if level == 0 => {
                parts.push(&units[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&units[from..]);
    parts
}
