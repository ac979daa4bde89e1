//! The terminal emulator, with its memory bounded and a few rules put right.
//!
//! Stands between the parser and [`Term`]: most requests of a program are
//! passed on as they are. State that `Term` does not expose and a snapshot
//! needs (tab stops, margins, titles) is kept here.

use std::ops::Range;

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::{Config, Osc52, Term, TermMode};
use alacritty_terminal::vte::ansi::{
    Attr, CharsetIndex, ClearMode, CursorShape, CursorStyle, Handler, LineClearMode, Mode,
    NamedPrivateMode, PrivateMode, Rgb, StandardCharset, TabulationClearMode,
};
use unicode_width::UnicodeWidthChar;

use crate::answers::Answers;
use crate::glyph;
use crate::palette;
use crate::size::Size;
use crate::tabs::Tabs;
use crate::title::Title;

pub(crate) struct Emulator {
    pub(crate) term: Term<Answers>,
    pub(crate) answers: Answers,
    pub(crate) title: Title,
    pub(crate) tabs: Tabs,
    /// The rows that scroll.
    pub(crate) margins: Range<usize>,
    pub(crate) charset: CharsetIndex,
    /// Lines above the screen that were asked for.
    scrollback: usize,
}

/// Accents on one character. Scripts that stack them need four or five; a
/// program could otherwise pile up gigabytes in one cell.
const MOST_MARKS: usize = 8;

/// Cells above the screen: 10,000 lines of 200 columns, some 50 MB.
const MOST_CELLS: usize = 2_000_000;

const HALVES: Flags = Flags::WIDE_CHAR.union(Flags::WIDE_CHAR_SPACER);

/// The size of a cell that a program gets when it asks for pixels.
const CELL_WIDTH: usize = 8;
const CELL_HEIGHT: usize = 16;

impl Emulator {
    pub(crate) fn new(size: Size, scrollback: usize) -> Self {
        let answers = Answers::default();
        Self {
            term: Term::new(config(size, scrollback), &size, answers.clone()),
            answers,
            title: Title::default(),
            tabs: Tabs::new(size.columns().into()),
            margins: 0..size.rows().into(),
            charset: CharsetIndex::G0,
            scrollback,
        }
    }

    pub(crate) fn resize(&mut self, size: Size) {
        let (columns, rows) = (usize::from(size.columns()), usize::from(size.rows()));
        if (columns, rows) == (self.term.columns(), self.term.screen_lines()) {
            return;
        }
        // Before the lines become longer, and after they became shorter.
        let config = config(size, self.scrollback);
        if columns > self.term.columns() {
            self.term.set_options(config.clone());
        }
        self.term.resize(size);
        self.term.set_options(config);
        self.tabs.resize(columns);
        self.margins = 0..rows;
        let last = Column(columns - 1);
        let cursor = &mut self.term.grid_mut().cursor;
        cursor.input_needs_wrap &= cursor.point.column == last;
    }

    fn has(&self, mode: TermMode) -> bool {
        self.term.mode().contains(mode)
    }

    fn row(&self) -> usize {
        usize::try_from(self.term.grid().cursor.point.line.0).unwrap_or(0)
    }

    fn column(&self) -> usize {
        self.term.grid().cursor.point.column.0
    }

    /// Moves to a row and a column, whatever the margins are.
    fn place(&mut self, row: usize, column: usize) {
        let (last_row, last_column) = (self.term.bottommost_line(), self.term.last_column());
        let cursor = &mut self.term.grid_mut().cursor;
        cursor.point.line = Line(row as i32).min(last_row);
        cursor.point.column = Column(column).min(last_column);
        cursor.input_needs_wrap = false;
    }

    /// Moves to the column a tab leads to. One that leads nowhere leaves the
    /// line as full as it was, as xterm does.
    fn tab(&mut self, column: usize) {
        if column != self.column() {
            self.place(self.row(), column);
        }
    }

    /// Keeps the cursor within the margins where a program asked for that.
    fn settle(&mut self) {
        let (row, column) = (self.row(), self.column());
        if self.has(TermMode::ORIGIN) && !self.margins.contains(&row) {
            self.place(row.clamp(self.margins.start, self.margins.end - 1), column);
        }
    }

