//! What a person can do about what a host refuses.

use std::fs;

use rustix::fs::Access;

use super::{ProbeFailure, ProbeStep};
use crate::privilege::{is_root, own};

/// What a host says about itself, as far as it explains a refusal.
#[derive(Default)]
pub(super) struct HostFacts {
    root: bool,
    uid: u32,
    /// Of this very program, for profiles that name it.
    program: String,
    /// `/.dockerenv` and the like.
    container: bool,
    /// Our parent process put a seccomp filter on us.
    filtered: bool,
    /// We may administer the system, in this user namespace.
    admin: bool,
    /// And its network.
    net_admin: bool,
    /// Ubuntu: a user namespace comes without capabilities.
    apparmor: bool,
    /// Debian and Arch: only root may have user namespaces.
    debian: bool,
    /// Our root directory is no mount: the kernel gives those in a `chroot` no
    /// user namespaces.
    chrooted: bool,
    /// Our root directory is the one that the kernel unpacked at boot.
    initial: bool,
    /// Our root directory is in memory.
    memory: bool,
    /// What covers parts of `/proc`.
    covered: Vec<String>,
    /// There is a control group file system.
    cgroups: bool,
    unified: bool,
    systemd: bool,
}

/// CAP_SYS_ADMIN and CAP_NET_ADMIN.
const ADMIN: u64 = 1 << 21;
const NET_ADMIN: u64 = 1 << 12;

