//! A place where scripts really run and can do nothing.
//!
//! Namespaces of its own for users, mounts, processes and the network; a root
//! of its own in memory, where every program is a stand-in that only notes how
//! it was called.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const STAGE: &str = include_str!("stage.rs");
const SETUP: &str = include_str!("arena.sh");

/// Which shell runs a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shell {
    Sh,
    Bash,
}

/// What a script really did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Deeds {
    /// The programs that were run: name and arguments.
    pub(crate) runs: Vec<Vec<String>>,
    /// Files made, changed or removed; empty if none.
    pub(crate) changes: String,
    /// What it printed, as far as it is not too much.
    pub(crate) output: String,
    /// It had to be stopped.
    pub(crate) late: bool,
}

pub(crate) struct Arena {
    child: Child,
    orders: ChildStdin,
    answers: ChildStdout,
    dir: PathBuf,
}

impl Arena {
    /// Builds one, or says why that cannot be done here.
    pub(crate) fn build(programs: &[String]) -> Result<Self, String> {
        let stage = stage()?;
        let dir = tempdir().map_err(|error| format!("no directory for it: {error}"))?;
        let names = dir.join("names");
        let root = dir.join("root");
        std::fs::create_dir(&root).map_err(|error| error.to_string())?;
        std::fs::write(&names, programs.join("\n") + "\n").map_err(|error| error.to_string())?;
        let mut child = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "--pid", "--net"])
            .args(["--ipc", "--uts", "--fork", "--kill-child", "--"])
            .args(["bash", "-c", SETUP, "arena.sh"])
            .args([&root, &stage, &names])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("`unshare` cannot be started: {error}"))?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("its pipes are missing".into());
        };
        let mut arena = Self {
            child,
            orders,
            answers,
            dir,
        };
        let deeds = arena
            .run(Shell::Bash, 0, "true; git status 'a b'")
            .map_err(|_| "namespaces are not there, or mounts in them".to_owned())?;
        match deeds.runs == [["git", "status", "a b"]] && deeds.changes.is_empty() {
            true => Ok(arena),
            false => Err(format!("it does not work: {deeds:?}")),
        }
    }

    /// Runs a script. The mood says how the stand-ins end: 0 well, 1 badly,
    /// 2 as it comes.
    pub(crate) fn run(&mut self, shell: Shell, mood: u8, script: &str) -> io::Result<Deeds> {
        let length = u32::try_from(script.len()).map_err(io::Error::other)?;
        let kind = match shell {
            Shell::Sh => b's',
            Shell::Bash => b'b',
        };
        let mut order = vec![kind, b'0' + mood];
        order.extend(length.to_le_bytes());
        order.extend(script.as_bytes());
        self.orders.write_all(&order)?;
        let late = take(&mut self.answers)?;
        let log = take(&mut self.answers)?;
        let changes = take(&mut self.answers)?;
        let output = take(&mut self.answers)?;
        Ok(Deeds {
            runs: records(&log)?,
            changes: text(&changes),
            output: text(&output),
            late: !late.is_empty(),
        })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn tempdir() -> io::Result<PathBuf> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("weighlock-arena-{}-{next}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    std::fs::create_dir(&dir)?;
    Ok(dir)
}

/// Compiles the stage, once for each version of it. An ordinary user who
/// cannot reach the compiler takes what another run has left.
fn stage() -> Result<PathBuf, String> {
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let sum = STAGE.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let done = dir.join(format!("stage-{sum:x}"));
    if done.exists() {
        return Ok(done);
    }
    let beside =
        std::env::var_os("CARGO").map(|cargo| PathBuf::from(cargo).with_file_name("rustc"));
    let compilers = [beside.unwrap_or_default(), "rustc".into()];
    let own = std::process::id();
    let (source, made) = (
        dir.join(format!("stage-{own}.rs")),
        dir.join(format!("stage-{own}")),
    );
    std::fs::write(&source, STAGE).map_err(|error| format!("{}: {error}", source.display()))?;
    // Static starts faster; not every machine has what that takes.
    let made = compilers.iter().any(|rustc| {
        [&["-C", "target-feature=+crt-static"] as &[&str], &[]]
            .iter()
            .any(|flags| compiles(rustc, flags, &source, &made))
    });
    let _ = std::fs::remove_file(&source);
    if !made {
        return Err("no `rustc` can be reached to compile the stand-in".into());
    }
    std::fs::rename(dir.join(format!("stage-{own}")), &done).map_err(|error| error.to_string())?;
    Ok(done)
}

fn compiles(rustc: &Path, flags: &[&str], source: &Path, made: &Path) -> bool {
    Command::new(rustc)
        .args([
            "--edition=2024",
            "-O",
            "-C",
            "panic=abort",
            "-C",
            "strip=symbols",
        ])
        .args(flags)
        .arg("-o")
        .args([made, source])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn take(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn records(mut log: &[u8]) -> io::Result<Vec<Vec<String>>> {
    let mut all = vec![];
    while !log.is_empty() {
        let record = take(&mut log)?;
        let (mut rest, mut words) = (record.as_slice(), vec![]);
        while !rest.is_empty() {
            words.push(text(&take(&mut rest)?));
        }
        all.push(words);
    }
    Ok(all)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
