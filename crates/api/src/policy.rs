//! Rules, explanations, grants and the blacklist.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_policy::{Link, LoadError, Outline, PartKind, RuleForm, Scope, TokenKind, Verdict};

use crate::{ShellName, State};

/// A draft beside the rules in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// How many commands of the past were judged.
    pub looked_at: usize,
    /// How many would be allowed now; so for the others.
    pub newly_allowed: u64,
    /// See `newly_allowed`.
    pub newly_asked: u64,
    /// See `newly_allowed`.
    pub newly_blocked: u64,
    /// Commands that would be allowed, each text once, at most 100: earlier
    /// rejected ones first, then the newest.
    pub allowed: Vec<ComparedCommand>,
    /// What would be asked about.
    pub asked: Vec<ComparedCommand>,
    /// What would be blocked.
    pub blocked: Vec<ComparedCommand>,
}

/// A command on which a draft and the rules in force do not agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedCommand {
    /// The newest of its text.
    #[serde(flatten)]
    pub newest: PastCommand,
    /// How often it was asked for.
    pub times: u64,
    /// The verdict by the rules in force.
    pub now: Verdict,
    /// The verdict by the draft.
    pub draft: Verdict,
    /// A person or the policy has refused it once.
    pub refused: bool,
}

/// A rule file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyText {
    /// `server`, or `sandbox.` and the sandbox's name.
    pub id: String,
    /// Where it is.
    pub file: String,
    /// Its text; empty if there is none yet.
    pub text: String,
    /// Names exactly this text; a change must repeat it.
    pub etag: i64,
    /// The version it was saved as; none where it was written otherwise.
    pub version: Option<i64>,
    /// Its rules, in their order; empty while it cannot be read.
    pub rules: Vec<RuleInfo>,
    /// What is wrong with it.
    pub errors: Vec<LoadErrorView>,
    /// In how many commands hits were counted: the newest of the last 7 days.
    pub looked_at: usize,
}

/// One rule of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleInfo {
    /// Its name.
    pub name: String,
    /// Where it begins, from 1.
    pub line: usize,
    /// Its verdict on what it matches.
    pub verdict: Verdict,
    /// What it matches, in short.
    pub about: String,
    /// Why.
    pub because: String,
    /// It is about changes of files, in which hits are not counted.
    pub change: bool,
    /// How many commands it is about, as the rules are now.
    pub hits: u64,
    /// When the newest of them was asked for, of the last 30 days.
    pub last_hit: Option<String>,
    /// It has been there for 30 days, and no command of these was about it.
    pub unused: bool,
    /// As a form has it; none where it can only be changed as text.
    pub form: Option<RuleForm>,
}

/// One rule that is put into a text, changed or taken out of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleEdit {
    /// The whole text.
    pub text: String,
    /// The line on which the rule begins; without it, the rule is new.
    #[serde(default)]
    pub line: Option<usize>,
    /// The rule; without it, the one on that line goes.
    #[serde(default)]
    pub rule: Option<RuleForm>,
}

/// A text in which one rule was changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleEdited {
    /// The whole text; only lines of the rule differ.
    pub text: String,
    /// What is wrong with it, and what rules it has.
    #[serde(flatten)]
    pub checked: RulesChecked,
}

/// One mistake in rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadErrorView {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

/// A text that might become a rule file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RulesChecked {
    /// Nothing is wrong with it.
    pub ok: bool,
    /// All mistakes, in their order.
    pub errors: Vec<LoadErrorView>,
    /// Its rules, if nothing is wrong.
    pub rules: Vec<RuleInfo>,
}

/// A saved version of a rule file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VersionView {
    /// From 1.
    pub version: i64,
    /// Who saved it; none where it was written by other means.
    pub author: Option<String>,
    /// When.
    pub created_at: String,
    /// Their comment on it.
    pub note: String,
    /// The whole text.
    pub text: String,
    /// The file says this now.
    pub current: bool,
}

impl From<Outline> for RuleInfo {
    fn from(rule: Outline) -> Self {
        Self {
            name: rule.name,
            line: rule.line,
            verdict: rule.verdict,
            about: rule.about,
            because: rule.because,
            change: rule.change,
            hits: 0,
            last_hit: None,
            unused: false,
            form: None,
        }
    }
}

impl From<LoadError> for LoadErrorView {
    fn from(error: LoadError) -> Self {
        Self {
            line: error.line,
            column: error.column,
            message: error.message,
            hint: error.hint,
        }
    }
}

