//! Who reads what is typed at a shell's terminal, and bringing the shell back
//! to a prompt at which nothing else is.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::MutexGuard;
use tokio::time::{Instant, sleep, timeout};
use weighlock_confine::Taker;

use crate::error::Error;
use crate::live::{Fed, INTERRUPT, Live, Shown};
use crate::runs::looked;

/// How long a shell takes to show its prompt, or a program to read, at the
/// most.
pub(super) const MOMENT: Duration = Duration::from_secs(2);

/// How often that long one is waited for that works.
const MOMENTS: usize = 5;

/// Who begins to read says nothing: it is looked for at once, as a shell that
/// has shown its prompt is about to, and then this often.
const LOOK_AT_FIRST: Duration = Duration::from_millis(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Whether a terminal may make another character of one: a capital letter, or
/// one that has eight bits.
fn is_altered(byte: u8) -> bool {
    byte.is_ascii_uppercase() || !byte.is_ascii()
}

/// Who would read what is typed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// The shell, at a prompt that nobody has typed at yet, and nothing else
    /// takes any of it.
    Prompt,
    /// The shell itself, though it is at no prompt: for `read`, say.
    Shell,
    /// A program.
    Program,
    /// The shell, later: something runs that does not read, or the rest of a
    /// command is wanted.
    Nobody,
}

impl Live {
    /// Finds out who would read what is typed now. Between a line and what it
    /// starts, and before a program reads, that takes a moment.
    pub(super) async fn reader(&self, shown: &Shown) -> Reader {
        let (began, mut pause) = (Instant::now(), LOOK_AT_FIRST);
        loop {
            let fed = self.has_settled(shown).await;
            let reader = self.reader_now(shown, fed).await;
            let enough = match reader {
                Reader::Prompt | Reader::Program => return reader,
                // Its prompt may be on the way.
                Reader::Shell => MOMENT / 2,
                Reader::Nobody if fed.busy || self.is_new(&fed) => MOMENT,
                Reader::Nobody => return reader,
            };
            if began.elapsed() >= enough {
                return reader;
            }
            let mut changed = shown.fed.subscribe();
            let _ = timeout(pause, changed.changed()).await;
            pause = LOOK_EVERY.min(pause * 2);
        }
    }

