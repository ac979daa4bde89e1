//! Questions that nobody answers end: default is no.
//!
//! Time runs by the monotonic clock, so that a wall clock that jumps neither
//! ends a question early nor keeps it for ever. Only after a restart, what is
//! left is worked out from the wall clock.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use weighlock_store::{Approval, ApprovalState, Command, State};

use super::Questions;
use crate::error::Error;
use crate::mutex::lock;
use crate::view::{Reason, explained};

/// How long the clock waits after the store could not take an end.
const AGAIN: Duration = Duration::from_secs(1);

/// How many questions end at once, should so many be over: they are recorded
/// together.
const TOGETHER: usize = 64;

/// When each question ends.
#[derive(Default)]
pub(crate) struct Deadlines {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    by_time: BTreeSet<(Instant, String)>,
    by_id: HashMap<String, Instant>,
}

impl Deadlines {
    pub(crate) fn set(&self, id: &str, left: Duration) {
        let at = Instant::now() + left;
        let mut inner = lock(&self.inner);
        if let Some(before) = inner.by_id.insert(id.to_owned(), at) {
            inner.by_time.remove(&(before, id.to_owned()));
        }
        inner.by_time.insert((at, id.to_owned()));
        drop(inner);
        self.changed.notify_one();
    }

    pub(crate) fn clear(&self, id: &str) {
        let mut inner = lock(&self.inner);
        if let Some(at) = inner.by_id.remove(id) {
            inner.by_time.remove(&(at, id.to_owned()));
        }
    }

    /// Adds to the time that is left, if there is any, and returns what is left
    /// then.
    pub(crate) fn prolong(&self, id: &str, more: Duration) -> Option<Duration> {
        let mut inner = lock(&self.inner);
        let before = *inner.by_id.get(id)?;
        let left = before.checked_duration_since(Instant::now())? + more;
        inner.by_time.remove(&(before, id.to_owned()));
        inner.by_id.insert(id.to_owned(), before + more);
        inner.by_time.insert((before + more, id.to_owned()));
        drop(inner);
        self.changed.notify_one();
        Some(left)
    }

    /// Takes questions whose time is up; nobody gives them more any more.
    fn take(&self) -> Vec<String> {
        let (now, mut inner) = (Instant::now(), lock(&self.inner));
        let over = inner.by_time.iter().take_while(|(at, _)| *at <= now);
        let over: Vec<_> = over.take(TOGETHER).cloned().collect();
        for one in &over {
            inner.by_time.remove(one);
            inner.by_id.remove(&one.1);
        }
        over.into_iter().map(|(_, id)| id).collect()
    }

    /// Returns how much time is left of a question.
    pub(crate) fn left(&self, id: &str) -> Option<Duration> {
        let inner = lock(&self.inner);
        let at = inner.by_id.get(id)?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// Returns whether a question's time is up.
    pub(crate) fn is_over(&self, id: &str) -> bool {
        let inner = lock(&self.inner);
        inner.by_id.get(id).is_some_and(|at| *at <= Instant::now())
    }

    fn next(&self) -> Option<(Instant, String)> {
        lock(&self.inner).by_time.first().cloned()
    }
}

impl Questions {
    /// Begins to count the time in which a question must be answered.
    pub(crate) fn set_deadline(&self, id: &str) {
        self.deadlines.set(id, self.limits.answer_time());
    }

    /// Stops counting the time of a question.
    pub(crate) fn clear_deadline(&self, id: &str) {
        self.deadlines.clear(id);
    }

    /// Adds to the time that is left, if there is any, and returns what is left
    /// then.
    pub(crate) fn prolong(&self, id: &str, more: Duration) -> Option<Duration> {
        self.deadlines.prolong(id, more)
    }

    /// Returns whether a question's time is up.
    pub(crate) fn is_over(&self, id: &str) -> bool {
        self.deadlines.is_over(id)
    }

    /// Takes over the questions of an earlier server.
    pub(crate) fn read_deadlines(&self) -> Result<(), Error> {
        let now = self.core.clock.micros();
        for (id, created_at, expires_at) in self.core.store.approvals().deadlines()? {
            // Never more than was given, should the clock have been set back.
            let left = expires_at.saturating_sub(now.max(created_at));
            let left = Duration::from_micros(u64::try_from(left).unwrap_or(0));
            self.deadlines.set(&id, left);
        }
        Ok(())
    }

