//! tmux, as people drive it from scripts: by its commands, or in control mode.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tempfile::TempDir;

use super::CAT;
use crate::table::not_measured;
use crate::{Result, programs};

/// A tmux of our own with a `cat` in its first window, which ends with this
/// value.
pub(super) struct Tmux {
    dir: TempDir,
}

/// A client that tells everything line by line.
pub(super) struct Control {
    client: Child,
    orders: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Tmux {
    /// Starts one; nothing where there is no tmux, or it does not start.
    pub(super) fn start() -> Result<Option<Self>> {
        if !programs::install("tmux", "-V", "tmux") {
            not_measured("tmux", "it is not installed");
            return Ok(None);
        }
        let tmux = Self::open().and_then(|tmux| {
            tmux.control()?;
            Ok(tmux)
        });
        Ok(tmux.map_err(|error| not_measured("tmux", error)).ok())
    }

    fn open() -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("wlbench").tempdir()?;
        let tmux = Self { dir };
        tmux.call(&[
            "new-session",
            "-d",
            "-s",
            "bench",
            "-x",
            "80",
            "-y",
            "24",
            CAT,
        ])?;
        Ok(tmux)
    }

    /// Has a command of tmux done, and returns what it prints.
    pub(super) fn call(&self, words: &[&str]) -> Result<Vec<u8>> {
        let done = self.command().args(words).output()?;
        match done.status.success() {
            true => Ok(done.stdout),
            false => Err(String::from_utf8_lossy(&done.stderr).into()),
        }
    }

    pub(super) fn control(&self) -> Result<Control> {
        let mut client = self
            .command()
            .args(["-C", "attach", "-t", "bench"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = client.stdin.take().ok_or("no standard input")?;
        let lines = client.stdout.take().ok_or("no standard output")?;
        let mut control = Control {
            client,
            orders,
            lines: BufReader::new(lines),
        };
        // The answer to `attach` itself.
        control.answer()?;
        Ok(control)
    }

    /// The process that has all windows.
    pub(super) fn pid(&self) -> Result<u32> {
        let pid = self.call(&["display-message", "-p", "#{pid}"])?;
        Ok(String::from_utf8_lossy(&pid).trim().parse()?)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(self.dir.path().join("socket"))
            .args(["-f", "/dev/null"])
            .env_remove("TMUX")
            .env("TERM", "xterm")
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.call(&["kill-server"]);
    }
}

impl Control {
    /// Has a command of tmux done.
    pub(super) fn call(&mut self, command: &str) -> Result<()> {
        self.order(command)?;
        self.answer()
    }

    /// Gives an order, and does not wait for its answer.
    pub(super) fn order(&mut self, command: &str) -> Result<()> {
        Ok(writeln!(self.orders, "{command}")?)
    }

    /// Waits for anything that a window shows, with what is no text escaped.
    pub(super) fn output(&mut self) -> Result<String> {
        let line = self.line_with("%output")?;
        // The kind, the pane, and then what may be half of a line.
        let shown = line.trim_end_matches('\n').splitn(3, ' ').nth(2);
        Ok(shown.unwrap_or_default().to_owned())
    }

    fn answer(&mut self) -> Result<()> {
        self.line_with("%end").map(drop)
    }

    fn line_with(&mut self, kind: &str) -> Result<String> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line)? == 0 || line.starts_with("%error") {
                return Err(format!("tmux does not do it: {line}").into());
            }
            if line.starts_with(kind) {
                return Ok(line);
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}
