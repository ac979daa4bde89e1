//! What is read from layers that the real kernel filled.

mod cases;
mod conflicts;
mod deep;
mod layer;
mod refusals;
mod stacked;
mod stored;
mod world;
