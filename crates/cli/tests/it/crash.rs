//! Whoever is killed, the truth about every run is told.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Home, Server, Talk, children, eventually, is_alive, signal, skip};

/// A restarted server takes new commands within this.
const BACK_WITHIN: Duration = Duration::from_secs(2);

/// Twenty runs of every kind. Each says in the file `ran` that it ran.
struct Runs {
    short: Vec<String>,
    long: Vec<String>,
    background: Vec<String>,
    floods: Vec<String>,
    blocked: String,
    kept: String,
    endless: String,
}

impl Runs {
    fn start(home: &Home) -> Self {
        let minute = || json!({ "timeout_ms": 60_000 });
        let long = |n: usize| {
            format!(
                "echo long{n} >> ran; i=0; until [ -e go ]; do i=$((i+1)); echo line $i; \
                 sleep 0.03; done | tee out{n}; exit 1{n}"
            )
        };
        let background = |n: usize| {
            format!(
                "echo background{n} >> ran; until [ -e dead ]; do sleep 0.03; done; \
                 seq 1 20000; echo background{n} >> done; exit 2{n}"
            )
        };
        let flood = |n: usize| format!("echo flood{n} >> ran; yes flood{n}");
        let kept = "echo kept >> ran; (until [ -e go ]; do sleep 0.03; done; echo late) & \
                    echo now; exit 30";
        let runs = Self {
            kept: home.start(kept, json!({ "keep": true })),
            endless: home.start("echo endless >> ran; sleep 1000", minute()),
            long: (0..5).map(|n| home.start(&long(n), minute())).collect(),
            background: (0..4)
                .map(|n| home.start(&background(n), minute()))
                .collect(),
            short: (0..5).map(|n| short(home, n)).collect(),
            blocked: id(&home.ask("echo blocked >> ran; sudo ls", Value::Null).1),
            floods: (0..3)
                .map(|n| home.start(&flood(n), json!({ "timeout_ms": 1500 })))
                .collect(),
        };
        eventually("every run has begun", || home.lines("ran").len() == 19);
        eventually("the long ones say something", || {
            runs.long.iter().all(|id| home.output(id).len() > 20)
        });
        runs
    }

    fn check(&self, home: &Home) {
        for (n, id) in self.short.iter().enumerate() {
            check_end(
                &home.get(id),
                if n == 0 { "succeeded" } else { "failed" },
                n,
            );
            assert_eq!(home.output(id), format!("short {n}\n").into_bytes());
        }
        for (n, id) in self.background.iter().enumerate() {
            check_end(&home.ended(id), "failed", 20 + n);
            let all: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
            assert!(home.output(id) == all.as_bytes(), "background {n}");
        }
        for (n, id) in self.floods.iter().enumerate() {
            let run = home.ended(id);
            assert_eq!(run["state"], "timed_out", "{run}");
            check_flood(home, &run, format!("flood{n}\n").as_bytes());
        }
        check_end(&home.get(&self.kept), "failed", 30);
        assert_eq!(home.get(&self.kept)["open"], true);
        assert_eq!(home.get(&self.blocked)["state"], "blocked");
        self.check_stop(home);
        self.check_going_on(home);
    }

    fn check_stop(&self, home: &Home) {
        let path = format!("/commands/{}/stop", self.endless);
        let (status, run) = home.api("POST", &path, &json!({}));
        assert_eq!((status, &run["state"]), (200, &json!("killed")), "{run}");
        assert_eq!(run["reason"]["code"], "stopped", "{run}");
    }

    /// The long ones and what was kept go on, and then end as they wish.
    fn check_going_on(&self, home: &Home) {
        for id in &self.long {
            assert_eq!(home.get(id)["state"], "running");
            let before = home.output(id).len();
            eventually("its output continues", || home.output(id).len() > before);
        }
        assert_eq!(home.output(&self.kept), b"now\n");
        fs::write(home.base().join("go"), "").unwrap();
        for (n, id) in self.long.iter().enumerate() {
            check_end(&home.ended(id), "failed", 10 + n);
            let written = fs::read(home.base().join(format!("out{n}"))).unwrap();
            assert!(!written.is_empty());
            assert!(home.output(id) == written, "long {n}");
        }
        check_end(&home.closed(&self.kept), "failed", 30);
        assert_eq!(home.output(&self.kept), b"now\nlate\n");
    }
}

