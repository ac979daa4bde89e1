//! What is said of a run's changes in short, with the run itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_effects::{Change, Changes, Kind, NodeKind};
use weighlock_store::{ChangesRow, State};

/// How many paths are named with the run; the rest is a call away.
const NAMED: usize = 20;

/// What a run changed on a copy, in short.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ChangesView {
    /// `none`, `held`, `applied`, `discarded` or `undone`.
    pub state: String,
    /// Names exactly what would be, or was applied.
    pub hash: String,
    /// What it comes to: "2 files change".
    pub summary: String,
    /// How many are new.
    pub created: u64,
    /// How many have another content.
    pub modified: u64,
    /// How many are gone.
    pub deleted: u64,
    /// How many have another name.
    pub renamed: u64,
    /// How many have other rights or attributes, or are or were links.
    pub other: u64,
    /// The first of them, as people read them: `M src/main.rs`. At most 20.
    pub paths: Vec<String>,
    /// What the command itself came to, while a person is asked about its
    /// changes and after.
    pub ended_as: Option<State>,
    /// It could reach the network, and what it did there is not among the
    /// changes: the hosts that the command names.
    pub network: Option<Vec<String>>,
    /// Runs whose changes were not applied when it saw them.
    pub built_on: Vec<String>,
    /// Who applied them: a person, or `policy`.
    pub applied_by: Option<String>,
    /// The run that took them back.
    pub undone_by: Option<String>,
    /// They can be taken back.
    pub can_undo: bool,
}

impl ChangesView {
    pub(super) fn from_row(row: &ChangesRow) -> Self {
        serde_json::from_value(row.body.clone()).unwrap_or_default()
    }

    pub(super) fn of(changes: &Changes, state: &str) -> Self {
        let mut view = Self {
            state: state.into(),
            hash: changes.hash(),
            ..Self::default()
        };
        let mut told: Vec<&Change> = vec![];
        for change in &changes.entries {
            match change.kind {
                Kind::Created => view.created += 1,
                Kind::Modified => view.modified += 1,
                Kind::Deleted => view.deleted += 1,
                Kind::Renamed => view.renamed += 1,
                Kind::Mode | Kind::Link => view.other += 1,
                Kind::Times => continue,
            }
            told.push(change);
        }
        told.sort_by_key(|change| rank(change.kind));
        let lines = told.iter().take(NAMED).map(|change| line(changes, change));
        view.paths = lines.collect();
        view.summary = view.sum();
        view
    }

    pub(super) fn nothing() -> Self {
        Self {
            state: "none".into(),
            summary: "changes nothing".into(),
            ..Self::default()
        }
    }

    /// Returns how many paths change.
    pub fn count(&self) -> u64 {
        self.created + self.modified + self.deleted + self.renamed + self.other
    }

    fn sum(&self) -> String {
        let kinds = [
            (self.created, "created"),
            (self.modified, "changed"),
            (self.deleted, "deleted"),
            (self.renamed, "renamed"),
            (self.other, "with other rights or links"),
        ];
        let parts: Vec<String> = { kinds.iter() }
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        match (self.count(), parts.as_slice()) {
            (0, _) => "only times of modification change".into(),
            (1, _) => "1 file changes".into(),
            (count, [_]) if self.modified == count => format!("{count} files change"),
            (_, parts) => parts.join(", "),
        }
    }
}

/// Where a kind comes among the others: what is lost first.
pub(super) fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Deleted => 0,
        Kind::Modified => 1,
        Kind::Created => 2,
        Kind::Renamed => 3,
        Kind::Mode | Kind::Link => 4,
        Kind::Times => 5,
    }
}

/// A change as people read it.
fn line(changes: &Changes, change: &Change) -> String {
    let sign = match change.kind {
        Kind::Created => 'A',
        Kind::Modified => 'M',
        Kind::Deleted => 'D',
        Kind::Renamed => 'R',
        Kind::Mode => 'P',
        Kind::Link => 'L',
        Kind::Times => 'T',
    };
    let path = shown(changes, change);
    match &change.from {
        Some(from) => format!("{sign} {} → {path}", from.path().display()),
        None => format!("{sign} {path}"),
    }
}

/// The path of a change: relative in the sandbox, whole elsewhere. What is a
/// directory ends with a slash.
pub(super) fn shown(changes: &Changes, change: &Change) -> String {
    let live = &changes.roots[change.root].live;
    // In a draft each of its runs has roots of its own.
    let path = match *live == changes.roots[0].live {
        true => change.path.path().to_owned(),
        false => live.join(change.path.path()),
    };
    let node = change.after.as_ref().or(change.before.as_ref());
    let is_dir = node.is_some_and(|node| node.kind == NodeKind::Directory);
    let slash = if is_dir { "/" } else { "" };
    format!("{}{slash}", path.display())
}
