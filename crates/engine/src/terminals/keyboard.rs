//! Who types at a terminal: one at a time. A person takes the keyboard at
//! once; what others type meanwhile is held until it is given back.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use weighlock_exec::{Mark, Size};

use super::input::MOST;
use super::{check_size, ended};
use crate::engine::Engine;
use crate::error::Error;
use crate::follow::RETRY_EVERY;
use crate::live::Live;
use crate::principal::{Principal, Right};
use crate::view::{Run, time};

/// Without a key for so long, the keyboard is given back.
const UNTOUCHED: Duration = Duration::from_secs(5 * 60);

/// So long before that, whoever has it is told.
const WARNING: Duration = Duration::from_secs(60);

/// Whoever has lost their connection may come back for so long.
const LOST: Duration = Duration::from_secs(30);

/// What is known about who types.
#[derive(Default)]
pub(crate) struct Keyboard(watch::Sender<Turn>);

/// Whose turn it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turn {
    /// How often it was taken; tells one time from another.
    times: u64,
    holder: Option<Holder>,
    /// What was said when it was given back.
    said: Option<String>,
    /// What others have typed since.
    held: Vec<u8>,
}

#[derive(Debug, Clone)]
struct Holder {
    name: String,
    since: i64,
    /// The size to be restored.
    before: Size,
    /// It is given back then, if nothing happens.
    until: Instant,
}

/// Who types at a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlView {
    /// Who has taken the keyboard; nobody if whoever opened it types.
    pub taken_by: Option<String>,
    /// Since when.
    pub since: Option<String>,
    /// Bytes that others have typed meanwhile, and that wait.
    pub held_bytes: usize,
    /// What somebody who types should know: who does, or what was said when
    /// the keyboard was given back.
    pub text: Option<String>,
    /// Seconds until the keyboard is given back by itself, when that is near.
    pub seconds_left: Option<u64>,
}

/// The keyboard of a terminal, taken. Dropped, it is given back after a while.
pub struct Hand {
    engine: Arc<Engine>,
    run: Run,
    times: u64,
}

impl Keyboard {
    /// Returns who types, as doors show it.
    pub(crate) fn view(&self) -> ControlView {
        self.0.borrow().view()
    }

    /// Tells whenever that changes.
    pub(crate) fn changes(&self) -> watch::Receiver<Turn> {
        self.0.subscribe()
    }

