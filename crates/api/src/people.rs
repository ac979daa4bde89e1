//! People, agents, tokens, sign-in and pauses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Features;

/// A pause that is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PauseView {
    /// Who is paused; everyone if absent.
    pub principal: Option<String>,
    /// Who has paused.
    pub by: String,
    /// Since when.
    pub since: String,
    /// The reason, if given.
    pub reason: Option<String>,
}

/// A person or an agent as doors show them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PersonView {
    /// The name, which never changes.
    pub principal_id: String,
    /// Their role.
    pub role: Role,
    /// The user of this machine who they are, if they are one.
    pub uid: Option<u32>,
    /// They are let in.
    pub is_active: bool,
    /// Sandboxes in which the role applies, by id; everywhere if absent.
    pub sandboxes: Option<Vec<String>>,
    /// The default sandbox, by id.
    pub default_sandbox: Option<String>,
    /// Who has paused them, if anybody has.
    pub paused_by: Option<String>,
    /// Grows with each change; the `ETag` of it.
    pub version: i64,
    /// When they were added.
    pub created_at: String,
    /// When something was changed last.
    pub updated_at: String,
    /// Their tokens, newest first.
    pub tokens: Vec<TokenInfo>,
}

/// A person or agent to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "principal_id": "coder", "role": "agent" }))]
pub struct NewPerson {
    /// The name: small letters, digits, `.`, `-` and `_`.
    pub principal_id: String,
    /// Their role.
    pub role: Role,
    /// The user of this machine who they are, if they are one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Sandboxes in which the role applies, by id or name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandboxes: Option<Vec<String>>,
    /// The default sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_sandbox: Option<String>,
}

/// Changes to a person or an agent; omitted fields stay. An empty list of
/// sandboxes means none; `everywhere` removes the list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PersonPatch {
    /// Their role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Whether they are let in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// Sandboxes in which the role applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandboxes: Option<Vec<String>>,
    /// The role applies in all sandboxes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub everywhere: bool,
    /// The default sandbox; empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_sandbox: Option<String>,
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenInfo {
    /// Names it.
    pub token_id: String,
    /// Its first characters, to recognise it by.
    pub prefix: String,
    /// What it is for.
    pub label: String,
    /// Who made it.
    pub created_by: String,
    /// When it was made.
    pub created_at: String,
    /// When it ends by itself.
    pub expires_at: Option<String>,
    /// When it was used last, to the minute.
    pub last_used_at: Option<String>,
    /// When it was revoked.
    pub revoked_at: Option<String>,
}

/// A token that was just made. This is the only time it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NewToken {
    /// The secret.
    pub token: String,
    /// What is known of it from now on.
    #[serde(flatten)]
    pub info: TokenInfo,
}

/// What a principal may do. Each person's role includes those before it;
/// agents stand apart: they run, and never decide.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// May run commands; may never decide or change anything.
    Agent,
    /// May look.
    Viewer,
    /// May run, and decide about what others ask for.
    Approver,
    /// May also stop what runs, and pause and resume.
    Operator,
    /// May do everything.
    Administrator,
}

impl Role {
    /// Returns the role's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Viewer => "viewer",
            Self::Approver => "approver",
            Self::Operator => "operator",
            Self::Administrator => "administrator",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        serde_json::from_value(word.into()).ok()
    }
}

/// Who the caller is, and what concerns them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Me {
    /// The name.
    pub principal_id: String,
    /// Their role.
    pub role: Role,
    /// By what we know them: `socket`, `token`, `signed_in` or `library`.
    pub how: String,
    /// Sandboxes in which the role applies, by id; everywhere if absent.
    pub sandboxes: Option<Vec<String>>,
    /// The default sandbox, by id.
    pub default_sandbox: Option<String>,
    /// What is paused.
    pub pauses: Vec<PauseView>,
    /// How many questions wait that they may see.
    pub waiting: u64,
    /// The server's version.
    pub version: String,
    /// What the caller may do, and what exists.
    pub features: Features,
}

/// All people and agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeopleList {
    /// By name.
    pub people: Vec<PersonView>,
}

/// A token to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TokenRequest {
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When it ends by itself; never if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
}

/// A request to replace a token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RotateRequest {
    /// How long the old token stays valid: a day by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap_seconds: Option<u64>,
}

/// Which principals to pause or resume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PauseRequest {
    /// One principal; everyone if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PauseList {
    /// Everyone first.
    pub pauses: Vec<PauseView>,
}

/// A one-time sign-in link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkView {
    /// To be put behind the server's address: `/signin#…`.
    pub link: String,
    /// How long it can be used, once.
    pub expires_in_seconds: u64,
}

/// A link or a token to sign in with.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum SignIn {
    /// By a link.
    Link {
        /// The text after the `#`.
        code: String,
    },
    /// By a token.
    Token {
        /// A person's; an agent's is refused.
        token: String,
    },
}
