//! Whether any command could look at a place.

use std::path::Path;

use weighlock_confine::{Mount, Network, SYSTEM};

use super::person::Person;
use super::tools;
use crate::engine::Engine;
use crate::protect::{self, Guard};
use crate::sandbox::Sandbox;

impl Engine {
    /// Returns whether walls of any sandbox that there is show a place, by
    /// whatever name. The state directory, which all of them hide, is no such.
    pub(crate) async fn is_shown(&self, place: &Path) -> bool {
        let search = self.path().await;
        let sandboxes = self.sandboxes.all();
        let below = |dir: &Path| {
            let leads_to = dir.canonicalize();
            place.starts_with(dir) || leads_to.is_ok_and(|dir| place.starts_with(dir))
        };
        SYSTEM.iter().any(|dir| below(Path::new(dir)))
            // Where that is too wide to be shown whole, any part of it may be.
            || below(&self.config.base)
            || sandboxes.iter().any(|known| {
                let sandbox = &known.sandbox;
                below(self.directory_of(sandbox))
                    || self.beside(sandbox, &search).iter().any(|mount| match mount {
                        Mount::Show { from, .. } => below(from),
                        _ => false,
                    })
            })
    }

    /// What a sandbox shows beside its directory: toolchains and settings, what
    /// it was told to, and the repository of a linked worktree.
    fn beside(&self, sandbox: &Sandbox, search: &str) -> Vec<Mount> {
        let dir = self.directory_of(sandbox);
        // Without a person nothing is run.
        let Ok(person) = Person::find(sandbox, Some(dir), &self.home) else {
            return vec![];
        };
        // Of a layer that is empty, so that packages are lent.
        let layer = Path::new("");
        let env = &self.server_env;
        let mut shown = tools::find(&person.home, layer, search, env, Network::Off);
        let told = { sandbox.read.iter() }
            .chain(&sandbox.write)
            .map(|path| person.resolve(path));
        let surface = protect::surface(dir, &[], &sandbox.unprotected);
        let outside = { surface.entries.iter() }
            .filter(|entry| entry.guard == Guard::Outside)
            .map(|entry| dir.join(&entry.path));
        for path in told.chain(outside) {
            shown.extend(tools::read(&path, path.clone()));
        }
        shown
    }
}
