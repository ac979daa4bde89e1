//! Whoever is first decides, and everybody hears the same, however close the
//! second was.
//!
//! Each race is run a few hundred to a thousand times, as a minute on a busy
//! machine allows; `WL_RACES=1000` makes it a thousand for each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Barrier;
use weighlock_api::{ApprovalState, ApprovalView, DecisionKind, State};
use weighlock_engine::{Approvals, Error, InboxFilter, Outcome, Request};

use crate::desk::{BEGUN, Desk, Office, races};

/// What somebody who decided was told: that they did, or how it ended.
fn heard(answer: Result<ApprovalView, Error>) -> (bool, ApprovalState, String) {
    let (first, card) = match answer {
        Ok(card) => (true, card),
        Err(Error::Closed { approval }) => (false, *approval),
        Err(error) => panic!("{error:?}"),
    };
    (
        first,
        card.state,
        card.decided_by.expect("whoever closed it"),
    )
}

/// How far one of two is let ahead, in microseconds: it stays close to where
/// either could be first.
#[derive(Default)]
struct Lead(i64);

impl Lead {
    /// Runs both at once but for the lead.
    async fn race<A, B>(
        &self,
        one: impl Future<Output = A> + Send + 'static,
        other: impl Future<Output = B> + Send + 'static,
    ) -> (A, B)
    where
        A: Send + 'static,
        B: Send + 'static,
    {
        let start = Arc::new(Barrier::new(2));
        let after = |lag: i64, start: Arc<Barrier>| async move {
            start.wait().await;
            let began = Instant::now();
            // Timers are too coarse for this.
            while began.elapsed() < Duration::from_micros(lag.max(0).unsigned_abs()) {
                tokio::task::yield_now().await;
            }
        };
        let before_one = after(-self.0, Arc::clone(&start));
        let before_other = after(self.0, start);
        let one = tokio::spawn(async move {
            before_one.await;
            one.await
        });
        let other = tokio::spawn(async move {
            before_other.await;
            other.await
        });
        (one.await.unwrap(), other.await.unwrap())
    }

    /// Lets the one that was second have a little more next time.
    fn learn(&mut self, one_was_first: bool) {
        self.0 += if one_was_first { -50 } else { 50 };
    }
}

/// Runs all of it at once, as nearly as that can be.
async fn at_once<T: Send + 'static>(
    all: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let all: Vec<_> = all.into_iter().collect();
    let start = Arc::new(Barrier::new(all.len()));
    let tasks: Vec<_> = { all.into_iter() }
        .map(|one| {
            let start = Arc::clone(&start);
            tokio::spawn(async move {
                start.wait().await;
                one.await
            })
        })
        .collect();
    let mut done = vec![];
    for task in tasks {
        done.push(task.await.unwrap());
    }
    done
}

/// Somebody's decision, for later.
fn deciding(
    desk: &Arc<Desk>,
    who: &'static str,
    card: &ApprovalView,
    kind: DecisionKind,
) -> impl Future<Output = (bool, ApprovalState, String)> + Send + 'static {
    let (desk, card) = (Arc::clone(desk), card.clone());
    async move { heard(desk.try_decide(who, &card, kind).await) }
}

#[test]
fn of_two_approvers_one_is_first_and_it_runs_once() {
    let office = Office::new();
    office.open(async |desk| {
        let desk = Arc::new(desk);
        let times = races(300);
        for n in 0..times {
            let waiting = tokio::spawn({
                let (desk, request) = (
                    Arc::clone(&desk),
                    Request {
                        wait_ms: Some(60_000),
                        ..desk.request("coder", &format!("echo {n} >> ran"))
                    },
                );
                async move { desk.engine.run(request).await.unwrap() }
            });
            let card = loop {
                match desk.inbox().pop() {
                    Some(card) => break card,
                    None => tokio::task::yield_now().await,
                }
            };
            let answers = at_once(
                ["ana", "ben"].map(|who| deciding(&desk, who, &card, DecisionKind::ApproveOnce)),
            )
            .await;
            let first = answers.iter().position(|answer| answer.0).expect("a first");
            let who = ["ana", "ben"][first];
            let expected = |mine| (mine, ApprovalState::Approved, who.to_owned());
            assert_eq!(answers[first], expected(true));
            assert_eq!(answers[1 - first], expected(false));
            let Outcome::Ended(run) = waiting.await.unwrap() else {
                panic!("it was waited for");
            };
            assert_eq!(run.state, State::Succeeded, "{run:?}");
            assert_eq!(run.approved_by.as_deref(), Some(who));
        }
        desk.assert_agrees();
        let ran = std::fs::read_to_string(office.base().join("ran")).unwrap();
        let all: String = (0..times).map(|n| format!("{n}\n")).collect();
        assert_eq!(ran, all);
    });
}