#[test]
fn a_killed_server_finds_every_run_again_and_its_truth() {
    let home = Home::new();
    let config = home.config("[output]\nper_run_mib = 1\n");
    let options = ["--config", config.as_str()];
    let server = home.serve(&options);
    let runs = Runs::start(&home);
    server.kill();
    fs::write(home.base().join("dead"), "").unwrap();
    eventually("those in the background end alone", || {
        home.lines("done").len() == 4
    });
    let began = Instant::now();
    let server = home.serve(&options);
    let (status, run) = home.ask("echo hello", Value::Null);
    assert!(began.elapsed() < BACK_WITHIN, "{:?}", began.elapsed());
    assert_eq!((status, &run["stdout"]), (200, &json!("hello\n")), "{run}");
    runs.check(&home);
    let mut ran = home.lines("ran");
    ran.sort();
    let all = ran.len();
    ran.dedup();
    assert_eq!((ran.len(), all), (19, 19), "each ran once: {ran:?}");
    home.assert_gone();
    home.assert_audit_verifies();
    drop(server);
}

#[test]
fn a_terminated_server_leaves_its_runs_to_the_next() {
    let home = Home::new();
    let server = home.serve(&[]);
    let counting = home.start(
        "i=0; until [ -e go ]; do i=$((i+1)); echo $i; sleep 0.03; done | tee out; exit 7",
        Value::Null,
    );
    let sleeping = home.start("sleep 1000", Value::Null);
    eventually("it counts", || !home.output(&counting).is_empty());
    assert_eq!(server.terminate(), Some(0));
    let counted = home.lines("out").len();
    eventually("it counts without a server", || {
        home.lines("out").len() > counted
    });
    let _server = home.serve(&[]);
    let before = home.output(&counting).len();
    eventually("it counts on", || home.output(&counting).len() > before);
    let path = format!("/commands/{sleeping}/stop");
    let (_, stopped) = home.api("POST", &path, &json!({}));
    assert_eq!(stopped["state"], "killed", "{stopped}");
    fs::write(home.base().join("go"), "").unwrap();
    check_end(&home.ended(&counting), "failed", 7);
    let written = fs::read(home.base().join("out")).unwrap();
    assert_eq!(home.output(&counting), written);
    home.assert_gone();
    home.assert_audit_verifies();
}

#[test]
fn a_killed_keeper_takes_its_run_along_and_the_record_says_so() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let id = start_stubborn(&home);
    signal(home.keeper(&id), "KILL");
    check_lost(&home, &home.ended(&id), "keeper was killed");
}

#[test]
fn a_server_and_a_keeper_killed_together_lose_the_run_only() {
    let home = Home::new();
    let server = home.serve(&[]);
    let id = start_stubborn(&home);
    let other = home.start("until [ -e go ]; do sleep 0.03; done; exit 4", Value::Null);
    let keeper = home.keeper(&id);
    server.kill();
    signal(keeper, "KILL");
    eventually("it is dead", || !is_alive(keeper));
    let _server = home.serve(&[]);
    fs::write(home.base().join("go"), "").unwrap();
    check_end(&home.ended(&other), "failed", 4);
    check_lost(&home, &home.get(&id), "keeper was killed");
}

#[test]
fn a_run_of_an_earlier_boot_is_lost() {
    let home = Home::new();
    let server = home.serve(&[]);
    let id = start_stubborn(&home);
    let keeper = home.keeper(&id);
    server.kill();
    signal(keeper, "KILL");
    eventually("it is dead", || !is_alive(keeper));
    let path = home.status_file(&id).expect("its last status");
    let text = fs::read_to_string(&path).unwrap();
    let mut status: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    status["keeper"]["boot"] = "00000000-0000-0000-0000-000000000000".into();
    // A pid of now must not be taken for the keeper of then.
    status["keeper"]["pid"] = std::process::id().into();
    fs::write(path, format!("{status}\n")).unwrap();
    let _server = home.serve(&[]);
    check_lost(&home, &home.get(&id), "machine was restarted");
}