/// A blacklist beside the commands of the last 7 days.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    /// How many commands were looked at.
    pub looked_at: usize,
    /// How many contain an entry.
    pub matched: usize,
    /// The newest of these, at most 50.
    pub commands: Vec<PastCommand>,
}

/// A command of the past, in a few words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PastCommand {
    /// The run.
    pub command_id: String,
    /// What people type.
    pub short_id: String,
    /// The text.
    pub command: String,
    /// What became of it.
    pub state: State,
    /// Who asked.
    pub requested_by: String,
    /// When.
    pub created_at: String,
}

/// The verdict on a command, and everything that led to it. Nothing was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The text that was judged.
    pub command: String,
    /// `auto`, `ask` or `reject`.
    pub verdict: Verdict,
    /// The agent's profile, if one was named.
    pub agent: Option<String>,
    /// The sandbox.
    pub sandbox: String,
    /// The working directory.
    pub cwd: String,
    /// What would read it: `sh` or `bash`.
    pub shell: String,
    /// It is proved to read and nothing else, and would run where the kernel
    /// makes that true.
    pub read_only: bool,
    /// Why it is not `auto`, the deciding reason first.
    pub reasons: Vec<ReasonView>,
    /// Its parts, in order; at most 1,000.
    pub parts: Vec<PartView>,
    /// Parts that were judged and are not listed.
    #[serde(default)]
    pub more_parts: usize,
    /// Every rule tried, in order.
    pub rules: Vec<RuleView>,
    /// The words of the text, for highlighting. One may lie inside another.
    pub tokens: Vec<TokenView>,
    /// Why rule files that have changed are not in force.
    pub warnings: Vec<String>,
    /// Identifies exactly what was judged; an approval must repeat it.
    pub fingerprint: String,
}

/// Why a command is not run unasked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReasonView {
    /// Stable word.
    pub code: String,
    /// One sentence.
    pub text: String,
    /// The rule that decided.
    pub rule: String,
    /// Where the rule is from.
    pub layer: String,
    /// What could be done instead.
    pub remedy: String,
    /// Bytes of the text it is about: first, and one past the last.
    pub span: Option<(usize, usize)>,
}

/// One thing that a command does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartView {
    /// `command`, `redirection`, `assignment` or `unknown`.
    pub kind: PartKind,
    /// How it follows the part before it.
    pub link: Link,
    /// How many constructs it is inside of.
    pub depth: usize,
    /// Its text.
    pub text: String,
    /// Bytes of the whole text: first, and one past the last.
    pub span: (usize, usize),
    /// The program, where it is known.
    pub program: Option<String>,
    /// One plain sentence.
    pub does: String,
    /// Its own verdict.
    pub verdict: Verdict,
    /// The rule that decided, as an index into `rules`; absent for the default.
    pub rule: Option<usize>,
    /// The given options, with their meaning.
    pub options: Vec<OptionView>,
    /// What happens, by class.
    pub effects: Vec<String>,
    /// What it reads.
    pub reads: Vec<String>,
    /// What it creates or changes.
    pub writes: Vec<String>,
    /// What it deletes or moves away.
    pub deletes: Vec<String>,
    /// Files whose content it runs.
    pub runs: Vec<String>,
    /// Hosts and URLs that it names.
    pub hosts: Vec<String>,
    /// Why more could happen than that.
    pub unknown: Option<String>,
    /// Only one of several readings: it can make the verdict stricter, never
    /// milder.
    pub possible: bool,
}

/// An option and what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OptionView {
    /// Its name.
    pub name: String,
    /// Its value, if it has one and that is known.
    pub value: Option<String>,
    /// What it means, in few words.
    pub means: String,
}

/// A rule that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleView {
    /// Its name.
    pub name: String,
    /// Where it is from.
    pub layer: String,
    /// Its verdict on what it matches.
    pub verdict: Verdict,
    /// What it matches, in short.
    pub about: String,
    /// It matched something.
    pub matched: bool,
}

/// A rule in force, with its recent matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleInForce {
    /// The rule.
    #[serde(flatten)]
    pub rule: RuleView,
    /// How many commands of the last 7 days it is about, as the rules are now;
    /// counted when asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<u64>,
    /// When the newest of them was asked for, of the last 30 days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_hit: Option<String>,
}

/// A piece of the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenView {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
    /// What it is.
    pub kind: TokenKind,
}

