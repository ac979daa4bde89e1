//! Commit, undo and recovery, against real file systems.

mod attack;
mod basic;
mod kill;
mod many;
mod odd;
mod stage;
mod tree;
