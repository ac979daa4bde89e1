//! What can go wrong, in words that a person and a program can act on.

use std::io;
use std::path::{Path, PathBuf};

use weighlock_api::no_such_agent;
use weighlock_exec as exec;
use weighlock_store::{self as store, ApprovalState as State};

use weighlock_effects::CommitError;
use weighlock_walls::Error as WallsError;

use crate::view::ApprovalView;

/// Why a request could not be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request makes no sense.
    #[error("{detail}")]
    Invalid {
        /// Stable word.
        code: &'static str,
        /// What is wrong with it.
        detail: String,
        /// What to do.
        hint: String,
    },
    /// No run has this id.
    #[error("no run `{id}`")]
    NoSuchRun {
        /// As it was given.
        id: String,
    },
    /// Several runs begin with this.
    #[error("`{id}` names more than one run")]
    Ambiguous {
        /// As it was given.
        id: String,
    },
    /// The run has ended; it takes neither input nor a stop.
    #[error("run {id} has ended")]
    Ended {
        /// The run.
        id: String,
    },
    /// Somebody else has a terminal's keyboard.
    #[error("{by} is typing in this terminal")]
    KeyboardTaken {
        /// Who.
        by: String,
    },
    /// A keyboard that was given back meanwhile.
    #[error("the keyboard was given back")]
    KeyboardGivenBack,
    /// No sandbox has this name.
    #[error("no sandbox `{name}`; nothing was run")]
    NoSuchSandbox {
        /// As it was given.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// No agent's profile has this name.
    #[error("no agent `{name}`; nothing was run")]
    NoSuchAgent {
        /// As it was given.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// No grant has this id.
    #[error("no grant `{id}`")]
    NoSuchGrant {
        /// As it was given.
        id: String,
    },
    /// No webhook has this id.
    #[error("no webhook `{id}`; nothing was done")]
    NoSuchWebhook {
        /// As it was given.
        id: String,
    },
    /// No rule file has this name.
    #[error("no policy `{id}`; nothing was changed")]
    NoSuchPolicy {
        /// As it was given.
        id: String,
        /// Those that there are.
        known: String,
    },
    /// Rules cannot be read.
    #[error("{}", said(.errors))]
    Rules {
        /// Each with its file, line and column.
        errors: Vec<weighlock_policy::LoadError>,
    },
    /// It has changed since it was read.
    #[error("it has changed since you read it; nothing was changed")]
    Stale,
    /// A role does not allow it.
    #[error("{name} is {role} and may not do that; nothing was done")]
    Forbidden {
        /// Who.
        name: String,
        /// What they are.
        role: &'static str,
        /// What they would have to be.
        needs: &'static str,
    },
    /// An agent tried what is for people.
    #[error("agents never {what}; nothing was done")]
    NeverAgents {
        /// What.
        what: String,
    },
    /// A command that is run here tried what is for people.
    #[error("approving and administering is refused inside a run of weighlock; nothing was done")]
    Inside,
    /// The requester tried to approve their own request.
    #[error("you cannot approve your own request; nothing was decided")]
    OwnRequest,
    /// One person counts once.
    #[error("you have approved this already; another person must approve it too")]
    AnsweredAlready,
    /// A question was answered, or ended otherwise.
    #[error("{}", closed(.approval))]
    Closed {
        /// As it is now.
        approval: Box<ApprovalView>,
    },
    /// What would run is not what was asked about.
    #[error("the fingerprint does not match what would run; nothing was run")]
    PayloadChanged {
        /// The question as it is now.
        approval: Option<Box<ApprovalView>>,
    },
    /// Work is paused.
    #[error("work is paused by {by}; nothing was decided")]
    Paused {
        /// Who has paused.
        by: String,
    },
    /// A run has changed nothing that could be shown, applied or discarded.
    #[error("run {id} has no undecided changes")]
    NoChanges {
        /// The run.
        id: String,
    },
    /// A run's changes are not applied, so nothing can be taken back.
    #[error("run {id} has no applied changes; nothing was undone")]
    NotApplied {
        /// The run.
        id: String,
    },
    /// There is no such terminal, or not for this principal.
    #[error("no terminal `{name}`")]
    NoSuchTerminal {
        /// What was asked for.
        name: String,
    },
    /// What undoing needs is gone.
    #[error("run {id} cannot be undone any more; nothing was changed")]
    NoUndo {
        /// The run.
        id: String,
    },
    /// Files are not as they were.
    #[error("files changed meanwhile: {}; nothing was applied", .paths.join(", "))]
    Conflicts {
        /// Which, and how.
        paths: Vec<String>,
    },
    /// Changes were built on others that are not applied.
    #[error("it builds on changes of {}; nothing was applied", .runs.join(", "))]
    EarlierFirst {
        /// Those runs.
        runs: Vec<String>,
    },
    /// Too many changes of a session wait.
    #[error("{held} changes of this session are undecided, which is the limit; nothing was run")]
    TooManyDrafts {
        /// How many.
        held: usize,
    },
    /// The disk can take few more files.
    #[error(
        "only {} of {} inodes are left on the disk of copies, which are kept for others; nothing \
         was run",
        .inodes.free, .inodes.all
    )]
    FewInodes {
        /// How the disk stands.
        inodes: weighlock_confine::Inodes,
    },
    /// The rules have changed, and these changes are never applied now.
    #[error("the rules never apply these changes; nothing was applied")]
    ChangesBlocked,
    /// There is no such changed path.
    #[error("there is no change {index}")]
    NoSuchChange {
        /// As it was given.
        index: usize,
    },
    /// A session has no undecided changes.
    #[error("session {session} has no undecided changes")]
    NoDraft {
        /// As it was given.
        session: String,
    },
    /// It is being tried.
    #[error("it is being tried on a copy; nothing was decided")]
    Trying,
    /// Changes could not be read.
    #[error("the changes cannot be read")]
    Changes(#[from] weighlock_effects::Error),
    /// Changes could not be applied.
    #[error(transparent)]
    Commit(CommitError),
    /// No approval has this id.
    #[error("no approval `{id}`")]
    NoSuchApproval {
        /// As it was given.
        id: String,
    },
    /// Nobody has this name.
    #[error("no person or agent `{name}`")]
    NoSuchPerson {
        /// As it was given.
        name: String,
    },
    /// No token has this id.
    #[error("no token `{id}`")]
    NoSuchToken {
        /// As it was given.
        id: String,
    },
    /// No session has this id.
    #[error("no session `{id}`")]
    NoSuchSession {
        /// As it was given.
        id: String,
    },
    /// The session takes no more requests.
    #[error("session {id} is closed; nothing was run")]
    SessionClosed {
        /// The session.
        id: String,
    },
    /// A link was used, is too old, or never was one.
    #[error("this link was used already, or has expired")]
    BadLink,
    /// The token is unknown, expired or revoked.
    #[error("unknown or expired token")]
    BadToken,
    /// Another has the name.
    #[error("a {what} `{name}` exists already; nothing was changed")]
    NameTaken {
        /// What it names.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The sandbox takes no new runs.
    #[error("sandbox `{name}` is not active; nothing was run")]
    Inactive {
        /// The sandbox.
        name: String,
    },
    /// Another directory came to the place of a sandbox's.
    #[error("sandbox `{name}` cannot be used: {}: {why}; nothing was run", .dir.display())]
    Swapped {
        /// The sandbox.
        name: String,
        /// Where its directory was.
        dir: PathBuf,
        /// What is there now.
        why: String,
    },
    /// The sandbox is what the configuration file says.
    #[error("sandbox `{name}` comes from the configuration file; nothing was changed")]
    InSettings {
        /// The sandbox.
        name: String,
    },
    /// The sandbox is there without anybody's doing.
    #[error("sandbox `{name}` is built in; nothing was changed")]
    BuiltIn {
        /// The sandbox.
        name: String,
    },
    /// The run does not wait any more.
    #[error("run {id} is not waiting; nothing was changed")]
    NotWaiting {
        /// The run.
        id: String,
    },
    /// The run is ours, and we say how it ends.
    #[error("run {id} is not run by its requester; nothing was recorded")]
    NotExternal {
        /// The run.
        id: String,
    },
    /// Nobody has allowed it yet.
    #[error("run {id} has not started and is not allowed to yet; nothing was recorded")]
    NotBegun {
        /// The run.
        id: String,
    },
    /// How the run ended is on record.
    #[error("the result of run {id} is final; nothing was recorded")]
    Final {
        /// The run.
        id: String,
    },
    /// The key stands for another request.
    #[error("the idempotency key was used for another request; nothing was run")]
    KeyReused,
    /// The request was made before; found out only when it was to be recorded.
    #[error("the request was made before, as run {command_id}")]
    Repeated {
        /// The run.
        command_id: String,
        /// It is the same request.
        same: bool,
    },
    /// As much waits as may.
    #[error("{waiting} of your commands wait for approval, which is the limit; nothing was run")]
    TooManyWaiting {
        /// How many.
        waiting: u64,
    },
    /// A backup is being made.
    #[error("a backup is already being made; no other was started")]
    BackingUp,
    /// As many run as may.
    #[error("{0}; nothing was run")]
    TooMany(NoPlace),
    /// Somebody has filled their part of the record.
    #[error("`{name}` has filled {mib} MiB of the record within an hour; nothing was done")]
    OverQuota {
        /// Who.
        name: String,
        /// How much that is.
        mib: u64,
        /// After how many minutes there is room again.
        minutes: u64,
    },
    /// The record could not be written or read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A start could not be recorded, so there was none.
    #[error("the start cannot be recorded, so nothing was run")]
    Unrecorded(#[source] store::Error),
    /// The command could not be started.
    #[error(transparent)]
    Start(#[from] exec::Error),
    /// A file could not be used.
    #[error("cannot use {}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another server has this state directory.
    #[error("another server uses {}", .dir.display())]
    Taken {
        /// The state directory.
        dir: PathBuf,
    },
}

/// What kind of answer an error is, whatever the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request is at fault.
    Invalid,
    /// The principal may not do this.
    Forbidden,
    /// There is no such thing.
    NotFound,
    /// It does not fit the state of things.
    Conflict,
    /// It was changed by somebody else meanwhile.
    Changed,
    /// Too much at once.
    TooMuch,
    /// Try again later.
    Unavailable,
    /// There is no room.
    Full,
    /// We are at fault.
    Internal,
}

/// An error as a door tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// For the door.
    pub kind: Kind,
    /// Stable word.
    pub code: &'static str,
    /// One sentence: what failed and what did not happen.
    pub detail: String,
    /// What to do.
    pub hint: String,
}

impl Error {
    /// Returns whether the same may well succeed later.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Store(error) | Self::Unrecorded(error) => {
                matches!(error, store::Error::Busy | store::Error::Full)
            }
            Self::File { source, .. } => source.kind() == io::ErrorKind::StorageFull,
            _ => false,
        }
    }

    pub(crate) fn invalid(code: &'static str, detail: String, hint: impl Into<String>) -> Self {
        Self::Invalid {
            code,
            detail,
            hint: hint.into(),
        }
    }

    /// Says of an error of the system which file it is about.
    pub(crate) fn file(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File {
            path: path.clone(),
            source,
        }
    }

    /// Adds “nothing was run” to an error that names only a file.
    pub(crate) fn before_run(self) -> Self {
        match self {
            Self::File { path, source } => {
                let why = format!("{source}; nothing was run");
                Self::file(&path)(io::Error::new(source.kind(), why))
            }
            error => error,
        }
    }

    /// Returns the error as a door tells it.
    pub fn problem(&self) -> Problem {
        let detail = chain(self);
        let problem = |kind, code, hint: &str| Problem {
            kind,
            code,
            detail: detail.clone(),
            hint: hint.to_owned(),
        };
        match self {
            Self::Invalid { code, hint, .. } => problem(Kind::Invalid, code, hint),
            Self::NoSuchRun { .. } => problem(
                Kind::NotFound,
                "no_such_run",
                "`weighlock runs` lists all runs",
            ),
            Self::NoSuchSandbox { known, .. } => problem(
                Kind::NotFound,
                "no_such_sandbox",
                &format!("there are: {known}"),
            ),
            Self::Ambiguous { .. } => problem(
                Kind::Conflict,
                "ambiguous_id",
                "give more characters of the id",
            ),
            Self::KeyboardTaken { .. } => problem(
                Kind::Conflict,
                "keyboard_taken",
                "wait until the keyboard is given back",
            ),
            Self::KeyboardGivenBack => {
                problem(Kind::Conflict, "keyboard_given_back", "take it again")
            }
            Self::Ended { id } => problem(
                Kind::Conflict,
                "run_ended",
                &format!("`weighlock show {id}` shows how it ended"),
            ),
            Self::NoSuchAgent { name, known } => problem(
                Kind::NotFound,
                "no_such_agent",
                &no_such_agent(name, known).1,
            ),
            Self::NoSuchGrant { .. } => problem(
                Kind::NotFound,
                "no_such_grant",
                "`weighlock policy show` lists all grants",
            ),
            Self::NoSuchWebhook { .. } => problem(
                Kind::NotFound,
                "no_such_webhook",
                "`weighlock notify list` lists all webhooks",
            ),
            Self::NoSuchPolicy { known, .. } => problem(
                Kind::NotFound,
                "no_such_policy",
                &match known.as_str() {
                    "" => "the settings name no rule file: `policy.rules`".to_owned(),
                    known => format!("there are: {known}"),
                },
            ),
            Self::Rules { errors } => problem(
                Kind::Invalid,
                "bad_rules",
                errors
                    .first()
                    .map(|error| error.hint.as_str())
                    .filter(|hint| !hint.is_empty())
                    .unwrap_or("docs/rules.md explains the language"),
            ),
            Self::Stale => problem(
                Kind::Changed,
                "changed_meanwhile",
                "read it again, and change what is there now",
            ),
            Self::Forbidden { needs, .. } => problem(
                Kind::Forbidden,
                "not_allowed",
                &format!("this needs the role {needs}"),
            ),
            Self::NeverAgents { .. } => problem(
                Kind::Forbidden,
                "never_agents",
                "a person decides: wait for the answer, or do something else",
            ),
            Self::Inside => problem(
                Kind::Forbidden,
                "inside_a_run",
                "approve outside the run, in your own terminal",
            ),
            Self::OwnRequest => problem(
                Kind::Forbidden,
                "own_request",
                "ask somebody else to approve it",
            ),
            Self::AnsweredAlready => problem(
                Kind::Conflict,
                "answered_already",
                "ask somebody else to approve it",
            ),
            Self::Closed { .. } => problem(
                Kind::Conflict,
                "already_decided",
                "there is nothing left to decide",
            ),
            Self::PayloadChanged { .. } => problem(
                Kind::Conflict,
                "payload_changed",
                "look at the request as it is now, and answer with its whole fingerprint",
            ),
            Self::Paused { .. } => problem(
                Kind::Conflict,
                "paused",
                "resume with `weighlock resume`, then decide",
            ),
            Self::NoChanges { .. } => problem(
                Kind::NotFound,
                "no_changes",
                "`weighlock show` shows its state",
            ),
            Self::NotApplied { .. } => problem(
                Kind::Conflict,
                "not_applied",
                "`weighlock show` shows its state",
            ),
            Self::NoUndo { .. } => problem(
                Kind::Conflict,
                "no_undo",
                "the settings `undo_age` and `undo_mib` limit how long undo is possible",
            ),
            Self::NoSuchTerminal { .. } => problem(
                Kind::NotFound,
                "not_found",
                "`weighlock term list` lists all terminals",
            ),
            Self::Conflicts { .. } => problem(
                Kind::Conflict,
                "conflict",
                "both versions are kept: compare them with `weighlock diff`, then try again or \
                 discard",
            ),
            Self::EarlierFirst { .. } => problem(
                Kind::Conflict,
                "earlier_first",
                "apply those first, or all at once with `weighlock draft commit SESSION`; \
                 `weighlock draft` lists them",
            ),
            Self::TooManyDrafts { .. } => problem(
                Kind::TooMuch,
                "too_many_drafts",
                "`weighlock draft` lists them; a person applies or discards them",
            ),
            Self::FewInodes { .. } => problem(
                Kind::Full,
                "storage_full",
                "apply or discard undecided changes (`weighlock draft`), or remove files there",
            ),
            Self::ChangesBlocked => problem(
                Kind::Conflict,
                "changes_blocked",
                "discard them, and do it another way",
            ),
            Self::NoSuchChange { .. } => problem(
                Kind::NotFound,
                "no_such_change",
                "`weighlock diff` lists all changes",
            ),
            Self::NoDraft { .. } => problem(
                Kind::NotFound,
                "no_draft",
                "`weighlock draft` lists all undecided changes",
            ),
            Self::Trying => problem(Kind::Conflict, "trying", "decide once that has ended"),
            Self::Changes(weighlock_effects::Error::Stale { .. }) => problem(
                Kind::Conflict,
                "conflict",
                "both versions are kept: compare them with `weighlock diff`, then try again or \
                 discard",
            ),
            Self::Changes(_) => problem(
                Kind::Internal,
                "changes_unreadable",
                "`weighlock doctor` shows what is wrong",
            ),
            Self::Commit(CommitError::Full) => problem(
                Kind::Full,
                "disk_full",
                "free some space and apply it again; it is kept",
            ),
            Self::Commit(CommitError::Stuck { .. }) => problem(
                Kind::Internal,
                "commit_failed",
                "fix the cause; the next server start finishes the commit",
            ),
            Self::Commit(_) => problem(
                Kind::Internal,
                "commit_failed",
                "nothing was applied; fix the cause and apply it again",
            ),
            Self::NoSuchApproval { .. } => problem(
                Kind::NotFound,
                "no_such_approval",
                "`weighlock inbox` lists what waits",
            ),
            Self::NoSuchPerson { .. } => problem(
                Kind::NotFound,
                "no_such_person",
                "`weighlock people` lists people and agents",
            ),
            Self::NoSuchToken { .. } => problem(
                Kind::NotFound,
                "no_such_token",
                "`weighlock people show NAME` lists the tokens of a person or agent",
            ),
            Self::NoSuchSession { .. } => problem(
                Kind::NotFound,
                "no_such_session",
                "leave it out to open a new session",
            ),
            Self::SessionClosed { .. } => problem(
                Kind::Conflict,
                "session_closed",
                "leave the session out to open a new one",
            ),
            Self::BadLink => problem(
                Kind::Forbidden,
                "bad_link",
                "`weighlock signin` prints a new one",
            ),
            Self::BadToken => problem(
                Kind::Forbidden,
                "bad_token",
                "`weighlock people token NAME` makes one",
            ),
            Self::NameTaken { .. } => problem(Kind::Conflict, "name_taken", "choose another name"),
            Self::Inactive { name } => problem(
                Kind::Conflict,
                "sandbox_inactive",
                &format!("an administrator can activate it: `weighlock sandbox on {name}`"),
            ),
            Self::Swapped { .. } => problem(
                Kind::Conflict,
                "sandbox_changed",
                "restore the directory, or set up the sandbox again",
            ),
            Self::InSettings { .. } => problem(
                Kind::Conflict,
                "in_settings",
                "change the configuration file, then run `weighlock serve --replace`",
            ),
            Self::BuiltIn { .. } => problem(
                Kind::Conflict,
                "in_settings",
                "define it in the configuration file, then run `weighlock serve --replace`; or \
                 add another sandbox",
            ),
            Self::NotWaiting { .. } => problem(
                Kind::Conflict,
                "not_waiting",
                "`weighlock show` shows its state",
            ),
            Self::NotExternal { .. } => problem(
                Kind::Conflict,
                "not_external",
                "requesters report only commands with executor `external`",
            ),
            Self::NotBegun { .. } => problem(
                Kind::Conflict,
                "not_begun",
                "wait for the answer; report when its state is `running` and you have run it",
            ),
            Self::Final { .. } => problem(
                Kind::Conflict,
                "already_final",
                "a final result cannot be changed",
            ),
            Self::KeyReused => problem(
                Kind::Conflict,
                "key_reused",
                "use a new key for a new request",
            ),
            Self::Repeated { .. } => problem(Kind::Conflict, "repeated", "see that run"),
            Self::TooManyWaiting { .. } => problem(
                Kind::TooMuch,
                "too_many_waiting",
                "wait for decisions, or withdraw some requests",
            ),
            Self::BackingUp => problem(
                Kind::Conflict,
                "backing_up",
                "wait until it is complete: the audit records that",
            ),
            Self::TooMany { .. } => problem(
                Kind::Unavailable,
                "too_many_runs",
                "wait for a run to end, or stop one; `running_max` in the configuration sets the \
                 limit",
            ),
            Self::OverQuota { minutes, .. } => Problem {
                hint: format!(
                    "wait {minutes} min; `quota_mib` under [store] in the configuration sets the \
                     limit"
                ),
                ..problem(Kind::TooMuch, "over_quota", "")
            },
            Self::Store(error) | Self::Unrecorded(error) => store_problem(error, detail),
            Self::Start(exec::Error::Full) => problem(
                Kind::Full,
                "storage_full",
                "nothing was run; free some space",
            ),
            Self::Start(exec::Error::Walls(_)) => problem(
                Kind::Unavailable,
                "sandbox_unavailable",
                "nothing was run; `weighlock doctor` shows what this machine lacks, and `minimum` \
                 in the configuration accepts weaker walls",
            ),
            Self::Start(_) => problem(
                Kind::Internal,
                "cannot_start",
                "nothing was run; `weighlock doctor` shows what this machine lacks",
            ),
            Self::File { path, source } if source.kind() == io::ErrorKind::StorageFull => problem(
                Kind::Full,
                "storage_full",
                &format!("free some space where {} is", path.display()),
            ),
            Self::File { path, .. } => problem(
                Kind::Internal,
                "file_error",
                &format!("check that {} exists, and its permissions", path.display()),
            ),
            Self::Taken { .. } => problem(
                Kind::Conflict,
                "already_running",
                "replace it with `weighlock serve --replace`, or use another --state-dir",
            ),
        }
    }
}

