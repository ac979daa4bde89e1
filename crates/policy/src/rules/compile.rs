//! What a rule is about: from what was written to what is tested.

use regex::RegexBuilder;

use super::glob::{Glob, WordPattern};
use super::loader::Loader;
use super::matcher::{PartMatcher, ProgramNames, TextMatcher};
use super::pattern::{Opt, Pattern, ProgramPattern, is_option};
use super::raw::{At, OneOrMany, RawMatch, RawWhat};
use super::rule::{Allowance, RuleSubject, samples};
use crate::{Effects, Verdict};

/// A regular expression that needs more than this when compiled is a mistake
/// or an attack.
const REGEX_BYTES: usize = 1 << 20;

/// Regular expressions in one rule; `a|b` says many things in one.
const MAX_REGEXES: usize = 100;

/// Returns patterns as they were written.
pub(crate) fn about(what: &RawWhat) -> Option<String> {
    match what {
        RawWhat::Patterns(list) => {
            let texts: Vec<&str> = list
                .entries_from(0)
                .map(|(_, text)| text.as_str())
                .collect();
            Some(texts.join(", "))
        }
        RawWhat::Table(_) => None,
    }
}

/// Compiles a rule's subject. `listing` is for files that are allow-lists.
pub(crate) fn what(
    loader: &mut Loader<'_>,
    verdict: Verdict,
    raw: &At<RawWhat>,
    listing: bool,
) -> Option<RuleSubject> {
    match &raw.value {
        RawWhat::Patterns(list) => patterns(loader, verdict, raw.at, list),
        RawWhat::Table(table) => {
            let table = TestTable {
                verdict,
                at: raw.at,
                raw: table,
                allows: verdict == Verdict::Auto && !listing,
            };
            table.read(loader)
        }
    }
}

fn patterns(
    loader: &mut Loader<'_>,
    verdict: Verdict,
    at: usize,
    list: &OneOrMany<String>,
) -> Option<RuleSubject> {
    if list.is_empty() {
        loader.error(at, "the list of patterns is empty", "write at least one");
        return None;
    }
    let mut ready = vec![];
    for (at, text) in list.entries_from(at) {
        match Pattern::read(text) {
            Ok(read) => {
                for pattern in read {
                    if verdict == Verdict::Auto && pattern.program.word.is_any() {
                        loader.error(
                            at,
                            format!("`{text}` would allow every program"),
                            "name a program, or use { effects_only = [\"read\"] }",
                        );
                    }
                    let allowance = match loader.understand {
                        Some(understand) if verdict == Verdict::Auto => {
                            Allowance::of(&pattern.samples(), understand)
                        }
                        _ => Allowance::default(),
                    };
                    ready.push((pattern, allowance));
                }
            }
            Err(message) => {
                let hint = match text.contains('|') || text.contains('&') || text.contains(';') {
                    true => {
                        "`a|b` without spaces means either; pipes into a shell have the tag \
                             `pipe-to-shell`"
                    }
                    false => "write a program and perhaps arguments: `git push --force`",
                };
                loader.error(at, message, hint);
            }
        }
    }
    Some(RuleSubject::Patterns(ready))
}

/// Tests in a table, as they were written.
struct TestTable<'r> {
    verdict: Verdict,
    at: usize,
    raw: &'r RawMatch,
    /// It lets something run, and does not only put it on a list.
    allows: bool,
}

