//! Text from outside is only ever text.

use serde_json::json;
use weighlock_store::{
    Answer, Answered, Approval, ApprovalFilter, ApprovalState, Ask, Asked, Changed, Command, Entry,
    EntryFilter, Filter, Hold, Key, LoginRow, PauseRow, PrincipalRow, RunStatus, SandboxRow,
    SessionRow, State, Store, TokenRow, Visible,
};

use crate::{ask, assert_verifies, entry, hold, open, question, unbegun, yes};

const TEXTS: [&str; 6] = [
    "'; DROP TABLE approvals; --",
    "x' OR '1'='1",
    "\" OR \"\"=\"",
    "?1 :a $b %s _% \\",
    "é\u{202E}\u{1F4A5}\n",
    "",
];

#[tokio::test]
async fn sql_in_every_string_stays_a_string() {
    for text in TEXTS {
        let (_dir, store) = open();
        people(&store, text).await;
        sandboxes(&store, text).await;
        commands(&store, text).await;
        questions(&store, text).await;
        entries(&store, text).await;
        assert_verifies(&store);
    }
}

async fn people(store: &Store, text: &str) {
    let some = || text.to_owned();
    let row = PrincipalRow {
        name: some(),
        agent: true,
        role: some(),
        uid: None,
        active: true,
        body: json!({ some(): some() }),
        version: 1,
        created_at: 1,
        updated_at: 1,
    };
    assert!(store.principals().add(row.clone(), vec![]).await.unwrap());
    assert_eq!(store.principals().named(text).unwrap(), Some(row.clone()));
    assert!(store.principals().change(row, vec![]).await.unwrap());
    let token = TokenRow {
        id: some(),
        hash: some(),
        prefix: some(),
        label: some(),
        principal: some(),
        created_by: some(),
        created_at: 1,
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
    };
    store.tokens().add(token.clone(), vec![]).await.unwrap();
    assert_eq!(store.tokens().get(text).unwrap(), Some(token.clone()));
    assert_eq!(store.tokens().by_hash(text).unwrap(), Some(token.clone()));
    assert_eq!(store.tokens().of(text).unwrap(), [token]);
    assert!(store.tokens().revoke(some(), 1, vec![]).await.unwrap());
    let login = LoginRow {
        hash: some(),
        principal: some(),
        created_at: 1,
        expires_at: 1,
    };
    store.logins().add(login.clone(), vec![]).await.unwrap();
    assert_eq!(store.logins().by_hash(text).unwrap(), Some(login));
    assert!(store.logins().end(some(), vec![]).await.unwrap());
}

async fn sandboxes(store: &Store, text: &str) {
    let some = || text.to_owned();
    let row = SandboxRow {
        id: some(),
        owner: some(),
        label: some(),
        path: some(),
        active: true,
        body: json!(some()),
        version: 1,
        created_at: 1,
        updated_at: 1,
    };
    assert!(store.sandboxes().add(row.clone(), vec![]).await.unwrap());
    assert_eq!(store.sandboxes().all().unwrap(), std::slice::from_ref(&row));
    let changed = store.sandboxes().change(row, vec![]).await.unwrap();
    assert_eq!(changed, Changed::Done);
    let deleted = store
        .sandboxes()
        .delete(some(), None, 1, vec![])
        .await
        .unwrap();
    assert_eq!(deleted, Changed::Done);
    let session = SessionRow {
        id: some(),
        principal: some(),
        sandbox: some(),
        label: some(),
        status: RunStatus::Pending,
        created_at: 1,
        updated_at: 1,
        closed_at: None,
    };
    store
        .sessions()
        .open(session.clone(), vec![])
        .await
        .unwrap();
    assert_eq!(store.sessions().get(text).unwrap(), Some(session.clone()));
    let within = Visible::Within {
        name: some(),
        sandboxes: vec![some()],
    };
    for visible in [Visible::Own(some()), within] {
        let (found, _) = store.sessions().list(&visible, None, 9).unwrap();
        assert_eq!(found, std::slice::from_ref(&session));
    }
    let pause = PauseRow {
        principal: some(),
        by: some(),
        since: 1,
        reason: Some(some()),
    };
    assert!(store.pauses().begin(pause.clone(), vec![]).await.unwrap());
    assert_eq!(store.pauses().all().unwrap(), [pause]);
    assert!(store.pauses().end(some(), vec![]).await.unwrap());
}

