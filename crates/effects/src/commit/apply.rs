//! Does what was prepared, step by step. Each step is one rename that the
//! kernel does wholly or not at all, and is looked at afterwards: if somebody
//! was faster, their work goes back to its place and everything is undone.
//!
//! The same code goes on after a crash: what is done already is seen by
//! looking. Only what is written into files that stay the same files cannot be
//! seen; for that there are the signs of progress.

use std::fs::OpenOptions;
use std::io;

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;
use weighlock_confine::FileId;

use super::check::reached;
use super::error::{CommitError, cannot};
use super::handle::Handle;
use super::images::write_back;
use super::journal::{ExpectedFile, StepAction};
use super::tree::Spot;
use super::work::{DirSide, Work, shift, swap};

/// With a promise to outlive a loss of power each sign takes milliseconds, so
/// that many share one.
const TOGETHER: usize = 64;

type Done<T = ()> = Result<T, CommitError>;

impl Work {
    /// Does all steps. On failure, `reached` says how far it came.
    pub(crate) fn go(&mut self, resumed: bool, reached: &mut usize) -> Done {
        self.forget_paths();
        let place = self.place.clone();
        self.open_dirs()
            .map_err(cannot("prepare directories for", &place))?;
        let inside = self.steps.iter().position(|step| step.deed.is_inside());
        let inside = inside.unwrap_or(self.steps.len());
        for step in 0..inside {
            *reached = step + 1;
            self.step(step, resumed)?;
        }
        *reached = self.steps.len();
        self.forget_paths();
        let together = if self.durable { TOGETHER } else { 1 };
        let numbers: Vec<usize> = (inside..self.steps.len()).collect();
        for some in numbers.chunks(together) {
            self.set_some(some)?;
        }
        self.verify()?;
        self.settle_dirs(DirSide::After)
            .map_err(cannot("finish directories for", &place))
    }

    fn step(&mut self, step: usize, resumed: bool) -> Done {
        let path = self.steps[step].path.clone();
        let done = match self.steps[step].deed.clone() {
            StepAction::Put { is } => self.put(step, &is),
            StepAction::Replace { is, was } => self.replace(step, &is, &was, resumed),
            StepAction::Remove { was } => self.remove(step, &was, resumed),
            StepAction::RemoveDir { was, .. } => self.remove_dir(step, was, resumed),
            StepAction::Rewrite { .. } | StepAction::Adjust { .. } => Ok(Ok(())),
        };
        let done = reached(done).map_err(cannot("change", path.path()))?;
        done.flatten().map_err(|why| self.conflict(step, why))
    }

    fn conflict(&self, step: usize, why: &str) -> CommitError {
        let step = &self.steps[step];
        CommitError::conflict(step.root, step.path.path(), why)
    }

