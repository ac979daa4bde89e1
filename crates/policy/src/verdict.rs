//! What the rules say about a command, and why.

use serde::{Deserialize, Serialize};

use crate::Permit;

/// The judgement on one command.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may run; no person is asked.
    Auto(Permit),
    /// It does not run, and no approval is possible.
    Reject(Reason),
}

/// Why a command was refused, for a person and for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// Stable word for programs.
    pub code: String,
    /// One sentence.
    pub text: String,
    /// The rule that decided.
    pub rule: String,
    /// What could be done instead.
    pub remedy: String,
}

impl Reason {
    pub(crate) fn blacklist(entry: &str) -> Self {
        Self {
            code: "blacklist".into(),
            text: "Command is not allowed by terminal blacklist.".into(),
            rule: entry.to_owned(),
            remedy: "Use a command that does not contain this text; \
                     a person can change the list in .agents/terminal.json."
                .into(),
        }
    }
}
