//! What holds for any text at all.

use weighlock_shell::{Dialect, Span, parse};

use crate::random::Random;
use crate::seeds::{PARTS, SEEDS, TOKENS};
use crate::walk::Spans;

const DIALECTS: [Dialect; 4] = [
    Dialect::Bash,
    Dialect::Posix,
    Dialect::PowerShell,
    Dialect::Cmd,
];

#[test]
fn no_text_is_lost_and_every_span_is_in_range() {
    let mut random = Random(11);
    for _ in 0..10_000 {
        let text = jumble(&mut random);
        let dialect = *random.pick(&DIALECTS);
        let script = parse(&text, dialect);
        let spans = Spans::of(&script);
        for Span { start, end } in &spans.all {
            assert!(
                start <= end && text.get(*start..*end).is_some(),
                "{start}..{end} in {text:?}"
            );
        }
        let mut covered = vec![false; text.len()];
        let outer = script.body.items.iter().map(|item| item.pipeline.span);
        let marks = script.marks.iter().map(|(span, _)| *span);
        for span in outer.chain(marks).chain(spans.bodies) {
            covered[span.start..span.end].fill(true);
        }
        let joined = text.replace("\\\n", "  ").replace("\\\r\n", "   ");
        for (at, byte) in joined.bytes().enumerate() {
            let blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            assert!(blank || covered[at], "byte {at} of {text:?} in {dialect:?}");
        }
    }
}

#[test]
fn an_unknown_command_is_always_explained() {
    let mut random = Random(12);
    for _ in 0..5000 {
        let text = jumble(&mut random);
        let script = parse(&text, Dialect::Bash);
        let tree = crate::render::script(&script);
        assert_eq!(
            tree.contains("??"),
            !script.unknowns.is_empty() || text.contains("??"),
            "{text:?}"
        );
    }
}

#[test]
fn bash_itself_has_no_bashisms() {
    let mut random = Random(13);
    for _ in 0..2000 {
        assert!(
            parse(&jumble(&mut random), Dialect::Bash)
                .bashisms
                .is_empty()
        );
    }
}

#[test]
fn deep_long_and_unclosed_texts_come_to_an_end() {
    for unit in TOKENS.iter().chain(PARTS).chain(SEEDS) {
        for text in [unit.repeat(500), format!("{unit} ").repeat(500)] {
            for dialect in DIALECTS {
                parse(&text, dialect);
            }
        }
    }
    for (open, close) in [
        ("$(", ")"),
        ("(", ")"),
        ("{ ", "; }"),
        ("${x:-", "}"),
        ("\"$(", ")\""),
    ] {
        let text = format!("echo {}a{}", open.repeat(5000), close.repeat(5000));
        assert!(!parse(&text, Dialect::Bash).unknowns.is_empty());
    }
    assert_eq!(parse(&"a".repeat(2 << 20), Dialect::Bash).unknowns.len(), 1);
    assert_eq!(parse("a\0b", Dialect::Bash).unknowns.len(), 1);
}

fn jumble(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.below(25) {
        match random.below(8) {
            0 => text.push_str(random.pick::<&str>(SEEDS)),
            1 => text.push_str(random.pick::<&str>(PARTS)),
            2 => text.push(char::from_u32(random.below(0x2fff) as u32 + 1).unwrap_or('x')),
            3 => text.push(' '),
            _ => text.push_str(random.pick::<&str>(TOKENS)),
        }
    }
    text
}
