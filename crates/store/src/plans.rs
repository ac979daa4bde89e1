//! Every list walks along one index, in order, and reads about a page.
//!
//! Told by the database itself: its plan names the index and no sort, and it
//! counts the steps that it takes among many rows.

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, StatementStatus, params_from_iter};

use crate::cursor::PageCursor;
use crate::entries::{self, EntryFilter};
use crate::history::{self, Filter};
use crate::inbox::{self, ApprovalFilter};
use crate::open::{Durability, Store};
use crate::session;
use crate::span::{IdRange, TimeWindow};
use crate::visible::Lane;
use weighlock_api::{ApprovalState, RunStatus, State};

/// Steps that a page of ten may take: a row takes about thirty. Reading over
/// the ten thousand rows of each table takes some fifty thousand.
const STEPS: i32 = 1_000;

const ALL: Lane<'_> = Lane {
    who: None,
    sandbox: None,
};
const OWN: Lane<'_> = Lane {
    who: Some("u7"),
    sandbox: None,
};
const WITHIN: Lane<'_> = Lane {
    who: None,
    sandbox: Some("sb_7"),
};
const OWN_WITHIN: Lane<'_> = Lane {
    who: Some("u7"),
    sandbox: Some("sb_7"),
};

#[test]
fn commands_are_walked_along_an_index() {
    let full = Full::new();
    let check = |lane, filter: Filter, plan: &str| {
        let limit = 10;
        let span = match filter.since {
            Some(_) => IdRange::Between("r_01000".into(), "r_09000".into()),
            None => IdRange::All,
        };
        let query = history::query(&Filter { limit, ..filter }, lane, &span);
        let found = full.walk(query);
        assert_eq!(found.split_once("terminal_commands_").unwrap().1, plan);
    };
    let filter = Filter::default;
    // The first index is that of the ids.
    check(ALL, filter(), "1");
    check(OWN, filter(), "requested_by (requested_by=?)");
    check(WITHIN, filter(), "sandbox (sandbox_id=?)");
    check(OWN_WITHIN, filter(), "sandbox (sandbox_id=?)");

    let session = Filter {
        session: Some("s_7".into()),
        ..filter()
    };
    check(ALL, session.clone(), "session (session_id=?)");
    check(OWN, session, "session (session_id=?)");

    let waiting = Filter {
        state: Some(State::Waiting),
        ..filter()
    };
    check(ALL, waiting.clone(), "state (state=?)");
    check(OWN, waiting, "state (state=?)");
    let failed = Filter {
        state: Some(State::Failed),
        ..filter()
    };
    check(ALL, failed.clone(), "state (state=?)");
    check(OWN, failed, "requested_by (requested_by=?)");
    let pending = Filter {
        status: Some(RunStatus::Pending),
        ..filter()
    };
    check(OWN, pending, "status (status=?)");
    let approved = Filter {
        approved_by: Some("ann".into()),
        ..filter()
    };
    check(ALL, approved, "approved_by (approved_by=?)");

    let asked = Filter {
        verdict: Some("ask".into()),
        ..filter()
    };
    check(ALL, asked, "asked");
    let blocked = Filter {
        verdict: Some("reject".into()),
        ..filter()
    };
    check(ALL, blocked, "state (state=?)");
    let older = Filter {
        before: Some("r_05000".into()),
        ..filter()
    };
    check(ALL, older.clone(), "1 (command_id<?)");
    check(
        OWN,
        older.clone(),
        "requested_by (requested_by=? AND command_id<?)",
    );
    check(WITHIN, older, "sandbox (sandbox_id=? AND command_id<?)");

    let then = Filter {
        since: Some(1_000),
        until: Some(9_000),
        ..filter()
    };
    check(ALL, then.clone(), "1 (command_id>? AND command_id<?)");
    check(
        OWN,
        then.clone(),
        "requested_by (requested_by=? AND command_id>? AND command_id<?)",
    );
    let (sql, values) = history::TIMES.query(then.window());
    assert_eq!(
        full.plan(&sql, &values.map(Sql::from)),
        [
            "CO-ROUTINE (subquery-1)",
            "SEARCH terminal_commands USING COVERING INDEX terminal_commands_time \
             (created_at>? AND created_at<?)",
            "SCAN (subquery-1)",
        ]
    );
}

