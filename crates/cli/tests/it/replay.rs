//! Recordings, played on a terminal and told without one.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use weighlock_marks::{Header, Recorder, Size};
use weighlock_screen::Screen;

use crate::support::{Home, eventually, signal};
use crate::tty::Tty;

/// Writes a recording of two commands: five minutes, most of it a pause.
fn story(home: &Home) -> PathBuf {
    let path = home.base().join("story.cast");
    let header = Header {
        size: Size {
            width: 40,
            height: 10,
        },
        timestamp: None,
        title: None,
        env: BTreeMap::new(),
    };
    let at = Duration::from_millis;
    let mut recorder = Recorder::create(&path, &header).unwrap();
    recorder.output(at(100), b"$ npm test\r\n").unwrap();
    recorder.marker(at(200), "$ npm test").unwrap();
    recorder
        .output(at(300), b"\x1b[32m3 passed\x1b[m\r\n")
        .unwrap();
    recorder.output(at(300_000), b"$ git push\r\n").unwrap();
    recorder.marker(at(300_100), "$ git push").unwrap();
    recorder.output(at(300_200), b"pushed\r\n").unwrap();
    recorder.finish().unwrap();
    path
}

/// A recording as it is written by hand.
fn by_hand(home: &Home, size: &str, events: &[&str]) -> PathBuf {
    let path = home.base().join("hand.cast");
    let lines: String = events.iter().map(|event| format!("[{event}]\n")).collect();
    fs::write(&path, format!("{{\"version\":2,{size}}}\n{lines}")).unwrap();
    path
}

fn play(home: &Home, path: &Path, options: &[&str]) -> Tty {
    let mut args = vec!["replay", path.to_str().unwrap()];
    args.extend(options);
    Tty::start(home.weighlock(&args))
}

/// What a person sees: rows that are not blank, the last of which is ours.
fn rows(tty: &Tty) -> Vec<String> {
    let size = weighlock_screen::Size::new(80, 50).unwrap();
    let mut screen = Screen::new(size, 0);
    let _ = screen.feed(&tty.bytes());
    let mut rows = screen.view().rows;
    rows.retain(|row| !row.is_empty());
    rows
}

#[track_caller]
fn sees(tty: &Tty, what: &str) {
    let sees = || rows(tty).iter().any(|row| row.contains(what));
    eventually(&format!("{what} in {:?}", rows(tty)), sees);
}

#[track_caller]
fn assert_left(tty: &mut Tty, code: i32) {
    assert_eq!(tty.end(), Some(code));
    assert!(tty.is_usual());
    eventually("the screen that was there is back", || {
        tty.screen().contains("\x1b[?7h\x1b[?25h\x1b[?1049l")
    });
}

#[test]
fn it_plays_without_long_pauses_and_waits_at_the_end() {
    let home = Home::new();
    let mut tty = play(&home, &story(&home), &["--idle", "200ms"]);
    sees(&tty, "end 5:00 / 5:00 · 1×");
    assert_eq!(
        rows(&tty)[..4],
        ["$ npm test", "3 passed", "$ git push", "pushed"]
    );
    assert!(!tty.is_usual());
    tty.press("q");
    assert_left(&mut tty, 0);
}

#[test]
fn keys_pause_it_and_lead_anywhere() {
    let home = Home::new();
    let mut tty = play(&home, &story(&home), &["--idle", "off"]);
    sees(&tty, "3 passed");
    tty.send(" ");
    sees(&tty, "paused 0:0");
    tty.send(">");
    sees(&tty, "· 2× ·");
    tty.send("]");
    sees(&tty, "5:00 $ git push");
    sees(&tty, "3 passed");
    tty.send("\x1b[D");
    sees(&tty, "paused 4:55 / 5:00 · 2× · next 5:00 $ git push");
    assert!(!rows(&tty).contains(&"$ git push".to_owned()));
    tty.send("[");
    sees(&tty, "0:00 $ npm test");
    tty.send("g");
    sees(&tty, "go to");
    tty.send("5:00\r");
    sees(&tty, "paused 5:00");
    assert!(rows(&tty).contains(&"$ git push".to_owned()));
    tty.send("q");
    assert_left(&mut tty, 0);
}

#[test]
fn text_is_found_and_its_times_are_listed() {
    let home = Home::new();
    let mut tty = play(&home, &story(&home), &["--at", "4:00", "--idle", "off"]);
    sees(&tty, "playing 4:0");
    tty.send("/PASS\r");
    sees(&tty, "0:00 1 of 1 for “PASS”: 3 passed");
    assert_eq!(rows(&tty)[..2], ["$ npm test", "3 passed"]);
    tty.send("/");
    tty.send("$\r");
    sees(&tty, "4 found");
    sees(&tty, "5:00  $ git push");
    tty.send("\x1b");
    sees(&tty, "paused 0:00");
    tty.send("/nothing of the kind\r");
    sees(&tty, "“nothing of the kind” is not in it");
    tty.send("\x03");
    assert_left(&mut tty, 0);
}

