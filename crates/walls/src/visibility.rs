//! Finds out whether any command could see a path.

use std::path::Path;

use weighlock_confine::{Mount, Network, SYSTEM};

use crate::protect::{Protection, find_surface};
use crate::run_user::RunUser;
use crate::sandbox::Sandbox;
use crate::settings::WallSettings;
use crate::toolchains::{ToolSearch, show_read_only};

/// Returns whether the walls of any of these sandboxes show a path, under any
/// name. All of them hide the state directory, which is not considered here.
pub(crate) fn is_visible<'a>(
    settings: &WallSettings,
    path: &Path,
    search_path: &str,
    mut sandboxes: impl Iterator<Item = &'a Sandbox>,
) -> bool {
    let is_below = |dir: &Path| {
        let target = dir.canonicalize();
        path.starts_with(dir) || target.is_ok_and(|dir| path.starts_with(dir))
    };
    SYSTEM.iter().any(|dir| is_below(Path::new(dir)))
        // If the base is too wide to be shown whole, any part of it may be.
        || is_below(&settings.base)
        || sandboxes.any(|sandbox| {
            let mounts = mounts_beside(settings, sandbox, search_path);
            is_below(settings.directory_of(sandbox))
                || mounts.iter().any(|mount| match mount {
                    Mount::Show { from, .. } => is_below(from),
                    _ => false,
                })
        })
}

/// Returns what a sandbox shows beside its directory: toolchains and settings,
/// the further paths of its settings, and the repository of a linked worktree.
fn mounts_beside(settings: &WallSettings, sandbox: &Sandbox, search_path: &str) -> Vec<Mount> {
    let dir = settings.directory_of(sandbox);
    // Without a user nothing runs.
    let Ok(user) = RunUser::find(sandbox, Some(dir), &settings.home) else {
        return vec![];
    };
    let search = ToolSearch {
        home: &user.home,
        // An empty one, so that package stores are shown.
        layer: Path::new(""),
        path: search_path,
        server: &settings.server_env,
        network: Network::Off,
    };
    let mut mounts = search.find_mounts();
    let further = sandbox.read.iter().chain(&sandbox.write);
    let further = further.map(|path| user.expand_home(path));
    let surface = find_surface(dir, &[], &sandbox.unprotected);
    let entries = surface.entries.iter();
    let outside = entries.filter(|entry| entry.protection == Protection::Outside);
    for path in further.chain(outside.map(|entry| dir.join(&entry.path))) {
        mounts.extend(show_read_only(&path, path.clone()));
    }
    mounts
}
