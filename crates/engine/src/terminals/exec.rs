//! Commands in the shell of a terminal: judged and asked about like any other,
//! typed at its prompt, and on record with what they said.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use weighlock_marks::Span;
use weighlock_policy::{Settled, Verdict};
use weighlock_screen::{paste, plain};
use weighlock_store::{Filter, State};

use super::input::{Line, Sent};
use super::keyboard::mark;
use super::show::{Fed, Shown};
use crate::engine::Engine;
use crate::error::{Error, brief};
use crate::external::Report;
use crate::live::Live;
use crate::output::end_of;
use crate::principal::Principal;
use crate::request::Request;
use crate::run::{Beginning, Case, Outcome};
use crate::view::Run;

/// How much of what a command said is on record with it; the terminal's own
/// output has all.
const MOST: u64 = 512 * 1024;

/// The signal of Ctrl C.
const INTERRUPT: i32 = 2;

/// A shell that is found waiting so often, with so much time in between, and
/// runs nothing, wants the rest of a command.
const WANTS_MORE: Duration = Duration::from_millis(250);
const ASKED: u32 = 3;

/// How long a shell takes to show its prompt, at the most.
const MOMENT: Duration = Duration::from_secs(2);

/// Why something was not typed.
const CLOSED: &str = "the terminal was closed before it was typed; nothing was run";

/// How much of a log is read at a time.
const STEP: usize = 256 * 1024;

