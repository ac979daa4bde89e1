//! One character on the screen, and the text of a row.
//!
//! A wide character takes two cells, and programs can overwrite or move one
//! of them. Such a half is read as a blank here, as a terminal draws it.

use alacritty_terminal::grid::{Dimensions, Grid, Row};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};

/// A character in its cell.
pub(crate) struct Glyph<'a> {
    pub(crate) column: usize,
    /// 1, or 2 for a wide character.
    pub(crate) width: usize,
    pub(crate) letter: char,
    /// Accents and the like, which take no room.
    pub(crate) marks: &'a [char],
    /// Where colours and attributes are.
    pub(crate) cell: &'a Cell,
}

/// Returns the characters of a row, from the left.
pub(crate) fn glyphs(row: &Row<Cell>) -> impl Iterator<Item = Glyph<'_>> {
    let mut column = 0;
    std::iter::from_fn(move || {
        let glyph = (column < row.len()).then(|| glyph(row, column))?;
        column += glyph.width;
        Some(glyph)
    })
}

/// Returns the character that starts in this column.
pub(crate) fn glyph(row: &Row<Cell>, column: usize) -> Glyph<'_> {
    let cell = &row[Column(column)];
    let mut glyph = Glyph {
        column,
        width: 1,
        letter: cell.c,
        marks: cell.zerowidth().unwrap_or_default(),
        cell,
    };
    if is_wide(row, column) {
        glyph.width = 2;
    } else if cell.flags.intersects(HALVES) {
        glyph.letter = ' ';
        glyph.marks = &[];
    }
    glyph
}

const HALVES: Flags = Flags::WIDE_CHAR
    .union(Flags::WIDE_CHAR_SPACER)
    .union(Flags::LEADING_WIDE_CHAR_SPACER);

/// Tells whether a whole wide character starts here.
pub(crate) fn is_wide(row: &Row<Cell>, column: usize) -> bool {
    row[Column(column)].flags.contains(Flags::WIDE_CHAR)
        && column + 1 < row.len()
        && row[Column(column + 1)]
            .flags
            .contains(Flags::WIDE_CHAR_SPACER)
}

/// Tells whether a row goes on in the next.
pub(crate) fn goes_on(grid: &Grid<Cell>, line: Line) -> bool {
    line < grid.bottommost_line()
        && grid[line][grid.last_column()]
            .flags
            .contains(Flags::WRAPLINE)
}

/// Tells whether the last column was left empty because a wide character did
/// not fit, which is now the first of the next row.
pub(crate) fn makes_room(grid: &Grid<Cell>, line: Line) -> bool {
    goes_on(grid, line)
        && grid[line][grid.last_column()]
            .flags
            .contains(Flags::LEADING_WIDE_CHAR_SPACER)
        && is_wide(&grid[line + 1], 0)
}

/// Adds the text of a row, with blanks up to its end. What is written to be
/// invisible is blank as well: nobody would see it.
pub(crate) fn text(grid: &Grid<Cell>, line: Line, text: &mut String) {
    let room = usize::from(makes_room(grid, line));
    let end = grid.columns() - room;
    for glyph in glyphs(&grid[line]).take_while(|glyph| glyph.column < end) {
        if glyph.cell.flags.contains(Flags::HIDDEN) {
            text.extend(std::iter::repeat_n(' ', glyph.width));
        } else {
            text.push(glyph.letter);
            text.extend(glyph.marks);
        }
    }
}
