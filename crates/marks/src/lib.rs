//! Finds commands in a terminal's bytes, and keeps terminals as recordings.
//!
//! A shell gets start-up code ([`Integration`]) and then says, by marks that
//! no screen shows, where prompts, commands and outputs begin and end.
//! [`Marks`] finds them, and [`Spans`] says which bytes each command wrote.
//!
//! ```
//! use weighlock_marks::{Nonce, Spans};
//!
//! let nonce = Nonce::from_random([7; 16]);
//! let mark = |said: &str| format!("\x1b]133;{said};wl={}\x07", nonce.secret());
//! let shown = format!("$ {}ls\r\n{}a  b\r\n{}", mark("B"), mark("C;cmd=ls"), mark("D;0"));
//!
//! let spans = Spans::new(&nonce, 0).feed(shown.as_bytes());
//! assert_eq!(spans[0].cut(shown.as_bytes(), 0), b"a  b\r\n");
//! assert_eq!(spans[0].exit, Some(0));
//! ```
//!
//! # How secret the nonce is
//!
//! Every mark carries a nonce that is made for one terminal, so that output
//! cannot pretend to be a mark. What keeps it from programs that run there:
//!
//! - It is in no environment: neither in the shell's (`/proc/…/environ` shows
//!   what a process started with) nor in what the shell exports.
//! - The start-up file removes itself before anything of the user's runs.
//!   Where it cannot (a read-only mount), the caller has to, at the first mark.
//! - It is only ever written to the terminal, and a screen does not show it.
//!
//! What does not keep it:
//!
//! - The shell knows it. Anybody who may type, or writes the user's start-up
//!   files, can read it with `set`.
//! - The output is kept with the marks in it. Anybody who may read the raw
//!   output, or its recording, can read the nonce there.
//! - A program of the same user can read the shell's memory
//!   (`/proc/…/mem`) unless Yama, a PID namespace or a wall forbids; that is
//!   not ptrace(2), and forbidding that call does not forbid this.
//! - A program needs no mark to draw a false prompt on the screen.
//!
//! So anybody who controls the shell can forge a mark. It can misplace
//! the borders between outputs; it can neither hide nor change their bytes.

mod error;
mod integration;
mod mark;
mod marks;
mod nonce;
mod platform;
mod recording;
mod scan;
mod span;

pub use error::Error;
pub use integration::{Integration, IntegrationFile, Shell};
pub use mark::{Mark, ShellCommand, Sign};
pub use marks::Marks;
pub use nonce::Nonce;
pub use recording::{
    Event, EventKind, EventReader, Frame, Frames, Header, Index, Recorder, Size, Spacing,
    first_line,
};
pub use span::{Span, Spans};
