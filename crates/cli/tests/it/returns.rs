//! Every call comes back, and leaves nothing behind.

use std::time::Duration;

use crate::support::{Home, skip};

/// What the call may take above its limit.
const SLACK: Duration = Duration::from_millis(500);

/// Thousands of processes take the kernel a while to end when others use the
/// machine too; by itself it takes no longer than the other shapes.
const LOOP_SLACK: Duration = Duration::from_secs(3);

/// How long after the call a process of the run may still exist.
const GONE_WITHIN: Duration = Duration::from_millis(200);

/// Runs a shape with a limit of two seconds.
#[track_caller]
fn check(shell: &str, command: &str, code: i32) {
    check_within(shell, command, &[code], SLACK);
}

#[track_caller]
fn check_within(shell: &str, command: &str, codes: &[i32], slack: Duration) {
    let home = Home::new();
    home.run(&[], "true");
    let options = ["--timeout", "2s", "--shell", shell];
    let done = home.run(&options, command);
    home.assert_gone_within(GONE_WITHIN);
    assert!(
        done.code.is_some_and(|code| codes.contains(&code)),
        "{command}: {done:?}"
    );
    assert!(
        done.took < Duration::from_secs(2) + slack,
        "{command}: {done:?}"
    );
}

const TIME_LIMIT: i32 = 124;

/// A loop of forks ends with its time; or before, when the run may have no
/// more processes and the shell gives up (`Cannot fork`, exit 2), or is ended
/// for that by whoever counts them (137).
const LOOP_ENDS: [i32; 3] = [TIME_LIMIT, 2, 137];

#[test]
fn a_background_child() {
    check("sh", "sleep 47 & echo done", 0);
}

#[test]
fn a_child_in_a_session_of_its_own() {
    check(
        "sh",
        "setsid sleep 47 >/dev/null 2>&1 & sleep 47",
        TIME_LIMIT,
    );
}

#[test]
fn a_child_in_a_session_of_its_own_that_keeps_stdout() {
    check("sh", "setsid sleep 47 & echo done", 0);
}

#[test]
fn a_double_fork() {
    check(
        "sh",
        "(setsid sh -c 'sleep 47 & exec sleep 47' &); echo done",
        0,
    );
}

#[test]
fn output_through_a_process_substitution() {
    check("bash", "exec > >(tee -a log) 2>&1; sleep 47", TIME_LIMIT);
}

#[test]
fn deaf_to_signals() {
    check("sh", "trap '' TERM INT HUP; sleep 47", TIME_LIMIT);
}

#[test]
fn a_pipeline() {
    check("sh", "sleep 47 | cat", TIME_LIMIT);
}

#[test]
fn a_reader_of_stdin() {
    check("sh", "cat; test $? = 0", 0);
}

#[test]
fn a_server_left_behind() {
    check(
        "sh",
        "nohup python3 -m http.server 0 & sleep 1; echo started",
        0,
    );
}

#[test]
fn a_stopped_shell() {
    check("sh", "kill -STOP $$", TIME_LIMIT);
}

#[test]
fn a_child_that_is_deaf() {
    check(
        "sh",
        "sh -c \"trap '' TERM; sleep 47\" & sleep 47",
        TIME_LIMIT,
    );
}

#[test]
fn a_child_that_keeps_stdout_open() {
    check("sh", "sh -c 'sleep 47; echo late' & exit 3", 3);
}

#[test]
fn a_loop_of_forks() {
    check_within("sh", "while :; do sleep 47 & done", &LOOP_ENDS, LOOP_SLACK);
}

#[test]
fn a_loop_of_orphans() {
    check_within(
        "sh",
        "while :; do (setsid sleep 47 &); done",
        &LOOP_ENDS,
        LOOP_SLACK,
    );
}

#[test]
fn a_fork_bomb() {
    let host = || std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    let before = host();
    let inside = Home::new().run(&["-q"], "cat /proc/sys/kernel/pid_max").out;
    if inside == before {
        return skip("this kernel has no bound of pids for each namespace (Linux 6.14)");
    }
    check_within("sh", "b() { b | b & }; b; sleep 47", &LOOP_ENDS, LOOP_SLACK);
    assert_eq!(host(), before, "the host's own bound is what it was");
}

/// The weaker way to end a tree keeps the same promise.
#[test]
fn without_namespaces_too() {
    let home = Home::new();
    let _server = home.serve_without_namespaces();
    for (command, code) in [
        ("true", 0),
        ("sleep 47 & echo done", 0),
        ("setsid sleep 47 >/dev/null 2>&1 & sleep 47", TIME_LIMIT),
        ("(setsid sh -c 'sleep 47 & exec sleep 47' &); echo done", 0),
        ("trap '' TERM INT HUP; sleep 47", TIME_LIMIT),
        ("kill -STOP $$", TIME_LIMIT),
        ("while :; do (setsid sleep 47 &); done", TIME_LIMIT),
        // Its own first process is within reach here.
        ("kill -9 $PPID; sleep 47", 128 + 9),
    ] {
        let options = ["--timeout", "1s"];
        let done = home.run(&options, command);
        home.assert_gone_within(GONE_WITHIN);
        assert_eq!(done.code, Some(code), "{command}: {done:?}");
        let limit = Duration::from_secs(1) + LOOP_SLACK;
        assert!(done.took < limit, "{command}: {done:?}");
        assert_eq!(home.show("@last")["sandbox"]["level"], "landlock");
    }
    let doctor = home.call(&["doctor"]);
    assert!(doctor.out.contains("✗ namespaces"), "{doctor:?}");
}