#[test]
fn an_approval_and_a_rejection_at_once_are_one_of_both() {
    Office::new().open(async |desk| {
        let desk = Arc::new(desk);
        let (mut approved, times, mut lead) = (0, races(1000), Lead::default());
        for n in 0..times {
            let (run, card) = desk
                .question(desk.external("coder", &format!("touch {n}")))
                .await;
            let (yes, no) = lead
                .race(
                    deciding(&desk, "ana", &card, DecisionKind::ApproveOnce),
                    deciding(&desk, "ben", &card, DecisionKind::Reject),
                )
                .await;
            lead.learn(yes.0);
            let run = desk.run(&run.command_id);
            let (state, by, end) = match yes.0 {
                true => (ApprovalState::Approved, "ana", State::Running),
                false => (ApprovalState::Rejected, "ben", State::Rejected),
            };
            assert_eq!(yes, (by == "ana", state, by.to_owned()));
            assert_eq!(no, (by == "ben", state, by.to_owned()));
            assert_eq!(run.state, end);
            approved += usize::from(by == "ana");
        }
        println!("{approved} of {times} approved");
        assert!((1..times).contains(&approved), "one side always won");
        desk.assert_agrees();
    });
}

#[test]
fn a_decision_that_is_sent_twice_counts_once() {
    Office::new().open(async |desk| {
        let desk = Arc::new(desk);
        for n in 0..races(1000) {
            let (run, card) = desk
                .question(desk.external("coder", &format!("touch {n}")))
                .await;
            let kind = [DecisionKind::ApproveOnce, DecisionKind::Reject][n % 2];
            let mut answers = at_once([
                deciding(&desk, "ana", &card, kind),
                deciding(&desk, "ana", &card, kind),
            ])
            .await;
            answers.push(deciding(&desk, "ana", &card, kind).await);
            let (state, end) = match n % 2 {
                0 => (ApprovalState::Approved, State::Running),
                _ => (ApprovalState::Rejected, State::Rejected),
            };
            let mut firsts = vec![];
            for (first, told, by) in answers {
                firsts.push(first);
                assert_eq!((told, by.as_str()), (state, "ana"));
            }
            assert_eq!(
                firsts.iter().filter(|&&first| first).count(),
                1,
                "{firsts:?}"
            );
            assert!(!firsts[2]);
            assert_eq!(desk.run(&run.command_id).state, end);
        }
        desk.assert_agrees();
    });
}

#[test]
fn an_approval_and_a_withdrawal_at_once_are_one_of_both() {
    Office::new().open(async |desk| {
        let desk = Arc::new(desk);
        let (mut approved, times, mut lead) = (0, races(1000), Lead::default());
        for n in 0..times {
            let (run, card) = desk
                .question(desk.external("coder", &format!("touch {n}")))
                .await;
            let withdrawing = {
                let (desk, run) = (Arc::clone(&desk), run.clone());
                async move {
                    let withdrawn = desk.engine.inbox().withdraw(&run, desk.who("coder")).await;
                    withdrawn.map_err(|error| error.problem().code)
                }
            };
            let deciding = deciding(&desk, "ana", &card, DecisionKind::ApproveOnce);
            let (answer, withdrawn) = lead.race(deciding, withdrawing).await;
            lead.learn(answer.0);
            let run = desk.run(&run.command_id);
            match withdrawn {
                Ok(now) => {
                    assert_eq!(now.state, State::Withdrawn);
                    assert_eq!(run, now);
                    let coder = "coder".to_owned();
                    assert_eq!(answer, (false, ApprovalState::Withdrawn, coder));
                }
                Err(code) => {
                    assert_eq!((code, run.state), ("not_waiting", State::Running));
                    assert_eq!(answer, (true, ApprovalState::Approved, "ana".to_owned()));
                    approved += 1;
                }
            }
        }
        println!("{approved} of {times} approved");
        assert!((1..times).contains(&approved), "one side always won");
        desk.assert_agrees();
    });
}

