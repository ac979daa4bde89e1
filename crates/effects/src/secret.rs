//! Hides likely secrets in what is shown.
//!
//! A guess, for people who look at changes on a screen that others see too.
//! What tells what a secret is stays; patches and files hold it as it is.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use crate::blob;

/// What stands for a secret.
const MASK: &str = "•••";

/// Hides the likely secrets of one line; `None` if there are none.
pub fn mask(line: &str) -> Option<String> {
    let known = PATTERNS.set.matches(line);
    let known = known.iter().map(|index| &PATTERNS.each[index]);
    let mut found: Vec<Secret> = known.flat_map(|pattern| secrets(pattern, line)).collect();
    found.extend(blob::find(line).into_iter().map(|(from, to)| Secret {
        begins: from,
        from,
        to,
    }));
    if found.is_empty() {
        return None;
    }
    let mut masked = String::new();
    let mut shown = 0;
    for secret in merged(found) {
        masked.push_str(&line[shown..secret.from]);
        masked.push_str(MASK);
        shown = secret.to;
    }
    masked.push_str(&line[shown..]);
    Some(masked)
}

/// A part of a line.
struct Secret {
    /// Where what tells what it is begins.
    begins: usize,
    /// Where what is hidden begins.
    from: usize,
    to: usize,
}

/// Joins what overlaps. Of two that begin at the same place, what the one
/// tells is not hidden by the other.
fn merged(mut found: Vec<Secret>) -> Vec<Secret> {
    found.sort_unstable_by_key(|secret| secret.from);
    let mut merged: Vec<Secret> = vec![];
    for secret in found {
        match merged.last_mut() {
            Some(last) if last.to > secret.from => {
                if last.from >= secret.begins {
                    last.from = secret.from;
                }
                last.to = last.to.max(secret.to);
            }
            _ => merged.push(secret),
        }
    }
    merged
}

/// Which lines of two texts are parts of keys; one line does not tell.
pub(crate) struct Secrets {
    before: Vec<Armor>,
    after: Vec<Armor>,
}

impl Secrets {
    pub(crate) fn of(before: &[&[u8]], after: &[&[u8]]) -> Self {
        Self {
            before: armor(before),
            after: armor(after),
        }
    }

    /// Hides the likely secrets of a line that has these numbers.
    pub(crate) fn mask(
        &self,
        before: Option<usize>,
        after: Option<usize>,
        text: &str,
    ) -> Option<String> {
        let of = |side: &[Armor], line: Option<usize>| line.map(|line| side[line]);
        let both = [of(&self.before, before), of(&self.after, after)];
        if both.contains(&Some(Armor::Private)) && !is_header(text) {
            return Some(MASK.to_owned());
        }
        if both.contains(&Some(Armor::Public)) {
            return None;
        }
        mask(text)
    }
}

/// Whether a line is inside of an armored block, as keys and certificates are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Armor {
    None,
    Private,
    Public,
}

fn armor(lines: &[&[u8]]) -> Vec<Armor> {
    let mut inside = Armor::None;
    let mut all = Vec::with_capacity(lines.len());
    // Only the last line of a block is short. Others could be commands of one
    // word, which must be seen.
    let mut may_be_short = false;
    for line in lines {
        let length = line.trim_ascii().len();
        let is_cut = (1..SHORT).contains(&length) && !is_header(&String::from_utf8_lossy(line));
        if !is_armored(line) || is_cut && !may_be_short {
            inside = Armor::None;
        }
        may_be_short = inside != Armor::None && length >= SHORT;
        all.push(inside);
        if let Some(kind) = opened(line) {
            inside = kind;
        }
    }
    all
}

/// Bytes that each line of an armored block has, but for the last.
const SHORT: usize = 16;

fn opened(line: &[u8]) -> Option<Armor> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    let at = line.windows(BEGIN.len()).position(|part| part == BEGIN)?;
    let rest = String::from_utf8_lossy(&line[at + BEGIN.len()..]);
    let (label, _) = rest.split_once("-----")?;
    Some(if label.contains("PRIVATE KEY") {
        Armor::Private
    } else {
        Armor::Public
    })
}

