//! Makes backups while the server works.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::{RwLock, RwLockReadGuard, watch};
pub use weighlock_api::BackupView;
use weighlock_store::{Clock, Copied, CopiedRun, Entry, Store, id, timestamp};

use crate::copier::TreeCopier;
use crate::destination::{DEFAULT_DIR, Destination};
use crate::digest::{FileDigest, copy_and_hash};
use crate::error::Error;
use crate::manifest::{
    DATABASE, FILES, FORMAT, HEAD, LIST, MANIFEST, Manifest, SETTINGS, UNDO_NAMES,
};
use crate::partial::{PartialBackup, remove_abandoned, sync};
use crate::root_dir::RootDir;

/// The keeper's status of an active run. A restored server must not follow it.
const STATUS: &str = "status.jsonl";

/// How long [`Archiver::cancel`] waits. SQLite cannot interrupt the copy of a
/// large database, and a server that stops does not wait for it.
const CANCEL_WITHIN: Duration = Duration::from_secs(10);

/// Makes backups of one state directory, one at a time.
pub struct Archiver {
    state_dir: PathBuf,
    store: Arc<Store>,
    clock: Clock,
    /// Configuration and rule files, which a backup includes for people to read.
    settings: Vec<PathBuf>,
    /// True while a backup is being made.
    running: watch::Sender<bool>,
    /// Set when the server stops.
    cancelled: AtomicBool,
    /// Written while files are copied that a run, an undo or the retention
    /// would change; read by these.
    files: RwLock<()>,
}

/// Keeps a backup from copying files that the holder is changing.
pub type FilesHeld<'a> = RwLockReadGuard<'a, ()>;

impl Archiver {
    /// Creates an archiver for a state directory and its store. `settings` are
    /// configuration and rule files that each backup includes.
    pub fn new(
        state_dir: PathBuf,
        store: Arc<Store>,
        clock: Clock,
        settings: Vec<PathBuf>,
    ) -> Arc<Self> {
        Arc::new(Self {
            state_dir,
            store,
            clock,
            settings,
            running: watch::Sender::new(false),
            cancelled: AtomicBool::new(false),
            files: RwLock::default(),
        })
    }

    /// Returns the directory for backups without an explicit destination. The
    /// caller creates it; it is in the state directory, which no command sees.
    pub fn default_dir(&self) -> PathBuf {
        self.state_dir.join(DEFAULT_DIR)
    }

    /// Accepts a destination for a backup, or says why not. `is_visible` is
    /// whether any sandbox shows it to commands.
    pub fn accept(&self, destination: Destination, is_visible: bool) -> Result<PathBuf, Error> {
        destination.accept(&self.state_dir, is_visible)
    }

    /// Makes a backup, at an accepted destination or in the default directory,
    /// and records that `by` made it. It goes on if the caller stops waiting.
    pub async fn create(
        self: &Arc<Self>,
        destination: Option<PathBuf>,
        by: &str,
    ) -> Result<BackupView, Error> {
        let (archiver, by) = (Arc::clone(self), by.to_owned());
        let to = destination.unwrap_or_else(|| {
            let stamp = timestamp(self.clock.micros()).replace([':', '-'], "");
            self.default_dir().join(stamp)
        });
        let made = tokio::spawn(async move { archiver.write_and_record(to, by).await });
        made.await.expect("making a backup does not panic")
    }

    /// Returns when the last backup was made, in microseconds since 1970.
    pub fn last_made(&self) -> Result<Option<i64>, Error> {
        Ok(self.store.newest_time("backup.made")?)
    }

