//! What is left of output that draws over itself.

use weighlock_screen::{Plain, plain};

fn check(output: &str, expected: &str) {
    assert_eq!(plain(output.as_bytes()), expected, "{output:?}");
    for size in [1, 2, 7] {
        let mut pieces = Plain::new();
        let mut text = String::new();
        for piece in output.as_bytes().chunks(size) {
            text += &pieces.feed(piece);
        }
        text += &pieces.finish();
        assert_eq!(text, expected, "{output:?} in pieces of {size}");
    }
}

#[test]
fn ordinary_text_is_unchanged() {
    check("", "");
    check("\n", "\n");
    check("a\n\nb", "a\n\nb");
    check("a\tb  \n\t\tc\n", "a\tb  \n\t\tc\n");
    check("é 漢字 e\u{301} 😀\n", "é 漢字 e\u{301} 😀\n");
    let long = "x".repeat(200_000) + "\n" + &"line\n".repeat(1000);
    assert_eq!(plain(long.as_bytes()), long);
}

#[test]
fn line_ends_of_terminals_are_those_of_text() {
    check("a\r\nb\r\n", "a\nb\n");
    check("a\r\r\nb\r", "a\nb");
}

#[test]
fn colours_and_titles_are_gone() {
    check(
        "\x1b[1;31merror\x1b[0m: \x1b]0;title\x07bad\x1b(B\n",
        "error: bad\n",
    );
    check(
        "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x1bP1$r\x1b\\end\x07",
        "link end",
    );
}

#[test]
fn progress_is_what_it_came_to() {
    check("10%\r 50%\r100%\n", "100%\n");
    check("downloading...\rdone\x1b[K\n", "done\n");
    check("a long line\rdone       \n", "done\n");
    check("\x1b[2K\r1/2\x1b[2K\r2/2\x1b[1G3", "3/2");
    check("|\x08/\x08-\x08ok", "ok");
    check("50%\x1b[3D75%\x1b[1Xdone", "75%done");
}

#[test]
fn several_bars_are_drawn_over() {
    check("a 0\nb 0\n\x1b[2Aa 9\nb 5\n", "a 9\nb 5\n");
    check("a 0\nb 0\x1b[1A\ra 9\x1b[1B\rb 9\nend", "a 9\nb 9\nend");
    check("a\nb\nc\x1b[2F\x1b[Jdone\n", "done\n");
}

#[test]
fn cleared_screens_stay_above_each_other() {
    check("one\n\x1b[H\x1b[2Jtwo\n", "one\ntwo\n");
    check("one\x1b[2J\x1b[Htwo", "one\ntwo");
    check("\x1b[2J\x1b[Hx\x1b[2;3Hy", "x\n  y");
}

#[test]
fn wide_characters_and_tabs_are_drawn_over_whole() {
    check("漢字\rx", "x 字");
    check("漢字\r\x1b[Cx", " x字");
    check("a\tb\r\x1b[3Cx", "a  x    b");
    check("漢字\r\x1b[P", " 字");
}

#[test]
fn invalid_bytes_are_replaced() {
    assert_eq!(plain(b"a\xff\xc3(b\xe2\x82"), "a\u{fffd}\u{fffd}(b\u{fffd}");
}

#[test]
fn few_bytes_do_not_become_many() {
    let output = "\x1b[65535Cx\r\n".repeat(2000);
    assert!(plain(output.as_bytes()).len() < 20 * output.len());
    let output = "\x1b[999;999Hx\x1b[2J".repeat(2000);
    assert!(plain(output.as_bytes()).len() < 20 * output.len());
}

#[test]
fn endless_lines_and_strings_come_through_in_bounded_memory() {
    let mut plain = Plain::new();
    let mut length = 0;
    for _ in 0..100 {
        length += plain.feed(&[b'x'; 50_000]).len();
    }
    assert!(length > 4_500_000);
    assert_eq!(length + plain.finish().len(), 5_000_000);
    let mut plain = Plain::new();
    let _ = plain.feed(b"\x1b]0;");
    for _ in 0..100 {
        assert_eq!(plain.feed(&[b'x'; 50_000]), "");
    }
    assert_eq!(plain.finish(), "");
}

#[test]
fn lines_come_with_the_number_of_the_last_piece_that_wrote_to_them() {
    let mut plain = Plain::new();
    let mut lines = plain.feed_numbered(1, b"$ ");
    lines.extend(plain.feed_numbered(2, b"make\r\n10 %"));
    lines.extend(plain.feed_numbered(3, b"\r100 %\r\n\r\nok\r\n"));
    lines.extend(plain.feed_numbered(4, b"\x1b[2Jdone\r\n"));
    lines.extend(plain.finish_numbered());
    let expected = [(2, "$ make"), (3, "100 %"), (3, ""), (3, "ok"), (4, "done")];
    assert_eq!(lines, expected.map(|(number, line)| (number, line.into())));
}
