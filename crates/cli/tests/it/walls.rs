//! Tries to get out of the walls, in every way that has worked elsewhere.
//!
//! Each attempt says `OPEN` when it succeeds, and each test first shows from
//! outside that there is something to be had.

mod kernel;

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Home, have, not_as_this_user};

/// What must not be seen.
const CANARY: &str = "canary-8e1d";

/// A shell function that tells whether a command succeeds.
const TRY: &str = r#"try() { name=$1; shift
if ( eval "$*" ) >/dev/null 2>&1 </dev/null; then echo "OPEN $name"; else echo "shut $name"; fi; }
"#;

/// System calls by number, for Python.
const CALLS: &str = r#"
import ctypes, os, sys, socket, struct, errno
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *args):
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    ctypes.set_errno(0)
    return libc.syscall(ctypes.c_long(number), *words)
def attempt(name, deed):
    try: worked = deed()
    except (OSError, ValueError): worked = False
    print("OPEN" if worked else "shut", name, flush=True)
def gives(number, *args):
    return lambda: call(number, *args) >= 0
"#;

/// Runs attempts inside and panics with those that succeeded.
fn attack(home: &Home, program: &str, text: &str) -> String {
    let (file, before, end) = match program {
        "python3" => ("attack.py", CALLS, "print('done')"),
        _ => ("attack.sh", TRY, "echo done"),
    };
    let path = home.base().join(file);
    fs::write(&path, format!("{before}\n{text}\n{end}\n")).unwrap();
    let run = home.result(
        &["--timeout", "60s"],
        &format!("/usr/bin/{program} ./{file}"),
    );
    fs::remove_file(path).unwrap();
    let said = run["stdout"].as_str().unwrap_or_default().to_owned();
    assert!(said.ends_with("done\n"), "it did not get to its end: {run}");
    let open: Vec<&str> = said.lines().filter(|l| l.starts_with("OPEN")).collect();
    assert!(open.is_empty(), "{open:?}: {run}");
    assert!(!said.contains(CANARY), "{run}");
    said
}

/// A directory that anybody may look into, with something secret in it.
fn elsewhere() -> TempDir {
    let dir = tempfile::Builder::new().prefix("other").tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let secret = dir.path().join("secret");
    fs::write(&secret, CANARY).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(fs::read_to_string(secret).unwrap(), CANARY);
    dir
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A program outside, run by whoever runs commands inside.
fn beside(program: &str, args: &[&str]) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]);
        command
    } else {
        Command::new(program)
    };
    command.args(args);
    command
}

/// A process outside that ends with the test.
struct Bystander(Child);

