//! Lists of commands.

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params_from_iter};

use crate::command::CommandTable;
use crate::command::{COLUMNS, Command, read};
use crate::cursor::rows;
use crate::error::Error;
use crate::span::{IdRange, TimeColumns, TimeWindow};
use crate::sql::all;
use crate::visible::{Lane, Visible};
use weighlock_api::{RunStatus, State};

/// Which commands to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only those in this state.
    pub state: Option<State>,
    /// Only those with this coarse status.
    pub status: Option<RunStatus>,
    /// Only those whose text contains each of these, whatever its case.
    pub text: Vec<String>,
    /// Only those older than this id.
    pub before: Option<String>,
    /// Only those of this requester; all but `doctor` when not given.
    pub requested_by: Option<String>,
    /// Only those that this principal has allowed.
    pub approved_by: Option<String>,
    /// Only those that somebody, or nobody but the rules, has decided.
    pub by: Option<By>,
    /// Only those with this verdict: `auto`, `ask` or `reject`.
    pub verdict: Option<String>,
    /// Only those with such an exit code.
    pub exit: Option<Exit>,
    /// Only those that a rule of this name blocked or asked about.
    pub rule: Option<String>,
    /// Only those of this terminal, by the id of its run: typed there, or the
    /// terminal itself.
    pub terminal: Option<String>,
    /// Only those whose short id begins with this.
    pub id: Option<String>,
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
    /// Without the newest so many.
    pub skip: usize,
}

/// Who decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// A person, with yes or no.
    Person(String),
    /// No person was asked.
    Nobody,
}

/// How a command ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Is(i32),
    /// With another one.
    Not(i32),
}

/// How many there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// At most as many as were to be counted.
    pub count: u64,
    /// There are more.
    pub more: bool,
}

/// When commands were made.
pub(crate) const TIMES: TimeColumns = TimeColumns {
    ids: "SELECT command_id AS id FROM terminal_commands INDEXED BY terminal_commands_time \
          WHERE created_at >= ?1 AND created_at < ?2 LIMIT ?3",
    newest_first: true,
};

impl CommandTable<'_> {
    /// Lists commands, newest first.
    pub fn list(self, filter: &Filter) -> Result<Vec<Command>, Error> {
        if filter.is_slow() {
            // It may read everything, and others should not wait for that.
            list(&self.database.another_reader()?, filter)
        } else {
            list(&self.database.lock_reader(), filter)
        }
    }

    /// Counts commands, up to the limit.
    pub fn count(self, filter: &Filter) -> Result<Count, Error> {
        let reader = self.database.another_reader()?;
        let span = TIMES.span(&reader, filter.window())?;
        let lanes = filter.visible.lanes(filter.asked());
        if span == IdRange::Nothing || lanes.is_empty() {
            return Ok(Count::default());
        }
        let most = Filter {
            limit: filter.limit.saturating_add(1),
            ..filter.clone()
        };
        let (mut sql, mut values) = (vec![], vec![]);
        for &lane in &lanes {
            let mut wanted = HistoryQuery::of(&most, lane, &span);
            sql.push(format!("SELECT * FROM ({})", wanted.ids(values.len())));
            values.append(&mut wanted.values);
        }
        let sql = format!("SELECT count(*) FROM ({})", sql.join(" UNION "));
        let found: i64 = reader.query_row(&sql, params_from_iter(values), |row| row.get(0))?;
        let found = u64::try_from(found).unwrap_or_default();
        let limit = filter.limit as u64;
        Ok(Count {
            count: found.min(limit),
            more: found > limit,
        })
    }
}

fn list(reader: &Connection, filter: &Filter) -> Result<Vec<Command>, Error> {
    let span = TIMES.span(reader, filter.window())?;
    if span == IdRange::Nothing {
        return Ok(vec![]);
    }
    let lanes = filter.visible.lanes(filter.asked());
    let mut found = vec![];
    if let &[lane] = lanes.as_slice() {
        return walk(reader, filter, lane, &span);
    }
    // What is skipped may be in any of them.
    let whole = Filter {
        limit: filter.limit.saturating_add(filter.skip),
        skip: 0,
        ..filter.clone()
    };
    for &lane in &lanes {
        found.extend(walk(reader, &whole, lane, &span)?);
    }
    found.sort_unstable_by(|a, b| b.id.cmp(&a.id));
    found.dedup_by(|a, b| a.id == b.id);
    let page = found.into_iter().skip(filter.skip).take(filter.limit);
    Ok(page.collect())
}

