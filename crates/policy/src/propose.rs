//! What a person could allow from now on, where a command is asked about:
//! patterns for one part of it, the narrowest first.
//!
//! Nothing is offered that was not tried: a pattern that would not answer the
//! very question it is made from is left out.

use std::collections::HashSet;

use crate::grant::{Allows, Grant, Scope};
use crate::rules::pattern::{Arguments, ProgramPattern, is_option, quote};
use crate::{
    Access, Effect, Facts, Granted, Judgement, Part, PartKind, PlaceKind, Subject, TokenKind,
    Understand, Verdict, tokens,
};

/// More are hard to tell apart.
const MOST: usize = 4;

/// Words, and bytes of them, of a part that something is offered for. Nobody
/// reads a longer pattern, and comparing all words with all paths takes time in
/// their square.
const MAX_WORDS: usize = 200;
const MAX_BYTES: usize = 8192;

/// One thing that could be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// As a grant takes it.
    pub pattern: String,
    /// What it means, in few words.
    pub label: String,
}

/// Returns what could be allowed of a part, the narrowest first; nothing where
/// it can only be asked about each time.
pub fn propose(part: &Part, subject: &Subject<'_>, understand: &Understand<'_>) -> Vec<Proposal> {
    let drafts = match part.kind {
        _ if is_too_long(part) => vec![],
        PartKind::Command => of_command(part),
        PartKind::Redirection => of_redirection(part, subject),
        PartKind::Assignment | PartKind::Unknown => vec![],
    };
    let mut offered: Vec<Proposal> = vec![];
    for draft in drafts {
        let known = { offered.iter() }.any(|other| other.pattern == draft.pattern);
        if !known && answers(&draft.pattern, part, subject, understand) {
            offered.push(draft);
        }
    }
    offered.truncate(MOST);
    offered
}

fn is_too_long(part: &Part) -> bool {
    let words = part.argv.iter().flatten().map(String::len);
    let paths = part.paths.iter().map(|path| path.path.len());
    part.argv.len().max(part.paths.len()) > MAX_WORDS
        || words.chain(paths).sum::<usize>() > MAX_BYTES
}

impl Granted {
    /// Returns whether the grant covers a part of a command, regardless of who
    /// asks.
    pub fn is_about(&self, facts: &Facts, subject: &Subject<'_>) -> bool {
        let bases = subject.bases();
        facts.parts.iter().any(|part| self.covers(part, bases))
    }
}

impl Judgement {
    /// Returns the parts that a person is asked about, each once.
    pub fn asked(&self) -> Vec<&Part> {
        let parts = self.facts.parts.iter().zip(&self.parts);
        let asked =
            parts.filter(|(part, decided)| decided.verdict != Verdict::Auto && !part.possible);
        let mut seen = HashSet::new();
        { asked.map(|(part, _)| part) }
            .filter(|part| seen.insert((part.kind, &part.argv, &part.paths)))
            .collect()
    }

    /// Says why nothing of a command can be allowed beforehand, where that is
    /// so: what it does is only known when it runs.
    pub fn unforeseen(&self, text: &str) -> Option<String> {
        if let Some(document) = here_document(text) {
            return Some(document.into());
        }
        let parts = self.facts.parts.iter().zip(&self.parts);
        for (part, decided) in parts.filter(|(_, decided)| decided.verdict != Verdict::Auto) {
            let written = text.get(part.span.start..part.span.end).unwrap_or("");
            let written = written.trim();
            if part.kind == PartKind::Unknown {
                return Some(format!("`{written}` cannot be analysed."));
            }
            if decided.verdict == Verdict::Reject {
                return Some(format!("`{written}` is never allowed."));
            }
            if part.argv.iter().any(Option::is_none) || part.possible {
                return Some(format!("What `{written}` does is only known when it runs."));
            }
        }
        let whole = self.reasons.iter().find(|reason| reason.span.is_none());
        whole.map(|reason| format!("A rule asks about the text as a whole: {}", reason.text))
    }
}

/// Returns why no rule can be proposed for a command with a here-document:
/// patterns are not compared with the text that a program reads.
fn here_document(text: &str) -> Option<&'static str> {
    let mut tokens = tokens(text).into_iter();
    let handed = tokens.any(|token| token.kind == TokenKind::Text);
    handed.then_some("It hands a text over to a program, which no rule looks at.")
}