impl Bystander {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn files_outside_cannot_be_read() {
    let other = elsewhere();
    let secret = other.path().join("secret");
    let home = Home::new();
    let server = home.serve(&[]);
    let own = home.base().parent().unwrap().join("own");
    fs::write(&own, CANARY).unwrap();
    symlink(&secret, home.base().join("link")).unwrap();
    symlink(other.path(), home.base().join("dir")).unwrap();
    let state = home.state();
    fs::write(state.join("canary"), CANARY).unwrap();
    let at_home = Path::new("/root").join(format!("wl-{}", home.mark));
    if is_root() {
        fs::write(&at_home, CANARY).unwrap();
    }
    let shown = at_home.display();
    let (secret, own) = (secret.display(), own.display());
    let (state, server) = (state.display(), server.child.id());
    let test = std::process::id();
    attack(
        &home,
        "sh",
        &format!(
            "try absolute cat {secret}
             try parent cat ../own
             try own cat {own}
             try link cat link
             try dir cat dir/secret
             try state cat {state}/canary
             try state-db cat {state}/*.db
             try state-list ls {state}
             try lock cat {state}/lock
             try root cat {shown}
             try proc cat /proc/*/root{secret}
             try one cat /proc/1/root{secret}
             try server cat /proc/{server}/root{secret}
             try test cat /proc/{test}/cwd/Cargo.toml
             try cwd cat /proc/*/cwd/../own
             try fd cat /proc/*/fd/*/../own
             try fds cat /proc/*/fd/*/../../own
             try dots cat /proc/self/cwd/../own
             try tasks cat /proc/*/task/*/root{own}
             try maps ls /proc/*/map_files/../../../..{own}
             try environ 'cat /proc/*/environ | grep -a WEIGHLOCK_STATE_DIR'
             try pids 'test -e /proc/{server} -a -e /proc/{test}'
             try hardlink ln {secret} hard
             try bind ln -f link hard -L
             try shadow cat /etc/shadow
             try gshadow cat /etc/gshadow"
        ),
    );
    let _ = fs::remove_file(at_home);
}

#[test]
fn a_secret_of_the_server_is_not_seen() {
    let home = Home::new();
    let variable = format!("WL_TOKEN={CANARY}");
    let server = home.serve_in(&["env", &variable], &[]).unwrap();
    let outside = fs::read(format!("/proc/{}/environ", server.child.id())).unwrap();
    assert!(String::from_utf8_lossy(&outside).contains(CANARY));
    let said = attack(
        &home,
        "sh",
        "env; set; cat /proc/*/environ /proc/*/task/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'",
    );
    assert!(!said.contains("WL_TOKEN"), "{said}");
    assert!(said.contains("WL_MARK"), "it saw its own: {said}");
}

#[test]
fn nothing_outside_is_changed() {
    let other = elsewhere();
    let home = Home::new();
    let _server = home.serve(&[]);
    let mut script = String::new();
    let top = home.base().parent().unwrap().to_owned();
    fs::set_permissions(&top, fs::Permissions::from_mode(0o777)).unwrap();
    let state = home.state();
    let outside = [other.path(), &top, &state];
    let system = [
        "/",
        "/etc",
        "/usr",
        "/usr/bin",
        "/usr/local",
        "/usr/local/bin",
        "/var",
        "/var/lib",
        "/home",
        "/opt",
        "/bin",
        "/lib",
        "/srv",
        "/root",
        "/sys",
        "/sys/fs/cgroup",
        "/proc",
        "/dev",
        "/mnt",
        "/media",
        "/boot",
        "/sys/devices/system/cpu",
        "/var/log",
        "/var/spool",
        "/dev/pts",
    ];
    // What is outside in /tmp may be made inside, where that is private: what
    // counts is that nothing of it is here.
    for dir in &outside {
        let dir = dir.display();
        script += &format!(
            "for i in wl-canary wl-canary-dir/x; do mkdir -p {dir}/wl-canary-dir; echo x > {dir}/$i; done
             ln -s x {dir}/wl-canary-link; chmod 700 {dir}; touch -d 2001-01-01 {dir}\n"
        );
    }
    for dir in system {
        script += &format!(
            "try write:{dir} 'echo x > {dir}/wl-canary'
             try mkdir:{dir} mkdir {dir}/wl-canary-dir
             try link:{dir} ln -s x {dir}/wl-canary-link
             try chmod:{dir} chmod 777 {dir}
             try touch:{dir} touch {dir}\n"
        );
    }
    let secret = other.path().join("secret");
    let secret = secret.display();
    script += &format!(
        "try move mv {secret} .
         ( echo x >> {secret}; rm {secret} ) 2>/dev/null
         try passwd 'echo x >> /etc/passwd'
         try chmod chmod 4777 /usr/bin/env
         try touch touch /etc/hostname\n"
    );
    attack(&home, "sh", &script);
    for dir in outside.into_iter().chain(system.iter().map(Path::new)) {
        for name in ["wl-canary", "wl-canary-dir", "wl-canary-link"] {
            assert!(
                fs::symlink_metadata(dir.join(name)).is_err(),
                "{dir:?}/{name}"
            );
        }
    }
    for dir in [other.path(), &top] {
        let meta = fs::metadata(dir).unwrap();
        assert_eq!(meta.mode() & 0o777, 0o777, "{dir:?}");
        assert!(meta.mtime() > 1_000_000_000, "{dir:?}");
    }
    assert_eq!(
        fs::read_to_string(other.path().join("secret")).unwrap(),
        CANARY
    );
}

#[test]
fn private_directories_are_private_and_gone_with_the_run() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let name = format!("wl-private-{}", home.mark);
    for dir in ["/tmp", "/var/tmp", "/dev/shm"] {
        let seen = Path::new(dir).join(&name);
        fs::write(&seen, CANARY).unwrap();
        let made = Path::new(dir).join(format!("{name}-inside"));
        attack(
            &home,
            "sh",
            &format!(
                "try {dir} cat {}; echo x > {} || echo OPEN unusable",
                seen.display(),
                made.display()
            ),
        );
        fs::remove_file(seen).unwrap();
        assert!(!made.exists(), "{made:?}");
        attack(&home, "sh", &format!("try {dir} cat {}", made.display()));
    }
    let said = attack(
        &home,
        "sh",
        "ls -A /tmp /var/tmp /dev/shm | grep -v weighlock",
    );
    assert!(!said.contains("wl-"), "{said}");
}

