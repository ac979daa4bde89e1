//! What `weighlock run` does with a command, and what it says.

use std::io::{Read, Write};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::json;

use crate::support::{Home, eventually, signal};

#[test]
fn output_passes_through_on_the_right_streams() {
    let home = Home::new();
    let done = home.run(&["-q"], "printf 'a\\nb'; printf 'c\\377' >&2");
    assert_eq!((done.code, done.out.as_str()), (Some(0), "a\nb"));
    assert_eq!(done.err, "c\u{FFFD}");
}

#[test]
fn the_first_and_last_line_tell_what_ran_and_how_it_ended() {
    let home = Home::new();
    let done = home.run(&["-d", "Build the project"], "echo built");
    assert_eq!(done.out, "built\n");
    let lines: Vec<&str> = done.err.lines().collect();
    assert!(lines[0].starts_with("● Build the project "), "{done:?}");
    assert!(lines[1].starts_with("✓ exit 0 in "), "{done:?}");
    let id = lines[1].split(' ').next_back().unwrap();
    assert_eq!(home.show(id)["command"], "echo built");
}

#[test]
fn exit_codes_tell_who_failed() {
    let home = Home::new();
    for (options, command, code) in [
        (&[][..], "exit 7", 7),
        (&[], "no-such-program-anywhere", 127),
        (&[], "kill -9 $$", 128 + 9),
        (&["--timeout", "100ms"], "sleep 5", 124),
        (&["--idle", "100ms"], "sleep 5", 124),
        (&[], "sudo ls", 126),
        (&["--cwd", "/"], "true", 125),
        (&["--timeout", "0s"], "true", 125),
        (&["--timeout=-1s"], "true", 125),
        (&["--timeout", "x"], "true", 2),
        (&["--wait", "50ms"], "sleep 1", 75),
    ] {
        let done = home.run(options, command);
        assert_eq!(done.code, Some(code), "{options:?} {command}: {done:?}");
    }
}

#[test]
fn several_words_are_taken_as_they_are() {
    let home = Home::new();
    let done = home.call(&[
        "run", "-q", "--", "printf", "%s|", "a b", "*", "$HOME", "it's", "",
    ]);
    assert_eq!(done.out, "a b|*|$HOME|it's||");
    let done = home.call(&["run", "-q", "--", "echo one | tr o 0"]);
    assert_eq!(done.out, "0ne\n");
}

#[test]
fn what_was_left_running_is_named_and_ended() {
    let home = Home::new();
    let result = home.result(&[], "sleep 300 & echo done");
    assert_eq!(result["stdout"], "done\n");
    assert_eq!(result["state"], "succeeded");
    assert_eq!(result["left_running"][0]["command"], "sleep 300");
    assert_eq!(result["left_running"][0]["fate"], "ended");
    home.assert_gone();
}

#[test]
fn what_was_left_running_goes_on_when_it_is_kept() {
    let home = Home::new();
    let result = home.result(&["--keep"], "(sleep 0.3; echo late; sleep 300) & echo done");
    assert_eq!(result["left_running"][0]["fate"], "kept");
    assert_eq!(result["open"], true);
    let id = result["command_id"].as_str().unwrap();
    eventually("its output is kept", || {
        home.show(id)["stdout"] == "done\nlate\n"
    });
    assert!(!home.processes().is_empty());
    assert_eq!(home.call(&["stop", id]).code, Some(0));
    home.assert_gone();
    let closed = home.show(id);
    assert_eq!(
        (&closed["state"], &closed["open"]),
        (&json!("succeeded"), &json!(false))
    );
}

#[test]
fn a_short_afterglow_may_finish() {
    let home = Home::new();
    let done = home.run(&["--shell", "bash"], "echo hi | tee >(cat > copy)");
    assert_eq!(done.code, Some(0));
    assert_eq!(
        std::fs::read_to_string(home.base().join("copy")).unwrap(),
        "hi\n"
    );
}

#[test]
fn a_background_run_answers_at_once_and_is_followed_to_its_end() {
    let home = Home::new();
    home.run(&[], "true");
    let done = home.run(&["--bg", "-q"], "sleep 0.3; echo ok; exit 4");
    assert_eq!(done.code, Some(0));
    let id = done.out.trim();
    let followed = home.call(&["output", id, "--follow"]);
    assert_eq!(followed.out, "ok\n");
    eventually("recorded", || home.show(id)["state"] == "failed");
    assert_eq!(home.show(id)["exit_code"], 4);
}

#[test]
fn waiting_no_longer_leaves_it_running() {
    let home = Home::new();
    let done = home.run(&["--wait", "200ms"], "echo a; sleep 1; echo b");
    assert_eq!((done.code, done.out.as_str()), (Some(75), "a\n"));
    assert!(done.err.contains("● running"), "{done:?}");
    let done = home.call(&["output", "@last", "--follow"]);
    assert_eq!(done.out, "a\nb\n");
}

