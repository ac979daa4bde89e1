//! The write-ahead journal of a commit, by which a commit is finished or taken
//! back after a crash.
//!
//! `journal` holds the steps and is complete when its last line says so.
//! `progress` says which steps have begun that cannot be told by looking, and
//! whether everything is being taken back.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use weighlock_confine::FileId;

use super::applied::NEW;
use super::handle::Traits;
use crate::changes::Changes;
use crate::node::{Node, Raw, Time};

const JOURNAL: &str = "journal";
const PROGRESS: &str = "progress";

/// What one line of the progress takes at the most.
const SIGN_BYTES: u64 = 32;

/// One line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JournalLine {
    Begin {
        changes: Box<Changes>,
        durable: bool,
    },
    Anchor(Anchor),
    Step(Box<JournalStep>),
    Dir(Dir),
    Ready,
}

/// A directory of the live tree that holds a directory for what is not yet, or
/// no longer, at its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Anchor {
    pub(crate) root: usize,
    pub(crate) path: Raw,
    pub(crate) name: String,
    /// When the directory that holds it had changed last.
    pub(crate) mtime: Time,
}

/// One thing to do at one path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JournalStep {
    pub(crate) root: usize,
    pub(crate) path: Raw,
    /// Which anchor's directory it uses; under its own number.
    pub(crate) anchor: usize,
    pub(crate) deed: StepAction,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StepAction {
    /// Puts what is staged where nothing is: a file, a link or a whole tree.
    Put { is: ExpectedFile },
    /// Puts what is staged where something else is.
    Replace { is: ExpectedFile, was: ExpectedFile },
    /// Takes a file or link away.
    Remove { was: ExpectedFile },
    /// Takes an empty directory away.
    RemoveDir { was: FileId, traits: Traits },
    /// Writes what is staged into a file that has more names than this.
    Rewrite {
        was: ExpectedFile,
        image: u64,
        from: Traits,
        to: Traits,
    },
    /// Changes all but the content.
    Adjust {
        was: ExpectedFile,
        dir: bool,
        from: Traits,
        to: Traits,
    },
}

/// What must stand there for a deed to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExpectedFile {
    pub(crate) id: FileId,
    pub(crate) size: u64,
    pub(crate) mtime: Time,
    /// Of a file with one name only: what we do under one name would seem to
    /// have happened to the others.
    pub(crate) ctime: Option<Time>,
}

impl ExpectedFile {
    pub(crate) fn of(node: &Node) -> Self {
        let ctime = (node.links == 1).then_some(node.ctime);
        Self {
            id: super::images::id(node),
            size: node.size,
            mtime: node.mtime,
            ctime,
        }
    }

    /// Whether it is what was there, and was not even renamed.
    pub(crate) fn is_still(&self, node: &Node) -> bool {
        self.has_content_of(&Self::of(node)) && self.ctime.is_none_or(|ctime| ctime == node.ctime)
    }

    /// Whether nobody wrote to it. Renaming and linking alone change `ctime`.
    pub(crate) fn has_content_of(&self, other: &Self) -> bool {
        (self.id, self.size, self.mtime) == (other.id, other.size, other.mtime)
    }
}

impl StepAction {
    /// Whether it changes a file that stays the same file.
    pub(crate) fn is_inside(&self) -> bool {
        matches!(self, Self::Rewrite { .. } | Self::Adjust { .. })
    }
}

/// A directory that changes because something in it does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Dir {
    pub(crate) root: usize,
    pub(crate) path: Raw,
    pub(crate) is: FileId,
    pub(crate) before: DirTraits,
    pub(crate) after: DirTraits,
    /// Its owner cannot write in it, and must for a moment.
    pub(crate) opened: bool,
    /// It is among what is removed.
    pub(crate) removed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DirTraits {
    pub(crate) mode: u32,
    pub(crate) mtime: Time,
}

/// A journal as found.
#[derive(Debug, Default)]
pub(crate) struct JournalContents {
    pub(crate) begin: Option<(Changes, bool)>,
    pub(crate) anchors: Vec<Anchor>,
    pub(crate) steps: Vec<JournalStep>,
    pub(crate) dirs: Vec<Dir>,
    pub(crate) ready: bool,
}

