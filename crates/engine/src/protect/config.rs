//! Reads the few settings of a git configuration that name files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// What a configuration file names, as written there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) hooks: Vec<PathBuf>,
    pub(super) includes: Vec<PathBuf>,
    /// Words of commands that git runs: programs of the project, perhaps.
    pub(super) programs: Vec<PathBuf>,
    pub(super) worktree: Option<PathBuf>,
}

/// Settings whose values git runs, or reads what to run from; of any section.
const COMMANDS: &[&[u8]] = &[
    b"attributesfile",
    b"clean",
    b"command",
    b"cmd",
    b"driver",
    b"editor",
    b"external",
    b"fsmonitor",
    b"helper",
    b"pager",
    b"process",
    b"program",
    b"smudge",
    b"sshcommand",
    b"textconv",
];

pub(super) fn parse(text: &[u8]) -> Named {
    let mut named = Named::default();
    let mut section = Vec::new();
    let mut rest = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    while let Some(&byte) = rest.first() {
        match byte {
            b'[' => (section, rest) = header(&rest[1..]),
            b'#' | b';' => rest = after_line(rest),
            _ if byte.is_ascii_whitespace() => rest = &rest[1..],
            _ => {
                let (key, value);
                (key, value, rest) = setting(rest);
                let path = PathBuf::from(OsStr::from_bytes(&value));
                match (&section[..], &key[..]) {
                    (b"core", b"hookspath") => named.hooks.push(path),
                    (b"core", b"worktree") => named.worktree = Some(path),
                    (b"include" | b"includeif", b"path") => named.includes.push(path),
                    (_, key) if COMMANDS.contains(&key) => {
                        let words = value.split(u8::is_ascii_whitespace);
                        let words = words.map(|word| PathBuf::from(OsStr::from_bytes(word)));
                        named
                            .programs
                            .extend(words.filter(|word| !word.as_os_str().is_empty()));
                    }
                    _ => {}
                }
            }
        }
    }
    named
}

/// Reads to the `]` that is not in quotes. The name is without the quoted
/// part, which only includes have among those we look for.
fn header(text: &[u8]) -> (Vec<u8>, &[u8]) {
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
    let name = text[..at].split(|b| b.is_ascii_whitespace() || *b == b'"');
    let name = name.into_iter().next().unwrap_or_default();
    (
        name.to_ascii_lowercase(),
        text.get(at + 1..).unwrap_or_default(),
    )
}

/// Reads `key = value` with quotes, escapes and continued lines.
fn setting(text: &[u8]) -> (Vec<u8>, Vec<u8>, &[u8]) {
    let end = text.iter().position(|b| matches!(b, b'=' | b'\n'));
    let end = end.unwrap_or(text.len());
    let key = text[..end].trim_ascii().to_ascii_lowercase();
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
                rest = after_line(rest);
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

fn after_line(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&b| b == b'\n');
    &text[end.unwrap_or(text.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
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
            assert_eq!(parse(text.as_bytes()).hooks, expected, "{text:?}");
        }
    }

    #[test]
    fn rubbish_ends() {
        for text in [
            "[", "[\"", "[\"\\", "a", "a=\\", "=", "\\", "[]=\"", "\0\u{ff}",
        ] {
            assert_eq!(parse(text.as_bytes()), Named::default(), "{text:?}");
        }
    }
}