    /// Ends questions when their time is up, as long as the engine lives.
    pub(crate) fn watch_deadlines(self: &Arc<Self>) {
        let questions = Arc::downgrade(self);
        let changed = Arc::clone(&self.deadlines);
        tokio::spawn(async move {
            loop {
                let next = match questions.upgrade() {
                    Some(questions) => questions.deadlines.next(),
                    None => return,
                };
                let Some((at, _)) = next else {
                    changed.changed.notified().await;
                    continue;
                };
                tokio::select! {
                    () = tokio::time::sleep_until(at.into()) => {}
                    () = changed.changed.notified() => continue,
                }
                let Some(questions) = questions.upgrade() else {
                    return;
                };
                if !questions.expire_all().await {
                    tokio::time::sleep(AGAIN).await;
                }
            }
        });
    }

    /// Ends the questions whose time is up; false when that cannot be recorded
    /// yet.
    async fn expire_all(self: &Arc<Self>) -> bool {
        let mut ending = JoinSet::new();
        for id in self.deadlines.take() {
            let questions = Arc::clone(self);
            ending.spawn(async move { (questions.expire(&id).await, id) });
        }
        let mut recorded = true;
        for (expired, id) in ending.join_all().await {
            if let Err(error) = expired {
                tracing::error!(id, %error, "cannot record that a question has expired yet");
                self.deadlines.set(&id, Duration::ZERO);
                recorded = false;
            }
        }
        recorded
    }

    /// Ends a question that nobody answered.
    pub(crate) async fn expire(&self, id: &str) -> Result<(), Error> {
        let time = in_words(self.limits.answer_time());
        let about_changes = self.core.store.approvals().named(id)?;
        let text = match about_changes.iter().any(super::is_about_changes) {
            true => format!(
                "Nobody answered within {time}. This is not a refusal. Nothing was applied; the \
                 changes are kept for {} days, and a person can still apply them.",
                self.limits.draft_age().as_secs() / (24 * 3600)
            ),
            false => format!(
                "Nobody answered within {time}. This is not a refusal. Nothing was run. \
                 Ask again when a person is available, or use a command that needs no approval."
            ),
        };
        let reason = Reason::new("expired", text);
        self.close_question(id, ApprovalState::Expired, "clock", reason)
            .await
    }

    /// Ends a question, and the commands that wait for it, without an answer.
    pub(crate) async fn close_question(
        &self,
        id: &str,
        state: ApprovalState,
        by: &str,
        reason: Reason,
    ) -> Result<(), Error> {
        let now = self.core.clock.micros();
        let text = reason.text.clone();
        let detail = move |command: &Command| explained(command, reason.clone());
        let kinds = match state {
            ApprovalState::Expired => ("approval.expired", "run.expired"),
            ApprovalState::Blocked => ("approval.blocked", "run.blocked"),
            ApprovalState::Rejected => ("approval.rejected", "run.rejected"),
            _ => ("approval.withdrawn", "run.withdrawn"),
        };
        let (template, actor) = (self.core.entry("", by, None, json!({})), by.to_owned());
        let entries = move |approval: &Approval, commands: &[Command]| {
            let told = json!({ "approval": approval.id, "reason": text });
            let one = |kind, run: Option<String>| weighlock_store::Entry {
                kind,
                actor: actor.clone(),
                run,
                owner: Some(approval.requested_by.clone()),
                sandbox: Some(approval.sandbox.clone()),
                detail: told.clone(),
                ..template.clone()
            };
            let runs = commands
                .iter()
                .map(|command| one(kinds.1, Some(command.id.clone())));
            std::iter::once(one(kinds.0, None)).chain(runs).collect()
        };
        let closed = self
            .core
            .store
            .approvals()
            .close(id.to_owned(), state, by.to_owned(), now, detail, entries)
            .await?;
        self.deadlines.clear(id);
        for command in closed.into_iter().flat_map(|(_, commands)| commands) {
            debug_assert_ne!(command.state, State::Waiting);
            self.waiters.tell(&command.id);
        }
        Ok(())
    }
}

/// How long people had, as they would say it.
fn in_words(time: Duration) -> String {
    let (count, unit) = match time.as_secs() {
        seconds @ 0..60 => (seconds.max(1), "second"),
        seconds => (seconds.div_ceil(60), "minute"),
    };
    match count {
        1 => format!("1 {unit}"),
        _ => format!("{count} {unit}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_as_people_would() {
        let said = [0, 1, 45, 60, 61, 300].map(|seconds| in_words(Duration::from_secs(seconds)));
        let expected = [
            "1 second",
            "1 second",
            "45 seconds",
            "1 minute",
            "2 minutes",
            "5 minutes",
        ];
        assert_eq!(said, expected);
    }
}
