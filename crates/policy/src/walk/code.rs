//! Commands in code of other languages.
//!
//! Only the look of it counts: text in quotes that a call takes which starts
//! programs, `os.system("…")`, `run(["…", "…"])`. What other texts say is no
//! command, unless it is plainly one: `rm -rf /`.

use super::run::NOTORIOUS;
use crate::rules::pattern::quote;

/// What is in the name of a call that starts programs.
const STARTERS: &[&str] = &[
    "system",
    "popen",
    "exec",
    "spawn",
    "fork",
    "shell",
    "qx",
    "check_call",
    "check_output",
    "getoutput",
    "startfile",
    "capture2",
    "capture3",
    "passthru",
    "%x",
];

/// What calls of such a name belong to that start no programs: expressions and
/// connections to a database.
const OTHERS: &[&str] = &[
    "re",
    "rx",
    "regex",
    "regexp",
    "pattern",
    "matcher",
    "cur",
    "cursor",
    "conn",
    "connection",
    "db",
    "session",
    "client",
    "tx",
    "stmt",
    "query",
    "engine",
    "pool",
    "knex",
    "redis",
];

/// Names of calls that only print.
const PRINTS: &[&str] = &[
    "print", "puts", "echo", "log", "println", "printf", "say", "warn", "info",
];

/// Marks in one code that are looked behind; each takes time in the length of it.
const MAX_MARKS: usize = 64;

/// Operators that run the text in the brackets behind them as a command.
const MARKS: &[&str] = &["qx", "%x"];

/// Names of such calls that are too short to look for inside of others.
const CALLS: &[&str] = &["run", "call", "sh", "cmd", "pty"];

/// Returns the commands that code seems to start.
pub(super) fn started(code: &str) -> Vec<String> {
    let groups = groups(code);
    let calls = groups.iter().any(|group| group.called);
    let lower = code.to_lowercase();
    let starts = calls || STARTERS.iter().any(|name| lower.contains(name));
    let mut commands = vec![];
    for group in groups {
        if group.called || (starts && !group.printed && is_plain(&group.texts.join(" "))) {
            match group.texts.as_slice() {
                [only] => commands.push((*only).to_owned()),
                [first, ..] => {
                    commands.push((*first).to_owned());
                    let words: Vec<String> = group.texts.iter().map(|text| quote(text)).collect();
                    commands.push(words.join(" "));
                }
                [] => {}
            }
        }
    }
    commands.extend(bracketed(code).map(str::to_owned));
    commands.retain(|command| !command.trim().is_empty());
    commands
}

/// Returns what stands in brackets behind a mark: `qx(…)`, `%x{…}`.
fn bracketed(code: &str) -> impl Iterator<Item = &str> {
    let marked = MARKS.iter().flat_map(move |mark| code.match_indices(mark));
    marked.take(MAX_MARKS).filter_map(move |(at, mark)| {
        let rest = &code[at + mark.len()..];
        let close = match rest.chars().next()? {
            '(' => ')',
            '{' => '}',
            '[' => ']',
            other @ ('/' | '|' | '!') => other,
            _ => return None,
        };
        let rest = &rest[1..];
        rest.find(close).map(|end| &rest[..end])
    })
}

/// Returns whether a text is plainly a command, wherever it is: `sudo id`,
/// `rm -rf /`, and not `su means…`.
fn is_plain(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let (Some(first), Some(second)) = (words.next(), words.next()) else {
        return false;
    };
    let base = first.rsplit('/').next().unwrap_or(first);
    let option = second.starts_with(['-', '/']) || second.contains('=');
    matches!(base, "sudo" | "doas") || (option && NOTORIOUS.contains(&base))
}

/// Texts in quotes with nothing but commas between them.
struct QuotedTexts<'a> {
    texts: Vec<&'a str>,
    /// They are what a call takes that starts programs.
    called: bool,
    /// They are what a call takes that prints.
    printed: bool,
}

fn groups(code: &str) -> Vec<QuotedTexts<'_>> {
    let mut groups: Vec<QuotedTexts<'_>> = vec![];
    let mut from = 0;
    while let Some(start) = code[from..].find(['"', '\'', '`']).map(|at| from + at) {
        let quote = char::from(code.as_bytes()[start]);
        let Some(length) = code[start + 1..].find(quote) else {
            break;
        };
        let text = &code[start + 1..start + 1 + length];
        let between = &code[from..start];
        let follows = between
            .chars()
            .all(|c| c == ',' || c == '[' || c.is_whitespace());
        match groups.last_mut() {
            Some(group) if follows && between.contains(',') => group.texts.push(text),
            _ => groups.push(QuotedTexts {
                texts: vec![text],
                called: quote == '`' || is_call(between),
                printed: is_print(between),
            }),
        }
        from = start + 2 + length;
    }
    groups
}

/// Returns whether code ends in the beginning of a call that starts programs.
fn is_call(before: &str) -> bool {
    let (rest, name) = last_name(before);
    // What says how the quoted text is to be read: `f"…"`.
    let prefix = name.len() <= 2 && !CALLS.contains(&name.as_str());
    let (rest, name) = if prefix {
        last_name(rest)
    } else {
        (rest, name)
    };
    let (owner, last) = match name.rfind(['.', ':']) {
        Some(at) => (name[..at].trim_end_matches(':'), &name[at + 1..]),
        None => ("", name.as_str()),
    };
    let expression = rest.ends_with('/') && name.starts_with('.');
    let owner = owner.rsplit(['.', ':']).next().unwrap_or(owner);
    if expression || OTHERS.contains(&owner.trim_start_matches(['$', '@'])) {
        return false;
    }
    STARTERS.iter().any(|starter| name.contains(starter)) || CALLS.contains(&last)
}

/// Returns whether code ends in the beginning of a call that prints.
fn is_print(before: &str) -> bool {
    let (_, name) = last_name(before);
    PRINTS.contains(&name.rsplit('.').next().unwrap_or(&name))
}

/// Splits off the name that code ends with, but for opening brackets.
fn last_name(code: &str) -> (&str, String) {
    let code = code.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '(' | '[' | '{'));
    let rest = code.trim_end_matches(|c: char| c.is_alphanumeric() || "_.%$!:@".contains(c));
    (rest, code[rest.len()..].to_lowercase())
}
