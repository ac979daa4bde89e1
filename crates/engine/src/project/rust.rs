//! `rust-toolchain.toml`: which compiler rustup runs in a directory.

use std::path::Path;

use super::view::View;

const NAMES: &[&str] = &["rust-toolchain.toml", "rust-toolchain"];

/// Looks whether a directory or one above it names a compiler by its path,
/// which may be in the project.
pub(super) fn look(dir: &Path, view: &View) -> Result<(), String> {
    for at in dir.ancestors() {
        for name in NAMES {
            let file = at.join(name);
            for text in view.read(&file)? {
                if may_name_path(&text) {
                    return Err(format!(
                        "{} can say that the compiler is a program of the project",
                        view.name(&file)
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Names of toolchains have no slash. A backslash could hide a `path` in a
/// quoted key.
fn may_name_path(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let signs = ["path", "/", "\\"];
    { lines }.any(|line| signs.iter().any(|sign| line.contains(sign)))
}
