//! Principals, and how they show who they are.

use serde_json::json;
use weighlock_store::{LoginRow, PrincipalRow, Store, TokenRow};

use crate::{assert_verifies, entry, open};

fn principal(name: &str, uid: Option<u32>) -> PrincipalRow {
    PrincipalRow {
        name: name.into(),
        agent: false,
        role: "approver".into(),
        uid,
        active: true,
        body: json!({ "sandboxes": ["sb_1"] }),
        version: 1,
        created_at: 10,
        updated_at: 10,
    }
}

async fn add(store: &Store, row: PrincipalRow) -> bool {
    let entries = vec![entry("principal.added", &row.name)];
    store.principals().add(row, entries).await.unwrap()
}

#[tokio::test]
async fn a_name_and_an_account_belong_to_one_principal() {
    let (_dir, store) = open();
    assert!(add(&store, principal("bob", Some(2))).await);
    assert!(add(&store, principal("ann", Some(u32::MAX))).await);
    assert!(add(&store, principal("bot", None)).await);
    assert!(add(&store, principal("robot", None)).await);
    assert!(!add(&store, principal("ann", Some(3))).await);
    assert!(!add(&store, principal("eve", Some(2))).await);
    assert_eq!(store.audit().newest_seq().unwrap(), 4);
    assert_eq!(
        store.principals().of_uid(u32::MAX).unwrap(),
        Some(principal("ann", Some(u32::MAX)))
    );
    assert_eq!(store.principals().of_uid(9).unwrap(), None);
    assert_eq!(
        store.principals().named("bot").unwrap(),
        Some(principal("bot", None))
    );
    assert_eq!(store.principals().named("eve").unwrap(), None);
    let names: Vec<_> = store.principals().all().unwrap();
    let names: Vec<_> = names.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["ann", "bob", "bot", "robot"]);
}

#[tokio::test]
async fn a_change_is_made_to_what_was_read() {
    let (_dir, store) = open();
    add(&store, principal("ann", Some(1))).await;
    add(&store, principal("bob", Some(2))).await;
    let changed = PrincipalRow {
        agent: true,
        role: "viewer".into(),
        uid: None,
        active: false,
        body: json!(null),
        updated_at: 20,
        ..principal("ann", None)
    };
    let change = |row: &PrincipalRow| store.principals().change(row.clone(), vec![]);
    assert!(change(&changed).await.unwrap());
    assert!(!change(&changed).await.unwrap(), "the version is another");
    let version = 2;
    let expected = PrincipalRow { version, ..changed };
    assert_eq!(
        store.principals().named("ann").unwrap(),
        Some(expected.clone())
    );
    let uid = Some(2);
    assert!(!change(&PrincipalRow { uid, ..expected }).await.unwrap());
    assert!(!change(&principal("eve", None)).await.unwrap());
    assert_verifies(&store);
}

fn token(number: i64, principal: &str) -> TokenRow {
    TokenRow {
        id: format!("tk_{number}"),
        hash: format!("hash {number}"),
        prefix: "wl_ab".into(),
        label: "laptop".into(),
        principal: principal.into(),
        created_by: "ann".into(),
        created_at: number,
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
    }
}

#[tokio::test]
async fn tokens_end_and_are_not_forgotten() {
    let (_dir, store) = open();
    add(&store, principal("ann", None)).await;
    let lost = store
        .tokens()
        .add(token(9, "nobody"), vec![entry("token.added", "")]);
    assert!(lost.await.is_err(), "a token is somebody's");
    assert_eq!(store.tokens().of("ann").unwrap(), []);
    for number in 1..=3 {
        let entries = vec![entry("token.added", "")];
        store
            .tokens()
            .add(token(number, "ann"), entries)
            .await
            .unwrap();
    }
    let again = store.tokens().add(token(3, "ann"), vec![]).await;
    assert!(again.is_err(), "a hash is one token's");
    let all: Vec<_> = (1..=3).rev().map(|number| token(number, "ann")).collect();
    assert_eq!(store.tokens().of("ann").unwrap(), all);
    assert_eq!(store.tokens().of("bob").unwrap(), []);

    let expire = |at| store.tokens().expire("tk_1".into(), at, vec![]);
    assert!(expire(50).await.unwrap());
    assert!(expire(60).await.unwrap());
    assert!(expire(40).await.unwrap());
    let revoke = |id: &str| store.tokens().revoke(id.into(), 70, vec![]);
    assert!(revoke("tk_2").await.unwrap());
    assert!(!revoke("tk_2").await.unwrap());
    assert!(!revoke("tk_4").await.unwrap());
    let late = store.tokens().expire("tk_2".into(), 1, vec![]);
    assert!(!late.await.unwrap(), "it is revoked");
    for at in [80, 90, 85] {
        store.tokens().used("tk_3".into(), at).await.unwrap();
    }
    let found = |hash: &str| store.tokens().by_hash(hash).unwrap();
    let expected = TokenRow {
        expires_at: Some(40),
        ..token(1, "ann")
    };
    assert_eq!(found("hash 1"), Some(expected));
    let expected = TokenRow {
        revoked_at: Some(70),
        ..token(2, "ann")
    };
    assert_eq!(store.tokens().get("tk_2").unwrap(), Some(expected));
    let expected = TokenRow {
        last_used_at: Some(90),
        ..token(3, "ann")
    };
    assert_eq!(found("hash 3"), Some(expected));
    assert_eq!(found("hash 4"), None);
    assert_verifies(&store);
}

#[tokio::test]
async fn logins_end_one_by_one_all_at_once_and_by_age() {
    let (_dir, store) = open();
    add(&store, principal("ann", None)).await;
    let login = |number: i64| LoginRow {
        hash: format!("hash {number}"),
        principal: "ann".into(),
        created_at: number,
        expires_at: number * 100,
    };
    for number in 1..=4 {
        store.logins().add(login(number), vec![]).await.unwrap();
    }
    let there = || {
        (1..=4).filter(|number| {
            store
                .logins()
                .by_hash(&login(*number).hash)
                .unwrap()
                .is_some()
        })
    };
    assert_eq!(store.logins().by_hash("hash 3").unwrap(), Some(login(3)));
    assert!(store.logins().end("hash 2".into(), vec![]).await.unwrap());
    assert!(!store.logins().end("hash 2".into(), vec![]).await.unwrap());
    store.logins().forget(300).await.unwrap();
    assert_eq!(there().collect::<Vec<_>>(), [3, 4]);
    let entries = vec![entry("logins.ended", "")];
    store
        .logins()
        .end_all_of("ann".into(), entries)
        .await
        .unwrap();
    assert_eq!(there().count(), 0);
    assert_eq!(store.audit().newest_seq().unwrap(), 2);
}
