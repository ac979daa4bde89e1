//! Which walls a failed run has met.

use std::path::{Path, PathBuf};

use weighlock_confine::{Access, PRIVATE, SYSTEM};
use weighlock_exec::{Log, Stream};

use super::person::Person;
use crate::denial::{self, Closed, Denial, Fence, Limits, Walls};
use crate::engine::Engine;
use crate::protect::{self, Guard};
use crate::view::SandboxView;

/// The end of standard error, where a failure is explained.
const LOOK_AT: usize = 64 * 1024;

/// Parts of a home directory that begin empty in every sandbox: a file that is
/// not there is just not there. Elsewhere it may be hidden.
const OWN: &[&str] = &[".cache", ".cargo", ".config", ".local", ".npm", "go"];

impl Engine {
    /// Names the walls that a failed run has met, as its words suggest.
    pub(crate) fn denials(&self, log: &Log, view: &SandboxView, cwd: &str) -> Vec<Denial> {
        let Some(sandbox) = self.sandbox_called(&view.name) else {
            return vec![];
        };
        let said = log.tail(Stream::Stderr, LOOK_AT).unwrap_or_default();
        if said.is_empty() {
            return vec![];
        }
        let dir = view.directory.as_ref().map(PathBuf::from);
        let Ok(person) = Person::find(&sandbox, dir.as_deref(), &self.home) else {
            return vec![];
        };
        let in_home = |path: &PathBuf| person.resolve(path);
        let private = PRIVATE.iter().map(PathBuf::from);
        let mut writable: Vec<PathBuf> = private.collect();
        writable.extend(OWN.iter().map(|name| person.home.join(name)));
        writable.extend(sandbox.write.iter().map(in_home));
        let mut readable: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        readable.extend(["/proc".into(), "/dev".into()]);
        readable.extend(PRIVATE.iter().map(PathBuf::from));
        readable.extend(OWN.iter().map(|name| person.home.join(name)));
        readable.extend(sandbox.read.iter().chain(&sandbox.write).map(in_home));
        let mut protected = vec![];
        if let Some(dir) = dir {
            if sandbox.files == Access::Write {
                writable.push(dir.clone());
                protected = self.protected(&dir, &sandbox.unprotected);
            }
            readable.push(dir);
        }
        let limits = &sandbox.limits;
        let walls = Walls {
            name: &sandbox.name,
            cwd: Path::new(cwd),
            readable: &readable,
            writable: &writable,
            protected: &protected,
            // Read-only is the whole sandbox for what is proved to read. Where a
            // person allows something in one that always is, the kernel lets it.
            closed_home: (view.files == "read").then_some(&*person.home),
            // What is tried is offline wherever it is tried.
            network_off: view.network == "off",
            fence: match view.level.as_deref() {
                Some("landlock") => Fence::Landlock,
                _ => Fence::Mounts,
            },
            limits: Limits {
                memory_bytes: Some(limits.memory_bytes),
                processes: Some(limits.processes),
                open_files: Some(limits.open_files),
                file_bytes: Some(limits.file_bytes),
            },
        };
        denial::find(&String::from_utf8_lossy(&said), &walls)
    }

    /// Names the secret files that a run could not open, as its words suggest.
    /// Much of what agents run puts its errors among its output.
    pub(crate) fn secret_denials(
        &self,
        log: &Log,
        view: &SandboxView,
        failed: bool,
    ) -> Vec<Denial> {
        if view.closed.is_empty() {
            return vec![];
        }
        let closed = Closed {
            sandbox: &view.name,
            names: &view.closed,
            failed,
        };
        let said = |stream| log.tail(stream, LOOK_AT).unwrap_or_default();
        let streams = [said(Stream::Stderr), said(Stream::Stdout)].concat();
        denial::find_secret(&String::from_utf8_lossy(&streams), &closed)
    }

    pub(crate) fn protected(&self, dir: &Path, unprotected: &[String]) -> Vec<PathBuf> {
        let surface = protect::surface(dir, &self.found.repositories.below(dir), unprotected);
        surface
            .entries
            .into_iter()
            .filter(|entry| entry.guard == Guard::ReadOnly)
            .map(|entry| dir.join(entry.path))
            .collect()
    }
}
