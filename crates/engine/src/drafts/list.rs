//! Changes as a person looks at them: all of them, file by file, and as a
//! patch.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use weighlock_api::{ChangeInfo, ChangesInfo};
use weighlock_effects::{Applied, Change, Changes, Conflict, Kind, Node, NodeKind, Page};
use weighlock_store::{ChangesRow, ChangesState};

use super::Drafts;
use crate::copied::{CHANGES, Copied};
use crate::error::Error;
use crate::id;
use crate::mutex::lock;
use crate::principal::Principal;
use crate::view::ChangesRecord;
use crate::view::Run;
use crate::view::{ChangesView, ConflictInfo, rank, shown};

/// The most lines of a diff in one answer.
const MAX_LINES: u64 = 5000;

/// For so many files the changed lines are counted for a list.
const COUNTED: usize = 200;

/// The diff of one file, a page of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    /// The file.
    #[serde(flatten)]
    pub change: ChangeInfo,
    /// Its lines, and other facts about its content.
    #[schemars(with = "serde_json::Value")]
    pub diff: weighlock_effects::FileDiff,
}

/// A cache of the changes that clients read: a client that reads page by page,
/// or file by file, requests the same changes repeatedly, and reading long ones
/// takes a second.
#[derive(Default)]
pub(crate) struct LookedAt(Mutex<Option<(String, Instant, Arc<Looking>)>>);

/// A client that reads page by page comes back within this time.
const REMEMBERED: Duration = Duration::from_secs(60);

impl LookedAt {
    /// Returns what was looked at last, if it has this name; reads it
    /// otherwise.
    pub(super) fn get(
        &self,
        name: String,
        read: impl FnOnce() -> Result<Looking, Error>,
    ) -> Result<Arc<Looking>, Error> {
        if let Some((known, asked, looking)) = &mut *lock(&self.0)
            && *known == name
        {
            *asked = Instant::now();
            return Ok(Arc::clone(looking));
        }
        let looking = Arc::new(read()?);
        *lock(&self.0) = Some((name, Instant::now(), Arc::clone(&looking)));
        Ok(looking)
    }

    /// Forgets what nobody has asked for in a while: it may be large.
    pub(super) fn tidy(&self) {
        lock(&self.0).take_if(|(_, asked, _)| asked.elapsed() > REMEMBERED);
    }
}

/// Changes with what is known about them.
pub(crate) struct Looking {
    pub(super) changes: Changes,
    pub(super) copied: Option<Copied>,
    pub(crate) view: ChangesView,
    pub(super) held: bool,
}

impl Drafts {
    /// Returns what a run changed, from the `from`th path on. Reads files: not
    /// for a thread that others wait for.
    pub fn changes(
        &self,
        id: &str,
        from: usize,
        limit: usize,
        who: &Principal,
    ) -> Result<ChangesInfo, Error> {
        let run = self.runs.find(id, who)?;
        let looking = self.looking(&run)?;
        let mut info = self.listed(&looking, from, limit)?;
        let needed_by = self.built_on(&run.command_id)?;
        info.needed_by = needed_by.iter().map(|row| id::short(&row.run)).collect();
        info.command_id = Some(run.command_id.clone());
        let approval = run.approval_id.as_deref().unwrap_or_default();
        if let Some(question) = self.core.store.approvals().named(approval)?.pop() {
            let header = question.body["effect"]["header"].as_str();
            info.header = header.unwrap_or_default().into();
        }
        if info.header.is_empty() {
            info.header = info.view.summary.clone();
        }
        Ok(info)
    }

    /// Returns the diff of one path, a page of its lines. Reads files.
    pub fn diff(
        &self,
        id: &str,
        index: usize,
        page: Page,
        who: &Principal,
    ) -> Result<FileDiff, Error> {
        let run = self.runs.find(id, who)?;
        let looking = self.looking(&run)?;
        self.diffed(&looking, index, page)
    }

