//! What the server listens on.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;

use tokio::net::{TcpListener, UnixListener};
use weighlock_engine::Config;

use super::address_path;
use crate::client::{Failure, short};
use crate::paths::Paths;

/// Binds the socket. The default socket is for the owner only. A socket that
/// was named explicitly is open to every user of this machine: the kernel says
/// who connects, and the server refuses users that were not added.
pub(super) fn bind(paths: &Paths) -> Result<UnixListener, Failure> {
    let _ = std::fs::remove_file(&paths.own_socket);
    link(&paths.own_socket, &paths.inside())?;
    if !paths.is_foreign() {
        return bind_at(&paths.own_socket, 0o600);
    }
    let taken = short(&paths.socket).and_then(|address| UnixStream::connect(&address));
    if taken.is_ok() {
        return Err(Failure::new(
            format!("another server listens on {}", paths.socket.display()),
            "name another path",
        ));
    }
    let _ = std::fs::remove_file(&paths.socket);
    let listener = bind_at(&paths.socket, 0o666)?;
    // The owner's commands find it where they always look.
    link(&paths.socket, &paths.own_socket)?;
    Ok(listener)
}

fn link(to: &Path, from: &Path) -> Result<(), Failure> {
    if from == to {
        return Ok(());
    }
    let _ = std::fs::remove_file(from);
    symlink(to, from).map_err(|error| cannot(from, &error))
}

/// Refuses a socket in a directory that commands can use: they must not reach
/// it, and what hides it from them goes away with the file when it is made
/// anew.
pub(super) fn check_place(paths: &Paths, config: &Config) -> Result<(), Failure> {
    if !paths.is_foreign() {
        return Ok(());
    }
    let dir = paths
        .socket
        .parent()
        .and_then(|dir| dir.canonicalize().ok());
    let dir = dir.ok_or_else(|| cannot(&paths.socket, &std::io::ErrorKind::NotFound.into()))?;
    let used = config
        .sandboxes
        .iter()
        .filter_map(|one| one.directory.as_ref());
    let used = used.chain([&config.base]);
    match { used }.find(|used| dir.starts_with(used)) {
        None => Ok(()),
        Some(used) => Err(Failure::new(
            format!(
                "{} is in {}, which commands can use",
                paths.socket.display(),
                used.display()
            ),
            "put the socket elsewhere, as below /run",
        )),
    }
}

fn bind_at(path: &Path, mode: u32) -> Result<UnixListener, Failure> {
    let bind = || -> std::io::Result<UnixListener> {
        let address = short(path)?;
        let listener = UnixListener::bind(&address)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
        Ok(listener)
    };
    bind().map_err(|error| cannot(path, &error))
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        format!("cannot listen on {}: {error}", path.display()),
        "check the directory and its permissions",
    )
}

/// Takes away what nobody listens on any more.
pub(super) fn close(paths: &Paths) {
    let address = address_path(paths);
    for path in [&paths.socket, &paths.own_socket, &paths.inside(), &address] {
        let _ = std::fs::remove_file(path);
    }
}

/// Writes down where a browser reaches us, for `weighlock signin`. Without it
/// the link is shown without an address.
pub(super) fn note_address(paths: &Paths, tcp: Option<&TcpListener>) {
    let path = address_path(paths);
    let noted = match tcp.and_then(|tcp| tcp.local_addr().ok()) {
        Some(address) => std::fs::write(&path, format!("http://{address}\n")),
        None => std::fs::remove_file(&path),
    };
    if let Err(error) = noted {
        tracing::debug!(%error, "the address is not written down");
    }
}

/// Opens TCP, to this machine only. An address that was asked for must do.
pub(super) async fn bind_tcp(address: &str, insist: bool) -> Result<Option<TcpListener>, Failure> {
    match TcpListener::bind(address).await {
        Ok(listener) => {
            let at = listener.local_addr().ok();
            if at.is_some_and(|at| !at.ip().is_loopback()) {
                return Err(Failure::new(
                    format!("{address} can be reached from other machines"),
                    "listen on 127.0.0.1; for others, put a TLS proxy before it",
                ));
            }
            Ok(Some(listener))
        }
        Err(error) if insist => Err(Failure::new(
            format!("cannot listen on {address}: {error}"),
            "give another --listen ADDRESS, or --listen off",
        )),
        Err(error) => {
            tracing::warn!(address, %error, "cannot listen; only the socket is served");
            Ok(None)
        }
    }
}

/// What links to the pages begin with when nobody has said.
pub(super) fn link_base(hosts: &[String], tcp: Option<&TcpListener>) -> String {
    match (hosts.first(), tcp.and_then(|tcp| tcp.local_addr().ok())) {
        // Names are for proxies, which speak TLS.
        (Some(host), _) => format!("https://{host}"),
        (None, Some(tcp)) => format!("http://{tcp}"),
        (None, None) => format!("http://{}", super::LISTEN),
    }
}
