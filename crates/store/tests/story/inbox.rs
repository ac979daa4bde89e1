//! Pages of approvals.

use std::collections::HashSet;
use std::sync::Arc;

use weighlock_store::{Approval, ApprovalFilter, ApprovalState, Error, Risk, Store, Visible};

use crate::{answered, approval_id, ask, asked, no, open};

const RISKS: [Risk; 3] = [Risk::Low, Risk::Medium, Risk::High];

/// Asks questions of three risks, ten requesters and seven sandboxes.
async fn fill(store: &Arc<Store>, count: u32) {
    let tasks = (1..=count).map(|number| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut ask = ask(number, &format!("f{number}"));
            ask.approval.risk = RISKS[number as usize % 3];
            ask.approval.requested_by = format!("bot{}", number % 10);
            ask.approval.sandbox = format!("sb_{}", number % 7);
            // Pairs have the same time.
            ask.approval.created_at = i64::from(number / 2);
            asked(&store, ask).await
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

fn pending(limit: usize) -> ApprovalFilter {
    ApprovalFilter {
        state: Some(ApprovalState::Pending),
        limit,
        ..ApprovalFilter::default()
    }
}

/// Reads all pages, doing something after each.
async fn pages(
    store: &Store,
    filter: ApprovalFilter,
    mut after: impl AsyncFnMut(&[Approval]),
) -> Vec<Approval> {
    let mut found = vec![];
    let mut filter = filter;
    loop {
        let (page, next) = store.approvals().list(&filter).unwrap();
        assert!(page.len() == filter.limit || next.is_none());
        after(&page).await;
        found.extend(page);
        filter.cursor = next;
        if filter.cursor.is_none() {
            return found;
        }
    }
}

fn assert_urgent_first(found: &[Approval]) {
    let place = |one: &Approval| (std::cmp::Reverse(one.risk), one.created_at, one.id.clone());
    assert!(found.is_sorted_by_key(place));
    let ids: HashSet<_> = found.iter().map(|one| &one.id).collect();
    assert_eq!(ids.len(), found.len(), "none twice");
}

#[tokio::test]
async fn ten_thousand_are_read_page_by_page() {
    let (_dir, store) = open();
    let store = Arc::new(store);
    fill(&store, 10_000).await;
    let all = pages(&store, pending(97), async |_| {}).await;
    assert_eq!(all.len(), 10_000);
    assert_urgent_first(&all);

    let within = Visible::Within {
        name: "bot3".into(),
        sandboxes: vec!["sb_2".into(), "sb_5".into(), "sb_none".into()],
    };
    let may = |one: &&Approval| {
        one.requested_by == "bot3" || one.sandbox == "sb_2" || one.sandbox == "sb_5"
    };
    let own = |one: &&Approval| one.requested_by == "bot3";
    let expected: Vec<_> = all.iter().filter(may).cloned().collect();
    let filter = ApprovalFilter {
        visible: within.clone(),
        ..pending(50)
    };
    assert_eq!(pages(&store, filter.clone(), async |_| {}).await, expected);
    let count = |visible: &Visible| store.approvals().count_pending(visible).unwrap() as usize;
    assert_eq!(count(&within), expected.len());
    assert_eq!(count(&Visible::All), 10_000);
    let visible = Visible::Own("bot3".into());
    assert_eq!(count(&visible), all.iter().filter(own).count());

    // What is asked for beyond what may be seen.
    let sandbox = Some("sb_4".into());
    let filter = ApprovalFilter { sandbox, ..filter };
    let only = |one: &&Approval| own(one) && one.sandbox == "sb_4";
    let expected: Vec<_> = all.iter().filter(only).cloned().collect();
    assert_eq!(pages(&store, filter, async |_| {}).await, expected);
    let requested_by = Some("bot4".into());
    let filter = ApprovalFilter {
        visible,
        requested_by,
        ..pending(50)
    };
    assert_eq!(pages(&store, filter, async |_| {}).await, []);
}

#[tokio::test]
async fn answering_while_reading_makes_no_holes() {
    let (_dir, store) = open();
    let store = Arc::new(store);
    fill(&store, 600).await;
    // Every other one of each page is answered before the next is read.
    let answer = async |page: &[Approval]| {
        for one in page.iter().step_by(2) {
            let number = one.fingerprint[1..].parse().unwrap();
            answered(&store, number, &one.fingerprint, no("ann")).await;
        }
    };
    let all = pages(&store, pending(30), answer).await;
    assert_eq!(all.len(), 600);
    assert_urgent_first(&all);
    assert_eq!(store.approvals().count_pending(&Visible::All).unwrap(), 300);

    let rejected = ApprovalFilter {
        state: Some(ApprovalState::Rejected),
        ..pending(30)
    };
    let newest = |one: &Approval| std::cmp::Reverse((one.created_at, one.id.clone()));
    let found = pages(&store, rejected, async |_| {}).await;
    assert_eq!(found.len(), 300);
    assert!(found.is_sorted_by_key(newest));
    let state = None;
    let all = pages(
        &store,
        ApprovalFilter {
            state,
            ..pending(70)
        },
        async |_| {},
    )
    .await;
    assert_eq!(all.len(), 600);
    assert!(all.is_sorted_by_key(newest));
}

#[tokio::test]
async fn a_cursor_that_was_not_given_out_is_refused() {
    let (_dir, store) = open();
    let store = Arc::new(store);
    fill(&store, 20).await;
    let read = |cursor: &str, state| {
        let filter = ApprovalFilter {
            state,
            cursor: Some(cursor.into()),
            ..pending(5)
        };
        store.approvals().list(&filter)
    };
    let is_pending = Some(ApprovalState::Pending);
    let (_, cursor) = store.approvals().list(&pending(5)).unwrap();
    let cursor = cursor.unwrap();
    assert!(read(&cursor, is_pending).is_ok());

    let refused = |cursor: &str| {
        let answer = read(cursor, is_pending);
        assert!(matches!(answer, Err(Error::Cursor)), "{cursor:?}");
    };
    for at in 0..cursor.len() {
        refused(&cursor[..at]);
        for other in ['0', '1', 'z', '.', '\'', ' '] {
            let tampered = format!("{}{other}{}", &cursor[..at], &cursor[at + 1..]);
            if tampered != cursor {
                refused(&tampered);
            }
        }
    }
    for cursor in [
        &format!("{cursor}0"),
        &format!(" {cursor}"),
        &cursor.to_uppercase(),
        "",
        "....",
        "urgent.99999999999999999999.0.x.00000000",
        "' OR 1=1 --",
        "\u{202E}\0",
    ] {
        refused(cursor);
    }
    let other = read(&cursor, Some(ApprovalState::Rejected));
    assert!(matches!(other, Err(Error::Cursor)), "it is another list's");
}

#[tokio::test]
async fn an_approval_has_a_short_name() {
    let (_dir, store) = open();
    let store = Arc::new(store);
    fill(&store, 12).await;
    let named = |name: &str| -> Vec<String> {
        let found = store.approvals().named(name).unwrap();
        found.into_iter().map(|one| one.id).collect()
    };
    for name in [&approval_id(3), "tail000003", "ap_tail000003"] {
        assert_eq!(named(name), [approval_id(3)]);
    }
    assert_eq!(named("ap_tail00001").len(), 2, "ambiguous");
    assert_eq!(named("").len(), 2);
    assert_eq!(named("ap_zzz"), [""; 0]);
}
