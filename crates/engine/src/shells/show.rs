//! Keeps the screens of terminals up to date.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::Shells;
use crate::live::{Live, Shown};
use crate::output::{Follow, Until};
use crate::view::Run;

/// Answers that wait for a program to listen; more are not given.
const ANSWERS: usize = 64;

impl Shells {
    /// Keeps the screen of a run up to date until its end, and answers what the
    /// program asks its terminal; what an earlier server may have answered it does
    /// not answer again.
    pub(crate) fn show_from(&self, live: &Arc<Live>, run: &Run, answer_from: u64) {
        if let Some(shown) = live.shown.clone() {
            let follow = self.outputs.follow(run.clone(), 0, Until::Closed);
            let dir: Arc<Path> = self.core.run_dir(&run.command_id).into();
            tokio::spawn(show(follow, shown, Arc::clone(live), dir, answer_from));
        }
    }
}

async fn show(
    mut follow: Follow,
    shown: Arc<Shown>,
    live: Arc<Live>,
    dir: Arc<Path>,
    answer_from: u64,
) {
    // A program that asks and does not listen holds up nobody.
    let (answer, mut answers) = mpsc::channel::<Vec<u8>>(ANSWERS);
    tokio::spawn(async move {
        while let Some(bytes) = answers.recv().await {
            live.answer(&bytes).await;
        }
    });
    while let Ok(Some(items)) = follow.next().await {
        let (shown, dir) = (Arc::clone(&shown), Arc::clone(&dir));
        // A few bytes can make the emulator work for a while.
        let fed = tokio::task::spawn_blocking(move || shown.feed(&items, answer_from, &dir));
        let answers = fed.await.expect("showing does not panic");
        if !answers.is_empty() {
            let _ = answer.try_send(answers);
        }
    }
}
