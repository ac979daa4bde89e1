//! What happened at a terminal, besides its output.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use weighlock_confine::Size;

/// The diary's name in a run's directory.
const FILE: &str = "diary";

/// No diary is longer: what somebody types without end is not worth a disk.
const MOST: u64 = 8 * 1024 * 1024;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happened {
    /// When, since the run's start.
    pub micros: u64,
    /// How many bytes of output there were.
    pub offset: u64,
    /// What.
    pub what: What,
}

/// What can happen at a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It was given another size.
    Resized(Size),
    /// Something that a recording points out.
    Marked(Mark),
}

/// A place in a recording that somebody may look for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// What kind of thing: `command`, `approval`, `taken`, `given_back`.
    pub kind: String,
    /// In words.
    pub text: String,
}

/// Where a reader of a diary is.
#[derive(Debug, Default)]
pub struct Diary {
    read: u64,
}

impl Diary {
    /// Returns what happened since the last call.
    pub fn news(&mut self, dir: &Path) -> io::Result<Vec<Happened>> {
        let mut file = match File::open(dir.join(FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            file => file?,
        };
        file.seek(SeekFrom::Start(self.read))?;
        let mut text = vec![];
        file.read_to_end(&mut text)?;
        // The last line may be still on its way.
        let whole = memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1);
        self.read += whole as u64;
        let lines = text[..whole].split(|&byte| byte == b'\n');
        // A torn line is one that a full disk has cut.
        Ok(lines
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect())
    }
}

/// A keeper's end of a diary. Makes no file before there is something to say.
#[derive(Default)]
pub(crate) struct DiaryWriter {
    file: Option<File>,
    written: u64,
}

impl DiaryWriter {
    /// Writes down what happened, as far as the disk takes it.
    pub(crate) fn add(&mut self, dir: &Path, happened: &Happened) -> io::Result<()> {
        let mut line = serde_json::to_vec(happened)?;
        line.push(b'\n');
        if self.written + line.len() as u64 > MOST {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut how = OpenOptions::new();
                none.insert(how.create(true).append(true).open(dir.join(FILE))?)
            }
        };
        file.write_all(&line)?;
        self.written += line.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(offset: u64) -> Happened {
        Happened {
            micros: offset,
            offset,
            what: What::Marked(Mark {
                kind: "command".into(),
                text: "ls\n".into(),
            }),
        }
    }

    #[test]
    fn what_is_written_is_read_once_and_half_a_line_not_yet() {
        let dir = tempfile::tempdir().unwrap();
        let (mut writer, mut diary) = (DiaryWriter::default(), Diary::default());
        assert_eq!(diary.news(dir.path()).unwrap(), []);
        writer.add(dir.path(), &mark(1)).unwrap();
        writer.add(dir.path(), &mark(2)).unwrap();
        assert_eq!(diary.news(dir.path()).unwrap(), [mark(1), mark(2)]);
        assert_eq!(diary.news(dir.path()).unwrap(), []);
        let mut line = serde_json::to_vec(&mark(3)).unwrap();
        line.push(b'\n');
        let path = dir.path().join(FILE);
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(&line[..9]).unwrap();
        assert_eq!(diary.news(dir.path()).unwrap(), []);
        file.write_all(&line[9..]).unwrap();
        assert_eq!(diary.news(dir.path()).unwrap(), [mark(3)]);
    }

    #[test]
    fn a_diary_does_not_grow_without_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = DiaryWriter {
            written: MOST,
            ..DiaryWriter::default()
        };
        assert!(writer.add(dir.path(), &mark(1)).is_err());
    }
}