impl TestTable<'_> {
    /// Reads it, if it makes sense as a whole.
    fn read(&self, loader: &mut Loader<'_>) -> Option<RuleSubject> {
        let raw = self.raw;
        let whole = [&raw.text, &raw.contains, &raw.regex, &raw.first_word];
        let wholes: Vec<usize> = whole.into_iter().flatten().map(|list| list.at).collect();
        if let Some(flag) = &raw.ignore_case
            && raw.regex.is_none()
        {
            loader.error(
                flag.at,
                "`ignore_case` is only for `regex`",
                "`text` ignores case anyway; `contains` never does",
            );
            return None;
        }
        let parts = has_part_keys(raw);
        match wholes.as_slice() {
            [] if !parts => {
                loader.error(self.at, "the table is empty and would match everything", "");
                None
            }
            [] => self.part(loader),
            [first, ..] if parts || wholes.len() > 1 => {
                loader.error(
                    *first,
                    "`text`, `contains`, `regex` and `first_word` are about the whole command and \
                     stand alone",
                    "make two rules of it",
                );
                None
            }
            [first, ..] if self.allows => {
                loader.error(
                    *first,
                    "a rule about the text of a command cannot allow it",
                    "name the program: auto = \"git status\"",
                );
                None
            }
            _ => text(loader, raw).map(RuleSubject::Text),
        }
    }

    fn part(&self, loader: &mut Loader<'_>) -> Option<RuleSubject> {
        let raw = self.raw;
        let before = loader.errors.len();
        let programs = texts(loader, raw.program.as_ref());
        let matcher = PartMatcher {
            programs: programs.iter().map(|name| WordPattern::new(name)).fold(
                ProgramNames::default(),
                |mut names, word| {
                    names.add(word);
                    names
                },
            ),
            subcommands: texts(loader, raw.subcommand.as_ref())
                .iter()
                .map(|text| text.split_whitespace().map(WordPattern::new).collect())
                .collect(),
            options: options(loader, raw.options.as_ref()),
            args: texts(loader, raw.args.as_ref())
                .iter()
                .map(|text| WordPattern::new(text))
                .collect(),
            paths: raw
                .paths
                .as_ref()
                .map(|list| globs(loader, list))
                .unwrap_or_default(),
            access: words(loader, raw.access.as_ref()),
            places: words(loader, raw.place.as_ref()),
            hosts: texts(loader, raw.hosts.as_ref())
                .iter()
                .map(|text| WordPattern::new(text))
                .collect(),
            effects: words(loader, raw.effects.as_ref()),
            effects_only: raw
                .effects_only
                .as_ref()
                .map(|list| words(loader, Some(list)).into_iter().collect::<Effects>()),
            tags: texts(loader, raw.tags.as_ref()),
            kinds: words(loader, raw.kind.as_ref()),
        };
        if self.allows {
            if let Some(effects) = &raw.effects {
                loader.error(
                    effects.at,
                    "`effects` says what something does among other things; that cannot allow it",
                    "use `effects_only`",
                );
            }
            if raw.effects_only.is_none() && programs.is_empty() {
                loader.error(
                    self.at,
                    "a rule that allows something must name a program or `effects_only`",
                    "effects_only = [\"read\"] is what reads and nothing else",
                );
            }
        }
        if loader.errors.len() > before {
            return None;
        }
        let allowances = match self.verdict {
            Verdict::Auto => allowances(loader, &programs, &matcher),
            _ => vec![],
        };
        Some(RuleSubject::Part(Box::new(matcher), allowances))
    }
}

fn has_part_keys(raw: &RawMatch) -> bool {
    [
        &raw.program,
        &raw.subcommand,
        &raw.options,
        &raw.args,
        &raw.paths,
        &raw.hosts,
        &raw.tags,
    ]
    .iter()
    .any(|key| key.is_some())
        || raw.access.is_some()
        || raw.place.is_some()
        || raw.effects.is_some()
        || raw.effects_only.is_some()
        || raw.kind.is_some()
}

fn allowances(
    loader: &Loader<'_>,
    programs: &[String],
    matcher: &PartMatcher,
) -> Vec<(Option<ProgramPattern>, Allowance)> {
    if let Some(only) = matcher.effects_only {
        return vec![(None, Allowance::only(only))];
    }
    let Some(understand) = loader.understand else {
        return vec![];
    };
    programs
        .iter()
        .map(|name| WordPattern::new(name))
        .flat_map(|word| {
            samples(&word, &matcher.subcommands)
                .into_iter()
                .map(move |samples| (ProgramPattern::new(word.clone()), samples))
        })
        .map(|(program, samples)| (Some(program), Allowance::of(&samples, understand)))
        .collect()
}

