//! Takes everything back that was done so far. What was there before is still
//! there, under another name, so that even its inode is the old one.
//!
//! Files with which others have replaced ours stay: they are newer.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use super::apply::{give_back, is_mark};
use super::handle::Handle;
use super::journal::{ExpectedFile, JournalStep, StepAction};
use super::make::make_dir;
use super::tree::{OpenDirs, Spot, names};
use super::work::{DirSide, Work, gone_ok, shift};
use super::{images, journal};
use crate::changes::Change;
use crate::node::{Node, NodeKind};
use crate::scan::is_same;

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
        self.settle_dirs(DirSide::Before)?;
        self.sync()?;
        self.progress.all_undone()?;
        self.clear()
    }

    /// Removes all that was prepared.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.clear_stages(DirSide::Before)?;
        images::remove(&self.place)?;
        journal::remove(&self.place)
    }

    fn undo(&mut self, step: usize) -> io::Result<()> {
        let Some(live) = gone_ok(self.live_spot(step).map(Some))? else {
            return Ok(());
        };
        match self.steps[step].deed.clone() {
            StepAction::Put { is } => self.take_away(step, &live, &is),
            StepAction::Replace { is, was } => {
                let new = self.new_spot(step)?;
                give_back(&live, &new, &is)?;
                // What was there is still with us if somebody has the last word.
                if new.id()? == Some(was.id) {
                    put_beside(&new, &live)
                } else {
                    Ok(())
                }
            }
            StepAction::Remove { .. } => {
                let old = self.old_spot(step)?;
                match shift(&old, &live) {
                    Ok(()) | Err(Errno::NOENT) => Ok(()),
                    Err(Errno::EXIST) => put_beside(&old, &live),
                    Err(error) => Err(error.into()),
                }
            }
            StepAction::RemoveDir { .. } => self.make_again(step, &live),
            StepAction::Rewrite { image, .. }
                if self.progress.has_begun(step) && !self.is_own_work(step, image)? =>
            {
                self.save_beside(step, image, &live)
            }
            StepAction::Rewrite { .. } | StepAction::Adjust { .. }
                if self.progress.has_begun(step) =>
            {
                self.set(step, DirSide::Before).map(|_| ())
            }
            StepAction::Rewrite { .. } | StepAction::Adjust { .. } => Ok(()),
        }
    }

    /// Takes away what was put where nothing was, unless somebody has worked
    /// on it since.
    fn take_away(&mut self, step: usize, live: &Spot, is: &ExpectedFile) -> io::Result<()> {
        if live.id()? != Some(is.id) {
            return Ok(());
        }
        let new = self.new_spot(step)?;
        shift(live, &new)?;
        if self.is_as_put(step, &new, is)? {
            Ok(())
        } else {
            theirs_ok(&new, live)
        }
    }

    /// Whether all that was put there is what it was, and nothing came to it.
    fn is_as_put(&self, step: usize, at: &Spot, is: &ExpectedFile) -> io::Result<bool> {
        if at.hold()?.node()?.kind != NodeKind::Directory {
            return is_mark(at, is, true);
        }
        let JournalStep { root, path, .. } = &self.steps[step];
        let within = |change: &&Change| {
            change.root == *root && change.after.is_some() && change.path.path() != path.path()
        };
        let all = self.changes.entries.iter().filter(within);
        let mut put: HashMap<&Path, &Node> = all
            .filter_map(|change| {
                let inside = change.path.path().strip_prefix(path.path()).ok()?;
                Some((inside, change.after.as_ref()?))
            })
            .collect();
        let mut tree = OpenDirs::at(Rc::clone(&at.dir));
        let mut todo = vec![PathBuf::new()];
        while let Some(dir) = todo.pop() {
            let opened = tree.dir(&Path::new(&at.name).join(&dir))?;
            for name in names(&opened)? {
                let now = Spot::new(&opened, &name).hold()?.node()?;
                let inside = dir.join(name);
                let same = put.remove(inside.as_path()).is_some_and(|put| {
                    let content = |node: &Node| (node.kind, node.size, node.mtime);
                    match now.kind {
                        NodeKind::File => content(put) == content(&now),
                        kind => put.kind == kind && put.target == now.target,
                    }
                });
                match now.kind {
                    _ if !same => return Ok(false),
                    NodeKind::Directory => todo.push(inside),
                    _ => {}
                }
            }
        }
        Ok(put.is_empty())
    }

    /// Whether a file that is written in place has nothing in it but what we
    /// wrote: all of it, or its beginning.
    fn is_own_work(&mut self, step: usize, image: u64) -> io::Result<bool> {
        let Some(live) = self.live_spot(step)?.handle()? else {
            return Ok(true);
        };
        let mode = live.node()?.mode;
        live.set_mode(mode | 0o600)?;
        let read = |handle: &Handle| handle.file(OpenOptions::new().read(true));
        let stage = self.stage(self.steps[step].anchor)?;
        let new = Spot::new(&stage, format!("w{image}")).hold()?;
        let ours = begins(read(&live)?, read(&new)?)?
            || begins(read(&live)?, images::open(&self.place, image)?)?;
        if !ours {
            live.set_mode(mode)?;
        }
        Ok(ours)
    }

    /// Keeps what was there before beside what somebody made of it meanwhile.
    fn save_beside(&mut self, step: usize, image: u64, live: &Spot) -> io::Result<()> {
        let stage = self.stage(self.steps[step].anchor)?;
        let old = Spot::new(&stage, format!("b{step}"));
        if old.handle()?.is_none() {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let made = openat(&old.dir, &old.name, flags, Mode::RUSR | Mode::WUSR)?;
            images::write_back(&self.place, image, &File::from(made))?;
        }
        put_beside(&old, live)
    }

    fn make_again(&mut self, step: usize, live: &Spot) -> io::Result<()> {
        let StepAction::RemoveDir { traits, .. } = self.steps[step].deed.clone() else {
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

/// Puts what was there before beside what somebody made of ours, under a name
/// that says so: both are theirs.
fn put_beside(old: &Spot, live: &Spot) -> io::Result<()> {
    for number in 0.. {
        let mut name = live.name.clone();
        name.push(".before");
        if number > 0 {
            name.push(format!(".{number}"));
        }
        match shift(old, &Spot::new(&live.dir, &name)) {
            Err(Errno::EXIST) => {}
            // Put there by a rollback that was cut off.
            Ok(()) | Err(Errno::NOENT) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether a file is the beginning of another.
fn begins(one: File, other: File) -> io::Result<bool> {
    let length = one.metadata()?.len();
    if length > other.metadata()?.len() {
        return Ok(false);
    }
    is_same(one, other.take(length))
}

/// Moves back what was taken away, unless others put something there.
fn theirs_ok(from: &Spot, to: &Spot) -> io::Result<()> {
    match shift(from, to) {
        Ok(()) | Err(Errno::EXIST | Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
