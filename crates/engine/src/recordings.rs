//! Recordings: what a run showed, as it came, made from its output and its
//! diary whenever somebody asks for it.
//!
//! What is made is kept for a while beside its key frames, so that somebody
//! who jumps about in it need not wait. It can always be made again.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

pub use weighlock_api::{RecordingIndex, RecordingMark};
use weighlock_effects::mask;
use weighlock_exec::{Diary, Happened, Item, Log, Size, What};
use weighlock_marks::{self as marks, Frame, Frames, Header, Index, Recorder, Spacing};
use weighlock_screen::Screen;

use crate::core::Core;
use crate::error::Error;
use crate::live::end_of;
use crate::mutex::lock;
use crate::view::Run;
use crate::view::opened_size;

/// How much of a log is read at a time.
const STEP: usize = 256 * 1024;

/// How far apart key frames are.
const SPACING: Spacing = Spacing {
    bytes: 256 * 1024,
    time: Duration::from_secs(60),
};

/// How long one that was made is kept.
const KEPT_FOR: Duration = Duration::from_secs(3600);

/// How large the terminal is that a run without one is shown in.
const USUAL: Size = Size {
    columns: 80,
    rows: 24,
};

/// A recording that was made.
pub struct Recording {
    /// The file.
    pub file: File,
    /// Its length.
    pub bytes: u64,
    /// What comes before the rest of the file: the first line, and the screen
    /// as it was.
    pub head: Vec<u8>,
}

/// Makes recordings of runs; see [`Engine::recordings`](crate::Engine::recordings).
pub struct Recordings {
    core: Arc<Core>,
    /// Those that are being made.
    making: Making,
}

impl Recordings {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self {
            core,
            making: Making::default(),
        }
    }

    /// Returns a run's recording, as asciicast; from a time on, if one is
    /// given. What seems to be a secret is masked unless it is to be seen.
    pub fn open(&self, run: &Run, at: Option<Duration>, reveal: bool) -> Result<Recording, Error> {
        let made = self.made_of(run, reveal);
        let one = self.making.one(&made.cast);
        let _one = lock(&one);
        self.make(run, reveal, &made)?;
        made.read(at).map_err(|error| self.no_recording(run, error))
    }

    /// Returns what is in a run's recording.
    pub fn read_index(&self, run: &Run) -> Result<RecordingIndex, Error> {
        let made = self.made_of(run, false);
        let one = self.making.one(&made.cast);
        let _one = lock(&one);
        self.make(run, false, &made)?;
        let index = made
            .index()
            .map_err(|error| self.no_recording(run, error))?;
        let happened = self.happened(run)?;
        let duration = index.1.as_secs_f64();
        let marks = happened.iter().map(|happened| RecordingMark {
            time: Duration::from_micros(happened.micros).as_secs_f64(),
            kind: kind_of(&happened.what).to_owned(),
            text: label(&happened.what),
        });
        Ok(RecordingIndex {
            duration,
            bytes: index.2,
            marks: marks.chain(end_of_run(run, duration)).collect(),
            frames: index.0.times().map(|time| time.as_secs_f64()).collect(),
            open: run.open,
        })
    }

    /// Where a recording is, once it was made.
    fn made_of(&self, run: &Run, reveal: bool) -> Made {
        let dir = self.core.config.state_dir.join("recordings");
        let mut name = run.command_id.clone();
        if reveal {
            name.push_str(".revealed");
        }
        if run.open {
            name.push_str(".open");
        }
        Made {
            cast: dir.join(format!("{name}.cast")),
            frames: dir.join(format!("{name}.frames")),
        }
    }

    /// Makes a recording, unless it was made lately.
    fn make(&self, run: &Run, reveal: bool, made: &Made) -> Result<(), Error> {
        if !run.open && made.cast.exists() && made.frames.exists() {
            return Ok(());
        }
        made.remove();
        let happened = self.happened(run)?;
        let make = Make {
            log: Log::open(&self.core.run_dir(&run.command_id)),
            happened,
            run,
            reveal,
        };
        make.write(made)
            .inspect_err(|_| made.remove())
            .map_err(|error| self.no_recording(run, error))
    }

    fn happened(&self, run: &Run) -> Result<Vec<Happened>, Error> {
        let dir = self.core.run_dir(&run.command_id);
        let happened = Diary::default().news(&dir);
        happened.map_err(Error::file(&dir))
    }

    fn no_recording(&self, run: &Run, error: marks::Error) -> Error {
        Error::file(&self.core.run_dir(&run.command_id))(io::Error::other(error))
    }

    /// Removes recordings that nobody has asked for in a while.
    pub(crate) fn tidy(&self) {
        let dir = self.core.config.state_dir.join("recordings");
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if self.core.is_old(&entry.path(), KEPT_FOR) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Recordings that are being made: each by one at a time, and the next finds
/// what this one made.
#[derive(Default)]
struct Making(Mutex<HashMap<PathBuf, Weak<Mutex<()>>>>);

impl Making {
    /// Returns what to hold while a file is made or read.
    fn one(&self, file: &Path) -> Arc<Mutex<()>> {
        let mut making = lock(&self.0);
        making.retain(|_, one| one.strong_count() > 0);
        if let Some(one) = making.get(file).and_then(Weak::upgrade) {
            return one;
        }
        let one = Arc::default();
        making.insert(file.to_owned(), Arc::downgrade(&one));
        one
    }
}

/// The files of a recording.
struct Made {
    cast: PathBuf,
    frames: PathBuf,
}

impl Made {
    fn remove(&self) {
        let _ = fs::remove_file(&self.cast);
        let _ = fs::remove_file(&self.frames);
    }

    fn read(&self, at: Option<Duration>) -> Result<Recording, marks::Error> {
        let failed = |source| marks::Error::Read {
            path: self.cast.clone(),
            source,
        };
        let mut file = File::open(&self.cast).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let frame = match at {
            Some(at) => Index::open(&self.frames, bytes)?.before(at)?,
            None => None,
        };
        let mut head = vec![];
        if let Some(frame) = frame {
            head = first_line(&mut file).map_err(failed)?;
            head.extend_from_slice(&frame.snapshot);
            file.seek(SeekFrom::Start(frame.position)).map_err(failed)?;
        }
        Ok(Recording { file, bytes, head })
    }

    /// Returns its key frames, its duration and its length.
    fn index(&self) -> Result<(Index, Duration, u64), marks::Error> {
        let failed = |source| marks::Error::Read {
            path: self.cast.clone(),
            source,
        };
        let bytes = self.cast.metadata().map_err(failed)?.len();
        let index = Index::open(&self.frames, bytes)?;
        let duration = Recorder::resume(&self.cast, Duration::ZERO)?.recorded(Duration::ZERO);
        Ok((index, duration, bytes))
    }
}

fn first_line(file: &mut File) -> io::Result<Vec<u8>> {
    let mut head = vec![];
    let mut byte = [0];
    while head.last() != Some(&b'\n') && file.read(&mut byte)? == 1 {
        head.push(byte[0]);
    }
    Ok(head)
}

/// A recording in the making.
struct Make<'a> {
    log: Log,
    happened: Vec<Happened>,
    run: &'a Run,
    reveal: bool,
}

