//! The PATH of the person's login shell, asked for once.
//!
//! A server that a desktop or systemd started has a PATH without nvm, pyenv
//! and what else a person's startup files add. Only PATH is taken over: with
//! aliases and functions, a command would not be what was judged.

use std::path::Path;
use std::time::Duration;

use rustix::process::geteuid;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use weighlock_exec::{Patience, Unheard, hear};

use crate::env;
use crate::passwd::Entry;

/// How long startup files may take. Slow ones with nvm take about two.
const DEADLINE: Duration = Duration::from_secs(5);

/// How much later we stop to wait for whoever waits for the shell. A home on
/// a file system that hangs can hold up even the start of a process.
const SPARE: Duration = Duration::from_millis(500);

/// Startup files may print; more than this is no greeting.
const MOST_BYTES: usize = 1024 * 1024;

/// A longer PATH is an accident. The kernel takes no variable above 128 KiB,
/// and every run would fail.
const LONGEST_PATH: usize = 32 * 1024;

/// Ends what startup files printed. Quoted, so that no alias changes it.
const TELL: &str = r"\printf '\0'; \exec /usr/bin/env -0";

/// For fish, where aliases are functions.
const TELL_FISH: &str = r"builtin printf '\0'; exec /usr/bin/env -0";

/// What the login shell said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Its PATH.
    Path { shell: String, path: String },
    /// Nothing, for this reason.
    None { why: String },
    /// It was not to be asked.
    Off,
}

impl Answer {
    /// Returns the PATH, if the shell told one.
    pub(crate) fn path(&self) -> Option<&str> {
        match self {
            Self::Path { path, .. } => Some(path),
            Self::None { .. } | Self::Off => None,
        }
    }
}

/// An answer that may still be on its way.
pub(crate) struct Asked {
    answer: watch::Receiver<Option<Answer>>,
    until: Instant,
}

impl Asked {
    /// Asks in the background, or does not.
    pub(crate) fn begin(wanted: bool) -> Self {
        let until = Instant::now() + DEADLINE + SPARE;
        let (tell, answer) = watch::channel((!wanted).then_some(Answer::Off));
        if wanted {
            tokio::task::spawn_blocking(move || {
                let person = Person::find(|name| std::env::var(name).ok(), passwd);
                let _ = tell.send(Some(ask(&person, DEADLINE)));
            });
        }
        Self { answer, until }
    }

    /// Waits for the answer, never past the deadline.
    pub(crate) async fn answer(&self) -> Answer {
        let mut answer = self.answer.clone();
        let known = timeout_at(self.until, answer.wait_for(Option::is_some)).await;
        let known = known.ok().and_then(|known| known.ok()?.clone());
        known.unwrap_or_else(|| Answer::None {
            why: late(DEADLINE),
        })
    }
}

/// Whose shell it is.
#[derive(Debug, PartialEq, Eq)]
struct Person {
    name: String,
    home: String,
    shell: String,
    lang: Option<String>,
}

impl Person {
    /// Goes by the server's environment, and where that is silent by the
    /// system's list of users.
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

    fn env(&self) -> Vec<(String, String)> {
        let mut env = vec![
            ("HOME", self.home.as_str()),
            ("USER", &self.name),
            ("LOGNAME", &self.name),
            ("SHELL", &self.shell),
            ("PATH", env::FALLBACK_PATH),
            ("TERM", "dumb"),
        ];
        env.extend(self.lang.as_deref().map(|lang| ("LANG", lang)));
        env.into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}

/// Returns name, home and shell of the user that we are.
fn passwd() -> Option<[String; 3]> {
    let uid = geteuid().as_raw();
    let user = Entry::find(|user| user.uid == uid)?;
    Some([user.name, user.home, user.shell])
}

/// Returns how a shell is made to tell its environment, if it is one we know.
/// Interactive where startup files tell by that whether to go on: many end at
/// once otherwise, before nvm and pyenv.
fn args(shell: &str) -> Option<&'static [&'static str]> {
    let path = Path::new(shell);
    if !path.is_absolute() {
        return None;
    }
    match path.file_name()?.to_str()? {
        "bash" | "zsh" => Some(&["-l", "-i", "-c", TELL]),
        "sh" | "dash" | "ksh" => Some(&["-l", "-c", TELL]),
        "fish" => Some(&["-l", "-c", TELL_FISH]),
        _ => None,
    }
}

fn ask(person: &Person, deadline: Duration) -> Answer {
    let none = |why| Answer::None { why };
    let shell = &person.shell;
    let Some(args) = args(shell) else {
        return none(format!("your login shell, {shell:?}, is none that we know"));
    };
    let patience = Patience {
        time: deadline,
        bytes: MOST_BYTES,
    };
    match hear(shell, args, &person.env(), patience) {
        Ok(said) => match read(&said) {
            Some(path) => Answer::Path {
                shell: shell.clone(),
                path,
            },
            None => none("your login shell ended without telling its PATH".into()),
        },
        Err(Unheard::Late) => none(late(deadline)),
        Err(Unheard::TooMuch) => none("your login shell printed without end".into()),
        Err(Unheard::Start(error)) => none(format!("cannot start {shell}: {error}")),
    }
}

fn late(deadline: Duration) -> String {
    let seconds = deadline.as_secs_f64();
    format!("your login shell did not answer within {seconds} s")
}

