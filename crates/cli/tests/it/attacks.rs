//! Holes that were found, each with the attack that found it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Home, eventually, signal};

/// Longer than anything here takes on a busy machine, shorter than what a hang
/// would wait for.
const SOON: Duration = Duration::from_secs(60);

#[test]
fn a_reader_of_the_export_that_stalls_holds_up_nobody() {
    let home = Home::new();
    let server = home.serve(&[]);
    let long = format!("true #{}", "x".repeat(100_000));
    for _ in 0..40 {
        home.api("POST", "/commands", &json!({ "command": long }));
    }
    let mut stalled = UnixStream::connect(home.state().join("weighlock.sock")).unwrap();
    stalled
        .write_all(b"GET /agent/terminal/audit/export HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    stalled.read_exact(&mut [0; 100]).unwrap();
    let began = Instant::now();
    for _ in 0..5 {
        assert_eq!(home.api("GET", "/commands?limit=1", &Value::Null).0, 200);
        assert_eq!(
            home.api("POST", "/commands", &json!({ "command": "true" }))
                .0,
            200
        );
    }
    assert!(began.elapsed() < SOON);
    assert_eq!(server.terminate(), Some(0));
    assert!(began.elapsed() < SOON);
}

#[test]
fn a_blacklist_that_is_no_file_means_the_built_in_one() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let dir = home.base().join(".agents");
    std::fs::create_dir(&dir).unwrap();
    let file = dir.join("terminal.json");
    for trap in [
        "mkfifo terminal.json",
        "ln -s /dev/zero terminal.json",
        "mkdir terminal.json",
        "ln -s terminal.json terminal.json",
        "head -c 3000000 /dev/zero > terminal.json",
    ] {
        let made = std::process::Command::new("sh")
            .args(["-c", trap])
            .current_dir(&dir)
            .status();
        assert!(made.unwrap().success());
        let began = Instant::now();
        let (_, run) = home.api("POST", "/commands", &json!({ "command": "sudo ls" }));
        assert_eq!(run["state"], "blocked", "{trap}: {run}");
        assert!(
            run["warnings"][0].as_str().unwrap().contains("built-in"),
            "{trap}"
        );
        assert!(began.elapsed() < SOON, "{trap}");
        let _ = std::fs::remove_file(&file);
        let _ = std::fs::remove_dir(&file);
    }
}

#[test]
fn a_long_grace_does_not_outlast_the_time_limit() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let deaf = "trap '' TERM INT; while :; do sleep 0.1; done";
    let id = home.start(deaf, json!({ "timeout_ms": 1000 }));
    let began = Instant::now();
    let (_, run) = home.api(
        "POST",
        &format!("/commands/{id}/stop"),
        &json!({ "grace_ms": 600_000 }),
    );
    assert_eq!(run["state"], "killed", "{run}");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn a_feeder_that_vanishes_leaves_the_line_whole() {
    let home = Home::new();
    let _server = home.serve(&[]);
    for _ in 0..10 {
        let id = home.start("sleep 30", json!({ "stdin_open": true }));
        let mut feeder = UnixStream::connect(home.state().join("weighlock.sock")).unwrap();
        let size = 4 * 1024 * 1024 - 10;
        let head = format!(
            "POST /agent/terminal/commands/{id}/stdin HTTP/1.1\r\nhost: localhost\r\n\
             content-length: {size}\r\n\r\n"
        );
        feeder.write_all(head.as_bytes()).unwrap();
        feeder.write_all(&vec![b'x'; size]).unwrap();
        drop(feeder);
        let path = format!("/commands/{id}/stop");
        let (_, run) = home.api("POST", &path, &json!({ "grace_ms": 100 }));
        assert_eq!(run["state"], "killed", "{run}");
    }
}

#[test]
fn what_stands_in_place_of_the_pipelines_codes_holds_up_nobody() {
    let home = Home::new();
    let trap =
        r#"p=$(trap -p EXIT | grep -o "/[^ ']*pipestatus"); mkfifo "$p"; trap - EXIT; true | true"#;
    let run = home.result(&["--shell", "bash", "--timeout", "5s"], trap);
    assert_eq!(
        (&run["state"], &run["pipestatus"]),
        (&json!("succeeded"), &Value::Null)
    );
}

#[test]
fn endless_command_lines_do_not_cost_a_run_its_keeper() {
    let home = Home::new();
    let many = "a=$(printf '%0100000d' 1); for i in 1 2 3 4 5 6; do \
                sh -c 'sleep 60; true' x $a $a $a $a $a $a $a $a $a $a & done; sleep 0.3";
    let run = home.result(&["--keep"], many);
    assert_eq!(run["state"], "succeeded", "{}", run["reason"]);
    let left = run["left_running"].as_array().unwrap();
    assert!(left.len() >= 6, "{}", left.len());
    assert!(
        left.iter()
            .all(|left| left["command"].as_str().unwrap().len() < 2000)
    );
    assert!(home.processes().len() >= 6, "they go on");
    assert_eq!(home.call(&["stop", "@last"]).code, Some(0));
}

