//! A shell in a terminal, with someone who types.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Signal, kill_process_group};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetpgrp, tcsetwinsize};
use tempfile::TempDir;
use weighlock_marks::{Integration, Nonce, Shell, Span, Spans};
use weighlock_testing::have;

/// How long a shell may take, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Terminal {
    master: File,
    shell: Child,
    spans: Spans,
    ended: Vec<Span>,
    pub(crate) nonce: Nonce,
    /// All that was shown.
    pub(crate) shown: Vec<u8>,
    pub(crate) home: TempDir,
    /// Where the start-up files were written.
    pub(crate) dir: TempDir,
}

/// A command, as far as tests compare it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) command: Option<String>,
    pub(crate) output: String,
    pub(crate) exit: Option<i32>,
}

pub(crate) fn ran(command: &str, output: &str, exit: i32) -> Ran {
    Ran {
        command: Some(command.into()),
        output: output.into(),
        exit: Some(exit),
    }
}

impl Terminal {
    /// Starts a shell whose user has these files at home, and waits for its
    /// first prompt. Returns `None` if it is not installed.
    pub(crate) fn start(shell: Shell, files: &[(&str, &str)]) -> Option<Self> {
        let program = match shell {
            Shell::Bash => "bash",
            Shell::Zsh => "zsh",
            Shell::Sh => "dash",
        };
        if !have(&[program, "setsid"]) {
            return None;
        }
        let (home, dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        for (name, text) in files {
            fs::write(home.path().join(name), text).unwrap();
        }
        let nonce = Nonce::from_random(random());
        let made = Integration::for_shell(shell, &nonce, dir.path());
        for file in &made.files {
            fs::write(dir.path().join(file.name), &file.text).unwrap();
        }
        let (master, slave) = pair();
        let shell = Command::new("setsid")
            .args(["--ctty", program])
            .args(&made.argv[1..])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home.path())
            .env("TERM", "xterm")
            .env("LANG", "C.UTF-8")
            .envs(made.env)
            .current_dir(home.path())
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(Stdio::from(slave))
            .spawn()
            .unwrap();
        let mut terminal = Self {
            master,
            shell,
            spans: Spans::new(&nonce, 0),
            ended: vec![],
            nonce,
            shown: vec![],
            home,
            dir,
        };
        terminal.until("a prompt", |terminal| terminal.spans.waits());
        Some(terminal)
    }

    /// Types a line at the prompt and returns the one command that ran.
    pub(crate) fn run(&mut self, line: &str) -> Ran {
        self.ended.clear();
        self.keys(&format!("{line}\r"));
        self.until("the end of a command", |terminal| {
            !terminal.ended.is_empty() && terminal.spans.waits()
        });
        let mut ended = std::mem::take(&mut self.ended);
        assert_eq!(ended.len(), 1, "{ended:?} in {}", self.text());
        self.ran(&ended.remove(0))
    }

    /// Types a line and waits for the next prompt; returns nothing.
    pub(crate) fn enter(&mut self, line: &str) {
        self.ended.clear();
        self.next_prompt(&format!("{line}\r"));
    }

    /// Types these keys and waits until the shell has shown a prompt after.
    pub(crate) fn next_prompt(&mut self, keys: &str) {
        let before = self.prompts();
        self.keys(keys);
        self.until("the next prompt", |terminal| {
            terminal.prompts() > before && terminal.spans.waits()
        });
    }

    /// Interrupts what is in the foreground. Ctrl-C does that too, but then the
    /// kernel throws away what is written meanwhile, marks among it.
    pub(crate) fn interrupt(&mut self) {
        self.sleeps();
        let group = tcgetpgrp(&self.master).unwrap();
        kill_process_group(group, Signal::INT).unwrap();
        self.next_prompt("");
    }

    pub(crate) fn keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line with which the shell ends.
    pub(crate) fn leave(mut self, line: &str) -> (Option<Ran>, Option<i32>) {
        self.keys(&format!("{line}\r"));
        while self.read() {}
        let status = self.shell.wait().unwrap();
        let empty = Spans::new(&self.nonce, 0);
        let last = std::mem::replace(&mut self.spans, empty).finish();
        (last.map(|span| self.ran(&span)), status.code())
    }

    /// Waits until something was shown.
    pub(crate) fn see(&mut self, text: &str) {
        self.see_after(0, text);
    }

    /// Waits until something was shown after so many bytes.
    pub(crate) fn see_after(&mut self, bytes: usize, text: &str) {
        self.until(text, |terminal| {
            String::from_utf8_lossy(&terminal.shown[bytes..]).contains(text)
        });
    }

    pub(crate) fn ended(&self) -> &[Span] {
        &self.ended
    }

    pub(crate) fn directory(&self) -> &Path {
        self.spans.directory().unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown).into_owned()
    }

    fn ran(&self, span: &Span) -> Ran {
        let output = span.cut(&self.shown, 0);
        Ran {
            command: span.command.as_ref().map(|command| command.text.clone()),
            output: String::from_utf8_lossy(output).into_owned(),
            exit: span.exit,
        }
    }

    /// Waits until the shell waits. Bash and zsh may forget a signal that
    /// comes while they draw what was typed.
    fn sleeps(&self) {
        let deadline = Instant::now() + PATIENCE;
        let stat = format!("/proc/{}/stat", self.shell.id());
        while !fs::read_to_string(&stat).unwrap().contains(") S ") {
            assert!(Instant::now() < deadline, "busy: {}", self.text());
            thread::yield_now();
        }
    }

    fn prompts(&self) -> usize {
        self.text().matches("\x1b]133;A;").count()
    }

    fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            assert!(self.read(), "no {what}, but the end: {}", self.text());
        }
    }

    /// Reads what is there; returns whether there may be more.
    fn read(&mut self) -> bool {
        let mut ready = [PollFd::new(&self.master, PollFlags::IN)];
        let wait = Timespec::try_from(PATIENCE).unwrap();
        let number = poll(&mut ready, Some(&wait)).unwrap();
        assert!(number > 0, "nothing for {PATIENCE:?}: {}", self.text());
        let mut bytes = [0; 4096];
        // The last process to leave a terminal makes reading it an error.
        let Ok(number @ 1..) = self.master.read(&mut bytes) else {
            return false;
        };
        self.shown.extend_from_slice(&bytes[..number]);
        self.ended.extend(self.spans.feed(&bytes[..number]));
        true
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

fn pair() -> (File, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, vec![]).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = open(name, flags, Mode::empty()).unwrap();
    let size = Winsize {
        ws_row: 24,
        ws_col: 200,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&slave, size).unwrap();
    (master.into(), slave)
}

fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    let mut source = File::open("/dev/urandom").unwrap();
    source.read_exact(&mut bytes).unwrap();
    bytes
}
