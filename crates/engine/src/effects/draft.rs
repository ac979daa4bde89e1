//! Changes of a session that nobody has decided about: stacked for its later
//! runs, and seen as one.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
pub use weighlock_api::{Draft, DraftRun};
use weighlock_effects::{Change, Changes, Kind, Page, Raw, Root, Source};
use weighlock_store::ChangesRow;
use weighlock_walls::{Sandbox, WorkDir};

use super::copy::Copied;
use super::list::{ChangesInfo, FileDiff, Looking};
use super::{CHANGES, apart, copy_dir};
use crate::core::Core;
use crate::engine::Engine;
use crate::error::{Error, brief};
use crate::principal::Principal;
use crate::rules::clean;
use crate::time;
use crate::view::ChangesRecord;
use crate::view::ChangesView;
use crate::view::Run;
use crate::view::RunRecord;

/// Finds where the held changes of a session are: each directory with the one
/// that has changes to it.
pub(crate) fn held_layers(core: &Core, session: &str) -> Result<Vec<(PathBuf, PathBuf)>, Error> {
    let mut layers = vec![];
    for row in core.store.held_changes(Some(session))? {
        let dir = copy_dir(core, &row.run);
        let copied = Copied::load(&dir).map_err(Error::file(&dir))?;
        layers.extend(copied.iter().flat_map(Copied::uppers));
    }
    Ok(layers)
}

impl Engine {
    /// Lists the undecided changes that somebody may see, by session.
    pub fn drafts(&self, session: Option<&str>, who: &Principal) -> Result<Vec<Draft>, Error> {
        let mut drafts: BTreeMap<String, Draft> = BTreeMap::new();
        for row in self.core.store.held_changes(session)?.into_iter().rev() {
            let Some(command) = self.core.store.named(&row.run)?.pop() else {
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

    /// Finds a working directory that only the held changes of a session have.
    pub(crate) fn place_in_draft(
        &self,
        sandbox: &Sandbox,
        asked: Option<&str>,
        session: &str,
    ) -> Result<Option<WorkDir>, Error> {
        let whole = self.walls.directory_of(sandbox);
        let path = clean(&whole.join(asked.unwrap_or(".")));
        if !path.starts_with(whole) || path.to_str().is_none() {
            return Ok(None);
        }
        for row in self.core.store.held_changes(Some(session))? {
            let copied = Copied::load(&self.copy_dir(&row.run)).ok().flatten();
            let roots = copied.map_or(vec![], |copied| copied.roots);
            let found = roots.iter().find_map(|root| open_upper(root, &path));
            if let Some(fd) = found {
                return Ok(Some(WorkDir { path, fd }));
            }
        }
        Ok(None)
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

    /// Applies a session's whole draft in order, if it is the one that was
    /// seen. Stops at the first that cannot be applied.
    pub async fn commit_draft(
        self: &Arc<Self>,
        session: &str,
        hash: Option<&str>,
        who: &Principal,
    ) -> Result<Vec<Run>, Error> {
        if let Some(hash) = hash {
            let (engine, session, who) = (Arc::clone(self), session.to_owned(), who.clone());
            let looking = apart(move || engine.whole_draft(&session, &who)).await?;
            if hash != looking.view.hash {
                return Err(Error::PayloadChanged { approval: None });
            }
        }
        let mut done = vec![];
        for run in self.draft_runs(session, who)? {
            done.push(self.commit_changes(&run.command_id, None, who).await?);
        }
        Ok(done)
    }

    /// Throws a session's whole draft away.
    pub async fn discard_draft(
        self: &Arc<Self>,
        session: &str,
        reason: Option<String>,
        who: &Principal,
    ) -> Result<Vec<Run>, Error> {
        let mut done = vec![];
        for run in self.draft_runs(session, who)?.into_iter().rev() {
            let discarded = self.discard_changes(&run.command_id, reason.clone(), who);
            done.push(discarded.await?);
        }
        Ok(done)
    }

    fn draft_runs(&self, session: &str, who: &Principal) -> Result<Vec<DraftRun>, Error> {
        let mut drafts = self.drafts(Some(session), who)?;
        let found = drafts.pop().map(|draft| draft.runs);
        found.ok_or_else(|| Error::NoDraft {
            session: brief(session),
        })
    }

    fn whole_draft(&self, session: &str, who: &Principal) -> Result<Arc<Looking>, Error> {
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

/// Opens a directory as a layer has it.
fn open_upper(root: &Root, path: &Path) -> Option<OwnedFd> {
    let Source::Upper(upper) = &root.source else {
        return None;
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let upper = open(upper, flags, Mode::empty()).ok()?;
    let rest = path.strip_prefix(&root.live).ok()?;
    openat2(upper, rest, flags, Mode::empty(), resolve).ok()
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
