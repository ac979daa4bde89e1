//! The contract with clients: requests and answers of every door, error codes,
//! states, and typed requests.
//!
//! It makes no system calls and knows no server, so that a client needs nothing
//! else. `docs/openapi.json` is made of these types.

mod address;
mod approval;
mod audit;
mod backup;
mod changes;
mod event;
mod health;
mod id;
mod limits;
mod output;
mod people;
mod policy;
mod problem;
mod recording;
mod request;
mod run;
mod sandbox;
mod session;
mod task;
mod terminal;
mod wait;
mod webhook;

pub use address::escape;
pub use approval::{
    AnswerView, ApprovalList, ApprovalListParams, ApprovalState, ApprovalStatusFilter,
    ApprovalView, DecisionKind, DecisionRequest, ExtendRequest, Risk, RuleChoice, RuleGroup,
    RuleProposals, ScopeView, Situation, Through, Tried,
};
pub use audit::{AuditListParams, Entries, FaultView, RunEntries, Steps, VerifiedView};
pub use backup::{BackupView, NewBackup};
pub use changes::{
    ChangeInfo, ChangeListParams, ChangesInfo, ChangesState, ChangesView, ConflictInfo, DiffParams,
    Draft, DraftList, DraftParams, DraftRun, RunList, Settle, SettleDraft,
};
pub use event::{Event, EventStreamParams};
pub use health::{Check, Checks, Health, Level, PrimitiveView};
pub use id::{ID_TIME, short_id};
pub use limits::{Features, Kept, KeptParams, KeptPart, LimitsInForce, ServerLimits};
pub use output::{
    CutTo, FRAME_HEADER, FindParams, FollowMode, FoundLines, Frame, LeftOutView, LineView,
    LinesParams, LinesView, OutputAudience, OutputView, RawParams, SpanView, StreamName,
    StreamTotals, Totals,
};
pub use people::{
    LinkView, Me, NewPerson, NewToken, PauseList, PauseRequest, PauseView, PeopleList, PersonPatch,
    PersonView, Role, RotateRequest, SignIn, TokenInfo, TokenRequest,
};
pub use policy::{
    BackRequest, BlacklistView, CheckRequest, CheckView, Compared, ComparedCommand, ExplainRequest,
    Explanation, GrantView, Listed, LoadErrorView, NewBlacklist, NewGrant, OptionView, PartView,
    PastCommand, PolicyShowParams, PolicyText, PolicyView, ReasonView, RuleEdit, RuleEdited,
    RuleError, RuleInForce, RuleInfo, RuleText, RuleView, RulesChecked, SaveRequest, TokenView,
    TriedBlacklist, VersionParams, VersionView,
};
pub use problem::{CODES, ProblemDocument, no_such_agent};
pub use recording::{RecordingIndex, RecordingMark, RecordingParams};
pub use request::{ApiRequest, ApiResponse, Method, Waiting};
pub use run::{
    ApproveRequest, COPY, CommandList, CommandView, Denial, Detail, Executor, ExportFormat,
    FinalizeRequest, LayerView, LeftRunning, LimitsView, Load, NewCommand, Reason, RejectRequest,
    Run, RunListParams, RunShowParams, RunStatus, SandboxView, ShellName, State, StdinParams,
    StopRequest, TerminalDetail, Used,
};
pub use sandbox::{
    DEFAULT_HIDDEN, Files, Folder, FolderAnswer, FolderParams, FolderView, Guard, LimitsInfo,
    NetworkAccess, NewSandbox, Review, SandboxInfo, SandboxList, SandboxPatch, WallLevel,
};
pub use session::{CloseRequest, OnClose, SessionList, SessionListParams, SessionView};
pub use task::{OutputParams, ProcessView, TaskList, TaskListParams, TaskOutput, TaskView};
pub use terminal::{
    ControlView, CursorView, NewExec, NewTerminal, ScreenParams, ScreenView, SentView,
    TerminalInput, TerminalList, TerminalListParams, TerminalSignal, TerminalSize, TerminalView,
    ViewerMessage, ViewerParams, is_plain_shell, plain_shell,
};
pub use wait::{Met, WaitKind, WaitRequest, WaitView, Wanted};
pub use webhook::{
    NoticeList, NoticeView, QuietHours, Tested, Topic, WebhookFormat, WebhookList, WebhookPatch,
    WebhookSettings, WebhookView, WebhookWithSecret,
};
pub use weighlock_policy::{Cut, Link, PartKind, Preset, Scope, TokenKind, Verdict};
