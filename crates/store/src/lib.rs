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
mod changes;
mod clock;
mod command;
mod cursor;
mod entries;
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
mod principal;
mod retention;
mod rules;
mod sandbox;
mod session;
mod settings;
mod span;
mod token;
mod verify;
mod visible;
mod webhook;
mod writer;

pub use answer::{Answer, Answered};
pub use approval::{Approval, ApprovalState, Risk};
pub use ask::{Ask, Asked};
pub use audit::{Entry, Recorded, hex};
pub use backup::{Copied, CopiedRun, Unfinished};
pub use changes::{ChangesRow, ChangesState, Held, HoldChanges};
pub use clock::{Clock, timestamp};
pub use command::{Command, State};
pub use entries::EntryFilter;
pub use histogram::{BOUNDS, Histogram};
pub use history::{By, Count, Exit, Filter};
pub use inbox::{ApprovalFilter, Unanswered};
pub use key::{Inserted, Key};
pub use login::LoginRow;
pub use open::{Durability, Error, Store};
pub use outbox::{CLOSED, ClosedApproval, Notice, NoticeOutcome, WAITING};
pub use pause::PauseRow;
pub use pending::Hold;
pub use principal::PrincipalRow;
pub use retention::{Checkpoint, Forgotten};
pub use rules::RulesVersion;
pub use sandbox::{Changed, SandboxRow};
pub use session::SessionRow;
pub use token::TokenRow;
pub use verify::{Fault, Verified, verify_export};
pub use visible::Visible;
pub use webhook::{DeliveryStatus, WebhookRow};
