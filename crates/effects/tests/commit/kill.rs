//! Whatever moment a commit is cut off at: afterwards the tree is as before,
//! or as wanted, and nothing in between.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::fs::{XattrFlags, setxattr};
use weighlock_effects::{Changes, Place, Recovered, recover};
use weighlock_testing::skip;

use crate::basic::mixed;
use crate::stage::{Stage, apply, leftovers};
use crate::tree::{Seens, assert_same, tree};

/// Says to the test below what it should do, and for which directory.
const ORDER: &str = "WEIGHLOCK_TEST_ORDER";
const STATE: &str = "WEIGHLOCK_TEST_STATE";

/// All calls that change something.
const CALLS: [&str; 18] = [
    "renameat2",
    "rename",
    "linkat",
    "unlinkat",
    "unlink",
    "mkdir",
    "mkdirat",
    "symlinkat",
    "write",
    "ftruncate",
    "fchmodat",
    "chmod",
    "utimensat",
    "setxattr",
    "removexattr",
    "copy_file_range",
    "fsync",
    "fdatasync",
];

/// Not a test of its own: what the others start and kill.
#[test]
fn child() {
    let (Ok(order), Ok(state)) = (std::env::var(ORDER), std::env::var(STATE)) else {
        return;
    };
    let state = Path::new(&state);
    println!("go");
    let place = Place {
        dir: state.join("first"),
        durable: order == "durable",
        alone: order != "copied",
    };
    if order == "recover" {
        recover(&place.dir).unwrap();
        return;
    }
    let changes = fs::read(state.join("changes")).unwrap();
    let changes: Changes = serde_json::from_slice(&changes).unwrap();
    apply(&changes, &place).unwrap();
}

/// A commit that is about to be cut off.
struct Trial {
    stage: Stage,
    before: Seens,
    after: Seens,
}

impl Trial {
    /// A bit of everything, with a file that is changed in place.
    fn forward() -> Self {
        let mut stage = mixed();
        stage.file("in-place", "old");
        stage.hard("in-place-too", "in-place");
        stage.new_file("in-place", "new");
        let upper = stage.upper().join("in-place");
        let mut after = stage.expected();
        if setxattr(&upper, "user.overlay.origin", b"", XattrFlags::empty()).is_ok() {
            let mut twin = after[Path::new("in-place")].clone();
            twin.same_as = "in-place".into();
            after.insert("in-place-too".into(), twin);
        }
        let changes = stage.changes();
        Self::of(stage, &changes, after)
    }

    /// Takes one back.
    fn backward() -> Self {
        let stage = mixed();
        let before = tree(&stage.live());
        let place = stage.place("done");
        let applied = apply(&stage.changes(), &place).unwrap();
        Self::of(stage, &applied.inverse(&place.dir), before)
    }

    fn of(stage: Stage, changes: &Changes, after: Seens) -> Self {
        let state = stage.place("x").dir.parent().unwrap().to_owned();
        fs::create_dir_all(&state).unwrap();
        fs::write(state.join("changes"), serde_json::to_vec(changes).unwrap()).unwrap();
        Self {
            before: tree(&stage.live()),
            stage,
            after,
        }
    }

