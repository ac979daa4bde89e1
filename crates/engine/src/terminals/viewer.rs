//! Watching a terminal: what it shows now, and then everything that happens
//! there. Whoever is too slow gets the screen anew instead of all that led to
//! it; the terminal never waits for anybody.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::watch;
use weighlock_exec::{Item, Size};

use super::keyboard::{ControlView, Turn};
use super::show::{Picture, Shown, last_picture};
use crate::engine::Engine;
use crate::error::Error;
use crate::live::Live;
use crate::output::{Follow, Until, end_of};
use crate::view::Run;

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
    engine: Arc<Engine>,
    run: Run,
    follow: Follow,
    /// What comes next, in order.
    ready: VecDeque<Sight>,
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

impl Engine {
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
        let control = control.filter(|control| control.taken_by.is_some());
        Viewer {
            engine: Arc::clone(self),
            follow: self.follow(run.clone(), from.unwrap_or(0), Until::Closed),
            run: run.clone(),
            ready: control.map(Sight::Control).into_iter().collect(),
            at: from,
            exact: from.is_some(),
            live,
            stage: Stage::On,
        }
    }
}

impl Viewer {
    /// Waits for the next thing to be seen. While `room` is false no output is
    /// wanted, but all else is told. Nothing comes after the end.
    pub async fn next(&mut self, room: bool) -> Result<Option<Sight>, Error> {
        loop {
            if !room && self.ready.iter().all(is_output) {
                // Only what is small may come.
                if let Some(sight) = self.aside().await {
                    return Ok(Some(sight));
                }
                continue;
            }
            let next = { self.ready.iter() }.position(|sight| room || !is_output(sight));
            if let Some(sight) = next.and_then(|at| self.ready.remove(at)) {
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
            let bytes = picture.screen.snapshot(SCROLLBACK);
            (picture.offset, picture.size, bytes)
        };
        let (offset, size, bytes) = match &self.live {
            Some(watched) => watched.shown.with(taken),
            None => {
                let terminal = self.run.detail.terminal.clone().unwrap_or_default();
                let (log, dir) = (
                    self.engine.log(&self.run),
                    self.engine.dir_of(&self.run.command_id),
                );
                let picture = last_picture(&log, &dir, terminal.size());
                taken(&mut picture.map_err(|source| Error::File { path: dir, source })?)
            }
        };
        let skipped = self.at.map_or(0, |at| offset.saturating_sub(at));
        self.at = Some(offset);
        let run = self.run.clone();
        self.follow = self.engine.follow(run, offset, Until::Closed);
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
            Ok(()) = size.changed() => {
                let size = *size.borrow_and_update();
                self.ready.push_back(Sight::Resized(size));
            }
            Ok(()) = control.changed() => {
                control.mark_unchanged();
                self.ready.push_back(Sight::Control(watched.live.keyboard.view()));
            }
            items = self.follow.next() => {
                let items = items?;
                self.take(items);
            }
        }
        Ok(())
    }

    /// Waits for what is no output.
    async fn aside(&mut self) -> Option<Sight> {
        let Some(watched) = &mut self.live else {
            return std::future::pending().await;
        };
        let (size, control) = (&mut watched.size, &mut watched.control);
        tokio::select! {
            Ok(()) = size.changed() => Some(Sight::Resized(*size.borrow_and_update())),
            Ok(()) = control.changed() => {
                control.mark_unchanged();
                Some(Sight::Control(watched.live.keyboard.view()))
            }
            else => std::future::pending().await,
        }
    }

    /// Waits until how it ended is on record.
    async fn exit(&mut self) -> Sight {
        if let Some(watched) = &self.live {
            watched.live.is_over().await;
        }
        self.stage = Stage::Over;
        let run = self.engine.recall(&self.run.command_id);
        Sight::Exit(Box::new(run.unwrap_or_else(|_| self.run.clone())))
    }

    fn take(&mut self, items: Option<Vec<Item>>) {
        let Some(items) = items else {
            self.stage = Stage::Ending;
            return;
        };
        self.at = items.last().map(end_of);
        for item in items {
            match (item, self.ready.back_mut()) {
                // Written in many small steps, and seen at once.
                (Item::Piece(piece), Some(Sight::Output { bytes, .. })) => {
                    bytes.extend_from_slice(&piece.bytes);
                }
                (Item::Piece(piece), _) => self.ready.push_back(Sight::Output {
                    offset: piece.offset,
                    bytes: piece.bytes,
                }),
                (Item::Gap { from, to }, _) => self.ready.push_back(Sight::Gap { from, to }),
            }
        }
    }
}

fn is_output(sight: &Sight) -> bool {
    matches!(
        sight,
        Sight::Snapshot { .. } | Sight::Output { .. } | Sight::Gap { .. }
    )
}
