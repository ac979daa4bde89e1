//! What kind of place a path is.

use crate::argument::UNKNOWN;
use crate::part::{Access, Place, PlaceKind};
use crate::secret_files;

/// Directories at the root that belong to the system.
const SYSTEM: &[&str] = &[
    "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "sys", "usr",
];

/// Other directories at the root: deleting one is never meant, deleting
/// something inside may be.
const TOP: &[&str] = &[
    "home",
    "root",
    "var",
    "opt",
    "srv",
    "run",
    "mnt",
    "media",
    "snap",
    "Users",
    "Library",
    "System",
    "Applications",
    "Volumes",
    "private",
    "data",
];

/// Devices that hold nothing.
const SINKS: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/fd",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
];

/// What holds keys, passwords and the like, beside what the walls keep from
/// commands by its name ([`secret_files`](crate::secret_files)): below a home
/// directory, or anywhere when the name alone says it. `*` is any text without
/// a slash.
const SECRETS: &[&str] = &[
    ".kube",
    ".npmrc",
    ".yarnrc.yml",
    ".config/gh",
    ".config/hub",
    ".config/gcloud",
    ".config/git/credentials",
    ".config/op",
    ".config/glab-cli",
    ".config/doctl",
    ".config/heroku",
    ".config/sops",
    ".config/age",
    ".config/rclone",
    ".gem/credentials",
    ".terraform.d/credentials*",
    ".terraformrc",
    ".m2/settings.xml",
    ".local/share/keyrings",
    ".keychain",
    "Library/Keychains",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".thunderbird",
    ".bash_history",
    ".zsh_history",
    ".sh_history",
    ".history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".lesshst",
    ".local/share/fish/fish_history",
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    "master.key",
    "terraform.tfstate*",
];

/// The same for whole paths.
const SECRET_PATHS: &[&str] = &[
    "/etc/shadow*",
    "/etc/gshadow*",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/passwd-",
    "/etc/ssl/private",
    "/etc/ssh",
    "/etc/pki",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/letsencrypt",
    "/root",
    "/proc/*/environ",
    "/proc/*/task/*/environ",
    "/proc/*/task/*/mem",
    "/proc/*/mem",
    "/proc/*/maps",
    "/proc/*/cmdline",
    "/proc/*/fd",
    "/proc/*/root",
    "/proc/*/cwd",
    "/proc/kcore",
    "/proc/keys",
    "/var/run/secrets",
    "/run/secrets",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/var/log/auth.log*",
    "/var/log/secure*",
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/var/spool/cron",
    "/var/mail",
    "/var/spool/mail",
];

/// What makes a name a pattern, or not wholly known.
const WILD: [char; 4] = ['*', '?', '[', UNKNOWN];

/// Names that look like secrets and are examples.
const EXAMPLES: &[&str] = &["example", "sample", "template", "dist", "pub"];

/// Makes a path absolute and takes `.` and `..` out, by its text alone.
pub(crate) fn clean(path: &str, cwd: Option<&str>) -> String {
    let through;
    let path = match path.strip_prefix("/dev/fd/") {
        // It is a link, and `..` goes up from where that leads.
        Some(rest) if rest.contains("..") => {
            through = format!("/proc/self/fd/{rest}");
            &through
        }
        _ => path,
    };
    let mut parts: Vec<&str> = vec![];
    let base = match cwd {
        Some(cwd) if !path.starts_with('/') => cwd,
        _ => "",
    };
    let absolute = path.starts_with('/') || base.starts_with('/');
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                if parts.last().is_some_and(|last| *last != "..") {
                    parts.pop();
                } else if !absolute {
                    parts.push("..");
                }
            }
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if absolute {
        format!("/{joined}")
    } else {
        joined
    }
}

