//! Waiting for somebody's answer, and taking a request back.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use weighlock_api::{CommandView, State};

use super::show::Show;
use crate::client::{Client, Failure};
use crate::events::EventFeed;
use crate::paths::Paths;
use crate::signals::Signals;

/// Longer than any question waits that was not given more time.
const LINE_MS: u64 = 24 * 3600 * 1000;

/// How often we look for the keeper of a run; a second in all.
const KEEPER_TRIES: usize = 100;

/// What became of waiting.
pub(super) enum WaitOutcome {
    /// It is not what it was.
    Answered(CommandView),
    /// Nobody waits any more.
    Left(CommandView),
}

/// Waits until a run that has not begun is in another state.
pub(super) async fn until_answered(
    paths: &Paths,
    waiting: &CommandView,
    signals: &mut Signals,
    show: &mut Show,
    deadline: Option<Instant>,
) -> Result<WaitOutcome, Failure> {
    let (id, state) = (&waiting.run.command_id, waiting.run.state);
    // First, so that nothing falls between looking and waiting.
    let mut news = EventFeed::open(paths).await?;
    let mut now = fetch(paths, id).await?;
    let _present = stay(paths.clone(), id.clone());
    let began = Instant::now();
    let mut tick = tokio::time::interval(Duration::from_millis(200));
    while now.run.state == state {
        tokio::select! {
            event = news.next() => {
                let event = event.map_err(|failure| still_there(failure, &now))?;
                if event.command_id.as_deref() == Some(id) || event.event == "reset" {
                    now = fetch(paths, id).await?;
                }
            }
            _ = signals.next() => {
                show.hide_status();
                return Ok(WaitOutcome::Left(withdraw(paths, id).await?));
            }
            () = super::attend::until(deadline) => {
                show.hide_status();
                return Ok(WaitOutcome::Left(now));
            }
            _ = tick.tick() => show.patience(began.elapsed()),
        }
    }
    show.hide_status();
    Ok(WaitOutcome::Answered(begun(now, paths).await?))
}

/// How long the record of a run that has said all may take: what it changed is
/// looked at first.
const RECORD_WITHIN: Duration = Duration::from_secs(60);

/// Waits until a run that has said all is on record as ended; or as waiting,
/// which is no end that the server would wait for.
pub(super) async fn until_ended(paths: &Paths, id: &str) -> Result<CommandView, Failure> {
    let mut now = fetch(paths, id).await?;
    if now.run.state != State::Running {
        return Ok(now);
    }
    let mut news = EventFeed::open(paths).await?;
    now = fetch(paths, id).await?;
    let deadline = Instant::now() + RECORD_WITHIN;
    while now.run.state == State::Running {
        let Ok(event) = tokio::time::timeout_at(deadline, news.next()).await else {
            break;
        };
        let event = event?;
        if event.command_id.as_deref() == Some(id) || event.event == "reset" {
            now = fetch(paths, id).await?;
        }
    }
    Ok(now)
}

/// Waits until a run that is on record as begun can be attended: its keeper
/// comes a moment after the record.
async fn begun(mut run: CommandView, paths: &Paths) -> Result<CommandView, Failure> {
    for _ in 0..KEEPER_TRIES {
        if run.run.state != State::Running || run.load.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        run = fetch(paths, &run.run.command_id).await?;
    }
    Ok(run)
}

/// Lets the server know that somebody waits, for as long as this is kept: a
/// person decides other things first when nobody does.
fn stay(paths: Paths, id: String) -> JoinSet<()> {
    let mut staying = JoinSet::new();
    staying.spawn(async move {
        let path = format!("/commands/{id}?wait_ms={LINE_MS}");
        while let Ok(mut client) = Client::open(&paths).await {
            if client.get::<CommandView>(&path).await.is_ok() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    staying
}

/// Has the server end a run soon after we are gone, unless it was let
/// [`go_on`] before. A server that ends, ends no run; and another that takes its
/// place only after we have come back to that one.
pub(super) fn attend(paths: Paths, id: String) -> JoinSet<()> {
    let mut attending = JoinSet::new();
    attending.spawn(async move {
        let path = format!("/commands/{id}?attend=true&wait_ms={LINE_MS}");
        loop {
            if let Ok(Some(mut client)) = Client::try_open(&paths).await {
                let view: Result<CommandView, Failure> = client.get(&path).await;
                if view.is_ok_and(|view| view.run.state != State::Running) {
                    break;
                }
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    attending
}

/// Lets a run go on without us; returns what it is now.
pub(super) async fn go_on(paths: &Paths, id: &str) -> Result<CommandView, Failure> {
    let mut client = Client::open_running(paths).await?;
    client.get(&format!("/commands/{id}?attend=false")).await
}

/// Takes a request back, unless it was answered meanwhile.
pub(super) async fn withdraw(paths: &Paths, id: &str) -> Result<CommandView, Failure> {
    let mut client = Client::open(paths).await?;
    let path = format!("/commands/{id}/withdraw");
    match client.post(&path, &serde_json::json!({})).await {
        Err(failure) if failure.code() == Some("not_waiting") => fetch(paths, id).await,
        done => done,
    }
}

pub(super) async fn fetch(paths: &Paths, id: &str) -> Result<CommandView, Failure> {
    let mut client = Client::open(paths).await?;
    client.get(&format!("/commands/{id}")).await
}

fn still_there(failure: Failure, waiting: &CommandView) -> Failure {
    let hint = format!(
        "the request still waits: weighlock show {}",
        waiting.run.short_id
    );
    Failure { hint, ..failure }
}
