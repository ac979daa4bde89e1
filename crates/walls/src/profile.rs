//! From a sandbox and a directory to the walls around one run.

mod blame;
mod caches;
mod closed;
mod lately;
mod person;
mod repositories;
mod secret_files;
mod shown;
mod tools;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::DirEntry;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rustix::fs::{fstat, statvfs};
use weighlock_confine::{Access, FileId, Inodes, Limits, Mount, Network, Profile, Writes};

use self::closed::{Closed, Secrets};
use self::lately::Lately;
use self::person::Person;
pub(crate) use self::person::home;
use self::repositories::Repositories;
pub(crate) use self::tools::VARIABLES;
use crate::effects::Layers;
use crate::engine::Engine;
use crate::error::{Error, brief};
use crate::forgery::Maker;
use crate::id::path_hash;
use crate::live::lock;
use crate::place::Place;
use crate::protect::{self, Guard, Surface};
use crate::safe::safe_text;
use crate::sandbox::{Sandbox, Source, is_too_wide};
use crate::view::{COPY, Detail, SandboxView};

/// How long toolchains that were found count: dozens of places are looked at.
const TOOLS_FOR: Duration = Duration::from_secs(5);

/// How many of the names are said that a run left where nobody looks for them.
const NAMED: usize = 5;

/// How long it counts whether a directory can be shown as a copy: that takes a
/// process to find out, and changes when somebody mounts something.
const COPIES_FOR: Duration = Duration::from_secs(60);

/// The walls around one run, and what was found on the way.
pub(crate) struct Walls {
    /// What root owns has to be lent to it.
    pub(crate) for_root: bool,
    pub(crate) profile: Profile,
    pub(crate) view: SandboxView,
    pub(crate) warnings: Vec<String>,
    /// What to set in the environment.
    pub(crate) env: Vec<(String, String)>,
    /// What other programs run, in the directory that can be written.
    pub(crate) guarded: Option<Guarded>,
}

/// A writable directory with what is protected in it.
pub(crate) struct Guarded {
    pub(crate) dir: PathBuf,
    home: Home,
    pub(crate) surface: Surface,
    /// Where a blacklist could be made in it.
    pub(crate) maker: Mutex<Option<Maker>>,
}

/// Where what is written to the home directory goes.
#[derive(Default)]
struct Home {
    dir: PathBuf,
    /// What was in it.
    before: BTreeSet<OsString>,
    stays: bool,
}

/// What takes too long to be found out for every run.
pub(crate) struct Found {
    pub(crate) repositories: Repositories,
    tools: Lately<Vec<Mount>>,
    pub(crate) secrets: Secrets,
    /// Why a directory cannot be shown as a copy.
    pub(crate) copies: Lately<Option<String>>,
}

impl Default for Found {
    fn default() -> Self {
        Self {
            repositories: Repositories::default(),
            tools: Lately::new(TOOLS_FOR),
            secrets: Secrets::default(),
            copies: Lately::new(COPIES_FOR),
        }
    }
}