#[test]
fn a_keeper_killed_after_the_shell_ended_does_not_change_how_it_ended() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let command = "sh -c 'trap \"\" TERM; sleep 1000' & echo now; exit 6";
    let (_, run) = home.ask(command, json!({ "keep": true }));
    check_end(&run, "failed", 6);
    assert_eq!(run["open"], true, "{run}");
    signal(home.keeper(&id(&run)), "KILL");
    check_end(&home.closed(&id(&run)), "failed", 6);
    home.assert_gone();
    home.assert_audit_verifies();
}

#[test]
fn whoever_makes_keepers_may_be_killed_and_commands_still_run() {
    let home = Home::new();
    let server = home.serve(&[]);
    let nursery = || children(server.child.id())[0].0;
    assert_eq!(home.ask("true", Value::Null).0, 200);
    eventually("keepers are ready", || !children(nursery()).is_empty());
    for (ready, _) in children(nursery()) {
        signal(ready, "KILL");
    }
    let (status, run) = home.ask("true", Value::Null);
    assert_eq!(status, 200, "its ready keepers were killed: {run}");
    signal(nursery(), "KILL");
    // More than it had keepers ready for.
    for _ in 0..5 {
        let (status, run) = home.ask("true", Value::Null);
        assert_eq!(status, 200, "the nursery was killed: {run}");
    }
    home.assert_audit_verifies();
}

#[test]
fn a_keeper_that_comes_after_the_verdict_runs_nothing() {
    let home = Home::new();
    // A login shell would be another child.
    let server = home.serve_with("[environment]\nlogin_path = false");
    let nursery = children(server.child.id());
    let [(nursery, _)] = nursery[..] else {
        panic!("one nursery: {nursery:?}");
    };
    // The nursery, and the keepers it has ready.
    let all = || children(nursery).into_iter().map(|(pid, _)| pid);
    signal(nursery, "STOP");
    let late: Vec<u32> = all().chain([nursery]).collect();
    for &pid in &late {
        signal(pid, "STOP");
    }
    let mut talk = Talk::open(&home);
    talk.send(
        "POST",
        "/commands",
        &home.wish("echo ran >> ran", Value::Null),
    );
    eventually("the start is recorded", || home.run_dirs() == 1);
    server.kill();
    let server = home.serve(&[]);
    let (_, list) = home.api("GET", "/commands", &Value::Null);
    let run = &list["commands"][0];
    assert_eq!(run["state"], "lost", "{run}");
    assert_eq!(run["reason"]["code"], "never_began", "{run}");
    for &pid in &late {
        signal(pid, "CONT");
    }
    eventually("the old nursery ends", || {
        !late.iter().any(|&pid| is_alive(pid))
    });
    assert_eq!(home.ask("echo second >> ran", Value::Null).0, 200);
    assert_eq!(home.lines("ran"), ["second"]);
    home.assert_audit_verifies();
    drop(server);
}

#[test]
fn a_server_killed_anywhere_between_record_and_start_runs_it_at_most_once() {
    let mut hit = 0;
    for (call, nth) in [
        ("pwrite64", 1),
        ("pwrite64", 2),
        ("pwrite64", 5),
        ("mkdir", 1),
        ("mkdir", 2),
        ("sendmsg", 1),
        ("sendto", 1),
        ("recvfrom", 2),
        ("unlink", 1),
    ] {
        let home = Home::new();
        let server = home.serve(&[]);
        let Some(strace) = kill_at(&server, call, nth) else {
            return;
        };
        run_on_dying_server(&home, "echo ran >> ran");
        hit += usize::from(!is_alive(server.child.id()));
        server.kill();
        end(strace);
        let server = home.serve(&[]);
        check_at_most_once(&home, &format!("{call} {nth}"));
        drop(server);
    }
    println!("{hit} were killed by strace");
    assert!(hit > 0, "strace never killed it");
}

