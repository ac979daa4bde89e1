//! The journey of one command, from request to record.
//!
//! [`Engine`] is what every door calls. It judges a request, starts it under a
//! keeper, waits as long as the caller is willing to, and leaves a record
//! whatever happens.

#![warn(missing_docs)]

mod blacklist;
mod clock;
mod config;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "runs will tell once they have walls")
)]
mod denial;
mod engine;
mod env;
mod error;
mod health;
mod id;
mod live;
mod login;
mod output;
mod place;
#[cfg_attr(
    not(test),
    expect(
        dead_code,
        unused_imports,
        reason = "the runs that mount this come next"
    )
)]
mod protect;
mod recover;
mod request;
mod retention;
mod run;
mod view;

pub use blacklist::BlacklistFile;
pub use clock::Clock;
pub use config::Config;
pub use denial::Denial;
pub use engine::Engine;
pub use error::{Error, Kind, Problem};
pub use health::{Check, Health, Level, size};
pub use output::{Follow, Until};
pub use request::{Input, Principal, Request};
pub use run::Outcome;
pub use view::{Detail, LeftRunning, Load, OutputView, Reason, Run, Used};
pub use weighlock_exec::{
    Excerpt, Item, Line, Lines, Log, Nursery, Piece, Shell, ShortPath, Stream, Text,
    close_inherited, die_of_broken_pipes, serve_nursery,
};
pub use weighlock_policy::{Blacklist, Cut, Preset, Times};
pub use weighlock_store::{
    Durability, Error as StoreError, Fault, Filter, State, Store, Verified, verify_export,
};
