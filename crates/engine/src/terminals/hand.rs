//! Taking the keyboard of a terminal, and giving it back.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;
use tokio::time::Instant;
use weighlock_exec::Size;

use super::Terminals;
use super::input::Readied;
use super::judge::shell_of;
use super::{check_size, ended};
use crate::error::Error;
use crate::live::{Held, Holder, Live, Sent, WARNING, mark};
use crate::principal::{Principal, Right};
use crate::runs::RETRY_EVERY;
use crate::shells::{Said, TOOK};
use crate::view::Run;

/// Letters of a note: what one person tells another in passing.
const NOTE: usize = 2000;

/// The keyboard of a terminal, taken. Dropped, it is given back after a while.
pub struct Hand {
    terminals: Arc<Terminals>,
    run: Run,
    times: u64,
}

impl Terminals {
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
        let times = live.keyboard.take(Holder {
            name: who.name().to_owned(),
            since: self.core.clock.micros(),
            before,
            until: Instant::now() + self.core.config.keyboard.idle,
            leaving: false,
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
            terminals: Arc::clone(self),
            run: run.clone(),
            times,
        };
        self.shells
            .record_terminal("terminal.taken", run, who, json!({}))
            .await?;
        mark(&live, "taken", format!("{}{TOOK}", who.name())).await;
        if let Some(size) = size {
            live.resize(size).await.map_err(|_| ended(run))?;
            self.shells.look_into_diary(&live, run);
        }
        Ok(hand)
    }

    /// Gives the keyboard back, and types what others have typed meanwhile.
    async fn give_back(
        self: &Arc<Self>,
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
        let entry = self
            .shells
            .terminal_entry("terminal.given_back", run, &holder.name, told);
        if let Err(error) = self.core.store.audit().record(vec![entry]).await {
            live.keyboard.stay(times);
            return Err(error.into());
        }
        let text = said.text(&holder.name);
        mark(live, "given_back", text.clone()).await;
        let _ = live.resize(holder.before).await;
        self.shells.look_into_diary(live, run);
        if said.note.is_some() && holder.name != run.requested_by {
            // It is for whoever works there, whether they have typed or not.
            live.keyboard.await_news(&run.requested_by);
        }
        live.keyboard.let_go(times, text, said.drop_held);
        // A program that does not read may take its time.
        let (terminals, live, run) = (Arc::clone(self), Arc::clone(live), run.clone());
        tokio::spawn(async move {
            while let Some(held) = live.keyboard.catch_up() {
                terminals.type_held(&live, &run, held).await;
            }
        });
        Ok(())
    }

    /// Types what was held. It is looked at by where it is typed, which may be
    /// another place than when it was sent: what was meant for a program must
    /// not become a command that nobody has judged.
    async fn type_held(self: &Arc<Self>, live: &Arc<Live>, run: &Run, held: Held) {
        if let Ok(shown) = shell_of(live) {
            tokio::select! {
                () = live.is_ready(&shown) => {}
                () = live.keyboard.drops(&held) => return,
            }
        }
        let _typing = live.typing.lock().await;
        if live.keyboard.has_dropped(&held) {
            return;
        }
        let (typed, who) = (&held.typed, &held.who);
        let typed = match self.readied(live, run, typed, held.bytes, who).await {
            Ok(Readied::Keys(ready)) => self.type_readied(live, run, typed, &ready, who).await,
            Ok(Readied::Settled(Sent::Asked(asked))) => {
                let text = format!(
                    "What you typed meanwhile waits for approval ({}).",
                    asked.short_id
                );
                return live.keyboard.tell_later(who.name(), text);
            }
            Ok(Readied::Settled(_)) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = typed {
            let text = format!("What you typed meanwhile was not sent: {error}.");
            live.keyboard.tell_later(who.name(), text);
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
        live.keyboard
            .touch(self.terminals.core.config.keyboard.idle);
        let _typing = live.typing.lock().await;
        // Whoever types next must not enter it.
        live.unknown.store(true, Ordering::Relaxed);
        live.type_keys(bytes).await.map_err(|_| ended(&self.run))
    }

    /// Gives the terminal the size that the person has.
    pub async fn resize(&self, size: Size) -> Result<(), Error> {
        check_size(size)?;
        let live = self.live()?;
        if !self.is_held() {
            return Err(Error::KeyboardGivenBack);
        }
        live.resize(size).await.map_err(|_| ended(&self.run))?;
        self.terminals.shells.look_into_diary(&live, &self.run);
        Ok(())
    }

    /// Gives the keyboard back, with a note for the next one who types. Input
    /// that was held meanwhile is typed now, or dropped.
    pub async fn give(self, note: Option<String>, drop_held: bool) -> Result<(), Error> {
        let note = note.map(|note| note.trim().chars().take(NOTE).collect::<String>());
        let said = Said {
            note: note.filter(|note| !note.is_empty()),
            drop_held,
            why: None,
        };
        let live = self.live()?;
        let given = self.terminals.give_back(&live, &self.run, self.times, said);
        given.await
    }

    /// Whether it was not given back meanwhile.
    pub fn is_held(&self) -> bool {
        self.live().is_ok_and(|live| {
            let holder = live.keyboard.holder(self.times);
            holder.is_some_and(|holder| !holder.leaving)
        })
    }

    fn live(&self) -> Result<Arc<Live>, Error> {
        let live = self.terminals.lives.get(&self.run.command_id);
        live.ok_or_else(|| ended(&self.run))
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        if let Ok(live) = self.live() {
            live.keyboard
                .lose(self.times, self.terminals.core.config.keyboard.lost);
        }
    }
}

/// Gives a keyboard back that nobody touches any more.
async fn mind(terminals: Arc<Terminals>, live: Arc<Live>, run: Run, times: u64) {
    let mut changes = live.keyboard.changes();
    loop {
        changes.mark_unchanged();
        let Some(Holder { until, leaving, .. }) = live.keyboard.holder(times) else {
            return;
        };
        let warn = until.checked_sub(WARNING).unwrap_or(until);
        tokio::select! {
            _ = changes.changed() => {}
            () = live.is_over() => return,
            () = tokio::time::sleep_until(warn), if !leaving && Instant::now() < warn => {
                // Whoever has it is told how long it lasts.
                live.keyboard.remind();
            }
            () = tokio::time::sleep_until(until), if !leaving => {
                let why = Some("did not type for a while, or is gone");
                let said = Said { why, ..Said::default() };
                if terminals.give_back(&live, &run, times, said).await.is_err() {
                    tokio::time::sleep(RETRY_EVERY).await;
                }
            }
        }
    }
}
