//! What a terminal shows.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::watch;
use weighlock_exec::{Item, Log, Size};
use weighlock_screen::Screen;

use crate::engine::Engine;
use crate::live::{Live, lock};
use crate::output::{Follow, Until, end_of};
use crate::view::Run;

/// Lines above the screen that can be looked at. Only what was written takes
/// memory.
const SCROLLBACK: usize = 1000;

/// How much of a log is shown at a time.
const STEP: usize = 256 * 1024;

/// The screen of a terminal that runs.
pub(crate) struct Shown {
    screen: Mutex<Screen>,
    /// How many bytes of output it shows.
    pub(crate) fed: watch::Sender<Fed>,
}

/// How far a screen is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fed {
    /// Up to this offset of the output.
    pub(crate) offset: u64,
    /// Since then.
    pub(crate) at: Instant,
}

impl Shown {
    pub(crate) fn new(size: Size) -> Self {
        Self {
            screen: Mutex::new(screen(size)),
            fed: watch::Sender::new(Fed {
                offset: 0,
                at: Instant::now(),
            }),
        }
    }

    /// Looks at the screen, or changes it.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Screen) -> T) -> T {
        look(&mut lock(&self.screen))
    }

    /// Shows more; returns what the terminal answers.
    fn feed(&self, items: &[Item], answer_from: u64) -> Vec<u8> {
        let mut answers = vec![];
        let mut screen = lock(&self.screen);
        for item in items {
            if let Item::Piece(piece) = item {
                let said = screen.feed(&piece.bytes);
                if piece.offset >= answer_from {
                    answers.extend(said);
                }
            }
        }
        drop(screen);
        self.fed.send_replace(Fed {
            offset: items.last().map_or(0, end_of),
            at: Instant::now(),
        });
        answers
    }
}

/// Keeps the screen of a run up to date until its end, and answers what the
/// program asks its terminal; what an earlier server may have answered it does
/// not answer again.
pub(crate) fn show_from(engine: &Arc<Engine>, live: &Arc<Live>, run: &Run, answer_from: u64) {
    if let Some(shown) = live.shown.clone() {
        let follow = engine.follow(run.clone(), 0, Until::Closed);
        tokio::spawn(show(follow, shown, Arc::clone(live), answer_from));
    }
}

async fn show(mut follow: Follow, shown: Arc<Shown>, live: Arc<Live>, answer_from: u64) {
    while let Ok(Some(items)) = follow.next().await {
        let shown = Arc::clone(&shown);
        // A few bytes can make the emulator work for a while.
        let fed = tokio::task::spawn_blocking(move || shown.feed(&items, answer_from));
        let answers = fed.await.expect("showing does not panic");
        if !answers.is_empty() {
            let _ = live.job.feed(&answers).await;
        }
    }
}

/// Returns the last screen of a terminal that is closed.
pub(super) fn last_screen(log: &Log, size: Size) -> std::io::Result<Screen> {
    let mut screen = screen(size);
    let mut from = 0;
    loop {
        let items = log.read(from, STEP)?;
        let Some(last) = items.last() else {
            return Ok(screen);
        };
        from = end_of(last);
        for item in &items {
            if let Item::Piece(piece) = item {
                let _nobody_listens = screen.feed(&piece.bytes);
            }
        }
    }
}

fn screen(size: Size) -> Screen {
    let size = weighlock_screen::Size::new(size.columns, size.rows);
    Screen::new(size.expect("checked when it was opened"), SCROLLBACK)
}