#[test]
fn input_is_what_was_piped_in() {
    let home = Home::new();
    let mut child = home
        .weighlock(&["run", "-q", "--", "cat; echo end"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let big = "0123456789".repeat(100_000);
    let text = big.clone();
    let feeding = std::thread::spawn(move || stdin.write_all(text.as_bytes()).unwrap());
    let done = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    assert_eq!(
        String::from_utf8(done.stdout).unwrap(),
        format!("{big}end\n")
    );
}

#[test]
fn a_silent_pipe_does_not_hang_the_command() {
    let home = Home::new();
    let mut child = home
        .weighlock(&["run", "--", "cat; echo rc=$?"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let held_open = child.stdin.take();
    let done = child.wait_with_output().unwrap();
    drop(held_open);
    assert_eq!(done.stdout, b"rc=0\n");
    assert!(String::from_utf8_lossy(&done.stderr).contains("--stdin"));
}

#[test]
fn a_slow_neighbour_in_a_pipeline_is_waited_for() {
    let home = Home::new();
    let weighlock = env!("CARGO_BIN_EXE_weighlock");
    let done = home
        .weighlock_through(
            &[
                "sh",
                "-c",
                &format!("(sleep 0.5; echo late) | {weighlock} run -q -- cat"),
            ],
            &["x"],
        )
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "late\n", "{done:?}");
}

#[test]
fn a_reader_that_goes_away_ends_the_command() {
    let home = Home::new();
    let weighlock = env!("CARGO_BIN_EXE_weighlock");
    let script = format!(
        "{weighlock} run -q --env WL_MARK={} -- yes | head -1",
        home.mark
    );
    let done = home
        .weighlock_through(&["sh", "-c", &script], &["x"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "y\n");
    home.assert_gone();
    assert_eq!(home.show("@last")["state"], "killed");
    let script = format!("{weighlock} show @last | head -1");
    let done = home
        .weighlock_through(&["sh", "-c", &script], &["x"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
}

#[test]
fn a_mistyped_option_is_not_run() {
    let home = Home::new();
    let done = home.call(&["run", "--timout", "5s", "--", "true"]);
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("--timeout"), "{done:?}");
    assert!(!home.state().exists());
}

#[test]
fn a_background_run_has_the_longest_limit() {
    let home = Home::new();
    let begun = home.result(&["--bg"], "true");
    assert_eq!(begun["timeout_ms"], 24 * 3600 * 1000);
    let begun = home.result(&["--bg", "--timeout", "5s"], "true");
    assert_eq!(begun["timeout_ms"], 5000);
}

#[test]
fn a_file_on_stdin_is_passed_on() {
    let home = Home::new();
    let path = home.base().join("in");
    std::fs::write(&path, "one\ntwo\n").unwrap();
    let done = home
        .weighlock(&["run", "-q", "--", "wc -l"])
        .stdin(std::fs::File::open(path).unwrap())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "2");
}

#[test]
fn the_path_is_that_of_the_login_shell() {
    let home = Home::new();
    let profile = "PATH=/my/bin:$PATH; alias ls=eza; cd() { z; }; sleep 1000 & echo hello";
    home.write_profile(profile);
    // The first command starts the server, with this shell.
    let mut first = home.weighlock(&["run", "--", "type ls cd; echo $PATH"]);
    let said = first.env("SHELL", "/bin/bash").output().unwrap().stdout;
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("\n/my/bin:/"), "{said}");
    assert!(
        !said.contains("eza") && !said.contains("function"),
        "{said}"
    );
    let doctor = home.call(&["doctor"]).out;
    assert!(doctor.contains("asked of /bin/bash"), "{doctor}");
}

#[test]
fn a_login_shell_that_hangs_costs_five_seconds_once() {
    let home = Home::new();
    home.write_profile("echo asked >> ~/asked; sleep 1000");
    let mut first = home.weighlock(&["run", "--", "echo $PATH"]);
    let said = first.env("SHELL", "/bin/bash").output().unwrap();
    let own = std::env::var("PATH").unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap().trim(), own);
    assert_eq!(home.run(&[], "true").code, Some(0));
    let asked = std::fs::read_to_string(home.around().join("home/asked"));
    assert_eq!(asked.unwrap(), "asked\n", "once, and not again");
    let doctor = home.call(&["doctor"]).out;
    assert!(doctor.contains("! path"), "{doctor}");
    assert!(doctor.contains("did not answer within 5 s"), "{doctor}");
}

#[test]
fn the_environment_is_a_short_list() {
    let home = Home::new();
    let done = home
        .weighlock(&["run", "-q", "--env", "ADDED=1", "--", "env"])
        .env("AWS_SECRET_ACCESS_KEY", "s3cr3t")
        .env("LANG", "C.UTF-8")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(!out.contains("s3cr3t"), "{out}");
    for line in [
        "ADDED=1",
        "LANG=C.UTF-8",
        "GIT_TERMINAL_PROMPT=0",
        "PAGER=cat",
        "CI=1",
    ] {
        assert!(out.lines().any(|found| found == line), "{line} in {out}");
    }
    let record = std::fs::read_dir(home.state()).unwrap();
    for file in record.filter_map(|entry| std::fs::read(entry.ok()?.path()).ok()) {
        assert!(!file.windows(6).any(|six| six == b"s3cr3t"));
    }
}

#[test]
fn tools_that_would_ask_a_person_fail_instead() {
    let home = Home::new();
    let done = home.run(&["-q"], "tty; read x < /dev/tty; echo $?");
    assert!(done.out.starts_with("not a tty"), "{done:?}");
    assert!(!done.out.contains("\n0\n"), "{done:?}");
}

#[test]
fn a_pipeline_tells_the_codes_of_its_parts() {
    let home = Home::new();
    let codes = |command: &str| home.result(&["--shell", "bash"], command)["pipestatus"].clone();
    assert_eq!(codes("(exit 3) | cat | (exit 4)"), json!([3, 0, 4]));
    assert_eq!(codes("seq 1 100000 | head -1"), json!([141, 0]));
    assert_eq!(codes("true | true; true"), json!(null));
    // What the command does with its own exit trap is its business.
    let own = home.result(&["--shell", "bash"], "trap 'echo bye' EXIT; false | true");
    assert_eq!(
        (&own["stdout"], &own["pipestatus"]),
        (&json!("bye\n"), &json!(null))
    );
    let child = home.result(
        &["--shell", "bash"],
        "true | bash -c 'echo ${BASH_ENV-unset}'",
    );
    assert_eq!(child["stdout"], "unset\n");
}

#[test]
fn ctrl_c_is_polite_first() {
    let home = Home::new();
    home.run(&[], "true");
    let (mut child, mut stdout) = ready(
        &home,
        "trap 'echo cleaned; exit 5' INT; echo ready; sleep 9 & wait",
    );
    signal(child.id(), "INT");
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(
        (rest.as_str(), child.wait().unwrap().code()),
        ("cleaned\n", Some(5))
    );
    assert_eq!(home.show("@last")["state"], "killed");
}

#[test]
fn a_second_ctrl_c_forces() {
    let home = Home::new();
    home.run(&[], "true");
    let (mut child, mut stdout) = ready(
        &home,
        "trap 'echo no' INT TERM; echo ready; while :; do sleep 9; done",
    );
    signal(child.id(), "INT");
    let mut no = [0; 3];
    stdout.read_exact(&mut no).unwrap();
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(128 + 9));
    home.assert_gone();
}

#[test]
fn ctrl_c_works_while_nobody_reads_the_output() {
    let home = Home::new();
    home.run(&[], "true");
    let mut child = home
        .weighlock(&[
            "run",
            "-q",
            "--env",
            &format!("WL_MARK={}", home.mark),
            "--",
            "yes",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let unread = child.stdout.take();
    eventually("it runs", || !home.processes().is_empty());
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(128 + 2));
    drop(unread);
    assert!(home.processes().is_empty());
}

#[test]
fn too_much_time_is_lowered_and_said() {
    let home = Home::new();
    let _server = home.serve_with("preset = \"blacklist\"\n");
    let result = home.result(&["--timeout", "1h"], "true");
    assert_eq!(result["timeout_ms"], 60_000);
    assert!(
        result["warnings"][0]
            .as_str()
            .unwrap()
            .contains("maximum of 60 s")
    );
    assert_eq!(home.result(&[], "true")["timeout_ms"], 60_000);
}

#[test]
fn the_time_limit_says_which_and_keeps_the_output() {
    let home = Home::new();
    let result = home.result(&["--timeout", "300ms"], "echo a; sleep 9");
    assert_eq!(
        (&result["state"], &result["stdout"]),
        (&json!("timed_out"), &json!("a\n"))
    );
    let reason = result["reason"]["text"].as_str().unwrap();
    assert!(
        reason.starts_with("Stopped after 0.3 s (limit)."),
        "{reason}"
    );
    let result = home.result(
        &["--idle", "200ms"],
        "for i in 1 2 3 4; do echo $i; sleep 0.1; done; sleep 9",
    );
    assert_eq!(result["stdout"], "1\n2\n3\n4\n");
    assert_eq!(result["reason"]["code"], "idle_limit");
}

#[test]
fn usage_and_walls_are_reported() {
    let home = Home::new();
    let result = home.result(&[], "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
    assert!(
        result["usage"]["cpu_ms"].as_f64().unwrap() > 1.0,
        "{result}"
    );
    assert!(
        result["usage"]["peak_memory_bytes"].as_u64().unwrap() > 100_000,
        "{result}"
    );
    assert_eq!(result["sandbox"]["level"], "full");
    // When memory runs out, a command goes before the server does.
    let score = home.run(&["-q"], "cat /proc/self/oom_score_adj");
    assert_eq!(score.out, "500\n");
    // Only its own processes are there to be seen.
    let seen = home.run(&["-q"], "ls /proc | grep -c '^[0-9]'");
    assert!(seen.out.trim().parse::<u32>().unwrap() < 8, "{seen:?}");
}

/// Starts a command and waits until it says `ready`.
fn ready(home: &Home, command: &str) -> (Child, ChildStdout) {
    let mut child = home
        .weighlock(&["run", "-q", "--", command])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut said = [0; 6];
    stdout.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"ready\n");
    (child, stdout)
}
