//! Patterns written like commands: `git push --force`.
//!
//! The first word is the program. Options match by what they mean, in any
//! order and spelling; other words match the other arguments one by one, and
//! there may be more of them. ` $` at the end says that there may not.

use super::{Match, glob::WordPattern};
use crate::{Given, Part, PartKind};

/// Ways to choose among `a|b` in one pattern.
const MAX_WAYS: usize = 64;

/// Directories whose programs are the ones that a bare name means.
const SYSTEM: [&str; 5] = [
    "/bin/",
    "/usr/bin/",
    "/sbin/",
    "/usr/sbin/",
    "/usr/local/bin/",
];

/// One pattern, without alternatives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) program: ProgramPattern,
    steps: Vec<PatternStep>,
    /// Nothing may follow.
    closed: bool,
    /// Written with ` *` at the end: what may follow is meant too.
    open: bool,
}

/// The first word of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgramPattern {
    pub(crate) word: WordPattern,
    /// Written with a `/`: it means exactly this file.
    path: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternStep {
    Option(Opt),
    Word(WordPattern),
}

/// An option in a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opt {
    name: String,
    value: Option<WordPattern>,
}

impl Pattern {
    /// Reads a pattern; alternatives give one each.
    pub(crate) fn read(text: &str) -> Result<Vec<Self>, String> {
        let mut words = words(text)?;
        if words.is_empty() {
            return Err("the pattern is empty".into());
        }
        let closed = words.len() > 1 && words.last().is_some_and(|word| word.is("$"));
        if closed {
            words.pop();
        }
        let mut open = false;
        while !closed && words.len() > 1 && words.last().is_some_and(|word| word.is("*")) {
            words.pop();
            open = true;
        }
        for word in &words {
            word.check(text)?;
        }
        let mut ways: Vec<Vec<WordPattern>> = vec![vec![]];
        for word in &words {
            if ways.len() * word.choices.len() > MAX_WAYS {
                return Err(format!("`{text}` has too many alternatives"));
            }
            ways = ways
                .iter()
                .flat_map(|way| {
                    word.choices.iter().map(move |choice| {
                        let mut way = way.clone();
                        way.push(WordPattern::from_pieces(choice.clone()));
                        way
                    })
                })
                .collect();
        }
        Ok(ways
            .into_iter()
            .map(|way| Self::from_words(way, closed, open))
            .collect())
    }

    fn from_words(words: Vec<WordPattern>, closed: bool, open: bool) -> Self {
        let mut words = words.into_iter();
        let program = ProgramPattern::new(words.next().expect("a pattern has a word"));
        let mut options = true;
        let steps = words
            .filter_map(|word| {
                let text = word.to_string();
                if text == "--" && options {
                    options = false;
                    return None;
                }
                Some(match options && is_option(&text) {
                    true => PatternStep::Option(Opt::new(&text)),
                    false => PatternStep::Word(word),
                })
            })
            .collect();
        Self {
            program,
            steps,
            closed,
            open,
        }
    }

    /// Compares with a part. `proof` is for rules that allow something: then
    /// everything must be known, and nothing is taken for granted.
    pub(crate) fn meets(&self, part: &Part, proof: bool) -> Match {
        if part.kind != PartKind::Command || !self.program.meets(part, proof) {
            return Match::No;
        }
        if self.steps.is_empty() && !self.closed {
            return Match::Yes;
        }
        if proof && part.unknown.is_some() {
            // Nobody knows what its options are: only the very words count.
            return self.literally(part);
        }
        let arguments = Arguments::of(part);
        let own = self.by_meaning(part, &arguments, proof);
        if proof || own == Match::Yes || part.subcommand.is_empty() {
            return own;
        }
        // By the name of the family that its subcommand belongs to: `npm t`
        // may be `npm test`.
        let family = arguments.named(&part.subcommand);
        own.max(self.by_meaning(part, &family, proof).min(Match::Perhaps))
    }

