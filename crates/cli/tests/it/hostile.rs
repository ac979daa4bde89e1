//! Hosts on which not everything can be had: what runs there runs behind the
//! walls it is said to run behind, and `doctor` names what is missing.
//!
//! Each is faked for real, by mounts, namespaces, capabilities or a filter of
//! system calls. To be run as root and as an ordinary user.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use serde_json::{Value, json};

use crate::support::{Home, Server, not_as_this_user, skip};

/// A machine that grants less than it could.
#[derive(Default)]
struct Host {
    /// Runs a server there: words before those of the server.
    through: Vec<String>,
    /// How strong walls there are; `None` where there are none at all.
    level: Option<&'static str>,
    /// What is missing: the primitive, the error's number, words of the fix.
    missing: Option<(&'static str, i32, &'static str)>,
    /// Root cannot lend its own directory here, so it is somebody else's.
    nobodys: bool,
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

const PERM: i32 = 1;
const ACCES: i32 = 13;
const INVAL: i32 = 22;
const NODEV: i32 = 19;
const NOSPC: i32 = 28;
const NOSYS: i32 = 38;

/// Every run must have what is said of it, whatever that is.
#[track_caller]
fn check(host: &dyn Fn(&Home) -> Option<Host>) {
    let home = Home::new();
    let Some(host) = host(&home) else {
        return;
    };
    if host.nobodys && is_root() {
        chown(home.base(), Some(65534), Some(65534)).unwrap();
    }
    refused_by_default(&home, &host);
    let Some(level) = host.level else {
        let _server = serve(&home, &host, "landlock");
        refused(&home);
        return doctor(&home, &host);
    };
    let _server = serve(&home, &host, level);
    assert_eq!(home.run(&["-q"], "echo ok").out, "ok\n");
    cannot_get_out(&home);
    layers_are_true(&home, level);
    doctor(&home, &host);
}

fn serve(home: &Home, host: &Host, minimum: &str) -> Server {
    let config = home.config(&format!("[sandbox.default]\nminimum = \"{minimum}\"\n"));
    let through: Vec<&str> = host.through.iter().map(String::as_str).collect();
    home.serve_in(&through, &["--config", &config])
        .unwrap_or_else(|done| panic!("no server: {done:?}"))
}

/// Full walls, or none of it.
fn refused_by_default(home: &Home, host: &Host) {
    let server = serve(home, host, "full");
    if host.level == Some("full") {
        let run = home.result(&[], "true");
        assert_eq!(run["sandbox"]["level"], "full", "{run}");
        return;
    }
    refused(home);
    drop(server);
}

fn refused(home: &Home) {
    let (status, told) = home.ask("touch ran", json!({}));
    assert_eq!(
        (status, &told["code"]),
        (503, &json!("sandbox_unavailable")),
        "{told}"
    );
    let done = home.run(&[], "touch ran");
    assert_eq!(done.code, Some(125), "{done:?}");
    assert!(!home.base().join("ran").exists(), "nothing was run");
}

fn cannot_get_out(home: &Home) {
    let other = home.dir().join("other");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("canary"), "tweet").unwrap();
    let mut open = fs::metadata(&other).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut open, 0o777);
    fs::set_permissions(&other, open).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let other = other.display();
    let shared = format!("/dev/shm/weighlock-{}", home.mark);
    fs::write(&shared, "tweet").unwrap();
    let decoy = Decoy::start(&home.mark);
    for command in [
        format!("touch {other}/new"),
        format!("echo x >> {other}/canary"),
        format!("cat {other}/canary"),
        format!("ls {other}"),
        format!("rm {other}/canary"),
        format!("cd {other} && cat canary"),
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
        "echo x > /etc/weighlock-was-here".into(),
        format!("cat {shared}"),
        // Numbers of the host: inside there are no such processes, or they are
        // none of its business.
        format!("kill -0 {}", decoy.0.id()),
        format!("echo 999 > /proc/{}/oom_score_adj", decoy.0.id()),
        format!("cat /proc/{}/environ", decoy.0.id()),
    ] {
        let run = home.result(&["--shell", "bash"], &command);
        assert_ne!(run["exit_code"], 0, "{command}: {run}");
    }
    fs::remove_file(shared).unwrap();
    let canary = home.dir().join("other/canary");
    assert_eq!(fs::read_to_string(canary).unwrap(), "tweet");
    assert!(!home.dir().join("other/new").exists());
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "somebody came");
}

