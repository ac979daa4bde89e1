//! Who types at a terminal: one at a time. A person takes the keyboard at
//! once; what others type meanwhile is held until it is given back.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use weighlock_exec::{Diary, Happened, Mark, Size, What};

use super::input::{MOST, Sent};
use super::{check_size, ended};
use crate::engine::Engine;
use crate::error::Error;
use crate::follow::RETRY_EVERY;
use crate::live::Live;
use crate::principal::{Principal, Right};
use crate::view::{Run, time};

/// So long before the keyboard is given back by itself, whoever has it is told.
const WARNING: Duration = Duration::from_secs(60);

/// Letters of a note: what one person tells another in passing.
const NOTE: usize = 2000;

/// What a mark says after the name of whoever took the keyboard.
const TOOK: &str = " took over";

/// How long a keyboard is somebody's who does not use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyboardTimes {
    /// Without a key for so long, it is given back.
    pub idle: Duration,
    /// Whoever has lost their connection may come back for so long.
    pub lost: Duration,
}

impl Default for KeyboardTimes {
    fn default() -> Self {
        Self {
            // Long enough to look something up.
            idle: Duration::from_secs(5 * 60),
            // Long enough to load a page again.
            lost: Duration::from_secs(30),
        }
    }
}

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
    /// It was given back, and what others have typed is being typed.
    catching_up: bool,
}

#[derive(Debug, Clone)]
struct Holder {
    name: String,
    since: i64,
    /// The size to be restored.
    before: Size,
    /// It is given back then, if nothing happens.
    until: Instant,
    /// It is being given back.
    leaving: bool,
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

    /// Returns whether nobody has taken it, and nothing waits to be typed.
    pub(crate) fn is_free(&self) -> bool {
        self.0.borrow().is_free()
    }

