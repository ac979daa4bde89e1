//! Marks are found wherever the bytes are cut.

use weighlock_marks::{Mark, Marks, Nonce, ShellCommand, Sign, Span, Spans};

fn nonce() -> Nonce {
    Nonce::from_random(*b"sixteen bytes ok")
}

fn mark(said: &str) -> String {
    format!("\x1b]133;{said};wl={}\x07", nonce().secret())
}

fn session() -> String {
    let forged = "\x1b]133;D;0;wl=0123\x07\x1b]133;D;0\x1b\\";
    [
        &mark("D;0"),
        &mark("P;cwd=/srv"),
        &mark("A"),
        "$ ",
        &mark("B"),
        "make\r\n",
        // Ended the other way, as terminals allow.
        &mark("C;cmd=make").replace('\x07', "\x1b\\"),
        "a\x1b[1mb\x1b\x1b]133",
        forged,
        "\x1b]0;title\x07",
        &mark("D;2"),
        &mark("A"),
        "$ ",
        &mark("B"),
    ]
    .concat()
}

fn found(pieces: &[&[u8]], offset: u64) -> Vec<Mark> {
    let mut marks = Marks::new(&nonce(), offset);
    pieces.iter().flat_map(|bytes| marks.feed(bytes)).collect()
}

#[test]
fn marks_are_found_wherever_the_bytes_are_cut() {
    let session = session();
    let bytes = session.as_bytes();
    let whole = found(&[bytes], 0);
    let signs: Vec<_> = whole.iter().map(|mark| mark.sign.clone()).collect();
    let command = Some(ShellCommand {
        text: "make".into(),
        whole: true,
    });
    let input = Sign::Input {
        quiet: false,
        edits: false,
    };
    let expected = [
        Sign::Done { exit: Some(0) },
        Sign::Directory("/srv".into()),
        Sign::Prompt,
        input.clone(),
        Sign::Output { command },
        Sign::Done { exit: Some(2) },
        Sign::Prompt,
        input,
    ];
    assert_eq!(signs, expected);
    for at in 0..bytes.len() {
        assert_eq!(
            found(&[&bytes[..at], &bytes[at..]], 0),
            whole,
            "cut at {at}"
        );
    }
    let single: Vec<_> = bytes.chunks(1).collect();
    assert_eq!(found(&single, 0), whole);
}

#[test]
fn offsets_are_those_of_the_terminal() {
    let bytes = format!("12345{}", mark("A"));
    let expected = Mark {
        at: 1005..1000 + bytes.len() as u64,
        sign: Sign::Prompt,
    };
    assert_eq!(found(&[bytes.as_bytes()], 1000), [expected]);
}

#[test]
fn a_command_owns_what_is_between_its_marks() {
    let session = session();
    let bytes = session.as_bytes();
    for at in 0..bytes.len() {
        let mut spans = Spans::new(&nonce(), 0);
        let mut ended = spans.feed(&bytes[..at]);
        ended.extend(spans.feed(&bytes[at..]));
        assert!(spans.waits());
        let [span] = &ended[..] else {
            panic!("{ended:?}")
        };
        let output = span.cut(bytes, 0);
        assert!(output.starts_with(b"a\x1b[1mb") && output.ends_with(b"title\x07"));
        assert_eq!(span.exit, Some(2));
        assert_eq!(span.directory.as_deref(), Some("/srv".as_ref()));
    }
}

#[test]
fn a_part_of_the_output_can_be_cut_from_a_part_of_the_bytes() {
    let span = Span {
        command: None,
        directory: None,
        output: 10..20,
        exit: None,
        exact: true,
    };
    assert_eq!(span.cut(b"0123456789abcdefghijklmn", 0), b"abcdefghij");
    assert_eq!(span.cut(b"cdef", 12), b"cdef");
    assert_eq!(span.cut(b"0123", 0), b"");
    assert_eq!(span.cut(b"xyz", 30), b"");
}

#[test]
fn a_mark_that_never_ends_is_given_up() {
    let mut bytes = b"\x1b]133;C;cmd=".to_vec();
    bytes.resize(100_000, b'x');
    bytes.extend(mark("A").bytes());
    assert_eq!(found(&[&bytes], 0).len(), 1);
}

#[test]
fn what_something_else_wrote_into_is_no_mark() {
    let broken = mark("D;0").replace("wl=", "wl=\n");
    assert_eq!(found(&[broken.as_bytes()], 0), []);
}

#[test]
fn random_bytes_do_no_harm() {
    let session = session();
    let alphabet: Vec<&[u8]> = vec![
        b"\x1b",
        b"]",
        b"133;",
        b"\x07",
        b"\\",
        b"A;wl=",
        b"%",
        b"\n",
        b"\xff\xc3",
        nonce_text(),
        session.as_bytes(),
    ];
    // A small generator is enough, and the same every time.
    let mut state: u64 = 42;
    let mut next = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    for _ in 0..200 {
        let mut spans = Spans::new(&nonce(), 0);
        let mut bytes = vec![];
        for _ in 0..next(60) {
            bytes.extend_from_slice(alphabet[next(alphabet.len())]);
        }
        let mut ended = vec![];
        for piece in bytes.chunks(1 + next(40)) {
            ended.extend(spans.feed(piece));
        }
        ended.extend(spans.finish());
        for span in ended {
            assert!(span.output.start <= span.output.end);
            assert!(span.output.end <= bytes.len() as u64);
        }
        assert_eq!(
            found(&[&bytes], 0),
            found(&bytes.chunks(3).collect::<Vec<_>>(), 0)
        );
    }
}

fn nonce_text() -> &'static [u8] {
    String::leak(nonce().secret().to_owned()).as_bytes()
}
