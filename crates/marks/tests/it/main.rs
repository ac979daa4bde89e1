//! Real shells on real terminals, and recordings in real files.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod bash;
mod marks;
mod recording;
mod sh;
mod support;
mod zsh;
