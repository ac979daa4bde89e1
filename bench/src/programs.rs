//! Other programs, which may have to be installed.

use std::process::{Command, Stdio};

use rustix::process::geteuid;

/// Has a program installed, where it is missing and that can be done. Returns
/// whether it is there.
pub(crate) fn install(program: &str, version: &str, package: &str) -> bool {
    let there = |program: &str, version: &str| {
        let mut try_it = Command::new(program);
        let quiet = try_it.arg(version).stdin(Stdio::null());
        quiet
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok()
    };
    if there(program, version) {
        return true;
    }
    if !geteuid().is_root() || !there("apt-get", "--version") {
        return false;
    }
    eprintln!("installing {package}");
    let mut install = Command::new("apt-get");
    install
        .args(["install", "-y", package])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let _ = install.status();
    there(program, version)
}
