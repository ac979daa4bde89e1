//! What kind of place a path is.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::part::{Access, Place, PlaceKind};
use crate::pattern::{NamePattern, WILD, overlap, spelled};
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
    ".config/hub",
    ".config/heroku",
    ".config/rclone",
    ".gem/credentials",
    ".terraform.d/credentials*",
    ".m2/settings.xml",
    ".local/share/keyrings",
    ".keychain",
    "library/keychains",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".config/bravesoftware",
    ".thunderbird",
    ".history",
    ".lesshst",
    ".local/share/fish/fish_history",
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
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
    kind_if(path, access, deep, place, || true)
}

/// The same, where looking for secrets may be too costly: see [`effort`].
pub(crate) fn kind_if(
    path: &str,
    access: Access,
    deep: bool,
    place: &Place,
    may_look: impl FnOnce() -> bool,
) -> PlaceKind {
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
        && may_look()
        && (is_secret(path, place) || (below_all && holds_secrets(above, place)))
    {
        return PlaceKind::Secret;
    }
    if below(path, &place.root) {
        return PlaceKind::Sandbox;
    }
    PlaceKind::Ordinary
}

/// Returns what looking for secrets in a path costs, in the units of the walk's
/// budget: each component is compared with names, and a pattern with all of
/// them.
pub(crate) fn effort(path: &str) -> usize {
    let parts = path.split(['/', ':']);
    parts
        .map(|part| match part.contains(WILD) {
            true => 4000,
            false => 50,
        })
        .sum()
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
    // As the walls see it: `.ENV` is `.env`.
    let lower = path.to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    if name
        .rsplit('.')
        .next()
        .is_some_and(|end| EXAMPLES.contains(&end))
    {
        return false;
    }
    // Root's home holds secrets for everybody but root.
    let own = |secret: &&&str| **secret != "/root" || !below(&place.home, "/root");
    // Most paths are told apart by their first component.
    let top = path.split('/').nth(1).unwrap_or_default();
    let near = |secret: &&&str| top.contains(WILD) || secret[1..].starts_with(top);
    let mut paths = SECRET_PATHS.iter().filter(near).filter(own);
    if paths.any(|secret| reaches(path, secret)) {
        return true;
    }
    // `HEAD:.env` is a path, too.
    let parts = lower.split(['/', ':']).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    (0..parts.len()).any(|at| has_secret_name(parts[at], &parts[at + 1..]))
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

/// Returns whether a component of a path, with those after it, is a secret's name.
fn has_secret_name(part: &str, after: &[&str]) -> bool {
    // The directory says what is meant: `.docker/c*`, `.config/*/hosts.yml`.
    let follows = |secret: &&SecretName| {
        let mut after = after.iter();
        { secret.rest.iter() }.all(|want| after.next().is_some_and(|part| overlap(part, want)))
    };
    if part.contains(WILD) {
        let part = PatternName::new(part);
        return NAMES
            .all()
            .any(|secret| part.finds(secret) && follows(&secret));
    }
    let plain = NAMES.plain.get(part).into_iter().flatten();
    let alike = { NAMES.patterns.iter() }.filter(|secret| secret.pattern.matches(part));
    plain.chain(alike).any(|secret| follows(&secret))
}

/// The names of secrets. There are many, and each component of each path is
/// compared with them, so most are found by their first component.
static NAMES: LazyLock<SecretNames> = LazyLock::new(SecretNames::new);

struct SecretNames {
    plain: HashMap<&'static str, Vec<SecretName>>,
    /// Those whose first component is a pattern.
    patterns: Vec<SecretName>,
}

struct SecretName {
    first: &'static str,
    pattern: NamePattern<'static>,
    rest: Vec<&'static str>,
    /// Names that the first component stands for.
    examples: Vec<String>,
}

impl SecretNames {
    fn new() -> Self {
        let (mut plain, mut patterns) = (HashMap::<_, Vec<_>>::new(), vec![]);
        for name in SECRETS.iter().copied().chain(secret_files::names()) {
            let name = SecretName::new(name);
            match name.first.contains(WILD) {
                true => patterns.push(name),
                false => plain.entry(name.first).or_default().push(name),
            }
        }
        Self { plain, patterns }
    }

    fn all(&self) -> impl Iterator<Item = &SecretName> {
        self.plain.values().flatten().chain(&self.patterns)
    }
}

impl SecretName {
    fn new(name: &'static str) -> Self {
        let mut parts = name.split('/');
        let first = parts.next().unwrap_or(name);
        let mut examples = vec![first.replace('*', "x"), first.replace('*', "")];
        examples.dedup();
        Self {
            first,
            pattern: NamePattern::new(first),
            rest: parts.collect(),
            examples,
        }
    }
}

/// A component that is a pattern. Two patterns nearly always have a name in
/// common, so it is only tried against plain examples of the other.
struct PatternName<'a> {
    part: &'a str,
    pattern: NamePattern<'a>,
    is_vague: bool,
    is_ending: bool,
}

impl<'a> PatternName<'a> {
    fn new(part: &'a str) -> Self {
        Self {
            part,
            pattern: NamePattern::new(part),
            is_vague: is_vague(part),
            is_ending: is_ending(part),
        }
    }

    /// Returns whether it would find a secret name.
    fn finds(&self, secret: &SecretName) -> bool {
        let ending = secret.first.strip_prefix('*');
        if ending.is_some_and(|end| self.part.ends_with(end)) {
            return true;
        }
        // `*.json` is not meant to find `credentials.json`; `*.pem` is.
        let by_ending = self.is_ending && !is_ending(secret.first);
        let mut examples = secret.examples.iter();
        !self.is_vague && !by_ending && examples.any(|name| self.pattern.matches(name))
    }
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

fn could_be_any(part: &str, names: &[&str]) -> bool {
    names.iter().any(|name| overlap(part, name))
}
