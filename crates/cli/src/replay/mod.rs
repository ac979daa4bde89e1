//! Recordings of terminals, played.

mod cells;
mod clock;
mod desk;
mod draw;
mod find;
mod frames;
mod hits;
mod keys;
mod player;
mod recording;
mod reel;
mod source;
mod stage;
mod transcript;

pub(crate) use clock::{parse as parse_clock, shown as clock};
pub(crate) use desk::ReplayDesk;
pub(crate) use player::{FASTEST, Player, SLOWEST};
pub(crate) use recording::ScannedRecording;
pub(crate) use source::RecordingFile;
pub(crate) use stage::play;
pub(crate) use transcript::{Transcript, TranscriptLine};
