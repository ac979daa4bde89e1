//! Commands in the shell of a terminal: judged and asked about like any other,
//! typed at its prompt, and on record with what they said.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;
use weighlock_marks::Span;
use weighlock_screen::plain;
use weighlock_store::{EntryFilter, Filter, State};

use super::Terminals;
use super::ended;
use super::input::entered;
use super::judge::{check_line, shell_of};
use super::prompt::MOMENT;
use crate::error::{Error, brief};
use crate::life::Report;
use crate::live::end_of;
use crate::live::{Live, Shown, mark};
use crate::mutex::lock;
use crate::principal::Principal;
use crate::runs::Outcome;
use crate::runs::RETRY_EVERY;
use crate::view::Run;
use crate::view::RunRecord;

/// The most output bytes recorded with a command; the terminal's own output has
/// all.
const MOST: u64 = 512 * 1024;

/// The signal of Ctrl C.
const INTERRUPT: i32 = 2;

/// A shell that is found waiting so often, with so much time in between, and
/// runs nothing, wants the rest of a command.
const WANTS_MORE: Duration = Duration::from_millis(250);
const ASKED: u32 = 3;

/// What is on record before a command is typed.
const TYPED: &str = "terminal.exec";

/// How much of a log is read at a time.
const STEP: usize = 256 * 1024;

impl Terminals {
    /// Runs a command in the shell of a terminal and waits for its end, at
    /// most for a time. The shell keeps its directory and its variables.
    pub async fn exec(
        self: &Arc<Self>,
        terminal: &Run,
        command: &str,
        wait: Option<Duration>,
        who: &Principal,
    ) -> Result<Outcome, Error> {
        let live = self.terminal_of(terminal, who)?;
        let shown = shell_of(&live)?;
        live.has_settled(&shown).await;
        check_line(command, &shown)?;
        live.keyboard.await_news(who.name());
        let direct = !terminal.detail.is_on_copy();
        let mut case = self.case_in(&live, terminal, command, who, direct).await?;
        let news = live.keyboard.news(who.name());
        case.judged.warnings.extend(news.clone());
        let begun = self.permitted(terminal, case).await.inspect_err(|_| {
            if let Some(news) = news {
                live.keyboard.tell_later(who.name(), news);
            }
        })?;
        let (Outcome::Running(run) | Outcome::Waiting(run)) = begun else {
            return Ok(begun);
        };
        Ok(Outcome::from(self.wait_settled(run, wait).await?))
    }

    /// Types a permitted command at a terminal, and records how it ended.
    pub(crate) async fn type_at(self: Arc<Self>, terminal: String, run: Run, who: Principal) {
        let found = self.runs.recall(&terminal);
        let found = found.and_then(|terminal| Ok((self.terminal_of(&terminal, &who)?, terminal)));
        let report = match found {
            Ok((live, terminal)) => {
                let mut report = self.type_command(&live, &terminal, &run, &who).await;
                // It may have waited for a keyboard that was given back.
                report.notes.extend(live.keyboard.news(who.name()));
                report
            }
            Err(_) => Report::closed(),
        };
        let done = self.finalize_until_done(&run, report, &who).await;
        if let Some(live) = self.lives.get(&terminal) {
            lock(&live.typed).remove(&run.command_id);
        }
        // One that was stopped has its end.
        if let Err(error) = done.or_else(|error| match error {
            Error::Final { .. } => self.runs.recall(&run.command_id),
            error => Err(error),
        }) {
            tracing::warn!(run = run.command_id, %error, "cannot record a command's end");
        }
    }

    /// Records an end, however long the disk is full or the database locked:
    /// nobody else will.
    async fn finalize_until_done(
        &self,
        run: &Run,
        report: Report,
        who: &Principal,
    ) -> Result<Run, Error> {
        loop {
            match self
                .life
                .finalize(&run.command_id, report.clone(), who)
                .await
            {
                Err(error) if error.is_passing() => {
                    tracing::error!(run = run.command_id, %error, "cannot record its end yet");
                    sleep(RETRY_EVERY).await;
                }
                done => return done,
            }
        }
    }

    /// Settles what was typed at a terminal when an earlier server ended.
    pub(crate) async fn settle_typed(self: &Arc<Self>) -> Result<(), Error> {
        let running = self.core.store.commands().list(&Filter {
            state: Some(State::Running),
            limit: usize::MAX >> 1,
            ..Filter::default()
        })?;
        for command in running {
            let run = Run::from_command(command);
            if run.detail.in_terminal.is_none() {
                continue;
            }
            let who = Principal::library(run.requested_by.clone());
            let report = Report::failed(match self.was_typed(&run)? {
                true => {
                    "the server ended while it ran; the terminal goes on, and shows what became \
                     of it"
                }
                false => "the server ended before its turn came; nothing of it was run",
            });
            self.life.finalize(&run.command_id, report, &who).await?;
        }
        Ok(())
    }

