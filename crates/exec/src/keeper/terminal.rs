//! A command's terminal, as its keeper holds it.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, Signal, kill_process_group};
use rustix::termios::{LocalModes, SpecialCodeIndex, tcgetattr, tcgetpgrp, tcgetwinsize};
use weighlock_confine::Size;

use crate::status;

/// Our end of a terminal, by which it is set.
pub(super) struct Terminal(OwnedFd);

impl Terminal {
    pub(super) fn new(master: OwnedFd) -> Self {
        Self(master)
    }

    pub(super) fn resize(&self, size: Size) {
        // One whose command has ended needs no size.
        let _ = size.set(&self.0);
    }

    /// Sends a signal to what is in the foreground.
    pub(super) fn signal(&self, number: i32) {
        if let (Some(group), Some(signal)) = (self.foreground(), Signal::from_named_raw(number)) {
            let _ = kill_process_group(group, signal);
        }
    }

    /// Returns how it is set.
    pub(super) fn look(&self) -> Option<status::Terminal> {
        let size = tcgetwinsize(&self.0).ok()?;
        let set = tcgetattr(&self.0).ok()?;
        let modes = set.local_modes;
        Some(status::Terminal {
            size: Size {
                columns: size.ws_col,
                rows: size.ws_row,
            },
            // Programs that edit lines themselves take single keys.
            hidden: modes.contains(LocalModes::ICANON) && !modes.contains(LocalModes::ECHO),
            end_of_input: set.special_codes[SpecialCodeIndex::VEOF],
            foreground: { self.foreground() }
                .map(|group| group.as_raw_nonzero().get().cast_unsigned()),
        })
    }

    fn foreground(&self) -> Option<Pid> {
        tcgetpgrp(&self.0).ok()
    }
}