#[test]
fn a_keeper_killed_anywhere_as_it_begins_leaves_the_truth() {
    let mut lost = 0;
    for (call, nth) in [
        ("write", 1),
        ("write", 2),
        ("write", 3),
        ("openat", 3),
        ("epoll_wait", 1),
        ("poll", 2),
        ("ppoll", 2),
        ("read", 2),
        ("recvfrom", 3),
    ] {
        let home = Home::new();
        // A login shell would be another child.
        let server = home.serve_with("[environment]\nlogin_path = false");
        let ready = || {
            let nursery = children(server.child.id());
            nursery
                .first()
                .map_or(vec![], |(nursery, _)| children(*nursery))
        };
        eventually("keepers are ready", || !ready().is_empty());
        let keepers: Vec<u32> = ready().iter().map(|(pid, _)| *pid).collect();
        let Some(strace) = kill_any_at(&keepers, call, nth) else {
            return;
        };
        let (status, run) = home.ask("echo ran >> ran", Value::Null);
        end(strace);
        let when = format!("{call} {nth}: {status} {run}");
        let ran = home.lines("ran").len();
        let recorded = home.newest();
        match recorded["state"].as_str().unwrap_or_default() {
            "succeeded" => assert_eq!(ran, 1, "{when}"),
            "lost" => assert!(ran <= 1, "{when}"),
            "failed" => assert_eq!(ran, 0, "{when}: {recorded}"),
            _ => panic!("{when}: {recorded}"),
        }
        lost += usize::from(recorded["state"] == "lost");
        assert_eq!(recorded["open"], false, "{when}");
        home.assert_gone();
        home.assert_audit_verifies();
    }
    println!("{lost} were lost");
    assert!(lost > 0, "strace never killed one");
}

#[test]
fn what_a_killed_server_recorded_and_did_not_put_away_goes_at_the_next_start() {
    let home = Home::new();
    let server = home.serve(&[]);
    let (_, run) = home.ask("echo kept", Value::Null);
    server.kill();
    let dir = fs::read_dir(home.state().join("runs")).unwrap().next();
    let day = dir.unwrap().unwrap().path();
    let kept = day.join(id(&run));
    fs::write(kept.join("status.jsonl"), "{}\n").unwrap();
    fs::create_dir(day.join("r_01m7mtp59n0000000000")).unwrap();
    let _server = home.serve(&[]);
    eventually("only output is left", || {
        home.run_dirs() == 1 && !kept.join("status.jsonl").exists()
    });
    assert_eq!(home.output(&id(&run)), b"kept\n");
}

/// Lets strace kill the server at its n-th call from now on.
pub(crate) fn kill_at(server: &Server, call: &str, nth: u32) -> Option<Child> {
    kill_any_at(&[server.child.id()], call, nth)
}

/// The same with any of several.
fn kill_any_at(pids: &[u32], call: &str, nth: u32) -> Option<Child> {
    let strace = Command::new("strace")
        .args(["-f", "-o", "/dev/null"])
        .arg(format!("--inject={call}:signal=KILL:when={nth}"))
        .args(pids.iter().map(|pid| format!("--attach={pid}")))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut strace = match strace {
        Ok(strace) => strace,
        Err(error) => {
            skip(&format!("strace cannot be run: {error}"));
            return None;
        }
    };
    let mut said = String::new();
    let mut lines = BufReader::new(strace.stderr.take().unwrap());
    lines.read_line(&mut said).unwrap();
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    if said.contains("attached") {
        return Some(strace);
    }
    end(strace);
    skip(&format!("strace cannot attach: {said}"));
    None
}

pub(crate) fn end(mut child: Child) {
    let _ = child.kill();
    child.wait().unwrap();
}

/// Asks for a command and waits until there is an answer or nobody to give it.
fn run_on_dying_server(home: &Home, command: &str) {
    use std::io::Read;
    let socket = UnixStream::connect(home.state().join("weighlock.sock"));
    let body = home.wish(command, Value::Null).to_string();
    let request = format!(
        "POST /agent/terminal/commands HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    if let Ok(mut socket) = socket {
        let _ = socket.write_all(request.as_bytes());
        let _ = socket.read_to_end(&mut vec![]);
    }
}

