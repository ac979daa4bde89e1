//! Kernel walls around a run, and a report of what they truly enforce.
//!
//! So far there is one wall: the [`Tree`], which makes sure that everything a
//! command starts can be found and ended. The only crate with `unsafe`.

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the keeper does not call it yet")
)]
mod cgroup;
mod fork;
mod init;
mod members;
#[cfg_attr(not(test), expect(dead_code, reason = "no run asks for it yet"))]
mod seccomp;
mod session;
mod tree;

pub use cgroup::sweep_cgroups;
pub use fork::{
    Fork, close_inherited, die_of_broken_pipes, exit, forget_children, fork, reset_signals,
};
pub use members::{Member, kill, kill_tagged, load_below, started};
pub use session::{Patience, Unheard, hear};
pub use tree::{Containment, Error, Exit, Notice, Program, Tree, Usage};