impl Engine {
    /// Works out the walls for a run at a place.
    pub(crate) fn walls(
        &self,
        sandbox: &Sandbox,
        place: &Place,
        path: &str,
        layers: &mut Layers,
    ) -> Result<Walls, Error> {
        let own_home = &self.home;
        let dir = self.territory(sandbox, &place.path, own_home);
        let person = Person::find(sandbox, dir.as_deref(), own_home)?;
        let whole = self.directory_of(sandbox);
        let part = dir.as_deref().filter(|&dir| dir != whole);
        let layer = self.home_layer(sandbox, &person, part)?;
        let home_writes = layers.over_home(&layer, || caches::of(&layer, &person));
        let home_writes = home_writes.map_err(Error::file(&layer))?;
        let mut warnings = vec![];
        let mut files = self.found.tools.get(&layer, || {
            let env = &self.server_env;
            tools::find(&person.home, &layer, path, env, sandbox.network)
        });
        let mut guarded = None;
        if let Some(dir) = &dir {
            if layers.is_wanted() {
                let own = person.for_root && is_roots(dir);
                let shown = layers.over(dir, person.identity, own);
                files.push(shown.map_err(Error::file(dir))?);
            } else {
                files.push(show_territory(sandbox, dir, &person)?);
            }
            if sandbox.files == Access::Write {
                let mut found = match layers.is_writable() {
                    true => self.guard_copy(sandbox, dir, &mut files, layers, &person)?,
                    false => self.guard(sandbox, dir, &mut files, &mut warnings)?,
                };
                found.home = Home::new(&layer, layers.home());
                guarded = Some(found);
            }
        }
        // After the directory: a person may say more about a part of it.
        files.extend(self.extras(sandbox, &person, layers, &mut warnings)?);
        self.hide(sandbox, &person, &mut files);
        let closed = match &dir {
            Some(dir) if layers.closed => self.close_secrets(sandbox, dir, &person, layers)?,
            _ => Closed::default(),
        };
        files.extend(closed.mounts);
        warnings.extend(closed.warnings);
        let (cwd, cwd_is) = if is_layered(&place.path, &files) {
            (place.path.clone(), None)
        } else if is_seen(&place.path, &files) {
            (place.path.clone(), Some(file_id(&place.fd)?))
        } else {
            warnings.push(format!(
                "{} is not shown to commands, since it holds more than a project; this one runs \
                 in an empty home directory. Go to a directory below it, or set up a sandbox",
                place.path.display()
            ));
            let meta = layer.metadata().map_err(Error::file(&layer))?;
            let shown_as_it_is = !matches!(home_writes, Writes::Layered { .. });
            let layer_is = shown_as_it_is.then(|| FileId::from(&meta));
            (person.home.clone(), layer_is)
        };
        let mut view = self.view(sandbox);
        view.closed = closed.names;
        view.directory = dir.as_ref().map(|dir| dir.to_string_lossy().into_owned());
        if dir.is_none() {
            view.files = "none".into();
        } else if layers.is_writable() {
            view.files = COPY.into();
        }
        Ok(Walls {
            for_root: person.for_root,
            env: environment(&person),
            profile: Profile {
                identity: person.identity,
                home: person.home,
                home_layer: layer,
                home_writes,
                files,
                cwd,
                cwd_is,
                network: sandbox.network,
                limits: self.limits(sandbox, dir.as_deref(), layers.is_writable()),
                minimum: sandbox.minimum,
            },
            view,
            warnings,
            guarded,
        })
    }

    /// Returns a sandbox as it is shown.
    pub(crate) fn view(&self, sandbox: &Sandbox) -> SandboxView {
        let dir = self.directory_of(sandbox);
        SandboxView {
            name: sandbox.name.clone(),
            directory: Some(dir.to_string_lossy().into_owned()),
            files: match sandbox.files {
                Access::Read => "read",
                Access::Write => "write",
            }
            .into(),
            network: match sandbox.network {
                Network::Off => "off",
                Network::On => "on",
            }
            .into(),
            ..SandboxView::default()
        }
    }

    /// Hides the secrets of a run's sandbox in what the run has named.
    pub(crate) fn without_secrets(&self, detail: &Detail, text: &str) -> String {
        let sandbox = detail.sandbox.as_ref();
        let sandbox = sandbox.and_then(|view| self.sandbox_called(&view.name));
        let secrets = { sandbox.iter() }.flat_map(|sandbox| sandbox.secrets.values());
        weighlock_exec::hide(text, &secrets.cloned().collect::<Vec<_>>())
    }

    /// Where a sandbox's commands run, there or below.
    pub(crate) fn directory_of<'a>(&'a self, sandbox: &'a Sandbox) -> &'a Path {
        sandbox.directory.as_ref().unwrap_or(&self.config.base)
    }

    /// The directory that a run may use: the sandbox's; and where that is too
    /// much, the repository or else the directory that it runs in.
    pub(crate) fn territory(&self, sandbox: &Sandbox, cwd: &Path, home: &Path) -> Option<PathBuf> {
        let whole = self.directory_of(sandbox);
        if !is_too_wide(whole, home) {
            return Some(whole.to_owned());
        }
        let fits = |dir: &&Path| dir.starts_with(whole) && !is_too_wide(dir, home);
        let repository = cwd
            .ancestors()
            .take_while(fits)
            .find(|dir| dir.join(".git").exists());
        let dir = repository.or(Some(cwd).filter(fits))?;
        Some(dir.to_owned())
    }

    /// The directories that stand for the home directory in a sandbox.
    pub(crate) fn homes_of(&self, sandbox: &str) -> Vec<PathBuf> {
        let homes = self.config.state_dir.join("homes").join(sandbox);
        let homes = std::fs::read_dir(homes).into_iter().flatten().flatten();
        homes.map(|entry| entry.path()).collect()
    }

