//! Watching a terminal: what it shows now, and then everything that happens
//! there. Whoever is too slow gets the screen anew instead of all that led to
//! it; the terminal never waits for anybody.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::watch;
use weighlock_exec::{Diary, Item, Size, What};

use super::Terminals;
use crate::error::Error;
use crate::live::end_of;
use crate::live::{ControlView, Live, Picture, Shown, Turn, last_picture};
use crate::output::{Follow, Until};
use crate::view::Run;
use crate::view::opened_size;

/// Whoever is further behind than this gets the screen anew.
const BEHIND: u64 = 512 * 1024;

/// Lines above the screen that whoever begins to watch is given.
const SCROLLBACK: usize = 1000;

/// One thing to be seen at a terminal.
#[derive(Debug, Clone, PartialEq)]
pub enum Sight {
    /// All that it shows, as bytes that make an empty terminal show the same.
    Snapshot {
        /// It shows the output up to this byte.
        offset: u64,
        /// How large it is.
        size: Size,
        /// The bytes.
        bytes: Vec<u8>,
        /// Bytes of output that the viewer has not been given.
        skipped: u64,
    },
    /// Output.
    Output {
        /// Of its first byte.
        offset: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Output that is not kept, from one offset to another.
    Gap {
        /// The first byte that is missing.
        from: u64,
        /// The first that is there again.
        to: u64,
    },
    /// It has another size.
    Resized(Size),
    /// Somebody else types now.
    Control(ControlView),
    /// It is closed; the last thing that is seen.
    Exit(Box<Run>),
}

/// Somebody who watches a terminal.
pub struct Viewer {
    terminals: Arc<Terminals>,
    run: Run,
    follow: Follow,
    diary: Diary,
    /// Sizes that it gets later in the output.
    sizes: VecDeque<(u64, Size)>,
    /// What comes next, in order.
    ready: VecDeque<Sight>,
    /// Who types, if that is to be told. It can be at any time.
    control: Option<ControlView>,
    /// Where the viewer is; not known before the first screen.
    at: Option<u64>,
    /// All of the output is wanted, however long it takes.
    exact: bool,
    live: Option<Watched>,
    stage: Stage,
}

/// How far the terminal is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// There may be more.
    On,
    /// There is no more output; how it ended is to be told.
    Ending,
    /// All was told.
    Over,
}

/// What is watched of a terminal that goes on.
struct Watched {
    live: Arc<Live>,
    shown: Arc<Shown>,
    size: watch::Receiver<Size>,
    control: watch::Receiver<Turn>,
}

impl Terminals {
    /// Begins to watch a terminal. From an offset on, everything is given in
    /// order; without one, the screen as it is and what happens from then on.
    pub fn watch(self: &Arc<Self>, run: &Run, from: Option<u64>) -> Viewer {
        let live = self.lives.get(&run.command_id);
        let live = live.and_then(|live| {
            Some(Watched {
                shown: live.shown.clone()?,
                size: live.shown.as_ref()?.size.subscribe(),
                control: live.keyboard.changes(),
                live,
            })
        });
        let control = live.as_ref().map(|watched| watched.live.keyboard.view());
        let mut viewer = Viewer {
            terminals: Arc::clone(self),
            follow: self
                .outputs
                .follow(run.clone(), from.unwrap_or(0), Until::Closed),
            run: run.clone(),
            diary: Diary::default(),
            sizes: VecDeque::new(),
            ready: VecDeque::new(),
            control: control.filter(|control| control.taken_by.is_some()),
            at: from,
            exact: from.is_some(),
            live,
            stage: Stage::On,
        };
        if let Some(from) = from {
            let terminal = run.detail.terminal.clone().unwrap_or_default();
            viewer.read_diary();
            let size = viewer.size_at(from).unwrap_or(opened_size(&terminal));
            viewer.ready.push_back(Sight::Resized(size));
        }
        viewer
    }

    /// Returns how many watch a terminal that goes on.
    pub fn watching(&self, run: &Run) -> usize {
        let live = self.lives.get(&run.command_id);
        let shown = live.and_then(|live| live.shown.clone());
        // Whoever watches hears of its size, and nobody else does.
        shown.map_or(0, |shown| shown.size.receiver_count())
    }

    /// Returns whether what is typed is not shown, as passwords are not.
    pub async fn hides_input(&self, run: &Run) -> bool {
        let Some(live) = self.lives.get(&run.command_id) else {
            return false;
        };
        let terminal = live.job.terminal().await;
        terminal.is_some_and(|terminal| terminal.hidden)
    }
}

impl Viewer {
    /// Waits for the next thing to be seen. No more than `room` bytes of output
    /// are wanted; without any room, only who types is told. Nothing comes
    /// after the end.
    pub async fn next(&mut self, room: usize) -> Result<Option<Sight>, Error> {
        loop {
            if let Some(control) = self.control.take() {
                return Ok(Some(Sight::Control(control)));
            }
            if room == 0 {
                self.turn().await;
                continue;
            }
            if let Some(sight) = self.pop(room) {
                return Ok(Some(sight));
            }
            match self.stage {
                Stage::On => {}
                Stage::Ending => return Ok(Some(self.exit().await)),
                Stage::Over => return Ok(None),
            }
            if self.is_behind() {
                return self.snapshot().map(Some);
            }
            self.see().await?;
        }
    }

