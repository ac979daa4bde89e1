//! From a keeper's first order to a command that runs.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use weighlock_confine::{Error as WallsError, Note, Program, Rung, Spare, Stdio, Tree};

use super::line::Line;
use super::pipes::{self, Pipes};
use super::pipestatus;
use crate::protocol::{self, Order, Report};
use crate::spec::{Spec, Stdin};
use crate::status::{Keeper, Status, StatusFile};

/// A server that has made a keeper tells it at once what to do.
const ORDER_WITHIN: Duration = Duration::from_secs(15);

/// Finds a program and is gone.
pub(crate) const IN_ITS_PLACE: &str = r#"exec "$0" "$@""#;

/// A command that was just started, and all that its keeper holds of it.
pub(super) struct Begun {
    pub(super) tree: Tree,
    pub(super) pipes: Pipes,
    pub(super) spec: Spec,
    pub(super) status: Status,
    pub(super) file: StatusFile,
    pub(super) line: Line,
}

/// Takes the first order and starts what it names. When that fails, the server
/// is told so, and nothing ran.
pub(super) fn begin(
    line: UnixStream,
    spare: Result<Spare, WallsError>,
    this: Keeper,
) -> io::Result<Begun> {
    let (spec, words) = first_order(&line)?;
    let mut line = Line::new(line)?;
    match start(spec, words, spare, this) {
        Ok((tree, pipes, spec, status, file)) => Ok(Begun {
            tree,
            pipes,
            spec,
            status,
            file,
            line,
        }),
        Err(error) => {
            line.say(&match &error {
                Error::Walls(error) => Report::NoWalls(error.to_string()),
                Error::Io(error) if error.kind() == io::ErrorKind::StorageFull => Report::Full,
                Error::Io(error) => Report::Refused(error.to_string()),
            });
            line.finish();
            Err(io::Error::other("nothing was started"))
        }
    }
}

/// Returns the spec, and the command with the words it will find.
fn first_order(line: &UnixStream) -> io::Result<(Spec, Vec<String>)> {
    line.set_read_timeout(Some(ORDER_WITHIN))?;
    let (mut buffer, mut piece) = (vec![], [0; 4 * 1024]);
    loop {
        match protocol::take(&mut buffer)? {
            Some(Order::Start {
                version,
                spec,
                command,
                mut args,
            }) if version == protocol::VERSION => {
                args.insert(0, command);
                return Ok((*spec, args));
            }
            Some(_) => return Err(io::ErrorKind::InvalidData.into()),
            None => {}
        }
        let read = (&*line).read(&mut piece)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.extend_from_slice(&piece[..read]);
    }
}

/// Why nothing was started.
enum Error {
    Walls(WallsError),
    Io(io::Error),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<WallsError> for Error {
    fn from(error: WallsError) -> Self {
        Self::Walls(error)
    }
}

fn start(
    mut spec: Spec,
    words: Vec<String>,
    spare: Result<Spare, WallsError>,
    this: Keeper,
) -> Result<(Tree, Pipes, Spec, Status, StatusFile), Error> {
    let mut status = Status {
        run: spec.run.clone(),
        keeper: this,
        walls: None,
        output: Default::default(),
        end: None,
        closed: false,
        told: false,
    };
    // On disk before anything runs: whoever finds the run later knows whom to
    // ask.
    let mut file = StatusFile::create(&spec.dir)?;
    file.append(&status)?;
    let spare = spare?;
    let mut note = pipestatus::ask(&mut spec, &words[0], spare.rung());
    let mut words = words;
    // Without private directories there is no place for it.
    let startup = spec.startup.take();
    if let Some(startup) = startup.filter(|_| spare.rung() > Rung::Landlock) {
        status.told = true;
        spec.env.extend(startup.env);
        words = [IN_ITS_PLACE.to_owned()]
            .into_iter()
            .chain(startup.argv)
            .collect();
        note = Some(Note {
            path: startup.path,
            text: startup.text,
            answer: None,
        });
    }
    let (pipes, stdio) = match spec.stdin {
        Stdin::Terminal(size) => (None, Stdio::Terminal(size)),
        _ => {
            let (pipes, ends) = pipes::open(spec.stdin, &spec.dir)?;
            (Some(pipes), Stdio::Files(ends))
        }
    };
    let shell = [spec.shell.path().into(), "-c".into()];
    let program = Program {
        argv: shell.into_iter().chain(words).collect(),
        env: spec.env.clone(),
        note,
        stdio,
    };
    let grown = Tree::spawn(spare, spec.profile.clone(), program)?;
    let ways = match (pipes, grown.terminal) {
        (Some(pipes), _) => pipes,
        (None, Some(terminal)) => pipes::of_terminal(terminal)?,
        (None, None) => return Err(Error::Io(io::ErrorKind::InvalidData.into())),
    };
    status.walls = Some(grown.walls);
    Ok((grown.tree, ways, spec, status, file))
}
