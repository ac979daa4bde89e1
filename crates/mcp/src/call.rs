//! One call of a tool: who gets its progress, and who may end it.

use std::future::pending;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use weighlock_api::{
    ApiRequest, CommandView, State, StopRequest, WaitKind, WaitRequest, WaitView, Wanted,
};

use crate::api::{self, Failure};
use crate::desk::ClientDesk;
use crate::seal::SealedQuestion;

/// The longest a call takes when the client gets no progress: clients give up
/// after a minute.
pub(crate) const PATIENCE: Duration = Duration::from_secs(45);

/// How often progress is sent.
const EVERY: Duration = Duration::from_secs(1);

/// Who calls, and what they can be told meanwhile.
pub(crate) trait McpClient: Send + Sync {
    /// Whether they want to know how far it is.
    fn hears_progress(&self) -> bool;

    /// Says how far it is.
    fn tell(&self, seconds: f64, message: String) -> BoxFuture<'_, ()>;

    /// Says what should be on the client's record.
    fn log(&self, message: String) -> BoxFuture<'_, ()>;

    /// How their person can be asked, if they can.
    fn manner(&self) -> Option<AskMode>;

    /// Asks their person in the middle of a call; nothing if there is no
    /// answer.
    fn ask(&self, question: String) -> BoxFuture<'_, Option<PersonAnswer>>;
}

/// How a client's person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskMode {
    /// In the middle of a call.
    Meanwhile,
    /// Instead of an answer: the call is made again with theirs.
    Instead,
}

/// What the client's person has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PersonAnswer {
    pub(crate) yes: bool,
    pub(crate) reason: Option<String>,
}

/// A call that is made again: what was asked, and what has come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Again {
    pub(crate) asked: SealedQuestion,
    pub(crate) back: ReturnedAnswer,
}

/// What comes back with a call that is made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReturnedAnswer {
    /// The question was not put, or has got lost.
    Nothing,
    /// It was put; the person may have said nothing.
    Said(Option<PersonAnswer>),
}

/// A question that is put instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeferredQuestion {
    pub(crate) text: String,
    pub(crate) asked: SealedQuestion,
    /// Who may decide.
    pub(crate) who: String,
}

/// A call under way.
pub(crate) struct Call {
    pub(crate) desk: Arc<ClientDesk>,
    pub(crate) client: Box<dyn McpClient>,
    /// What it goes on with, if it is not the first.
    pub(crate) again: Option<Again>,
    /// What is to be asked instead of an answer.
    pub(crate) question: OnceLock<DeferredQuestion>,
    /// Becomes true when the caller does not want it any more.
    pub(crate) cancelled: tokio::sync::watch::Receiver<bool>,
    pub(crate) began: Instant,
}

/// What becomes of a run when its call is cancelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum OnCancel {
    #[default]
    Stop,
    Leave,
}

impl Call {
    /// How long this call may go on.
    pub(crate) fn patience(&self, wanted: Option<Duration>) -> Option<Duration> {
        match self.client.hears_progress() {
            true => wanted,
            false => Some(wanted.map_or(PATIENCE, |wanted| wanted.min(PATIENCE))),
        }
    }

    /// Waits until a run has ended, waits for a person, or patience is over.
    pub(crate) async fn attend(
        &self,
        mut view: CommandView,
        patience: Option<Duration>,
        on_cancel: OnCancel,
    ) -> Result<CommandView, Failure> {
        let until = patience.map(|patience| self.began + patience);
        let id = view.run.command_id.clone();
        while view.run.state == State::Running {
            let Some(step) = self.step(until) else {
                let request = ApiRequest::run(&id, None, Some(false));
                return api::send(self.desk.api(), request).await;
            };
            let attend = on_cancel == OnCancel::Stop;
            let request = ApiRequest::run(&id, Some(step.as_millis() as u64), Some(attend));
            view = tokio::select! {
                view = api::send(self.desk.api(), request) => view?,
                () = self.is_cancelled() => return self.leave(view, on_cancel).await,
            };
            self.tell(last_line(&view)).await;
        }
        Ok(view)
    }

    /// Waits until a command in a terminal has ended, wants input, waits for a
    /// person, or patience is over.
    pub(crate) async fn attend_typed(
        &self,
        mut view: CommandView,
        terminal: &str,
        on_cancel: OnCancel,
    ) -> Result<CommandView, Failure> {
        let until = self.patience(None).map(|patience| self.began + patience);
        let id = view.run.command_id.clone();
        let wanted = [(id.as_str(), WaitKind::Exit), (terminal, WaitKind::Input)];
        let mut request = WaitRequest {
            wanted: { wanted.into_iter() }
                .map(|(id, until)| Wanted {
                    id: id.to_owned(),
                    until,
                    ..Wanted::default()
                })
                .collect(),
            ..WaitRequest::default()
        };
        while view.run.state == State::Running {
            let Some(step) = self.step(until) else {
                break;
            };
            request.timeout_ms = Some(step.as_millis() as u64);
            let waited: WaitView = tokio::select! {
                waited = api::send(self.desk.api(), ApiRequest::wait(&request)) => waited?,
                () = self.is_cancelled() => return self.leave(view, on_cancel).await,
            };
            view = api::get(self.desk.api(), format!("/commands/{id}")).await?;
            if waited.met {
                break;
            }
            self.tell(last_line(&view)).await;
        }
        Ok(view)
    }

    /// How long to wait at once; nothing if it is time to answer.
    pub(crate) fn step(&self, until: Option<Instant>) -> Option<Duration> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let step = match self.client.hears_progress() {
            true => EVERY,
            false => PATIENCE,
        };
        let step = left.map_or(step, |left| left.min(step));
        (step >= Duration::from_millis(1)).then_some(step)
    }

    /// Says how far it is, if anybody listens.
    pub(crate) async fn tell(&self, message: String) {
        if self.client.hears_progress() {
            let seconds = self.began.elapsed().as_secs_f64();
            // A client that reads nothing for a while must not keep us from
            // waiting for its run, which would end it.
            let told = self.client.tell(seconds, message);
            let _ = tokio::time::timeout(EVERY, told).await;
        }
    }

    /// Waits until the caller does not want it any more.
    pub(crate) async fn is_cancelled(&self) {
        let mut cancelled = self.cancelled.clone();
        if cancelled.wait_for(|&cancelled| cancelled).await.is_err() {
            // Nobody can say so any more.
            pending::<()>().await;
        }
    }

    pub(crate) async fn leave(
        &self,
        view: CommandView,
        on_cancel: OnCancel,
    ) -> Result<CommandView, Failure> {
        match on_cancel {
            OnCancel::Leave => {
                let told = format!("{} goes on: its call was cancelled", view.run.short_id);
                self.client.log(told).await;
                Ok(view)
            }
            OnCancel::Stop => {
                let path = format!("/commands/{}/stop", view.run.command_id);
                let view: CommandView =
                    api::post(self.desk.api(), path, &StopRequest::default()).await?;
                let told = format!("{} was stopped: its call was cancelled", view.run.short_id);
                self.client.log(told).await;
                Ok(view)
            }
        }
    }
}

/// The last line that a run has written, if it has.
pub(crate) fn last_line(view: &CommandView) -> String {
    let said = [&view.text, &view.stdout, &view.stderr];
    let mut said = said.into_iter().flatten().rev();
    let line = said.find_map(|text| {
        let mut lines = text.lines().rev();
        lines.find(|line| !line.trim().is_empty())
    });
    let line = line.unwrap_or("runs");
    weighlock_screen::safe_text(&line.chars().take(200).collect::<String>())
}
