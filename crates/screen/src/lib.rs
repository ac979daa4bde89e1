//! Turns what a program writes to its terminal into what a person would see.
//!
//! Bytes go in, a [`View`] comes out: no files, no processes, no clock. The
//! bytes are hostile: none may panic, and none may cost more memory than the
//! size of the screen and its scrollback allow.
//!
//! ```
//! use weighlock_screen::{Screen, Size};
//!
//! let mut screen = Screen::new(Size::new(20, 3)?, 100);
//! screen.feed(b"10 %\r\x1b[32m100 %\x1b[m\r\ndone");
//! assert_eq!(screen.view().rows, ["100 %", "done", ""]);
//! # Ok::<(), weighlock_screen::SizeError>(())
//! ```

mod answers;
mod characters;
mod emulator;
mod glyph;
mod history;
mod key;
mod palette;
mod paste;
mod plain;
mod repeats;
mod safe;
mod screen;
mod size;
mod snapshot;
mod strings;
mod style;
mod styled;
mod tabs;
mod title;
mod unfinished;
mod view;

pub use key::key;
pub use paste::paste;
pub use plain::{Plain, plain};
pub use safe::{hidden_characters, safe_command, safe_prose, safe_text};
pub use screen::Screen;
pub use size::{Size, SizeError};
pub use styled::{Colour, Look, Styled, StyledLine, StyledSpan};
pub use view::{Cursor, Modes, Mouse, View};
