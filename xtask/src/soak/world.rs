//! A server in directories of its own, its state on a small disk.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::client::Client;
use super::clock::Clock;
use crate::Result;

/// A server that is not back after so long never will be.
const BACK_WITHIN: Duration = Duration::from_secs(60);

/// A question that nobody answers ends soon enough to be seen ending.
const SETTINGS: &str = r#"
preset = "blacklist"
[approvals]
expire = "4s"
[limits]
timeout_default = "30s"
timeout_max = "10m"
keep = "10s"
[effects]
review = "before"
undo_mib = 8
[output]
per_run_mib = 2
total_mib = 12
[environment]
login_path = false
"#;

/// What a person is asked about before it runs.
const RULES: &str = "[[rule]]\nask = \"touch\"\nbecause = \"a person is to be asked\"\n";

/// What a person is asked about after it has run on a copy.
const CHANGE_RULES: &str = "[[change]]\nask = \"asked/**\"\nbecause = \"the same\"\n";

/// Everything that the soak has made.
pub(super) struct World {
    pub(super) dir: PathBuf,
    pub(super) program: PathBuf,
    /// Why the wall clock does not jump, if it does not.
    pub(super) clock: std::result::Result<Clock, String>,
    server: Mutex<Option<Child>>,
}

/// Somebody's client.
pub(super) struct Crew {
    pub(super) owner: Client,
    pub(super) coder: Client,
    pub(super) ana: Client,
    pub(super) ben: Client,
}

impl World {
    /// Makes the directories, and mounts a disk of this size for the state.
    pub(super) fn make(dir: &Path, program: PathBuf, disk_mib: u64) -> Result<Self> {
        let world = Self {
            dir: dir.to_owned(),
            program,
            clock: Clock::make(dir).map_err(|error| error.to_string()),
            server: Mutex::default(),
        };
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755))?;
        for name in [
            "base",
            "copies",
            "copies/asked",
            "copies/free",
            "home",
            "state",
        ] {
            fs::create_dir(dir.join(name))?;
        }
        fs::create_dir_all(dir.join("settings/weighlock"))?;
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o"])
            .arg(format!("size={disk_mib}m,mode=700"))
            .arg("soak")
            .arg(world.state())
            .output()?;
        if !mounted.status.success() {
            return Err(String::from_utf8_lossy(&mounted.stderr).into());
        }
        fs::write(dir.join("rules.toml"), RULES)?;
        fs::write(dir.join("copies.toml"), CHANGE_RULES)?;
        let settings = format!(
            "base = {base:?}\n{SETTINGS}\n[policy]\nrules = {rules:?}\n[sandbox.copies]\n\
             directory = {copies:?}\nreview = \"effects\"\nrules = {changes:?}\n",
            base = world.base(),
            rules = dir.join("rules.toml"),
            copies = world.copies(),
            changes = dir.join("copies.toml"),
        );
        fs::write(dir.join("settings/weighlock/config.toml"), settings)?;
        Ok(world)
    }

    pub(super) fn base(&self) -> PathBuf {
        self.dir.join("base")
    }

    pub(super) fn copies(&self) -> PathBuf {
        self.dir.join("copies")
    }

    pub(super) fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    /// Our binary, as it would be started here.
    pub(super) fn weighlock(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("HOME", self.dir.join("home"))
            .env("XDG_CONFIG_HOME", self.dir.join("settings"))
            .env("WEIGHLOCK_STATE_DIR", self.state())
            .current_dir(self.base())
            .stdin(Stdio::null());
        if let Ok(clock) = &self.clock {
            clock.give(&mut command);
        }
        command
    }

    /// Starts a server, in the place of one that a client may have started,
    /// and waits until it serves. A full disk is waited for.
    pub(super) fn serve(&self) -> Result<()> {
        let until = Instant::now() + BACK_WITHIN;
        while Instant::now() < until {
            let log = File::options()
                .create(true)
                .append(true)
                .open(self.dir.join("server.log"))?;
            let mut child = self
                .weighlock(&["serve", "--replace", "--listen", "off"])
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()?;
            while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
                if self.server_pid() == Some(child.id()) && self.is_well() {
                    // The one before has been replaced, if it was still there.
                    if let Some(mut before) = self.keep(Some(child)) {
                        before.wait()?;
                    }
                    return Ok(());
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        Err("the server does not come back".into())
    }

    /// Ends whichever server there is: as a crash would, or in order.
    pub(super) fn end_server(&self, signal: Signal) {
        if let Some(pid) = self.server_pid() {
            send(pid, signal);
        }
        if let Some(mut child) = self.keep(None) {
            // It may have been replaced by one that a client started.
            let _ = kill_process(own(&child), signal);
            let _ = child.wait();
        }
    }

    fn keep(&self, child: Option<Child>) -> Option<Child> {
        let mut server = self.server.lock().unwrap_or_else(|lock| lock.into_inner());
        std::mem::replace(&mut *server, child)
    }

    /// The server that holds the state directory.
    pub(super) fn server_pid(&self) -> Option<u32> {
        let lock = fs::read_to_string(self.state().join("lock")).ok()?;
        let pid = lock.trim().parse().ok()?;
        is_called(pid, b"serve").then_some(pid)
    }

    fn is_well(&self) -> bool {
        self.owner().get("/health").status() == Some(200)
    }

    pub(super) fn owner(&self) -> Client {
        Client {
            socket: self.state().join("weighlock.sock"),
            token: None,
        }
    }

    /// Makes everybody known to the server.
    pub(super) fn crew(&self) -> Result<Crew> {
        let owner = self.owner();
        let add = |name: &str, role: &str| -> Result<Client> {
            let person = json!({ "principal_id": name, "role": role,
                "default_sandbox": "default", "sandboxes": ["default", "copies"] });
            let added = owner.post("/people", &person).only(201);
            added.ok_or_else(|| format!("{name} cannot be made known"))?;
            let token = owner.post(&format!("/people/{name}/tokens"), &Value::Null);
            let token = token.only(201).ok_or("no token")?;
            Ok(Client {
                token: token["token"].as_str().map(str::to_owned),
                ..owner.clone()
            })
        };
        Ok(Crew {
            coder: add("coder", "agent")?,
            ana: add("ana", "approver")?,
            ben: add("ben", "approver")?,
            owner,
        })
    }

    /// Fills the disk of the state to the last byte.
    pub(super) fn fill(&self) -> Result<PathBuf> {
        let path = self.dir.join("state/filler");
        let mut file = File::create(&path)?;
        for size in [1 << 20, 4096, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        Ok(path)
    }

    /// The keepers that there are; in this place all are ours.
    pub(super) fn keepers(&self) -> Vec<u32> {
        let mut found: Vec<u32> = processes().collect();
        found.retain(|&pid| cmdline(pid).starts_with(b"weighlock-keeper\0"));
        found
    }
}

pub(super) fn send(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        let _ = kill_process(pid, signal);
    }
}

fn own(child: &Child) -> Pid {
    Pid::from_child(child)
}

pub(super) fn processes() -> impl Iterator<Item = u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

pub(super) fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    fields.nth(1)?.parse().ok()
}

pub(super) fn cmdline(pid: u32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

fn is_called(pid: u32, verb: &[u8]) -> bool {
    cmdline(pid).split(|&byte| byte == 0).nth(1) == Some(verb)
}