/// Returns what kind of place a clean path is, for what happens to it.
pub(crate) fn kind(path: &str, access: Access, deep: bool, place: &Place) -> PlaceKind {
    if is_sink(path) {
        return PlaceKind::Sink;
    }
    match access {
        Access::Delete if is_protected(path, place) => return PlaceKind::Protected,
        Access::Write if deep && is_protected(path, place) => return PlaceKind::Protected,
        Access::Write if is_device(path) => return PlaceKind::Device,
        Access::Read if is_device(path) && path.starts_with("/dev/") => return PlaceKind::Device,
        _ => {}
    }
    let (above, below_all) = match path.strip_suffix("/**") {
        Some(above) => (above, true),
        None => (path, deep),
    };
    if access == Access::Read
        && (is_secret(path, place) || (below_all && holds_secrets(above, place)))
    {
        return PlaceKind::Secret;
    }
    if below(path, &place.root) {
        return PlaceKind::Sandbox;
    }
    PlaceKind::Ordinary
}

/// Returns the directory of which a pattern means everything, or everything
/// that is hidden, and no secret in particular: `*`, `.*`, `.[!.]*`.
pub(crate) fn all_of(path: &str) -> Option<&str> {
    let (dir, name) = path.rsplit_once('/')?;
    is_vague(name.strip_prefix('.').unwrap_or(name)).then_some(dir)
}

/// Returns whether reading or writing it changes and shows nothing.
pub(crate) fn is_sink(path: &str) -> bool {
    SINKS.contains(&path) || path.starts_with("/dev/fd/")
}

fn is_device(path: &str) -> bool {
    let raw = ["/dev/", "/proc/sys", "/sys/"];
    if is_mistyped_sink(path) {
        return false;
    }
    path == "/dev/*"
        || raw.iter().any(|start| path.starts_with(start))
            && !path.starts_with("/dev/shm")
            && !path.starts_with("/dev/pts")
        || path == "/proc/sysrq-trigger"
}

/// Returns whether it is meant to be a device that holds nothing: `/dev/nul`.
/// No device has such a name.
fn is_mistyped_sink(path: &str) -> bool {
    let meant = [
        "null", "zero", "full", "stdin", "stdout", "stderr", "random", "urandom",
    ];
    path.strip_prefix("/dev/").is_some_and(|name| {
        let name = name.to_ascii_lowercase();
        !name.contains(WILD)
            && meant
                .iter()
                .any(|sink| is_slip(name.as_bytes(), sink.as_bytes()))
    })
}

/// Returns whether one letter too many, one missing, a wrong one, or two that
/// are swapped make a word of another.
fn is_slip(word: &[u8], other: &[u8]) -> bool {
    let same = { word.iter().zip(other) }
        .take_while(|(a, b)| a == b)
        .count();
    let (word, other) = (&word[same..], &other[same..]);
    let swapped =
        matches!((word, other), ([a, b, c @ ..], [d, e, f @ ..]) if a == e && b == d && c == f);
    swapped
        || word.get(1..) == Some(other)
        || other.get(1..) == Some(word)
        || word
            .get(1..)
            .is_some_and(|rest| other.get(1..) == Some(rest))
        || word.is_empty() && other.is_empty()
}

/// Returns whether deleting it, or everything in it, must never happen.
fn is_protected(path: &str, place: &Place) -> bool {
    // `dir/*` is everything in `dir`; so is `dir/.*`.
    let mut path = path;
    while let Some((dir, last)) = path.rsplit_once('/') {
        if matches!(last, "*" | ".*" | "**" | ".[!.]*" | "?*" | "{*,.*}" | "") {
            path = dir;
        } else {
            break;
        }
    }
    if path.is_empty() || path == place.home {
        return true;
    }
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    if !path.starts_with('/') {
        return false;
    }
    match parts.as_slice() {
        [top] => could_be_any(top, SYSTEM) || could_be_any(top, TOP),
        ["home" | "Users", _] => !below(path, &place.root) && path != place.root,
        ["usr", "local", _, ..] => false,
        ["dev", "shm", _, ..] => false,
        [top, ..] => SYSTEM.contains(top),
        [] => true,
    }
}

