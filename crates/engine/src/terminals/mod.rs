//! Terminals: commands that somebody types at, for as long as they run.
//!
//! A terminal is a run with a name in its session, whose input and output are
//! a terminal of its own. It is judged, walled, recorded and found again after
//! a restart like any other. What it shows is worked out by an emulator, which
//! also answers when the program asks its terminal something.

mod exec;
mod hand;
mod input;
mod judge;
mod keyboard;
mod left;
mod prompt;
mod secret;
mod show;
mod startup;
mod view;
mod viewer;

pub use self::hand::Hand;
pub use self::input::{Sent, Typed};
pub use self::keyboard::ControlView;
pub(crate) use self::keyboard::Keyboard;
pub(crate) use self::show::{Shown, show_from};
pub(crate) use self::startup::{keep_nonce, startup};
pub use self::view::{CursorView, ScreenView, TerminalView};
pub use self::viewer::{Sight, Viewer};

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use weighlock_exec::{Excerpt, Size, Text};
use weighlock_policy::Cut;
use weighlock_store::{Command, Filter};

use crate::engine::Engine;
use crate::error::{Error, brief};
use crate::mutex::lock;
use crate::principal::{Principal, Right};
use crate::request::{Input, Request, Terminal};
use crate::run::Outcome;
use crate::view::Run;
use crate::view::RunRecord;

/// Longer than any name that somebody types.
const MAX_NAME: usize = 64;

/// How long what runs in a terminal that is closed has to end in order.
const GRACE: Duration = Duration::from_millis(500);

/// How many of the newest runs are looked through for one that was closed.
const LOOKED_THROUGH: usize = 500;

/// How long one may take to be gone.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// Characters of a terminal's output that are looked at for the beginning of
/// what it showed: more than anybody reads.
const AMPLE: usize = 1_000_000;

/// What a hung-up line is told as.
const HANG_UP: i32 = 1;

/// Names of terminals that are being opened, each in its session.
pub(crate) type Opening = Mutex<HashSet<(String, String)>>;

/// A name that is somebody's until a terminal has it, or does not.
struct Claim<'a> {
    opening: &'a Opening,
    name: (String, String),
}

impl<'a> Claim<'a> {
    fn on(opening: &'a Opening, name: (String, String)) -> Option<Self> {
        let free = lock(opening).insert(name.clone());
        free.then_some(Self { opening, name })
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        lock(self.opening).remove(&self.name);
    }
}

impl Engine {
    /// Opens a terminal for a command. Its name must be free in its session.
    pub async fn open_terminal(
        self: &Arc<Self>,
        mut request: Request,
        name: &str,
        size: Size,
    ) -> Result<Outcome, Error> {
        let name = name.trim();
        check_name(name)?;
        check_size(size)?;
        let said =
            |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
        if !said(&request.description) {
            return Err(Error::invalid(
                "missing_description",
                "a terminal needs a description; nothing was run".into(),
                "say what it is for in a few words",
            ));
        }
        let who = request.principal.clone();
        who.check(Right::Run)?;
        let known = self
            .sandboxes
            .find_workplace(request.sandbox.as_deref(), &who)?;
        let session = request.session.as_deref();
        let session = self
            .sessions
            .find_or_open(session, &who, &known.sandbox)
            .await?;
        let exists = |which: &str| {
            Error::invalid(
                "already_exists",
                format!(
                    "terminal `{}` already exists in this session ({which}); nothing was run",
                    brief(name),
                ),
                "close it first, or take another name",
            )
        };
        // Between looking and taking the name, nobody else may.
        let _name = Claim::on(&self.opening, (session.clone(), name.to_owned()))
            .ok_or_else(|| exists("being opened"))?;
        if let Some(run) = self.terminal_named(&session, name)? {
            return Err(exists(&run.short_id));
        }
        request.session = Some(session);
        request.background = true;
        request.input = Input::Terminal(Terminal {
            name: name.to_owned(),
            size,
        });
        self.run(request).await
    }

