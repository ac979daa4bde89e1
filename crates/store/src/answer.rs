//! Answers to questions, and other ends of them.
//!
//! The first transaction decides: there is one writer, and each operation
//! checks that the question is still open before it does anything.

use rusqlite::{Connection, Row, params};

use crate::approval::{self, Approval, ApprovalState};
use crate::audit::Entry;
use crate::command::{self, Command};
use crate::open::{Error, Store, all};
use crate::pending;

/// What one person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Who.
    pub by: String,
    /// Yes or no.
    pub approve: bool,
    /// By what door, as a word.
    pub how: String,
    /// From where.
    pub origin: String,
    /// Why, in that person's words.
    pub reason: Option<String>,
    /// What to run instead.
    pub edited: Option<String>,
    /// Microseconds since 1970.
    pub at: i64,
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answered {
    /// The question was open, and is settled now.
    Settled {
        /// As it is now.
        approval: Approval,
        /// Those that waited, with their requests: rejected now, or approved
        /// and still waiting to begin.
        commands: Vec<(Command, String)>,
    },
    /// Another approver is needed.
    More {
        /// How many have said yes.
        have: u32,
        /// How many must.
        needed: u32,
    },
    /// This person has approved already; only a no would change that.
    Again,
    /// Somebody or a clock was faster.
    Closed(Approval),
    /// It is not what was shown.
    Changed(Approval),
    /// There is no such question.
    Missing,
}

impl Store {
    /// Answers a question. `detail` gives the detail of a command that is
    /// rejected; `entries` receives the question and the commands that waited,
    /// none while more answers are needed.
    pub async fn answer(
        &self,
        id: String,
        fingerprint: String,
        answer: Answer,
        detail: impl Fn(&Command) -> String + Send + 'static,
        entries: impl FnOnce(&Approval, &[Command]) -> Vec<Entry> + Send + 'static,
    ) -> Result<Answered, Error> {
        self.writer
            .write(move |to| {
                let mut approval = match open(to, &id, &fingerprint, &answer)? {
                    Ok(approval) => approval,
                    Err(refusal) => return Ok((refusal, vec![])),
                };
                insert(to, &id, &answer)?;
                let have = yeses(to, &id)?;
                let needed = approval.needed;
                if answer.approve && have < needed {
                    let entries = entries(&approval, &[]);
                    return Ok((Answered::More { have, needed }, entries));
                }
                approval.close(answer.verdict(), &answer.by, answer.at);
                let commands = settle(to, &approval, &detail)?;
                let entries = told(&approval, &commands, entries);
                Ok((Answered::Settled { approval, commands }, entries))
            })
            .await
    }

    /// Closes a pending question for another reason than an answer, and its
    /// commands with it; `None` when it is not pending any more.
    pub async fn close_approval(
        &self,
        id: String,
        state: ApprovalState,
        by: String,
        at: i64,
        detail: impl Fn(&Command) -> String + Send + 'static,
        entries: impl FnOnce(&Approval, &[Command]) -> Vec<Entry> + Send + 'static,
    ) -> Result<Option<(Approval, Vec<Command>)>, Error> {
        self.writer
            .write(move |to| {
                // A yes has an answer, and goes no way around it.
                let pending =
                    approval::pending(to, &id)?.filter(|_| approval::end_of(state).is_some());
                let Some(mut approval) = pending else {
                    return Ok((None, vec![]));
                };
                approval.close(state, &by, at);
                let commands = settle(to, &approval, &detail)?;
                let entries = told(&approval, &commands, entries);
                let commands = commands.into_iter().map(|(command, _)| command).collect();
                Ok((Some((approval, commands)), entries))
            })
            .await
    }

    /// Recalls the answers to a question as it is now, oldest first.
    pub fn answers(&self, approval: &str) -> Result<Vec<Answer>, Error> {
        let sql = "SELECT by, approve, how, origin, reason, edited, at FROM answers \
                   WHERE approval_id = ?1 ORDER BY at, by";
        all(&self.lock_reader(), sql, [approval], read)
    }
}

impl Answer {
    fn verdict(&self) -> ApprovalState {
        if self.approve {
            ApprovalState::Approved
        } else {
            ApprovalState::Rejected
        }
    }
}

/// Returns the question if it may be answered, or why not.
fn open(
    from: &Connection,
    id: &str,
    fingerprint: &str,
    answer: &Answer,
) -> Result<Result<Approval, Answered>, Error> {
    let Some(approval) = approval::one(from, id)? else {
        return Ok(Err(Answered::Missing));
    };
    Ok(if approval.state != ApprovalState::Pending {
        Err(Answered::Closed(approval))
    } else if approval.fingerprint != fingerprint {
        Err(Answered::Changed(approval))
    } else if answer.approve && has_answered(from, id, &answer.by)? {
        Err(Answered::Again)
    } else {
        Ok(approval)
    })
}

fn has_answered(from: &Connection, id: &str, by: &str) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM answers WHERE approval_id = ?1 AND by = ?2";
    Ok(from.prepare_cached(sql)?.exists([id, by])?)
}

fn insert(to: &Connection, id: &str, answer: &Answer) -> Result<(), Error> {
    to.prepare_cached(
        "REPLACE INTO answers (approval_id, by, approve, how, origin, reason, edited, at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        id,
        answer.by,
        answer.approve,
        answer.how,
        answer.origin,
        answer.reason,
        answer.edited,
        answer.at,
    ])?;
    Ok(())
}

fn yeses(from: &Connection, id: &str) -> Result<u32, Error> {
    let sql = "SELECT count(*) FROM answers WHERE approval_id = ?1 AND approve = 1";
    Ok(from
        .prepare_cached(sql)?
        .query_row([id], |row| row.get(0))?)
}

/// Writes a question that was closed, and lets what waited for it know.
fn settle(
    to: &Connection,
    closed: &Approval,
    detail: &dyn Fn(&Command) -> String,
) -> Result<Vec<(Command, String)>, Error> {
    approval::update(to, closed)?;
    let mut commands = pending::waiting(to, &closed.id)?;
    for (command, _) in &mut commands {
        command.updated_at = closed.decided_at.unwrap_or(command.updated_at);
        if let Some(state) = approval::end_of(closed.state) {
            command.state = state;
            command.ended_at = closed.decided_at;
            command.open = false;
            command.detail = detail(command);
            pending::end(to, command)?;
        } else {
            command.approved_by.clone_from(&closed.decided_by);
            command::update(to, command)?;
        }
    }
    Ok(commands)
}

fn told(
    approval: &Approval,
    commands: &[(Command, String)],
    entries: impl FnOnce(&Approval, &[Command]) -> Vec<Entry>,
) -> Vec<Entry> {
    let commands: Vec<_> = commands
        .iter()
        .map(|(command, _)| command.clone())
        .collect();
    entries(approval, &commands)
}

fn read(row: &Row<'_>) -> Result<Answer, rusqlite::Error> {
    Ok(Answer {
        by: row.get(0)?,
        approve: row.get(1)?,
        how: row.get(2)?,
        origin: row.get(3)?,
        reason: row.get(4)?,
        edited: row.get(5)?,
        at: row.get(6)?,
    })
}
