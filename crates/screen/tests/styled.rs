//! Lines with colours, as the pages show them.

use weighlock_screen::{Colour, Look, Styled, StyledLine};

fn read(lines: &[&str]) -> Vec<StyledLine> {
    let mut styled = Styled::default();
    lines
        .iter()
        .map(|line| styled.line(line.as_bytes()))
        .collect()
}

/// Says a line as its text with the looks of its parts.
fn said(line: &StyledLine) -> String {
    let spans = line.spans.iter().map(|span| {
        let Look {
            foreground,
            background,
            ..
        } = span.look;
        let colour = |colour: Option<Colour>| match colour {
            None => "-".to_owned(),
            Some(Colour::Palette(index)) => index.to_string(),
            Some(Colour::Rgb(r, g, b)) => format!("#{r:02x}{g:02x}{b:02x}"),
        };
        let flags = [
            (span.look.bold, 'b'),
            (span.look.dim, 'd'),
            (span.look.italic, 'i'),
            (span.look.underline, 'u'),
            (span.look.inverse, 'v'),
            (span.look.struck, 's'),
        ];
        let flags: String = { flags.into_iter() }
            .filter_map(|(is, letter)| is.then_some(letter))
            .collect();
        let text = &line.text[span.start..span.end];
        format!(
            " [{text} {}/{} {flags}]",
            colour(foreground),
            colour(background)
        )
    });
    format!("{}{}", line.text, spans.collect::<String>())
}

#[track_caller]
fn check(line: &str, expected: &str) {
    assert_eq!(said(&read(&[line])[0]), expected, "{line:?}");
}

#[test]
fn colours_of_every_kind() {
    check("plain", "plain");
    check("\x1b[31mred\x1b[0m x", "red x [red 1/- ]");
    check("\x1b[97;44mw\x1b[m", "w [w 15/4 ]");
    check("\x1b[38;5;208mo\x1b[39m.", "o. [o 208/- ]");
    check("\x1b[48;2;1;2;255mb\x1b[49m", "b [b -/#0102ff ]");
    check("\x1b[38:2::1:2:3mc", "c [c #010203/- ]");
    check("\x1b[1;3;4;7;9mx\x1b[22;23;24;27;29my", "xy [x -/- biuvs]");
    check("\x1b[2mü\x1b[22m!", "ü! [ü -/- d]");
    check("\x1b[4:3mx\x1b[4:0my", "xy [x -/- u]");
}

#[test]
fn what_is_drawn_over_is_gone() {
    check("10 %\r\x1b[32m100 %\x1b[m\r\n", "100 % [100 % 2/- ]");
    check("\x1b[31mabc\x1b[m\x08\x08X", "aXc [a 1/- ] [c 1/- ]");
    check("\x1b[31mabcdef\x1b[3G\x1b[K", "ab [ab 1/- ]");
    check("abc\x1b[2Kx", "   x");
    check("a\tb", "a\tb");
    check("\x1b]0;title\x07text", "text");
    check("漢\x1b[31m字", "漢字 [字 1/- ]");
    check("\x1b[31mabc\x1b[1G\x1b[1P", "bc [bc 1/- ]");
}

#[test]
fn a_colour_goes_on_in_the_next_line() {
    let lines = read(&["\x1b[33mone", "two\x1b[0m", "three"]);
    let said: Vec<String> = lines.iter().map(said).collect();
    assert_eq!(said, ["one [one 3/- ]", "two [two 3/- ]", "three"]);
}

#[test]
fn no_line_costs_more_than_it_is_long() {
    let mut styled = Styled::default();
    let far = styled.line(b"\x1b[60000Cx");
    assert!(far.text.len() < 1000);
    let mut hostile = String::new();
    for number in 0..5000 {
        hostile.push_str(&format!(
            "\x1b[{}C\x1b[{}P\x1b[{}X\x1b[38;2m\tx",
            number, number, number
        ));
    }
    let read = styled.line(hostile.as_bytes());
    assert!(read.spans.iter().all(|span| span.end <= read.text.len()));
    styled.line(&[0xff, 0x1b, b'[', 0xe2, 0x82]);
    assert_eq!(styled.line(b"next").text, "next");
}