    fn literally(&self, part: &Part) -> Match {
        let given = &part.argv[1.min(part.argv.len())..];
        if given.len() < self.steps.len() || self.closed && given.len() > self.steps.len() {
            return Match::No;
        }
        let same = self.steps.iter().zip(given).all(|(step, word)| {
            let Some(word) = word else { return false };
            match step {
                PatternStep::Word(pattern) if climbs(word) && !pattern.is_any() => {
                    pattern.to_string() == *word
                }
                PatternStep::Word(pattern) => pattern.matches(word),
                PatternStep::Option(option) => option.is_word(word),
            }
        });
        Match::from(same)
    }

    fn by_meaning(&self, part: &Part, arguments: &Arguments<'_>, proof: bool) -> Match {
        let mut result = Match::Yes;
        let mut rest = arguments.words.iter();
        let mut used = vec![];
        let mut steps = self.steps.iter().peekable();
        // Once a word is only known at run time, so are all behind it.
        let mut lost = false;
        while let Some(step) = steps.next() {
            let met = match step {
                PatternStep::Option(option) => {
                    let (met, value) = option.meets(part, arguments, proof, &mut used);
                    if let (Some(value), Some(PatternStep::Word(word))) = (value, steps.peek())
                        && option.value.is_none()
                        && word.matches(value)
                    {
                        steps.next();
                    }
                    met
                }
                PatternStep::Word(_) if lost => Match::Perhaps,
                PatternStep::Word(word) => match rest.next() {
                    // `scripts/*` is not meant to allow `scripts/../../x`.
                    Some(Some(text)) if proof && climbs(text) && !word.is_any() => {
                        Match::from(word.to_string() == *text)
                    }
                    Some(Some(text)) => Match::from(word.matches(text)),
                    Some(None) if proof => Match::from(word.is_any()),
                    Some(None) => {
                        lost = true;
                        Match::Perhaps
                    }
                    None => Match::No,
                },
            };
            result = result.min(met);
            if result == Match::No {
                return Match::No;
            }
        }
        if self.closed && (rest.len() > 0 || used.len() < part.options.len()) {
            return Match::No;
        }
        result
    }

    /// Returns commands that it stands for, to see what they would do: first
    /// as it is written.
    pub(crate) fn samples(&self) -> Vec<String> {
        let mut text = quote(&self.program.word.to_string().replace('*', "x"));
        for step in &self.steps {
            let word = match step {
                PatternStep::Word(word) => word.to_string(),
                PatternStep::Option(option) => option.to_string(),
            };
            text.push(' ');
            text.push_str(&quote(&word.replace('*', "x")));
        }
        match self.open {
            // With and without what may follow.
            true => vec![text.clone(), format!("{text} x"), format!("{text} x y")],
            false => vec![text],
        }
    }
}

impl ProgramPattern {
    pub(crate) fn new(word: WordPattern) -> Self {
        let path = word.to_string().contains('/');
        Self { word, path }
    }

    /// Compares with the program of a part.
    pub(crate) fn meets(&self, part: &Part, proof: bool) -> bool {
        let word = part.argv.first().and_then(Option::as_deref).unwrap_or("");
        if self.path {
            return self.word.matches(word);
        }
        self.word.matches(&part.program) && (!proof || Self::is_own(part))
    }

    /// Returns whether a bare name was given. That allows what the system
    /// calls so, not a file of that name that somebody put somewhere.
    pub(crate) fn is_own(part: &Part) -> bool {
        let word = part.argv.first().and_then(Option::as_deref).unwrap_or("");
        !word.contains('/')
            || SYSTEM.iter().any(|dir| {
                word.strip_prefix(dir)
                    .is_some_and(|name| !name.contains('/'))
            })
    }
}

impl Opt {
    pub(crate) fn new(text: &str) -> Self {
        match text.split_once('=') {
            Some((name, value)) if text.starts_with("--") => Self {
                name: name.to_owned(),
                value: Some(WordPattern::new(value)),
            },
            _ => Self {
                name: text.to_owned(),
                value: None,
            },
        }
    }

