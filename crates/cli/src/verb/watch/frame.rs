//! The screen of `watch`, line by line.

use weighlock_api::{ApprovalView, Risk, Run};

use super::model::Model;
use crate::text::{aligned, command_line, counted, duration, fit, one_line, size};
use crate::verb::{pause, runs};
use crate::when::{clock, counter, seconds_since};

const KEYS: &str = "j/k move · Enter open · a approve · r reject · P pause all · q quit";

/// Returns as many lines as there are rows, none wider than the screen.
pub(super) fn lines(
    model: &Model,
    selected: Option<&str>,
    note: Option<&str>,
    (rows, columns): (usize, usize),
) -> Vec<String> {
    let mut lines = vec![header(model, columns)];
    lines.extend(paused(model));
    let room = rows.saturating_sub(lines.len() + 1);
    lines.extend(sections(model, selected, room));
    lines.resize(rows.saturating_sub(1), String::new());
    lines.push(note.map_or_else(|| KEYS.to_owned(), |note| one_line(note, columns)));
    { lines.iter() }
        .map(|line| fit(line.trim_end(), columns))
        .collect()
}

fn header(model: &Model, columns: usize) -> String {
    let mut said = vec![format!("weighlock {}", one_line(&model.me.version, 20))];
    said.push(match model.connected {
        true => "● connected".into(),
        false => "○ reconnecting…".into(),
    });
    said.extend(model.agents.map(|count| counted(count as u64, "agent")));
    said.push(format!("{} running", model.running.len()));
    let now = clock(&jiff::Timestamp::now().to_string());
    aligned(&said.join(" · "), &now, columns)
}

/// What holds new runs, and how many.
fn paused(model: &Model) -> Vec<String> {
    let mut lines: Vec<String> = model.me.pauses.iter().map(pause::in_words).collect();
    if let (Some(last), 1..) = (lines.last_mut(), model.held) {
        last.push_str(&format!("  ({} held)", counted(model.held as u64, "run")));
    }
    lines
}

/// Each section under its heading; what does not fit is not shown, and the
/// selected row always is.
fn sections(model: &Model, selected: Option<&str>, room: usize) -> Vec<String> {
    let mark = |id: &str| if selected == Some(id) { '›' } else { ' ' };
    let waiting: Vec<(&str, String)> = { model.waiting.iter() }
        .map(|one| (one.approval_id.as_str(), waits(one)))
        .collect();
    let running: Vec<(&str, String)> = { model.running.iter() }
        .map(|run| (run.command_id.as_str(), runs_now(run, model)))
        .collect();
    let recent: Vec<(&str, String)> = { model.recent.iter() }
        .map(|run| (run.command_id.as_str(), ended(run)))
        .collect();
    // Three headings; what waits comes first, and leaves something for others.
    let room = room.saturating_sub(3);
    let first = waiting
        .len()
        .min((room / 2).max(room.saturating_sub(running.len() + 3)));
    let second = running.len().min((room - first) * 2 / 3);
    let third = room - first - second;
    let mut lines = vec![];
    for (name, rows, room) in [
        ("WAITING", waiting, first),
        ("RUNNING", running, second),
        ("RECENT", recent, third),
    ] {
        let hidden = rows.len().saturating_sub(room);
        lines.push(match hidden > 0 && name != "RECENT" {
            true => format!("{name}  (and {hidden} more)"),
            false => name.to_owned(),
        });
        let at = rows
            .iter()
            .position(|(id, _)| selected == Some(id))
            .unwrap_or(0);
        let start = (at + 1).saturating_sub(room);
        let shown = rows.iter().skip(start).take(room);
        lines.extend(shown.map(|(id, row)| format!("{} {row}", mark(id))));
    }
    lines
}

fn waits(one: &ApprovalView) -> String {
    let risk = if one.risk == Risk::High { '!' } else { ' ' };
    let many = match one.count {
        0 | 1 => String::new(),
        count => format!("×{count} "),
    };
    format!(
        "{:<9}  {:>5}{risk} {:<12} {:<12} {many}{}",
        one_line(&one.short_id, 9),
        counter(seconds_since(&one.created_at)),
        one_line(&one.requested_by, 12),
        one_line(&one.sandbox, 12),
        command_line(&one.command, 200)
    )
}

fn runs_now(run: &Run, model: &Model) -> String {
    let load = model.load(run).map_or_else(String::new, |load| {
        let plural = if load.processes == 1 { "" } else { "es" };
        format!(
            "{} process{plural}  {}",
            load.processes,
            size(load.memory_bytes)
        )
    });
    let began = run.started_at.as_deref().unwrap_or(&run.created_at);
    format!(
        "{:<9}  {:>5}  {:<12} {:<12} {:<36} {load}",
        one_line(&run.short_id, 9),
        counter(seconds_since(began)),
        one_line(&run.requested_by, 12),
        one_line(model.sandbox(run), 12),
        command_line(&run.command, 36)
    )
}

fn ended(run: &Run) -> String {
    let took = run.detail.duration_ms.map_or_else(String::new, duration);
    format!(
        "{:<9}  {:<12} {:<44} {:<12} {took:>10}",
        clock(&run.created_at),
        one_line(&run.requested_by, 12),
        command_line(&run.command, 44),
        runs::result(run),
    )
}
