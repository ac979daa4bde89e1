//! At a terminal that somebody else may type at too: watching it, and taking
//! its keyboard.
//!
//! What the program writes never reaches the person's own terminal as it is.
//! It goes to an emulator, and what that shows is drawn.

mod draw;
mod line;
mod mode;

use std::time::Duration;

use rustix::process::Signal;
use tokio::signal::unix::SignalKind;
use tokio::sync::mpsc;
use tokio::time::Instant;
use weighlock_api::{ControlView, ViewerMessage};
use weighlock_engine::Size;
use weighlock_screen::Screen;

use self::draw::{Canvas, StatusLine};
use self::line::{ServerMessage, TerminalSocket};
use self::mode::RawMode;
use crate::client::Failure;
use crate::line::{LineEditor as Note, LineState};
use crate::paths::Paths;
use crate::signals::{Signals, listen};
use crate::term;
use crate::text::{fit, safe};

/// Ctrl ], by which a person speaks to us and not to the program.
const OURS: u8 = 0x1d;

/// How long the key after that may take.
const NEXT_KEY: Duration = Duration::from_secs(1);

/// How often is drawn at the most.
const DRAW_EVERY: Duration = Duration::from_millis(16);

/// After so much output the server hears that it came.
const ACK_EVERY: u64 = 64 * 1024;

/// How long something is said that passes.
const NOTICE: Duration = Duration::from_secs(4);

/// Lines above the screen. When it grows they are seen, so there are as many as
/// the server has.
const SCROLLBACK: usize = 1000;

/// How it was left.
pub(crate) enum AttachEnd {
    /// It goes on.
    Detached,
    /// It has ended.
    Ended {
        /// How, in words.
        how: String,
    },
}

/// Watches a terminal, or types at it, until the person leaves or it ends.
pub(crate) async fn attach(paths: &Paths, name: &str, take: bool) -> Result<AttachEnd, Failure> {
    let line = TerminalSocket::open(paths, name).await?;
    let mut signals = Signals::new()?;
    let mut resized = listen(SignalKind::window_change())?;
    let mut attached = Attached::new(line, name);
    let mut suspended = listen(SignalKind::from_raw(Signal::TSTP.as_raw()))?;
    let mut mode = RawMode::enter()?;
    let mut keys = keys();
    if take {
        attached.take().await;
    }
    let left = loop {
        let next = attached.next_moment();
        let went_on = tokio::select! {
            heard = attached.line.next() => attached.hear(heard?).await?,
            bytes = keys.recv() => match bytes {
                Some(bytes) => attached.press(&bytes).await?,
                None => Some(AttachEnd::Detached),
            },
            _ = signals.next() => Some(AttachEnd::Detached),
            _ = suspended.recv() => {
                mode = mode.stopped()?;
                attached.window_changed().await?;
                None
            }
            _ = resized.recv() => {
                attached.window_changed().await?;
                None
            }
            () = tokio::time::sleep_until(next) => {
                attached.passed().await?;
                None
            }
        };
        if let Some(left) = went_on {
            break left;
        }
    };
    attached.leave().await;
    drop(mode);
    Ok(left)
}