impl Filter {
    /// Returns whether it may have to look at every command.
    fn is_slow(&self) -> bool {
        !self.text.is_empty() || self.rule.is_some() || self.exit.is_some() || self.by.is_some()
    }

    /// Returns whether only what a person was asked about is wanted.
    fn is_asked(&self) -> bool {
        self.verdict.as_deref() == Some("ask") || matches!(self.by, Some(By::Person(_)))
    }

    fn asked(&self) -> Lane<'_> {
        Lane {
            who: self.requested_by.as_deref(),
            sandbox: self.sandbox.as_deref(),
        }
    }

    pub(crate) fn window(&self) -> TimeWindow {
        TimeWindow {
            from: self.since,
            to: self.until,
        }
    }
}

fn walk(
    reader: &Connection,
    filter: &Filter,
    lane: Lane<'_>,
    span: &IdRange<String>,
) -> Result<Vec<Command>, Error> {
    let (sql, values) = query(filter, lane, span);
    all(reader, &sql, params_from_iter(values), read)
}

/// Only what is asked for stands in the query, and the index is named: a page
/// of a million commands must not read them all.
pub(crate) fn query(filter: &Filter, lane: Lane<'_>, span: &IdRange<String>) -> (String, Vec<Sql>) {
    let wanted = HistoryQuery::of(filter, lane, span);
    let mut sql = wanted.rows();
    if filter.skip > 0 {
        sql.push_str(&format!(" OFFSET {}", filter.skip));
    }
    (sql, wanted.values)
}

/// The conditions of a query. The first value is how many rows there may be.
struct HistoryQuery {
    index: &'static str,
    conditions: Vec<String>,
    values: Vec<Sql>,
}

impl HistoryQuery {
    fn of(filter: &Filter, lane: Lane<'_>, span: &IdRange<String>) -> Self {
        let mut wanted = Self {
            index: index(filter, lane),
            conditions: vec![],
            values: vec![rows(filter.limit).into()],
        };
        wanted.columns(filter, lane, span);
        wanted.times(filter, span);
        wanted.decided(filter);
        for text in &filter.text {
            // SQLite knows only the case of ASCII letters.
            wanted.add("0 < instr(lower(command), ?)", text.to_ascii_lowercase());
        }
        wanted
    }

    /// The rows, newest first.
    fn rows(&self) -> String {
        let from = self.from(0);
        format!("SELECT {COLUMNS} {from} ORDER BY command_id DESC LIMIT ?1")
    }

    /// Selects the ids alone, where so many values come before. Counting needs
    /// no order, and may use a smaller index.
    fn ids(&self, before: usize) -> String {
        let from = self.from(before);
        format!("SELECT command_id {from} LIMIT ?{}", before + 1)
    }

    fn from(&self, before: usize) -> String {
        let mut number = before + 1;
        let index = self.index;
        let mut sql = format!("FROM terminal_commands {index} WHERE ?{number} > 0");
        for condition in &self.conditions {
            sql.push_str(" AND ");
            for (at, piece) in condition.split('?').enumerate() {
                if at > 0 {
                    number += 1;
                    sql.push_str(&format!("?{number}"));
                }
                sql.push_str(piece);
            }
        }
        sql
    }

    fn add(&mut self, condition: &str, value: impl Into<Sql>) {
        self.conditions.push(condition.to_owned());
        self.values.push(value.into());
    }

    fn columns(&mut self, filter: &Filter, lane: Lane<'_>, span: &IdRange<String>) {
        let texts = [
            ("state = ?", filter.state.map(State::word)),
            ("status = ?", filter.status.map(RunStatus::word)),
            below(filter, span),
            ("requested_by = ?", lane.who),
            ("sandbox_id = ?", lane.sandbox),
            ("session_id = ?", filter.session.as_deref()),
            ("approved_by = ?", filter.approved_by.as_deref()),
        ];
        for (condition, text) in texts {
            if let Some(text) = text {
                self.add(condition, text.to_owned());
            }
        }
        if let Some(id) = &filter.id {
            self.add("tail >= ?", id.clone());
            // No id character sorts after `~`.
            self.add("tail < ?", format!("{id}~"));
        }
        if let Some(terminal) = &filter.terminal {
            self.conditions.push(OF_TERMINAL.into());
            self.values
                .extend([terminal.clone().into(), terminal.clone().into()]);
        }
        if lane.who.is_none() {
            self.conditions.push("requested_by <> 'doctor'".into());
        }
        if filter.open {
            self.conditions.push("open = 1".into());
        }
    }

