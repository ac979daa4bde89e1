//! What is said of a run's changes in short, with the run itself.

use weighlock_api::ChangesView;
use weighlock_effects::{Change, Changes, Kind, NodeKind};
use weighlock_store::ChangesRow;

/// How many paths are named with the run; the rest is a call away.
const NAMED: usize = 20;

/// Describes changes, found or recorded.
pub(crate) trait ChangesRecord {
    /// Reads the record of changes.
    fn from_row(row: &ChangesRow) -> Self;
    /// Describes what was found on a copy.
    fn of(changes: &Changes, state: &str) -> Self;
    /// Describes a run that changed nothing.
    fn nothing() -> Self;
}

impl ChangesRecord for ChangesView {
    fn from_row(row: &ChangesRow) -> Self {
        serde_json::from_value(row.body.clone()).unwrap_or_default()
    }

    fn of(changes: &Changes, state: &str) -> Self {
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
        view.summary = sum(&view, noun(&told));
        view
    }

    fn nothing() -> Self {
        Self {
            state: "none".into(),
            summary: "changes nothing".into(),
            ..Self::default()
        }
    }
}

/// Returns in a few words what it comes to.
fn sum(view: &ChangesView, noun: Noun) -> String {
    let kinds = [
        (view.modified, "changed", ["changes", "change"]),
        (view.created, "created", ["is created", "are created"]),
        (view.deleted, "deleted", ["is deleted", "are deleted"]),
        (view.renamed, "renamed", ["is renamed", "are renamed"]),
        (
            view.other,
            "with other rights or links",
            ["gets other rights or links", "get other rights or links"],
        ),
    ];
    let mut parts: Vec<String> = vec![];
    for (count, word, verbs) in kinds.into_iter().filter(|(count, ..)| *count > 0) {
        let many = usize::from(count > 1);
        parts.push(match noun {
            None => format!("{count} {word}"),
            Some(nouns) if parts.is_empty() => {
                format!("{count} {} {}", nouns[many], verbs[many])
            }
            Some(_) => format!("{count} {}", verbs[many]),
        });
    }
    match parts.is_empty() {
        true => "only times of modification change".into(),
        false => parts.join(", "),
    }
}

/// What all of something are called: one of them, and several.
type Noun = Option<[&'static str; 2]>;

/// What changes are about; none for files and directories together, of which
/// neither word would be true.
fn noun(told: &[&Change]) -> Noun {
    let directories = told.iter().filter(|change| is_directory(change)).count();
    match directories {
        0 => Some(["file", "files"]),
        all if all == told.len() => Some(["directory", "directories"]),
        _ => None,
    }
}

/// Where a kind comes among the others: what is lost first.
pub(crate) fn rank(kind: Kind) -> u8 {
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
pub(crate) fn shown(changes: &Changes, change: &Change) -> String {
    let live = &changes.roots[change.root].live;
    // In a draft each of its runs has roots of its own.
    let path = match *live == changes.roots[0].live {
        true => change.path.path().to_owned(),
        false => live.join(change.path.path()),
    };
    let slash = if is_directory(change) { "/" } else { "" };
    format!("{}{slash}", path.display())
}

fn is_directory(change: &Change) -> bool {
    let node = change.after.as_ref().or(change.before.as_ref());
    node.is_some_and(|node| node.kind == NodeKind::Directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_summed_up_by_what_happens_to_files() {
        let said = |[modified, created, deleted, renamed, other]: [u64; 5], noun| {
            let view = ChangesView {
                modified,
                created,
                deleted,
                renamed,
                other,
                ..ChangesView::default()
            };
            sum(&view, noun)
        };
        let files = Some(["file", "files"]);
        let directories = Some(["directory", "directories"]);
        for (counts, noun, told) in [
            ([1, 0, 0, 0, 0], files, "1 file changes"),
            ([2, 0, 0, 0, 0], files, "2 files change"),
            ([0, 1, 0, 0, 0], files, "1 file is created"),
            ([0, 0, 1, 0, 0], files, "1 file is deleted"),
            ([0, 0, 3, 0, 0], files, "3 files are deleted"),
            ([0, 0, 1, 0, 0], directories, "1 directory is deleted"),
            ([2, 0, 1, 0, 0], files, "2 files change, 1 is deleted"),
            ([1, 0, 0, 1, 0], files, "1 file changes, 1 is renamed"),
            ([0, 0, 0, 0, 1], files, "1 file gets other rights or links"),
            // A directory and what was in it.
            ([0, 0, 2, 0, 0], None, "2 deleted"),
            ([0; 5], files, "only times of modification change"),
        ] {
            assert_eq!(said(counts, noun), told);
        }
    }
}
