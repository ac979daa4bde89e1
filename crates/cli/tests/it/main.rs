//! The real binary, driven as an agent and as a person would.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod ask;
mod attacks;
mod bad_input;
mod bombs;
mod check;
mod clients;
mod clock;
mod corpus;
mod crash;
mod everyday;
mod explain;
mod faults;
mod guarded;
mod hostile;
mod output;
mod policy;
mod rest;
mod returns;
mod run;
mod support;
mod tampering;
mod tty;
mod verbs;
mod walls;
