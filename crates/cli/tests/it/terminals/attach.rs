//! A person at a terminal of an agent: `weighlock term attach` on a real
//! terminal.

use std::fs;

use serde_json::json;
use weighlock_screen::{Screen, Size};

use super::{Desk, have};
use crate::crew::text;
use crate::support::{eventually, signal};
use crate::tty::Tty;

/// Ctrl ], by which one speaks to us and not to the program.
const OURS: &str = "\x1d";

/// What is said to whoever watches, and to whoever types.
const WATCHING: &str = "You are watching.";
const TYPING: &str = "you are typing — Ctrl ] hands back";

/// The person's window, which has our own line at its bottom.
const COLUMNS: u16 = 80;
const ROWS: u16 = 50;

/// The size that a terminal has which nobody has given one.
const USUAL: (u64, u64) = (80, 24);

impl Desk {
    fn attach(&self, name: &str, options: &[&str]) -> Tty {
        let args = [&["term", "attach", name], options].concat();
        Tty::start_in(COLUMNS, self.home.weighlock(&args))
    }

    /// What is said about who types.
    fn said(&self, name: &str) -> String {
        let control = &self.told(name)["control"];
        control["text"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until nobody has the keyboard.
    #[track_caller]
    fn is_back(&self, name: &str) {
        eventually("the keyboard is back", || {
            self.told(name)["control"]["taken_by"].is_null()
        });
    }
}

/// What a person sees in a window of some size.
fn rows_in(tty: &Tty, columns: u16, rows: u16) -> Vec<String> {
    let mut screen = Screen::new(Size::new(columns, rows).unwrap(), 0);
    let _ = screen.feed(&tty.bytes());
    screen.view().rows
}

fn rows(tty: &Tty) -> Vec<String> {
    rows_in(tty, COLUMNS, ROWS)
}

#[track_caller]
fn sees(tty: &Tty, what: &str) {
    let mut last = vec![];
    let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        eventually(what, || {
            last = rows(tty);
            last.iter().any(|row| row.contains(what))
        });
    }));
    assert!(seen.is_ok(), "no `{what}` in\n{}", last.join("\n"));
}

/// It has ended, and left the person's terminal as it was.
#[track_caller]
fn assert_left(tty: &mut Tty, code: i32, saying: &str) {
    assert_eq!(tty.end(), Some(code), "{}", tty.screen());
    assert!(tty.is_usual());
    eventually("the screen that was there is back", || {
        let all = tty.screen();
        let left = all.rsplit_once("\x1b[0m\x1b[?1l\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[?1049l");
        left.is_some_and(|(_, after)| after.contains(saying) && !after.contains('\x1b'))
    });
    assert_eq!(tty.screen().matches("\x1b[?1049h").count(), 1);
}

#[test]
fn watching_follows_a_terminal_and_never_changes_it() {
    let desk = Desk::new();
    desk.open_shell("shell");
    desk.enter("shell", "echo before $((40 + 2))");
    desk.sees("shell", "before 42");
    let mut tty = desk.attach("shell", &[]);
    sees(&tty, "before 42");
    sees(&tty, WATCHING);
    assert!(!tty.is_usual());
    desk.enter("shell", "echo after $((40 + 3))");
    sees(&tty, "after 43");
    assert_eq!(desk.size("shell"), USUAL);
    // These keys mean nothing to us, and the program never hears of them.
    tty.send("xyz\r\x1b[A");
    tty.send("t");
    sees(&tty, TYPING);
    tty.send("echo $((6 * 7)) typed\r");
    sees(&tty, "42 typed");
    assert!(!desk.rows("shell").contains("xyz"));
    tty.send(OURS);
    tty.send("d");
    assert_left(&mut tty, 0, "shell continues. weighlock term attach shell");
    desk.is_back("shell");
}

#[test]
fn typing_has_the_persons_size_and_hands_back_what_was() {
    let desk = Desk::new();
    desk.open_shell("shell");
    let mut tty = desk.attach("shell", &["--take"]);
    sees(&tty, TYPING);
    // In violet.
    assert!(tty.screen().contains("48;5;55m"));
    let me = desk.home.me();
    assert_eq!(desk.told("shell")["control"]["taken_by"], me.as_str());
    assert_eq!(desk.size("shell"), (80, 49));
    tty.send("stty size\r");
    sees(&tty, "49 80");
    tty.resize(30, 100);
    eventually("the new size", || desk.size("shell") == (100, 29));
    tty.send("stty size\r");
    desk.sees("shell", "29 100");
    eventually("the line is at the new bottom", || {
        rows_in(&tty, 100, 30)[29].starts_with(TYPING)
    });
    tty.send(OURS);
    desk.is_back("shell");
    assert_eq!(desk.size("shell"), USUAL);
    assert_eq!(desk.said("shell"), format!("{me} handed back."));
    eventually("watching again", || {
        rows_in(&tty, 100, 30)[29].starts_with(WATCHING)
    });
    desk.enter("shell", "stty size");
    desk.sees("shell", "24 80");
    tty.send("q");
    assert_left(&mut tty, 0, "shell goes on.");
}