    /// Blanks what is left of wide characters in this row after some cells
    /// were moved or erased. `Term` would take their neighbours for them.
    fn mend(&mut self) {
        let line = self.term.grid().cursor.point.line;
        let row = &mut self.term.grid_mut()[line];
        let mut column = 0;
        while column < row.len() {
            if glyph::is_wide(row, column) {
                column += 2;
                continue;
            }
            let cell = &mut row[Column(column)];
            if cell.flags.intersects(HALVES) {
                cell.clear_wide();
                cell.flags.remove(HALVES);
            }
            column += 1;
        }
    }

    /// Marks that the character has which another mark would go to.
    fn marks(&self) -> usize {
        let grid = self.term.grid();
        let row = &grid[grid.cursor.point.line];
        let mut column = grid.cursor.point.column.0;
        if !grid.cursor.input_needs_wrap {
            column = column.saturating_sub(1);
        }
        if row[Column(column)].flags.contains(Flags::WIDE_CHAR_SPACER) {
            column = column.saturating_sub(1);
        }
        row[Column(column)].zerowidth().map_or(0, <[char]>::len)
    }
}

fn config(size: Size, scrollback: usize) -> Config {
    Config {
        scrolling_history: scrollback.min(MOST_CELLS / usize::from(size.columns())),
        osc52: Osc52::Disabled,
        ..Config::default()
    }
}

/// Passes on to the emulator as it is.
macro_rules! pass {
    ($($name:ident($($given:ident: $kind:ty),*);)*) => {
        $(fn $name(&mut self, $($given: $kind),*) {
            Handler::$name(&mut self.term, $($given),*);
        })*
    };
}

/// What is not here is not supported: links, of which each cell could have
/// another of any length, the clipboard, and the keyboard protocol of kitty.
impl Handler for Emulator {
    pass! {
        backspace();
        bell();
        carriage_return();
        configure_charset(index: CharsetIndex, charset: StandardCharset);
        decaln();
        delete_lines(count: usize);
        device_status(query: usize);
        goto(row: i32, column: usize);
        identify_terminal(intermediate: Option<char>);
        insert_blank_lines(count: usize);
        move_backward(count: usize);
        move_forward(count: usize);
        report_mode(mode: Mode);
        report_private_mode(mode: PrivateMode);
        reset_color(index: usize);
        reverse_index();
        save_cursor_position();
        scroll_down(count: usize);
        scroll_up(count: usize);
        set_color(index: usize, color: Rgb);
        set_cursor_shape(shape: CursorShape);
        set_cursor_style(style: Option<CursorStyle>);
        set_keypad_application_mode();
        set_mode(mode: Mode);
        terminal_attribute(attribute: Attr);
        text_area_size_chars();
        unset_keypad_application_mode();
        unset_mode(mode: Mode);
    }

    fn input(&mut self, letter: char) {
        let is_mark = !letter.is_ascii() && letter.width() == Some(0);
        if !is_mark || self.marks() < MOST_MARKS {
            self.term.input(letter);
        }
        if self.has(TermMode::INSERT) {
            self.mend();
        }
    }

    fn insert_blank(&mut self, count: usize) {
        self.term.insert_blank(count);
        self.mend();
    }

    fn erase_chars(&mut self, count: usize) {
        self.term.erase_chars(count);
        self.mend();
    }

    fn clear_line(&mut self, mode: LineClearMode) {
        self.term.clear_line(mode);
        self.mend();
    }

    fn linefeed(&mut self) {
        self.term.newline();
    }

    fn goto_line(&mut self, row: i32) {
        self.term.goto(row, self.column());
    }

    fn goto_col(&mut self, column: usize) {
        self.place(self.row(), column);
    }

    fn move_up(&mut self, count: usize) {
        let row = self.row();
        let top = if row < self.margins.start {
            0
        } else {
            self.margins.start
        };
        self.place(row.saturating_sub(count).max(top), self.column());
    }

