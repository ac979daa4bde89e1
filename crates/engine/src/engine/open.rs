//! Makes the parts of the engine, each from those that it stands on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::mpsc;
use weighlock_backup::{Archiver, finish_restore};
use weighlock_exec::Nursery;
use weighlock_notify::Notifier;
use weighlock_store::{Clock, Store};
use weighlock_walls::{
    DEFAULT_SANDBOX, Sandbox, WallSettings, Walls, inherit_variables, is_too_wide, resolve_home,
};

use super::Engine;
use crate::audit::Audit;
use crate::backups::{Backups, BackupsNeeds};
use crate::case::{Cases, CasesNeeds};
use crate::config::Config;
use crate::copied::held_layers;
use crate::copies::{Copies, CopiesNeeds};
use crate::core::Core;
use crate::directory::WebhookDirectory;
use crate::drafts::{Drafts, DraftsNeeds};
use crate::error::Error;
use crate::health::{Doctor, DoctorNeeds};
use crate::inbox::{Inbox, InboxNeeds};
use crate::life::{Life, LifeNeeds, ToType};
use crate::limits::RuntimeLimits;
use crate::live::Lives;
use crate::measures::Measures;
use crate::output::Outputs;
use crate::pause::Pauses;
use crate::people::People;
use crate::policy::Policy;
use crate::questions::{Questions, QuestionsNeeds};
use crate::recordings::Recordings;
use crate::retention::Retention;
use crate::rules::{Below, Rules};
use crate::runs::{Runs, Waiters};
use crate::sandboxes::{Sandboxes, private_dirs};
use crate::session::Sessions;
use crate::shells::Shells;
use crate::state_dir::{make_private, take};
use crate::terminals::{Terminals, TerminalsNeeds};
use crate::traces::Tracer;
use crate::webhooks::{Webhooks, WebhooksNeeds};

/// An engine that has not settled yet what an earlier one left.
pub(super) struct Opened {
    pub(super) engine: Engine,
    /// Commands that are to be typed at terminals.
    pub(super) to_type: mpsc::UnboundedReceiver<ToType>,
    /// Ends when the control groups of keepers that were killed are gone.
    pub(super) swept: tokio::task::JoinHandle<()>,
}

/// Opens a state directory, and makes the parts.
pub(super) async fn open(
    mut config: Config,
    clock: Clock,
    nursery: Nursery,
) -> Result<Opened, Error> {
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
    let core = Arc::new(Core::new(config, clock, store, lock)?);
    // The login shell answers while the rest is made ready.
    let walls = Arc::new(Walls::new(wall_settings(&core.config, home)));
    let (to_type, permitted) = mpsc::unbounded_channel();
    let engine = assemble(core, walls, policy, Arc::new(nursery), to_type).await?;
    Ok(Opened {
        engine,
        to_type: permitted,
        swept,
    })
}

