//! Reads the output of a run for walls that it has met.

use std::path::{Path, PathBuf};

use weighlock_exec::{Log, Stream};
use weighlock_walls::{ClosedNames, Denial, FailedRun, find_secret_denials};

use super::Life;
use crate::view::SandboxView;

/// Bytes at the end of a stream that are read: failures are explained there.
const TAIL_BYTES: usize = 64 * 1024;

impl Life {
    /// Names the walls that a run has met, according to its standard error.
    pub(crate) fn wall_denials(&self, log: &Log, view: &SandboxView, cwd: &str) -> Vec<Denial> {
        let Some(sandbox) = self.sandboxes.find_by_name(&view.name) else {
            return vec![];
        };
        let stderr = log.tail(Stream::Stderr, TAIL_BYTES).unwrap_or_default();
        if stderr.is_empty() {
            return vec![];
        }
        let directory = view.directory.as_ref().map(PathBuf::from);
        let run = FailedRun {
            sandbox: &sandbox,
            directory: directory.as_deref(),
            cwd: Path::new(cwd),
            read_only: view.files == "read",
            offline: view.network == "off",
            landlock_only: view.level.as_deref() == Some("landlock"),
        };
        let stderr = String::from_utf8_lossy(&stderr);
        self.walls.explain_failure(&run, &stderr)
    }

    /// Names the secret files that a run could not open, according to its output.
    /// Many commands that agents run print errors to standard output.
    pub(crate) fn secret_denials(
        &self,
        log: &Log,
        view: &SandboxView,
        failed: bool,
    ) -> Vec<Denial> {
        if view.closed.is_empty() {
            return vec![];
        }
        let closed = ClosedNames {
            sandbox: &view.name,
            names: &view.closed,
            is_listed: &|name| self.walls.is_listed_secret(name),
            failed,
        };
        let tail = |stream| log.tail(stream, TAIL_BYTES).unwrap_or_default();
        let output = [tail(Stream::Stderr), tail(Stream::Stdout)].concat();
        find_secret_denials(&String::from_utf8_lossy(&output), &closed)
    }
}
