//! The diff of one path, as people and tools read it.

use weighlock_api::ChangeInfo;

use weighlock_engine::{DiffLine, FileDiff, Hunk, Shape, Side, compare_texts};

use super::{bytes, path};
use crate::text::{safe, safe_prose};

/// What a line of a diff is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiffLineKind {
    /// What the file is called, and what becomes of it.
    Head,
    /// Where the lines below it are.
    Hunk,
    Added,
    Removed,
    Plain,
}

/// One line of text without its newline, and what it is.
pub(crate) type Styled = (DiffLineKind, String);

/// Returns a unified diff of one path. What could act on a terminal or deceive
/// a reader is made harmless, so it is for reading: a patch is another thing.
pub(crate) fn lines(diff: &FileDiff) -> Vec<Styled> {
    let mut lines = head(&diff.change);
    match &diff.diff.shape {
        Shape::Binary {
            before,
            after,
            guess,
        } => {
            let what = guess.as_deref().unwrap_or("binary file");
            lines.push(note(&format!("{what}, {}", bytes(*before, *after))));
        }
        Shape::TooLarge { before, after } => {
            let size = bytes(*before, *after);
            lines.push(note(&format!("too large to show, {size}; see --patch")));
        }
        Shape::Link { before, after } => {
            let target = |sign, target: &String| format!("{sign}→ {}", safe(target));
            lines.extend({ before.iter() }.map(|to| (DiffLineKind::Removed, target('-', to))));
            lines.extend({ after.iter() }.map(|to| (DiffLineKind::Added, target('+', to))));
        }
        Shape::Text | Shape::Directory | Shape::Nothing => {}
    }
    if !diff.diff.hunks.is_empty() {
        let (from, to) = sides(&diff.change);
        lines.push((DiffLineKind::Head, format!("--- {from}")));
        lines.push((DiffLineKind::Head, format!("+++ {to}")));
    }
    lines.extend(diff.diff.hunks.iter().flat_map(hunk));
    lines
}

/// The same of a file that is no run's; nothing is a file that is not there.
pub(crate) fn texts(name: &str, before: Option<&str>, after: Option<&str>) -> Vec<Styled> {
    let side = |text: Option<&str>| text.map_or_else(|| "/dev/null".to_owned(), |_| path(name));
    let bytes = |text: Option<&str>| text.unwrap_or_default().as_bytes().to_vec();
    let hunks = compare_texts(&bytes(before), &bytes(after));
    let mut lines = vec![
        (DiffLineKind::Head, format!("--- {}", side(before))),
        (DiffLineKind::Head, format!("+++ {}", side(after))),
    ];
    lines.extend(hunks.iter().flat_map(hunk));
    lines
}

fn head(change: &ChangeInfo) -> Vec<Styled> {
    let name = path(&change.path);
    let from = change.from.as_deref().map_or_else(|| name.clone(), path);
    let mut lines = vec![format!("diff --git a/{from} b/{name}")];
    match (&change.mode_before, &change.mode_after) {
        (None, Some(mode)) => lines.push(format!("new {} mode {mode}", change.is)),
        (Some(mode), None) => lines.push(format!("deleted {} mode {mode}", change.is)),
        (Some(before), Some(after)) if before != after => {
            lines.push(format!("old mode {before}"));
            lines.push(format!("new mode {after}"));
        }
        _ => {}
    }
    if change.from.is_some() {
        lines.push(format!("rename from {from}"));
        lines.push(format!("rename to {name}"));
    }
    lines.extend(change.about.iter().map(|line| path(line)));
    lines.extend(other_names(change));
    lines
        .into_iter()
        .map(|line| (DiffLineKind::Head, line))
        .collect()
}

/// That a change may reach further than the path says.
fn other_names(change: &ChangeInfo) -> Option<String> {
    let what = match change.other_names {
        0 => return None,
        1 => "this file has another name, which may be outside the sandbox".to_owned(),
        more => format!("this file has {more} other names, which may be outside the sandbox"),
    };
    Some(match change.kind.as_str() {
        "modified" | "mode" => format!("{what}; if it is written in place, they change with it"),
        _ => what,
    })
}

fn sides(change: &ChangeInfo) -> (String, String) {
    let name = path(&change.path);
    let from = change.from.as_deref().map_or_else(|| name.clone(), path);
    let none = || "/dev/null".to_owned();
    match (&change.mode_before, &change.mode_after) {
        (None, _) => (none(), format!("b/{name}")),
        (_, None) => (format!("a/{from}"), none()),
        _ => (format!("a/{from}"), format!("b/{name}")),
    }
}

fn hunk(hunk: &Hunk) -> Vec<Styled> {
    let range = |start: u64, lines: u64| match lines {
        1 => start.to_string(),
        lines => format!("{start},{lines}"),
    };
    let old = range(hunk.old_start, hunk.old_lines);
    let new = range(hunk.new_start, hunk.new_lines);
    let mut lines = vec![(DiffLineKind::Hunk, format!("@@ -{old} +{new} @@"))];
    lines.extend(hunk.lines.iter().flat_map(line));
    lines
}

fn line(line: &DiffLine) -> Vec<Styled> {
    let (style, sign) = match line.side {
        Side::Context => (DiffLineKind::Plain, ' '),
        Side::Added => (DiffLineKind::Added, '+'),
        Side::Removed => (DiffLineKind::Removed, '-'),
    };
    // Tabs are what they are in a file.
    let text: Vec<String> = line.text.split('\t').map(safe_prose).collect();
    let mut lines = vec![(style, format!("{sign}{}", text.join("\t")))];
    if line.no_newline {
        lines.push((DiffLineKind::Plain, "\\ No newline at end of file".into()));
    }
    lines
}

fn note(what: &str) -> Styled {
    (
        DiffLineKind::Plain,
        format!("({})", what.trim_end_matches(", ")),
    )
}
