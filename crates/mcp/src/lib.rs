//! The door for agents: the Model Context Protocol, as tools over the server's
//! REST door. The only crate that knows the protocol.

mod agent;
mod api;
mod ask;
mod bash;
mod call;
#[expect(
    deprecated,
    reason = "older revisions of the protocol log, and know no other way"
)]
mod caller;
mod desk;
mod execute_command;
#[expect(
    deprecated,
    reason = "older revisions of the protocol log, and know no other way"
)]
mod handler;
mod http;
mod kept;
mod lines;
mod misread;
mod opened;
mod options;
mod reply;
mod request;
mod resources;
mod run_command;
mod say;
mod seal;
mod sessions;
mod stdio;
mod terminal;
mod tool;
mod twice;
mod weighlock;

pub use api::Api;
pub use http::{LocalRest, door};
pub use options::{Options, Toolset};
pub use stdio::serve_stdio;
