//! Protects what other programs run in a writable directory.

use std::path::{Path, PathBuf};

use weighlock_confine::{Access, Mount};

use super::{ProfileBuilder, is_owned_by_root};
use crate::blacklist::{BLACKLIST_DIR, SuspectRun};
use crate::error::Error;
use crate::guarded_dir::GuardedDir;
use crate::protect::{AutoExecSurface, ProtectedPath, Protection, find_surface};

impl ProfileBuilder<'_> {
    /// Shows the repository of a linked worktree as a copy too. Nothing else
    /// needs protection on a copy: what a run does to files that other programs
    /// run is among its changes, which a person reviews.
    pub(super) fn guard_copy(&mut self, dir: &Path) -> Result<GuardedDir, Error> {
        let surface = find_surface(dir, &[], &self.request.sandbox.unprotected);
        for entry in &surface.entries {
            let at = dir.join(&entry.path);
            if entry.protection == Protection::Outside && !self.is_foreign(&at) {
                self.show_layered(&at)?;
            }
        }
        Ok(GuardedDir::new(dir, AutoExecSurface::default(), None))
    }

    /// Protects what other programs run in the live directory.
    pub(super) fn guard_live(&mut self, dir: &Path) -> Result<GuardedDir, Error> {
        let nested = self.find_repositories(dir);
        let surface = find_surface(dir, &nested, &self.request.sandbox.unprotected);
        for entry in &surface.entries {
            self.protect_path(dir, entry);
        }
        self.warn_of_gaps(&surface);
        let suspect = self.guard_blacklist(dir)?;
        Ok(GuardedDir::new(dir, surface, suspect))
    }

    /// Returns the repositories below a directory, and warns about new ones.
    fn find_repositories(&mut self, dir: &Path) -> Vec<PathBuf> {
        let repositories = &self.state.repositories;
        let nested = repositories.list_below(dir);
        for path in repositories.take_new(dir) {
            self.warnings.push(format!(
                "a repository appeared at {}; its hooks and settings are protected from now on, \
                 but look at them before you use git there",
                path.display()
            ));
        }
        if repositories.is_incomplete(dir) {
            self.warnings.push(
                "there are too many directories or repositories to find and protect all hooks"
                    .into(),
            );
        }
        nested
    }

    fn protect_path(&mut self, dir: &Path, entry: &ProtectedPath) {
        let at = dir.join(&entry.path);
        if at.to_str().is_none() {
            self.warnings.push(format!(
                "{} cannot be protected, since its name is not text, and other programs run it",
                entry.path.display()
            ));
        } else if entry.protection == Protection::Outside && self.is_foreign(&at) {
            self.warnings.push(format!(
                ".git leads to {}, which belongs to another sandbox and is not shown; git will not \
                 work",
                at.display()
            ));
        } else {
            self.files.push(mount_protected(at, entry.protection));
        }
    }

    fn warn_of_gaps(&mut self, surface: &AutoExecSurface) {
        for path in &surface.unprotectable {
            self.warnings.push(format!(
                "{} cannot be protected (it is a link or has a second name), and other programs \
                 run it",
                path.display()
            ));
        }
        if let Some(path) = &surface.not_followed {
            self.warnings.push(format!(
                ".git leads to {}, which does not lead back here and is not shown; git will not \
                 work",
                path.display()
            ));
        }
    }

    /// Protects the blacklist, which applies to all sandboxes, if it is in the
    /// directory. Suspects the run if it could create one.
    fn guard_blacklist(&mut self, dir: &Path) -> Result<Option<SuspectRun>, Error> {
        let rules = self.state.blacklist.dir();
        let mut unprotected = self.request.sandbox.unprotected.iter();
        if !rules.starts_with(dir) || unprotected.any(|name| name == BLACKLIST_DIR) {
            return Ok(None);
        }
        let suspect = self.state.blacklist.suspect_if_absent();
        let suspect = suspect.map_err(Error::at_path(rules))?;
        // In the base directory itself, the surface has it already.
        if self.state.settings.base != dir && rules.symlink_metadata().is_ok() {
            // The directories that hold it cannot be renamed.
            let above = rules.ancestors().skip(1).take_while(|at| *at != dir);
            let above: Vec<_> = above.collect();
            let pins = above.into_iter().rev().map(|at| Mount::Guard {
                at: at.to_owned(),
                access: Access::Write,
            });
            self.files.extend(pins);
            self.files.push(Mount::Guard {
                at: rules.to_owned(),
                access: Access::Read,
            });
        }
        Ok(suspect)
    }

    /// Returns whether a path belongs to the server or to another sandbox.
    fn is_foreign(&self, path: &Path) -> bool {
        let mut others = self.request.other_dirs.iter();
        path.starts_with(&self.state.settings.state_dir) || others.any(|dir| path.starts_with(dir))
    }
}

fn mount_protected(at: PathBuf, protection: Protection) -> Mount {
    match protection {
        Protection::ReadOnly => Mount::Guard {
            at,
            access: Access::Read,
        },
        Protection::Pinned => Mount::Guard {
            at,
            access: Access::Write,
        },
        Protection::Outside => Mount::Show {
            lent: weighlock_confine::is_root() && is_owned_by_root(&at),
            from: at.clone(),
            at,
            access: Access::Write,
            is: None,
            required: true,
        },
    }
}
