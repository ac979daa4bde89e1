//! What every run sees of the machine.

/// System directories, read-only. Where one is a link, as `/bin` often is, so
/// it is inside. Nobody's data is here; what only root may read stays so.
pub const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    // Other ways to lay out a system: Nix, Guix, Snap, NixOS.
    "/nix",
    "/gnu",
    "/snap",
    "/run/current-system",
    // How many CPUs there are. The rest of `/sys` is about the host.
    "/sys/devices/system",
    // What package managers, fonts and TeX want to look up.
    "/var/lib/dpkg",
    "/var/lib/rpm",
    "/var/lib/pacman",
    "/var/lib/texmf",
    "/var/cache/fontconfig",
    // Whom to trust, where `/etc/ssl` leads here.
    "/var/lib/ca-certificates",
];

/// Parts of the above that reach out of them, or that identify the machine.
pub(crate) const HIDDEN: &[&str] = &["/nix/var/nix/daemon-socket", "/etc/machine-id"];

/// The name of the machine inside. Programs look up the address of their own
/// machine, and this name has one everywhere; Nix builds under it, too.
pub(crate) const HOSTNAME: &str = "localhost";

/// Private directories, empty at the start and gone with the run.
pub const PRIVATE: &[&str] = &["/tmp", "/var/tmp", "/run", "/dev/shm"];

/// Links that programs expect.
pub(crate) const LINKS: &[(&str, &str)] = &[
    ("/var/run", "/run"),
    ("/var/lock", "/run/lock"),
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
];

/// Devices that give nothing away. `tty` is whatever terminal a program has.
pub(crate) const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// Parts of `/proc` that control the host. Only root could write most of them,
/// and nobody inside is root; this is the second lock.
pub(crate) const PROC_READ_ONLY: &[&str] = &["sys", "sysrq-trigger", "irq", "bus", "fs"];

/// Parts of `/proc` that tell about others.
pub(crate) const PROC_HIDDEN: &[&str] =
    &["keys", "key-users", "kcore", "timer_list", "sched_debug"];
