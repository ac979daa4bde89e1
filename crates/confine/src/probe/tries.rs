//! Each try, in the order in which walls are built.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, OpenTreeFlags, open_tree};
use rustix::process::{Signal, getppid, kill_process, test_kill_process};
use rustix::thread::{UnshareFlags, capabilities, set_no_new_privs};

use super::{ProbeFailure, ProbeStep, at};
use crate::cgroup::{Bounds, Cgroup, Held, Version};
use crate::fence::{self, Fence, OpenPaths};
use crate::fork::{Cloned, clone};
use crate::limits;
use crate::network::{name_host, raise_loopback};
use crate::privilege::{
    NOBODY, become_user, drop_all, enter_user_namespace, is_root, join_new_keyring, make_lender,
    map,
};
use crate::profile::{Access, Limits, Rung};
use crate::root::{
    clone_tree, failed, fresh_devpts, fresh_proc, lend, mount_memory, open_pid_max, pivot, restrict,
};
use crate::seccomp::{SeccompFilter, Sockets};
use crate::tree::{Spare, wait};

/// One thing to try.
pub(super) struct Try {
    pub(super) name: &'static str,
    pub(super) who: AppliesTo,
    /// Made together with the process, beside a user namespace for an ordinary
    /// user; 0 where the deed itself does what it takes.
    pub(super) namespaces: libc::c_int,
    pub(super) deed: fn() -> Result<String, ProbeFailure>,
    /// What does not hold without it.
    pub(super) means: &'static str,
}

/// For which servers it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AppliesTo {
    Root,
    User,
    Both,
}

use AppliesTo::{Both, Root, User};

pub(super) const TRIES: &[Try] = &[
    Try {
        name: "user-namespace",
        who: User,
        namespaces: 0,
        deed: user_namespace,
        means: "without one an ordinary user has no other namespaces: there are no walls but \
                Landlock, seccomp and limits",
    },
    Try {
        name: "user-namespace",
        who: Root,
        namespaces: 0,
        deed: user_namespace_of_another,
        means: "commands see who owns the host's files, and their processes are counted together \
                with the host's processes of the same user",
    },
    Try {
        name: "other-user",
        who: Root,
        namespaces: 0,
        deed: || done(ProbeStep::Only, "become another user", become_user(NOBODY)),
        means: "commands would be root; nothing runs",
    },
    Try {
        name: "idmapped-mounts",
        who: Root,
        namespaces: 0,
        deed: idmapped_mounts,
        means: "commands cannot work in directories that root owns",
    },
    Try {
        name: "mount-namespace",
        who: Both,
        namespaces: 0,
        deed: || unshare(UnshareFlags::NEWNS),
        means: "commands see the host's files, as far as Landlock lets them",
    },
    Try {
        name: "pid-namespace",
        who: Both,
        namespaces: libc::CLONE_NEWPID,
        deed: || Ok(String::new()),
        means: "commands see other processes, and one could kill its keeper and go on",
    },
    Try {
        name: "ipc-namespace",
        who: Both,
        namespaces: 0,
        deed: || unshare(UnshareFlags::NEWIPC),
        means: "commands share memory segments and queues with the host's processes",
    },
    Try {
        name: "uts-namespace",
        who: Both,
        namespaces: 0,
        deed: || unshare(UnshareFlags::NEWUTS),
        means: "commands share the host's name",
    },
    Try {
        name: "hostname",
        who: Both,
        namespaces: libc::CLONE_NEWUTS,
        deed: || done(ProbeStep::Only, "name the machine", name_host()),
        means: "commands see the host's name",
    },
    Try {
        name: "net-namespace",
        who: Both,
        namespaces: 0,
        deed: || unshare(UnshareFlags::NEWNET),
        means: "without network, commands have no loopback either; services of the host that \
                listen on Unix sockets can be reached",
    },
    Try {
        name: "cgroup-namespace",
        who: Both,
        namespaces: 0,
        deed: || unshare(UnshareFlags::NEWCGROUP),
        means: "commands see the names of the host's control groups",
    },
    Try {
        name: "own-mounts",
        who: Both,
        namespaces: libc::CLONE_NEWNS,
        deed: own_mounts,
        means: "commands see the host's files, as far as Landlock lets them",
    },
    Try {
        name: "fresh-proc",
        who: Both,
        namespaces: libc::CLONE_NEWNS | libc::CLONE_NEWPID,
        deed: || {
            done(
                ProbeStep::Proc,
                "mount a fresh /proc",
                fresh_proc().map(drop),
            )
        },
        means: "commands see the host's /proc: command lines of other processes can be read",
    },
    Try {
        name: "devpts",
        who: Both,
        namespaces: libc::CLONE_NEWNS,
        deed: || {
            done(
                ProbeStep::Mount,
                "mount a fresh /dev/pts",
                fresh_devpts().map(drop),
            )
        },
        means: "there can be no /dev of its own, and so no walls but Landlock",
    },
    Try {
        name: "loopback",
        who: Both,
        namespaces: libc::CLONE_NEWNET,
        deed: || done(ProbeStep::Loopback, "raise the loopback", raise_loopback()),
        means: "a network of its own would be dead, so there are no walls but Landlock",
    },
    Try {
        name: "no-new-privs",
        who: Both,
        namespaces: 0,
        deed: || {
            done(
                ProbeStep::Only,
                "give up new privileges",
                set_no_new_privs(true),
            )
        },
        means: "set-id programs could raise privileges; nothing runs",
    },
    Try {
        name: "capabilities",
        who: Both,
        namespaces: 0,
        deed: no_capabilities,
        means: "commands would keep privileges; nothing runs",
    },
    Try {
        name: "seccomp",
        who: Both,
        namespaces: 0,
        deed: seccomp,
        means: "the whole kernel would be in reach; nothing runs",
    },
    Try {
        name: "landlock-files",
        who: Both,
        namespaces: 0,
        deed: || landlock(1, files_are_shut),
        means: "the mounts are the only lock on files; where there are none, nothing runs",
    },
    Try {
        name: "landlock-tcp",
        who: Both,
        namespaces: 0,
        deed: || landlock(4, tcp_is_shut),
        means: "without namespaces, only seccomp keeps commands off the network",
    },
    Try {
        name: "landlock-scopes",
        who: Both,
        namespaces: 0,
        deed: || landlock(6, signals_are_shut),
        means: "without namespaces, commands can signal this user's other processes and reach \
                abstract Unix sockets",
    },
    Try {
        name: "cgroup-memory",
        who: Both,
        namespaces: 0,
        deed: || cgroup(|held| held.memory),
        means: "memory is bounded for each process, and watched for all of a run together",
    },
    Try {
        name: "cgroup-pids",
        who: Both,
        namespaces: 0,
        deed: || cgroup(|held| held.processes),
        means: "processes are bounded by the PID namespace and RLIMIT_NPROC, and watched",
    },
    Try {
        name: "cgroup-cpu",
        who: Both,
        namespaces: 0,
        deed: || cgroup(|held| held.cpu),
        means: "commands only have a lower priority",
    },
    Try {
        name: "rlimits",
        who: Both,
        namespaces: 0,
        deed: || done(ProbeStep::Only, "set limits", limits::bound(&SOME)),
        means: "open files, file sizes and memory of a process have no bound; nothing runs",
    },
    Try {
        name: "pid-max",
        who: Both,
        namespaces: libc::CLONE_NEWNS | libc::CLONE_NEWPID,
        deed: pid_max,
        means: "the PID namespace does not bound the number of processes; a cgroup or \
                RLIMIT_NPROC must",
    },
    Try {
        name: "keyring",
        who: Both,
        namespaces: 0,
        deed: || done(ProbeStep::Only, "leave the keyring", join_new_keyring()),
        means: "commands have the session keyring of whoever started the server",
    },
    Try {
        name: "walls",
        who: Both,
        namespaces: 0,
        deed: walls,
        means: "what commands run behind is weaker than it could be",
    },
];

