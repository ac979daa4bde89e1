//! Questions, their answers, and what waits for them.

use serde_json::json;
use weighlock_store::{
    Answered, Approval, ApprovalState, Asked, Command, EntryFilter, Risk, State,
};

use crate::{
    answered, approval_id, ask, asked, assert_verifies, closing, entry, id, no, open, question,
    unbegun, yes,
};

#[tokio::test]
async fn an_approved_command_still_waits_to_begin() {
    let (_dir, store) = open();
    assert_eq!(asked(&store, ask(1, "f")).await, Asked::New);
    assert_eq!(
        store.approvals().named("ap_tail000001").unwrap(),
        [question(1, "f")]
    );
    let waiting = store.commands().named(&id(1)).unwrap();
    let expected = Command {
        approval: Some(approval_id(1)),
        ..unbegun(1, State::Waiting)
    };
    assert_eq!(waiting, std::slice::from_ref(&expected));

    let edited = Some("make -n".to_owned());
    let answer = weighlock_store::Answer {
        edited,
        ..yes("ann")
    };
    let approval = Approval {
        state: ApprovalState::Approved,
        decided_at: Some(500),
        decided_by: Some("ann".into()),
        ..question(1, "f")
    };
    let expected = Command {
        approved_by: Some("ann".into()),
        updated_at: 500,
        ..expected
    };
    let commands = vec![(expected.clone(), "request 1".to_owned())];
    let settled = Answered::Settled {
        approval: approval.clone(),
        commands: commands.clone(),
    };
    assert_eq!(answered(&store, 1, "f", answer.clone()).await, settled);
    assert_eq!(store.pending().ready().unwrap(), commands);
    assert_eq!(
        store.approvals().answers(&approval_id(1)).unwrap(),
        [answer]
    );
    assert_eq!(
        answered(&store, 1, "f", no("bob")).await,
        Answered::Closed(approval)
    );
    assert_eq!(answered(&store, 2, "f", no("bob")).await, Answered::Missing);
    assert_verifies(&store);
}

#[tokio::test]
async fn a_rejected_command_has_ended() {
    let (_dir, store) = open();
    asked(&store, ask(1, "f")).await;
    let Answered::Settled { approval, commands } = answered(&store, 1, "f", no("ann")).await else {
        panic!("it was open");
    };
    assert_eq!(approval.state, ApprovalState::Rejected);
    let expected = Command {
        approval: Some(approval_id(1)),
        updated_at: 500,
        ended_at: Some(500),
        detail: json!({ "said": "not now" }).to_string(),
        ..unbegun(1, State::Rejected)
    };
    assert_eq!(commands, [(expected.clone(), "request 1".into())]);
    assert_eq!(store.commands().named(&id(1)).unwrap(), [expected]);
    assert_eq!(store.pending().request(&id(1)).unwrap(), None);
    assert_eq!(store.pending().ready().unwrap(), []);
}

#[tokio::test]
async fn what_asks_the_same_shares_an_answer() {
    let (_dir, store) = open();
    asked(&store, ask(1, "f")).await;
    let joined = |count| {
        Asked::Joined(Box::new(Approval {
            count,
            ..question(1, "f")
        }))
    };
    assert_eq!(asked(&store, ask(2, "f")).await, joined(2));
    assert_eq!(asked(&store, ask(3, "f")).await, joined(3));
    assert_eq!(asked(&store, ask(4, "g")).await, Asked::New);
    let mut other = ask(5, "f");
    other.command.requested_by = "robot".into();
    other.approval.requested_by = "robot".into();
    assert_eq!(asked(&store, other).await, Asked::New, "of somebody else");

    let back = unbegun(2, State::Withdrawn);
    let entries = vec![entry("run.withdrawn", &id(2))];
    let left = store
        .approvals()
        .withdraw(back, "bot".into(), move |_| entries)
        .await
        .unwrap();
    assert_eq!(left, Some(None), "others still wait");
    let Answered::Settled { approval, commands } = answered(&store, 1, "f", yes("ann")).await
    else {
        panic!("it was open");
    };
    assert_eq!(approval.count, 2);
    let commands: Vec<_> = commands
        .into_iter()
        .map(|(command, _)| command.id)
        .collect();
    assert_eq!(commands, [id(1), id(3)], "not the one that was withdrawn");
    assert_eq!(store.approvals().runs_of(&approval_id(1)).unwrap().len(), 3);
    assert_eq!(
        asked(&store, ask(6, "f")).await,
        Asked::New,
        "an answer is used once"
    );
    assert_verifies(&store);
}

