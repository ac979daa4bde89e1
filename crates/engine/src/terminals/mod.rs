//! Terminals: commands that somebody types at, for as long as they run.
//!
//! A terminal is a run with a name in its session, whose input and output are
//! a terminal of its own. It is judged, walled, recorded and found again after
//! a restart like any other. What it shows is worked out by an emulator, which
//! also answers when the program asks its terminal something.
//!
//! | subject | methods |
//! |---|---|
//! | opening and closing | [`Terminals::open_terminal`], [`Terminals::close_terminal`], [`Terminals::see_through`] |
//! | typing | [`Terminals::exec`], [`Terminals::type_in`], [`Terminals::signal`], [`Terminals::resize`] |
//! | the keyboard | [`Terminals::take_keyboard`] |
//! | looking | [`Terminals::list`], [`Terminals::terminal_view`], [`Terminals::screen`], [`Terminals::transcript`], [`Terminals::watch`] |

mod exec;
mod hand;
mod input;
mod judge;
mod prompt;
mod secret;
mod view;
mod viewer;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;
use weighlock_exec::{Excerpt, Size, Text};
use weighlock_policy::Cut;

pub use self::hand::Hand;
pub use self::view::{CursorView, ScreenView, TerminalView};
pub use self::viewer::{Sight, Viewer};
use crate::case::Cases;
use crate::core::Core;
use crate::error::{Error, brief};
use crate::life::{Life, ToType};
use crate::live::Lives;
use crate::mutex::lock;
use crate::output::Outputs;
use crate::pause::Pauses;
use crate::principal::{Principal, Right};
use crate::questions::Questions;
use crate::request::{Input, Request, Terminal};
use crate::runs::{Outcome, Runs, Waiters};
use crate::sandboxes::Sandboxes;
use crate::session::Sessions;
use crate::shells::Shells;
use crate::view::Run;

/// Longer than any name that somebody types.
const MAX_NAME: usize = 64;

/// How long what runs in a terminal that is closed has to end in order.
const GRACE: Duration = Duration::from_millis(500);

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

/// Opens terminals and types at them; see
/// [`Engine::terminals`](crate::Engine::terminals).
pub struct Terminals {
    core: Arc<Core>,
    sandboxes: Arc<Sandboxes>,
    sessions: Arc<Sessions>,
    pauses: Arc<Pauses>,
    lives: Arc<Lives>,
    waiters: Arc<Waiters>,
    outputs: Arc<Outputs>,
    runs: Arc<Runs>,
    shells: Arc<Shells>,
    cases: Arc<Cases>,
    questions: Arc<Questions>,
    life: Arc<Life>,
    /// Names that terminals are about to have.
    opening: Opening,
}

/// What [`Terminals`] stand on.
pub(crate) struct TerminalsNeeds {
    pub(crate) core: Arc<Core>,
    pub(crate) sandboxes: Arc<Sandboxes>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) pauses: Arc<Pauses>,
    pub(crate) lives: Arc<Lives>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) outputs: Arc<Outputs>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) shells: Arc<Shells>,
    pub(crate) cases: Arc<Cases>,
    pub(crate) questions: Arc<Questions>,
    pub(crate) life: Arc<Life>,
}

impl Terminals {
    pub(crate) fn new(needs: TerminalsNeeds) -> Self {
        let TerminalsNeeds {
            core,
            sandboxes,
            sessions,
            pauses,
            lives,
            waiters,
            outputs,
            runs,
            shells,
            cases,
            questions,
            life,
        } = needs;
        Self {
            opening: Opening::default(),
            core,
            sandboxes,
            sessions,
            pauses,
            lives,
            waiters,
            outputs,
            runs,
            shells,
            cases,
            questions,
            life,
        }
    }
}

impl Terminals {
    /// Types what is permitted, as long as somebody permits it.
    pub(crate) fn type_permitted(self: &Arc<Self>, mut to_type: mpsc::UnboundedReceiver<ToType>) {
        let terminals = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(ToType { terminal, run, who }) = to_type.recv().await {
                let Some(terminals) = terminals.upgrade() else {
                    return;
                };
                tokio::spawn(terminals.type_at(terminal, run, who));
            }
        });
    }

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
        self.life.run(request).await
    }

    /// Waits for the end of a terminal, at most for a time, and closes it.
    pub async fn see_through(
        &self,
        run: &Run,
        time: Duration,
        who: &Principal,
    ) -> Result<Run, Error> {
        let ended = self.runs.wait(run, Some(time)).await?;
        if ended.open && ended.ended_at.is_none() {
            self.close_terminal(run, who).await?;
        }
        self.runs.closed(run, CLOSE_WITHIN).await
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
    pub fn list(&self, session: Option<&str>, who: &Principal) -> Result<Vec<TerminalView>, Error> {
        let mut found = vec![];
        for run in self.runs.open_terminals()? {
            let wanted = session.is_none_or(|session| run.session_id.as_deref() == Some(session));
            if wanted && who.sees(&run.requested_by, run.sandbox_id.as_deref()) {
                found.push(self.terminal_view(run));
            }
        }
        Ok(found)
    }

    /// Ends a terminal and everything in it.
    pub async fn close_terminal(&self, run: &Run, who: &Principal) -> Result<(), Error> {
        let live = self.lives.get(&run.command_id);
        self.life.stop(run, who, false, GRACE).await?;
        if let Some(live) = live {
            // As when a line is cut: shells that ignore a polite request heed
            // this one.
            let _ = live.job.signal(HANG_UP).await;
        }
        Ok(())
    }

    fn terminal_named(&self, session: &str, name: &str) -> Result<Option<Run>, Error> {
        let mut all = self.runs.open_terminals()?.into_iter();
        Ok(all.find(|run| {
            let terminal = run.detail.terminal.as_ref();
            run.session_id.as_deref() == Some(session)
                && terminal.is_some_and(|terminal| terminal.name == name)
        }))
    }
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