/// Compares what is said of the walls with what can be seen inside.
fn layers_are_true(home: &Home, level: &str) {
    let decoy = Decoy::start(&home.mark);
    let look = format!(
        "echo pid $(readlink /proc/self/ns/pid)
         echo net $(readlink /proc/self/ns/net)
         echo mount $(readlink /proc/self/ns/mnt)
         echo seen $(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c '{}')
         echo name $(uname -n)
         grep -E '^(Seccomp|NoNewPrivs|CapEff|CapBnd):' /proc/self/status
         echo home $(echo x > $HOME/probe && cat $HOME/probe)
         echo tmp $(f=$(mktemp) && echo x > $f && cat $f)",
        decoy.pattern()
    );
    let run = home.result(&["--shell", "bash"], &look);
    assert_eq!(run["sandbox"]["level"], level, "{run}");
    let said = run["stdout"].as_str().unwrap_or_default();
    let seen = |name: &str| -> &str {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name}: {run}")).trim()
    };
    let layer = |name: &str| -> &str {
        let layers = run["sandbox"]["layers"].as_array().unwrap();
        let layer = layers.iter().find(|layer| layer["name"] == name);
        layer.map_or("none", |layer| layer["holds"].as_str().unwrap())
    };
    let own = |kind: &str| {
        let ours = fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        ours.to_string_lossy() != seen(if kind == "mnt" { "mount" } else { kind })
    };
    let whole = |name: &str| layer(name) == "whole";
    let landlock = level == "landlock";
    // A server that has namespaces of its own differs from us anyway.
    assert!(!whole("processes") || own("pid"), "{run}");
    assert!(!whole("network") || own("net"), "{run}");
    assert!(!whole("files") || own("mnt"), "{run}");
    assert_eq!(whole("processes"), !landlock, "{run}");
    assert_eq!(whole("network"), !landlock, "{run}");
    assert_eq!(whole("files"), !landlock, "{run}");
    assert_eq!(whole("proc"), level == "full", "{run}");
    assert_eq!(seen("seen") == "0", whole("proc"), "{run}");
    assert_eq!(whole("calls"), seen("Seccomp:") == "2", "{run}");
    assert_eq!(seen("NoNewPrivs:"), "1", "{run}");
    assert_eq!(seen("CapEff:").trim_start_matches('0'), "", "{run}");
    assert!(whole("privileges"), "{run}");
    let settled = !landlock || whole("home");
    assert_eq!(seen("home") == "x", settled, "{run}");
    assert_eq!(seen("tmp") == "x", settled, "{run}");
    // Only root's state directory is closed to who commands are.
    assert!(settled || is_root(), "{run}");
    let found = primitives(home);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let name = match !landlock && get(&found, "hostname")["ok"] == true {
        true => "localhost",
        false => host.trim(),
    };
    assert_eq!(seen("name"), name, "{run}");
    for (name, primitive) in [
        ("memory", "cgroup-memory"),
        ("cpu", "cgroup-cpu"),
        ("landlock", "landlock-files"),
    ] {
        assert_eq!(
            whole(name),
            get(&found, primitive)["ok"] == true,
            "{name}: {run}"
        );
    }
}

fn doctor(home: &Home, host: &Host) {
    let found = primitives(home);
    let level = host.level.unwrap_or("none");
    assert_eq!(get(&found, "walls")["found"], level, "{found}");
    let done = home.call(&["doctor", "-v"]);
    let Some((name, errno, fix)) = host.missing else {
        return;
    };
    let one = get(&found, name);
    assert_eq!(
        (&one["ok"], &one["errno"]),
        (&json!(false), &json!(errno)),
        "{one}"
    );
    assert!(
        one["fix"].as_str().is_some_and(|told| told.contains(fix)),
        "{one}"
    );
    assert!(!one["means"].as_str().unwrap().is_empty(), "{one}");
    let line = format!("✗ {name}");
    assert!(
        done.out.contains(&line) && done.out.contains(fix),
        "{done:?}"
    );
    // Not only in the long list.
    let done = home.call(&["doctor"]);
    assert!(
        done.out.contains("fix: ") && done.out.contains(fix),
        "{done:?}"
    );
    if host.level.is_none() {
        assert!(
            done.out.contains("✗ walls") && done.out.contains("✗ run"),
            "{done:?}"
        );
    }
}

fn primitives(home: &Home) -> Value {
    let done = home.call(&["doctor", "--json"]);
    let told: Value = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{done:?}"));
    told["primitives"].clone()
}