/// Generous ones, that any machine has.
const SOME: Limits = Limits {
    memory_bytes: 1 << 40,
    processes: 4096,
    cpu_weight: 100,
    open_files: 1024,
    file_bytes: 1 << 40,
    disk_bytes: 1 << 40,
    disk_files: 1 << 40,
};

fn done<E: Into<io::Error>>(
    step: ProbeStep,
    what: &str,
    done: Result<(), E>,
) -> Result<String, ProbeFailure> {
    done.map_err(at(step, what))?;
    Ok(String::new())
}

fn user_namespace() -> Result<String, ProbeFailure> {
    done(
        ProbeStep::UserNamespace,
        "enter a user namespace",
        enter_user_namespace().and_then(map),
    )
}

/// Root makes it as the user that a run is.
fn user_namespace_of_another() -> Result<String, ProbeFailure> {
    become_user(NOBODY).map_err(failed("become another user"))?;
    user_namespace()
}

fn unshare(what: UnshareFlags) -> Result<String, ProbeFailure> {
    if !is_root() {
        enter_user_namespace().map_err(at(ProbeStep::UserNamespace, "enter a user namespace"))?;
    }
    // SAFETY: we have one thread, and share no files or memory with another.
    let made = unsafe { rustix::thread::unshare_unsafe(what) };
    done(ProbeStep::Namespace, "make one", made)
}

/// The file system of `/` stands for those of sandboxes; `tmpfs` has them
/// since Linux 6.3.
fn idmapped_mounts() -> Result<String, ProbeFailure> {
    let lender = make_lender();
    let lender = lender.map_err(at(
        ProbeStep::UserNamespace,
        "make a user namespace for them",
    ))?;
    unshare(UnshareFlags::NEWNS)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let root = open_tree(CWD, "/", flags).map_err(at(ProbeStep::Mount, "copy a mount"))?;
    let lent = lend(&root, &lender);
    done(ProbeStep::MapOwners, "map the owners of a mount of /", lent)
}

