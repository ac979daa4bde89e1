//! `weighlock watch`: everything, as it happens.

mod frame;
mod model;
mod plain;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind};
use weighlock_server::{CommandView, PauseList, PauseRequest};

use crate::client::{Client, Failure, block_on};
use crate::events::EventFeed;
use crate::full_screen::FullScreen;
use crate::keys::{Key, Keys, Press};
use crate::ourselves;
use crate::paths::Paths;
use crate::question::{self, Put};
use crate::signals::{Signals, listen};
use crate::term::{prompt, say};
use crate::verb::{approve, show};
use model::{Model, WatchRow};

/// Watch runs and approvals live, and decide
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock watch
  weighlock watch --plain                one line for each event
  weighlock watch --json-lines           the same for programs")]
pub(crate) struct Args {
    /// Print one line for each event
    #[arg(long)]
    plain: bool,
    /// Print one JSON object for each event
    #[arg(long)]
    json_lines: bool,
}

pub(crate) fn watch(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    block_on(async {
        if args.json_lines || args.plain || !terminal {
            return plain::tell(paths, args.json_lines).await;
        }
        let mut signals = Signals::new()?;
        let mut watching = WatchScreen::new(paths).await?;
        loop {
            match watching.view(&mut signals).await? {
                WatchAction::Quit => return Ok(ExitCode::SUCCESS),
                WatchAction::Decide(id, reject) => {
                    watching.decide(&id, reject, &mut signals).await?
                }
                WatchAction::Open(id) => watching.open(&id, &mut signals).await?,
            }
        }
    })
}

/// What a person wants that is not done on the screen.
enum WatchAction {
    Quit,
    /// Answer a question; beginning with the rejection.
    Decide(String, bool),
    /// Look at a run.
    Open(String),
}

/// What is shown, and what it is shown from.
struct WatchScreen<'a> {
    paths: &'a Paths,
    news: EventFeed,
    model: Model,
    /// The row that keys are about, by its id.
    selected: Option<String>,
    /// A message shown instead of the list of keys until the next key is
    /// pressed.
    note: Option<String>,
    /// Enter pauses or resumes everything.
    pausing: bool,
    resized: Signal,
    tick: tokio::time::Interval,
}

impl<'a> WatchScreen<'a> {
    async fn new(paths: &'a Paths) -> Result<Self, Failure> {
        Ok(Self {
            paths,
            news: EventFeed::open(paths).await?,
            model: Model::fetch(paths).await?,
            selected: None,
            note: None,
            pausing: false,
            resized: listen(SignalKind::window_change())?,
            tick: tokio::time::interval(Duration::from_secs(1)),
        })
    }

    /// Shows everything until a person wants something else.
    async fn view(&mut self, signals: &mut Signals) -> Result<WatchAction, Failure> {
        let mut keys = Keys::new(signals)?;
        let mut screen = FullScreen::enter();
        self.model.refresh(self.paths).await;
        loop {
            let press = self.follow(keys.press(), &mut screen).await?;
            if let Some(wish) = self.pressed(press).await {
                return Ok(wish);
            }
        }
    }

    /// Keeps the screen true until a key is pressed.
    async fn follow(
        &mut self,
        press: impl Future<Output = Press>,
        screen: &mut FullScreen,
    ) -> Result<Press, Failure> {
        tokio::pin!(press);
        loop {
            self.keep_selection();
            let note = self.note.as_deref();
            screen.draw(&frame::lines(
                &self.model,
                self.selected.as_deref(),
                note,
                screen.size(),
            ));
            tokio::select! {
                press = &mut press => return Ok(press),
                event = self.news.next() => {
                    event?;
                    self.news.skip();
                    self.model.refresh(self.paths).await;
                }
                _ = self.tick.tick() => self.model.measure(self.paths).await,
                _ = self.resized.recv() => screen.forget(),
            }
        }
    }

    /// The selection stays on its row, whatever comes and goes; when that is
    /// gone, it is nowhere, so that no key is about something else.
    fn keep_selection(&mut self) {
        let rows = self.model.rows();
        let there = |id: &String| rows.iter().any(|row| row.id() == id);
        self.selected = self.selected.take().filter(there);
    }

