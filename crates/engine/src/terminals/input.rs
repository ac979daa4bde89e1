//! What is typed at a terminal.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;
use weighlock_exec::Size;
use weighlock_screen::{key, paste};

use super::Terminals;
use super::judge::{check_keys, shell_of, takes_pastes, typed_ahead};
use super::prompt::Reader;
use super::secret::asks_secret;
use super::{check_size, ended};
use crate::error::{Error, brief};
use crate::live::{Held, INTERRUPT, Live, MOST, Sent, Shown, Typed, is_signal, mark};
use crate::principal::{Principal, Right};
use crate::view::Run;

/// How much of what was typed is on record.
const RECORDED: usize = 4096;

impl Terminals {
    /// Types at a terminal. What is typed where it is not shown is not on
    /// record. Returns what to tell whoever typed: if somebody else has the
    /// keyboard it is held, and what became of that is told the next time.
    pub async fn type_in(
        self: &Arc<Self>,
        run: &Run,
        typed: &Typed,
        who: &Principal,
    ) -> Result<Sent, Error> {
        let live = self.terminal_of(run, who)?;
        let bytes = typed.bytes(&live, run).await?;
        let _typing = live.typing.lock().await;
        if let Some(sent) = self.hold_typed(&live, run, typed, &bytes, who).await? {
            return Ok(sent);
        }
        let ready = match self.readied(&live, run, typed, bytes, who).await? {
            Readied::Settled(sent) => return Ok(sent),
            Readied::Keys(ready) => ready,
        };
        self.type_readied(&live, run, typed, &ready, who).await?;
        Ok(Sent::Typed(live.keyboard.news(who.name())))
    }

    /// Types what was looked at, once it is on record.
    pub(super) async fn type_readied(
        &self,
        live: &Live,
        run: &Run,
        typed: &Typed,
        ready: &Ready,
        who: &Principal,
    ) -> Result<(), Error> {
        self.shells
            .record_terminal("terminal.input", run, who, ready.recorded())
            .await?;
        if let Some(line) = typed.line().filter(|_| !ready.hidden) {
            mark(live, "command", brief(line)).await;
        }
        live.type_ready(ready).await.map_err(|_| send_failed(run))
    }

    /// Keeps what is typed, if somebody else has the keyboard. Where it goes is
    /// looked at when it is typed, and what it is goes on record then: it may
    /// be for somebody who does not show it, or for a shell.
    async fn hold_typed(
        &self,
        live: &Live,
        run: &Run,
        typed: &Typed,
        bytes: &[u8],
        who: &Principal,
    ) -> Result<Option<Sent>, Error> {
        if live.keyboard.is_free() {
            return Ok(None);
        }
        self.shells
            .record_terminal("terminal.input", run, who, json!({ "held": true }))
            .await?;
        live.keyboard.hold(Held::new(typed, who, bytes))
    }

    /// Finds out who would read what is typed, and judges it if that is a
    /// shell.
    pub(super) async fn readied(
        self: &Arc<Self>,
        live: &Arc<Live>,
        run: &Run,
        typed: &Typed,
        bytes: Vec<u8>,
        who: &Principal,
    ) -> Result<Readied, Error> {
        let set = live.job.terminal().await.ok_or_else(|| ended(run))?;
        let shown = live.shown.as_ref();
        let asked = shown.is_some_and(|shown| shown.with(|picture| asks_secret(picture)));
        let hidden = set.hidden || asked;
        let mut ready = Ready {
            bytes,
            hidden,
            judged: false,
            reader: Reader::Program,
        };
        let Ok(shown) = shell_of(live) else {
            return Ok(Readied::Keys(ready));
        };
        ready.reader = live.reader(&shown).await;
        match (ready.reader, typed.line()) {
            (Reader::Prompt, Some(line)) => {
                match self.judge_line(live, run, line, who).await? {
                    Line::Settled(sent) => return Ok(Readied::Settled(sent)),
                    Line::Allowed => live.clear(&shown).await?,
                }
                live.takes_as_it_is(line).await?;
                ready.bytes = entered(line, &shown);
                // At a prompt everything is a command.
                (ready.judged, ready.hidden) = (true, false);
            }
            (Reader::Shell, Some(line)) => self.judge_answer(live, run, line, who).await?,
            (Reader::Prompt | Reader::Shell, None) => check_keys(live, &ready.bytes)?,
            (Reader::Program, _) => {}
            (Reader::Nobody, _) if is_signal(&ready.bytes) => {}
            (Reader::Nobody, _) => return Err(typed_ahead()),
        }
        Ok(Readied::Keys(ready))
    }

    /// Gives a terminal another size.
    pub async fn resize(&self, run: &Run, size: Size, who: &Principal) -> Result<(), Error> {
        check_size(size)?;
        let live = self.terminal_of(run, who)?;
        live.keyboard.check_free()?;
        let said = json!({ "columns": size.columns, "rows": size.rows });
        self.shells
            .record_terminal("terminal.resized", run, who, said)
            .await?;
        live.resize(size).await.map_err(|_| ended(run))?;
        self.shells.look_into_diary(&live, run);
        Ok(())
    }