fn store_problem(error: &store::Error, detail: String) -> Problem {
    let (kind, code, hint) = match error {
        store::Error::Full => (
            Kind::Full,
            "storage_full",
            "nothing runs that cannot be recorded; free some space and try again",
        ),
        store::Error::Busy => (
            Kind::Unavailable,
            "store_busy",
            "another process holds the database; try again",
        ),
        store::Error::Removed => (
            Kind::Unavailable,
            "record_removed",
            "read it again from the start",
        ),
        store::Error::Damaged(_) => (
            Kind::Internal,
            "store_damaged",
            "restore a backup; `weighlock audit verify` tells what else was changed",
        ),
        store::Error::Corrupt { .. } => (
            Kind::Internal,
            "store_damaged",
            "restore a backup, or run `weighlock serve --recover` to set it aside and start a new \
             one",
        ),
        store::Error::Vanished { .. } => (
            Kind::Internal,
            "store_vanished",
            "restore it, or run `weighlock serve --recover` to start a new one",
        ),
        store::Error::Older { .. } => (
            Kind::Unavailable,
            "store_older",
            "start the server once; it upgrades the database",
        ),
        store::Error::Newer { .. } => (
            Kind::Internal,
            "store_newer",
            "use the newer version of weighlock",
        ),
        store::Error::Cursor => (
            Kind::Invalid,
            "bad_cursor",
            "use the cursor of the previous page unchanged",
        ),
        store::Error::Missing { .. } => (
            Kind::NotFound,
            "no_store",
            "nothing was recorded yet; `weighlock run` creates it",
        ),
        _ => (
            Kind::Internal,
            "store_error",
            "check the state directory and its permissions",
        ),
    };
    Problem {
        kind,
        code,
        detail,
        hint: hint.to_owned(),
    }
}