    /// Waits until the shell is at a new prompt and nobody else types there,
    /// however long that takes. Nobody does while what is returned is held.
    pub(super) async fn is_free(&self, shown: &Shown) -> MutexGuard<'_, ()> {
        let mut pause = LOOK_AT_FIRST;
        loop {
            self.keyboard.free().await;
            let mut fed = shown.fed.subscribe();
            let _ = fed.wait_for(|fed| self.is_new(fed)).await;
            let typing = self.typing.lock().await;
            if self.keyboard.is_free() && self.rests(shown).await {
                return typing;
            }
            drop(typing);
            sleep(pause).await;
            pause = LOOK_EVERY.min(pause * 2);
        }
    }

    async fn reader_now(&self, shown: &Shown, fed: Fed) -> Reader {
        if self.is_new(&fed) {
            return match self.rests(shown).await {
                true => Reader::Prompt,
                false => Reader::Nobody,
            };
        }
        if !fed.busy || fed.more {
            return Reader::Nobody;
        }
        let keeper = self.job.status().keeper.pid;
        match looked(move || weighlock_confine::takes_input(keeper)).await {
            Taker::First => Reader::Shell,
            Taker::Started => Reader::Program,
            Taker::Nobody => Reader::Nobody,
        }
    }

    /// Whether the shell is blocked reading at a new prompt, has read all that
    /// was typed and handled all that it was told, and nobody else reads. One
    /// that was stopped, or has yet to be interrupted, would take a line later,
    /// or a part of it.
    pub(super) async fn rests(&self, shown: &Shown) -> bool {
        let keeper = self.job.status().keeper.pid;
        if !looked(move || weighlock_confine::only_first_takes_input(keeper)).await {
            return false;
        }
        let Some(now) = self.job.terminal().await else {
            return false;
        };
        // What it has said by then is known.
        let mut fed = shown.fed.subscribe();
        let known = fed.wait_for(|fed| fed.offset >= now.output);
        let known = timeout(MOMENT, known).await;
        !now.unread && matches!(known, Ok(Ok(fed)) if self.is_new(&fed))
    }

    /// Waits until somebody reads, however long that takes.
    pub(super) async fn is_ready(&self, shown: &Shown) {
        while self.reader(shown).await == Reader::Nobody {
            tokio::select! {
                () = sleep(LOOK_EVERY) => {}
                () = self.is_over() => return,
            }
        }
    }

    /// Waits until it is known whether the shell is at a new prompt or runs
    /// something, for a moment at the most: between the two it says nothing.
    pub(super) async fn has_settled(&self, shown: &Shown) -> Fed {
        let mut fed = shown.fed.subscribe();
        let settled = fed.wait_for(|fed| self.is_new(fed) || fed.busy);
        let _ = timeout(MOMENT, settled).await;
        *shown.fed.borrow()
    }

    /// Whether a prompt is there that nobody has typed at yet. One that is
    /// drawn again (as after another size) is the old one: the shell says that
    /// it is done with a line before it asks for the next.
    pub(crate) fn is_new(&self, fed: &Fed) -> bool {
        let entered = self.entered.load(Ordering::Relaxed);
        fed.done >= entered && fed.prompt.is_some_and(|at| at > fed.done)
    }

    /// Refuses a line of which the terminal would take a character for a key,
    /// or for another one, as it is set (`stty intr x`).
    pub(super) async fn takes_as_it_is(&self, line: &str) -> Result<(), Error> {
        let set = self.job.terminal().await;
        let is_taken = |byte: &u8| {
            set.is_none_or(|set| set.keys.contains(byte) || set.alters && is_altered(*byte))
        };
        match line.as_bytes().iter().find(|byte| is_taken(byte)) {
            None => Ok(()),
            Some(byte) => Err(Error::invalid(
                "invalid_line",
                format!(
                    "the terminal is set to take `{}` for something else; nothing was sent",
                    byte.escape_ascii()
                ),
                "a person can take the keyboard and type `stty sane`",
            )),
        }
    }

    /// Leaves nothing on the line of a shell that is at its prompt, if
    /// anything may be there.
    pub(super) async fn clear(&self, shown: &Shown) -> Result<(), Error> {
        if !self.unknown.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.interrupt(shown).await
    }

    /// Interrupts a shell that rests at its prompt, and waits for the next one.
    pub(super) async fn interrupt(&self, shown: &Shown) -> Result<(), Error> {
        let before = shown.fed.borrow().offset;
        let mut fed = shown.fed.subscribe();
        let typed = self.type_keys(&[INTERRUPT]).await;
        // A prompt that is drawn again is the same.
        let next = async {
            let new = fed.wait_for(|fed| fed.done >= before && self.is_new(fed));
            new.await.is_ok()
        };
        match typed.is_ok() && self.is_before_it_rests(next).await {
            true => {
                self.unknown.store(false, Ordering::Relaxed);
                Ok(())
            }
            false => Err(Error::invalid(
                "invalid_line",
                "the line may contain text already, and the shell does not clear it; nothing \
                 was sent"
                    .into(),
                "a person can take the keyboard, or close the terminal",
            )),
        }
    }

    /// Whether something comes that a shell says before it reads again. On a
    /// busy machine that takes longer than a moment.
    async fn is_before_it_rests(&self, comes: impl Future<Output = bool>) -> bool {
        let mut comes = pin!(comes);
        let keeper = self.job.status().keeper.pid;
        for _ in 0..MOMENTS {
            if let Ok(came) = timeout(MOMENT, comes.as_mut()).await {
                return came;
            }
            if looked(move || weighlock_confine::first_waits_for_input(keeper)).await {
                return false;
            }
        }
        false
    }
}