    /// Returns what is ready, and of output no more than there is room for.
    fn pop(&mut self, room: usize) -> Option<Sight> {
        if let Some(Sight::Output { offset, bytes }) = self.ready.front_mut()
            && bytes.len() > room
        {
            let rest = bytes.split_off(room);
            let now = Sight::Output {
                offset: *offset,
                bytes: std::mem::replace(bytes, rest),
            };
            *offset += room as u64;
            return Some(now);
        }
        self.ready.pop_front()
    }

    fn is_behind(&self) -> bool {
        let newest = { self.live.as_ref() }.map(|watched| watched.shown.fed.borrow().offset);
        match (self.at, newest) {
            (None, _) => true,
            (Some(_), _) if self.exact => false,
            (Some(at), Some(newest)) => newest.saturating_sub(at) > BEHIND,
            (Some(_), None) => false,
        }
    }

    /// The screen as it is.
    fn snapshot(&mut self) -> Result<Sight, Error> {
        let taken = |picture: &mut Picture| {
            let mut bytes = picture.screen.snapshot(SCROLLBACK);
            let [sequence, character] = picture.screen.unfinished();
            bytes.extend_from_slice(sequence);
            // Half a character comes once more, with its other half.
            let offset = picture.offset - character.len() as u64;
            (offset, picture.size, bytes)
        };
        let dir = self.terminals.core.run_dir(&self.run.command_id);
        // Before the screen is looked at: it has all sizes that we know of.
        self.read_diary();
        let (offset, size, bytes) = match &self.live {
            Some(watched) => {
                watched.shown.read_diary(&dir);
                watched.shown.with(taken)
            }
            None => {
                let terminal = self.run.detail.terminal.clone().unwrap_or_default();
                let picture = last_picture(
                    &self.terminals.outputs.log(&self.run),
                    &dir,
                    opened_size(&terminal),
                );
                taken(&mut picture.map_err(Error::file(&dir))?)
            }
        };
        self.size_at(offset);
        let skipped = self.at.map_or(0, |at| offset.saturating_sub(at));
        self.at = Some(offset);
        let run = self.run.clone();
        self.follow = self.terminals.outputs.follow(run, offset, Until::Closed);
        Ok(Sight::Snapshot {
            offset,
            size,
            bytes,
            skipped,
        })
    }

    /// Waits for output, or for anything else.
    async fn see(&mut self) -> Result<(), Error> {
        let Some(watched) = &mut self.live else {
            let items = self.follow.next().await?;
            self.take(items);
            return Ok(());
        };
        let (size, control) = (&mut watched.size, &mut watched.control);
        tokio::select! {
            biased;
            Ok(()) = size.changed() => self.take(Some(vec![])),
            Ok(()) = control.changed() => self.control = Some(watched.live.keyboard.view()),
            items = self.follow.next() => {
                let items = items?;
                self.take(items);
            }
        }
        Ok(())
    }

    /// Waits until somebody else types.
    async fn turn(&mut self) {
        let Some(watched) = &mut self.live else {
            return std::future::pending().await;
        };
        match watched.control.changed().await {
            Ok(()) => self.control = Some(watched.live.keyboard.view()),
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits until how it ended is on record.
    async fn exit(&mut self) -> Sight {
        if let Some(watched) = &self.live {
            watched.live.is_over().await;
        }
        self.stage = Stage::Over;
        let run = self.terminals.runs.recall(&self.run.command_id);
        Sight::Exit(Box::new(run.unwrap_or_else(|_| self.run.clone())))
    }

    /// Makes output ready, with each change of size where it came.
    fn take(&mut self, items: Option<Vec<Item>>) {
        let Some(items) = items else {
            self.stage = Stage::Ending;
            return;
        };
        // After the output was read: the diary has every size up to its end.
        self.read_diary();
        self.at = items.last().map(end_of).or(self.at);
        for item in items {
            match item {
                Item::Piece(piece) => self.write(piece.offset, piece.bytes),
                Item::Gap { from, to } => {
                    self.ready.push_back(Sight::Gap { from, to });
                }
            }
        }
        let at = self.at.unwrap_or(0);
        if let Some(size) = self.size_at(at) {
            self.ready.push_back(Sight::Resized(size));
        }
    }

    fn write(&mut self, mut offset: u64, mut bytes: Vec<u8>) {
        while !bytes.is_empty() {
            if let Some(size) = self.size_at(offset) {
                self.ready.push_back(Sight::Resized(size));
            }
            let next = self.sizes.front().map_or(u64::MAX, |(at, _)| *at);
            let until = usize::try_from(next - offset).unwrap_or(usize::MAX);
            let later = bytes.split_off(until.min(bytes.len()));
            let length = bytes.len() as u64;
            match self.ready.back_mut() {
                // Written in many small steps, and seen at once.
                Some(Sight::Output { bytes: before, .. }) => before.append(&mut bytes),
                _ => self.ready.push_back(Sight::Output { offset, bytes }),
            }
            offset += length;
            bytes = later;
        }
    }

    fn read_diary(&mut self) {
        let dir = self.terminals.core.run_dir(&self.run.command_id);
        // One that cannot be read costs a size, not the output.
        for happened in self.diary.news(&dir).unwrap_or_default() {
            if let What::Resized(size) = happened.what {
                self.sizes.push_back((happened.offset, size));
            }
        }
    }

    /// Returns the size that it is given up to an offset, if it is given one.
    fn size_at(&mut self, offset: u64) -> Option<Size> {
        let mut last = None;
        while let Some((_, size)) = self.sizes.pop_front_if(|(at, _)| *at <= offset) {
            last = Some(size);
        }
        last
    }
}
