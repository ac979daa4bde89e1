//! Describes changes in words.

use weighlock_store::{Approval, Command};

use crate::id;
use crate::view::ChangesView;
use crate::view::{Detail, Reason};

/// Paths that a sentence names.
const NAMED: usize = 3;

/// One sentence about what would change. What goes with a directory is counted
/// there, as long as all of it is listed.
pub(super) fn summary(view: &ChangesView) -> String {
    let lines: Vec<(&str, &str)> = { view.paths.iter() }
        .filter_map(|line| line.split_once(' '))
        .collect();
    let goes_with = |sign: &str, path: &str, dir: &str| {
        sign == "D" && dir.ends_with('/') && path.len() > dir.len() && path.starts_with(dir)
    };
    let within = |dir: &str| -> Vec<&str> {
        let lines = lines.iter();
        let inside = lines.filter(|(sign, path)| goes_with(sign, path, dir));
        inside.map(|(_, path)| *path).collect()
    };
    let is_inside = |path: &str, sign: &str| {
        let mut gone = lines.iter().filter(|(above, _)| *above == "D");
        gone.any(|(_, dir)| goes_with(sign, path, dir))
    };
    let whole = view.count() == lines.len() as u64;
    let mut words = vec![];
    let mut told = 0;
    for (sign, path) in { lines.iter() }
        .filter(|(sign, path)| !is_inside(path, sign))
        .take(NAMED)
    {
        let inside = if *sign == "D" { within(path) } else { vec![] };
        let files = inside.iter().filter(|path| !path.ends_with('/')).count();
        words.push(match files {
            files if whole && files > 0 => {
                let noun = if files == 1 { "file" } else { "files" };
                format!("{} {path} ({files} {noun})", verb(sign))
            }
            _ => format!("{} {path}", verb(sign)),
        });
        told += 1 + inside.len() as u64;
    }
    for word in words.iter_mut().skip(1) {
        *word = format!("{}{}", word[..1].to_lowercase(), &word[1..]);
    }
    match view.count().saturating_sub(told) {
        _ if words.is_empty() => "Changes nothing".into(),
        0 => words.join(", "),
        more => format!("{}, and {more} more", words.join(", ")),
    }
}

fn verb(sign: &str) -> &'static str {
    match sign {
        "A" => "Creates",
        "M" => "Edits",
        "D" => "Deletes",
        "R" => "Renames",
        "P" => "Changes the rights of",
        _ => "Links",
    }
}

/// What is said above the changes.
pub(super) fn header(
    view: &ChangesView,
    command: &Command,
    detail: &Detail,
    stale: usize,
) -> String {
    if stale > 0 {
        let files = if stale == 1 {
            "1 of these files"
        } else {
            &format!("{stale} of these files")
        };
        return format!("{files} changed since the try");
    }
    let (mark, exit) = match (command.exit_code, command.signal) {
        (Some(0), _) => ("✓", "exit 0".to_owned()),
        (Some(code), _) => ("✗", format!("exit {code}")),
        (None, signal) => ("✗", how_it_ended(signal, detail)),
    };
    let took = detail
        .duration_ms
        .map_or(String::new(), |ms| format!(" in {}", duration(ms)));
    let network = match &view.network {
        None => match stopped(detail).as_slice() {
            [] => "no network".to_owned(),
            hosts => format!("it tried to reach {}, which was stopped", hosts.join(", ")),
        },
        Some(hosts) if hosts.is_empty() => {
            "it had network access; what it did there is not shown".to_owned()
        }
        Some(hosts) => format!(
            "it had network access ({}); what it did there is not shown",
            hosts.join(", ")
        ),
    };
    match (view.count(), &view.network) {
        (0, None) if stopped(detail).is_empty() => {
            format!("{mark} tried in a copy: {exit}{took} — changes nothing")
        }
        (0, None) => format!("{mark} tried in a copy: {exit}{took} — changes nothing; {network}"),
        (0, Some(_)) => {
            format!("{mark} tried in a copy: {exit}{took} — changes no files; {network}")
        }
        (_, None) => format!(
            "{mark} tried in a copy: {exit}{took} — {}, nothing else was touched, {network}",
            view.summary
        ),
        (_, Some(_)) => format!(
            "{mark} tried in a copy: {exit}{took} — {}; {network}",
            view.summary
        ),
    }
}

/// Says which limit a run has met, if that has ended it.
fn how_it_ended(signal: Option<i32>, detail: &Detail) -> String {
    let why = detail.reason.as_ref().map(|reason| reason.text.as_str());
    let why = why.and_then(|text| text.split(". ").next());
    match (why, signal) {
        (Some(why), _) => why.trim_end_matches('.').to_owned(),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// Hosts that a run tried to reach where there was no network.
pub(super) fn stopped(detail: &Detail) -> Vec<String> {
    let denials = detail.denials.iter();
    let network = denials.filter(|denial| denial.code == "network");
    network.filter_map(|denial| denial.object.clone()).collect()
}

fn duration(ms: f64) -> String {
    match ms {
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1000.0),
    }
}

/// Returns the message for the requester while the question waits.
pub(super) fn waiting(question: &Approval, command: &Command, detail: &Detail) -> Reason {
    let exit = match command.exit_code {
        Some(code) => format!("exit {code}"),
        None => how_it_ended(command.signal, detail),
    };
    let summary = detail.changes.as_ref().map_or("", |view| &view.summary);
    Reason::new(
        "pending_approval",
        format!(
            "Waiting for approval ({}). It ran on a copy ({exit}): {summary}. A person has been \
             asked to apply that. Later commands of this session see the changes already; go on \
             with other work, or poll the run.",
            id::short(&question.id)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(deleted: u64, other: u64, paths: &[&str]) -> String {
        summary(&ChangesView {
            deleted,
            created: other,
            paths: paths.iter().map(|&path| path.to_owned()).collect(),
            ..ChangesView::default()
        })
    }

    #[test]
    fn what_goes_with_a_directory_is_counted_there() {
        let all = [
            "D build/",
            "D build/a",
            "D build/sub/",
            "D build/sub/b",
            "A log",
        ];
        assert_eq!(said(4, 1, &all), "Deletes build/ (2 files), creates log");
        assert_eq!(said(9, 1, &all), "Deletes build/, creates log, and 5 more");
        assert_eq!(said(2, 0, &["D a", "D ab"]), "Deletes a, deletes ab");
        assert_eq!(said(0, 0, &[]), "Changes nothing");
    }
}
