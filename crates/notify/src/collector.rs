//! From what is on record to what is to be told.

use serde_json::{Value, json};
use weighlock_screen::safe_text;
use weighlock_store::{Closing, Notice, Recorded, Risk, State, WAITING, WebhookRow};

use super::message::cut;
use super::{Topic, WebhookSettings, settings_of};
use crate::engine::Engine;
use crate::error::Error;
use crate::id;
use crate::principal::Principal;

/// Entries that are looked at in one go.
const BATCH: usize = 1000;

/// What anybody can be told of, as kinds of entries.
const KINDS: &[&str] = &["approval.", "run.ended", "principal.paused"];

/// How many entries without anything to tell are looked at again after a
/// crash, at the most. Writing down each time that there was nothing would
/// cost every run a write.
const UNWRITTEN: u64 = 10_000;

/// A webhook with what it takes to know what it is told of.
struct Ear {
    row: WebhookRow,
    settings: WebhookSettings,
    who: Principal,
}

/// Whether an entry may be something to tell.
pub(super) fn concerns(kind: &str) -> bool {
    { KINDS.iter() }.any(|known| match known.strip_suffix('.') {
        Some(_) => kind.starts_with(known),
        None => kind == *known,
    })
}

impl Engine {
    /// Looks at what is on record and was not looked at yet, and puts what is
    /// to be told into the outbox.
    pub(super) async fn take_in(&self) -> Result<(), Error> {
        loop {
            let ears = self.ears()?;
            let Some(from) = ears.iter().map(|ear| ear.row.since).min() else {
                return Ok(());
            };
            let from = from.max(self.outbox.seen());
            let (entries, seen) = self.store.recorded_like(from, KINDS, BATCH)?;
            let (mut notices, mut closings) = (vec![], vec![]);
            for entry in &entries {
                match closing(entry) {
                    Some(closing) => closings.push(closing),
                    None => notices.extend(self.notices(entry, &ears)?),
                }
            }
            let nothing = notices.is_empty() && closings.is_empty();
            if !nothing || seen - from > UNWRITTEN {
                self.store.put_notices(notices, closings, seen).await?;
            }
            self.outbox.set_seen(seen);
            if entries.len() < BATCH {
                return Ok(());
            }
        }
    }

    fn ears(&self) -> Result<Vec<Ear>, Error> {
        let mut ears = vec![];
        for row in self.outbox.webhooks() {
            if row.active
                && let Some(who) = self.told(&row)?
            {
                let settings = settings_of(&row);
                ears.push(Ear { row, settings, who });
            }
        }
        Ok(ears)
    }

    fn notices(&self, entry: &Recorded, ears: &[Ear]) -> Result<Vec<Notice>, Error> {
        let mut notices = vec![];
        for ear in ears.iter().filter(|ear| ear.row.since < entry.seq) {
            if let Some((topic, body)) = self.words(entry, ear)?
                && ear.hears(topic, entry)
            {
                notices.push(ear.notice(topic, entry, body));
            }
        }
        Ok(notices)
    }

    /// Returns what an entry is about, and what is kept of it until it is told.
    fn words(&self, entry: &Recorded, ear: &Ear) -> Result<Option<(Topic, Value)>, Error> {
        Ok(match entry.kind.as_str() {
            "approval.asked" => Some((Topic::Waiting, json!({}))),
            "run.ended" => self.ending(entry, ear)?,
            "principal.paused" => Some((Topic::Paused, paused(entry))),
            _ => None,
        })
    }

