//! Files of the repository that are made from something else.

use std::path::{Path, PathBuf};

/// The directory of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads a file of the repository.
#[track_caller]
pub(crate) fn read(path: &str) -> String {
    let text = std::fs::read_to_string(root().join(path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Checks that a file says what it would say if it were made now, or makes it
/// anew when `WEIGHLOCK_BLESS` is set.
#[track_caller]
pub(crate) fn assert_current(path: &str, page: &str) {
    let file = root().join(path);
    if std::env::var("WEIGHLOCK_BLESS").is_ok() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, page).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == page,
        "{path} is stale; WEIGHLOCK_BLESS=1 before this test makes it anew"
    );
}
