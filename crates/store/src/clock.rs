//! Wall-clock time, passed in so that a test can set it, and times as text.

use std::sync::Arc;

use jiff::Timestamp;

/// Reads the wall clock. Limits do not use it: they are monotonic.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// Returns the machine's own clock.
    pub fn system() -> Self {
        Self::new(Timestamp::now)
    }

    /// Returns a clock that calls `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the current time in microseconds since 1970, as the store keeps times.
    pub fn micros(&self) -> i64 {
        (self.0)().as_microsecond()
    }
}

/// Formats a time of the store (microseconds since 1970) as RFC 3339, in UTC.
pub fn timestamp(micros: i64) -> String {
    Timestamp::from_microsecond(micros)
        .unwrap_or(Timestamp::UNIX_EPOCH)
        .to_string()
}
