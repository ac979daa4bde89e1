//! Making a backup while everything goes on.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use weighlock_store::Copied;

use super::files::{self, Copier};
use super::{BackupView, FILES, FORMAT, LIST, MANIFEST, Manifest, SETTINGS, cannot};
use crate::engine::{Engine, make_private};
use crate::error::{Error, brief};
use crate::id;
use crate::principal::{Principal, Right, Via};
use crate::view::time;

/// Where backups go when nobody says: hidden from commands, as all of the
/// state directory is.
const OWN_DIR: &str = "backups";

/// The keeper's word on a run under way, which nobody may follow elsewhere.
const STATUS: &str = "status.jsonl";

/// Says that a backup is being made, for as long as this is kept.
struct Busy<'a>(&'a AtomicBool);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
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
        let to = self.place_for_backup(directory, who)?;
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
        self.backing_up.load(Ordering::Acquire)
    }

    fn place_for_backup(
        &self,
        directory: Option<PathBuf>,
        who: &Principal,
    ) -> Result<PathBuf, Error> {
        let Some(to) = directory else {
            let own = self.config.state_dir.join(OWN_DIR);
            make_private(&own)?;
            let stamp = time(self.clock.micros()).replace([':', '-'], "");
            return Ok(own.join(stamp));
        };
        let bad = |why: &str, hint: &str| {
            let named = brief(&to.to_string_lossy());
            let detail = format!("{named} {why}; nothing was written");
            Err(Error::invalid("bad_backup_place", detail, hint))
        };
        if !is_owner(who) {
            return bad(
                "was named by somebody who cannot write files of this server's user",
                "leave the directory out, or be the owner of the server on its machine",
            );
        }
        let parent = to
            .parent()
            .filter(|_| to.is_absolute() && to.file_name().is_some());
        let Some(parent) = parent.and_then(|dir| dir.canonicalize().ok()) else {
            return bad(
                "is in no directory that there is",
                "make the directory around it first",
            );
        };
        let empty = fs::read_dir(&to).is_ok_and(|mut dir| dir.next().is_none());
        if to.symlink_metadata().is_ok() && !empty {
            return bad("is there already", "give a directory that is new or empty");
        }
        let whole = parent.join(to.file_name().unwrap_or_default());
        if self.seen_by_commands(&whole) {
            return bad(
                "is where commands can look: a backup holds everybody's commands, output and \
                 secrets",
                "put it elsewhere, or leave the directory out: then it goes into the state \
                 directory, which no command sees",
            );
        }
        Ok(whole)
    }

    fn seen_by_commands(&self, path: &Path) -> bool {
        if path.starts_with(&self.config.state_dir) {
            return false;
        }
        let all = self.sandboxes.all();
        let seen = all.iter().flat_map(|known| {
            let sandbox = &known.sandbox;
            let more = sandbox.read.iter().chain(&sandbox.write);
            more.chain(&sandbox.directory).cloned().collect::<Vec<_>>()
        });
        seen.chain([self.config.base.clone()])
            .any(|dir| path.starts_with(dir))
    }

    async fn make_backup(self: Arc<Self>, to: PathBuf, by: &str) -> Result<BackupView, Error> {
        if self.backing_up.swap(true, Ordering::AcqRel) {
            return Err(Error::BackingUp);
        }
        let _busy = Busy(&self.backing_up);
        // What is applied or undone meanwhile would change what undoing needs.
        let settled = self.committing.lock().await;
        let (engine, place) = (Arc::clone(&self), to.clone());
        let written = tokio::task::spawn_blocking(move || engine.write_backup(&place));
        let view = written.await.expect("writing files does not panic")?;
        drop(settled);
        let entry = self.entry("backup.made", by, None, json!(view));
        if let Err(error) = self.store.record(vec![entry]).await {
            // What is not on record did not happen.
            let _ = fs::remove_dir_all(&to);
            return Err(error.into());
        }
        Ok(view)
    }

    fn write_backup(&self, to: &Path) -> Result<BackupView, Error> {
        let partial = partial(to);
        // Of earlier ones that were killed.
        let _ = fs::remove_dir_all(&partial);
        self.sweep_partial();
        let made = self.fill_backup(&partial, to).and_then(|view| {
            fs::rename(&partial, to).map_err(cannot(to))?;
            let around = to.parent().unwrap_or(to);
            files::sync(around).map_err(cannot(around))?;
            Ok(view)
        });
        if made.is_err() {
            let _ = fs::remove_dir_all(&partial);
        }
        made
    }

    /// In a directory of our own, whatever is not whole is nobody's.
    fn sweep_partial(&self) {
        let own = self.config.state_dir.join(OWN_DIR);
        for entry in fs::read_dir(own).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|end| end == "partial") {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    fn fill_backup(&self, dir: &Path, to: &Path) -> Result<BackupView, Error> {
        files::make_dir(dir).map_err(cannot(dir))?;
        let copied = self.store.copy_to(dir)?;
        let (files, bytes) = self.copy_files(&copied, dir)?;
        self.copy_settings(&dir.join(SETTINGS))?;
        let hashed = |name: &str| {
            let path = dir.join(name);
            files::hash(&path).map_err(cannot(&path))
        };
        let manifest = Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            made_at: time(self.clock.micros()),
            entries: copied.entries,
            head: copied.head,
            database: hashed("weighlock.db")?,
            audit_head: hashed("audit.head")?,
            list: hashed(LIST)?,
            files,
            bytes,
            undecided: copied.held,
        };
        let path = dir.join(MANIFEST);
        let text = serde_json::to_string_pretty(&manifest).expect("a manifest is plain data");
        fs::write(&path, text).map_err(cannot(&path))?;
        files::sync(dir).map_err(cannot(dir))?;
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

    /// Copies what the copied database speaks of, and nothing that came later.
    fn copy_files(&self, copied: &Copied, dir: &Path) -> Result<(u64, u64), Error> {
        let (list, to) = (dir.join(LIST), dir.join(FILES));
        files::make_dir(&to).map_err(cannot(&to))?;
        let file = File::create_new(&list).map_err(cannot(&list))?;
        let mut copier = Copier {
            from: &self.config.state_dir,
            to: &to,
            list: BufWriter::new(file),
            files: 0,
            bytes: 0,
        };
        let mut copy = || {
            for (run, open) in &copied.runs {
                let path = PathBuf::from("runs")
                    .join(id::day(run).to_string())
                    .join(run);
                copier.parents(&path)?;
                copier.tree(&path, open.then_some(STATUS))?;
            }
            for run in &copied.undo {
                let path = Path::new("undo").join(run);
                copier.parents(&path)?;
                copier.tree(&path, None)?;
            }
            copier.tree(Path::new("tasks"), None)?;
            copier.list.flush()
        };
        copy().map_err(cannot(&to))?;
        Ok((copier.files, copier.bytes))
    }

    fn copy_settings(&self, to: &Path) -> Result<(), Error> {
        files::make_dir(to).map_err(cannot(to))?;
        let rules = self.config.policy.rules.iter();
        for file in self.config.settings_file.iter().chain(rules) {
            let Some(name) = file.file_name().filter(|_| file.is_file()) else {
                continue;
            };
            let target = to.join(name);
            if !target.exists() {
                files::copy(file, &target).map_err(cannot(&target))?;
            }
        }
        Ok(())
    }
}

/// Whether somebody could write the same files without us.
fn is_owner(who: &Principal) -> bool {
    match who.via() {
        Via::Socket { uid, .. } => *uid == 0 || *uid == rustix::process::geteuid().as_raw(),
        Via::Library => true,
        Via::Token { .. } | Via::SignIn | Via::Record => false,
    }
}

/// Where a backup is until it is whole.
fn partial(to: &Path) -> PathBuf {
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    to.with_file_name(format!(".{name}.partial"))
}
