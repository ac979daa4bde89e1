//! Adds, changes and lists webhooks.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::sync::Notify;
use weighlock_store::{Clock, DeliveryStatus, Entry, Store, WebhookRow, id};

use crate::delivery::lock;
use crate::error::{Error, shortened};
use crate::quiet_hours;
use crate::secret::choose_secret;
use crate::settings::{
    NoticeView, WebhookFormat, WebhookPatch, WebhookSettings, WebhookView, WebhookWithSecret,
    notice_view, owner_of, settings_body, settings_of, webhook_view,
};
use crate::url::{check_url, origin};

/// Webhooks per owner: more than anybody needs. Every question is matched
/// against each of them.
const MAX_WEBHOOKS: usize = 20;

/// The longest delay: a question that waits longer has usually expired.
const MAX_DELAY_SECONDS: u32 = 3600;

/// How many notices are listed.
const LISTED_NOTICES: usize = 50;

/// Who manages webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Actor<'a> {
    /// Their name: they own the webhooks that they add.
    pub name: &'a str,
    /// Administrators manage everybody's webhooks, others only their own.
    pub is_administrator: bool,
}

impl Actor<'_> {
    fn manages(&self, row: &WebhookRow) -> bool {
        self.is_administrator || row.owner == self.name
    }
}

/// The webhooks of everybody.
pub struct WebhookRegistry {
    store: Arc<Store>,
    clock: Clock,
    ids: id::Ids,
    /// A copy of the table, for the outbox.
    cached: Mutex<Vec<WebhookRow>>,
    /// Wakes the outbox.
    changed: Arc<Notify>,
}

impl WebhookRegistry {
    pub(crate) fn open(
        store: Arc<Store>,
        clock: Clock,
        changed: Arc<Notify>,
    ) -> Result<Self, Error> {
        let rows = store.webhooks()?;
        Ok(Self {
            ids: id::Ids::after(rows.last().map(|row| row.id.as_str())),
            store,
            clock,
            cached: Mutex::new(rows),
            changed,
        })
    }

    /// Lists the webhooks that somebody manages, oldest first.
    pub fn list(&self, actor: Actor<'_>) -> Result<Vec<WebhookView>, Error> {
        let mut rows = self.store.webhooks()?;
        rows.retain(|row| actor.manages(row));
        Ok(rows.into_iter().map(webhook_view).collect())
    }

    /// Returns one webhook.
    pub fn get(&self, id: &str, actor: Actor<'_>) -> Result<WebhookView, Error> {
        Ok(webhook_view(self.find(id, actor)?))
    }

    /// Adds a webhook, for the actor or for the server. It gets notices of
    /// events from now on.
    pub async fn add(
        &self,
        patch: WebhookPatch,
        actor: Actor<'_>,
    ) -> Result<WebhookWithSecret, Error> {
        let mut settings = WebhookSettings::default();
        apply(&patch, &mut settings)?;
        let url = patch.url.unwrap_or_default();
        check_url(&url)?;
        let (secret, generated) = choose_secret(settings.format, patch.secret)?;
        let now = self.clock.micros();
        let row = WebhookRow {
            id: self.ids.next_as("wh", now),
            owner: match patch.server {
                Some(true) => String::new(),
                _ => actor.name.to_owned(),
            },
            url,
            secret,
            active: patch.is_active.unwrap_or(true),
            body: settings_body(&settings),
            version: 1,
            created_at: now,
            updated_at: now,
            since: 0,
            status: DeliveryStatus::default(),
        };
        let entry = self.entry("webhook.added", &row, actor.name);
        let added = self
            .store
            .add_webhook(row.clone(), MAX_WEBHOOKS, vec![entry]);
        if !added.await? {
            return Err(too_many());
        }
        self.reload()?;
        Ok(WebhookWithSecret {
            secret: generated,
            webhook: webhook_view(row),
        })
    }

    /// Changes a webhook, if it still has the version that the caller read.
    pub async fn change(
        &self,
        id: &str,
        patch: WebhookPatch,
        version: Option<i64>,
        actor: Actor<'_>,
    ) -> Result<WebhookView, Error> {
        let mut row = self.find(id, actor)?;
        if version.is_some_and(|version| version != row.version) {
            return Err(Error::Stale);
        }
        let mut settings = settings_of(&row);
        let before = settings.format;
        apply(&patch, &mut settings)?;
        if let Some(url) = patch.url {
            check_url(&url)?;
            row.url = url;
        }
        if patch.secret.is_some() || settings.format != before {
            // The secret of one format has no meaning in another.
            if settings.format == WebhookFormat::Json && patch.secret.is_none() {
                return Err(no_secret());
            }
            row.secret = choose_secret(settings.format, patch.secret)?.0;
        }
        row.active = patch.is_active.unwrap_or(row.active);
        row.body = settings_body(&settings);
        self.update(row, actor).await
    }