    /// Waits until no backup copies files that undo or a new try of a run
    /// changes, and keeps the next from doing so while the guard lives.
    pub async fn hold_files(&self) -> FilesHeld<'_> {
        self.files.read().await
    }

    /// Returns a guard under which old files may be removed; `None` while a
    /// backup is being made, since it may name them. A backup that begins
    /// meanwhile waits for the guard.
    pub fn try_hold_files(&self) -> Option<FilesHeld<'_>> {
        let held = self.files.try_read().ok()?;
        (!*self.running.borrow()).then_some(held)
    }

    /// Makes the current backup fail, so that its partial files are removed, and
    /// waits for that.
    pub async fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        let mut running = self.running.subscribe();
        let ended = running.wait_for(|running| !running);
        let _ = tokio::time::timeout(CANCEL_WITHIN, ended).await;
    }

    async fn write_and_record(
        self: Arc<Self>,
        to: PathBuf,
        by: String,
    ) -> Result<BackupView, Error> {
        let _running = RunningBackup::begin(&self.running)?;
        let (archiver, path) = (Arc::clone(&self), to.clone());
        let written = tokio::task::spawn_blocking(move || archiver.write(&path));
        let view = written.await.expect("writing files does not panic")?;
        let entry = Entry {
            time: self.clock.micros(),
            kind: "backup.made",
            actor: by,
            detail: json!(view),
            ..Entry::default()
        };
        if let Err(error) = self.store.record(vec![entry]).await {
            // A backup that is not in the audit must not exist.
            let _ = fs::remove_dir_all(&to);
            return Err(error.into());
        }
        Ok(view)
    }

    fn write(&self, to: &Path) -> Result<BackupView, Error> {
        remove_abandoned(to.parent().unwrap_or(to));
        remove_abandoned(&self.default_dir());
        let partial = PartialBackup::create(to).map_err(Error::file(to))?;
        let view = self.fill(&partial.dir, to)?;
        partial.complete(to).map_err(Error::file(to))?;
        Ok(view)
    }

    fn fill(&self, dir: &RootDir, to: &Path) -> Result<BackupView, Error> {
        let (copied, files, bytes) = self.copy_record(dir)?;
        let settings = self.copy_settings(dir)?;
        let manifest = Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            made_at: timestamp(self.clock.micros()),
            entries: copied.entries,
            head: copied.head,
            database: digest_of(dir, DATABASE)?,
            audit_head: digest_of(dir, HEAD)?,
            list: digest_of(dir, LIST)?,
            settings,
            files,
            bytes,
            undecided: copied.held,
        };
        write_manifest(dir, &manifest)?;
        sync(dir.root()).map_err(Error::file(dir.root()))?;
        Ok(BackupView {
            directory: to.to_string_lossy().into_owned(),
            made_at: manifest.made_at,
            entries: manifest.entries,
            files,
            bytes: bytes + manifest.database.bytes,
            undecided: manifest.undecided,
            sha256: digest_of(dir, MANIFEST)?.sha256,
        })
    }

    /// Copies the database, then the files that the copy refers to and nothing
    /// newer. Returns the number and size of the files.
    fn copy_record(&self, dir: &RootDir) -> Result<(Copied, u64, u64), Error> {
        let list = dir.create(LIST).map_err(Error::file(&dir.path(LIST)))?;
        dir.make_dir(FILES).map_err(Error::file(&dir.path(FILES)))?;
        let open = |path: &Path| RootDir::open(path).map_err(Error::file(path));
        let (from, to) = (open(&self.state_dir)?, open(&dir.path(FILES))?);
        let mut copier = TreeCopier {
            from: &from,
            to: &to,
            list: BufWriter::new(list),
            files: 0,
            bytes: 0,
            cancelled: &self.cancelled,
        };
        let copied = self.copy_changeable(dir, &mut copier)?;
        for name in [DATABASE, HEAD] {
            let path = dir.path(name);
            fs::set_permissions(&path, Permissions::from_mode(0o600))
                .map_err(Error::file(&path))?;
        }
        for run in copied.runs.iter().filter(|run| !run.waiting) {
            copy_run(&mut copier, run)?;
        }
        copier.copy_tree(Path::new("tasks"), None)?;
        copier.list.flush().map_err(Error::file(&dir.path(LIST)))?;
        Ok((copied, copier.files, copier.bytes))
    }

    /// Copies the database together with the files that may change or vanish
    /// later: an undo consumes its before-images, and a run that was tried may
    /// begin anew. Commits and new runs only add files, which the copied
    /// database does not mention, so they go on.
    fn copy_changeable(&self, dir: &RootDir, copier: &mut TreeCopier<'_>) -> Result<Copied, Error> {
        let _unchanged = self.files.blocking_write();
        let copied = self.store.copy_to(dir.root())?;
        for run in &copied.undo {
            for name in UNDO_NAMES {
                copier.copy_tree(&Path::new("undo").join(run).join(name), None)?;
            }
        }
        for run in copied.runs.iter().filter(|run| run.waiting) {
            copy_run(copier, run)?;
        }
        Ok(copied)
    }

    fn copy_settings(&self, dir: &RootDir) -> Result<BTreeMap<String, FileDigest>, Error> {
        dir.make_dir(SETTINGS)
            .map_err(Error::file(&dir.path(SETTINGS)))?;
        let mut copied = BTreeMap::new();
        for file in &self.settings {
            let name = file.file_name().and_then(|name| name.to_str());
            let Some(name) = name.filter(|name| file.is_file() && !copied.contains_key(*name))
            else {
                continue;
            };
            let path = Path::new(SETTINGS).join(name);
            let at = dir.path(&path);
            let source = File::open(file).map_err(Error::file(file))?;
            let target = dir.create(&path).map_err(Error::file(&at))?;
            let digest = copy_and_hash((file, source), (&at, target))?;
            copied.insert(name.to_owned(), digest);
        }
        Ok(copied)
    }
}

fn copy_run(copier: &mut TreeCopier<'_>, run: &CopiedRun) -> Result<(), Error> {
    let day = id::day(&run.id).to_string();
    let path = Path::new("runs").join(day).join(&run.id);
    copier.copy_tree(&path, run.open.then_some(STATUS))
}

fn write_manifest(dir: &RootDir, manifest: &Manifest) -> Result<(), Error> {
    let text = serde_json::to_vec_pretty(manifest).expect("a manifest is plain data");
    let written = dir
        .create(MANIFEST)
        .and_then(|mut file| file.write_all(&text));
    written.map_err(Error::file(&dir.path(MANIFEST)))
}

fn digest_of(dir: &RootDir, name: &str) -> Result<FileDigest, Error> {
    let path = dir.path(name);
    let file = dir.read(name).map_err(Error::file(&path))?;
    copy_and_hash((&path, file), (&path, io::sink()))
}

/// Marks that a backup is being made, until dropped.
struct RunningBackup<'a>(&'a watch::Sender<bool>);

impl<'a> RunningBackup<'a> {
    fn begin(running: &'a watch::Sender<bool>) -> Result<Self, Error> {
        if running.send_if_modified(|running| !std::mem::replace(running, true)) {
            Ok(Self(running))
        } else {
            Err(Error::Running)
        }
    }
}

impl Drop for RunningBackup<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}
