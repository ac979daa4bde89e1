//! The lines a person could scroll back to.

use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::Cell;

use crate::glyph;

/// Returns the last lines, as long as they were written: rows that go on in
/// the next are one line. Blank rows at the end do not count.
pub(crate) fn lines(grid: &Grid<Cell>, last: usize) -> Vec<String> {
    let mut lines = vec![];
    let mut end = grid.bottommost_line().0;
    while end >= grid.topmost_line().0 && lines.len() < last {
        let start = first_row(grid, end);
        let mut line = String::new();
        (start..=end).for_each(|row| glyph::text(grid, Line(row), &mut line));
        line.truncate(line.trim_end_matches(' ').len());
        if !lines.is_empty() || !line.is_empty() {
            lines.push(line);
        }
        end = start - 1;
    }
    lines.reverse();
    lines
}

/// Returns the row in which the line began that goes up to this row.
fn first_row(grid: &Grid<Cell>, mut row: i32) -> i32 {
    while row > grid.topmost_line().0 && glyph::goes_on(grid, Line(row - 1)) {
        row -= 1;
    }
    row
}
