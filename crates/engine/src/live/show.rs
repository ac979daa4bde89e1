//! What a terminal shows.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use tokio::sync::watch;
use weighlock_exec::{Diary, Item, Log, Size, What};
use weighlock_marks::{Nonce, Span, Spans};
use weighlock_screen::Screen;

use crate::mutex::lock;

/// Lines above the screen that can be looked at. Only what was written takes
/// memory.
const SCROLLBACK: usize = 1000;

/// How much of a log is shown at a time.
const STEP: usize = 256 * 1024;

/// Commands of a shell that are remembered after they have ended.
const REMEMBERED: usize = 16;

/// The screen of a terminal that runs.
pub(crate) struct Shown {
    picture: Mutex<Picture>,
    /// How many bytes of output it shows.
    pub(crate) fed: watch::Sender<Fed>,
    pub(crate) size: watch::Sender<Size>,
}

/// How far a screen is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fed {
    /// Up to this offset of the output.
    pub(crate) offset: u64,
    /// Since then.
    pub(crate) at: Instant,
    /// Where the prompt ends at which its shell waits for a command.
    pub(crate) prompt: Option<u64>,
    /// Where its shell was last done with something.
    pub(crate) done: u64,
    /// A command runs in its shell.
    pub(crate) busy: bool,
    /// It says that it waits for the rest of one.
    pub(crate) more: bool,
}

/// A screen with all that leads to it.
pub(crate) struct Picture {
    pub(crate) screen: Screen,
    pub(crate) size: Size,
    /// It shows the output up to this byte.
    pub(crate) offset: u64,
    diary: Diary,
    /// Sizes that it gets later in the output.
    sizes: VecDeque<(u64, Size)>,
    shell: Option<ShellMarks>,
}

/// What a shell tells.
struct ShellMarks {
    nonce: Nonce,
    spans: Spans,
    ended: VecDeque<Span>,
}

impl Shown {
    pub(crate) fn new(size: Size, nonce: Option<Nonce>) -> Self {
        Self {
            picture: Mutex::new(Picture::new(size, nonce)),
            fed: watch::Sender::new(Fed {
                offset: 0,
                at: Instant::now(),
                prompt: None,
                done: 0,
                busy: false,
                more: false,
            }),
            size: watch::Sender::new(size),
        }
    }

    /// Looks at the screen.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Picture) -> T) -> T {
        look(&mut lock(&self.picture))
    }

    /// Takes over what the diary says.
    pub(crate) fn read_diary(&self, dir: &Path) {
        let mut picture = lock(&self.picture);
        picture.read_diary(dir);
        let size = picture.size;
        drop(picture);
        self.tell(size);
    }

    /// Shows more; returns what the terminal answers.
    pub(crate) fn feed(&self, items: &[Item], answer_from: u64, dir: &Path) -> Vec<u8> {
        let mut picture = lock(&self.picture);
        picture.read_diary(dir);
        let answers = picture.feed(items, answer_from);
        let shell = picture.shell.as_ref();
        let fed = Fed {
            offset: picture.offset,
            at: Instant::now(),
            prompt: shell.and_then(ShellMarks::prompt),
            done: shell
                .and_then(|shell| shell.spans.done())
                .map_or(0, |(at, _)| at),
            busy: shell.is_some_and(|shell| shell.spans.runs()),
            more: shell.is_some_and(|shell| shell.spans.wants_more()),
        };
        let size = picture.size;
        // Whoever is told may look at once.
        drop(picture);
        self.tell(size);
        self.fed.send_replace(fed);
        answers
    }

    fn tell(&self, size: Size) {
        self.size
            .send_if_modified(|known| std::mem::replace(known, size) != size);
    }
}

impl Picture {
    fn new(size: Size, nonce: Option<Nonce>) -> Self {
        Self {
            screen: screen(size),
            size,
            offset: 0,
            diary: Diary::default(),
            sizes: VecDeque::new(),
            shell: nonce.map(|nonce| ShellMarks {
                spans: Spans::new(&nonce, 0),
                nonce,
                ended: VecDeque::new(),
            }),
        }
    }

    /// The line that the cursor is in, up to it.
    pub(crate) fn prompt(&self) -> String {
        let view = self.screen.view();
        let row = view.rows.get(usize::from(view.cursor.row));
        let row = row.map_or("", String::as_str);
        let before = row.chars().take(usize::from(view.cursor.column));
        before.collect::<String>().trim_end().to_owned()
    }

