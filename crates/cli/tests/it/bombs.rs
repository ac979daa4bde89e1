//! Commands that use more than they may: each ends with its reason, within
//! seconds, and nobody else notices.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Home, Server, all_processes, eventually, have, not_as_this_user, signal};

/// Past this the time limit would end it, and that is not what is tried.
const SOON: Duration = Duration::from_secs(60);

fn serve(home: &Home, limits: &str) -> Server {
    home.serve_with(&format!("[sandbox.default]\n{limits}\n"))
}

/// Sets a bomb off and returns how it ended; meanwhile others go on.
fn explode(home: &Home, bomb: &str) -> Value {
    let began = Instant::now();
    let id = home.start(bomb, json!({ "timeout_ms": 90_000 }));
    loop {
        let asked = Instant::now();
        let (_, run) = home.ask("true", json!({}));
        assert_eq!(run["state"], "succeeded", "{run}");
        assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
        let now = home.get(&id);
        assert!(began.elapsed() < SOON, "{bomb}: {now}");
        if now["open"] == false {
            break;
        }
    }
    let run = home.get(&id);
    assert!(began.elapsed() < SOON, "{run}");
    assert_ne!(run["state"], "timed_out", "{run}");
    home.assert_gone();
    run
}

fn assert_reason(run: &Value, code: &str) {
    assert_eq!(run["reason"]["code"], code, "{run}");
    assert_eq!(run["state"], "killed", "{run}");
}

/// Python, from a file so that nothing has to be quoted.
fn python(home: &Home, text: &str) -> String {
    fs::write(home.base().join("bomb.py"), text).unwrap();
    "/usr/bin/python3 bomb.py".into()
}

#[test]
fn killing_everything_kills_only_itself() {
    let home = Home::new();
    let server = home.serve(&[]);
    let other = home.start("sleep 20; echo survived", json!({}));
    let (_, run) = home.ask("kill -9 -1; echo left", json!({}));
    assert_eq!(run["state"], "succeeded", "{run}");
    assert_eq!(run["stdout"], "left\n", "{run}");
    let (_, run) = home.ask(
        "kill -9 1; kill -9 $PPID; kill -TERM 1; echo left",
        json!({}),
    );
    assert_eq!(run["stdout"], "left\n", "{run}");
    assert_eq!(home.get(&other)["state"], "running");
    assert_eq!(home.server_pid(), server.child.id());
}

#[test]
fn a_fork_bomb_meets_the_process_limit() {
    let home = Home::new();
    let _server = serve(&home, "processes = 400");
    fs::write(
        home.base().join("bomb"),
        "b() { b | b & }; b; wait; sleep 60",
    )
    .unwrap();
    assert_reason(&explode(&home, "bash bomb"), "process_limit");
}

#[test]
fn a_python_fork_bomb_meets_the_process_limit() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    let _server = serve(&home, "processes = 400");
    let bomb = "import os
while True:
    try: os.fork()
    except OSError: pass";
    assert_reason(&explode(&home, &python(&home, bomb)), "process_limit");
}

#[test]
fn threads_count_as_processes() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    let _server = serve(&home, "processes = 400");
    let bomb = "import threading, time
for i in range(1000):
    try: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    except RuntimeError: break
print(threading.active_count(), flush=True)
assert threading.active_count() < 450
time.sleep(5)
raise SystemExit(\"RuntimeError: can't start new thread\")";
    let run = explode(&home, &python(&home, bomb));
    assert!(
        run["reason"]["code"] == "process_limit" || run["denials"][0]["code"] == "processes",
        "{run}"
    );
}

#[test]
fn a_memory_bomb_meets_the_memory_limit() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    let _server = serve(&home, "memory_mib = 128");
    let bomb = "import time
held = []
while True:
    held.append(bytearray(4 << 20)); time.sleep(0.01)";
    let run = explode(&home, &python(&home, bomb));
    // One process alone is refused the memory, and may say so.
    assert!(
        run["reason"]["code"] == "memory_limit" || run["denials"][0]["code"] == "memory",
        "{run}"
    );
}

#[test]
fn many_small_processes_meet_the_memory_limit_together() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    let _server = serve(&home, "memory_mib = 128");
    let bomb = "import os, time
for i in range(40):
    if os.fork() == 0:
        held = bytearray(os.urandom(1 << 20) * 10); time.sleep(60)
    time.sleep(0.02)
time.sleep(60)";
    assert_reason(&explode(&home, &python(&home, bomb)), "memory_limit");
}

#[test]
fn files_in_private_directories_count_as_memory() {
    if !have(&["python3"]) {
        return;
    }
    for dir in ["/tmp", "/dev/shm", "/var/tmp", "/run"] {
        let home = Home::new();
        let _server = serve(&home, "memory_mib = 128");
        let bomb = format!(
            "import time
i = 0
while True:
    open(f'{dir}/{{i}}', 'wb').write(b'x' * (4 << 20)); i += 1; time.sleep(0.005)
    if i > 250: print('a gigabyte'); time.sleep(60)"
        );
        let run = explode(&home, &python(&home, &bomb));
        let denied = run["denials"][0]["code"] == "tmp_full";
        assert!(
            run["reason"]["code"] == "memory_limit" || denied,
            "{dir}: {run}"
        );
        assert_ne!(run["stdout"], "a gigabyte\n", "{dir}: {run}");
    }
}

