//! What this kernel grants us, found by trying each thing on its own.
//!
//! Every try is a process of its own with a deadline: some change the process
//! that makes them for good, and a strange host may kill it or let it hang.

mod fix;
mod tries;

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{XattrFlags, removexattr, setxattr};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::fork::{Cloned, clone, exit};
use crate::privilege::{is_root, make_lender, map, own};
use crate::root::{Failed, failed, lent_overlay, overlay};
use crate::tree::{Exit, readable_within, wait};
use fix::HostFacts;
use tries::{AppliesTo, TRIES, Try};

/// Each is a handful of system calls; the slowest, building the walls, takes
/// some 10 ms. But an emulated machine took more than a second.
const WITHIN: Duration = Duration::from_secs(5);

/// One thing that walls are made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Primitive {
    /// A stable word, such as `user-namespace`.
    pub name: String,
    /// It can be had.
    pub ok: bool,
    /// What was found: a version, say.
    pub found: Option<String>,
    /// The kernel's error, as a number.
    pub errno: Option<i32>,
    /// What failed and how, with the error's name.
    pub error: Option<String>,
    /// What does not hold without it.
    pub means: String,
    /// What a person can do about it here.
    pub fix: Option<String>,
}

/// Tries everything. The caller must be single-threaded.
pub fn probe() -> Vec<Primitive> {
    let host = HostFacts::look();
    let who = if is_root() {
        AppliesTo::Root
    } else {
        AppliesTo::User
    };
    TRIES
        .iter()
        .filter(|one| one.who == AppliesTo::Both || one.who == who)
        .map(|one| one.primitive(attempt(one.namespaces, one.deed), &host))
        .collect()
}

/// Tries whether a directory can be shown through a layer: `layer` holds an
/// empty `upper` and `work`. `lent`: root owns both, and a run gets them as
/// another user's. The caller must be single-threaded.
pub fn probe_layer(dir: &Path, layer: &Path, lent: bool) -> Result<(), String> {
    let tried = attempt(libc::CLONE_NEWNS, || {
        keep_marks(&layer.join("upper"))?;
        let mounted = match lent {
            true => make_lender().and_then(|lender| lent_overlay(dir, layer, &lender)),
            false => overlay(&[dir.to_owned()], Some(layer)),
        };
        mounted.map_err(failed("mount an overlay"))?;
        Ok(String::new())
    });
    tried.map(drop).map_err(|refusal| refusal.text)
}

/// Tries whether a file system keeps the marks of layers. The kernel mounts one
/// that does not all the same, and then cannot replace directories there.
fn keep_marks(upper: &Path) -> Result<(), ProbeFailure> {
    let mark = "user.overlay.weighlock";
    let marked = setxattr(upper, mark, b"", XattrFlags::empty());
    match marked.and_then(|()| removexattr(upper, mark)) {
        Err(Errno::OPNOTSUPP) => Err(ProbeFailure::other(
            "the file system of the state directory keeps no attributes (tmpfs does since Linux \
             6.6); keep the state directory on a disk",
        )),
        done => Ok(done.map_err(failed("mark a layer"))?),
    }
}

impl Try {
    fn primitive(&self, came_out: Result<String, ProbeFailure>, host: &HostFacts) -> Primitive {
        let mut primitive = Primitive {
            name: self.name.into(),
            ok: came_out.is_ok(),
            found: None,
            errno: None,
            error: None,
            means: self.means.into(),
            fix: None,
        };
        match came_out {
            Ok(found) => primitive.found = Some(found).filter(|found| !found.is_empty()),
            Err(refusal) => {
                primitive.fix = host.fix(self.name, &refusal);
                primitive.errno = refusal.errno;
                primitive.found = refusal.found;
                primitive.error = Some(refusal.text);
            }
        }
        primitive
    }
}

/// Why something cannot be had.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProbeFailure {
    step: ProbeStep,
    errno: Option<i32>,
    text: String,
    /// What there is instead.
    found: Option<String>,
}

/// The step that failed. What to do about an error depends on it: `EINVAL` of
/// `pivot_root` has nothing to do with `EINVAL` of `unshare`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum ProbeStep {
    /// Entering a user namespace, or saying who is known in it.
    UserNamespace,
    /// Making a namespace of another kind, alone or together with others.
    Namespace,
    /// Mounting something other than `/proc`, or copying or changing a mount.
    Mount,
    /// Making a mount the root.
    PivotRoot,
    /// Mounting a fresh `/proc`.
    Proc,
    /// Mapping the owners of a mount.
    MapOwners,
    /// Raising the loopback.
    Loopback,
    /// One that the name of the try says all about.
    Only,
}

/// Says which step failed, and in words what it was to do.
fn at<E: Into<io::Error>>(step: ProbeStep, what: &str) -> impl FnOnce(E) -> ProbeFailure {
    let failed = failed(what);
    move |error| ProbeFailure {
        step,
        ..failed(error).into()
    }
}

impl ProbeFailure {
    fn other(text: impl Into<String>) -> Self {
        Self {
            step: ProbeStep::Only,
            errno: None,
            text: text.into(),
            found: None,
        }
    }
}

impl From<Failed> for ProbeFailure {
    fn from(Failed { what, error }: Failed) -> Self {
        let errno = error.raw_os_error();
        Self {
            text: match errno {
                Some(errno) => format!("cannot {what}: {}", named(errno)),
                None => format!("cannot {what}: {error}"),
            },
            step: ProbeStep::Only,
            errno,
            found: None,
        }
    }
}