    /// The directory that stands for the home directory in a sandbox. Caches
    /// live there from run to run.
    ///
    /// Where a sandbox is as many projects as there are directories, each has
    /// its own: one must not leave traps for another.
    fn home_layer(
        &self,
        sandbox: &Sandbox,
        person: &Person,
        part: Option<&Path>,
    ) -> Result<PathBuf, Error> {
        let homes = self.config.state_dir.join("homes").join(&sandbox.id);
        let uid = person.identity.uid;
        let layer = homes.join(match part {
            Some(dir) => format!("{uid}-{:016x}", path_hash(dir)),
            None => uid.to_string(),
        });
        if layer.is_dir() {
            caches::open(&layer).map_err(Error::file(&layer))?;
            return Ok(layer);
        }
        let mut private = std::fs::DirBuilder::new();
        let private = private.recursive(true).mode(0o700);
        private.create(&layer).map_err(Error::file(&layer))?;
        // There, so that git writes settings to it and not where the person's
        // are shown.
        let settings = layer.join(".gitconfig");
        std::fs::write(&settings, "").map_err(Error::file(&settings))?;
        if weighlock_confine::is_root() {
            for made in [&layer, &settings] {
                chown(made, Some(person.identity.uid), Some(person.identity.gid))
                    .map_err(Error::file(made))?;
            }
        }
        Ok(layer)
    }

