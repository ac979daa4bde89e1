//! Sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to a session's runs when it is closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnClose {
    /// They are ended.
    #[default]
    Stop,
    /// They go on.
    Keep,
}

/// A session as doors show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionView {
    /// Names it.
    pub session_id: String,
    /// Whose it is.
    pub principal_id: String,
    /// Where its commands run, by id.
    pub sandbox_id: String,
    /// The client's own name for it; empty where it was opened for a request.
    pub label: String,
    /// The status of its latest command.
    pub status: String,
    /// When it was opened.
    pub created_at: String,
    /// When something happened in it last.
    pub updated_at: String,
    /// When it was closed.
    pub closed_at: Option<String>,
}

/// A page of sessions, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    /// The sessions.
    pub sessions: Vec<SessionView>,
    /// Ask for the next page with this; absent on the last.
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListParams")]
pub struct SessionListParams {
    /// The `next` of the previous page.
    pub cursor: Option<String>,
    /// How many, at most 500.
    pub limit: Option<usize>,
    /// Only your open session with this name.
    pub name: Option<String>,
    /// With `name`: in this sandbox, by id or name; by default in your default
    /// sandbox.
    pub sandbox: Option<String>,
}

/// How to close a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CloseRequest {
    /// What to do with its runs; the default comes from the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<OnClose>,
}
