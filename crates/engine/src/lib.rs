//! The journey of one command, from request to record.
//!
//! [`Engine`] is what every door calls. It judges a request, starts it under a
//! keeper, waits as long as the caller is willing to, and leaves a record
//! whatever happens.
//!
//! # Judging only
//!
//! [`Judge`] says what the policy makes of a command. It runs nothing, keeps
//! nothing and needs no server.
//!
//! ```
//! use weighlock_engine::{Clock, Config, Judge, Principal, Request, Verdict};
//!
//! let config = Config::new("/nowhere/state".into(), "/nowhere/project".into());
//! let judge = Judge::open(&config, Clock::system())?;
//! let verdict = |command: &str| {
//!     let request = Request::new(Principal::library("example"), command);
//!     judge.verdict(&request).map(|(verdict, _)| verdict)
//! };
//! assert_eq!(verdict("git status | head -3")?, Verdict::Auto);
//! assert_eq!(verdict("git status; rm -r build")?, Verdict::Ask);
//! assert_eq!(verdict("nohup env \"su\"do ls")?, Verdict::Reject);
//! # Ok::<(), weighlock_engine::Error>(())
//! ```
//!
//! # Running
//!
//! Commands are started by a *nursery*, a small process that the program must
//! make of itself before it has threads; `examples/embed.rs` is a whole program.
//! What a command changed on a copy waits for [`Inbox::commit_changes`] or
//! [`Inbox::decide`], and [`Drafts::undo`] takes it back:
//!
//! ```no_run
//! # use std::sync::Arc;
//! use weighlock_engine::{
//!     Decision, DecisionKind, Engine, Error, Outcome, Principal, Request,
//! };
//!
//! # async fn edit(engine: Arc<Engine>) -> Result<(), Error> {
//! let who = Principal::library("example");
//! let request = Request::new(who.clone(), "sed -i s/legacy/app/ README.md");
//! match engine.run(request).await? {
//!     Outcome::Refused(run) => println!("refused: {:?}", run.detail.reason),
//!     Outcome::Running(run) => println!("{} goes on", run.short_id),
//!     Outcome::Ended(run) => println!("exit code {:?}", run.exit_code),
//!     // It has run on a copy.
//!     Outcome::Waiting(run) if run.detail.changes.is_some() => {
//!         let patch = engine.drafts().patch(&run.command_id, &who)?;
//!         print!("{}", String::from_utf8_lossy(&patch));
//!         engine.inbox().commit_changes(&run.command_id, None, &who).await?;
//!         engine.drafts().undo(&[run.command_id], &who).await?;
//!     }
//!     // It has not run, and a person is asked whether it may.
//!     Outcome::Waiting(run) => {
//!         if let Some(approval) = run.approval_id {
//!             let yes = Decision::new(DecisionKind::ApproveOnce);
//!             engine.inbox().decide(&approval, yes, &who).await?;
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Who asks
//!
//! What finds or changes something takes the [`Principal`] that asks, and what
//! they may not see is not there for them ([`Kind::NotFound`]); what only reads
//! takes the [`Run`] that was found. An agent never decides, whatever it calls.
//! [`Audit::events`] tells what happens, [`Inbox::list`] what waits,
//! [`Audit::verify`] whether the record is whole.

#![warn(missing_docs)]

mod audit;
mod backups;
mod case;
mod config;
mod copied;
mod copies;
mod core;
mod directory;
mod drafts;
mod engine;
mod error;
mod events;
mod health;
mod hex;
mod inbox;
mod inside;
mod life;
mod limits;
mod live;
mod measures;
mod mutex;
mod output;
mod pause;
mod people;
mod policy;
mod principal;
mod project;
mod questions;
mod quota;
mod recordings;
mod request;
mod retention;
mod rules;
mod runs;
mod sandboxes;
mod session;
mod shares;
mod shells;
mod state_dir;
mod terminals;
mod traces;
mod view;
mod webhooks;

// Modules name them `crate::id` and `crate::time`.
use weighlock_store::{id, timestamp as time};

