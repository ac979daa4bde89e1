//! The settings of Mercurial repositories.

use std::path::Path;

use super::view::View;

/// Where Mercurial keeps a person's settings, below the home directory.
const AT_HOME: &[&str] = &[".hgrc", ".config/hg/hgrc"];

/// Settings in a repository.
const IN_REPOSITORY: &[&str] = &["hgrc", "hgrc-not-shared"];

/// Looks at the repositories of a directory and of those above it.
pub(super) fn look(dir: &Path, view: &View) -> Result<(), String> {
    for home in &view.homes {
        for name in AT_HOME {
            config(&home.join(name), view)?;
        }
    }
    for at in dir.ancestors() {
        let hg = at.join(".hg");
        for name in IN_REPOSITORY {
            config(&hg.join(name), view)?;
        }
        for other in [
            hg.join("sharedpath"),
            at.join(".hgsub"),
            at.join(".hgsubstate"),
        ] {
            if view.exists(&hg)? && view.exists(&other)? {
                return Err(format!(
                    "{} leads to other repositories, whose settings it obeys",
                    view.name(&other)
                ));
            }
        }
    }
    Ok(())
}

fn config(file: &Path, view: &View) -> Result<(), String> {
    for text in view.read(file)? {
        if let Some(found) = dangerous(&String::from_utf8_lossy(&text)) {
            return Err(format!(
                "`{found}` in {} can have Mercurial run other code",
                view.name(file)
            ));
        }
    }
    Ok(())
}

/// Returns the first line that is more than an address, a name or a comment.
fn dangerous(text: &str) -> Option<String> {
    let mut section = "";
    // To Mercurial each of both ends a line.
    for line in text.split(['\n', '\r']) {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            section = name.split(']').next().unwrap_or(name).trim();
            continue;
        }
        let key = bare.split(['=', ':']).next().unwrap_or(bare).trim();
        let harmless = match section {
            "paths" => !bare.starts_with('%'),
            "ui" => key == "username",
            _ => false,
        };
        if !harmless {
            return Some(format!("{section}.{key}"));
        }
    }
    None
}
