//! Keys and pasted text as a terminal sends them.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use weighlock_screen::{Modes, key, paste};

const CURSOR: Modes = Modes {
    application_cursor: true,
    ..ORDINARY
};

const BRACKETED: Modes = Modes {
    bracketed_paste: true,
    ..ORDINARY
};

const ORDINARY: Modes = Modes {
    application_cursor: false,
    application_keypad: false,
    bracketed_paste: false,
    focus: false,
    mouse: weighlock_screen::Mouse::Off,
};

fn check(modes: &Modes, table: &[(&str, &str)]) {
    for (names, expected) in table {
        for name in names.split(' ') {
            let found = key(name, modes).map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(found.as_deref(), Some(*expected), "{name}");
        }
    }
}

#[test]
fn keys_have_names() {
    check(
        &ORDINARY,
        &[
            ("Enter enter", "\r"),
            ("Tab", "\t"),
            ("BTab S-Tab", "\x1b[Z"),
            ("Esc Escape C-[", "\x1b"),
            ("Space", " "),
            ("BSpace Backspace C-?", "\x7f"),
            ("Up", "\x1b[A"),
            ("Down", "\x1b[B"),
            ("Right", "\x1b[C"),
            ("Left", "\x1b[D"),
            ("Home", "\x1b[H"),
            ("End", "\x1b[F"),
            ("Insert IC", "\x1b[2~"),
            ("Delete DC", "\x1b[3~"),
            ("PageUp PgUp", "\x1b[5~"),
            ("PageDown PgDn", "\x1b[6~"),
            ("F1", "\x1bOP"),
            ("F4", "\x1bOS"),
            ("F5", "\x1b[15~"),
            ("F6", "\x1b[17~"),
            ("F10", "\x1b[21~"),
            ("F11", "\x1b[23~"),
            ("F12", "\x1b[24~"),
            ("x", "x"),
            ("é", "é"),
            ("-", "-"),
        ],
    );
}

#[test]
fn keys_are_held_together() {
    check(
        &ORDINARY,
        &[
            ("C-a C-A c-a", "\x01"),
            ("C-c", "\x03"),
            ("C-z", "\x1a"),
            ("C-Space C-@", "\0"),
            ("C-\\", "\x1c"),
            ("C-]", "\x1d"),
            ("C-^", "\x1e"),
            ("C-_ C-/", "\x1f"),
            ("M-x", "\x1bx"),
            ("M-X M-S-x", "\x1bX"),
            ("M--", "\x1b-"),
            ("M-Enter", "\x1b\r"),
            ("M-BSpace", "\x1b\x7f"),
            ("C-M-x M-C-x", "\x1b\x18"),
            ("S-a", "A"),
            ("S-Up", "\x1b[1;2A"),
            ("M-Up", "\x1b[1;3A"),
            ("C-Left", "\x1b[1;5D"),
            ("C-S-M-End", "\x1b[1;8F"),
            ("S-F1", "\x1b[1;2P"),
            ("C-F5", "\x1b[15;5~"),
            ("C-Delete", "\x1b[3;5~"),
            ("C-BSpace", "\x08"),
        ],
    );
}

#[test]
fn arrows_follow_the_cursor_mode_unless_held_with_others() {
    check(
        &CURSOR,
        &[
            ("Up", "\x1bOA"),
            ("Home", "\x1bOH"),
            ("C-Up", "\x1b[1;5A"),
            ("PageUp", "\x1b[5~"),
            ("F1", "\x1bOP"),
        ],
    );
}

#[test]
fn what_no_key_sends_is_nothing() {
    for name in [
        "", "C-", "M-", "Foo", "F0", "F13", "C-é", "C-1", "S-1", "C-S-a", "S-Enter", "C-Enter",
        "C-Tab", "C-C-a", "C-BTab", "ab", "\n", "\x1b", "C-\u{1}", "Up ", "漢字",
    ] {
        assert_eq!(key(name, &ORDINARY), None, "{name:?}");
    }
}

#[test]
fn pasted_lines_end_as_if_typed() {
    assert_eq!(paste("a\nb\r\nc\rd\n\n", &ORDINARY), b"a\rb\rc\rd\r\r");
    assert_eq!(paste("", &ORDINARY), b"");
}

#[test]
fn pasted_text_cannot_end_itself() {
    for text in [
        "a\x1b[201~b",
        "a\x1b[20\x1b[201~1~b",
        "a\x1b\x1b[2\x1b[201~01~[201~b",
        "a\u{9b}201~b",
    ] {
        assert_eq!(paste(text, &BRACKETED), b"\x1b[200~ab\x1b[201~", "{text:?}");
    }
    let other = paste("\x1b[31m\n", &BRACKETED);
    assert_eq!(other, b"\x1b[200~\x1b[31m\r\x1b[201~");
}