    /// What the sandbox shows beside its directory.
    fn extras(
        &self,
        sandbox: &Sandbox,
        person: &Person,
        layers: &mut Layers,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<Mount>, Error> {
        let read = sandbox.read.iter().map(|path| (path, Access::Read));
        let write = sandbox.write.iter().map(|path| (path, Access::Write));
        let mut found = vec![];
        // In this order: what is to be written counts when it is named twice.
        for (path, wanted) in read.chain(write) {
            let at = person.resolve(path);
            match tools::read(&at, at.clone()) {
                Some(Mount::Show { from, .. })
                    if wanted == Access::Write && layers.is_writable() && from.is_dir() =>
                {
                    let lent = person.for_root && is_roots(&from);
                    let shown = layers.over(&from, person.identity, lent);
                    found.push(shown.map_err(Error::file(&from))?);
                }
                Some(Mount::Show { from, at, .. }) => found.push(Mount::Show {
                    lent: person.for_root && wanted == Access::Write && is_roots(&from),
                    from,
                    at,
                    // A single file has no layer, and is not changed on a copy.
                    access: match layers.is_writable() {
                        true => Access::Read,
                        false => wanted,
                    },
                    is: None,
                    required: true,
                }),
                _ => warnings.push(format!(
                    "sandbox `{}` is to show {}, which is not there",
                    sandbox.name,
                    path.display()
                )),
            }
        }
        Ok(found)
    }

    /// On a copy nothing needs protection: what a run does to what other
    /// programs run is among its changes. A linked worktree's repository is
    /// elsewhere, and shown as a copy too.
    fn guard_copy(
        &self,
        sandbox: &Sandbox,
        dir: &Path,
        files: &mut Vec<Mount>,
        layers: &mut Layers,
        person: &Person,
    ) -> Result<Guarded, Error> {
        let surface = protect::surface(dir, &[], &sandbox.unprotected);
        for entry in &surface.entries {
            let at = dir.join(&entry.path);
            if entry.guard == Guard::Outside && !self.is_anothers(&at, sandbox) {
                let lent = person.for_root && is_roots(&at);
                let shown = layers.over(&at, person.identity, lent);
                files.push(shown.map_err(Error::file(&at))?);
            }
        }
        Ok(Guarded {
            dir: dir.to_owned(),
            home: Home::default(),
            surface: Surface::default(),
            maker: Mutex::default(),
        })
    }

    /// Protects what other programs run, in a directory that can be written.
    fn guard(
        &self,
        sandbox: &Sandbox,
        dir: &Path,
        files: &mut Vec<Mount>,
        warnings: &mut Vec<String>,
    ) -> Result<Guarded, Error> {
        let repositories = &self.found.repositories;
        let nested = repositories.below(dir);
        for path in repositories.appeared(dir) {
            warnings.push(format!(
                "a repository appeared at {}; its hooks and settings are protected from now on, \
                 but look at them before you use git there",
                path.display()
            ));
        }
        if repositories.is_incomplete(dir) {
            warnings.push(
                "there are too many directories or repositories to find and protect all hooks"
                    .into(),
            );
        }
        let surface = protect::surface(dir, &nested, &sandbox.unprotected);
        for entry in &surface.entries {
            let at = dir.join(&entry.path);
            if at.to_str().is_none() {
                warnings.push(format!(
                    "{} cannot be protected, since its name is not text, and other programs run it",
                    entry.path.display()
                ));
                continue;
            }
            if entry.guard == Guard::Outside && self.is_anothers(&at, sandbox) {
                warnings.push(format!(
                    ".git leads to {}, which belongs to another sandbox and is not shown; git will \
                     not work",
                    at.display()
                ));
                continue;
            }
            files.push(match entry.guard {
                Guard::ReadOnly => Mount::Guard {
                    at,
                    access: Access::Read,
                },
                Guard::Pinned => Mount::Guard {
                    at,
                    access: Access::Write,
                },
                Guard::Outside => Mount::Show {
                    lent: weighlock_confine::is_root() && is_roots(&at),
                    from: at.clone(),
                    at,
                    access: Access::Write,
                    is: None,
                    required: true,
                },
            });
        }
        for path in &surface.unprotectable {
            warnings.push(format!(
                "{} cannot be protected (it is a link or has a second name), and other programs \
                 run it",
                path.display()
            ));
        }
        if let Some(path) = &surface.not_followed {
            warnings.push(format!(
                ".git leads to {}, which does not lead back here and is not shown; git will not \
                 work",
                path.display()
            ));
        }
        Ok(Guarded {
            dir: dir.to_owned(),
            home: Home::default(),
            surface,
            maker: Mutex::new(self.guard_blacklist(sandbox, dir, files)?),
        })
    }

    /// Protects the blacklist, which counts for all sandboxes, where it lies
    /// in a directory that can be written.
    fn guard_blacklist(
        &self,
        sandbox: &Sandbox,
        dir: &Path,
        files: &mut Vec<Mount>,
    ) -> Result<Option<Maker>, Error> {
        let rules = self.forgery.dir();
        if !rules.starts_with(dir) || sandbox.unprotected.iter().any(|name| name == ".agents") {
            return Ok(None);
        }
        let maker = self.forgery.suspect_where_absent();
        let maker = maker.map_err(Error::file(rules))?;
        if self.config.base != dir && rules.symlink_metadata().is_ok() {
            // What holds it stays where it is.
            let above = rules.ancestors().skip(1).take_while(|at| *at != dir);
            let above: Vec<_> = above.collect();
            files.extend(above.into_iter().rev().map(|at| Mount::Guard {
                at: at.to_owned(),
                access: Access::Write,
            }));
            files.push(Mount::Guard {
                at: rules.to_owned(),
                access: Access::Read,
            });
        }
        Ok(maker)
    }

    /// Tells whether a path is in another sandbox, or ours.
    fn is_anothers(&self, path: &Path, sandbox: &Sandbox) -> bool {
        path.starts_with(&self.config.state_dir) || self.is_in_another(path, sandbox)
    }

    /// Hides what is ours, and what the sandbox hides, wherever it could be
    /// seen.
    fn hide(&self, sandbox: &Sandbox, person: &Person, files: &mut Vec<Mount>) {
        let private = self.private_dirs();
        let private = private.filter(|_| sandbox.source != Source::Private);
        let ours = [&self.config.state_dir]
            .into_iter()
            .chain(&self.config.hidden)
            .chain(&private)
            .cloned();
        let others = sandbox.hidden.iter().map(|path| person.resolve(path));
        for path in ours.chain(others) {
            let Ok(path) = path.canonicalize() else {
                continue;
            };
            // The layer for the home directory is in the state directory, and
            // is shown as something else.
            if is_seen(&path, files) {
                files.push(Mount::Hide { at: path });
            }
        }
    }

    /// The sandbox's limits; of the disk, at most half of what is free, where
    /// the directory is and, on a copy, where that is.
    fn limits(&self, sandbox: &Sandbox, dir: Option<&Path>, copied: bool) -> Limits {
        let mut limits = sandbox.limits;
        let state = self.config.state_dir.as_path();
        let copy = Some(state).filter(|_| copied || dir.is_none());
        for disk in [dir, copy].into_iter().flatten() {
            let Ok(disk) = statvfs(disk) else {
                continue;
            };
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            limits.disk_bytes = limits.disk_bytes.min(free / 2);
            limits.file_bytes = limits.file_bytes.min(limits.disk_bytes);
        }
        if let Some(inodes) = Inodes::of(state) {
            limits.disk_files = limits.disk_files.min(inodes.free / 2);
        }
        limits
    }
}

impl Guarded {
    /// Says what a run left in the home directory, where a person would look
    /// for it in vain.
    pub(crate) fn left_at_home(&self) -> Option<String> {
        let Home { dir, before, stays } = &self.home;
        let ours = |name: &OsString| self.dir.iter().any(|part| part == name);
        let new = left(dir, *stays).into_iter();
        let new = new.filter(|name| !before.contains(name) && !ours(name));
        let new: Vec<_> = new.collect();
        let named = { new.iter().take(NAMED) }.map(|name| {
            let name = brief(&name.to_string_lossy());
            format!("~/{}", safe_text(&name).replace('\n', " "))
        });
        let mut named: Vec<_> = named.collect();
        match new.len() {
            0 => return None,
            all if all > NAMED => named.push(format!("and {} more", all - NAMED)),
            _ => {}
        }
        let names = named.join(", ");
        Some(match stays {
            true => {
                format!("it made {names} in the sandbox's own home directory; yours is unchanged")
            }
            false => format!(
                "what it wrote to {names} is not kept: only what a person has allowed before it \
                 runs (`--review before`) writes to the sandbox's home directory"
            ),
        })
    }

