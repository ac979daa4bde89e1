//! What a rule's table means: tests on one part, or on the whole text.

use std::collections::HashSet;

use regex::Regex;

use super::glob::{Bases, Glob, WordPattern};
use super::pattern::{Arguments, Opt, ProgramPattern};
use super::{Match, WholeText};
use crate::{Access, Effect, Effects, Part, PartKind, Path, PlaceKind};

/// Characters of a regular expression's match that a reason quotes.
const MAX_FOUND: usize = 100;

/// Tests on one part. What is empty holds always.
#[derive(Debug, Default)]
pub(crate) struct PartMatcher {
    pub(crate) programs: ProgramNames,
    pub(crate) subcommands: Vec<Vec<WordPattern>>,
    pub(crate) options: Vec<Opt>,
    pub(crate) args: Vec<WordPattern>,
    pub(crate) paths: Vec<Glob>,
    pub(crate) access: Vec<Access>,
    pub(crate) places: Vec<PlaceKind>,
    pub(crate) hosts: Vec<WordPattern>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) effects_only: Option<Effects>,
    pub(crate) tags: Vec<String>,
    pub(crate) kinds: Vec<PartKind>,
}

/// Names of programs; most are plain, and there can be many.
#[derive(Debug, Default)]
pub(crate) struct ProgramNames {
    plain: HashSet<String>,
    programs: Vec<ProgramPattern>,
}

/// Tests on the whole text. Says what was found.
#[derive(Debug)]
pub(crate) enum TextMatcher {
    /// Lower case, and as it was written.
    Text(Vec<(String, String)>),
    Contains(Vec<String>),
    Regex(Vec<Regex>),
    FirstWord(HashSet<String>),
}

impl PartMatcher {
    /// Compares with a part; `proof` as in [`super::pattern::Pattern::meets`].
    pub(crate) fn meets(&self, part: &Part, bases: Bases<'_>, proof: bool) -> Match {
        // The cheapest tests first: most parts fail them.
        if !self.kinds.is_empty() && !self.kinds.contains(&part.kind) {
            return Match::No;
        }
        if !self.effects.is_empty() && !self.effects.iter().any(|effect| part.effects.has(*effect))
        {
            return Match::No;
        }
        if let Some(only) = self.effects_only
            && (part.unknown.is_some()
                || part.kind == PartKind::Unknown
                || !part.effects.within(only))
        {
            return Match::No;
        }
        if !self.tags.is_empty()
            && !part
                .tags
                .iter()
                .any(|tag| self.tags.iter().any(|own| own == tag))
        {
            return Match::No;
        }
        if !self.programs.is_empty() && !self.programs.meet(part, proof) {
            return Match::No;
        }
        self.subcommand(part, proof)
            .min_with(|| self.arguments(part, proof))
            .min_with(|| self.hosts(part, proof))
            .min_with(|| self.paths(part, bases, proof))
    }

    /// What a part says its subcommand is may be the name of a whole family
    /// (`npm t` and `npm test`, but also `cargo run` and `cargo build`), so
    /// that only the words themselves are sure.
    fn subcommand(&self, part: &Part, proof: bool) -> Match {
        if self.subcommands.is_empty() {
            return Match::Yes;
        }
        let arguments = Arguments::of(part);
        let met = self.subcommands.iter().map(|words| {
            let family = begins(
                words,
                part.subcommand.iter().map(|text| Some(text.as_str())),
            );
            let own = begins(words, arguments.words.iter().copied());
            own.max(family.min(Match::Perhaps))
        });
        match met.max().unwrap_or(Match::No) {
            Match::Perhaps if proof => Match::No,
            met => met,
        }
    }

    fn arguments(&self, part: &Part, proof: bool) -> Match {
        if self.options.is_empty() && self.args.is_empty() {
            return Match::Yes;
        }
        let arguments = Arguments::of(part);
        let options = self
            .options
            .iter()
            .map(|option| option.meets(part, &arguments, proof, &mut vec![]).0)
            .max()
            .unwrap_or(Match::Yes);
        if self.args.is_empty() {
            return options;
        }
        let listed = |text: &str| self.args.iter().any(|word| word.matches(text));
        options.min(every_or_any(
            proof,
            arguments.words.iter().map(|word| match word {
                Some(text) => Match::from(listed(text)),
                None => Match::Perhaps,
            }),
        ))
    }

