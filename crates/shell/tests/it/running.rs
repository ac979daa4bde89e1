//! Bash itself, running what it reads.

#![expect(
    clippy::disallowed_types,
    reason = "the real shell is what is compared with"
)]

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use weighlock_shell::{Dialect, parse};

use crate::random::Random;
use crate::runs::{BENDS, RUNS};
use crate::walk::Spans;

/// Lines that are bent and run. Each takes a few milliseconds.
const CASES: usize = 600;

/// Notes what would have run, had it existed.
const PRELUDE: &str = "ulimit -f 100; FUNCNEST=6; PATH=/nonexistent; log=$2; text=$1; \
    command_not_found_handle() { printf '%s\\n' \"$1\" >>\"$log\"; return 1; }; eval \"$text\"";

#[test]
fn bash_runs_nothing_that_was_not_found() {
    if !weighlock_testing::have(&["bash", "timeout"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory can be made");
    let here = &dir.path().join("running").display().to_string();
    let mut random = Random(5);
    let mut count = 0;
    for case in 0..CASES {
        let text = bend(&mut random);
        let script = parse(&text, Dialect::Bash);
        let names = Spans::of(&script).names;
        if !script.unknowns.is_empty() || names.contains(&None) {
            continue;
        }
        let ran = run(&text, here, case);
        count += ran.len();
        for name in ran {
            assert!(
                names.contains(&Some(name.clone())),
                "{name:?} ran in {text:?}: {names:?}"
            );
        }
    }
    assert!(count > CASES / 2, "only {count} commands ran");
}

fn bend(random: &mut Random) -> String {
    let mut text = random.pick(RUNS).to_string();
    for _ in 0..random.below(4) {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let at = *random.pick(&places);
        if random.below(4) > 0 || places.len() < 3 {
            text.insert_str(at, random.pick::<&str>(BENDS));
        } else {
            text.remove(at);
        }
    }
    text
}

/// Runs a line in a directory of its own, and returns what it called.
fn run(text: &str, here: &str, case: usize) -> BTreeSet<String> {
    // What a line leaves in the background must not write to another's log.
    let log = &format!("{here}.{case}");
    let _ = std::fs::remove_dir_all(here);
    let _ = std::fs::remove_file(log);
    std::fs::create_dir_all(here).expect("a directory can be made");
    let mut bash = Command::new("timeout");
    bash.args(["-s", "KILL", "2", "bash", "-c", PRELUDE, "x", text, log]);
    bash.current_dir(here)
        .env_remove("BASH_ENV")
        .env("HOME", here)
        .env("LC_ALL", "C.UTF-8");
    bash.stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    bash.status().expect("`timeout` starts");
    #[expect(clippy::disallowed_methods, reason = "what bash noted is in a file")]
    let noted = std::fs::read_to_string(log).unwrap_or_default();
    let _ = std::fs::remove_file(log);
    noted.lines().map(str::to_owned).collect()
}
