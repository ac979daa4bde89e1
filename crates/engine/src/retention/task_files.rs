//! The plain files that the output of tasks is also written to.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use weighlock_confine::{Access, Mount};

use super::Retention;
use crate::error::Error;
use crate::runs::output_file_name;
use crate::state_dir::make_private;
use crate::view::Run;

impl Retention {
    /// Creates the file that a task's output is also written to. Only the
    /// server's user can read it; others request the output.
    pub(crate) fn make_output_file(&self, run: &str, session: &str) -> io::Result<PathBuf> {
        let dir = self.tasks_dir(session);
        make_private(&dir).map_err(io::Error::other)?;
        let path = dir.join(output_file_name(run));
        let mut how = OpenOptions::new();
        how.write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(path)
    }

    /// Shows a session's runs the output of its tasks.
    pub(crate) fn show_tasks(&self, session: &str, lent: bool) -> Option<Mount> {
        let dir = self.tasks_dir(session);
        dir.is_dir().then(|| Mount::Show {
            from: dir.clone(),
            at: dir,
            access: Access::Read,
            is: None,
            lent,
            required: false,
        })
    }

    pub(crate) fn tasks_dir(&self, session: &str) -> PathBuf {
        self.core.config.state_dir.join("tasks").join(session)
    }

    /// Removes the files that nothing was written to for as long as output is
    /// kept and a task may take. What goes on keeps its own, whatever the
    /// clock says.
    pub(crate) fn tidy_output_files(&self) -> Result<(), Error> {
        let age = self.limits.output_age().max(self.limits.times().max);
        let open = self.core.store.commands().open()?;
        let open: HashSet<String> = { open.iter() }
            .map(|command| output_file_name(&command.id))
            .collect();
        let below = |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten();
        for session in below(self.core.config.state_dir.join("tasks")) {
            for file in below(session.path()) {
                let name = file.file_name().to_string_lossy().into_owned();
                if !open.contains(&name) && self.core.is_old(&file.path(), age) {
                    let _ = std::fs::remove_file(file.path());
                }
            }
            // Only where nothing is left.
            let _ = std::fs::remove_dir(session.path());
        }
        Ok(())
    }

    /// Removes the file that a run's output was also written to.
    pub(crate) fn remove_output_file(&self, run: &Run) {
        if let Some(path) = &run.detail.output_file {
            let _ = std::fs::remove_file(path);
            if let Some(session) = &run.session_id {
                let _ = std::fs::remove_dir(self.tasks_dir(session));
            }
        }
    }
}