/// Reads the journal of a commit; `None` if there is none. A line that was
/// being written when the end came is left out.
pub(crate) fn read(dir: &Path) -> io::Result<Option<JournalContents>> {
    let Some(lines) = lines::<JournalLine>(&dir.join(JOURNAL))? else {
        return Ok(None);
    };
    let mut found = JournalContents::default();
    for line in lines {
        match line {
            JournalLine::Begin { changes, durable } => found.begin = Some((*changes, durable)),
            JournalLine::Anchor(anchor) => found.anchors.push(anchor),
            JournalLine::Step(step) => found.steps.push(*step),
            JournalLine::Dir(dir) => found.dirs.push(dir),
            JournalLine::Ready => found.ready = true,
        }
    }
    Ok(Some(found))
}

/// Returns whether there is a journal.
pub(crate) fn is_there(dir: &Path) -> bool {
    dir.join(JOURNAL).exists()
}

/// A journal being written.
pub(crate) struct JournalWriter(BufWriter<File>);

impl JournalWriter {
    pub(crate) fn create(dir: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(dir.join(JOURNAL))?;
        Ok(Self(BufWriter::new(file)))
    }

    pub(crate) fn write(&mut self, line: &JournalLine) -> io::Result<()> {
        serde_json::to_writer(&mut self.0, line)?;
        self.0.write_all(b"\n")
    }

    /// Returns how much was written so far.
    pub(crate) fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.get_ref().metadata()?.len())
    }

    pub(crate) fn flush(&mut self, durable: bool) -> io::Result<()> {
        self.0.flush()?;
        if durable {
            self.0.get_ref().sync_data()?;
        }
        Ok(())
    }
}

/// One line of the progress.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ProgressEntry {
    Begun(usize),
    Back,
    Undone,
}

/// How far it is.
pub(crate) struct CommitProgress {
    path: PathBuf,
    durable: bool,
    begun: HashSet<usize>,
    back: bool,
    undone: bool,
}

impl CommitProgress {
    pub(crate) fn read(dir: &Path, durable: bool) -> io::Result<Self> {
        let path = dir.join(PROGRESS);
        let mut found = Self {
            path,
            durable,
            begun: HashSet::new(),
            back: false,
            undone: false,
        };
        for sign in lines::<ProgressEntry>(&found.path)?.unwrap_or_default() {
            match sign {
                ProgressEntry::Begun(step) => _ = found.begun.insert(step),
                ProgressEntry::Back => found.back = true,
                ProgressEntry::Undone => found.undone = true,
            }
        }
        Ok(found)
    }

    /// Keeps room for all that will be said: without it, a disk that fills up
    /// leaves no way forward and none back.
    pub(crate) fn reserve(&self, steps: usize) -> io::Result<()> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.path)?;
        reserve(&file, (steps as u64 + 8) * SIGN_BYTES)
    }

    pub(crate) fn has_begun(&self, step: usize) -> bool {
        self.begun.contains(&step)
    }

    pub(crate) fn goes_back(&self) -> bool {
        self.back
    }

    /// Whether all is as it was, and only has to be tidied up.
    pub(crate) fn is_undone(&self) -> bool {
        self.undone
    }

    pub(crate) fn all_undone(&self) -> io::Result<()> {
        self.append([ProgressEntry::Undone])
    }

    pub(crate) fn begin(&mut self, steps: &[usize]) -> io::Result<()> {
        self.append(steps.iter().map(|step| ProgressEntry::Begun(*step)))?;
        self.begun.extend(steps);
        Ok(())
    }

    pub(crate) fn go_back(&mut self) -> io::Result<()> {
        self.append([ProgressEntry::Back])?;
        self.back = true;
        Ok(())
    }

    fn append(&self, signs: impl IntoIterator<Item = ProgressEntry>) -> io::Result<()> {
        // A line that was cut off must not take the next with it.
        let mut text = String::from("\n");
        for sign in signs {
            text += &serde_json::to_string(&sign)?;
            text.push('\n');
        }
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.path)?;
        file.write_all(text.as_bytes())?;
        if self.durable {
            file.sync_data()
        } else {
            Ok(())
        }
    }
}

/// Keeps room behind the end of a file, where the file system can.
pub(crate) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes.max(1)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        done => Ok(done?),
    }
}

/// Removes all of them; the journal first, since without it the others say
/// nothing.
pub(crate) fn remove(dir: &Path) -> io::Result<()> {
    for name in [JOURNAL, PROGRESS, NEW] {
        absent_ok(std::fs::remove_file(dir.join(name)))?;
    }
    Ok(())
}

pub(crate) fn absent_ok(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn lines<T: for<'a> Deserialize<'a>>(path: &Path) -> io::Result<Option<Vec<T>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut all = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        if let Ok(value) = serde_json::from_slice(&line?) {
            all.push(value);
        }
    }
    Ok(Some(all))
}