/// The policy in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyView {
    /// The presets, by name.
    pub presets: Vec<String>,
    /// The server's rule file, if there is one.
    pub rules_file: Option<String>,
    /// The rule files that can be read and saved, by the name of their policy.
    #[serde(default)]
    pub policies: Vec<String>,
    /// Every rule in force without a sandbox's or an agent's, in order.
    pub rules: Vec<RuleInForce>,
    /// In how many commands hits were counted: the newest of the last 7 days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<usize>,
    /// Agents that have a file of their own.
    pub agents: Vec<String>,
    /// What people have allowed beforehand.
    pub grants: Vec<GrantView>,
    /// Why rule files that have changed are not in force.
    pub broken: Vec<String>,
}

/// What a person has allowed beforehand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantView {
    /// Names it for taking it back.
    pub id: String,
    /// The pattern of the commands that it allows.
    pub pattern: String,
    /// Only for this agent.
    pub agent: Option<String>,
    /// Only in this sandbox.
    pub sandbox: Option<String>,
    /// Only in this session.
    pub session: Option<String>,
    /// When it ends, in seconds since 1970.
    pub until: Option<i64>,
    /// Who gave it.
    pub by: String,
    /// When it was given, in seconds since 1970.
    pub created: i64,
}

/// A command to say something about. Nothing is run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainRequest {
    /// The text for the shell.
    pub command: String,
    /// Who would ask for it; the caller when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The profile that the agent works under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The sandbox, by id or name; the default one when not given.
    #[serde(default, alias = "sandbox_id", skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Environment variables that would be added.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// What would read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellName>,
    /// Rules to try in place of a rule file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<String>,
    /// The rule file that the draft is for: `server` when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

/// Rules to check.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// The text of a rule file.
    pub text: String,
}

/// What is wrong with rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckView {
    /// Nothing is.
    pub ok: bool,
    /// All errors, in their order.
    pub errors: Vec<RuleError>,
}

/// One mistake in rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleError {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

/// What to say of the policy.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ShowParams")]
pub struct PolicyShowParams {
    /// Also how many commands each rule was about, for which the newest thousand
    /// are judged again.
    #[serde(default)]
    pub hits: bool,
}

/// What a person allows beforehand.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGrant {
    /// What a rule could say behind `auto =`: `npm test`.
    pub pattern: String,
    /// Only for this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only in this sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Only in this session, by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// When it ends, in seconds since 1970; when it is taken back if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
}

impl NewGrant {
    pub fn scope(&self) -> Scope {
        Scope {
            agent: self.agent.clone(),
            sandbox: self.sandbox.clone(),
            session: self.session.clone(),
        }
    }
}

impl From<LoadError> for RuleError {
    fn from(error: LoadError) -> Self {
        Self {
            line: error.line,
            column: error.column,
            message: error.message,
            hint: error.hint,
        }
    }
}

/// A text that might become a rule file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleText {
    /// The whole text.
    pub text: String,
}

/// What a rule file is to say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SaveRequest {
    /// The whole text.
    pub text: String,
    /// The reason for the change.
    #[serde(default)]
    pub note: String,
    /// The confirmation phrase, if the answer was `allows_everything`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phrase: Option<String>,
}

/// Which text a rule file is to have again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackRequest {
    /// The version.
    pub version: i64,
    /// The reason for the change.
    #[serde(default)]
    pub note: String,
    /// The confirmation phrase, if the answer was `allows_everything`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phrase: Option<String>,
}

/// Which versions to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VersionParams {
    /// Only those before this one.
    pub before: Option<i64>,
    /// How many, at most 500.
    pub limit: Option<usize>,
}

/// The blacklist in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlacklistView {
    /// Texts that no command may contain.
    #[serde(rename = "commandBlacklist")]
    pub entries: Vec<String>,
    /// The built-in list.
    #[serde(default)]
    pub defaults: Vec<String>,
    /// The file that holds it, or would.
    #[serde(default)]
    pub path: String,
    /// The file exists and is in force.
    #[serde(default)]
    pub from_file: bool,
    /// Whether commands are judged by it: a saved list always is in force, the
    /// built-in one only with preset `blacklist`.
    #[serde(default)]
    pub in_force: bool,
    /// Why the file is not used, if it is there.
    #[serde(default)]
    pub warning: Option<String>,
}

/// A new blacklist.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBlacklist {
    /// Texts that no command may contain.
    #[serde(rename = "commandBlacklist")]
    pub entries: Vec<String>,
}

/// A blacklist to be tried.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TriedBlacklist {
    /// Texts that no command may contain; those in force if not given.
    #[serde(rename = "commandBlacklist")]
    pub entries: Option<Vec<String>>,
}
