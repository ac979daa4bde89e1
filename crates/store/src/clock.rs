//! Wall-clock time, handed in so that a test can set it.

use std::sync::Arc;

use jiff::Timestamp;

/// Tells what the wall clock says. Limits never ask it: they are monotonic.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The machine's own clock.
    pub fn system() -> Self {
        Self::new(Timestamp::now)
    }

    /// Any clock.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(crate) fn micros(&self) -> i64 {
        (self.0)().as_microsecond()
    }
}
