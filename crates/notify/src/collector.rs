//! Turns audit entries into notices for the webhooks that want them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use weighlock_screen::safe_text;
use weighlock_store::{
    ClosedApproval, Error, Notice, Recorded, Risk, State, Store, WebhookRow, id,
};

use crate::directory::{Directory, Recipient};
use crate::message::safe_excerpt;
use crate::registry::WebhookRegistry;
use crate::settings::{Topic, WebhookSettings, owner_of, settings_of};

/// Entries that are read at a time.
const BATCH: usize = 1000;

/// Kinds of entries that can become notices; a final dot stands for all kinds
/// that begin so.
const KINDS: &[&str] = &["approval.", "run.ended", "principal.paused"];

/// How many entries without a notice may be read again after a crash. Storing
/// the position each time would cost every run a write.
const MAX_REREAD: u64 = 10_000;

/// Kinds of entries after which a question still waits.
const STILL_OPEN: &[&str] = &[
    "approval.asked",
    "approval.joined",
    "approval.extended",
    "approval.renewed",
    "approval.one_of_two",
];

/// Reads the audit and stores notices.
pub(crate) struct Collector {
    store: Arc<Store>,
    directory: Arc<dyn Directory>,
    /// The last entry that was read. The store may have an older position.
    seen: AtomicU64,
}

/// An active webhook, with what decides which entries it wants.
struct Subscription {
    row: WebhookRow,
    settings: WebhookSettings,
    recipient: Recipient,
}

/// Returns whether entries of a kind can become notices.
pub(crate) fn is_relevant(kind: &str) -> bool {
    KINDS.iter().any(|known| {
        if known.ends_with('.') {
            kind.starts_with(known)
        } else {
            kind == *known
        }
    })
}

impl Collector {
    pub(crate) fn new(store: Arc<Store>, directory: Arc<dyn Directory>) -> Self {
        Self {
            store,
            directory,
            seen: AtomicU64::new(0),
        }
    }

    /// Reads new entries and stores their notices.
    pub(crate) async fn collect(&self, registry: &WebhookRegistry) -> Result<(), Error> {
        loop {
            // Anew for each batch, since webhooks are added meanwhile.
            let subscriptions = self.subscriptions(&registry.cached())?;
            let Some(from) = subscriptions.iter().map(|one| one.row.since).min() else {
                return Ok(());
            };
            let from = from.max(self.seen.load(Ordering::Relaxed));
            let (entries, seen) = self.store.recorded_like(from, KINDS, BATCH)?;
            let (mut notices, mut closed) = (vec![], vec![]);
            for entry in &entries {
                match closed_approval(entry) {
                    Some(approval) => closed.push(approval),
                    None => notices.extend(self.notices(entry, &subscriptions)?),
                }
            }
            let is_empty = notices.is_empty() && closed.is_empty();
            if !is_empty || seen - from > MAX_REREAD {
                self.store.put_notices(notices, closed, seen).await?;
            }
            self.seen.fetch_max(seen, Ordering::Relaxed);
            if entries.len() < BATCH {
                return Ok(());
            }
        }
    }

    /// Stores a notice of a damaged audit for administrators, once per fault.
    /// Returns whether there was anybody to notify.
    pub(crate) async fn add_fault(
        &self,
        webhooks: &[WebhookRow],
        seq: u64,
        what: &str,
        now: i64,
    ) -> Result<bool, Error> {
        let subscriptions = self.subscriptions(webhooks)?.into_iter();
        let notices: Vec<_> = subscriptions
            .filter(|one| {
                one.recipient.is_administrator || one.settings.topics.contains(&Topic::Audit)
            })
            .map(|one| fault_notice(one.row.id, seq, what, now))
            .collect();
        if notices.is_empty() {
            return Ok(false);
        }
        // No entry was read for this, so the position stays.
        self.store.put_notices(notices, vec![], 0).await?;
        Ok(true)
    }

    fn subscriptions(&self, webhooks: &[WebhookRow]) -> Result<Vec<Subscription>, Error> {
        let mut subscriptions = vec![];
        for row in webhooks.iter().filter(|row| row.active) {
            if let Some(recipient) = self.directory.recipient(owner_of(row))? {
                subscriptions.push(Subscription {
                    settings: settings_of(row),
                    row: row.clone(),
                    recipient,
                });
            }
        }
        Ok(subscriptions)
    }

    fn notices(
        &self,
        entry: &Recorded,
        subscriptions: &[Subscription],
    ) -> Result<Vec<Notice>, Error> {
        let mut notices = vec![];
        for one in subscriptions.iter().filter(|one| one.row.since < entry.seq) {
            if let Some((topic, body)) = self.describe(entry, &one.settings)?
                && one.wants(topic, entry)
            {
                notices.push(one.notice(topic, entry, body));
            }
        }
        Ok(notices)
    }

    /// Returns the topic of an entry, and the text and data of its message.
    fn describe(
        &self,
        entry: &Recorded,
        settings: &WebhookSettings,
    ) -> Result<Option<(Topic, Value)>, Error> {
        Ok(match entry.kind.as_str() {
            // The message is composed from the approval when it is sent.
            "approval.asked" => Some((Topic::Waiting, json!({}))),
            "run.ended" => self.describe_end(entry, settings)?,
            "principal.paused" => Some((Topic::Paused, describe_pause(entry))),
            _ => None,
        })
    }

