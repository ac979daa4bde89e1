//! The doors: REST over a Unix socket and TCP. The only crate that answers over
//! HTTP, but for `/mcp`, which it is handed.

mod access;
mod address;
mod api;
mod approvals;
mod audit;
mod auth;
mod backups;
mod changes;
mod commands;
mod cut;
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

pub use address::escape;
pub use api::{Within, openapi};
pub use approvals::{ApprovalList, DecisionRequest, ExtendRequest, Through};
pub use auth::Peer;
pub use backups::NewBackup;
pub use changes::{DraftList, RunList, Settle, SettleDraft};
pub use commands::{
    ApproveRequest, CommandList, CommandView, Executor, FinalizeRequest, NewCommand, RejectRequest,
    ShellName, StopRequest,
};
pub use cut::CutTo;
pub use listen::{Doors, serve};
pub use output::{FRAME_HEADER, FoundLines, Frame, LeftOutView, LineView, LinesView, SpanView};
pub use people::{Me, PauseList, PauseRequest, PeopleList, RotateRequest, TokenRequest};
pub use policies::{ExplainRequest, NewGrant};
pub use problem::ProblemDocument;
pub use rules::{BackRequest, RuleText, SaveRequest};
pub use sandboxes::SandboxList;
pub use sessions::{CloseRequest, SessionList};
pub use signin::LinkView;
pub use stream::{OFFSET_BYTES, ViewerMessage};
pub use system::BlacklistView;
pub use tasks::TaskList;
pub use terminals::{
    NewExec, NewTerminal, SentView, TerminalInput, TerminalList, TerminalSignal, TerminalSize,
};
pub use waits::{WaitRequest, WaitView};
pub use webhooks::{NoticeList, Tested, WebhookList};
