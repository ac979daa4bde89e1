//! What a run changes, as people read it: a list of files, and their diffs.

mod bare;
mod diff;
mod paint;

use std::collections::HashMap;

use weighlock_api::{ChangeInfo, ChangesInfo, ChangesView, Run, State};

use weighlock_engine::{FileDiff, Shape};

use crate::client::{Client, Failure};
use crate::text::{counted, one_line, safe, size};
pub(crate) use diff::{DiffLineKind, Styled, lines as unified, texts as unified_texts};
pub(crate) use paint::{Paint, has_colors};

/// How many paths are fetched at a time, and lines of a diff: the server's
/// limits.
const PATHS: usize = 500;
const LINES: u64 = 5000;

/// Where changes are found: those of a run, or of a session's draft.
#[derive(Debug, Clone)]
pub(crate) struct ChangesUrls {
    changes: String,
    patch: String,
}

impl ChangesUrls {
    /// The changes of a run.
    pub(crate) fn of_run(id: &str) -> Self {
        Self {
            changes: format!("/commands/{id}/changes"),
            patch: format!("/commands/{id}/patch"),
        }
    }

    /// The draft of a session.
    pub(crate) fn of_draft(session: &str) -> Self {
        Self {
            changes: format!("/sessions/{session}/draft"),
            patch: format!("/sessions/{session}/draft/patch"),
        }
    }

    /// Fetches the first so many paths.
    pub(crate) async fn fetch(
        &self,
        client: &mut Client,
        most: usize,
    ) -> Result<ChangesInfo, Failure> {
        let page =
            |from: usize, limit: usize| format!("{}?from={from}&limit={limit}", self.changes);
        let mut all: ChangesInfo = client.get(&page(0, most.min(PATHS))).await?;
        while let Some(next) = all.next.filter(|&next| next < most) {
            let more: ChangesInfo = client.get(&page(next, PATHS)).await?;
            all.changes.extend(more.changes);
            all.next = more.next;
        }
        Ok(all)
    }

    /// Fetches the whole diff of one path.
    pub(crate) async fn diff(
        &self,
        client: &mut Client,
        change: &ChangeInfo,
        reveal: bool,
    ) -> Result<FileDiff, Failure> {
        if let Some(bare) = bare::diff(change) {
            return Ok(bare);
        }
        let index = change.index;
        let page = |offset: u64| {
            let place = &self.changes;
            format!("{place}/{index}/diff?offset={offset}&limit={LINES}&reveal={reveal}")
        };
        let mut all: FileDiff = client.get(&page(0)).await?;
        while let Some(more) = all.diff.more {
            let next: FileDiff = client.get(&page(more.offset)).await?;
            all.diff.more = next.diff.more;
            for hunk in next.diff.hunks {
                match all.diff.hunks.last_mut() {
                    // One that goes over several pages is on each of them.
                    Some(last)
                        if last.old_start == hunk.old_start && last.new_start == hunk.new_start =>
                    {
                        last.lines.extend(hunk.lines)
                    }
                    _ => all.diff.hunks.push(hunk),
                }
            }
        }
        Ok(all)
    }

    /// Fetches where links among these paths would lead: to follow one may be to
    /// leave the directory.
    pub(crate) async fn links(
        &self,
        client: &mut Client,
        info: &ChangesInfo,
    ) -> Result<Links, Failure> {
        let mut links = Links::default();
        for change in { info.changes.iter() }.filter(|change| change.is == "link") {
            let diff = self.diff(client, change, false).await?.diff;
            if let Shape::Link {
                after: Some(target),
                ..
            } = diff.shape
            {
                links.0.insert(change.index, target);
            }
        }
        Ok(links)
    }

    /// Fetches everything as a patch in git's format.
    pub(crate) async fn patch(&self, client: &mut Client) -> Result<bytes::Bytes, Failure> {
        client.bytes(&self.patch).await
    }
}

/// Where links lead, by the number of their change.
#[derive(Debug, Default)]
pub(crate) struct Links(HashMap<usize, String>);

/// Returns whether a run has ended on a copy, and a person is asked about what
/// it changed there.
pub(crate) fn is_asked_about(run: &Run) -> bool {
    run.state == State::Waiting && is(run, "held")
}

/// Returns whether a run's changes are in a state.
pub(crate) fn is(run: &Run, state: &str) -> bool {
    let changes = run.detail.changes.as_ref();
    changes.is_some_and(|changes| changes.state == state)
}

/// Returns the note that tells a requester that a person applied its changes.
pub(crate) fn applied_note(run: &Run) -> Option<&String> {
    let mut warnings = run.detail.warnings.iter().rev();
    let note = warnings.find(|warning| warning.contains("The previewed changes were applied"));
    note.filter(|_| is(run, "applied"))
}