/// Whether a line can be inside of a block: base64, perhaps quoted as in
/// programs, a header as `DEK-Info:`, or nothing.
fn is_armored(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let line = line
        .trim()
        .trim_matches(['"', '\'', '`', '+', ',', '\\', ' ', '#', '*']);
    let line = line.strip_suffix("\\n").unwrap_or(line);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    line.chars().all(plain) || is_header(line)
}

/// What an armored block says about itself; no part of the secret.
fn is_header(line: &str) -> bool {
    const HEADERS: [&str; 5] = ["Proc-Type:", "DEK-Info:", "Comment:", "Version:", "Hash:"];
    HEADERS.iter().any(|header| line.starts_with(header))
}

struct Patterns {
    set: RegexSet,
    each: Vec<Regex>,
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let all: Vec<String> = TOKENS
        .iter()
        .map(|token| (*token).to_owned())
        .chain([assignment()])
        .collect();
    Patterns {
        set: RegexSet::new(&all).expect("the patterns are constant and tested"),
        each: all
            .iter()
            .map(|one| Regex::new(one).expect("the patterns are constant and tested"))
            .collect(),
    }
});

/// What secrets of well-known services look like; `s` is what is hidden.
const TOKENS: &[&str] = &[
    // Keys in one line, as in JSON.
    r"-----BEGIN [A-Z ]*PRIVATE KEY[A-Z ]*-----(?<s>[A-Za-z0-9+/=\\\s]{16,})",
    // AWS.
    r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA)(?<s>[A-Z2-7]{16})\b",
    // GitHub.
    r"\bgh[pousr]_(?<s>[A-Za-z0-9]{36,})",
    r"\bgithub_pat_(?<s>[A-Za-z0-9_]{22,})",
    // GitLab.
    r"\bgl(?:pat|dt|rt|ptt|cbt|soat|ft|agent|imt|oas)-(?<s>[A-Za-z0-9_-]{20,})",
    // Slack.
    r"\bxox[abeoprs]-(?<s>[A-Za-z0-9-]{10,})",
    r"\bxapp-(?<s>[A-Za-z0-9-]{10,})",
    r"hooks\.slack\.com/services/(?<s>T[A-Za-z0-9_]+/B[A-Za-z0-9_]+/[A-Za-z0-9_]+)",
    // Stripe.
    r"\b[sr]k_(?:live|test)_(?<s>[A-Za-z0-9]{10,})",
    r"\bwhsec_(?<s>[A-Za-z0-9+/=]{20,})",
    // Registries of packages.
    r"\bnpm_(?<s>[A-Za-z0-9]{36})\b",
    r"\bpypi-(?<s>AgE[A-Za-z0-9_-]{20,})",
    r"\bcio(?<s>[A-Za-z0-9]{32})\b",
    r"\bdckr_pat_(?<s>[A-Za-z0-9_-]{20,})",
    // Models.
    r"\bsk-ant-(?:[a-z]+[0-9]+-)?(?<s>[A-Za-z0-9_-]{20,})",
    r"\bsk-(?:proj|svcacct|admin)-(?<s>[A-Za-z0-9_-]{20,})",
    r"\bsk-(?<s>[A-Za-z0-9]{32,})\b",
    r"\bhf_(?<s>[A-Za-z0-9]{30,})\b",
    // Google.
    r"\bAIza(?<s>[A-Za-z0-9_-]{35})",
    r"\bya29\.(?<s>[A-Za-z0-9_-]{20,})",
    r"\bGOCSPX-(?<s>[A-Za-z0-9_-]{20,})",
    // Others.
    r"\bdo[opr]_v1_(?<s>[a-f0-9]{64})\b",
    r"\bSG\.(?<s>[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})",
    r"\bhv[sb]\.(?<s>[A-Za-z0-9_-]{24,})",
    r"\bAGE-SECRET-KEY-1(?<s>[A-Z0-9]{40,})",
    r"\b[0-9]{8,10}:AA(?<s>[A-Za-z0-9_-]{32,})",
    // JSON web tokens.
    r"\beyJ(?<s>[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)",
    // Headers.
    r"(?i)\b(?:bearer|basic)\s+(?<s>[A-Za-z0-9_.+/~-]*[0-9][A-Za-z0-9_.+/~-]*=*)",
    // Passwords in addresses.
    r#"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'`]*:(?<s>[^\s/@"'`]+)@"#,
];

