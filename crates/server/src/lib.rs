//! The doors: REST over a Unix socket and TCP. The only crate that knows HTTP.

mod api;
mod auth;
mod commands;
mod listen;
mod output;
mod policies;
mod problem;
mod system;

pub use api::{app, openapi};
pub use auth::Peer;
pub use commands::{Approval, CommandList, CommandView, NewCommand, ShellName, StopRequest};
pub use listen::{Doors, serve};
pub use output::{FRAME_HEADER, FoundLines, Frame, LineView, LinesView};
pub use policies::{ExplainRequest, NewGrant};
pub use problem::ProblemDocument;
pub use system::BlacklistView;
