//! What the parser promises, through its only door.

mod differential;
mod properties;
mod random;
mod render;
mod running;
mod runs;
mod seeds;
mod tables;
mod walk;