#[test]
fn processes_outside_cannot_be_touched() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    let server = home.serve(&[]);
    let mut victim = Bystander::start(beside("sleep", &["300"]));
    let (pid, server) = (victim.0.id(), server.child.id());
    attack(
        &home,
        "python3",
        &format!(
            "for pid in ({pid}, {server}, os.getppid() if os.getppid() == 0 else {server}):
    attempt(f'signal {{pid}}', lambda: os.kill(pid, 0) is None)
    attempt(f'kill {{pid}}', lambda: os.kill(pid, 9) is None)
    attempt(f'group {{pid}}', lambda: os.killpg(pid, 9) is None)
    attempt(f'pidfd {{pid}}', lambda: os.pidfd_open(pid) >= 0)
    attempt(f'ptrace {{pid}}', gives(101, 16, pid, 0, 0))
    attempt(f'seize {{pid}}', gives(101, 0x4206, pid, 0, 0))
    attempt(f'memory {{pid}}', lambda: open(f'/proc/{{pid}}/mem', 'rb') is not None)
    attempt(f'nice {{pid}}', lambda: os.setpriority(os.PRIO_PROCESS, pid, 19) is None)
    attempt(f'limits {{pid}}', gives(302, pid, 7, 0, 0))
attempt('parent', lambda: os.kill(os.getppid(), 0) is None and os.getppid() > 1000)
attempt('trace init', gives(101, 16, 1, 0, 0))
attempt('init memory', lambda: open('/proc/1/mem', 'rb') is not None)
attempt('init fds', lambda: os.listdir('/proc/1/fd') is not None)
attempt('init root', lambda: os.listdir('/proc/1/root/') is not None)"
        ),
    );
    assert!(victim.0.try_wait().unwrap().is_none(), "it lives");
}