/// Returns whether a grant of this pattern would answer the question about a
/// part.
fn answers(pattern: &str, part: &Part, subject: &Subject<'_>, understand: &Understand<'_>) -> bool {
    let grant = Grant {
        id: String::new(),
        allows: Allows::Pattern(pattern.to_owned()),
        scope: Scope::default(),
        until: None,
        by: String::new(),
        created: 0,
    };
    let granted = grant.check(understand);
    granted.is_ok_and(|granted| granted.covers(part, subject.bases()))
}

fn of_command(part: &Part) -> Vec<Proposal> {
    let Some(words) = PartWords::of(part) else {
        return vec![];
    };
    let unknown = part.unknown.is_some();
    let mut drafts = vec![exactly(&words)];
    if !unknown {
        drafts.extend(same_files(part, &words));
        drafts.extend(same_directories(part, &words));
        drafts.extend(same_hosts(part));
    }
    if !is_too_wide(part) {
        drafts.extend(any_arguments(part, &words));
    }
    drafts
}

/// Whatever a program does that runs code, deletes or reaches others is in its
/// arguments: without a subcommand to go by, all of them are too many.
fn is_too_wide(part: &Part) -> bool {
    let wide = [Effect::Execute, Effect::Network];
    part.effects.has(Effect::Delete)
        || part.subcommand.is_empty()
            && part.unknown.is_none()
            && wide.iter().any(|effect| part.effects.has(*effect))
}

/// The words of a part, and what each of them is.
struct PartWords<'a> {
    program: &'a str,
    rest: Vec<(&'a str, WordRole)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WordRole {
    /// An option, or the value of one.
    Option,
    /// A word that says what the program is to do.
    Subcommand,
    /// A path, as it is written.
    Path,
    /// Anything else.
    Other,
}

impl<'a> PartWords<'a> {
    /// Reads them; none where one is only known when it runs.
    fn of(part: &'a Part) -> Option<Self> {
        let mut words = part.argv.iter().map(Option::as_deref);
        let program = words.next()??;
        let mut plain = Arguments::of(part).words.into_iter().flatten().peekable();
        let mut leading = part.subcommand.len();
        let mut rest = vec![];
        for word in words {
            let word = word?;
            // The same word, not only the same text.
            let role = match plain.next_if(|plain| std::ptr::eq(*plain, word)) {
                None => WordRole::Option,
                Some(_) if leading > 0 => {
                    leading -= 1;
                    WordRole::Subcommand
                }
                Some(_) if part.paths.iter().any(|path| path.written == word) => WordRole::Path,
                Some(_) => WordRole::Other,
            };
            rest.push((word, role));
        }
        Some(Self { program, rest })
    }

    /// Writes them as a pattern, each as the function has it.
    fn pattern(&self, write: impl Fn(&str, WordRole) -> Option<String>) -> String {
        let rest = { self.rest.iter() }.filter_map(|(word, role)| write(word, *role));
        let words: Vec<String> = std::iter::once(quote(self.program)).chain(rest).collect();
        words.join(" ")
    }

    fn with(&self, role: WordRole) -> impl Iterator<Item = &str> {
        let rest = self.rest.iter().filter(move |(_, other)| *other == role);
        rest.map(|(word, _)| *word)
    }

    /// The program, its subcommand and its options, for people.
    fn head(&self, options: bool) -> String {
        let mut words = vec![name(self.program)];
        for (word, role) in &self.rest {
            match role {
                WordRole::Subcommand => words.push(word),
                WordRole::Option if options => words.push(word),
                _ => {}
            }
        }
        words.join(" ")
    }
}

fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn exactly(words: &PartWords<'_>) -> Proposal {
    Proposal {
        pattern: format!("{} $", words.pattern(|word, _| Some(quote(word)))),
        label: "Exactly this command".into(),
    }
}

/// The same files, whatever else is said.
fn same_files(part: &Part, words: &PartWords<'_>) -> Option<Proposal> {
    let files: Vec<&str> = words.with(WordRole::Path).collect();
    let others = words.with(WordRole::Other).count();
    if files.is_empty() || others == 0 || !part.hosts.is_empty() {
        return None;
    }
    let pattern = words.pattern(|word, role| match role {
        WordRole::Other => Some("*".into()),
        _ => Some(quote(word)),
    });
    Some(Proposal {
        pattern: format!("{pattern} $"),
        label: format!(
            "{} on {}, whatever else it is told",
            words.head(true),
            listed(&files)
        ),
    })
}