/// Why somebody gets no place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoPlace {
    pub(crate) what: &'static str,
    pub(crate) who: String,
    pub(crate) is_agent: bool,
    /// How many places they hold.
    pub(crate) held: usize,
    pub(crate) most: usize,
}

impl std::fmt::Display for NoPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            what,
            who,
            held,
            most,
            ..
        } = self;
        let kind = if self.is_agent { "agent " } else { "" };
        match held {
            0 if self.is_agent => write!(f, "agents use all {most} {what} that they may"),
            0 => write!(f, "all {most} {what} are in use"),
            _ => write!(
                f,
                "{kind}`{who}` uses {held} of {most} {what}, and the rest is reserved for others"
            ),
        }
    }
}

/// Says how a question ended.
fn closed(approval: &ApprovalView) -> String {
    let by = approval.decided_by.as_deref().unwrap_or("somebody");
    match approval.state {
        State::Expired => "nobody answered in time, so it has expired".into(),
        state => format!("already {} by {by}", state.word()),
    }
}

fn said(errors: &[weighlock_policy::LoadError]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// Returns the first 200 characters of a caller's text.
pub(crate) fn brief(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Joins an error with what caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

impl From<WallsError> for Error {
    fn from(error: WallsError) -> Self {
        let detail = error.to_string();
        match error {
            WallsError::File { path, source } => Self::File { path, source },
            WallsError::BadDirectory { base, .. } => {
                let hint = format!("give an existing directory below {}", base.display());
                Self::invalid("bad_directory", detail, hint)
            }
            WallsError::OutsideBase { .. } => Self::invalid(
                "outside_base",
                detail,
                "use a directory below it or another sandbox, or `weighlock serve --replace \
                 --base DIR`",
            ),
            WallsError::OutsidePrivate => Self::invalid(
                "sandbox_violation",
                detail,
                "use a relative path inside it, or none",
            ),
            WallsError::BadUser { .. } => Self::invalid(
                "bad_user",
                detail,
                "name an ordinary user of this machine in the configuration",
            ),
            WallsError::BadSecretFiles { .. } => Self::invalid(
                "bad_sandbox",
                detail,
                "fix `secret_files` in the sandbox's settings",
            ),
            WallsError::TooManyFiles { .. } => Self::invalid(
                "too_many_files",
                detail,
                "set up a sandbox for a part of it, or take files off the list with \
                 `secret_files` of the sandbox, all of them with `secret_files = [\"!**\"]`",
            ),
        }
    }
}

impl From<CommitError> for Error {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflicts(conflicts) => {
                let told = conflicts.iter().map(|conflict| {
                    format!("{} ({})", conflict.path.path().display(), conflict.why)
                });
                Self::Conflicts {
                    paths: told.collect(),
                }
            }
            error => Self::Commit(error),
        }
    }
}