    fn put(&mut self, step: usize, is: &ExpectedFile) -> io::Result<Result<(), &'static str>> {
        let live = self.live_spot(step)?;
        if live.id()? == Some(is.id) {
            return Ok(Ok(()));
        }
        match shift(&self.new_spot(step)?, &live) {
            Err(Errno::EXIST) => Ok(Err("there is something now")),
            done => Ok(Ok(done?)),
        }
    }

    fn replace(
        &mut self,
        step: usize,
        is: &ExpectedFile,
        was: &ExpectedFile,
        resumed: bool,
    ) -> io::Result<Result<(), &'static str>> {
        let (live, new) = (self.live_spot(step)?, self.new_spot(step)?);
        if live.id()? != Some(is.id) {
            if !is_mark(&live, was, resumed)? {
                return Ok(Err("it changed meanwhile"));
            }
            swap(&new, &live)?;
        }
        if is_mark(&new, was, true)? {
            return Ok(Ok(()));
        }
        give_back(&live, &new, is)?;
        Ok(Err("it changed meanwhile"))
    }

    fn remove(
        &mut self,
        step: usize,
        was: &ExpectedFile,
        resumed: bool,
    ) -> io::Result<Result<(), &'static str>> {
        let (live, old) = (self.live_spot(step)?, self.old_spot(step)?);
        if old.id()?.is_none() {
            if !is_mark(&live, was, resumed)? {
                return Ok(Err("it changed meanwhile"));
            }
            shift(&live, &old)?;
        }
        if is_mark(&old, was, true)? {
            return Ok(Ok(()));
        }
        match shift(&old, &live) {
            // Theirs is newer than what we took away.
            Ok(()) | Err(Errno::EXIST) => Ok(Err("it changed meanwhile")),
            Err(error) => Err(error.into()),
        }
    }

    fn remove_dir(
        &mut self,
        step: usize,
        was: FileId,
        resumed: bool,
    ) -> io::Result<Result<(), &'static str>> {
        let live = self.live_spot(step)?;
        if live.id()? != Some(was) {
            // After a crash it may be gone, or something new be there, by our
            // own hand.
            return Ok(if resumed {
                Ok(())
            } else {
                Err("it changed meanwhile")
            });
        }
        match unlinkat(&live.dir, &live.name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Err("something new is in it")),
            done => Ok(Ok(done?)),
        }
    }

    /// Does some of the steps that change files in place, after a sign.
    fn set_some(&mut self, steps: &[usize]) -> Done {
        let fresh: Vec<usize> = steps
            .iter()
            .copied()
            .filter(|step| !self.progress.has_begun(*step))
            .collect();
        for step in &fresh {
            let same = self.is_untouched(*step);
            let same = reached(same).map_err(cannot("look at", self.steps[*step].path.path()))?;
            if same != Ok(true) {
                return Err(self.conflict(*step, "it changed meanwhile"));
            }
        }
        self.progress
            .begin(&fresh)
            .map_err(cannot("write in", &self.place))?;
        for step in steps {
            let path = self.steps[*step].path.clone();
            let done = self
                .set(*step, DirSide::After)
                .map_err(cannot("change", path.path()))?;
            if !done {
                return Err(self.conflict(*step, "it changed meanwhile"));
            }
        }
        Ok(())
    }

    fn is_untouched(&mut self, step: usize) -> io::Result<bool> {
        let live = self.live_spot(step)?;
        match &self.steps[step].deed {
            // A directory changes with what is in it.
            StepAction::Adjust { dir: true, was, .. } => Ok(live.id()? == Some(was.id)),
            StepAction::Adjust { was, .. } | StepAction::Rewrite { was, .. } => {
                is_mark(&live, was, false)
            }
            _ => Ok(true),
        }
    }

    /// Sets a file to what it should be in the end, or was in the beginning.
    /// Says no if it is another file by now.
    pub(crate) fn set(&mut self, step: usize, end: DirSide) -> io::Result<bool> {
        let deed = self.steps[step].deed.clone();
        let (StepAction::Adjust { from, to, was, .. } | StepAction::Rewrite { from, to, was, .. }) =
            &deed
        else {
            return Ok(true);
        };
        let Some(handle) = self.live_spot(step)?.handle()? else {
            return Ok(false);
        };
        if handle.id()? != was.id {
            return Ok(false);
        }
        let traits = match end {
            DirSide::Before => from,
            DirSide::After => to,
        };
        if let StepAction::Rewrite { image, .. } = &deed {
            self.rewrite(step, *image, end, &handle)?;
        }
        handle.set(traits)?;
        Ok(true)
    }

    fn rewrite(&mut self, step: usize, image: u64, end: DirSide, live: &Handle) -> io::Result<()> {
        live.set_mode(live.node()?.mode | 0o600)?;
        let to = live.file(OpenOptions::new().write(true).truncate(true))?;
        match end {
            DirSide::Before => write_back(&self.place, image, &to),
            DirSide::After => {
                let stage = self.stage(self.steps[step].anchor)?;
                let new = Spot::new(&stage, format!("w{image}")).hold()?;
                super::copy::copy(&new.file(OpenOptions::new().read(true))?, &to)
            }
        }
    }

    /// Checks the files that were moved away: a process that had one open may
    /// have written to it meanwhile.
    fn verify(&mut self) -> Done {
        for step in 0..self.steps.len() {
            let (spot, was) = match self.steps[step].deed {
                StepAction::Replace { was, .. } => (self.new_spot(step), was),
                StepAction::Remove { was } => (self.old_spot(step), was),
                _ => continue,
            };
            let same = spot.and_then(|spot| is_mark(&spot, &was, true));
            if !same.map_err(cannot("look at", self.steps[step].path.path()))? {
                return Err(self.conflict(step, "somebody wrote to it meanwhile"));
            }
        }
        Ok(())
    }
}

/// Puts back what a swap brought out. If another process puts something there
/// meanwhile, or writes to what we put there, its version stays.
pub(crate) fn give_back(live: &Spot, new: &Spot, ours: &ExpectedFile) -> io::Result<()> {
    while live.id()? == Some(ours.id) {
        swap(new, live)?;
        if is_mark(new, ours, true)? {
            break;
        }
        // What we took away just now was newer than what we brought.
        let same = new.id()? == Some(ours.id);
        swap(new, live)?;
        if same {
            break;
        }
    }
    Ok(())
}

/// Whether what is there is what was there; moved or not.
pub(crate) fn is_mark(spot: &Spot, was: &ExpectedFile, moved: bool) -> io::Result<bool> {
    let Some(handle) = spot.handle()? else {
        return Ok(false);
    };
    let now = handle.node()?;
    Ok(if moved {
        was.has_content_of(&ExpectedFile::of(&now))
    } else {
        was.is_still(&now)
    })
}
