//! The real binary, driven as an agent and as a person would.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod attacks;
mod bad_input;
mod bombs;
mod clients;
mod clock;
mod crash;
mod everyday;
mod faults;
mod guarded;
mod hostile;
mod output;
mod rest;
mod returns;
mod run;
mod support;
mod tampering;
mod verbs;
mod walls;