/// A command all of whose texts are this one.
fn hostile(number: u32, state: State, text: &str) -> Command {
    let some = || text.to_owned();
    Command {
        session: Some(some()),
        sandbox: Some(some()),
        command: some(),
        cwd: some(),
        requested_by: some(),
        approved_by: None,
        detail: json!({ some(): some() }).to_string(),
        ..unbegun(number, state)
    }
}

async fn commands(store: &Store, text: &str) {
    let some = || text.to_owned();
    let key = Key {
        principal: some(),
        key: some(),
        hash: some(),
    };
    let command = hostile(1, State::Held, text);
    let hold = Hold {
        request: some(),
        key: Some(key),
        ..hold(command.clone())
    };
    assert_eq!(
        store.pending().hold(hold, vec![]).await.unwrap(),
        Asked::New
    );
    let keyed = store.commands().keyed(text, text).unwrap();
    assert_eq!(keyed, Some((some(), command.id.clone())));
    assert_eq!(
        store.pending().ready().unwrap(),
        [(command.clone(), some())]
    );
    let filter = Filter {
        requested_by: Some(some()),
        session: Some(some()),
        sandbox: Some(some()),
        text: vec![some()],
        visible: Visible::Own(some()),
        limit: 9,
        ..Filter::default()
    };
    assert_eq!(
        store.commands().list(&filter).unwrap(),
        std::slice::from_ref(&command)
    );
    let nothing = Filter {
        status: Some(RunStatus::Executed),
        approved_by: Some(some()),
        before: Some(some()),
        ..filter
    };
    assert_eq!(store.commands().list(&nothing).unwrap(), []);
    let running = Command {
        approved_by: Some(some()),
        state: State::Running,
        ..command
    };
    let begun = store.pending().begin(running.clone(), State::Held, vec![]);
    assert!(begun.await.unwrap());
    assert_eq!(store.commands().named(&running.id).unwrap(), [running]);
    assert!(store.commands().named(text).unwrap().len() <= 1);
}

async fn questions(store: &Store, text: &str) {
    let some = || text.to_owned();
    let approval = Approval {
        id: some(),
        fingerprint: some(),
        requested_by: some(),
        sandbox: some(),
        body: json!({ some(): some() }),
        ..question(2, "")
    };
    let asking = Ask {
        command: hostile(2, State::Waiting, text),
        request: some(),
        approval: approval.clone(),
        ..ask(2, "")
    };
    let asked = store
        .approvals()
        .ask(asking, |_, _, _| vec![])
        .await
        .unwrap();
    assert_eq!(asked, Asked::New);
    let filter = ApprovalFilter {
        state: Some(ApprovalState::Pending),
        visible: Visible::Own(some()),
        sandbox: Some(some()),
        requested_by: Some(some()),
        cursor: None,
        limit: 9,
    };
    let (found, _) = store.approvals().list(&filter).unwrap();
    assert_eq!(found, std::slice::from_ref(&approval));
    assert_eq!(store.approvals().count_pending(&filter.visible).unwrap(), 1);
    assert_eq!(store.approvals().runs_of(text).unwrap().len(), 1);
    let renewed = store
        .approvals()
        .renew(some(), some(), approval.clone(), vec![]);
    assert!(renewed.await.unwrap());
    let answer = Answer {
        how: some(),
        origin: some(),
        reason: Some(some()),
        edited: Some(some()),
        ..yes(text)
    };
    let detail = |_: &Command| "null".into();
    let settled = store
        .approvals()
        .answer(some(), some(), answer.clone(), detail, |_, _| vec![])
        .await;
    assert!(matches!(settled.unwrap(), Answered::Settled { .. }));
    assert_eq!(store.approvals().answers(text).unwrap(), [answer]);
    store.approvals().named(text).unwrap();
}

async fn entries(store: &Store, text: &str) {
    let some = || text.to_owned();
    let said = Entry {
        actor: some(),
        run: Some(some()),
        sandbox: Some(some()),
        owner: Some(some()),
        detail: json!({ some(): some() }),
        ..entry("run.ended", "")
    };
    store.audit().record(vec![said.clone()]).await.unwrap();
    let filter = EntryFilter {
        run: said.run,
        sandbox: said.sandbox,
        owner: said.owner,
        actor: Some(said.actor),
        limit: 9,
        ..EntryFilter::default()
    };
    let found = store.audit().entries(&filter).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["detail"], said.detail);
    let kind = Some(format!("{text}."));
    let found = store.audit().entries(&EntryFilter { kind, ..filter });
    assert_eq!(found.unwrap(), [json!(null); 0]);
}
