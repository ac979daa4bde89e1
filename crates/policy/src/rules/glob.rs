//! Patterns for words and for paths.
//!
//! A word pattern knows `*` only. A path pattern also knows `?`, `[a-z]`,
//! `{a,b}` and `**` for any number of directories. Both take time linear in
//! what they are compared with, but for one factor of the pattern's length.
//!
//! A path in a command can be a pattern itself (`rm *.log`) or mean everything
//! below it (`rm -r build`). Whether such a path meets a rule's pattern is not
//! known before it runs; [`Glob::meets`] says so.

use super::Match;
use crate::pattern::match_tokens;
use crate::{Part, Path};

/// More alternatives than anybody writes by hand.
const MAX_ALTERNATIVES: usize = 64;

/// A pattern for one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WordPattern {
    /// This text.
    Exact(String),
    /// Texts with anything between them; at least two.
    Pieces(Vec<String>),
}

impl WordPattern {
    /// Reads a pattern: `*` stands for anything, also nothing.
    pub(crate) fn new(pattern: &str) -> Self {
        Self::from_pieces(pattern.split('*').map(str::to_owned).collect())
    }

    /// Puts a pattern together from the texts between its stars.
    pub(crate) fn from_pieces(mut pieces: Vec<String>) -> Self {
        if pieces.len() == 1 {
            Self::Exact(pieces.remove(0))
        } else {
            Self::Pieces(pieces)
        }
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == text,
            Self::Pieces(pieces) => {
                let (first, rest) = pieces.split_first().expect("at least two");
                let (last, middle) = rest.split_last().expect("at least two");
                let Some(mut text) = text.strip_prefix(first.as_str()) else {
                    return false;
                };
                for piece in middle {
                    match text.find(piece.as_str()) {
                        Some(at) => text = &text[at + piece.len()..],
                        None => return false,
                    }
                }
                text.ends_with(last.as_str())
            }
        }
    }

    /// Returns whether it matches every text.
    pub(crate) fn is_any(&self) -> bool {
        matches!(self, Self::Pieces(pieces) if pieces.iter().all(String::is_empty))
    }

    /// Returns the text if there is only one.
    pub(crate) fn exact(&self) -> Option<&str> {
        match self {
            Self::Exact(text) => Some(text),
            Self::Pieces(_) => None,
        }
    }
}

impl std::fmt::Display for WordPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exact(text) => f.write_str(text),
            Self::Pieces(pieces) => f.write_str(&pieces.join("*")),
        }
    }
}

/// A pattern for paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Glob {
    text: String,
    /// What it is relative to.
    base: GlobBase,
    /// One for each way to choose among `{a,b}`.
    ways: Vec<Vec<PathSegment>>,
}

/// What the beginning of a path pattern says about where it applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GlobBase {
    /// `/etc/**`
    Root,
    /// `~/.ssh/**`
    Home,
    /// `src/**`
    Sandbox,
    /// `**/x`
    Anywhere,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathSegment {
    /// `**`
    Deep,
    /// A name without patterns: most are.
    Exact(String),
    Name(Vec<GlobToken>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobToken {
    Char(char),
    One,
    Any,
    Class {
        ranges: Vec<(char, char)>,
        not: bool,
    },
}

/// What is around a command: where relative path patterns start, both clean
/// and absolute, and its text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bases<'a> {
    pub(crate) root: Option<&'a str>,
    pub(crate) home: Option<&'a str>,
    pub(crate) text: &'a str,
}

impl Bases<'_> {
    /// Returns whether patterns in a part's paths may come from variables or
    /// substitutions. Those can stand for more than file names do: `..`, `/`.
    pub(crate) fn varies(&self, part: &Part) -> bool {
        let own = self.text.get(part.span.start..part.span.end);
        let own = own.filter(|own| !own.is_empty());
        own.unwrap_or(self.text).contains(['$', '`'])
    }
}

impl Glob {
    /// Returns whether it says nothing about where something is.
    pub(crate) fn is_everything(&self) -> bool {
        self.text == "**"
    }

