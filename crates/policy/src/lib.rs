//! Judges commands: [`Rules`] and a command's text in, a [`Verdict`] out.
//!
//! Pure: no files, no clock, no network. What a rule file says is read by the
//! engine and handed in as text, so that the same words always get the same
//! verdict.
//!
//! ```
//! use weighlock_policy::{judge, Rules, Verdict};
//!
//! let rules = Rules::default();
//! assert!(matches!(judge(&rules, "git status"), Verdict::Auto(_)));
//! assert!(matches!(judge(&rules, "RM  -rf   /"), Verdict::Reject(_)));
//! ```

mod blacklist;
mod permit;
mod preset;
mod verdict;

pub use blacklist::{Blacklist, InvalidFile, Refused};
pub use permit::Permit;
pub use preset::{Cut, Preset, Times};
pub use verdict::{Reason, Verdict};

/// Everything a command is judged by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Substrings that no command may contain.
    pub blacklist: Blacklist,
}

/// Judges one command. Runs nothing and remembers nothing.
pub fn judge(rules: &Rules, command: &str) -> Verdict {
    match rules.blacklist.hit(command) {
        Some(entry) => Verdict::Reject(Reason::blacklist(entry)),
        None => Verdict::Auto(Permit::by_rule(command)),
    }
}
