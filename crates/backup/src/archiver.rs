//! Making a backup while everything goes on.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use serde_json::json;
use tokio::sync::watch;
use weighlock_store::{Copied, CopiedRun};

use super::files::{self, Copier};
use super::tree::Tree;
use super::{BackupView, Hashed, Manifest, UNDO_NAMES};
use super::{DATABASE, FILES, FORMAT, HEAD, LIST, MANIFEST, OWN_DIR, SETTINGS};
use crate::engine::Engine;
use crate::error::Error;
use crate::id;
use crate::principal::{Principal, Right};
use crate::view::time;

/// The keeper's word on a run under way, which nobody may follow elsewhere.
const STATUS: &str = "status.jsonl";

/// How the name ends of what is not whole.
const PARTIAL: &str = "partial";

/// Says that a backup is being made, for as long as this is kept.
struct Busy<'a>(&'a watch::Sender<bool>);

impl<'a> Busy<'a> {
    fn begin(busy: &'a watch::Sender<bool>) -> Result<Self, Error> {
        match busy.send_if_modified(|busy| !std::mem::replace(busy, true)) {
            true => Ok(Self(busy)),
            false => Err(Error::BackingUp),
        }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

impl Engine {
    /// Makes a backup of everything that is on record. Without a directory, it
    /// goes into the state directory.
    ///
    /// It goes on when nobody waits for it any more, and is on record then.
    pub async fn back_up(
        self: &Arc<Self>,
        directory: Option<PathBuf>,
        who: &Principal,
    ) -> Result<BackupView, Error> {
        who.check(Right::Administer)?;
        let to = self.place_for_backup(directory, who).await?;
        let (engine, name) = (Arc::clone(self), who.name().to_owned());
        let made = tokio::spawn(async move { engine.make_backup(to, &name).await });
        made.await.expect("making a backup does not panic")
    }

    /// Returns when the last backup was made, in microseconds since 1970.
    pub(crate) fn last_backup(&self) -> Result<Option<i64>, Error> {
        Ok(self.store.newest_time("backup.made")?)
    }

    /// Nothing that a backup names is thrown away while it is made.
    pub(crate) fn is_backing_up(&self) -> bool {
        *self.backing_up.borrow()
    }

    async fn make_backup(self: Arc<Self>, to: PathBuf, by: &str) -> Result<BackupView, Error> {
        let _busy = Busy::begin(&self.backing_up)?;
        let (engine, place) = (Arc::clone(&self), to.clone());
        let written = tokio::task::spawn_blocking(move || engine.write_backup(&place));
        let view = written.await.expect("writing files does not panic")?;
        let entry = self.entry("backup.made", by, None, json!(view));
        if let Err(error) = self.store.record(vec![entry]).await {
            // What is not on record did not happen.
            let _ = fs::remove_dir_all(&to);
            return Err(error.into());
        }
        Ok(view)
    }

    fn write_backup(&self, to: &Path) -> Result<BackupView, Error> {
        let around = to.parent().unwrap_or(to);
        sweep(around);
        sweep(&self.config.state_dir.join(OWN_DIR));
        let partial = Partial::make(to).map_err(Error::file(to))?;
        let view = self.fill_backup(&partial.tree, to)?;
        partial.put(to).map_err(Error::file(to))?;
        Ok(view)
    }

    fn fill_backup(&self, dir: &Tree, to: &Path) -> Result<BackupView, Error> {
        let (copied, files, bytes) = self.copy_record(dir)?;
        let settings = self.copy_settings(dir)?;
        let hashed = |name: &str| hash(dir, name);
        let manifest = Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            made_at: time(self.clock.micros()),
            entries: copied.entries,
            head: copied.head,
            database: hashed(DATABASE)?,
            audit_head: hashed(HEAD)?,
            list: hashed(LIST)?,
            settings,
            files,
            bytes,
            undecided: copied.held,
        };
        let text = serde_json::to_vec_pretty(&manifest).expect("a manifest is plain data");
        let written = { dir.create(MANIFEST) }.and_then(|mut file| file.write_all(&text));
        written.map_err(Error::file(&dir.path(MANIFEST)))?;
        files::sync(dir.root()).map_err(Error::file(dir.root()))?;
        Ok(BackupView {
            directory: to.to_string_lossy().into_owned(),
            made_at: manifest.made_at,
            entries: manifest.entries,
            files,
            bytes: bytes + manifest.database.bytes,
            undecided: manifest.undecided,
            sha256: hashed(MANIFEST)?.sha256,
        })
    }

    /// Copies the database and the files that the copy speaks of, and nothing
    /// that came later.
    fn copy_record(&self, dir: &Tree) -> Result<(Copied, u64, u64), Error> {
        let list = dir.create(LIST).map_err(Error::file(&dir.path(LIST)))?;
        dir.make_dir(FILES).map_err(Error::file(&dir.path(FILES)))?;
        let open = |path: &Path| Tree::open(path).map_err(Error::file(path));
        let (from, to) = (open(&self.config.state_dir)?, open(&dir.path(FILES))?);
        let mut copier = Copier {
            from: &from,
            to: &to,
            list: BufWriter::new(list),
            files: 0,
            bytes: 0,
            closing: &self.closing,
        };
        let copy_run = |copier: &mut Copier<'_>, run: &CopiedRun| {
            let day = id::day(&run.id).to_string();
            let path = Path::new("runs").join(day).join(&run.id);
            copier.tree(&path, run.open.then_some(STATUS))
        };
        let copied = {
            // Undoing takes from what undoing needs, and what was tried may
            // begin anew. Whoever applies changes, or runs, adds files that
            // the copied database does not speak of.
            let _still = self.copying.blocking_write();
            let copied = self.store.copy_to(dir.root())?;
            for run in &copied.undo {
                for name in UNDO_NAMES {
                    copier.tree(&Path::new("undo").join(run).join(name), None)?;
                }
            }
            for run in copied.runs.iter().filter(|run| run.waiting) {
                copy_run(&mut copier, run)?;
            }
            copied
        };
        for name in [DATABASE, HEAD] {
            let path = dir.path(name);
            fs::set_permissions(&path, Permissions::from_mode(0o600))
                .map_err(Error::file(&path))?;
        }
        for run in copied.runs.iter().filter(|run| !run.waiting) {
            copy_run(&mut copier, run)?;
        }
        copier.tree(Path::new("tasks"), None)?;
        copier.list.flush().map_err(Error::file(&dir.path(LIST)))?;
        Ok((copied, copier.files, copier.bytes))
    }