#[test]
fn a_time_is_looked_up_where_that_helps() {
    let full = Full::new();
    let span = |from, to| {
        let window = TimeWindow { from, to };
        history::TIMES.span(&full.connection, window).unwrap()
    };
    let between = |first: &str, last: &str| IdRange::Between(first.to_owned(), last.to_owned());
    assert_eq!(span(None, None), IdRange::All);
    assert_eq!(
        span(Some(0), None),
        IdRange::All,
        "it begins with them anyway"
    );
    assert_eq!(span(Some(0), Some(20_000)), between("r_00001", "r_10000"));
    assert_eq!(span(Some(9_990), None), between("r_09990", "r_10000"));
    assert_eq!(span(None, Some(9)), between("r_00001", "r_00008"));
    assert_eq!(span(Some(20_000), None), IdRange::Nothing);
}

#[test]
fn approvals_are_walked_along_an_index() {
    let full = Full::new();
    let place = PageCursor {
        rank: 1,
        time: 5_000,
        id: "ap_05000".into(),
    };
    let check = |lane, state, first: &str, further: &str| {
        let filter = ApprovalFilter {
            state,
            limit: 9,
            ..ApprovalFilter::default()
        };
        assert_eq!(full.walk(inbox::query(&filter, lane, None)), first);
        let query = inbox::query(&filter, lane, Some(&place));
        assert_eq!(full.walk(query), further);
    };
    let pending = Some(ApprovalState::Pending);
    let after = "(rank,created_at,approval_id)>(?,?,?)";
    check(
        ALL,
        pending,
        "pending_time",
        &format!("pending_time ({after})"),
    );
    check(
        OWN,
        pending,
        "pending_requested_by (requested_by=?)",
        &format!("pending_requested_by (requested_by=? AND {after})"),
    );
    check(
        WITHIN,
        pending,
        "pending_sandbox (sandbox_id=?)",
        &format!("pending_sandbox (sandbox_id=? AND {after})"),
    );

    let after = "(created_at,approval_id)<(?,?)";
    check(
        ALL,
        None,
        "approvals_time",
        &format!("approvals_time ({after})"),
    );
    check(
        ALL,
        Some(ApprovalState::Expired),
        "approvals_state (state=?)",
        &format!("approvals_state (state=? AND {after})"),
    );
    check(
        OWN,
        None,
        "approvals_requested_by (requested_by=?)",
        &format!("approvals_requested_by (requested_by=? AND {after})"),
    );
    check(
        WITHIN,
        Some(ApprovalState::Expired),
        "approvals_sandbox (sandbox_id=?)",
        &format!("approvals_sandbox (sandbox_id=? AND {after})"),
    );
}

#[test]
fn entries_are_walked_along_an_index() {
    let full = Full::new();
    let check = |filter: EntryFilter, plan: &str| {
        let limit = 10;
        let span = match filter.from {
            Some(_) => IdRange::Between(1_000, 9_000),
            None => IdRange::All,
        };
        let query = EntryFilter { limit, ..filter }.query(&span);
        assert_eq!(full.walk(query), plan);
    };
    let filter = EntryFilter::default;
    check(filter(), "PRIMARY KEY (rowid>?)");
    let run = Some("r_00007".into());
    check(
        EntryFilter { run, ..filter() },
        "audit_run (run=? AND seq>?)",
    );
    let sandbox = EntryFilter {
        sandbox: Some("sb_7".into()),
        ..filter()
    };
    check(sandbox.clone(), "audit_sandbox (sandbox=? AND seq>?)");
    let then = EntryFilter {
        from: Some(1_000),
        to: Some(9_000),
        ..sandbox
    };
    check(then, "audit_sandbox (sandbox=? AND seq>? AND seq<?)");
    let window = TimeWindow {
        from: Some(1_000),
        to: None,
    };
    let (sql, values) = entries::TIMES.query(window);
    assert_eq!(
        full.plan(&sql, &values.map(Sql::from))[1],
        "SEARCH audit USING COVERING INDEX audit_time (time>? AND time<?)"
    );
    let owner = Some("u7".into());
    check(
        EntryFilter { owner, ..filter() },
        "audit_owner (owner=? AND seq>?)",
    );
    let kind = Some("run.".into());
    check(EntryFilter { kind, ..filter() }, "audit_kind (seq>?)");
}