    /// Waits for the end of a terminal, at most for a time, and closes it.
    pub async fn see_through(
        &self,
        run: &Run,
        time: Duration,
        who: &Principal,
    ) -> Result<Run, Error> {
        let ended = self.wait(run, Some(time)).await?;
        if ended.open && ended.ended_at.is_none() {
            self.close_terminal(run, who).await?;
        }
        self.closed(run, CLOSE_WITHIN).await
    }

    /// Returns what a terminal has shown, as text without colours, cut to a
    /// reader's measure.
    pub fn transcript(&self, run: &Run, cut: Option<Cut>) -> Result<Excerpt, Error> {
        let cut = cut.unwrap_or_else(|| self.core.config.manners().cut());
        let (most, ample) = match cut {
            // What nobody sees does not count: it is taken out before that.
            Cut::Head(most) => (most, Cut::Head(most.max(AMPLE))),
            cut => (usize::MAX, cut),
        };
        let plain = |text: String| weighlock_screen::plain(text.as_bytes());
        let excerpt = self.outputs.excerpt(run, Some(ample))?;
        Ok(match excerpt.text {
            Text::Joined(text) => Excerpt::head(&plain(text), excerpt.left_out, most),
            Text::Streams { stdout, stderr } => Excerpt {
                text: Text::Streams {
                    stdout: plain(stdout),
                    stderr,
                },
                ..excerpt
            },
        })
    }

    /// Lists the terminals that somebody may see; of one session, if it is
    /// named.
    pub fn terminals(
        &self,
        session: Option<&str>,
        who: &Principal,
    ) -> Result<Vec<TerminalView>, Error> {
        let mut found = vec![];
        for run in self.open_terminals()? {
            let wanted = session.is_none_or(|session| run.session_id.as_deref() == Some(session));
            if wanted && who.sees(&run.requested_by, run.sandbox_id.as_deref()) {
                found.push(self.terminal_view(run));
            }
        }
        Ok(found)
    }

    /// Finds a terminal by the id of its run, or by its name if only one of
    /// that name can be seen.
    pub fn find_terminal(&self, id: &str, who: &Principal) -> Result<Run, Error> {
        let sees = |run: &Run| who.sees(&run.requested_by, run.sandbox_id.as_deref());
        let mut found = self
            .lives
            .terminals(|run| run.command_id == id && sees(run));
        if let Some(run) = found.pop() {
            return Ok(run);
        }
        // A name counts before the beginning of any id.
        if let Some(run) = self.terminal_called(id, who)? {
            return Ok(run);
        }
        let none = || Error::NoSuchTerminal { name: brief(id) };
        let run = self.find(id, who).map_err(|error| match error {
            Error::NoSuchRun { .. } => none(),
            error => error,
        })?;
        match run.detail.terminal {
            Some(_) => Ok(run),
            None => Err(none()),
        }
    }

    /// Finds a terminal by its name: one that runs or waits, or else the last
    /// that was closed lately.
    pub(crate) fn terminal_called(
        &self,
        name: &str,
        who: &Principal,
    ) -> Result<Option<Run>, Error> {
        // No name begins like an id.
        if name.starts_with("r_") {
            return Ok(None);
        }
        let wanted = |run: &Run| {
            let terminal = run.detail.terminal.as_ref();
            terminal.is_some_and(|terminal| terminal.name == name)
                && who.sees(&run.requested_by, run.sandbox_id.as_deref())
        };
        let mut found = self.lives.terminals(wanted);
        if found.is_empty() {
            found = self.open_terminals()?;
            found.retain(wanted);
        }
        if found.is_empty() {
            let newest = self.core.store.list(&Filter {
                limit: LOOKED_THROUGH,
                ..Filter::default()
            })?;
            let newest = newest.into_iter().filter(has_terminal);
            return Ok(newest.map(Run::from_command).find(wanted));
        }
        match (found.pop(), found.pop()) {
            (Some(_), Some(_)) => Err(Error::Ambiguous { id: brief(name) }),
            (found, _) => Ok(found),
        }
    }