#[test]
fn an_approval_at_the_last_moment_counts_or_has_expired() {
    let office = Office::with(Approvals {
        expire: Duration::from_millis(30),
        ..Approvals::default()
    });
    office.open(async |desk| {
        // Stays close to where it could go either way.
        let mut delay = Duration::from_millis(20);
        let (mut approved, times) = (0, races(500));
        for n in 0..times {
            let run = desk
                .ask_briefly(desk.external("coder", &format!("touch {n}")))
                .await;
            let id = run.approval_id.as_deref().expect("a question");
            tokio::time::sleep(delay).await;
            let card = desk.card(id).await;
            let answer = heard(
                desk.try_decide("ana", &card, DecisionKind::ApproveOnce)
                    .await,
            );
            let run = desk.run(&run.command_id);
            match answer.0 {
                true => {
                    assert_eq!(answer, (true, ApprovalState::Approved, "ana".to_owned()));
                    assert_eq!(run.state, State::Running);
                    delay += Duration::from_micros(700);
                    approved += 1;
                }
                false => {
                    assert_eq!(answer, (false, ApprovalState::Expired, "clock".to_owned()));
                    assert_eq!(run.state, State::Expired);
                    delay = delay.saturating_sub(Duration::from_micros(500));
                }
            }
        }
        println!("{approved} of {times} approved");
        assert!((1..times).contains(&approved), "one side always won");
        desk.assert_agrees();
    });
}

#[test]
fn eight_approvers_at_once_start_each_of_five_joined_requests_once() {
    let office = Office::new();
    office.open(async |desk| {
        let desk = Arc::new(desk);
        let times = races(150);
        for n in 0..times {
            // Every third is really run.
            let real = n % 3 == 0;
            let request = Request {
                external: !real,
                ..desk.request("coder", &format!("echo {n} >> ran"))
            };
            let mut runs = vec![];
            for _ in 0..5 {
                runs.push(desk.ask(request.clone()).await);
            }
            let card = desk
                .card(runs[0].approval_id.as_deref().expect("a question"))
                .await;
            assert_eq!(card.count, 5);
            let people = ["ana", "ben", "olga"].into_iter().cycle().take(8);
            let answers =
                at_once(people.map(|who| deciding(&desk, who, &card, DecisionKind::ApproveOnce)))
                    .await;
            let firsts: Vec<_> = answers.iter().filter(|answer| answer.0).collect();
            assert_eq!(firsts.len(), 1, "{answers:?}");
            let by = &firsts[0].2;
            assert!(answers.iter().all(|answer| answer.2 == *by), "{answers:?}");
            for run in &runs {
                let run = match real {
                    true => desk.ended(&run.command_id).await,
                    false => desk.run(&run.command_id),
                };
                let state = [State::Running, State::Succeeded][usize::from(real)];
                assert_eq!((run.state, run.approved_by.as_ref()), (state, Some(by)));
            }
        }
        desk.assert_agrees();
        let ran = std::fs::read_to_string(office.base().join("ran")).unwrap();
        let all: String = (0..times)
            .step_by(3)
            .map(|n| format!("{n}\n").repeat(5))
            .collect();
        assert_eq!(ran, all);
    });
}

