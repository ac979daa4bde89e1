//! Runs a permitted command under a keeper and keeps its output.
//!
//! A keeper is a small process that outlives the server: it builds the walls,
//! holds the pipes, writes the output log and enforces the clocks. The server
//! starts keepers through a [`Nursery`] and follows each as a [`Job`].

mod alarms;
mod cut;
mod diary;
mod job;
mod keeper;
mod log;
mod nursery;
mod protocol;
mod short;
mod spec;
mod status;
mod text;

pub use cut::{Excerpt, LeftOut, Text, excerpt, left_out};
pub use diary::{Diary, Happened, Mark, What};
pub use job::{
    Error, Job, Ordered, Orphan, Summoned, adopt, forget, is_left, order, start, summon,
};
pub use keeper::{MANY_PROCESSES, hide, serve_nursery};
pub use log::{InStream, Item, Line, Lines, Log, Piece, Stream, record};
pub use nursery::Nursery;
#[cfg(fuzzing)]
pub use protocol::check as check_protocol;
pub use short::ShortPath;
pub use spec::{Hidden, Limits, Shell, Spec, Startup, Stdin, write_input};
pub use status::{Cause, End, Fate, Leftover, Status, StreamTotals, TerminalState, Totals};
/// Only as the first deed of a program, before it opens anything.
pub use weighlock_confine::close_inherited;
pub use weighlock_confine::{
    Exceeded, Exit, Patience, Primitive, Size, Unheard, Usage, die_of_broken_pipes, hear,
    kill_tagged, raise_open_files,
};
