//! The real binary, driven as an agent and as a person would.

mod returns;
mod support;
