//! The right to run one command once.

/// Allows one run of exactly the command that was judged.
///
/// Only this crate makes one, and it cannot be copied. Whoever starts a
/// command must take it by value, so that nothing runs unjudged and nothing
/// runs twice on one permission:
///
/// ```compile_fail
/// // The field is private: a permit cannot be made up.
/// let permit = weighlock_policy::Permit { command: "rm -rf /".into() };
/// ```
///
/// ```compile_fail
/// // A permit cannot be kept for a second run.
/// fn twice(permit: weighlock_policy::Permit) {
///     let spare = permit.clone();
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Permit {
    command: String,
}

impl Permit {
    pub(crate) fn by_rule(command: &str) -> Self {
        Self {
            command: command.to_owned(),
        }
    }

    /// Returns the text that was judged and may run.
    pub fn command(&self) -> &str {
        &self.command
    }
}