    fn command(&self, order: &str, program: &[&str]) -> Command {
        let this = std::env::current_exe().unwrap();
        let mut words: Vec<&std::ffi::OsStr> = program.iter().map(|word| word.as_ref()).collect();
        words.push(this.as_os_str());
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .args(["--exact", "kill::child", "--nocapture", "--test-threads=1"])
            .env(ORDER, order)
            .env(STATE, self.stage.place("x").dir.parent().unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }

    /// Runs it up to a certain call. Says whether it was cut off.
    fn cut(&self, order: &str, moment: Moment) -> bool {
        let (call, nth) = moment;
        let trace = format!("trace={call}");
        let inject = format!("inject={call}:signal=KILL:when={nth}");
        let strace = [
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            &trace,
            "-e",
            &inject,
        ];
        let status = self.command(order, &strace).status().unwrap();
        !status.success()
    }

    fn start(&self, order: &str) -> Child {
        self.command(order, &[]).spawn().unwrap()
    }

    /// Recovers, and requires one of the two.
    fn settle(&self, what: &str) -> bool {
        let place = self.stage.place("first").dir;
        let recovered = recover(&place).unwrap();
        let now = tree(&self.stage.live());
        assert!(leftovers(&now).is_empty(), "{what}: {:?}", leftovers(&now));
        assert_eq!(recover(&place).unwrap(), Recovered::Nothing, "{what}");
        assert!(!place.join("journal").exists(), "{what}");
        let done = weighlock_effects::Applied::load(&place).unwrap().is_some();
        let wanted = if done { &self.after } else { &self.before };
        assert_same(&now, wanted, &format!("{what}, {recovered:?}"));
        if !done {
            assert!(!place.join("images").exists(), "{what}");
        }
        done
    }
}

fn has_strace() -> bool {
    let works = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .status();
    let works = works.is_ok_and(|status| status.success());
    if !works {
        skip("strace is not installed, or may not trace");
    }
    works
}

/// The n-th call of that name.
type Moment = (&'static str, usize);

/// Finds the moments at which something can be cut off: all, or each so many.
fn moments(order: &str, trial: fn() -> Trial, step: usize, mut check: impl FnMut(&Trial, Moment)) {
    for call in CALLS {
        for nth in (1..).step_by(step) {
            let trial = trial();
            let cut = trial.cut(order, (call, nth));
            check(&trial, (call, nth));
            if !cut {
                break;
            }
        }
    }
}

fn cut_everywhere(order: &str, step: usize, trial: fn() -> Trial) {
    if !has_strace() {
        return;
    }
    let (mut done, mut undone) = (0, 0);
    moments(order, trial, step, |trial, moment| {
        match trial.settle(&format!("{order} cut off at {moment:?}")) {
            true => done += 1,
            false => undone += 1,
        }
    });
    assert!(done > 20 && undone > 20, "{done} {undone}");
    eprintln!("{order}: {done} finished, {undone} rolled back");
}

#[test]
fn a_commit_cut_off_anywhere_is_whole_or_nothing() {
    cut_everywhere("commit", 1, Trial::forward);
}

#[test]
fn a_durable_commit_cut_off_anywhere_is_whole_or_nothing() {
    cut_everywhere("durable", 4, Trial::forward);
}

#[test]
fn an_undo_cut_off_anywhere_is_whole_or_nothing() {
    cut_everywhere("undo", 1, Trial::backward);
}

#[test]
fn a_recovery_cut_off_anywhere_can_be_done_again() {
    if !has_strace() {
        return;
    }
    for first in [
        ("renameat2", 3),
        ("renameat2", 9),
        ("utimensat", 14),
        ("unlinkat", 3),
    ] {
        for call in CALLS {
            for nth in (1..).step_by(3) {
                let trial = Trial::forward();
                assert!(trial.cut("commit", first));
                let cut = trial.cut("recover", (call, nth));
                trial.settle(&format!("cut off at {first:?}, then at {call} {nth}"));
                if !cut {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_rollback_cut_off_anywhere_can_be_done_again() {
    if !has_strace() {
        return;
    }
    for call in CALLS {
        for nth in (1..).step_by(2) {
            let trial = Trial::forward();
            assert!(trial.cut("commit", ("renameat2", 12)));
            // In the way of what comes last.
            let late = trial.stage.live().join("moved-to");
            fs::write(&late, "ana's").unwrap();
            let cut = trial.cut("recover", (call, nth));
            let place = trial.stage.place("first").dir;
            recover(&place).unwrap();
            assert_eq!(recover(&place).unwrap(), Recovered::Nothing);
            let mut now = tree(&trial.stage.live());
            assert_eq!(now.remove(Path::new("moved-to")).unwrap().size, 5);
            let mut before = trial.before.clone();
            for all in [&mut now, &mut before] {
                all.remove(Path::new(""));
            }
            assert_same(&now, &before, &format!("cut off at {call} {nth}"));
            if !cut {
                break;
            }
        }
    }
}

#[test]
fn an_edit_before_the_recovery_is_never_lost() {
    if !has_strace() {
        return;
    }
    let (mut conflicts, mut saved) = (0, 0);
    moments("commit", Trial::forward, 3, |trial, moment| {
        let path = trial.stage.live().join("notes/a");
        // As editors do it.
        fs::write(path.with_extension("new"), "ana's").unwrap();
        fs::rename(path.with_extension("new"), &path).unwrap();
        let place = trial.stage.place("first").dir;
        let ours = recover(&place).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "ana's");
        if ours == Recovered::RolledBack {
            conflicts += 1;
            let mut now = tree(&trial.stage.live());
            let mut before = trial.before.clone();
            // What was there before is beside it, if it had been taken away.
            if let Some(old) = now.remove(Path::new("notes/a.before")) {
                assert_eq!(old.size, before[Path::new("notes/a")].size);
                saved += 1;
            }
            for all in [&mut now, &mut before] {
                all.remove(Path::new("notes/a"));
                all.remove(Path::new("notes"));
            }
            assert_same(&now, &before, &format!("cut off at {moment:?}"));
        }
    });
    assert!(conflicts > 20 && saved > 0, "{conflicts} {saved}");
}

#[test]
fn what_is_written_into_a_file_before_the_recovery_is_never_lost() {
    if !has_strace() {
        return;
    }
    // What is written in place, what takes the place of something, and what is
    // in a new directory.
    for name in ["in-place", "notes/a", "fresh/tree/other"] {
        let (mut seen, mut back) = (0, 0);
        for nth in 1..60 {
            let trial = Trial::forward();
            let call = ["renameat2", "utimensat", "fchmodat"][nth % 3];
            trial.cut("commit", (call, nth / 3 + 1));
            let path = trial.stage.live().join(name);
            let Ok(mut file) = fs::File::options().append(true).open(&path) else {
                continue;
            };
            file.write_all(b" and ana's").unwrap();
            drop(file);
            let recovered = recover(&trial.stage.place("first").dir).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let what = format!("{name}, cut off at {call} {nth}, {recovered:?}");
            assert!(text.ends_with(" and ana's"), "{what}: {text}");
            // The old content is there, too.
            let beside = fs::read_to_string(format!("{}.before", path.display()));
            assert!(
                beside.is_ok_and(|text| text == "old")
                    || !text.starts_with("new")
                    || recovered != Recovered::RolledBack,
                "{what}"
            );
            seen += 1;
            back += usize::from(recovered == Recovered::RolledBack);
        }
        assert!(seen > 10 && back > 0, "{name}: {seen} {back}");
    }
}

#[test]
fn a_commit_killed_at_any_moment_is_whole_or_nothing() {
    let whole = Trial::forward();
    let begin = Instant::now();
    let mut child = whole.start("commit");
    wait_for_go(&mut child);
    child.wait().unwrap();
    let span = begin.elapsed();
    for round in 0..200_u32 {
        let trial = if round % 2 == 0 {
            Trial::forward()
        } else {
            Trial::backward()
        };
        let mut child = trial.start("commit");
        wait_for_go(&mut child);
        // Scattered over the time that one takes.
        let until = Instant::now() + span * (round * 37 % 101) / 100;
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        trial.settle(&format!("round {round}"));
    }
}

fn wait_for_go(child: &mut Child) {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = lines.any(|line| line.is_ok_and(|line| line.contains("go")));
    assert!(found);
}