/// Finds PATH in what a shell said: startup files first, then a NUL, then the
/// environment, each variable with a NUL behind it.
fn read(said: &[u8]) -> Option<String> {
    let mark = said.iter().position(|&byte| byte == 0)?;
    let variables = &said[mark + 1..];
    // What has no NUL behind it is cut off, or somebody's in the background.
    let (whole, _) = variables.split_at(variables.iter().rposition(|&byte| byte == 0)?);
    let path = whole
        .split(|&byte| byte == 0)
        .filter_map(|variable| variable.strip_prefix(b"PATH="))
        .next_back()?;
    let path = join(&[std::str::from_utf8(path).ok()?]);
    (1..=LONGEST_PATH).contains(&path.len()).then_some(path)
}

/// Puts lists of directories after one another, each directory once. Those
/// that depend on where a command runs are left out: an agent can write there.
pub(crate) fn join(lists: &[&str]) -> String {
    let mut kept: Vec<&str> = vec![];
    for dir in lists.iter().flat_map(|list| list.split(':')) {
        if dir.starts_with('/') && !kept.contains(&dir) {
            kept.push(dir);
        }
    }
    kept.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Instant;

    /// Long enough for bash to start on a busy machine.
    const SOON: Duration = Duration::from_millis(300);

    fn person(home: &Path, shell: &str) -> Person {
        Person {
            name: "someone".into(),
            home: home.to_str().unwrap().into(),
            shell: shell.into(),
            lang: None,
        }
    }

    /// Asks bash with this `.bashrc`, and makes sure that nothing with this
    /// home is left when it answers.
    fn bash(rc: &str, deadline: Duration) -> Answer {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(".bashrc"), rc).unwrap();
        // As usual: a login shell alone would not read `.bashrc`.
        fs::write(home.path().join(".bash_profile"), ". ~/.bashrc").unwrap();
        let began = Instant::now();
        let answer = ask(&person(home.path(), "/bin/bash"), deadline);
        assert!(began.elapsed() < deadline + Duration::from_secs(2), "{rc}");
        let tag = format!("HOME={}", home.path().display());
        assert_eq!(weighlock_exec::kill_tagged(&tag), 0, "left by {rc}");
        answer
    }

    fn told(rc: &str) -> String {
        match bash(rc, Duration::from_secs(10)) {
            Answer::Path { path, .. } => path,
            other => panic!("{rc}: {other:?}"),
        }
    }

    fn why(rc: &str) -> String {
        match bash(rc, SOON) {
            Answer::None { why } => why,
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
                Answer::None { why } => assert!(why.contains("without telling"), "{rc}: {why}"),
                other => panic!("{rc}: {other:?}"),
            }
        }
    }

    #[test]
    fn endless_noise_is_cut_off() {
        match bash("yes", Duration::from_secs(10)) {
            Answer::None { why } => assert!(why.contains("without end"), "{why}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn there_is_no_terminal_and_nothing_of_the_server() {
        let home = tempfile::tempdir().unwrap();
        let seen = home.path().join("seen");
        let profile = "{ env; tty; (: </dev/tty) 2>/dev/null && echo terminal; pwd; } >~/seen";
        fs::write(home.path().join(".profile"), profile).unwrap();
        let answer = ask(&person(home.path(), "/bin/sh"), Duration::from_secs(10));
        assert!(answer.path().is_some(), "{answer:?}");
        let seen = fs::read_to_string(seen).unwrap();
        assert!(seen.contains("not a tty\n") && !seen.contains("terminal"));
        assert!(seen.ends_with("\n/\n"), "{seen}");
        assert!(!seen.contains("CARGO"), "{seen}");
    }

    #[test]
    fn what_is_no_shell_is_not_started() {
        for shell in ["", "bash", "/usr/sbin/nologin", "/bin/false", "/opt/nu"] {
            let answer = ask(&person(Path::new("/"), shell), SOON);
            assert_eq!(answer.path(), None, "{shell}");
        }
        let answer = ask(&person(Path::new("/"), "/nonexistent/bash"), SOON);
        assert!(
            matches!(&answer, Answer::None { why } if why.starts_with("cannot start")),
            "{answer:?}"
        );
    }

    #[test]
    fn a_missing_home_is_no_obstacle() {
        let answer = ask(
            &person(Path::new("/nonexistent"), "/bin/bash"),
            Duration::from_secs(10),
        );
        assert!(answer.path().is_some(), "{answer:?}");
    }

    #[test]
    fn the_environment_comes_before_the_list_of_users() {
        let user = || Some(["me", "/home/me", "/bin/zsh"].map(str::to_owned));
        let found = Person::find(|_| None, user);
        assert_eq!(
            (&*found.name, &*found.home, &*found.shell),
            ("me", "/home/me", "/bin/zsh")
        );
        let said = |name: &str| (name == "SHELL").then(|| "/bin/sh".to_owned());
        assert_eq!(Person::find(said, user).shell, "/bin/sh");
        assert_eq!(Person::find(|_| None, || None).shell, "");
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
            assert_eq!(read(said).as_deref(), path, "{said:?}");
        }
    }

    #[tokio::test]
    async fn an_engine_that_may_not_ask_does_not_wait() {
        assert_eq!(Asked::begin(false).answer().await, Answer::Off);
    }
}