/// What is given to something whose name tells that it is a secret: `k` is
/// its name, `q` what is quoted, `b` what is not. A YAML tag before it, and what
/// a shell would read as more than a word after it, are no part of it.
fn assignment() -> String {
    const WORDS: &str = r"passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|auth";
    let key = format!(r"(?<k>[A-Za-z0-9_.-]*(?:{WORDS})[A-Za-z0-9_-]*)");
    let value = r#"(?:"(?<q>[^"]*)"|'(?<r>[^']*)'|`(?<t>[^`]*)`|(?<b>[^\s"'`=,;&|<>()][^\s"'`,;&|<>()]*)(?<e>[,;&|<>()]?))"#;
    format!(r#"(?i){key}(?:["']\]?)?(?<o>\s*(?:=>|:=|=|:)\s*)(?:!\S*\s+)?{value}"#)
}

fn secrets(pattern: &Regex, line: &str) -> Vec<Secret> {
    let secret = |all: regex::Captures<'_>| {
        let (begins, hidden) = match all.name("s") {
            Some(secret) if is_placeholder(secret.as_str()) || runs(secret.as_str()) => {
                return None;
            }
            Some(secret) => (all.get_match().start(), secret.range()),
            None => assigned(&all).map(|value| (value.start, value))?,
        };
        Some(Secret {
            begins,
            from: hidden.start,
            to: hidden.end,
        })
    };
    pattern.captures_iter(line).filter_map(secret).collect()
}

/// The secret of an assignment, if it is one.
fn assigned(all: &regex::Captures<'_>) -> Option<std::ops::Range<usize>> {
    let key = SecretKeyName::of(all.name("k")?.as_str())?;
    let is_given = all.name("o")?.as_str() == "=";
    let quoted = ["q", "r", "t"].iter().find_map(|name| all.name(name));
    let value = quoted.or_else(|| all.name("b"))?;
    // A shell runs it.
    let is_run = all.name("t").is_some() && is_given;
    // The dollar of `$(` belongs to what is run.
    let text = value.as_str();
    let text = match all.name("e") {
        Some(next) if next.as_str() == "(" => text.trim_end_matches('$'),
        _ => text,
    };
    if text.chars().count() < 6 || is_placeholder(text) || is_run || runs(text) {
        return None;
    }
    let likely = match quoted {
        Some(_) => key.quotes(text),
        // As in files of variables: nothing else has this form.
        None if is_given && key.is_upper => true,
        None => all.name("e")?.is_empty() && key.says(text),
    };
    likely.then(|| value.start()..value.start() + text.len())
}

/// Whether a value holds what something would run or make of it: that has to be
/// seen, whatever it is given to.
fn runs(text: &str) -> bool {
    text.starts_with('!')
        || ["$(", "`", "<%", "#{"]
            .iter()
            .any(|sign| text.contains(sign))
}

/// The name of something that may be a secret.
struct SecretKeyName {
    is_upper: bool,
    /// Its value is a secret whatever it looks like.
    is_password: bool,
    takes_spaces: bool,
}

