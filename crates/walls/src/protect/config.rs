//! Parses git configurations, and finds the settings that name files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The paths that a configuration file names, as written there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ConfigPaths {
    pub(super) hooks: Vec<PathBuf>,
    pub(super) includes: Vec<PathBuf>,
    /// Words of commands that git runs; some may be programs of the project.
    pub(super) programs: Vec<PathBuf>,
    pub(super) worktree: Option<PathBuf>,
}

/// Keys, in any section, whose values git runs or that name a file with commands.
const COMMAND_KEYS: &[&str] = &[
    "attributesfile",
    "clean",
    "command",
    "cmd",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "helper",
    "pager",
    "process",
    "program",
    "smudge",
    "sshcommand",
    "textconv",
];

/// One setting of a git configuration.
#[derive(Debug, PartialEq, Eq)]
pub struct GitSetting {
    /// In lower case.
    pub section: String,
    /// The quoted part of the section header, as it is written.
    subsection: Option<String>,
    /// In lower case.
    key: String,
    /// Without quotes and escapes.
    pub value: Vec<u8>,
}

impl GitSetting {
    /// Returns its full name: `diff.x.textconv`.
    pub fn full_name(&self) -> String {
        match &self.subsection {
            Some(sub) => format!("{}.{sub}.{}", self.section, self.key),
            None => self.plain_name(),
        }
    }

    /// Returns its name without the subsection: `diff.textconv`.
    pub fn plain_name(&self) -> String {
        format!("{}.{}", self.section, self.key)
    }

    /// Returns whether its subsection, or its key where it has none, is `name`.
    pub fn is_about(&self, name: &str) -> bool {
        self.subsection.as_deref().unwrap_or(&self.key) == name
    }
}

/// Parses all settings of a configuration. Git refuses one with mistakes, so
/// mistakes are not detected.
pub fn parse_git_config(text: &[u8]) -> Vec<GitSetting> {
    let mut settings = vec![];
    let mut section = (String::new(), None);
    let mut rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    while let Some(&byte) = rest.first() {
        match byte {
            b'[' => (section, rest) = parse_header(&rest[1..]),
            b'#' | b';' => rest = skip_line(rest),
            _ if byte.is_ascii_whitespace() => rest = &rest[1..],
            _ => {
                let (key, value);
                (key, value, rest) = parse_setting(rest);
                settings.push(GitSetting {
                    section: section.0.clone(),
                    subsection: section.1.clone(),
                    key,
                    value,
                });
            }
        }
    }
    settings
}

/// Finds the paths that a configuration names.
pub(super) fn find_config_paths(text: &[u8]) -> ConfigPaths {
    let mut named = ConfigPaths::default();
    for GitSetting {
        section,
        key,
        value,
        ..
    } in parse_git_config(text)
    {
        let path = PathBuf::from(OsStr::from_bytes(&value));
        match (&*section, &*key) {
            ("core", "hookspath") => named.hooks.push(path),
            ("core", "worktree") => named.worktree = Some(path),
            ("include" | "includeif", "path") => named.includes.push(path),
            (_, key) if COMMAND_KEYS.contains(&key) => {
                let words = value.split(u8::is_ascii_whitespace);
                let words = words.map(|word| PathBuf::from(OsStr::from_bytes(word)));
                named
                    .programs
                    .extend(words.filter(|word| !word.as_os_str().is_empty()));
            }
            _ => {}
        }
    }
    named
}

/// Parses a section header up to the `]` that is not in quotes: the name, and
/// the quoted part.
fn parse_header(text: &[u8]) -> ((String, Option<String>), &[u8]) {
    let (mut quoted, mut at) = (false, 0);
    while at < text.len() && text[at] != b'\n' {
        match text[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b']' if !quoted => break,
            _ => {}
        }
        at += 1;
    }
    let at = at.min(text.len());
    let inside = String::from_utf8_lossy(&text[..at]);
    let (name, quoted) = match inside.split_once('"') {
        Some((name, quoted)) => (
            name,
            Some(quoted.trim_end().trim_end_matches('"').to_owned()),
        ),
        None => (&*inside, None),
    };
    // `[section.name]` is an old way to write `[section "name"]`.
    let name = name.trim().to_ascii_lowercase();
    let (name, quoted) = match (name.split_once('.'), quoted) {
        (Some((section, sub)), None) => (section.to_owned(), Some(sub.to_owned())),
        (_, quoted) => (name, quoted),
    };
    ((name, quoted), text.get(at + 1..).unwrap_or_default())
}

