//! Whose a connection is: a stranger's, until a request says who it is.
//!
//! Known connections are counted for whose they are ([`Shares`]). Strangers
//! have a few places of their own. When all are taken, the one that came first
//! goes, so that those who say nothing keep nobody out; but not before it had
//! the time to say who it is, so that those who come and come keep nobody out
//! either.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use weighlock_engine::{NoPlace, Place, Principal, Shares, Via};

use crate::auth::lock;

/// How long a stranger stays in any case: more than a program takes that sends
/// its request at once.
const STAY: Duration = Duration::from_millis(100);

/// The places of strangers.
pub(crate) struct Lobby {
    most: usize,
    inside: Mutex<VecDeque<Arc<Stranger>>>,
}

/// A connection that has not authenticated yet.
struct Stranger {
    since: Instant,
    leave: Notify,
}

/// Somebody's connection.
pub(crate) struct CountedConnection {
    shares: Arc<Shares>,
    place: Mutex<Option<Place>>,
    stranger: Option<(Arc<Lobby>, Arc<Stranger>)>,
}

impl Lobby {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            inside: Mutex::default(),
        })
    }

    /// Admits a new connection, and closes the oldest unauthenticated one if
    /// there are too many. If that one is too young, returns the time to wait.
    pub(crate) fn enter(
        self: &Arc<Self>,
        shares: &Arc<Shares>,
    ) -> Result<CountedConnection, Duration> {
        let mut inside = lock(&self.inside);
        if inside.len() >= self.most
            && let Some(first) = inside.front()
        {
            let stays = STAY.saturating_sub(first.since.elapsed());
            if !stays.is_zero() {
                return Err(stays);
            }
            first.leave.notify_one();
            inside.pop_front();
        }
        let stranger = Arc::new(Stranger {
            since: Instant::now(),
            leave: Notify::new(),
        });
        inside.push_back(Arc::clone(&stranger));
        Ok(CountedConnection {
            shares: Arc::clone(shares),
            place: Mutex::default(),
            stranger: Some((Arc::clone(self), stranger)),
        })
    }

    fn forget(&self, stranger: &Arc<Stranger>) {
        lock(&self.inside).retain(|other| !Arc::ptr_eq(other, stranger));
    }
}

impl CountedConnection {
    /// A connection that is no stranger's: the kernel says who it is.
    pub(crate) fn of_user(shares: &Arc<Shares>) -> Self {
        Self {
            shares: Arc::clone(shares),
            place: Mutex::default(),
            stranger: None,
        }
    }

    /// Counts the connection for the principal who made a request on it.
    /// Connections over the socket are counted by the user's number already.
    pub(crate) fn is_of(&self, who: &Principal) -> Result<(), NoPlace> {
        if matches!(who.via(), Via::Socket { .. }) {
            return Ok(());
        }
        let mut place = lock(&self.place);
        if place.as_ref().is_none_or(|place| place.who() != who.name()) {
            *place = Some(self.shares.take(who)?);
        }
        if let Some((lobby, stranger)) = &self.stranger {
            lobby.forget(stranger);
        }
        Ok(())
    }

    /// Waits until it has to make room for another stranger.
    pub(crate) async fn must_leave(&self) {
        match &self.stranger {
            Some((_, stranger)) => stranger.leave.notified().await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        if let Some((lobby, stranger)) = &self.stranger {
            lobby.forget(stranger);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn strangers_make_room_for_each_other() {
        let (lobby, shares) = (Lobby::new(2), Shares::new("connections", 8));
        let first = lobby.enter(&shares).ok().unwrap();
        let second = lobby.enter(&shares).ok().unwrap();
        let wait = lobby.enter(&shares).err().unwrap();
        assert!(wait <= STAY);
        tokio::time::sleep(STAY).await;
        // Who is known by now keeps no stranger's place.
        let who = Principal::library("ana");
        first.is_of(&who).unwrap();
        let third = lobby.enter(&shares).ok().unwrap();
        let _fourth = lobby.enter(&shares).ok().unwrap();
        second.must_leave().await;
        drop(third);
        assert_eq!(lock(&lobby.inside).len(), 1);
        drop(first);
        assert!(lobby.enter(&shares).is_ok());
    }

    #[test]
    fn a_connection_is_counted_once_for_whose_it_is() {
        let shares = Shares::new("connections", 4);
        let visits: Vec<CountedConnection> = (0..3)
            .map(|_| CountedConnection::of_user(&shares))
            .collect();
        let (ana, ben) = (Principal::library("ana"), Principal::library("ben"));
        visits[0].is_of(&ana).unwrap();
        visits[0].is_of(&ana).unwrap();
        visits[1].is_of(&ana).unwrap();
        assert!(visits[2].is_of(&ana).is_err());
        visits[2].is_of(&ben).unwrap();
        // It changes hands.
        visits[1].is_of(&ben).unwrap_err();
        drop(visits);
        assert!((0..2).all(|_| CountedConnection::of_user(&shares).is_of(&ana).is_ok()));
    }
}
