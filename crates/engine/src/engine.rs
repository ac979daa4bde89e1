//! What every door calls.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde_json::json;
use weighlock_backup::{Archiver, finish_restore};
use weighlock_exec::{Nursery, Status};
use weighlock_notify::Notifier;
use weighlock_store::{Clock, Durability, Error as StoreError, Store};
use weighlock_walls::{
    DEFAULT_SANDBOX, Sandbox, WallSettings, Walls, inherit_variables, is_too_wide, resolve_home,
};

use crate::attend::Left;
use crate::audit::Audit;
use crate::config::Config;
use crate::core::Core;
use crate::directory::WebhookDirectory;
use crate::effects::{Coming, LookedAt, held_layers};
use crate::error::Error;
use crate::inbox::{Deadlines, Waiters};
use crate::limits::RuntimeLimits;
use crate::live::Lives;
use crate::measures::Measures;
use crate::output::Outputs;
use crate::pause::Pauses;
use crate::people::People;
use crate::policy::Policy;
use crate::recordings::Recordings;
use crate::rules::{Below, Rules};
use crate::sandboxes::{Sandboxes, private_dirs};
use crate::session::Sessions;
use crate::shares::Shares;
use crate::tasks::ReadTo;
use crate::terminals::Opening;
use crate::traces::Tracer;

/// The whole of weighlock below its doors.
pub struct Engine {
    pub(crate) core: Arc<Core>,
    audit: Audit,
    pub(crate) nursery: Nursery,
    pub(crate) lives: Arc<Lives>,
    pub(crate) outputs: Arc<Outputs>,
    pub(crate) recordings: Recordings,
    /// One for each run that there may be at once.
    pub(crate) places: Arc<Shares>,
    /// Bytes of output on disk, of runs that have ended.
    pub(crate) kept: AtomicU64,
    /// Seconds after the start when old output was last looked for.
    pub(crate) aged_at: AtomicU64,
    /// Held while output is removed.
    pub(crate) tidying: tokio::sync::Mutex<()>,
    pub(crate) walls: Arc<Walls>,
    pub(crate) rules: Rules,
    pub(crate) limits: RuntimeLimits,
    pub(crate) sandboxes: Arc<Sandboxes>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) pauses: Arc<Pauses>,
    people: People,
    pub(crate) waiters: Waiters,
    /// Held while the report of a requester is taken.
    pub(crate) finalizing: tokio::sync::Mutex<()>,
    /// Held while changes are applied.
    pub(crate) committing: tokio::sync::Mutex<()>,
    /// Makes backups. [`Archiver::hold_files`] is called before `committing` is
    /// locked.
    pub(crate) archiver: Arc<Archiver>,
    pub(crate) coming: Coming,
    pub(crate) read_to: ReadTo,
    /// Runs whose client has disconnected.
    pub(crate) left: Left,
    /// Names that terminals are about to have.
    pub(crate) opening: Opening,
    pub(crate) looked_at: LookedAt,
    pub(crate) deadlines: Arc<Deadlines>,
    /// Notifies people through webhooks.
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) measures: Arc<Measures>,
    pub(crate) tracer: Arc<Tracer>,
    /// Held as long as we live: one engine for one state directory.
    _lock: File,
}

