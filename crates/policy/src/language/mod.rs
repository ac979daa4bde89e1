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

/// How tests write down what a script does.
#[cfg(test)]
mod told {
    use super::Deeds;
    use crate::effect::Effect;

    #[track_caller]
    pub(super) fn check(read: fn(&str) -> Deeds, cases: &[(&str, &str)]) {
        for (script, expected) in cases {
            assert_eq!(told(&read(script)), *expected, "{script}");
        }
    }

    fn told(deeds: &Deeds) -> String {
        let mut told = vec![];
        if deeds.effects.has(Effect::Execute) {
            told.push(format!("runs [{}]", deeds.commands.join("|")));
        }
        if deeds.effects.has(Effect::Write) {
            told.push(format!("writes [{}]", deeds.writes.join("|")));
        }
        if deeds.effects.has(Effect::Network) {
            told.push("calls".into());
        }
        if deeds.effects.has(Effect::Secret) {
            told.push("secret".into());
        }
        if !deeds.reads.is_empty() {
            told.push(format!("reads [{}]", deeds.reads.join("|")));
        }
        if deeds.unknown.is_some() {
            told.push("unknown".into());
        }
        match told.is_empty() {
            true => "prints".into(),
            false => told.join(", "),
        }
    }
}
