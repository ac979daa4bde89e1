//! Takes everything back that was done so far. What was there before is still
//! there, under another name, so that even its inode is the old one.
//!
//! What others put in the place of something of ours stays: it is newer.

use std::io;

use rustix::io::Errno;

use super::apply::give_back;
use super::journal::Deed;
use super::make::make_dir;
use super::tree::Spot;
use super::work::{End, Work, gone_ok, shift};
use super::{images, journal};

impl Work {
    /// Undoes the first so many steps, and forgets all of it.
    pub(crate) fn go_back(&mut self, reached: usize) -> io::Result<()> {
        self.progress.go_back()?;
        self.forget_paths();
        self.open_dirs()?;
        for step in (0..reached).rev() {
            self.undo(step)?;
        }
        self.forget_paths();
        self.settle_dirs(End::Before)?;
        self.sync()?;
        self.progress.all_undone()?;
        self.clear()
    }

    /// Removes all that was prepared.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.clear_stages(End::Before)?;
        images::remove(&self.place)?;
        journal::remove(&self.place)
    }

    fn undo(&mut self, step: usize) -> io::Result<()> {
        let Some(live) = gone_ok(self.live_spot(step).map(Some))? else {
            return Ok(());
        };
        match self.steps[step].deed.clone() {
            Deed::Put { is } => match live.id()? {
                Some(id) if id == is => Ok(shift(&live, &self.new_spot(step)?)?),
                _ => Ok(()),
            },
            Deed::Replace { is, .. } => give_back(&live, &self.new_spot(step)?, is),
            Deed::Remove { .. } => theirs_ok(&self.old_spot(step)?, &live),
            Deed::RemoveDir { .. } => self.make_again(step, &live),
            Deed::Rewrite { .. } | Deed::Adjust { .. } if self.progress.has_begun(step) => {
                self.set(step, End::Before).map(|_| ())
            }
            Deed::Rewrite { .. } | Deed::Adjust { .. } => Ok(()),
        }
    }

    fn make_again(&mut self, step: usize, live: &Spot) -> io::Result<()> {
        let Deed::RemoveDir { traits, .. } = self.steps[step].deed.clone() else {
            return Ok(());
        };
        if live.handle()?.is_some() {
            return Ok(());
        }
        let new = self.old_spot(step)?;
        if new.handle()?.is_none() {
            make_dir(&new)?;
        }
        let mut open = traits;
        // What is in it comes back next; its rights come back last.
        open.mode |= 0o700;
        new.hold()?.set(&open)?;
        theirs_ok(&new, live)
    }
}

/// Moves back what was taken away, unless others put something there.
fn theirs_ok(from: &Spot, to: &Spot) -> io::Result<()> {
    match shift(from, to) {
        Ok(()) | Err(Errno::EXIST | Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
