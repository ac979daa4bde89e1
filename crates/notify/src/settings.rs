//! What can be set for a webhook, and what is shown of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Quiet;

/// How long people have to answer where they are before they are told
/// elsewhere.
const DELAY_SECONDS: u32 = 30;

/// What a run takes before its end is news.
const LONG_MINUTES: u32 = 10;

/// In which form something is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "WebhookFormat")]
pub enum Format {
    /// JSON with a signature, as in Standard Webhooks.
    #[default]
    Json,
    /// Plain text with headers, as ntfy takes it.
    Ntfy,
    /// `{"text": …}`, as incoming webhooks of chats take it.
    Chat,
}

/// What somebody may want to be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Topic {
    /// A question waits for a person; and once that was told, that it does no
    /// more.
    #[serde(rename = "approval.waiting")]
    Waiting,
    /// A run has failed, or was ended.
    #[serde(rename = "run.failed")]
    Failed,
    /// A long run has ended well.
    #[serde(rename = "run.finished")]
    Finished,
    /// Somebody has paused an agent, or everybody.
    #[serde(rename = "agent.paused")]
    Paused,
    /// The audit was changed. Administrators are told in any case.
    #[serde(rename = "audit.failed")]
    Audit,
}

/// A webhook as doors show it: never its secret, nor the part of its address
/// that may be one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookView {
    /// Names it.
    pub webhook_id: String,
    /// Who is told; the whole server's if absent.
    pub owner: Option<String>,
    /// Where to, up to the host.
    pub place: String,
    /// What is set.
    #[serde(flatten)]
    pub settings: WebhookSettings,
    /// It is told of what happens.
    pub is_active: bool,
    /// Grows with each change; the `ETag` of it.
    pub version: i64,
    /// When it was made.
    pub created_at: String,
    /// When it was changed last.
    pub updated_at: String,
    /// When the receiver took something last.
    pub told_at: Option<String>,
    /// Attempts in a row that failed.
    pub failures: u32,
    /// Why the latest failed.
    pub trouble: Option<String>,
    /// When it is tried again, if something waits to be told.
    pub retry_at: Option<String>,
}

/// What can be set for a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebhookSettings {
    /// What it is for.
    pub label: String,
    /// In which form it is told.
    pub format: Format,
    /// How long a question waits before it is told.
    pub delay_seconds: u32,
    /// A question of high risk is told at once.
    pub high_risk_at_once: bool,
    /// When nothing is told.
    pub quiet: Option<Quiet>,
    /// Sandboxes that it is told of, by id; all that its owner sees if absent.
    pub sandboxes: Option<Vec<String>>,
    /// What it is told of.
    pub topics: Vec<Topic>,
    /// What a run takes at least for its end to be told.
    pub long_minutes: u32,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            label: String::new(),
            format: Format::default(),
            delay_seconds: DELAY_SECONDS,
            high_risk_at_once: true,
            quiet: None,
            sandboxes: None,
            topics: vec![Topic::Waiting],
            long_minutes: LONG_MINUTES,
        }
    }
}

/// What somebody wants of a webhook. What is left out stays, or is as usual in
/// a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(example = json!({ "url": "https://hooks.example.com/weighlock", "label": "on call" }))]
pub struct WebhookWish {
    /// Where to: `https://`, or `http://` on this machine. Never shown whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// With `json`, what signs: `whsec_` and 24 to 64 bytes in base64; one is
    /// made if not given. With `ntfy`, an access token. Never shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// It is the whole server's, and not the caller's own; only when it is
    /// made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<bool>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// In which form it is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// How long a question waits before it is told; at most an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<u32>,
    /// A question of high risk is told at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_risk_at_once: Option<bool>,
    /// When nothing is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<Quiet>,
    /// There are no quiet hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub never_quiet: Option<bool>,
    /// Sandboxes that it is told of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandboxes: Option<Vec<String>>,
    /// It is told of all sandboxes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub everywhere: Option<bool>,
    /// What it is told of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topics: Option<Vec<Topic>>,
    /// What a run takes at least for its end to be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_minutes: Option<u32>,
    /// It is told of what happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
}

/// A webhook with a secret that was just made. This is the only time it is
/// shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WithSecret {
    /// What signs; absent when the caller gave it, or the form has none.
    pub secret: Option<String>,
    /// The rest.
    #[serde(flatten)]
    pub webhook: WebhookView,
}
