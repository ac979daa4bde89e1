//! What is remembered: people, sandboxes, commands, approvals and the
//! hash-chained audit.
//!
//! One SQLite file in the state directory. All writes go through one thread,
//! which puts whatever waits into one transaction, so that many callers share
//! the cost. A write whose audit entry cannot be stored does not happen.

mod answer;
mod approval;
mod ask;
mod audit;
mod backup;
mod bound;
mod chain;
mod changes;
mod clock;
mod column;
mod command;
mod cursor;
mod database;
mod entries;
mod entry;
mod error;
mod grant;
mod head;
mod histogram;
mod history;
pub mod id;
mod inbox;
mod key;
mod login;
mod open;
mod outbox;
mod pause;
mod pending;
#[cfg(test)]
mod plans;
mod platform;
mod principal;
mod retention;
mod rules;
mod sandbox;
mod schema;
mod session;
mod settings;
mod span;
mod sql;
mod token;
mod verify;
mod visible;
mod webhook;
mod writer;

pub use answer::{Answer, Answered};
pub use approval::{Approval, ApprovalTable};
pub use ask::Ask;
pub use audit::AuditLog;
pub use backup::{Copied, CopiedRun, Unfinished};
pub use chain::{Checkpoint, Fault};
pub use changes::{ChangesRow, ChangesTable, Held, HoldChanges};
pub use clock::{Clock, timestamp};
pub use command::{Command, CommandTable};
pub use entries::EntryFilter;
pub use entry::{Entry, Recorded, hex};
pub use error::Error;
pub use grant::GrantTable;
pub use histogram::{BOUNDS, Histogram};
pub use history::{By, Count, Exit, Filter};
pub use inbox::{ApprovalFilter, Unanswered};
pub use key::{Inserted, Key};
pub use login::{LoginRow, LoginTable};
pub use open::{Durability, Store};
pub use outbox::{CLOSED, ClosedApproval, Notice, NoticeOutcome, NoticeState, Outbox, WAITING};
pub use pause::{PauseRow, PauseTable};
pub use pending::{Asked, Hold, PendingTable};
pub use principal::{PrincipalRow, PrincipalTable};
pub use retention::Forgotten;
pub use rules::{RulesTable, RulesVersion};
pub use sandbox::{Changed, SandboxRow, SandboxTable};
pub use session::{SessionRow, SessionTable};
pub use settings::SettingsTable;
pub use token::{TokenRow, TokenTable};
pub use verify::{Verified, verify_export};
pub use visible::Visible;
pub use webhook::{DeliveryStatus, WebhookRow, WebhookTable};
pub use weighlock_api::{ApprovalState, ChangesState, Risk, RunStatus, State};
