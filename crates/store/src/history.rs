//! Lists of commands.

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params_from_iter};

use crate::command::{COLUMNS, Command, State, read};
use crate::cursor::rows;
use crate::open::{Error, Store};
use crate::span::{Span, Times, Window};
use crate::visible::{Lane, Visible};

/// Which commands to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only those in this state.
    pub state: Option<State>,
    /// Only those with this coarse status.
    pub status: Option<String>,
    /// Only those whose text contains this, whatever its case.
    pub text: Option<String>,
    /// Only those older than this id.
    pub before: Option<String>,
    /// Only those of this requester; all but `doctor` when not given.
    pub requested_by: Option<String>,
    /// Only those that this principal has allowed.
    pub approved_by: Option<String>,
    /// Only those of this session.
    pub session: Option<String>,
    /// Only those in this sandbox.
    pub sandbox: Option<String>,
    /// Only what the reader may see.
    pub visible: Visible,
    /// Only those made at this time or later, in microseconds since 1970.
    pub since: Option<i64>,
    /// Only those made before this time.
    pub until: Option<i64>,
    /// Only those whose keeper may still be alive.
    pub open: bool,
    /// At most so many.
    pub limit: usize,
}

/// When commands were made.
pub(crate) const TIMES: Times = Times {
    ids: "SELECT command_id AS id FROM terminal_commands INDEXED BY terminal_commands_time \
          WHERE created_at >= ?1 AND created_at < ?2 LIMIT ?3",
    newest_first: true,
};

impl Store {
    /// Lists commands, newest first.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Command>, Error> {
        if filter.text.is_some() {
            // It may read everything, and others should not wait for that.
            list(&self.another_reader()?, filter)
        } else {
            list(&self.lock_reader(), filter)
        }
    }
}

fn list(reader: &Connection, filter: &Filter) -> Result<Vec<Command>, Error> {
    let span = TIMES.span(reader, filter.window())?;
    if span == Span::Nothing {
        return Ok(vec![]);
    }
    let lanes = filter.visible.lanes(filter.asked());
    let mut found = vec![];
    for &lane in &lanes {
        found.extend(walk(reader, filter, lane, &span)?);
    }
    if lanes.len() > 1 {
        found.sort_unstable_by(|a, b| b.id.cmp(&a.id));
        found.dedup_by(|a, b| a.id == b.id);
        found.truncate(filter.limit);
    }
    Ok(found)
}

impl Filter {
    fn asked(&self) -> Lane<'_> {
        Lane {
            who: self.requested_by.as_deref(),
            sandbox: self.sandbox.as_deref(),
        }
    }

    pub(crate) fn window(&self) -> Window {
        Window {
            from: self.since,
            to: self.until,
        }
    }
}

fn walk(
    reader: &Connection,
    filter: &Filter,
    lane: Lane<'_>,
    span: &Span<String>,
) -> Result<Vec<Command>, Error> {
    let (sql, values) = query(filter, lane, span);
    let mut query = reader.prepare_cached(&sql)?;
    let rows = query.query_map(params_from_iter(values), read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Only what is asked for stands in the query, and the index is named: a page
/// of a million commands must not read them all.
pub(crate) fn query(filter: &Filter, lane: Lane<'_>, span: &Span<String>) -> (String, Vec<Sql>) {
    let mut values: Vec<Sql> = vec![rows(filter.limit).into()];
    let mut wanted = String::new();
    let mut add = |condition: &str, value: Sql| {
        values.push(value);
        wanted.push_str(" AND ");
        wanted.push_str(condition);
    };
    let texts = [
        ("state = ?", filter.state.map(State::word)),
        ("status = ?", filter.status.as_deref()),
        below(filter, span),
        ("requested_by = ?", lane.who),
        ("sandbox_id = ?", lane.sandbox),
        ("session_id = ?", filter.session.as_deref()),
        ("approved_by = ?", filter.approved_by.as_deref()),
    ];
    for (condition, text) in texts {
        if let Some(text) = text {
            add(condition, text.to_owned().into());
        }
    }
    if let Span::Between(first, _) = span {
        add("command_id >= ?", first.clone().into());
    }
    // With a plus, which keeps the database from walking along the times.
    if let Some(since) = filter.since {
        add("+created_at >= ?", since.into());
    }
    if let Some(until) = filter.until {
        add("+created_at < ?", until.into());
    }
    if let Some(text) = &filter.text {
        // SQLite knows only the case of ASCII letters.
        let text = text.to_ascii_lowercase();
        add("0 < instr(lower(command), ?)", text.into());
    }
    if lane.who.is_none() {
        wanted.push_str(" AND requested_by <> 'doctor'");
    }
    if filter.open {
        wanted.push_str(" AND open = 1");
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM terminal_commands {} WHERE ?1 > 0{wanted} \
         ORDER BY command_id DESC LIMIT ?1",
        index(filter, lane),
    );
    (sql, values)
}

/// One bound where there could be two: the database would only look up one,
/// and walk to the other.
fn below<'a>(filter: &'a Filter, span: &'a Span<String>) -> (&'static str, Option<&'a str>) {
    match (filter.before.as_deref(), span) {
        (Some(before), Span::Between(_, last)) if before <= last.as_str() => {
            ("command_id < ?", Some(before))
        }
        (_, Span::Between(_, last)) => ("command_id <= ?", Some(last)),
        (before, _) => ("command_id < ?", before),
    }
}

/// Returns what to walk along: the index that leaves the least. What has not
/// ended yet is little, however much there is of everything else.
fn index(filter: &Filter, lane: Lane<'_>) -> &'static str {
    let live = |state| matches!(state, State::Waiting | State::Held | State::Running);
    let live_status = |status| matches!(status, "pending" | "approved");
    if filter.session.is_some() {
        "INDEXED BY terminal_commands_session"
    } else if filter.open {
        "INDEXED BY terminal_commands_open"
    } else if filter.state.is_some_and(live) {
        "INDEXED BY terminal_commands_state"
    } else if filter.status.as_deref().is_some_and(live_status) {
        "INDEXED BY terminal_commands_status"
    } else if filter.approved_by.is_some() {
        "INDEXED BY terminal_commands_approved_by"
    } else if lane.sandbox.is_some() {
        "INDEXED BY terminal_commands_sandbox"
    } else if lane.who.is_some() {
        "INDEXED BY terminal_commands_requested_by"
    } else if filter.state.is_some() {
        "INDEXED BY terminal_commands_state"
    } else if filter.status.is_some() {
        "INDEXED BY terminal_commands_status"
    } else {
        // The ids themselves.
        ""
    }
}