    async fn pressed(&mut self, press: Press) -> Option<WatchAction> {
        self.note = None;
        if std::mem::take(&mut self.pausing) {
            if press.key == Key::Enter && press.calm {
                self.brake().await;
            }
            return None;
        }
        match press.key {
            Key::Quit | Key::Char(b'q') => return Some(WatchAction::Quit),
            Key::Down | Key::Char(b'j') => self.step(1),
            Key::Up | Key::Char(b'k') => self.step(-1),
            // Only what stands alone was meant.
            key if press.calm => return self.meant(key),
            _ => {}
        }
        None
    }

    fn step(&mut self, by: isize) {
        let rows = self.model.rows();
        let at = { rows.iter() }.position(|row| Some(row.id()) == self.selected.as_deref());
        let next = match at {
            Some(at) => at
                .saturating_add_signed(by)
                .min(rows.len().saturating_sub(1)),
            None => 0,
        };
        self.selected = rows.get(next).map(|row| row.id().to_owned());
    }

    fn meant(&mut self, key: Key) -> Option<WatchAction> {
        let rows = self.model.rows();
        let row = { rows.iter() }.find(|row| Some(row.id()) == self.selected.as_deref());
        let wish = match (key, row) {
            (Key::Char(b'a') | Key::Enter, Some(WatchRow::Waiting(one))) => {
                Some(WatchAction::Decide(one.approval_id.clone(), false))
            }
            (Key::Char(b'r'), Some(WatchRow::Waiting(one))) => {
                Some(WatchAction::Decide(one.approval_id.clone(), true))
            }
            (Key::Enter, Some(WatchRow::Running(run) | WatchRow::Recent(run))) => {
                Some(WatchAction::Open(run.command_id.clone()))
            }
            (Key::Char(b'P'), _) => {
                let what = if self.model.is_paused() {
                    "resume"
                } else {
                    "pause"
                };
                self.note = Some(format!(
                    "{what} everything? Enter = yes, any other key = no"
                ));
                self.pausing = true;
                None
            }
            _ => None,
        };
        match (&wish, ourselves::may_decide()) {
            (Some(WatchAction::Decide(..)), Err(inside)) => {
                self.note = Some(inside.what);
                None
            }
            _ => wish,
        }
    }

    /// Pauses everything, or lets it go on.
    async fn brake(&mut self) {
        let path = if self.model.is_paused() {
            "/resume"
        } else {
            "/pause"
        };
        let set = async {
            ourselves::may_decide()?;
            let mut client = Client::open(self.paths).await?;
            client
                .post::<PauseList>(path, &PauseRequest::default())
                .await
        };
        if let Err(failure) = set.await {
            self.note = Some(failure.what);
        }
        self.model.refresh(self.paths).await;
    }

    async fn decide(
        &mut self,
        id: &str,
        reject: bool,
        signals: &mut Signals,
    ) -> Result<(), Failure> {
        let put = Put {
            reject,
            ..Put::default()
        };
        let done = match question::put(self.paths, signals, id, put).await {
            Ok(outcome) => approve::told(outcome, self.paths).await,
            Err(failure) => Err(failure),
        };
        match done {
            // Whoever left the question wants to be back at once.
            Ok(false) => return Ok(()),
            Ok(true) => {}
            Err(failure) => say!("{}", failure.to_string().trim_end()),
        }
        back(&mut Keys::new(signals)?).await;
        Ok(())
    }

    async fn open(&mut self, id: &str, signals: &mut Signals) -> Result<(), Failure> {
        let mut client = Client::open(self.paths).await?;
        let view: CommandView = client.get(&format!("/commands/{id}")).await?;
        let terminal = show::terminal_of(&mut client, &view.run).await;
        let lines = show::lines(&view, terminal.as_ref());
        let mut keys = Keys::new(signals)?;
        if question::page(&mut keys, &lines).await == question::ReadPosition::Whole {
            let id = &view.run.short_id;
            say!("\n  weighlock output {id}    weighlock stop {id}");
            back(&mut keys).await;
        }
        Ok(())
    }
}

/// Waits until a person has read what is there.
async fn back(keys: &mut Keys<'_>) {
    prompt("  any key goes back ");
    keys.press().await;
    say!("");
}
