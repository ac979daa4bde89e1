//! What the measured commands do: this program itself, started with a word.
//!
//! A producer of our own costs next to nothing, so that what is measured is
//! the way of the bytes and not their making.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::Result;

/// Stands before the word.
pub(crate) const VERB: &str = "--say";

/// Whoever listens for the clock is connected well before it is said.
const LISTENER_READY: Duration = Duration::from_millis(60);

/// The clock's process stays on, so that its end does not push the byte out.
const LINGER: Duration = Duration::from_millis(30);

/// What one write hands over: as much as an ordinary pipe holds.
const PIECE: usize = 64 * 1024;

/// Does what the words ask for.
pub(crate) fn say(words: &[String]) -> Result<()> {
    match words {
        [what] if what == "clock" => clock(),
        [what] if what == "now" => {
            println!("{}", now());
            Ok(())
        }
        [what, bytes] if what == "flood" => flood(bytes.parse()?),
        _ => Err("only `clock`, `now` and `flood BYTES` can be said".into()),
    }
}

/// Returns the command line for a shell that makes this program say words.
pub(crate) fn command(words: &str) -> Result<String> {
    let program: PathBuf = std::env::current_exe()?;
    Ok(format!("'{}' {VERB} {words}", program.display()))
}

/// Returns nanoseconds of a clock that all processes share.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

fn clock() -> Result<()> {
    std::thread::sleep(LISTENER_READY);
    let mut out = io::stdout().lock();
    let line = format!("{}\n", now());
    out.write_all(line.as_bytes())?;
    out.flush()?;
    std::thread::sleep(LINGER);
    Ok(())
}

/// Writes lines of 64 characters.
fn flood(bytes: usize) -> Result<()> {
    let line = format!("{}\n", "0123456789abcdef".repeat(4).split_at(63).0);
    let piece = line.repeat(PIECE / line.len());
    let out = rustix::stdio::stdout();
    let mut left = bytes;
    while left > 0 {
        let part = &piece.as_bytes()[..left.min(piece.len())];
        left -= rustix::io::write(out, part)?;
    }
    Ok(())
}
