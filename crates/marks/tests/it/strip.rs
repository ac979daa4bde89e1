//! People never see the nonce.

use weighlock_marks::{Nonce, Strip};

fn nonce() -> Nonce {
    Nonce::from_random(*b"sixteen bytes ok")
}

fn strip(pieces: &[&[u8]]) -> String {
    let mut strip = Strip::new(&nonce());
    let mut shown: Vec<u8> = pieces.iter().flat_map(|bytes| strip.feed(bytes)).collect();
    shown.extend(strip.finish());
    String::from_utf8(shown).unwrap()
}

#[test]
fn marks_are_taken_out_wherever_they_are_cut() {
    let mark = format!("\x1b]133;D;0;wl={}\x07", nonce().secret());
    let forged = "\x1b]133;D;0\x07";
    let bytes = format!("a{mark}\x1b[1mb{mark}{mark}{forged}ü\x1b]13{mark}\x1b]133;");
    let expected = format!("a\x1b[1mb{forged}ü\x1b]13\x1b]133;");
    for at in 0..bytes.len() {
        let (before, after) = bytes.as_bytes().split_at(at);
        assert_eq!(strip(&[before, after]), expected, "cut at {at}");
    }
}

#[test]
fn what_is_typed_is_shown_at_once() {
    let mut strip = Strip::new(&nonce());
    for byte in nonce().secret().bytes().take(8) {
        assert_eq!(strip.feed(&[byte]), [byte]);
    }
}

#[test]
fn the_nonce_itself_is_masked() {
    let secret = nonce().secret().to_owned();
    let bytes = format!("nonce={secret}{secret}\r\n{}{secret}", &secret[..6]);
    let masked = format!("{}{}", &secret[..8], "*".repeat(24));
    let expected = format!("nonce={masked}{masked}\r\n{}{masked}", &secret[..6]);
    for at in 0..bytes.len() {
        let (before, after) = bytes.as_bytes().split_at(at);
        assert_eq!(strip(&[before, after]), expected, "cut at {at}");
    }
}

#[test]
fn a_broken_mark_does_not_tell_the_nonce() {
    let broken = format!("\x1b]133;D;0;wl={}\n", nonce().secret());
    assert!(!strip(&[broken.as_bytes()]).contains(nonce().secret()));
}
