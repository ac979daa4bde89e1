//! Results of delivery attempts, and when to retry.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use weighlock_store::{DeliveryStatus, WebhookRow};

use crate::error::shortened;

/// The longest delay between two attempts: a person who repairs a receiver sees
/// soon that it works.
const MAX_DELAY: Duration = Duration::from_secs(600);

/// After this many failures the doubled delay is past [`MAX_DELAY`] whatever the
/// first was; doubling further would overflow.
const MAX_DOUBLINGS: u32 = 16;

/// The result of one attempt to deliver a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// The receiver accepted it.
    Accepted,
    /// The receiver answered 410: it will never accept anything again.
    Gone,
    /// It did not arrive, or the receiver refused it.
    Failed {
        /// Why, in a few words.
        reason: String,
        /// The delay that the receiver asks for.
        retry_after: Option<Duration>,
    },
}

/// Counts attempts by result.
#[derive(Debug, Default)]
pub(crate) struct AttemptCounts {
    accepted: AtomicU64,
    gone: AtomicU64,
    failed: AtomicU64,
}

impl AttemptCounts {
    pub(crate) fn add(&self, attempt: &Attempt) {
        let counter = match attempt {
            Attempt::Accepted => &self.accepted,
            Attempt::Gone => &self.gone,
            Attempt::Failed { .. } => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns each result's label in the metrics with its count.
    pub(crate) fn labelled(&self) -> [(&'static str, u64); 3] {
        [
            ("failed", self.failed.load(Ordering::Relaxed)),
            ("gone", self.gone.load(Ordering::Relaxed)),
            ("taken", self.accepted.load(Ordering::Relaxed)),
        ]
    }
}

/// Returns the status of a webhook after a failed attempt: the delay doubles
/// with each failure in a row.
pub(crate) fn status_after_failure(
    before: &DeliveryStatus,
    reason: &str,
    retry_after: Option<Duration>,
    first_delay: Duration,
    now: i64,
) -> DeliveryStatus {
    let doubled = first_delay.saturating_mul(1 << before.failures.min(MAX_DOUBLINGS));
    let delay = retry_after.unwrap_or_default().max(doubled).min(MAX_DELAY);
    let delay = delay.mul_f64(jitter());
    DeliveryStatus {
        failures: before.failures.saturating_add(1),
        retry_at: now.saturating_add(delay.as_micros() as i64),
        told_at: None,
        trouble: Some(shortened(reason)),
    }
}

/// Returns whether a webhook may get a message now.
pub(crate) fn is_ready(row: &WebhookRow, now: i64) -> bool {
    let wait = row.status.retry_at.saturating_sub(now);
    // A longer wait than there can be means that the clock was set back.
    row.active && (wait <= 0 || wait > 2 * MAX_DELAY.as_micros() as i64)
}

/// Returns a factor of 0.8 to 1.2, so that many webhooks do not retry at once.
fn jitter() -> f64 {
    let mut random = [0; 2];
    getrandom::fill(&mut random).expect("the kernel has randomness");
    0.8 + 0.4 * f64::from(u16::from_le_bytes(random)) / f64::from(u16::MAX)
}
