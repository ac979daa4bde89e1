//! How much of the record one principal may fill.
//!
//! What is asked for is recorded even when nothing comes of it. So that nobody
//! fills the disk with that, each principal has a number of bytes for an hour,
//! which comes back evenly. It is looked at before something is taken in, and
//! charged when it is recorded: what has begun is recorded to its end.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::hex::hex;
use crate::mutex::lock;

/// Bytes of a text that are kept of a command that has not begun.
const UNBEGUN: usize = 4096;

/// What an entry takes beside its detail: names, hashes, and its indexes.
const ENTRY: u64 = 400;

/// The time in which an empty allowance becomes full.
const HOUR: Duration = Duration::from_secs(3600);

/// At how many names those are forgotten that have all of theirs.
const MANY: usize = 1024;

/// Bytes for each principal.
pub(crate) struct Quota {
    hourly: u64,
    spent: Mutex<HashMap<String, Spent>>,
}

struct Spent {
    /// When all of it is there again.
    full_at: Instant,
    /// When it was last recorded that there was nothing left.
    told_at: Option<Instant>,
}

/// Nothing is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Empty {
    /// There will be something again after this time.
    pub(crate) wait: Duration,
    /// It was not recorded lately.
    pub(crate) is_news: bool,
}

impl Quota {
    pub(crate) fn new(hourly: u64) -> Self {
        Self {
            hourly: hourly.max(1),
            spent: Mutex::default(),
        }
    }

    /// Takes bytes out of somebody's allowance, more than there are too.
    pub(crate) fn charge(&self, who: &str, bytes: u64, now: Instant) {
        let mut all = lock(&self.spent);
        if all.len() > MANY {
            all.retain(|_, spent| spent.full_at > now);
        }
        let hours = bytes as f64 / self.hourly as f64;
        // Who sends one huge thing does not wait for days.
        let cost = HOUR.mul_f64(hours.min(2.0));
        let spent = all.entry(who.to_owned()).or_insert(Spent {
            full_at: now,
            told_at: None,
        });
        spent.full_at = (spent.full_at.max(now) + cost).min(now + 2 * HOUR);
    }

    /// Returns whether somebody has something left.
    pub(crate) fn check(&self, who: &str, now: Instant) -> Result<(), Empty> {
        let mut all = lock(&self.spent);
        let Some(spent) = all.get_mut(who) else {
            return Ok(());
        };
        let wait = spent.full_at.saturating_duration_since(now + HOUR);
        if wait.is_zero() {
            return Ok(());
        }
        let is_news = spent.told_at.is_none_or(|told| now >= told + HOUR);
        if is_news {
            spent.told_at = Some(now);
        }
        Err(Empty { wait, is_news })
    }
}

/// Returns about how many bytes an entry with this detail takes in the record.
pub(crate) fn entry_size(detail: &Value) -> u64 {
    ENTRY + size(detail)
}

/// Returns what is kept of a text that has not run.
pub(crate) fn cut(text: &str) -> &str {
    let mut end = text.len().min(UNBEGUN);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Says what was left out of a text, if anything was.
pub(crate) fn left_out(text: &str) -> Option<String> {
    let kept = cut(text).len();
    (kept < text.len()).then(|| {
        format!(
            "It never ran, so only the first {kept} of its {} bytes are kept; their SHA-256 is {}.",
            text.len(),
            hex(&Sha256::digest(text.as_bytes()))
        )
    })
}

/// Puts the text of a command that has not run into an entry: all of it, or the
/// beginning with the length and the hash of all of it.
pub(crate) fn tell_text(detail: &mut Value, text: &str) {
    detail["command"] = cut(text).into();
    if cut(text).len() < text.len() {
        detail["command_bytes"] = text.len().into();
        detail["command_sha256"] = hex(&Sha256::digest(text.as_bytes())).into();
    }
}

/// Bytes that a value takes, about.
fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64 + 3,
        Value::Array(all) => all.iter().map(size).sum(),
        Value::Object(all) => all
            .iter()
            .map(|(name, value)| name.len() as u64 + 4 + size(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_allowance_is_spent_and_comes_back() {
        let (quota, now) = (Quota::new(3600), Instant::now());
        quota.charge("coder", 3600, now);
        assert_eq!(quota.check("coder", now), Ok(()));
        quota.charge("coder", 60, now);
        let wait = Duration::from_secs(60);
        let empty = |is_news| Err(Empty { wait, is_news });
        assert_eq!(quota.check("coder", now), empty(true));
        assert_eq!(quota.check("coder", now), empty(false), "it is told once");
        assert_eq!(quota.check("linter", now), Ok(()));
        assert_eq!(quota.check("coder", now + wait), Ok(()));
        // What is owed is bounded.
        quota.charge("coder", u64::MAX, now);
        let empty = quota.check("coder", now).unwrap_err();
        assert!(empty.wait <= HOUR, "{empty:?}");
    }

    #[test]
    fn of_a_long_text_the_beginning_is_kept() {
        assert_eq!((cut("ls"), left_out("ls")), ("ls", None));
        let long = "ä".repeat(5000);
        assert_eq!(cut(&long).len(), 4096);
        assert_eq!(cut(&format!("x{long}")).len(), 4095);
        let told = left_out(&long).unwrap();
        assert!(told.contains("first 4096 of its 10000 bytes"), "{told}");
        let mut detail = json!({});
        tell_text(&mut detail, &long);
        assert_eq!(detail["command_bytes"], 10_000);
        assert_eq!(detail["command_sha256"].as_str().unwrap().len(), 64);
    }
}
