//! What is remembered: commands, tokens and the hash-chained audit.
//!
//! One SQLite file in the state directory. All writes go through one thread,
//! which puts whatever waits into one transaction, so that many callers share
//! the cost. A write whose audit entry cannot be stored does not happen.

mod audit;
mod command;
mod grant;
mod open;
mod token;
mod writer;

pub use audit::{Entry, Fault, Verified, verify_export};
pub use command::{Command, Filter, State};
pub use open::{Durability, Error, Store};
