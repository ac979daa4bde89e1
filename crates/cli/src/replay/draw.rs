//! What the player shows: a part of the recorded screen, and a line below.

use weighlock_screen::View;

use super::cells;
use super::clock;
use super::player::Player;
use crate::text::{fit, one_line};

/// The part of a terminal in which a recording is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplayWindow {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// Which part of a screen is shown that is larger than the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Scroll {
    /// Rows and columns before it, as somebody wanted; otherwise wherever the
    /// cursor is.
    by_hand: Option<(usize, usize)>,
}

impl Scroll {
    /// Returns the first row and the first column that are shown.
    pub(super) fn first(self, view: &View, window: ReplayWindow) -> (usize, usize) {
        let cursor = (
            usize::from(view.cursor.row),
            usize::from(view.cursor.column),
        );
        let follow = |at: usize, room: usize| (at + 1).saturating_sub(room);
        let (row, column) = self.by_hand.unwrap_or_else(|| {
            (
                follow(cursor.0, window.rows),
                follow(cursor.1, window.columns),
            )
        });
        let (rows, columns) = extent(view);
        let last = |all: usize, room: usize| all.saturating_sub(room);
        (
            row.min(last(rows, window.rows)),
            column.min(last(columns, window.columns)),
        )
    }

    pub(super) fn step(&mut self, view: &View, window: ReplayWindow, by: (isize, isize)) {
        let (row, column) = self.first(view, window);
        let moved = Self {
            by_hand: Some((
                row.saturating_add_signed(by.0),
                column.saturating_add_signed(by.1),
            )),
        };
        self.by_hand = Some(moved.first(view, window));
    }
}

/// Tells whether a recorded screen does not fit.
pub(super) fn is_larger(view: &View, window: ReplayWindow) -> bool {
    let (rows, columns) = extent(view);
    rows > window.rows || columns > window.columns
}

/// Returns as many lines as the window has rows.
pub(super) fn picture(view: &View, window: ReplayWindow, scroll: Scroll) -> Vec<String> {
    let (top, left) = scroll.first(view, window);
    let cursor = |row: usize| {
        let is_here = view.cursor.visible && usize::from(view.cursor.row) == row;
        is_here.then_some(usize::from(view.cursor.column))
    };
    let mut lines: Vec<String> = { view.rows.iter().enumerate() }
        .skip(top)
        .take(window.rows)
        .map(|(row, text)| cells::cut(text, left..left + window.columns, cursor(row)))
        .collect();
    lines.resize(window.rows, String::new());
    lines
}

/// `playing 8:31 / 41:10 · 2× · next 9:40 $ git push`
pub(super) fn status(player: &Player, window: ReplayWindow, is_there: bool) -> String {
    let (view, speed) = (player.view(), player.speed());
    let state = match (is_there, player.is_over(), player.is_paused()) {
        (false, ..) => "seeking",
        (_, true, _) => "end",
        (_, _, true) => "paused",
        _ => "playing",
    };
    let (time, total) = (clock::shown(player.time()), clock::shown(player.total()));
    let mut line = format!("{state} {time} / {total} · {speed}×");
    if is_larger(&view, window) {
        let (rows, columns) = extent(&view);
        line += &format!(" · {columns}×{rows} is larger than this window: hjkl");
    }
    let mark = player.next_mark().map(|mark| {
        let time = clock::shown(mark.time);
        format!(" · next {time} {}", one_line(&mark.label, window.columns))
    });
    line += &mark.unwrap_or_default();
    if player.is_over() {
        line += " · space plays it again, q leaves";
    }
    fit(&format!("{line} · ? keys"), window.columns)
}

fn extent(view: &View) -> (usize, usize) {
    (
        usize::from(view.size.rows()),
        usize::from(view.size.columns()),
    )
}
