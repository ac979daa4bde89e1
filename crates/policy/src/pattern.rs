//! Patterns for one name, as a shell reads them: `*`, `?`, `[a-z]`.

use crate::argument::UNKNOWN;

/// What makes a name a pattern, or not wholly known.
pub(crate) const WILD: [char; 4] = ['*', '?', '[', UNKNOWN];

/// Bytes of a set of letters that are compared with a letter. More are no names
/// that anybody means, and could be any.
const MAX_SET: usize = 256;

/// A pattern that is compared with many names.
pub(crate) struct NamePattern<'a> {
    tokens: Vec<NameToken<'a>>,
    /// What is before and after its only `*`, if nothing else in it is special.
    around: Option<(&'a str, &'a str)>,
}

impl<'a> NamePattern<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let around = text.split_once('*');
        Self {
            tokens: tokens(text).collect(),
            around: around.filter(|(start, end)| !start.contains(WILD) && !end.contains(WILD)),
        }
    }

    /// Returns whether a plain name matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        if let Some((start, end)) = self.around {
            let fits = name.len() >= start.len() + end.len();
            return fits && name.starts_with(start) && name.ends_with(end);
        }
        let is_many = |token: &NameToken<'_>| *token == NameToken::Many;
        let accepts = |token: &NameToken<'_>, letter| token.meets(&NameToken::Letter(letter));
        match_tokens(&self.tokens, name, is_many, accepts)
    }
}

/// Returns whether a name matches tokens, of which some accept one letter and
/// some any number of letters. Only the last of the latter is tried again with
/// one letter more, so that the work is at most tokens times letters.
pub(crate) fn match_tokens<T>(
    tokens: &[T],
    name: &str,
    is_many: impl Fn(&T) -> bool,
    accepts: impl Fn(&T, char) -> bool,
) -> bool {
    let (mut at, mut rest) = (0, name.chars());
    // Behind the last token for many, and what of the name it has not taken yet.
    let mut retry = None;
    loop {
        let letter = rest.clone().next();
        match (tokens.get(at), letter) {
            (Some(token), _) if is_many(token) => {
                at += 1;
                retry = Some((at, rest.clone()));
                continue;
            }
            (Some(token), Some(letter)) if accepts(token, letter) => {
                at += 1;
                rest.next();
                continue;
            }
            (None, None) => return true,
            (Some(_), None) => return false,
            _ => {}
        }
        let Some((start, left)) = &mut retry else {
            return false;
        };
        left.next();
        (at, rest) = (*start, left.clone());
    }
}

/// Returns whether two patterns could match the same name.
pub(crate) fn overlap(a: &str, b: &str) -> bool {
    match (a.contains(WILD), b.contains(WILD)) {
        (false, false) => return a == b,
        (false, true) => return NamePattern::new(b).matches(a),
        (true, false) => return NamePattern::new(a).matches(b),
        (true, true) => {}
    }
    let b: Vec<NameToken<'_>> = tokens(b).collect();
    // Reachable pairs of positions, row by row. There are few rows before none
    // can be reached, however long the pattern is.
    let mut row = vec![false; b.len() + 1];
    row[0] = true;
    for j in 0..b.len() {
        row[j + 1] = row[j] && b[j] == NameToken::Many;
    }
    let mut next = row.clone();
    for x in tokens(a) {
        next[0] = row[0] && x == NameToken::Many;
        for (j, y) in b.iter().enumerate() {
            next[j + 1] = match (&x, y) {
                (NameToken::Many, _) => row[j + 1] || next[j] || row[j],
                (_, NameToken::Many) => next[j] || row[j + 1] || row[j],
                _ => row[j] && x.meets(y),
            };
        }
        std::mem::swap(&mut row, &mut next);
        if !row.contains(&true) {
            return false;
        }
    }
    row[b.len()]
}

/// Returns how many characters of a pattern are spelled out. `[a-z]` and
/// `[!x]` are wide, `[x]` and `[xy]` are not.
pub(crate) fn spelled(pattern: &str) -> usize {
    let mut count = 0;
    let mut rest = pattern;
    // Looked for once: there may be many brackets that are never closed.
    let last = pattern.rfind(']').unwrap_or(0);
    while let Some(next) = rest.chars().next() {
        let closed = pattern.len() - rest.len() < last;
        let set = rest.strip_prefix('[').filter(|_| closed);
        let set = set.and_then(|set| set.split_once(']'));
        if let Some((set, after)) = set {
            let wide = set.contains('-') || set.starts_with(['!', '^', '[']);
            count += usize::from(!wide);
            rest = after;
            continue;
        }
        count += usize::from(!WILD.contains(&next));
        rest = &rest[next.len_utf8()..];
    }
    count
}

/// What one place of a pattern stands for.
#[derive(PartialEq)]
enum NameToken<'a> {
    Many,
    One,
    /// What is between brackets.
    Set(&'a str),
    Letter(char),
}

impl NameToken<'_> {
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (NameToken::Letter(a), NameToken::Letter(b)) => a == b,
            (NameToken::Set(set), NameToken::Letter(letter))
            | (NameToken::Letter(letter), NameToken::Set(set)) => in_set(set, *letter),
            _ => true,
        }
    }
}

/// Reads a pattern; a `*` after another says nothing new and is left out.
fn tokens(text: &str) -> impl Iterator<Item = NameToken<'_>> {
    let mut rest = text;
    let last = text.rfind(']').unwrap_or(0);
    std::iter::from_fn(move || {
        let next = rest.chars().next()?;
        let closed = text.len() - rest.len() < last;
        rest = &rest[next.len_utf8()..];
        Some(match next {
            '*' | UNKNOWN => {
                rest = rest.trim_start_matches(['*', UNKNOWN]);
                NameToken::Many
            }
            '?' => NameToken::One,
            '[' if closed => match rest.split_once(']') {
                Some((set, after)) => {
                    rest = after;
                    NameToken::Set(set)
                }
                None => NameToken::Letter('['),
            },
            letter => NameToken::Letter(letter),
        })
    })
}

/// Returns whether a letter may be in a set. In some languages `[a-z]` has
/// capitals, and a class has more than meets the eye.
fn in_set(set: &str, letter: char) -> bool {
    let (set, negated) = match set.strip_prefix(['!', '^']) {
        Some(set) => (set, true),
        None => (set, false),
    };
    let many = set.len() > MAX_SET;
    if set.is_empty() || many || set.contains(['[', '\\', UNKNOWN]) {
        return true;
    }
    let letters: Vec<char> = set.chars().collect();
    let alike = |a: char, b: char| a.eq_ignore_ascii_case(&b);
    let ranges = letters.windows(3).filter(|range| range[1] == '-');
    let mut ranges = ranges.map(|range| (range[0], range[2]));
    let (lower, upper) = (letter.to_ascii_lowercase(), letter.to_ascii_uppercase());
    let between = |(from, to)| (from..=to).contains(&lower) || (from..=to).contains(&upper);
    match negated {
        true => !letters.contains(&letter),
        false => letters.iter().any(|one| alike(*one, letter)) || ranges.any(between),
    }
}