    /// Replaces the secret of a webhook by a generated one, and returns it.
    pub async fn renew_secret(
        &self,
        id: &str,
        actor: Actor<'_>,
    ) -> Result<WebhookWithSecret, Error> {
        let mut row = self.find(id, actor)?;
        let (secret, generated) = choose_secret(settings_of(&row).format, None)?;
        row.secret = secret;
        Ok(WebhookWithSecret {
            secret: generated,
            webhook: self.update(row, actor).await?,
        })
    }

    /// Deletes a webhook and its notices, and returns what it was.
    pub async fn remove(&self, id: &str, actor: Actor<'_>) -> Result<WebhookView, Error> {
        let row = self.find(id, actor)?;
        let entry = self.entry("webhook.removed", &row, actor.name);
        self.store
            .remove_webhook(row.id.clone(), vec![entry])
            .await?;
        self.reload()?;
        Ok(webhook_view(row))
    }

    /// Lists the newest notices of a webhook, sent or not.
    pub fn notices(&self, id: &str, actor: Actor<'_>) -> Result<Vec<NoticeView>, Error> {
        let row = self.find(id, actor)?;
        let found = self.store.notices_of(&row.id, LISTED_NOTICES)?;
        Ok(found.into_iter().map(notice_view).collect())
    }

    /// Returns a webhook that somebody manages. Another person's does not exist
    /// for them.
    pub(crate) fn find(&self, id: &str, actor: Actor<'_>) -> Result<WebhookRow, Error> {
        let mut rows = self.store.webhooks()?;
        rows.retain(|row| actor.manages(row) && (row.id == id || id::short(&row.id) == id));
        match (rows.pop(), rows.pop()) {
            (Some(row), None) => Ok(row),
            _ => Err(Error::NoSuchWebhook { id: shortened(id) }),
        }
    }

    /// Deactivates a webhook whose receiver answered that it is gone.
    pub(crate) async fn deactivate(&self, row: WebhookRow) -> Result<(), Error> {
        let entry = self.entry("webhook.off", &row, "weighlock");
        let why = "the receiver answered 410: it is gone".to_owned();
        self.store
            .switch_off_webhook(row.id, why, vec![entry])
            .await?;
        Ok(())
    }

    /// Returns all webhooks, from memory.
    pub(crate) fn cached(&self) -> Vec<WebhookRow> {
        lock(&self.cached).clone()
    }

    /// Returns whether there is no webhook at all.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.cached).is_empty()
    }

    /// Reads the table into memory, and wakes the outbox.
    pub(crate) fn reload(&self) -> Result<(), Error> {
        *lock(&self.cached) = self.store.webhooks()?;
        self.changed.notify_one();
        Ok(())
    }

    async fn update(&self, mut row: WebhookRow, actor: Actor<'_>) -> Result<WebhookView, Error> {
        row.updated_at = self.clock.micros();
        let entry = self.entry("webhook.changed", &row, actor.name);
        let id = row.id.clone();
        if !self.store.change_webhook(row, vec![entry]).await? {
            return Err(Error::Stale);
        }
        self.reload()?;
        self.get(&id, actor)
    }

    /// Builds an audit entry, without anything that may be secret.
    fn entry(&self, kind: &'static str, row: &WebhookRow, by: &str) -> Entry {
        Entry {
            time: self.clock.micros(),
            kind,
            actor: by.to_owned(),
            detail: json!({ "webhook": row.id, "for": owner_of(row), "place": origin(&row.url),
                            "active": row.active, "settings": row.body }),
            ..Entry::default()
        }
    }
}

/// Applies what a patch gives, if it is valid.
fn apply(patch: &WebhookPatch, to: &mut WebhookSettings) -> Result<(), Error> {
    if let Some(label) = &patch.label {
        to.label = shortened(label);
    }
    to.format = patch.format.unwrap_or(to.format);
    let delay = patch.delay_seconds.unwrap_or(to.delay_seconds);
    to.delay_seconds = delay.min(MAX_DELAY_SECONDS);
    to.high_risk_at_once = patch.high_risk_at_once.unwrap_or(to.high_risk_at_once);
    if let Some(quiet) = &patch.quiet {
        quiet_hours::check(quiet)?;
        to.quiet = Some(quiet.clone());
    }
    if patch.never_quiet == Some(true) {
        to.quiet = None;
    }
    if let Some(sandboxes) = &patch.sandboxes {
        to.sandboxes = Some(sandboxes.clone());
    }
    if patch.everywhere == Some(true) {
        to.sandboxes = None;
    }
    if let Some(topics) = &patch.topics {
        to.topics.clone_from(topics);
    }
    to.long_minutes = patch.long_minutes.unwrap_or(to.long_minutes);
    Ok(())
}

fn too_many() -> Error {
    Error::Invalid {
        code: "too_many_webhooks",
        detail: format!("there are {MAX_WEBHOOKS} webhooks already; nothing was added"),
        hint: "remove one that is not used: `weighlock notify list`",
    }
}

fn no_secret() -> Error {
    Error::invalid(
        "no_secret",
        "JSON messages are signed, and there is no secret to sign with",
        "give one as `secret`, or add a new webhook",
    )
}
