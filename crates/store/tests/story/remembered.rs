//! What was written is there again, after a restart and in an export.

use weighlock_store::{Command, Durability, EntryFilter, Filter, State, Store, verify_export};

use crate::{command, entry, id, open};

#[tokio::test]
async fn what_was_written_is_recalled_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Durability::Power).unwrap();
    for number in 1..=5 {
        let text = if number == 3 { "make TEST" } else { "true" };
        let entries = vec![entry("run.started", &id(number))];
        store
            .commands()
            .insert(command(number, text), None, entries)
            .await
            .unwrap();
    }
    let ended = Command {
        state: State::Failed,
        exit_code: Some(2),
        ended_at: Some(9),
        open: false,
        kept_bytes: 7,
        ..command(3, "make TEST")
    };
    let entries = vec![entry("run.ended", &id(3))];
    store
        .commands()
        .update(ended.clone(), entries)
        .await
        .unwrap();
    drop(store);

    let store = Store::open(dir.path(), Durability::Process).unwrap();
    for name in [&id(3), "tail000003", "r_tail000003"] {
        assert_eq!(
            store.commands().named(name).unwrap(),
            std::slice::from_ref(&ended)
        );
    }
    assert_eq!(
        store.commands().named("r_tail00000").unwrap().len(),
        2,
        "ambiguous"
    );
    assert_eq!(store.commands().named("r_zzz").unwrap(), []);
    let list = |filter: Filter| -> Vec<i64> {
        let found = store
            .commands()
            .list(&Filter {
                limit: 10,
                ..filter
            })
            .unwrap();
        found.iter().map(|command| command.created_at).collect()
    };
    assert_eq!(list(Filter::default()), [5, 4, 3, 2, 1]);
    let before = Some(id(3));
    assert_eq!(
        list(Filter {
            before,
            ..Filter::default()
        }),
        [2, 1]
    );
    let state = Some(State::Failed);
    assert_eq!(
        list(Filter {
            state,
            ..Filter::default()
        }),
        [3]
    );
    let text = vec!["Test".into()];
    assert_eq!(
        list(Filter {
            text,
            ..Filter::default()
        }),
        [3]
    );
    let requested_by = Some("uid:2".into());
    assert_eq!(
        list(Filter {
            requested_by,
            ..Filter::default()
        }),
        [0; 0]
    );
    assert_eq!(store.commands().open().unwrap().len(), 4);
    assert_eq!(store.commands().oldest_kept(10).unwrap(), [ended]);
    assert_eq!(store.commands().kept_bytes().unwrap(), 7);
    assert_eq!(
        store
            .audit()
            .entries(&EntryFilter {
                run: Some(id(3)),
                limit: 10,
                ..EntryFilter::default()
            })
            .unwrap()
            .len(),
        2
    );
    let verified = store.audit().verify().unwrap();
    assert_eq!((verified.entries, verified.fault), (6, None));
}

#[tokio::test]
async fn one_bad_wish_does_not_spoil_the_others() {
    let (_dir, store) = open();
    store
        .commands()
        .insert(command(1, "true"), None, vec![])
        .await
        .unwrap();
    let insert = |number| {
        let entries = vec![entry("run.started", &id(number))];
        store
            .commands()
            .insert(command(number, "true"), None, entries)
    };
    // The second one is there already; all three meet in one transaction.
    let (a, b, c) = tokio::join!(insert(2), insert(1), insert(3));
    assert!(a.is_ok() && b.is_err() && c.is_ok());
    assert_eq!(
        store
            .commands()
            .list(&Filter {
                limit: 10,
                ..Filter::default()
            })
            .unwrap()
            .len(),
        3
    );
    let verified = store.audit().verify().unwrap();
    assert_eq!(
        (verified.entries, verified.fault),
        (3, None),
        "no entry without its deed: one that says which row was written without any, two of theirs"
    );
}

#[tokio::test]
async fn an_export_is_the_same_chain() {
    let (_dir, store) = open();
    for number in 1..=2500 {
        let entries = vec![entry("run.started", &id(number))];
        store
            .commands()
            .insert(command(number, "true"), None, entries)
            .await
            .unwrap();
    }
    let mut export = vec![];
    assert_eq!(store.audit().export(&mut export).unwrap(), 2500);
    assert_eq!(
        verify_export(export.as_slice()).unwrap(),
        store.audit().verify().unwrap()
    );
}

#[tokio::test]
async fn reading_alone_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    assert!(
        Store::open_read_only(dir.path()).is_err(),
        "and makes no database"
    );
    let store = Store::open(dir.path(), Durability::Process).unwrap();
    store
        .commands()
        .insert(command(1, "true"), None, vec![])
        .await
        .unwrap();
    let reader = Store::open_read_only(dir.path()).unwrap();
    assert_eq!(reader.commands().named(&id(1)).unwrap().len(), 1);
    assert!(
        reader
            .commands()
            .insert(command(2, "true"), None, vec![])
            .await
            .is_err()
    );
}
