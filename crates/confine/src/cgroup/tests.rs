//! On the real kernel. As an ordinary user there is usually nothing to try.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};
use rustix::process::{WaitOptions, geteuid, waitpid};
use weighlock_testing::{not_as_this_user, skip};

use super::*;
use crate::fork::{Fork, exit, fork};

const BOUNDS: Bounds = Bounds {
    memory_bytes: 64 << 20,
    processes: 20,
    cpu_weight: 50,
};

/// Makes a group with all bounds, or says why that cannot be tried here.
fn bounded() -> Option<Cgroup> {
    let mut cgroup = Cgroup::prepare();
    let held = cgroup.bound(&BOUNDS);
    let missing = [held.memory, held.processes, held.cpu]
        .iter()
        .any(Result::is_err);
    if missing {
        say_why_none_is_bounded(&held);
        cgroup.remove();
        return None;
    }
    Some(cgroup)
}

/// Says that control groups are missing: on most machines, ordinary users have
/// none.
fn say_why_none_is_bounded(held: &Held) {
    let why = format!("no control groups: {held:?}");
    match geteuid().is_root() {
        true => skip(&why),
        false => not_as_this_user(&why),
    }
}

/// Starts a script inside. It goes on when it is told to.
fn start(cgroup: &mut Cgroup, script: &str) -> Child {
    let mut child = Command::new("sh")
        .args(["-c", &format!("read go; {script}")])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let held = cgroup.enter(child.id());
    assert!(held.memory.is_ok() && held.processes.is_ok() && held.cpu.is_ok());
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    child
}

/// Waits until something watched becomes ready.
fn rings(cgroup: &Cgroup, within: Duration) -> bool {
    let mut fds: Vec<_> = cgroup.watched().collect();
    poll(&mut fds, Some(&Timespec::try_from(within).unwrap())).unwrap() > 0
}

#[test]
fn what_takes_too_much_memory_is_killed_and_we_hear_of_it() {
    let Some(mut cgroup) = bounded() else { return };
    assert!(!rings(&cgroup, Duration::ZERO));
    assert_eq!(cgroup.exceeded(), ExceededBounds::default());
    let much = "head -c 300000000 /dev/zero | tail -c 300000000 > /dev/null";
    let mut child = start(&mut cgroup, much);
    assert!(rings(&cgroup, Duration::from_secs(20)));
    child.wait().unwrap();
    let exceeded = ExceededBounds {
        memory: true,
        processes: false,
    };
    assert_eq!(cgroup.exceeded(), exceeded);
    assert!(
        !rings(&cgroup, Duration::ZERO),
        "quiet until it happens again"
    );
    cgroup.remove();
}

