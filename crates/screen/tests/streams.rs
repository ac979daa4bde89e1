//! Streams of programs beside what a terminal shows of them.
//!
//! `NAME.in` is what was written, `NAME.grid` what is seen then. With
//! `WRITE_GRIDS=1` those that differ are written anew, to be looked at.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use weighlock_screen::{Modes, Mouse, Screen, Size, View};

const SCROLLBACK: usize = 1000;

#[test]
fn a_screen_shows_what_a_terminal_shows() {
    for (path, size, bytes) in streams() {
        let mut screen = Screen::new(size, SCROLLBACK);
        let _ = screen.feed(&bytes);
        compare(&path, &written(&screen.view()));
    }
}

#[test]
fn a_snapshot_of_each_stream_gives_the_same_screen() {
    for (path, size, bytes) in streams() {
        let mut screen = Screen::new(size, SCROLLBACK);
        // At the end and on the way there.
        for piece in bytes.chunks(bytes.len() / 5 + 1) {
            let _ = screen.feed(piece);
            let snapshot = screen.snapshot(SCROLLBACK);
            let mut fresh = Screen::new(size, SCROLLBACK);
            let _ = fresh.feed(&snapshot);
            assert_eq!(fresh.view(), screen.view(), "{path:?}");
            assert_eq!(fresh.history(2000), screen.history(2000), "{path:?}");
            assert!(fresh.snapshot(SCROLLBACK) == snapshot, "{path:?}");
        }
    }
}

#[test]
fn a_stream_in_single_bytes_gives_the_same_screen() {
    for (path, size, bytes) in streams() {
        let mut screen = Screen::new(size, SCROLLBACK);
        for byte in bytes {
            let _ = screen.feed(&[byte]);
        }
        compare(&path, &written(&screen.view()));
    }
}

/// Each expected grid, its size and the bytes before it.
fn streams() -> Vec<(PathBuf, Size, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let mut streams = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "grid")
        {
            let grid = fs::read_to_string(&path).unwrap();
            let first = grid.lines().next().unwrap();
            let (columns, rows) = first
                .strip_prefix("size ")
                .unwrap()
                .split_once('x')
                .unwrap();
            let size = Size::new(columns.parse().unwrap(), rows.parse().unwrap()).unwrap();
            let bytes = fs::read(path.with_extension("in")).unwrap();
            streams.push((path, size, bytes));
        }
    }
    assert!(streams.len() > 20, "the streams are missing");
    streams
}

fn compare(path: &Path, found: &str) {
    let expected = fs::read_to_string(path).unwrap();
    if found != expected && std::env::var_os("WRITE_GRIDS").is_some() {
        fs::write(path, found).unwrap();
    } else {
        assert_eq!(found, expected, "{path:?}\n{found}");
    }
}

fn written(view: &View) -> String {
    let mut text = format!("size {}x{}\n", view.size.columns(), view.size.rows());
    for row in &view.rows {
        text += &format!("|{row}\n");
    }
    let hidden = if view.cursor.visible { "" } else { " hidden" };
    text += &format!(
        "cursor {},{}{hidden}\n",
        view.cursor.row, view.cursor.column
    );
    if !view.title.is_empty() {
        text += &format!("title {}\n", view.title);
    }
    if view.alternate {
        text += "alternate\n";
    }
    text + &modes(&view.modes)
}

fn modes(modes: &Modes) -> String {
    if *modes == Modes::default() {
        return String::new();
    }
    let mut text = "modes".to_owned();
    for (set, name) in [
        (modes.application_cursor, " application_cursor"),
        (modes.application_keypad, " application_keypad"),
        (modes.bracketed_paste, " bracketed_paste"),
        (modes.focus, " focus"),
    ] {
        if set {
            text += name;
        }
    }
    if modes.mouse != Mouse::Off {
        text += &format!(" mouse={:?}", modes.mouse);
    }
    text + "\n"
}