    fn times(&mut self, filter: &Filter, span: &IdRange<String>) {
        if let IdRange::Between(first, _) = span {
            self.add("command_id >= ?", first.clone());
        }
        // With a plus, which keeps the database from walking along the times.
        if let Some(since) = filter.since {
            self.add("+created_at >= ?", since);
        }
        if let Some(until) = filter.until {
            self.add("+created_at < ?", until);
        }
    }

    /// What the policy and people have said, and how it ended.
    fn decided(&mut self, filter: &Filter) {
        match filter.verdict.as_deref() {
            Some("ask") => self.conditions.push(ASKED.into()),
            Some("reject") => self.add("state = ?", State::Blocked.word().to_owned()),
            Some(_) => {
                let blocked = State::Blocked.word();
                self.conditions.push("approval_id IS NULL".into());
                self.add("state <> ?", blocked.to_owned());
            }
            None => {}
        }
        match &filter.by {
            Some(By::Nobody) => self.conditions.push("approval_id IS NULL".into()),
            Some(By::Person(name)) => {
                self.conditions.push(ASKED.into());
                self.add(BY_PERSON, name.clone());
            }
            None => {}
        }
        match filter.exit {
            Some(Exit::Is(code)) => self.add("exit_code = ?", i64::from(code)),
            Some(Exit::Not(code)) => self.add("exit_code <> ?", i64::from(code)),
            None => {}
        }
        if let Some(rule) = &filter.rule {
            self.conditions.push(BY_RULE.into());
            self.values
                .extend([rule.clone().into(), rule.clone().into()]);
        }
    }
}

/// The terminal itself, or typed at its prompt.
const OF_TERMINAL: &str = "(detail ->> '$.in_terminal' = ? OR command_id = ?)";

/// A person was asked.
const ASKED: &str = "approval_id IS NOT NULL";

/// This person has said yes or no.
const BY_PERSON: &str = "EXISTS (SELECT 1 FROM approvals \
     WHERE approvals.approval_id = terminal_commands.approval_id AND decided_by = ?)";

/// A rule is on record where it blocked a command, or was a reason to ask.
const BY_RULE: &str = "(state = 'blocked' AND detail ->> '$.reason.rule' = ? \
     OR EXISTS (SELECT 1 FROM approvals, json_each(body, '$.reasons') \
     WHERE approvals.approval_id = terminal_commands.approval_id \
     AND json_each.value ->> '$.rule' = ?))";

/// One bound where there could be two: the database would only look up one,
/// and walk to the other.
fn below<'a>(filter: &'a Filter, span: &'a IdRange<String>) -> (&'static str, Option<&'a str>) {
    match (filter.before.as_deref(), span) {
        (Some(before), IdRange::Between(_, last)) if before <= last.as_str() => {
            ("command_id < ?", Some(before))
        }
        (_, IdRange::Between(_, last)) => ("command_id <= ?", Some(last)),
        (before, _) => ("command_id < ?", before),
    }
}

/// Returns what to walk along: the index that leaves the least. What has not
/// ended yet is little, however much there is of everything else.
fn index(filter: &Filter, lane: Lane<'_>) -> &'static str {
    let live = |state| matches!(state, State::Waiting | State::Held | State::Running);
    let live_status = |status| matches!(status, RunStatus::Pending | RunStatus::Approved);
    if filter.id.is_some() {
        "INDEXED BY terminal_commands_tail"
    } else if filter.terminal.is_some() {
        // Two indexes, one for each way to belong to it.
        ""
    } else if filter.session.is_some() {
        "INDEXED BY terminal_commands_session"
    } else if filter.open {
        "INDEXED BY terminal_commands_open"
    } else if filter.state.is_some_and(live) {
        "INDEXED BY terminal_commands_state"
    } else if filter.status.is_some_and(live_status) {
        "INDEXED BY terminal_commands_status"
    } else if filter.approved_by.is_some() {
        "INDEXED BY terminal_commands_approved_by"
    } else if filter.verdict.as_deref() == Some("reject") {
        "INDEXED BY terminal_commands_state"
    } else if filter.is_asked() {
        "INDEXED BY terminal_commands_asked"
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
