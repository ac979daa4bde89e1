//! Many at once: exactly one of them has its way.

use std::sync::Arc;

use tokio::sync::Barrier;
use tokio::task::JoinSet;
use weighlock_store::{Answered, ApprovalState, Asked, EntryFilter, Inserted, Key, State, Store};

use crate::{
    answered, approval_id, ask, asked, assert_verifies, closing, command, entry, id, no, open,
    question, unbegun, yes,
};

/// Who closed a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Won {
    Yes,
    No,
    Clock,
    Requester,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_question_has_one_end() {
    let (_dir, store) = open();
    let store = Arc::new(store);
    let mut seen = vec![];
    for round in 0..60 {
        let first = round * 10 + 1;
        for number in first..first + 3 {
            asked(&store, ask(number, &format!("f{round}"))).await;
        }
        let (won, withdrawn) = race(&store, first, round).await;
        let [won] = won.as_slice() else {
            panic!("{won:?} all had their way");
        };
        for (number, withdrawn) in (first..).zip(withdrawn) {
            let [command] = store
                .commands()
                .named(&id(number))
                .unwrap()
                .try_into()
                .unwrap();
            let (state, by) = match won {
                _ if withdrawn => (State::Withdrawn, None),
                Won::Yes => (State::Waiting, Some("ann")),
                Won::No => (State::Rejected, None),
                Won::Clock => (State::Expired, None),
                Won::Requester => unreachable!("then all were withdrawn"),
            };
            assert_eq!((command.state, command.approved_by.as_deref()), (state, by));
        }
        seen.push(*won);
    }
    let entries = EntryFilter {
        kind: Some("approval.answered".into()),
        limit: 1_000,
        ..EntryFilter::default()
    };
    let closings = seen.iter().filter(|won| **won != Won::Requester).count();
    assert_eq!(store.audit().entries(&entries).unwrap().len(), closings);
    assert_eq!(store.approvals().deadlines().unwrap(), []);
    assert_verifies(&store);
}

/// Lets everybody at one question at once. Returns who closed it, and which of
/// its three commands were withdrawn.
async fn race(store: &Arc<Store>, first: u32, round: u32) -> (Vec<Won>, [bool; 3]) {
    let start = Arc::new(Barrier::new(7));
    let mut tasks = JoinSet::new();
    for runner in 0..7 {
        let (store, start) = (store.clone(), start.clone());
        tasks.spawn(async move {
            start.wait().await;
            let fingerprint = format!("f{round}");
            match (runner + round) % 7 {
                0 | 1 => settles(
                    answered(&store, first, &fingerprint, yes("ann")).await,
                    Won::Yes,
                ),
                2 => settles(
                    answered(&store, first, &fingerprint, no("bob")).await,
                    Won::No,
                ),
                3 => expire(&store, first).await,
                which => withdraw(&store, first, which - 4).await,
            }
        });
    }
    let mut won = vec![];
    let mut withdrawn = [false; 3];
    while let Some(outcome) = tasks.join_next().await {
        let (closed, took_back) = outcome.unwrap();
        won.extend(closed);
        if let Some(which) = took_back {
            withdrawn[which as usize] = true;
        }
    }
    (won, withdrawn)
}

type Outcome = (Option<Won>, Option<u32>);

fn settles(answered: Answered, won: Won) -> Outcome {
    match answered {
        Answered::Settled { .. } => (Some(won), None),
        Answered::Closed(approval) => {
            assert_ne!(approval.state, ApprovalState::Pending);
            (None, None)
        }
        other => panic!("{other:?}"),
    }
}

async fn expire(store: &Store, number: u32) -> Outcome {
    let closed = store
        .approvals()
        .close(
            approval_id(number),
            ApprovalState::Expired,
            "clock".into(),
            600,
            |_| "null".into(),
            closing,
        )
        .await;
    (closed.unwrap().map(|_| Won::Clock), None)
}

