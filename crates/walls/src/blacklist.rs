//! Writes the blacklist's file, and tells one that a run has made from one that
//! a person wrote.
//!
//! A blacklist that exists when a run begins is read-only for it. One that does
//! not exist cannot be mounted over without a trace. So a blacklist that appears
//! while such a run is under way is ignored, and set aside when the run ends.

use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Mode, OFlags, open, openat, renameat, unlinkat};

use crate::lock::lock;

/// The directory that holds the blacklist, below the base directory.
pub(crate) const BLACKLIST_DIR: &str = ".agents";

/// The blacklist's name in that directory.
const FILE_NAME: &str = "terminal.json";

/// Detects blacklists that runs have made.
pub struct BlacklistGuard {
    /// The directory that holds the blacklist.
    dir: PathBuf,
    /// A file that tells the next server that runs which can make a blacklist
    /// may still be under way.
    mark: PathBuf,
    state: Mutex<GuardState>,
}

#[derive(Default)]
struct GuardState {
    /// How many runs that can make a blacklist are under way.
    suspects: usize,
    /// The mark exists. It stays until the server ends: creating and removing
    /// it for every run costs more than it is worth.
    marked: bool,
    /// What a person has saved since the first of those runs began.
    saved: Option<String>,
}

/// A run that can make a blacklist, from before its start to its end. Dropping
/// it sets a forged blacklist aside.
pub struct SuspectRun(Arc<BlacklistGuard>);

impl BlacklistGuard {
    pub(crate) fn new(base: &Path, state_dir: &Path) -> Arc<Self> {
        Arc::new(Self {
            dir: base.join(BLACKLIST_DIR),
            mark: state_dir.join("no-blacklist"),
            state: Mutex::default(),
        })
    }

    /// Returns the directory that holds the blacklist.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Begins to suspect a run if there is no blacklist yet, or if the one there
    /// may be another run's work.
    pub(crate) fn suspect_if_absent(self: &Arc<Self>) -> io::Result<Option<SuspectRun>> {
        let state = lock(&self.state);
        if state.suspects == 0 && self.dir.symlink_metadata().is_ok() {
            return Ok(None);
        }
        self.add_suspect(state).map(Some)
    }

    /// Begins to suspect a run whatever is there: an earlier server started it.
    pub fn suspect_run(self: &Arc<Self>) -> io::Result<SuspectRun> {
        self.add_suspect(lock(&self.state))
    }

    fn add_suspect(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, GuardState>,
    ) -> io::Result<SuspectRun> {
        if !state.marked {
            fs::write(&self.mark, "")?;
            state.marked = true;
        }
        state.suspects += 1;
        Ok(SuspectRun(Arc::clone(self)))
    }

    /// Removes the mark at the server's end, unless suspect runs outlive it.
    pub fn remove_mark(&self) {
        let mut state = lock(&self.state);
        if state.suspects == 0 && state.marked {
            state.marked = fs::remove_file(&self.mark).is_err();
        }
    }

    /// Returns whether an earlier server ended while suspect runs were under way.
    pub fn is_marked(&self) -> bool {
        self.mark.exists()
    }

    /// Returns whether the blacklist may be a run's work.
    pub fn is_forged(&self) -> bool {
        self.is_forged_in(&lock(&self.state))
    }

    fn is_forged_in(&self, state: &GuardState) -> bool {
        let is_persons = |saved: &String| {
            fs::read_to_string(self.dir.join(FILE_NAME)).is_ok_and(|text| text == *saved)
        };
        state.suspects > 0
            && self.dir.symlink_metadata().is_ok()
            && !state.saved.as_ref().is_some_and(is_persons)
    }

    /// Trusts the text that a person is about to save, and first sets aside a
    /// blacklist that a run has made.
    pub fn trust_saved(&self, saved: Option<String>) -> io::Result<()> {
        let mut state = lock(&self.state);
        if self.is_forged_in(&state) {
            state.saved = None;
            self.move_aside(&state)?;
        }
        state.saved = saved;
        Ok(())
    }

    /// Moves a forged blacklist away and returns its new path.
    pub fn set_aside(&self) -> io::Result<PathBuf> {
        self.move_aside(&lock(&self.state))
    }

    fn move_aside(&self, state: &GuardState) -> io::Result<PathBuf> {
        // A name that no run can have used before.
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        let stamp = time.unwrap_or_default().as_nanos();
        // Beside it: the state directory may be on another disk.
        let aside = self
            .dir
            .with_file_name(format!(".agents-set-aside-{stamp}"));
        fs::rename(&self.dir, &aside)?;
        if let (Some(saved), Some(base)) = (&state.saved, self.dir.parent()) {
            write_blacklist(base, saved)?;
        }
        Ok(aside)
    }
}

impl Drop for SuspectRun {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        if self.0.is_forged_in(&state)
            && let Err(error) = self.0.move_aside(&state)
        {
            // The run stays suspect, so that the blacklist is ignored until a
            // person looks.
            tracing::error!(%error, "cannot set a blacklist aside that a run made");
            return;
        }
        state.suspects -= 1;
        if state.suspects == 0 {
            state.saved = None;
        }
    }
}

/// Returns the path of the blacklist's file below the base directory.
pub fn blacklist_path(base: &Path) -> PathBuf {
    base.join(BLACKLIST_DIR).join(FILE_NAME)
}

/// Writes the blacklist's file so that a reader sees the old text or the new
/// one. A command may have put links in its way, to have the server write
/// somewhere else: none is followed, and no existing file is opened.
pub fn write_blacklist(base: &Path, text: &str) -> io::Result<()> {
    match fs::create_dir(base.join(BLACKLIST_DIR)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        done => done?,
    }
    let dir = open_dir(base)?;
    // Random, so that no run can create a file of that name first.
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let new = format!(".terminal.json.{:016x}", u64::from_ne_bytes(random));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = fs::File::from(openat(&dir, &new, flags, Mode::from_raw_mode(0o644))?);
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    let renamed = written.and_then(|()| Ok(renameat(&dir, &new, &dir, FILE_NAME)?));
    if renamed.is_err() {
        let _ = unlinkat(&dir, &new, AtFlags::empty());
    }
    renamed
}

/// Removes the blacklist's file. A missing one is no error.
pub fn remove_blacklist(base: &Path) -> io::Result<()> {
    let remove =
        || -> io::Result<()> { Ok(unlinkat(open_dir(base)?, FILE_NAME, AtFlags::empty())?) };
    match remove() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Opens the directory that holds the file, following no link.
fn open_dir(base: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(open(base.join(BLACKLIST_DIR), flags, Mode::empty())?)
}
