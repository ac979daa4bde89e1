//! Lists of approvals: the inbox, and what was in it.

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params, params_from_iter};

use crate::approval::ApprovalTable;
use crate::approval::{Approval, COLUMNS, read};
use crate::column::Column;
use crate::command::ID_TAIL;
use crate::command::STATE;
use crate::cursor::{PageCursor, rows};
use crate::error::Error;
use crate::sql::all;
use crate::visible::{Lane, Visible};
use weighlock_api::{ApprovalState, State};

/// Which approvals to list. Pending ones come with high risk first, then the
/// longest waiting; all others, and all together, newest first.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    /// Only those in this state.
    pub state: Option<ApprovalState>,
    /// Only what the reader may see.
    pub visible: Visible,
    /// Only those in this sandbox.
    pub sandbox: Option<String>,
    /// Only those of this requester.
    pub requested_by: Option<String>,
    /// Where the page before ended.
    pub cursor: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// What waits for people, of everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unanswered {
    /// Questions.
    pub questions: u64,
    /// When the oldest of them was asked, in microseconds since 1970.
    pub oldest: Option<i64>,
    /// Commands that are held because work is paused.
    pub held: u64,
    /// Runs whose changes nobody has decided about.
    pub undecided: u64,
}

impl ApprovalTable<'_> {
    /// Counts what waits for people, of everybody.
    pub fn unanswered(self) -> Result<Unanswered, Error> {
        let sql = "SELECT (SELECT count(*) FROM approvals WHERE state = 'pending'), \
                   (SELECT min(created_at) FROM approvals WHERE state = 'pending'), \
                   (SELECT count(*) FROM terminal_commands WHERE state = 'held'), \
                   (SELECT count(*) FROM changes WHERE state = 'held')";
        Ok(self.database.lock_reader().query_row(sql, [], |row| {
            Ok(Unanswered {
                questions: row.get(0)?,
                oldest: row.get(1)?,
                held: row.get(2)?,
                undecided: row.get(3)?,
            })
        })?)
    }

    /// Lists approvals, with the cursor of the next page.
    pub fn list(self, filter: &ApprovalFilter) -> Result<(Vec<Approval>, Option<String>), Error> {
        let order = ListOrder::of(filter);
        let cursor = filter.cursor.as_deref();
        let after = cursor
            .map(|text| PageCursor::parse(text, order.list()))
            .transpose()?;
        let reader = self.database.lock_reader();
        let mut found = vec![];
        for lane in filter.visible.lanes(filter.asked()) {
            found.extend(walk(&reader, filter, lane, after.as_ref())?);
        }
        order.sort(&mut found);
        found.dedup_by(|a, b| a.id == b.id);
        let more = found.len() > filter.limit;
        found.truncate(filter.limit);
        let last = found.last().filter(|_| more);
        let next = last.map(|approval| place(approval).text(order.list()));
        Ok((found, next))
    }

    /// Counts the pending ones that a reader may see.
    pub fn count_pending(self, visible: &Visible) -> Result<u64, Error> {
        let own = match visible {
            Visible::Within { name, .. } => Some(name.as_str()),
            _ => None,
        };
        let reader = self.database.lock_reader();
        let mut count = 0;
        for lane in visible.lanes(Lane::default()) {
            // Own ones in a sandbox are counted as own ones.
            let but = own.filter(|_| lane.who.is_none());
            count += count_in(&reader, lane, but)?;
        }
        Ok(count)
    }

    /// Recalls the approvals that an id names: a whole one, or the beginning
    /// of its short form. At most two, which is one too many.
    pub fn named(self, id: &str) -> Result<Vec<Approval>, Error> {
        let short = id.strip_prefix("ap_").unwrap_or(id);
        let (column, from) = if short.len() > ID_TAIL {
            ("approval_id", format!("ap_{short}"))
        } else {
            ("tail", short.to_owned())
        };
        // No id character sorts after `~`.
        let to = format!("{from}~");
        let sql = format!(
            "SELECT {COLUMNS} FROM approvals WHERE {column} >= ?1 AND {column} < ?2 LIMIT 2"
        );
        all(&self.database.lock_reader(), &sql, params![from, to], read)
    }

    /// Lists the ids and states of the commands that wait or waited for an
    /// approval, oldest first.
    pub fn runs_of(self, approval: &str) -> Result<Vec<(String, State)>, Error> {
        let sql = "SELECT command_id, state FROM terminal_commands WHERE approval_id = ?1 \
                   ORDER BY command_id";
        all(&self.database.lock_reader(), sql, [approval], |row| {
            let state = Column { index: 1, ..STATE };
            Ok((row.get(0)?, state.word(row, State::from_word)?))
        })
    }

    /// Lists since when and until when each pending approval may be answered,
    /// soonest first.
    pub fn deadlines(self) -> Result<Vec<(String, i64, i64)>, Error> {
        let sql = "SELECT approval_id, created_at, expires_at FROM approvals \
                   INDEXED BY pending_deadline \
                   WHERE state = 'pending' ORDER BY expires_at, approval_id";
        all(&self.database.lock_reader(), sql, [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
    }
}

impl ApprovalFilter {
    fn asked(&self) -> Lane<'_> {
        Lane {
            who: self.requested_by.as_deref(),
            sandbox: self.sandbox.as_deref(),
        }
    }
}