    /// Returns whether somebody has taken it.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.borrow().holder.is_some()
    }

    /// Waits until nobody has taken it.
    pub(crate) async fn free(&self) {
        let mut changes = self.0.subscribe();
        let _ = changes.wait_for(|state| state.holder.is_none()).await;
    }

    /// Refuses what cannot be held.
    pub(super) fn check_free(&self) -> Result<(), Error> {
        match &self.0.borrow().holder {
            Some(holder) => Err(Error::KeyboardTaken {
                by: holder.name.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Keeps what somebody else types until it is given back; returns what to
    /// tell them.
    pub(super) fn hold(&self, bytes: &[u8]) -> Result<String, Error> {
        let mut said = None;
        let mut full = false;
        self.0.send_if_modified(|state| {
            full = state.held.len() + bytes.len() > MOST;
            if !full {
                state.held.extend_from_slice(bytes);
            }
            said = state.view().text;
            !full
        });
        match full {
            true => Err(Error::invalid(
                "too_much_input",
                "so much input is held already that no more fits; this was not sent".into(),
                "wait until the keyboard is given back",
            )),
            false => Ok(said.unwrap_or_default()),
        }
    }

    fn touch(&self) {
        self.0.send_if_modified(|state| {
            let holder = state.holder.as_mut();
            holder.is_some_and(|holder| {
                let warned = holder.is_near();
                holder.until = Instant::now() + UNTOUCHED;
                warned
            })
        });
    }

    /// Gives it back early, unless whoever had it is there again.
    fn lose(&self, times: u64) {
        self.0.send_if_modified(|state| {
            let holder = state.holder.as_mut().filter(|_| state.times == times);
            let lost = Instant::now() + LOST;
            holder.is_some_and(|holder| {
                holder.until = holder.until.min(lost);
                true
            })
        });
    }
}

impl Turn {
    fn view(&self) -> ControlView {
        let holder = self.holder.as_ref();
        let typing = holder.map(|holder| {
            format!(
                "{} is typing in this terminal. Your input is held.",
                holder.name
            )
        });
        ControlView {
            taken_by: holder.map(|holder| holder.name.clone()),
            since: holder.map(|holder| time(holder.since)),
            held_bytes: self.held.len(),
            text: typing.or_else(|| self.said.clone()),
            seconds_left: holder.filter(|holder| holder.is_near()).map(Holder::left),
        }
    }
}

impl Holder {
    fn left(&self) -> u64 {
        let left = self.until.saturating_duration_since(Instant::now());
        left.as_secs_f64().ceil() as u64
    }

    fn is_near(&self) -> bool {
        self.until.saturating_duration_since(Instant::now()) <= WARNING
    }
}

impl Engine {
    /// Takes the keyboard of a terminal. Its size is the person's from then
    /// on, if they have one.
    pub async fn take_keyboard(
        self: &Arc<Self>,
        run: &Run,
        size: Option<Size>,
        who: &Principal,
    ) -> Result<Hand, Error> {
        size.map(check_size).transpose()?;
        if who.is_agent() || run.requested_by != who.name() {
            who.check(Right::Operate)?;
        }
        let live = self.lives.get(&run.command_id).ok_or_else(|| ended(run))?;
        let before = live.shown.as_ref().map(|shown| *shown.size.borrow());
        let before = before.ok_or_else(|| ended(run))?;
        let mut times = Err(String::new());
        live.keyboard.0.send_if_modified(|state| {
            if let Some(holder) = &state.holder
                && holder.name != who.name()
            {
                times = Err(holder.name.clone());
                return false;
            }
            state.times += 1;
            times = Ok(state.times);
            // Whoever takes it again had the terminal at their size before.
            let before = state.holder.take().map_or(before, |holder| holder.before);
            state.holder = Some(Holder {
                name: who.name().to_owned(),
                since: self.clock.micros(),
                before,
                until: Instant::now() + UNTOUCHED,
            });
            true
        });
        let times = times.map_err(|by| Error::KeyboardTaken { by })?;
        let hand = Hand {
            engine: Arc::clone(self),
            run: run.clone(),
            times,
        };
        self.record_terminal("terminal.taken", run, who, json!({}))
            .await?;
        mark(&live, "taken", format!("{} took over", who.name())).await;
        if let Some(size) = size {
            live.job.resize(size).await.map_err(|_| ended(run))?;
            self.look_into_diary(&live, run);
        }
        tokio::spawn(mind(Arc::clone(self), live, run.clone(), times));
        Ok(hand)
    }

    /// Gives the keyboard back, with what others have typed meanwhile.
    async fn give_back(&self, live: &Live, run: &Run, times: u64, said: Said) -> Result<(), Error> {
        let known = live.keyboard.0.borrow().clone();
        let Some(holder) = known.holder.filter(|_| known.times == times) else {
            return Ok(());
        };
        let told = json!({ "note": said.note, "why": said.why, "held_bytes": known.held.len(),
                           "dropped": said.drop_held });
        let entry = self.terminal_entry("terminal.given_back", run, &holder.name, told);
        self.store.record(vec![entry]).await?;
        let mut held = vec![];
        live.keyboard.0.send_if_modified(|state| {
            let given = state.holder.take_if(|_| state.times == times).is_some();
            if given {
                state.said = Some(said.text(&holder.name));
                held = std::mem::take(&mut state.held);
            }
            given
        });
        mark(live, "given_back", said.text(&holder.name)).await;
        let _ = live.job.resize(holder.before).await;
        self.look_into_diary(live, run);
        if !said.drop_held && !held.is_empty() {
            let _ = live.job.feed(&held).await;
        }
        Ok(())
    }
}

/// How a keyboard is given back.
#[derive(Debug, Clone, Default)]
struct Said {
    note: Option<String>,
    drop_held: bool,
    /// Why, if nobody has said so.
    why: Option<&'static str>,
}

impl Said {
    fn text(&self, name: &str) -> String {
        match (&self.note, self.why) {
            (Some(note), _) => format!("{name} handed back: ‘{note}’"),
            (None, None) => format!("{name} handed back."),
            (None, Some(why)) => format!("The keyboard is back: {name} {why}."),
        }
    }
}

impl Hand {
    /// Types.
    pub async fn press(&self, bytes: &[u8]) -> Result<(), Error> {
        let live = self.live()?;
        if !self.is_held() {
            return Err(Error::KeyboardGivenBack);
        }
        live.keyboard.touch();
        live.job.feed(bytes).await.map_err(|_| ended(&self.run))
    }

    /// Gives the terminal the size that the person has.
    pub async fn resize(&self, size: Size) -> Result<(), Error> {
        check_size(size)?;
        let live = self.live()?;
        if !self.is_held() {
            return Err(Error::KeyboardGivenBack);
        }
        live.job.resize(size).await.map_err(|_| ended(&self.run))?;
        self.engine.look_into_diary(&live, &self.run);
        Ok(())
    }

    /// Gives it back, with a note for whoever types next. What others have
    /// typed meanwhile is typed now, or dropped.
    pub async fn give(self, note: Option<String>, drop_held: bool) -> Result<(), Error> {
        let note = note.map(|note| note.trim().to_owned());
        let said = Said {
            note: note.filter(|note| !note.is_empty()),
            drop_held,
            why: None,
        };
        let live = self.live()?;
        let given = self.engine.give_back(&live, &self.run, self.times, said);
        given.await
    }

    /// Whether it was not given back meanwhile.
    pub fn is_held(&self) -> bool {
        self.live().is_ok_and(|live| {
            let turn = live.keyboard.0.borrow();
            turn.holder.is_some() && turn.times == self.times
        })
    }

    fn live(&self) -> Result<Arc<Live>, Error> {
        let live = self.engine.lives.get(&self.run.command_id);
        live.ok_or_else(|| ended(&self.run))
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        if let Ok(live) = self.live() {
            live.keyboard.lose(self.times);
        }
    }
}

/// Gives a keyboard back that nobody touches any more.
async fn mind(engine: Arc<Engine>, live: Arc<Live>, run: Run, times: u64) {
    let mut changes = live.keyboard.0.subscribe();
    loop {
        let until = {
            let state = changes.borrow_and_update();
            let holder = state.holder.as_ref().filter(|_| state.times == times);
            match holder {
                None => return,
                Some(holder) => holder.until,
            }
        };
        let warn = until.checked_sub(WARNING).unwrap_or(until);
        tokio::select! {
            _ = changes.changed() => {}
            () = live.is_over() => return,
            () = tokio::time::sleep_until(warn), if Instant::now() < warn => {
                // Whoever has it is told how long it lasts.
                live.keyboard.0.send_modify(|_| {});
            }
            () = tokio::time::sleep_until(until) => {
                let why = Some("did not type for a while, or is gone");
                let said = Said { why, ..Said::default() };
                if engine.give_back(&live, &run, times, said).await.is_err() {
                    tokio::time::sleep(RETRY_EVERY).await;
                }
            }
        }
    }
}

/// Leaves a mark for those who look at the recording.
pub(super) async fn mark(live: &Live, kind: &str, text: String) {
    let kind = kind.to_owned();
    // One that is over has no keeper to write it down.
    let _ = live.job.note(Mark { kind, text }).await;
}