#[test]
fn sockets_outside_cannot_be_reached() {
    if !have(&["python3"]) {
        return;
    }
    let other = elsewhere();
    let home = Home::new();
    let _server = home.serve(&[]);
    let path = other.path().join("door");
    let _unix = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    let abstract_name = format!("wl-abstract-{}", home.mark);
    let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    // One in the sandbox's own directory, made by somebody outside.
    let _inside = UnixListener::bind(home.base().join("inside")).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    attack(
        &home,
        "python3",
        &format!(
            "def unix(name):
    def connect():
        s = socket.socket(socket.AF_UNIX); s.connect(name); return True
    return connect
def tcp(family, host, port):
    def connect():
        s = socket.socket(family); s.settimeout(2); s.connect((host, port)); return True
    return connect
def udp(host):
    def send():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', (host, 53)); return True
    return send
attempt('by path', unix({path:?}))
attempt('state', unix({state:?}))
attempt('abstract', unix('\\0{abstract_name}'))
attempt('tcp', tcp(socket.AF_INET, '127.0.0.1', {port}))
attempt('tcp any', tcp(socket.AF_INET, '0.0.0.0', {port}))
attempt('tcp 6', tcp(socket.AF_INET6, '::1', {port}))
attempt('tcp mapped', tcp(socket.AF_INET6, '::ffff:127.0.0.1', {port}))
attempt('elsewhere', tcp(socket.AF_INET, '1.1.1.1', 53))
attempt('link local', tcp(socket.AF_INET, '169.254.169.254', 80))
attempt('udp', udp('1.1.1.1'))
attempt('dns', lambda: socket.getaddrinfo('example.com', 80))
attempt('other interfaces', lambda: [n for _, n in socket.if_nameindex() if n != 'lo'])
# What must work inside.
for make, name in ((socket.AF_INET, ('127.0.0.1', 0)), (socket.AF_UNIX, 'own'), (socket.AF_UNIX, '\\0own')):
    a = socket.socket(make); a.bind(name); a.listen(); b = socket.socket(make); b.connect(a.getsockname())
os.unlink('own')",
            path = path.to_str().unwrap(),
            state = home.state().join("weighlock.sock").to_str().unwrap(),
        ),
    );
}

#[test]
fn shared_memory_and_queues_of_the_host_are_not_seen() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    let _server = home.serve(&[]);
    let key = 0x5100_0000 + std::process::id() as i32;
    let make = format!(
        "import ctypes, sys; c = ctypes.CDLL(None)
a, b, d = c.shmget({key}, 4096, 0o1666), c.msgget({key}, 0o1666), c.semget({key}, 1, 0o1666)
q = c.mq_open(b'/wl{key}', 0o102, 0o666, 0)
assert min(a, b, d, q) >= 0, (a, b, d, q); c.chmod(b'/dev/mqueue/wl{key}', 0o666)
print('made', flush=True); sys.stdin.read()
c.shmctl(a, 0, 0); c.msgctl(b, 0, 0); c.semctl(d, 0, 0); c.mq_unlink(b'/wl{key}')"
    );
    let mut outside = beside("/usr/bin/python3", &["-c", &make])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = [0; 5];
    std::io::Read::read_exact(outside.stdout.as_mut().unwrap(), &mut said).unwrap();
    attack(
        &home,
        "python3",
        &format!(
            "attempt('shm', lambda: libc.shmget({key}, 0, 0) >= 0)
attempt('msg', lambda: libc.msgget({key}, 0) >= 0)
attempt('sem', lambda: libc.semget({key}, 0, 0) >= 0)
attempt('mq', lambda: libc.mq_open(b'/wl{key}', 0) >= 0)
attempt('list', lambda: len(open('/proc/sysvipc/shm').readlines()) > 1)
assert libc.shmget({key}, 4096, 0o1600) >= 0, 'shared memory works inside'"
        ),
    );
    drop(outside.stdin.take());
    assert!(outside.wait().unwrap().success());
}

#[test]
fn a_command_has_three_descriptors_and_cannot_walk_out_of_its_directory() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    let other = elsewhere();
    let own = home.base().parent().unwrap().join("own");
    fs::write(own, CANARY).unwrap();
    let open = format!(
        "exec 7<{secret} 8<{dir} 9<&8; exec \"$@\"",
        secret = other.path().join("secret").display(),
        dir = other.path().display()
    );
    let _server = home.serve_in(&["bash", "-c", &open, "bash"], &[]).unwrap();
    for _ in 0..3 {
        let said = attack(
            &home,
            "python3",
            "listed = os.listdir('/proc/self/fd')
held = [fd for fd in listed if os.path.exists(f'/proc/self/fd/{fd}')]
print('held', sorted(int(fd) for fd in held))
for fd in held:
    print(fd, os.readlink(f'/proc/self/fd/{fd}'))
    for up in ('..', '../..', '../../..'):
        attempt(f'{fd} {up}', lambda: open(f'/proc/self/fd/{fd}/{up}/own').read())
        attempt(f'{fd} {up} list', lambda: 'own' in os.listdir(f'/proc/self/fd/{fd}/{up}'))
here = os.open('.', os.O_RDONLY)
for dir in (here, os.open('/', os.O_RDONLY), os.open('/proc/self/cwd/.', os.O_RDONLY)):
    attempt(f'openat {dir}', lambda: os.open('../own', os.O_RDONLY, dir_fd=dir) >= 0)
    attempt(f'fchdir {dir}', lambda: (os.fchdir(dir), os.chdir('..'), open('own'))[2])
    os.fchdir(here)
attempt('up', lambda: 'own' in os.listdir('/proc/self/cwd/..'))
attempt('far', lambda: open('../' * 40 + 'root/own'))",
        );
        // The script itself is the fourth.
        assert!(
            said.contains("held [0, 1, 2, 3]\n") || said.contains("held [0, 1, 2]\n"),
            "{said}"
        );
        let line = said.lines().find(|line| line.starts_with("3 "));
        assert!(
            line.is_none_or(|line| line.ends_with("attack.py")),
            "{said}"
        );
    }
}

