//! Decides which message goes to which webhook next.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use weighlock_store::{CLOSED, Clock, Error, Notice, NoticeOutcome, Recorded, Store, WebhookRow};

use crate::attempt::is_ready;
use crate::collector::{Collector, is_relevant};
use crate::delivery::{BusyWebhooks, Delivery};
use crate::directory::Directory;
use crate::message::Composer;
use crate::quiet_hours;
use crate::registry::WebhookRegistry;
use crate::settings::{Topic, owner_of, settings_of};

/// Due notices of a webhook that are read at a time.
const BATCH: usize = 256;

/// The longest wait for something that is due: the clock may jump.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// How long to wait when the store cannot be read or written.
const RETRY_STORE: Duration = Duration::from_secs(1);

/// Finds what is due.
pub(crate) struct Outbox {
    pub(crate) store: Arc<Store>,
    pub(crate) clock: Clock,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) registry: Arc<WebhookRegistry>,
    pub(crate) collector: Collector,
    /// A webhook gets at most one message about an agent in this time.
    pub(crate) collapse: Duration,
    pub(crate) busy: BusyWebhooks,
    /// Wakes [`Outbox::next`].
    pub(crate) changed: Arc<Notify>,
}

impl Outbox {
    /// Waits for the next message to deliver. Its links begin with `public_url`.
    pub(crate) async fn next(&self, public_url: &str) -> Delivery {
        // Subscribes before anything is read, so that no entry is missed.
        let mut events = self.store.events();
        loop {
            match self.collect_and_find(public_url).await {
                Ok(Some(delivery)) => return delivery,
                Ok(None) => self.wait(&mut events).await,
                Err(error) => {
                    tracing::error!(%error, "cannot read what is due for webhooks");
                    tokio::time::sleep(RETRY_STORE).await;
                }
            }
        }
    }

    async fn collect_and_find(&self, public_url: &str) -> Result<Option<Delivery>, Error> {
        if self.registry.is_empty() {
            return Ok(None);
        }
        self.collector.collect(&self.registry).await?;
        self.find_due(public_url).await
    }

    /// Waits until something may be due.
    async fn wait(&self, events: &mut Receiver<Arc<Recorded>>) {
        let now = self.clock.micros();
        let next = if self.registry.is_empty() {
            None
        } else {
            self.store.next_due(now).ok().flatten()
        };
        let wait = next.map_or(MAX_WAIT, |at| {
            Duration::from_micros((at - now).max(1000).cast_unsigned()).min(MAX_WAIT)
        });
        tokio::select! {
            () = relevant_entry(events) => {}
            () = self.changed.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }

    /// Returns the first message that is due, and records that it is attempted.
    /// Webhooks are independent: one that fails does not delay another.
    async fn find_due(&self, public_url: &str) -> Result<Option<Delivery>, Error> {
        let now = self.clock.micros();
        for row in self.registry.cached() {
            if !is_ready(&row, now) {
                continue;
            }
            let Some(mut lease) = self.busy.lease(&row.id) else {
                continue;
            };
            if let Some(mut delivery) = self.find_due_for(&row, now, public_url).await? {
                lease.wake = Some(Arc::clone(&self.changed));
                delivery._lease = Some(lease);
                return Ok(Some(delivery));
            }
        }
        Ok(None)
    }

    async fn find_due_for(
        &self,
        row: &WebhookRow,
        now: i64,
        public_url: &str,
    ) -> Result<Option<Delivery>, Error> {
        let mut groups = HashSet::new();
        for notice in self.store.due_notices(&row.id, now, BATCH)? {
            // The first notice of a group stands for all of it.
            if groups.insert((notice.kind.clone(), notice.agent.clone()))
                && let Some(delivery) = self.pack(row, &notice, now, public_url).await?
            {
                return Ok(Some(delivery));
            }
        }
        Ok(None)
    }

    /// Makes one message of a notice and those that belong with it, unless it is
    /// too early or nothing remains to say.
    async fn pack(
        &self,
        row: &WebhookRow,
        first: &Notice,
        now: i64,
        public_url: &str,
    ) -> Result<Option<Delivery>, Error> {
        let group = self.group(first, now)?;
        let Some(recipient) = self.directory.recipient(owner_of(row))? else {
            return self.drop_notices(group).await;
        };
        if let Some(until) = self.too_early(first, row, now)? {
            self.store.put_off_notices(group, until).await?;
            return Ok(None);
        }
        let composer = Composer {
            store: &self.store,
            directory: &*self.directory,
            now,
            public_url,
        };
        let Some(message) = composer.compose(&group)? else {
            return self.drop_notices(group).await;
        };
        let id = first
            .message
            .clone()
            .unwrap_or_else(|| message_id(row, first));
        // Recorded before it is sent: a receiver that may have it must also get
        // the message that the question is closed.
        let notices = self.store.try_notices(group, id.clone(), now).await?;
        let delivery = Delivery::new(row.clone(), id, message, recipient.is_administrator);
        Ok((!notices.is_empty()).then_some(Delivery {
            notices,
            ..delivery
        }))
    }

    async fn drop_notices(&self, group: Vec<Notice>) -> Result<Option<Delivery>, Error> {
        let dropped = self.store.settle_notices(group, NoticeOutcome::Dropped);
        dropped.await.map(|()| None)
    }

    /// Returns the notices of one message: those of an earlier attempt, or all
    /// due ones of the same kind about the same agent.
    fn group(&self, first: &Notice, now: i64) -> Result<Vec<Notice>, Error> {
        let mut like = self.store.notices_like(first)?;
        like.retain(|notice| match &first.message {
            Some(_) => notice.message == first.message,
            None => notice.message.is_none() && is_due(notice, now),
        });
        Ok(like)
    }

    /// Returns until when a due notice must still wait: to the end of quiet
    /// hours, or because the webhook just got a message about this agent.
    fn too_early(&self, first: &Notice, row: &WebhookRow, now: i64) -> Result<Option<i64>, Error> {
        let is_urgent = first.kind == Topic::Audit.word();
        if let Some(quiet) = settings_of(row).quiet.filter(|_| !is_urgent)
            && let Some(until) = quiet_hours::until(&quiet, now)
        {
            return Ok(Some(until));
        }
        if first.message.is_some() || first.kind == CLOSED || is_urgent {
            return Ok(None);
        }
        let collapse = self.collapse.as_micros() as i64;
        let last = self.store.last_tried(first)?;
        // A time in the future was written before the clock was set back.
        let next = last.filter(|last| *last <= now).map(|last| last + collapse);
        Ok(next.filter(|next| *next > now))
    }
}

/// Waits for an audit entry that can become a notice.
async fn relevant_entry(events: &mut Receiver<Arc<Recorded>>) {
    loop {
        match events.recv().await {
            Ok(recorded) if is_relevant(&recorded.kind) => return,
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

/// A notice from the future was created before the clock was set back.
fn is_due(notice: &Notice, now: i64) -> bool {
    notice.due_at <= now || notice.created_at > now
}

/// Returns the id of a first attempt's message: the random part of the
/// webhook's id, and the event.
fn message_id(row: &WebhookRow, first: &Notice) -> String {
    let random = row.id.get(row.id.len().saturating_sub(10)..);
    format!("msg_{}_{}", random.unwrap_or(&row.id), first.event)
}
