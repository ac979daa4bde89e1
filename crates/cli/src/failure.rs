//! What went wrong, in words for a person.

use std::fmt;

use weighlock_api::ProblemDocument;

use crate::text::safe;

/// What went wrong, and what to do: as the command line says it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) what: String,
    pub(crate) hint: String,
    /// What the server answered, if it did.
    pub(crate) problem: Option<Box<ProblemDocument>>,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            hint: hint.into(),
            problem: None,
        }
    }

    /// Returns the word that the server has for it.
    pub(crate) fn code(&self) -> Option<&str> {
        Some(&self.problem.as_ref()?.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", safe(&self.what))?;
        if !self.hint.is_empty() {
            writeln!(f, "hint: {}", safe(&self.hint))?;
        }
        Ok(())
    }
}

impl From<weighlock_engine::Error> for Failure {
    fn from(error: weighlock_engine::Error) -> Self {
        let problem = error.problem();
        Self::new(problem.detail, problem.hint)
    }
}