/// `2 files`
pub(crate) fn files(view: &ChangesView) -> String {
    counted(view.count(), "file")
}

/// One line for each path, at most so many, with what is to be said of it; then
/// what stands in the way.
pub(crate) fn lines(info: &ChangesInfo, links: &Links, most: usize) -> Vec<String> {
    let shown: Vec<&ChangeInfo> = { info.changes.iter() }
        .filter(|change| change.kind != "times")
        .take(most)
        .collect();
    let names: Vec<String> = shown.iter().map(|change| named(change, links)).collect();
    let width = names.iter().map(|name| name.chars().count()).max();
    let width = width.unwrap_or(0).min(WIDEST);
    let mut lines = vec![];
    for (change, name) in shown.iter().zip(&names) {
        let line = format!("{name:<width$}  {}", size_of(change));
        lines.push(line.trim_end().to_owned());
        lines.extend({ change.about.iter() }.map(|line| format!("    {}", path(line))));
        let mark = change.mark.as_deref();
        lines.extend(mark.map(|mark| format!("    ! {}", safe(mark))));
    }
    let more = info.view.count().saturating_sub(shown.len() as u64);
    if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    lines.extend(conflicts(info));
    lines
}

/// Names that are longer stand before their numbers as they are.
const WIDEST: usize = 48;

/// What is not as the run saw it.
fn conflicts(info: &ChangesInfo) -> Vec<String> {
    let conflicts = info.conflicts.iter();
    conflicts
        .map(|one| format!("✗ {}: {}", path(&one.path), safe(&one.why)))
        .collect()
}

/// `R a → b`, `L l → target (link)`
fn named(change: &ChangeInfo, links: &Links) -> String {
    let sign = match change.kind.as_str() {
        "created" => 'A',
        "modified" => 'M',
        "deleted" => 'D',
        "renamed" => 'R',
        "mode" => 'P',
        "link" => 'L',
        _ => 'T',
    };
    let name = path(&change.path);
    let name = match &change.from {
        Some(from) => format!("{sign} {} → {name}", path(from)),
        None => format!("{sign} {name}"),
    };
    match links.0.get(&change.index) {
        Some(target) => format!("{name} → {} (link)", path(target)),
        None => name,
    }
}

/// A path, whole and on one line, whatever is in it.
fn path(text: &str) -> String {
    one_line(text, usize::MAX)
}

/// `+1 −1`, or what else changes.
fn size_of(change: &ChangeInfo) -> String {
    match (change.added, change.removed, change.kind.as_str()) {
        (_, _, "mode") => {
            let (before, after) = (&change.mode_before, &change.mode_after);
            let word = |mode: &Option<String>| mode.clone().unwrap_or_default();
            match before == after {
                true => String::new(),
                false => format!("{} → {}", word(before), word(after)),
            }
        }
        (_, _, "renamed") => String::new(),
        (Some(added), Some(removed), _) => match (added, removed) {
            (0, 0) => String::new(),
            (added, 0) => format!("+{added}"),
            (0, removed) => format!("−{removed}"),
            (added, removed) => format!("+{added} −{removed}"),
        },
        _ => bytes(change.size_before, change.size_after),
    }
}

/// `3 KiB → 4 KiB`
fn bytes(before: Option<u64>, after: Option<u64>) -> String {
    match (before, after) {
        (Some(before), Some(after)) => format!("{} → {}", size(before), size(after)),
        (Some(one), None) | (None, Some(one)) => size(one),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: &str, path: &str) -> ChangeInfo {
        ChangeInfo {
            kind: kind.into(),
            path: path.into(),
            ..ChangeInfo::default()
        }
    }

    #[test]
    fn changes_are_listed_with_their_lines_marks_and_conflicts() {
        let mut edited = change("modified", "README.md");
        (edited.added, edited.removed) = (Some(1), Some(1));
        let mut moved = change("renamed", "b\u{202e}");
        moved.from = Some("a".into());
        let mut hook = change("created", ".envrc");
        (hook.added, hook.removed) = (Some(3), Some(0));
        hook.mark = Some("other programs run it".into());
        let mut link = change("link", "l");
        link.index = 7;
        let info = ChangesInfo {
            view: ChangesView {
                modified: 5,
                ..ChangesView::default()
            },
            changes: vec![edited, moved, hook, link, change("times", "dir/")],
            ..ChangesInfo::default()
        };
        assert_eq!(
            lines(&info, &Links(HashMap::from([(7, "/etc".into())])), 20),
            [
                "M README.md        +1 −1",
                "R a → b⟦U+202E⟧",
                "A .envrc           +3",
                "    ! other programs run it",
                "L l → /etc (link)",
                "… and 1 more",
            ]
        );
    }
}