#[tokio::test]
async fn a_question_goes_with_the_last_that_waits() {
    let (_dir, store) = open();
    asked(&store, ask(1, "f")).await;
    asked(&store, ask(2, "f")).await;
    let withdraw = |number| {
        let back = Command {
            updated_at: 400,
            ..unbegun(number, State::Withdrawn)
        };
        store.approvals().withdraw(back, "bot".into(), |_| vec![])
    };
    assert_eq!(withdraw(1).await.unwrap(), Some(None));
    assert_eq!(withdraw(1).await.unwrap(), None, "it is gone already");
    let closed = Approval {
        state: ApprovalState::Withdrawn,
        decided_at: Some(400),
        decided_by: Some("bot".into()),
        ..question(1, "f")
    };
    assert_eq!(withdraw(2).await.unwrap(), Some(Some(closed.clone())));
    assert_eq!(
        answered(&store, 1, "f", yes("ann")).await,
        Answered::Closed(closed)
    );
    assert_eq!(store.approvals().deadlines().unwrap(), []);
}

#[tokio::test]
async fn two_people_must_agree_where_two_are_needed() {
    let (_dir, store) = open();
    for number in 1..=3 {
        let mut ask = ask(number, &format!("f{number}"));
        ask.approval.needed = 2;
        asked(&store, ask).await;
    }
    let more = Answered::More { have: 1, needed: 2 };
    assert_eq!(answered(&store, 1, "f1", yes("ann")).await, more);
    assert_eq!(answered(&store, 1, "f1", yes("ann")).await, Answered::Again);
    assert_eq!(
        store.pending().ready().unwrap(),
        [],
        "nothing may begin yet"
    );
    let settled = answered(&store, 1, "f1", yes("bob")).await;
    assert!(matches!(settled, Answered::Settled { .. }));
    let who: Vec<_> = store.approvals().answers(&approval_id(1)).unwrap();
    assert_eq!(who, [yes("ann"), yes("bob")]);

    // One no is enough.
    assert_eq!(answered(&store, 2, "f2", yes("ann")).await, more);
    let settled = answered(&store, 2, "f2", no("bob")).await;
    assert!(
        matches!(settled, Answered::Settled { approval, .. } if approval.state == ApprovalState::Rejected)
    );
    // Also of somebody who thinks better of it.
    assert_eq!(answered(&store, 3, "f3", yes("ann")).await, more);
    let settled = answered(&store, 3, "f3", no("ann")).await;
    assert!(
        matches!(settled, Answered::Settled { approval, .. } if approval.state == ApprovalState::Rejected)
    );
    assert_eq!(
        store.approvals().answers(&approval_id(3)).unwrap(),
        [no("ann")]
    );
    let filter = EntryFilter {
        kind: Some("approval.answered".into()),
        limit: 10,
        ..EntryFilter::default()
    };
    assert_eq!(
        store.audit().entries(&filter).unwrap().len(),
        6,
        "not of `Again`"
    );
    assert_verifies(&store);
}

