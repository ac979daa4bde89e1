//! Real shells on real terminals, and recordings in real files.

mod bash;
mod marks;
mod recording;
mod sh;
mod strip;
mod support;
mod zsh;
