//! Who listens on the socket is looked at before anything is said.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{Home, eventually, have, not_as_this_user};

/// Somebody else on this machine.
const OTHER: u32 = 61_234;

/// Listens on a socket as another user; says to standard output how many bytes
/// the first connection brings before it waits for an answer, or closes.
const LISTENER: &str = r#"
import os, socket, sys
os.setgroups([]); os.setresgid(61234, 61234, 61234); os.setresuid(61234, 61234, 61234)
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
server.listen()
line, _ = server.accept()
print(len(line.recv(65536)))
"#;

fn listen(socket: &Path) -> Child {
    let listener = Command::new("python3")
        .args(["-c", LISTENER])
        .arg(socket)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("it listens", || socket.exists());
    listener
}

fn heard(listener: Child) -> usize {
    let said = listener.wait_with_output().unwrap();
    String::from_utf8(said.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn a_stranger_on_the_socket_gets_no_token() {
    if !rustix::process::geteuid().is_root() {
        return not_as_this_user("only root can listen as somebody else");
    }
    if !have(&["python3"]) {
        return;
    }
    let mut home = Home::untouched();
    home.set("WEIGHLOCK_TOKEN", "wl_secret");
    let dir = home.dir();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();

    // Where everybody can put a socket.
    let open = dir.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
    for verb in [&["runs"][..], &["term", "attach", "x"], &["mcp"]] {
        let socket = open.join("weighlock.sock");
        let listener = listen(&socket);
        let args = [&["--socket", socket.to_str().unwrap()], verb].concat();
        let done = home.call(&args);
        assert_eq!(heard(listener), 0, "{verb:?}");
        assert_ne!(done.code, Some(0), "{done:?}");
        assert!(done.err.contains("61234 listens on"), "{done:?}");
        assert!(done.err.contains("nothing was sent"), "{done:?}");
        fs::remove_file(&socket).unwrap();
    }

    // Where only that user can: then it is that user's server that was named.
    let own = dir.join("own");
    fs::create_dir(&own).unwrap();
    chown(&own, Some(OTHER), Some(OTHER)).unwrap();
    let socket = own.join("weighlock.sock");
    let listener = listen(&socket);
    let done = home.call(&["--socket", socket.to_str().unwrap(), "runs"]);
    assert!(heard(listener) > 0, "{done:?}");
}
