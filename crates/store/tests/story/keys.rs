//! A request that is sent twice is done once.

use weighlock_store::{Asked, Hold, Inserted, Key, State};

use crate::{ask, asked, command, entry, hold, id, open, unbegun};

fn key(key: &str, hash: &str) -> Option<Key> {
    Some(Key {
        principal: "bot".into(),
        key: key.into(),
        hash: hash.into(),
    })
}

#[tokio::test]
async fn a_key_names_the_command_that_it_came_with() {
    let (_dir, store) = open();
    let insert = |number, key| {
        let entries = vec![entry("run.started", &id(number))];
        store
            .commands()
            .insert(command(number, "true"), key, entries)
    };
    let before = |number, same| Inserted::Before {
        command_id: id(number),
        same,
    };
    assert_eq!(insert(1, key("a", "h")).await.unwrap(), Inserted::New);
    assert_eq!(insert(2, key("a", "h")).await.unwrap(), before(1, true));
    assert_eq!(insert(2, key("a", "i")).await.unwrap(), before(1, false));
    assert_eq!(insert(3, key("b", "h")).await.unwrap(), Inserted::New);
    let other = key("a", "h").map(|key| Key {
        principal: "robot".into(),
        ..key
    });
    assert_eq!(insert(4, other).await.unwrap(), Inserted::New);
    assert_eq!(
        store.audit().newest_seq().unwrap(),
        3,
        "nothing was done twice"
    );
    assert_eq!(
        store.commands().keyed("bot", "a").unwrap(),
        Some(("h".into(), id(1)))
    );
    assert_eq!(store.commands().keyed("bot", "c").unwrap(), None);
}

#[tokio::test]
async fn what_waits_or_is_held_has_keys_too() {
    let (_dir, store) = open();
    let mut first = ask(1, "f");
    first.key = key("a", "h");
    assert_eq!(asked(&store, first.clone()).await, Asked::New);
    let mut again = ask(2, "f");
    again.key = key("a", "h");
    again.max_pending = 1;
    let command_id = id(1);
    let before = Asked::Before {
        command_id: command_id.clone(),
        same: true,
    };
    assert_eq!(
        asked(&store, again).await,
        before,
        "also when there are too many"
    );

    let hold = |number, key| {
        let held = hold(unbegun(number, State::Held));
        store.pending().hold(Hold { key, ..held }, vec![])
    };
    let before = Asked::Before {
        command_id,
        same: false,
    };
    assert_eq!(hold(3, key("a", "i")).await.unwrap(), before);
    assert_eq!(hold(3, key("b", "i")).await.unwrap(), Asked::New);
}

#[tokio::test]
async fn old_keys_are_forgotten() {
    let (_dir, store) = open();
    for number in 1..=3 {
        let key = key(&number.to_string(), "h");
        let inserted = store
            .commands()
            .insert(command(number, "true"), key, vec![]);
        assert_eq!(inserted.await.unwrap(), Inserted::New);
    }
    store.commands().forget_keys(3).await.unwrap();
    assert_eq!(store.commands().keyed("bot", "2").unwrap(), None);
    assert_eq!(
        store.commands().keyed("bot", "3").unwrap(),
        Some(("h".into(), id(3)))
    );
    let inserted = store
        .commands()
        .insert(command(4, "true"), key("2", "i"), vec![]);
    assert_eq!(inserted.await.unwrap(), Inserted::New);
}
