//! What every door calls.

mod open;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use weighlock_backup::Archiver;
use weighlock_exec::{Nursery, Status};
use weighlock_store::{Clock, Durability, Error as StoreError, Store};
use weighlock_walls::Walls;

use self::open::Opened;
use crate::audit::Audit;
use crate::backups::Backups;
use crate::config::Config;
use crate::core::Core;
use crate::drafts::Drafts;
use crate::error::Error;
use crate::health::Doctor;
use crate::inbox::Inbox;
use crate::inside::{self, Process};
use crate::life::Life;
use crate::limits::RuntimeLimits;
use crate::live::Lives;
use crate::measures::Measures;
use crate::output::Outputs;
use crate::pause::Pauses;
use crate::people::People;
use crate::principal::Principal;
use crate::questions::Questions;
use crate::recordings::Recordings;
use crate::request::Request;
use crate::retention::Retention;
use crate::rules::Rules;
use crate::runs::{Outcome, Runs};
use crate::sandboxes::Sandboxes;
use crate::session::Sessions;
use crate::state_dir::{make_private, take};
use crate::terminals::Terminals;
use crate::traces::Tracer;
use crate::webhooks::Webhooks;

/// The whole of weighlock below its doors: it runs commands, and has a part for
/// everything else. Each part owns its fields and knows only those above it in
/// this table:
///
/// | part | for |
/// |---|---|
/// | [`Engine::audit`], [`Engine::tracer`] | what happened |
/// | [`Engine::limits`] | limits that administrators change |
/// | [`Engine::pauses`] | who is paused |
/// | [`Engine::sandboxes`] | directories, and how they are guarded |
/// | [`Engine::people`] | people, agents, tokens, sign-in |
/// | [`Engine::sessions`] | which requests belong together |
/// | [`Engine::rules`] | verdicts, rule files, grants, the blacklist |
/// | [`Engine::outputs`], [`Engine::recordings`] | what runs said and showed |
/// | [`Engine::runs`] | finding runs, and waiting for them |
/// | [`Engine::retention`] | how much is kept |
/// | [`Engine::drafts`] | what runs changed on copies |
/// | [`Engine::life`] | running commands, and stopping them |
/// | [`Engine::inbox`] | questions and answers |
/// | [`Engine::terminals`] | commands that somebody types at |
/// | [`Engine::backups`], [`Engine::webhooks`], [`Engine::doctor`] | looking after it |
pub struct Engine {
    core: Arc<Core>,
    nursery: Arc<Nursery>,
    walls: Arc<Walls>,
    archiver: Arc<Archiver>,
    measures: Arc<Measures>,
    lives: Arc<Lives>,
    questions: Arc<Questions>,
    audit: Arc<Audit>,
    tracer: Arc<Tracer>,
    people: People,
    sandboxes: Arc<Sandboxes>,
    pauses: Arc<Pauses>,
    sessions: Arc<Sessions>,
    rules: Arc<Rules>,
    limits: Arc<RuntimeLimits>,
    outputs: Arc<Outputs>,
    recordings: Arc<Recordings>,
    runs: Arc<Runs>,
    retention: Arc<Retention>,
    drafts: Arc<Drafts>,
    life: Arc<Life>,
    inbox: Arc<Inbox>,
    terminals: Arc<Terminals>,
    backups: Backups,
    webhooks: Arc<Webhooks>,
    doctor: Arc<Doctor>,
}

impl Engine {
    /// Opens a state directory, makes it ready, and settles what an earlier
    /// engine left unfinished there.
    pub async fn open(config: Config, clock: Clock, nursery: Nursery) -> Result<Arc<Self>, Error> {
        let Opened {
            engine,
            to_type,
            swept,
        } = open::open(config, clock, nursery).await?;
        engine.terminals.type_permitted(to_type);
        engine.settle_unfinished().await?;
        let _ = swept.await;
        engine.life.tidy().await?;
        Ok(Arc::new(engine))
    }

    /// Settles what an earlier engine left unfinished.
    async fn settle_unfinished(&self) -> Result<(), Error> {
        self.questions.read_deadlines()?;
        self.begin_counting()?;
        self.tracer.begin();
        self.life.recover().await?;
        self.life.put_away_left();
        self.drafts.forget_unrecorded();
        self.drafts.recover_held().await?;
        self.terminals.settle_typed().await?;
        self.life.begin_unbegun().await?;
        self.questions.watch_deadlines();
        Ok(())
    }

