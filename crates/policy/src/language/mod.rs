//! Little languages inside arguments: a `sed` script can write files and run
//! programs, and so can `awk`.

pub(crate) mod awk;
pub(crate) mod jq;
pub(crate) mod sed;

use crate::effect::Effects;

/// What a program in a little language does.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Deeds {
    /// What it does beyond reading.
    pub(crate) effects: Effects,
    /// Files it reads by name.
    pub(crate) reads: Vec<String>,
    /// Files it writes by name.
    pub(crate) writes: Vec<String>,
    /// Texts that it hands to a shell, where they are known.
    pub(crate) commands: Vec<String>,
    /// Why it was not understood; then it may do anything.
    pub(crate) unknown: Option<&'static str>,
}