/// Reads keys in a thread of its own, which nobody waits for.
fn keys() -> mpsc::Receiver<Vec<u8>> {
    let (give, take) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(read) = rustix::io::read(std::io::stdin(), &mut bytes) {
            if read == 0 || give.blocking_send(bytes[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    take
}

/// A person at a terminal.
struct Attached {
    line: TerminalSocket,
    name: String,
    screen: Screen,
    size: Size,
    canvas: Canvas,
    control: ControlView,
    /// The keyboard is ours.
    typing: bool,
    /// We have asked for the keyboard, and this was typed since.
    taking: Option<Vec<u8>>,
    asked: AwaitedKey,
    /// Something that is said for a while.
    notice: Option<(String, Instant)>,
    /// Output came up to this offset, and the server knows of this one.
    came: u64,
    told: u64,
    drawn: Instant,
    stale: bool,
}

/// What we wait for a key about.
enum AwaitedKey {
    Nothing,
    /// The key after Ctrl ].
    Next(Instant),
    /// A note for the next person who types.
    Note(Note),
}

impl Attached {
    fn new(line: TerminalSocket, name: &str) -> Self {
        let size = Size {
            columns: 80,
            rows: 24,
        };
        Self {
            line,
            name: name.to_owned(),
            screen: screen(size),
            size,
            canvas: Canvas::default(),
            control: ControlView::default(),
            typing: false,
            taking: None,
            asked: AwaitedKey::Nothing,
            notice: None,
            came: 0,
            told: 0,
            drawn: Instant::now() - DRAW_EVERY,
            stale: true,
        }
    }

    async fn hear(&mut self, heard: ServerMessage) -> Result<Option<AttachEnd>, Failure> {
        match heard {
            ServerMessage::Output { offset, bytes } => {
                let _the_server_answers = self.screen.feed(&bytes);
                self.came = offset + bytes.len() as u64;
                if self.came.saturating_sub(self.told) >= ACK_EVERY {
                    self.told = self.came;
                    self.line
                        .say(&ViewerMessage::Ack { offset: self.came })
                        .await;
                }
            }
            ServerMessage::Snapshot {
                offset,
                size,
                data,
                skipped,
            } => {
                (self.size, self.screen) = (size, screen(size));
                let _the_server_answers = self.screen.feed(data.as_bytes());
                (self.came, self.told) = (offset, offset);
                if skipped > 0 {
                    let size = weighlock_engine::size(skipped);
                    self.say(format!(
                        "skipped {size} — weighlock replay {} has all",
                        self.name
                    ));
                }
            }
            ServerMessage::Resized(size) => {
                self.size = size;
                if let Ok(size) = weighlock_screen::Size::new(size.columns, size.rows) {
                    self.screen.resize(size);
                }
            }
            ServerMessage::Control { control, yours } => {
                if self.typing && !yours {
                    self.asked = AwaitedKey::Nothing;
                    self.say("you are not typing any more".into());
                }
                self.typing = yours;
                self.control = control;
                if let Some(keys) = self.taking.take_if(|_| yours) {
                    self.line.press(&keys).await;
                }
            }
            ServerMessage::Said(text) => self.say(text),
            ServerMessage::Refused(text) => {
                self.taking = None;
                self.say(text);
            }
            ServerMessage::Exit(how) => return Ok(Some(AttachEnd::Ended { how })),
        }
        self.changed().await?;
        Ok(None)
    }

    /// Takes keys: ours, or the program's.
    async fn press(&mut self, bytes: &[u8]) -> Result<Option<AttachEnd>, Failure> {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            let for_program = self.has_keys();
            rest = match &mut self.asked {
                AwaitedKey::Note(note) => {
                    match note.take(rest) {
                        LineState::More => {}
                        LineState::Enter => {
                            let note = note.text();
                            self.give(Some(note)).await;
                        }
                        // Goes on typing.
                        LineState::GivenUp => self.asked = AwaitedKey::Nothing,
                    }
                    &[]
                }
                AwaitedKey::Next(_) => {
                    self.asked = AwaitedKey::Nothing;
                    if let Some(left) = self.speak(byte).await {
                        return Ok(Some(left));
                    }
                    after
                }
                AwaitedKey::Nothing if byte == OURS => {
                    self.asked = AwaitedKey::Next(Instant::now() + NEXT_KEY);
                    after
                }
                AwaitedKey::Nothing if for_program => {
                    let ours = rest.iter().position(|&byte| byte == OURS);
                    let (keys, after) = rest.split_at(ours.unwrap_or(rest.len()));
                    self.type_in(keys).await;
                    after
                }
                AwaitedKey::Nothing => {
                    match byte {
                        b't' | b'T' => self.take().await,
                        // Ctrl C.
                        b'q' | 3 => return Ok(Some(AttachEnd::Detached)),
                        _ => {}
                    }
                    after
                }
            };
        }
        self.changed().await?;
        Ok(None)
    }

    /// Does what the key after Ctrl ] means.
    async fn speak(&mut self, byte: u8) -> Option<AttachEnd> {
        match byte {
            b'd' => return Some(AttachEnd::Detached),
            b'n' if self.has_keys() => self.asked = AwaitedKey::Note(Note::new("")),
            b't' if !self.has_keys() => self.take().await,
            OURS if self.has_keys() => self.type_in(&[OURS]).await,
            _ => self.give(None).await,
        }
        None
    }

    /// Whether keys are for the program: at once, or as soon as we may type.
    fn has_keys(&self) -> bool {
        self.typing || self.taking.is_some()
    }

    async fn type_in(&mut self, keys: &[u8]) {
        match &mut self.taking {
            Some(before) => before.extend_from_slice(keys),
            None => self.line.press(keys).await,
        }
    }

    async fn take(&mut self) {
        self.taking = Some(vec![]);
        let size = window();
        let take = ViewerMessage::Take {
            columns: Some(size.columns),
            rows: Some(size.rows),
        };
        self.line.say(&take).await;
    }

    async fn give(&mut self, note: Option<String>) {
        self.asked = AwaitedKey::Nothing;
        if self.has_keys() {
            (self.typing, self.taking) = (false, None);
            let give = ViewerMessage::Give { note, drop: false };
            self.line.say(&give).await;
        }
    }

    async fn window_changed(&mut self) -> Result<(), Failure> {
        if self.typing {
            let Size { columns, rows } = window();
            self.line
                .say(&ViewerMessage::Resize { columns, rows })
                .await;
        }
        self.canvas = Canvas::default();
        self.changed().await
    }

    fn say(&mut self, text: String) {
        self.notice = Some((text, Instant::now() + NOTICE));
    }

    /// When something is due although nothing happens.
    fn next_moment(&self) -> Instant {
        let drawing = self.stale.then(|| self.drawn + DRAW_EVERY);
        let key = match self.asked {
            AwaitedKey::Next(until) => Some(until),
            _ => None,
        };
        let notice = self.notice.as_ref().map(|(_, until)| *until);
        let next = [drawing, key, notice].into_iter().flatten().min();
        next.unwrap_or_else(|| Instant::now() + NOTICE)
    }

    async fn passed(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        if matches!(self.asked, AwaitedKey::Next(until) if now >= until) {
            self.asked = AwaitedKey::Nothing;
            self.give(None).await;
        }
        self.notice.take_if(|(_, until)| now >= *until);
        self.changed().await
    }

    /// Draws what has changed, unless that was done just now.
    async fn changed(&mut self) -> Result<(), Failure> {
        self.stale = true;
        if self.drawn.elapsed() < DRAW_EVERY {
            return Ok(());
        }
        (self.stale, self.drawn) = (false, Instant::now());
        let window = term::size_of(std::io::stdout());
        let status = self.status(window.1);
        self.canvas.draw(&self.screen, &status, window)
    }

    fn status(&self, width: usize) -> StatusLine {
        let said = self.notice.as_ref().map(|(text, _)| text.clone());
        let text = match (&self.asked, said) {
            (AwaitedKey::Note(note), _) => {
                let (before, after) = ("note: ", "  Enter hands back");
                let room = width.saturating_sub(before.len() + after.len());
                return StatusLine {
                    text: format!("{before}{}{after}", note.drawn(room)),
                    typing: self.typing,
                };
            }
            (AwaitedKey::Next(_), _) if self.has_keys() => {
                "handing back — n adds a note · d detaches · Ctrl ] types Ctrl ]".into()
            }
            (AwaitedKey::Next(_), _) => "d detaches · t takes over".into(),
            (_, Some(said)) => safe(&said),
            (_, None) => self.whose_turn(),
        };
        // What one can do is said first: there may be no room for a name.
        let text = format!("{text} · {}", safe(&self.name));
        StatusLine {
            text: fit(&text, width),
            typing: self.typing,
        }
    }

    fn whose_turn(&self) -> String {
        let left = self.control.seconds_left.filter(|_| self.typing);
        match (self.typing, &self.control.taken_by, left) {
            (true, _, Some(left)) => {
                format!("you are typing — the keyboard is given back in {left} s")
            }
            (true, _, None) => "you are typing — Ctrl ] hands back".into(),
            (false, Some(by), _) => format!("{} is typing. You are watching.", safe(by)),
            (false, None, _) => "You are watching. t takes over · Ctrl ] d leaves".into(),
        }
    }

    /// Hands back what we have, if we can.
    async fn leave(&mut self) {
        self.give(None).await;
        self.line.close().await;
    }
}

/// How large the program's terminal is while we type: the last line is ours.
fn window() -> Size {
    let (rows, columns) = term::size_of(std::io::stdout());
    let fits = |size: usize| size.clamp(2, 500) as u16;
    Size {
        columns: fits(columns),
        rows: fits(rows.saturating_sub(1)),
    }
}

fn screen(size: Size) -> Screen {
    let size = weighlock_screen::Size::new(size.columns, size.rows);
    let usual = || weighlock_screen::Size::new(80, 24).expect("a usual size");
    Screen::new(size.unwrap_or_else(|_| usual()), SCROLLBACK)
}