fn get<'a>(primitives: &'a Value, name: &str) -> &'a Value {
    let all = primitives.as_array().expect("a list");
    let one = all.iter().find(|one| one["name"] == name);
    one.unwrap_or_else(|| panic!("no {name}: {primitives}"))
}

/// A process of the host with a name that can be looked for.
struct Decoy(Child, String);

impl Decoy {
    fn start(mark: &str) -> Self {
        let name = format!("decoy-{mark}");
        let child = Command::new("sleep").arg0(&name).arg("60").spawn().unwrap();
        Self(child, name)
    }

    /// Matches it, and not whoever looks for it.
    fn pattern(&self) -> String {
        format!("^[d]{}", &self.1[1..])
    }
}

impl Drop for Decoy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// ---- the ways to take something away ----

/// Runs a script in namespaces, and then the server.
fn after(unshare: &[&str], script: &str) -> Vec<String> {
    // Where `chroot` and its like are, which not everybody's PATH has.
    let script = format!("set -e; PATH=$PATH:/usr/sbin:/sbin; {script}");
    let words = [&["unshare"], unshare, &["sh", "-c", &script, "sh"]].concat();
    words.into_iter().map(str::to_owned).collect()
}

/// As an ordinary user in a user namespace that may do nothing to its mounts.
const AS_USER: &str = "exec unshare -U --map-user=65534 --map-group=65534 \"$@\"";

/// System calls by number, as x86-64 has them.
const MOUNTS: &[u32] = &[155, 165, 428, 429, 430, 432, 442];
const LANDLOCK: &[u32] = &[444, 445, 446];
const CLONE: u32 = 56;
const UNSHARE: u32 = 272;
const CLONE3: u32 = 435;
const KEYCTL: u32 = 250;
const PIVOT_ROOT: u32 = 155;
const SET_HOST_NAME: u32 = 170;
const NEW_USER: u32 = 0x1000_0000;
const NEW_ANY: u32 = 0x7E02_0000;

/// One call that is refused: always, or when its first argument has a bit.
type Refusal = (u32, u32, i32);

fn always(calls: &[u32], errno: i32) -> Vec<Refusal> {
    calls.iter().map(|&call| (call, 0, errno)).collect()
}

/// What the usual container runtimes refuse to those without CAP_SYS_ADMIN.
fn like_docker() -> Vec<Refusal> {
    let mut refusals = always(MOUNTS, PERM);
    refusals.extend([(CLONE, NEW_ANY, PERM), (UNSHARE, NEW_ANY, PERM)]);
    refusals.extend([(CLONE3, 0, NOSYS), (KEYCTL, 0, PERM)]);
    refusals
}

/// Installs a seccomp filter and becomes the rest of its words.
const FILTER: &str = r#"
import ctypes, os, struct, sys
LD, JEQ, JSET, RET = 0x20, 0x15, 0x45, 0x06
code = []
for rule in sys.argv[1].split():
    call, bits, errno = map(int, rule.split(","))
    tail = [(RET, 0, 0, 0x00050000 | errno)]
    if bits:
        tail = [(LD, 0, 0, 16), (JSET, 0, 1, bits)] + tail
    code += [(LD, 0, 0, 0), (JEQ, 0, len(tail), call)] + tail
code.append((RET, 0, 0, 0x7FFF0000))
text = b"".join(struct.pack("HBBI", *one) for one in code)
buffer = ctypes.create_string_buffer(text)
program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program) == 0, os.strerror(ctypes.get_errno())
os.execvp(sys.argv[2], sys.argv[2:])
"#;