impl HostFacts {
    pub(super) fn look() -> Self {
        let status = read("/proc/self/status");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim().to_owned()
        };
        let capabilities = u64::from_str_radix(&field("CapEff:"), 16).unwrap_or(0);
        let mounts = read("/proc/self/mountinfo");
        let points = || mounts.lines().filter_map(|line| line.split(' ').nth(4));
        // The last one covers those before.
        let of_root = mounts
            .lines()
            .rfind(|line| line.split(' ').nth(4) == Some("/"));
        let root_is = |kind: &str| {
            let (_, of) = of_root
                .and_then(|line| line.split_once(" - "))
                .unwrap_or_default();
            of.split(' ').next() == Some(kind)
        };
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
            net_admin: capabilities & NET_ADMIN != 0,
            apparmor: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1),
            debian: number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0),
            chrooted: !mounts.is_empty() && !points().any(|point| point == "/"),
            initial: root_is("rootfs"),
            memory: root_is("tmpfs"),
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

    /// Returns the way to have what was refused, if one is known. It follows
    /// from the step that failed, and from the error there.
    pub(super) fn fix(&self, name: &str, refusal: &ProbeFailure) -> Option<String> {
        let errno = refusal.errno.unwrap_or(0);
        if errno == libc::ETIMEDOUT {
            return Some("the machine may be too busy: try again when it is not".into());
        }
        match refusal.step {
            ProbeStep::UserNamespace => self.user_namespaces(errno),
            ProbeStep::Namespace => self.namespaces(errno),
            ProbeStep::Mount => self.mounts(errno),
            ProbeStep::PivotRoot => self.pivot_root(errno),
            ProbeStep::Proc => Some(self.proc(errno)),
            ProbeStep::MapOwners => Some(self.map_owners()),
            ProbeStep::Loopback => self.loopback(errno),
            ProbeStep::Only => self.only(name, errno),
        }
    }

    /// For tries of one step, by their names.
    fn only(&self, name: &str, errno: i32) -> Option<String> {
        match name {
            "hostname" => self.refused(errno),
            "other-user" | "user-namespace" => Some(
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
            "pid-max" => self.refused(errno),
            _ => None,
        }
    }

    /// For everything that needs CAP_SYS_ADMIN, be it only in a user namespace.
    fn namespaces(&self, errno: i32) -> Option<String> {
        if !self.root {
            return self.user_namespaces(errno);
        }
        match errno {
            libc::EPERM | libc::EACCES => self.refused(errno),
            // `EINVAL` is a kernel without that kind.
            libc::EINVAL | libc::ENOSYS if !self.filtered => Some(
                "use a kernel with CONFIG_NAMESPACES=y and every kind of namespace below it".into(),
            ),
            libc::ENOSPC | libc::EUSERS => Some(
                "raise what is 0 or too low among /proc/sys/user/max_*_namespaces (sudo sysctl -w \
                 user.max_mnt_namespaces=15000, say)"
                    .into(),
            ),
            _ => self.refused(errno),
        }
    }

    fn user_namespaces(&self, errno: i32) -> Option<String> {
        if matches!(errno, libc::ENOSPC | libc::EUSERS) {
            return Some(
                "sudo sysctl -w user.max_user_namespaces=15000 (to keep it: the same in a file in \
                 /etc/sysctl.d)"
                    .into(),
            );
        }
        if matches!(errno, libc::EINVAL | libc::ENOSYS) && !self.filtered {
            return Some("use a kernel with CONFIG_USER_NS=y".into());
        }
        if self.debian && !self.root && is_denied(errno) {
            return Some(
                "sudo sysctl -w kernel.unprivileged_userns_clone=1 (to keep it: the same in a \
                 file in /etc/sysctl.d)"
                    .into(),
            );
        }
        if self.chrooted && is_denied(errno) {
            return Some(
                "the server is in a chroot, where the kernel gives no user namespaces: start it \
                 outside, or in a container, which has a root of its own"
                    .into(),
            );
        }
        let fix = self.refused(errno)?;
        // A chroot into a mount cannot be told from a root.
        Some(match is_denied(errno) && !self.filtered && !self.apparmor {
            true => format!(
                "{fix}; or the server is in a chroot, where the kernel gives no user namespaces: \
                 start it outside"
            ),
            false => fix,
        })
    }

    fn mounts(&self, errno: i32) -> Option<String> {
        match errno {
            libc::ENODEV => Some(
                "use a kernel with CONFIG_TMPFS=y, CONFIG_UNIX98_PTYS=y and CONFIG_OVERLAY_FS"
                    .into(),
            ),
            libc::ENOSYS if !self.filtered => Some("use Linux 5.12 or later".into()),
            libc::EINVAL if self.chrooted => Some(self.another_root()),
            libc::EINVAL => None,
            _ => self.refused(errno),
        }
    }

    fn pivot_root(&self, errno: i32) -> Option<String> {
        match errno {
            libc::EINVAL => Some(self.another_root()),
            _ => self.refused(errno),
        }
    }

    /// The kernel leaves no root that is the initial one, or no mount.
    fn another_root(&self) -> String {
        let what = match (self.initial, self.chrooted) {
            (true, _) => {
                "the root directory is the initramfs, which cannot be left: let the \
                          system switch to a root on a disk or on a tmpfs (switch_root)"
            }
            (_, true) => {
                "the server is in a chroot, whose root is no mount: start it outside, or \
                          in a container, which has a root of its own"
            }
            _ => {
                "the root directory is no mount that can be left: start the server in a mount \
                  namespace with a root of its own, as containers have it"
            }
        };
        what.into()
    }

    fn loopback(&self, errno: i32) -> Option<String> {
        if self.root && !self.net_admin && is_denied(errno) {
            return Some(
                "give root CAP_NET_ADMIN (docker run --cap-add NET_ADMIN; in a systemd unit: \
                 CapabilityBoundingSet=), or start the server as an ordinary user"
                    .into(),
            );
        }
        self.refused(errno)
    }

    fn map_owners(&self) -> String {
        let filesystem = match self.memory {
            true => {
                "/ is a tmpfs, which has them since Linux 6.3; a sandbox on a disk can be lent \
                 all the same. For one on a tmpfs, "
            }
            false => {
                "Linux 5.12 has them for ext4 and XFS, 5.15 for Btrfs, 5.19 for copies of \
                 those, 6.3 for tmpfs: put the sandbox on one of them, or "
            }
        };
        format!(
            "{filesystem}give its directory to an ordinary user (chown), or name one as `user` of \
             the sandbox"
        )
    }

    /// What refuses something that the kernel has.
    fn refused(&self, errno: i32) -> Option<String> {
        if self.root && !self.admin && is_denied(errno) {
            return Some(
                "give root CAP_SYS_ADMIN and CAP_NET_ADMIN (docker run --cap-add SYS_ADMIN \
                 --cap-add NET_ADMIN --security-opt seccomp=unconfined --security-opt \
                 apparmor=unconfined; in a systemd unit: CapabilityBoundingSet=), or start the \
                 server as an ordinary user"
                    .into(),
            );
        }
        if self.apparmor && !self.root && is_denied(errno) {
            return Some(format!(
                "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 \
                 (to keep it: the same in a file in /etc/sysctl.d); or only for weighlock, in \
                 /etc/apparmor.d/weighlock: `abi <abi/4.0>, profile weighlock {} \
                 flags=(unconfined) {{ userns, }}`, then sudo apparmor_parser -r \
                 /etc/apparmor.d/weighlock",
                self.program
            ));
        }
        if self.filtered {
            return Some(self.filter());
        }
        is_denied(errno).then(|| {
            "a security module refuses it (`sudo journalctl -k` tells of AppArmor, in docker: \
             --security-opt apparmor=unconfined; `sudo ausearch -m avc` of SELinux)"
                .into()
        })
    }

    /// A filter of system calls says no with whatever error it likes.
    fn filter(&self) -> String {
        let docker = "docker run --security-opt seccomp=unconfined --security-opt \
                      apparmor=unconfined --security-opt systempaths=unconfined (Kubernetes: \
                      seccompProfile and appArmorProfile of type Unconfined, procMount: Unmasked); \
                      the container then relies on its namespaces alone";
        let systemd = "in a systemd unit: RestrictNamespaces=no, and no SystemCallFilter= without \
                       @mount";
        let filter = "the server was started under a system call filter that refuses this";
        match (self.container, self.systemd) {
            (true, _) => docker.into(),
            (false, true) => format!("{filter}; {systemd}"),
            (false, false) => format!("{filter}; in a container: {docker}; {systemd}"),
        }
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
                 /sys/fs/cgroup/weighlock; echo +memory +pids +cpu > \
                 /sys/fs/cgroup/cgroup.subtree_control; mkdir -p $G/server; chown -R {0} $G; echo \
                 $$ > $G/server/cgroup.procs; then `weighlock serve` from that shell as user {0}",
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

/// Nobody may, or not here.
fn is_denied(errno: i32) -> bool {
    matches!(errno, libc::EPERM | libc::EACCES)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn number(path: &str) -> Option<u64> {
    read(path).trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &HostFacts, step: ProbeStep, errno: i32, want: &str) {
        let refusal = ProbeFailure {
            step,
            errno: Some(errno),
            ..ProbeFailure::other("")
        };
        let fix = host.fix("own-mounts", &refusal).unwrap_or_default();
        assert!(fix.contains(want), "{step:?} {errno}: {fix}");
        let of_users = step == ProbeStep::UserNamespace;
        assert!(of_users || !fix.contains("CONFIG_USER_NS"), "{fix}");
    }

    #[test]
    fn the_same_error_means_something_else_in_each_step() {
        let user = HostFacts::default();
        check(
            &user,
            ProbeStep::UserNamespace,
            libc::EINVAL,
            "CONFIG_USER_NS",
        );
        check(
            &user,
            ProbeStep::UserNamespace,
            libc::ENOSPC,
            "max_user_names",
        );
        check(
            &user,
            ProbeStep::PivotRoot,
            libc::EINVAL,
            "no mount that can",
        );
        check(&user, ProbeStep::PivotRoot, libc::EPERM, "security module");
        check(&user, ProbeStep::Mount, libc::ENOSYS, "5.12");
        check(&user, ProbeStep::Proc, libc::EPERM, "systempaths");

        let initial = HostFacts {
            initial: true,
            ..HostFacts::default()
        };
        check(&initial, ProbeStep::PivotRoot, libc::EINVAL, "initramfs");
        let ubuntu = HostFacts {
            apparmor: true,
            ..HostFacts::default()
        };
        check(&ubuntu, ProbeStep::Mount, libc::EACCES, "apparmor_restrict");
        check(
            &ubuntu,
            ProbeStep::PivotRoot,
            libc::EINVAL,
            "no mount that can",
        );
        let filtered = HostFacts {
            filtered: true,
            ..HostFacts::default()
        };
        check(&filtered, ProbeStep::PivotRoot, libc::EPERM, "seccomp=");
        check(
            &filtered,
            ProbeStep::Namespace,
            libc::ENOSYS,
            "RestrictNames",
        );

        let root = HostFacts {
            root: true,
            ..HostFacts::default()
        };
        check(&root, ProbeStep::Namespace, libc::EPERM, "CAP_SYS_ADMIN");
        let admin = HostFacts {
            admin: true,
            ..root
        };
        check(&admin, ProbeStep::Loopback, libc::EPERM, "CAP_NET_ADMIN");
        check(
            &admin,
            ProbeStep::Namespace,
            libc::EINVAL,
            "CONFIG_NAMESPACES",
        );
        let in_memory = HostFacts {
            memory: true,
            ..admin
        };
        check(
            &in_memory,
            ProbeStep::MapOwners,
            libc::EINVAL,
            "since Linux 6.3",
        );
    }
}
