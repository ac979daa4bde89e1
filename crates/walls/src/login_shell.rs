//! Asks a person's login shell for its PATH, once.
//!
//! A server that a desktop or systemd started has a PATH without nvm, pyenv
//! and what else a person's startup files add. Only PATH is taken over: with
//! aliases and functions, a command would do other things than the rules judged.

use std::path::Path;
use std::time::Duration;

use rustix::process::geteuid;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use weighlock_exec::{Patience, Unheard, hear};

use crate::passwd::PasswdEntry;
use crate::search_path::{FALLBACK_PATH, join_paths};

/// How long startup files may take. Slow ones with nvm take about two.
const DEADLINE: Duration = Duration::from_secs(5);

/// How much longer a caller waits for the task that asks. A home on a file
/// system that hangs can block even the start of a process.
const SPARE: Duration = Duration::from_millis(500);

/// Startup files may print; more than this is no greeting.
const MOST_BYTES: usize = 1024 * 1024;

/// A longer PATH is an accident. The kernel takes no variable above 128 KiB,
/// and every run would fail.
const LONGEST_PATH: usize = 32 * 1024;

/// Prints a NUL, which ends what startup files printed, and the environment.
/// Quoted, so that no alias changes it.
const PRINT_ENV: &str = r"\printf '\0'; \exec /usr/bin/env -0";

/// The same for fish, where aliases are functions.
const PRINT_ENV_FISH: &str = r"builtin printf '\0'; exec /usr/bin/env -0";

/// The PATH of the login shell, or why it is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginPath {
    /// The shell printed it.
    Known {
        /// The login shell.
        shell: String,
        /// Its PATH.
        path: String,
    },
    /// The shell did not print it.
    Unknown {
        /// Why not.
        why: String,
    },
    /// The settings say not to ask.
    Off,
}

impl LoginPath {
    /// Returns the PATH, if the shell printed one.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Known { path, .. } => Some(path),
            Self::Unknown { .. } | Self::Off => None,
        }
    }
}

/// A login shell that is asked in the background.
pub(crate) struct LoginShell {
    answer: watch::Receiver<Option<LoginPath>>,
    until: Instant,
}

impl LoginShell {
    /// Starts to ask if `is_wanted`.
    pub(crate) fn start_asking(is_wanted: bool) -> Self {
        let until = Instant::now() + DEADLINE + SPARE;
        let (sender, answer) = watch::channel((!is_wanted).then_some(LoginPath::Off));
        if is_wanted {
            tokio::task::spawn_blocking(move || {
                let user = ShellUser::find(|name| std::env::var(name).ok(), own_entry);
                let _ = sender.send(Some(ask_shell(&user, DEADLINE)));
            });
        }
        Self { answer, until }
    }

    /// Waits for the answer, at most until the deadline.
    pub(crate) async fn login_path(&self) -> LoginPath {
        let mut answer = self.answer.clone();
        let known = timeout_at(self.until, answer.wait_for(Option::is_some)).await;
        let known = known.ok().and_then(|known| known.ok()?.clone());
        known.unwrap_or_else(|| LoginPath::Unknown {
            why: timed_out(DEADLINE),
        })
    }
}

/// The user whose login shell is asked.
#[derive(Debug, PartialEq, Eq)]
struct ShellUser {
    name: String,
    home: String,
    shell: String,
    lang: Option<String>,
}

impl ShellUser {
    /// Takes each field from the server's environment, or from the system's
    /// list of users where the environment does not have it.
    fn find(
        var: impl Fn(&str) -> Option<String>,
        passwd: impl FnOnce() -> Option<[String; 3]>,
    ) -> Self {
        let said = |name| var(name).filter(|value| !value.is_empty());
        let [name, home, shell] = passwd().unwrap_or_default();
        Self {
            name: said("USER").or_else(|| said("LOGNAME")).unwrap_or(name),
            home: said("HOME").unwrap_or(home),
            shell: said("SHELL").unwrap_or(shell),
            lang: said("LANG"),
        }
    }

    fn environment(&self) -> Vec<(String, String)> {
        let mut env = vec![
            ("HOME", self.home.as_str()),
            ("USER", &self.name),
            ("LOGNAME", &self.name),
            ("SHELL", &self.shell),
            ("PATH", FALLBACK_PATH),
            ("TERM", "dumb"),
        ];
        env.extend(self.lang.as_deref().map(|lang| ("LANG", lang)));
        env.into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}

/// Returns name, home and shell of the server's own user.
fn own_entry() -> Option<[String; 3]> {
    let uid = geteuid().as_raw();
    let user = PasswdEntry::find_user(|user| user.uid == uid)?;
    Some([user.name, user.home, user.shell])
}

/// Returns the arguments that make a shell print its environment, if it is one
/// we know. Interactive where startup files check for that: many return at once
/// otherwise, before nvm and pyenv.
fn shell_args(shell: &str) -> Option<&'static [&'static str]> {
    let path = Path::new(shell);
    if !path.is_absolute() {
        return None;
    }
    match path.file_name()?.to_str()? {
        "bash" | "zsh" => Some(&["-l", "-i", "-c", PRINT_ENV]),
        "sh" | "dash" | "ksh" => Some(&["-l", "-c", PRINT_ENV]),
        "fish" => Some(&["-l", "-c", PRINT_ENV_FISH]),
        _ => None,
    }
}