fn text(loader: &mut Loader<'_>, raw: &RawMatch) -> Option<TextMatcher> {
    let before = loader.errors.len();
    let matcher = if raw.text.is_some() {
        let entries = texts(loader, raw.text.as_ref());
        TextMatcher::Text(
            entries
                .into_iter()
                .map(|entry| (entry.to_lowercase(), entry))
                .collect(),
        )
    } else if raw.contains.is_some() {
        TextMatcher::Contains(texts(loader, raw.contains.as_ref()))
    } else if raw.first_word.is_some() {
        TextMatcher::FirstWord(texts(loader, raw.first_word.as_ref()).into_iter().collect())
    } else {
        let ignore_case = raw.ignore_case.is_some_and(|flag| flag.value);
        let mut regexes = vec![];
        for (n, (at, entry)) in each(loader, raw.regex.as_ref()).into_iter().enumerate() {
            if n == MAX_REGEXES {
                let message = format!("more than {MAX_REGEXES} regular expressions in one rule");
                loader.error(at, message, "write `a|b` for either");
                break;
            }
            let built = RegexBuilder::new(&entry)
                .case_insensitive(ignore_case)
                .size_limit(REGEX_BYTES)
                .build();
            match built {
                Ok(regex) => regexes.push(regex),
                Err(error) => {
                    let error = error.to_string();
                    let why = error
                        .lines()
                        .last()
                        .unwrap_or("")
                        .trim_start_matches("error: ");
                    loader.error(
                        at,
                        format!("`{entry}` is not a regular expression: {why}"),
                        "",
                    );
                }
            }
        }
        TextMatcher::Regex(regexes)
    };
    (loader.errors.len() == before).then_some(matcher)
}

fn options(loader: &mut Loader<'_>, list: Option<&At<OneOrMany<String>>>) -> Vec<Opt> {
    let mut options = vec![];
    for (at, text) in each(loader, list) {
        if !is_option(&text) {
            loader.error(
                at,
                format!("`{text}` is not an option"),
                "options start with `-`; other arguments belong into `args`",
            );
        }
        options.push(Opt::new(&text));
    }
    options
}

/// Reads path patterns.
pub(crate) fn globs(loader: &mut Loader<'_>, list: &At<OneOrMany<String>>) -> Vec<Glob> {
    let mut globs = vec![];
    for (at, text) in each(loader, Some(list)) {
        match Glob::new(&text) {
            Ok(glob) => globs.push(glob),
            Err(message) => loader.error(at, message, "`src/**/*.rs`, `**/.env`, `/etc/**`"),
        }
    }
    globs
}

/// Reads words from a fixed set.
pub(crate) fn words<T: Copy>(loader: &mut Loader<'_>, list: Option<&At<OneOrMany<T>>>) -> Vec<T> {
    let all = entries(loader, list).into_iter();
    all.map(|(_, word)| word).collect()
}

fn texts(loader: &mut Loader<'_>, list: Option<&At<OneOrMany<String>>>) -> Vec<String> {
    each(loader, list)
        .into_iter()
        .map(|(_, text)| text)
        .collect()
}

/// Reads texts that must not be empty, with where they stand.
fn each(loader: &mut Loader<'_>, list: Option<&At<OneOrMany<String>>>) -> Vec<(usize, String)> {
    let texts = entries(loader, list);
    for (at, text) in &texts {
        if text.trim().is_empty() {
            loader.error(*at, "the text is empty and would match everything", "");
        }
    }
    texts
}

fn entries<T: Clone>(loader: &mut Loader<'_>, list: Option<&At<OneOrMany<T>>>) -> Vec<(usize, T)> {
    let Some(list) = list else { return vec![] };
    if list.value.is_empty() {
        loader.error(
            list.at,
            "the list is empty",
            "leave the key out, or write something",
        );
    }
    let all = list.entries();
    all.map(|(at, entry)| (at, entry.clone())).collect()
}