#[test]
fn a_directory_that_is_swapped_is_never_mistaken() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let other = elsewhere();
    let sub = home.base().join("sub");
    let away = home.base().join("away");
    fs::create_dir(&sub).unwrap();
    fs::write(sub.join("right"), "").unwrap();
    let over = AtomicBool::new(false);
    let (mut ran, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = fs::rename(&sub, &away);
                let _ = symlink(other.path(), &sub);
                let _ = fs::remove_file(&sub);
                let _ = fs::rename(&away, &sub);
                std::thread::sleep(Duration::from_millis(4));
            }
        });
        for turn in 0..400 {
            if ran > 20 && refused > 5 {
                break;
            }
            let wish = json!({ "cwd": sub });
            let (status, run) = home.ask("ls; echo made > made; cat secret", wish);
            let said = run["stdout"].as_str().unwrap_or_default();
            assert!(!said.contains(CANARY), "{run}");
            if said.contains("right") {
                ran += 1;
            } else {
                assert!(status >= 400, "{turn}: {status} {run}");
                refused += 1;
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(!other.path().join("made").exists());
    assert!(!home.base().join("made").exists());
    assert!(ran > 0 && refused > 0, "{ran} ran, {refused} were refused");
}

#[test]
fn a_base_that_is_swapped_is_never_mistaken() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let other = elsewhere();
    let base = home.base();
    let away = base.with_file_name("away");
    fs::write(base.join("right"), "").unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = fs::rename(&base, &away);
                let _ = symlink(other.path(), &base);
                let _ = fs::remove_file(&base);
                let _ = fs::rename(&away, &base);
                std::thread::sleep(Duration::from_millis(4));
            }
        });
        for turn in 0..60 {
            let body = json!({ "command": "ls; echo made > made; cat secret" });
            let (status, run) = home.api("POST", "/commands", &body);
            let said = run["stdout"].as_str().unwrap_or_default();
            assert!(!said.contains(CANARY), "{run}");
            assert!(
                said.contains("right") || status >= 400,
                "{turn}: {status} {run}"
            );
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(!other.path().join("made").exists());
}