impl Engine {
    /// Opens a state directory, makes it ready, and settles what an earlier
    /// engine left unfinished there.
    pub async fn open(
        mut config: Config,
        clock: Clock,
        nursery: Nursery,
    ) -> Result<Arc<Self>, Error> {
        make_private(&config.state_dir)?;
        let lock = take(&config.state_dir)?;
        finish_restore(&config.state_dir)?;
        for dir in ["runs", "layers", "undo", "tasks", "recordings"] {
            make_private(&config.state_dir.join(dir))?;
        }
        config.base = resolve_base(&config.base)?;
        let home = resolve_home(&std::env::var("HOME").unwrap_or_default());
        config.sandboxes = resolved(config.sandboxes, &home)?;
        let policy = Policy::read(&config).map_err(|errors| Error::Rules { errors })?;
        weighlock_policy::load_knowledge();
        // Left by keepers that were killed.
        let swept = tokio::task::spawn_blocking(weighlock_confine::sweep_cgroups);
        let store = Arc::new(Store::open(&config.state_dir, config.durability)?);
        let core = Arc::new(Core::new(config, clock, store)?);
        let config = &core.config;
        // The login shell answers while the rest is made ready.
        let walls = Arc::new(Walls::new(wall_settings(config, home)));
        let sandboxes = Sandboxes::open(Arc::clone(&core), Arc::clone(&walls))?;
        let sandboxes = Arc::new(sandboxes);
        let pauses = Arc::new(Pauses::open(Arc::clone(&core))?);
        let sessions = Sessions::new(Arc::clone(&core), Arc::clone(&sandboxes));
        let sessions = Arc::new(sessions);
        let below = Below {
            core: Arc::clone(&core),
            walls: Arc::clone(&walls),
            sandboxes: Arc::clone(&sandboxes),
            sessions: Arc::clone(&sessions),
            held_layers,
        };
        let rules = Rules::open(policy, below)?;
        let archiver = open_archiver(&core);
        let notifier = open_notifier(&core, &sandboxes)?;
        let lives = Arc::new(Lives::default());
        let engine = Arc::new(Self {
            walls,
            kept: AtomicU64::new(core.store.kept_bytes()?),
            aged_at: AtomicU64::new(0),
            tidying: tokio::sync::Mutex::default(),
            rules,
            limits: RuntimeLimits::open(Arc::clone(&core))?,
            sessions,
            people: People::open(
                Arc::clone(&core),
                Arc::clone(&sandboxes),
                Arc::clone(&pauses),
            )
            .await?,
            sandboxes,
            pauses,
            waiters: Waiters::default(),
            finalizing: tokio::sync::Mutex::default(),
            committing: tokio::sync::Mutex::default(),
            archiver,
            coming: Coming::default(),
            read_to: ReadTo::default(),
            left: Left::default(),
            opening: Opening::default(),
            looked_at: LookedAt::default(),
            deadlines: Arc::default(),
            audit: Audit::new(Arc::clone(&core), Arc::clone(&notifier)),
            notifier,
            measures: Arc::default(),
            tracer: Arc::new(Tracer::new(Arc::clone(&core))),
            places: Shares::new("runs", config.max_running),
            nursery,
            outputs: Arc::new(Outputs::new(Arc::clone(&core), Arc::clone(&lives))),
            recordings: Recordings::new(Arc::clone(&core)),
            lives,
            core,
            _lock: lock,
        });
        engine.settle_unfinished().await?;
        let _ = swept.await;
        engine.tidy().await?;
        Ok(engine)
    }

