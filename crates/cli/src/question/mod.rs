//! A question, put to whoever sits at the terminal.

mod always;
mod card;
mod letters;
mod pager;

use weighlock_engine::{ApprovalState, ApprovalView};
use weighlock_server::DecisionRequest;

use crate::client::{Client, Failure, escape};
use crate::events::News;
use crate::keys::Keys;
use crate::paths::Paths;
use crate::signals::Signals;
use crate::term::say;
use crate::text::one_line;
pub(crate) use card::lines;
use letters::Answer;
pub(crate) use letters::decision;
pub(crate) use pager::page;

/// What became of it.
pub(crate) enum Outcome {
    /// The person here has answered.
    Answered(Box<ApprovalView>),
    /// It was over before.
    Over(Box<ApprovalView>),
    /// The person goes on to the next.
    Next,
    /// The person leaves.
    Quit,
}

/// How a question is put.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Put {
    /// The how-manyth of how many it is, where there is a row of them.
    pub(crate) place: Option<(usize, usize)>,
    /// Begin with the rejection.
    pub(crate) reject: bool,
    /// Whoever is asked has asked for it.
    pub(crate) own: bool,
}

/// Puts one question, and takes the answer. Closes when somebody else answers.
pub(crate) async fn put(
    paths: &Paths,
    signals: &mut Signals,
    id: &str,
    put: Put,
) -> Result<Outcome, Failure> {
    // First, so that nothing falls between looking and waiting.
    let mut news = News::open(paths).await?;
    let mut shown = fetch(paths, id).await?;
    let mut card = true;
    loop {
        if shown.state != ApprovalState::Pending {
            return Ok(Outcome::Over(Box::new(shown)));
        }
        let answer = {
            let mut keys = Keys::new(signals)?;
            tokio::select! {
                answer = letters::ask(&mut keys, &shown, put, card, paths) => Some(answer),
                now = changed(&mut news, &shown, paths) => {
                    shown = now?;
                    None
                }
            }
        };
        card = true;
        match answer {
            None => say!("\n{}", what_changed(&shown)),
            Some(Answer::Next) => return Ok(Outcome::Next),
            Some(Answer::Quit) => return Ok(Outcome::Quit),
            Some(Answer::Decide(decision)) => match send(paths, &shown, &decision).await? {
                Sent::Answered(now) => return Ok(Outcome::Answered(now)),
                Sent::Over(now) => shown = *now,
                Sent::Wrong(failure) => {
                    say!("{}", failure.to_string().trim_end());
                    card = false;
                }
            },
        }
    }
}

/// Says how a question ended.
pub(crate) fn how_it_ended(approval: &ApprovalView) -> String {
    let by = approval.decided_by.as_deref().unwrap_or("somebody");
    let by = one_line(by, 40);
    match approval.state {
        ApprovalState::Expired => "Nobody answered in time; it has expired.".into(),
        ApprovalState::Pending => "It still waits for another person.".into(),
        state => format!("Already {} by {by}.", state.word()),
    }
}

fn what_changed(now: &ApprovalView) -> String {
    match now.state {
        ApprovalState::Pending => "What would run has changed; this is the question now.".into(),
        _ => String::new(),
    }
}

/// What became of an answer.
enum Sent {
    Answered(Box<ApprovalView>),
    Over(Box<ApprovalView>),
    /// It was no answer to this.
    Wrong(Failure),
}

async fn send(
    paths: &Paths,
    shown: &ApprovalView,
    decision: &DecisionRequest,
) -> Result<Sent, Failure> {
    match decide(paths, &shown.approval_id, decision).await {
        Ok(now) => Ok(Sent::Answered(Box::new(now))),
        Err(failure) => match failure.code() {
            Some("already_decided" | "payload_changed") => {
                let now = fetch(paths, &shown.approval_id).await?;
                say!("{}", what_changed(&now));
                Ok(Sent::Over(Box::new(now)))
            }
            Some("bad_rules" | "blocked" | "paused" | "empty_command" | "command_too_long") => {
                Ok(Sent::Wrong(failure))
            }
            _ => Err(failure),
        },
    }
}

/// Sends an answer. A person may take longer than a connection lasts, so it
/// has one of its own.
pub(crate) async fn decide(
    paths: &Paths,
    id: &str,
    decision: &DecisionRequest,
) -> Result<ApprovalView, Failure> {
    let mut client = Client::open(paths).await?;
    let path = format!("/approvals/{}/decision", escape(id));
    client.post(&path, decision).await
}

/// Returns a question with everything that led to it.
pub(crate) async fn fetch(paths: &Paths, id: &str) -> Result<ApprovalView, Failure> {
    let mut client = Client::open(paths).await?;
    client.get(&format!("/approvals/{}", escape(id))).await
}

/// Waits until a question is not what it was.
async fn changed(
    news: &mut News,
    shown: &ApprovalView,
    paths: &Paths,
) -> Result<ApprovalView, Failure> {
    loop {
        let event = news.next().await?;
        let ours = event.approval_id.as_deref() == Some(&shown.approval_id);
        if ours || event.event == "reset" {
            let now = fetch(paths, &shown.approval_id).await?;
            if now.state != ApprovalState::Pending || now.fingerprint != shown.fingerprint {
                return Ok(now);
            }
        }
    }
}
