//! How fast the emulator takes what programs write, beside looking at the bytes
//! at all, taking them apart, and the emulator that ours is built on.

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::term::{Config, Term};
use alacritty_terminal::vte::ansi::Processor;
use alacritty_terminal::vte::{Params, Parser, Perform};
use weighlock_screen::{Screen, Size};

use crate::table::{Row, Samples, Unit};
use crate::{Effort, Result};

/// Bytes of each stream.
const BYTES: usize = 8 * 1024 * 1024;

/// What one feed hands over.
const PIECE: usize = 64 * 1024;

const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

/// As many as the server keeps.
const SCROLLBACK: usize = 1000;

const WORDS: [&str; 8] = [
    "Compiling",
    "weighlock",
    "finished",
    "in",
    "target",
    "release",
    "of",
    "0.42s",
];

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let streams = [
        ("plain text", plain as fn(&mut String, usize)),
        ("coloured text", coloured),
        ("a screen drawn again and again", redrawn),
    ];
    let mut rows = vec![];
    for (name, make) in streams {
        let stream = stream(make);
        let mut samples: [Samples; 4] = Default::default();
        for _ in 0..effort.crowds {
            for (take, samples) in [scan, take_apart, others, ours].iter().zip(&mut samples) {
                let began = Instant::now();
                take(stream.as_bytes())?;
                samples.push(stream.len() as f64 / 1e6 / began.elapsed().as_secs_f64());
            }
        }
        let [scan, apart, others, ours] = &samples;
        let row = |what: &str, samples| {
            let row = Row::new(format!("{name}: {what}"), Unit::MegabytesPerSecond, samples);
            row.against("taken apart", apart)
        };
        rows.push(row("looked through for escapes", scan));
        rows.push(row("taken apart by `vte`", apart));
        rows.push(row("shown by `alacritty_terminal`", others));
        rows.push(row("shown by our screen", ours));
    }
    Ok(rows)
}

fn scan(stream: &[u8]) -> Result<()> {
    for piece in stream.chunks(PIECE) {
        black_box(memchr::memchr_iter(b'\x1b', black_box(piece)).count());
    }
    Ok(())
}

fn take_apart(stream: &[u8]) -> Result<()> {
    let (mut parser, mut count) = (Parser::new(), Count::default());
    for piece in stream.chunks(PIECE) {
        parser.advance(&mut count, piece);
    }
    black_box(count.0);
    Ok(())
}

fn others(stream: &[u8]) -> Result<()> {
    let config = Config {
        scrolling_history: SCROLLBACK,
        ..Config::default()
    };
    let mut term = Term::new(config, &Window, VoidListener);
    let mut parser: Processor = Processor::new();
    for piece in stream.chunks(PIECE) {
        parser.advance(&mut term, piece);
    }
    black_box(term.grid().cursor.point);
    Ok(())
}

fn ours(stream: &[u8]) -> Result<()> {
    let mut screen = Screen::new(Size::new(COLUMNS, ROWS)?, SCROLLBACK);
    for piece in stream.chunks(PIECE) {
        black_box(screen.feed(piece));
    }
    Ok(())
}

/// Counts, so that nothing is left out as of no use.
#[derive(Default)]
struct Count(usize);

impl Perform for Count {
    fn print(&mut self, _: char) {
        self.0 += 1;
    }

    fn execute(&mut self, _: u8) {
        self.0 += 1;
    }

    fn csi_dispatch(&mut self, params: &Params, _: &[u8], _: bool, _: char) {
        self.0 += params.len();
    }
}

struct Window;

impl Dimensions for Window {
    fn total_lines(&self) -> usize {
        ROWS.into()
    }

    fn screen_lines(&self) -> usize {
        ROWS.into()
    }

    fn columns(&self) -> usize {
        COLUMNS.into()
    }
}

fn stream(make: fn(&mut String, usize)) -> String {
    let mut stream = String::with_capacity(BYTES + PIECE);
    let mut number = 0;
    while stream.len() < BYTES {
        make(&mut stream, number);
        number += 1;
    }
    stream
}

fn words(number: usize) -> impl Iterator<Item = &'static str> {
    (0..4 + number % 7).map(move |word| WORDS[(number * 5 + word * 3) % WORDS.len()])
}

/// A line of a log.
fn plain(to: &mut String, number: usize) {
    let _ = write!(to, "{number:>8}");
    words(number).for_each(|word| {
        let _ = write!(to, " {word}");
    });
    to.push_str("\r\n");
}

/// A line of a build, every second word in a colour of its own.
fn coloured(to: &mut String, number: usize) {
    for (at, word) in words(number).enumerate() {
        let _ = match at % 2 {
            0 => write!(to, "\x1b[1;{}m{word}\x1b[0m ", 31 + number % 7),
            _ => write!(to, "{word} "),
        };
    }
    to.push_str("\r\n");
}

/// A whole screen, as a program such as `top` draws it.
fn redrawn(to: &mut String, number: usize) {
    to.push_str("\x1b[?25l\x1b[H");
    for row in 1..=ROWS {
        let load = (number + usize::from(row) * 7) % 100;
        let _ = write!(
            to,
            "\x1b[{row};1H\x1b[7m{row:>4}\x1b[m {load:>3}% \x1b[32m{:<20}\x1b[39m {:<40}\x1b[K",
            "|".repeat(load / 5),
            WORDS[load % WORDS.len()],
        );
    }
    to.push_str("\x1b[?25h");
}
