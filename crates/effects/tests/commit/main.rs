//! Commit, undo and recovery, against real file systems.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod attack;
mod basic;
mod kill;
mod many;
mod odd;
mod stage;
mod tree;
