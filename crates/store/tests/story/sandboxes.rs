//! Sandboxes, sessions in them, and pauses.

use serde_json::json;
use weighlock_store::{Changed, Error, PauseRow, RunStatus, SandboxRow, SessionRow, Visible};

use crate::{assert_verifies, entry, open};

fn sandbox(number: u32, label: &str) -> SandboxRow {
    SandboxRow {
        id: format!("sb_{number}"),
        owner: "ann".into(),
        label: label.into(),
        path: "/srv/app".into(),
        active: true,
        body: json!({ "network": "off" }),
        version: 1,
        created_at: 10,
        updated_at: 10,
    }
}

#[tokio::test]
async fn a_label_is_one_sandboxs_until_it_is_deleted() {
    let (_dir, store) = open();
    let add = |number, label| {
        let entries = vec![entry("sandbox.added", "")];
        store.sandboxes().add(sandbox(number, label), entries)
    };
    assert!(add(1, "web").await.unwrap());
    assert!(add(2, "app").await.unwrap());
    assert!(!add(3, "web").await.unwrap());
    assert_eq!(
        store.sandboxes().all().unwrap(),
        [sandbox(2, "app"), sandbox(1, "web")]
    );

    let change = |row: SandboxRow| {
        store
            .sandboxes()
            .change(row, vec![entry("sandbox.changed", "")])
    };
    assert_eq!(change(sandbox(2, "web")).await.unwrap(), Changed::Taken);
    let changed = SandboxRow {
        owner: "bob".into(),
        path: "/srv/api".into(),
        active: false,
        body: json!({}),
        updated_at: 20,
        ..sandbox(2, "api")
    };
    assert_eq!(change(changed.clone()).await.unwrap(), Changed::Done);
    assert_eq!(change(changed.clone()).await.unwrap(), Changed::Stale);
    let version = 2;
    let changed = SandboxRow { version, ..changed };
    assert_eq!(
        store.sandboxes().all().unwrap(),
        [changed.clone(), sandbox(1, "web")]
    );

    let delete = |id: &str, version| {
        let entries = vec![entry("sandbox.deleted", "")];
        store.sandboxes().delete(id.into(), version, 30, entries)
    };
    assert_eq!(delete("sb_2", Some(1)).await.unwrap(), Changed::Stale);
    assert_eq!(delete("sb_2", Some(2)).await.unwrap(), Changed::Done);
    assert_eq!(delete("sb_2", None).await.unwrap(), Changed::Stale);
    assert_eq!(change(changed).await.unwrap(), Changed::Stale);
    assert_eq!(delete("sb_1", None).await.unwrap(), Changed::Done);
    assert_eq!(store.sandboxes().all().unwrap(), []);
    assert!(add(3, "web").await.unwrap(), "the label is free again");
    assert_eq!(store.audit().newest_seq().unwrap(), 6);
    assert_verifies(&store);
}

fn session(number: i64, principal: &str, sandbox: &str, label: &str) -> SessionRow {
    SessionRow {
        id: format!("s_{number:03}"),
        principal: principal.into(),
        sandbox: sandbox.into(),
        label: label.into(),
        status: RunStatus::Pending,
        created_at: number,
        updated_at: number,
        closed_at: None,
    }
}

#[tokio::test]
async fn a_client_finds_its_open_session_again() {
    let (_dir, store) = open();
    let open = |row: &SessionRow| {
        let entries = vec![entry("session.opened", "")];
        store.sessions().open(row.clone(), entries)
    };
    let first = session(1, "bot", "sb_1", "");
    assert_eq!(open(&first).await.unwrap(), first);
    assert_eq!(open(&session(2, "bot", "sb_1", "")).await.unwrap(), first);
    for (number, other) in [
        (3, ("bot", "sb_1", "x")),
        (4, ("bot", "sb_2", "")),
        (5, ("ann", "sb_1", "")),
    ] {
        let other = session(number, other.0, other.1, other.2);
        assert_eq!(open(&other).await.unwrap(), other);
    }
    let close = || {
        store
            .sessions()
            .close("s_001".into(), 9, vec![entry("session.closed", "")])
    };
    assert!(close().await.unwrap());
    assert!(!close().await.unwrap());
    let closed = SessionRow {
        updated_at: 9,
        closed_at: Some(9),
        ..first
    };
    assert_eq!(store.sessions().get("s_001").unwrap(), Some(closed));
    assert_eq!(store.sessions().get("s_002").unwrap(), None);
    let again = session(6, "bot", "sb_1", "");
    assert_eq!(open(&again).await.unwrap(), again, "a new one");
    assert_eq!(store.audit().newest_seq().unwrap(), 6);
}

#[tokio::test]
async fn sessions_are_listed_to_those_who_may_see_them() {
    let (_dir, store) = open();
    for number in 1..=60 {
        let principal = ["ann", "bob", "bot"][number as usize % 3];
        let sandbox = format!("sb_{}", number % 4);
        let row = session(number, principal, &sandbox, &number.to_string());
        store.sessions().open(row, vec![]).await.unwrap();
    }
    let pages = |visible: &Visible| {
        let mut found = vec![];
        let mut cursor = None;
        loop {
            let (page, next) = store
                .sessions()
                .list(visible, cursor.as_deref(), 7)
                .unwrap();
            found.extend(page.iter().map(|row| row.created_at));
            cursor = next;
            if cursor.is_none() {
                return found;
            }
        }
    };
    let expected = |may: &dyn Fn(i64) -> bool| -> Vec<i64> {
        (1..=60).rev().filter(|number| may(*number)).collect()
    };
    assert_eq!(pages(&Visible::All), expected(&|_| true));
    let own = Visible::Own("bob".into());
    assert_eq!(pages(&own), expected(&|number| number % 3 == 1));
    let within = Visible::Within {
        name: "bob".into(),
        sandboxes: vec!["sb_0".into(), "sb_2".into(), "sb_0".into()],
    };
    let may = |number| number % 3 == 1 || number % 2 == 0;
    assert_eq!(pages(&within), expected(&may));
    let forged = store
        .sessions()
        .list(&own, Some("sessions.0.9.s_009.00000000"), 7);
    assert!(matches!(forged, Err(Error::Cursor)));
}

#[tokio::test]
async fn a_pause_begins_and_ends_once() {
    let (_dir, store) = open();
    let row = |principal: &str, by: &str| PauseRow {
        principal: principal.into(),
        by: by.into(),
        since: 5,
        reason: Some("lunch".into()),
    };
    let pause = |row: PauseRow| store.pauses().begin(row, vec![entry("paused", "")]);
    assert!(pause(row("bot", "ann")).await.unwrap());
    assert!(!pause(row("bot", "bob")).await.unwrap());
    assert!(pause(row("", "bob")).await.unwrap());
    assert_eq!(
        store.pauses().all().unwrap(),
        [row("", "bob"), row("bot", "ann")]
    );
    let resume = |principal: &str| {
        store
            .pauses()
            .end(principal.into(), vec![entry("resumed", "")])
    };
    assert!(resume("").await.unwrap());
    assert!(!resume("").await.unwrap());
    assert_eq!(store.pauses().all().unwrap(), [row("bot", "ann")]);
    assert_eq!(store.audit().newest_seq().unwrap(), 3);
}