#[test]
fn keys_that_come_before_the_keyboard_does_are_for_the_program() {
    let desk = Desk::new();
    desk.open("cat", "cat");
    let mut tty = desk.attach("cat", &["--take"]);
    tty.expect("\x1b[?1049h");
    // Each of the letters would mean something to one who watches.
    tty.send("qt\r");
    desk.sees("cat", "qt\nqt");
    tty.send("more\r");
    desk.sees("cat", "more\nmore");
    tty.send(OURS);
    tty.send("d");
    assert_left(&mut tty, 0, "cat goes on.");
    desk.is_back("cat");
    assert_eq!(desk.size("cat"), USUAL);
}

#[test]
fn a_note_goes_to_whoever_types_next() {
    let desk = Desk::new();
    desk.open("cat", "cat");
    let me = desk.home.me();
    let mut tty = desk.attach("cat", &["--take"]);
    sees(&tty, TYPING);
    tty.send(OURS);
    sees(&tty, "n adds a note · d detaches");
    tty.send("n");
    sees(&tty, "note: ");
    // Taken back: it goes on typing.
    tty.send("never mind");
    tty.send("\x1b");
    sees(&tty, TYPING);
    tty.send("typed\r");
    desk.sees("cat", "typed\ntyped");
    tty.send(&format!("{OURS}n"));
    sees(&tty, "note: ");
    // With letters of all kinds, and keys that move about.
    tty.send("Ich bin drin, grüße 漢x");
    tty.send("\x1b[D");
    tty.send("\x1b[C");
    tty.send("\x7f");
    sees(&tty, "note: Ich bin drin, grüße 漢");
    tty.send("\r");
    desk.is_back("cat");
    let wanted = format!("{me} handed back: ‘Ich bin drin, grüße 漢’");
    assert_eq!(desk.said("cat"), wanted);
    sees(&tty, WATCHING);
    assert_eq!(desk.rows("cat").trim_end(), "typed\ntyped");
    tty.send("\x03");
    assert_left(&mut tty, 0, "cat goes on.");
}

#[test]
fn our_own_key_can_be_typed_too() {
    let desk = Desk::new();
    let command = "stty raw -echo; echo ready; dd bs=1 count=3 2>/dev/null | od -An -tx1";
    desk.open("bytes", command);
    desk.sees("bytes", "ready");
    let mut tty = desk.attach("bytes", &["--take"]);
    sees(&tty, TYPING);
    tty.send(&format!("a{OURS}{OURS}b"));
    eventually("it has ended", || tty.screen().contains("has ended"));
    sees(&tty, "bytes has ended (exit 0).");
    assert_left(&mut tty, 0, "bytes has ended (exit 0).");
    let said = desk.coder().get("/commands?limit=1").expect(200);
    let id = said["commands"][0]["command_id"].as_str().expect("an id");
    let output = String::from_utf8(desk.home.output(id)).unwrap();
    assert!(output.contains("61 1d 62"), "{output}");
}

#[test]
fn the_end_of_a_terminal_is_the_end_of_watching_it() {
    let desk = Desk::new();
    for (command, options, how) in [
        ("read line; exit 3", &[][..], "exit 3"),
        ("read line; kill -9 $$", &["--take"][..], "signal 9"),
    ] {
        let opened = desk.open("short", command);
        let mut tty = desk.attach("short", options);
        match options {
            [] => sees(&tty, WATCHING),
            _ => sees(&tty, TYPING),
        }
        match options {
            [] => desk.enter("short", ""),
            _ => tty.send("\r"),
        }
        assert_left(&mut tty, 0, &format!("short has ended ({how})."));
        desk.ended(&opened);
    }
}

#[test]
fn a_server_that_dies_is_a_clear_error() {
    for options in [&[][..], &["--take"]] {
        let mut desk = Desk::new();
        desk.open("cat", "cat");
        let mut tty = desk.attach("cat", options);
        sees(&tty, if options.is_empty() { WATCHING } else { TYPING });
        desk.kill();
        assert_left(&mut tty, 1, "error: the connection to the server broke");
        tty.expect("the terminal goes on");
        // And it does; nobody has its keyboard any more.
        desk.serve();
        desk.enter("cat", "still there");
        desk.sees("cat", "still there\nstill there");
        assert_eq!(desk.size("cat"), USUAL);
    }
}