    /// Reads a pattern, or says what is wrong with it.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        if pattern.trim().is_empty() {
            return Err("the path pattern is empty".into());
        }
        let (base, rest) = if pattern == "~" {
            (GlobBase::Home, "")
        } else if let Some(rest) = pattern.strip_prefix("~/") {
            (GlobBase::Home, rest)
        } else if let Some(rest) = pattern.strip_prefix('/') {
            (GlobBase::Root, rest)
        } else if pattern == "**" || pattern.starts_with("**/") {
            (GlobBase::Anywhere, pattern)
        } else {
            (
                GlobBase::Sandbox,
                pattern.strip_prefix("./").unwrap_or(pattern),
            )
        };
        if rest.split('/').any(|segment| segment == "..") {
            return Err(format!(
                "`{pattern}` contains `..`; paths are compared without it"
            ));
        }
        let ways = expand(rest)?
            .iter()
            .map(|way| segments(way))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            text: pattern.to_owned(),
            base,
            ways,
        })
    }

    /// Compares with a path that may be a pattern itself, or `deep`. `varies`
    /// says that such a pattern can stand for any path.
    pub(crate) fn meets(&self, path: &Path, varies: bool, bases: Bases<'_>) -> Match {
        let (path, deep) = (path.path.as_str(), path.deep);
        if varies && path.contains(WILD) {
            return Match::Perhaps;
        }
        let Some(path) = self.base.cut(path, bases) else {
            return Match::No;
        };
        let names: Vec<&str> = names(path).collect();
        // `.*` has meant `..` too in many shells.
        let up = names
            .iter()
            .any(|name| name.starts_with('.') && name[1..].starts_with(WILD));
        if self.ways.iter().any(|way| walk(way, &names)) {
            return if up { Match::Perhaps } else { Match::Yes };
        }
        let pattern = names.iter().any(|name| name.contains(WILD));
        if (pattern || deep) && self.ways.iter().any(|way| could(way, &names, deep)) {
            return Match::Perhaps;
        }
        Match::No
    }

    /// Compares with a path as it is.
    pub(crate) fn matches(&self, path: &SplitPath<'_>) -> bool {
        (self.base == GlobBase::Anywhere || self.base == path.base)
            && self.ways.iter().any(|way| walk(way, &path.names))
    }

    /// Returns whether a part of it is this very name.
    pub(crate) fn names(&self, name: &str) -> bool {
        let mut segments = self.ways.iter().flatten();
        segments.any(|segment| matches!(segment, PathSegment::Exact(exact) if exact == name))
    }

    /// Returns it as it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

/// A path relative to the sandbox, or `~/…`, or absolute, taken apart.
pub(crate) struct SplitPath<'p> {
    base: GlobBase,
    names: Vec<&'p str>,
}

impl<'p> SplitPath<'p> {
    pub(crate) fn new(path: &'p str) -> Self {
        let (base, rest) = if path == "~" {
            (GlobBase::Home, "")
        } else if let Some(rest) = path.strip_prefix("~/") {
            (GlobBase::Home, rest)
        } else if let Some(rest) = path.strip_prefix('/') {
            (GlobBase::Root, rest)
        } else {
            (GlobBase::Sandbox, path)
        };
        let names = names(rest).collect();
        Self { base, names }
    }

    /// Returns whether it is the sandbox, the home directory or the root.
    pub(crate) fn is_root(&self) -> bool {
        self.names.is_empty()
    }
}

/// Characters that make a path in a command a pattern.
const WILD: [char; 3] = ['*', '?', '['];

impl GlobBase {
    /// Returns the rest of a path behind the base, if it is there.
    fn cut<'p>(self, path: &'p str, bases: Bases<'_>) -> Option<&'p str> {
        let base = match self {
            Self::Anywhere => return Some(path),
            Self::Root => "/",
            Self::Home => bases.home?,
            Self::Sandbox => bases.root?,
        };
        let rest = path.strip_prefix(base.trim_end_matches('/'))?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    }
}

/// Returns the names of a path; `.` and doubled slashes are no names.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter(|name| !name.is_empty() && *name != ".")
}

/// Chooses among `{a,b}` in every way.
fn expand(pattern: &str) -> Result<Vec<String>, String> {
    let mut done = vec![];
    let mut open = vec![pattern.to_owned()];
    while let Some(next) = open.pop() {
        let Some(BracePattern {
            before,
            choices,
            after,
        }) = braces(&next)?
        else {
            done.push(next);
            continue;
        };
        if open.len() + done.len() + choices.len() > MAX_ALTERNATIVES {
            return Err(format!("`{pattern}` has too many alternatives"));
        }
        for choice in choices {
            open.push(format!("{before}{choice}{after}"));
        }
    }
    Ok(done)
}

/// A pattern around one `{a,b}`.
struct BracePattern<'p> {
    before: &'p str,
    choices: Vec<&'p str>,
    after: &'p str,
}

/// Finds the first innermost `{a,b}`.
fn braces(pattern: &str) -> Result<Option<BracePattern<'_>>, String> {
    let Some(end) = pattern.find('}') else {
        return match pattern.contains('{') {
            true => Err(format!("`{pattern}` has a `{{` that is not closed")),
            false => Ok(None),
        };
    };
    let Some(start) = pattern[..end].rfind('{') else {
        return Err(format!("`{pattern}` has a `}}` that is not opened"));
    };
    Ok(Some(BracePattern {
        before: &pattern[..start],
        choices: pattern[start + 1..end].split(',').collect(),
        after: &pattern[end + 1..],
    }))
}

fn segments(pattern: &str) -> Result<Vec<PathSegment>, String> {
    names(pattern)
        .map(|name| match name {
            "**" => Ok(PathSegment::Deep),
            _ if !name.contains(WILD) => Ok(PathSegment::Exact(name.to_owned())),
            _ => tokens(name).map(PathSegment::Name),
        })
        .collect()
}

