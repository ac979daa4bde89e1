//! Waiting for an answer.

use std::collections::HashMap;
use std::sync::Mutex;

use tokio::sync::watch;

use crate::mutex::lock;

/// Those who wait for something that has not begun. Nobody is here for a
/// command that nobody waits for.
#[derive(Default)]
pub(crate) struct Waiters(Mutex<HashMap<String, watch::Sender<()>>>);

/// One who waits. What is told after this was made is heard.
pub(crate) struct Waiter<'a> {
    all: &'a Waiters,
    id: String,
    told: watch::Receiver<()>,
}

impl Waiters {
    pub(crate) fn wait_for(&self, id: &str) -> Waiter<'_> {
        let mut waiting = lock(&self.0);
        let sender = waiting.entry(id.to_owned()).or_default();
        Waiter {
            all: self,
            id: id.to_owned(),
            told: sender.subscribe(),
        }
    }

    /// Tells those who wait to look again.
    pub(crate) fn tell(&self, id: &str) {
        if let Some(sender) = lock(&self.0).get(id) {
            sender.send_replace(());
        }
    }

    /// Returns whether anybody waits.
    pub(crate) fn any(&self, id: &str) -> bool {
        lock(&self.0).contains_key(id)
    }
}

impl Waiter<'_> {
    pub(crate) async fn told(&mut self) {
        let _ = self.told.changed().await;
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.all.0);
        // The last one to leave, ourselves, takes the place away.
        if { waiting.get(&self.id) }.is_some_and(|sender| sender.receiver_count() <= 1) {
            waiting.remove(&self.id);
        }
    }
}
