//! One message on its way to one webhook.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;
use weighlock_store::{Notice, WebhookRow};

use crate::message::WebhookMessage;
use crate::secret::WebhookSecret;
use crate::settings::{WebhookFormat, settings_of};

/// One message on its way to one webhook. The webhook gets no other message
/// while this exists.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// The webhook's id.
    pub(crate) webhook: String,
    pub(crate) url: String,
    pub(crate) secret: WebhookSecret,
    pub(crate) format: WebhookFormat,
    /// Whether the receiver may be on this machine or in its private network.
    pub(crate) may_reach_private: bool,
    /// The `webhook-id`: the same in each attempt, so that a receiver can tell
    /// a repetition from another message.
    pub(crate) id: String,
    pub(crate) message: WebhookMessage,
    /// The notices that the message covers; none in a test.
    pub(crate) notices: Vec<Notice>,
    /// None for a test, which is sent beside other messages.
    pub(crate) _lease: Option<WebhookLease>,
}

impl Delivery {
    /// Creates a delivery of a message without notices.
    pub(crate) fn new(
        row: WebhookRow,
        id: String,
        message: WebhookMessage,
        may_reach_private: bool,
    ) -> Self {
        Self {
            format: settings_of(&row).format,
            webhook: row.id,
            url: row.url,
            secret: WebhookSecret(row.secret),
            may_reach_private,
            id,
            message,
            notices: vec![],
            _lease: None,
        }
    }
}

/// The webhooks that a delivery is on its way to.
#[derive(Debug, Clone, Default)]
pub(crate) struct BusyWebhooks(Arc<Mutex<HashSet<String>>>);

/// Reserves a webhook for one delivery, until dropped.
#[derive(Debug)]
pub(crate) struct WebhookLease {
    webhook: String,
    busy: BusyWebhooks,
    /// Woken when a delivery ends, since other notices may wait behind it. Not
    /// set while the lease only looks for something to deliver.
    pub(crate) wake: Option<Arc<Notify>>,
}

impl BusyWebhooks {
    /// Reserves a webhook; `None` if a delivery is on its way to it.
    pub(crate) fn lease(&self, webhook: &str) -> Option<WebhookLease> {
        let is_free = lock(&self.0).insert(webhook.to_owned());
        is_free.then(|| WebhookLease {
            webhook: webhook.to_owned(),
            busy: self.clone(),
            wake: None,
        })
    }
}

impl Drop for WebhookLease {
    fn drop(&mut self) {
        lock(&self.busy.0).remove(&self.webhook);
        if let Some(wake) = &self.wake {
            wake.notify_one();
        }
    }
}

/// Locks a mutex. A panic while it was locked left a complete value.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
