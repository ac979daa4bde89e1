//! Tells whether anything in a tree has run since somebody looked at it.
//!
//! Walking through hundreds of idle terminals every two seconds takes a
//! noticeable part of a processor. But what has not run has written nothing
//! and started nothing, and how long each thread has run so far can be read
//! from one open file. After a while not even that is read any more: the
//! counts of the whole machine tell when there may be something to see.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::process::{Pid, getpid};

use crate::members;

/// A tree of more threads is walked through each time: a descriptor is kept
/// for each.
const MOST_THREADS: usize = 64;

/// Room for the three numbers that the kernel tells of a thread.
const CLOCK: usize = 80;

/// The threads of a tree, and how long each of them had run.
pub(crate) struct Asleep {
    clocks: Vec<(File, [u8; CLOCK])>,
}

impl Asleep {
    /// Looks at everything below this process; nothing if that is too much, or
    /// more while we look, or the kernel does not tell.
    pub(crate) fn look() -> Option<Self> {
        let threads = threads()?;
        let clocks = { threads.iter() }.map(|thread| {
            let file = File::open(thread.join("schedstat")).ok()?;
            let clock = read(&file)?;
            Some((file, clock))
        });
        let clocks = clocks.collect::<Option<_>>()?;
        // Whoever was started before its starter's clock was read would run
        // unseen for ever.
        (self::threads()? == threads).then_some(Self { clocks })
    }

    /// Whether none of them has run since.
    pub(crate) fn is_still(&self) -> bool {
        let mut clocks = self.clocks.iter();
        clocks.all(|(file, before)| read(file).is_some_and(|now| now == *before))
    }
}

/// Lists the threads of everything below this process.
fn threads() -> Option<Vec<PathBuf>> {
    let mut found = vec![];
    for pid in members::pids_below(getpid(), MOST_THREADS) {
        let pid = Pid::from_raw(pid.cast_signed())?;
        let tasks = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).ok()?;
        found.extend(tasks.flatten().map(|task| task.path()));
        if found.len() >= MOST_THREADS {
            return None;
        }
    }
    Some(found)
}

/// Reads how long a thread has run; nothing if it has ended.
fn read(clock: &File) -> Option<[u8; CLOCK]> {
    let mut told = [0; CLOCK];
    let length = clock.read_at(&mut told, 0).ok()?;
    (length > 0).then_some(told)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn whoever_runs_is_noticed() {
        let mut child = Command::new("sh")
            .args(["-c", "echo up; read line; read line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut up = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut up).unwrap();
        // It may still be on its way to sleep.
        let seen = loop {
            let seen = Asleep::look().unwrap();
            std::thread::yield_now();
            if seen.is_still() && seen.is_still() {
                break seen;
            }
        };
        assert!(!seen.clocks.is_empty());
        writeln!(child.stdin.as_mut().unwrap(), "go on").unwrap();
        while seen.is_still() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!seen.is_still(), "whoever has ended is no sleeper");
    }
}