#[test]
fn whatever_ends_it_restores_the_terminal_and_hands_back() {
    let desk = Desk::new();
    desk.open("cat", "cat");
    for name in ["TERM", "HUP", "INT", "QUIT"] {
        for options in [&[][..], &["--take"]] {
            let mut tty = desk.attach("cat", options);
            sees(&tty, if options.is_empty() { WATCHING } else { TYPING });
            signal(tty.pid(), name);
            assert_left(&mut tty, 0, "cat goes on.");
            // Not after a while: at once, before it has ended.
            assert!(desk.told("cat")["control"]["taken_by"].is_null());
            assert_eq!(desk.size("cat"), USUAL);
        }
    }
}

#[test]
fn one_that_is_stopped_leaves_the_terminal_as_it_was_and_goes_on_later() {
    let desk = Desk::new();
    desk.open("cat", "cat");
    let mut tty = desk.attach("cat", &["--take"]);
    sees(&tty, TYPING);
    signal(tty.pid(), "TSTP");
    eventually("usual", || tty.is_usual());
    eventually("stopped", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", tty.pid())).unwrap();
        stat.contains(") T ")
    });
    signal(tty.pid(), "CONT");
    eventually("raw again", || !tty.is_usual());
    tty.send("on again\r");
    desk.sees("cat", "on again");
    signal(tty.pid(), "TERM");
    assert_eq!(tty.end(), Some(0), "{}", tty.screen());
    assert!(tty.is_usual());
}

#[test]
fn without_a_terminal_it_says_what_to_do_instead() {
    let desk = Desk::new();
    desk.open("cat", "cat");
    let done = desk.home.call(&["term", "attach", "cat"]);
    assert_eq!((done.code, done.out.as_str()), (Some(1), ""), "{done:?}");
    assert!(
        done.err.contains("hint: `weighlock term screen NAME`"),
        "{done:?}"
    );
    let mut tty = desk.attach("no-such", &[]);
    assert_eq!(tty.end(), Some(1));
    tty.expect("no terminal `no-such`");
    assert!(!tty.screen().contains('\x1b'), "{:?}", tty.screen());
    // Drawn into a file, it would be no use to anybody.
    let words = ["-c", "exec \"$@\" > drawn", "sh"];
    let command = desk
        .home
        .weighlock_through(&[&["sh"], &words[..]].concat(), &["term", "attach", "cat"]);
    let mut tty = Tty::start(command);
    assert_eq!(tty.end(), Some(1));
    assert_eq!(
        fs::read(desk.home.base().join("drawn")).unwrap(),
        b"",
        "nothing was drawn"
    );
}

#[test]
fn no_byte_of_a_program_reaches_the_persons_terminal_as_it_is() {
    let desk = Desk::new();
    let hostile = "\\033]0;evil title\\007\\033]52;c;ZXZpbA==\\007\\033[c\\033[6n\\033[?1003h\
                   \\033[?1006h\\033P$q q\\033\\\\\\033[?1049h\\033[31mred\\033[m \\033[5i\
                   \\033]8;;http://evil\\007link\\033]8;;\\007\\033[?1049l\\033c\\033[21tshown";
    desk.open("evil", &format!("printf '{hostile}'; cat"));
    desk.sees("evil", "shown");
    let mut tty = desk.attach("evil", &["--take"]);
    sees(&tty, "shown");
    sees(&tty, TYPING);
    // Live, too, and what the person types is not mixed with answers.
    desk.open("live", &format!("read line; printf '{hostile} live'; cat"));
    let mut live = desk.attach("live", &["--take"]);
    sees(&live, TYPING);
    live.send("\r");
    sees(&live, "shown live");
    for (tty, name) in [(&mut tty, "evil"), (&mut live, "live")] {
        tty.send(&format!("{OURS}d"));
        assert_left(tty, 0, &format!("{name} goes on."));
        assert_only_ours(&tty.screen());
        for hostile in ["evil title", "ZXZp", "http://"] {
            assert!(!tty.screen().contains(hostile), "{hostile:?}");
        }
    }
}

/// Only sequences that we have chosen, each of which is understood by every
/// terminal and answered by none.
#[track_caller]
fn assert_only_ours(drawn: &str) {
    let mut rest = drawn;
    while let Some((before, after)) = rest.split_once('\x1b') {
        let odd = |char: char| char.is_control() && !matches!(char, '\n' | '\r');
        assert!(!before.contains(odd), "{before:?}");
        let after = after.strip_prefix('[').unwrap_or_else(|| {
            panic!("not one of ours: {:?}", &after[..after.len().min(9)]);
        });
        let end = after.find(|char: char| char.is_ascii_alphabetic());
        let end = end.expect("an end");
        let (parameters, kind) = (&after[..end], &after[end..=end]);
        let known = match kind {
            "H" | "K" | "m" | "C" => parameters
                .chars()
                .all(|char| char.is_ascii_digit() || char == ';'),
            "J" => parameters == "2",
            "h" | "l" => ["?1049", "?25", "?7", "?2026", "?1", "?2004"].contains(&parameters),
            _ => false,
        };
        assert!(known, "not one of ours: {parameters}{kind}");
        rest = &after[end + 1..];
    }
}