    /// Ends a terminal and everything in it.
    pub async fn close_terminal(&self, run: &Run, who: &Principal) -> Result<(), Error> {
        let live = self.lives.get(&run.command_id);
        self.stop(run, who, false, GRACE).await?;
        if let Some(live) = live {
            // As when a line is cut: shells that ignore a polite request heed
            // this one.
            let _ = live.job.signal(HANG_UP).await;
        }
        Ok(())
    }

    /// Tells that a terminal is there.
    pub(crate) async fn record_opened(&self, run: &Run) {
        self.tell_of_terminal("terminal.opened", run).await;
        if let (Some(by), Some(live)) = (&run.approved_by, self.lives.get(&run.command_id)) {
            hand::mark(&live, "approval", format!("approved by {by}")).await;
        }
    }

    /// Tells that it is not there any more.
    pub(crate) async fn record_closed(&self, run: &Run) {
        self.tell_of_terminal("terminal.closed", run).await;
    }

    async fn tell_of_terminal(&self, kind: &'static str, run: &Run) {
        let Some(terminal) = &run.detail.terminal else {
            return;
        };
        let entry = self.terminal_entry(
            kind,
            run,
            &run.requested_by,
            json!({ "name": terminal.name }),
        );
        // The run itself is on record.
        if let Err(error) = self.core.store.record(vec![entry]).await {
            tracing::warn!(run = run.command_id, %error, "cannot tell of a terminal");
        }
    }

    fn terminal_named(&self, session: &str, name: &str) -> Result<Option<Run>, Error> {
        let mut all = self.open_terminals()?.into_iter();
        Ok(all.find(|run| {
            let terminal = run.detail.terminal.as_ref();
            run.session_id.as_deref() == Some(session)
                && terminal.is_some_and(|terminal| terminal.name == name)
        }))
    }

    /// All that run, or wait for an answer so that they may: not those that
    /// have ended and whose changes wait for one.
    fn open_terminals(&self) -> Result<Vec<Run>, Error> {
        let open = self.core.store.open_commands()?.into_iter();
        let pending = self.core.store.pending_commands()?.into_iter();
        let runs = open.chain(pending).filter(has_terminal);
        let is_open = |run: &Run| run.detail.changes.is_none();
        Ok(runs.map(Run::from_command).filter(is_open).collect())
    }
}

/// Whether a command has a terminal. Of many most have none, and need not be
/// read as a whole.
fn has_terminal(command: &Command) -> bool {
    #[derive(Deserialize)]
    struct Glance {
        terminal: Option<IgnoredAny>,
    }
    serde_json::from_str::<Glance>(&command.detail).is_ok_and(|seen| seen.terminal.is_some())
}

fn ended(run: &Run) -> Error {
    Error::Ended {
        id: run.short_id.clone(),
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() {
        return Err(Error::invalid(
            "missing_name",
            "a terminal needs a name; nothing was run".into(),
            "give it a short one, such as `dev-server`",
        ));
    }
    let fits = name.len() <= MAX_NAME && !name.contains(char::is_control);
    match fits && !name.starts_with("r_") {
        true => Ok(()),
        false => Err(Error::invalid(
            "invalid_name",
            format!(
                "`{}` cannot be the name of a terminal; nothing was run",
                brief(name)
            ),
            format!("a name has at most {MAX_NAME} bytes on one line, and is no id of a run"),
        )),
    }
}

/// Returns a size as screens have it; refuses what no terminal can be.
fn check_size(size: Size) -> Result<weighlock_screen::Size, Error> {
    match weighlock_screen::Size::new(size.columns, size.rows) {
        Ok(size) => Ok(size),
        Err(error) => Err(Error::invalid(
            "invalid_size",
            format!(
                "a terminal cannot be {} × {}: {error}",
                size.columns, size.rows
            ),
            "80 columns and 24 rows are usual",
        )),
    }
}
