//! What the kernel could be asked for, and is not to give.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use super::{CALLS, CANARY, attack};
use crate::support::{Home, have, skip};

#[test]
fn unusual_sockets_are_refused() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    attack(
        &home,
        "python3",
        "def makes(*args):
    return lambda: socket.socket(*args) is not None
attempt('raw', makes(socket.AF_INET, socket.SOCK_RAW, 1))
attempt('raw 6', makes(socket.AF_INET6, socket.SOCK_RAW, 58))
attempt('packet', makes(socket.AF_PACKET, socket.SOCK_RAW, 0x0300))
attempt('old packet', makes(socket.AF_INET, 10, 0x0300))
attempt('vsock', makes(40, socket.SOCK_STREAM, 0))
attempt('vsock dgram', makes(40, socket.SOCK_DGRAM, 0))
attempt('audit', makes(socket.AF_NETLINK, socket.SOCK_RAW, 9))
for protocol in (2, 3, 5, 6, 7, 8, 10, 11, 12, 14, 16, 18, 19, 20, 21, 22):
    attempt(f'netlink {protocol}', makes(socket.AF_NETLINK, socket.SOCK_RAW, protocol))
for family in range(3, 46):
    if family not in (10, 16): attempt(f'family {family}', makes(family, socket.SOCK_STREAM, 0))
    if family not in (10, 16): attempt(f'family {family} dgram', makes(family, socket.SOCK_DGRAM, 0))
    if family not in (10, 16): attempt(f'family {family} pair', lambda: call(53, family, 1, 0, ctypes.create_string_buffer(8)) == 0)
attempt('sctp', makes(socket.AF_INET, socket.SOCK_STREAM, 132))
attempt('dccp', makes(socket.AF_INET, 6, 33))
attempt('high bits', gives(41, 40 | 1 << 40, 1, 0))",
    );
}

#[test]
fn namespaces_and_mounts_cannot_be_made() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    attack(
        &home,
        "python3",
        r#"flags = {'time': 0x80, 'mount': 0x20000, 'cgroup': 0x2000000, 'uts': 0x4000000, 'ipc': 0x8000000,
         'user': 0x10000000, 'pid': 0x20000000, 'net': 0x40000000}
for name, flag in flags.items():
    attempt(f'unshare {name}', gives(272, flag))
    attempt(f'unshare user and {name}', gives(272, flag | 0x10000000))
    attempt(f'unshare high {name}', gives(272, flag | 1 << 40))
    if name != 'time':
        pid = call(56, flag | 17, 0, 0, 0, 0)
        if pid == 0: os._exit(0)
        print('OPEN' if pid > 0 else 'shut', 'clone', name, flush=True)
        args = struct.pack('11Q', flag, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
        pid = call(435, args, len(args))
        if pid == 0: os._exit(0)
        print('OPEN' if pid > 0 else 'shut', 'clone3', name, flush=True)
for kind in os.listdir('/proc/self/ns'):
    fd = os.open(f'/proc/self/ns/{kind}', os.O_RDONLY)
    attempt(f'setns {kind}', gives(308, fd, 0))
    attempt(f'parent of {kind}', gives(16, fd, 0xb702))
attempt('setns pidfd', gives(308, os.pidfd_open(os.getpid()), 0x10000000))
os.mkdir('/tmp/m')
attempt('mount tmpfs', gives(165, b'x', b'/tmp/m', b'tmpfs', 0, 0))
attempt('mount proc', gives(165, b'x', b'/tmp/m', b'proc', 0, 0))
attempt('bind', gives(165, b'/', b'/tmp/m', 0, 4096 | 16384, 0))
attempt('remount', gives(165, 0, b'/usr', 0, 32 | 4096, 0))
attempt('private', gives(165, 0, b'/', 0, 1 << 18, 0))
for path in (b'/usr', b'/proc', b'/proc/sys', b'/etc', b'/tmp', os.getcwdb()):
    attempt(f'umount {path}', gives(166, path, 2))
    attempt(f'umount0 {path}', gives(166, path, 0))
attempt('chroot', lambda: os.chroot('/tmp/m') is None)
attempt('pivot', gives(155, b'/tmp/m', b'/tmp/m'))
attempt('fsopen', gives(430, b'tmpfs', 0))
attempt('open_tree', gives(428, -100, b'/usr', 1))
attempt('open_tree plain', gives(428, -100, b'/usr', 0))
attempt('open_tree_attr', gives(467, -100, b'/usr', 1, 0, 0))
attempt('move_mount', gives(429, -100, b'/usr', -100, b'/tmp/m', 0))
attempt('fspick', gives(433, -100, b'/usr', 0))
attempt('mount_setattr', gives(442, -100, b'/usr', 0, struct.pack('4Q', 0, 1, 0, 0), 32))
attempt('open_by_handle', gives(304, -100, struct.pack('Ii', 8, 1) + bytes(8), 0))
attempt('quotactl', gives(179, 0x800001 << 8, b'/', 0, 0))
attempt('uid map', lambda: os.write(os.open('/proc/self/uid_map', os.O_WRONLY), b'0 0 1') > 0)
attempt('new root', lambda: os.setuid(0) is None)
attempt('new group', lambda: os.setgid(0) is None)
attempt('groups', lambda: os.setgroups([0]) is None)"#,
    );
}

