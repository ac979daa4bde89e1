//! How changes are told in words.

use weighlock_store::{Approval, Command};

use super::view::ChangesView;
use crate::id;
use crate::view::{Detail, Reason};

/// One sentence about what would change.
pub(super) fn summary(view: &ChangesView) -> String {
    let named: Vec<&str> = view.paths.iter().take(3).map(String::as_str).collect();
    let words = { named.iter() }.map(|line| {
        let (sign, path) = line.split_once(' ').unwrap_or(("", line));
        let verb = match sign {
            "A" => "Creates",
            "M" => "Edits",
            "D" => "Deletes",
            "R" => "Renames",
            "P" => "Changes the rights of",
            _ => "Links",
        };
        format!("{verb} {path}")
    });
    let mut words: Vec<String> = words.collect();
    for word in words.iter_mut().skip(1) {
        *word = format!("{}{}", word[..1].to_lowercase(), &word[1..]);
    }
    match view.count().saturating_sub(words.len() as u64) {
        _ if words.is_empty() => "Changes nothing".into(),
        0 => words.join(", "),
        more => format!("{}, and {more} more", words.join(", ")),
    }
}

/// What is said above the changes.
pub(super) fn header(
    view: &ChangesView,
    command: &Command,
    took: Option<f64>,
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
        (None, Some(signal)) => ("✗", format!("ended by signal {signal}")),
        (None, None) => ("✗", "ended".to_owned()),
    };
    let took = took.map_or(String::new(), |ms| format!(" in {}", duration(ms)));
    let network = match &view.network {
        None => "no network".to_owned(),
        Some(hosts) if hosts.is_empty() => {
            "it could reach the network, and what it did there is not shown".to_owned()
        }
        Some(hosts) => format!(
            "it could reach the network ({}), and what it did there is not shown",
            hosts.join(", ")
        ),
    };
    match (view.count(), &view.network) {
        (0, None) => format!("{mark} tried in a copy: {exit}{took} — changes nothing"),
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

fn duration(ms: f64) -> String {
    match ms {
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1000.0),
    }
}

/// What the requester is told meanwhile.
pub(super) fn waiting(question: &Approval, command: &Command, detail: &Detail) -> Reason {
    let exit = match command.exit_code {
        Some(code) => format!("exit {code}"),
        None => "it did not end by itself".into(),
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