    fn hosts(&self, part: &Part, proof: bool) -> Match {
        if self.hosts.is_empty() {
            return Match::Yes;
        }
        let listed = |text: &String| match host(text) {
            host if host.contains('*') => Match::Perhaps,
            host => Match::from(self.hosts.iter().any(|word| word.matches(&host))),
        };
        every_or_any(proof, part.hosts.iter().map(listed)).max(hidden(part, proof))
    }

    fn paths(&self, part: &Part, bases: Bases<'_>, proof: bool) -> Match {
        if self.paths.is_empty() && self.access.is_empty() && self.places.is_empty() {
            return Match::Yes;
        }
        let varies = !self.paths.is_empty() && bases.varies(part);
        let paths = part.paths.iter();
        let met = every_or_any(proof, paths.map(|path| self.path(path, varies, bases)));
        match self.paths.is_empty() {
            true => met,
            false => met.max(hidden(part, proof)),
        }
    }

    fn path(&self, path: &Path, varies: bool, bases: Bases<'_>) -> Match {
        if !self.access.is_empty() && !self.access.contains(&path.access) {
            return Match::No;
        }
        if !self.places.is_empty() && !self.places.contains(&path.place) {
            return Match::No;
        }
        if self.paths.is_empty() {
            return Match::Yes;
        }
        self.paths
            .iter()
            .map(|glob| glob.meets(path, varies, bases))
            .max()
            .unwrap_or(Match::No)
    }

    /// Returns whether it tells what commands do, and nothing that is written in
    /// them.
    pub(crate) fn names_classes(&self) -> bool {
        self.programs.about().is_empty()
            && self.subcommands.is_empty()
            && self.options.is_empty()
            && self.args.is_empty()
            && self.kinds.is_empty()
            && self.paths.is_empty()
            && self.hosts.is_empty()
    }

    /// Returns in short what it is about.
    pub(crate) fn about(&self) -> String {
        let mut words = vec![];
        let mut say = |items: Vec<String>| {
            if !items.is_empty() {
                words.push(items.join(", "));
            }
        };
        say(self.programs.about());
        say(self
            .subcommands
            .iter()
            .map(|words| texts(words).join(" "))
            .collect());
        say(texts(&self.options));
        say(texts(&self.args));
        say(self
            .kinds
            .iter()
            .map(|kind| format!("{kind:?}").to_lowercase())
            .collect());
        say(self.tags.clone());
        say(self
            .effects
            .iter()
            .map(|effect| effect.name().to_owned())
            .collect());
        if let Some(only) = self.effects_only {
            say(vec![format!(
                "only {}",
                only.iter().map(Effect::name).collect::<Vec<_>>().join(", ")
            )]);
        }
        say(self
            .access
            .iter()
            .map(|access| format!("{access:?}").to_lowercase())
            .collect());
        say(self
            .places
            .iter()
            .map(|place| format!("{place:?}").to_lowercase())
            .collect());
        say(self
            .paths
            .iter()
            .map(|glob| glob.as_str().to_owned())
            .collect());
        say(texts(&self.hosts));
        words.join(" ")
    }
}

/// Returns whether arguments begin with these words.
fn begins<'w>(words: &[WordPattern], mut given: impl Iterator<Item = Option<&'w str>>) -> Match {
    for word in words {
        match given.next() {
            Some(Some(text)) if word.matches(text) => {}
            // Whatever is behind it, too, is only known at run time.
            Some(None) => return Match::Perhaps,
            _ => return Match::No,
        }
    }
    Match::Yes
}