#[test]
fn whatever_ends_it_leaves_the_terminal_as_it_was() {
    let home = Home::new();
    let path = story(&home);
    for name in ["TERM", "HUP", "INT"] {
        let mut tty = play(&home, &path, &["--idle", "off"]);
        sees(&tty, "playing 0:0");
        signal(tty.pid(), name);
        assert_left(&mut tty, 0);
    }
    // A file that changes under it is an error in the midst of playing.
    let mut tty = play(&home, &path, &["--idle", "off"]);
    sees(&tty, "3 passed");
    let length = fs::metadata(&path).unwrap().len() as usize;
    fs::write(&path, "garbage\n".repeat(length / 8)).unwrap();
    tty.send("\x1b[H");
    assert_left(&mut tty, 1);
    eventually("it says why", || {
        tty.screen().contains("error: cannot understand line")
    });
}

#[test]
fn what_is_larger_than_the_window_is_scrolled() {
    let home = Home::new();
    let text = (1..60)
        .map(|row| format!("row {row}\\r\\n"))
        .collect::<String>();
    let event = format!(r#"0, "o", "{text}""#);
    let size = r#""width":120,"height":70"#;
    let mut tty = play(
        &home,
        &by_hand(&home, size, &[&event, r#"9, "m", "end""#]),
        &["--at", "9"],
    );
    sees(&tty, "120×70 is larger than this window");
    sees(&tty, "row 59");
    assert!(!rows(&tty).contains(&"row 1".to_owned()));
    tty.send("\x1b[5~");
    sees(&tty, "row 1");
    tty.send("j");
    eventually("it moves", || !rows(&tty).contains(&"row 1".to_owned()));
    tty.send("c");
    sees(&tty, "row 59");
    let before = tty.bytes().len();
    tty.resize(10, 60);
    eventually("it is drawn anew", || {
        String::from_utf8_lossy(&tty.bytes()[before..]).contains("\x1b[10;1H")
    });
    tty.send("q");
    assert_left(&mut tty, 0);
}

#[test]
fn no_byte_of_a_recording_reaches_the_terminal_as_it_is() {
    let home = Home::new();
    let events = [
        r#"0, "o", "\u001b]0;evil\u0007\u001b]52;c;ZXZpbA==\u0007\u001b[6n\u001b[?1003h""#,
        r#"0, "o", "\u001b[?1049l\u001b[31mred\u202e\u001b[m\u001bP$q\u001b\\""#,
        r#"0, "m", "\u001b[2Jmark\u202e""#,
        r#"1, "m", "\u001b[3Jnext""#,
    ];
    let size = r#""width":30,"height":5"#;
    let mut tty = play(&home, &by_hand(&home, size, &events), &[]);
    sees(&tty, "red");
    tty.send(" ]");
    sees(&tty, "⟦U+001B⟧[3Jnext");
    tty.send("q");
    assert_left(&mut tty, 0);
    let all = tty.screen();
    for hostile in [
        "evil", "ZXZp", "[6n", "1003", "[31m", "\u{202e}", "\x1b[3J", "\x1bP",
    ] {
        assert!(!all.contains(hostile), "{hostile:?} in {all:?}");
    }
    assert_eq!(all.matches("\x1b[?1049l").count(), 1);
}

#[test]
fn without_a_terminal_it_says_which_flag_to_use() {
    let home = Home::new();
    let path = story(&home);
    let done = home.call(&["replay", path.to_str().unwrap()]);
    assert_eq!(done.code, Some(2));
    assert!(
        done.err.contains("--text") && done.err.contains("--export"),
        "{done:?}"
    );
    assert_eq!(done.out, "");
}

#[test]
fn a_transcript_has_a_time_for_every_line() {
    let home = Home::new();
    let path = story(&home);
    let path = path.to_str().unwrap();
    let expected = "    0:00  $ npm test
    0:00  ── $ npm test
    0:00  3 passed
    5:00  $ git push
    5:00  ── $ git push
    5:00  pushed
";
    let done = home.call(&["replay", path, "--text"]);
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), expected),
        "{done:?}"
    );
    let done = home.call(&["replay", path, "--text", "--at", "5:00"]);
    assert_eq!(done.out.lines().count(), 3, "{done:?}");
}

