//! A word of a command, as far as it is known before it runs.

use weighlock_shell::Span;

/// Stands for any text in a shape. Not `*`, which is something that is written:
/// `rm -rf *` means everything here, `rm -rf "$x"` does not.
pub(crate) const UNKNOWN: char = '\u{fffc}';

/// One argument. What is not known of it is never guessed here: a program
/// that would do harm with some text must assume that text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Arg {
    /// The text, if all of it is known.
    pub(crate) text: Option<String>,
    /// The text with [`UNKNOWN`] for what is not known, and with patterns as
    /// they are written; equal to the text otherwise.
    pub(crate) shape: String,
    /// How many bytes of the shape are known from its start.
    pub(crate) known: usize,
    /// It may become any number of words when it is expanded.
    pub(crate) many: bool,
    /// It may be split at white space that is in it, so that words come out of
    /// it that begin with anything.
    pub(crate) splits: bool,
    /// Unknown at its start, and yet it cannot begin with a dash.
    pub(crate) undashed: bool,
    /// What a network brought is in it.
    pub(crate) download: bool,
    /// A variable whose name says that it holds a secret is in it.
    pub(crate) secret: bool,
    /// A variable that nothing sets is in it, and was tried as empty.
    pub(crate) unset: bool,
    /// What is read from it, where that is plain to see: `<(echo …)`.
    pub(crate) prints: Option<String>,
    /// Where it is.
    pub(crate) span: Span,
    /// How it is written, where that is not its text.
    pub(crate) written: String,
}

impl Arg {
    /// Makes an argument that is known.
    pub(crate) fn known(text: impl Into<String>, span: Span) -> Self {
        let text = text.into();
        Self {
            shape: text.clone(),
            known: text.len(),
            text: Some(text),
            span,
            ..Self::default()
        }
    }

    /// Makes one line of several words, as programs do that give them to a
    /// shell.
    pub(crate) fn line(args: &[Arg]) -> Self {
        let span = args.first().map_or_else(Span::default, |arg| arg.span);
        let texts: Option<Vec<&str>> = args.iter().map(|arg| arg.text.as_deref()).collect();
        let line = match texts {
            Some(texts) => Self::known(texts.join(" "), span),
            None => Self::anything(span),
        };
        Self {
            download: args.iter().any(|arg| arg.download),
            ..line
        }
    }

    /// Makes any number of arguments of which nothing is known.
    pub(crate) fn anything(span: Span) -> Self {
        Self {
            shape: UNKNOWN.into(),
            many: true,
            splits: true,
            span,
            ..Self::default()
        }
    }

    /// Returns what it is known to begin with.
    pub(crate) fn prefix(&self) -> &str {
        &self.shape[..self.known]
    }

    /// Returns whether a program could take it for an option.
    pub(crate) fn may_be_option(&self) -> bool {
        match &self.text {
            Some(text) => text.len() > 1 && text.starts_with('-'),
            None if self.splits => true,
            None if self.known > 0 => self.shape.starts_with('-'),
            None => !self.undashed,
        }
    }

    /// Returns the part from a byte of its known beginning on.
    pub(crate) fn rest(&self, from: usize) -> Self {
        Self {
            text: self.text.as_ref().map(|text| text[from..].to_owned()),
            shape: self.shape[from..].to_owned(),
            known: self.known - from,
            // What stands before it keeps it from being an option.
            undashed: true,
            ..self.clone()
        }
    }

    /// Returns the text as a person would write it.
    pub(crate) fn shown(&self) -> String {
        match &self.text {
            Some(text) => text.clone(),
            None if !self.written.is_empty() => self.written.clone(),
            None => self.shape.replace(UNKNOWN, "…"),
        }
    }

    /// Returns what is true of both.
    pub(crate) fn join(&self, other: &Self) -> Self {
        if self == other {
            return self.clone();
        }
        let common = self
            .prefix()
            .char_indices()
            .zip(other.prefix().chars())
            .find(|((_, a), b)| a != b)
            .map_or(self.known.min(other.known), |((at, _), _)| at);
        let common = self.shape.floor_char_boundary(common);
        Self {
            text: None,
            shape: format!("{}{UNKNOWN}", &self.shape[..common]),
            known: common,
            many: self.many || other.many,
            splits: self.splits || other.splits,
            undashed: !self.may_be_option() && !other.may_be_option(),
            download: self.download || other.download,
            secret: self.secret || other.secret,
            unset: self.unset || other.unset,
            prints: None,
            span: self.span,
            written: String::new(),
        }
    }
}
