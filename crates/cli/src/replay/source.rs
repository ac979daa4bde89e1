//! Where a recording comes from: a file, a terminal or a run.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use weighlock_marks::{EventReader, first_line};

use super::recording::failure;
use crate::client::{Client, Failure, block_on, escape};
use crate::paths::Paths;
use crate::verb::show::resolve;

/// A file that can be read more than once.
pub(crate) struct RecordingFile {
    pub(super) path: PathBuf,
    /// What a person calls it.
    pub(super) name: String,
    /// Keeps a file that has no name.
    _file: Option<File>,
}

impl RecordingFile {
    /// Finds what a person named: a file, and otherwise what the server has.
    pub(crate) fn find(what: &OsStr, paths: Result<Paths, Failure>) -> Result<Self, Failure> {
        let path = Path::new(what);
        let is_there = path.metadata().is_ok_and(|found| !found.is_dir());
        if is_there || path.extension().is_some_and(|end| end == "cast") {
            return Self::file(path);
        }
        let name = what.to_string_lossy().into_owned();
        let paths = paths?;
        block_on(async {
            let mut client = Client::open(&paths).await?;
            let body = ask(&mut client, &name).await?;
            Self::fetched(name, body).await
        })
    }

    /// Opens it, if it begins as a recording does.
    pub(crate) fn open(&self) -> Result<File, Failure> {
        let path = &self.path;
        EventReader::open(path).map_err(|error| failure(&self.name, error))?;
        File::open(path)
            .map_err(|error| Failure::new(format!("cannot read {}: {error}", self.name), ""))
    }

    /// Takes a file. What can be read only once, as a pipe, is kept first;
    /// devices have no end.
    fn file(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        match path.metadata().map(|found| found.file_type()) {
            Ok(kind) if kind.is_fifo() => {
                let pipe = File::open(path);
                let mut pipe =
                    pipe.map_err(|error| Failure::new(format!("cannot read {name}: {error}"), ""))?;
                Self::kept(name, &mut pipe)
            }
            Ok(kind) if !kind.is_file() => Err(Failure::new(
                format!("{name} is not a recording: it is not a file"),
                "name a terminal (weighlock term list), a run (weighlock runs) or a file.cast",
            )),
            _ => Ok(Self {
                path: path.to_owned(),
                name,
                _file: None,
            }),
        }
    }

    /// Puts on disk what can be read only once, if it begins as a recording
    /// does.
    pub(super) fn kept(name: String, from: &mut impl Read) -> Result<Self, Failure> {
        let mut from = BufReader::new(from);
        let first = first_line(&mut from, name.as_ref());
        let first = first.map_err(|error| failure(&name, error))?;
        let mut file = nameless().map_err(|error| unkept(&error))?;
        file.write_all(&first).map_err(|error| unkept(&error))?;
        io::copy(&mut from, &mut file).map_err(|error| unkept(&error))?;
        Ok(Self::nameless(name, file))
    }

    /// Puts what the server answers on disk, where a long one takes no memory.
    async fn fetched(name: String, mut body: Incoming) -> Result<Self, Failure> {
        let mut file = nameless().map_err(|error| unkept(&error))?;
        while let Some(piece) = body.frame().await {
            let piece = piece.map_err(|error| {
                Failure::new(format!("the recording did not come whole: {error}"), "")
            })?;
            if let Ok(bytes) = piece.into_data() {
                file.write_all(&bytes).map_err(|error| unkept(&error))?;
            }
        }
        Ok(Self::nameless(name, file))
    }

    /// The kernel knows a file without a name by its number.
    fn nameless(name: String, file: File) -> Self {
        Self {
            path: format!("/proc/self/fd/{}", file.as_raw_fd()).into(),
            name,
            _file: Some(file),
        }
    }
}

/// Asks for the terminal of this name, and then for the run.
async fn ask(client: &mut Client, name: &str) -> Result<Incoming, Failure> {
    let terminal = format!("/terminals/{}/recording", escape(name));
    match client.stream(&terminal).await {
        Err(failure) if is_absent(&failure) => {}
        answer => return answer,
    }
    let id = resolve(client, name).await?;
    let run = client.stream(&format!("/commands/{id}/recording")).await;
    run.map_err(|failure| match is_absent(&failure) {
        true => Failure::new(
            format!("there is no recording of `{name}`: {}", failure.what),
            "name a terminal (weighlock term list), a run (weighlock runs) or a file.cast",
        ),
        false => failure,
    })
}

fn is_absent(failure: &Failure) -> bool {
    let problem = failure.problem.as_ref();
    problem.is_some_and(|problem| problem.status == 404)
}

/// Makes a file that is gone when we are, however we end.
fn nameless() -> io::Result<File> {
    let dir = std::env::temp_dir();
    let mut tries = 0..100;
    loop {
        let path = dir.join(format!("weighlock-{}-{}", std::process::id(), tries.start));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        match options.open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        if tries.next().is_none() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
    }
}

fn unkept(error: &io::Error) -> Failure {
    let dir = std::env::temp_dir();
    Failure::new(
        format!("the recording cannot be kept in {}: {error}", dir.display()),
        "make room there, or name another directory in TMPDIR",
    )
}