    fn move_down(&mut self, count: usize) {
        let row = self.row();
        let end = if row < self.margins.end {
            self.margins.end
        } else {
            self.term.screen_lines()
        };
        self.place((row + count).min(end - 1), self.column());
    }

    fn move_up_and_cr(&mut self, count: usize) {
        self.move_up(count);
        self.carriage_return();
    }

    fn move_down_and_cr(&mut self, count: usize) {
        self.move_down(count);
        self.carriage_return();
    }

    // `Term` writes tabs into the grid and wraps at the last column.
    fn put_tab(&mut self, count: u16) {
        self.tab(self.tabs.forward(self.column(), count));
    }

    fn move_forward_tabs(&mut self, count: u16) {
        self.tab(self.tabs.forward(self.column(), count));
    }

    fn move_backward_tabs(&mut self, count: u16) {
        self.tab(self.tabs.backward(self.column(), count));
    }

    fn set_horizontal_tabstop(&mut self) {
        self.tabs.set(self.column(), true);
    }

    fn clear_tabs(&mut self, mode: TabulationClearMode) {
        match mode {
            TabulationClearMode::Current => self.tabs.set(self.column(), false),
            TabulationClearMode::All => self.tabs.clear(),
        }
    }

    fn set_tabs(&mut self, _apart: u16) {
        self.tabs.reset();
    }

    // `Term` clears as many at the end of the row as it was asked to delete,
    // also when there are fewer to the right.
    fn delete_chars(&mut self, count: usize) {
        self.term
            .delete_chars(count.min(self.term.columns() - self.column()));
        self.mend();
    }

    fn clear_screen(&mut self, mode: ClearMode) {
        // `Term` forgets the first row when the cursor is on the second.
        if matches!(mode, ClearMode::Above) && self.row() == 1 {
            self.term.grid_mut().reset_region(..Line(1));
        }
        self.term.clear_screen(mode);
        self.mend();
    }

    fn set_scrolling_region(&mut self, top: usize, bottom: Option<usize>) {
        let rows = self.term.screen_lines();
        let bottom = bottom.map_or(rows, |bottom| bottom.min(rows));
        if top < bottom {
            self.margins = top - 1..bottom;
            self.term.set_scrolling_region(top, Some(bottom));
        }
    }

    fn restore_cursor_position(&mut self) {
        self.term.restore_cursor_position();
        self.settle();
    }

    fn set_private_mode(&mut self, mode: PrivateMode) {
        if mode == NamedPrivateMode::ColumnMode.into() {
            self.margins = 0..self.term.screen_lines();
        }
        self.term.set_private_mode(mode);
        self.settle();
    }

    fn unset_private_mode(&mut self, mode: PrivateMode) {
        if mode == NamedPrivateMode::ColumnMode.into() {
            self.margins = 0..self.term.screen_lines();
        }
        self.term.unset_private_mode(mode);
        self.settle();
    }

    fn set_active_charset(&mut self, index: CharsetIndex) {
        self.charset = index;
        self.term.set_active_charset(index);
    }

    fn reset_state(&mut self) {
        self.term.reset_state();
        self.title = Title::default();
        self.tabs.reset();
        self.margins = 0..self.term.screen_lines();
        self.charset = CharsetIndex::G0;
    }

    fn set_title(&mut self, title: Option<String>) {
        self.title.set(title);
    }

    fn push_title(&mut self) {
        self.title.push();
    }

    fn pop_title(&mut self) {
        self.title.pop();
    }

    fn dynamic_color_sequence(&mut self, prefix: String, index: usize, end: &str) {
        let Rgb { r, g, b } = self.term.colors()[index].unwrap_or_else(|| palette::default(index));
        self.answers.push(&format!(
            "\x1b]{prefix};rgb:{r:02x}{r:02x}/{g:02x}{g:02x}/{b:02x}{b:02x}{end}"
        ));
    }

    fn text_area_size_pixels(&mut self) {
        let height = self.term.screen_lines() * CELL_HEIGHT;
        let width = self.term.columns() * CELL_WIDTH;
        self.answers.push(&format!("\x1b[4;{height};{width}t"));
    }
}
