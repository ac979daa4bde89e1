//! Explains which secret file a command could not open.
//!
//! The messages of programs are not parsed here: a line that reports a denied
//! access and names a closed file is enough. So this works for any program, and
//! on either stream.

use std::path::Path;

use super::{Denial, MOST_DENIALS, clean_path, error_line, new_denial};

/// The secret files that were closed to a run.
pub struct ClosedNames<'a> {
    /// The sandbox's name.
    pub sandbox: &'a str,
    /// Relative to the sandbox's directory; those of directories end with a
    /// slash.
    pub names: &'a [String],
    /// Returns whether a name is itself on the list. If it is not, the file has
    /// another name that is.
    pub is_listed: &'a dyn Fn(&str) -> bool,
    /// Whether the run has failed.
    pub failed: bool,
}

/// How programs report that they may not open, replace or change a file, in
/// lower case.
const DENIED_WORDS: [&str; 7] = [
    "permission denied",
    "permissionerror",
    "eacces",
    "accessdenied",
    "os error 13",
    "resource busy",
    "ebusy",
];

/// Finds the closed files that error lines at the end of a run's output name.
pub fn find_secret_denials(text: &str, closed: &ClosedNames<'_>) -> Vec<Denial> {
    let text = error_line::strip_colour(text);
    let is_denial = |line: &&str| {
        let line = line.to_lowercase();
        DENIED_WORDS.iter().any(|words| line.contains(words))
    };
    let mut found: Vec<&str> = vec![];
    let mut any_denial = false;
    for line in text.split(['\n', '\r']).filter(is_denial) {
        any_denial = true;
        let name = closed.named_in(line);
        found.extend(name.filter(|name| !found.contains(name)));
        if found.len() == MOST_DENIALS {
            break;
        }
    }
    if found.is_empty() && any_denial && closed.failed {
        return vec![closed.possible_denial()];
    }
    found.iter().map(|name| closed.denial_of(name)).collect()
}

impl<'a> ClosedNames<'a> {
    /// Returns the closed file that a line names: the longest name, for
    /// `web/.env` is not `.env`.
    fn named_in(&self, line: &str) -> Option<&'a str> {
        let names = || self.names.iter().map(String::as_str);
        let whole = names().filter(|name| names_file(line, without_slash(name)));
        whole.max_by_key(|name| name.len()).or_else(|| {
            // The command may have changed its directory.
            let last = |name: &&str| {
                let last = without_slash(name).rsplit('/').next();
                last.is_some_and(|last| names_file(line, last))
            };
            names().find(last)
        })
    }

    fn denial_of(&self, name: &str) -> Denial {
        let shown = clean_path(Path::new(without_slash(name)));
        let text = format!(
            "cannot open {shown}: it is on the sandbox's list of secret files, and nobody has \
             allowed this command to read those"
        );
        new_denial("fs.secret", Some(shown), text, self.remedy(name))
    }

    /// Says "may": the message names no file.
    fn possible_denial(&self) -> Denial {
        let name = self.names.first().map_or("", String::as_str);
        let first = clean_path(Path::new(without_slash(name)));
        let more = match self.names.len() {
            0 | 1 => String::new(),
            all => format!(" and {} more", all - 1),
        };
        let text = format!(
            "secret files were closed to the command ({first}{more}), which may be what it was \
             denied"
        );
        new_denial("fs.secret", None, text, self.remedy(name))
    }

    fn remedy(&self, name: &str) -> String {
        let exception = if (self.is_listed)(name) {
            let slash = if name.ends_with('/') { "/" } else { "" };
            let name = clean_path(Path::new(without_slash(name)));
            format!("`!{name}{slash}`")
        } else {
            "an exception for its other name, which is on the list,".to_owned()
        };
        format!(
            "a person can allow it once, when asked before it runs (`--review before`, in MCP \
             `ask_first`), or always, with a rule that allows the command or with {exception} in \
             `secret_files` of sandbox `{}`; agents cannot",
            self.sandbox
        )
    }
}

/// Returns a name as programs write it: a directory's without its slash.
fn without_slash(name: &str) -> &str {
    name.trim_end_matches('/')
}

/// Returns whether a line contains a name that is not part of a longer one.
fn names_file(line: &str, name: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty()
        && line.match_indices(name).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + name.len()..].chars().next();
            !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denials(text: &str, failed: bool) -> Vec<Denial> {
        let names = [".env", "web/.env", "web/tls.key", "me/.ssh/", "second.txt"];
        let closed = ClosedNames {
            sandbox: "shop",
            names: &names.map(String::from),
            is_listed: &|name| name != "second.txt",
            failed,
        };
        find_secret_denials(text, &closed)
    }

    fn found(text: &str, failed: bool) -> Vec<Option<String>> {
        let found = denials(text, failed).into_iter();
        found.map(|denial| denial.object).collect()
    }

    #[test]
    fn the_exception_that_is_proposed_helps() {
        for (line, exception) in [
            ("cat: web/.env: Permission denied", "with `!web/.env` in"),
            ("ls: me/.ssh: Permission denied", "with `!me/.ssh/` in"),
            ("cat: .ssh/config: Permission denied", "with `!me/.ssh/` in"),
            ("cat: second.txt: Permission denied", "for its other name"),
        ] {
            let found = denials(line, true);
            assert_eq!(found.len(), 1, "{line}");
            assert!(found[0].remedy.contains(exception), "{:?}", found[0]);
        }
    }

    #[test]
    fn what_programs_say_names_the_file() {
        for (line, name) in [
            ("cat: .env: Permission denied", ".env"),
            ("grep: ./.env: Permission denied", ".env"),
            ("rg: web/.env: Permission denied (os error 13)", "web/.env"),
            (
                "./web/tls.key: Permission denied (os error 13)",
                "web/tls.key",
            ),
            (
                "PermissionError: [Errno 13] Permission denied: '/srv/shop/.env'",
                ".env",
            ),
            (
                "Error: EACCES: permission denied, open '/srv/shop/web/.env'",
                "web/.env",
            ),
            ("open tls.key: permission denied", "web/tls.key"),
            ("error: open(\".env\"): Permission denied", ".env"),
            ("tar: ./.env: Cannot open: Permission denied", ".env"),
            ("rm: cannot remove '.env': Device or resource busy", ".env"),
            ("java.nio.file.AccessDeniedException: .env", ".env"),
        ] {
            assert_eq!(found(line, false), [Some(name.to_owned())], "{line}");
        }
    }

    #[test]
    fn other_lines_name_nothing() {
        for line in [
            "cat: .env.example: Permission denied",
            "wrote .env",
            "cat: x.env: Permission denied",
            "",
        ] {
            assert_eq!(found(line, false), [], "{line}");
        }
        assert_eq!(found("ls: /root: Permission denied", true), [None]);
        assert_eq!(found("test failed", true), []);
    }
}
