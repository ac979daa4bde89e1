//! The environment a command starts with.

/// Variables of the server's environment that commands see by default. None of
/// them holds secrets.
pub const PASSED_VARIABLES: &[&str] = &[
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

/// Makes tools fail instead of prompting, and keeps colour and paging out of
/// output that no terminal shows. Nothing here confirms a prompt, so there is
/// no `npm_config_yes` and the like.
const NON_INTERACTIVE: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("CI", "1"),
    // Where a command calls it by name: quit at the end of the text, and do not
    // clear the screen.
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

/// Keeps tools from starting a pager: without a terminal nobody would quit it,
/// and at a terminal it runs commands (`!`) that no rule has judged.
const NO_PAGER: &[(&str, &str)] = &[
    ("PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("AWS_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("GIT_PAGER", "cat"),
];

/// Lets tools prompt, page and use colour on a terminal.
const INTERACTIVE: &[(&str, &str)] = &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")];

/// Turns retries off where there is no network; npm would retry for more than a
/// minute. Cargo uses the crates that it has if it knows.
const OFFLINE: &[(&str, &str)] = &[
    ("npm_config_fetch_retries", "0"),
    ("PIP_RETRIES", "0"),
    ("CARGO_NET_OFFLINE", "true"),
];

/// For commands that only read: pagers start no shell or editor, tools fetch
/// nothing, and output does not follow a person's settings.
const READ_ONLY: &[(&str, &str)] = &[
    // `git status` would refresh the index otherwise.
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("HGPLAIN", "1"),
    ("LESSSECURE", "1"),
    ("MORESECURE", "1"),
    ("RUSTUP_AUTO_INSTALL", "0"),
];

/// Git settings for commands that only read. A repository's own configuration
/// names programs that even `git status` runs; these settings override it.
///
/// They cannot override `diff.external`, since git has no value for "none" (an
/// empty one makes every diff fail), nor the filters, `textconv` and `command`
/// of attributes, which have any name. And git drops all of this for
/// submodules. Where a repository has any of those, the engine runs nothing
/// without asking a person (`engine/src/project.rs`).
const READ_ONLY_GIT: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    // No file can exist below it.
    ("core.hooksPath", "/dev/null"),
    // Would run `gpg.program` in `git log`.
    ("log.showSignature", "false"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// Git settings where a command may write, but not to git's configuration.
const WRITING_GIT: &[(&str, &str)] = &[
    // Do not record there which branch a new one tracks.
    ("branch.autoSetupMerge", "false"),
    // A person's settings may demand signatures, and their keys are not in the
    // sandbox: every commit would fail.
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
];

/// The variable that names the run of a process.
pub const RUN_VARIABLE: &str = "WEIGHLOCK_RUN";

/// What the environment of a command is made of.
pub struct EnvironmentParts<'a> {
    /// The allowed part of the server's environment.
    pub server: &'a [(String, String)],
    /// `HOME` and the name of the OS user that the command runs as.
    pub user: &'a [(String, String)],
    /// See [`Walls::search_path`](crate::Walls::search_path).
    pub path: &'a str,
    /// What the sandbox sets.
    pub sandbox: &'a [(String, String)],
    /// What the request sets. Its `GIT_CONFIG_COUNT` replaces ours, and with it
    /// every git setting from here.
    pub requested: &'a [(String, String)],
    /// The working directory.
    pub cwd: &'a str,
    /// The run's id.
    pub run: &'a str,
    /// The command only reads.
    pub read_only: bool,
    /// The command has no network but its own loopback.
    pub offline: bool,
    /// The command runs on a terminal.
    pub terminal: bool,
    /// The command is a shell that a person or an agent types at.
    pub shell: bool,
}

/// Puts the environment of a command together. Later parts override earlier
/// ones.
pub fn build_environment(parts: &EnvironmentParts<'_>) -> Vec<(String, String)> {
    let mut env = Variables::default();
    // The passwd entry of a user who cannot sign in names `nologin`, and tmux
    // and others would start it.
    env.set_variable("SHELL", "/bin/sh");
    env.set_all(parts.server);
    env.set_all(parts.user);
    env.set_variable("PATH", parts.path);
    env.set_table(if parts.terminal {
        INTERACTIVE
    } else {
        NON_INTERACTIVE
    });
    if !parts.terminal || parts.shell || parts.read_only {
        env.set_table(NO_PAGER);
    }
    if parts.offline {
        env.set_table(OFFLINE);
    }
    if parts.read_only {
        env.set_table(READ_ONLY);
    }
    env.set_all(&git_variables(parts));
    env.set_variable("PWD", parts.cwd);
    env.set_all(parts.sandbox);
    env.set_all(parts.requested);
    env.set_variable(RUN_VARIABLE, parts.run);
    env.0
}

/// Variables in the order in which they were first set, each once.
#[derive(Default)]
struct Variables(Vec<(String, String)>);

impl Variables {
    fn set_variable(&mut self, name: &str, value: &str) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => value.clone_into(known),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
    }

    fn set_all(&mut self, variables: &[(String, String)]) {
        for (name, value) in variables {
            self.set_variable(name, value);
        }
    }

    fn set_table(&mut self, table: &[(&str, &str)]) {
        for (name, value) in table {
            self.set_variable(name, value);
        }
    }
}

/// Returns the variables that carry git settings; none where the sandbox or the
/// request sets such variables. A mixture of theirs and ours would be neither.
fn git_variables(parts: &EnvironmentParts<'_>) -> Vec<(String, String)> {
    let is_count = |(name, _): &(String, String)| name == "GIT_CONFIG_COUNT";
    if parts.sandbox.iter().chain(parts.requested).any(is_count) {
        return vec![];
    }
    git_settings(if parts.read_only {
        READ_ONLY_GIT
    } else {
        WRITING_GIT
    })
}

fn git_settings(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut env = vec![("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string())];
    for (at, (key, value)) in settings.iter().enumerate() {
        env.push((format!("GIT_CONFIG_KEY_{at}"), (*key).to_owned()));
        env.push((format!("GIT_CONFIG_VALUE_{at}"), (*value).to_owned()));
    }
    env
}

/// Returns the variables with these names from the server's own environment.
pub fn inherit_variables(allowed: &[String]) -> Vec<(String, String)> {
    allowed
        .iter()
        .filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)))
        .collect()
}

/// Returns whether a request may set a variable of this name.
pub fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search_path::FALLBACK_PATH;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::Command;

    fn parts<'a>(requested: &'a [(String, String)]) -> EnvironmentParts<'a> {
        EnvironmentParts {
            user: &[],
            server: &[],
            sandbox: &[],
            path: FALLBACK_PATH,
            requested,
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
            (RUN_VARIABLE.into(), "other".into()),
        ];
        let env = build_environment(&EnvironmentParts {
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
        assert_eq!(get(&env, RUN_VARIABLE), Some("r_1"));
    }

    #[test]
    fn a_request_with_git_settings_of_its_own_has_only_those() {
        let asked = [
            ("GIT_CONFIG_COUNT".into(), "1".into()),
            ("GIT_CONFIG_KEY_0".into(), "user.name".into()),
            ("GIT_CONFIG_VALUE_0".into(), "me".into()),
        ];
        let env = build_environment(&EnvironmentParts {
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
    #[expect(
        clippy::disallowed_methods,
        reason = "the test compares with the real git"
    )]
    fn git(dir: &Path, script: &str, read_only: bool) -> (String, String) {
        // Where git is here; nothing else is taken from this environment.
        let path = std::env::var("PATH").unwrap();
        let env = build_environment(&EnvironmentParts {
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