pub use audit::Audit;
pub use backups::{Backups, restore_backup, verify_backup};
pub use config::{Approvals, Config, Effects, KeyboardTimes, OnClose, PolicyFiles, Traces};
pub use drafts::{ChangeInfo, ChangesInfo, Draft, DraftRun, Drafts, FileDiff};
pub use engine::Engine;
pub use error::{Error, Kind, NoPlace, Problem};
pub use events::{Event, Events};
pub use health::{Check, Checks, Doctor, Health, Level, PrimitiveView};
pub use inbox::{
    Decision, DecisionKind, Inbox, InboxFilter, RuleChoice, RuleGroup, RuleProposals, ScopeView,
};
pub use inside::{Process, ancestors, inside_a_run};
pub use life::{Life, Report};
pub use limits::{Features, LimitsInForce, RuntimeLimits, ServerLimits};
pub use live::{ControlView, Sent, Typed};
pub use measures::{Counted, Gauges, Measures};
pub use output::{Follow, Outputs, StyledLines, Until, whole_characters};
pub use pause::{PauseView, Pauses};
pub use people::{NewPerson, NewToken, People, PersonPatch, PersonView, TokenInfo};
pub use principal::{Principal, Role, Via};
pub use recordings::{Recording, RecordingIndex, RecordingMark, Recordings};
pub use request::{Input, Request, Terminal};
pub use retention::{Kept, KeptPart, Retention};
pub use rules::{
    BlacklistFile, Compared, ComparedCommand, Judge, Listed, PastCommand, PolicyText, RuleEdit,
    RuleEdited, RuleInfo, Rules, RulesChecked, Save, VersionView, check_rules,
};
pub use runs::{
    Kind as WaitKind, Met, Outcome, OutputFrom, ProcessView, Runs, TaskOutput, TaskView, Waited,
    Waiting, Wanted,
};
pub use sandboxes::{
    Files, Folder, FolderView, Guard, LimitsInfo, NewSandbox, SandboxInfo, SandboxPatch, Sandboxes,
    apply_limits,
};
pub use session::{SessionView, Sessions};
pub use shares::{Place, Shares};
pub use terminals::{CursorView, Hand, ScreenView, Sight, TerminalView, Terminals, Viewer};
pub use traces::{Span, Tracer};
pub use webhooks::Webhooks;
pub use weighlock_api::{
    AnswerView, ApprovalView, ChangesView, ConflictInfo, Detail, Explanation, GrantView, LayerView,
    LeftRunning, LimitsView, Load, OptionView, OutputView, PartView, PolicyView, Reason,
    ReasonView, RuleInForce, RuleView, Run, SandboxView, Situation, TerminalDetail, TokenView,
    Tried, Used,
};
pub use weighlock_backup::{BackupView, RestoreReport, VerifiedBackup};
pub use weighlock_confine::{Access, Limits, Network, Rung};
pub use weighlock_effects::{
    Hunk, Line as DiffLine, More, Page, Shape, Side, compare as compare_texts,
};
/// Only as the first deed of a program, before it opens anything.
pub use weighlock_exec::close_inherited;
pub use weighlock_exec::{
    Excerpt, Item, LeftOut, Line, Lines, Log, Nursery, Piece, Shell, ShortPath, Size, Stream, Text,
    die_of_broken_pipes, raise_open_files, serve_nursery,
};
pub use weighlock_notify::{
    Attempt, HttpClient, NoticeView, Outbound, QuietHours, Topic, WebhookFormat, WebhookPatch,
    WebhookSettings, WebhookView, WebhookWithSecret,
};
pub use weighlock_policy::{
    Blacklist, Cut, Link, LoadError, PartKind, Preset, SECRET_FILES, Scope, SecretFiles, Settings,
    Times, TokenKind, Verdict, rules_schema,
};
pub use weighlock_screen::{
    Colour, Look, StyledLine, StyledSpan, safe_command, safe_prose, safe_text,
};
pub use weighlock_store::id::short as short_id;
pub use weighlock_store::{
    ApprovalState, BOUNDS, Checkpoint, Clock, Count, Durability, EntryFilter, Error as StoreError,
    Fault, Filter, Histogram, Risk, State, Store, Verified, verify_export,
};
pub use weighlock_walls::{
    DEFAULT_SANDBOX, Denial, Review, Sandbox, SandboxSource, format_bytes as size,
    is_complete_path, is_sandbox_name, path_hash,
};
