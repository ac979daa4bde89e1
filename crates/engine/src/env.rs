//! The environment a command starts with.

/// Variables that commands may see when the server has them. No secrets are
/// kept in these.
pub(crate) const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "TZ",
    "TMPDIR",
];

/// Makes tools that would ask a person fail instead, and keeps colour and
/// paging out of output that nobody looks at on a terminal.
const QUIET: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("CI", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // `true` would go through with a rebase unseen; `false` refuses it.
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// Used when the server itself was started with none.
const FALLBACK_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Names the run a process belongs to.
pub(crate) const RUN: &str = "WEIGHLOCK_RUN";

/// Puts together what a command sees. What comes later wins.
pub(crate) fn build(
    server: &[(String, String)],
    asked: &[(String, String)],
    cwd: &str,
    run: &str,
) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> = vec![("PATH".into(), FALLBACK_PATH.into())];
    let mut set = |name: &str, value: &str| {
        match env.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => value.clone_into(known),
            None => env.push((name.to_owned(), value.to_owned())),
        };
    };
    for (name, value) in server {
        set(name, value);
    }
    for (name, value) in QUIET {
        set(name, value);
    }
    set("PWD", cwd);
    for (name, value) in asked {
        set(name, value);
    }
    set(RUN, run);
    env
}

/// Takes the allowed part of the server's own environment.
pub(crate) fn of_server(allowed: &[String]) -> Vec<(String, String)> {
    allowed
        .iter()
        .filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)))
        .collect()
}

/// Tells whether a request may set this variable.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_may_change_anything_but_the_run() {
        let server = [("PATH".into(), "/bin".into()), ("LANG".into(), "C".into())];
        let asked = [
            ("LANG".into(), "de".into()),
            ("CI".into(), "0".into()),
            (RUN.into(), "other".into()),
        ];
        let env = build(&server, &asked, "/w", "r_1");
        let get = |name: &str| {
            let found: Vec<_> = env.iter().filter(|(known, _)| known == name).collect();
            assert_eq!(found.len(), 1, "{name} once");
            found[0].1.as_str()
        };
        assert_eq!(get("PATH"), "/bin");
        assert_eq!(get("LANG"), "de");
        assert_eq!(get("CI"), "0");
        assert_eq!(get("PWD"), "/w");
        assert_eq!(get("PAGER"), "cat");
        assert_eq!(get(RUN), "r_1");
    }
}
