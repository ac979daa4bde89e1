//! Settings of a webhook, and webhooks and notices as clients see them.

use serde_json::Value;
pub use weighlock_api::{
    NoticeView, Topic, WebhookFormat, WebhookPatch, WebhookSettings, WebhookView, WebhookWithSecret,
};
use weighlock_store::{DeliveryStatus, Notice, WebhookRow, timestamp};

use crate::url::origin;

pub(crate) fn settings_of(row: &WebhookRow) -> WebhookSettings {
    serde_json::from_value(row.body.clone()).unwrap_or_default()
}

pub(crate) fn settings_body(settings: &WebhookSettings) -> Value {
    serde_json::to_value(settings).expect("settings are plain data")
}

/// Returns the owner of a webhook; `None` for the server's own.
pub(crate) fn owner_of(row: &WebhookRow) -> Option<&str> {
    Some(row.owner.as_str()).filter(|name| !name.is_empty())
}

pub(crate) fn webhook_view(row: WebhookRow) -> WebhookView {
    let DeliveryStatus {
        failures,
        retry_at,
        told_at,
        ref trouble,
    } = row.status;
    WebhookView {
        owner: owner_of(&row).map(str::to_owned),
        place: origin(&row.url),
        settings: settings_of(&row),
        is_active: row.active,
        version: row.version,
        created_at: timestamp(row.created_at),
        updated_at: timestamp(row.updated_at),
        told_at: told_at.map(timestamp),
        failures,
        trouble: trouble.clone(),
        retry_at: (failures > 0).then(|| timestamp(retry_at)),
        webhook_id: row.id,
    }
}

pub(crate) fn notice_view((notice, state): (Notice, String)) -> NoticeView {
    NoticeView {
        kind: notice.kind,
        approval_id: Some(notice.subject).filter(|id| !id.is_empty()),
        agent: notice.agent,
        state,
        created_at: timestamp(notice.created_at),
        due_at: timestamp(notice.due_at),
        tried_at: notice.tried_at.map(timestamp),
        message_id: notice.message,
    }
}