    /// Waits until that is so.
    pub(crate) async fn free(&self) {
        let mut changes = self.0.subscribe();
        let _ = changes.wait_for(Turn::is_free).await;
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

    /// Keeps what somebody types while another has the keyboard, or while what
    /// was kept is being typed. Returns what became of it, unless it can be
    /// typed now.
    pub(super) fn hold(&self, bytes: &[u8]) -> Result<Option<Sent>, Error> {
        let mut sent = None;
        let mut full = false;
        self.0.send_if_modified(|state| {
            if state.is_free() {
                return false;
            }
            full = state.held.len() + bytes.len() > MOST;
            if !full {
                state.held.extend_from_slice(bytes);
                sent = Some(match state.catching_up {
                    true => Sent::Typed,
                    false => Sent::Held(state.view().text.unwrap_or_default()),
                });
            }
            !full
        });
        match full {
            true => Err(Error::invalid(
                "too_much_input",
                "so much input is held already that no more fits; this was not sent".into(),
                "wait until the keyboard is given back",
            )),
            false => Ok(sent),
        }
    }

    fn touch(&self, idle: Duration) {
        self.0.send_if_modified(|state| {
            let holder = state.holder.as_mut();
            holder.is_some_and(|holder| {
                let warned = holder.is_near();
                holder.until = Instant::now() + idle;
                warned
            })
        });
    }

    /// Gives it back early, unless whoever had it is there again.
    fn lose(&self, times: u64, after: Duration) {
        self.0.send_if_modified(|state| {
            let holder = state.holder.as_mut().filter(|_| state.times == times);
            let lost = Instant::now() + after;
            holder.is_some_and(|holder| {
                holder.until = holder.until.min(lost);
                true
            })
        });
    }

    /// Begins to give it back. Returns who had it, for one who may do so.
    fn leave(&self, times: u64) -> Option<Holder> {
        let mut left = None;
        self.0.send_if_modified(|state| {
            let holder = state.holder.as_mut().filter(|_| state.times == times);
            if let Some(holder) = holder.filter(|holder| !holder.leaving) {
                holder.leaving = true;
                left = Some(holder.clone());
            }
            false
        });
        left
    }

    /// It could not be given back after all.
    fn stay(&self, times: u64) {
        self.0.send_if_modified(|state| {
            let holder = state.holder.as_mut().filter(|_| state.times == times);
            holder.is_some_and(|holder| std::mem::take(&mut holder.leaving))
        });
    }

    /// Is nobody's from now on. What others have typed is typed next, or
    /// dropped.
    fn let_go(&self, times: u64, said: String, drop_held: bool) {
        self.0.send_if_modified(|state| {
            let given = state.holder.take_if(|_| state.times == times).is_some();
            if given {
                state.said = Some(said);
                if drop_held {
                    state.held.clear();
                }
                state.catching_up = !state.held.is_empty();
            }
            given
        });
    }

    /// Returns what is to be typed now of what others have typed.
    fn catch_up(&self) -> Option<Vec<u8>> {
        let mut held = vec![];
        self.0.send_if_modified(|state| {
            if state.holder.is_none() {
                held = std::mem::take(&mut state.held);
            }
            // Who takes it meanwhile holds up the rest.
            state.catching_up &= !held.is_empty();
            true
        });
        Some(held).filter(|held| !held.is_empty())
    }
}

impl Turn {
    fn is_free(&self) -> bool {
        self.holder.is_none() && !self.catching_up
    }

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
                until: Instant::now() + self.config.keyboard.idle,
                leaving: false,
            });
            true
        });
        let times = times.map_err(|by| Error::KeyboardTaken { by })?;
        // Before anything that may fail: it is given back in any case.
        tokio::spawn(mind(
            Arc::clone(self),
            Arc::clone(&live),
            run.clone(),
            times,
        ));
        let hand = Hand {
            engine: Arc::clone(self),
            run: run.clone(),
            times,
        };
        self.record_terminal("terminal.taken", run, who, json!({}))
            .await?;
        mark(&live, "taken", format!("{}{TOOK}", who.name())).await;
        if let Some(size) = size {
            live.job.resize(size).await.map_err(|_| ended(run))?;
            self.look_into_diary(&live, run);
        }
        Ok(hand)
    }

    /// Gives the keyboard back, and types what others have typed meanwhile.
    async fn give_back(
        &self,
        live: &Arc<Live>,
        run: &Run,
        times: u64,
        said: Said,
    ) -> Result<(), Error> {
        let Some(holder) = live.keyboard.leave(times) else {
            return Ok(());
        };
        let told = json!({ "note": said.note, "why": said.why, "dropped": said.drop_held,
                           "held_bytes": live.keyboard.view().held_bytes });
        let entry = self.terminal_entry("terminal.given_back", run, &holder.name, told);
        if let Err(error) = self.store.record(vec![entry]).await {
            live.keyboard.stay(times);
            return Err(error.into());
        }
        let text = said.text(&holder.name);
        mark(live, "given_back", text.clone()).await;
        let _ = live.job.resize(holder.before).await;
        self.look_into_diary(live, run);
        live.keyboard.let_go(times, text, said.drop_held);
        // A program that does not read may take its time.
        let live = Arc::clone(live);
        tokio::spawn(async move {
            while let Some(held) = live.keyboard.catch_up() {
                let _ = live.type_keys(&held).await;
            }
        });
        Ok(())
    }

    /// Gives back a keyboard that somebody had when an earlier server ended.
    pub(crate) async fn settle_keyboard(&self, live: &Live, run: &Run) {
        let Some(terminal) = &run.detail.terminal else {
            return;
        };
        // One that cannot be read costs a size, not the terminal.
        let diary = Diary::default().news(&self.dir_of(&run.command_id));
        let Some(left) = left_taken(&diary.unwrap_or_default(), terminal.size()) else {
            return;
        };
        let why = "had it when the server ended; what others typed meanwhile is lost";
        let said = Said {
            why: Some(why),
            ..Said::default()
        };
        let told = json!({ "why": why });
        let entry = self.terminal_entry("terminal.given_back", run, &left.name, told);
        if let Err(error) = self.store.record(vec![entry]).await {
            tracing::warn!(run = run.command_id, %error, "cannot tell of a keyboard");
        }
        let text = said.text(&left.name);
        mark(live, "given_back", text.clone()).await;
        let _ = live.job.resize(left.before).await;
        live.keyboard.0.send_modify(|state| state.said = Some(text));
    }
}