fn ask_shell(user: &ShellUser, deadline: Duration) -> LoginPath {
    let none = |why| LoginPath::Unknown { why };
    let shell = &user.shell;
    let Some(args) = shell_args(shell) else {
        return none(format!("your login shell, {shell:?}, is none that we know"));
    };
    let patience = Patience {
        time: deadline,
        bytes: MOST_BYTES,
    };
    match hear(shell, args, &user.environment(), patience) {
        Ok(said) => match find_path(&said) {
            Some(path) => LoginPath::Known {
                shell: shell.clone(),
                path,
            },
            None => none("your login shell ended without telling its PATH".into()),
        },
        Err(Unheard::Late) => none(timed_out(deadline)),
        Err(Unheard::TooMuch) => none("your login shell printed without end".into()),
        Err(Unheard::Start(error)) => none(format!("cannot start {shell}: {error}")),
    }
}

fn timed_out(deadline: Duration) -> String {
    let seconds = deadline.as_secs_f64();
    format!("your login shell did not answer within {seconds} s")
}

/// Finds PATH in what a shell printed: the output of startup files, a NUL, then
/// the environment, each variable with a NUL behind it.
fn find_path(said: &[u8]) -> Option<String> {
    let mark = said.iter().position(|&byte| byte == 0)?;
    let variables = &said[mark + 1..];
    // A part without a NUL behind it is cut off, or was printed by a process in
    // the background.
    let (whole, _) = variables.split_at(variables.iter().rposition(|&byte| byte == 0)?);
    let path = whole
        .split(|&byte| byte == 0)
        .filter_map(|variable| variable.strip_prefix(b"PATH="))
        .next_back()?;
    let path = join_paths(&[std::str::from_utf8(path).ok()?]);
    (1..=LONGEST_PATH).contains(&path.len()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Instant;

    /// Long enough for bash to start on a busy machine.
    const SOON: Duration = Duration::from_millis(300);

    fn user(home: &Path, shell: &str) -> ShellUser {
        ShellUser {
            name: "someone".into(),
            home: home.to_str().unwrap().into(),
            shell: shell.into(),
            lang: None,
        }
    }

    /// Asks bash with this `.bashrc`, and makes sure that nothing with this
    /// home is left when it answers.
    fn bash(rc: &str, deadline: Duration) -> LoginPath {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(".bashrc"), rc).unwrap();
        // As usual: a login shell alone would not read `.bashrc`.
        fs::write(home.path().join(".bash_profile"), ". ~/.bashrc").unwrap();
        let began = Instant::now();
        let answer = ask_shell(&user(home.path(), "/bin/bash"), deadline);
        assert!(began.elapsed() < deadline + Duration::from_secs(2), "{rc}");
        let tag = format!("HOME={}", home.path().display());
        assert_eq!(weighlock_exec::kill_tagged(&tag), 0, "left by {rc}");
        answer
    }

    fn told(rc: &str) -> String {
        match bash(rc, Duration::from_secs(10)) {
            LoginPath::Known { path, .. } => path,
            other => panic!("{rc}: {other:?}"),
        }
    }

    fn why(rc: &str) -> String {
        match bash(rc, SOON) {
            LoginPath::Unknown { why } => why,
            other => panic!("{rc}: {other:?}"),
        }
    }

    #[test]
    fn the_path_of_startup_files_is_found() {
        for rc in [
            "export PATH=/my/bin:$PATH",
            // Many begin like this.
            "case $- in *i*) ;; *) return;; esac\nPATH=/my/bin:$PATH",
            "PATH=/my/bin:$PATH; echo hello; echo PATH=/noise; printf 'no newline'",
            "PATH=/my/bin:$PATH; read x; read y </dev/tty",
            "PATH=/my/bin:/my/bin::.:bin:$PATH",
            "PATH=/my/bin:$PATH; alias printf=true exec=echo ls=eza; cd() { z; }",
            "PATH=/my/bin:$PATH; set -m; sleep 1000 & disown",
        ] {
            let path = told(rc);
            let dirs: Vec<_> = path.split(':').collect();
            assert_eq!(dirs.iter().filter(|&&dir| dir == "/my/bin").count(), 1);
            assert_eq!(dirs[0], "/my/bin", "{rc}: {path}");
            assert!(dirs.contains(&"/usr/bin"), "{rc}: {path}");
            assert!(dirs.iter().all(|dir| dir.starts_with('/')), "{rc}: {path}");
        }
    }

    #[test]
    fn what_stays_in_the_background_is_not_waited_for() {
        let began = Instant::now();
        told("sleep 1000 & PATH=/my/bin:$PATH");
        assert!(began.elapsed() < Duration::from_secs(9));
    }

    #[test]
    fn a_shell_that_does_not_answer_is_ended_in_time() {
        for rc in [
            "sleep 1000",
            "sleep 1000 & sleep 1000 & wait",
            "trap '' TERM INT HUP; while :; do :; done",
            "kill -STOP $$",
            "exec sleep 1000",
            "set -m; (trap '' HUP; sleep 1000) & sleep 1000",
        ] {
            assert_eq!(why(rc), "your login shell did not answer within 0.3 s");
        }
    }

    #[test]
    fn a_shell_that_turns_into_something_else_tells_nothing() {
        for rc in [
            "exec cat",
            "exec sh",
            "exit 0",
            "read x; exit",
            "exec false",
        ] {
            match bash(rc, Duration::from_secs(10)) {
                LoginPath::Unknown { why } => {
                    assert!(why.contains("without telling"), "{rc}: {why}")
                }
                other => panic!("{rc}: {other:?}"),
            }
        }
    }

    #[test]
    fn endless_noise_is_cut_off() {
        match bash("yes", Duration::from_secs(10)) {
            LoginPath::Unknown { why } => assert!(why.contains("without end"), "{why}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn there_is_no_terminal_and_nothing_of_the_server() {
        let home = tempfile::tempdir().unwrap();
        let seen = home.path().join("seen");
        let profile = "{ env; tty; (: </dev/tty) 2>/dev/null && echo terminal; pwd; } >~/seen";
        fs::write(home.path().join(".profile"), profile).unwrap();
        let answer = ask_shell(&user(home.path(), "/bin/sh"), Duration::from_secs(10));
        assert!(answer.path().is_some(), "{answer:?}");
        let seen = fs::read_to_string(seen).unwrap();
        assert!(seen.contains("not a tty\n") && !seen.contains("terminal"));
        assert!(seen.ends_with("\n/\n"), "{seen}");
        assert!(!seen.contains("CARGO"), "{seen}");
    }

    #[test]
    fn what_is_no_shell_is_not_started() {
        for shell in ["", "bash", "/usr/sbin/nologin", "/bin/false", "/opt/nu"] {
            let answer = ask_shell(&user(Path::new("/"), shell), SOON);
            assert_eq!(answer.path(), None, "{shell}");
        }
        let answer = ask_shell(&user(Path::new("/"), "/nonexistent/bash"), SOON);
        assert!(
            matches!(&answer, LoginPath::Unknown { why } if why.starts_with("cannot start")),
            "{answer:?}"
        );
    }

    #[test]
    fn a_missing_home_is_no_obstacle() {
        let answer = ask_shell(
            &user(Path::new("/nonexistent"), "/bin/bash"),
            Duration::from_secs(10),
        );
        assert!(answer.path().is_some(), "{answer:?}");
    }

    #[test]
    fn the_environment_comes_before_the_list_of_users() {
        let entry = || Some(["me", "/home/me", "/bin/zsh"].map(str::to_owned));
        let found = ShellUser::find(|_| None, entry);
        assert_eq!(
            (&*found.name, &*found.home, &*found.shell),
            ("me", "/home/me", "/bin/zsh")
        );
        let said = |name: &str| (name == "SHELL").then(|| "/bin/sh".to_owned());
        assert_eq!(ShellUser::find(said, entry).shell, "/bin/sh");
        assert_eq!(ShellUser::find(|_| None, || None).shell, "");
    }

    #[test]
    fn only_whole_variables_after_the_mark_count() {
        for (said, path) in [
            (&b"PATH=/noise\n\0A=1\0PATH=/a:/b\0"[..], Some("/a:/b")),
            (b"\0PATH=/a\0PATH=/b\0", Some("/b")),
            (b"\0PATH=/a\0PATH=/cut", Some("/a")),
            (b"\0PATH=/cut", None),
            (b"PATH=/a\0", None),
            (b"\0PATH=::.:bin\0", None),
            (b"\0PATH=/\xff\0", None),
            (b"", None),
        ] {
            assert_eq!(find_path(said).as_deref(), path, "{said:?}");
        }
    }

    #[tokio::test]
    async fn a_server_that_may_not_ask_does_not_wait() {
        assert_eq!(
            LoginShell::start_asking(false).login_path().await,
            LoginPath::Off
        );
    }
}