    /// Returns all that a run changed as a patch in git's format. Reads files.
    pub fn patch(&self, id: &str, who: &Principal) -> Result<Vec<u8>, Error> {
        let run = self.runs.find(id, who)?;
        let looking = self.looking(&run)?;
        self.patched(&looking)
    }

    pub(super) fn listed(
        &self,
        looking: &Looking,
        from: usize,
        limit: usize,
    ) -> Result<ChangesInfo, Error> {
        let changes = &looking.changes;
        let conflicts = match (looking.held && from == 0, &looking.copied) {
            (true, Some(copied)) if self.holds_any(&copied.below)? => vec![],
            (true, _) => changes.conflicts()?,
            (false, _) => vec![],
        };
        let judge = looking.copied.as_ref();
        let judge = judge
            .map(|copied| self.judge_for(changes, copied))
            .transpose()?;
        let mut order: Vec<usize> = (0..changes.entries.len()).collect();
        order.sort_by_key(|&index| rank(changes.entries[index].kind));
        let page = order.iter().skip(from).take(limit);
        let told = page.enumerate().map(|(number, &index)| {
            let mut info = change_info(changes, index);
            if number < COUNTED
                && let Some((added, removed)) = changes.counts(index)
            {
                (info.added, info.removed) = (Some(added), Some(removed));
            }
            let change = &changes.entries[index];
            info.mark = judge.as_ref().and_then(|judge| judge.mark(changes, change));
            info
        });
        Ok(ChangesInfo {
            command_id: None,
            view: looking.view.clone(),
            header: String::new(),
            directory: { changes.roots.first() }.map(|root| root.live.display().to_string()),
            changes: told.collect(),
            conflicts: { conflicts.iter() }
                .map(|conflict| conflict_info(changes, conflict))
                .collect(),
            needed_by: vec![],
            next: Some(from + limit).filter(|&next| next < order.len()),
        })
    }

    pub(super) fn diffed(
        &self,
        looking: &Looking,
        index: usize,
        mut page: Page,
    ) -> Result<FileDiff, Error> {
        if index >= looking.changes.entries.len() {
            return Err(Error::NoSuchChange { index });
        }
        page.limit = page.limit.min(MAX_LINES);
        let changes = &looking.changes;
        let change = change_info(changes, index);
        let diff = match changes.diff(index, page) {
            // Somebody has overtaken it: then all that the run made of it is
            // shown, and theirs is in its place.
            Err(weighlock_effects::Error::Stale { .. }) => {
                let mut alone = Changes {
                    roots: changes.roots.clone(),
                    entries: vec![changes.entries[index].clone()],
                    refused: vec![],
                };
                alone.entries[0].before = None;
                alone.diff(0, page)?
            }
            diff => diff?,
        };
        Ok(FileDiff { change, diff })
    }

    pub(super) fn patched(&self, looking: &Looking) -> Result<Vec<u8>, Error> {
        let mut text = vec![];
        looking.changes.patch(&mut text)?;
        Ok(text)
    }

    /// Reads what is known of a run's changes: from its copy while they are
    /// held, from what undo needs once they are applied.
    fn looking(&self, run: &Run) -> Result<Arc<Looking>, Error> {
        let none = || Error::NoChanges {
            id: run.short_id.clone(),
        };
        let row = self
            .core
            .store
            .changes()
            .of_run(&run.command_id)?
            .ok_or_else(none)?;
        let name = format!("{} {} {:?}", row.run, row.updated_at, row.state);
        self.looked_at.get(name, || self.read_changes(row, &none))
    }

