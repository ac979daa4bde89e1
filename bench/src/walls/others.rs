//! Other programs that build walls, with mounts and namespaces like ours.

use std::path::Path;
use std::process::Command;

use super::ours::Files;

/// Directories of the system that both show.
const SYSTEM: [&str; 3] = ["/usr", "/etc", "/opt"];

/// On most systems links into `/usr` by now.
const MERGED: [&str; 4] = ["/bin", "/sbin", "/lib", "/lib64"];

/// All namespaces that ours have, and a `/proc`; the host's files otherwise.
pub(super) fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["-U", "-r", "-m", "-p", "-f", "-i", "-u", "-n"]);
    command.args(["--mount-proc", "/bin/true"]);
    command
}

/// The same namespaces and about the same mounts as ours. It has no Landlock,
/// no cgroup and no limits; a seccomp filter it would have to be given.
pub(super) fn bubblewrap(files: &Files) -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--unshare-all", "--die-with-parent", "--new-session"]);
    for dir in SYSTEM.into_iter().filter(|dir| Path::new(dir).is_dir()) {
        command.args(["--ro-bind", dir, dir]);
    }
    for dir in MERGED {
        match std::fs::read_link(dir) {
            Ok(to) => command.arg("--symlink").arg(to).arg(dir),
            Err(_) => command.args(["--ro-bind-try", dir, dir]),
        };
    }
    command.args(["--dev", "/dev", "--proc", "/proc"]);
    for dir in ["/tmp", "/var/tmp", "/run"] {
        command.args(["--tmpfs", dir]);
    }
    command.arg("--bind").args([&files.layer, &files.home]);
    for tool in files.tools() {
        command.arg("--ro-bind").args([&tool, &tool]);
    }
    command.arg("--bind").args([&files.project, &files.project]);
    for part in files.guarded() {
        command.arg("--ro-bind").args([&part, &part]);
    }
    command.arg("--chdir").arg(&files.project);
    command.args(["--clearenv", "/bin/true"]);
    command
}
