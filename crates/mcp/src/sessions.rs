//! The sessions of clients over HTTP: whose each is, and whether they are there.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;

/// Sessions of one principal at once, at the most: each keeps answers.
const OF_ONE: usize = 64;

/// Messages of one principal under way at once, at the most: fewer than an
/// agent's share of the connections over TCP, so that it can still ask for
/// something else.
const CALLS_OF_ONE: usize = 96;

/// All that there are, by their ids; and how much each principal has under way.
#[derive(Default)]
pub(crate) struct SessionTable {
    all: Mutex<HashMap<String, Session>>,
    calls: Arc<Mutex<HashMap<String, usize>>>,
}

struct Session {
    /// Nobody else is let into it.
    owner: String,
    presence: Presence,
    seen: Instant,
}

/// How many connections a client has.
#[derive(Debug, Clone)]
pub(crate) struct Presence(Arc<watch::Sender<usize>>);

impl SessionTable {
    pub(crate) fn add(&self, id: &str, owner: &str) {
        let session = Session {
            owner: owner.to_owned(),
            presence: Presence(Arc::new(watch::Sender::new(0))),
            seen: Instant::now(),
        };
        self.all().insert(id.to_owned(), session);
    }

    /// Lets somebody into a session of theirs.
    pub(crate) fn enter(&self, id: &str, who: &str) -> Option<Presence> {
        let mut all = self.all();
        let session = all.get_mut(id).filter(|session| session.owner == who)?;
        session.seen = Instant::now();
        Some(session.presence.clone())
    }

    /// Takes one of somebody's places for a message, if there is one left.
    pub(crate) fn place(&self, who: &str) -> Option<CallSlot> {
        let mut calls = lock(&self.calls);
        let mine = calls.entry(who.to_owned()).or_default();
        if *mine >= CALLS_OF_ONE {
            return None;
        }
        *mine += 1;
        Some(CallSlot {
            who: who.to_owned(),
            calls: Arc::clone(&self.calls),
        })
    }

    /// Forgets those that are not there any more.
    pub(crate) fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.all().retain(|id, _| is_there(id));
    }

    /// Returns what has to go so that somebody can have one more: of all that
    /// nobody is connected to, what was silent for the longest. An error if
    /// there is none of that kind.
    pub(crate) fn room_for(&self, who: &str) -> Result<Option<String>, ()> {
        let all = self.all();
        let own = || all.iter().filter(|(_, session)| session.owner == who);
        if own().count() < OF_ONE {
            return Ok(None);
        }
        let idle = own().filter(|(_, session)| !session.presence.is_there());
        let oldest = idle.min_by_key(|(_, session)| session.seen);
        oldest.map(|(id, _)| Some(id.clone())).ok_or(())
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        lock(&self.all)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|lock| lock.into_inner())
}

/// The place of a message that is under way.
pub(crate) struct CallSlot {
    who: String,
    calls: Arc<Mutex<HashMap<String, usize>>>,
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        let mut calls = lock(&self.calls);
        if let Some(mine) = calls.get_mut(&self.who) {
            *mine -= 1;
            if *mine == 0 {
                calls.remove(&self.who);
            }
        }
    }
}

impl Presence {
    fn is_there(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// Waits until the client has a connection.
    pub(crate) async fn is_back(&self) {
        let mut open = self.0.subscribe();
        let _ = open.wait_for(|&open| open > 0).await;
    }

    /// Waits until it has none.
    pub(crate) async fn is_gone(&self) {
        let mut open = self.0.subscribe();
        let _ = open.wait_for(|&open| open == 0).await;
    }

    /// Counts a connection from now on.
    pub(crate) fn connect(self) -> Connection {
        self.0.send_modify(|open| *open += 1);
        Connection(self)
    }
}

/// One of a client's connections.
pub(crate) struct Connection(Presence);

/// Holds something until all of an answer was sent, or cannot be.
pub(crate) fn until_sent(body: Body, what: impl Send + Unpin + 'static) -> Body {
    Body::new(HoldingBody { body, _what: what })
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open -= 1);
    }
}

/// An answer that holds something.
struct HoldingBody<T> {
    body: Body,
    _what: T,
}

impl<T: Unpin> HttpBody for HoldingBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_its_owners() {
        let sessions = SessionTable::default();
        sessions.add("s", "ana");
        assert!(sessions.enter("s", "ana").is_some());
        assert!(sessions.enter("s", "ben").is_none());
        assert!(sessions.enter("t", "ana").is_none());
    }

    #[test]
    fn what_was_silent_for_the_longest_makes_room() {
        let sessions = SessionTable::default();
        let name = |number: usize| format!("s{number}");
        for number in 0..OF_ONE {
            assert_eq!(sessions.room_for("ana"), Ok(None));
            sessions.add(&name(number), "ana");
        }
        assert_eq!(sessions.room_for("ben"), Ok(None));
        assert_eq!(sessions.room_for("ana"), Ok(Some(name(0))));
        // Who is connected, or has just been there, keeps theirs.
        let presence = |number| sessions.enter(&name(number), "ana").expect("it is theirs");
        let first = presence(0).connect();
        assert_eq!(sessions.room_for("ana"), Ok(Some(name(1))));
        drop(first);
        assert_eq!(sessions.room_for("ana"), Ok(Some(name(1))));
        let all: Vec<Connection> = (0..OF_ONE).map(|one| presence(one).connect()).collect();
        assert_eq!(sessions.room_for("ana"), Err(()));
        drop(all);
        sessions.retain(|id| id == "s7");
        assert_eq!(sessions.room_for("ana"), Ok(None));
    }
}
