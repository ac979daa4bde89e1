//! Live events. Every event is an audit entry, so that a client that reconnects
//! gets what it missed, across restarts too.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
pub use weighlock_api::Event;
use weighlock_store::Recorded;

use crate::core::Core;
use crate::error::Error;
use crate::principal::{Principal, Right};
use crate::time;

/// A client that missed more events than this reloads everything.
const REPLAYED: u64 = 1000;

/// A reader of events.
pub struct Events {
    core: Arc<Core>,
    who: Principal,
    live: Receiver<Arc<Recorded>>,
    missed: VecDeque<Recorded>,
    last: u64,
    reset: bool,
}

/// Calls `hear` with every entry that comes, for as long as the listener lives;
/// where entries came too fast, with how many were missed.
pub(crate) fn hear<T: Send + Sync + 'static>(
    mut entries: Receiver<Arc<Recorded>>,
    listener: &Arc<T>,
    hear: impl Fn(&Arc<T>, Result<&Recorded, u64>) + Send + 'static,
) {
    let listener = Arc::downgrade(listener);
    tokio::spawn(async move {
        loop {
            let heard = entries.recv().await;
            let Some(listener) = listener.upgrade() else {
                return;
            };
            match heard {
                Ok(entry) => hear(&listener, Ok(&entry)),
                Err(RecvError::Lagged(missed)) => hear(&listener, Err(missed)),
                Err(RecvError::Closed) => return,
            }
        }
    });
}

impl Events {
    pub(crate) fn open(
        core: &Arc<Core>,
        after: Option<u64>,
        who: &Principal,
    ) -> Result<Self, Error> {
        // First, so that nothing falls between what was and what comes.
        let live = core.store.events();
        let newest = core.store.newest_seq()?;
        let after = after.unwrap_or(newest);
        let missed = newest.checked_sub(after);
        let is_near = missed.is_some_and(|missed| missed <= REPLAYED);
        let missed = if is_near {
            core.store.recorded_after(after, REPLAYED as usize)?
        } else {
            vec![]
        };
        Ok(Self {
            core: Arc::clone(core),
            who: who.clone(),
            live,
            missed: missed.into(),
            last: if is_near { after } else { newest },
            reset: !is_near,
        })
    }

    /// Waits for the next one; none when there will be no more.
    pub async fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.reset) {
            return Some(self.everything());
        }
        loop {
            let recorded = match self.missed.pop_front() {
                Some(recorded) => recorded,
                None => match self.live.recv().await {
                    Ok(recorded) => (*recorded).clone(),
                    Err(RecvError::Closed) => return None,
                    Err(RecvError::Lagged(_)) => {
                        self.last = self.core.store.newest_seq().unwrap_or(self.last);
                        return Some(self.everything());
                    }
                },
            };
            if recorded.seq <= self.last {
                continue;
            }
            self.last = recorded.seq;
            if let Some(event) = event(recorded, &self.who) {
                return Some(event);
            }
        }
    }

    fn everything(&self) -> Event {
        Event {
            id: self.last,
            event: "reset".into(),
            time: time(self.core.clock.micros()),
            kind: "reset".into(),
            actor: "weighlock".into(),
            command_id: None,
            approval_id: None,
            sandbox_id: None,
        }
    }
}

/// Returns the event that `who` gets for an entry, if any.
fn event(recorded: Recorded, who: &Principal) -> Option<Event> {
    let name = name_of(&recorded.kind)?;
    let seen = match &recorded.owner {
        Some(owner) => who.sees(owner, recorded.sandbox.as_deref()),
        // What is nobody's concerns everybody who may look.
        None if name.starts_with("principal.") => is_for(&recorded.detail, who),
        None => !who.is_agent(),
    };
    let approval = recorded.detail.get("approval").and_then(|id| id.as_str());
    seen.then(|| Event {
        id: recorded.seq,
        event: name.into(),
        time: time(recorded.time),
        approval_id: approval.map(str::to_owned),
        kind: recorded.kind,
        actor: recorded.actor,
        command_id: recorded.run,
        sandbox_id: recorded.sandbox,
    })
}

/// Whether a pause concerns somebody: it is of everybody, or theirs, or they
/// may know of everybody.
fn is_for(detail: &serde_json::Value, who: &Principal) -> bool {
    let whose = detail.get("principal").and_then(|name| name.as_str());
    whose.is_none_or(|name| name == who.name() || who.check(Right::Review).is_ok())
}

fn name_of(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "approval.asked" => "approval.created",
        "approval.joined" | "approval.extended" | "approval.renewed" | "approval.one_of_two" => {
            "approval.updated"
        }
        kind if kind.starts_with("approval.") => "approval.closed",
        "run.started" | "run.blocked" | "run.waiting" | "run.held" => "run.created",
        "run.refused" => return None,
        "changes.undo" => "run.created",
        kind if ["run.", "changes."].iter().any(|of| kind.starts_with(of)) => "run.updated",
        "terminal.opened" => "terminal.opened",
        "terminal.closed" => "terminal.closed",
        "terminal.taken" | "terminal.given_back" | "terminal.resized" => "terminal.updated",
        "principal.paused" => "principal.paused",
        "principal.resumed" => "principal.resumed",
        kind if ["rules.", "grant.", "blacklist."]
            .iter()
            .any(|of| kind.starts_with(of)) =>
        {
            "policy.changed"
        }
        _ => return None,
    })
}
