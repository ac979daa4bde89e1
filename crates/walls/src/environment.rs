//! The environment a command starts with.

use crate::login::join;

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
];

/// Makes tools that would ask a person fail instead, and keeps colour and
/// paging out of output that nobody looks at on a terminal. Nothing here says
/// yes in a person's place, so there is no `npm_config_yes` and the like.
const QUIET: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("CI", "1"),
    // Where it is called by name: end at the end, and leave the screen alone.
    ("LESS", "-FRX"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // `true` would send an empty password; `false` gives none.
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    // Comes before `core.sshCommand`; a request that needs a key of its own
    // sets the whole command.
    ("GIT_SSH_COMMAND", "ssh -o BatchMode=yes"),
    // `true` would go through with a rebase unseen; `false` refuses it.
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("NO_UPDATE_NOTIFIER", "1"),
    ("npm_config_update_notifier", "false"),
    ("npm_config_fund", "false"),
    ("PIP_NO_INPUT", "1"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("TF_INPUT", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
    // Lists what should be restarted, and restarts nothing.
    ("NEEDRESTART_MODE", "l"),
];

/// No tool starts a pager: nobody would end it, and where somebody types it runs
/// what it is told (`!`), which nobody has judged.
const UNPAGED: &[(&str, &str)] = &[
    ("PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("AWS_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("GIT_PAGER", "cat"),
];

/// On a terminal tools may ask, page and paint.
const LIVELY: &[(&str, &str)] = &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")];

/// Where there is no network, trying again is no use; npm would go on for more
/// than a minute. Cargo makes do with what it has if it knows.
const OFFLINE: &[(&str, &str)] = &[
    ("npm_config_fetch_retries", "0"),
    ("PIP_RETRIES", "0"),
    ("CARGO_NET_OFFLINE", "true"),
];

/// For commands that only look: no pager runs a shell or an editor, and no tool
/// fetches what it lacks. What a person's settings change, scripts do not expect.
const READ_ONLY: &[(&str, &str)] = &[
    // Even a look would refresh the index otherwise.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("HGPLAIN", "1"),
    ("LESSSECURE", "1"),
    ("MORESECURE", "1"),
    ("RUSTUP_AUTO_INSTALL", "0"),
];

/// What git is told where it may only look. A repository's own configuration
/// names programs that even `git status` runs; these come after it and win.
///
/// Out of reach: `diff.external`, since git has no value for "none" (an empty
/// one makes every diff fail), and the filters, `textconv` and `command` of
/// attributes, which have any name. And git drops all of this for submodules.
/// Where a repository has any of those, nothing runs unasked
/// ([`crate::project`]).
const READ_ONLY_GIT: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    // No file can be below it.
    ("core.hooksPath", "/dev/null"),
    // Would run `gpg.program` in `git log`.
    ("log.showSignature", "false"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// What git is told where it may write, but not its configuration.
const WRITING_GIT: &[(&str, &str)] = &[
    // Not to try to remember there what a branch follows.
    ("branch.autoSetupMerge", "false"),
    // The person's settings may ask for it, and the person's keys stay out: no
    // commit could be made.
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
];

/// Used when neither the login shell nor the server has one.
pub(crate) const FALLBACK_PATH: &str =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Names the run a process belongs to.
pub(crate) const RUN: &str = "WEIGHLOCK_RUN";

/// What an environment is made of.
pub(crate) struct Parts<'a> {
    /// The allowed part of the server's.
    pub(crate) server: &'a [(String, String)],
    /// Who the command is, and where that one is at home.
    pub(crate) person: &'a [(String, String)],
    /// See [`path`].
    pub(crate) path: &'a str,
    /// What the sandbox sets.
    pub(crate) sandbox: &'a [(String, String)],
    /// What the request sets. Its `GIT_CONFIG_COUNT` replaces ours, and with it
    /// all that a look is told.
    pub(crate) asked: &'a [(String, String)],
    pub(crate) cwd: &'a str,
    pub(crate) run: &'a str,
    /// Whether the command may only look.
    pub(crate) read_only: bool,
    /// Whether it can reach only itself.
    pub(crate) offline: bool,
    /// Whether somebody looks at it on a terminal.
    pub(crate) terminal: bool,
    /// Whether it is a shell that is typed at, line by line.
    pub(crate) shell: bool,
}

/// Puts together what a command sees. What comes later wins.
pub(crate) fn build(parts: &Parts<'_>) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> = vec![];
    let mut set = |name: &str, value: &str| {
        match env.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => value.clone_into(known),
            None => env.push((name.to_owned(), value.to_owned())),
        };
    };
    // The entry of a user who does not log in names one that only says so, and
    // tmux and others would start it.
    set("SHELL", "/bin/sh");
    for (name, value) in parts.server.iter().chain(parts.person) {
        set(name, value);
    }
    set("PATH", parts.path);
    let offline = if parts.offline { OFFLINE } else { &[] };
    let manners = if parts.terminal { LIVELY } else { QUIET };
    let unpaged = if !parts.terminal || parts.shell || parts.read_only {
        UNPAGED
    } else {
        &[]
    };
    for (name, value) in manners.iter().chain(unpaged).chain(offline) {
        set(name, value);
    }
    // Half of ours and half of theirs would mean neither.
    let counts = |(name, _): &(String, String)| name == "GIT_CONFIG_COUNT";
    if parts.read_only {
        READ_ONLY.iter().for_each(|(name, value)| set(name, value));
    }
    if !parts.sandbox.iter().chain(parts.asked).any(counts) {
        let settings = if parts.read_only {
            READ_ONLY_GIT
        } else {
            WRITING_GIT
        };
        for (name, value) in git_settings(settings) {
            set(&name, &value);
        }
    }
    set("PWD", parts.cwd);
    for (name, value) in parts.sandbox.iter().chain(parts.asked) {
        set(name, value);
    }
    set(RUN, parts.run);
    env
}

fn git_settings(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut env = vec![("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string())];
    for (at, (key, value)) in settings.iter().enumerate() {
        env.push((format!("GIT_CONFIG_KEY_{at}"), (*key).to_owned()));
        env.push((format!("GIT_CONFIG_VALUE_{at}"), (*value).to_owned()));
    }
    env
}

/// Returns the PATH of commands: the login shell's, then what only the server
/// has.
pub(crate) fn path(login: Option<&str>, server: &[(String, String)]) -> String {
    let own = server.iter().find(|(name, _)| name == "PATH");
    let own = own.map(|(_, path)| path.as_str());
    match (login, own) {
        (Some(login), own) => join(&[login, own.unwrap_or_default()]),
        // Somebody set it so, or wants it so.
        (None, Some(own)) => own.to_owned(),
        (None, None) => FALLBACK_PATH.to_owned(),
    }
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
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::Command;

    fn parts<'a>(asked: &'a [(String, String)]) -> Parts<'a> {
        Parts {
            person: &[],
            server: &[],
            sandbox: &[],
            path: FALLBACK_PATH,
            asked,
            cwd: "/w",
            run: "r_1",
            read_only: false,
            offline: true,
            terminal: false,
            shell: false,
        }
    }

    fn get<'a>(env: &'a [(String, String)], name: &str) -> Option<&'a str> {
        let found: Vec<_> = env.iter().filter(|(known, _)| known == name).collect();
        assert!(found.len() <= 1, "{name} once");
        found.first().map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_request_may_change_anything_but_the_run() {
        let server = [("PATH".into(), "/sbin".into()), ("LANG".into(), "C".into())];
        let asked = [
            ("LANG".into(), "de".into()),
            ("CI".into(), "0".into()),
            (RUN.into(), "other".into()),
        ];
        let env = build(&Parts {
            server: &server,
            path: "/bin",
            ..parts(&asked)
        });
        assert_eq!(get(&env, "PATH"), Some("/bin"));
        assert_eq!(get(&env, "LANG"), Some("de"));
        assert_eq!(get(&env, "CI"), Some("0"));
        assert_eq!(get(&env, "PWD"), Some("/w"));
        assert_eq!(get(&env, "PAGER"), Some("cat"));
        assert_eq!(get(&env, "GIT_CONFIG_KEY_0"), Some("branch.autoSetupMerge"));
        assert_eq!(get(&env, RUN), Some("r_1"));
    }

    #[test]
    fn the_login_shell_comes_first_in_the_path() {
        let server = [("PATH".into(), "/bin:/own:.:/usr/bin".into())];
        for (login, server, path) in [
            (
                Some("/my:/usr/bin:/bin"),
                &server[..],
                "/my:/usr/bin:/bin:/own",
            ),
            (Some("/my"), &[], "/my"),
            (None, &server, "/bin:/own:.:/usr/bin"),
            (None, &[], FALLBACK_PATH),
        ] {
            assert_eq!(super::path(login, server), path);
        }
    }

    #[test]
    fn a_request_with_git_settings_of_its_own_has_only_those() {
        let asked = [
            ("GIT_CONFIG_COUNT".into(), "1".into()),
            ("GIT_CONFIG_KEY_0".into(), "user.name".into()),
            ("GIT_CONFIG_VALUE_0".into(), "me".into()),
        ];
        let env = build(&Parts {
            read_only: true,
            ..parts(&asked)
        });
        assert_eq!(get(&env, "GIT_CONFIG_COUNT"), Some("1"));
        assert_eq!(get(&env, "GIT_CONFIG_KEY_1"), None);
        assert_eq!(get(&env, "GIT_OPTIONAL_LOCKS"), Some("0"));
    }

    /// A repository that runs `trap` whenever git lets it, and two commits.
    fn hostile(dir: &Path) {
        let trap = dir.join("trap");
        let text = format!("#!/bin/sh\necho $0 >>{}/sprung\n", dir.display());
        fs::write(&trap, text).unwrap();
        fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
        let make = "git init -q r && cd r && git config user.email a@b && git config user.name a
            echo 1 >f && git add f && git commit -qm 1 && git branch other && echo 2 >f
            mkdir -p .git/hooks
            for hook in post-checkout post-index-change reference-transaction; do
                cp ../trap .git/hooks/$hook
            done
            git config core.fsmonitor ../trap && git config gpg.program ../trap
            git config log.showSignature true && git config core.pager ../trap";
        git(dir, make, false);
        let _ = fs::remove_file(dir.join("sprung"));
    }

    /// Runs a script, and returns what it printed and which traps it sprung.
    fn git(dir: &Path, script: &str, read_only: bool) -> (String, String) {
        // Where git is here; nothing else is taken from this environment.
        let path = std::env::var("PATH").unwrap();
        let env = build(&Parts {
            path: &path,
            read_only,
            ..parts(&[("HOME".into(), dir.to_str().unwrap().into())])
        });
        let done = Command::new("/bin/sh")
            .args(["-c", script])
            .current_dir(dir)
            .env_clear()
            .envs(env)
            .output()
            .unwrap();
        assert!(done.status.success(), "{script}: {done:?}");
        let sprung = fs::read_to_string(dir.join("sprung")).unwrap_or_default();
        let _ = fs::remove_file(dir.join("sprung"));
        (String::from_utf8(done.stdout).unwrap(), sprung)
    }

    #[test]
    fn a_look_with_git_runs_nothing_of_the_repository() {
        let dir = tempfile::tempdir().unwrap();
        hostile(dir.path());
        let (_, sprung) = git(dir.path(), "cd r && git status -s", false);
        assert!(sprung.contains("trap"), "the trap works: {sprung}");
        for (look, says) in [
            ("status -s", " M f\n"),
            ("diff", "+2\n"),
            ("log --oneline", " 1\n"),
            ("checkout other", "M\tf\n"),
            ("branch new", ""),
        ] {
            let (said, sprung) = git(dir.path(), &format!("cd r && git {look}"), true);
            assert!(said.contains(says), "{look}: {said}");
            assert_eq!(sprung, "", "{look}");
        }
    }

    #[test]
    fn an_external_diff_can_only_be_left_out_by_its_option() {
        let dir = tempfile::tempdir().unwrap();
        hostile(dir.path());
        git(
            dir.path(),
            "cd r && git config diff.external ../trap",
            false,
        );
        let (_, sprung) = git(dir.path(), "cd r && git status -s && git log -p", true);
        assert_eq!(sprung, "");
        let (said, sprung) = git(dir.path(), "cd r && git diff --no-ext-diff", true);
        assert!(said.contains("+2\n") && sprung.is_empty(), "{said}{sprung}");
        // When this fails, git has learnt a way, and READ_ONLY_GIT can use it.
        let (_, sprung) = git(dir.path(), "cd r && git diff", true);
        assert!(sprung.contains("trap"));
        let none = "cd r && ! git -c diff.external= diff";
        assert_eq!(git(dir.path(), none, true).0, "");
    }
}
