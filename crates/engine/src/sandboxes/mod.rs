//! All sandboxes: those of the settings, those of the store, and the private
//! directories of preset `multi-user`.

mod change;
mod folders;
mod guard;

use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_confine::{Access, FileId};
use weighlock_policy::{Layer, Preset};
use weighlock_store::SandboxRow;
use weighlock_walls::{
    DEFAULT_SANDBOX, Error as WallsError, Review, Sandbox, SandboxSource, Walls, WorkDir,
    is_too_wide,
};

use self::change::{Body, bad};
pub use self::change::{NewSandbox, SandboxPatch};
pub use self::folders::{Folder, FolderView};
pub use self::guard::{Files, Guard, LimitsInfo};
use crate::config::Config;
use crate::core::Core;
use crate::error::{Error, brief};
use crate::mutex::lock;
use crate::policy;
use crate::principal::Principal;
use crate::time;
use crate::view::{Detail, SandboxView};

/// What holds the private directories, below the base directory.
const PRIVATE: &str = "user_data";

/// The user who owns what nobody owns.
const NOBODY: u32 = 65534;

/// A sandbox together with the rules that it adds.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) layers: Vec<Arc<Layer>>,
    version: i64,
    created_at: i64,
    updated_at: i64,
}

/// All sandboxes: who may use which, and what each is; see
/// [`Engine::sandboxes`](crate::Engine::sandboxes).
pub struct Sandboxes {
    core: Arc<Core>,
    walls: Arc<Walls>,
    known: Mutex<Arc<Vec<Known>>>,
}

/// A sandbox as doors show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxInfo {
    /// Never changes.
    pub sandbox_id: String,
    /// Whose it is.
    pub owner_principal_id: Option<String>,
    /// What people call it.
    pub label: String,
    /// Commands run there or below.
    pub path: String,
    /// New runs are taken.
    pub is_active: bool,
    /// `settings` (only the configuration file changes it), `built-in` where
    /// that says nothing about it, `store`, or `private` for the directory of
    /// one principal.
    pub source: String,
    /// What is to be known before it is used: that it holds more than a
    /// project, and what to do about that.
    #[serde(default)]
    pub warning: Option<String>,
    /// How it is guarded.
    #[serde(flatten)]
    pub guard: Guard,
    /// Grows with each change; the `ETag` of it.
    pub version: i64,
    /// When it was made; absent for one of the settings.
    pub created_at: Option<String>,
    /// When it was changed last.
    pub updated_at: Option<String>,
}

impl Sandboxes {
    /// Returns the name of a sandbox; its id if it is gone.
    pub(crate) fn name_of(&self, id: &str) -> String {
        let all = self.all();
        let known = all.iter().find(|known| is_called(known, id));
        known.map_or_else(|| id.to_owned(), |known| known.sandbox.name.clone())
    }

    /// Reads the sandboxes of the settings and of the store.
    pub(crate) fn open(core: Arc<Core>, walls: Arc<Walls>) -> Result<Self, Error> {
        let known = core.config.sandboxes.iter().map(Known::of_settings);
        let known = Mutex::new(Arc::new(known.collect()));
        let sandboxes = Self { core, walls, known };
        sandboxes.reload()?;
        Ok(sandboxes)
    }

    pub(crate) fn all(&self) -> Arc<Vec<Known>> {
        Arc::clone(&lock(&self.known))
    }

    /// Puts what the store has behind what the settings have.
    fn set(&self, stored: impl Iterator<Item = Known>) {
        let mut all = lock(&self.known);
        let settings = all.iter().filter(|known| {
            matches!(
                known.sandbox.source,
                SandboxSource::Settings | SandboxSource::BuiltIn
            )
        });
        *all = Arc::new(settings.cloned().chain(stored).collect());
    }
}

impl Known {
    fn of_settings(sandbox: &Sandbox) -> Self {
        Self {
            sandbox: Arc::new(sandbox.clone()),
            layers: vec![],
            version: 1,
            created_at: 0,
            updated_at: 0,
        }
    }
}

impl Sandboxes {
    /// Reads the store's sandboxes again.
    fn reload(&self) -> Result<(), Error> {
        let mut known = vec![];
        for row in self.core.store.sandboxes()? {
            let id = row.id.clone();
            match self.read_row(row) {
                Ok(one) => known.push(one),
                // What cannot be read guards nothing, and so nothing runs there.
                Err(error) => tracing::error!(id, %error, "a sandbox cannot be used"),
            }
        }
        self.set(known.into_iter());
        Ok(())
    }