#[test]
fn files_that_are_only_memory_count_as_memory() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    let _server = serve(&home, "memory_mib = 128");
    let bomb = "import os, time
fd = os.memfd_create('x')
for i in range(250):
    os.write(fd, b'x' * (4 << 20)); time.sleep(0.005)
print('a gigabyte', flush=True); time.sleep(60)";
    assert_reason(&explode(&home, &python(&home, bomb)), "memory_limit");
}

#[test]
fn shared_memory_counts_as_memory() {
    if !have(&["python3"]) {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return not_as_this_user(
            "open: without a cgroup nobody counts System V segments that are not mapped",
        );
    }
    let home = Home::new();
    let _server = serve(&home, "memory_mib = 128");
    let bomb = "import ctypes, time
c = ctypes.CDLL(None); c.shmat.restype = ctypes.c_void_p
for i in range(40):
    id = c.shmget(0, 32 << 20, 0o1600); at = c.shmat(id, None, 0)
    ctypes.memset(at, 1, 32 << 20); c.shmdt(ctypes.c_void_p(at)); time.sleep(0.02)
print('a gigabyte', flush=True); time.sleep(60)";
    assert_reason(&explode(&home, &python(&home, bomb)), "memory_limit");
}

fn written(home: &Home) -> u64 {
    let files = fs::read_dir(home.base()).unwrap().flatten();
    files.map(|file| file.metadata().unwrap().len()).sum()
}

#[test]
fn a_disk_filler_meets_the_disk_limit() {
    let home = Home::new();
    let _server = serve(&home, "disk_mib = 50");
    let script =
        "i=0; while :; do i=$((i+1)); dd if=/dev/zero of=fill$i bs=1M count=10; sleep 0.05; done";
    fs::write(home.base().join("fill.sh"), script).unwrap();
    assert_reason(&explode(&home, "sh fill.sh"), "disk_limit");
    assert!(written(&home) < 1 << 30, "{}", written(&home));
}

#[test]
fn a_disk_filler_of_orphans_meets_the_disk_limit() {
    let home = Home::new();
    let _server = serve(&home, "disk_mib = 50");
    let script = "i=0; while [ $i -lt 150 ]; do i=$((i+1)); \
                  ( dd if=/dev/zero of=fill$i bs=1M count=2 & ) 2>/dev/null; sleep 0.03; done; sleep 60";
    fs::write(home.base().join("fill.sh"), script).unwrap();
    assert_reason(&explode(&home, "sh fill.sh"), "disk_limit");
}

/// Long enough that nobody looks at it any more.
const SLEEP: u64 = 3;

#[test]
fn a_sleeper_that_wakes_up_and_fills_the_disk_is_noticed() {
    let home = Home::new();
    let _server = serve(&home, "disk_mib = 50");
    let script = format!(
        "sleep {SLEEP}; for i in 1 2 3 4; do dd if=/dev/zero of=fill$i bs=1M count=40; done; sleep 60"
    );
    fs::write(home.base().join("fill.sh"), script).unwrap();
    let (_, run) = home.ask("sh fill.sh", json!({ "timeout_ms": 30_000 }));
    assert_reason(&run, "disk_limit");
}

#[test]
fn a_sleeper_that_wakes_up_and_takes_memory_is_noticed() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    let _server = serve(&home, "memory_mib = 128");
    let bomb = format!(
        "import os, time
time.sleep({SLEEP})
for i in range(20):
    if os.fork() == 0:
        held = bytearray(os.urandom(1 << 20) * 10); time.sleep(60)
time.sleep(60)"
    );
    let (_, run) = home.ask(&python(&home, &bomb), json!({ "timeout_ms": 30_000 }));
    assert_reason(&run, "memory_limit");
}

#[test]
fn what_is_written_counts_once() {
    let home = Home::new();
    let _server = serve(&home, "disk_mib = 50");
    // Seen while it lives, and again in each that waited for it.
    let script = "dd if=/dev/zero of=fill bs=1M count=25; sleep 0.5";
    fs::write(home.base().join("fill.sh"), script).unwrap();
    let nested = "sh -c 'sh -c \"sh fill.sh; sleep 0.5\"; sleep 0.5'; sleep 0.5; sleep 2";
    let (_, run) = home.ask(nested, json!({}));
    assert_eq!(run["state"], "succeeded", "{run}");
}

#[test]
fn a_file_that_is_too_large_is_refused_and_said() {
    let home = Home::new();
    let _server = serve(&home, "file_mib = 20\ndisk_mib = 1000");
    fs::write(
        home.base().join("big.sh"),
        "dd if=/dev/zero of=big bs=1M count=100; sleep 0.5; exit 1",
    )
    .unwrap();
    let run = explode(&home, "sh big.sh");
    assert_eq!(run["denials"][0]["code"], "file_size", "{run}");
    assert!(written(&home) < 21 << 20, "{}", written(&home));
}

