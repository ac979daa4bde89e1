//! Any bytes give a screen, and its snapshot gives the same one again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weighlock_screen::{Screen, Size, plain};

const SCROLLBACK: usize = 20;

fuzz_target!(|bytes: &[u8]| {
    let [columns, rows, bytes @ ..] = bytes else {
        return;
    };
    let size = size(*columns, *rows);
    let mut screen = Screen::new(size, SCROLLBACK);
    let (before, after) = bytes.split_at(bytes.len() / 2);
    let _ = screen.feed(before);
    same_again(&mut screen);
    screen.resize(self::size(*rows, *columns));
    let _ = screen.feed(after);
    same_again(&mut screen);
    plain(bytes);
});

/// Small ones, where things meet.
fn size(columns: u8, rows: u8) -> Size {
    let (columns, rows) = (columns % 30 + 2, rows % 10 + 1);
    Size::new(columns.into(), rows.into()).expect("within bounds")
}

fn same_again(screen: &mut Screen) {
    let snapshot = screen.snapshot(SCROLLBACK);
    let mut fresh = Screen::new(screen.view().size, SCROLLBACK);
    assert!(fresh.feed(&snapshot).is_empty(), "a snapshot asks nothing");
    assert_eq!(fresh.view(), screen.view());
    assert_eq!(fresh.history(usize::MAX), screen.history(usize::MAX));
    assert_eq!(fresh.snapshot(SCROLLBACK), snapshot);
}
