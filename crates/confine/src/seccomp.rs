//! What a run may not ask of the kernel: a table of refusals, as a seccomp
//! filter.
//!
//! Everything is allowed that the table does not refuse, so that everyday
//! tools work. It closes the parts of the kernel that a command does not need
//! and that have let others out of their walls before. Debuggers work, and so
//! do programs that put walls of their own (seccomp, Landlock) around others.
//!
//! A filter sees numbers and cannot follow a pointer. A call that hides what
//! it wants behind one is said not to exist; its callers know an older one.

use std::ffi::{c_int, c_long};
use std::io;
use std::mem::offset_of;
use std::sync::OnceLock;

// All of it: the table reads better without a prefix on every word.
use libc::*;

use When::{AnyBit, Is, IsNot, NotNull};

/// Which address families a run may make sockets of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// Unix, IPv4, IPv6 and netlink.
    All,
    /// Unix and netlink: for a run without network where no network namespace
    /// could be had.
    Local,
}

/// The assembled filter.
pub(crate) struct SeccompFilter(Vec<sock_filter>);

impl SeccompFilter {
    /// Assembles it once; processes forked later have it already.
    pub(crate) fn get(sockets: Sockets) -> &'static Self {
        static ALL: OnceLock<SeccompFilter> = OnceLock::new();
        static LOCAL: OnceLock<SeccompFilter> = OnceLock::new();
        let filter = match sockets {
            Sockets::All => &ALL,
            Sockets::Local => &LOCAL,
        };
        filter.get_or_init(|| Self::new(sockets))
    }

    fn new(sockets: Sockets) -> Self {
        let first = match sockets {
            Sockets::All => &[],
            Sockets::Local => LOCAL,
        };
        let rules: Vec<&SyscallRule> = first.iter().chain(RULES).collect();
        let mut program = entry();
        program.extend(search(&calls(&rules), &rules));
        Self(program)
    }

    /// Refuses to open files with just these flags, as a host may.
    #[cfg(test)]
    pub(crate) fn of_opening(flags: c_int) -> Self {
        let third = offset_of!(seccomp_data, args) + 2 * size_of::<u64>();
        Self(vec![
            load(offset_of!(seccomp_data, nr)),
            jump(BPF_JEQ, SYS_openat as u32, 0, 3),
            load(third),
            jump(BPF_JEQ, flags as u32, 0, 1),
            give(SECCOMP_RET_ERRNO | EACCES as u32),
            give(SECCOMP_RET_ALLOW),
        ])
    }

    /// Binds this thread, and everything it starts, to the filter for good.
    /// Fails unless new privileges were given up before.
    pub(crate) fn install(&self) -> io::Result<()> {
        let program = sock_fprog {
            len: self.0.len().try_into().expect("a filter is short"),
            filter: self.0.as_ptr().cast_mut(),
        };
        // SAFETY: the kernel copies the program and does not write to it; it
        // outlives the call, and `len` is its length.
        match unsafe { syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &raw const program) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

// ---- the table ----

/// To any of these calls, when all of this holds, the kernel gives this error
/// and does nothing. Error 0 pretends that it was done.
struct SyscallRule(&'static [c_long], &'static [When], c_int);

/// Compares only the low 32 bits of an argument (but for pointers). The kernel
/// reads no more of an `int`; a filter that compared all 64 could be evaded by
/// setting a bit that nobody reads (CVE-2019-10063).
enum When {
    /// The argument has any of these bits.
    AnyBit(u32, u32),
    /// The part is one of these.
    Is(ArgumentBits, &'static [u32]),
    /// The part is none of these.
    IsNot(ArgumentBits, &'static [u32]),
    /// The argument, a pointer, points somewhere.
    NotNull(u32),
}

/// Those bits of an argument that are looked at.
#[derive(Clone, Copy)]
struct ArgumentBits {
    argument: u32,
    mask: u32,
}

const ALWAYS: &[When] = &[];

/// Refusals of [`Sockets::Local`]. The error makes tools say what happened:
/// "Permission denied".
const LOCAL: &[SyscallRule] = &[SyscallRule(&[SYS_socket], &[Is(FAMILY, INET)], EACCES)];

/// Refusals for every run. Those that look at arguments come first: the kernel
/// asks the filter each time, while it remembers what is allowed whatever the
/// arguments (since 5.11).
#[rustfmt::skip] // One rule, one line.
const RULES: &[SyscallRule] = &[
    // Set-id bits never reach a file: it could outlive the run and lend its
    // rights to someone outside. The mode of an `open` means nothing unless it
    // creates. (`mkdir` is not here, as the kernel drops the bits itself.)
    SyscallRule(&[SYS_openat], &[AnyBit(2, CREATES), AnyBit(3, SET_ID)], EPERM),
    #[cfg(target_arch = "x86_64")]
    SyscallRule(&[SYS_open], &[AnyBit(1, CREATES), AnyBit(2, SET_ID)], EPERM),
    SyscallRule(&[SYS_openat2], ALWAYS, ENOSYS),
    // Takes room on the disk that the kernel counts nowhere. Programs write
    // zeros instead, which it does count.
    SyscallRule(&[SYS_fallocate], ALWAYS, EOPNOTSUPP),
    #[cfg(target_arch = "x86_64")]
    SyscallRule(&[SYS_creat, SYS_chmod, SYS_mknod], &[AnyBit(1, SET_ID)], EPERM),
    SyscallRule(&[SYS_fchmod], &[AnyBit(1, SET_ID)], EPERM),
    SyscallRule(&[SYS_fchmodat, FCHMODAT2, SYS_mknodat], &[AnyBit(2, SET_ID)], EPERM),

    // Nor are devices made. Not even the harmless one that needs no privilege:
    // in an overlay's layer it would say that a file was removed.
    #[cfg(target_arch = "x86_64")]
    SyscallRule(&[SYS_mknod], &[Is(file_type(1), DEVICES)], EPERM),
    SyscallRule(&[SYS_mknodat], &[Is(file_type(2), DEVICES)], EPERM),

    // What types into a terminal, or changes what it is.
    SyscallRule(&[SYS_ioctl], &[Is(whole(1), TERMINAL)], EPERM),

    // New namespaces come with privileges inside, and with them most of the
    // kernel that only root can reach otherwise. What `unshare` may do is
    // listed the other way round: Linux 7.1 gave it a further kind.
    SyscallRule(&[SYS_clone], &[AnyBit(0, NAMESPACES)], EPERM),
    SyscallRule(&[SYS_clone3], ALWAYS, ENOSYS),
    SyscallRule(&[SYS_unshare], &[AnyBit(0, !UNSHARES)], EPERM),
    SyscallRule(&[SYS_setns], ALWAYS, EPERM),

    // Sockets of the few families, types and protocols that programs use. Some
    // of the others leave the machine past any network namespace (vsock); all
    // may load code into the kernel that is otherwise never run.
    SyscallRule(&[SYS_socket], &[IsNot(FAMILY, FAMILIES)], EAFNOSUPPORT),
    SyscallRule(&[SYS_socket], &[Is(FAMILY, INET), IsNot(TYPE, STREAM_OR_DATAGRAM)], EPERM),
    SyscallRule(&[SYS_socket], &[Is(FAMILY, INET), IsNot(PROTOCOL, INET_PROTOCOLS)], EPROTONOSUPPORT),
    SyscallRule(&[SYS_socket], &[Is(FAMILY, NETLINK), IsNot(PROTOCOL, NETLINKS)], EPROTONOSUPPORT),
    SyscallRule(&[SYS_socketpair], &[IsNot(FAMILY, UNIX)], EAFNOSUPPORT),

    // We set the limit on core files to 1, which keeps a handler of the host
    // from being started for a crash inside. It stays; but programs that want
    // no cores either (gpg) give up if they cannot say so.
    SyscallRule(&[SETRLIMIT], &[Is(whole(0), CORE)], 0),
    SyscallRule(&[SYS_prlimit64], &[Is(whole(1), CORE), NotNull(2)], 0),

    // Keys are not kept apart by any namespace.
    SyscallRule(&[SYS_add_key, SYS_request_key, SYS_keyctl], ALWAYS, EPERM),

    // Large, and the beginning of many an escape. What goes through io_uring
    // would not pass this table either.
    SyscallRule(&[SYS_bpf, SYS_perf_event_open, SYS_userfaultfd], ALWAYS, EPERM),
    SyscallRule(&[SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register], ALWAYS, EPERM),

    // The walls that are made of mounts stay as they are.
    SyscallRule(&[SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot], ALWAYS, EPERM),
    SyscallRule(&[SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick], ALWAYS, EPERM),
    SyscallRule(&[SYS_open_tree, OPEN_TREE_ATTR, SYS_move_mount, SYS_mount_setattr], ALWAYS, EPERM),

    // A file by its number, past every directory above it; and a watch over
    // all files of a mount.
    SyscallRule(&[SYS_open_by_handle_at, SYS_fanotify_init], ALWAYS, EPERM),

    // The machine and its clock, disks, names and log. Root has no use for
    // them inside either.
    SyscallRule(&[SYS_init_module, SYS_finit_module, SYS_delete_module], ALWAYS, EPERM),
    SyscallRule(&[SYS_reboot, SYS_kexec_load, KEXEC_FILE_LOAD], ALWAYS, EPERM),
    SyscallRule(&[SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex], ALWAYS, EPERM),
    SyscallRule(&[SYS_swapon, SYS_swapoff, SYS_quotactl, SYS_quotactl_fd], ALWAYS, EPERM),
    SyscallRule(&[SYS_sethostname, SYS_setdomainname], ALWAYS, EPERM),
    SyscallRule(&[SYS_syslog, SYS_acct, SYS_vhangup], ALWAYS, EPERM),

    // Left over from another time, and rarely looked at since.
    SyscallRule(&[SYS_lookup_dcookie, SYS_nfsservctl], ALWAYS, EPERM),
    #[cfg(target_arch = "x86_64")]
    SyscallRule(&[SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib], ALWAYS, EPERM),
];

const FAMILY: ArgumentBits = whole(0);
/// Without the flags that come along with it.
const TYPE: ArgumentBits = ArgumentBits {
    argument: 1,
    mask: 0xf,
};
const PROTOCOL: ArgumentBits = whole(2);

const FAMILIES: &[u32] = &[
    AF_UNIX as u32,
    AF_INET as u32,
    AF_INET6 as u32,
    AF_NETLINK as u32,
];
const INET: &[u32] = &[AF_INET as u32, AF_INET6 as u32];
const NETLINK: &[u32] = &[AF_NETLINK as u32];
const UNIX: &[u32] = &[AF_UNIX as u32];

/// Not `SOCK_RAW`, and not `SOCK_PACKET`, for which the kernel turns an IPv4
/// socket into one of the family `AF_PACKET`.
const STREAM_OR_DATAGRAM: &[u32] = &[SOCK_STREAM as u32, SOCK_DGRAM as u32];

/// ICMP is for `ping`, which needs no raw socket; MPTCP is what Go listens
/// with.
const INET_PROTOCOLS: &[u32] = &[
    0,
    IPPROTO_TCP as u32,
    IPPROTO_UDP as u32,
    IPPROTO_ICMP as u32,
    IPPROTO_ICMPV6 as u32,
    IPPROTO_MPTCP as u32,
];

/// To list addresses, sockets and devices.
const NETLINKS: &[u32] = &[
    NETLINK_ROUTE as u32,
    NETLINK_SOCK_DIAG as u32,
    NETLINK_KOBJECT_UEVENT as u32,
];

const CREATES: u32 = O_CREAT as u32 | TMPFILE;
/// The one bit that is `O_TMPFILE`'s alone; `libc` has it with `O_DIRECTORY`.
const TMPFILE: u32 = 0o20_000_000;
const SET_ID: u32 = S_ISUID | S_ISGID;
const DEVICES: &[u32] = &[S_IFCHR, S_IFBLK];
const TERMINAL: &[u32] = &[TIOCSTI as u32, TIOCLINUX as u32, TIOCSETD as u32];
const CORE: &[u32] = &[RLIMIT_CORE as _];

/// Without `CLONE_NEWTIME`: in `clone`, its bit belongs to the signal sent at
/// the end.
const NAMESPACES: u32 = (CLONE_NEWNS
    | CLONE_NEWCGROUP
    | CLONE_NEWUTS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET) as u32;
const UNSHARES: u32 =
    (CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD) as u32;

// Numbers that `libc` lacks, for one architecture or C library or for all.
const FCHMODAT2: c_long = 452;
const OPEN_TREE_ATTR: c_long = 467;
#[cfg(target_arch = "x86_64")]
const SETRLIMIT: c_long = 160;
#[cfg(target_arch = "aarch64")]
const SETRLIMIT: c_long = 164;
#[cfg(target_arch = "x86_64")]
const KEXEC_FILE_LOAD: c_long = 320;
#[cfg(target_arch = "aarch64")]
const KEXEC_FILE_LOAD: c_long = 294;

const fn whole(argument: u32) -> ArgumentBits {
    let mask = u32::MAX;
    ArgumentBits { argument, mask }
}

const fn file_type(argument: u32) -> ArgumentBits {
    let mask = S_IFMT;
    ArgumentBits { argument, mask }
}

// ---- the assembler ----

/// What the kernel calls the architecture we were built for (`AUDIT_ARCH_*`:
/// the ELF machine, 64 bits, little-endian).
#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xc000_00b7;

/// The newest call that was looked at for this table (`rseq_slice_yield`,
/// Linux 7.0).
const NEWEST: u32 = 471;

/// The number that a tracer puts in place of a call it has answered itself.
const SKIPPED: u32 = u32::MAX;

/// Refuses other ABIs, in which numbers mean other calls, and leaves the
/// call's number in the accumulator.
fn entry() -> Vec<sock_filter> {
    vec![
        load(offset_of!(seccomp_data, arch)),
        jump(BPF_JEQ, NATIVE, 1, 0),
        give(SECCOMP_RET_KILL_PROCESS),
        load(offset_of!(seccomp_data, nr)),
        // Programs expect a call that is newer than the kernel to be missing.
        // It is so for those newer than this table, which cannot tell what
        // they do; and with them for the x32 ABI, whose numbers start at
        // 0x40000000 and, by a mistake of kernels before 5.4, also at 512.
        jump(BPF_JGT, NEWEST, 0, 3),
        jump(BPF_JEQ, SKIPPED, 0, 1),
        give(SECCOMP_RET_ALLOW),
        give(SECCOMP_RET_ERRNO | ENOSYS as u32),
    ]
}

/// Lists the calls that have rules, each once and by number.
fn calls(rules: &[&SyscallRule]) -> Vec<c_long> {
    let listed = rules.iter().flat_map(|SyscallRule(calls, ..)| *calls);
    let mut calls: Vec<c_long> = listed.copied().collect();
    calls.sort_unstable();
    calls.dedup();
    calls
}

/// So few calls are compared one by one.
const FEW: usize = 3;

/// Finds the section of a call by halves, and allows a call that has none.
/// When a filter is installed, the kernel walks through it for each call there
/// is; one after another, that took longer than all else about a filter.
fn search(calls: &[c_long], rules: &[&SyscallRule]) -> Vec<sock_filter> {
    if calls.len() <= FEW {
        let sections = calls.iter().flat_map(|&call| section(call, rules));
        return sections.chain([give(SECCOMP_RET_ALLOW)]).collect();
    }
    let (lower, upper) = calls.split_at(calls.len() / 2);
    let (middle, lower) = (upper[0] as u32, search(lower, rules));
    let mut code = vec![jump(BPF_JGE, middle, 0, 1), skip(lower.len())];
    code.extend(lower);
    code.extend(search(upper, rules));
    code
}

/// Assembles all rules for one call; others skip it. It always ends with a
/// return, as the accumulator may have lost the call's number by then.
fn section(call: c_long, rules: &[&SyscallRule]) -> Vec<sock_filter> {
    let own = rules
        .iter()
        .filter(|SyscallRule(calls, ..)| calls.contains(&call));
    let mut body: Vec<_> = own.clone().flat_map(|rule| assemble(rule)).collect();
    // Behind what is always refused nobody comes along.
    if !own.clone().any(|SyscallRule(_, when, _)| when.is_empty()) {
        body.push(give(SECCOMP_RET_ALLOW));
    }
    let mut section = vec![jump(BPF_JEQ, call as u32, 0, body.len())];
    section.append(&mut body);
    section
}

/// Assembles one rule from its end, so that each test knows how much there is
/// to skip where it fails.
fn assemble(SyscallRule(_, when, answer): &SyscallRule) -> Vec<sock_filter> {
    let mut code = vec![give(SECCOMP_RET_ERRNO | *answer as u32)];
    for when in when.iter().rev() {
        let mut test = test(when, code.len());
        test.append(&mut code);
        code = test;
    }
    code
}

/// Goes on after its own end where `when` holds, and else `rest` further.
fn test(when: &When, rest: usize) -> Vec<sock_filter> {
    match *when {
        AnyBit(argument, mask) => vec![load(low(argument)), jump(BPF_JSET, mask, 0, rest)],
        Is(part, values) => compare(part, values, 0, rest),
        IsNot(part, values) => compare(part, values, rest, 0),
        NotNull(argument) => vec![
            load(high(argument)),
            jump(BPF_JEQ, 0, 0, 2),
            load(low(argument)),
            jump(BPF_JEQ, 0, rest, 0),
        ],
    }
}

/// Goes `found` beyond its own end if the part is one of the values, and else
/// `missing` beyond it.
fn compare(part: ArgumentBits, values: &[u32], found: usize, missing: usize) -> Vec<sock_filter> {
    let mut code = vec![load(low(part.argument)), and(part.mask)];
    for (index, value) in values.iter().enumerate() {
        let left = values.len() - 1 - index;
        let otherwise = if left == 0 { missing } else { 0 };
        code.push(jump(BPF_JEQ, *value, left + found, otherwise));
    }
    code
}

/// Where the low half of an argument is. Both architectures are little-endian.
fn low(argument: u32) -> usize {
    offset_of!(seccomp_data, args) + argument as usize * size_of::<u64>()
}

fn high(argument: u32) -> usize {
    low(argument) + size_of::<u32>()
}

fn load(offset: usize) -> sock_filter {
    instruction(BPF_LD | BPF_W | BPF_ABS, offset as u32)
}

fn and(mask: u32) -> sock_filter {
    instruction(BPF_ALU | BPF_AND | BPF_K, mask)
}

fn give(answer: u32) -> sock_filter {
    instruction(BPF_RET | BPF_K, answer)
}

fn skip(instructions: usize) -> sock_filter {
    instruction(BPF_JMP | BPF_JA, instructions as u32)
}

fn jump(test: u32, value: u32, yes: usize, no: usize) -> sock_filter {
    let near = |offset: usize| u8::try_from(offset).expect("the rules of one call are short");
    sock_filter {
        jt: near(yes),
        jf: near(no),
        ..instruction(BPF_JMP | test | BPF_K, value)
    }
}

fn instruction(code: u32, k: u32) -> sock_filter {
    let code = code as u16;
    let (jt, jf) = (0, 0);
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};
    use std::ptr::null;

    use super::*;

    /// What no `int` has, and the kernel does not look at.
    const HIGH: u64 = 0xdead_beef_0000_0000;
    /// `TIOCSTI`.
    const TYPE_INPUT: u64 = 0x5412;
    const DONE: i32 = 0;
    /// The child could not even be bound; no error has this number.
    const UNBOUND: i32 = 255;

    #[test]
    fn what_is_never_allowed_gives_its_error() {
        for SyscallRule(calls, when, error) in RULES {
            if when.is_empty() {
                for call in *calls {
                    // Arguments that would do no harm if it were allowed.
                    assert_eq!(answer(*call, [u64::MAX; 4]), *error, "call {call}");
                }
            }
        }
    }

    #[test]
    fn no_namespace_is_made() {
        let kinds = [
            CLONE_NEWNS,
            CLONE_NEWCGROUP,
            CLONE_NEWUTS,
            CLONE_NEWIPC,
            CLONE_NEWUSER,
            CLONE_NEWPID,
            CLONE_NEWNET,
        ];
        for kind in kinds.map(|kind| kind as u64) {
            check(SYS_unshare, [kind], EPERM);
            check(SYS_unshare, [HIGH | kind | CLONE_FS as u64], EPERM);
            check(SYS_clone, [kind | SIGCHLD as u64], EPERM);
            check(SYS_clone, [HIGH | kind | SIGCHLD as u64], EPERM);
        }
        check(SYS_unshare, [CLONE_NEWTIME as u64], EPERM);
        const EMPTY_MOUNTS: u64 = 0x10_0000;
        check(SYS_unshare, [EMPTY_MOUNTS], EPERM);
        check(SYS_unshare, [(CLONE_FS | CLONE_FILES) as u64], DONE);
        check(SYS_clone, [SIGCHLD as u64], DONE);
        // The bit of a time namespace, as part of a signal's number.
        check(SYS_clone, [CLONE_NEWTIME as u64], DONE);
    }

    #[test]
    fn sockets_are_of_few_kinds() {
        for inet in [AF_INET, AF_INET6] {
            socket(inet, SOCK_STREAM | SOCK_CLOEXEC, 0, DONE);
            socket(inet, SOCK_DGRAM | SOCK_NONBLOCK, IPPROTO_UDP, DONE);
            socket(inet, SOCK_RAW, IPPROTO_TCP, EPERM);
            socket(inet, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP, EPERM);
            socket(inet, SOCK_SEQPACKET, 0, EPERM);
            socket(inet, SOCK_STREAM, IPPROTO_SCTP, EPROTONOSUPPORT);
        }
        const PACKET: i32 = 10;
        socket(AF_INET, PACKET, 0, EPERM);
        socket(AF_UNIX, SOCK_STREAM, 0, DONE);
        socket(AF_UNIX, SOCK_SEQPACKET, 0, DONE);
        socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, DONE);
        socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT, DONE);
        socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, EPROTONOSUPPORT);
        socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT, EPROTONOSUPPORT);
        for family in [0, AF_VSOCK, AF_PACKET, AF_ALG, AF_BLUETOOTH, AF_TIPC, -1] {
            socket(family, SOCK_DGRAM, 0, EAFNOSUPPORT);
            socketpair(family, EAFNOSUPPORT);
        }
        socketpair(AF_INET, EAFNOSUPPORT);
        socketpair(AF_UNIX, DONE);
    }

    #[test]
    fn local_sockets_have_no_internet() {
        let filter = SeccompFilter::new(Sockets::Local);
        let make = |family: i32, bits: u64| {
            let arguments = [bits | family as u64, bits | SOCK_DGRAM as u64, bits, 0];
            behind(&filter, || call(SYS_socket, arguments))
        };
        for bits in [0, HIGH] {
            assert_eq!(make(AF_INET, bits), EACCES);
            assert_eq!(make(AF_INET6, bits), EACCES);
            assert_eq!(make(AF_PACKET, bits), EAFNOSUPPORT);
            assert_eq!(make(AF_UNIX, bits), DONE);
            assert_eq!(make(AF_NETLINK, bits), DONE);
        }
    }

    #[test]
    fn nothing_is_typed_into_a_terminal() {
        // Without a descriptor the kernel's own answer is another.
        let nowhere = u64::MAX;
        for command in [TYPE_INPUT, 0x541c, 0x5423] {
            check(SYS_ioctl, [nowhere, command], EPERM);
            check(SYS_ioctl, [nowhere, HIGH | command], EPERM);
        }
        const BYTES_TO_READ: u64 = 0x541b;
        check(SYS_ioctl, [nowhere, BYTES_TO_READ], EBADF);
    }

    #[test]
    fn no_file_gets_set_id_bits_by_a_change_of_mode() {
        let scratch = Scratch::new("chmod");
        let file = scratch.path("file");
        fs::write(&file, "").unwrap();
        let path = c_path(&file);
        let path = path.as_ptr() as u64;
        let here = AT_FDCWD as u64;
        for mode in [0o4755, 0o2755, HIGH | 0o6755, 0x5555_0000 | 0o4755] {
            #[cfg(target_arch = "x86_64")]
            check(SYS_chmod, [path, mode], EPERM);
            check(SYS_fchmod, [u64::MAX, mode], EPERM);
            check(SYS_fchmodat, [here, path, mode], EPERM);
            check(FCHMODAT2, [here, path, mode, 0], EPERM);
        }
        assert_eq!(mode(&file) & 0o6000, 0);
        check(SYS_fchmodat, [here, path, HIGH | 0o1750], DONE);
        assert_eq!(mode(&file) & 0o7777, 0o1750);
        #[cfg(target_arch = "x86_64")]
        check(SYS_chmod, [path, 0o755], DONE);
        check(SYS_fchmod, [u64::MAX, 0o755], EBADF);
    }

    #[test]
    fn no_file_is_made_with_set_id_bits() {
        let scratch = Scratch::new("open");
        let (dir, file) = (c_path(&scratch.0), c_path(&scratch.path("file")));
        let (dir, file) = (dir.as_ptr() as u64, file.as_ptr() as u64);
        let here = AT_FDCWD as u64;
        let create = (O_CREAT | O_WRONLY) as u64;
        let unnamed = (O_TMPFILE | O_WRONLY) as u64;
        for mode in [0o4755, 0o2755, HIGH | 0o6755] {
            for (path, flags) in [(file, create), (file, HIGH | create), (dir, unnamed)] {
                check(SYS_openat, [here, path, flags, mode], EPERM);
                #[cfg(target_arch = "x86_64")]
                check(SYS_open, [path, flags, mode], EPERM);
            }
            check(SYS_mknodat, [here, file, u64::from(S_IFREG) | mode], EPERM);
            #[cfg(target_arch = "x86_64")]
            {
                check(SYS_creat, [file, mode], EPERM);
                check(SYS_mknod, [file, u64::from(S_IFREG) | mode], EPERM);
            }
        }
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0);
        check(SYS_openat, [here, file, create, 0o644], DONE);
        check(SYS_openat, [here, dir, unnamed, 0o644], DONE);
        // Not a mode but what was left in the register.
        check(SYS_openat, [here, file, O_RDONLY as u64, 0o6777], DONE);
    }

    #[test]
    fn the_kernel_makes_no_directory_with_set_id_bits() {
        let scratch = Scratch::new("mkdir");
        let dir = scratch.path("dir");
        let path = c_path(&dir);
        let arguments = [AT_FDCWD as u64, path.as_ptr() as u64, 0o6755];
        check(SYS_mkdirat, arguments, DONE);
        assert_eq!(mode(&dir) & 0o6000, 0);
    }

    #[test]
    fn no_device_is_made() {
        let scratch = Scratch::new("mknod");
        let path = c_path(&scratch.path("node"));
        let path = path.as_ptr() as u64;
        let here = AT_FDCWD as u64;
        for kind in [S_IFCHR, S_IFBLK].map(u64::from) {
            for mode in [kind | 0o600, HIGH | kind | 0o600, 0x5555_0000 | kind] {
                check(SYS_mknodat, [here, path, mode, 0], EPERM);
                #[cfg(target_arch = "x86_64")]
                check(SYS_mknod, [path, mode, 0], EPERM);
            }
        }
        assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 0);
        check(SYS_mknodat, [here, path, u64::from(S_IFIFO) | 0o600], DONE);
    }

    #[test]
    fn the_limit_on_cores_seems_to_change_but_does_not() {
        let filter = SeccompFilter::new(Sockets::All);
        let core = u64::from(CORE[0]);
        let ended = behind(&filter, || {
            let before = limit();
            let other = rlimit {
                rlim_cur: before.rlim_cur ^ 1,
                ..before
            };
            let new = &raw const other as u64;
            let failed = call(SETRLIMIT, [core, new, 0, 0])
                | call(SETRLIMIT, [HIGH | core, new, 0, 0])
                | call(SYS_prlimit64, [0, core, new, 0])
                | call(SYS_prlimit64, [0, HIGH | core, new, 0]);
            let after = limit();
            failed | i32::from(before.rlim_cur != after.rlim_cur)
        });
        assert_eq!(ended, DONE);
        // A pointer is one in either half. The kernel would find nothing there.
        check(SYS_prlimit64, [0, core, 1, 0], DONE);
        check(SYS_prlimit64, [0, core, 1 << 63, 0], DONE);
        check(SYS_prlimit64, [0, core, 0, 1], EFAULT);
        check(SYS_prlimit64, [0, RLIMIT_NOFILE as u64, 1, 0], EFAULT);
    }

    #[test]
    fn calls_newer_than_the_table_are_missing() {
        check(c_long::from(NEWEST) + 1, [], ENOSYS);
        const X32: c_long = 0x4000_0000;
        check(X32 | SYS_getpid, [], ENOSYS);
        const X32_IOCTL: c_long = 514;
        check(X32_IOCTL, [u64::MAX, TYPE_INPUT], ENOSYS);
        // The kernel's own answer, as no tracer has given another.
        check(c_long::from(SKIPPED), [], ENOSYS);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_32_bit_entry_is_deadly() {
        let filter = SeccompFilter::new(Sockets::All);
        let ended = behind(&filter, || {
            // SAFETY: `getpid` in the 32-bit ABI. It takes no arguments and
            // touches no memory.
            unsafe {
                std::arch::asm!(
                    "int 0x80",
                    inout("eax") 20 => _,
                    out("r8") _, out("r9") _, out("r10") _, out("r11") _,
                );
            }
            DONE
        });
        if ended == 128 + SIGSEGV {
            return weighlock_testing::skip("this kernel has no 32-bit entry");
        }
        assert_eq!(ended, 128 + SIGSYS);
    }

    #[test]
    fn everyday_programs_work() {
        let shell = "true | true && (umask 077; sleep 0 & wait) && test -n \"$(ls /)\"";
        assert_eq!(run(shell), DONE);
        let python = "import socket, subprocess, threading
t = threading.Thread(target=subprocess.run, args=(['true'],)); t.start(); t.join()
s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())
socket.socketpair(); socket.getaddrinfo('localhost', 80)";
        if !weighlock_testing::have(&["python3"]) {
            return;
        }
        assert_eq!(run(&format!("exec python3 -c \"{python}\"")), DONE);
    }

    #[test]
    fn a_run_may_add_filters_of_its_own() {
        let filter = SeccompFilter::new(Sockets::All);
        let bind = || filter.install().map_or(1, |()| DONE);
        assert_eq!(behind(&filter, bind), DONE);
    }

    #[test]
    fn needs_new_privileges_to_be_given_up() {
        let filter = SeccompFilter::new(Sockets::All);
        let ended = child(|| {
            // Only nobody in particular needs it; root may always. What fails
            // for others than root leaves them who they are.
            call(SYS_setresuid, [65534, 65534, 65534, 0]);
            filter
                .install()
                .map_or_else(|error| error.raw_os_error().unwrap_or(UNBOUND), |()| DONE)
        });
        assert_eq!(ended, EACCES);
    }

    #[test]
    fn the_kernel_takes_programs_of_this_length() {
        for sockets in [Sockets::All, Sockets::Local] {
            let length = SeccompFilter::new(sockets).0.len();
            assert!(length < BPF_MAXINSNS as usize / 4, "{length}");
        }
    }

    #[track_caller]
    fn socket(family: i32, kind: i32, protocol: i32, error: i32) {
        let numbers = [family, kind, protocol].map(|number| u64::from(number.cast_unsigned()));
        check(SYS_socket, numbers, error);
        check(SYS_socket, numbers.map(|number| HIGH | number), error);
    }

    #[track_caller]
    fn socketpair(family: i32, error: i32) {
        let mut pair = [0; 2];
        let pair = (&raw mut pair) as u64;
        let family = u64::from(family.cast_unsigned());
        check(SYS_socketpair, [family, SOCK_STREAM as u64, 0, pair], error);
        let family = HIGH | family;
        check(SYS_socketpair, [family, SOCK_STREAM as u64, 0, pair], error);
    }

    #[track_caller]
    fn check<const N: usize>(number: c_long, arguments: [u64; N], error: i32) {
        let mut all = [0; 4];
        all[..N].copy_from_slice(&arguments);
        assert_eq!(answer(number, all), error, "call {number} {arguments:x?}");
    }

    /// Returns how the kernel answers a bound process: an error, or 0.
    fn answer(number: c_long, arguments: [u64; 4]) -> i32 {
        let filter = SeccompFilter::new(Sockets::All);
        behind(&filter, || call(number, arguments))
    }

    /// Runs a line of shell in a bound process.
    fn run(line: &str) -> i32 {
        let filter = SeccompFilter::new(Sockets::All);
        let line = CString::new(line).unwrap();
        let arguments = [c"sh".as_ptr(), c"-c".as_ptr(), line.as_ptr(), null()];
        behind(&filter, || {
            // SAFETY: a list of strings that ends with null, all alive.
            unsafe { execv(c"/bin/sh".as_ptr(), arguments.as_ptr()) };
            UNBOUND
        })
    }

    /// Returns how a bound child ends that does `act`.
    fn behind(filter: &SeccompFilter, act: impl FnOnce() -> i32) -> i32 {
        child(|| {
            // SAFETY: a flag of this process and no memory.
            let bound = unsafe { prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } == 0;
            if !bound || filter.install().is_err() {
                return UNBOUND;
            }
            act()
        })
    }

    /// Returns how a child ends: its exit code, or 128 and its signal.
    fn child(act: impl FnOnce() -> i32) -> i32 {
        // SAFETY: other threads may hold locks, so the child only makes system
        // calls and ends: `act` neither allocates nor panics.
        let pid = unsafe { fork() };
        if pid == 0 {
            let code = act();
            // SAFETY: does not return and touches no memory.
            unsafe { _exit(code) };
        }
        assert!(pid > 0, "{}", io::Error::last_os_error());
        let mut status = 0;
        // SAFETY: our own child, and a status that outlives the call.
        assert_eq!(unsafe { waitpid(pid, &raw mut status, 0) }, pid);
        match WIFSIGNALED(status) {
            true => 128 + WTERMSIG(status),
            false => WEXITSTATUS(status),
        }
    }

    fn call(number: c_long, [a, b, c, d]: [u64; 4]) -> i32 {
        // SAFETY: pointers among the arguments come from callers that keep
        // what they point to, or point nowhere, which the kernel notices. A
        // second process (`clone`) has memory of its own and ends like this.
        match unsafe { syscall(number, a, b, c, d, 0, 0) } {
            -1 => io::Error::last_os_error().raw_os_error().unwrap_or(UNBOUND),
            _ => DONE,
        }
    }

    fn limit() -> rlimit {
        let mut limit = rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the kernel fills a struct that outlives the call.
        unsafe { getrlimit(RLIMIT_CORE, &raw mut limit) };
        limit
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode()
    }

    fn c_path(path: &Path) -> CString {
        CString::new(path.as_os_str().as_bytes()).unwrap()
    }

    /// A directory for one test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("weighlock-seccomp-{name}-{}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            fs::create_dir(&dir).unwrap();
            Self(dir)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