/// What is drawn is what the terminal shows, as long as it does not change.
#[track_caller]
fn assert_same(desk: &Desk, name: &str, tty: &Tty) {
    let mut both = (vec![], vec![]);
    let same = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        eventually("the same", || {
            let shown = desk.rows(name);
            let shown: Vec<String> = shown.split('\n').map(str::to_owned).collect();
            let mut drawn = rows(tty);
            drawn.truncate(shown.len());
            both = (drawn, shown);
            both.0 == both.1
        });
    }));
    let ((drawn, shown), end) = (both, "\n—\n");
    assert!(
        same.is_ok(),
        "{}{end}{}",
        drawn.join("\n"),
        shown.join("\n")
    );
}

#[test]
fn a_full_screen_program_looks_right() {
    if !have(&["vim"]) {
        return;
    }
    let desk = Desk::new();
    let lines: String = (1..=200)
        .map(|n| format!("line {n} — ünïcode 漢字\n"))
        .collect();
    fs::write(desk.home.base().join("long.txt"), lines).unwrap();
    let opened = desk.open(
        "editor",
        "vim -u NONE -N --cmd 'set encoding=utf-8' long.txt",
    );
    desk.sees("editor", "line 23");
    let mut tty = desk.attach("editor", &[]);
    sees(&tty, "line 23");
    assert_same(&desk, "editor", &tty);
    desk.send("editor", json!({ "text": ":set number\n50Gdd" }));
    desk.sees("editor", "51 — ünïcode 漢字");
    assert_same(&desk, "editor", &tty);
    tty.send("t");
    sees(&tty, TYPING);
    eventually("it has drawn itself anew", || {
        desk.rows("editor").contains(" 73 ")
    });
    assert_same(&desk, "editor", &tty);
    // Arrow keys come as the program wants them.
    tty.send("gg\x1bOB\x1bOBiover \x1b");
    desk.sees("editor", "  3 over line 3");
    assert_same(&desk, "editor", &tty);
    tty.send(":vsplit\r");
    desk.shows("editor", "two windows", |rows| {
        rows.matches("line 7 ").count() == 2
    });
    assert_same(&desk, "editor", &tty);
    tty.send(":qa!\r");
    assert_left(&mut tty, 0, "editor has ended (exit 0).");
    desk.ended(&opened);
}

#[test]
fn a_shell_with_a_past_grows_and_shrinks_as_it_does_for_the_server() {
    let desk = Desk::new();
    desk.open_shell("shell");
    desk.enter("shell", "seq 1 90");
    desk.sees("shell", "\n90\n>");
    let mut tty = desk.attach("shell", &[]);
    sees(&tty, "90");
    assert_same(&desk, "shell", &tty);
    for _ in 0..3 {
        tty.send("t");
        sees(&tty, TYPING);
        sees(&tty, "50");
        assert_same(&desk, "shell", &tty);
        tty.send(&format!("{OURS}x"));
        sees(&tty, WATCHING);
        eventually("it is small again", || desk.size("shell") == USUAL);
        assert_same(&desk, "shell", &tty);
    }
    tty.send("q");
    assert_left(&mut tty, 0, "shell goes on.");
}

#[test]
fn a_flood_is_watched_and_left_at_any_time() {
    let desk = Desk::new();
    let flood = desk.open("flood", "yes a line that says nothing new");
    let mut tty = desk.attach("flood", &[]);
    sees(&tty, "a line that says nothing new");
    tty.send("t");
    sees(&tty, TYPING);
    tty.send(&format!("{OURS}d"));
    assert_left(&mut tty, 0, "flood goes on.");
    assert_only_ours(&tty.screen());
    desk.is_back("flood");
    desk.close("flood");
    desk.ended(&flood);
}

#[test]
fn one_that_waits_for_a_person_is_not_there_yet() {
    let desk = Desk::at(
        crate::support::Home::strict(),
        "[environment]\nlogin_path = false\n",
        json!({}),
    );
    let body = json!({ "name": "later", "description": "for a test",
                       "command": "rm -r build; sh", "session_id": "all" });
    let opened = desk.coder().post("/terminals", &body).expect(202);
    assert_eq!(text(&opened, "status"), "waiting", "{opened}");
    let mut tty = desk.attach("later", &[]);
    assert_eq!(tty.end(), Some(1));
    tty.expect("later waits for approval");
    assert!(tty.is_usual());
}