    fn copy_settings(&self, dir: &Tree) -> Result<BTreeMap<String, Hashed>, Error> {
        dir.make_dir(SETTINGS)
            .map_err(Error::file(&dir.path(SETTINGS)))?;
        let mut copied = BTreeMap::new();
        let rules = self.config.policy.rules.iter();
        for file in self.config.settings_file.iter().chain(rules) {
            let name = file.file_name().and_then(|name| name.to_str());
            let Some(name) = name.filter(|name| file.is_file() && !copied.contains_key(*name))
            else {
                continue;
            };
            let path = Path::new(SETTINGS).join(name);
            let at = dir.path(&path);
            let source = File::open(file).map_err(Error::file(file))?;
            let target = dir.create(&path).map_err(Error::file(&at))?;
            let hashed = files::pump((file, source), (&at, target))?;
            copied.insert(name.to_owned(), hashed);
        }
        Ok(copied)
    }
}

/// A backup that is not whole. It is gone with this, unless it is put in its
/// place.
struct Partial {
    tree: Tree,
    /// Says to others that somebody is at it.
    _lock: File,
    put: bool,
}

impl Partial {
    /// Makes a directory that nobody could have made before, for us alone.
    fn make(to: &Path) -> io::Result<Self> {
        let mut chance = [0; 8];
        getrandom::fill(&mut chance).map_err(io::Error::other)?;
        let name = to.file_name().unwrap_or_default().to_string_lossy();
        let chance = u64::from_ne_bytes(chance);
        let path = to.with_file_name(format!(".{name}.{chance:016x}.{PARTIAL}"));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let lock = File::open(&path)?;
        // Where that cannot be, nothing is swept either.
        let _ = flock(&lock, FlockOperation::NonBlockingLockExclusive);
        Ok(Self {
            tree: Tree::open(&path)?,
            _lock: lock,
            put: false,
        })
    }

    fn put(mut self, to: &Path) -> io::Result<()> {
        fs::rename(self.tree.root(), to)?;
        self.put = true;
        files::sync(to.parent().unwrap_or(to))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.put {
            let _ = fs::remove_dir_all(self.tree.root());
        }
    }
}

/// Removes what was left of backups that were killed.
fn sweep(dir: &Path) {
    let is_ours = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let parts: Vec<&str> = name.rsplitn(3, '.').collect();
        let named = matches!(parts[..], [PARTIAL, chance, rest]
            if rest.starts_with('.') && chance.len() == 16
                && chance.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let uid = rustix::process::geteuid().as_raw();
        let found = path.symlink_metadata();
        named && found.is_ok_and(|found| found.is_dir() && found.uid() == uid)
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let Some(lock) = is_ours(&path).then(|| File::open(&path).ok()).flatten() else {
            continue;
        };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn hash(dir: &Tree, name: &str) -> Result<Hashed, Error> {
    let path = dir.path(name);
    let file = dir.read(name).map_err(Error::file(&path))?;
    files::pump((&path, file), (&path, io::sink()))
}