/// Other files of the same directories.
fn same_directories(part: &Part, words: &PartWords<'_>) -> Option<Proposal> {
    let mut paths = part.paths.iter();
    if !paths.all(|path| path.place == PlaceKind::Sandbox) {
        return None;
    }
    let mut directories: Vec<&str> = vec![];
    for file in words.with(WordRole::Path) {
        let directory = directory(file)?;
        if !directories.contains(&directory) {
            directories.push(directory);
        }
    }
    if directories.is_empty() {
        return None;
    }
    let pattern = words.pattern(|word, role| match role {
        WordRole::Path => Some(format!("{}*", quote(directory(word)?))),
        WordRole::Other => Some("*".into()),
        _ => Some(quote(word)),
    });
    Some(Proposal {
        pattern: format!("{pattern} $"),
        label: format!("{} inside {}", words.head(true), listed(&directories)),
    })
}

/// Returns the directory that a path names something in, with its slash.
fn directory(path: &str) -> Option<&str> {
    let at = path.trim_end_matches('/').rfind('/')?;
    let directory = &path[..=at];
    let plain = !directory.split('/').any(|part| part == ".." || part == ".");
    (plain && directory != "/").then_some(directory)
}

/// The same machines, whatever is asked of them.
fn same_hosts(part: &Part) -> Option<Proposal> {
    if part.hosts.is_empty() || !part.subcommand.is_empty() || !ProgramPattern::is_own(part) {
        return None;
    }
    let mut hosts: Vec<String> = vec![];
    for host in { part.hosts.iter() }.map(|host| crate::rules::matcher::host(host)) {
        if host.is_empty() || host.contains('*') {
            return None;
        }
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    let texts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    Some(Proposal {
        pattern: format!("{{ program = {:?}, hosts = {texts:?} }}", part.program),
        label: format!("{} to {}", part.program, listed(&texts)),
    })
}

/// The program with its subcommand, whatever follows; with its options first,
/// and without.
fn any_arguments(part: &Part, words: &PartWords<'_>) -> Vec<Proposal> {
    if part.unknown.is_some() {
        return first_word(words).into_iter().collect();
    }
    let label = |options| format!("{} with any arguments", words.head(options));
    let pattern = |options: bool| {
        words.pattern(|word, role| match role {
            WordRole::Subcommand => Some(quote(word)),
            WordRole::Option if options => Some(quote(word)),
            _ => None,
        })
    };
    let bare = |options| Proposal {
        pattern: format!("{} *", pattern(options)),
        label: label(options),
    };
    let has_options = words.with(WordRole::Option).next().is_some();
    let has_values = { part.options.iter() }.any(|option| option.value.is_some());
    match has_options && !has_values {
        true => vec![bare(true), bare(false)],
        false => vec![bare(false)],
    }
}

/// What is not known is compared word by word, and the first often says what
/// it is about.
fn first_word(words: &PartWords<'_>) -> Option<Proposal> {
    let (first, _) = words.rest.first()?;
    if is_option(first) || words.rest.len() < 2 {
        return None;
    }
    let head = format!("{} {first}", name(words.program));
    Some(Proposal {
        pattern: format!("{} {} *", quote(words.program), quote(first)),
        label: format!("{head} with any arguments"),
    })
}

/// A file that the shell opens: this one, or any of its directory.
fn of_redirection(part: &Part, subject: &Subject<'_>) -> Vec<Proposal> {
    let [path] = part.paths.as_slice() else {
        return vec![];
    };
    let root = subject.place.map(|place| format!("{}/", place.root));
    let inside = root.and_then(|root| path.path.strip_prefix(&root).map(str::to_owned));
    let plain = |text: &String| !text.contains(['*', '?', '[', '{', '\\']);
    let Some(file) = inside
        .filter(plain)
        .filter(|_| path.access == Access::Write)
    else {
        return vec![];
    };
    let table = |glob: &str| {
        format!("{{ kind = \"redirection\", effects_only = [\"write\"], paths = [{glob:?}] }}")
    };
    let mut drafts = vec![Proposal {
        pattern: table(&file),
        label: format!("Redirections to {file}"),
    }];
    if let Some(directory) = directory(&file) {
        drafts.push(Proposal {
            pattern: table(&format!("{directory}**")),
            label: format!("Redirections to files in {directory}"),
        });
    }
    drafts
}

fn listed(things: &[&str]) -> String {
    match things {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests;
