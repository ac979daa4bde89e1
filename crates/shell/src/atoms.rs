//! The parts of a word, and what the shell does with them where it stands.

use crate::Piece;

/// What is around an expansion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quoting {
    Bare,
    Double,
    /// A here-document: quoted, but quotes are plain text.
    Here,
}

impl Quoting {
    pub(crate) fn quoted(self) -> bool {
        self != Quoting::Bare
    }
}

/// A part of a word before braces, tildes and patterns are looked for.
#[derive(Debug, Clone)]
pub(crate) enum Atom {
    /// Unquoted: any byte may mean something.
    Plain(String),
    Quoted(String),
    Piece(Piece),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Atoms(pub(crate) Vec<Atom>);

/// What the shell does with a word, which depends on where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordRules {
    pub(crate) braces: Braces,
    pub(crate) globs: bool,
    pub(crate) tilde: Tilde,
    pub(crate) extended: Extended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Braces {
    /// They make several words.
    Expand,
    /// They must not make several words.
    Refuse,
    /// They are plain text.
    Keep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tilde {
    /// At the start only: what braces make is no assignment to bash.
    Only,
    /// At the start, and after `=` in what looks like an assignment.
    Start,
    /// At the start and after each `:`.
    Value,
}

/// What `@(…)` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extended {
    /// It depends on an option that a text cannot show.
    Unsure,
    /// A pattern.
    Pattern,
    /// A part of a regular expression, as is every parenthesis.
    Regex,
}

impl WordRules {
    pub(crate) const ARGUMENT: WordRules = WordRules {
        braces: Braces::Expand,
        globs: true,
        tilde: Tilde::Start,
        extended: Extended::Unsure,
    };
    /// A word that braces have made.
    pub(crate) const MADE: WordRules = WordRules {
        tilde: Tilde::Only,
        ..WordRules::ARGUMENT
    };
    pub(crate) const TARGET: WordRules = WordRules {
        braces: Braces::Refuse,
        ..WordRules::ARGUMENT
    };
    pub(crate) const PATTERN: WordRules = WordRules {
        braces: Braces::Keep,
        ..WordRules::ARGUMENT
    };
    /// The word of a `case`, an operand of `[[`, a here-string.
    pub(crate) const SUBJECT: WordRules = WordRules {
        globs: false,
        ..WordRules::PATTERN
    };
    pub(crate) const VALUE: WordRules = WordRules {
        tilde: Tilde::Value,
        ..WordRules::SUBJECT
    };
    /// The right side of `==` in `[[`, where `@(…)` is always a pattern, and a
    /// pattern of `case`, where it is one or else an error.
    pub(crate) const MATCH: WordRules = WordRules {
        extended: Extended::Pattern,
        ..WordRules::PATTERN
    };
    /// The right side of `=~` in `[[`.
    pub(crate) const REGEX: WordRules = WordRules {
        extended: Extended::Regex,
        ..WordRules::SUBJECT
    };
}

impl Atoms {
    pub(crate) fn plain(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Atom::Plain(last)) => last.push_str(text),
            _ => self.0.push(Atom::Plain(text.to_owned())),
        }
    }

    pub(crate) fn quoted(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Atom::Quoted(last)) => last.push_str(text),
            _ => self.0.push(Atom::Quoted(text.to_owned())),
        }
    }

    /// Adds text that is quoted where it stands.
    pub(crate) fn text(&mut self, text: &str, quoting: Quoting) {
        if quoting == Quoting::Bare {
            self.plain(text);
        } else {
            self.quoted(text);
        }
    }

    pub(crate) fn piece(&mut self, piece: Piece) {
        self.0.push(Atom::Piece(piece));
    }
}