async fn withdraw(store: &Store, first: u32, which: u32) -> Outcome {
    let number = first + which;
    let entries = vec![entry("run.withdrawn", &id(number))];
    let back = unbegun(number, State::Withdrawn);
    match store
        .approvals()
        .withdraw(back, "bot".into(), move |_| entries)
        .await
        .unwrap()
    {
        None => (None, None),
        Some(closed) => (closed.map(|_| Won::Requester), Some(which)),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn those_who_ask_the_same_at_once_share_one_question() {
    let (_dir, store) = open();
    let store = Arc::new(store);
    let outcomes = all(60, |number| {
        let store = store.clone();
        async move { asked(&store, ask(number, "f")).await }
    });
    let outcomes = outcomes.await;
    let new = outcomes.iter().filter(|asked| **asked == Asked::New);
    assert_eq!(new.count(), 1);
    let counts = outcomes.iter().filter_map(|asked| match asked {
        Asked::Joined(approval) => Some(approval.count),
        _ => None,
    });
    let mut counts: Vec<_> = counts.collect();
    counts.sort_unstable();
    assert_eq!(counts, (2..=60).collect::<Vec<_>>());
    assert_verifies(&store);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_limit_holds_for_those_who_come_at_once() {
    let (_dir, store) = open();
    let store = Arc::new(store);
    let outcomes = all(60, |number| {
        let store = store.clone();
        async move {
            let mut ask = ask(number, &format!("f{number}"));
            ask.max_pending = 10;
            asked(&store, ask).await
        }
    });
    let new = outcomes.await;
    let new = new.iter().filter(|asked| **asked == Asked::New).count();
    assert_eq!(new, 10);
    assert_eq!(store.approvals().deadlines().unwrap().len(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_key_is_used_once() {
    let (_dir, store) = open();
    let store = Arc::new(store);
    let outcomes = all(60, |number| {
        let store = store.clone();
        async move {
            let key = Key {
                principal: "bot".into(),
                key: "k".into(),
                hash: "h".into(),
            };
            let inserted = store
                .commands()
                .insert(command(number, "true"), Some(key), vec![]);
            (id(number), inserted.await.unwrap())
        }
    });
    let outcomes = outcomes.await;
    let new: Vec<_> = outcomes
        .iter()
        .filter(|(_, inserted)| *inserted == Inserted::New)
        .collect();
    let [(winner, _)] = new.as_slice() else {
        panic!("{new:?}");
    };
    let before = Inserted::Before {
        command_id: winner.clone(),
        same: true,
    };
    let others = outcomes.iter().filter(|(_, inserted)| *inserted == before);
    assert_eq!(others.count(), 59);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_waits_begins_or_ends_once() {
    let (_dir, store) = open();
    let store = Arc::new(store);
    for number in 1..=40 {
        asked(&store, ask(number, "f")).await;
        answered(&store, number, "f", yes("ann")).await;
        let outcomes = all(6, |runner| {
            let store = store.clone();
            async move {
                if runner % 2 == 0 {
                    let entries = vec![entry("run.started", &id(number))];
                    let running = command(number, "make");
                    store
                        .pending()
                        .begin(running, State::Waiting, entries)
                        .await
                } else {
                    let entries = vec![entry("run.killed", &id(number))];
                    let killed = unbegun(number, State::Killed);
                    store.pending().end(killed, State::Waiting, entries).await
                }
            }
        });
        let outcomes = outcomes.await;
        let done = outcomes.into_iter().filter(|done| matches!(done, Ok(true)));
        assert_eq!(done.count(), 1);
        assert_eq!(store.pending().request(&id(number)).unwrap(), None);
        let run = Some(id(number));
        let filter = EntryFilter {
            run,
            limit: 10,
            ..EntryFilter::default()
        };
        let kinds = store.audit().entries(&filter).unwrap();
        assert_eq!(kinds.len(), 3, "asked, answered, and one more: {kinds:?}");
    }
    assert_eq!(store.pending().ready().unwrap(), []);
    assert_verifies(&store);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_answer_is_to_what_was_shown() {
    let (_dir, store) = open();
    let store = Arc::new(store);
    for number in 1..=40 {
        asked(&store, ask(number, "f")).await;
        let outcomes = all(6, |runner| {
            let store = store.clone();
            async move {
                if runner % 2 == 0 {
                    let now = question(number, "g");
                    let renewed =
                        store
                            .approvals()
                            .renew(approval_id(number), "f".into(), now, vec![]);
                    renewed.await.unwrap()
                } else {
                    let answered = answered(&store, number, "f", yes("ann")).await;
                    matches!(answered, Answered::Settled { .. })
                }
            }
        });
        let won = outcomes.await.into_iter().filter(|won| *won).count();
        assert_eq!(won, 1, "it was renewed or answered, not both");
        let _ = answered(&store, number, "g", no("bob")).await;
    }
    assert_verifies(&store);
}

/// Does something many times at once.
async fn all<T, F>(count: u32, deed: impl Fn(u32) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let start = Arc::new(Barrier::new(count as usize));
    let mut tasks = JoinSet::new();
    for number in 1..=count {
        let (start, deed) = (start.clone(), deed(number));
        tasks.spawn(async move {
            start.wait().await;
            deed.await
        });
    }
    tasks.join_all().await
}
