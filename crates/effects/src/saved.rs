//! Keeps changes in a file: a line about all of them, then a line for each.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::changes::{Change, Changes, Refusal, Root};

/// The first line.
#[derive(Serialize, Deserialize)]
struct SavedHeader<'a> {
    roots: std::borrow::Cow<'a, [Root]>,
    refused: std::borrow::Cow<'a, [Refusal]>,
    /// How many lines follow; with fewer, the file was cut.
    entries: usize,
}

impl Changes {
    /// Writes them to a file, which holds either all of them or what it held
    /// before; even after a loss of power, if it is to be durable.
    pub fn save(&self, file: &Path, durable: bool) -> io::Result<()> {
        let unfinished = unfinished(file);
        match self.write(&unfinished, durable) {
            Ok(()) => fs::rename(unfinished, file),
            Err(error) => {
                let _ = fs::remove_file(unfinished);
                Err(error)
            }
        }
    }

    /// Reads them from a file.
    pub fn load(file: &Path) -> io::Result<Self> {
        let mut lines = BufReader::new(File::open(file)?).split(b'\n');
        let first = lines.next().ok_or(io::ErrorKind::UnexpectedEof)??;
        let head: SavedHeader = serde_json::from_slice(&first)?;
        let entries = lines
            .map(|line| Ok(serde_json::from_slice(&line?)?))
            .collect::<io::Result<Vec<Change>>>()?;
        if entries.len() != head.entries {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self {
            roots: head.roots.into_owned(),
            refused: head.refused.into_owned(),
            entries,
        })
    }

    fn write(&self, path: &Path, durable: bool) -> io::Result<()> {
        let mut options = File::options();
        // Paths and link targets tell about the files of one person.
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = BufWriter::new(options.open(path)?);
        let head = SavedHeader {
            roots: (&self.roots).into(),
            refused: (&self.refused).into(),
            entries: self.entries.len(),
        };
        line(&mut file, &head)?;
        for entry in &self.entries {
            line(&mut file, entry)?;
        }
        let file = file.into_inner()?;
        if durable { file.sync_all() } else { Ok(()) }
    }
}

fn line(file: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *file, value)?;
    file.write_all(b"\n")
}

fn unfinished(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    name.into()
}
