//! Plays a recording without its long pauses.

use std::time::Duration;

/// Maps the times of a recording to those of a player that waits no longer
/// than a given time. Remembers the long pauses only.
#[derive(Debug, Clone)]
pub struct Idle {
    most: Duration,
    pauses: Vec<Pause>,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    /// When waiting has been long enough.
    start: Duration,
    /// When the next event comes.
    end: Duration,
    /// What this and the pauses before it save.
    saved: Duration,
}

impl Idle {
    /// Takes the times of all events, in their order.
    pub fn new(most: Duration, times: impl IntoIterator<Item = Duration>) -> Self {
        let mut idle = Self {
            most,
            pauses: vec![],
        };
        let mut last = Duration::ZERO;
        for time in times {
            idle.pause(last, time);
            last = last.max(time);
        }
        idle
    }

    /// Returns when a player shows what was recorded at `time`.
    pub fn played(&self, time: Duration) -> Duration {
        let begun = self.pauses.partition_point(|pause| pause.start < time);
        match begun.checked_sub(1).map(|last| self.pauses[last]) {
            None => time,
            Some(pause) if time < pause.end => pause.start - self.saved_before(begun - 1),
            Some(pause) => time - pause.saved,
        }
    }

    /// Returns when that was recorded which a player shows at `time`.
    pub fn recorded(&self, time: Duration) -> Duration {
        let over = |pause: &Pause| pause.end - pause.saved <= time;
        match self.pauses.partition_point(over).checked_sub(1) {
            None => time,
            Some(last) => time + self.pauses[last].saved,
        }
    }

    fn pause(&mut self, last: Duration, time: Duration) {
        let start = last + self.most;
        if time > start {
            let saved = self.saved_before(self.pauses.len()) + (time - start);
            let end = time;
            self.pauses.push(Pause { start, end, saved });
        }
    }

    fn saved_before(&self, pause: usize) -> Duration {
        match pause.checked_sub(1) {
            None => Duration::ZERO,
            Some(before) => self.pauses[before].saved,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    fn idle() -> Idle {
        Idle::new(seconds(2), [1, 2, 10, 11, 31].map(seconds))
    }

    #[test]
    fn long_pauses_are_cut_and_short_ones_kept() {
        let found =
            [0, 1, 2, 3, 4, 7, 10, 11, 13, 20, 31, 35].map(|time| idle().played(seconds(time)));
        let expected = [0, 1, 2, 3, 4, 4, 4, 5, 7, 7, 7, 11];
        assert_eq!(found, expected.map(seconds));
    }

    #[test]
    fn every_event_is_found_again() {
        for time in [1, 2, 10, 11, 31, 40].map(seconds) {
            assert_eq!(idle().recorded(idle().played(time)), time);
        }
    }
}
