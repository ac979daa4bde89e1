//! A wall clock for the server that jumps.
//!
//! The kernel has one for the whole machine, which is not ours to set. So the
//! server is started with a small library that answers for it (`clock.c`).

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

/// Seconds that the clock is wrong by, in a file that the library maps.
pub(super) struct Clock {
    file: File,
    path: PathBuf,
    library: PathBuf,
}

impl Clock {
    /// Makes one; or says why there is none.
    pub(super) fn make(dir: &Path) -> Result<Self> {
        let (source, library) = (dir.join("clock.c"), dir.join("clock.so"));
        fs::write(&source, include_str!("clock.c"))?;
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &source])
            .output()?;
        if !built.status.success() {
            return Err(String::from_utf8_lossy(&built.stderr).into());
        }
        let path = dir.join("clock");
        let file = File::create(&path)?;
        file.write_all_at(&0_i64.to_ne_bytes(), 0)?;
        Ok(Self {
            file,
            path,
            library,
        })
    }

    /// Sets it, in seconds from the true time.
    pub(super) fn jump_to(&self, seconds: i64) -> Result<()> {
        Ok(self.file.write_all_at(&seconds.to_ne_bytes(), 0)?)
    }

    /// Lets a server go by it.
    pub(super) fn give(&self, server: &mut Command) {
        server
            .env("LD_PRELOAD", &self.library)
            .env("SOAK_CLOCK", &self.path);
    }
}
