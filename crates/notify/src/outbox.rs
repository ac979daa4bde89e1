//! What is to be told, and when. A door takes one parcel after the other,
//! delivers it, and says how that went.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use weighlock_store::{CLOSED, Fate, Notice, Recorded, WebhookRow};

use super::message::{self, Message};
use super::take_in::concerns;
use super::{Format, Secret, Topic, settings_of};
use crate::engine::Engine;
use crate::error::Error;
use crate::live::lock;
use crate::principal::Principal;

/// Notices that are looked at in one go.
const BATCH: usize = 256;

/// Nobody waits longer for a look at what is due: the clock may have jumped.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// How long to wait when the store cannot be read or written.
const AGAIN: Duration = Duration::from_secs(1);

/// What is known of the outbox in memory.
#[derive(Default)]
pub(crate) struct Outbox {
    /// The webhooks, as they are in the store.
    webhooks: Mutex<Vec<WebhookRow>>,
    /// Those that something is being delivered to.
    busy: Arc<Mutex<HashSet<String>>>,
    /// The entry of the audit up to which there was nothing new.
    seen: AtomicU64,
    /// Somebody should look what is due.
    pub(super) changed: Arc<Notify>,
}

/// One message on its way to one webhook. Nothing else is told there until it
/// is gone.
#[derive(Debug)]
pub struct Parcel {
    /// Which webhook.
    pub webhook: String,
    /// Where to.
    pub url: String,
    /// Signs it, or opens the receiver's door.
    pub secret: Secret,
    /// In which form.
    pub format: Format,
    /// It may go to addresses that only this machine or its network reaches.
    pub inside: bool,
    /// Names the message; the same when it is tried again.
    pub id: String,
    /// What is told.
    pub message: Message,
    pub(super) notices: Vec<Notice>,
    _busy: Busy,
}

/// Says as long as it lives that something is being delivered.
#[derive(Debug)]
struct Busy {
    webhook: String,
    all: Arc<Mutex<HashSet<String>>>,
    over: Arc<Notify>,
    /// Something is under way, and what waits behind it must be looked at.
    sends: bool,
}

impl Drop for Busy {
    fn drop(&mut self) {
        lock(&self.all).remove(&self.webhook);
        if self.sends {
            self.over.notify_one();
        }
    }
}

impl Outbox {
    pub(super) fn webhooks(&self) -> Vec<WebhookRow> {
        lock(&self.webhooks).clone()
    }

    pub(super) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    pub(super) fn set_seen(&self, seq: u64) {
        self.seen.fetch_max(seq, Ordering::Relaxed);
    }

    fn begin(&self, webhook: &str) -> Option<Busy> {
        lock(&self.busy).insert(webhook.to_owned()).then(|| Busy {
            webhook: webhook.to_owned(),
            all: Arc::clone(&self.busy),
            over: Arc::clone(&self.changed),
            sends: false,
        })
    }
}

impl Engine {
    pub(crate) fn read_webhooks(&self) -> Result<(), Error> {
        *lock(&self.outbox.webhooks) = self.store.webhooks()?;
        self.outbox.changed.notify_one();
        Ok(())
    }