impl Make<'_> {
    fn write(&self, to: &Made) -> Result<(), marks::Error> {
        let terminal = self.run.detail.terminal.as_ref();
        let size = terminal.map_or(USUAL, opened_size);
        let mut writing = Writing {
            recorder: Recorder::create(&to.cast, &self.header(size))?,
            frames: Frames::open(&to.frames, SPACING, 0)?,
            screen: screen(size),
            terminal: terminal.is_some(),
            last: Duration::ZERO,
        };
        let mut happened = self.happened.iter().peekable();
        let mut from = 0;
        loop {
            let items = self
                .log
                .read(from, STEP)
                .map_err(|source| marks::Error::Read {
                    path: to.cast.clone(),
                    source,
                })?;
            let Some(last) = items.last() else { break };
            from = end_of(last);
            for item in &items {
                let at = match item {
                    Item::Piece(piece) => piece.offset,
                    Item::Gap { from, .. } => *from,
                };
                while let Some(next) = happened.next_if(|next| next.offset <= at) {
                    writing.happened(next)?;
                }
                writing.item(item, self.reveal)?;
            }
        }
        for next in happened {
            writing.happened(next)?;
        }
        let ended = self.run.detail.duration_ms;
        if let Some(mark) = end_of_run(self.run, ended.unwrap_or(0.0) / 1000.0) {
            let time = Duration::from_secs_f64(mark.time).max(writing.last);
            writing.recorder.marker(time, &mark.text)?;
        }
        writing.recorder.finish()
    }

    fn header(&self, size: Size) -> Header {
        let began = self
            .run
            .started_at
            .as_deref()
            .unwrap_or(&self.run.created_at);
        let began = began.parse::<jiff::Timestamp>().ok();
        let terminal = self.run.detail.terminal.as_ref();
        let title = terminal.map_or(&self.run.command, |terminal| &terminal.name);
        Header {
            size: sized(size),
            timestamp: began.and_then(|began| began.as_second().try_into().ok()),
            title: Some(title.clone()),
            env: BTreeMap::from([("TERM".to_owned(), "xterm-256color".to_owned())]),
        }
    }
}

/// Where a recording is written to.
struct Writing {
    recorder: Recorder,
    frames: Frames,
    screen: Screen,
    /// Lines end as a terminal wants it.
    terminal: bool,
    last: Duration,
}