#[test]
fn output_survives_a_restart_with_many_idle_runs() {
    let home = Home::new();
    let config = home.config("[output]\nper_run_mib = 1\ntotal_mib = 4\n");
    let options = ["--config", config.as_str()];
    let server = home.serve(&options);
    let (_, said) = home.ask("seq 1 1000", json!({}));
    for _ in 0..10 {
        home.start("sleep 60", json!({}));
    }
    server.kill();
    let _server = home.serve(&options);
    let run = home.show(said["command_id"].as_str().unwrap());
    assert_eq!(run["output"]["removed"], false, "{run}");
    assert_eq!(home.call(&["stop", "--all"]).out.lines().count(), 10);
}

#[test]
fn a_crowd_of_silent_strangers_does_not_lock_the_owner_out() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let address = server
        .said
        .lines()
        .find_map(|line| line.trim().strip_prefix("address  http://"))
        .unwrap();
    let address = address.split('/').next().unwrap();
    // Some of them wait in the kernel.
    let crowd: Vec<TcpStream> = (0..320)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    assert_eq!(home.result(&[], "echo here")["stdout"], "here\n");
    let held = std::fs::read_dir(format!("/proc/{}/fd", server.child.id()))
        .unwrap()
        .count();
    assert!(
        held < 400,
        "{held} descriptors for {} strangers",
        crowd.len()
    );
}

#[test]
fn input_that_was_given_outlives_the_server() {
    let home = Home::new();
    let server = home.serve(&[]);
    let text = "x".repeat(1_000_000);
    let id = home.start(
        "while [ ! -e go ]; do sleep 0.02; done; wc -c",
        json!({ "stdin": text }),
    );
    server.kill();
    let _server = home.serve(&[]);
    std::fs::write(home.base().join("go"), "").unwrap();
    eventually("it ended", || home.show(&id)["state"] != "running");
    assert_eq!(home.show(&id)["stdout"].as_str().unwrap().trim(), "1000000");
}

#[test]
fn a_call_while_the_server_ends_starts_the_next_one() {
    let home = Home::new();
    let server = home.serve(&[]);
    let waiting = home.weighlock(&["run", "-q", "--", "sleep 100"]).spawn();
    let mut waiting = waiting.unwrap();
    eventually("it runs", || {
        home.call(&["runs", "running"]).out.contains("sleep")
    });
    signal(server.child.id(), "TERM");
    let done = home.run(&["-q"], "echo next");
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), "next\n"),
        "{done:?}"
    );
    assert!(done.took < SOON, "{done:?}");
    let _ = waiting.kill();
    let _ = waiting.wait();
    home.call(&["stop", "--all", "--force"]);
}

#[test]
fn nobody_reading_our_own_words_costs_no_exit_code() {
    let home = Home::new();
    home.run(&[], "true");
    let mut child = home
        .weighlock(&["run", "--", "sleep 0.3; exit 3"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn no_more_run_at_once_than_may() {
    let home = Home::new();
    let _server = home.serve_with("[limits]\nrunning_max = 3\n");
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let ask = || home.ask("sleep 2", json!({ "background": true })).0;
        let asked: Vec<_> = (0..20).map(|_| scope.spawn(ask)).collect();
        asked
            .into_iter()
            .map(|asked| asked.join().unwrap())
            .collect()
    });
    let began = answers.iter().filter(|&&status| status == 202).count();
    let refused = answers.iter().filter(|&&status| status == 503).count();
    // Of three, one principal gets two, and a place is left for others.
    assert_eq!((began, refused), (2, 18), "{answers:?}");
}

#[test]
fn text_is_found_whatever_its_letters() {
    let home = Home::new();
    home.run(&[], "echo ÄÖÜ Big");
    for query in ["ÄÖ", "BIG", "Ü b"] {
        assert_eq!(
            home.call(&["runs", query]).out.lines().count(),
            1,
            "{query}"
        );
        assert!(home.call(&["runs", query]).out.contains("ÄÖÜ"), "{query}");
    }
}

#[test]
fn signals_that_our_starter_ignored_are_not_ignored_inside() {
    let home = Home::new();
    let ours = env!("CARGO_BIN_EXE_weighlock");
    let script = format!("trap '' INT TERM HUP QUIT; {ours} run -q -- true");
    let done = home
        .weighlock_through(&["sh", "-c", &script], &["x"])
        .status();
    assert!(done.unwrap().success());
    // Sent to itself, since nobody can trap what was ignored from the start.
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3)] {
        let done = home.run(&["-q"], &format!("kill -{name} $$; echo ignored"));
        assert_eq!(
            (done.code, done.out.as_str()),
            (Some(128 + number), ""),
            "{name}"
        );
    }
}

#[test]
fn a_command_cannot_see_its_keepers_door() {
    let home = Home::new();
    let server = home.serve(&[]);
    let command = format!(
        "while ! test -e go; do sleep 0.01; done; ls -d '{}'; ls /proc/*/fd",
        home.state().display()
    );
    let id = home.start(&command, json!({}));
    server.kill();
    // The keeper opens its door when its server is gone.
    let runs = home.state().join("runs");
    eventually("there is a door", || {
        let days = std::fs::read_dir(&runs).unwrap().flatten();
        let mut all = days.flat_map(|day| std::fs::read_dir(day.path()).unwrap().flatten());
        all.any(|run| run.path().join("keeper.sock").exists())
    });
    std::fs::write(home.base().join("go"), "").unwrap();
    let _server = home.serve(&[]);
    let run = home.ended(&id);
    let output = String::from_utf8(home.output(&id)).unwrap();
    assert!(
        output.contains("No such file or directory"),
        "{run} {output}"
    );
}
