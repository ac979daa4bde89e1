//! What the terminal says to the program.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alacritty_terminal::event::{Event, EventListener};

/// Programs ask a handful of things at once. A hostile one could ask without
/// end, and its answers would cost more than its questions.
const MOST_BYTES: usize = 4096;

/// Shared with the emulator, which hands answers out while it is borrowed.
#[derive(Debug, Default, Clone)]
pub(crate) struct Answers(Arc<Mutex<Vec<u8>>>);

impl Answers {
    /// Adds an answer, or leaves it out whole when there were too many.
    pub(crate) fn push(&self, answer: &str) {
        let mut waiting = self.waiting();
        if waiting.len() + answer.len() <= MOST_BYTES {
            waiting.extend_from_slice(answer.as_bytes());
        }
    }

    /// Returns the answers since the last time.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.waiting())
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventListener for Answers {
    fn send_event(&self, event: Event) {
        if let Event::PtyWrite(answer) = event {
            self.push(&answer);
        }
    }
}