/// Parses `key = value` with quotes, escapes and continued lines.
fn parse_setting(text: &[u8]) -> (String, Vec<u8>, &[u8]) {
    let end = text.iter().position(|b| matches!(b, b'=' | b'\n'));
    let end = end.unwrap_or(text.len());
    let key = String::from_utf8_lossy(text[..end].trim_ascii()).to_ascii_lowercase();
    if text.get(end) != Some(&b'=') {
        return (key, Vec::new(), &text[end..]);
    }
    let mut rest = &text[end + 1..];
    // `solid` is how much of the value is not trailing space.
    let (mut value, mut quoted, mut solid) = (Vec::new(), false, 0);
    while let Some((&byte, next)) = rest.split_first() {
        match byte {
            b'\n' => break,
            b'#' | b';' if !quoted => {
                rest = skip_line(rest);
                break;
            }
            b'"' => quoted = !quoted,
            b'\\' => {
                let next = next.strip_prefix(b"\r").unwrap_or(next);
                match next.first() {
                    Some(b'\n') | None => {}
                    Some(b't') => value.push(b'\t'),
                    Some(b'n') => value.push(b'\n'),
                    Some(b'b') => value.push(8),
                    Some(&other) => value.push(other),
                }
                solid = value.len();
                rest = next.get(1..).unwrap_or_default();
                continue;
            }
            _ if byte.is_ascii_whitespace() && !quoted => {
                if !value.is_empty() {
                    value.push(byte);
                }
            }
            _ => value.push(byte),
        }
        if quoted || !byte.is_ascii_whitespace() {
            solid = value.len();
        }
        rest = next;
    }
    value.truncate(solid);
    (key, value, rest)
}

fn skip_line(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&b| b == b'\n');
    &text[end.unwrap_or(text.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the test compares with the real git"
    )]
    fn hook_paths_are_read_as_git_reads_them() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        for text in [
            "[core]\n\thooksPath = .hooks\n",
            "[CORE] HOOKSPATH=a/b # why\n",
            "[core]\nhookspath = \"a b ; c\" ; d\n",
            "[core]\nhookspath = a \\\n  b  \n",
            "[core]\nhookspath = a\\\\b\\\"\n",
            "[x \"]\"]\nhookspath = no\n[core]\nhookspath=yes\r\n",
            "[core \"sub\"]\n# [core]\n[core]bare\nhookspath = \"x\"y\n",
            "\u{feff}[core]\nhookspath = first\nhookspath = last",
        ] {
            std::fs::write(&file, text).unwrap();
            let git = std::process::Command::new("git")
                .args(["config", "-z", "-f"])
                .arg(&file)
                .args(["--get-all", "core.hooksPath"])
                .output()
                .unwrap();
            let expected = git.stdout.split(|b| *b == 0).filter(|v| !v.is_empty());
            let expected: Vec<PathBuf> = expected.map(|v| OsStr::from_bytes(v).into()).collect();
            assert!(!expected.is_empty(), "{text:?}");
            assert_eq!(
                find_config_paths(text.as_bytes()).hooks,
                expected,
                "{text:?}"
            );
        }
    }

    #[test]
    fn rubbish_ends() {
        for text in [
            "[", "[\"", "[\"\\", "a", "a=\\", "=", "\\", "[]=\"", "\0\u{ff}",
        ] {
            assert_eq!(
                find_config_paths(text.as_bytes()),
                ConfigPaths::default(),
                "{text:?}"
            );
        }
    }
}
