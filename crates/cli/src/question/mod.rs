//! Shows a question to the person at the terminal.

mod always;
mod card;
mod letters;
mod pager;

use std::ops::Deref;

use weighlock_api::{
    ApprovalState, ApprovalView, ChangesInfo, CommandView, DecisionRequest, Event, RuleProposals,
    State, Tried,
};

use crate::client::{Client, Failure, escape};
use crate::effect::{ChangesUrls, Links};
use crate::events::EventFeed;
use crate::keys::Keys;
use crate::paths::Paths;
use crate::signals::Signals;
use crate::term::say;
use crate::text::one_line;
pub(crate) use card::{effect, lines};
use letters::PersonReply;
pub(crate) use letters::{agreed, confirmed, decision};
pub(crate) use pager::{ReadPosition, page};

/// Files that a card names; a terminal has room for about twice as many.
const MAX_FILES: usize = 20;

/// A question with all that is shown of it.
pub(crate) struct ShownQuestion {
    view: ApprovalView,
    /// What would be applied: the first files of it.
    changes: Option<ChangesInfo>,
    links: Links,
    /// Rules that this person could allow from now on, if they may.
    rules: Option<RuleProposals>,
}

impl Deref for ShownQuestion {
    type Target = ApprovalView;

    fn deref(&self) -> &ApprovalView {
        &self.view
    }
}

/// What became of it.
pub(crate) enum QuestionOutcome {
    /// The person here has answered.
    Answered(Box<ApprovalView>),
    /// It was over before.
    Over(Box<ApprovalView>),
    /// The person goes on to the next.
    Next,
    /// The person leaves it to be answered later.
    Quit,
    /// Ctrl C, or nobody is there any more.
    Interrupted,
}

/// How a question is put.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Put {
    /// The how-manyth of how many it is, where there is a row of them.
    pub(crate) place: Option<(usize, usize)>,
    /// Begin with the rejection.
    pub(crate) reject: bool,
    /// The person who is asked is the requester.
    pub(crate) own: bool,
}

/// Puts one question, and takes the answer. Closes when somebody else answers.
pub(crate) async fn put(
    paths: &Paths,
    signals: &mut Signals,
    id: &str,
    put: Put,
) -> Result<QuestionOutcome, Failure> {
    // First, so that nothing falls between looking and waiting.
    let mut news = EventFeed::open(paths).await?;
    let mut shown = look(paths, id).await?;
    let mut card = true;
    loop {
        if shown.state != ApprovalState::Pending {
            return Ok(QuestionOutcome::Over(Box::new(shown.view)));
        }
        let blocked = !first(&shown).is_empty();
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
            None if blocked && is_free(&shown) => {
                say!("\nWhat it was built on is applied; this is the question now.");
            }
            None => say!("\n{}", what_changed(&shown)),
            Some(PersonReply::Next) => return Ok(QuestionOutcome::Next),
            Some(PersonReply::Quit) => return Ok(QuestionOutcome::Quit),
            Some(PersonReply::Interrupt) => return Ok(QuestionOutcome::Interrupted),
            Some(PersonReply::Try) => match try_out(paths, &shown, &mut news, signals).await {
                Ok(now) => shown = now,
                Err(failure) if failure.problem.is_some() => {
                    say!("{}", failure.to_string().trim_end());
                    card = false;
                }
                Err(failure) => return Err(failure),
            },
            Some(PersonReply::Decide(decision)) => match send(paths, &shown, &decision).await? {
                AnswerResult::Answered(now) => return Ok(QuestionOutcome::Answered(now)),
                AnswerResult::Over(now) => shown = *now,
                AnswerResult::Wrong(failure) => {
                    say!("{}", failure.to_string().trim_end());
                    card = false;
                }
            },
        }
    }
}

/// Tries the command on a copy and returns the question about its effects. If
/// the person interrupts the wait, returns the question as it is now.
async fn try_out(
    paths: &Paths,
    shown: &ShownQuestion,
    news: &mut EventFeed,
    signals: &mut Signals,
) -> Result<ShownQuestion, Failure> {
    let mut client = Client::open(paths).await?;
    let path = format!("/approvals/{}/preview", escape(&shown.approval_id));
    let _: ApprovalView = client.post(&path, &serde_json::json!({})).await?;
    say!("  Trying it in a copy…");
    let run = shown.command_ids.first().cloned().unwrap_or_default();
    let tried = async {
        while client
            .get::<CommandView>(&format!("/commands/{run}"))
            .await?
            .run
            .state
            == State::Running
        {
            let ours = |id: &Option<String>| id.as_deref() == Some(&run);
            let mut event = news.next().await?;
            while !ours(&event.command_id) && event.event != "reset" {
                event = news.next().await?;
            }
        }
        Ok::<_, Failure>(())
    };
    tokio::select! {
        done = tried => done?,
        _ = signals.next() => {}
    }
    look(paths, &shown.approval_id).await
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

fn what_changed(now: &ApprovalView) -> &'static str {
    match (now.state, &now.effect) {
        (ApprovalState::Pending, None) => "What would run has changed; this is the question now.",
        (ApprovalState::Pending, Some(_)) => {
            "What would be applied has changed; this is the question now."
        }
        _ => "",
    }
}