impl From<io::Error> for ProbeFailure {
    fn from(error: io::Error) -> Self {
        failed("try it")(error).into()
    }
}

/// Makes one try in a process of its own.
pub(crate) fn attempt(
    namespaces: libc::c_int,
    deed: impl FnOnce() -> Result<String, ProbeFailure>,
) -> Result<String, ProbeFailure> {
    let (mut answer, mut say) = pipe_with(PipeFlags::CLOEXEC)
        .map(|(read, write)| (std::fs::File::from(read), std::fs::File::from(write)))
        .map_err(io::Error::from)?;
    let user = own();
    let namespaces = match namespaces {
        0 => 0,
        some if is_root() => some,
        some => some | libc::CLONE_NEWUSER,
    };
    let made = clone(namespaces).map_err(at(ProbeStep::Namespace, "enter namespaces"))?;
    let Some(Cloned { pid, pidfd }) = made else {
        drop(answer);
        let mapped = match namespaces & libc::CLONE_NEWUSER {
            0 => Ok(()),
            _ => map(user).map_err(at(ProbeStep::UserNamespace, "be known in a user namespace")),
        };
        let came_out = mapped.and_then(|()| deed());
        if let Ok(text) = serde_json::to_vec(&came_out) {
            let _ = say.write_all(&text);
        }
        exit(0);
    };
    drop(say);
    let in_time = readable_within(pidfd.as_fd(), WITHIN);
    let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    let ended = wait(Some(pid), true);
    if !matches!(in_time, Ok(true)) {
        return Err(ProbeFailure {
            errno: Some(libc::ETIMEDOUT),
            ..ProbeFailure::other(format!(
                "no answer within {} s (ETIMEDOUT)",
                WITHIN.as_secs()
            ))
        });
    }
    let mut text = vec![];
    answer.read_to_end(&mut text)?;
    serde_json::from_slice(&text).unwrap_or_else(|_| {
        Err(ProbeFailure::other(match ended {
            Ok(Some((_, Exit::Signal(signal), _))) => {
                format!("the process was killed by signal {signal}")
            }
            _ => "the process ended without an answer".into(),
        }))
    })
}

/// An error as people and search engines know it.
fn named(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    match NAMES
        .iter()
        .find(|(known, _)| known.raw_os_error() == errno)
    {
        Some((_, name)) => format!("{text} ({name})"),
        None => format!("{text} (error {errno})"),
    }
}

/// Those that are met in practice.
const NAMES: &[(Errno, &str)] = &[
    (Errno::ACCESS, "EACCES"),
    (Errno::AGAIN, "EAGAIN"),
    (Errno::BUSY, "EBUSY"),
    (Errno::INVAL, "EINVAL"),
    (Errno::MFILE, "EMFILE"),
    (Errno::NODEV, "ENODEV"),
    (Errno::NOENT, "ENOENT"),
    (Errno::NOMEM, "ENOMEM"),
    (Errno::NOSPC, "ENOSPC"),
    (Errno::NOSYS, "ENOSYS"),
    (Errno::OPNOTSUPP, "EOPNOTSUPP"),
    (Errno::PERM, "EPERM"),
    (Errno::ROFS, "EROFS"),
    (Errno::SRCH, "ESRCH"),
    (Errno::TIMEDOUT, "ETIMEDOUT"),
    (Errno::USERS, "EUSERS"),
];

#[cfg(test)]
mod tests {
    use rustix::thread::set_no_new_privs;

    use super::*;
    use crate::seccomp::SeccompFilter;
    use crate::tree::Spare;

    fn one(deed: fn() -> Result<String, ProbeFailure>) -> Result<String, ProbeFailure> {
        attempt(0, deed)
    }

    /// As an ordinary user finds it before Linux 6.14.
    #[test]
    fn walls_are_full_where_pid_max_cannot_be_opened() {
        let rung = || {
            let spare = Spare::prepare().map_err(|error| ProbeFailure::other(error.to_string()))?;
            Ok(format!("{} {}", spare.rung().word(), spare.why()))
        };
        let usual = attempt(0, rung).unwrap();
        if !usual.starts_with("full") {
            return weighlock_testing::skip(&format!("walls are {usual} here anyway"));
        }
        let without = attempt(0, || {
            set_no_new_privs(true).map_err(failed("give up new privileges"))?;
            let filter = SeccompFilter::of_opening(libc::O_WRONLY | libc::O_CLOEXEC);
            filter.install().map_err(failed("filter"))?;
            let proc = std::fs::File::options().write(true).open("/dev/null");
            assert_eq!(proc.unwrap_err().raw_os_error(), Some(libc::EACCES));
            rung()
        });
        assert_eq!(without.unwrap(), "full ");
    }

    #[test]
    fn a_try_may_hang_or_die() {
        assert_eq!(one(|| Ok("yes".into())).unwrap(), "yes");
        let late = one(|| {
            loop {
                std::thread::sleep(WITHIN);
            }
        });
        assert_eq!(late.unwrap_err().errno, Some(libc::ETIMEDOUT));
        let dead = one(|| {
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
            Ok(String::new())
        });
        assert!(dead.unwrap_err().text.contains("signal 9"));
        let refused = one(|| Err(failed("do it")(Errno::PERM).into()));
        assert_eq!(
            refused.unwrap_err().text,
            "cannot do it: Operation not permitted (EPERM)"
        );
    }
}