impl SecretKeyName {
    fn of(name: &str) -> Option<Self> {
        // What is about a secret and is none.
        const ABOUT: &[&str] = &[
            "url",
            "uri",
            "path",
            "file",
            "dir",
            "type",
            "name",
            "count",
            "length",
            "len",
            "limit",
            "expiry",
            "expires",
            "ttl",
            "endpoint",
            "policy",
            "field",
            "input",
            "label",
            "hint",
            "header",
            "env",
            "var",
            "ref",
            "id",
            "tokens",
            "tokenizer",
            "author",
            "authors",
            "authored",
            "authority",
            "method",
            "mode",
            "provider",
            "placeholder",
            "host",
            "port",
            "error",
            "message",
            "regex",
            "pattern",
            "required",
            "class",
            "selector",
            "scope",
        ];
        let lower = name.to_ascii_lowercase();
        let last = words(name).last()?.to_ascii_lowercase();
        let named = |word: &str| {
            words(name)
                .iter()
                .any(|part| part.eq_ignore_ascii_case(word))
        };
        // `auth` begins too many other words.
        let others = ["pass", "pwd", "secret", "token", "key", "credential"];
        let is_auth = !others.iter().any(|word| lower.contains(word));
        if ABOUT.contains(&last.as_str()) || is_auth && !(named("auth") || named("authorization")) {
            return None;
        }
        Some(Self {
            is_upper: !name.chars().any(|c| c.is_ascii_lowercase()),
            is_password: lower.contains("passw") || lower.contains("pwd"),
            takes_spaces: lower.contains("passphrase"),
        })
    }

    fn quotes(&self, text: &str) -> bool {
        if text.contains(char::is_whitespace) {
            return self.takes_spaces;
        }
        self.is_password || self.takes_spaces || mixed(text) || text.len() >= 20 && is_word(text)
    }

    /// Whether something unquoted is a secret, and no part of a program.
    fn says(&self, text: &str) -> bool {
        let code = |c: char| matches!(c, '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | '&' | '|');
        let refers = text.contains("::") || text.contains("->") || is_path(text);
        !text.contains(code) && !refers && mixed(text)
    }
}

/// Parts of a name: `dbPassword_id` has three.
fn words(name: &str) -> Vec<&str> {
    let mut words = vec![];
    for part in name.split(['_', '-', '.']) {
        let bytes = part.as_bytes();
        let mut start = 0;
        for at in 1..bytes.len() {
            if bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase() {
                words.push(&part[start..at]);
                start = at;
            }
        }
        words.push(&part[start..]);
    }
    words
}

fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Letters, and something that words do not have.
fn mixed(text: &str) -> bool {
    let odd = |c: char| c.is_ascii_digit() || matches!(c, '!' | '@' | '#' | '%' | '^' | '*' | '?');
    text.contains(char::is_alphabetic) && text.contains(odd)
}

/// Something of something, as `config.auth.token2`, or a file.
fn is_path(text: &str) -> bool {
    let name = |part: &str| {
        let first = part
            .chars()
            .next()
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        first && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let dotted = text.contains('.')
        && text
            .split(['.', '?', '!'])
            .all(|part| part.is_empty() || name(part));
    dotted || text.starts_with(['/', '.', '~']) || text.contains("://")
}

/// What people write where a secret is meant, or where it comes from.
fn is_placeholder(text: &str) -> bool {
    const BEGIN: &[&str] = &[
        "$",
        "%",
        "{{",
        "<",
        "process.env",
        "os.environ",
        "os.getenv",
        "env.",
        "ENV[",
        "secrets.",
        "vars.",
        "var.",
        "ref+",
        "your",
        "my_",
        "my-",
        "example",
        "dummy",
        "changeme",
        "change_me",
        "change-me",
        "placeholder",
        "replace",
        "insert",
        "todo",
        "redacted",
        "…",
        "...",
        "***",
        "•",
    ];
    const WHOLE: &[&str] = &[
        "null",
        "none",
        "true",
        "false",
        "undefined",
        "password",
        "passwd",
        "secret",
        "token",
        "string",
        "required",
        "optional",
        "default",
        "disabled",
        "enabled",
        "hidden",
        "bearer",
        "user",
        "pass",
        "test",
        "number",
        "boolean",
        "unknown",
        "postgres",
    ];
    let lower = text.to_lowercase();
    let same = |c: char| matches!(c, 'x' | 'X' | '*' | '.' | '-' | '_' | '0' | '#');
    BEGIN
        .iter()
        .any(|begin| lower.starts_with(&begin.to_lowercase()))
        || WHOLE.contains(&lower.as_str())
        || text.chars().all(same)
        || text.contains("${")
        || text.contains("{{")
        || text.contains("xxxx")
        || text.contains("XXXX")
        || text.starts_with('{') && text.ends_with('}')
}