#[test]
fn keys_of_the_session_stay_outside() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    let add = format!(
        "import ctypes, os, sys; c = ctypes.CDLL(None)
assert c.syscall(248, b'user', b'wl-key', b'{CANARY}', {length}, -3) > 0
os.execvp(sys.argv[1], sys.argv[1:])",
        length = CANARY.len()
    );
    let _server = match home.serve_in(&["/usr/bin/python3", "-c", &add], &[]) {
        Ok(server) => server,
        Err(done) => return skip(&format!("no keys here: {done:?}")),
    };
    attack(
        &home,
        "python3",
        "buffer = ctypes.create_string_buffer(4096)
attempt('add', gives(248, b'user', b'x', b'y', 1, -3))
attempt('add process', gives(248, b'user', b'x', b'y', 1, -2))
attempt('request', gives(249, b'user', b'wl-key', 0, -3))
attempt('request none', gives(249, b'user', b'wl-key', 0, 0))
for ring in (-1, -2, -3, -4, -5):
    attempt(f'search {ring}', gives(250, 10, ring, b'user', b'wl-key', 0))
    attempt(f'read {ring}', gives(250, 11, ring, buffer, 4096))
    attempt(f'id {ring}', gives(250, 0, ring, 0))
attempt('join', gives(250, 1, 0))
attempt('session', gives(250, 1, b'_ses'))
attempt('parent', gives(250, 18))
def seen(name):
    def look():
        return b'wl-key' in open(name, 'rb').read() or len(open(name, 'rb').read()) > 0
    return look
attempt('/proc/keys', seen('/proc/keys'))
attempt('/proc/key-users', seen('/proc/key-users'))",
    );
}

#[test]
fn large_parts_of_the_kernel_are_shut() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    attack(
        &home,
        "python3",
        "z = bytes(256)
attempt('bpf map', gives(321, 0, struct.pack('5I', 2, 4, 4, 1, 0) + bytes(100), 120))
attempt('perf', gives(298, struct.pack('2IQ', 1, 112, 0) + bytes(96), 0, -1, -1, 0))
attempt('io_uring', gives(425, 8, ctypes.create_string_buffer(120)))
attempt('io_uring_register', gives(427, -1, 0, 0, 0))
attempt('userfaultfd', gives(323, 1))
attempt('kexec', gives(246, 0, 0, 0, 0))
attempt('kexec_file', gives(320, 0, 0, 0, 0, 0))
attempt('module', gives(175, z, 0, b''))
attempt('fmodule', gives(313, 0, b'', 0))
attempt('rmmod', gives(176, b'x', 0))
attempt('reboot', gives(169, 0xfee1dead, 672274793, 0, 0))
attempt('swapon', gives(167, b'attack.py', 0))
attempt('sethostname', gives(170, b'x', 1))
attempt('syslog', gives(103, 3, ctypes.create_string_buffer(100), 100))
attempt('acct', gives(163, 0))
attempt('settime', gives(227, 0, struct.pack('2q', 1, 1)))
attempt('iopl', gives(172, 3))
attempt('ioperm', gives(173, 0, 1, 1))
attempt('modify_ldt', gives(154, 0, ctypes.create_string_buffer(16), 16))
attempt('fanotify', gives(300, 0, 0))
attempt('vhangup', gives(153))
attempt('nice', lambda: os.setpriority(os.PRIO_PROCESS, 0, -5) is None)
attempt('realtime', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)) is None)
attempt('oom', lambda: os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000') > 0)
attempt('oom lower', lambda: int(open('/proc/self/oom_score_adj').read()) < 500)
import resource
for name in ('NOFILE', 'FSIZE', 'DATA', 'NPROC'):
    hard = resource.getrlimit(getattr(resource, 'RLIMIT_' + name))[1]
    attempt(f'raise {name}', lambda: resource.setrlimit(getattr(resource, 'RLIMIT_' + name), (hard + 1, hard + 1)) is None)
attempt('cores', lambda: resource.setrlimit(resource.RLIMIT_CORE, (1, 1)) is None and resource.getrlimit(resource.RLIMIT_CORE)[1] > 1)
if pid := os.fork(): pass
else:
    # The 32-bit calls have other numbers; whoever makes one is killed.
    import mmap
    code = mmap.mmap(-1, 4096, prot=7)
    code.write(bytes.fromhex('b814000000cd80c3'))  # getpid
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    os._exit(0 if ctypes.CFUNCTYPE(ctypes.c_int)(address)() > 0 else 1)
attempt('32-bit calls', lambda: os.waitpid(pid, 0)[1] == 0)
attempt('x32', gives(0x40000000 + 39))",
    );
}