fn check_at_most_once(home: &Home, when: &str) {
    let (_, list) = home.api("GET", "/commands", &Value::Null);
    let runs = list["commands"].as_array().expect("a list");
    let state = runs.first().map(|run| {
        let run = home.ended(&id(run));
        let reason = run["reason"]["code"].as_str().unwrap_or_default();
        format!("{} {reason}", run["state"].as_str().unwrap_or_default())
    });
    // What was on its way has arrived once another is through.
    assert_eq!(home.ask("true", Value::Null).0, 200);
    let ran = home.lines("ran").len();
    match state.as_deref() {
        None | Some("lost never_began") => assert_eq!(ran, 0, "{when}: {state:?}"),
        Some("succeeded ") => assert_eq!(ran, 1, "{when}: {state:?}"),
        Some("lost lost") => assert!(ran <= 1, "{when}: {state:?}"),
        _ => panic!("{when}: {state:?}"),
    }
    home.assert_audit_verifies();
}

/// Starts what does not end by itself, nor when asked, nor as one process.
fn start_stubborn(home: &Home) -> String {
    let command = "trap '' TERM INT HUP; (setsid sleep 1000 &); echo before; \
                   echo also before >&2; sleep 1000; sleep 1000";
    let id = home.start(command, Value::Null);
    eventually("it runs", || {
        home.output(&id).len() == 19 && home.processes().len() >= 3
    });
    id
}

fn check_lost(home: &Home, run: &Value, why: &str) {
    assert_eq!(run["state"], "lost", "{run}");
    assert_eq!(run["exit_code"], Value::Null, "{run}");
    let reason = run["reason"]["text"].as_str().unwrap_or_default();
    assert!(reason.contains(why), "{reason}");
    home.assert_gone();
    let id = id(run);
    assert_eq!(home.output(&id), b"before\nalso before\n");
    let run = home.show(&id);
    assert_eq!(run["stdout"], "before\n", "{run}");
    assert_eq!(run["stderr"], "also before\n", "{run}");
    assert_eq!(run["output"]["bytes"], 19, "{run}");
    assert_eq!(home.call(&["output", &id]).out, "before\n");
    home.assert_audit_verifies();
}

#[track_caller]
fn check_end(run: &Value, state: &str, code: usize) {
    assert_eq!(
        (&run["state"], &run["exit_code"]),
        (&json!(state), &json!(code)),
        "{run}"
    );
}

/// Every byte that is kept is where it was, and the gap is what is missing.
fn check_flood(home: &Home, run: &Value, line: &[u8]) {
    let path = format!("/commands/{}/output/raw?frames=true", id(run));
    let (_, frames) = home.api_raw("GET", &path, b"");
    let (mut rest, mut at) = (&frames[..], 0);
    while !rest.is_empty() {
        let length = u32::from_be_bytes(rest[4..8].try_into().unwrap()) as usize;
        let (kind, bytes) = (rest[0], &rest[8..8 + length]);
        rest = &rest[8 + length..];
        if kind == 3 {
            at += u64::from_be_bytes(bytes.try_into().unwrap());
            continue;
        }
        let first = at as usize % line.len();
        let right = line.iter().cycle().skip(first).zip(bytes);
        assert!(right.clone().all(|(right, byte)| right == byte), "at {at}");
        at += length as u64;
    }
    assert_eq!(run["output"]["bytes"], at, "{run}");
    assert!(frames.len() < 2 * 1024 * 1024, "{}", frames.len());
}

fn short(home: &Home, n: usize) -> String {
    let command = format!("echo short{n} >> ran; echo short {n}; exit {n}");
    let (status, run) = home.ask(&command, Value::Null);
    assert_eq!(status, 200, "{run}");
    id(&run)
}

fn id(run: &Value) -> String {
    run["command_id"].as_str().expect("an id").to_owned()
}
