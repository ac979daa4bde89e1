//! The doors: REST over a Unix socket and TCP. The only crate that answers over
//! HTTP, but for `/mcp`, which it is handed.

mod access;
mod api;
mod approvals;
mod audit;
mod auth;
mod backups;
mod changes;
mod commands;
mod events;
mod export;
mod limits;
mod listen;
mod lobby;
mod metrics;
mod output;
mod pages;
mod people;
mod policies;
mod problem;
mod rate;
mod recordings;
mod rules;
mod sandboxes;
mod sessions;
mod signin;
mod stream;
mod system;
mod tasks;
mod terminals;
mod traces;
mod waits;
mod webhooks;

pub use api::{Within, openapi};
pub use auth::Peer;
pub use listen::{Doors, serve};
pub use stream::OFFSET_BYTES;
