//! Changes of a session that nobody has decided about: stacked for its later
//! runs, and seen as one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use weighlock_api::{Draft, DraftRun};

use weighlock_effects::{Change, Changes, Kind, Page, Raw};
use weighlock_store::ChangesRow;

use super::Drafts;
use super::list::{ChangesInfo, FileDiff, Looking};
use crate::copied::CHANGES;
use crate::error::{Error, brief};
use crate::principal::Principal;
use crate::time;
use crate::view::ChangesRecord;
use crate::view::ChangesView;
use crate::view::Run;
use crate::view::RunRecord;

impl Drafts {
    /// Lists the undecided changes that somebody may see, by session.
    pub fn list(&self, session: Option<&str>, who: &Principal) -> Result<Vec<Draft>, Error> {
        let mut drafts: BTreeMap<String, Draft> = BTreeMap::new();
        for row in self.core.store.changes().held(session)?.into_iter().rev() {
            let Some(command) = self.core.store.commands().named(&row.run)?.pop() else {
                continue;
            };
            if !who.sees(&command.requested_by, command.sandbox.as_deref()) {
                continue;
            }
            let run = Run::from_command(command);
            let session = run.session_id.clone().unwrap_or_default();
            let draft = drafts.entry(session.clone()).or_insert_with(|| Draft {
                session_id: session,
                sandbox_id: run.sandbox_id.clone(),
                requested_by: run.requested_by.clone(),
                runs: vec![],
            });
            draft.runs.push(self.draft_run(run, &row));
        }
        Ok(drafts.into_values().collect())
    }

    fn draft_run(&self, run: Run, row: &ChangesRow) -> DraftRun {
        let age = self.limits.draft_age().as_micros() as i64;
        let waiting = run.state == weighlock_store::State::Waiting;
        DraftRun {
            changes: ChangesView::from_row(row),
            approval_id: run.approval_id.filter(|_| waiting),
            kept_until: time(row.updated_at + age),
            command_id: run.command_id,
            short_id: run.short_id,
            command: run.command,
        }
    }

    /// Returns a session's whole draft as one set of changes. Reads files: not
    /// for a thread that others wait for.
    pub fn draft_changes(
        &self,
        session: &str,
        from: usize,
        limit: usize,
        who: &Principal,
    ) -> Result<ChangesInfo, Error> {
        let looking = self.whole_draft(session, who)?;
        let mut info = self.listed(&looking, from, limit)?;
        info.header.clone_from(&info.view.summary);
        Ok(info)
    }

    /// Returns the diff of one path of a session's whole draft. Reads files.
    pub fn draft_diff(
        &self,
        session: &str,
        index: usize,
        page: Page,
        who: &Principal,
    ) -> Result<FileDiff, Error> {
        let looking = self.whole_draft(session, who)?;
        self.diffed(&looking, index, page)
    }

    /// Returns a session's whole draft as a patch in git's format. Reads files.
    pub fn draft_patch(&self, session: &str, who: &Principal) -> Result<Vec<u8>, Error> {
        let looking = self.whole_draft(session, who)?;
        self.patched(&looking)
    }

    pub(crate) fn draft_runs(
        &self,
        session: &str,
        who: &Principal,
    ) -> Result<Vec<DraftRun>, Error> {
        let mut drafts = self.list(Some(session), who)?;
        let found = drafts.pop().map(|draft| draft.runs);
        found.ok_or_else(|| Error::NoDraft {
            session: brief(session),
        })
    }

    pub(crate) fn whole_draft(
        &self,
        session: &str,
        who: &Principal,
    ) -> Result<Arc<Looking>, Error> {
        let runs = self.draft_runs(session, who)?;
        let each = { runs.iter() }.map(|run| format!(" {} {}", run.command_id, run.changes.hash));
        let name = format!("{session}{}", each.collect::<String>());
        self.looked_at.get(name, || self.read_draft(runs))
    }

    fn read_draft(&self, runs: Vec<DraftRun>) -> Result<Looking, Error> {
        let mut all = vec![];
        for run in runs {
            let file = self.copy_dir(&run.command_id).join(CHANGES);
            let loaded = Changes::load(&file);
            all.push(loaded.map_err(Error::file(&file))?);
        }
        let changes = as_one(all);
        Ok(Looking {
            view: ChangesView::of(&changes, "held"),
            changes,
            copied: None,
            held: true,
        })
    }
}

/// Puts changes that were made one after the other together: of each path, what
/// stood there first and what stands there last.
fn as_one(all: Vec<Changes>) -> Changes {
    let mut one = Changes {
        roots: vec![],
        entries: vec![],
        refused: vec![],
    };
    let mut by_path: BTreeMap<(PathBuf, Raw, bool), Change> = BTreeMap::new();
    for changes in all {
        let first = one.roots.len();
        one.refused.extend(changes.refused);
        for change in changes.entries {
            let live = changes.roots[change.root].live.clone();
            // What is deleted to make way for something else has an entry too.
            let parts = match change.kind {
                Kind::Renamed => split(change),
                _ => vec![change],
            };
            for change in parts {
                let gone = change.after.is_none();
                let key = |gone| (live.clone(), change.path.clone(), gone);
                let before = by_path.remove(&key(!gone)).or(by_path.remove(&key(gone)));
                let change = Change {
                    root: first + change.root,
                    ..change
                };
                if let Some(change) = joined(before, change) {
                    let gone = change.after.is_none();
                    by_path.insert((live.clone(), change.path.clone(), gone), change);
                }
            }
        }
        one.roots.extend(changes.roots);
    }
    one.entries = by_path.into_values().collect();
    one
}

/// A rename as what it is for each of its names.
fn split(change: Change) -> Vec<Change> {
    let from = change.from.clone().unwrap_or_else(|| change.path.clone());
    let old = Change {
        path: from,
        kind: Kind::Deleted,
        from: None,
        after: None,
        ..change.clone()
    };
    let new = Change {
        kind: Kind::Created,
        from: None,
        before: None,
        built_on: None,
        ..change
    };
    vec![old, new]
}

fn joined(earlier: Option<Change>, later: Change) -> Option<Change> {
    let Some(earlier) = earlier else {
        return Some(later);
    };
    let kind = match (&earlier.before, &later.after) {
        (None, None) => return None,
        (None, Some(_)) => Kind::Created,
        (Some(_), None) => Kind::Deleted,
        (Some(_), Some(_)) if earlier.kind == later.kind => later.kind,
        (Some(_), Some(_)) => Kind::Modified,
    };
    Some(Change {
        kind,
        before: earlier.before,
        built_on: earlier.built_on,
        overtaken: earlier.overtaken || later.overtaken,
        alike: false,
        ..later
    })
}
