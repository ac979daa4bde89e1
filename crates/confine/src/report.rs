//! Says in words what stands around a run, and what does not.

use rustix::io::Errno;

use crate::cgroup::{Held, Version};
use crate::enforced::{Enforced, Holds};
use crate::line::Built;
use crate::profile::{Limits, Mount, Network, Profile, Rung};

/// The version of Landlock that can shut off abstract sockets.
const ABSTRACT_SOCKETS: i32 = 6;

/// Puts together what is enforced, before limits.
pub(crate) fn enforced(
    profile: &Profile,
    rung: Rung,
    why: Option<String>,
    built: &Built,
) -> Enforced {
    let mut all = Enforced {
        rung,
        layers: vec![],
    };
    let own = rung > Rung::Landlock;
    match own {
        true => all.say(
            "files",
            Holds::Whole,
            "a root of its own; the system is read-only",
        ),
        false => all.say(
            "files",
            Holds::Partly,
            "Landlock alone: permissions and times of files outside can be changed, names \
             and sizes seen, and nothing is protected inside what can be written",
        ),
    }
    let layered = |mount: &Mount| matches!(mount, Mount::Layered { .. });
    if profile.files.iter().any(layered) {
        let how = "overlayfs: what is written goes to a copy, and the directory stays as it is";
        all.say("layer", Holds::Whole, how);
    }
    let closed = |mount: &&Mount| matches!(mount, Mount::Close { .. });
    match (profile.files.iter().filter(closed).count(), own) {
        (0, _) => {}
        (count, true) => all.say(
            "secret files",
            Holds::Whole,
            format!("{count} cannot be opened: the run has not been allowed to"),
        ),
        (_, false) => all.say(
            "secret files",
            Holds::Not,
            "can be read: only a mount namespace can keep them from a run",
        ),
    }
    match (own, &built.homeless) {
        (true, _) => {}
        (false, None) => all.say(
            "home",
            Holds::Whole,
            "HOME and TMPDIR are directories of the sandbox's own; /tmp is closed",
        ),
        (false, Some(why)) => all.say(
            "home",
            Holds::Not,
            format!(
                "no home directory and no place for temporary files: the one in the state \
                 directory is closed to the run's user ({why})"
            ),
        ),
    }
    match (own, &built.hostname) {
        (true, None) => all.say("processes", Holds::Whole, "PID, IPC and UTS namespaces"),
        (true, Some(why)) => all.say(
            "processes",
            Holds::Whole,
            format!("PID, IPC and UTS namespaces; the host's name can be seen ({why})"),
        ),
        (false, _) => all.say(
            "processes",
            Holds::Partly,
            "no namespaces: other processes can be seen, and a process could kill its keeper",
        ),
    }
    match rung {
        Rung::Full => all.say("proc", Holds::Whole, "shows only the run's own processes"),
        Rung::SharedProc | Rung::Landlock => all.say(
            "proc",
            Holds::Not,
            "is the host's: command lines of other processes can be read",
        ),
    }
    match (profile.network, own) {
        (Network::On, _) if built.landlock < ABSTRACT_SOCKETS => all.say(
            "network",
            Holds::Unwanted,
            "on: everything can be reached, abstract sockets of the host too",
        ),
        (Network::On, _) => all.say("network", Holds::Unwanted, "on: everything can be reached"),
        (Network::Off, true) => all.say("network", Holds::Whole, "off: a loopback of its own"),
        (Network::Off, false) => all.say(
            "network",
            Holds::Partly,
            "off: no internet sockets at all; Unix sockets of the host can be reached",
        ),
    }
    let nobody_else = if built.user_namespace {
        "no capabilities, no new privileges, nobody else is known"
    } else {
        "no capabilities, no new privileges"
    };
    all.say("privileges", Holds::Whole, nobody_else);
    all.say("calls", Holds::Whole, "seccomp");
    match built.landlock {
        0 => all.say("landlock", Holds::Not, "the kernel has none"),
        version => all.say("landlock", Holds::Whole, format!("version {version}")),
    }
    if let Some(why) = why {
        all.say("rung", Holds::Not, why);
    }
    all
}

/// Which namespaces bound the number of processes, if any do: the one of PIDs
/// by a number of its own, the one of users since Linux 5.14, as nobody else
/// counts there.
pub(crate) fn bounds_processes(built: &Built) -> Option<&'static str> {
    let counted_apart = built.user_namespace && crate::kernel::is_at_least(5, 14);
    match (built.pids_bounded, counted_apart) {
        (true, true) => Some("the PID namespace and the user namespace"),
        (true, false) => Some("the PID namespace"),
        (false, true) => Some("the user namespace"),
        (false, false) => None,
    }
}

/// Adds what limits the run, and by what.
pub(crate) fn limits(
    enforced: &mut Enforced,
    limits: &Limits,
    held: Option<Held>,
    namespaces: Option<&str>,
) {
    let version = |version| match version {
        Version::V1 => "cgroup v1",
        Version::V2 => "cgroup v2",
    };
    let missing = |errno: Option<Errno>| match errno {
        Some(errno) => format!("no cgroup ({})", std::io::Error::from(errno)),
        None => "no cgroup".into(),
    };
    match held.map(|held| held.memory) {
        Some(Ok(by)) => enforced.say("memory", Holds::Whole, version(by)),
        other => enforced.say(
            "memory",
            Holds::Partly,
            format!(
                "{}: each process is bounded, all together are watched",
                missing(other.and_then(Result::err))
            ),
        ),
    }
    match (held.map(|held| held.processes), namespaces) {
        (Some(Ok(by)), _) => enforced.say("pids", Holds::Whole, version(by)),
        (_, Some(namespaces)) => enforced.say("pids", Holds::Whole, namespaces),
        (other, None) => enforced.say(
            "pids",
            Holds::Partly,
            format!(
                "{}: counted together with the user's other processes",
                missing(other.and_then(Result::err))
            ),
        ),
    }
    match held.map(|held| held.cpu) {
        Some(Ok(by)) => enforced.say("cpu", Holds::Whole, version(by)),
        other => enforced.say(
            "cpu",
            Holds::Partly,
            format!(
                "{}: lower priority only",
                missing(other.and_then(Result::err))
            ),
        ),
    }
    enforced.say(
        "disk",
        Holds::Partly,
        format!(
            "watched: ended after {} MiB written, or {} files made on a copy",
            limits.disk_bytes >> 20,
            limits.disk_files
        ),
    );
}
