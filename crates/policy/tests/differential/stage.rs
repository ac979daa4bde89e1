//! What is inside of the arena: one program with two faces.
//!
//! Under the name `stage` it runs scripts that it is sent, one after another.
//! Under any other name it is the stand-in for that program: it notes that it
//! was run, and with which words, and then becomes the real program if there
//! is a harmless one in `/real`.
//!
//! The test compiles it with `rustc` alone; it is no part of the crate.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LOG: &str = "/ctl/log";
const OUT: &str = "/ctl/out";
const INPUT: &str = "/ctl/in";
const MOOD: &str = "/ctl/mood";
const HOME: &str = "/home/dev";
const PROJECT: &str = "/home/dev/proj";
/// The secret, written backwards: a script may well print this very program.
const CANARY: &str = "1174-yranac";

/// No harmless script takes longer; one that does is stopped.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Output past this says nothing new.
const MOST_OUTPUT: u64 = 64 * 1024;

/// What lies around, to be read, matched by patterns, and left alone.
const FILES: &[(&str, &str)] = &[
    ("/home/dev/.bashrc", "# nothing\n"),
    ("/home/dev/.ssh/id_rsa", CANARY),
    ("/home/dev/.aws/credentials", CANARY),
    ("/home/dev/proj/README.md", "hello\nrm pwned\n"),
    ("/home/dev/proj/Cargo.toml", "[package]\nname = \"x\"\n"),
    ("/home/dev/proj/a", "touch pwned\n"),
    ("/home/dev/proj/a b.txt", "one two\n"),
    ("/home/dev/proj/src/main.rs", "fn main() {}\n"),
    ("/home/dev/proj/src/-delete", ""),
    ("/home/dev/proj/-oout", "b\na\n"),
    ("/home/dev/proj/x;id", ""),
    ("/tmp/t.txt", "t\n"),
];

fn main() -> io::Result<()> {
    let program = std::env::current_exe()?;
    let name = program.file_name().unwrap_or_default().to_owned();
    if name == "stage" {
        serve()
    } else {
        stand_in(&name)
    }
}

fn stand_in(name: &std::ffi::OsStr) -> io::Result<()> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let mut record = vec![];
    put(&mut record, name.as_bytes());
    args.iter().for_each(|arg| put(&mut record, arg.as_bytes()));
    let mut framed = vec![];
    put(&mut framed, &record);
    // One write, so that records of several processes do not mix.
    OpenOptions::new()
        .append(true)
        .open(LOG)?
        .write_all(&framed)?;
    let real = Path::new("/real").join(name);
    if real.exists() {
        let error = Command::new(real).args(&args).exec();
        std::process::exit(if error.kind() == io::ErrorKind::NotFound {
            127
        } else {
            126
        });
    }
    let _ = io::stdout().write_all(b"traced one\n");
    let sum = record
        .iter()
        .fold(0_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(*byte));
    let fails = match fs::read(MOOD).unwrap_or_default().first() {
        Some(b'1') => true,
        Some(b'2') => sum % 2 == 1,
        _ => false,
    };
    std::process::exit(i32::from(fails));
}

fn serve() -> io::Result<()> {
    furnish()?;
    let fresh = snapshot();
    let (mut orders, mut answers) = (io::stdin().lock(), io::stdout().lock());
    loop {
        let mut head = [0; 2];
        if orders.read_exact(&mut head).is_err() {
            return Ok(());
        }
        let script = take(&mut orders)?;
        fs::write(LOG, "")?;
        fs::write(MOOD, [head[1]])?;
        let in_time = perform(
            if head[0] == b's' {
                "/real/sh"
            } else {
                "/real/bash"
            },
            &script,
        )?;
        let now = snapshot();
        let changes = differences(&fresh, &now);
        if !changes.is_empty() {
            furnish()?;
        }
        let mut output = vec![];
        fs::File::open(OUT)?
            .take(MOST_OUTPUT)
            .read_to_end(&mut output)?;
        let mut answer = vec![];
        put(&mut answer, if in_time { b"" } else { b"late" });
        put(&mut answer, &fs::read(LOG)?);
        put(&mut answer, changes.as_bytes());
        put(&mut answer, &output);
        answers.write_all(&answer)?;
        answers.flush()?;
    }
}

/// Runs one script and everything that it leaves behind to its end.
fn perform(shell: &str, script: &[u8]) -> io::Result<bool> {
    let out = fs::File::create(OUT)?;
    let began = Instant::now();
    let mut child = Command::new(shell)
        .arg("-c")
        .arg(std::ffi::OsStr::from_bytes(script))
        .current_dir(PROJECT)
        .env_clear()
        .envs([
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("HOME", HOME),
            ("PWD", PROJECT),
            ("USER", "dev"),
            ("LANG", "C.UTF-8"),
            ("GITHUB_TOKEN", &canary()),
        ])
        .stdin(fs::File::open(INPUT)?)
        .stdout(out.try_clone()?)
        .stderr(out)
        .spawn()?;
    let mut pause = Duration::from_micros(300);
    let mut in_time = true;
    let mut ended = false;
    loop {
        ended = ended || child.try_wait()?.is_some();
        let others = others();
        if ended && others.is_empty() {
            return Ok(in_time);
        }
        if began.elapsed() > PATIENCE {
            in_time = false;
            let kill = format!("kill -9 {}", others.join(" "));
            Command::new("/real/bash")
                .args(["-c", &kill])
                .stderr(Stdio::null())
                .status()?;
        }
        std::thread::sleep(pause);
        pause = (pause * 5 / 4).min(Duration::from_millis(10));
    }
}

/// Returns the processes that are neither the first one nor this.
fn others() -> Vec<String> {
    let own = std::process::id().to_string();
    let Ok(entries) = fs::read_dir("/proc") else {
        return vec![];
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| {
            name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own && name != "1"
        })
        .collect()
}

/// Makes everything as it was.
fn furnish() -> io::Result<()> {
    for dir in [HOME, "/tmp"] {
        for entry in fs::read_dir(dir)?.flatten() {
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
    }
    for (path, text) in FILES {
        fs::create_dir_all(Path::new(path).parent().unwrap_or(Path::new("/")))?;
        match *text {
            CANARY => fs::write(path, canary())?,
            text => fs::write(path, text)?,
        }
    }
    Ok(())
}

fn canary() -> String {
    CANARY.chars().rev().collect()
}

fn snapshot() -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut left = vec![PathBuf::from(HOME), PathBuf::from("/tmp")];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let kind = entry.file_type().ok();
            let seen = if kind.is_some_and(|kind| kind.is_dir()) {
                left.push(path.clone());
                b"directory".to_vec()
            } else if kind.is_some_and(|kind| kind.is_file()) {
                fs::read(&path).unwrap_or_default()
            } else {
                b"special".to_vec()
            };
            all.insert(path, seen);
        }
    }
    all
}

fn differences(old: &BTreeMap<PathBuf, Vec<u8>>, new: &BTreeMap<PathBuf, Vec<u8>>) -> String {
    let mut found = vec![];
    for (path, seen) in new {
        match old.get(path) {
            None => found.push(format!("made {}", path.display())),
            Some(before) if before != seen => found.push(format!("changed {}", path.display())),
            Some(_) => {}
        }
    }
    let gone = old.keys().filter(|path| !new.contains_key(*path));
    found.extend(gone.map(|path| format!("removed {}", path.display())));
    found.join(", ")
}

fn put(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    into.extend(bytes);
}

fn take(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}