    /// Takes note that nothing of the run is left.
    pub(crate) fn release(&self) {
        drop(lock(&self.maker).take());
    }

    /// Returns what a run made, or put in the place of something else, that
    /// other programs will run.
    pub(crate) fn appeared(&self) -> Vec<PathBuf> {
        protect::appeared(&self.dir, &self.surface)
    }
}

fn show_territory(sandbox: &Sandbox, dir: &Path, person: &Person) -> Result<Mount, Error> {
    let meta = dir.symlink_metadata().map_err(Error::file(dir))?;
    Ok(Mount::Show {
        from: dir.to_owned(),
        at: dir.to_owned(),
        access: sandbox.files,
        is: Some(FileId::from(&meta)),
        lent: person.for_root && meta.uid() == 0,
        required: true,
    })
}

impl Home {
    fn new(kept: &Path, thrown_away: Option<&Path>) -> Self {
        let stays = thrown_away.is_none();
        let dir = thrown_away.unwrap_or(kept);
        Self {
            dir: dir.to_owned(),
            before: left(dir, stays),
            stays,
        }
    }
}

/// What there is in a home directory that somebody may look for. Hidden
/// directories are caches, hidden files settings, which nobody misses as long as
/// they stay.
fn left(home: &Path, stays: bool) -> BTreeSet<OsString> {
    let entries = std::fs::read_dir(home).into_iter().flatten().flatten();
    let hidden = |name: &OsString| name.as_encoded_bytes().starts_with(b".");
    let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    entries
        .filter(|entry| !hidden(&entry.file_name()) || !stays && is_file(entry))
        .map(|entry| entry.file_name())
        .collect()
}

fn environment(person: &Person) -> Vec<(String, String)> {
    let mut env = vec![("HOME".into(), person.home.to_string_lossy().into_owned())];
    if let Some(name) = &person.name {
        env.push(("USER".into(), name.clone()));
        env.push(("LOGNAME".into(), name.clone()));
    }
    env
}

fn is_seen(path: &Path, files: &[Mount]) -> bool {
    let system = weighlock_confine::SYSTEM.iter();
    { system }.any(|part| path.starts_with(part))
        || files.iter().any(|mount| match mount {
            Mount::Show { from, at, .. } => from == at && path.starts_with(at),
            Mount::Layered { at, .. } => path.starts_with(at),
            _ => false,
        })
}

fn is_layered(path: &Path, files: &[Mount]) -> bool {
    files.iter().any(|mount| match mount {
        Mount::Layered { at, .. } => path.starts_with(at),
        _ => false,
    })
}

fn is_roots(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.uid() == 0)
}

fn file_id(fd: &OwnedFd) -> Result<FileId, Error> {
    let stat = fstat(fd).map_err(|error| Error::file(Path::new("."))(error.into()))?;
    Ok(FileId::from(&stat))
}
