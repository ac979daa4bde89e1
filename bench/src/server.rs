//! A real server in a directory of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::Result;
use crate::http::Client;

/// A server that ends with this value.
pub(crate) struct Server {
    process: Child,
    program: PathBuf,
    dir: TempDir,
}

/// A process, by its id.
#[derive(Clone, Copy)]
pub(crate) struct Process(pub(crate) u32);

/// Most memory held at any time, in bytes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Peak {
    pub(crate) server: u64,
    /// The largest process that the nursery has: the keeper of a run.
    pub(crate) keeper: u64,
}

impl Server {
    /// Starts a server with a configuration and waits until it serves.
    pub(crate) fn start(config: &str) -> Result<Self> {
        Self::start_showing(config, &[])
    }

    /// Starts one whose commands see these paths too.
    pub(crate) fn start_showing(config: &str, paths: &[PathBuf]) -> Result<Self> {
        Self::start_in(place()?, config, paths, "off")
    }

    /// Starts one that can be reached over TCP, too.
    pub(crate) fn start_listening() -> Result<Self> {
        Self::start_in(place()?, "", &[], "127.0.0.1:0")
    }

    /// Ends it, changes its database, and starts it again.
    pub(crate) fn restart_after(self, change: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let mut ended = self;
        ended.end();
        let dir = std::mem::replace(&mut ended.dir, tempfile::tempdir()?);
        change(&dir.path().join("state/weighlock.db"))?;
        Self::start_in(dir, "", &[], "off")
    }

    fn start_in(dir: TempDir, config: &str, paths: &[PathBuf], listen: &str) -> Result<Self> {
        let program = program()?;
        let file = dir.path().join("config.toml");
        // Commands that write by measure are this program.
        let own = std::env::current_exe()?.canonicalize()?;
        let shown = paths
            .iter()
            .chain([&own])
            .map(|path| path.to_string_lossy());
        let shown: Vec<_> = shown.collect();
        let shown = format!("[sandbox.default]\nread = {shown:?}\n");
        fs::write(&file, format!("{config}\n{shown}"))?;
        let mut process = ours(&program, dir.path())
            .args(["serve", "--listen", listen, "--config"])
            .arg(&file)
            .arg("--base")
            .arg(dir.path().join("base"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(process.stderr.take().ok_or("no standard error")?);
        let mut said = String::new();
        while !said
            .lines()
            .any(|line| line.starts_with("connect an agent:"))
        {
            if lines.read_line(&mut said)? == 0 {
                process.wait()?;
                return Err(format!("the server does not start:\n{said}").into());
            }
        }
        // Whatever else it says is a complaint that should be seen.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::stderr()));
        Ok(Self {
            process,
            program,
            dir,
        })
    }

    pub(crate) fn connect(&self) -> Result<Client> {
        Client::open(&self.dir.path().join("state/weighlock.sock"))
    }

    /// Where it listens beside its socket.
    pub(crate) fn address(&self) -> Result<SocketAddr> {
        let said = fs::read_to_string(self.dir.path().join("state/address"))?;
        Ok(said.trim().trim_start_matches("http://").parse()?)
    }

    /// The command line, as somebody would use it against this server.
    pub(crate) fn command_line(&self) -> Command {
        let mut command = ours(&self.program, self.dir.path());
        command.current_dir(self.base());
        command
    }

    /// Where commands run.
    pub(crate) fn base(&self) -> PathBuf {
        self.dir.path().join("base")
    }

    /// Removes what the runs have said, so that the disk does not fill up.
    pub(crate) fn forget_output(&self) -> Result<()> {
        for run in fs::read_dir(self.dir.path().join("state/runs"))? {
            match fs::remove_dir_all(run?.path()) {
                // The server puts away the last run at the same time.
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads how much memory the server and its keepers have held so far.
    pub(crate) fn peak(&self) -> Peak {
        let server = self.process.id();
        let keepers = children(server).into_iter().flat_map(children);
        Peak {
            server: peak_bytes(server),
            keeper: keepers.map(peak_bytes).max().unwrap_or(0),
        }
    }
}

impl Server {
    /// The server, and then everything below it.
    pub(crate) fn processes(&self) -> Vec<Process> {
        Process(self.process.id()).tree()
    }

    /// Ends it. The command line starts another by itself then.
    pub(crate) fn end(&mut self) {
        if !matches!(self.process.try_wait(), Ok(None)) {
            return;
        }
        // They would outlive it.
        if let Err(error) = self.close_terminals() {
            eprintln!("terminals may be left open: {error}");
        }
        if let Some(pid) = rustix::process::Pid::from_raw(self.process.id().cast_signed()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.process.wait();
    }

    fn close_terminals(&self) -> Result<()> {
        let mut client = self.connect()?;
        let open = client.call("GET", "/terminals", &Value::Null)?;
        let ids = open["terminals"].as_array().into_iter().flatten();
        let ids: Vec<&str> = ids.filter_map(|it| it["terminal_id"].as_str()).collect();
        for id in &ids {
            client.call("DELETE", &format!("/terminals/{id}"), &Value::Null)?;
        }
        for id in &ids {
            let path = format!("/commands/{id}?wait_ms=10000");
            client.call("GET", &path, &Value::Null)?;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

impl Process {
    /// This one, and then everything below it.
    pub(crate) fn tree(self) -> Vec<Self> {
        let below = children(self.0).into_iter();
        let below = below.flat_map(|child| Self(child).tree());
        std::iter::once(self).chain(below).collect()
    }

    /// Returns its memory in bytes; of what it shares, its share.
    pub(crate) fn memory(&self) -> u64 {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.0));
        bytes_of(&rollup.unwrap_or_default(), "Pss:")
    }

    /// Returns nanoseconds of processor time so far.
    pub(crate) fn nanoseconds(&self) -> u64 {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.0)) else {
            return 0;
        };
        threads
            .filter_map(|thread| {
                let used = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
                used.split(' ').next()?.parse::<u64>().ok()
            })
            .sum()
    }

    /// The file that it runs.
    pub(crate) fn program(&self) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{}/exe", self.0)).ok()
    }
}

impl Peak {
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            server: self.server.max(other.server),
            keeper: self.keeper.max(other.keeper),
        }
    }
}

/// A directory for a server and for what its commands work on.
fn place() -> Result<TempDir> {
    let dir = tempfile::Builder::new().prefix("wlbench").tempdir()?;
    fs::create_dir(dir.path().join("base"))?;
    Ok(dir)
}

fn ours(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", dir)
        .env("WEIGHLOCK_STATE_DIR", dir.join("state"))
        .stdin(Stdio::null());
    command
}

/// Builds the program beside this one, so that no old one is measured.
pub(crate) fn build() -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--quiet", "-p", "weighlock"]);
    match cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status() {
        Ok(built) if built.success() => Ok(()),
        _ => Err("`weighlock` cannot be built; nothing was measured".into()),
    }
}

pub(crate) fn program() -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("weighlock"))
}

fn children(of: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{of}/task")) else {
        return vec![];
    };
    threads
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok())
        .flat_map(|pids| {
            let pids = pids.split_ascii_whitespace();
            pids.filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

fn peak_bytes(of: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{of}/status")).unwrap_or_default();
    bytes_of(&status, "VmHWM:")
}

/// Returns the figure of this name, which the kernel gives in KiB.
fn bytes_of(text: &str, name: &str) -> u64 {
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
