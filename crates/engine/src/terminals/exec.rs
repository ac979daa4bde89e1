//! Commands in the shell of a terminal: judged and asked about like any other,
//! typed at its prompt, and on record with what they said.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use weighlock_marks::Span;
use weighlock_policy::{Settled, Verdict};
use weighlock_screen::{paste, plain};
use weighlock_store::{Filter, State};

use super::input::{Line, Sent};
use super::keyboard::mark;
use super::show::Shown;
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
const MOST: usize = 1024 * 1024;

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
        if !shown.fed.borrow().prompt || check_line(line, &shown).is_err() {
            return Ok(Line::NoCommand);
        }
        let case = self.case_in(live, terminal, line, who).await?;
        match case.judged.judgement.verdict {
            Verdict::Auto => Ok(Line::Allowed),
            Verdict::Ask if terminal.detail.is_on_copy() => Ok(Line::Allowed),
            Verdict::Ask => match self.exec(terminal, line, Some(Duration::ZERO), who).await? {
                Outcome::Waiting(run) => Ok(Line::Settled(Sent::Asked(Box::new(run)))),
                Outcome::Refused(run) => Err(refused(run)),
                Outcome::Running(_) | Outcome::Ended(_) => Ok(Line::Settled(Sent::Typed)),
            },
            Verdict::Reject => match self.refuse(&case).await? {
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
        let permit = match case.judged.judgement.settle() {
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
        if let Err(error) = self.finalize(&run.command_id, report, &who).await {
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
                if fed.wait_for(|fed| fed.prompt).await.is_err() {
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
        mark(live, "command", brief(&run.command)).await;
        if live
            .job
            .feed(&[text, b"\r".to_vec()].concat())
            .await
            .is_err()
        {
            return Report::failed(CLOSED);
        }
        match ended_from(live, &shown, from).await {
            Some(span) => self.report(terminal, &span, &shown),
            None => Report::failed("the shell ended with it; how it ended is with the terminal"),
        }
    }

    fn report(&self, terminal: &Run, span: &Span, shown: &Shown) -> Report {
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

    /// Returns what a command wrote, as it is seen.
    fn written_by(&self, terminal: &Run, span: &Span) -> std::io::Result<String> {
        let log = self.log(terminal);
        let (mut bytes, mut from) = (vec![], span.output.start);
        while from < span.output.end && bytes.len() < MOST {
            let items = log.read(from, STEP)?;
            let Some(last) = items.last() else { break };
            for item in &items {
                if let weighlock_exec::Item::Piece(piece) = item {
                    bytes.extend_from_slice(span.cut(&piece.bytes, piece.offset));
                }
            }
            from = end_of(last);
        }
        let mut text = plain(&bytes);
        if bytes.len() >= MOST {
            text.push_str("\n[cut: the terminal's own output has the rest]\n");
        }
        Ok(text)
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
    /// Waits until the shell is at its prompt or runs something, as it is
    /// after a moment: between the two it says nothing.
    async fn settled(&self) {
        let mut fed = self.fed.subscribe();
        let settled = fed.wait_for(|fed| fed.prompt || fed.busy);
        let _ = tokio::time::timeout(MOMENT, settled).await;
    }
}

/// Waits for the end of the first command from an offset on; there is none
/// when the terminal is closed before.
async fn ended_from(live: &Live, shown: &Shown, from: u64) -> Option<Span> {
    let mut fed = shown.fed.subscribe();
    let found = || shown.with(|picture| picture.command_from(from));
    loop {
        fed.mark_unchanged();
        if let Some(span) = found() {
            return Some(span);
        }
        tokio::select! {
            Ok(()) = fed.changed() => {}
            () = live.is_over() => return found(),
        }
    }
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
