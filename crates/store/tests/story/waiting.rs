//! Commands that have not begun.

use weighlock_store::{
    Asked, Command, Durability, EntryFilter, Hold, RunStatus, SessionRow, State, Store,
};

use crate::{
    answered, approval_id, ask, asked, assert_verifies, command, entry, hold, id, open, unbegun,
    yes,
};

#[tokio::test]
async fn what_could_begin_is_known_after_a_restart() {
    let (dir, store) = open();
    asked(&store, ask(1, "f")).await;
    asked(&store, ask(2, "g")).await;
    answered(&store, 2, "g", yes("ann")).await;
    let held = unbegun(3, State::Held);
    let kept = store.pending().hold(hold(held.clone()), vec![]);
    assert_eq!(kept.await.unwrap(), Asked::New);
    drop(store);

    let store = Store::open(dir.path(), Durability::Process).unwrap();
    let approved = Command {
        approval: Some(approval_id(2)),
        approved_by: Some("ann".into()),
        updated_at: 500,
        ..unbegun(2, State::Waiting)
    };
    let expected = [
        (approved, "request 2".to_owned()),
        (held, "held".to_owned()),
    ];
    assert_eq!(store.pending().ready().unwrap(), expected);
    let request = store.pending().request(&id(1)).unwrap();
    assert_eq!(request.as_deref(), Some("request 1"));
}

#[tokio::test]
async fn what_was_held_may_have_to_wait_after_all() {
    let (_dir, store) = open();
    for number in 1..=2 {
        let held = unbegun(number, State::Held);
        let kept = store.pending().hold(hold(held), vec![]);
        assert_eq!(kept.await.unwrap(), Asked::New);
    }
    assert_eq!(asked(&store, ask(1, "f")).await, Asked::New);
    let waiting = Command {
        approval: Some(approval_id(1)),
        ..unbegun(1, State::Waiting)
    };
    assert_eq!(store.commands().named(&id(1)).unwrap(), [waiting]);
    let request = store.pending().request(&id(1)).unwrap();
    assert_eq!(request.as_deref(), Some("request 1"));

    let back = unbegun(2, State::Withdrawn);
    let ended = store.pending().end(back.clone(), State::Held, vec![]);
    assert!(ended.await.unwrap());
    assert_eq!(asked(&store, ask(2, "g")).await, Asked::Over);
    assert_eq!(store.commands().named(&id(2)).unwrap(), [back]);
    assert_eq!(store.approvals().deadlines().unwrap().len(), 1);
    assert_verifies(&store);
}

#[tokio::test]
async fn what_is_held_counts_as_pending_once() {
    let (_dir, store) = open();
    let held = |number| Hold {
        max_pending: 1,
        ..hold(unbegun(number, State::Held))
    };
    assert_eq!(
        store.pending().hold(held(1), vec![]).await.unwrap(),
        Asked::New
    );
    assert_eq!(
        store.pending().hold(held(2), vec![]).await.unwrap(),
        Asked::TooMany
    );
    let mut ask = ask(1, "f");
    ask.max_pending = 1;
    assert_eq!(asked(&store, ask.clone()).await, Asked::New);
    assert_eq!(asked(&store, ask).await, Asked::Over, "it is asked about");
    assert_eq!(store.approvals().runs_of(&approval_id(1)).unwrap().len(), 1);
}

#[tokio::test]
async fn what_began_is_not_begun_again() {
    let (_dir, store) = open();
    asked(&store, ask(1, "f")).await;
    answered(&store, 1, "f", yes("ann")).await;
    let begin = |from| {
        let entries = vec![entry("run.started", &id(1))];
        // As it was before it was asked about and approved.
        store.pending().begin(command(1, "make -n"), from, entries)
    };
    assert!(!begin(State::Held).await.unwrap());
    assert!(begin(State::Waiting).await.unwrap());
    assert!(!begin(State::Waiting).await.unwrap());
    let begun = Command {
        approval: Some(approval_id(1)),
        approved_by: Some("ann".into()),
        ..command(1, "make -n")
    };
    assert_eq!(store.commands().named(&id(1)).unwrap(), [begun]);
    let filter = EntryFilter {
        kind: Some("run.started".into()),
        limit: 10,
        ..EntryFilter::default()
    };
    assert_eq!(store.audit().entries(&filter).unwrap().len(), 1);
    let back = unbegun(1, State::Withdrawn);
    let left = store
        .approvals()
        .withdraw(back, "bot".into(), |_| vec![])
        .await
        .unwrap();
    assert_eq!(left, None, "it runs");
}

#[tokio::test]
async fn an_approved_command_is_not_taken_back_but_may_be_ended() {
    let (_dir, store) = open();
    asked(&store, ask(1, "f")).await;
    answered(&store, 1, "f", yes("ann")).await;
    let back = unbegun(1, State::Withdrawn);
    let left = store
        .approvals()
        .withdraw(back.clone(), "bot".into(), |_| vec![]);
    assert_eq!(left.await.unwrap(), None, "the answer came first");
    let ended = store.pending().end(back, State::Waiting, vec![]);
    assert!(ended.await.unwrap());
    assert_eq!(store.pending().ready().unwrap(), []);
}

#[tokio::test]
async fn ending_one_by_one_leaves_no_question_behind() {
    let (_dir, store) = open();
    asked(&store, ask(1, "f")).await;
    asked(&store, ask(2, "f")).await;
    for number in 1..=2 {
        assert_eq!(store.approvals().deadlines().unwrap().len(), 1);
        let blocked = unbegun(number, State::Blocked);
        let entries = vec![entry("run.blocked", &id(number))];
        let ended = store.pending().end(blocked, State::Waiting, entries);
        assert!(ended.await.unwrap());
    }
    assert_eq!(store.approvals().deadlines().unwrap(), []);
    assert_verifies(&store);
}

#[tokio::test]
async fn a_session_says_what_its_last_command_does() {
    let (_dir, store) = open();
    let row = SessionRow {
        id: "s_1".into(),
        principal: "bot".into(),
        sandbox: "sb_1".into(),
        label: "editor".into(),
        status: RunStatus::Executed,
        created_at: 0,
        updated_at: 0,
        closed_at: None,
    };
    store.sessions().open(row, vec![]).await.unwrap();
    let status = |expected: &str, at| {
        let row = store.sessions().get("s_1").unwrap().unwrap();
        assert_eq!((row.status.word(), row.updated_at), (expected, at));
    };
    let session = Some("s_1".to_owned());
    let mut first = ask(1, "f");
    first.command.session = session.clone();
    asked(&store, first).await;
    status("pending", 1);
    answered(&store, 1, "f", yes("ann")).await;
    status("pending", 500);
    let running = Command {
        session: session.clone(),
        updated_at: 501,
        ..command(1, "make")
    };
    let begun = store
        .pending()
        .begin(running.clone(), State::Waiting, vec![]);
    assert!(begun.await.unwrap());
    status("approved", 501);
    let ended = Command {
        state: State::Succeeded,
        updated_at: 502,
        ..running
    };
    store.commands().update(ended, vec![]).await.unwrap();
    status("executed", 502);
    let blocked = Command {
        session,
        ..unbegun(600, State::Blocked)
    };
    store
        .commands()
        .insert(blocked, None, vec![])
        .await
        .unwrap();
    status("rejected", 600);
}
