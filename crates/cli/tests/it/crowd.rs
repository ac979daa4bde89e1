//! Ten thousand questions at once: the inbox stays usable, and nobody fills it
//! alone.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weighlock_api::{ApprovalState, ApprovalView, DecisionKind, State};

use weighlock_engine::{Approvals, InboxFilter, Principal};

use crate::desk::{Desk, Office};

/// How many each of two agents asks: as many as may wait.
const EACH: usize = 5000;

/// Bytes of memory that one more question may cost. It is in the database; only
/// its deadline is not.
const COST: u64 = 4096;

/// Memory that this process has resident.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.expect("a size").trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() * 1024
}

/// All pages of what waits, as somebody sees it.
fn pages(desk: &Desk, who: &Principal) -> Vec<ApprovalView> {
    let (mut all, mut cursor) = (vec![], None);
    loop {
        let filter = InboxFilter {
            state: Some(ApprovalState::Pending),
            cursor,
            limit: 500,
            ..InboxFilter::default()
        };
        let began = Instant::now();
        let (page, next) = desk.engine.inbox().list(filter, who).unwrap();
        if all.is_empty() || next.is_none() {
            println!("a page of {} in {:?}", page.len(), began.elapsed());
        }
        all.extend(page);
        match next {
            Some(next) => cursor = Some(next),
            None => return all,
        }
    }
}

async fn fill(desk: &Arc<Desk>) {
    let tasks: Vec<_> = ["coder", "linter"]
        .into_iter()
        .flat_map(|who| (0..4).map(move |part| (who, part)))
        .map(|(who, part)| {
            let desk = Arc::clone(desk);
            tokio::spawn(async move {
                for n in (part..EACH).step_by(4) {
                    desk.ask(desk.external(who, &format!("touch {n}"))).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[test]
fn ten_thousand_questions_are_listed_answered_and_expire() {
    let mut office = Office::with(Approvals {
        expire: Duration::from_secs(3600),
        max_pending: EACH as u64,
        ..Approvals::default()
    });
    office.open(async |desk| {
        let desk = Arc::new(desk);
        // Whatever is made ready once is ready.
        for n in 0..100 {
            let (_, card) = desk
                .question(desk.external("coder", &format!("touch warm{n}")))
                .await;
            desk.decide("ana", &card, DecisionKind::Reject)
                .await
                .unwrap();
        }
        let (before, began) = (resident(), Instant::now());
        fill(&desk).await;
        let cost = resident().saturating_sub(before) / (2 * EACH as u64);
        println!(
            "{} asked in {:?}, {cost} bytes each",
            2 * EACH,
            began.elapsed()
        );
        assert!(cost < COST, "{cost} bytes each");

        for who in ["coder", "linter"] {
            let more = desk.engine.run(desk.external(who, "touch more")).await;
            let more = more.map_err(|error| error.problem().code);
            assert_eq!(more.err(), Some("too_many_waiting"));
        }
        let first = InboxFilter {
            state: Some(ApprovalState::Pending),
            limit: 50,
            ..InboxFilter::default()
        };
        let began = Instant::now();
        let (page, _) = desk.engine.inbox().list(first, &desk.owner()).unwrap();
        println!("the first {} in {:?}", page.len(), began.elapsed());
        let all = pages(&desk, &desk.owner());
        let mut ids: Vec<_> = all.iter().map(|card| card.approval_id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((all.len(), ids.len()), (2 * EACH, 2 * EACH));
        assert_eq!(pages(&desk, desk.who("coder")).len(), EACH);
        let began = Instant::now();
        assert_eq!(
            desk.engine.inbox().waiting(&desk.owner()).unwrap(),
            2 * EACH as u64
        );
        println!("counted in {:?}", began.elapsed());
        assert_eq!(
            desk.engine.inbox().waiting(desk.who("linter")).unwrap(),
            EACH as u64
        );

        let (began, middle) = (Instant::now(), &all[EACH]);
        desk.approve("ana", middle).await.unwrap();
        println!("approved one in {:?}", began.elapsed());
        let run = desk.run(&desk.card(&middle.approval_id).await.command_ids[0]);
        assert_eq!(run.state, State::Running);
        // There is room again for whose it was.
        let who = ["coder", "linter"][usize::from(run.requested_by == "linter")];
        desk.ask(desk.external(who, "touch more")).await;
    });

    office.config.approvals.expire = Duration::from_secs(1);
    office.jump.store(2 * 3600, Ordering::Relaxed);
    let began = Instant::now();
    office.open(async |desk| {
        println!("opened again in {:?}", began.elapsed());
        let began = Instant::now();
        while desk.engine.inbox().waiting(&desk.owner()).unwrap() > 0 {
            assert!(began.elapsed() < Duration::from_secs(120));
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        println!("all expired in {:?}", began.elapsed());
        desk.assert_agrees();
    });
}