    fn read_changes(&self, row: ChangesRow, none: &impl Fn() -> Error) -> Result<Looking, Error> {
        let view = ChangesView::from_row(&row);
        let held = row.state == ChangesState::Held;
        // A copy outlives applying where a later run was built on it; what it
        // changed is then no longer in the live tree.
        let applied = match row.state {
            ChangesState::Applied => self.read_applied(&row.run),
            _ => None,
        };
        let copy = self.copy_dir(&row.run);
        if applied.is_none()
            && let Ok(changes) = Changes::load(&copy.join(CHANGES))
        {
            let copied = Copied::load(&copy).ok().flatten();
            return Ok(Looking {
                changes,
                copied,
                view,
                held,
            });
        }
        let applied = applied.or_else(|| self.read_applied(&row.run));
        Ok(Looking {
            changes: applied.ok_or_else(none)?,
            copied: None,
            view,
            held,
        })
    }

    /// Reads what undo needs as changes that can be looked at.
    fn read_applied(&self, run: &str) -> Option<Changes> {
        let undo = self.undo_dir(run);
        let applied = Applied::load(&undo).ok().flatten()?;
        Some(applied.shown(&undo))
    }
}

pub(super) fn change_info(changes: &Changes, index: usize) -> ChangeInfo {
    let change = &changes.entries[index];
    let node = change.after.as_ref().or(change.before.as_ref());
    ChangeInfo {
        index,
        path: shown(changes, change),
        from: { change.from.as_ref() }.map(|from| from.path().display().to_string()),
        kind: word(change.kind).into(),
        is: match node.map(|node| node.kind) {
            Some(NodeKind::Directory) => "directory",
            Some(NodeKind::Link) => "link",
            _ => "file",
        }
        .into(),
        size_before: size(change.before.as_ref()),
        size_after: size(change.after.as_ref()),
        mode_before: mode(change.before.as_ref()),
        mode_after: mode(change.after.as_ref()),
        about: about(changes, index),
        other_names: { change.before.as_ref() }
            .filter(|node| node.kind == NodeKind::File)
            .map_or(0, |node| node.links.saturating_sub(1)),
        ..ChangeInfo::default()
    }
}

fn about(changes: &Changes, index: usize) -> Vec<String> {
    let change = &changes.entries[index];
    let mut lines = changes.about(index);
    if change.kind == Kind::Times
        && let (Some(before), Some(after)) = (&change.before, &change.after)
    {
        let (before, after) = (moment(before), moment(after));
        lines.push(format!("time of modification {before} → {after}"));
    }
    lines
}

fn moment(node: &Node) -> String {
    let nanos = i32::try_from(node.mtime.nanos).unwrap_or_default();
    match jiff::Timestamp::new(node.mtime.seconds, nanos) {
        Ok(time) => time.to_string(),
        Err(_) => format!("{} s after 1970", node.mtime.seconds),
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Created => "created",
        Kind::Modified => "modified",
        Kind::Deleted => "deleted",
        Kind::Renamed => "renamed",
        Kind::Mode => "mode",
        Kind::Link => "link",
        Kind::Times => "times",
    }
}

fn size(node: Option<&Node>) -> Option<u64> {
    let file = node.filter(|node| node.kind == NodeKind::File);
    file.map(|node| node.size)
}

fn mode(node: Option<&Node>) -> Option<String> {
    node.map(|node| format!("{:04o}", node.mode & 0o7777))
}

pub(crate) fn conflict_info(changes: &Changes, conflict: &Conflict) -> ConflictInfo {
    let change = Change {
        root: conflict.root,
        path: conflict.path.clone(),
        kind: Kind::Modified,
        from: None,
        before: None,
        after: None,
        built_on: None,
        overtaken: false,
        shared: false,
        alike: false,
        image: None,
    };
    ConflictInfo {
        path: shown(changes, &change),
        why: conflict.why.clone(),
    }
}

impl Error {
    /// Makes the error for files that are not as changes need them.
    pub(crate) fn conflicts(changes: &Changes, conflicts: &[Conflict]) -> Self {
        let lines = conflicts.iter().map(|conflict| {
            let info = conflict_info(changes, conflict);
            format!("{} ({})", info.path, info.why)
        });
        Self::Conflicts {
            paths: lines.collect(),
        }
    }
}