#[test]
fn a_request_that_joins_while_the_answer_comes_is_answered_with_it_or_asked_anew() {
    Office::new().open(async |desk| {
        let desk = Arc::new(desk);
        let (mut joined, times, mut lead) = (0, races(400), Lead::default());
        for n in 0..times {
            let request = desk.external("coder", &format!("touch {n}"));
            let (first, card) = desk.question(request.clone()).await;
            let asking = (0..4).map(|_| {
                let (desk, request) = (Arc::clone(&desk), request.clone());
                async move { desk.engine.run(request).await.unwrap() }
            });
            let asking = at_once(asking.collect::<Vec<_>>());
            let deciding = deciding(&desk, "ana", &card, DecisionKind::ApproveOnce);
            let (answer, others) = lead.race(deciding, asking).await;
            assert_eq!(answer, (true, ApprovalState::Approved, "ana".to_owned()));
            assert_eq!(desk.run(&first.command_id).state, State::Running);
            let before = joined;
            for outcome in others {
                let (Outcome::Waiting(run) | Outcome::Running(run)) = outcome else {
                    panic!("neither waits nor runs: {outcome:?}");
                };
                let now = desk.run(&run.command_id);
                let with = now.approval_id.as_deref() == Some(&*card.approval_id);
                joined += usize::from(with);
                let state = [State::Waiting, State::Running][usize::from(with)];
                assert_eq!(now.state, state, "{now:?}");
            }
            lead.learn(joined < before + 2);
            for left in desk.inbox() {
                let left = desk.decide("ana", &left, DecisionKind::Reject).await;
                assert_eq!(left.unwrap().state, ApprovalState::Rejected);
            }
        }
        println!("{joined} of {} joined in time", times * 4);
        assert!((1..times * 4).contains(&joined), "one side always won");
        desk.assert_agrees();
    });
}

#[test]
fn what_was_approved_begins_even_if_the_approver_hangs_up() {
    Office::new().open(async |desk| {
        let (mut approved, times) = (0, races(500));
        for n in 0..times {
            let request = desk.external("coder", &format!("touch {n}"));
            let run = desk.ask(request.clone()).await;
            desk.ask(request).await;
            let card = desk
                .card(run.approval_id.as_deref().expect("a question"))
                .await;
            let patience = Duration::from_micros(n as u64 % 50 * 100);
            let answer = desk.approve("ana", &card);
            let _ = tokio::time::timeout(patience, answer).await;
            // Nobody decides any more; what was decided is carried out.
            let now = settled(&desk, &card.approval_id).await;
            approved += usize::from(now == ApprovalState::Approved);
        }
        println!("{approved} of {times} approved");
        assert!(approved > 0, "every approver hung up too early");
        desk.assert_agrees();
    });
}

/// Waits until a question is open, or all that waited for it has begun.
async fn settled(desk: &Desk, id: &str) -> ApprovalState {
    for _ in 0..2000 {
        let card = desk.card(id).await;
        let begun = |id: &String| BEGUN.contains(&desk.run(id).state);
        match card.state {
            ApprovalState::Pending if card.answers.is_empty() => {
                // The answer may still be on its way to the record.
                tokio::time::sleep(Duration::from_millis(2)).await;
                let now = desk.card(id).await;
                if now.state == ApprovalState::Pending {
                    return now.state;
                }
            }
            _ if card.command_ids.iter().all(begun) => return card.state,
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
    panic!(
        "it was approved, and never began: {:?}",
        desk.card(id).await
    );
}

#[test]
fn what_is_asked_expires_even_if_the_requester_hangs_up() {
    let office = Office::with(Approvals {
        expire: Duration::from_millis(100),
        ..Approvals::default()
    });
    office.open(async |desk| {
        for n in 0..races(500) {
            let request = desk.external("coder", &format!("touch {n}"));
            let patience = Duration::from_micros(n as u64 % 40 * 100);
            let _ = tokio::time::timeout(patience, desk.engine.run(request)).await;
        }
        for _ in 0..500 {
            if desk.inbox().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(desk.inbox(), []);
        let filter = InboxFilter {
            state: Some(ApprovalState::Expired),
            limit: 1,
            ..InboxFilter::default()
        };
        let (expired, _) = desk.engine.inbox().list(filter, &desk.owner()).unwrap();
        assert_eq!(expired.len(), 1, "nothing was ever asked");
        desk.assert_agrees();
    });
}
