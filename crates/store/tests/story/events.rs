//! Whoever listens hears every entry, in order, once it is certain.

use std::sync::Arc;

use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use weighlock_store::Entry;

use crate::{answered, ask, asked, command, entry, id, open, yes};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn events_come_in_order_and_after_they_are_certain() {
    let (_dir, store) = open();
    let store = Arc::new(store);
    let mut events = store.audit().events();
    let listener = {
        let store = store.clone();
        tokio::spawn(async move {
            for seq in 1..=400 {
                let event = events.recv().await.unwrap();
                // Another connection finds it, so it was committed.
                let stored = store.audit().recorded_after(seq - 1, 1).unwrap();
                assert_eq!(stored, [(*event).clone()]);
                assert_eq!(event.seq, seq);
            }
        })
    };
    let tasks = (1..=200).map(|number| {
        let store = store.clone();
        tokio::spawn(async move {
            let entries = vec![
                entry("run.started", &id(number)),
                entry("run.x", &id(number)),
            ];
            store
                .commands()
                .insert(command(number, "true"), None, entries)
                .await
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap().unwrap();
    }
    listener.await.unwrap();
    assert_eq!(store.audit().newest_seq().unwrap(), 400);
}

#[tokio::test]
async fn what_did_not_happen_is_not_told() {
    let (_dir, store) = open();
    let mut events = store.audit().events();
    let insert = || {
        let entries = vec![entry("run.started", &id(1))];
        store.commands().insert(command(1, "true"), None, entries)
    };
    assert!(insert().await.is_ok());
    assert!(insert().await.is_err(), "it is there already");
    asked(&store, ask(2, "f")).await;
    answered(&store, 2, "g", yes("ann")).await;
    answered(&store, 3, "f", yes("ann")).await;
    let mut kinds = vec![];
    // An event is told before its deed is answered.
    while let Ok(event) = events.try_recv() {
        kinds.push(event.kind.clone());
    }
    assert_eq!(kinds, ["run.started", "approval.asked"]);
    assert_eq!(events.try_recv(), Err(TryRecvError::Empty));
}

#[tokio::test]
async fn an_event_says_what_was_recorded() {
    let (_dir, store) = open();
    let mut events = store.audit().events();
    let said = Entry {
        time: 1_234_567,
        sandbox: Some("sb_1".into()),
        owner: Some("bot".into()),
        ..entry("run.started", "r_1")
    };
    store.audit().record(vec![said.clone()]).await.unwrap();
    let event = events.recv().await.unwrap();
    let again = Entry {
        time: event.time,
        kind: said.kind,
        actor: event.actor.clone(),
        run: event.run.clone(),
        sandbox: event.sandbox.clone(),
        owner: event.owner.clone(),
        detail: event.detail.clone(),
    };
    assert_eq!((again, event.kind.as_str()), (said.clone(), said.kind));
}

#[tokio::test]
async fn who_falls_behind_is_told_and_reads_on() {
    let (_dir, store) = open();
    let mut events = store.audit().events();
    let entries = (1..=2_000).map(|number| entry("run.x", &id(number)));
    store.audit().record(entries.collect()).await.unwrap();
    assert!(matches!(events.recv().await, Err(RecvError::Lagged(_))));
    let mut after = 0;
    let mut pages = 0;
    loop {
        let page = store.audit().recorded_after(after, 300).unwrap();
        let Some(last) = page.last() else { break };
        let seqs: Vec<_> = page.iter().map(|recorded| recorded.seq).collect();
        assert_eq!(seqs, (after + 1..=last.seq).collect::<Vec<_>>());
        after = last.seq;
        pages += 1;
    }
    assert_eq!((after, pages), (2_000, 7));
    assert_eq!(store.audit().recorded_after(u64::MAX, 10).unwrap(), []);
}
