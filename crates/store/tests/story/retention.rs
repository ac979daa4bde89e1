//! The oldest part of the record goes, and what is left still verifies.

use rusqlite::Connection;
use weighlock_store::{Command, Entry, State, Store, Verified, verify_export};

use crate::{answered, approval_id, ask, asked, command, entry, id, no, open};

/// Records a command that is over, with two entries at its own time.
async fn over(store: &Store, number: u32) {
    let at = i64::from(number);
    let told = |kind| Entry {
        time: at,
        ..entry(kind, &id(number))
    };
    let ended = Command {
        state: State::Succeeded,
        open: false,
        ..command(number, "true")
    };
    let entries = vec![told("run.started"), told("run.ended")];
    store.commands().insert(ended, None, entries).await.unwrap();
}

fn exported(store: &Store) -> Verified {
    let mut export = vec![];
    store.audit().export(&mut export).unwrap();
    verify_export(export.as_slice()).unwrap()
}

fn is_known(store: &Store, number: u32) -> bool {
    !store.commands().named(&id(number)).unwrap().is_empty()
}

#[tokio::test]
async fn what_is_old_goes_and_the_chain_verifies() {
    let (_dir, store) = open();
    for number in 1..=10 {
        over(&store, number).await;
    }
    assert_eq!(store.audit().forget(1, 99).await.unwrap().entries, 0);
    assert_eq!(store.audit().verify().unwrap().removed, None);

    let gone = store.audit().forget(5, 99).await.unwrap();
    assert_eq!((gone.entries, gone.commands.len()), (8, 4));
    assert!(!is_known(&store, 4) && is_known(&store, 5));
    let verified = store.audit().verify().unwrap();
    assert_eq!((verified.entries, &verified.fault), (21, &None));
    let removed = verified.removed.clone().unwrap();
    assert_eq!(
        (removed.removed_to, removed.entries, removed.commands),
        (8, 8, 4)
    );
    assert_eq!(
        removed.told(),
        "entries 1 to 8 were removed on 1970-01-01 by retention"
    );
    assert_eq!(exported(&store), verified);

    // And again, with the checkpoint of before in the middle.
    let gone = store.audit().forget(8, 99).await.unwrap();
    assert_eq!((gone.entries, gone.commands.len()), (6, 3));
    let verified = store.audit().verify().unwrap();
    assert_eq!((verified.entries, &verified.fault), (22, &None));
    assert_eq!(verified.removed.as_ref().unwrap().removed_to, 14);
    assert_eq!(exported(&store), verified);
    // All of it but the last word.
    assert_eq!(store.audit().forget(1_000, 99).await.unwrap().entries, 8);
    assert_eq!(exported(&store), store.audit().verify().unwrap());
    assert_eq!(store.audit().verify().unwrap().fault, None);
}

#[tokio::test]
async fn what_is_in_use_stays_with_its_entries() {
    let (_dir, store) = open();
    over(&store, 1).await;
    let told = vec![Entry {
        time: 2,
        ..entry("run.started", &id(2))
    }];
    store
        .commands()
        .insert(command(2, "sleep 9"), None, told)
        .await
        .unwrap();
    over(&store, 3).await;
    assert_eq!(store.audit().forget(1_000, 99).await.unwrap().entries, 2);
    assert!(!is_known(&store, 1) && is_known(&store, 2) && is_known(&store, 3));
    assert_eq!(store.audit().forget(1_000, 99).await.unwrap().entries, 0);
    let ended = Command {
        state: State::Succeeded,
        open: false,
        ..command(2, "sleep 9")
    };
    let told = Entry {
        time: 500,
        ..entry("run.ended", &id(2))
    };
    store.commands().update(ended, vec![told]).await.unwrap();
    // Its end is younger, and what is known of it stays as long as that.
    assert_eq!(store.audit().forget(400, 99).await.unwrap().entries, 4);
    assert!(is_known(&store, 2) && !is_known(&store, 3));
    assert_eq!(store.audit().verify().unwrap().fault, None);
}

#[tokio::test]
async fn questions_go_with_what_they_were_about() {
    let (_dir, store) = open();
    asked(&store, ask(1, "same")).await;
    asked(&store, ask(2, "other")).await;
    assert_eq!(
        store.audit().forget(2_000_000, 99).await.unwrap().entries,
        0
    );
    answered(&store, 1, "same", no("ana")).await;
    assert_eq!(
        store.audit().forget(2_000_000, 99).await.unwrap().entries,
        0
    );
    answered(&store, 2, "other", no("ana")).await;
    let gone = store.audit().forget(2_000_000, 99).await.unwrap();
    assert_eq!(gone.commands, [id(1), id(2)]);
    for number in 1..=2 {
        assert!(
            store
                .approvals()
                .named(&approval_id(number))
                .unwrap()
                .is_empty()
        );
        assert!(
            store
                .approvals()
                .answers(&approval_id(number))
                .unwrap()
                .is_empty()
        );
    }
    assert_eq!(store.audit().verify().unwrap().fault, None);
}

/// Makes a record whose first eight entries retention has removed, changes it,
/// and returns the number of the entry that is found wrong.
async fn tampered(tampering: &str) -> Option<u64> {
    let (dir, store) = open();
    for number in 1..=10 {
        over(&store, number).await;
    }
    store.audit().forget(5, 99).await.unwrap();
    let database = Connection::open(dir.path().join("weighlock.db")).unwrap();
    database.execute_batch(tampering).unwrap();
    let fault = store.audit().verify().unwrap().fault.map(|fault| fault.seq);
    assert_eq!(exported(&store).fault.map(|fault| fault.seq), fault);
    // What is wrong is not thrown away as if it were old.
    if fault.is_some() {
        store.audit().forget(1_000, 99).await.unwrap();
        assert!(
            store.audit().verify().unwrap().fault.is_some(),
            "{tampering}"
        );
    }
    fault
}

#[tokio::test]
async fn tampering_shows_after_a_removal_too() {
    assert_eq!(tampered("").await, None);
    let wrong = [
        ("DELETE FROM audit WHERE seq = 9", 1),
        ("DELETE FROM audit WHERE seq <= 12", 1),
        ("DELETE FROM audit WHERE seq = 12", 12),
        (
            "UPDATE audit SET body = replace(body, 'quote', 'other') WHERE seq = 9",
            9,
        ),
        (
            "UPDATE audit SET body = replace(body, '\"removed_to\":8', '\"removed_to\":9') \
          WHERE seq = 21; DELETE FROM audit WHERE seq = 9",
            21,
        ),
        ("DELETE FROM audit WHERE seq = 21", 1),
    ];
    for (tampering, first) in wrong {
        assert_eq!(tampered(tampering).await, Some(first), "{tampering}");
    }
}
