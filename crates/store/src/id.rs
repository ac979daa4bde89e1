//! Ids that sort by time and end in something people can type.

use std::sync::atomic::{AtomicI64, Ordering};

use weighlock_api::ID_TIME;
pub use weighlock_api::short_id as short;

/// Crockford's digits: no letter that looks like another.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Characters for chance; the store relies on them. Before them are those of the
/// time: milliseconds, good for 35,000 years.
const CHANCE: usize = 10;

/// Generates ids.
pub struct Ids {
    last: AtomicI64,
}

impl Ids {
    /// Continues after the newest existing id, even if the clock is behind it.
    pub fn after(newest: Option<&str>) -> Self {
        let newest = newest.map_or(0, millis).cast_signed();
        Self {
            last: AtomicI64::new(newest),
        }
    }

    /// Returns the next id, with a prefix that says what it names.
    pub fn next_as(&self, what: &str, unix_micros: i64) -> String {
        // Time in ids never runs backwards, even when the clock does.
        let now = unix_micros / 1000;
        let millis = self.last.fetch_max(now, Ordering::Relaxed).max(now);
        let mut random = [0; 8];
        getrandom::fill(&mut random).expect("the kernel has randomness");
        format!(
            "{what}_{}{}",
            digits(millis.cast_unsigned(), ID_TIME),
            digits(u64::from_le_bytes(random), CHANCE)
        )
    }
}

/// Returns the day an id was made, as days since 1970.
pub fn day(id: &str) -> u64 {
    millis(id) / (24 * 3600 * 1000)
}

/// Returns the time in an id, in milliseconds since 1970.
pub fn millis(id: &str) -> u64 {
    let rest = id.split_once('_').map_or(id, |(_, rest)| rest);
    rest.bytes()
        .take(ID_TIME)
        .filter_map(|byte| DIGITS.iter().position(|&digit| digit == byte))
        .fold(0, |number, digit| number << 5 | digit as u64)
}

fn digits(mut number: u64, count: usize) -> String {
    let mut text = vec![0; count];
    for place in text.iter_mut().rev() {
        *place = DIGITS[(number & 31) as usize];
        number >>= 5;
    }
    String::from_utf8(text).expect("digits are ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_never_run_backwards() {
        let ids = Ids::after(None);
        let noon = ids.next_as("r", 1_000_000_000_000);
        let later = ids.next_as("r", 2_000_000_000_000);
        let set_back = ids.next_as("r", 1_500_000_000_000);
        assert!(noon < later);
        assert_eq!(later[..12], set_back[..12]);
        let restarted = Ids::after(Some(&later)).next_as("r", 1_500_000_000_000);
        assert_eq!(later[..12], restarted[..12]);
        assert_eq!(noon.len(), 22);
        assert_eq!(day(&noon), 1_000_000_000_000 / 86_400_000_000);
        assert_eq!(short(&noon), format!("r_{}", &noon[12..18]));
        let approval = ids.next_as("ap", 0);
        assert_eq!(short(&approval), format!("ap_{}", &approval[13..19]));
    }
}