#[test]
fn an_export_is_the_same_and_replaces_nothing_unasked() {
    let home = Home::new();
    let path = story(&home);
    let (from, to) = (path.to_str().unwrap(), home.base().join("copy.cast"));
    let target = to.to_str().unwrap();
    let export =
        |options: &[&str]| home.call(&[&["replay", from, "--export", target], options].concat());
    assert_eq!(export(&[]).code, Some(0));
    assert_eq!(fs::read(&to).unwrap(), fs::read(&path).unwrap());
    fs::write(&to, "mine").unwrap();
    let done = export(&[]);
    assert_eq!(done.code, Some(1));
    assert!(done.err.contains("hint: --force replaces it"), "{done:?}");
    assert_eq!(fs::read(&to).unwrap(), b"mine");
    assert_eq!(export(&["--force"]).code, Some(0));
    assert_eq!(fs::read(&to).unwrap(), fs::read(&path).unwrap());
    // Onto itself, too.
    let done = home.call(&["replay", target, "--export", target, "--force"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(fs::read(&to).unwrap(), fs::read(&path).unwrap());
}

#[test]
fn what_has_no_end_is_no_recording() {
    let home = Home::new();
    let done = home.call(&["replay", "/dev/zero", "--text"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(
        done.err.contains("/dev/zero is not a recording"),
        "{done:?}"
    );
    let mut zeros = Command::new("cat")
        .arg("/dev/zero")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pipe = zeros.stdout.take().unwrap();
    let mut replay = home.weighlock(&["replay", "/dev/stdin", "--text"]);
    let done = replay.stdin(pipe).output().unwrap();
    zeros.kill().unwrap();
    zeros.wait().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("first line is too long"), "{said}");
}

#[test]
fn a_broken_file_is_a_clear_error() {
    let home = Home::new();
    let path = home.base().join("broken.cast");
    let fails = |text: &str, error: &str| {
        fs::write(&path, text).unwrap();
        let done = home.call(&["replay", path.to_str().unwrap(), "--text"]);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(
            done.err.contains(error) && done.err.contains("\nhint: "),
            "{done:?}"
        );
    };
    fails("", "is not a recording");
    fails("hello\n", "is not a recording");
    fails("{\"version\":9}\n", "version 9 is not understood");
    let header = "{\"version\":2,\"width\":80,\"height\":24}\n";
    fails(
        &format!("{header}[1, \"o\", \"a\"]\nwhat\n[2, \"o\", \"b\"]\n"),
        "line 3",
    );
    fs::remove_file(&path).unwrap();
    let done = home.call(&["replay", path.to_str().unwrap(), "--text"]);
    assert!(done.err.starts_with("error: cannot read "), "{done:?}");
    // The last line of a crash is no error.
    fs::write(&path, format!("{header}[1, \"o\", \"a\\r\\n\"]\n[2, \"o")).unwrap();
    let done = home.call(&["replay", path.to_str().unwrap(), "--text"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "    0:01  a\n"));
}

/// Answers each request with what is at its address, until the test is over.
fn serve(home: &Home, recording: PathBuf, at: &'static str) -> String {
    let socket = home.base().join("sock");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut request = String::new();
            while stream.read_line(&mut request).is_ok_and(|read| read > 0) {
                if !request.ends_with("\r\n\r\n") {
                    continue;
                }
                let is_there = request.starts_with(&format!("GET /agent/terminal{at} "));
                let (status, body) = match is_there {
                    true => ("200 OK", fs::read(&recording).unwrap()),
                    false => ("404 Not Found", NOT_THERE.into()),
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                stream.get_mut().write_all(head.as_bytes()).unwrap();
                stream.get_mut().write_all(&body).unwrap();
                request.clear();
            }
        }
    });
    socket.to_str().unwrap().to_owned()
}

const NOT_THERE: &str = r#"{"title":"Not Found","status":404,"code":"not_found",
    "detail":"nothing is there","hint":""}"#;

#[test]
fn a_server_is_asked_for_the_terminal_and_then_for_the_run() {
    for (at, what) in [
        ("/terminals/dev-server/recording", "dev-server"),
        ("/commands/r_abc/recording", "r_abc"),
    ] {
        let home = Home::new();
        let socket = serve(&home, story(&home), at);
        let done = home.call(&["--socket", &socket, "replay", what, "--text"]);
        assert!(done.out.contains("3 passed"), "{done:?}");
        let done = home.call(&["--socket", &socket, "replay", "other", "--text"]);
        assert_eq!(done.code, Some(1));
        assert!(
            done.err
                .starts_with("error: there is no recording of `other`"),
            "{done:?}"
        );
        let copy = home.base().join("copy.cast");
        let copy = copy.to_str().unwrap();
        let done = home.call(&["--socket", &socket, "replay", what, "--export", copy]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(fs::read(copy).unwrap(), fs::read(story_of(&home)).unwrap());
        let mut tty = Tty::start(home.weighlock(&["--socket", &socket, "replay", what]));
        sees(&tty, "3 passed");
        tty.send("q");
        assert_left(&mut tty, 0);
    }
}

fn story_of(home: &Home) -> PathBuf {
    home.base().join("story.cast")
}
