//! How long something takes, counted without anybody waiting for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Where one bucket ends and the next begins, in microseconds: from a write to
/// memory to a build.
pub const BOUNDS: [u64; 16] = [
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    5_000_000,
    30_000_000,
    120_000_000,
    600_000_000,
    3_600_000_000,
];

/// Counts times by how long they are. Two additions for each.
#[derive(Debug, Default)]
pub struct Histogram {
    /// One more than there are bounds, for what is longer than all.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Histogram {
    /// Counts one.
    pub fn observe(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|&bound| bound < micros);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Returns how many were at most as long as each bound, how many there
    /// were in all, and how many microseconds they took together.
    pub fn read(&self) -> (Vec<u64>, u64, u64) {
        let mut all = 0;
        let mut up_to = vec![];
        for bucket in &self.buckets {
            all += bucket.load(Ordering::Relaxed);
            up_to.push(all);
        }
        up_to.pop();
        (up_to, all, self.micros.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_counts_in_its_bucket_and_all_above() {
        let times = Histogram::default();
        for micros in [500, 501, 7_000_000_000] {
            times.observe(Duration::from_micros(micros));
        }
        let (up_to, all, micros) = times.read();
        assert_eq!((up_to[0], up_to[1], up_to[15], all), (1, 2, 2, 3));
        assert_eq!(micros, 7_000_001_001);
    }
}
