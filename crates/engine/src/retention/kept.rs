//! How much is kept, and what other limits would remove.

use std::fs;

use super::Retention;
use crate::error::Error;
use crate::limits::{ServerLimits, bytes, days};
use crate::principal::{Principal, Right};
use crate::time;
pub use weighlock_api::{Kept, KeptPart};

/// How many runs that can be undone are looked at: there is room for no more.
const LOOKED_AT: i64 = 1_000_000;

/// One thing that is kept.
struct Thing {
    at: i64,
    bytes: u64,
}

impl Retention {
    /// Returns how much is kept, and what limits would remove now.
    pub fn kept(&self, limits: &ServerLimits, who: &Principal) -> Result<Kept, Error> {
        who.check(Right::Review)?;
        let now = self.core.steady_now();
        let old = |age: std::time::Duration| now - age.as_micros() as i64;
        let outputs = { self.core.store.commands().kept_sizes()?.into_iter() }
            .map(|(at, bytes)| Thing { at, bytes })
            .collect();
        let mut outputs = part(
            outputs,
            old(days(limits.output_days, self.limits.output_age())),
            bytes(limits.output_mib, self.limits.output_total()),
        );
        // What is being written counts, too.
        outputs.bytes = self.output_bytes();
        let images = self.core.store.changes().oldest_images(LOOKED_AT)?;
        let images = images.iter().map(|row| Thing {
            at: row.updated_at,
            bytes: row.bytes,
        });
        let held = self.core.store.changes().held(None)?;
        let held = held.iter().map(|row| Thing {
            at: row.updated_at,
            bytes: row.bytes,
        });
        Ok(Kept {
            outputs,
            undo: part(
                images.collect(),
                old(days(limits.undo_days, self.limits.undo_age())),
                bytes(limits.undo_mib, self.limits.undo_bytes()),
            ),
            drafts: part(
                held.collect(),
                old(days(limits.draft_days, self.limits.draft_age())),
                u64::MAX,
            ),
            recordings: self.kept_recordings(),
        })
    }

    fn kept_recordings(&self) -> KeptPart {
        let dir = self.core.config.state_dir.join("recordings");
        let files = fs::read_dir(dir).into_iter().flatten().flatten();
        let files = files.filter_map(|file| file.metadata().ok());
        files.fold(KeptPart::default(), |kept, file| KeptPart {
            count: kept.count + 1,
            bytes: kept.bytes + file.len(),
            ..kept
        })
    }
}

/// Counts things, oldest first, and which of them are too old or too many.
fn part(mut things: Vec<Thing>, oldest: i64, most: u64) -> KeptPart {
    things.sort_by_key(|thing| thing.at);
    let bytes: u64 = things.iter().map(|thing| thing.bytes).sum();
    let mut kept = KeptPart {
        count: things.len() as u64,
        bytes,
        oldest: things.first().map(|thing| time(thing.at)),
        ..KeptPart::default()
    };
    let mut left = bytes;
    for thing in things {
        if thing.at >= oldest && left <= most {
            break;
        }
        left -= thing.bytes;
        kept.removed += 1;
        kept.removed_bytes += thing.bytes;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_old_or_too_much_goes_and_the_newest_stays() {
        let things = || {
            { [(30, 4), (10, 1), (20, 2)].into_iter() }
                .map(|(at, bytes)| Thing { at, bytes })
                .collect()
        };
        let gone = |oldest, most| {
            let kept = part(things(), oldest, most);
            assert_eq!((kept.count, kept.bytes), (3, 7));
            (kept.removed, kept.removed_bytes)
        };
        assert_eq!(gone(0, 100), (0, 0));
        assert_eq!(gone(15, 100), (1, 1));
        assert_eq!(gone(0, 4), (2, 3));
        assert_eq!(gone(99, 100), (3, 7));
    }
}