#[test]
fn a_loop_of_forks_meets_its_bound_and_is_found_out() {
    let Some(mut cgroup) = bounded() else { return };
    let many = "for i in 1 2 3 4 5 6; do for j in 1 2 3 4 5 6; do sleep 60 & done; done";
    let mut child = start(&mut cgroup, many);
    let exceeded = ExceededBounds {
        memory: false,
        processes: true,
    };
    if cgroup.held().processes == Ok(Version::V2) {
        assert!(rings(&cgroup, Duration::from_secs(20)));
    } else {
        // Nothing rings here in v1, so we ask.
        let deadline = Instant::now() + Duration::from_secs(20);
        while cgroup.exceeded() != exceeded && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    assert_eq!(cgroup.exceeded(), exceeded);
    // As a sweep would do it; nobody else ends these.
    cgroup
        .dirs
        .sort_by_key(|dir| !dir.join("pids.max").exists());
    cgroup.dirs.iter().for_each(|dir| sweep::clear(dir));
    child.wait().unwrap();
    assert!(cgroup.dirs.iter().all(|dir| !dir.exists()));
}

#[test]
fn bounds_are_what_was_asked_for() {
    let Some(cgroup) = bounded() else { return };
    let value = |group: &Result<ControlGroup, Errno>, v1: &str, v2: &str| {
        let group = group.as_ref().unwrap();
        let file = if group.version == Version::V1 { v1 } else { v2 };
        number(&group.dir.join(file))
    };
    let PerController {
        memory,
        processes,
        cpu,
    } = &cgroup.groups;
    assert_eq!(
        value(memory, "memory.limit_in_bytes", "memory.max"),
        Some(64 << 20)
    );
    assert_eq!(value(processes, "pids.max", "pids.max"), Some(20));
    let shares = if cpu.as_ref().unwrap().version == Version::V1 {
        512
    } else {
        50
    };
    assert_eq!(value(cpu, "cpu.shares", "cpu.weight"), Some(shares));
    cgroup.remove();
}

#[test]
fn nothing_is_left_when_it_is_removed() {
    let Some(mut cgroup) = bounded() else { return };
    let dirs = cgroup.dirs.clone();
    assert!(!dirs.is_empty() && dirs.iter().all(|dir| dir.exists()));
    // A command that is root may have made groups of its own.
    std::fs::create_dir(dirs[0].join("inner")).unwrap();
    let mut child = start(&mut cgroup, "exec sleep 60");
    child.kill().unwrap();
    child.wait().unwrap();
    cgroup.remove();
    assert!(dirs.iter().all(|dir| !dir.exists()));
}

#[test]
fn a_sweep_takes_what_a_dead_keeper_left_and_nothing_else() {
    let Some(living) = bounded() else { return };
    let before = Instant::now();
    // It ends like a keeper that is killed: without a word. What it had
    // started is still inside.
    let Fork::Parent(keeper) = fork().unwrap() else {
        let mut left = Cgroup::prepare();
        let sleep = Command::new("sleep").arg("60").spawn();
        left.enter(sleep.map_or(0, |sleep| sleep.id()));
        exit(0)
    };
    waitpid(Some(keeper), WaitOptions::empty()).unwrap();
    let left = || {
        let prefix = format!("weighlock-{}-", keeper.as_raw_nonzero());
        let of_keeper = move |dir: &Path| dir.to_string_lossy().contains(&prefix);
        let places = living.dirs.iter().filter_map(|dir| dir.parent());
        places
            .flat_map(|place| std::fs::read_dir(place).unwrap().flatten())
            .map(|entry| entry.path())
            .filter(move |dir| of_keeper(dir))
            .collect::<Vec<_>>()
    };
    assert_eq!(left().len(), living.dirs.len());
    sweep_cgroups();
    assert_eq!(left(), Vec::<PathBuf>::new());
    assert!(
        before.elapsed() < Duration::from_secs(30),
        "the sleep was ended"
    );
    assert!(living.dirs.iter().all(|dir| dir.exists()));
    living.remove();
}

#[test]
fn keepers_do_not_meet_each_other_in_one_group() {
    let Some(first) = bounded() else { return };
    let second = bounded().unwrap();
    assert!(first.dirs.iter().all(|dir| !second.dirs.contains(dir)));
    let Fork::Parent(other) = fork().unwrap() else {
        let third = Cgroup::prepare();
        let held = third.held();
        third.remove();
        exit(i32::from(held.memory.is_err() || held.processes.is_err()))
    };
    let (_, status) = waitpid(Some(other), WaitOptions::empty()).unwrap().unwrap();
    assert_eq!(status.exit_status(), Some(0));
    first.remove();
    second.remove();
}

#[test]
fn what_cannot_be_had_is_said_with_its_reason() {
    if geteuid().is_root() {
        return not_as_this_user("root may make control groups");
    }
    let mut cgroup = Cgroup::prepare();
    let prepared = cgroup.held();
    assert_eq!(cgroup.bound(&BOUNDS), prepared);
    println!("{prepared:?}");
    if prepared.memory.is_ok() {
        not_as_this_user("a subtree is delegated to this user");
    } else {
        assert_eq!(cgroup.enter(std::process::id()), prepared);
        assert_eq!(cgroup.exceeded(), ExceededBounds::default());
    }
    cgroup.remove();
    sweep_cgroups();
}

#[test]
fn a_group_that_cannot_be_entered_holds_nothing() {
    let Some(mut cgroup) = bounded() else { return };
    let gone = cgroup.enter(i32::MAX.cast_unsigned());
    let missing = Err(Errno::SRCH);
    let expected = PerController {
        memory: missing,
        processes: missing,
        cpu: missing,
    };
    assert_eq!(gone, expected);
    let dirs = cgroup.dirs.clone();
    cgroup.remove();
    assert!(dirs.iter().all(|dir| !dir.exists()));
}

/// `cargo test -p weighlock-confine costs -- --ignored --nocapture`
#[test]
#[ignore = "measures, and promises nothing"]
fn costs() {
    let Some(cgroup) = bounded() else { return };
    cgroup.remove();
    cost_of_all(200, Duration::ZERO);
    cost_of_all(30, Duration::from_millis(150));
    let each = &Places::get().each;
    for place in [&each.memory, &each.processes, &each.cpu]
        .into_iter()
        .flatten()
    {
        cost_of(place, 200);
    }
    let before = Instant::now();
    sweep_cgroups();
    println!("sweep {:?}", before.elapsed());
}

fn cost_of_all(rounds: u32, pause: Duration) {
    let mut total = [Duration::ZERO; 4];
    for _ in 0..rounds {
        std::thread::sleep(pause);
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut at = Instant::now();
        let mut lap = |step: usize| {
            total[step] += at.elapsed();
            at = Instant::now();
        };
        let mut cgroup = Cgroup::prepare();
        lap(0);
        cgroup.bound(&BOUNDS);
        lap(1);
        cgroup.enter(child.id());
        lap(2);
        child.kill().unwrap();
        child.wait().unwrap();
        let before = Instant::now();
        cgroup.remove();
        total[3] += before.elapsed();
    }
    let [prepare, bound, enter, remove] = total.map(|time| time / rounds);
    println!(
        "every {pause:?}: prepare {prepare:?}, bound {bound:?}, enter {enter:?}, remove {remove:?}"
    );
}

fn cost_of(place: &CgroupParent, rounds: u32) {
    let mut total = [Duration::ZERO; 3];
    for _ in 0..rounds {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut dirs = vec![];
        let name = Name::next(Places::get().namespace).unwrap();
        let before = Instant::now();
        let group = make(place, &name, &mut dirs).unwrap();
        total[0] += before.elapsed();
        let before = Instant::now();
        put(&group.dir, "cgroup.procs", child.id()).unwrap();
        total[1] += before.elapsed();
        child.kill().unwrap();
        child.wait().unwrap();
        let before = Instant::now();
        remove_dir(&group.dir);
        total[2] += before.elapsed();
    }
    let [mkdir, enter, rmdir] = total.map(|time| time / rounds);
    println!(
        "{}: mkdir {mkdir:?}, enter {enter:?}, rmdir {rmdir:?}",
        place.root.display()
    );
}