/// A keyboard that nobody has given back.
#[derive(Debug, PartialEq, Eq)]
struct LeftTaken {
    name: String,
    /// The size to be restored.
    before: Size,
}

/// Returns who has the keyboard at the end of a diary.
fn left_taken(diary: &[Happened], mut size: Size) -> Option<LeftTaken> {
    let mut taken = None;
    for happened in diary {
        match &happened.what {
            What::Resized(to) => size = *to,
            What::Marked(mark) if mark.kind == "taken" => {
                let name = mark.text.strip_suffix(TOOK).unwrap_or(&mark.text);
                // Whoever takes it again had the terminal at their size before.
                taken.get_or_insert(LeftTaken {
                    name: name.to_owned(),
                    before: size,
                });
            }
            What::Marked(mark) if mark.kind == "given_back" => taken = None,
            What::Marked(_) => {}
        }
    }
    taken
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
        live.keyboard.touch(self.engine.config.keyboard.idle);
        live.type_keys(bytes).await.map_err(|_| ended(&self.run))
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
        let note = note.map(|note| note.trim().chars().take(NOTE).collect::<String>());
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
            let holder = turn.holder.as_ref().filter(|_| turn.times == self.times);
            holder.is_some_and(|holder| !holder.leaving)
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
            live.keyboard
                .lose(self.times, self.engine.config.keyboard.lost);
        }
    }
}

/// Gives a keyboard back that nobody touches any more.
async fn mind(engine: Arc<Engine>, live: Arc<Live>, run: Run, times: u64) {
    let mut changes = live.keyboard.0.subscribe();
    loop {
        let (until, leaving) = {
            let state = changes.borrow_and_update();
            let holder = state.holder.as_ref().filter(|_| state.times == times);
            match holder {
                None => return,
                Some(holder) => (holder.until, holder.leaving),
            }
        };
        let warn = until.checked_sub(WARNING).unwrap_or(until);
        tokio::select! {
            _ = changes.changed() => {}
            () = live.is_over() => return,
            () = tokio::time::sleep_until(warn), if !leaving && Instant::now() < warn => {
                // Whoever has it is told how long it lasts.
                live.keyboard.0.send_modify(|_| {});
            }
            () = tokio::time::sleep_until(until), if !leaving => {
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

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Size = Size {
        columns: 80,
        rows: 24,
    };
    const THEIRS: Size = Size {
        columns: 100,
        rows: 40,
    };

    fn left(story: &[What]) -> Option<(String, Size)> {
        let diary: Vec<Happened> = { story.iter() }
            .map(|what| Happened {
                micros: 0,
                offset: 0,
                what: what.clone(),
            })
            .collect();
        left_taken(&diary, OWN).map(|left| (left.name, left.before))
    }

    fn marked(kind: &str, text: &str) -> What {
        What::Marked(Mark {
            kind: kind.into(),
            text: text.into(),
        })
    }

    #[test]
    fn a_diary_says_who_has_the_keyboard_and_what_size_to_restore() {
        let taken = || marked("taken", "ana took over");
        let given = || marked("given_back", "ana handed back.");
        let ana = |size| Some(("ana".to_owned(), size));
        assert_eq!(left(&[]), None);
        assert_eq!(left(&[taken(), What::Resized(THEIRS)]), ana(OWN));
        let again = [What::Resized(THEIRS), taken(), What::Resized(OWN), taken()];
        assert_eq!(left(&again), ana(THEIRS));
        assert_eq!(
            left(&[taken(), What::Resized(THEIRS), given(), What::Resized(OWN)]),
            None
        );
        let stopped = [taken(), given(), What::Resized(THEIRS), taken()];
        assert_eq!(left(&stopped), ana(THEIRS));
    }
}