    /// Waits for the next message that somebody is to be told. Links in it
    /// begin with `address`.
    pub async fn next_parcel(&self, address: &str) -> Parcel {
        // From before anything is read, so that nothing is missed.
        let mut events = self.store.events();
        loop {
            match self.look(address).await {
                Ok(Some(parcel)) => return parcel,
                Ok(None) => self.nothing_due(&mut events).await,
                Err(error) => {
                    tracing::error!(%error, "cannot look what is to be told yet");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    async fn look(&self, address: &str) -> Result<Option<Parcel>, Error> {
        if lock(&self.outbox.webhooks).is_empty() {
            return Ok(None);
        }
        self.take_in().await?;
        self.due(address).await
    }

    /// Waits until there may be something to tell.
    async fn nothing_due(&self, events: &mut Receiver<Arc<Recorded>>) {
        let now = self.clock.micros();
        let next = match lock(&self.outbox.webhooks).is_empty() {
            true => None,
            false => self.store.next_due(now).ok().flatten(),
        };
        let wait = next.map_or(LOOK_EVERY, |at| {
            Duration::from_micros((at - now).max(1000).cast_unsigned()).min(LOOK_EVERY)
        });
        let something = async {
            loop {
                match events.recv().await {
                    Ok(recorded) if concerns(&recorded.kind) => return,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return,
                    Err(RecvError::Closed) => return std::future::pending().await,
                }
            }
        };
        tokio::select! {
            () = something => {}
            () = self.outbox.changed.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }

    /// Returns the first message that is due, and notes that it is tried. Each
    /// webhook is looked at by itself: one that takes nothing is in nobody's
    /// way.
    async fn due(&self, address: &str) -> Result<Option<Parcel>, Error> {
        let now = self.clock.micros();
        for row in self.outbox.webhooks() {
            if !self.is_ready(&row, now) {
                continue;
            }
            let Some(mut busy) = self.outbox.begin(&row.id) else {
                continue;
            };
            let mut looked_at = HashSet::new();
            for notice in self.store.due_notices(&row.id, now, BATCH)? {
                // The others of a group were looked at with its first.
                if !looked_at.insert((notice.kind.clone(), notice.agent.clone())) {
                    continue;
                }
                match self.pack(&row, &notice, now, address).await? {
                    Some(packed) => {
                        busy.sends = true;
                        return Ok(Some(packed.to(row, busy)));
                    }
                    None => continue,
                }
            }
        }
        Ok(None)
    }

    /// Puts a notice and those that go with it into one message, unless this is
    /// not the time for it.
    async fn pack(
        &self,
        row: &WebhookRow,
        first: &Notice,
        now: i64,
        address: &str,
    ) -> Result<Option<Packed>, Error> {
        let group = self.group(first, now)?;
        let Some(who) = self.told(row)? else {
            self.store.settle_notices(group, Fate::Dropped).await?;
            return Ok(None);
        };
        if let Some(until) = self.not_before(first, row, now)? {
            self.store.put_off_notices(group, until).await?;
            return Ok(None);
        }
        let Some(message) = self.message(&group, address)? else {
            self.store.settle_notices(group, Fate::Dropped).await?;
            return Ok(None);
        };
        let id = { first.message.clone() }
            .unwrap_or_else(|| format!("msg_{}_{}", tail(&row.id), first.event));
        // Before it is sent: whoever may have it must hear when it is over.
        let notices = self.store.try_notices(group, id.clone(), now).await?;
        Ok((!notices.is_empty()).then_some(Packed {
            inside: who.is_administrator(),
            id,
            message,
            notices,
        }))
    }

    /// Returns what is told together: what was tried together before, or all
    /// that is due of the same kind and agent.
    fn group(&self, first: &Notice, now: i64) -> Result<Vec<Notice>, Error> {
        let mut like = self.store.notices_like(first)?;
        like.retain(|notice| match &first.message {
            Some(_) => notice.message == first.message,
            None => notice.message.is_none() && is_due(notice, now),
        });
        Ok(like)
    }

    /// Returns until when a notice must wait though it is due: nobody is told
    /// in quiet hours, or of one agent twice in a short time.
    fn not_before(&self, first: &Notice, row: &WebhookRow, now: i64) -> Result<Option<i64>, Error> {
        let settings = settings_of(row);
        let urgent = first.kind == Topic::Audit.word();
        if let Some(quiet) = settings.quiet.filter(|_| !urgent)
            && let Some(until) = quiet.until(now)
        {
            return Ok(Some(until));
        }
        if first.message.is_some() || first.kind == CLOSED || urgent {
            return Ok(None);
        }
        let every = self.config.notify.collapse.as_micros() as i64;
        let last = self.store.last_tried(first)?;
        // A clock that was set back is not waited for.
        let next = last.filter(|last| *last <= now).map(|last| last + every);
        Ok(next.filter(|next| *next > now))
    }

    /// Makes a message for somebody who wants to see whether it arrives.
    pub async fn test_parcel(
        &self,
        id: &str,
        address: &str,
        who: &Principal,
    ) -> Result<Parcel, Error> {
        let row = self.webhook(id, who).await?;
        let owner = self.told(&row)?.unwrap_or_else(|| who.clone());
        let now = self.clock.micros();
        let id = self.ids.next_as("msg_test", now);
        // Beside whatever is being delivered.
        let busy = Busy {
            webhook: String::new(),
            all: Arc::clone(&self.outbox.busy),
            over: Arc::clone(&self.outbox.changed),
            sends: false,
        };
        let packed = Packed {
            inside: owner.is_administrator(),
            id,
            message: message::test(now, address),
            notices: vec![],
        };
        Ok(packed.to(row, busy))
    }
}

/// A message, and what it tells of.
struct Packed {
    inside: bool,
    id: String,
    message: Message,
    notices: Vec<Notice>,
}

impl Packed {
    fn to(self, row: WebhookRow, busy: Busy) -> Parcel {
        Parcel {
            format: settings_of(&row).format,
            webhook: row.id,
            url: row.url,
            secret: Secret(row.secret),
            inside: self.inside,
            id: self.id,
            message: self.message,
            notices: self.notices,
            _busy: busy,
        }
    }
}

fn is_due(notice: &Notice, now: i64) -> bool {
    notice.due_at <= now || notice.created_at > now
}

/// The part of an id that is chance.
fn tail(id: &str) -> &str {
    id.get(id.len().saturating_sub(10)..).unwrap_or(id)
}
