//! What is read from layers that the real kernel filled.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod cases;
mod conflicts;
mod deep;
mod layer;
mod refusals;
mod stacked;
mod stored;
mod world;