#[test]
fn too_many_open_files_are_refused_and_said() {
    if !have(&["python3"]) {
        return;
    }
    let home = Home::new();
    let _server = serve(&home, "open_files = 256");
    let bomb = "import time; time.sleep(0.3)
held = [open('/dev/null') for i in range(100000)]";
    let run = explode(&home, &python(&home, bomb));
    assert_eq!(run["denials"][0]["code"], "open_files", "{run}");
}

#[test]
fn busy_loops_leave_others_their_turn() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let bomb = "for i in $(seq 64); do (while :; do :; done) & done; wait";
    let id = home.start(bomb, json!({ "timeout_ms": 60_000 }));
    eventually("they are busy", || home.processes().len() > 60);
    for _ in 0..3 {
        let asked = Instant::now();
        let (_, run) = home.ask("true", json!({}));
        assert_eq!(run["state"], "succeeded", "{run}");
        assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    }
    home.api(
        "POST",
        &format!("/commands/{id}/stop"),
        &json!({ "grace_ms": 0 }),
    );
    home.closed(&id);
    home.assert_gone();
}

/// Control groups of keepers that are no more. Of other PID namespaces nobody
/// here can tell whether a keeper lives.
fn orphaned_groups() -> BTreeSet<PathBuf> {
    let namespace = fs::metadata("/proc/self/ns/pid").unwrap().ino().to_string();
    let mut found = BTreeSet::new();
    let mut todo = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name().into_string().unwrap_or_default();
            let Some(rest) = name.strip_prefix("weighlock-") else {
                todo.push(path);
                continue;
            };
            let parts: Vec<&str> = rest.split('-').collect();
            if let [keeper, _, within, ..] = parts[..]
                && within == namespace
                && !Path::new("/proc").join(keeper).exists()
            {
                found.insert(path);
            }
        }
    }
    found
}

#[test]
fn whatever_is_killed_nothing_of_ours_stays_on_the_machine() {
    let home = Home::new();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut server = home.serve(&[]);
    let mut seed = u64::from(std::process::id());
    for round in 0..6 {
        let ids: Vec<String> = (0..4)
            .map(|i| home.start(&format!("sleep 0.{i}; sleep 60 & sleep 60"), json!({})))
            .collect();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_millis(seed >> 58));
        let spare: Vec<u32> = ours(server.child.id());
        if round % 2 == 0 {
            server.kill();
            for pid in spare.iter().skip((seed >> 33) as usize % 3).step_by(2) {
                signal(*pid, "KILL");
            }
        } else {
            for pid in &spare {
                signal(*pid, "KILL");
            }
            server.kill();
        }
        server = home.serve(&[]);
        home.api("POST", "/commands/stop", &json!({ "grace_ms": 0 }));
        home.call(&["stop", "--all", "--force"]);
        for id in ids {
            eventually("it is settled", || home.get(&id)["open"] == false);
        }
        home.assert_gone();
    }
    assert_eq!(fs::read_to_string("/proc/self/mountinfo").unwrap(), mounts);
    home.assert_audit_verifies();
    let (_, all) = home.api("GET", "/commands?limit=100", &Value::Null);
    let recorded = all.to_string().matches("\"command_id\"").count();
    assert!(
        home.run_dirs() <= recorded,
        "{} of {recorded}",
        home.run_dirs()
    );
    if !rustix::process::geteuid().is_root() {
        return not_as_this_user("runs of ordinary users have no control groups to leave behind");
    }
    // Others' tests kill keepers as well; those of ours are swept at a start.
    let left = orphaned_groups();
    server.kill();
    let _server = home.serve(&[]);
    let still: Vec<_> = left.iter().filter(|group| group.exists()).collect();
    assert!(still.is_empty(), "{still:?}");
}

/// What a server has started, and what that has started.
fn ours(server: u32) -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    all_processes()
        .filter(|&pid| {
            let mut above = parent(pid);
            while let Some(next) = above {
                if next == server {
                    return true;
                }
                above = parent(next).filter(|&next| next > 1);
            }
            false
        })
        .collect()
}

#[test]
fn room_on_the_disk_cannot_be_taken_uncounted() {
    let home = Home::new();
    let _server = home.serve_with("[sandbox.default]\ndisk_mib = 16\nfile_mib = 16\n");
    let (_, run) = home.ask("fallocate -l 15M taken", json!({}));
    assert_eq!(run["exit_code"], 1, "{run}");
    let said = run["stderr"].as_str().unwrap();
    assert!(said.contains("Operation not supported"), "{run}");
    let taken = fs::metadata(home.base().join("taken")).unwrap();
    assert_eq!(taken.blocks(), 0, "{run}");
    // What the C library does instead is to write, and that is counted.
    let fill = "for i in 1 2 3 4 5 6 7 8; do fallocate --posix -l 15M f$i; done; sleep 90";
    assert_reason(&explode(&home, fill), "disk_limit");
}
