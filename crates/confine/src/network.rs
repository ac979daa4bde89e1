//! A network of the run's own, and a name in it.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType, socket};
use rustix::system::{setdomainname, sethostname};

use crate::system::HOSTNAME;

/// Brings the loopback of this network namespace up, so that what runs inside
/// can talk to itself.
pub(crate) fn raise_loopback() -> io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: the fields are integers and a union of integers and a pointer
    // that nobody dereferences; zero is a valid value of each.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, &from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request is one of the kind that this call reads, with its
    // flags set, and outlives it.
    let done = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw const request,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Gives the machine another name in our new UTS namespace, which begins with
/// the host's.
pub(crate) fn name_host() -> io::Result<()> {
    sethostname(HOSTNAME.as_bytes())?;
    // What the kernel itself begins with.
    Ok(setdomainname(b"(none)")?)
}