    /// Compares with the options of a part; also returns the value that was
    /// given. Remembers in `used` which options it stands for.
    pub(crate) fn meets<'p>(
        &self,
        part: &'p Part,
        arguments: &Arguments<'_>,
        proof: bool,
        used: &mut Vec<usize>,
    ) -> (Match, Option<&'p str>) {
        if let Some(found) = self.find(part, used) {
            let value = found.value.as_deref();
            let met = match (&self.value, value) {
                (None, _) => Match::Yes,
                (Some(word), Some(value)) => Match::from(word.matches(value)),
                (Some(_), None) => Match::Perhaps,
            };
            return (met, value);
        }
        // The listed names may not be all there are.
        let written = part.argv.iter().skip(1).flatten();
        let written = written.take_while(|word| *word != "--");
        let seen = written.map(|word| self.is_in(word)).max();
        match seen {
            Some(Match::Yes) if !proof => return (Match::Yes, None),
            Some(Match::Perhaps)
                if !proof && (part.unknown.is_some() || part.options.is_empty()) =>
            {
                return (Match::Perhaps, None);
            }
            _ => {}
        }
        match arguments.could_be_options && !proof {
            true => (Match::Perhaps, None),
            false => (Match::No, None),
        }
    }

    /// Finds it by name, or letter by letter; returns the last one found.
    fn find<'p>(&self, part: &'p Part, used: &mut Vec<usize>) -> Option<&'p Given> {
        let position = |name: &str| {
            part.options
                .iter()
                .position(|given| given.name == name || given.names.contains(&name))
        };
        if let Some(at) = position(&self.name) {
            note(used, at);
            return Some(&part.options[at]);
        }
        let letters = self.letters()?;
        let mut last = None;
        for letter in letters.chars() {
            let at = position(&format!("-{letter}"))?;
            note(used, at);
            last = Some(&part.options[at]);
        }
        last
    }

    /// Returns the letters of `-rf`.
    fn letters(&self) -> Option<&str> {
        self.name
            .strip_prefix('-')
            .filter(|name| !name.starts_with('-') && name.len() > 1)
    }

    /// Returns whether a word is this option and nothing else.
    fn is_word(&self, word: &str) -> bool {
        match (&self.value, word.split_once('=')) {
            (None, _) => word == self.name,
            (Some(value), Some((name, given))) => name == self.name && value.matches(given),
            (Some(_), None) => false,
        }
    }

    /// Returns whether a word is this option, or may be a bundle with it.
    fn is_in(&self, word: &str) -> Match {
        if self.value.is_some() {
            return Match::from(self.is_word(word));
        }
        let rest = word.strip_prefix(&self.name);
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('=')) {
            return Match::Yes;
        }
        let bundle = is_option(word) && !word.starts_with("--");
        let letter = self
            .name
            .strip_prefix('-')
            .filter(|name| name.chars().count() == 1);
        match letter.is_some_and(|letter| bundle && word.contains(letter)) {
            true => Match::Perhaps,
            false => Match::No,
        }
    }
}

impl std::fmt::Display for Opt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The arguments of a part that are neither options nor their values.
pub(crate) struct Arguments<'a> {
    pub(crate) words: Vec<Option<&'a str>>,
    /// A word that is only known at run time could be an option.
    could_be_options: bool,
}

impl<'a> Arguments<'a> {
    pub(crate) fn of(part: &'a Part) -> Self {
        let mut words = vec![];
        let mut could_be_options = false;
        let mut options = true;
        let mut argv = part.argv.iter().skip(1).map(Option::as_deref).peekable();
        while let Some(word) = argv.next() {
            match word {
                Some("--") if options => options = false,
                Some(word) if options && is_option(word) => {
                    let value = argv.peek().copied().flatten();
                    if value.is_some_and(|value| takes(part, word, value)) {
                        argv.next();
                    }
                }
                _ => {
                    could_be_options |= options && word.is_none();
                    words.push(word);
                }
            }
        }
        Self {
            words,
            could_be_options,
        }
    }
}

