//! Sequences in braces: `1..5`, `a..e`, `01..10..3`.

/// Words that one may become. More are not enumerated but called unknown.
pub(crate) const MAX_WORDS: usize = 1000;
/// One character that may mean something, or an atom that means nothing here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Plain(char),
    Atom(usize),
}

/// It would become too many words.
pub(crate) struct TooMany;

pub(crate) type BraceWords = Result<Vec<Vec<Unit>>, TooMany>;

/// Makes the words of `1..5`, `a..e` or `1..9..2`; none if it is none of them.
pub(crate) fn sequence(inside: &[Unit]) -> Result<Option<Vec<Vec<Unit>>>, TooMany> {
    let mut text = String::new();
    for unit in inside {
        match unit {
            Unit::Plain(c) => text.push(*c),
            Unit::Atom(_) => return Ok(None),
        }
    }
    let parts: Vec<&str> = text.split("..").collect();
    let (first, last, step) = match parts[..] {
        [first, last] => (first, last, 1),
        [first, last, step] => match step.parse::<i64>() {
            Ok(step) => (first, last, step.unsigned_abs().max(1)),
            Err(_) => return Ok(None),
        },
        _ => return Ok(None),
    };
    if let (Some(from), Some(to)) = (letter(first), letter(last)) {
        return letters(from, to, step).map(Some);
    }
    let (Ok(from), Ok(to)) = (first.parse::<i64>(), last.parse::<i64>()) else {
        return Ok(None);
    };
    numbers(from, to, step, width(first).max(width(last))).map(Some)
}

fn letter(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [byte] if byte.is_ascii_alphabetic() => Some(*byte),
        _ => None,
    }
}

/// Returns how wide numbers are made: as wide as one with a zero in front.
fn width(text: &str) -> usize {
    let digits = text.trim_start_matches('-');
    if digits.len() > 1 && digits.starts_with('0') {
        text.len()
    } else {
        0
    }
}

fn letters(from: u8, to: u8, step: u64) -> BraceWords {
    // Between the cases there are signs that bash treats in odd ways.
    if from.is_ascii_lowercase() != to.is_ascii_lowercase() {
        return Err(TooMany);
    }
    let all = numbers(from.into(), to.into(), step, 0)?;
    let character = |word: &Vec<Unit>| {
        let digits: String = word.iter().filter_map(plain).collect();
        let byte: u8 = digits.parse().unwrap_or(b'?');
        vec![Unit::Plain(char::from(byte))]
    };
    Ok(all.iter().map(character).collect())
}

fn numbers(from: i64, to: i64, step: u64, width: usize) -> BraceWords {
    let count = from.abs_diff(to) / step;
    if count >= MAX_WORDS as u64 || width > 32 {
        return Err(TooMany);
    }
    let mut words = vec![];
    for place in 0..=count {
        let offset = (place * step) as i64;
        let value = if from <= to {
            from + offset
        } else {
            from - offset
        };
        words.push(
            format!("{value:0width$}")
                .chars()
                .map(Unit::Plain)
                .collect(),
        );
    }
    Ok(words)
}

pub(crate) fn plain(unit: &Unit) -> Option<char> {
    match unit {
        Unit::Plain(c) => Some(*c),
        Unit::Atom(_) => None,
    }
}
