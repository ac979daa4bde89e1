//! What holds for every stream, tried on thousands that are made up.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod common;

use common::{Dice, noise, stream};
use weighlock_screen::{Screen, Size, View, plain};

const SCROLLBACK: usize = 30;

/// Returns the seeds; `SCREEN_CASES=100` tries a hundred times as many.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let times = std::env::var("SCREEN_CASES").map_or(1, |times| times.parse().unwrap());
    0..usual * times
}

fn size(dice: &mut Dice) -> Size {
    let columns = dice.pick(&[2, 3, 8, 20, 80]);
    let rows = dice.pick(&[1, 2, 3, 7, 24]);
    Size::new(columns, rows).unwrap()
}

fn screen(size: Size) -> Screen {
    Screen::new(size, SCROLLBACK)
}

/// Everything that can be seen of a screen.
fn seen(screen: &mut Screen) -> (View, Vec<String>, String) {
    let bytes = screen.snapshot(SCROLLBACK);
    let snapshot = String::from_utf8(bytes).expect("snapshots are text");
    (screen.view(), screen.history(usize::MAX), snapshot)
}

/// Feeds a snapshot to a fresh screen and compares.
fn check_snapshot(screen: &mut Screen, seed: u64) {
    let before = seen(screen);
    let mut fresh = Screen::new(before.0.size, SCROLLBACK);
    assert_eq!(fresh.feed(before.2.as_bytes()), b"", "seed {seed}");
    assert_eq!(seen(&mut fresh), before, "seed {seed}");
    assert_eq!(seen(screen), before, "taking changed it, seed {seed}");
}

#[test]
fn a_snapshot_gives_the_same_screen_again() {
    for seed in seeds(1200) {
        let mut dice = Dice::new(seed);
        let mut screen = screen(size(&mut dice));
        let length = 1 + dice.below(60);
        let bytes = stream(&mut dice, length);
        let cut = dice.below(bytes.len() + 1);
        let _ = screen.feed(&bytes[..cut]);
        check_snapshot(&mut screen, seed);
    }
}

#[test]
fn a_snapshot_after_a_resize_gives_the_same_screen_again() {
    for seed in seeds(300) {
        let mut dice = Dice::new(seed);
        let mut screen = screen(size(&mut dice));
        for _ in 0..4 {
            let _ = screen.feed(&stream(&mut dice, 15));
            screen.resize(size(&mut dice));
        }
        check_snapshot(&mut screen, seed);
    }
}

#[test]
fn what_follows_a_snapshot_looks_the_same() {
    for seed in seeds(600) {
        let mut dice = Dice::new(seed);
        let mut screen = screen(size(&mut dice));
        let _ = screen.feed(&stream(&mut dice, 30));
        let mut fresh = Screen::new(screen.view().size, SCROLLBACK);
        let _ = fresh.feed(&screen.snapshot(SCROLLBACK));
        // A letter first: which one was the last is not kept for repeating it.
        let more = [b"x", &stream(&mut dice, 3)[..]].concat();
        assert_eq!(fresh.feed(&more), screen.feed(&more), "seed {seed}");
        assert_eq!(fresh.view(), screen.view(), "seed {seed}");
    }
}

#[test]
fn a_snapshot_can_be_taken_in_the_middle_of_anything() {
    for seed in seeds(600) {
        let mut dice = Dice::new(seed);
        let mut screen = screen(size(&mut dice));
        // Letters before, so that which one was the last is the same.
        let bytes = [
            &stream(&mut dice, 10)[..],
            b"x\x1b[1;31mred \x1b]0;title\x07\xc3\xa4x",
        ];
        let bytes = bytes.concat();
        let cut = bytes.len() - dice.below(24);
        let _ = screen.feed(&bytes[..cut]);
        let mut fresh = Screen::new(screen.view().size, SCROLLBACK);
        let _ = fresh.feed(&screen.snapshot(SCROLLBACK));
        let _ = fresh.feed(&screen.unfinished().concat());
        let _ = screen.feed(&bytes[cut..]);
        let _ = fresh.feed(&bytes[cut..]);
        assert_eq!(fresh.view(), screen.view(), "seed {seed}");
    }
}

#[test]
fn it_does_not_matter_where_a_stream_is_cut() {
    for seed in seeds(300) {
        let mut dice = Dice::new(seed);
        let size = size(&mut dice);
        let bytes = stream(&mut dice, 40);
        let mut whole = screen(size);
        let answers = whole.feed(&bytes);
        let mut pieces = screen(size);
        let mut rest = &bytes[..];
        let mut said = vec![];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + dice.below(rest.len().min(9)));
            said.extend(pieces.feed(piece));
            rest = after;
        }
        assert_eq!(seen(&mut pieces), seen(&mut whole), "seed {seed}");
        assert_eq!(said, answers, "seed {seed}");
    }
}

#[test]
fn no_bytes_and_no_sizes_are_too_odd() {
    for seed in seeds(300) {
        let mut dice = Dice::new(seed);
        let mut screen = screen(size(&mut dice));
        for _ in 0..4 {
            let bytes = noise(&mut dice, 200);
            let _ = screen.feed(&bytes);
            plain(&bytes);
            if dice.below(2) == 0 {
                screen.resize(size(&mut dice));
            }
        }
        check_snapshot(&mut screen, seed);
    }
}