    /// Moves a damaged database aside, so that the next engine begins anew,
    /// and returns where it went; `None` when it is not damaged. Runs that only
    /// the old one knew are ended. Not while another engine uses it.
    pub fn set_aside(state_dir: &Path, stamp: &str) -> Result<Option<PathBuf>, Error> {
        make_private(state_dir)?;
        let _lock = take(state_dir)?;
        match Store::open(state_dir, Durability::Process) {
            Ok(_) => return Ok(None),
            Err(StoreError::Corrupt { .. } | StoreError::Vanished { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        end_unknown_runs(&state_dir.join("runs"));
        Ok(Some(Store::set_aside(state_dir, stamp)?))
    }

    /// Returns whether an engine of another process uses a state directory.
    pub fn is_in_use(state_dir: &Path) -> bool {
        matches!(take(state_dir), Err(Error::Taken { .. }))
    }

    /// Returns what the engine was told at its start, resolved.
    pub fn config(&self) -> &Config {
        &self.core.config
    }

    /// Runs one command and leaves a record, whatever happens.
    ///
    /// Dropping the future does not stop the run: once started, it goes on
    /// under its keeper and is recorded.
    pub async fn run(&self, request: Request) -> Result<Outcome, Error> {
        self.life.run(request).await
    }

    /// Returns the part of the engine that reads the audit.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Returns the part of the engine that makes spans for traces.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Returns the limits that administrators set while the server runs.
    pub fn limits(&self) -> &RuntimeLimits {
        &self.limits
    }

    /// Returns the pauses in force.
    pub fn pauses(&self) -> &Pauses {
        &self.pauses
    }

    /// Returns the sandboxes.
    pub fn sandboxes(&self) -> &Sandboxes {
        &self.sandboxes
    }

    /// Returns who there is.
    pub fn people(&self) -> &People {
        &self.people
    }

    /// Returns the sessions.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Returns the rules in force.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the part of the engine that reads what runs said.
    pub fn outputs(&self) -> &Arc<Outputs> {
        &self.outputs
    }

    /// Returns the part of the engine that makes recordings of runs.
    pub fn recordings(&self) -> &Recordings {
        &self.recordings
    }

    /// Returns the part of the engine that finds runs and waits for them.
    pub fn runs(&self) -> &Arc<Runs> {
        &self.runs
    }

    /// Returns the part of the engine that keeps output within bounds.
    pub fn retention(&self) -> &Retention {
        &self.retention
    }

    /// Returns the part of the engine that keeps what runs changed on copies.
    pub fn drafts(&self) -> &Arc<Drafts> {
        &self.drafts
    }

    /// Returns the part of the engine that starts runs and sees them to their end.
    pub fn life(&self) -> &Arc<Life> {
        &self.life
    }

    /// Returns the part of the engine that asks people and takes their answers.
    pub fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// Returns the part of the engine that opens terminals and types at them.
    pub fn terminals(&self) -> &Arc<Terminals> {
        &self.terminals
    }

    /// Returns the part of the engine that makes backups.
    pub fn backups(&self) -> &Backups {
        &self.backups
    }

    /// Returns the part of the engine that manages webhooks and delivers to
    /// them.
    pub fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }

    /// Returns the part of the engine that says how it and its machine are.
    pub fn doctor(&self) -> &Arc<Doctor> {
        &self.doctor
    }

    /// Returns whether a process may be inside a run of weighlock. One that is
    /// gone may have handed its connection to a child in there, and so may one
    /// that nobody can see from here.
    pub fn may_be_inside(&self, process: Option<Process>) -> bool {
        inside::may_be_inside(process, self.nursery.word())
    }

    /// Refuses to let a run decide, and writes it down.
    pub async fn refuse_inside(&self, what: &str, who: &Principal) -> Error {
        let _ = self.core.refuse_agent(what, None, who).await;
        Error::Inside
    }

    /// Begins to count, if the settings say so.
    fn begin_counting(&self) -> Result<(), Error> {
        if !self.core.config.metrics {
            return Ok(());
        }
        let last_backup = self.archiver.last_made()?;
        self.measures.begin(&self.core.store, last_backup)
    }

    /// Writes down that the server ends; runs go on.
    pub async fn close(&self) -> Result<(), Error> {
        self.walls.blacklist().remove_mark();
        self.archiver.cancel().await;
        let detail = json!({ "running": self.lives.count() });
        let entry = self.core.entry("server.stopped", "weighlock", None, detail);
        Ok(self.core.store.audit().record(vec![entry]).await?)
    }
}

/// Ends every keeper that still lives, and with it everything inside. Its
/// directory stays, with the output there was.
fn end_unknown_runs(runs: &Path) {
    let below = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().flatten();
    let dirs = below(runs.to_owned()).flat_map(|day| below(day.path()));
    for dir in dirs {
        if let Ok(Some(status)) = Status::load(&dir.path()) {
            status.keeper.end();
        }
    }
}