/// In which order a list is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListOrder {
    Urgent,
    Newest,
}

impl ListOrder {
    fn of(filter: &ApprovalFilter) -> Self {
        if filter.state == Some(ApprovalState::Pending) {
            Self::Urgent
        } else {
            Self::Newest
        }
    }

    /// Returns the name of the list, for its cursors.
    fn list(self) -> &'static str {
        match self {
            Self::Urgent => "urgent",
            Self::Newest => "newest",
        }
    }

    fn sort(self, found: &mut [Approval]) {
        match self {
            Self::Urgent => found.sort_unstable_by_key(place),
            Self::Newest => found.sort_unstable_by_key(|approval| {
                std::cmp::Reverse((approval.created_at, approval.id.clone()))
            }),
        }
    }
}

fn place(approval: &Approval) -> PageCursor {
    PageCursor {
        rank: approval.risk.rank(),
        time: approval.created_at,
        id: approval.id.clone(),
    }
}

fn walk(
    reader: &Connection,
    filter: &ApprovalFilter,
    lane: Lane<'_>,
    after: Option<&PageCursor>,
) -> Result<Vec<Approval>, Error> {
    let (sql, values) = query(filter, lane, after);
    all(reader, &sql, params_from_iter(values), read)
}

/// As for commands, the index is named. One more than a page is read, to know
/// whether another follows.
pub(crate) fn query(
    filter: &ApprovalFilter,
    lane: Lane<'_>,
    after: Option<&PageCursor>,
) -> (String, Vec<Sql>) {
    let order = ListOrder::of(filter);
    let mut values: Vec<Sql> = vec![rows(filter.limit.saturating_add(1)).into()];
    let mut wanted = String::new();
    let mut add = |condition: &str, new: &[Sql]| {
        wanted.push_str(" AND ");
        wanted.push_str(condition);
        values.extend_from_slice(new);
    };
    match filter.state {
        // Spelt out, or the index of pending ones would not be used.
        Some(ApprovalState::Pending) => add("state = 'pending'", &[]),
        Some(state) => add("state = ?", &[state.word().to_owned().into()]),
        None => {}
    }
    if let Some(who) = lane.who {
        add("requested_by = ?", &[who.to_owned().into()]);
    }
    if let Some(sandbox) = lane.sandbox {
        add("sandbox_id = ?", &[sandbox.to_owned().into()]);
    }
    if let Some(PageCursor { rank, time, id }) = after.cloned() {
        let place = [rank.into(), time.into(), id.into()];
        match order {
            ListOrder::Urgent => add("(rank, created_at, approval_id) > (?, ?, ?)", &place),
            ListOrder::Newest => add("(created_at, approval_id) < (?, ?)", &place[1..]),
        }
    }
    let by = match order {
        ListOrder::Urgent => "rank, created_at, approval_id",
        ListOrder::Newest => "created_at DESC, approval_id DESC",
    };
    let index = index(filter, lane);
    let sql = format!(
        "SELECT {COLUMNS} FROM approvals INDEXED BY {index} WHERE ?1 > 0{wanted} \
         ORDER BY {by} LIMIT ?1"
    );
    (sql, values)
}

fn index(filter: &ApprovalFilter, lane: Lane<'_>) -> &'static str {
    let pending = ListOrder::of(filter) == ListOrder::Urgent;
    match (lane.who, lane.sandbox, filter.state) {
        (Some(_), _, _) if pending => "pending_requested_by",
        (_, Some(_), _) if pending => "pending_sandbox",
        _ if pending => "pending_time",
        (Some(_), _, _) => "approvals_requested_by",
        (_, Some(_), _) => "approvals_sandbox",
        (_, _, Some(_)) => "approvals_state",
        _ => "approvals_time",
    }
}

fn count_in(reader: &Connection, lane: Lane<'_>, but: Option<&str>) -> Result<u64, Error> {
    let (index, condition, name) = match (lane.who, lane.sandbox) {
        (Some(who), _) => ("pending_requested_by", "requested_by = ?1", who),
        (None, Some(id)) => ("pending_sandbox", "sandbox_id = ?1", id),
        (None, None) => ("pending_time", "?1 = ''", ""),
    };
    let sql = format!(
        "SELECT count(*) FROM approvals INDEXED BY {index} WHERE state = 'pending' \
         AND {condition} AND (?2 IS NULL OR requested_by <> ?2)"
    );
    let mut query = reader.prepare_cached(&sql)?;
    Ok(query.query_row(params![name, but], |row| row.get(0))?)
}