    /// Sends a signal to what is in the foreground of a terminal.
    pub async fn signal(&self, run: &Run, name: &str, who: &Principal) -> Result<(), Error> {
        let live = self.terminal_of(run, who)?;
        live.keyboard.check_free()?;
        let plain = name.trim_start_matches("SIG").to_uppercase();
        let known = SIGNALS.iter().find(|(known, _)| *known == plain);
        let Some((_, number)) = known else {
            let all: Vec<&str> = SIGNALS.iter().map(|(name, _)| *name).collect();
            return Err(Error::invalid(
                "invalid_signal",
                format!("`{}` is not a signal that can be sent", brief(name)),
                format!("one of {}", all.join(", ")),
            ));
        };
        let said = json!({ "signal": plain });
        self.shells
            .record_terminal("terminal.signal", run, who, said)
            .await?;
        live.signal(*number).await.map_err(|_| ended(run))
    }

    /// Returns the terminal of a run that somebody may type at.
    pub(super) fn terminal_of(&self, run: &Run, who: &Principal) -> Result<Arc<Live>, Error> {
        if run.requested_by != who.name() {
            who.check(Right::Operate)?;
        }
        self.lives.get(&run.command_id).ok_or_else(|| ended(run))
    }
}

impl Typed {
    /// The line that it is, or the lines, if it is nothing else.
    fn line(&self) -> Option<&str> {
        let text = self.text.as_deref().or(self.paste.as_deref())?;
        let enter = self.keys == ["Enter"];
        let alone = (self.keys.is_empty() || enter && !self.submit)
            && (self.text.is_none() || self.paste.is_none());
        let line = text.trim_end_matches(['\n', '\r']);
        let ends = self.submit || enter || text.contains(['\n', '\r']);
        (alone && ends && !line.is_empty()).then_some(line)
    }

    async fn bytes(&self, live: &Live, run: &Run) -> Result<Vec<u8>, Error> {
        let shown = live.shown.as_ref().ok_or_else(|| ended(run))?;
        let modes = shown.with(|picture| picture.screen.view().modes);
        let mut bytes = vec![];
        if let Some(text) = &self.text {
            bytes.extend(text.replace("\r\n", "\r").replace('\n', "\r").into_bytes());
        }
        if let Some(text) = &self.paste {
            bytes.extend(paste(text, &modes));
        }
        for name in &self.keys {
            bytes.extend(key(name, &modes).ok_or_else(|| no_such_key(name))?);
        }
        if self.submit {
            bytes.push(b'\r');
        }
        if self.eof {
            let set = live.job.terminal().await.ok_or_else(|| ended(run))?;
            bytes.push(set.end_of_input);
        }
        if bytes.len() > MOST {
            return Err(Error::invalid(
                "too_much_input",
                format!(
                    "{} bytes are too many to type at once; nothing was sent",
                    bytes.len()
                ),
                format!("send at most {MOST} bytes at a time, or put them into a file"),
            ));
        }
        Ok(bytes)
    }
}

impl Live {
    /// Types what was looked at.
    pub(super) async fn type_ready(&self, ready: &Ready) -> std::io::Result<()> {
        let shown = shell_of(self);
        if let (Ok(shown), Reader::Prompt, [INTERRUPT]) = (&shown, ready.reader, &ready.bytes[..]) {
            // Whoever clears the line goes on at the next prompt.
            let cleared = self.interrupt(shown).await;
            return cleared.map_err(|_| std::io::ErrorKind::TimedOut.into());
        }
        let is_line = ready.reader == Reader::Prompt && ready.bytes.ends_with(b"\r");
        if shown.is_ok() && !is_line && !is_signal(&ready.bytes) {
            // What is left of it unread is on the shell's line afterwards; so
            // is a key that ends nothing.
            self.unknown.store(true, Ordering::Relaxed);
        }
        self.type_keys(&ready.bytes).await
    }
}

/// What is to be typed, and what was found out about it.
pub(super) struct Ready {
    bytes: Vec<u8>,
    hidden: bool,
    judged: bool,
    reader: Reader,
}

impl Ready {
    /// What is on record of it.
    fn recorded(&self) -> serde_json::Value {
        if self.hidden {
            return json!({ "hidden": true });
        }
        let bytes = &self.bytes;
        json!({
            "text": String::from_utf8_lossy(&bytes[..bytes.len().min(RECORDED)]),
            "bytes": bytes.len(),
            "judged": self.judged,
        })
    }
}

/// What became of something before it is typed.
pub(super) enum Readied {
    Keys(Ready),
    Settled(Sent),
}

/// A line as it was judged, with Enter: what a shell would take for keys, or
/// for several lines, comes as one from a clipboard.
pub(super) fn entered(line: &str, shown: &Shown) -> Vec<u8> {
    let mut bytes = match takes_pastes(shown) {
        true => shown.with(|picture| paste(line, &picture.screen.view().modes)),
        false => line.as_bytes().to_vec(),
    };
    bytes.push(b'\r');
    bytes
}

/// What a line is, before it is typed.
pub(super) enum Line {
    /// A command that may run.
    Allowed,
    /// It is not to be typed now.
    Settled(Sent),
}

/// What programs in a terminal may be told.
const SIGNALS: &[(&str, i32)] = &[
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("KILL", 9),
    ("USR1", 10),
    ("USR2", 12),
    ("TERM", 15),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("WINCH", 28),
];

fn send_failed(run: &Run) -> Error {
    let name = run.detail.terminal.as_ref();
    Error::invalid(
        "send_failed",
        format!(
            "cannot send input to `{}`: it was closed, or does not accept input",
            name.map_or("", |terminal| &terminal.name)
        ),
        "`weighlock term list` lists all terminals",
    )
}

fn no_such_key(name: &str) -> Error {
    Error::invalid(
        "invalid_key_name",
        format!("there is no key `{}`; nothing was sent", brief(name)),
        "keys are called `Enter`, `Esc`, `C-c`, `M-x`, `Up`, `PageDown`, `F5` and so on",
    )
}
