//! What may be typed at a shell's prompt.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use weighlock_exec::Shell;
use weighlock_marks::Shell as Kind;
use weighlock_policy::{Settled, Verdict};
use weighlock_store::PauseRow;

use super::Terminals;
use super::input::Line;
use crate::case::Case;
use crate::error::Error;
use crate::life::Beginning;
use crate::live::{INTERRUPT, Live, Sent, Shown};
use crate::principal::Principal;
use crate::request::Request;
use crate::runs::Outcome;
use crate::shells::plain_shell;
use crate::view::Run;

impl Terminals {
    /// Judges a line that is typed at a shell's prompt.
    pub(super) async fn judge_line(
        self: &Arc<Self>,
        live: &Arc<Live>,
        terminal: &Run,
        line: &str,
        who: &Principal,
    ) -> Result<Line, Error> {
        let shown = shell_of(live)?;
        check_line(line, &shown)?;
        let direct = !terminal.detail.is_on_copy();
        let mut case = self.case_in(live, terminal, line, who, direct).await?;
        if let Some(pause) = self.pause_of(&case) {
            return match self.life.hold(case, &pause).await? {
                Outcome::Waiting(run) => Ok(Line::Settled(Sent::Asked(Box::new(run)))),
                _ => Err(Error::Paused { by: pause.by }),
            };
        }
        match case.judged.judgement.settle() {
            Settled::Allowed(_) => Ok(Line::Allowed),
            Settled::Asked(_) if !direct => Ok(Line::Allowed),
            Settled::Asked(_) => {
                let case = self.case_in(live, terminal, line, who, direct).await?;
                match self.permitted(terminal, case).await? {
                    Outcome::Waiting(run) => Ok(Line::Settled(Sent::Asked(Box::new(run)))),
                    Outcome::Refused(run) => Err(refused(run)),
                    Outcome::Running(_) | Outcome::Ended(_) => Ok(Line::Settled(Sent::Typed(None))),
                }
            }
            Settled::Refused => match self.life.refuse(&case).await? {
                Outcome::Refused(run) => Err(refused(run)),
                _ => Err(not_whole()),
            },
        }
    }

    /// Judges a line that the shell itself reads at no prompt, as far as it
    /// tells. What is no command there may become one.
    pub(super) async fn judge_answer(
        &self,
        live: &Live,
        terminal: &Run,
        line: &str,
        who: &Principal,
    ) -> Result<(), Error> {
        let refuse = || {
            Err(Error::invalid(
                "invalid_line",
                "the shell itself reads it and could run it without judgement; nothing \
                 was sent"
                    .into(),
                "answer with a plain word, or let a person take the keyboard",
            ))
        };
        let plain = |char: char| char.is_ascii_alphanumeric() || " ._/-".contains(char);
        // What is read may be a part of it (`read -n 5`), and the rest is run:
        // of a word that is the name of a program without anything to do.
        let on_copy = terminal.detail.is_on_copy();
        if !line.chars().all(plain) || !on_copy && line.contains([' ', '/']) {
            return refuse();
        }
        // It is an answer to the shell, and a command only by mistake.
        let mut case = self.case_in(live, terminal, line, who, false).await?;
        match case.judged.judgement.settle() {
            Settled::Allowed(_) => Ok(()),
            Settled::Asked(_) if on_copy => Ok(()),
            Settled::Asked(_) | Settled::Refused => refuse(),
        }
    }

    /// The case of a command in a terminal: where its shell is now. With
    /// `direct`, what only a built-in rule allows is asked about.
    pub(super) async fn case_in(
        &self,
        live: &Live,
        terminal: &Run,
        command: &str,
        who: &Principal,
        direct: bool,
    ) -> Result<Case, Error> {
        let cwd = live.directory();
        let name = terminal.detail.terminal.as_ref();
        let request = Request {
            session: terminal.session_id.clone(),
            sandbox: terminal.sandbox_id.clone(),
            description: name.map(|terminal| format!("in terminal {}", terminal.name)),
            cwd: cwd.clone(),
            external: true,
            in_terminal: Some(terminal.command_id.clone()),
            writes_directly: direct,
            shell_dir: cwd,
            shell: reads_as(terminal),
            ..Request::new(who.clone(), command)
        };
        // A shell can go where no run may begin; what it does there is judged
        // as if it were at home, and the walls hold.
        let elsewhere = Request {
            cwd: None,
            ..request.clone()
        };
        let case = match self.cases.case(request).await {
            Err(Error::Invalid { .. }) => self.cases.case(elsewhere).await?,
            case => case?,
        };
        stays_a_shell(&case)?;
        Ok(case)
    }

    /// The pause that holds a command, unless it never runs anyway.
    fn pause_of(&self, case: &Case) -> Option<PauseRow> {
        let may_run = case.judged.judgement.verdict != Verdict::Reject;
        may_run.then(|| self.pauses.of(case.request.principal.name()))?
    }