impl Writing {
    fn item(&mut self, item: &Item, reveal: bool) -> Result<(), marks::Error> {
        match item {
            Item::Gap { from, to } => {
                let text = format!("{} bytes of output are not kept", to - from);
                self.recorder.marker(self.last, &text)
            }
            Item::Piece(piece) => {
                let bytes = match self.terminal {
                    true => piece.bytes.clone(),
                    false => with_returns(&piece.bytes),
                };
                let bytes = match reveal {
                    true => bytes,
                    false => masked(&bytes),
                };
                self.last = Duration::from_micros(piece.micros);
                self.recorder.output(self.last, &bytes)?;
                let _nobody_listens = self.screen.feed(&bytes);
                self.frame()
            }
        }
    }

    fn happened(&mut self, happened: &Happened) -> Result<(), marks::Error> {
        self.last = self.last.max(Duration::from_micros(happened.micros));
        if let What::Resized(size) = happened.what {
            if let Ok(size) = weighlock_screen::Size::new(size.columns, size.rows) {
                self.screen.resize(size);
            }
            self.recorder.resize(self.last, sized(size))?;
        }
        let text = match &happened.what {
            What::Resized(_) => return Ok(()),
            What::Marked(_) => label(&happened.what),
        };
        self.recorder.marker(self.last, &text)
    }

    /// Adds a key frame when one is due: lines that show what was shown.
    fn frame(&mut self) -> Result<(), marks::Error> {
        let position = self.recorder.position();
        let time = self.recorder.recorded(self.last);
        if !self.frames.due(time, position) {
            return Ok(());
        }
        let size = self.screen.view().size;
        let mut shown = self.screen.snapshot(0);
        // The recorder keeps halves of characters itself.
        let [sequence, _] = self.screen.unfinished();
        shown.extend_from_slice(sequence);
        let lines = Frame::lines(time, (size.columns(), size.rows()), &shown);
        self.frames.add(&Frame {
            time,
            position,
            snapshot: lines,
        })
    }
}

fn screen(size: Size) -> Screen {
    let size = weighlock_screen::Size::new(size.columns, size.rows);
    Screen::new(size.expect("checked when it was opened"), 0)
}

fn sized(size: Size) -> marks::Size {
    marks::Size {
        width: size.columns,
        height: size.rows,
    }
}

/// Ends lines as a terminal wants it.
fn with_returns(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        if byte == b'\n' {
            text.push(b'\r');
        }
        text.push(byte);
    }
    text
}

/// Masks what seems to be a secret, line by line.
fn masked(bytes: &[u8]) -> Vec<u8> {
    let mut hidden = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        match masked_line(line) {
            Some(line) => hidden.extend_from_slice(line.as_bytes()),
            None => hidden.extend_from_slice(line),
        }
    }
    hidden
}

/// Masks one line; `None` where there is nothing to mask. A byte that is no
/// text must not hide a secret from us: it counts as a strange character, and
/// then as nothing.
fn masked_line(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let masked = mask(&text);
    if let Cow::Borrowed(_) = text {
        return masked;
    }
    let seen = masked.as_deref().unwrap_or(&text);
    mask(&seen.replace('\u{fffd}', "")).or(masked)
}

fn kind_of(what: &What) -> &str {
    match what {
        What::Resized(_) => "resized",
        What::Marked(mark) => &mark.kind,
    }
}

fn label(what: &What) -> String {
    match what {
        What::Resized(size) => format!("{} × {}", size.columns, size.rows),
        What::Marked(mark) if mark.kind == "command" => {
            let text = mask(&mark.text).unwrap_or_else(|| mark.text.clone());
            format!("$ {text}")
        }
        What::Marked(mark) => mark.text.clone(),
    }
}

/// How a run ended, as a mark.
fn end_of_run(run: &Run, time: f64) -> Option<RecordingMark> {
    run.ended_at.as_ref()?;
    let text = match (run.exit_code, &run.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    };
    Some(RecordingMark {
        time,
        kind: "exit".into(),
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

    #[test]
    fn a_byte_that_is_no_text_does_not_switch_masking_off() {
        let attacks = [
            format!("\u{1}\nGITHUB_TOKEN={TOKEN}\n"),
            format!("GITHUB_TOKEN={TOKEN} \u{1}\n"),
            format!("GITHUB_TOKEN=\u{1}{TOKEN}\n"),
            format!("GITHUB_TOKEN={}\u{1}{}\n", &TOKEN[..4], &TOKEN[4..]),
            format!("GITHUB_TOKEN={TOKEN}\u{1}"),
            format!("PASSWORD=x {}\u{1}{}\n", &TOKEN[..4], &TOKEN[4..]),
        ];
        for attack in attacks {
            let bytes: Vec<u8> = { attack.bytes() }
                .map(|byte| if byte == 1 { 0xff } else { byte })
                .collect();
            let shown = String::from_utf8_lossy(&masked(&bytes)).into_owned();
            assert!(shown.contains("•••"), "{attack:?}: {shown:?}");
            assert!(!shown.contains(&TOKEN[4..]), "{attack:?}: {shown:?}");
        }
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        let bytes = b"one\xff\ntw\xc3\xb6\r\n\xc3";
        assert_eq!(masked(bytes), bytes);
    }
}
