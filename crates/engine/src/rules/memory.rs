//! Giving back the memory that judging long texts has taken.

use std::time::Duration;

use tokio::sync::Notify;

use super::Rules;

/// Texts from this length on may take megabytes to judge.
const LONG: usize = 4096;

/// Others may come together with one that was judged, and its answer is still
/// to be sent.
const SOON: Duration = Duration::from_millis(500);

/// Says that memory can be given back.
#[derive(Debug, Default)]
pub(super) struct Freed(Notify);

impl Freed {
    /// Notes that a text was judged.
    pub(super) fn judged(&self, text: &str) {
        if text.len() >= LONG {
            self.0.notify_one();
        }
    }
}

impl Rules {
    /// Gives memory back after long texts were judged, for as long as it is
    /// polled.
    pub async fn release_memory(&self) {
        loop {
            self.freed.0.notified().await;
            tokio::time::sleep(SOON).await;
            let released = tokio::task::spawn_blocking(weighlock_confine::release_memory);
            released.await.expect("releasing memory does not panic");
        }
    }
}