    /// Returns whether it is on record that a command was about to be typed.
    fn was_typed(&self, run: &Run) -> Result<bool, Error> {
        let began: Option<jiff::Timestamp> = run.created_at.parse().ok();
        let typed = self.core.store.audit().entries(&EntryFilter {
            run: run.detail.in_terminal.clone(),
            kind: Some(TYPED.into()),
            from: began.map(|began| began.as_microsecond()),
            limit: usize::MAX >> 1,
            ..EntryFilter::default()
        })?;
        let is_it = |entry: &serde_json::Value| entry["detail"]["run"] == run.command_id.as_str();
        Ok(typed.iter().any(is_it))
    }

    async fn type_command(
        &self,
        live: &Arc<Live>,
        terminal: &Run,
        run: &Run,
        who: &Principal,
    ) -> Report {
        let Ok(shown) = shell_of(live) else {
            return Report::closed();
        };
        // A person may have put another text in its place.
        if let Err(error) = check_line(&run.command, &shown) {
            return Report::failed(&error.to_string());
        }
        let mut stopped = pin!(self.stopped(run));
        // One by one, up to the end of each.
        let turn = async { (live.at_prompt.lock().await, live.is_free(&shown).await) };
        let (_one, typing) = tokio::select! {
            ready = turn => ready,
            () = live.is_over() => return Report::closed(),
            () = stopped.as_mut() => return Report::closed(),
        };
        // What ran before it may have made room only because all of it ends.
        if live.stopper().is_some() {
            return Report::closed();
        }
        lock(&live.typed).insert(run.command_id.clone());
        let from = match self.type_line(live, terminal, run, who).await {
            Ok(from) => from,
            Err(error) => return Report::failed(&error.to_string()),
        };
        drop(typing);
        let ended = tokio::select! {
            ended = ended_from(live, &shown, from) => ended,
            () = stopped => {
                let _ = live.signal(INTERRUPT).await;
                // The next is not typed before this one is gone, if it goes.
                let gone = tokio::time::timeout(MOMENT, ended_from(live, &shown, from)).await;
                gone.unwrap_or(Ended::Closed)
            }
        };
        match ended {
            Ended::Done(span) if is_another(&span, &run.command) => {
                Report::failed("the shell ran something else than what was judged")
            }
            Ended::Done(span) => self.report(live, terminal, &span, &shown).await,
            Ended::Unfinished(span) => Report {
                stderr: "weighlock: the shell waits for the rest of it (is a quote left open?); \
                         it was taken back\n"
                    .into(),
                ..self.report(live, terminal, &span, &shown).await
            },
            Ended::Closed => {
                Report::failed("the shell ended with it; how it ended is with the terminal")
            }
        }
    }

    /// Types a command at a prompt; returns how much output there was before.
    async fn type_line(
        &self,
        live: &Arc<Live>,
        terminal: &Run,
        run: &Run,
        who: &Principal,
    ) -> Result<u64, Error> {
        let shown = shell_of(live)?;
        live.is_where(run)?;
        live.clear(&shown).await?;
        live.takes_as_it_is(&run.command).await?;
        let said = json!({ "text": brief(&run.command), "run": run.command_id });
        self.shells
            .record_terminal(TYPED, terminal, who, said)
            .await?;
        let label = match &run.approved_by {
            Some(by) => format!("{} (approved by {by})", brief(&run.command)),
            None => brief(&run.command),
        };
        mark(live, "command", label).await;
        let from = shown.fed.borrow().offset;
        let keys = entered(&run.command, &shown);
        live.type_keys(&keys).await.map_err(|_| ended(terminal))?;
        Ok(from)
    }

    async fn report(&self, live: &Live, terminal: &Run, span: &Span, shown: &Shown) -> Report {
        // It tells its directory with the prompt that comes next.
        let mut fed = shown.fed.subscribe();
        let next = fed.wait_for(|fed| fed.prompt.is_some_and(|at| at >= span.output.end));
        tokio::select! {
            _ = tokio::time::timeout(MOMENT, next) => {}
            () = live.is_over() => {}
        }
        let cwd = shown.with(|picture| picture.directory().map(|dir| dir.display().to_string()));
        Report {
            stdout: self
                .written_by(terminal, span)
                .unwrap_or_else(|error| error.to_string()),
            stderr: String::new(),
            exit_code: span.exit.unwrap_or(-1),
            cwd,
            ..Report::default()
        }
    }