    fn read_row(&self, row: SandboxRow) -> Result<Known, Error> {
        let body: Body = serde_json::from_value(row.body)
            .map_err(|error| bad(format!("sandbox {}: {error}", row.label)))?;
        let layers = self.layers_of(&row.label, &body.guard)?;
        let guard = body.guard;
        let mut limits = Sandbox::new("").limits;
        guard.limits.apply(&mut limits);
        let sandbox = Sandbox {
            id: row.id,
            name: row.label,
            source: SandboxSource::Store,
            owner: Some(row.owner),
            active: row.active,
            agents: guard.agents,
            pin: Some(FileId {
                device: body.device,
                inode: body.inode,
            }),
            presets: guard.presets,
            rule_text: guard.rules,
            directory: Some(row.path.into()),
            files: match guard.files {
                Files::Read => Access::Read,
                Files::Write | Files::Effects => Access::Write,
            },
            review: match (guard.review, guard.files) {
                (None, Files::Effects) => Some(Review::Effects),
                (said, _) => said,
            },
            network: guard.network,
            read: guard.read,
            write: guard.write,
            unprotected: guard.unprotected,
            user: guard.user,
            rules: None,
            minimum: guard.minimum,
            time: guard.limits.time_seconds.map(Duration::from_secs),
            output_bytes: { guard.limits.output_mib }.map(|mib| mib.saturating_mul(1024 * 1024)),
            hidden: guard.hidden,
            secret_files: guard.secret_files,
            pass: guard.pass,
            set: guard.set,
            secrets: body.secrets,
            limits,
        };
        Ok(Known {
            sandbox: Arc::new(sandbox),
            layers,
            version: row.version,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }

    /// Returns the rules that a sandbox adds.
    fn layers_of(&self, label: &str, guard: &Guard) -> Result<Vec<Arc<Layer>>, Error> {
        let mut layers =
            weighlock_policy::preset_layers(&guard.presets, &self.core.config.settings);
        if let Some(text) = &guard.rules {
            let layer = policy::sandbox_layer(label, text);
            layers.push(layer.map_err(|errors| Error::Rules { errors })?);
        }
        Ok(layers)
    }

    /// Finds the sandbox that a request means: the one it names, or its
    /// principal's default. Nobody else picks one.
    pub(crate) fn find_workplace(
        &self,
        name: Option<&str>,
        who: &Principal,
    ) -> Result<Known, Error> {
        let private = private_dirs(&self.core.config).filter(|_| !who.is_administrator());
        let known = match name.or(who.default_sandbox()) {
            Some(name) => self.known_to(name, who)?,
            None if let Some(above) = private => private_to(who, &above)?,
            None => {
                return Err(Error::invalid(
                    "no_sandbox_named",
                    "the request names no sandbox, and you have no default sandbox; nothing \
                     was run"
                        .into(),
                    format!("name one of: {}", self.names_for(who)),
                ));
            }
        };
        if !known.sandbox.active {
            return Err(Error::Inactive {
                name: known.sandbox.name.clone(),
            });
        }
        self.is_still_there(&known.sandbox)?;
        Ok(known)
    }

    /// Finds a sandbox that somebody may use, by id or name.
    fn known_to(&self, name: &str, who: &Principal) -> Result<Known, Error> {
        if let Some(above) = private_dirs(&self.core.config)
            && name == private_id(who)
        {
            return private_to(who, &above);
        }
        let all = self.all();
        let found = all.iter().find(|known| is_called(known, name));
        found
            .filter(|known| self.is_open(&known.sandbox, who))
            .cloned()
            .ok_or_else(|| self.no_such(name, who))
    }

    fn no_such(&self, name: &str, who: &Principal) -> Error {
        Error::NoSuchSandbox {
            name: brief(name),
            known: self.names_for(who),
        }
    }

    fn names_for(&self, who: &Principal) -> String {
        let all = self.all();
        let names = { all.iter() }.filter(|known| self.is_open(&known.sandbox, who));
        let names: Vec<&str> = names.map(|known| known.sandbox.name.as_str()).collect();
        names.join(", ")
    }

    /// Refuses a directory that came to the place of the one that was set up.
    fn is_still_there(&self, sandbox: &Sandbox) -> Result<(), Error> {
        let Some(pin) = sandbox.pin else {
            return Ok(());
        };
        let dir = self.walls.directory_of(sandbox);
        let swapped = |why: String| Error::Swapped {
            name: sandbox.name.clone(),
            dir: dir.to_owned(),
            why,
        };
        let now = dir
            .canonicalize()
            .map_err(|error| swapped(error.to_string()))?;
        let meta = now.metadata().map_err(|error| swapped(error.to_string()))?;
        if now != dir || FileId::from(&meta) != pin {
            return Err(swapped("another directory is in its place".into()));
        }
        Ok(())
    }

    /// Resolves the working directory of a request.
    pub(crate) fn open_work_dir(
        &self,
        sandbox: &Sandbox,
        cwd: Option<&str>,
    ) -> Result<WorkDir, Error> {
        let whole = self.walls.directory_of(sandbox);
        let place = WorkDir::open(whole, cwd);
        if sandbox.source == SandboxSource::Private {
            // Its owner is told no more than that.
            return place.map_err(|_| WallsError::OutsidePrivate.into());
        }
        let place = place?;
        match private_dirs(&self.core.config) {
            // No run sees it from here.
            Some(above) if place.path.starts_with(&above) && !whole.starts_with(&above) => {
                Err(WallsError::OutsidePrivate.into())
            }
            _ => Ok(place),
        }
    }

    /// Returns whether somebody may use a sandbox. What holds the private
    /// directories, as the default sandbox does, is for administrators and
    /// those for whom they name it: others would leave their own by asking.
    fn is_open(&self, sandbox: &Sandbox, who: &Principal) -> bool {
        let holds = |above: PathBuf| above.starts_with(self.walls.directory_of(sandbox));
        is_open_to(sandbox, who)
            && (who.is_administrator()
                || !private_dirs(&self.core.config).is_some_and(holds)
                || is_named_for(sandbox, who))
    }

    fn is_seen(&self, sandbox: &Sandbox, who: &Principal) -> bool {
        self.is_open(sandbox, who) || !who.is_agent() && who.reaches(&sandbox.id)
    }

    /// Lists the sandboxes that somebody may look at.
    pub fn list(&self, who: &Principal) -> Vec<SandboxInfo> {
        let all = self.all();
        let seen = { all.iter() }.filter(|known| self.is_seen(&known.sandbox, who));
        seen.map(|known| self.info(known)).collect()
    }

    pub(crate) fn list_views(&self, who: &Principal) -> Vec<SandboxView> {
        let all = self.all();
        let seen = { all.iter() }.filter(|known| self.is_seen(&known.sandbox, who));
        seen.map(|known| self.describe(&known.sandbox)).collect()
    }

    /// Returns the directories of all other sandboxes.
    pub(crate) fn other_dirs(&self, sandbox: &Sandbox) -> Vec<PathBuf> {
        let all = self.all();
        let others = all.iter().filter(|other| other.sandbox.id != sandbox.id);
        others
            .filter_map(|other| other.sandbox.directory.clone())
            .collect()
    }

    /// Returns a sandbox as doors show it with a run.
    pub(crate) fn describe(&self, sandbox: &Sandbox) -> SandboxView {
        SandboxView::of_sandbox(sandbox, self.walls.directory_of(sandbox))
    }

    /// Replaces the secrets of a run's sandbox in a text that the run chose.
    pub(crate) fn hide_secrets(&self, detail: &Detail, text: &str) -> String {
        let sandbox = detail.sandbox.as_ref();
        let sandbox = sandbox.and_then(|view| self.find_by_name(&view.name));
        let secrets = sandbox.iter().flat_map(|sandbox| sandbox.secrets.values());
        weighlock_exec::hide(text, &secrets.cloned().collect::<Vec<_>>())
    }

    /// Returns one sandbox, by id or name.
    pub fn find(&self, id: &str, who: &Principal) -> Result<SandboxInfo, Error> {
        Ok(self.info(&self.seen(id, who)?))
    }

    fn seen(&self, id: &str, who: &Principal) -> Result<Known, Error> {
        let all = self.all();
        let found = all.iter().find(|known| is_called(known, id));
        found
            .filter(|known| self.is_seen(&known.sandbox, who))
            .cloned()
            .ok_or_else(|| self.no_such(id, who))
    }

    /// Returns a sandbox by its id or name, for ourselves; none where it is
    /// gone.
    pub(crate) fn find_by_name(&self, name: &str) -> Option<Arc<Sandbox>> {
        let all = self.all();
        let known = all.iter().find(|known| is_called(known, name))?;
        Some(Arc::clone(&known.sandbox))
    }

    /// The same, with the rules that it adds.
    pub(crate) fn find_known(&self, name: &str) -> Option<Known> {
        let all = self.all();
        all.iter().find(|known| is_called(known, name)).cloned()
    }

    /// Returns the ids of named sandboxes.
    pub(crate) fn resolve_ids(
        &self,
        named: Option<Vec<String>>,
        who: &Principal,
    ) -> Result<Option<Vec<String>>, Error> {
        let Some(named) = named else {
            return Ok(None);
        };
        let ids = named
            .iter()
            .map(|name| Ok(self.find(name, who)?.sandbox_id));
        ids.collect::<Result<_, Error>>().map(Some)
    }

    /// Returns what is to be known about the default sandbox before it is used.
    pub fn default_warning(&self) -> Option<String> {
        self.too_wide(&*self.find_by_name(DEFAULT_SANDBOX)?)
    }

    /// Returns why commands of a sandbox may not see their directory, if it is
    /// too wide to be shown.
    fn too_wide(&self, sandbox: &Sandbox) -> Option<String> {
        let dir = self.walls.directory_of(sandbox);
        let what = match dir == self.walls.home() {
            true => "is the home directory",
            false => "holds more than a project",
        };
        is_too_wide(dir, self.walls.home()).then(|| {
            format!(
                "{} {what}, so that commands which are not in a directory below it run in an \
                 empty one. Set up a sandbox for a project: weighlock sandbox add NAME DIR",
                dir.display()
            )
        })
    }

    fn info(&self, known: &Known) -> SandboxInfo {
        let sandbox = &known.sandbox;
        let stored = sandbox.source == SandboxSource::Store;
        SandboxInfo {
            sandbox_id: sandbox.id.clone(),
            owner_principal_id: sandbox.owner.clone(),
            label: sandbox.name.clone(),
            path: self
                .walls
                .directory_of(sandbox)
                .to_string_lossy()
                .into_owned(),
            is_active: sandbox.active,
            source: match sandbox.source {
                SandboxSource::Settings => "settings",
                SandboxSource::BuiltIn => "built-in",
                SandboxSource::Store => "store",
                SandboxSource::Private => "private",
            }
            .into(),
            warning: self.too_wide(sandbox),
            guard: Guard::of(sandbox),
            version: known.version,
            created_at: stored.then(|| time(known.created_at)),
            updated_at: stored.then(|| time(known.updated_at)),
        }
    }
}

/// Returns whether the settings of a sandbox let a principal use it. Only those
/// who may use one know of it.
fn is_open_to(sandbox: &Sandbox, who: &Principal) -> bool {
    let is_named = |names: &Vec<String>| names.iter().any(|name| name == who.name());
    match sandbox.source {
        SandboxSource::Private => sandbox.owner.as_deref() == Some(who.name()),
        _ if who.is_administrator() => true,
        _ => who.reaches(&sandbox.id) && sandbox.agents.as_ref().is_none_or(is_named),
    }
}

/// Returns whether a sandbox or a principal names the other.
fn is_named_for(sandbox: &Sandbox, who: &Principal) -> bool {
    let has = |names: &[String], name: &str| names.iter().any(|one| one == name);
    let by_sandbox = sandbox.agents.as_ref();
    who.default_sandbox() == Some(&sandbox.id)
        || who.sandboxes().is_some_and(|ids| has(ids, &sandbox.id))
        || by_sandbox.is_some_and(|names| has(names, who.name()))
}

/// Returns what holds the private directories, with preset `multi-user`.
pub(crate) fn private_dirs(config: &Config) -> Option<PathBuf> {
    let any = config.presets.contains(&Preset::MultiUser);
    any.then(|| config.base.join(PRIVATE))
}

fn is_called(known: &Known, name: &str) -> bool {
    known.sandbox.id == name || known.sandbox.name == name
}

fn private_id(who: &Principal) -> String {
    format!("user-{}", who.name())
}

/// The directory of somebody who is no administrator, made when it is first
/// used.
fn private_to(who: &Principal, above: &Path) -> Result<Known, Error> {
    let dir = above.join(who.name());
    make_private(above, 0o711)?;
    if make_private(&dir, 0o700)? && weighlock_confine::is_root() {
        // Root's commands run as nobody, and must be able to work there.
        chown(&dir, Some(NOBODY), Some(NOBODY)).map_err(Error::file(&dir))?;
    }
    Ok(Known::of_settings(&Sandbox {
        id: private_id(who),
        source: SandboxSource::Private,
        owner: Some(who.name().to_owned()),
        directory: Some(dir),
        ..Sandbox::new(private_id(who))
    }))
}

/// Makes a directory where there is none; returns whether it was made.
fn make_private(dir: &Path, mode: u32) -> Result<bool, Error> {
    let made = match std::fs::DirBuilder::new().mode(mode).create(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => false,
        made => made.map(|()| true).map_err(Error::file(dir))?,
    };
    // A link in its place would lead somewhere else.
    match dir.canonicalize().is_ok_and(|real| real == dir) {
        true => Ok(made),
        false => Err(WallsError::OutsidePrivate.into()),
    }
}
