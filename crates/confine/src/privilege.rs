//! Who a run is, and that it can become nobody else.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Gid, Pid, Uid, getegid, geteuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use crate::fork::{Cloned, clone, exit};
use crate::profile::Identity;

/// The user that owns nothing, who works for root in what root owns.
pub const NOBODY: Identity = Identity {
    uid: 65534,
    gid: 65534,
};

/// Tells whether we are the host's root, as far as we can know: one who is
/// root only in a user namespace is somebody else outside.
pub fn is_root() -> bool {
    geteuid().is_root() && outside_uid().is_none_or(|uid| uid == 0)
}

/// Who user 0 of this namespace is one level up.
fn outside_uid() -> Option<u32> {
    let map = fs::read_to_string("/proc/self/uid_map").ok()?;
    map.lines().find_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<u32>);
        match (numbers.next()?, numbers.next()?) {
            (Ok(0), Ok(outside)) => Some(outside),
            _ => None,
        }
    })
}

/// Who we are.
pub fn own() -> Identity {
    Identity {
        uid: geteuid().as_raw(),
        gid: getegid().as_raw(),
    }
}

/// Makes us somebody else for good.
pub(crate) fn become_user(user: Identity) -> io::Result<()> {
    if user.uid == 0 || user.gid == 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

/// Puts us into a user namespace that knows nobody yet, and returns who is to
/// be known there: from inside we could not tell.
pub(crate) fn enter_user_namespace() -> io::Result<Identity> {
    let us = own();
    // The files that say who we are must be ours to write.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    // SAFETY: we have one thread, and share no files or memory with another.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER)? };
    Ok(us)
}

/// Maps one identity, and nothing else, into our new user namespace.
pub(crate) fn map(user: Identity) -> io::Result<()> {
    let Identity { uid, gid } = user;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// Returns a user namespace by which mounts show root's files as [`NOBODY`]'s,
/// and what nobody makes there becomes root's. Only root can. It is made once;
/// processes forked later have it already.
pub(crate) fn lender() -> Option<OwnedFd> {
    static LENDER: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let lender = LENDER.get_or_init(|| make_lender().ok());
    lender.as_ref()?.try_clone().ok()
}

pub(crate) fn make_lender() -> io::Result<OwnedFd> {
    let (wake, sleep) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let Some(Cloned { pid, .. }) = clone(libc::CLONE_NEWUSER)? else {
        drop(sleep);
        // Until whoever made us has what it wants, or is gone.
        let _ = rustix::io::read(&wake, &mut [0_u8; 1]);
        exit(0);
    };
    drop(wake);
    let made = lending_maps(pid);
    drop(sleep);
    while !matches!(crate::tree::wait(Some(pid), true), Ok(Some(_)) | Err(_)) {}
    made
}

fn lending_maps(pid: Pid) -> io::Result<OwnedFd> {
    let proc = format!("/proc/{}", pid.as_raw_nonzero());
    let lend = |whom: u32| {
        // Everybody else stays who they are; what is really nobody's is shown
        // as owned by a user who does not exist.
        format!(
            "0 {whom} 1\n1 1 {}\n{} {} {}",
            whom - 1,
            whom + 1,
            whom + 1,
            u32::MAX - whom - 1
        )
    };
    fs::write(format!("{proc}/uid_map"), lend(NOBODY.uid))?;
    fs::write(format!("{proc}/gid_map"), lend(NOBODY.gid))?;
    Ok(fs::File::open(format!("{proc}/ns/user"))?.into())
}

/// Does something as another user in the eyes of file systems, with every
/// privilege that we have otherwise. A lent mount knows no root that could
/// make anything in it.
pub(crate) fn on_files_as<T>(
    user: Identity,
    deed: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let all = capabilities(None)?;
    let become_one = |Identity { uid, gid }| {
        // SAFETY: both take numbers, change what this thread is for file
        // systems and nothing else, and return what it was before.
        unsafe {
            libc::syscall(libc::SYS_setfsgid, gid);
            libc::syscall(libc::SYS_setfsuid, uid);
        }
        // Ceasing to be root for files takes what root may do with them.
        set_capabilities(None, all)
    };
    let us = own();
    become_one(user)?;
    let done = deed();
    become_one(us)?;
    done
}

/// Gives up every privilege there is, and every way to get one.
pub(crate) fn drop_all() -> io::Result<()> {
    set_no_new_privs(true)?;
    match clear_ambient_capability_set() {
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(error.into()),
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, none)?)
}

/// Sees that no program that is started from now on can gain a capability.
pub(crate) fn bound_capabilities() -> io::Result<()> {
    for bit in 0..64 {
        let Some(capability) = CapabilitySet::from_bits(1 << bit) else {
            continue;
        };
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // We may not, for any of them: then we have nothing that could be
            // kept. Or the kernel knows no more of them.
            Err(Errno::PERM | Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Leaves the keyring of the user who started the server.
pub(crate) fn leave_keyring() -> io::Result<()> {
    match join_new_keyring() {
        // A kernel without keys has none to leave; a container may forbid even
        // this call, and then the command's too.
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::ENOSYS | libc::EPERM | libc::EACCES)
            ) =>
        {
            Ok(())
        }
        done => done,
    }
}

pub(crate) fn join_new_keyring() -> io::Result<()> {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: no name is given, so nothing is read; an anonymous keyring is
    // made and takes the place of the one we had.
    let done = unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            JOIN_SESSION_KEYRING,
            std::ptr::null::<libc::c_char>(),
        )
    };
    if done >= 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