fn filtered(home: &Home, refusals: &[Refusal]) -> Option<Vec<String>> {
    let python = "/usr/bin/python3";
    if !cfg!(target_arch = "x86_64") || !fs::exists(python).unwrap() {
        skip("the filter wants /usr/bin/python3 on x86-64");
        return None;
    }
    let path = home.dir().join("filter.py");
    let mut file = fs::File::create(&path).unwrap();
    file.write_all(FILTER.as_bytes()).unwrap();
    let rules: Vec<String> = refusals
        .iter()
        .map(|(call, bits, errno)| format!("{call},{bits},{errno}"))
        .collect();
    let path = path.to_str().expect("temporary paths are plain");
    Some(vec![python.into(), path.into(), rules.join(" ")])
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

// ---- the hosts ----

/// As in Docker with `seccomp=unconfined`, say.
#[test]
fn a_masked_proc() {
    check(&|_| {
        let mask = "mount -t tmpfs none /proc/driver";
        Some(if is_root() {
            // The kernel minds only what others mount.
            Host {
                through: after(&["-m"], &format!("{mask}; exec \"$@\"")),
                level: Some("full"),
                ..Host::default()
            }
        } else {
            Host {
                through: after(&["-Urm"], &format!("{mask}; {AS_USER}")),
                level: Some("shared-proc"),
                missing: Some(("fresh-proc", PERM, "systempaths=unconfined")),
                ..Host::default()
            }
        })
    });
}

/// A name of the machine's own is a bonus.
#[test]
fn a_host_name_that_stays() {
    check(&|home| {
        Some(Host {
            through: filtered(home, &always(&[SET_HOST_NAME], PERM))?,
            level: Some("full"),
            missing: Some(("hostname", PERM, "seccomp=unconfined")),
            ..Host::default()
        })
    });
}

/// As in an initramfs: what to do about it has nothing to do with users.
#[test]
fn a_root_that_cannot_be_left() {
    check(&|home| {
        Some(Host {
            through: filtered(home, &always(&[PIVOT_ROOT], INVAL))?,
            level: Some("landlock"),
            missing: Some(("own-mounts", INVAL, "the root directory is no mount")),
            nobodys: true,
        })
    });
}

/// As Ubuntu has it: there are user namespaces, but nothing can be mounted.
#[test]
fn namespaces_without_capabilities() {
    check(&|home| {
        Some(Host {
            through: filtered(home, &always(MOUNTS, PERM))?,
            level: Some("landlock"),
            missing: Some(("own-mounts", PERM, "")),
            nobodys: true,
        })
    });
}

#[test]
fn no_user_namespaces() {
    check(&|home| {
        if is_root() {
            // Root has the other kinds without; only lending needs one.
            let refusals = [
                (CLONE, NEW_USER, NOSPC),
                (UNSHARE, NEW_USER, NOSPC),
                (CLONE3, 0, NOSYS),
            ];
            return Some(Host {
                through: filtered(home, &refusals)?,
                level: Some("full"),
                missing: Some(("idmapped-mounts", NOSPC, "max_user_namespaces")),
                nobodys: true,
            });
        }
        let off = "echo 0 > /proc/sys/user/max_user_namespaces; \
                   exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"";
        Some(Host {
            through: after(&["-Ur"], off),
            level: Some("landlock"),
            missing: Some((
                "user-namespace",
                NOSPC,
                "sysctl -w user.max_user_namespaces=",
            )),
            ..Host::default()
        })
    });
}

/// Where root cannot lend what it owns, nothing runs there.
#[test]
fn roots_own_directory_without_user_namespaces() {
    if !is_root() {
        return not_as_this_user("only root lends");
    }
    let home = Home::new();
    let refusals = [
        (CLONE, NEW_USER, NOSPC),
        (UNSHARE, NEW_USER, NOSPC),
        (CLONE3, 0, NOSYS),
    ];
    let Some(through) = filtered(&home, &refusals) else {
        return;
    };
    let host = Host {
        through,
        ..Host::default()
    };
    let _server = serve(&home, &host, "landlock");
    refused(&home);
    let done = home.call(&["doctor"]);
    assert!(done.out.contains("✗ identity"), "{done:?}");
    assert!(done.out.contains("✗ run"), "{done:?}");
}

#[test]
fn root_without_the_right_to_mount() {
    if !is_root() {
        return not_as_this_user("only root has this right to lose");
    }
    check(&|_| {
        Some(Host {
            through: words(&["setpriv", "--bounding-set=-sys_admin"]),
            level: Some("landlock"),
            missing: Some(("mount-namespace", PERM, "CAP_SYS_ADMIN")),
            nobodys: true,
        })
    });
}

/// What `docker run` gives without options.
#[test]
fn a_container_with_the_usual_filter() {
    check(&|home| {
        let mut through = filtered(home, &like_docker())?;
        if is_root() {
            let usual = "--bounding-set=-all,+chown,+dac_override,+fsetid,+fowner,+mknod,\
                         +net_raw,+setgid,+setuid,+setfcap,+setpcap,+net_bind_service,\
                         +sys_chroot,+kill,+audit_write";
            through.splice(0..0, words(&["setpriv", usual]));
        }
        Some(Host {
            through,
            level: Some("landlock"),
            missing: Some(("pid-namespace", PERM, "")),
            nobodys: true,
        })
    });
}

/// PID 1 of a small tree with namespaces of its own.
#[test]
fn inside_another_container() {
    check(&|home| {
        let flags: &[&str] = if is_root() {
            &["-mpiuCf", "--kill-child"]
        } else {
            &["-UrmpiuCf", "--kill-child"]
        };
        let ours = std::path::Path::new(env!("CARGO_BIN_EXE_weighlock"));
        let program = ours.parent().unwrap().display();
        let tree = home.dir().join("tree");
        fs::create_dir(&tree).unwrap();
        let (dir, tree) = (home.dir(), tree.display());
        let dir = dir.display();
        let script = format!(
            "T={tree}; mount -t tmpfs tree $T
             mkdir -p $T/usr $T/etc $T/proc $T/dev $T/old $T{dir} $T{program}
             for link in bin sbin lib lib64; do
                 if test -L /$link; then cp -P /$link $T/; fi
             done
             mount --rbind /usr $T/usr; mount --rbind /etc $T/etc; mount --rbind /dev $T/dev
             mount --bind {dir} $T{dir}; mount --bind {program} $T{program}
             mount -t proc proc $T/proc
             cd $T; pivot_root . old; umount -l old; cd {dir}/base; exec \"$@\""
        );
        Some(Host {
            through: after(flags, &script),
            level: Some("full"),
            missing: Some(("cgroup-memory", NODEV, "cgroup")),
            ..Host::default()
        })
    });
}

/// In a chroot the kernel gives no user namespaces; root has the others.
#[test]
fn a_chroot() {
    check(&|home| {
        let tree = home.dir().join("tree");
        fs::create_dir(&tree).unwrap();
        let flags = if is_root() { "-m" } else { "-Urm" };
        let script = format!(
            "mount --rbind / {0}; exec chroot {0} sh -c 'cd {1}; exec \"$@\"' sh \"$@\"",
            tree.display(),
            home.base().display()
        );
        Some(Host {
            through: after(&[flags], &script),
            level: Some(if is_root() { "full" } else { "landlock" }),
            missing: Some(("user-namespace", PERM, "chroot")),
            nobodys: true,
        })
    });
}

/// All of it: what the weakest walls need is still there.
#[test]
fn everything_at_once() {
    check(&|home| {
        let filter = filtered(home, &like_docker())?;
        let cover = "mount -t tmpfs none /proc/driver; mount -t tmpfs none /sys/fs/cgroup";
        let flags = if is_root() { "-m" } else { "-Urm" };
        let script = if is_root() {
            format!("{cover}; exec setpriv --bounding-set=-sys_admin \"$@\"")
        } else {
            format!("{cover}; {AS_USER}")
        };
        Some(Host {
            through: [after(&[flags], &script), filter].concat(),
            level: Some("landlock"),
            missing: Some(("cgroup-pids", NODEV, "mount")),
            nobodys: true,
        })
    });
}

#[test]
fn no_landlock() {
    check(&|home| {
        Some(Host {
            through: filtered(home, &always(LANDLOCK, NOSYS))?,
            level: Some("full"),
            missing: Some(("landlock-files", NOSYS, "seccomp=unconfined")),
            ..Host::default()
        })
    });
}

#[test]
fn neither_landlock_nor_namespaces() {
    check(&|home| {
        let refusals = [like_docker(), always(LANDLOCK, NOSYS)].concat();
        Some(Host {
            through: filtered(home, &refusals)?,
            level: None,
            missing: Some(("landlock-files", NOSYS, "seccomp=unconfined")),
            nobodys: true,
        })
    });
}

#[test]
fn no_cgroups() {
    check(&|_| {
        let cover = "mount -t tmpfs none /sys/fs/cgroup";
        let through = if is_root() {
            after(&["-m"], &format!("{cover}; exec \"$@\""))
        } else {
            after(&["-Urm"], &format!("{cover}; {AS_USER}"))
        };
        Some(Host {
            through,
            level: Some("full"),
            missing: Some(("cgroup-memory", NODEV, "mount")),
            ..Host::default()
        })
    });
}

/// As every ordinary user has it who is not in a group of systemd's.
#[test]
fn cgroups_of_somebody_else() {
    if is_root() {
        return not_as_this_user("root may use all");
    }
    check(&|_| {
        Some(Host {
            through: words(&["env"]),
            level: Some("full"),
            missing: Some(("cgroup-memory", ACCES, "weighlock serve")),
            ..Host::default()
        })
    });
}
