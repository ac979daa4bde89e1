//! What people are to be told, until they were.

use serde_json::json;
use weighlock_store::{
    CLOSED, ClosedApproval, DeliveryStatus, Durability, Notice, NoticeOutcome, Store, WAITING,
    WebhookRow,
};

use crate::{entry, open};

fn webhook(id: &str) -> WebhookRow {
    WebhookRow {
        id: id.into(),
        owner: "ana".into(),
        url: "https://example.com/secret".into(),
        secret: "whsec_x".into(),
        active: true,
        body: json!({ "label": "x" }),
        version: 1,
        created_at: 1,
        updated_at: 1,
        since: 0,
        status: DeliveryStatus::default(),
    }
}

fn waiting(webhook: &str, event: &str, approval: &str) -> Notice {
    Notice {
        webhook: webhook.into(),
        event: event.into(),
        kind: WAITING.into(),
        subject: approval.into(),
        agent: "coder".into(),
        message: None,
        created_at: 10,
        due_at: 40,
        tried_at: None,
        body: json!({}),
    }
}

fn closing(event: &str, approval: &str) -> ClosedApproval {
    ClosedApproval {
        event: event.into(),
        approval: approval.into(),
        at: 50,
        body: json!({}),
    }
}

fn states(store: &Store, webhook: &str) -> Vec<(String, String)> {
    let mut found: Vec<_> = { store.outbox().newest_of(webhook, 10).unwrap().into_iter() }
        .map(|(notice, state)| (notice.kind, state.word().to_owned()))
        .collect();
    found.sort();
    found
}

async fn with_webhook() -> (tempfile::TempDir, Store) {
    let (dir, store) = open();
    let entries = vec![entry("webhook.added", "r_1")];
    assert!(
        store
            .webhooks()
            .add(webhook("wh_1"), 1, entries)
            .await
            .unwrap()
    );
    (dir, store)
}

#[tokio::test]
async fn a_webhook_is_told_of_what_comes_after_it() {
    let (_dir, store) = open();
    store
        .audit()
        .record(vec![entry("run.started", "r_1")])
        .await
        .unwrap();
    assert!(
        store
            .webhooks()
            .add(webhook("wh_1"), 1, vec![])
            .await
            .unwrap()
    );
    assert_eq!(store.webhooks().get("wh_1").unwrap().unwrap().since, 1);
    let another = store
        .webhooks()
        .add(webhook("wh_2"), 1, vec![])
        .await
        .unwrap();
    assert!(!another, "ana has as many as she may");
    // Switched off and on again, it has missed what was in between.
    let row = |active| WebhookRow {
        active,
        version: if active { 2 } else { 1 },
        ..webhook("wh_1")
    };
    assert!(store.webhooks().change(row(false), vec![]).await.unwrap());
    store
        .audit()
        .record(vec![entry("run.ended", "r_1")])
        .await
        .unwrap();
    assert!(store.webhooks().change(row(true), vec![]).await.unwrap());
    assert_eq!(store.webhooks().get("wh_1").unwrap().unwrap().since, 2);
    assert!(
        !store.webhooks().change(row(true), vec![]).await.unwrap(),
        "it was changed"
    );
}

#[tokio::test]
async fn a_notice_is_put_once_and_is_there_after_a_restart() {
    let (dir, store) = with_webhook().await;
    for _ in 0..2 {
        let notices = vec![
            waiting("wh_1", "1", "ap_1"),
            waiting("wh_gone", "1", "ap_1"),
        ];
        store.outbox().put(notices, vec![], 7).await.unwrap();
    }
    drop(store);
    let store = Store::open(dir.path(), Durability::Process).unwrap();
    assert_eq!(store.webhooks().get("wh_1").unwrap().unwrap().since, 7);
    assert_eq!(store.outbox().due("wh_1", 39, 10).unwrap(), []);
    assert_eq!(
        store.outbox().due("wh_1", 40, 10).unwrap(),
        [waiting("wh_1", "1", "ap_1")]
    );
    // By a clock that was set back, it is not kept for longer.
    assert_eq!(store.outbox().due("wh_1", 9, 10).unwrap().len(), 1);
    assert_eq!(store.outbox().next_due(0).unwrap(), Some(40));
}

#[tokio::test]
async fn what_closes_before_it_was_tried_is_not_told_at_all() {
    let (_dir, store) = with_webhook().await;
    let notices = vec![waiting("wh_1", "1", "ap_1")];
    store
        .outbox()
        .put(notices, vec![closing("2", "ap_1")], 2)
        .await
        .unwrap();
    assert_eq!(states(&store, "wh_1"), [(WAITING.into(), "dropped".into())]);
}

#[tokio::test]
async fn who_may_have_been_told_hears_that_it_is_over_once() {
    let (_dir, store) = with_webhook().await;
    let notice = waiting("wh_1", "1", "ap_1");
    store
        .outbox()
        .put(vec![notice.clone()], vec![], 1)
        .await
        .unwrap();
    let tried = store
        .outbox()
        .mark_tried(vec![notice], "msg_1".into(), 45)
        .await
        .unwrap();
    assert_eq!(tried.len(), 1);
    for _ in 0..2 {
        store
            .outbox()
            .put(vec![], vec![closing("2", "ap_1")], 2)
            .await
            .unwrap();
    }
    // It was under way meanwhile, and has arrived: too late to count.
    store
        .outbox()
        .settle(tried.clone(), NoticeOutcome::Sent)
        .await
        .unwrap();
    let dropped = [
        (CLOSED.into(), "due".into()),
        (WAITING.into(), "dropped".into()),
    ];
    assert_eq!(states(&store, "wh_1"), dropped);
    let again = store
        .outbox()
        .mark_tried(tried, "msg_1".into(), 60)
        .await
        .unwrap();
    assert_eq!(again, [], "what is over is not tried again");
}

#[tokio::test]
async fn a_webhook_that_is_gone_takes_its_notices_along() {
    let (_dir, store) = with_webhook().await;
    store
        .outbox()
        .put(vec![waiting("wh_1", "1", "ap_1")], vec![], 1)
        .await
        .unwrap();
    assert!(
        store
            .webhooks()
            .remove("wh_1".into(), vec![])
            .await
            .unwrap()
    );
    assert_eq!(store.outbox().due("wh_1", 99, 10).unwrap(), []);
    assert!(store.webhooks().all().unwrap().is_empty());
}

#[test]
fn a_webhook_is_never_printed_with_its_secrets() {
    let printed = format!("{:?}", webhook("wh_1"));
    assert!(
        !printed.contains("whsec_x") && !printed.contains("example.com"),
        "{printed}"
    );
}