    /// Settles what an earlier engine left unfinished.
    async fn settle_unfinished(self: &Arc<Self>) -> Result<(), Error> {
        self.read_deadlines()?;
        self.begin_counting()?;
        self.tracer.begin();
        self.recover().await?;
        self.put_away_left();
        self.forget_unrecorded();
        self.recover_held().await?;
        self.settle_typed().await?;
        self.begin_unbegun().await?;
        self.watch_deadlines();
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

    /// Returns who there is.
    pub fn people(&self) -> &People {
        &self.people
    }

    /// Returns the sandboxes.
    pub fn sandboxes(&self) -> &Sandboxes {
        &self.sandboxes
    }

    /// Returns the pauses in force.
    pub fn pauses(&self) -> &Pauses {
        &self.pauses
    }

    /// Returns the sessions.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Returns the rules in force.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the limits that administrators set while the server runs.
    pub fn limits(&self) -> &RuntimeLimits {
        &self.limits
    }

    /// Returns the part of the engine that reads what runs said.
    pub fn outputs(&self) -> &Arc<Outputs> {
        &self.outputs
    }

    /// Returns the part of the engine that makes recordings of runs.
    pub fn recordings(&self) -> &Recordings {
        &self.recordings
    }

    /// Returns the part of the engine that reads the audit.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Returns the part of the engine that makes spans for traces.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
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
        Ok(self.core.store.record(vec![entry]).await?)
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

/// Resolves the base directory, which must exist.
fn resolve_base(base: &Path) -> Result<PathBuf, Error> {
    base.canonicalize().map_err(|error| {
        let base = base.display();
        Error::invalid(
            "bad_base",
            format!("cannot use {base} as base directory: {error}"),
            "give an existing directory with --base DIR",
        )
    })
}

/// Opens what makes backups of the state directory, the settings and the rules.
fn open_archiver(core: &Core) -> Arc<Archiver> {
    let config = &core.config;
    let files = config.settings_file.iter().chain(&config.policy.rules);
    Archiver::new(
        config.state_dir.clone(),
        Arc::clone(&core.store),
        core.clock.clone(),
        files.cloned().collect(),
    )
}

/// Opens what notifies people through webhooks.
fn open_notifier(core: &Core, sandboxes: &Arc<Sandboxes>) -> Result<Arc<Notifier>, Error> {
    let directory = WebhookDirectory {
        store: Arc::clone(&core.store),
        sandboxes: Arc::clone(sandboxes),
    };
    let store = Arc::clone(&core.store);
    let clock = core.clock.clone();
    let directory = Arc::new(directory);
    Ok(Notifier::open(store, clock, directory, core.config.notify)?)
}

/// Returns what walls depend on.
fn wall_settings(config: &Config, home: PathBuf) -> WallSettings {
    WallSettings {
        base: config.base.clone(),
        state_dir: config.state_dir.clone(),
        home,
        hidden: config.hidden.clone(),
        secret_files: config.secret_files.clone(),
        private_dirs: private_dirs(config),
        server_env: inherit_variables(&config.env_allow),
        asks_login_shell: config.login_path,
    }
}

/// Resolves the directories of sandboxes, and makes sure that there is a
/// default one.
fn resolved(mut all: Vec<Sandbox>, home: &Path) -> Result<Vec<Sandbox>, Error> {
    for sandbox in &mut all {
        let Some(dir) = &mut sandbox.directory else {
            continue;
        };
        let bad = |why: &str| {
            Error::invalid(
                "bad_sandbox",
                format!("sandbox `{}`: {} {why}", sandbox.name, dir.display()),
                "give the directory of a project",
            )
        };
        let found = dir
            .canonicalize()
            .map_err(|error| bad(&format!("cannot be used: {error}")))?;
        if is_too_wide(&found, home) {
            return Err(bad(
                "is, or holds, a part of the system or the home directory",
            ));
        }
        *dir = found;
    }
    if !all.iter().any(|sandbox| sandbox.name == DEFAULT_SANDBOX) {
        all.insert(0, Sandbox::built_in());
    }
    Ok(all)
}

/// Makes a directory that only its owner may look into.
pub(crate) fn make_private(dir: &Path) -> Result<(), Error> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
    let make = || {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)?;
        let found = fs::metadata(dir)?;
        if found.uid() != rustix::process::geteuid().as_raw() {
            // Ours would lock its owner out.
            let why = "it belongs to another user";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let mode = found.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
        }
        Ok(())
    };
    make().map_err(Error::file(dir))
}

/// Takes a state directory for ourselves, for as long as what is returned is
/// kept.
pub(crate) fn take(dir: &Path) -> Result<File, Error> {
    let path = dir.join("lock");
    let file = Error::file(&path);
    let mut lock = File::options()
        .create(true)
        .write(true)
        .truncate(false)
        .open(&path)
        .map_err(&file)?;
    match lock.try_lock() {
        Ok(()) => {
            // For people; the lock itself is what counts.
            let pid = format!("{:<10}\n", std::process::id());
            let _ = lock.write_all(pid.as_bytes());
            Ok(lock)
        }
        Err(TryLockError::WouldBlock) => Err(Error::Taken {
            dir: dir.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(file(source)),
    }
}
