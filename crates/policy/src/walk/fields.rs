//! What one word becomes when it is expanded: none, one or several arguments.

use weighlock_shell::Span;

use crate::argument::Arg;

/// A word with values in it that gets longer than this is not followed: a few
/// variables that are made of each other would fill the memory.
const MAX_VALUE: usize = 4096;

/// Stands for any text in a shape; see [`crate::argument::UNKNOWN`].
pub(super) const UNKNOWN_TEXT: &str = "\u{fffc}";

/// The words that one word of the text becomes, while it is expanded.
pub(super) struct ExpandedFields {
    done: Vec<Arg>,
    now: Arg,
    /// Something is in `now`, even if it is empty text.
    pub(super) begun: bool,
    /// Everything so far is known.
    exact: bool,
    /// Values are split at white space, and patterns are expanded.
    splits: bool,
}

impl ExpandedFields {
    pub(super) fn new(span: Span, splits: bool) -> Self {
        Self {
            done: vec![],
            now: Arg {
                span,
                ..Arg::default()
            },
            begun: false,
            exact: true,
            splits,
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.begun = true;
        self.now.shape.push_str(text);
        if self.exact {
            self.now.known = self.now.shape.len();
        }
    }

    /// Adds the value of something: unquoted, it is split.
    pub(super) fn value(&mut self, text: &str, quoted: bool) {
        if self.now.shape.len() + text.len() > MAX_VALUE {
            return self.unknown(UNKNOWN_TEXT, quoted);
        }
        if quoted || !self.splits {
            return self.text(text);
        }
        let blank = |c: char| matches!(c, ' ' | '\t' | '\n');
        if text.starts_with(blank) {
            self.split();
        }
        for (at, word) in text
            .split(blank)
            .filter(|word| !word.is_empty())
            .enumerate()
        {
            if at > 0 {
                self.split();
            }
            if word.contains(['*', '?', '[']) {
                self.pattern(word);
            } else {
                self.text(word);
            }
        }
        if text.ends_with(blank) {
            self.split();
        }
    }

    /// Adds what is not known; unquoted, it is split.
    pub(super) fn unknown(&mut self, shape: &str, quoted: bool) {
        self.add(shape, !quoted);
        self.now.splits |= !quoted && self.splits;
    }

    /// Adds a pattern: whatever it finds begins like it.
    pub(super) fn pattern(&mut self, shape: &str) {
        self.add(shape, true);
    }

    fn add(&mut self, shape: &str, many: bool) {
        self.begun = true;
        self.exact = false;
        self.now.shape.push_str(shape);
        self.now.many |= many && self.splits;
    }

    /// Adds something that is probably this path.
    pub(super) fn elsewhere(&mut self, path: &str) {
        self.now.undashed |= !self.begun;
        self.add(path, false);
    }

    /// Adds any number of words.
    pub(super) fn unknown_words(&mut self, quoted: bool) {
        self.unknown(UNKNOWN_TEXT, false);
        self.now.many = self.splits || !quoted;
    }

    /// Adds an argument that is known from elsewhere.
    pub(super) fn splice(&mut self, arg: &Arg, unquoted: bool) {
        self.now.download |= arg.download;
        self.now.secret |= arg.secret;
        if let Some(text) = &arg.text {
            return self.value(text, !unquoted);
        }
        if self.now.shape.len() + arg.shape.len() > MAX_VALUE {
            return self.unknown(UNKNOWN_TEXT, !unquoted);
        }
        if self.now.shape.is_empty() {
            self.now.undashed = arg.undashed;
        }
        self.text(arg.prefix());
        self.unknown(&arg.shape[arg.known..], !unquoted);
        self.now.many |= arg.many;
        self.now.splits |= arg.splits;
    }

    pub(super) fn split(&mut self) {
        if self.begun {
            let empty = Arg {
                span: self.now.span,
                ..Arg::default()
            };
            let mut arg = std::mem::replace(&mut self.now, empty);
            arg.text = self.exact.then(|| arg.shape.clone());
            self.done.push(arg);
        }
        self.begun = false;
        self.exact = true;
    }

    pub(super) fn download(&mut self, download: bool) {
        self.now.download |= download;
    }

    /// Says what is read from the path that is in it.
    pub(super) fn prints(&mut self, text: Option<String>) {
        self.now.prints = text;
    }

    pub(super) fn unset(&mut self) {
        self.now.unset = true;
    }

    pub(super) fn secret(&mut self) {
        self.now.secret = true;
    }

    pub(super) fn finish(mut self) -> Vec<Arg> {
        self.split();
        self.done
    }
}
