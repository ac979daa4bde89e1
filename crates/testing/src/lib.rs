//! How a test says that it could not try something. For tests alone.
//!
//! There are two reasons not to try, and `check` counts each by the word that is
//! printed here:
//!
//! - The machine lacks something, such as a program or a kernel feature:
//!   [`skip`]. A test that always skips protects nobody, so where [`NO_SKIPS`]
//!   is set this is a failure.
//! - The promise is about another user, such as one that only root can break:
//!   [`not_as_this_user`]. `check` runs these tests as both users, so this is
//!   never a failure.
//!
//! ```
//! # fn is_root() -> bool { false }
//! fn only_root_changes_owners() {
//!     if !is_root() {
//!         return weighlock_testing::not_as_this_user("only root changes owners");
//!     }
//!     if !weighlock_testing::have(&["setfattr"]) {
//!         return;
//!     }
//!     // …
//! }
//! # only_root_changes_owners();
//! ```

use std::path::Path;

/// The environment variable that makes skipping a failure. `check` sets it when
/// it runs as root and has installed every program that tests drive.
pub const NO_SKIPS: &str = "WL_NO_SKIPS";

/// Directories of programs that every user of the machine has. Tests look there
/// and not in `PATH`, since a sandboxed run does not see the home directory of
/// the person who runs the tests.
pub const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Says that this machine lacks what a test needs.
///
/// # Panics
///
/// Panics where [`NO_SKIPS`] is set.
#[track_caller]
pub fn skip(why: &str) {
    report(why, std::env::var_os(NO_SKIPS).is_some());
}

#[track_caller]
fn report(why: &str, is_failure: bool) {
    assert!(!is_failure, "skipped, which {NO_SKIPS} forbids: {why}");
    eprintln!("SKIPPED: {why}");
}

/// Says that a test is about another user than the one who runs it.
pub fn not_as_this_user(why: &str) {
    eprintln!("NOT AS THIS USER: {why}");
}

/// Returns whether all these programs are installed, and skips if one is not.
///
/// # Panics
///
/// Panics if one is not and [`NO_SKIPS`] is set.
#[track_caller]
pub fn have(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !is_installed(program));
    if let Some(program) = missing {
        skip(&format!("{program} is not installed"));
    }
    missing.is_none()
}

/// Returns whether a program is in [`SYSTEM_PATH`].
pub fn is_installed(program: &str) -> bool {
    let mut dirs = SYSTEM_PATH.split(':');
    dirs.any(|dir| Path::new(dir).join(program).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "skipped, which WL_NO_SKIPS forbids: no moon")]
    fn where_everything_is_installed_a_skip_fails() {
        report("no moon", true);
    }

    #[test]
    fn programs_are_found_where_every_user_has_them() {
        assert!(is_installed("sh"));
        assert!(!is_installed("weighlock-has-no-such-program"));
    }
}
