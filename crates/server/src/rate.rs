//! Limits how often a client may ask, and how fast it may guess tokens.
//!
//! Both hold over TCP only: a client on the Unix socket is the owner, and could
//! do worse than ask.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// What is counted of those who come over TCP.
#[derive(Default)]
pub(crate) struct TcpLimits {
    pub(crate) rate: Rate,
    pub(crate) guesses: Guesses,
}

/// Requests that may come at once: a crowd of agents that all look at their
/// runs in the same second after a restart.
const BURST: u32 = 2000;

/// The time in which one more request is earned: 1,000 in a second. No use of
/// this comes near it, a loop without a pause does, and this leaves most of a
/// core to others.
const REFILL: Duration = Duration::from_millis(1);

/// The time in which an empty bucket becomes full.
const DEPTH: Duration = REFILL.saturating_mul(BURST);

/// A bucket of requests for each name.
#[derive(Default)]
pub(crate) struct Rate(Mutex<Buckets>);

#[derive(Default)]
struct Buckets {
    /// When each bucket will be full again, which is all there is to know of
    /// it. A name that is not here has a full one.
    full_at: HashMap<String, Instant>,
    /// When those that are full were last forgotten.
    swept: Option<Instant>,
}

impl Rate {
    /// Takes one request out of somebody's bucket, or tells after which time
    /// there will be one.
    pub(crate) fn take(&self, who: &str, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.0.lock().unwrap_or_else(|lock| lock.into_inner());
        buckets.forget_full(now);
        let before = buckets.full_at.get(who).map_or(now, |&at| at.max(now));
        let after = before + REFILL;
        let missing = after.saturating_duration_since(now + DEPTH);
        if !missing.is_zero() {
            return Err(missing);
        }
        match buckets.full_at.get_mut(who) {
            Some(at) => *at = after,
            None => drop(buckets.full_at.insert(who.to_owned(), after)),
        }
        Ok(())
    }
}

impl Buckets {
    /// Every bucket that is left alone is full by the next time, so that only
    /// those are kept who have asked lately.
    fn forget_full(&mut self, now: Instant) {
        if self.swept.is_none_or(|swept| now >= swept + DEPTH) {
            self.full_at.retain(|_, at| *at > now);
            self.swept = Some(now);
        }
    }
}

/// Failures in a row that are answered at once: a person who tries an old
/// token or two, an agent that was given the wrong one.
const FREE: u32 = 5;

/// How long every further failure takes.
const SLOW: Duration = Duration::from_secs(1);

/// Failures held back at once. Each keeps a connection, of which there are
/// eight times as many.
const HELD: usize = 32;

/// A row ends when nobody has failed for this long. That somebody succeeds
/// does not end it: an honest agent beside would undo it all the time.
const ROW_ENDS: Duration = Duration::from_secs(60);

/// Slows those down who try what is not right.
pub(crate) struct Guesses {
    row: Mutex<FailureCount>,
    places: Semaphore,
}

#[derive(Default)]
struct FailureCount {
    failures: u32,
    last: Option<Instant>,
}

impl Guesses {
    /// Counts a failure and returns when it may be told, or refuses at once,
    /// with when to try again, because too many wait for that already.
    pub(crate) async fn failed(&self, now: Instant) -> Result<(), Duration> {
        if self.count(now) <= FREE {
            return Ok(());
        }
        let _place = self.places.try_acquire().map_err(|_| SLOW)?;
        tokio::time::sleep(SLOW).await;
        Ok(())
    }

    /// Returns the length of the row with this failure.
    fn count(&self, now: Instant) -> u32 {
        let mut row = self.row.lock().unwrap_or_else(|lock| lock.into_inner());
        if row.last.is_some_and(|last| now >= last + ROW_ENDS) {
            row.failures = 0;
        }
        row.last = Some(now);
        row.failures = row.failures.saturating_add(1);
        row.failures
    }
}

impl Default for Guesses {
    fn default() -> Self {
        Self {
            row: Mutex::default(),
            places: Semaphore::new(HELD),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Takes as many as there are.
    fn empty(rate: &Rate, who: &str, now: Instant) -> u32 {
        let taken = (0..).find(|_| rate.take(who, now).is_err());
        taken.expect("a bucket is empty at some time")
    }

    #[test]
    fn a_full_bucket_is_a_burst_and_then_it_refills() {
        let (rate, start) = (Rate::default(), Instant::now());
        assert_eq!(empty(&rate, "a", start), BURST);
        assert_eq!(rate.take("a", start), Err(REFILL));
        let half = REFILL / 2;
        assert_eq!(rate.take("a", start + half), Err(half));
        assert_eq!(rate.take("a", start + REFILL), Ok(()));
        assert_eq!(rate.take("a", start + REFILL), Err(REFILL));
        let second = start + REFILL + Duration::from_secs(1);
        assert_eq!(empty(&rate, "a", second), 1000);
    }

    #[test]
    fn a_bucket_never_holds_more_than_a_burst() {
        let (rate, start) = (Rate::default(), Instant::now());
        empty(&rate, "a", start);
        assert_eq!(empty(&rate, "a", start + DEPTH * 100), BURST);
    }

    #[test]
    fn refusals_cost_nothing() {
        let (rate, start) = (Rate::default(), Instant::now());
        empty(&rate, "a", start);
        for _ in 0..BURST {
            assert_eq!(rate.take("a", start), Err(REFILL));
        }
    }

    #[test]
    fn everybody_has_a_bucket_of_their_own() {
        let (rate, start) = (Rate::default(), Instant::now());
        empty(&rate, "a", start);
        assert_eq!(empty(&rate, "b", start), BURST);
    }

    #[test]
    fn a_clock_that_is_read_late_does_no_harm() {
        let (rate, start) = (Rate::default(), Instant::now());
        empty(&rate, "a", start + DEPTH);
        assert_eq!(rate.take("a", start), Err(DEPTH + REFILL));
    }

    #[test]
    fn full_buckets_are_forgotten() {
        let (rate, start) = (Rate::default(), Instant::now());
        for second in 0..100 {
            for name in 0..100 {
                let now = start + Duration::from_secs(second);
                rate.take(&format!("{second} {name}"), now).unwrap();
            }
            assert!(rate.0.lock().unwrap().full_at.len() <= 300);
        }
    }

    #[test]
    fn a_bucket_that_is_not_full_is_not_forgotten() {
        let (rate, start) = (Rate::default(), Instant::now());
        rate.take("other", start).unwrap();
        let late = start + DEPTH - REFILL;
        empty(&rate, "a", late);
        assert_eq!(empty(&rate, "a", start + DEPTH), 1);
    }

    #[tokio::test]
    async fn guesses_are_slow_after_some_and_bounded() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        for _ in 0..FREE {
            assert_eq!(guesses.failed(now).now_or_never(), Some(Ok(())));
        }
        let began = Instant::now();
        let crowd = (0..=HELD).map(|_| guesses.failed(now));
        let answers = futures_util::future::join_all(crowd).await;
        assert!(began.elapsed() >= SLOW);
        assert_eq!(answers[..HELD], [Ok(()); HELD]);
        assert_eq!(answers[HELD], Err(SLOW));
    }

    #[test]
    fn a_row_of_failures_ends_with_time() {
        let (guesses, start) = (Guesses::default(), Instant::now());
        let pause = ROW_ENDS - REFILL;
        assert_eq!(guesses.count(start), 1);
        assert_eq!(guesses.count(start + pause), 2);
        assert_eq!(guesses.count(start + pause + ROW_ENDS), 1);
    }
}
