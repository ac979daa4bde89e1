//! One story, to be told to every backend: what is remembered, who is asked,
//! and how it shows when somebody changed it.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod approvals;
mod bound;
mod events;
mod hostile;
mod inbox;
mod keys;
mod lists;
mod migration;
mod outbox;
mod people;
mod races;
mod remembered;
mod retention;
mod sandboxes;
mod waiting;

use serde_json::json;
use tempfile::TempDir;
use weighlock_store::{
    Answer, Answered, Approval, ApprovalState, Ask, Asked, Command, Durability, Entry, Hold, Risk,
    State, Store,
};

fn open() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Durability::Process).unwrap();
    (dir, store)
}

fn id(number: u32) -> String {
    format!("r_{number:010}tail{number:06}")
}

fn approval_id(number: u32) -> String {
    format!("ap_{number:010}tail{number:06}")
}

fn command(number: u32, text: &str) -> Command {
    Command {
        id: id(number),
        session: None,
        sandbox: Some("sb_1".into()),
        approval: None,
        command: text.into(),
        cwd: "/".into(),
        state: State::Running,
        exit_code: None,
        signal: None,
        requested_by: "bot".into(),
        approved_by: None,
        created_at: i64::from(number),
        updated_at: i64::from(number),
        started_at: Some(i64::from(number)),
        ended_at: None,
        open: true,
        external: false,
        kept_bytes: 0,
        detail: json!({ "shell": "sh" }).to_string(),
    }
}

/// A command that has not begun.
fn unbegun(number: u32, state: State) -> Command {
    Command {
        state,
        started_at: None,
        open: false,
        ..command(number, "make")
    }
}

fn question(number: u32, fingerprint: &str) -> Approval {
    Approval {
        id: approval_id(number),
        state: ApprovalState::Pending,
        fingerprint: fingerprint.into(),
        requested_by: "bot".into(),
        sandbox: "sb_1".into(),
        risk: Risk::Medium,
        version: 1,
        created_at: i64::from(number),
        expires_at: i64::from(number) + 1_000,
        decided_at: None,
        decided_by: None,
        count: 1,
        needed: 1,
        body: json!({ "because": "`make` runs anything" }),
    }
}

fn ask(number: u32, fingerprint: &str) -> Ask {
    Ask {
        command: unbegun(number, State::Waiting),
        request: format!("request {number}"),
        approval: question(number, fingerprint),
        key: None,
        max_pending: 1_000_000,
    }
}

fn hold(command: Command) -> Hold {
    Hold {
        command,
        request: "held".into(),
        key: None,
        max_pending: 1_000_000,
    }
}

/// Asks, leaving one entry.
async fn asked(store: &Store, ask: Ask) -> Asked {
    let run = ask.command.id.clone();
    let entries = vec![entry("approval.asked", &run)];
    store
        .approvals()
        .ask(ask, move |_, _, _| entries)
        .await
        .unwrap()
}

fn yes(by: &str) -> Answer {
    Answer {
        by: by.into(),
        approve: true,
        how: "web".into(),
        origin: "127.0.0.1".into(),
        reason: None,
        edited: None,
        at: 500,
    }
}

fn no(by: &str) -> Answer {
    Answer {
        approve: false,
        reason: Some("not now".into()),
        ..yes(by)
    }
}

/// Answers question `number`, leaving an entry for it and for each command.
async fn answered(store: &Store, number: u32, fingerprint: &str, answer: Answer) -> Answered {
    let said = json!({ "said": answer.reason });
    store
        .approvals()
        .answer(
            approval_id(number),
            fingerprint.into(),
            answer,
            move |_| said.to_string(),
            closing,
        )
        .await
        .unwrap()
}

/// An entry for a question, and one for each of its commands.
fn closing(approval: &Approval, commands: &[Command]) -> Vec<Entry> {
    let question = Entry {
        kind: "approval.answered",
        sandbox: Some(approval.sandbox.clone()),
        owner: Some(approval.requested_by.clone()),
        ..Entry::default()
    };
    let commands = commands
        .iter()
        .map(|command| entry("run.answered", &command.id));
    std::iter::once(question).chain(commands).collect()
}

fn entry(kind: &'static str, run: &str) -> Entry {
    Entry {
        time: 1_000_000,
        kind,
        actor: "uid:1".into(),
        run: Some(run.into()),
        sandbox: None,
        owner: None,
        detail: json!({ "quote": "\"\n\u{202E}" }),
    }
}

/// Checks the whole chain.
fn assert_verifies(store: &Store) {
    let verified = store.audit().verify().unwrap();
    assert_eq!(verified.fault, None);
    assert_eq!(verified.entries, store.audit().newest_seq().unwrap());
}