impl Engine {
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
        shown.settled().await;
        check_line(command, &shown)?;
        let begun = self.permitted(&live, terminal, command, who).await?;
        let (Outcome::Running(run) | Outcome::Waiting(run)) = begun else {
            return Ok(begun);
        };
        Ok(Outcome::from(self.wait_settled(run, wait).await?))
    }

    /// Judges a line that is typed at a shell's prompt.
    pub(super) async fn judge_line(
        self: &Arc<Self>,
        live: &Arc<Live>,
        terminal: &Run,
        line: &str,
        who: &Principal,
    ) -> Result<Line, Error> {
        let Ok(shown) = shell_of(live) else {
            return Ok(Line::NoCommand);
        };
        shown.settled().await;
        let fed = *shown.fed.borrow();
        if !live.is_new(&fed) {
            return Ok(Line::NoCommand);
        }
        let half = live.half.load(Ordering::Relaxed);
        if half > 0 && fed.prompt.is_some_and(|at| half >= at) {
            return Err(Error::invalid(
                "invalid_line",
                "something is on the line already, which nobody has judged; nothing was sent"
                    .into(),
                "clear it with the key C-u, or use exec, which does",
            ));
        }
        check_line(line, &shown)?;
        let mut case = self.case_in(live, terminal, line, who).await?;
        let direct = !terminal.detail.is_on_copy();
        match case.judged.judgement.settle() {
            Settled::Allowed(permit) if direct && permit.read_only() && may_evaluate(line) => {
                Err(unknown_values())
            }
            Settled::Allowed(_) => Ok(Line::Allowed),
            Settled::Asked(_) if !direct => Ok(Line::Allowed),
            Settled::Asked(_) => {
                match self.exec(terminal, line, Some(Duration::ZERO), who).await? {
                    Outcome::Waiting(run) => Ok(Line::Settled(Sent::Asked(Box::new(run)))),
                    Outcome::Refused(run) => Err(refused(run)),
                    Outcome::Running(_) | Outcome::Ended(_) => Ok(Line::Settled(Sent::Typed)),
                }
            }
            Settled::Refused => match self.refuse(&case).await? {
                Outcome::Refused(run) => Err(refused(run)),
                _ => Ok(Line::NoCommand),
            },
        }
    }

    /// The case of a command in a terminal: where its shell is now.
    async fn case_in(
        &self,
        live: &Live,
        terminal: &Run,
        command: &str,
        who: &Principal,
    ) -> Result<Case, Error> {
        let shown = shell_of(live)?;
        let cwd = shown.with(|picture| picture.directory().map(|dir| dir.display().to_string()));
        let name = terminal.detail.terminal.as_ref();
        let request = Request {
            session: terminal.session_id.clone(),
            sandbox: terminal.sandbox_id.clone(),
            description: name.map(|terminal| format!("in terminal {}", terminal.name)),
            cwd,
            external: true,
            in_terminal: Some(terminal.command_id.clone()),
            ..Request::new(who.clone(), command)
        };
        // A shell can go where no run may begin; what it does there is judged
        // as if it were at home, and the walls hold.
        let elsewhere = Request {
            cwd: None,
            ..request.clone()
        };
        match self.case(request).await {
            Err(Error::Invalid { .. }) => self.case(elsewhere).await,
            case => case,
        }
    }

    /// Judges a command and writes down that it begins, or waits.
    async fn permitted(
        self: &Arc<Self>,
        live: &Live,
        terminal: &Run,
        command: &str,
        who: &Principal,
    ) -> Result<Outcome, Error> {
        let mut case = self.case_in(live, terminal, command, who).await?;
        if case.judged.judgement.verdict != Verdict::Reject
            && let Some(pause) = self.pauses.of(who.name())
        {
            return self.hold(case, &pause).await;
        }
        let direct = !terminal.detail.is_on_copy();
        let permit = match case.judged.judgement.settle() {
            // What a person's rule allows may be anything.
            Settled::Allowed(permit) if direct && permit.read_only() && may_evaluate(command) => {
                return Err(unknown_values());
            }
            Settled::Allowed(permit) => permit,
            Settled::Refused => return self.refuse(&case).await,
            // All that it changes is asked about when the terminal is closed.
            Settled::Asked(question) if terminal.detail.is_on_copy() => question.tried(),
            Settled::Asked(_) => return self.ask(case, None).await,
        };
        let run = self.begin_case(case, permit, Beginning::New).await?;
        Ok(Outcome::Running(run))
    }

    /// Types a permitted command at a terminal, and records how it ended.
    pub(crate) async fn type_at(self: Arc<Self>, terminal: String, run: Run, who: Principal) {
        let found = self.recall(&terminal);
        let found = found.and_then(|terminal| Ok((self.terminal_of(&terminal, &who)?, terminal)));
        let report = match found {
            Ok((live, terminal)) => self.type_command(&live, &terminal, &run, &who).await,
            Err(_) => Report::failed(CLOSED),
        };
        let done = self.finalize(&run.command_id, report, &who).await;
        // One that was stopped has its end.
        if let Err(error) = done.or_else(|error| match error {
            Error::Final { .. } => self.recall(&run.command_id),
            error => Err(error),
        }) {
            tracing::warn!(run = run.command_id, %error, "cannot record a command's end");
        }
    }

    /// Settles what was typed at a terminal when an earlier server ended.
    pub(crate) async fn settle_typed(self: &Arc<Self>) -> Result<(), Error> {
        let running = self.store.list(&Filter {
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
            let report = Report::failed(
                "the server ended while it ran; the terminal goes on, and shows what became of it",
            );
            self.finalize(&run.command_id, report, &who).await?;
        }
        Ok(())
    }

    async fn type_command(
        &self,
        live: &Arc<Live>,
        terminal: &Run,
        run: &Run,
        who: &Principal,
    ) -> Report {
        let Ok(shown) = shell_of(live) else {
            return Report::failed(CLOSED);
        };
        // A person may have put another text in its place.
        if let Err(error) = check_line(&run.command, &shown) {
            return Report::failed(&error.to_string());
        }
        let _one = live.at_prompt.lock().await;
        let ready = async {
            loop {
                live.keyboard.free().await;
                let mut fed = shown.fed.subscribe();
                if fed.wait_for(|fed| live.is_new(fed)).await.is_err() {
                    return;
                }
                if live.keyboard.is_free() {
                    return;
                }
            }
        };
        tokio::select! {
            () = ready => {}
            () = live.is_over() => {
                return Report::failed(CLOSED);
            }
        }
        let from = shown.fed.borrow().offset;
        let text = shown.with(|picture| paste(&run.command, &picture.screen.view().modes));
        let typed = json!({ "text": brief(&run.command), "run": run.command_id });
        let recorded = self
            .record_terminal("terminal.exec", terminal, who, typed)
            .await;
        if recorded.is_err() {
            return Report::failed("it could not be recorded; nothing was run");
        }
        let label = match &run.approved_by {
            Some(by) => format!("{} (approved by {by})", brief(&run.command)),
            None => brief(&run.command),
        };
        mark(live, "command", label).await;
        let keys = [shown.clearing(), text, b"\r".to_vec()].concat();
        if live.type_keys(&keys).await.is_err() {
            return Report::failed(CLOSED);
        }
        let mut told = self.waiters.wait_for(&run.command_id);
        let ended = tokio::select! {
            ended = ended_from(live, &shown, from) => ended,
            // Somebody has stopped it.
            () = told.told() => Ended::Closed,
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
        let log = self.log(terminal);
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

    /// Stops a command that was typed at a terminal: what is in its foreground
    /// is interrupted, and nobody waits for it any more.
    pub(crate) async fn stop_typed(&self, run: &Run, by: &Principal) -> Result<(), Error> {
        let terminal = run.detail.in_terminal.as_deref().unwrap_or_default();
        if let Some(live) = self.lives.get(terminal) {
            let _ = live.job.signal(INTERRUPT).await;
        }
        let now = self.wait(run, Some(MOMENT)).await?;
        if now.state != State::Running {
            return Ok(());
        }
        let owner = Principal::library(run.requested_by.clone());
        let report = Report::failed(&format!(
            "stopped by {}; it may still run in the terminal",
            by.name()
        ));
        self.finalize(&run.command_id, report, &owner).await?;
        Ok(())
    }

    /// Waits for a command that may have to be permitted first.
    async fn wait_settled(&self, run: Run, time: Option<Duration>) -> Result<Run, Error> {
        let until = time.map(|time| tokio::time::Instant::now() + time);
        let left = |until: Option<tokio::time::Instant>| {
            until.map(|until| until.saturating_duration_since(tokio::time::Instant::now()))
        };
        let now = self.wait(&run, time).await?;
        // What was permitted meanwhile has only begun.
        match (run.state, now.state) {
            (State::Waiting | State::Held, State::Running) => self.wait(&now, left(until)).await,
            _ => Ok(now),
        }
    }
}

impl Report {
    fn failed(why: &str) -> Self {
        Self {
            stderr: format!("weighlock: {why}\n"),
            exit_code: -1,
            ..Self::default()
        }
    }
}

impl Shown {
    /// Keys that clear what is on the line already, which nobody has judged.
    fn clearing(&self) -> Vec<u8> {
        let edits = self.with(|picture| picture.screen.view().modes.bracketed_paste);
        match edits {
            // To the end of the line, and then all of it.
            true => vec![0x05, 0x15],
            false => vec![0x15],
        }
    }

    /// Waits until the shell is at its prompt or runs something, as it is
    /// after a moment: between the two it says nothing.
    async fn settled(&self) {
        let mut fed = self.fed.subscribe();
        let settled = fed.wait_for(|fed| fed.prompt.is_some() || fed.busy);
        let _ = tokio::time::timeout(MOMENT, settled).await;
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
        let more = now.prompt.is_some() && !interrupted;
        tokio::select! {
            Ok(()) = fed.changed() => {}
            () = live.is_over() => return found().map_or(Ended::Closed, Ended::Done),
            () = tokio::time::sleep(WANTS_MORE), if more => {
                asked = match weighlock_confine::waits_for_input(keeper) {
                    true => asked + 1,
                    false => 0,
                };
                if asked == ASKED {
                    interrupted = true;
                    let _ = live.job.signal(INTERRUPT).await;
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

impl Live {
    /// Whether a prompt is there that nobody has typed at yet.
    fn is_new(&self, fed: &Fed) -> bool {
        let entered = self.entered.load(Ordering::Relaxed);
        fed.prompt.is_some_and(|at| at > entered || entered == 0)
    }
}

/// Whether a shell may take the value of a variable for something to run:
/// where numbers are expected. Nobody knows what the shell keeps in it.
fn may_evaluate(command: &str) -> bool {
    ["((", "[[", "${", "$["]
        .iter()
        .any(|part| command.contains(part))
}

fn unknown_values() -> Error {
    Error::invalid(
        "invalid_line",
        "it may run what is in a variable of the shell, which nobody has judged; nothing was sent"
            .into(),
        "use it without `((`, `[[`, `${` and `$[`, or run it as a command of its own",
    )
}

/// Returns the screen of a shell that tells where it is.
fn shell_of(live: &Live) -> Result<Arc<Shown>, Error> {
    let shown = live.shown.clone().filter(|_| live.job.status().told);
    shown.ok_or_else(|| {
        Error::invalid(
            "no_prompt",
            "what runs in this terminal does not tell where its commands end; nothing was sent"
                .into(),
            "open one with `bash`, `zsh` or `sh` as its command, or type at it",
        )
    })
}

/// Refuses what would be more than one command, or a key.
fn check_line(command: &str, shown: &Shown) -> Result<(), Error> {
    let refuse = |what: &str, hint: &str| {
        Err(Error::invalid(
            "invalid_line",
            format!("{what}; nothing was sent"),
            hint,
        ))
    };
    if command.trim().is_empty() {
        return Err(Error::invalid(
            "empty_command",
            "there is no command; nothing was sent".into(),
            "give one",
        ));
    }
    let key = |char: char| char.is_control() && !matches!(char, '\n' | '\t');
    if command.contains(key) {
        return refuse("a command has no control characters", "send keys as input");
    }
    let brackets = shown.with(|picture| picture.screen.view().modes.bracketed_paste);
    if command.contains(['\n', '\t']) && !brackets {
        return refuse(
            "this shell takes one line at a time",
            "use a terminal with `bash` or `zsh`, or put the lines into a file",
        );
    }
    Ok(())
}

fn refused(run: Run) -> Error {
    let reason = run.detail.reason.as_ref();
    Error::invalid(
        "blocked",
        reason.map_or("the policy refuses it; nothing was sent".into(), |reason| {
            reason.text.clone()
        }),
        reason
            .and_then(|reason| reason.remedy.clone())
            .unwrap_or_default(),
    )
}