/// Makes the parts, from the bottom up.
async fn assemble(
    core: Arc<Core>,
    walls: Arc<Walls>,
    policy: Policy,
    nursery: Arc<Nursery>,
    to_type: mpsc::UnboundedSender<ToType>,
) -> Result<Engine, Error> {
    let sandboxes = Arc::new(Sandboxes::open(core.clone(), walls.clone())?);
    let pauses = Arc::new(Pauses::open(core.clone())?);
    let sessions = Arc::new(Sessions::new(core.clone(), sandboxes.clone()));
    let rules = Arc::new(Rules::open(
        policy,
        Below {
            core: core.clone(),
            walls: walls.clone(),
            sandboxes: sandboxes.clone(),
            sessions: sessions.clone(),
            held_layers,
        },
    )?);
    let archiver = open_archiver(&core);
    let notifier = open_notifier(&core, &sandboxes)?;
    let limits = Arc::new(RuntimeLimits::open(core.clone())?);
    let people = People::open(core.clone(), sandboxes.clone(), pauses.clone()).await?;
    let audit = Arc::new(Audit::new(core.clone(), notifier.clone()));
    let measures = Arc::<Measures>::default();
    let tracer = Arc::new(Tracer::new(core.clone()));
    let lives = Arc::<Lives>::default();
    let waiters = Arc::<Waiters>::default();
    let outputs = Arc::new(Outputs::new(core.clone(), lives.clone()));
    let recordings = Arc::new(Recordings::new(core.clone()));
    let runs = Arc::new(Runs::new(
        core.clone(),
        sandboxes.clone(),
        lives.clone(),
        outputs.clone(),
        waiters.clone(),
    ));
    let shells = Arc::new(Shells::new(core.clone(), lives.clone(), outputs.clone()));
    let retention = Arc::new(Retention::open(
        core.clone(),
        limits.clone(),
        lives.clone(),
        runs.clone(),
        shells.clone(),
    )?);
    let cases = Arc::new(Cases::new(CasesNeeds {
        core: core.clone(),
        walls: walls.clone(),
        limits: limits.clone(),
        sandboxes: sandboxes.clone(),
        sessions: sessions.clone(),
        rules: rules.clone(),
    }));
    let questions = Arc::new(Questions::new(QuestionsNeeds {
        core: core.clone(),
        limits: limits.clone(),
        sandboxes: sandboxes.clone(),
        sessions: sessions.clone(),
        waiters: waiters.clone(),
        runs: runs.clone(),
        cases: cases.clone(),
    }));
    let copies = Arc::new(Copies::new(CopiesNeeds {
        core: core.clone(),
        nursery: nursery.clone(),
        walls: walls.clone(),
        lives: lives.clone(),
    }));
    let drafts = Arc::new(Drafts::new(DraftsNeeds {
        core: core.clone(),
        copies: copies.clone(),
        walls: walls.clone(),
        limits: limits.clone(),
        sandboxes: sandboxes.clone(),
        pauses: pauses.clone(),
        rules: rules.clone(),
        tracer: tracer.clone(),
        archiver: archiver.clone(),
        lives: lives.clone(),
        waiters: waiters.clone(),
        runs: runs.clone(),
        retention: retention.clone(),
        cases: cases.clone(),
        questions: questions.clone(),
    }));
    let life = Arc::new(Life::new(LifeNeeds {
        core: core.clone(),
        nursery: nursery.clone(),
        walls: walls.clone(),
        limits: limits.clone(),
        sandboxes: sandboxes.clone(),
        sessions: sessions.clone(),
        pauses: pauses.clone(),
        rules: rules.clone(),
        tracer: tracer.clone(),
        measures: measures.clone(),
        archiver: archiver.clone(),
        recordings: recordings.clone(),
        lives: lives.clone(),
        waiters: waiters.clone(),
        runs: runs.clone(),
        shells: shells.clone(),
        retention: retention.clone(),
        cases: cases.clone(),
        questions: questions.clone(),
        copies: copies.clone(),
        drafts: drafts.clone(),
        to_type,
    }));
    let inbox = Arc::new(Inbox::new(InboxNeeds {
        core: core.clone(),
        limits: limits.clone(),
        pauses: pauses.clone(),
        rules: rules.clone(),
        archiver: archiver.clone(),
        waiters: waiters.clone(),
        runs: runs.clone(),
        cases: cases.clone(),
        questions: questions.clone(),
        copies: copies.clone(),
        drafts: drafts.clone(),
        life: life.clone(),
    }));
    let terminals = Arc::new(Terminals::new(TerminalsNeeds {
        core: core.clone(),
        sandboxes: sandboxes.clone(),
        sessions: sessions.clone(),
        pauses: pauses.clone(),
        lives: lives.clone(),
        waiters,
        outputs: outputs.clone(),
        runs: runs.clone(),
        shells,
        cases: cases.clone(),
        questions: questions.clone(),
        life: life.clone(),
    }));
    let backups = Backups::new(BackupsNeeds {
        core: core.clone(),
        walls: walls.clone(),
        sandboxes: sandboxes.clone(),
        archiver: archiver.clone(),
    });
    let webhooks = Arc::new(Webhooks::new(WebhooksNeeds {
        core: core.clone(),
        sandboxes: sandboxes.clone(),
        notifier,
    }));
    let doctor = Arc::new(Doctor::new(DoctorNeeds {
        core: core.clone(),
        nursery: nursery.clone(),
        walls: walls.clone(),
        limits: limits.clone(),
        sandboxes: sandboxes.clone(),
        rules: rules.clone(),
        cases,
        tracer: tracer.clone(),
        measures: measures.clone(),
        archiver: archiver.clone(),
        audit: audit.clone(),
        lives: lives.clone(),
        retention: retention.clone(),
        copies: copies.clone(),
        life: life.clone(),
        webhooks: webhooks.clone(),
    }));
    Ok(Engine {
        core,
        nursery,
        walls,
        archiver,
        measures,
        lives,
        questions,
        audit,
        tracer,
        people,
        sandboxes,
        pauses,
        sessions,
        rules,
        limits,
        outputs,
        recordings,
        runs,
        retention,
        drafts,
        life,
        inbox,
        terminals,
        backups,
        webhooks,
        doctor,
    })
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
