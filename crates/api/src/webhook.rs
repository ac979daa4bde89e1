//! Webhooks and their notices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The default delay: people get this long to answer at their desk first.
const DELAY_SECONDS: u32 = 30;

/// The default duration from which the end of a run is worth a message.
const LONG_MINUTES: u32 = 10;

/// Hours without notifications. What still waits at their end is delivered then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuietHours {
    /// Their begin, as `22:00`.
    pub from: String,
    /// Their end, as `07:00`; on the next day if that is earlier.
    pub to: String,
    /// The time zone, as `Europe/Vienna`; default: the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

/// The format of a webhook's messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WebhookFormat {
    /// Signed JSON, as in Standard Webhooks.
    #[default]
    Json,
    /// Plain text with headers, for ntfy.
    Ntfy,
    /// `{"text": …}`, for incoming webhooks of chats.
    Chat,
}

/// What a webhook can notify of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Topic {
    /// A question waits for a person; later also that it no longer waits.
    #[serde(rename = "approval.waiting")]
    Waiting,
    /// A run failed or was ended.
    #[serde(rename = "run.failed")]
    Failed,
    /// A long run succeeded.
    #[serde(rename = "run.finished")]
    Finished,
    /// An agent, or everything, was paused.
    #[serde(rename = "agent.paused")]
    Paused,
    /// The audit is damaged. Administrators always get this.
    #[serde(rename = "audit.failed")]
    Audit,
}

/// A webhook without its secret and without the path of its URL, which may
/// contain one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookView {
    /// The id.
    pub webhook_id: String,
    /// The owner; absent for the server's own.
    pub owner: Option<String>,
    /// Scheme and host of the URL.
    pub place: String,
    /// The settings.
    #[serde(flatten)]
    pub settings: WebhookSettings,
    /// Whether it gets messages.
    pub is_active: bool,
    /// Increases with each change; the `ETag`.
    pub version: i64,
    /// When it was added.
    pub created_at: String,
    /// When it was last changed.
    pub updated_at: String,
    /// When the receiver last accepted a message.
    pub told_at: Option<String>,
    /// Failed attempts since then.
    pub failures: u32,
    /// Why the last attempt failed.
    pub trouble: Option<String>,
    /// When the next attempt is, if a message waits.
    pub retry_at: Option<String>,
}

/// The settings of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WebhookSettings {
    /// A name for people.
    pub label: String,
    /// The format of its messages.
    pub format: WebhookFormat,
    /// How long a question waits before a message is sent.
    pub delay_seconds: u32,
    /// Sends a message about a high-risk question without delay.
    pub high_risk_at_once: bool,
    /// Hours without messages.
    pub quiet: Option<QuietHours>,
    /// Ids of the sandboxes it covers; absent: all that its owner sees.
    pub sandboxes: Option<Vec<String>>,
    /// The events that it sends.
    pub topics: Vec<Topic>,
    /// The shortest run whose success it notifies of.
    pub long_minutes: u32,
}

/// A new webhook, or changes to one. An omitted field keeps its value or, in a
/// new webhook, its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(example = serde_json::json!({ "url": "https://hooks.example.com/weighlock", "label": "on call" }))]
pub struct WebhookPatch {
    /// The URL: `https://`, or `http://` for this machine. Answers never contain
    /// its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// With `json`, the signing secret: `whsec_` and 24 to 64 bytes in base64;
    /// one is generated if omitted. With `ntfy`, an access token. Answers never
    /// contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Adds a webhook of the server instead of the caller; ignored in changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<bool>,
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The format of its messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<WebhookFormat>,
    /// How long a question waits before a message is sent; at most an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<u32>,
    /// Sends a message about a high-risk question without delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_risk_at_once: Option<bool>,
    /// Hours without messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<QuietHours>,
    /// Removes the quiet hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub never_quiet: Option<bool>,
    /// The sandboxes it covers, by name or id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandboxes: Option<Vec<String>>,
    /// Covers all sandboxes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub everywhere: Option<bool>,
    /// The events that it sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topics: Option<Vec<Topic>>,
    /// The shortest run whose success it notifies of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_minutes: Option<u32>,
    /// Whether it gets messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
}

/// A webhook with its generated secret. No other answer contains the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookWithSecret {
    /// The signing secret; absent if the caller gave it or the format has none.
    pub secret: Option<String>,
    /// The webhook.
    #[serde(flatten)]
    pub webhook: WebhookView,
}

/// A notice of a webhook, sent or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeView {
    /// What happened.
    pub kind: String,
    /// The approval it is about, if any.
    pub approval_id: Option<String>,
    /// The agent it is about.
    pub agent: String,
    /// `due`, `sent`, `dropped` or `failed`.
    pub state: String,
    /// When it happened.
    pub created_at: String,
    /// The earliest time of delivery.
    pub due_at: String,
    /// When the last attempt was.
    pub tried_at: Option<String>,
    /// The `webhook-id` of its message.
    pub message_id: Option<String>,
}

impl Topic {
    /// Returns the kind of its notices in the store.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "approval.waiting",
            Self::Failed => "run.failed",
            Self::Finished => "run.finished",
            Self::Paused => "agent.paused",
            Self::Audit => "audit.failed",
        }
    }
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            label: String::new(),
            format: WebhookFormat::default(),
            delay_seconds: DELAY_SECONDS,
            high_risk_at_once: true,
            quiet: None,
            sandboxes: None,
            topics: vec![Topic::Waiting],
            long_minutes: LONG_MINUTES,
        }
    }
}

/// Webhooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookList {
    /// Oldest first.
    pub webhooks: Vec<WebhookView>,
}

/// Notices of a webhook, sent or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeList {
    /// Newest first.
    pub notices: Vec<NoticeView>,
}

/// The result of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tested {
    /// Whether the receiver accepted the message.
    pub delivered: bool,
    /// Why it did not.
    pub trouble: Option<String>,
}