    /// Judges a command and writes down that it begins, or waits.
    pub(super) async fn permitted(
        self: &Arc<Self>,
        terminal: &Run,
        mut case: Case,
    ) -> Result<Outcome, Error> {
        if let Some(pause) = self.pause_of(&case) {
            return self.life.hold(case, &pause).await;
        }
        let direct = !terminal.detail.is_on_copy();
        let permit = match case.judged.judgement.settle() {
            Settled::Allowed(permit) => permit,
            Settled::Refused => return self.life.refuse(&case).await,
            // All that it changes is asked about when the terminal is closed.
            Settled::Asked(question) if !direct => question.tried(),
            Settled::Asked(_) => return self.questions.ask(case, None).await,
        };
        let run = self.life.begin_case(case, permit, Beginning::New).await?;
        Ok(Outcome::Running(run))
    }
}

impl Live {
    /// Where its shell is: as the kernel knows it, whatever the shell says.
    fn directory(&self) -> Option<String> {
        let known = weighlock_confine::directory_inside(self.job.status().keeper.pid);
        known.map(|dir| dir.display().to_string())
    }

    /// Refuses a command that was judged elsewhere than its shell is now.
    pub(super) fn is_where(&self, run: &Run) -> Result<(), Error> {
        let (judged, now) = (run.detail.shell_dir.as_deref(), self.directory());
        match judged {
            Some(judged) if now.as_deref() != Some(judged) => Err(Error::invalid(
                "payload_changed",
                format!(
                    "it was judged for {judged}, but the shell has changed directory; nothing was \
                     run"
                ),
                "ask for it again",
            )),
            _ => Ok(()),
        }
    }
}

/// How the shell of a terminal reads: what only bash understands, others take
/// for something else.
fn reads_as(terminal: &Run) -> Option<Shell> {
    match plain_shell(&terminal.command)? {
        Kind::Bash => Some(Shell::Bash),
        Kind::Sh | Kind::Zsh => Some(Shell::Sh),
    }
}

/// Refuses what would have a shell read, or write, somewhere else than at its
/// terminal: nobody could tell any more where it is.
fn stays_a_shell(case: &Case) -> Result<(), Error> {
    let parts = &case.judged.judgement.facts.parts;
    match parts.iter().any(|part| part.program == "exec") {
        false => Ok(()),
        true => Err(Error::invalid(
            "invalid_line",
            "`exec` would replace this shell; nothing was sent".into(),
            "leave it out, or open a terminal for that command",
        )),
    }
}

/// Refuses keys that are no whole line at a shell's prompt: what they come to
/// nobody can judge. Those that enter nothing, or clear the line, are fine.
pub(super) fn check_keys(live: &Live, bytes: &[u8]) -> Result<(), Error> {
    let unknown = live.unknown.load(Ordering::Relaxed);
    match bytes {
        [INTERRUPT] => Ok(()),
        [b'\r' | b'\n' | 0x04] if !unknown => Ok(()),
        _ => Err(not_whole()),
    }
}

fn not_whole() -> Error {
    Error::invalid(
        "invalid_line",
        "a line at a shell prompt must be sent as a whole, so that it can be judged; nothing was \
         sent"
            .into(),
        "send its text with Enter and no other key, or use exec; C-c clears the line",
    )
}

pub(super) fn typed_ahead() -> Error {
    Error::invalid(
        "invalid_line",
        "the program there is not reading; the shell would read it later, when nobody has judged \
         it; nothing was sent"
            .into(),
        "wait until it ends or reads input, or interrupt it with C-c",
    )
}

/// Returns the screen of a shell that tells where it is.
pub(super) fn shell_of(live: &Live) -> Result<Arc<Shown>, Error> {
    let shown = live.shown.clone().filter(|_| live.job.status().told);
    shown.ok_or_else(|| {
        Error::invalid(
            "no_prompt",
            "the program in this terminal does not mark where commands end; nothing was sent"
                .into(),
            "open one with `bash`, `zsh` or `sh` as its command, or type at it",
        )
    })
}

/// Refuses what would be more than one command, or a key, or more than fits.
pub(super) fn check_line(command: &str, shown: &Shown) -> Result<(), Error> {
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
    if takes_pastes(shown) {
        return Ok(());
    }
    if command.contains(['\n', '\t']) {
        return refuse(
            "this shell takes one line at a time",
            "use a terminal with `bash` or `zsh`, or put the lines into a file",
        );
    }
    if command.len() > KERNEL_LINE {
        return refuse(
            "a line for this shell has at most 4,000 bytes",
            "use a terminal with `bash` or `zsh`, or put it into a file",
        );
    }
    Ok(())
}

/// What a terminal takes as one line where it keeps lines itself: the kernel
/// cuts what is longer than 4,095 bytes, without a word.
const KERNEL_LINE: usize = 4_000;

/// Whether a shell takes several lines as one. What a program has told the
/// terminal does not count for a shell that knows nothing of it.
pub(super) fn takes_pastes(shown: &Shown) -> bool {
    shown.with(|picture| picture.edits() && picture.screen.view().modes.bracketed_paste)
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
