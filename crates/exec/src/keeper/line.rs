//! The keeper's line to the server, which comes and goes.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, geteuid};

use super::KEEPER_SOCKET;
use crate::protocol::{self, KeeperOrder, KeeperReport, Message};
use crate::short::ShortPath;

/// At most one server at a time, or a socket to wait for the next one.
pub(super) struct ServerLink {
    server: Option<UnixStream>,
    door: Option<UnixListener>,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

impl ServerLink {
    pub(super) fn new(server: UnixStream) -> io::Result<Self> {
        server.set_nonblocking(true)?;
        Ok(Self {
            server: Some(server),
            door: None,
            incoming: vec![],
            outgoing: vec![],
        })
    }

    /// Becomes readable when there is something to do.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.server {
            Some(server) => Some(server.as_fd()),
            None => self.door.as_ref().map(AsFd::as_fd),
        }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.server.is_some()
    }

    /// Tells whether there is more to say than the server has taken.
    pub(super) fn wants_to_write(&self) -> bool {
        self.is_connected() && !self.outgoing.is_empty()
    }

    /// Says something the server must hear, as soon as it listens.
    pub(super) fn say(&mut self, report: &KeeperReport) {
        if self.is_connected() {
            self.outgoing.extend(report.encode());
            self.flush();
        }
    }

    /// Says something that the next message of its kind makes obsolete: only
    /// if the server has taken all before.
    pub(super) fn mention(&mut self, report: impl FnOnce() -> KeeperReport) -> bool {
        let free = self.is_connected() && self.outgoing.is_empty();
        if free {
            self.say(&report());
        }
        free
    }

    pub(super) fn flush(&mut self) {
        while let Some(server) = &mut self.server
            && !self.outgoing.is_empty()
        {
            match server.write(&self.outgoing) {
                Ok(sent) => drop(self.outgoing.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.hang_up(),
            }
        }
    }

    /// Sends what is left, waiting for the server if need be.
    pub(super) fn finish(mut self) {
        if let Some(server) = &mut self.server
            && server.set_nonblocking(false).is_ok()
        {
            // A server that is stuck for so long will read the status file.
            let _ = server.set_write_timeout(Some(std::time::Duration::from_secs(10)));
            let _ = server.write_all(&self.outgoing);
        }
    }

    /// Reads what the server sent. `None` when it is gone.
    pub(super) fn orders(&mut self) -> Option<Vec<KeeperOrder>> {
        let mut orders = vec![];
        let mut piece = [0; 16 * 1024];
        while let Some(server) = &mut self.server {
            match server.read(&mut piece) {
                Ok(0) => self.hang_up(),
                Ok(read) => self.incoming.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.hang_up(),
            }
        }
        loop {
            match protocol::take(&mut self.incoming) {
                Ok(Some(order)) => orders.push(order),
                Ok(None) => break,
                Err(_) => {
                    self.incoming.clear();
                    self.hang_up();
                    break;
                }
            }
        }
        (self.is_connected() || !orders.is_empty()).then_some(orders)
    }

    /// Opens the socket by which a restarted server finds this keeper.
    pub(super) fn open_door(&mut self, dir: &Path) -> io::Result<()> {
        if self.door.is_none() {
            let address = ShortPath::new(dir, KEEPER_SOCKET)?;
            let door = UnixListener::bind(&address)?;
            door.set_nonblocking(true)?;
            self.door = Some(door);
        }
        Ok(())
    }

    pub(super) fn has_door(&self) -> bool {
        self.door.is_some()
    }

    /// Lets a server in, if one is at the door and is ours.
    pub(super) fn answer_door(&mut self) -> bool {
        let Some(Ok((server, _))) = self.door.as_ref().map(UnixListener::accept) else {
            return false;
        };
        let ours = socket_peercred(&server).is_ok_and(|peer| {
            (peer.uid == geteuid() || peer.uid.is_root()) && is_outside(peer.pid)
        });
        if ours && server.set_nonblocking(true).is_ok() {
            self.server = Some(server);
            self.incoming.clear();
        }
        ours
    }

    fn hang_up(&mut self) {
        self.server = None;
        self.outgoing.clear();
    }
}

/// Tells whether a process is where we are: what runs inside is the same user,
/// and has no business at this door.
fn is_outside(process: Pid) -> bool {
    let place = |pid: String| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let theirs = place(process.as_raw_nonzero().to_string());
    theirs.is_some() && theirs == place("self".into())
}
