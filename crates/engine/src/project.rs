//! What a project's own settings have programs run.
//!
//! Some programs that only read obey settings of the project they are used in,
//! and those can name other programs: `git diff` runs what `diff.x.textconv`
//! names. The judge reads no files, so it marks such parts
//! ([`weighlock_policy::Part::obeys`]), and here their settings are looked at
//! before the verdict. Only what is known to be harmless passes; the rest makes
//! the part one that cannot be judged, and the reason names the setting.

mod git;
mod hg;
mod index;
mod rust;
mod view;

use std::collections::HashMap;
use std::path::Path;

use weighlock_policy::{Facts, Obeyed, Obeys, Part};

pub(crate) use self::view::View;

/// Directories that are looked at for one command. Nobody works in more, and
/// each costs some system calls.
const MAX_DIRS: usize = 32;

/// Looks at the settings that the parts of a command obey. A part whose
/// settings can run something, or cannot be understood, is marked as unknown.
pub(crate) fn look(facts: &mut Facts, view: &View) {
    let mut seen: HashMap<(Obeyed, String), Option<String>> = HashMap::new();
    for part in &mut facts.parts {
        // Others are no candidates for running unasked.
        if part.possible || part.unknown.is_some() || !part.effects.only_read() {
            continue;
        }
        let subcommand = part.subcommand.first().cloned().unwrap_or_default();
        for obeyed in &part.obeys {
            let key = (obeyed.clone(), subcommand.clone());
            let full = seen.len() >= MAX_DIRS;
            let why = match seen.get(&key) {
                Some(why) => why.clone(),
                None if full => Some("it works in too many directories to look at".into()),
                None => {
                    let why = look_at(obeyed, &subcommand, view).err();
                    seen.insert(key, why.clone());
                    why
                }
            };
            if why.is_some() {
                part.unknown = why;
                break;
            }
        }
    }
}

/// Marks all that obeys settings where a shell is that cannot be looked at.
pub(crate) fn doubt(facts: &mut Facts, dir: &str) {
    let obeying = |part: &&mut Part| !part.obeys.is_empty() && part.unknown.is_none();
    for part in facts.parts.iter_mut().filter(obeying) {
        part.unknown = Some(format!("the settings in {dir} cannot be looked at"));
    }
}

fn look_at(obeyed: &Obeyed, subcommand: &str, view: &View) -> Result<(), String> {
    let dir = Path::new(&obeyed.dir);
    view.enter(dir)?;
    match obeyed.settings {
        Obeys::Git => git::look(dir, subcommand, obeyed.stripped, view),
        Obeys::Hg => hg::look(dir, view),
        Obeys::Rustup => rust::look(dir, view),
    }
}

#[cfg(test)]
mod tests;
