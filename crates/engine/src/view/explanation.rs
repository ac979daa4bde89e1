//! What the rules say about a command, as doors show it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_policy::{Link, PartKind, TokenKind, Verdict};

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