/// Returns whether a clean path is, or is in, a place that holds secrets.
fn is_secret(path: &str, place: &Place) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    if name
        .rsplit('.')
        .next()
        .is_some_and(|end| EXAMPLES.contains(&end))
    {
        return false;
    }
    // Root's home holds secrets for everybody but root.
    let own = |secret: &&&str| **secret != "/root" || !below(&place.home, "/root");
    let mut paths = SECRET_PATHS.iter().filter(own);
    if paths.any(|secret| reaches(path, secret)) {
        return true;
    }
    let mut names = SECRETS.iter().copied().chain(secret_files::names());
    names.any(|secret| contains_run(path, secret))
}

/// Returns whether everything below a path includes places with secrets.
fn holds_secrets(path: &str, place: &Place) -> bool {
    matches!(
        path,
        "/" | "/home" | "/root" | "/etc" | "/proc" | "/Users" | "/*" | "/run" | "/var"
    ) || (below(&place.home, path) && path != place.root)
}

/// Returns whether a path is another or below it.
pub(crate) fn below(path: &str, other: &str) -> bool {
    path.strip_prefix(other)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || other == "/")
}

/// Returns whether a path, perhaps a pattern, could be a secret path or lie
/// below it.
fn reaches(path: &str, secret: &str) -> bool {
    let mut path = path.split('/');
    secret
        .split('/')
        .all(|want| path.next().is_some_and(|part| leads(part, want)))
}

/// The same for one component. `/etc/*release` is not meant to find what
/// `/etc/shadow*` stands for.
fn leads(part: &str, want: &str) -> bool {
    let ends = want.len() > 1 && want.ends_with('*') && part.contains(WILD);
    match want.strip_suffix('*') {
        Some(start) if ends => ["", "-", ".1"]
            .iter()
            .any(|some| overlap(part, &format!("{start}{some}"))),
        _ => overlap(part, want),
    }
}

/// Returns whether the components of a secret's name occur, one after
/// another, somewhere in the path.
fn contains_run(path: &str, secret: &str) -> bool {
    // `HEAD:.env` is a path, too.
    let parts = path.split(['/', ':']).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    let want: Vec<&str> = secret.split('/').collect();
    parts.windows(want.len()).any(|run| {
        let mut both = run.iter().zip(&want);
        // The directory says what is meant: `.docker/c*`, `.config/*/hosts.yml`.
        both.next().is_some_and(|(part, want)| finds(part, want))
            && both.all(|(part, want)| overlap(part, want))
    })
}

/// Returns whether a name, perhaps a pattern, is or would find a secret one.
/// Two patterns nearly always have a name in common, so a pattern is only
/// tried against a plain example of the other.
fn finds(part: &str, secret: &str) -> bool {
    if !part.contains(WILD) {
        return overlap(part, secret);
    }
    // `*.json` is not meant to find `credentials.json`; `*.pem` is.
    let by_ending = is_ending(part) && !secret.starts_with('*');
    let same_ending = secret
        .strip_prefix('*')
        .is_some_and(|end| part.ends_with(end));
    if same_ending {
        return true;
    }
    !is_vague(part)
        && !by_ending
        && ["x", ""]
            .iter()
            .any(|some| overlap(part, &secret.replace('*', some)))
}

/// Returns whether a pattern says next to nothing about what is meant: `*`,
/// `a*`, `[A-Z]*`.
fn is_vague(pattern: &str) -> bool {
    let few = pattern.contains('*') && !pattern.starts_with('.') && spelled(pattern) <= 1;
    few || pattern.trim_matches(WILD).is_empty()
}

