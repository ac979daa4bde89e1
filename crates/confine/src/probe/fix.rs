//! What a person can do about what a host refuses.

use std::fs;

use rustix::fs::Access;

use super::Refusal;
use crate::privilege::{is_root, own};

/// What a host says about itself, as far as it explains a refusal.
pub(super) struct Host {
    root: bool,
    uid: u32,
    /// Of this very program, for profiles that name it.
    program: String,
    /// `/.dockerenv` and the like.
    container: bool,
    /// Whoever started us put a seccomp filter on us.
    filtered: bool,
    /// We may administer the system, in this user namespace.
    admin: bool,
    /// Ubuntu: a user namespace comes without capabilities.
    apparmor: bool,
    /// Debian and Arch: only root may have user namespaces.
    debian: bool,
    /// As many user namespaces as there may be; `None` where nobody says.
    namespaces: Option<u64>,
    /// Our root directory is no mount: the kernel gives those in a `chroot` no
    /// user namespaces.
    chrooted: bool,
    /// What covers parts of `/proc`.
    covered: Vec<String>,
    /// There is a control group file system.
    cgroups: bool,
    unified: bool,
    systemd: bool,
}

/// CAP_SYS_ADMIN.
const ADMIN: u64 = 1 << 21;

impl Host {
    pub(super) fn look() -> Self {
        let status = read("/proc/self/status");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim().to_owned()
        };
        let capabilities = u64::from_str_radix(&field("CapEff:"), 16).unwrap_or(0);
        let mounts = read("/proc/self/mountinfo");
        let points = || mounts.lines().filter_map(|line| line.split(' ').nth(4));
        let exists = |path: &str| rustix::fs::access(path, Access::EXISTS).is_ok();
        let program = fs::read_link("/proc/self/exe").unwrap_or_default();
        Self {
            root: is_root(),
            uid: own().uid,
            program: program.to_string_lossy().into_owned(),
            container: exists("/.dockerenv")
                || exists("/run/.containerenv")
                || exists("/var/run/secrets/kubernetes.io"),
            filtered: field("Seccomp:") == "2",
            admin: capabilities & ADMIN != 0,
            apparmor: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1),
            debian: number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0),
            namespaces: number("/proc/sys/user/max_user_namespaces"),
            chrooted: !mounts.is_empty() && !points().any(|point| point == "/"),
            covered: points()
                // An empty directory, made to be covered.
                .filter(|point| *point != "/proc/sys/fs/binfmt_misc")
                .filter(|point| point.starts_with("/proc/"))
                .map(str::to_owned)
                .collect(),
            cgroups: mounts
                .lines()
                .filter(|line| line.contains(" - cgroup"))
                .filter_map(|line| line.split(' ').nth(4))
                // Something may cover it.
                .any(|point| exists(&format!("{point}/cgroup.procs"))),
            unified: mounts.contains(" - cgroup2 ") && !mounts.contains(" - cgroup cgroup "),
            systemd: exists("/run/systemd/system"),
        }
    }

    /// Returns the way to have what was refused, if one is known.
    pub(super) fn fix(&self, name: &str, refusal: &Refusal) -> Option<String> {
        let errno = refusal.errno.unwrap_or(0);
        match name {
            "user-namespace" => self.user_namespaces(errno),
            "mount-namespace" | "pid-namespace" | "ipc-namespace" | "uts-namespace"
            | "net-namespace" | "cgroup-namespace" | "own-mounts" | "devpts" | "loopback" => {
                self.namespaces(errno)
            }
            "fresh-proc" if refusal.text.contains("namespace") => self.namespaces(errno),
            "fresh-proc" => Some(self.proc(errno)),
            "idmapped-mounts" if !self.admin => self.namespaces(errno),
            "idmapped-mounts" if refusal.text.contains("namespace") => self.user_namespaces(errno),
            "idmapped-mounts" => Some(
                "give the sandbox's directory to an ordinary user (chown), or name one as `user` \
                 of the sandbox; Linux 5.12 has them for ext4, 5.19 for XFS, Btrfs and others"
                    .into(),
            ),
            "other-user" => Some(
                "start the server as an ordinary user, or with CAP_SETUID and CAP_SETGID \
                 (docker run --cap-add SETUID --cap-add SETGID)"
                    .into(),
            ),
            "seccomp" => Some("use a kernel with CONFIG_SECCOMP_FILTER=y".into()),
            "landlock-files" => Some(self.landlock(errno)),
            "landlock-tcp" if errno == 0 => Some("use Linux 6.7 or later".into()),
            "landlock-scopes" if errno == 0 => Some("use Linux 6.12 or later".into()),
            "landlock-tcp" | "landlock-scopes" => Some(self.landlock(errno)),
            "cgroup-memory" | "cgroup-pids" | "cgroup-cpu" => {
                Some(self.control_groups(name, errno))
            }
            "pid-max" if errno == 0 => Some("use Linux 6.14 or later".into()),
            "pid-max" => Some("see fresh-proc".into()),
            "walls" => Some("see the first of the above that failed".into()),
            _ => None,
        }
    }

    /// For everything that needs CAP_SYS_ADMIN, be it only in a user namespace.
    fn namespaces(&self, errno: i32) -> Option<String> {
        if self.root && !self.admin {
            return Some(
                "give root CAP_SYS_ADMIN (docker run --cap-add SYS_ADMIN --security-opt \
                 apparmor=unconfined; in a systemd unit: CapabilityBoundingSet=), or start the \
                 server as an ordinary user"
                    .into(),
            );
        }
        self.user_namespaces(errno)
    }

    fn user_namespaces(&self, errno: i32) -> Option<String> {
        let fix = if self.apparmor && !self.root {
            format!(
                "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 \
                 (to keep it: the same in a file in /etc/sysctl.d); or only for weighlock, in \
                 /etc/apparmor.d/weighlock: `abi <abi/4.0>, profile weighlock {} \
                 flags=(unconfined) {{ userns, }}`, then sudo apparmor_parser -r \
                 /etc/apparmor.d/weighlock",
                self.program
            )
        } else if self.debian && !self.root {
            "sudo sysctl -w kernel.unprivileged_userns_clone=1 (to keep it: the same in a file in \
             /etc/sysctl.d)"
                .into()
        } else if self.namespaces == Some(0) || matches!(errno, libc::ENOSPC | libc::EUSERS) {
            "sudo sysctl -w user.max_user_namespaces=15000 (to keep it: the same in a file in \
             /etc/sysctl.d)"
                .into()
        } else if self.chrooted {
            "the server is in a chroot, where the kernel gives no user namespaces: start it \
             outside, or in a container, which has a root of its own"
                .into()
        } else if matches!(errno, libc::EINVAL | libc::ENOSYS) && !self.filtered {
            "use a kernel with CONFIG_USER_NS=y".into()
        } else if self.container && self.filtered {
            "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
             --security-opt systempaths=unconfined (Kubernetes: seccompProfile and \
             appArmorProfile of type Unconfined, procMount: Unmasked); the container then relies \
             on its namespaces alone"
                .into()
        } else if self.filtered {
            "whoever started the server put a system call filter on it that refuses this; in a \
             systemd unit: RestrictNamespaces=no, and no SystemCallFilter= without @mount"
                .into()
        } else if errno == libc::EPERM || errno == libc::EACCES {
            "a security module refuses it (`sudo journalctl -k` tells of AppArmor, in docker: \
             --security-opt apparmor=unconfined; `sudo ausearch -m avc` of SELinux), or the server \
             is in a chroot, where the kernel gives no user namespaces: start it outside"
                .into()
        } else {
            return None;
        };
        Some(fix)
    }

    fn proc(&self, errno: i32) -> String {
        let covered = match self.covered.as_slice() {
            [] => String::new(),
            some => format!(" ({} now)", some.join(", ")),
        };
        if errno == libc::EPERM {
            format!(
                "start the server where nothing covers parts of /proc{covered}: docker run \
                 --security-opt systempaths=unconfined; Kubernetes: procMount: Unmasked; in a \
                 systemd unit: ProtectKernelTunables=no, ProtectKernelLogs=no, ProtectProc=default"
            )
        } else {
            "mount -t proc proc /proc".into()
        }
    }

    fn landlock(&self, errno: i32) -> String {
        if errno == libc::EOPNOTSUPP {
            return "it is switched off: add `landlock,` to the front of the `lsm=` parameter of \
                    the kernel (what is on now: /sys/kernel/security/lsm), and boot"
                .into();
        }
        if self.filtered {
            return "a system call filter refuses it: use a newer container runtime, or docker run \
                    --security-opt seccomp=unconfined; in a systemd unit add @sandbox to \
                    SystemCallFilter="
                .into();
        }
        "use Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK=y".into()
    }

    fn control_groups(&self, name: &str, errno: i32) -> String {
        let controller = name.trim_start_matches("cgroup-");
        let whole = "or bound the container as a whole: docker run --memory 8g --pids-limit 4096";
        if !self.cgroups {
            return if self.container {
                format!("mount cgroups in the container, {whole}")
            } else {
                "sudo mount -t cgroup2 cgroup2 /sys/fs/cgroup".into()
            };
        }
        if self.container && matches!(errno, libc::EROFS | libc::EBUSY) {
            return format!("docker run --privileged gives write access to cgroups; {whole}");
        }
        if errno == libc::ENODEV {
            return format!(
                "use a kernel with the `{controller}` controller (for memory, some need \
                 `cgroup_enable=memory` when they boot), and delegate it: Delegate=yes"
            );
        }
        match (self.unified, self.root, self.systemd) {
            (true, false, true) => format!(
                "systemd-run --user --scope weighlock serve, which starts it where user {} may \
                 make groups (once: loginctl enable-linger); as a system service: Delegate=yes \
                 and DelegateSubgroup=server in its unit",
                self.uid
            ),
            (true, false, false) => format!(
                "as root: make a group, give it to user {0} and start the server below it: G=\
                 /sys/fs/cgroup/weighlock; mkdir -p $G/server; chown -R {0} $G; echo $$ > \
                 $G/server/cgroup.procs; then `weighlock serve` from that shell as user {0}",
                self.uid
            ),
            (false, false, _) => format!(
                "sudo cgcreate -a {0} -t {0} -g memory,pids,cpu:weighlock, then start the server \
                 with cgexec -g memory,pids,cpu:weighlock weighlock serve",
                self.uid
            ),
            (_, true, _) => format!(
                "let the server make groups: it needs to write below its own in /sys/fs/cgroup \
                 (in a systemd unit: Delegate=yes, DelegateSubgroup=server, and \
                 ProtectControlGroups=no); {controller} was refused"
            ),
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn number(path: &str) -> Option<u64> {
    read(path).trim().parse().ok()
}
