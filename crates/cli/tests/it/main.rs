//! The real binary, driven as an agent and as a person would.

mod clock;
mod output;
mod rest;
mod returns;
mod run;
mod support;
mod verbs;