fn own_mounts() -> Result<String, ProbeFailure> {
    mount_memory().map_err(at(ProbeStep::Mount, "mount a memory file system"))?;
    let old = pivot().map_err(at(ProbeStep::PivotRoot, "make it the root (pivot_root)"))?;
    let usr = clone_tree(&old, Path::new("usr")).map_err(at(ProbeStep::Mount, "copy a mount"))?;
    let no_devices = MountAttrFlags::MOUNT_ATTR_NODEV;
    done(
        ProbeStep::Mount,
        "make a mount read-only",
        restrict(&usr, Access::Read, no_devices, true),
    )
}

fn no_capabilities() -> Result<String, ProbeFailure> {
    drop_all().map_err(failed("give up capabilities"))?;
    let left = capabilities(None).map_err(failed("see which are left"))?;
    if left.effective.is_empty() && left.permitted.is_empty() {
        Ok(String::new())
    } else {
        Err(ProbeFailure::other("some capabilities are left"))
    }
}

fn seccomp() -> Result<String, ProbeFailure> {
    set_no_new_privs(true).map_err(failed("give up new privileges"))?;
    let filter = SeccompFilter::get(Sockets::Local);
    filter.install().map_err(failed("filter system calls"))?;
    match std::net::UdpSocket::bind("127.0.0.1:0") {
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => Ok(String::new()),
        _ => Err(ProbeFailure::other(
            "the filter is there and filters nothing",
        )),
    }
}

/// Shuts us in and looks whether that holds.
fn landlock(since: i32, holds: fn() -> bool) -> Result<String, ProbeFailure> {
    let version = fence::find_version().map_err(failed("use Landlock"))?;
    let found = format!("version {version}");
    if version < since {
        let text = format!("Landlock has it since version {since}; here is {version}");
        return Err(ProbeFailure {
            found: Some(found),
            ..ProbeFailure::other(text)
        });
    }
    set_no_new_privs(true).map_err(failed("give up new privileges"))?;
    let open = OpenPaths {
        read: vec![Path::new("/usr")],
        ..OpenPaths::default()
    };
    let fence = Fence::new(false).and_then(|fence| fence.open(&open));
    let shut = fence.and_then(Fence::shut).map_err(failed("shut us in"))?;
    if shut && holds() {
        Ok(found)
    } else {
        Err(ProbeFailure::other("Landlock is there and shuts nothing"))
    }
}

fn files_are_shut() -> bool {
    std::fs::read_dir("/").is_err_and(|error| error.raw_os_error() == Some(libc::EACCES))
}

fn tcp_is_shut() -> bool {
    // Whether somebody listens there does not matter: it is refused before.
    let somewhere = SocketAddr::from(([127, 0, 0, 1], 9));
    TcpStream::connect_timeout(&somewhere, Duration::from_millis(100))
        .is_err_and(|error| error.raw_os_error() == Some(libc::EACCES))
}

fn signals_are_shut() -> bool {
    getppid().is_some_and(|parent| test_kill_process(parent) == Err(Errno::PERM))
}

/// Bounds a process for real, which waits meanwhile.
fn cgroup(which: fn(Held) -> Result<Version, Errno>) -> Result<String, ProbeFailure> {
    let mut group = Cgroup::prepare();
    let Some(Cloned { pid, .. }) = clone(0)? else {
        loop {
            std::thread::sleep(super::WITHIN);
        }
    };
    group.enter(pid.as_raw_nonzero().get().cast_unsigned());
    let held = group.bound(&Bounds {
        memory_bytes: SOME.memory_bytes,
        processes: SOME.processes,
        cpu_weight: SOME.cpu_weight,
    });
    let _ = kill_process(pid, Signal::KILL);
    let _ = wait(Some(pid), true);
    group.remove();
    match which(held).map_err(failed("make a control group"))? {
        Version::V1 => Ok("v1".into()),
        Version::V2 => Ok("v2".into()),
    }
}

fn pid_max() -> Result<String, ProbeFailure> {
    if !crate::kernel::is_at_least(6, 14) {
        return Err(ProbeFailure::other(
            "each PID namespace has one since Linux 6.14",
        ));
    }
    let proc = fresh_proc().map_err(at(ProbeStep::Proc, "mount a fresh /proc"))?;
    let mut file = open_pid_max(&proc).map_err(failed("open pid_max"))?;
    done(ProbeStep::Only, "set pid_max", file.write_all(b"4096"))
}

/// Builds the walls that a run would have.
fn walls() -> Result<String, ProbeFailure> {
    let spare = Spare::prepare().map_err(|error| ProbeFailure::other(error.to_string()))?;
    let fenced = fence::version() > 0;
    match spare.rung() {
        Rung::Full => Ok(Rung::Full.word().into()),
        Rung::Landlock if !fenced => Err(ProbeFailure {
            found: Some("none".into()),
            ..ProbeFailure::other(spare.why())
        }),
        rung => Err(ProbeFailure {
            found: Some(rung.word().into()),
            ..ProbeFailure::other(spare.why())
        }),
    }
}