#[tokio::test]
async fn a_renewed_question_forgets_its_answers() {
    let (_dir, store) = open();
    let mut first = ask(1, "f");
    first.approval.needed = 2;
    asked(&store, first).await;
    asked(&store, ask(2, "f")).await;
    answered(&store, 1, "f", yes("ann")).await;

    let now = Approval {
        risk: Risk::High,
        needed: 2,
        expires_at: 7_000,
        body: json!({ "because": "the rules changed" }),
        ..question(9, "g")
    };
    let renew = |was: &str| {
        let entries = vec![entry("approval.renewed", &id(1))];
        store
            .approvals()
            .renew(approval_id(1), was.into(), now.clone(), entries)
    };
    assert!(!renew("e").await.unwrap());
    assert!(renew("f").await.unwrap());
    assert!(!renew("f").await.unwrap());

    let renewed = Approval {
        id: approval_id(1),
        created_at: 1,
        version: 2,
        count: 2,
        ..now.clone()
    };
    assert_eq!(store.approvals().answers(&approval_id(1)).unwrap(), []);
    assert_eq!(
        answered(&store, 1, "f", yes("bob")).await,
        Answered::Changed(renewed.clone()),
        "what was shown is asked no more"
    );
    let more = Answered::More { have: 1, needed: 2 };
    assert_eq!(answered(&store, 1, "g", yes("bob")).await, more);
    let settled = answered(&store, 1, "g", yes("ann")).await;
    assert!(matches!(settled, Answered::Settled { commands, .. } if commands.len() == 2));
    assert!(!renew("g").await.unwrap(), "it is answered");
    assert_verifies(&store);
}

#[tokio::test]
async fn a_clock_or_a_rule_closes_a_question_with_its_commands() {
    let (_dir, store) = open();
    let ends = [
        (ApprovalState::Expired, State::Expired),
        (ApprovalState::Withdrawn, State::Withdrawn),
        (ApprovalState::Blocked, State::Blocked),
    ];
    for (number, (state, end)) in (1..).zip(ends) {
        asked(&store, ask(number, "f")).await;
        let close = |state| {
            let detail = |command: &Command| json!(command.state.word()).to_string();
            store.approvals().close(
                approval_id(number),
                state,
                "clock".into(),
                600,
                detail,
                closing,
            )
        };
        assert_eq!(close(ApprovalState::Approved).await.unwrap(), None);
        let (approval, commands) = close(state).await.unwrap().unwrap();
        assert_eq!(approval.state, state);
        let expected = Command {
            approval: Some(approval_id(number)),
            updated_at: 600,
            ended_at: Some(600),
            detail: json!(end.word()).to_string(),
            ..unbegun(number, end)
        };
        assert_eq!(commands, [expected]);
        assert_eq!(close(state).await.unwrap(), None, "it is closed already");
    }
    assert_verifies(&store);
}

#[tokio::test]
async fn only_an_open_question_gets_more_time() {
    let (_dir, store) = open();
    asked(&store, ask(1, "f")).await;
    asked(&store, ask(2, "g")).await;
    let extend = |number| store.approvals().extend(approval_id(number), 9_000, vec![]);
    let expected = Approval {
        expires_at: 9_000,
        ..question(1, "f")
    };
    assert_eq!(extend(1).await.unwrap(), Some(expected));
    assert_eq!(
        store.approvals().deadlines().unwrap(),
        [(approval_id(2), 2, 1_002), (approval_id(1), 1, 9_000)]
    );
    answered(&store, 1, "f", no("ann")).await;
    assert_eq!(extend(1).await.unwrap(), None);
    assert_eq!(extend(3).await.unwrap(), None);
}

#[tokio::test]
async fn nobody_may_flood_the_inbox() {
    let (_dir, store) = open();
    for number in 1..=4 {
        let mut ask = ask(number, "f");
        ask.max_pending = 3;
        let full = asked(&store, ask).await == Asked::TooMany;
        assert_eq!(full, number == 4);
    }
    assert_eq!(store.commands().named(&id(4)).unwrap(), []);
    assert_eq!(store.audit().newest_seq().unwrap(), 3, "nothing was done");
    let back = unbegun(1, State::Withdrawn);
    store
        .approvals()
        .withdraw(back, "bot".into(), |_| vec![])
        .await
        .unwrap();
    let mut again = ask(5, "f");
    again.max_pending = 3;
    assert!(matches!(asked(&store, again).await, Asked::Joined(_)));
}