#[test]
fn sessions_are_walked_along_an_index() {
    let full = Full::new();
    let place = PageCursor {
        rank: 0,
        time: 5_000,
        id: "s_05000".into(),
    };
    let check = |lane, first: &str, further: &str| {
        let plan = |plan: &str| format!("terminal_sessions_{plan}");
        assert_eq!(full.walk(session::query(lane, None, 9)), plan(first));
        let query = session::query(lane, Some(&place), 9);
        assert_eq!(full.walk(query), plan(further));
    };
    check(ALL, "time", "time ((created_at,session_id)<(?,?))");
    check(
        OWN,
        "principal (principal_id=?)",
        "principal (principal_id=? AND (created_at,session_id)<(?,?))",
    );
    check(
        WITHIN,
        "sandbox (sandbox_id=?)",
        "sandbox (sandbox_id=? AND (created_at,session_id)<(?,?))",
    );
}

/// Ten thousand rows in each table, a hundredth of them of any one principal
/// or sandbox. Nearly all commands have succeeded.
const FILL: &str = "
    CREATE TEMP TABLE n AS WITH RECURSIVE n (i) AS
        (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) SELECT i FROM n;
    INSERT INTO approvals (approval_id, tail, state, fingerprint, requested_by, sandbox_id,
        rank, version, created_at, expires_at, count, needed, body)
    SELECT printf('ap_%05d', i), i, iif(i % 2, 'pending', 'expired'), i,
        'u' || (i / 7 % 100), 'sb_' || (i / 7 % 100), i % 3, 1, i, i, 1, 1, '{}' FROM n;
    INSERT INTO terminal_commands (command_id, tail, session_id, command, cwd, status, state,
        requested_by, approved_by, created_at, updated_at, open, kept_bytes, detail, sandbox_id)
    SELECT printf('r_%05d', i), i, 's_' || (i % 100), 'true', '/',
        iif(i % 100, 'executed', 'pending'), iif(i % 100, 'succeeded', 'waiting'),
        'u' || (i % 100), iif(i % 100, NULL, 'ann'), i, i, 0, 0, '{}', 'sb_' || (i % 100)
    FROM n;
    INSERT INTO terminal_sessions (session_id, principal_id, sandbox_id, label, status,
        created_at, updated_at, closed_at)
    SELECT printf('s_%05d', i), 'u' || (i % 100), 'sb_' || (i % 100), '', '', i, i, i FROM n;
    INSERT INTO audit (seq, run, kind, body, hash, time, actor, sandbox, owner)
    SELECT i, printf('r_%05d', i), 'run.ended', '{}', i, i, 'u7', 'sb_' || (i % 100),
        'u' || (i % 100) FROM n;
";

/// A store with many rows.
struct Full {
    _dir: tempfile::TempDir,
    connection: Connection,
}

impl Full {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Durability::Process).unwrap();
        let connection = Connection::open(&store.database.path).unwrap();
        connection.execute_batch(FILL).unwrap();
        Self {
            _dir: dir,
            connection,
        }
    }

    /// Returns the index that a query walks along, and what it looks up there.
    /// Panics when that is not all, or takes long.
    fn walk(&self, (sql, values): (String, Vec<Sql>)) -> String {
        let plan = self.plan(&sql, &values);
        let [step] = plan.as_slice() else {
            panic!("{sql} takes {plan:#?}");
        };
        let steps = self.steps(&sql, &values);
        assert!(steps < STEPS, "{sql} takes {steps} steps");
        let (_, walk) = step.split_once(" USING ").expect("it uses an index");
        let index = ["COVERING INDEX ", "INDEX ", "INTEGER "];
        let index = index.iter().find_map(|word| walk.strip_prefix(word));
        index.expect("it names the index").to_owned()
    }

    fn plan(&self, sql: &str, values: &[Sql]) -> Vec<String> {
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        let mut query = self.connection.prepare(&sql).unwrap();
        let steps = query.query_map(params_from_iter(values), |row| row.get("detail"));
        steps.unwrap().map(Result::unwrap).collect()
    }

    fn steps(&self, sql: &str, values: &[Sql]) -> i32 {
        let mut query = self.connection.prepare(sql).unwrap();
        let rows = query.query_map(params_from_iter(values), |_| Ok(()));
        assert!(rows.unwrap().count() <= 10, "a page");
        assert_eq!(query.get_status(StatementStatus::Sort), 0, "{sql} sorts");
        query.get_status(StatementStatus::VmStep)
    }
}