impl<'a> Arguments<'a> {
    /// Returns them with the first ones replaced.
    fn named(&self, names: &'a [String]) -> Self {
        let names = names.iter().map(|name| Some(name.as_str()));
        let rest = self.words.iter().copied().skip(names.len());
        Self {
            words: names.chain(rest).collect(),
            could_be_options: self.could_be_options,
        }
    }
}

/// Returns whether the word behind an option is its value.
fn takes(part: &Part, option: &str, value: &str) -> bool {
    part.options
        .iter()
        .filter(|given| given.value.as_deref() == Some(value))
        .any(|given| {
            given.name == option
                || given.names.iter().any(|name| {
                    let letter = name
                        .strip_prefix('-')
                        .filter(|rest| rest.chars().count() == 1);
                    let bundle = !option.starts_with("--");
                    *name == option
                        || bundle && letter.is_some_and(|letter| option.ends_with(letter))
                })
        })
}

pub(crate) fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

fn note(used: &mut Vec<usize>, at: usize) {
    if !used.contains(&at) {
        used.push(at);
    }
}

/// Writes a word so that a shell reads it back.
pub(crate) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A word of a pattern as it is written: alternatives, each as the texts
/// between its stars.
#[derive(Default)]
struct PatternWord {
    choices: Vec<Vec<String>>,
    /// Without quotes.
    bare: String,
    quoted: bool,
}

impl PatternWord {
    fn is(&self, text: &str) -> bool {
        !self.quoted && self.bare == text
    }

    /// Refuses what can only be a misunderstanding.
    fn check(&self, pattern: &str) -> Result<(), String> {
        if self.quoted {
            return Ok(());
        }
        if matches!(
            self.bare.as_str(),
            "|" | "||" | "&&" | "&" | ";" | ">" | ">>" | "<"
        ) {
            return Err(format!(
                "`{pattern}` has a `{}`, but a pattern is about one command",
                self.bare
            ));
        }
        if self
            .choices
            .iter()
            .any(|choice| choice.concat().is_empty() && choice.len() == 1)
        {
            return Err(format!("`{pattern}` has an empty alternative"));
        }
        if self.bare.contains('$') {
            return Err(format!(
                "`{pattern}` has a `$` in it, but variables have no meaning in a pattern"
            ));
        }
        Ok(())
    }
}

/// Splits a pattern at white space. Quotes make `*`, `|` and `$` ordinary.
fn words(text: &str) -> Result<Vec<PatternWord>, String> {
    let mut words = vec![];
    let mut word: Option<PatternWord> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c.is_whitespace() {
            words.extend(word.take());
            continue;
        }
        let word = word.get_or_insert_with(|| PatternWord {
            choices: vec![vec![String::new()]],
            ..PatternWord::default()
        });
        let choice = word.choices.last_mut().expect("never empty");
        let piece = choice.last_mut().expect("never empty");
        match c {
            '\'' | '"' => {
                word.quoted = true;
                loop {
                    match chars.next() {
                        Some(end) if end == c => break,
                        Some(inner) => piece.push(inner),
                        None => return Err(format!("`{text}` has a quote that is not closed")),
                    }
                }
            }
            '\\' => {
                word.quoted = true;
                piece.extend(chars.next());
            }
            '*' => choice.push(String::new()),
            '|' => word.choices.push(vec![String::new()]),
            _ => piece.push(c),
        }
        if !matches!(c, '\'' | '"' | '\\') {
            word.bare.push(c);
        }
    }
    words.extend(word);
    Ok(words)
}
/// Returns whether a path goes up somewhere.
fn climbs(path: &str) -> bool {
    path.contains('/') && path.split('/').any(|part| part == "..")
}
