//! Says which secret file a command could not open.
//!
//! A program's words are not taken apart here: a line that says that access was
//! denied, and names a file that was closed, is enough. So the names are found
//! whatever the program, and on either stream.

use super::{Denial, MOST, cleaned, complaint, denial};
use std::path::Path;

/// Secret files that a run could not open.
pub(crate) struct Closed<'a> {
    /// The sandbox's name.
    pub(crate) sandbox: &'a str,
    /// Relative to the sandbox's directory.
    pub(crate) names: &'a [String],
    /// The run has failed.
    pub(crate) failed: bool,
}

/// How programs say that they may not open, replace or change a file, in small
/// letters.
const DENIED: [&str; 7] = [
    "permission denied",
    "permissionerror",
    "eacces",
    "accessdenied",
    "os error 13",
    "resource busy",
    "ebusy",
];

/// Names the closed files that the end of a run's output complains about.
pub(crate) fn find_secret(text: &str, closed: &Closed<'_>) -> Vec<Denial> {
    let text = complaint::plain(text);
    let complains = |line: &&str| {
        let line = line.to_lowercase();
        DENIED.iter().any(|words| line.contains(words))
    };
    let mut found: Vec<&str> = vec![];
    let mut complained = false;
    for line in text.split(['\n', '\r']).filter(complains) {
        complained = true;
        let name = closed.named_in(line);
        found.extend(name.filter(|name| !found.contains(name)));
        if found.len() == MOST {
            break;
        }
    }
    match found.is_empty() && complained && closed.failed {
        true => vec![closed.perhaps()],
        false => found.iter().map(|name| closed.denial(name)).collect(),
    }
}

impl<'a> Closed<'a> {
    /// Returns the closed file that a line names: the longest name, for
    /// `web/.env` is not `.env`.
    fn named_in(&self, line: &str) -> Option<&'a str> {
        let names = || self.names.iter().map(String::as_str);
        let whole = names().filter(|name| has(line, name));
        whole.max_by_key(|name| name.len()).or_else(|| {
            // Seen from another directory.
            let last = |name: &&str| name.rsplit('/').next().is_some_and(|last| has(line, last));
            names().find(last)
        })
    }

    fn denial(&self, name: &str) -> Denial {
        let name = cleaned(Path::new(name));
        let text = format!(
            "cannot open {name}: it is on the sandbox's list of secret files, and nobody has \
             allowed this command to read those"
        );
        denial("fs.secret", Some(name.clone()), text, self.remedy(&name))
    }

    /// Says it with care: the message names no file.
    fn perhaps(&self) -> Denial {
        let first = cleaned(Path::new(self.names.first().map_or("", String::as_str)));
        let more = match self.names.len() {
            0 | 1 => String::new(),
            all => format!(" and {} more", all - 1),
        };
        let text = format!(
            "secret files were closed to the command ({first}{more}), which may be what it was \
             denied"
        );
        denial("fs.secret", None, text, self.remedy(&first))
    }

    fn remedy(&self, name: &str) -> String {
        format!(
            "a person can allow it once, when asked before it runs (`--review before`, in MCP \
             `ask_first`), or always, with a rule that allows the command or with `!{name}` in \
             `secret_files` of sandbox `{}`; agents cannot",
            self.sandbox
        )
    }
}

/// Returns whether a line has a name that is not a part of another one.
fn has(line: &str, name: &str) -> bool {
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

    fn found(text: &str, failed: bool) -> Vec<Option<String>> {
        let names = [".env", "web/.env", "web/tls.key"].map(String::from);
        let closed = Closed {
            sandbox: "shop",
            names: &names,
            failed,
        };
        let found = find_secret(text, &closed).into_iter();
        found.map(|denial| denial.object).collect()
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
