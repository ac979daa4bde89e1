//! A command's terminal, as its keeper holds it.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer};
use rustix::termios::{
    InputModes, LocalModes, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetpgrp, tcgetwinsize,
};
use weighlock_confine::Size;

use crate::status;

/// Our end of a terminal, by which it is set.
pub(super) struct PtyMaster(OwnedFd);

impl PtyMaster {
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

    /// Presses a key that the terminal makes a signal of.
    pub(super) fn press(&self, key: u8) {
        let _ = rustix::io::write(&self.0, &[key]);
    }

    /// Drops what nobody has read, as the terminal does when it sees a key that
    /// interrupts.
    pub(super) fn drop_unread(&self) {
        // On its way, and there already.
        let _ = tcflush(&self.0, QueueSelector::OFlush);
        if let Some(other_end) = self.other_end() {
            let _ = tcflush(&other_end, QueueSelector::IFlush);
        }
    }

    /// Whether anything is typed that nobody has read. What is on its way is
    /// there afterwards, and keys that are signals have been sent.
    fn has_unread(&self) -> bool {
        let Some(other_end) = self.other_end() else {
            return false;
        };
        let at_once = Timespec::default();
        // The kernel hands over before it answers.
        let _ = poll(
            &mut [PollFd::new(&other_end, PollFlags::IN)],
            Some(&at_once),
        );
        rustix::io::ioctl_fionread(&other_end).is_ok_and(|bytes| bytes > 0)
    }

    fn other_end(&self) -> Option<OwnedFd> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        ioctl_tiocgptpeer(&self.0, flags).ok()
    }

    /// Returns how it is set.
    pub(super) fn look(&self) -> Option<status::TerminalState> {
        let size = tcgetwinsize(&self.0).ok()?;
        let set = tcgetattr(&self.0).ok()?;
        let modes = set.local_modes;
        Some(status::TerminalState {
            size: Size {
                columns: size.ws_col,
                rows: size.ws_row,
            },
            // Programs that edit lines themselves take single keys.
            hidden: modes.contains(LocalModes::ICANON) && !modes.contains(LocalModes::ECHO),
            end_of_input: set.special_codes[SpecialCodeIndex::VEOF],
            interrupts: interrupts(&set),
            foreground: { self.foreground() }
                .map(|group| group.as_raw_nonzero().get().cast_unsigned()),
            unread: self.has_unread(),
            // The keeper knows.
            output: 0,
            keys: KEYS.map(|key| set.special_codes[key]),
            alters: set
                .input_modes
                .intersects(InputModes::ISTRIP | InputModes::IUCLC),
        })
    }

    fn foreground(&self) -> Option<Pid> {
        tcgetpgrp(&self.0).ok()
    }
}

/// What a terminal takes for keys.
const KEYS: [SpecialCodeIndex; 15] = [
    SpecialCodeIndex::VINTR,
    SpecialCodeIndex::VQUIT,
    SpecialCodeIndex::VSUSP,
    SpecialCodeIndex::VERASE,
    SpecialCodeIndex::VKILL,
    SpecialCodeIndex::VEOF,
    SpecialCodeIndex::VEOL,
    SpecialCodeIndex::VEOL2,
    SpecialCodeIndex::VWERASE,
    SpecialCodeIndex::VREPRINT,
    SpecialCodeIndex::VLNEXT,
    SpecialCodeIndex::VSTART,
    SpecialCodeIndex::VSTOP,
    SpecialCodeIndex::VDISCARD,
    SpecialCodeIndex::VSWTC,
];

/// Keys at which the terminal signals what is in its foreground. We drop what
/// is unread even where it would not (`stty noflsh`): nobody could tell
/// otherwise what comes after.
fn interrupts(set: &Termios) -> [Option<u8>; 3] {
    let signals = set.local_modes.contains(LocalModes::ISIG);
    let keys = [
        SpecialCodeIndex::VINTR,
        SpecialCodeIndex::VQUIT,
        SpecialCodeIndex::VSUSP,
    ];
    // Zero is no key.
    keys.map(|key| Some(set.special_codes[key]).filter(|&code| signals && code != 0))
}