    fn describe_end(
        &self,
        entry: &Recorded,
        settings: &WebhookSettings,
    ) -> Result<Option<(Topic, Value)>, Error> {
        let (Some((topic, state)), Some(run)) = (topic_of_end(entry, settings), &entry.run) else {
            return Ok(None);
        };
        let found = self.store.named(run)?.pop();
        let command = found.map_or_else(String::new, |run| safe_excerpt(&run.command).0);
        let agent = safe_text(entry.owner.as_deref().unwrap_or_default());
        let sandbox = { entry.sandbox.as_deref() }.map(|id| self.directory.sandbox_name(id));
        let sandbox = safe_text(&sandbox.unwrap_or_default());
        let code = entry.detail["exit_code"].as_i64();
        let state = state.word().replace('_', " ");
        let line = match code {
            Some(code) => format!("in {sandbox}: {state}, exit code {code}"),
            None => format!("in {sandbox}: {state}"),
        };
        let title = match topic {
            Topic::Failed => format!("A run of {agent} has failed"),
            _ => format!("A long run of {agent} has ended"),
        };
        Ok(Some((
            topic,
            json!({
                "title": title, "line": line, "command": command, "path": format!("/runs/{run}"),
                "data": { "command_id": run, "short_id": id::short(run), "agent": agent,
                          "sandbox": sandbox, "state": entry.detail["state"], "exit_code": code,
                          "seconds": duration_millis(entry) / 1000.0, "command": command },
            }),
        )))
    }
}

impl Subscription {
    fn wants(&self, topic: Topic, entry: &Recorded) -> bool {
        let sandbox = entry.sandbox.as_deref();
        let covers_sandbox = match &self.settings.sandboxes {
            Some(listed) => sandbox.is_none_or(|id| listed.iter().any(|one| one == id)),
            None => true,
        };
        let visible = &self.recipient.visible;
        self.settings.topics.contains(&topic)
            && covers_sandbox
            && visible.includes(entry.owner.as_deref(), sandbox)
    }

    fn notice(&self, topic: Topic, entry: &Recorded, body: Value) -> Notice {
        let approval = entry.detail["approval"].as_str().unwrap_or_default();
        let is_high_risk = entry.detail["risk"] == json!(Risk::High);
        let delay = match topic {
            Topic::Waiting if is_high_risk && self.settings.high_risk_at_once => 0,
            Topic::Waiting => i64::from(self.settings.delay_seconds) * 1_000_000,
            _ => 0,
        };
        Notice {
            webhook: self.row.id.clone(),
            event: event_of(entry),
            kind: topic.word().into(),
            subject: approval.to_owned(),
            agent: entry.owner.clone().unwrap_or_default(),
            message: None,
            created_at: entry.time,
            due_at: entry.time.saturating_add(delay),
            tried_at: None,
            body,
        }
    }
}

/// Returns the topic and state of a run's end, if anybody may want to know.
fn topic_of_end(entry: &Recorded, settings: &WebhookSettings) -> Option<(Topic, State)> {
    let is_long = duration_millis(entry) >= f64::from(settings.long_minutes) * 60_000.0;
    let state = serde_json::from_value(entry.detail["state"].clone()).ok()?;
    match state {
        State::Failed | State::TimedOut | State::Killed | State::Lost => {
            Some((Topic::Failed, state))
        }
        State::Succeeded if is_long => Some((Topic::Finished, state)),
        _ => None,
    }
}

fn duration_millis(entry: &Recorded) -> f64 {
    entry.detail["duration_ms"].as_f64().unwrap_or_default()
}

/// Returns the approval that an entry closes.
fn closed_approval(entry: &Recorded) -> Option<ClosedApproval> {
    let kind = entry.kind.as_str();
    let is_closed = kind.starts_with("approval.") && !STILL_OPEN.contains(&kind);
    let approval = entry.detail["approval"].as_str().filter(|_| is_closed)?;
    Some(ClosedApproval {
        event: event_of(entry),
        approval: approval.to_owned(),
        at: entry.time,
        body: json!({}),
    })
}

/// Returns the name of an entry's notice. Names sort like the entries.
fn event_of(entry: &Recorded) -> String {
    format!("{:020}", entry.seq)
}

fn describe_pause(entry: &Recorded) -> Value {
    let paused = entry.detail["principal"].as_str().map(safe_text);
    let by = safe_text(&entry.actor);
    let reason = entry.detail["reason"].as_str().map(safe_text);
    let name = paused.as_deref().unwrap_or("Everything");
    json!({
        "title": format!("{name} is paused"),
        "line": match &reason {
            Some(reason) => format!("by {by}: {reason}"),
            None => format!("by {by}"),
        },
        "path": "/people",
        "data": { "agent": paused, "by": by, "reason": reason },
    })
}

fn fault_notice(webhook: String, seq: u64, what: &str, now: i64) -> Notice {
    let what = safe_text(what);
    Notice {
        webhook,
        event: format!("audit-{seq}"),
        kind: Topic::Audit.word().into(),
        subject: String::new(),
        agent: String::new(),
        message: None,
        created_at: now,
        due_at: now,
        tried_at: None,
        body: json!({
            "title": "The audit was changed", "line": format!("entry {seq}: {what}"),
            "path": "/settings/health", "urgent": true,
            "data": { "entry": seq, "what": what },
        }),
    }
}
