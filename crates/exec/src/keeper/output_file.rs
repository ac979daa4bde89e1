//! A plain file that a run's output is also written to.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;

use crate::spec::Spec;

/// Written as far as it may go, and then no more.
pub(super) struct OutputFile {
    file: File,
    room: u64,
}

impl OutputFile {
    /// Opens the one that a run has, if any. A run whose file is gone runs all
    /// the same.
    pub(super) fn open(spec: &Spec) -> Option<Self> {
        let path = spec.output_file.as_ref()?;
        let mut how = OpenOptions::new();
        let how = how.append(true);
        let how = how.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        Some(Self {
            file: how.open(path).ok()?,
            room: spec.limits.output_bytes,
        })
    }

    /// Writes what fits. A full disk does not end the command.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        if self.room == 0 {
            return;
        }
        let fits = self.room.min(bytes.len() as u64);
        self.room -= fits;
        let _ = self.file.write_all(&bytes[..fits as usize]);
        if self.room == 0 {
            let _ = self.file.write_all(END);
        }
    }
}

/// What a reader finds where the file ends before the output does.
const END: &[u8] =
    b"\n[weighlock: this file is full; the run goes on, and its newest output is kept]\n";
