//! Other programs, which may have to be installed.

use std::process::{Command, Stdio};

use rustix::process::geteuid;

use crate::machine::{met, said};

/// Has a program installed, where it is missing and that can be done. Returns
/// whether it is there.
pub(crate) fn install(program: &str, version: &str, package: &str) -> bool {
    if said(program, &[version]).is_none() && geteuid().is_root() {
        eprintln!("installing {package}");
        apt(&["update", "-qq"]);
        apt(&["install", "-y", "-qq", package]);
    }
    let there = said(program, &[version]);
    if let Some(version) = &there {
        met(program, version);
    }
    there.is_some()
}

/// What comes of it shows when the program is looked for.
fn apt(args: &[&str]) {
    let mut command = Command::new("apt-get");
    command
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let _ = command.status();
}