/// Returns whether a pattern says little more than how a name ends: `*.json`,
/// `c*.json`.
fn is_ending(pattern: &str) -> bool {
    let Some((before, ending)) = pattern.split_once('*') else {
        return false;
    };
    let one = ending.starts_with('.') && !ending[1..].contains('.');
    one && !before.starts_with('.') && spelled(before) <= 1
}

/// Returns how many characters of a pattern are spelled out. `[a-z]` and
/// `[!x]` are wide, `[x]` and `[xy]` are not.
pub(crate) fn spelled(pattern: &str) -> usize {
    let mut count = 0;
    let mut rest = pattern;
    while let Some(next) = rest.chars().next() {
        let set = rest.strip_prefix('[').and_then(|set| set.split_once(']'));
        if let Some((set, after)) = set {
            let wide = set.contains('-') || set.starts_with(['!', '^', '[']);
            count += usize::from(!wide);
            rest = after;
            continue;
        }
        count += usize::from(!WILD.contains(&next));
        rest = &rest[next.len_utf8()..];
    }
    count
}

fn could_be_any(part: &str, names: &[&str]) -> bool {
    names.iter().any(|name| overlap(part, name))
}

/// Returns whether two patterns could match the same name.
pub(crate) fn overlap(a: &str, b: &str) -> bool {
    if !a.contains(WILD) && !b.contains(WILD) {
        return a == b;
    }
    let (a, b) = (tokens(a), tokens(b));
    // Reachable pairs of positions, row by row; names are short.
    let mut row = vec![false; b.len() + 1];
    row[0] = true;
    for j in 0..b.len() {
        row[j + 1] = row[j] && b[j] == Token::Many;
    }
    for x in &a {
        let mut next = vec![false; b.len() + 1];
        next[0] = row[0] && *x == Token::Many;
        for (j, y) in b.iter().enumerate() {
            next[j + 1] = match (x, y) {
                (Token::Many, _) => row[j + 1] || next[j] || row[j],
                (_, Token::Many) => next[j] || row[j + 1] || row[j],
                _ => row[j] && x.meets(y),
            };
        }
        row = next;
    }
    row[b.len()]
}

/// What one place of a pattern stands for.
#[derive(PartialEq)]
enum Token<'a> {
    Many,
    One,
    /// What is between brackets.
    Set(&'a str),
    Letter(char),
}

impl Token<'_> {
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Token::Letter(a), Token::Letter(b)) => a == b,
            (Token::Set(set), Token::Letter(letter)) | (Token::Letter(letter), Token::Set(set)) => {
                in_set(set, *letter)
            }
            _ => true,
        }
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut out = vec![];
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        rest = &rest[next.len_utf8()..];
        out.push(match next {
            '*' | UNKNOWN => Token::Many,
            '?' => Token::One,
            '[' => match rest.split_once(']') {
                Some((set, after)) => {
                    rest = after;
                    Token::Set(set)
                }
                None => Token::Letter('['),
            },
            letter => Token::Letter(letter),
        });
    }
    out
}

/// Returns whether a letter may be in a set. In some languages `[a-z]` has
/// capitals, and a class has more than meets the eye.
fn in_set(set: &str, letter: char) -> bool {
    let (set, negated) = match set.strip_prefix(['!', '^']) {
        Some(set) => (set, true),
        None => (set, false),
    };
    if set.is_empty() || set.contains(['[', '\\', UNKNOWN]) {
        return true;
    }
    let letters: Vec<char> = set.chars().collect();
    let alike = |a: char, b: char| a.eq_ignore_ascii_case(&b);
    let ranges = letters.windows(3).filter(|range| range[1] == '-');
    let mut ranges = ranges.map(|range| (range[0], range[2]));
    let (lower, upper) = (letter.to_ascii_lowercase(), letter.to_ascii_uppercase());
    let between = |(from, to)| (from..=to).contains(&lower) || (from..=to).contains(&upper);
    match negated {
        true => !letters.contains(&letter),
        false => letters.iter().any(|one| alike(*one, letter)) || ranges.any(between),
    }
}
