//! The player on a person's terminal.

use std::time::{Duration, Instant};

use tokio::signal::unix::SignalKind;

use super::desk::ReplayDesk;
use crate::client::Failure;
use crate::full_screen::FullScreen;
use crate::keys::Keys;
use crate::signals::{Signals, listen};

/// The most that playback advances in one step. After a stop or a suspended
/// machine it goes on where the viewer stopped watching.
const LONGEST: Duration = Duration::from_secs(1);

/// Plays until somebody leaves, or wants us to end.
pub(crate) async fn play(mut desk: ReplayDesk) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let mut resized = listen(SignalKind::window_change())?;
    let mut continued = listen(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?;
    let mut keys = Keys::new(&mut signals)?;
    let mut screen = FullScreen::enter();
    let mut last = Instant::now();
    loop {
        desk.fit(screen.size());
        desk.work()?;
        screen.draw(&desk.lines());
        tokio::select! {
            biased;
            typed = keys.bytes() => {
                let Some(typed) = typed else { return Ok(()) };
                let typed = keys.whole(typed).await;
                if desk.typed(&typed)? {
                    return Ok(());
                }
            }
            _ = resized.recv() => screen.forget(),
            _ = continued.recv() => screen.forget(),
            () = tokio::time::sleep(desk.patience()) => {}
        }
        desk.advance(last.elapsed().min(LONGEST));
        last = Instant::now();
    }
}