    /// Whether the shell edits lines itself at its last prompt.
    pub(crate) fn edits(&self) -> bool {
        self.shell.as_ref().is_some_and(|shell| shell.spans.edits())
    }

    /// Where the shell was at its last prompt.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.shell.as_ref()?.spans.directory()
    }

    /// Returns the first command that began at an offset or later, and ended.
    /// What the shell did not take for a command (a comment, a mistake) is one
    /// of which it does not tell the text.
    pub(crate) fn command_from(&self, offset: u64) -> Option<Span> {
        let shell = self.shell.as_ref()?;
        let ended = shell.ended.iter().find(|span| span.output.start >= offset);
        ended.cloned().or_else(|| {
            let (end, exit) = shell.spans.done().filter(|(end, _)| *end >= offset)?;
            Some(Span {
                command: None,
                directory: None,
                output: offset..end,
                exit,
                exact: false,
            })
        })
    }

    fn read_diary(&mut self, dir: &Path) {
        // One that cannot be read costs a size, not the screen.
        for happened in self.diary.news(dir).unwrap_or_default() {
            if let What::Resized(size) = happened.what {
                self.sizes.push_back((happened.offset, size));
            }
        }
        self.resize_at(self.offset);
    }

    /// Gives it the sizes that it had up to an offset.
    fn resize_at(&mut self, offset: u64) {
        while let Some((at, size)) = self.sizes.front().copied() {
            if at > offset {
                return;
            }
            self.sizes.pop_front();
            if let Ok(checked) = weighlock_screen::Size::new(size.columns, size.rows) {
                self.screen.resize(checked);
                self.size = size;
            }
        }
    }

    fn feed(&mut self, items: &[Item], answer_from: u64) -> Vec<u8> {
        let mut answers = vec![];
        for item in items {
            match item {
                Item::Piece(piece) => {
                    let said = self.write(piece.offset, &piece.bytes);
                    if piece.offset >= answer_from {
                        answers.extend(said);
                    }
                }
                Item::Gap { to, .. } => {
                    self.resize_at(*to);
                    if let Some(shell) = &mut self.shell {
                        shell.spans = Spans::new(&shell.nonce, *to);
                    }
                }
            }
            self.offset = end_of(item);
        }
        // One that came after all output would wait for more.
        self.resize_at(self.offset);
        answers
    }

    /// Shows bytes, with each change of size where it came.
    fn write(&mut self, offset: u64, mut bytes: &[u8]) -> Vec<u8> {
        if let Some(shell) = &mut self.shell {
            shell.feed(bytes);
        }
        let (mut answers, mut at) = (vec![], offset);
        while !bytes.is_empty() {
            self.resize_at(at);
            let next = self.sizes.front().map_or(u64::MAX, |(at, _)| *at);
            let until = usize::try_from(next - at).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(until.min(bytes.len()));
            answers.extend(self.screen.feed(now));
            at += now.len() as u64;
            bytes = later;
        }
        answers
    }
}

impl ShellMarks {
    fn prompt(&self) -> Option<u64> {
        self.spans.waits().then(|| self.spans.asked())
    }

    fn feed(&mut self, bytes: &[u8]) {
        for span in self.spans.feed(bytes) {
            self.ended.push_back(span);
            if self.ended.len() > REMEMBERED {
                self.ended.pop_front();
            }
        }
    }
}

/// Returns the last screen of a terminal that is closed.
pub(crate) fn last_picture(log: &Log, dir: &Path, size: Size) -> std::io::Result<Picture> {
    let mut picture = Picture::new(size, None);
    picture.read_diary(dir);
    loop {
        let items = log.read(picture.offset, STEP)?;
        if items.is_empty() {
            return Ok(picture);
        }
        let _nobody_listens = picture.feed(&items, u64::MAX);
    }
}

fn screen(size: Size) -> Screen {
    let size = weighlock_screen::Size::new(size.columns, size.rows);
    Screen::new(size.expect("checked when it was opened"), SCROLLBACK)
}

/// Returns the offset after a stretch of output.
pub(crate) fn end_of(item: &Item) -> u64 {
    match item {
        Item::Piece(piece) => piece.offset + piece.bytes.len() as u64,
        Item::Gap { to, .. } => *to,
    }
}