    fn ending(&self, entry: &Recorded, ear: &Ear) -> Result<Option<(Topic, Value)>, Error> {
        let state = serde_json::from_value(entry.detail["state"].clone()).ok();
        let millis = entry.detail["duration_ms"].as_f64().unwrap_or_default();
        let long = millis >= f64::from(ear.settings.long_minutes) * 60_000.0;
        let topic = match state {
            Some(State::Failed | State::TimedOut | State::Killed | State::Lost) => Topic::Failed,
            Some(State::Succeeded) if long => Topic::Finished,
            _ => return Ok(None),
        };
        let Some(run) = &entry.run else {
            return Ok(None);
        };
        let found = self.store.named(run)?.pop();
        let command = found.map_or_else(String::new, |run| cut(&run.command).0);
        let agent = safe_text(entry.owner.as_deref().unwrap_or_default());
        let sandbox = entry.sandbox.as_deref().map(|id| self.sandbox_name(id));
        let sandbox = safe_text(&sandbox.unwrap_or_default());
        let state = state.map_or("", State::word).replace('_', " ");
        let code = entry.detail["exit_code"].as_i64();
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
                          "seconds": millis / 1000.0, "command": command },
            }),
        )))
    }

    /// Tells administrators that the audit was changed: once of each fault.
    pub(crate) async fn tell_fault(&self, seq: u64, what: &str) -> Result<(), Error> {
        let now = self.clock.micros();
        let what = safe_text(what);
        let notices = self.ears()?.into_iter().filter(|ear| {
            ear.who.is_administrator() || ear.settings.topics.contains(&Topic::Audit)
        });
        let notices: Vec<_> = notices
            .map(|ear| Notice {
                webhook: ear.row.id,
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
            })
            .collect();
        if !notices.is_empty() {
            // Nothing new of the record was looked at.
            self.store.put_notices(notices, vec![], 0).await?;
            self.outbox.changed.notify_one();
        }
        Ok(())
    }
}

impl Ear {
    fn hears(&self, topic: Topic, entry: &Recorded) -> bool {
        let wanted = self.settings.topics.contains(&topic);
        let sandbox = entry.sandbox.as_deref();
        let here = match &self.settings.sandboxes {
            Some(listed) => sandbox.is_none_or(|id| listed.iter().any(|one| one == id)),
            None => true,
        };
        let seen = match &entry.owner {
            Some(owner) => self.who.sees(owner, sandbox),
            None => self.who.is_everywhere(),
        };
        wanted && here && seen
    }

    fn notice(&self, topic: Topic, entry: &Recorded, body: Value) -> Notice {
        let approval = entry.detail["approval"].as_str().unwrap_or_default();
        let high = entry.detail["risk"] == json!(Risk::High);
        let delay = match topic {
            Topic::Waiting if high && self.settings.high_risk_at_once => 0,
            Topic::Waiting => i64::from(self.settings.delay_seconds) * 1_000_000,
            _ => 0,
        };
        Notice {
            webhook: self.row.id.clone(),
            event: format!("{:020}", entry.seq),
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

impl Topic {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Waiting => WAITING,
            Self::Failed => "run.failed",
            Self::Finished => "run.finished",
            Self::Paused => "agent.paused",
            Self::Audit => "audit.failed",
        }
    }
}

/// Returns what an entry says about a question that waits no more.
fn closing(entry: &Recorded) -> Option<Closing> {
    const OPEN: &[&str] = &[
        "approval.asked",
        "approval.joined",
        "approval.extended",
        "approval.renewed",
        "approval.one_of_two",
    ];
    let over = entry.kind.starts_with("approval.") && !OPEN.contains(&entry.kind.as_str());
    let approval = entry.detail["approval"].as_str().filter(|_| over)?;
    Some(Closing {
        event: format!("{:020}", entry.seq),
        approval: approval.to_owned(),
        at: entry.time,
        body: json!({}),
    })
}

fn paused(entry: &Recorded) -> Value {
    let whom = entry.detail["principal"].as_str().map(safe_text);
    let by = safe_text(&entry.actor);
    let reason = entry.detail["reason"].as_str().map(safe_text);
    let who = whom.as_deref().unwrap_or("Everything");
    json!({
        "title": format!("{who} is paused"),
        "line": match &reason {
            Some(reason) => format!("by {by}: {reason}"),
            None => format!("by {by}"),
        },
        "path": "/people",
        "data": { "agent": whom, "by": by, "reason": reason },
    })
}
