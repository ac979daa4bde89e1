//! What words become when the shell expands them.

use weighlock_shell::{CommandKind, List, Operation, Parameter, Piece, Span, Word};

use super::fields::{ExpandedFields, UNKNOWN_TEXT};
use super::{Walk, scan};
use crate::argument::Arg;
use crate::part::Link;
use crate::variables;

impl Walk<'_> {
    /// Walks through everything that runs while words are expanded; returns
    /// whether it brings something from the network.
    pub(super) fn substitutions(&mut self, word: &Word) -> bool {
        let mut download = false;
        for piece in &word.pieces {
            download |= self.inside(piece);
        }
        download
    }

    fn inside(&mut self, piece: &Piece) -> bool {
        let before = self.parts.len();
        match piece {
            Piece::Parameter(parameter) => self.inside_parameter(parameter),
            Piece::Command(substitution) => self.nested(&substitution.body),
            Piece::Process { body, .. } => self.nested(body),
            Piece::Arithmetic { expression, .. } => self.arithmetic(expression),
            Piece::Array(words) => {
                self.indexes(words);
                let mut any = false;
                for word in words {
                    any |= self.substitutions(word);
                }
                return any;
            }
            Piece::Text { .. } | Piece::Glob(_) | Piece::Tilde(_) | Piece::Unknown(_) => {
                return false;
            }
        }
        self.downloaded(before)
    }

    fn nested(&mut self, body: &List) {
        let before = self.parts.len();
        self.aside(|walk| walk.list(body));
        if let Some(first) = self.parts.get_mut(before) {
            first.link = Link::Inside;
        }
    }

    fn inside_parameter(&mut self, parameter: &Parameter) {
        if let Some(index) = &parameter.index {
            self.arithmetic(index);
        }
        for operand in &parameter.operands {
            if parameter.operation == Operation::Slice {
                self.arithmetic(operand);
            } else {
                self.substitutions(operand);
            }
        }
        match parameter.operation {
            Operation::Transform('P') => self.unknown(
                parameter.span,
                format!("`@P` runs code that is in {}", parameter.name),
            ),
            Operation::Indirect => self.unknown(
                parameter.span,
                format!(
                    "which variable `${{!{}}}` means is only known when it runs",
                    parameter.name
                ),
            ),
            Operation::Assign => self.assign_unknown(&parameter.name),
            _ => {}
        }
    }

    /// Expands a word where it stays one: no splitting, no patterns.
    pub(super) fn joined(&mut self, word: &Word) -> Arg {
        let mut fields = ExpandedFields::new(word.span, false);
        for piece in &word.pieces {
            self.piece(piece, None, &mut fields);
        }
        fields
            .finish()
            .pop()
            .unwrap_or_else(|| Arg::known("", word.span))
    }

    /// Returns the text of a word where guesses fill what is not known.
    pub(super) fn plain_text(&mut self, word: &Word) -> Option<String> {
        let mut fields = ExpandedFields::new(word.span, false);
        for piece in &word.pieces {
            self.piece(piece, Some(0), &mut fields);
        }
        fields
            .finish()
            .pop()
            .map_or(Some(String::new()), |arg| arg.text)
    }

    /// Expands words into arguments.
    pub(super) fn argv(&mut self, words: &[Word], guess: Option<usize>) -> Vec<Arg> {
        let mut argv = vec![];
        for word in words {
            if self.is_spent() {
                break;
            }
            argv.extend(self.expand(word, guess));
        }
        argv
    }

    /// Returns how many readings there are of words of which not everything is
    /// known: one for each text that one of their variables may be. A bound
    /// would only say after how many the dangerous one is to come.
    pub(super) fn readings(&self, words: &[Word]) -> usize {
        let mut most = 1;
        scan::parameters(words, &mut |name| {
            let known = self.variables.get(name);
            most = most.max(known.map_or(0, |variable| variable.guesses.len()));
        });
        most
    }

    pub(super) fn expand(&mut self, word: &Word, guess: Option<usize>) -> Vec<Arg> {
        let mut fields = ExpandedFields::new(word.span, true);
        for piece in &word.pieces {
            self.piece(piece, guess, &mut fields);
        }
        let mut args = fields.finish();
        self.spend_on(&args);
        if self.state.within.is_none() {
            for arg in args.iter_mut().filter(|arg| arg.text.is_none()) {
                let written = self.text.get(word.span.start..word.span.end);
                arg.written = written.unwrap_or("").to_owned();
            }
        }
        args
    }

    fn piece(&mut self, piece: &Piece, guess: Option<usize>, fields: &mut ExpandedFields) {
        match piece {
            Piece::Text { text, .. } => fields.text(text),
            Piece::Glob(pattern) => fields.pattern(pattern),
            Piece::Tilde(user) => self.tilde(user, guess, fields),
            Piece::Parameter(parameter) => self.parameter(parameter, guess, fields),
            Piece::Command(substitution) => {
                let text = guess.and_then(|_| self.output_of(&substitution.body));
                let text = text.or_else(|| self.directory(&substitution.body));
                match text {
                    None if self.counts(&substitution.body) => fields.unknown(UNKNOWN_TEXT, true),
                    Some(text) => fields.value(text.trim_end_matches('\n'), substitution.quoted),
                    None => fields.unknown(UNKNOWN_TEXT, substitution.quoted),
                }
            }
            Piece::Process { body, .. } => {
                fields.text("/dev/fd/");
                fields.unknown(UNKNOWN_TEXT, true);
                fields.prints(self.output_of(body));
            }
            Piece::Arithmetic { .. } => fields.unknown(UNKNOWN_TEXT, true),
            Piece::Array(_) | Piece::Unknown(_) => fields.unknown(UNKNOWN_TEXT, false),
        }
    }

    /// Returns the working directory for `$(pwd)`.
    fn directory(&self, body: &List) -> Option<String> {
        let [item] = body.items.as_slice() else {
            return None;
        };
        let [stage] = item.pipeline.stages.as_slice() else {
            return None;
        };
        let CommandKind::Simple(simple) = &stage.kind else {
            return None;
        };
        let [name] = simple.words.as_slice() else {
            return None;
        };
        let own = name.literal().as_deref() == Some("pwd")
            && simple.assignments.is_empty()
            && stage.redirections.is_empty()
            && !self.redefined.contains("pwd");
        self.state.cwd.clone().filter(|_| own)
    }

    fn tilde(&mut self, user: &str, guess: Option<usize>, fields: &mut ExpandedFields) {
        let user = user.strip_prefix('~').unwrap_or(user);
        // Other shells leave these alone.
        self.needs_bash |= fields.begun || user.starts_with(['+', '-']);
        let home = match user {
            "" => return fields.text(&self.place.home.clone()),
            "root" => "/root".to_owned(),
            user => format!("/home/{user}"),
        };
        match guess {
            Some(_) => fields.text(&home),
            // Where others live, and whether there is such a user at all, is
            // only known when it runs.
            None => fields.elsewhere(&home),
        }
    }

    fn parameter(
        &mut self,
        parameter: &Parameter,
        guess: Option<usize>,
        fields: &mut ExpandedFields,
    ) {
        let name = parameter.name.as_str();
        let variable = self.variables.get(name);
        let set_here = variable.is_some_and(|variable| variable.sites > 0);
        fields.download(variable.is_some_and(|variable| variable.download));
        if parameter.operation == Operation::Indirect
            || (!set_here && variables::is_secret(name) && shows(parameter.operation))
        {
            fields.secret();
        }
        if matches!(name, "@" | "*") && parameter.operation == Operation::Plain {
            return self.all_positional(parameter, guess, fields);
        }
        // All elements of an array are words of their own, quoted or not.
        let all = parameter.index.as_ref().and_then(Word::literal);
        let quoted = parameter.quoted && all.as_deref() != Some("@");
        let plain = matches!(parameter.operation, Operation::Plain | Operation::Trim);
        if guess.is_some() && plain && !set_here && !matches!(name, "HOME" | "PWD" | "IFS") {
            fields.unset();
        }
        match self.value(parameter, guess) {
            Some(KnownValue::Text(text)) => fields.value(&text, quoted),
            Some(KnownValue::Arg(arg)) => fields.splice(&arg, !parameter.quoted),
            None if self.is_number(parameter) => fields.unknown(UNKNOWN_TEXT, true),
            None => fields.unknown(UNKNOWN_TEXT, quoted),
        }
    }

    fn all_positional(
        &mut self,
        parameter: &Parameter,
        guess: Option<usize>,
        fields: &mut ExpandedFields,
    ) {
        let known = self.state.positional.clone();
        match known.or_else(|| self.set_args.clone().filter(|_| guess.is_some())) {
            Some(args) => {
                for (at, arg) in args.iter().enumerate() {
                    if at > 0 {
                        fields.split();
                    }
                    fields.splice(arg, false);
                }
            }
            None if guess.is_some() => {}
            None => fields.unknown_words(parameter.quoted),
        }
    }

    fn value(&mut self, parameter: &Parameter, guess: Option<usize>) -> Option<KnownValue> {
        let name = parameter.name.as_str();
        if let Some(guess) = guess {
            return self.guessed(parameter, guess).map(KnownValue::Text);
        }
        if parameter.operation != Operation::Plain || parameter.index.is_some() {
            return None;
        }
        if let Some(variable) = self.variables.get(name) {
            if let Some(value) = &variable.value {
                let value = value.clone();
                self.spend(2 * value.shape.len());
                return Some(KnownValue::Arg(value));
            }
            if variable.sites > 0 {
                return None;
            }
        }
        match name {
            "HOME" => Some(KnownValue::Text(self.place.home.clone())),
            "PWD" => self.state.cwd.clone().map(KnownValue::Text),
            // The usual separators, unless they are set.
            "IFS" => Some(KnownValue::Text(" \t\n".into())),
            _ => self.positional(name).map(KnownValue::Arg),
        }
    }

    fn positional(&self, name: &str) -> Option<Arg> {
        nth(self.state.positional.as_ref()?, name)
    }

    /// Returns what a parameter could be, for a reading that may refuse.
    fn guessed(&mut self, parameter: &Parameter, guess: usize) -> Option<String> {
        let name = parameter.name.as_str();
        let operand = |walk: &mut Self| {
            parameter
                .operands
                .first()
                .and_then(|word| walk.plain_text(word))
        };
        if let Some(variable) = self.variables.get(name)
            && variable.sites > 0
        {
            let text = variable
                .guesses
                .get(guess.min(variable.guesses.len().saturating_sub(1)))
                .cloned();
            return match parameter.operation {
                Operation::Plain | Operation::Error | Operation::Trim => text,
                Operation::Default | Operation::Assign => text.or_else(|| operand(self)),
                Operation::Alternate => operand(self),
                _ => None,
            };
        }
        match (parameter.operation, name) {
            (Operation::Plain | Operation::Error | Operation::Trim, "HOME") => {
                Some(self.place.home.clone())
            }
            (Operation::Plain | Operation::Error | Operation::Trim, "PWD") => {
                self.state.cwd.clone()
            }
            (Operation::Plain | Operation::Error, "IFS") => Some(" \t\n".into()),
            (Operation::Default | Operation::Assign, _) => operand(self),
            (Operation::Plain, _) if name.bytes().all(|b| b.is_ascii_digit()) => {
                let known = self.state.positional.as_ref().or(self.set_args.as_ref());
                let arg = known.and_then(|args| nth(args, name));
                arg.map_or(Some(String::new()), |arg| arg.text)
            }
            // Nothing sets it: it may well be empty.
            (Operation::Plain | Operation::Alternate, _) => Some(String::new()),
            _ => None,
        }
    }
}

enum KnownValue {
    Text(String),
    Arg(Arg),
}

/// Returns `$1` and so on.
fn nth(args: &[Arg], name: &str) -> Option<Arg> {
    let at = name.parse::<usize>().ok()?.checked_sub(1)?;
    let none = || Arg::known("", Span::default());
    Some(args.get(at).cloned().unwrap_or_else(none))
}

/// Returns whether an operation shows the value.
fn shows(operation: Operation) -> bool {
    !matches!(
        operation,
        Operation::Length | Operation::Alternate | Operation::Names | Operation::Keys
    )
}
