//! The right to run one command once.

/// Allows one run of exactly the command that was judged.
///
/// Only this crate makes one, and it cannot be copied. Code that starts a
/// command must take it by value, so that nothing runs unjudged and nothing
/// runs twice on one permission:
///
/// The fields are private, each of them: no other crate can make a permit, or
/// alter one.
///
/// ```compile_fail,E0616
/// fn forge(permit: &mut weighlock_policy::Permit) {
///     permit.command = "rm -rf /".into();
/// }
/// ```
///
/// ```compile_fail,E0616
/// fn forge(permit: &mut weighlock_policy::Permit) {
///     permit.argv = None;
/// }
/// ```
///
/// ```compile_fail,E0616
/// fn forge(permit: &mut weighlock_policy::Permit) {
///     permit.read_only = true;
/// }
/// ```
///
/// ```compile_fail,E0616
/// fn forge(permit: &mut weighlock_policy::Permit) {
///     permit.on_copy = true;
/// }
/// ```
///
/// ```compile_fail,E0616
/// fn forge(permit: &mut weighlock_policy::Permit) {
///     permit.by_people = true;
/// }
/// ```
///
/// ```compile_fail,E0616
/// fn forge(permit: &mut weighlock_policy::Permit) {
///     permit.person = None;
/// }
/// ```
///
/// And none can be kept for a second run.
///
/// ```compile_fail,E0599
/// fn twice(permit: &weighlock_policy::Permit) -> weighlock_policy::Permit {
///     weighlock_policy::Permit::clone(permit)
/// }
/// ```
///
/// Each of these compiles once its promise is broken, and not before: the tests
/// below use the same names where they are visible.
#[derive(Debug, PartialEq, Eq)]
pub struct Permit {
    command: String,
    argv: Option<Vec<String>>,
    read_only: bool,
    on_copy: bool,
    by_people: bool,
    person: Option<String>,
}

impl Permit {
    pub(crate) fn by_rule(
        command: String,
        argv: Option<Vec<String>>,
        read_only: bool,
        by_people: bool,
    ) -> Self {
        Self {
            command,
            argv,
            read_only,
            on_copy: false,
            by_people,
            person: None,
        }
    }

    pub(crate) fn by_person(command: String, argv: Option<Vec<String>>, person: &str) -> Self {
        Self {
            command,
            argv,
            read_only: false,
            on_copy: false,
            by_people: false,
            person: Some(person.to_owned()),
        }
    }

    pub(crate) fn for_a_try(command: String, argv: Option<Vec<String>>) -> Self {
        Self {
            on_copy: true,
            ..Self::by_rule(command, argv, false, false)
        }
    }

    /// The same by a person, who was asked before a rule allowed it.
    pub fn also_approved_by(self, person: &str) -> Self {
        Self {
            person: Some(person.to_owned()),
            ..self
        }
    }

    /// The same, only for a try.
    pub fn only_tried(self) -> Self {
        Self {
            on_copy: true,
            by_people: false,
            ..self
        }
    }

    /// Returns the text that was judged and may run.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Returns the words to start without a shell, where the rules say that
    /// there is to be none.
    pub fn argv(&self) -> Option<&[String]> {
        self.argv.as_deref()
    }

    /// Returns whether the command was proved to read and nothing else: it
    /// must run where the kernel makes that true.
    pub fn read_only(&self) -> bool {
        self.read_only
    }

    /// Returns whether it may only be tried: on a copy, offline. What it
    /// changes there is judged by itself.
    pub fn on_copy(&self) -> bool {
        self.on_copy
    }

    /// Returns whether neither a person nor a rule of theirs has allowed what
    /// it does: it is proved to read, or only tried.
    pub fn is_unasked(&self) -> bool {
        self.read_only || self.on_copy
    }

    /// Returns whether people have allowed each part of it that could show a
    /// file, by rules or grants of theirs. A preset is nobody's word.
    pub fn by_people(&self) -> bool {
        self.by_people
    }

    /// Returns who allowed it, if a person did.
    pub fn person(&self) -> Option<&str> {
        self.person.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first example above, where the field is visible: it fails there
    /// because the field is private, and for no other reason.
    #[test]
    fn the_forged_permit_of_the_example_names_a_real_field() {
        let mut permit = Permit::by_rule("ls".into(), None, true, false);
        permit.command = "rm -rf /".into();
        assert_eq!(permit.command(), "rm -rf /");
    }
}