/// Returns the runs that have to be decided first, since it was built on what
/// they changed.
fn first(asked: &ApprovalView) -> &[String] {
    { asked.effect.as_ref() }.map_or(&[], |effect| &effect.after)
}

/// Returns whether it can be answered with yes as far as others go.
fn is_free(asked: &ApprovalView) -> bool {
    asked.state == ApprovalState::Pending && first(asked).is_empty()
}

/// Returns whether what it did on a copy cannot be applied as things are now.
fn is_stale(effect: &Tried) -> bool {
    effect.state == "stale" || !effect.conflicts.is_empty()
}

/// What became of an answer.
enum AnswerResult {
    Answered(Box<ApprovalView>),
    Over(Box<ShownQuestion>),
    /// It was no answer to this.
    Wrong(Failure),
}

async fn send(
    paths: &Paths,
    shown: &ShownQuestion,
    decision: &DecisionRequest,
) -> Result<AnswerResult, Failure> {
    match decide(paths, &shown.approval_id, decision).await {
        Ok(now) => Ok(AnswerResult::Answered(Box::new(now))),
        Err(failure) => match failure.code() {
            Some("already_decided" | "payload_changed" | "conflict") => {
                let now = look(paths, &shown.approval_id).await?;
                say!("{}", what_changed(&now));
                Ok(AnswerResult::Over(Box::new(now)))
            }
            Some("earlier_first") => {
                say!("{}", failure.to_string().trim_end());
                let now = look(paths, &shown.approval_id).await?;
                Ok(AnswerResult::Over(Box::new(now)))
            }
            Some(code) if NOT_YET.contains(&code) => Ok(AnswerResult::Wrong(failure)),
            _ => Err(failure),
        },
    }
}

/// What can be answered otherwise, or later.
const NOT_YET: &[&str] = &[
    "bad_rules",
    "blocked",
    "command_too_long",
    "empty_command",
    "paused",
    "trying",
];

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

/// The same, with what would be applied.
pub(crate) async fn look(paths: &Paths, id: &str) -> Result<ShownQuestion, Failure> {
    let view = fetch(paths, id).await?;
    let (mut changes, mut links) = (None, Links::default());
    if let (Some(_), Some(run)) = (&view.effect, view.command_ids.first()) {
        let mut client = Client::open(paths).await?;
        // What cannot be read can still be rejected.
        let place = ChangesUrls::of_run(run);
        changes = place.fetch(&mut client, MAX_FILES).await.ok();
        if let Some(changes) = &changes {
            links = place.links(&mut client, changes).await.unwrap_or_default();
        }
    }
    let rules = match view.state {
        ApprovalState::Pending => proposals(paths, &view.approval_id).await.ok(),
        _ => None,
    };
    Ok(ShownQuestion {
        view,
        changes,
        links,
        rules,
    })
}

async fn proposals(paths: &Paths, id: &str) -> Result<RuleProposals, Failure> {
    let mut client = Client::open(paths).await?;
    let path = format!("/approvals/{}/rule-proposals", escape(id));
    client.get(&path).await
}

/// Returns whether an event is about a run that the question's changes build
/// on.
fn is_below(event: &Event, shown: &ShownQuestion) -> bool {
    let built_on = { shown.effect.iter() }.flat_map(|effect| &effect.changes.built_on);
    built_on
        .into_iter()
        .any(|run| event.command_id.as_deref() == Some(run))
}

/// Waits until a question is not what it was.
async fn changed(
    news: &mut EventFeed,
    shown: &ShownQuestion,
    paths: &Paths,
) -> Result<ShownQuestion, Failure> {
    loop {
        let event = news.next().await?;
        let ours = event.approval_id.as_deref() == Some(&shown.approval_id);
        if ours || is_below(&event, shown) || event.event == "reset" {
            let now = look(paths, &shown.approval_id).await?;
            let same = now.fingerprint == shown.fingerprint && first(&now) == first(shown);
            if now.state != ApprovalState::Pending || !same {
                return Ok(now);
            }
        }
    }
}
