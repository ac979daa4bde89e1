//! Tells a blacklist that a run has made from one that a person wrote.
//!
//! What is there when a run begins is read-only for it. What is not there
//! cannot be mounted over without a trace, so whatever appears while such runs
//! are under way counts for nothing, and is set aside when they end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::blacklist::write_safely;
use crate::live::lock;

/// Where a blacklist may be forged.
pub(crate) struct Forgery {
    /// The directory that holds the blacklist.
    dir: PathBuf,
    /// Says, also to the next server, that there may be runs which could.
    mark: PathBuf,
    now: Mutex<Now>,
}

#[derive(Default)]
struct Now {
    /// How many runs could.
    makers: usize,
    /// The mark is there. It stays as long as the server does: making and
    /// removing it for every run would cost more than it gives.
    marked: bool,
    /// What a person has saved meanwhile.
    saved: Option<String>,
}

/// A run that could make a blacklist, from before it starts to its end.
pub(crate) struct Maker(Arc<Forgery>);

impl Forgery {
    pub(crate) fn new(base: &Path, state_dir: &Path) -> Arc<Self> {
        Arc::new(Self {
            dir: base.join(".agents"),
            mark: state_dir.join("no-blacklist"),
            now: Mutex::default(),
        })
    }

    /// The directory that holds the blacklist.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Begins to mistrust what appears, if there is nothing yet, or if what is
    /// there may be a run's work and will not stay.
    pub(crate) fn suspect_where_absent(self: &Arc<Self>) -> io::Result<Option<Maker>> {
        let now = lock(&self.now);
        if now.makers == 0 && self.dir.symlink_metadata().is_ok() {
            return Ok(None);
        }
        self.suspect_now(now).map(Some)
    }

    /// Begins to mistrust what is there.
    pub(crate) fn suspect(self: &Arc<Self>) -> io::Result<Maker> {
        self.suspect_now(lock(&self.now))
    }

    fn suspect_now(self: &Arc<Self>, mut now: MutexGuard<'_, Now>) -> io::Result<Maker> {
        if !now.marked {
            fs::write(&self.mark, "")?;
            now.marked = true;
        }
        now.makers += 1;
        Ok(Maker(Arc::clone(self)))
    }

    /// Takes the mark away, unless such runs outlive the server.
    pub(crate) fn rest(&self) {
        let mut now = lock(&self.now);
        if now.makers == 0 && now.marked {
            now.marked = fs::remove_file(&self.mark).is_err();
        }
    }

    /// Says whether an earlier server has left while there were such runs.
    pub(crate) fn is_marked(&self) -> bool {
        self.mark.exists()
    }

    /// Says whether what is there now may be a run's work.
    pub(crate) fn is_forged(&self) -> bool {
        self.is_forged_now(&lock(&self.now))
    }

    fn is_forged_now(&self, now: &Now) -> bool {
        let is_persons = |saved: &String| {
            fs::read_to_string(self.dir.join("terminal.json")).is_ok_and(|text| text == *saved)
        };
        now.makers > 0
            && self.dir.symlink_metadata().is_ok()
            && !now.saved.as_ref().is_some_and(is_persons)
    }

    /// Takes note of what a person saves. What a run has made is out of the way
    /// then.
    pub(crate) fn trust(&self, saved: Option<String>) -> io::Result<()> {
        let mut now = lock(&self.now);
        if self.is_forged_now(&now) {
            now.saved = None;
            self.set_aside_now(&now)?;
        }
        now.saved = saved;
        Ok(())
    }

    /// Moves a forged one away and returns where it is.
    pub(crate) fn set_aside(&self) -> io::Result<PathBuf> {
        self.set_aside_now(&lock(&self.now))
    }

    fn set_aside_now(&self, now: &Now) -> io::Result<PathBuf> {
        // A name that no run can have taken before.
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        let stamp = time.unwrap_or_default().as_nanos();
        // Beside it: the state directory may be on another disk.
        let aside = self
            .dir
            .with_file_name(format!(".agents-set-aside-{stamp}"));
        fs::rename(&self.dir, &aside)?;
        if let (Some(saved), Some(base)) = (&now.saved, self.dir.parent()) {
            write_safely(base, saved)?;
        }
        Ok(aside)
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        let mut now = lock(&self.0.now);
        if self.0.is_forged_now(&now)
            && let Err(error) = self.0.set_aside_now(&now)
        {
            // It is mistrusted until somebody looks.
            tracing::error!(%error, "cannot set a blacklist aside that a run made");
            return;
        }
        now.makers -= 1;
        if now.makers == 0 {
            now.saved = None;
        }
    }
}