    /// Returns what a command wrote, as it is seen: of much, the beginning and
    /// the end.
    fn written_by(&self, terminal: &Run, span: &Span) -> std::io::Result<String> {
        let length = span.output.end - span.output.start;
        if length <= 2 * MOST {
            let bytes = self.bytes_of(terminal, span, span.output.clone())?;
            return Ok(plain(own_lines(span, &bytes)));
        }
        let (head, tail) = (span.output.start + MOST, span.output.end - MOST);
        let head = self.bytes_of(terminal, span, span.output.start..head)?;
        let tail = self.bytes_of(terminal, span, tail..span.output.end)?;
        Ok(format!(
            "{}\n[{} bytes left out here: the terminal's own output has them]\n{}",
            plain(own_lines(span, &head)),
            length - 2 * MOST,
            plain(&tail)
        ))
    }

    fn bytes_of(
        &self,
        terminal: &Run,
        span: &Span,
        range: std::ops::Range<u64>,
    ) -> std::io::Result<Vec<u8>> {
        let log = self.outputs.log(terminal);
        let part = Span {
            output: range.clone(),
            ..span.clone()
        };
        let (mut bytes, mut from) = (vec![], range.start);
        while from < range.end {
            let items = log.read(from, STEP)?;
            let Some(last) = items.last() else { break };
            for item in &items {
                if let weighlock_exec::Item::Piece(piece) = item {
                    bytes.extend_from_slice(part.cut(&piece.bytes, piece.offset));
                }
            }
            from = end_of(last);
        }
        Ok(bytes)
    }

    /// Waits until somebody has stopped a command that is to be typed, or was.
    async fn stopped(&self, run: &Run) {
        loop {
            // Before looking, so that nothing is told in between.
            let mut told = self.waiters.wait_for(&run.command_id);
            let now = self.runs.recall(&run.command_id);
            if now.is_ok_and(|now| now.state != State::Running) {
                return;
            }
            told.told().await;
        }
    }

    /// Waits for a command that may have to be permitted first.
    async fn wait_settled(&self, run: Run, time: Option<Duration>) -> Result<Run, Error> {
        let until = time.map(|time| tokio::time::Instant::now() + time);
        let left = |until: Option<tokio::time::Instant>| {
            until.map(|until| until.saturating_duration_since(tokio::time::Instant::now()))
        };
        let now = self.runs.wait(&run, time).await?;
        // What was permitted meanwhile has only begun.
        match (run.state, now.state) {
            (State::Waiting | State::Held, State::Running) => {
                self.runs.wait(&now, left(until)).await
            }
            _ => Ok(now),
        }
    }
}

/// How waiting for a command came out.
enum Ended {
    Done(Span),
    /// The shell wanted more, and was interrupted.
    Unfinished(Span),
    Closed,
}

/// Waits for the end of the first command from an offset on.
async fn ended_from(live: &Live, shown: &Shown, from: u64) -> Ended {
    let mut fed = shown.fed.subscribe();
    let found = || shown.with(|picture| picture.command_from(from));
    let keeper = live.job.status().keeper.pid;
    let (mut interrupted, mut asked) = (false, 0);
    loop {
        let now = *fed.borrow_and_update();
        if let Some(span) = found() {
            return match interrupted {
                true => Ended::Unfinished(span),
                false => Ended::Done(span),
            };
        }
        // It reads, and neither runs anything nor is done.
        let more = (now.prompt.is_some() || now.more) && !interrupted;
        tokio::select! {
            Ok(()) = fed.changed() => {}
            () = live.is_over() => return found().map_or(Ended::Closed, Ended::Done),
            () = sleep(WANTS_MORE), if more => {
                let waits = weighlock_confine::waits_for_input(keeper);
                // On a busy machine it may be done, and only not be shown yet.
                let told = live.job.terminal().await;
                let known = told.is_some_and(|told| shown.fed.borrow().offset >= told.output);
                asked = match waits && known {
                    true => asked + 1,
                    false => 0,
                };
                if asked == ASKED && found().is_none() {
                    interrupted = true;
                    let _ = live.signal(INTERRUPT).await;
                }
            }
        }
    }
}

/// Whether the shell says that it ran another text.
fn is_another(span: &Span, judged: &str) -> bool {
    // Of several lines the shell remembers one.
    let told = { span.command.as_ref() }.filter(|_| span.exact && !judged.contains('\n'));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    told.is_some_and(|told| match told.whole {
        true => words(&told.text) != words(judged),
        false => !judged.starts_with(&told.text),
    })
}

/// What was typed is shown before what it says, where the shell did not tell
/// where that begins.
fn own_lines<'a>(span: &Span, bytes: &'a [u8]) -> &'a [u8] {
    if span.exact || span.command.is_some() || span.directory.is_some() {
        return bytes;
    }
    let line = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
    &bytes[line..]
}