/// Returns the host in an address: `https://ana@example.com:80/x`.
pub(crate) fn host(text: &str) -> String {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#']).next().unwrap_or("");
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let host = match rest.strip_prefix('[') {
        Some(literal) => literal.split(']').next().unwrap_or(""),
        None if rest.matches(':').count() > 1 => rest,
        None => rest.split(':').next().unwrap_or(""),
    };
    host.trim_end_matches('.').to_lowercase()
}

/// A part of which too little is known could name any path or host.
fn hidden(part: &Part, proof: bool) -> Match {
    let hidden = part.unknown.is_some() && part.argv.iter().any(Option::is_none);
    match hidden && !proof {
        true => Match::Perhaps,
        false => Match::No,
    }
}

fn texts<T: std::fmt::Display>(items: &[T]) -> Vec<String> {
    items.iter().map(T::to_string).collect()
}

/// To be allowed, everything must be on the list, and there must be
/// something; to be noticed, one is enough.
fn every_or_any(proof: bool, items: impl Iterator<Item = Match>) -> Match {
    match proof {
        true => items.min(),
        false => items.max(),
    }
    .unwrap_or(Match::No)
}

impl ProgramNames {
    pub(crate) fn add(&mut self, word: WordPattern) {
        match word.exact() {
            Some(name) if !name.contains('/') => {
                self.plain.insert(name.to_owned());
            }
            _ => self.programs.push(ProgramPattern::new(word)),
        }
    }

    fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.programs.is_empty()
    }

    fn meet(&self, part: &Part, proof: bool) -> bool {
        if part.kind != PartKind::Command {
            return false;
        }
        let plain = self.plain.contains(&part.program) && (!proof || ProgramPattern::is_own(part));
        plain
            || self
                .programs
                .iter()
                .any(|program| program.meets(part, proof))
    }

    fn about(&self) -> Vec<String> {
        let mut names: Vec<String> = self.plain.iter().cloned().collect();
        names.sort_unstable();
        names.extend(self.programs.iter().map(|program| program.word.to_string()));
        names
    }
}

/// Returns no more of a match than a sentence can hold.
fn start(found: &str) -> &str {
    match found.char_indices().nth(MAX_FOUND) {
        Some((end, _)) => &found[..end],
        None => found,
    }
}

impl TextMatcher {
    /// Returns what it found in the text.
    pub(crate) fn find<'m>(&'m self, whole: &WholeText<'m>) -> Option<&'m str> {
        match self {
            Self::Text(entries) => entries
                .iter()
                .find(|(lower, _)| whole.normal().contains(lower))
                .map(|(_, entry)| entry.as_str()),
            Self::Contains(entries) => entries
                .iter()
                .find(|entry| whole.text.contains(entry.as_str()))
                .map(String::as_str),
            Self::Regex(entries) => entries
                .iter()
                .find_map(|regex| regex.find(whole.text))
                .map(|found| start(found.as_str())),
            Self::FirstWord(entries) => {
                Some(whole.first_word()).filter(|word| entries.contains(*word))
            }
        }
    }

    /// Returns in short what it is about.
    pub(crate) fn about(&self) -> String {
        let mut entries: Vec<&str> = match self {
            Self::Text(entries) => entries.iter().map(|(_, entry)| entry.as_str()).collect(),
            Self::Contains(entries) => entries.iter().map(String::as_str).collect(),
            Self::Regex(entries) => entries.iter().map(Regex::as_str).collect(),
            Self::FirstWord(entries) => entries.iter().map(String::as_str).collect(),
        };
        if matches!(self, Self::FirstWord(_)) {
            entries.sort_unstable();
        }
        entries.join(", ")
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn hosts_are_found_in_addresses() {
        for (text, host) in [
            ("example.com", "example.com"),
            ("https://www.Example.com/x?y", "www.example.com"),
            ("https://good.example@evil.example:8080/", "evil.example"),
            ("ana@host", "host"),
            ("host:path/x", "host"),
            ("git@github.com:a/b.git", "github.com"),
            ("http://[::1]:80/", "::1"),
            ("::1", "::1"),
            ("example.com.", "example.com"),
            ("*", "*"),
        ] {
            assert_eq!(super::host(text), host, "{text}");
        }
    }
}