#[test]
fn terminals_cannot_be_typed_into() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    attack(
        &home,
        "python3",
        "import fcntl, pty, termios
attempt('/dev/tty', lambda: open('/dev/tty') is not None)
control, terminal = pty.openpty()
os.setsid() if os.getpid() != os.getsid(0) and os.getpid() != os.getpgid(0) else None
for fd in (control, terminal, 0, 1, 2):
    for request in (termios.TIOCSTI, termios.TIOCSTI | 1 << 32):
        attempt(f'type {fd} {request}', gives(16, fd, request, b'x'))
    attempt(f'paste {fd}', gives(16, fd, 0x541c, bytes([2])))
    attempt(f'discipline {fd}', gives(16, fd, 0x5423, struct.pack('i', 2)))
attempt('console', lambda: os.open('/dev/console', os.O_RDWR) >= 0)
attempt('others', lambda: [n for n in os.listdir('/dev/pts') if n not in ('ptmx', '0')])
os.write(control, b'echo\\n'); assert os.read(terminal, 5) == b'echo\\n', 'terminals work'",
    );
}

#[test]
fn set_id_programs_gain_nothing() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let copy = home.base().join("copy");
    fs::copy("/usr/bin/id", &copy).unwrap();
    // Root's, and for an ordinary user at least of another group if it has one.
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o6755)).unwrap();
    assert_eq!(fs::metadata(&copy).unwrap().mode() & 0o6000, 0o6000);
    let said = attack(
        &home,
        "sh",
        "me=$(id -u); mine=$(id -g)
         test $me != 0 || echo OPEN root
         try copy test \"$(./copy -u)\" != $me
         try copy-group test \"$(./copy -g)\" != $mine
         try real test \"$(./copy -ru)\" != $me
         try su su root -c true
         try mount mount -t tmpfs x /tmp
         try umount umount /proc
         try newgrp 'echo id -g | newgrp root | grep -x 0'
         try chsh 'echo | chsh -s /bin/sh root'
         try passwd passwd -d root
         try sudo sudo -n true
         try pkexec pkexec true
         grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status",
    );
    for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(
            said.contains(&format!("{name}:\t0000000000000000")),
            "{said}"
        );
    }
    assert!(
        said.contains("NoNewPrivs:\t1") && said.contains("Seccomp:\t2"),
        "{said}"
    );
}

#[test]
fn devices_are_few_and_cannot_be_made() {
    let home = Home::new();
    let said = attack(
        &home,
        "sh",
        "for i in sda vda mem kmsg fuse port kvm loop0 loop-control net/tun mapper/control nvme0 uinput \
         input vhost-vsock vsock dri hpet rtc0 console tty0 tty1 ttyS0 btrfs-control ptp0 snd userfaultfd; do
           try /dev/$i test -e /dev/$i; done
         for i in b:8:0 b:254:0 c:1:1 c:1:3 c:10:229 c:5:2; do
           IFS=:; set -- $i; unset IFS
           for at in . /tmp \"$HOME\" /dev/shm /dev; do try \"mknod $i $at\" mknod $at/node $1 $2 $3; done; done
         ls /dev | tr '\\n' ' '; echo",
    );
    assert!(
        said.contains("fd full null ptmx pts random shm stderr stdin stdout tty urandom zero \n"),
        "{said}"
    );
}

