//! Limits that every process has by itself.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::profile::Limits;

/// Commands give way to the server and its keepers when the CPUs are busy.
const NICE: i32 = 5;

/// The stack of the first thread. What is usual; without a bound, some
/// programs lay out their memory in an odd way.
const STACK_BYTES: u64 = 8 * 1024 * 1024;

/// Sets what is the same in every run.
pub(crate) fn bound_alike() -> io::Result<()> {
    // One byte and not none: with none, a kernel that pipes cores to a program
    // of the host would still start it.
    limit(Resource::Core, 1)?;
    limit(Resource::Memlock, 64 * 1024 * 1024)?;
    limit(Resource::Msgqueue, 1024 * 1024)?;
    limit(Resource::Rtprio, 0)?;
    limit(Resource::Sigpending, SIGNALS)?;
    let stack = getrlimit(Resource::Stack);
    if stack.current.is_none_or(|current| current > STACK_BYTES) {
        setrlimit(
            Resource::Stack,
            Rlimit {
                current: Some(STACK_BYTES),
                ..stack
            },
        )?;
    }
    Ok(())
}

/// Signals and timers on their way, which count for all of a user.
const SIGNALS: u64 = 4096;

/// Bounds this process, and what it will start.
pub(crate) fn bound(limits: &Limits) -> io::Result<()> {
    // Half of what we have at most: descriptors on their way between processes
    // count for all of a user, and the server and its keepers send some, too.
    let ours = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    limit(Resource::Nofile, limits.open_files.min(ours / 2))?;
    limit(Resource::Fsize, limits.file_bytes)?;
    // Of one process; all together are bounded by the cgroup, or watched.
    limit(Resource::Data, limits.memory_bytes)?;
    // A few more: where a cgroup holds them, it has to refuse first, since it
    // tells when it did.
    limit(Resource::Nproc, limits.processes.saturating_add(16))
}

/// Lowers the priority of this process and its future children. Callers do this
/// last, because it slows them down too.
pub(crate) fn give_way() -> io::Result<()> {
    rustix::process::nice(NICE)?;
    Ok(())
}

/// Lets this process have as many open files as it may.
pub fn raise_open_files() {
    let now = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: now.maximum,
        ..now
    };
    // Where that is refused, things stay as they are.
    let _ = setrlimit(Resource::Nofile, most);
}

/// Sets a limit, or the lower one that is there already.
fn limit(what: Resource, most: u64) -> io::Result<()> {
    let maximum = getrlimit(what).maximum.map_or(most, |now| now.min(most));
    setrlimit(
        what,
        Rlimit {
            current: Some(maximum),
            maximum: Some(maximum),
        },
    )?;
    Ok(())
}
