//! Key frames: screens of a recording from which it can be played on.

use std::time::Duration;

use weighlock_marks::Frame;
use weighlock_screen::Size;

/// Bytes of a recording between two of them, at first: drawn in a few
/// milliseconds.
const SPACING: u64 = 512 * 1024;

/// Bytes of all snapshots. There are fewer of them when it becomes more.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// A screen, and where the recording goes on from it.
#[derive(Debug)]
pub(super) struct KeyFrame {
    pub(super) frame: Frame,
    pub(super) size: Size,
}

/// In the order of time. The first is the beginning and always there.
#[derive(Debug)]
pub(super) struct KeyFrames {
    first: KeyFrame,
    later: Vec<KeyFrame>,
    spacing: u64,
}

impl KeyFrames {
    pub(super) fn new(first: KeyFrame) -> Self {
        Self {
            first,
            later: vec![],
            spacing: SPACING,
        }
    }

    /// Tells whether the last one is far away.
    pub(super) fn is_due(&self, position: u64) -> bool {
        let last = self.later.last().unwrap_or(&self.first);
        position >= last.frame.position.saturating_add(self.spacing)
    }

    pub(super) fn add(&mut self, frame: KeyFrame) {
        self.later.push(frame);
        let bytes = |frame: &KeyFrame| frame.frame.snapshot.len();
        while self.later.iter().map(bytes).sum::<usize>() > MOST_BYTES {
            self.thin();
        }
    }

    /// Returns the last one that is not after a time.
    pub(super) fn before(&self, time: Duration) -> &KeyFrame {
        let after = { &self.later }.partition_point(|frame| frame.frame.time <= time);
        match after.checked_sub(1) {
            Some(last) => &self.later[last],
            None => &self.first,
        }
    }

    /// Drops every second one.
    fn thin(&mut self) {
        let mut odd = false;
        self.later.retain(|_| {
            odd = !odd;
            !odd
        });
        self.spacing = self.spacing.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(number: u64, snapshot_bytes: usize) -> KeyFrame {
        KeyFrame {
            frame: Frame {
                time: Duration::from_secs(number),
                position: number * SPACING,
                snapshot: vec![0; snapshot_bytes],
            },
            size: Size::new(80, 24).expect("a size"),
        }
    }

    #[test]
    fn the_nearest_one_before_is_found() {
        let mut frames = KeyFrames::new(frame(0, 0));
        assert!(!frames.is_due(SPACING - 1) && frames.is_due(SPACING));
        (1..5).for_each(|number| frames.add(frame(number, 10)));
        for (millis, found) in [(0, 0), (999, 0), (1000, 1), (3999, 3), (99_000, 4)] {
            let found = Duration::from_secs(found);
            let before = frames.before(Duration::from_millis(millis));
            assert_eq!(before.frame.time, found, "{millis}");
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut frames = KeyFrames::new(frame(0, 0));
        for number in 1..200 {
            if frames.is_due(number * SPACING) {
                frames.add(frame(number, MOST_BYTES / 10));
            }
        }
        assert!(frames.later.len() <= 10, "{}", frames.later.len());
        let last = frames.before(Duration::MAX).frame.time;
        assert!(last > Duration::from_secs(150), "{last:?}");
        frames.add(frame(999, 2 * MOST_BYTES));
        let bytes = |frame: &KeyFrame| frame.frame.snapshot.len();
        assert!(frames.later.iter().map(bytes).sum::<usize>() <= MOST_BYTES);
    }
}