#[test]
fn control_files_of_the_kernel_cannot_be_written() {
    let home = Home::new();
    attack(
        &home,
        "sh",
        "for i in sys/kernel/core_pattern sys/kernel/modprobe sys/kernel/hotplug sys/kernel/pid_max \
           sys/kernel/yama/ptrace_scope sys/vm/overcommit_memory sys/vm/drop_caches \
           sys/kernel/unprivileged_userns_clone sys/user/max_user_namespaces sys/net/ipv4/ip_forward \
           sys/fs/binfmt_misc/register sys/kernel/sysrq sys/kernel/ns_last_pid sys/kernel/hostname \
           sys/kernel/shmmax sys/net/ipv4/ping_group_range sysrq-trigger irq/default_smp_affinity bus/pci \
           acpi scsi mtrr kcore fs/xfs 1/oom_score_adj 1/comm 1/attr/current \
           1/clear_refs driver/rtc; do
             try w:$i 'echo 1 > /proc/'$i; try a:$i 'echo 1 >> /proc/'$i; done
         try core 'head -c 1 /proc/kcore | grep -q .'
         try kmsg cat /proc/kmsg
         try vmcore cat /proc/vmcore
         try cgroup ls /sys/fs/cgroup/
         try cgroup-files 'find / -xdev -name release_agent -o -name cgroup.procs -o -name notify_on_release | grep .'
         try debug ls /sys/kernel
         try security ls /sys/kernel/security
         try firmware ls /sys/firmware
         try module ls /sys/module
         try online 'echo 0 > /sys/devices/system/cpu/cpu1/online'
         try uevent 'echo add > /sys/devices/system/cpu/cpu0/uevent'
         try policy 'for i in /sys/devices/system/cpu/*/*; do test ! -w $i || exit 0; done; exit 1'
         try sys 'for i in /proc/sys/*/*; do test -f $i && echo x >> $i && exit 0; done; exit 1'
         try mounts 'grep -E \" (/sys/fs/cgroup|/.old|/.empty)\" /proc/self/mountinfo'
         try lines 'grep -q . /proc/self/cgroup && grep -v \":/$\" /proc/self/cgroup'",
    );
}

#[test]
fn set_id_bits_never_reach_the_tree() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    let _server = home.serve(&[]);
    let base = home.base();
    fs::copy("/usr/bin/id", base.join("made")).unwrap();
    fs::set_permissions(base.join("made"), fs::Permissions::from_mode(0o6755)).unwrap();
    let tar = Command::new("tar")
        .args(["cpf", "made.tar", "made"])
        .current_dir(&base)
        .status();
    assert!(tar.unwrap().success());
    fs::remove_file(base.join("made")).unwrap();
    let run = home.result(
        &[],
        "cp /usr/bin/id a; chmod u+s a; cp /usr/bin/id b; chmod g+s b; install -m 4755 /usr/bin/id c; \
         cp -p /usr/bin/su d; tar xpf made.tar; cp /usr/bin/id e; chmod 6755 e; mkdir -m 6755 f; \
         mkdir g; chmod g+s g; chmod u+s g; cp --preserve=all /usr/bin/mount h; rsync -p /usr/bin/su i; true",
    );
    assert_eq!(run["state"], "succeeded", "{run}");
    fs::write(
        base.join("t.py"),
        format!(
            "{CALLS}
os.umask(0)
def go(f, *a):
    try: f(*a)
    except OSError: pass
go(os.open, 'p1', os.O_CREAT | os.O_WRONLY, 0o4755)
go(os.open, '.', os.O_TMPFILE | os.O_WRONLY, 0o6755)
call(85, b'p2', 0o6755)
call(2, b'p3', 0o101, 0o6755)
call(133, b'p4', 0o104755, 0)
call(259, -100, b'p5', 0o106755, 0)
call(437, -100, b'p6', struct.pack('3Q', 0o101, 0o6755, 0), 24)
fd = os.open('p7', os.O_CREAT | os.O_RDWR, 0o755)
go(os.fchmod, fd, 0o4755)
call(90, b'p7', 0o4755); call(91, fd, 0o4755); call(268, -100, b'p7', 0o4755); call(452, -100, b'p7', 0o4755, 0)
call(452, fd, b'', 0o4755, 0x1000); call(90, b'p7', 0o4755 | 1 << 40)
call(452, fd, b'', 0o2755, 0x1000)
go(os.fchmod, os.open('p8', os.O_CREAT | os.O_RDWR, 0o755), 0o2755)
go(os.setxattr, 'p7', 'security.capability', struct.pack('<5I', 0x02000001, 1, 0, 0, 0))
go(os.setxattr, 'p7', 'system.posix_acl_access', struct.pack('<IHHIHHIHHI', 2, 1, 7, 0, 4, 7, 0, 32, 7, 0))
go(os.mkdir, 'p9', 0o6777)
go(os.mkfifo, 'p10', 0o6777)
print('done')"
        ),
    )
    .unwrap();
    let run = home.result(&[], "/usr/bin/python3 t.py");
    assert_eq!(run["stdout"], "done\n", "{run}");
    for entry in fs::read_dir(&base).unwrap().flatten() {
        let mode = entry.metadata().unwrap().mode();
        assert_eq!(mode & 0o6000, 0, "{:?} has {mode:o}", entry.file_name());
    }
    let look = "import os; print([n for n in os.listdir('.') if 'security.capability' in \
                os.listxattr(n, follow_symlinks=False)])";
    let found = Command::new("/usr/bin/python3")
        .args(["-c", look])
        .current_dir(&base)
        .output();
    assert_eq!(found.unwrap().stdout, b"[]\n");
}
