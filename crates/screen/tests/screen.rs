//! Answers, lines that were scrolled away, and what stays bounded.

use weighlock_screen::{Cursor, Screen, Size};

fn screen(columns: u16, rows: u16) -> Screen {
    let size = Size::new(columns, rows).expect("the tests use sizes that exist");
    Screen::new(size, 100)
}

fn fed(columns: u16, rows: u16, text: &str) -> Screen {
    let mut screen = screen(columns, rows);
    let _ = screen.feed(text.as_bytes());
    screen
}

#[test]
fn questions_are_answered() {
    for (question, answer) in [
        ("\x1b[c", "\x1b[?6c"),
        ("\x1b[>c", "\x1b[>0;2600;1c"),
        ("\x1b[5n", "\x1b[0n"),
        ("ab\r\nc\x1b[6n", "\x1b[2;2R"),
        ("\x1b[?2004$p", "\x1b[?2004;2$y"),
        ("\x1b[?2004h\x1b[?2004$p", "\x1b[?2004;1$y"),
        ("\x1b[?9999$p", "\x1b[?9999;0$y"),
        ("\x1b[18t", "\x1b[8;5;20t"),
        ("\x1b[14t", "\x1b[4;80;160t"),
        ("\x1b]11;?\x07", "\x1b]11;rgb:0000/0000/0000\x07"),
        ("\x1b]10;?\x1b\\", "\x1b]10;rgb:e5e5/e5e5/e5e5\x1b\\"),
        ("\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07"),
        ("\x1b]4;231;?\x07", "\x1b]4;231;rgb:ffff/ffff/ffff\x07"),
        (
            "\x1b]11;#102030\x07\x1b]11;?\x07",
            "\x1b]11;rgb:1010/2020/3030\x07",
        ),
    ] {
        let said = screen(20, 5).feed(question.as_bytes());
        assert_eq!(String::from_utf8(said).unwrap(), answer, "{question:?}");
    }
}

#[test]
fn the_clipboard_is_nobodys_business() {
    let mut screen = screen(20, 5);
    assert_eq!(screen.feed(b"\x1b]52;c;?\x07\x1b]52;c;aGVsbG8=\x07"), b"");
    assert_eq!(screen.feed(b"\x1b]52;c;?\x07"), b"");
}

#[test]
fn answers_stay_short_however_much_is_asked() {
    let said = screen(20, 5).feed("\x1b[c\x1b]4;1;?\x07".repeat(10_000).as_bytes());
    assert!(said.len() <= 4096);
}

#[test]
fn lines_are_found_again_as_they_were_written() {
    let screen = fed(6, 2, "one\r\na line of words\r\n漢字漢字漢\r\n\r\nlast\r\n");
    let lines = ["one", "a line of words", "漢字漢字漢", "", "last"];
    assert_eq!(screen.history(100), lines);
    assert_eq!(screen.history(2), ["", "last"]);
    assert_eq!(screen.history(0), [""; 0]);
    assert_eq!(fed(6, 2, "").history(5), [""; 0]);
}

#[test]
fn a_wide_character_that_did_not_fit_leaves_no_gap() {
    assert_eq!(fed(4, 3, "abc漢d").history(9), ["abc漢d"]);
    assert_eq!(fed(4, 3, "abc漢d").view().rows, ["abc", "漢d", ""]);
}

#[test]
fn scrollback_is_as_long_as_asked() {
    let mut screen = Screen::new(Size::new(20, 2).unwrap(), 5);
    for line in 0..100 {
        let _ = screen.feed(format!("{line}\r\n").as_bytes());
    }
    assert_eq!(screen.history(99), ["94", "95", "96", "97", "98", "99"]);
}

#[test]
fn a_snapshot_has_as_much_scrollback_as_asked() {
    let mut screen = fed(20, 2, "1\r\n2\r\n3\r\n4\r\n5");
    for (lines, expected) in [(0, &["4", "5"][..]), (2, &["2", "3", "4", "5"])] {
        let mut fresh = self::screen(20, 2);
        let _ = fresh.feed(&screen.snapshot(lines));
        assert_eq!(fresh.history(9), expected);
    }
}

#[test]
fn a_snapshot_knows_what_is_below_the_alternate_screen() {
    let mut screen = fed(20, 3, "before\r\n$ \x1b[31m\x1b[?1049h\x1b[2Jfull");
    let mut fresh = self::screen(20, 3);
    let _ = fresh.feed(&screen.snapshot(0));
    assert_eq!(fresh.view(), screen.view());
    for screen in [&mut fresh, &mut screen] {
        let _ = screen.feed(b"\x1b[?1049lend");
        assert_eq!(screen.view().rows, ["before", "$ end", ""]);
    }
    assert_eq!(fresh.snapshot(0), screen.snapshot(0));
}

#[test]
fn lines_are_broken_anew_when_the_size_changes() {
    let mut screen = fed(10, 3, "0123456789abc\r\n$ ");
    screen.resize(Size::new(5, 4).unwrap());
    assert_eq!(screen.view().rows, ["56789", "abc", "$", ""]);
    assert_eq!(screen.history(9), ["0123456789abc", "$"]);
    screen.resize(Size::new(20, 2).unwrap());
    assert_eq!(screen.view().rows, ["0123456789abc", "$"]);
    let cursor = Cursor {
        row: 1,
        column: 2,
        visible: true,
    };
    assert_eq!(screen.view().cursor, cursor);
}

#[test]
fn accents_do_not_pile_up() {
    let screen = fed(20, 2, &("a".to_owned() + &"\u{301}".repeat(100_000)));
    assert_eq!(screen.view().rows[0].chars().count(), 9);
}

#[test]
fn sizes_that_no_screen_has_are_refused() {
    for (columns, rows) in [(0, 5), (1, 5), (5, 0), (1001, 5), (5, 1001), (u16::MAX, 1)] {
        assert!(Size::new(columns, rows).is_err());
        let json = format!(r#"{{"columns":{columns},"rows":{rows}}}"#);
        assert!(serde_json::from_str::<Size>(&json).is_err());
    }
    let size: Size = serde_json::from_str(r#"{"columns":80,"rows":24}"#).unwrap();
    assert_eq!(size, Size::new(80, 24).unwrap());
}

#[test]
fn the_largest_screen_can_be_made_small_and_large_again() {
    let mut screen = Screen::new(Size::new(2, 1).unwrap(), usize::MAX);
    let _ = screen.feed("漢x\r\n".repeat(10_000).as_bytes());
    for (columns, rows) in [(1000, 1000), (2, 1), (1000, 1), (2, 1000), (80, 24)] {
        screen.resize(Size::new(columns, rows).unwrap());
        let _ = screen.feed(b"y\r\n");
    }
    assert!(screen.history(50).contains(&"漢x".to_owned()));
}
