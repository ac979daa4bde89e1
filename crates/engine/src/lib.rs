//! The journey of one command, from request to record.
//!
//! [`Engine`] is what every door calls. It judges a request, starts it under a
//! keeper, waits as long as the caller is willing to, and leaves a record
//! whatever happens.

#![warn(missing_docs)]

mod blacklist;
mod clock;
mod config;
mod denial;
mod engine;
mod env;
mod error;
mod explain;
mod forgery;
mod health;
mod id;
mod judge;
mod live;
mod login;
mod machine;
mod output;
mod passwd;
mod place;
mod policy;
mod protect;
mod recover;
mod request;
mod retention;
mod run;
mod sandbox;
mod view;
mod walls;

pub use blacklist::BlacklistFile;
pub use clock::Clock;
pub use config::Config;
pub use denial::Denial;
pub use engine::Engine;
pub use error::{Error, Kind, Problem};
pub use explain::{
    Explanation, GrantView, OptionView, PartView, PolicyView, ReasonView, RuleView, TokenView,
};
pub use health::{Check, Checks, Health, Level, size};
pub use id::path_hash;
pub use judge::{Judge, check_rules};
pub use machine::PrimitiveView;
pub use output::{Follow, Until};
pub use policy::PolicyFiles;
pub use request::{Answer, Input, Principal, Request};
pub use run::Outcome;
pub use sandbox::{DEFAULT as DEFAULT_SANDBOX, Sandbox};
pub use view::{
    Detail, LayerView, LeftRunning, LimitsView, Load, OutputView, Reason, Run, SandboxView, Used,
};
pub use weighlock_confine::{Access, Limits, Network, Rung};
pub use weighlock_exec::{
    Excerpt, Item, Line, Lines, Log, Nursery, Piece, Shell, ShortPath, Stream, Text,
    close_inherited, die_of_broken_pipes, raise_open_files, serve_nursery,
};
pub use weighlock_policy::{
    Blacklist, Cut, Link, LoadError, PartKind, Preset, Scope, Settings, Times, TokenKind, Verdict,
    rules_schema,
};
pub use weighlock_store::{
    Durability, Error as StoreError, Fault, Filter, State, Store, Verified, verify_export,
};
