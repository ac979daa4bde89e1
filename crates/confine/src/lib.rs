//! Builds kernel walls around a run and reports which of them the kernel
//! enforces.
//!
//! A [`Profile`] says what a run may see, reach and use. [`Tree::spawn`] builds
//! the walls and starts a program inside; [`Enforced`] says what stands. The
//! only crate with `unsafe`.

mod asleep;
mod cgroup;
mod enforced;
mod fence;
mod files;
mod foreground;
mod fork;
mod handle;
mod init;
mod kernel;
mod limits;
mod line;
mod machine;
mod members;
mod memory;
mod network;
mod privilege;
mod probe;
mod profile;
mod report;
mod resources;
mod root;
mod seccomp;
mod session;
mod system;
mod terminal;
mod tree;
mod watch;

pub use cgroup::sweep_cgroups;
pub use enforced::{Enforced, Holds, WallLayer};
pub use files::Inodes;
pub use foreground::{
    Taker, directory_inside, first_inside, first_waits_for_input, only_first_takes_input,
    takes_input, waits_for_input,
};
pub use fork::{
    Fork, close_inherited, die_of_broken_pipes, exit, forget_children, fork, reset_signals,
};
pub use handle::FileHandle;
pub use limits::raise_open_files;
pub use line::{Note, Notice};
pub use machine::{Alarm, Machine};
pub use members::{Member, kill, kill_tagged, load_below, started};
pub use memory::release_memory;
pub use privilege::{NOBODY, is_root, own};
pub use probe::{Primitive, probe, probe_layer};
pub use profile::{Access, FileId, Identity, Limits, Mount, Network, Profile, Rung, Writes};
pub use resources::{Process, ports_below, processes_below};
pub use session::{Patience, Unheard, hear};
pub use system::{PRIVATE, SYSTEM};
pub use terminal::Size;
pub use tree::{Error, Exit, Grown, ProgramSpec, Spare, Tree, Usage, get_ready};
pub use watch::Exceeded;
