//! What every door calls.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::Semaphore;
use weighlock_exec::{Nursery, Status};
use weighlock_policy::Blacklist;
use weighlock_store::{Durability, Entry, Error as StoreError, Filter, Store, Verified};

use crate::blacklist::BlacklistFile;
use crate::clock::Clock;
use crate::config::Config;
use crate::env;
use crate::error::Error;
use crate::forgery::Forgery;
use crate::id::{self, Ids};
use crate::live::{Lives, lock};
use crate::login::Asked;
use crate::policy::Policy;
use crate::request::Principal;
use crate::sandbox::{self, Sandbox, is_too_wide};
use crate::view::{Load, Run};
use crate::walls::{Found, home};

/// The whole of weighlock below its doors.
pub struct Engine {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) store: Store,
    pub(crate) nursery: Nursery,
    pub(crate) ids: Ids,
    pub(crate) lives: Lives,
    /// One for each run that there may be at once.
    pub(crate) places: Arc<Semaphore>,
    /// Bytes of output on disk, of runs that have ended.
    pub(crate) kept: AtomicU64,
    /// Seconds after the start when old output was last looked for.
    pub(crate) aged_at: AtomicU64,
    pub(crate) server_env: Vec<(String, String)>,
    pub(crate) login: Asked,
    /// The server's own home directory.
    pub(crate) home: PathBuf,
    pub(crate) found: Found,
    pub(crate) forgery: Arc<Forgery>,
    pub(crate) policy: Policy,
    pub(crate) began: Instant,
    /// What the wall clock said then.
    pub(crate) began_at: i64,
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
        make_private(&config.state_dir.join("runs"))?;
        let lock = take(&config.state_dir)?;
        config.base = config.base.canonicalize().map_err(|error| {
            let base = config.base.display();
            Error::invalid(
                "bad_base",
                format!("cannot use {base} as base directory: {error}"),
                "give an existing directory with --base DIR",
            )
        })?;
        let home = home(&std::env::var("HOME").unwrap_or_default());
        config.sandboxes = resolved(config.sandboxes, &home)?;
        let policy = Policy::read(&config).map_err(|errors| Error::Rules { errors })?;
        weighlock_policy::load_knowledge();
        // Left by keepers that were killed.
        let swept = tokio::task::spawn_blocking(weighlock_confine::sweep_cgroups);
        let store = Store::open(&config.state_dir, config.durability)?;
        let newest = store.list(&Filter {
            limit: 1,
            ..Filter::default()
        })?;
        let places = config.max_running.min(Semaphore::MAX_PERMITS);
        let server_env = env::of_server(&config.env_allow);
        let engine = Arc::new(Self {
            // Answers while the rest is made ready.
            login: Asked::begin(config.login_path),
            kept: AtomicU64::new(store.kept_bytes()?),
            aged_at: AtomicU64::new(0),
            server_env,
            home,
            found: Found::default(),
            policy,
            forgery: Forgery::new(&config.base, &config.state_dir),
            config,
            began_at: clock.micros(),
            clock,
            store,
            nursery,
            ids: Ids::after(newest.first().map(|command| command.id.as_str())),
            lives: Lives::default(),
            places: Arc::new(Semaphore::new(places)),
            began: Instant::now(),
            _lock: lock,
        });
        engine.policy.set_grants(engine.stored_grants()?);
        engine.recover().await?;
        let _ = swept.await;
        engine.tidy().await?;
        Ok(engine)
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

    /// Returns what the engine was told at its start, resolved.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Finds a sandbox by its name; the default one without.
    pub(crate) fn sandbox(&self, name: Option<&str>) -> Result<&Sandbox, Error> {
        sandbox::find(&self.config.sandboxes, name)
    }

    /// Finds a run by its id, or by an unambiguous beginning of its short id.
    pub fn find(&self, id: &str) -> Result<Run, Error> {
        let mut found = self.store.named(id)?;
        match (found.pop(), found.pop()) {
            (None, _) => Err(Error::NoSuchRun { id: id.into() }),
            (Some(_), Some(_)) => Err(Error::Ambiguous { id: id.into() }),
            (Some(command), None) => Ok(self.freshen(Run::from_command(command))),
        }
    }

    /// Returns how many processes a run has now, and their resident memory.
    pub fn load(&self, run: &Run) -> Option<Load> {
        // One that has just ended may still be on its way out of `lives`.
        let live = self.lives.get(&run.command_id).filter(|_| run.open)?;
        let (processes, memory_bytes) = live.job.load();
        Some(Load {
            processes,
            memory_bytes,
        })
    }

    /// Lists runs, newest first.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Run>, Error> {
        let found = self.store.list(filter)?;
        Ok(found
            .into_iter()
            .map(|command| self.freshen(Run::from_command(command)))
            .collect())
    }

    /// Waits for a run to end, at most for a time, and returns it as it is
    /// then.
    pub async fn wait(&self, run: &Run, time: Option<Duration>) -> Result<Run, Error> {
        if let Some(live) = self.lives.get(&run.command_id) {
            let mut end = live.end.subscribe();
            let ended = end.wait_for(Option::is_some);
            let ended = match time {
                None => ended.await.ok(),
                Some(time) => match tokio::time::timeout(time, ended).await {
                    Ok(ended) => ended.ok(),
                    Err(_) => None,
                },
            };
            if let Some(run) = ended.and_then(|run| run.clone()) {
                return Ok(run);
            }
        }
        self.find(&run.command_id)
    }

    /// Waits until nothing of a run is left, at most for a time.
    pub async fn closed(&self, run: &Run, time: Duration) -> Result<Run, Error> {
        if let Some(live) = self.lives.get(&run.command_id) {
            let mut over = live.over.subscribe();
            let _ = tokio::time::timeout(time, over.wait_for(|&over| over)).await;
        }
        self.find(&run.command_id)
    }

    /// Asks a run to end: politely, and after the grace time by force.
    pub async fn stop(
        &self,
        run: &Run,
        by: &Principal,
        interrupt: bool,
        grace: Duration,
    ) -> Result<(), Error> {
        let ended = || Error::Ended {
            id: run.short_id.clone(),
        };
        let live = self.lives.get(&run.command_id).ok_or_else(ended)?;
        let entry = self.entry("run.stop", by.name(), Some(&run.command_id), json!({}));
        self.store.record(vec![entry]).await?;
        lock(&live.stopped_by).get_or_insert_with(|| by.name().to_owned());
        live.job.stop(interrupt, grace).await.map_err(|_| ended())
    }

    /// Hands input to a run that takes it.
    pub async fn feed(&self, run: &Run, bytes: &[u8], last: bool) -> Result<(), Error> {
        let ended = || Error::Ended {
            id: run.short_id.clone(),
        };
        let live = self.lives.get(&run.command_id).ok_or_else(ended)?;
        live.job.feed(bytes).await.map_err(|_| ended())?;
        if last {
            live.job.close_stdin().await.map_err(|_| ended())?;
        }
        Ok(())
    }

    /// Returns the blacklist in force.
    pub fn blacklist(&self) -> BlacklistFile {
        if self.forgery.is_forged() {
            return BlacklistFile::forged(&self.config.base);
        }
        BlacklistFile::load(&self.config.base)
    }

    /// Saves a blacklist of a person's own.
    pub async fn save_blacklist(&self, list: &Blacklist, by: &Principal) -> Result<(), Error> {
        let detail = json!({ "commandBlacklist": list.entries() });
        self.store
            .record(vec![self.entry("blacklist.saved", by.name(), None, detail)])
            .await?;
        self.trust(Some(list.to_json()))?;
        BlacklistFile::save(&self.config.base, list)
    }

    /// Goes back to the built-in blacklist.
    pub async fn reset_blacklist(&self, by: &Principal) -> Result<(), Error> {
        let entry = self.entry("blacklist.reset", by.name(), None, json!({}));
        self.store.record(vec![entry]).await?;
        self.trust(None)?;
        BlacklistFile::reset(&self.config.base)
    }

    fn trust(&self, saved: Option<String>) -> Result<(), Error> {
        self.forgery.trust(saved).map_err(|source| Error::File {
            path: self.forgery.dir().to_owned(),
            source,
        })
    }

    /// Checks the audit's chain.
    pub fn verify(&self) -> Result<Verified, Error> {
        Ok(self.store.verify()?)
    }

    /// Writes the whole audit as JSON Lines and returns how many entries.
    pub fn export(&self, to: &mut impl Write) -> Result<u64, Error> {
        Ok(self.store.export(to)?)
    }

    /// Returns the audit entries of a run, oldest first.
    pub fn entries_of(&self, run: &Run) -> Result<Vec<serde_json::Value>, Error> {
        Ok(self.store.entries_of(&run.command_id)?)
    }

    /// Makes a token for the TCP door and returns it; only its hash is kept.
    pub async fn new_token(&self, owner: &Principal) -> Result<String, Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).expect("the kernel has randomness");
        let token = format!("wl_{}", hex(&secret));
        let prefix = token[..9].to_owned();
        let entry = self.entry(
            "token.created",
            owner.name(),
            None,
            json!({ "prefix": prefix }),
        );
        self.store
            .add_token(token_hash(&token), prefix, owner.name().into(), entry)
            .await?;
        Ok(token)
    }

    /// Returns whether there is a token yet.
    pub fn has_token(&self) -> Result<bool, Error> {
        Ok(self.store.has_tokens()?)
    }

    /// Returns whom a token stands for.
    pub fn token_owner(&self, token: &str) -> Result<Option<Principal>, Error> {
        let owner = self.store.token_owner(&token_hash(token))?;
        Ok(owner.map(Principal::named))
    }

    /// Writes down that the server ends; runs go on.
    pub async fn close(&self) -> Result<(), Error> {
        self.forgery.rest();
        let detail = json!({ "running": self.lives.count() });
        let entry = self.entry("server.stopped", "weighlock", None, detail);
        Ok(self.store.record(vec![entry]).await?)
    }

    /// The directory of a run's files.
    pub(crate) fn dir_of(&self, id: &str) -> PathBuf {
        self.config
            .state_dir
            .join("runs")
            .join(id::day(id).to_string())
            .join(id)
    }

    pub(crate) fn entry(
        &self,
        kind: &'static str,
        actor: &str,
        run: Option<&str>,
        detail: serde_json::Value,
    ) -> Entry {
        Entry {
            time: self.clock.micros(),
            kind,
            actor: actor.to_owned(),
            run: run.map(str::to_owned),
            detail,
        }
    }

    /// Adds what the store does not have while a run is under way.
    fn freshen(&self, mut run: Run) -> Run {
        if let Some(live) = self.lives.get(&run.command_id) {
            run.detail.output.learn(&live.job.status().output);
        }
        run
    }
}

fn token_hash(token: &str) -> String {
    use sha2::{Digest, Sha256};
    hex(&Sha256::digest(token.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
    if !all.iter().any(|sandbox| sandbox.name == sandbox::DEFAULT) {
        all.insert(0, Sandbox::new(sandbox::DEFAULT));
    }
    Ok(all)
}

/// Makes a directory that only its owner may look into.
fn make_private(dir: &Path) -> Result<(), Error> {
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
    make().map_err(|source| Error::File {
        path: dir.to_owned(),
        source,
    })
}

fn take(dir: &Path) -> Result<File, Error> {
    let path = dir.join("lock");
    let file = |source| Error::File {
        path: path.clone(),
        source,
    };
    let mut lock = File::options()
        .create(true)
        .write(true)
        .truncate(false)
        .open(&path)
        .map_err(file)?;
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