fn tokens(name: &str) -> Result<Vec<GlobToken>, String> {
    let mut tokens = vec![];
    let mut chars = name.chars();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '*' => GlobToken::Any,
            '?' => GlobToken::One,
            '[' => {
                class(&mut chars).ok_or_else(|| format!("`{name}` has a `[` that is not closed"))?
            }
            _ => GlobToken::Char(c),
        });
    }
    Ok(tokens)
}

/// Reads a class behind its `[`.
fn class(chars: &mut std::str::Chars<'_>) -> Option<GlobToken> {
    let mut ranges = vec![];
    let mut not = false;
    let mut first = true;
    loop {
        let c = chars.next()?;
        match c {
            '!' | '^' if first && !not => {
                not = true;
                continue;
            }
            ']' if !first => return Some(GlobToken::Class { ranges, not }),
            _ => {}
        }
        first = false;
        let mut ahead = chars.clone();
        match (ahead.next(), ahead.next()) {
            (Some('-'), Some(end)) if end != ']' => {
                *chars = ahead;
                ranges.push((c, end));
            }
            _ => ranges.push((c, c)),
        }
    }
}

/// Compares segments with names. Going back to the last `**` is enough: what
/// an earlier one could give away, the last one can take.
fn walk(segments: &[PathSegment], names: &[&str]) -> bool {
    let (mut s, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    loop {
        match (segments.get(s), names.get(n)) {
            (None, None) => return true,
            (Some(PathSegment::Deep), _) => {
                back = Some((s + 1, n));
                s += 1;
                continue;
            }
            (Some(segment), Some(name)) if segment.fits(name) => {
                s += 1;
                n += 1;
                continue;
            }
            _ => {}
        }
        match &mut back {
            Some((after, from)) if *from < names.len() => {
                *from += 1;
                (s, n) = (*after, *from);
            }
            _ => return false,
        }
    }
}

impl GlobToken {
    fn is_any(&self) -> bool {
        matches!(self, Self::Any)
    }

    /// Returns whether it matches this one letter.
    fn accepts(&self, letter: char) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Char(want) => *want == letter,
            Self::Class { ranges, not } => {
                ranges
                    .iter()
                    .any(|(from, to)| (*from..=*to).contains(&letter))
                    != *not
            }
        }
    }
}

fn name_fits(tokens: &[GlobToken], name: &str) -> bool {
    match_tokens(tokens, name, GlobToken::is_any, GlobToken::accepts)
}

impl PathSegment {
    fn fits(&self, name: &str) -> bool {
        match self {
            Self::Deep => false,
            Self::Exact(exact) => exact == name,
            Self::Name(tokens) => name_fits(tokens, name),
        }
    }
}

/// Returns whether the pattern could match something that the path, which is
/// a pattern itself or `deep`, stands for. Errs on the side of yes.
fn could(segments: &[PathSegment], names: &[&str], deep: bool) -> bool {
    // What can be reached: after how many segments can we be at this name?
    let mut at = vec![false; segments.len() + 1];
    at[0] = true;
    skip_deep(segments, &mut at);
    for name in names {
        let mut next = vec![false; segments.len() + 1];
        for (s, segment) in segments.iter().enumerate().filter(|(s, _)| at[*s]) {
            match segment {
                PathSegment::Deep => next[s] = true,
                PathSegment::Exact(exact) => {
                    let tokens: Vec<GlobToken> = exact.chars().map(GlobToken::Char).collect();
                    next[s + 1] |= overlap(&tokens, name);
                }
                PathSegment::Name(tokens) => next[s + 1] |= overlap(tokens, name),
            }
        }
        skip_deep(segments, &mut next);
        at = next;
    }
    // Below a deep path, the rest of the pattern can be anything.
    at[segments.len()] || deep && at.contains(&true)
}

/// `**` may also stand for nothing.
fn skip_deep(segments: &[PathSegment], at: &mut [bool]) {
    for (s, segment) in segments.iter().enumerate() {
        at[s + 1] |= at[s] && *segment == PathSegment::Deep;
    }
}

/// Returns whether a name that may be a pattern could stand for a name that
/// the tokens match: decided by what both begin and end with.
fn overlap(tokens: &[GlobToken], name: &str) -> bool {
    if !name.contains(WILD) {
        return name_fits(tokens, name);
    }
    let hidden = matches!(tokens.first(), Some(GlobToken::Char('.')));
    if hidden && name.starts_with(WILD) {
        // The shell leaves hidden files out unless the dot is written.
        return false;
    }
    let literal = |c: &char| !WILD.contains(c) && *c != ']';
    let plain = |token: &GlobToken| match token {
        GlobToken::Char(c) => Some(*c),
        _ => None,
    };
    let head = tokens.iter().map_while(plain);
    let tail = tokens.iter().rev().map_while(plain);
    agree(head, name.chars().take_while(literal))
        && agree(tail, name.chars().rev().take_while(literal))
}

/// Returns whether two beginnings do not contradict each other.
fn agree(a: impl Iterator<Item = char>, b: impl Iterator<Item = char>) -> bool {
    a.zip(b).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests;