#[test]
fn root_is_never_root_inside() {
    if !is_root() {
        return not_as_this_user("only root has this to fear");
    }
    let home = Home::new();
    let _server = home.serve(&[]);
    let base = home.base();
    let run = home.result(
        &[],
        "id -u; id -g; id -G; grep -E '^(Uid|Gid|Groups)' /proc/self/status; echo x > file; mkdir dir; \
         ln -s x link; mkfifo pipe; touch -d 2001-01-01 dir/old; chmod 600 file; echo more >> theirs",
    );
    let said = run["stdout"].as_str().unwrap();
    assert!(said.starts_with("65534\n65534\n65534\n"), "{run}");
    for name in ["file", "dir", "link", "pipe", "dir/old"] {
        let meta = fs::symlink_metadata(base.join(name)).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (0, 0), "{name}");
        assert_eq!(meta.mode() & 0o7000, 0, "{name}: {:o}", meta.mode());
    }
    assert_eq!(
        fs::metadata(base.join("dir")).unwrap().mode() & 0o777,
        0o755
    );
    // Who else's files are there stays so.
    for (name, owner) in [("nobodys", 65534), ("bins", 2)] {
        fs::write(base.join(name), "x").unwrap();
        std::os::unix::fs::chown(base.join(name), Some(owner), Some(owner)).unwrap();
        fs::set_permissions(base.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let run = home.result(
        &[],
        "cat nobodys bins; chmod 777 bins; chown 0 bins file; true",
    );
    assert_eq!(run["stdout"], "", "{run}");
    assert_eq!(
        fs::metadata(base.join("bins")).unwrap().mode() & 0o777,
        0o600
    );
}

#[test]
fn files_in_somebodys_directory_are_that_ones() {
    if !is_root() {
        return not_as_this_user("only root becomes somebody else");
    }
    let home = Home::new();
    let base = home.base();
    std::os::unix::fs::chown(&base, Some(12345), Some(12346)).unwrap();
    let _server = home.serve(&[]);
    let run = home.result(
        &[],
        "id -u; id -g; id -G; echo x > file; mkdir dir; echo y > \"$HOME/z\"",
    );
    assert_eq!(run["stdout"], "12345\n12346\n12346\n", "{run}");
    for name in ["file", "dir"] {
        let meta = fs::metadata(base.join(name)).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (12345, 12346), "{name}");
    }
    // Of two such people neither sees the other's home directory.
    let layers = home.state().join("homes/default");
    let modes = fs::read_dir(layers).unwrap().flatten();
    for layer in modes {
        let meta = layer.metadata().unwrap();
        assert_eq!((meta.uid(), meta.mode() & 0o777), (12345, 0o700));
    }
}

#[test]
fn weaker_walls_than_wanted_mean_that_nothing_runs() {
    for minimum in ["full", "shared-proc"] {
        let home = Home::new();
        let _server = home.serve_without_namespaces_with(&format!(
            "[sandbox.default]\nminimum = \"{minimum}\"\n"
        ));
        let (status, answer) = home.ask("touch ran", json!({}));
        assert_eq!(status, 503, "{answer}");
        assert_eq!(answer["code"], "sandbox_unavailable", "{answer}");
        assert!(!home.base().join("ran").exists());
        let (_, runs) = home.api("GET", "/commands?limit=1", &Value::Null);
        assert!(runs.to_string().contains("sandbox_unavailable"), "{runs}");
        home.assert_audit_verifies();
    }
}

#[test]
fn landlock_alone_still_hides_and_holds() {
    let other = elsewhere();
    let home = Home::new();
    let _server = home.serve_without_namespaces();
    let secret = other.path().join("secret");
    let run = home.result(
        &[],
        &format!(
            "cat {0}; echo x > {0}; echo x > {1}/new; cat {2}/lock; echo fine > fine; cat fine",
            secret.display(),
            other.path().display(),
            home.state().display()
        ),
    );
    assert_eq!(run["stdout"], "fine\n", "{run}");
    assert_eq!(run["sandbox"]["level"], "landlock", "{run}");
    assert_eq!(fs::read_to_string(secret).unwrap(), CANARY);
}

#[test]
fn the_machine_has_another_name_inside_and_no_id() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let run = home.result(
        &[],
        "uname -n; cat /proc/sys/kernel/hostname /proc/sys/kernel/domainname /etc/hostname; \
         cat /etc/machine-id; getent hosts $(uname -n) >/dev/null && echo resolves",
    );
    let in_file = match fs::symlink_metadata("/etc/hostname") {
        Ok(file) if file.is_file() => "localhost\n",
        _ => "",
    };
    let want = format!("localhost\nlocalhost\n(none)\n{in_file}resolves\n");
    assert_eq!(run["stdout"], want, "{run}");
}
