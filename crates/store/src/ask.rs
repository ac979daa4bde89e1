//! Asking people: a new question, one that is asked already, or another in its
//! place; and taking it back.

use rusqlite::{Connection, OptionalExtension, params};

use crate::approval::ApprovalTable;
use crate::approval::{self, Approval, COLUMNS};
use crate::command::{self, Command};
use crate::entry::Entry;
use crate::error::Error;
use crate::key::{self, Key};
use crate::pending::{self, Asked, refusal};
use crate::writer::only_if;
use weighlock_api::{ApprovalState, State};

/// A command that needs somebody's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// In the state [`State::Waiting`].
    pub command: Command,
    /// To start it from, once it may.
    pub request: String,
    /// The question, in case nobody is asked the same already.
    pub approval: Approval,
    /// See [`Key`].
    pub key: Option<Key>,
    /// How many commands of one requester may be pending.
    pub max_pending: u64,
}

impl ApprovalTable<'_> {
    /// Joins the pending question with the same fingerprint and requester, or
    /// makes one. `tell` is given the command together with the question that
    /// it will wait for, and whether that is new; it may still change what has
    /// no column.
    pub async fn ask(
        self,
        ask: Ask,
        tell: impl FnOnce(&mut Command, &Approval, bool) -> Vec<Entry> + Send + 'static,
    ) -> Result<Asked, Error> {
        self.database
            .writer
            .write(move |to| {
                let refusal = refusal(to, &ask.command, ask.key.as_ref(), ask.max_pending)?;
                if let Some(refusal) = refusal {
                    return Ok((refusal, vec![]));
                }
                let joined = join(to, &ask.approval)?;
                let question = match &joined {
                    Some(joined) => joined.clone(),
                    None => open(to, ask.approval)?,
                };
                let mut command = Command {
                    approval: Some(question.id.clone()),
                    ..ask.command
                };
                let entries = tell(&mut command, &question, joined.is_none());
                pending::insert(to, &command, &ask.request)?;
                key::keep(to, ask.key.as_ref(), &command.id, command.created_at)?;
                Ok((
                    joined.map_or(Asked::New, |joined| Asked::Joined(Box::new(joined))),
                    entries,
                ))
            })
            .await
    }

    /// Replaces a pending question by another: the same id, the next version,
    /// and the answers so far are deleted. Returns false when it was answered
    /// or changed meanwhile.
    pub async fn renew(
        self,
        id: String,
        was: String,
        now: Approval,
        entries: Vec<Entry>,
    ) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let changed = to.execute(
                    "UPDATE approvals SET fingerprint = ?3, rank = ?4, expires_at = ?5, \
                     needed = ?6, body = ?7, version = version + 1 \
                     WHERE approval_id = ?1 AND fingerprint = ?2 AND state = 'pending'",
                    params![
                        id,
                        was,
                        now.fingerprint,
                        now.risk.rank(),
                        now.expires_at,
                        now.needed,
                        now.body.to_string(),
                    ],
                )?;
                if changed == 1 {
                    to.execute("DELETE FROM answers WHERE approval_id = ?1", [id])?;
                }
                Ok(only_if(changed == 1, entries))
            })
            .await
    }

    /// Gives a pending question another deadline, and returns it as it is now.
    pub async fn extend(
        self,
        id: String,
        expires_at: i64,
        entries: Vec<Entry>,
    ) -> Result<Option<Approval>, Error> {
        self.database
            .writer
            .write(move |to| {
                let Some(mut approval) = approval::pending(to, &id)? else {
                    return Ok((None, vec![]));
                };
                approval.expires_at = expires_at;
                approval::update(to, &approval)?;
                Ok((Some(approval), entries))
            })
            .await
    }

    /// Withdraws one waiting command, and its question too when no other
    /// command waits for it; that question is returned. Returns `None` when the
    /// command was not waiting: it ended, began, or may begin. `entries`
    /// receives the closed question.
    pub async fn withdraw(
        self,
        command: Command,
        by: String,
        entries: impl FnOnce(Option<&Approval>) -> Vec<Entry> + Send + 'static,
    ) -> Result<Option<Option<Approval>>, Error> {
        self.database
            .writer
            .write(move |to| {
                let Some(stored) = command::one(to, &command.id)?.filter(waits) else {
                    return Ok((None, vec![]));
                };
                pending::end(to, &command)?;
                let closed = approval::left(to, &stored, &by, command.updated_at)?;
                let entries = entries(closed.as_ref());
                Ok((Some(closed), entries))
            })
            .await
    }
}

/// An approved command is not taken back: the answer came first.
fn waits(command: &Command) -> bool {
    command.state == State::Waiting && command.approved_by.is_none()
}

/// Adds one to the pending question that asks the same, if there is one.
fn join(to: &Connection, like: &Approval) -> Result<Option<Approval>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM approvals INDEXED BY pending_same \
         WHERE requested_by = ?1 AND fingerprint = ?2 AND state = 'pending' LIMIT 1"
    );
    let found = to
        .prepare_cached(&sql)?
        .query_row(params![like.requested_by, like.fingerprint], approval::read)
        .optional()?;
    let Some(mut joined) = found else {
        return Ok(None);
    };
    joined.count += 1;
    approval::update(to, &joined)?;
    Ok(Some(joined))
}

fn open(to: &Connection, question: Approval) -> Result<Approval, Error> {
    let question = Approval {
        state: ApprovalState::Pending,
        count: 1,
        decided_at: None,
        decided_by: None,
        ..question
    };
    approval::insert(to, &question)?;
    Ok(question)
}
