//! From a keeper's first order to a command that runs.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use weighlock_confine::{Error as WallsError, Note, ProgramSpec, Rung, Spare, Tree};

use super::line::ServerLink;
use super::pipes::{self, Pipes};
use super::pipestatus;
use crate::protocol::{self, KeeperOrder, KeeperReport};
use crate::spec::{Spec, Stdin};
use crate::status::{Keeper, Status, StatusFile};

/// A server that has made a keeper tells it at once what to do, and that it may
/// as soon as that is on record.
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
    pub(super) line: ServerLink,
}

/// Takes the first order, builds walls, and starts the command once it may. A
/// byte on `place` says that this keeper waits no longer. When the start fails,
/// the keeper reports it to the server, and nothing ran.
pub(super) fn begin(
    line: UnixStream,
    spare: Result<Spare, WallsError>,
    this: Keeper,
    place: &OwnedFd,
) -> io::Result<Begun> {
    let mut orders = Orders::new(line)?;
    let (spec, words) = orders.first()?;
    let begun = start(spec, words, spare, this, place, &mut orders);
    if begun.is_err() {
        // Whatever it is, the server hears of it when it has said so.
        let _ = orders.go();
    }
    let mut line = ServerLink::new(orders.line)?;
    match begun {
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
                Error::Walls(error) => KeeperReport::NoWalls(error.to_string()),
                Error::Io(error) if error.kind() == io::ErrorKind::StorageFull => {
                    KeeperReport::Full
                }
                Error::Io(error) => KeeperReport::Refused(error.to_string()),
            });
            line.finish();
            Err(io::Error::other("nothing was started"))
        }
    }
}

/// What the server says before anything runs.
struct Orders {
    line: UnixStream,
    buffer: Vec<u8>,
    /// It may start.
    gone: bool,
}

impl Orders {
    fn new(line: UnixStream) -> io::Result<Self> {
        line.set_read_timeout(Some(ORDER_WITHIN))?;
        Ok(Self {
            line,
            buffer: vec![],
            gone: false,
        })
    }

    /// Returns the spec, and the command with the words it will find.
    fn first(&mut self) -> io::Result<(Spec, Vec<String>)> {
        match self.next()? {
            KeeperOrder::Start {
                version,
                spec,
                command,
                mut args,
            } if version == protocol::VERSION => {
                args.insert(0, command);
                Ok((*spec, args))
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Waits until the command may start.
    fn go(&mut self) -> io::Result<()> {
        if !self.gone {
            self.gone = matches!(self.next()?, KeeperOrder::Go);
        }
        match self.gone {
            true => Ok(()),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn next(&mut self) -> io::Result<KeeperOrder> {
        let mut piece = [0; 4 * 1024];
        loop {
            if let Some(order) = protocol::take(&mut self.buffer)? {
                return Ok(order);
            }
            let read = self.line.read(&mut piece)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.buffer.extend_from_slice(&piece[..read]);
        }
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
        match error {
            WallsError::Withheld(error) => Self::Io(error),
            error => Self::Walls(error),
        }
    }
}

fn start(
    mut spec: Spec,
    words: Vec<String>,
    spare: Result<Spare, WallsError>,
    this: Keeper,
    place: &OwnedFd,
    orders: &mut Orders,
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
    let shell = [spec.shell.path().into(), "-c".into()];
    let program = ProgramSpec {
        argv: shell.into_iter().chain(words).collect(),
        env: spec.env.clone(),
        note,
        terminal: match spec.stdin {
            Stdin::Terminal(size) => Some(size),
            _ => None,
        },
    };
    let (mut file, mut pipes) = (None, None);
    let profile = spec.profile.clone();
    let grown = Tree::spawn(spare, profile, program, || {
        // The nursery hears of it now: before, it would have run beside us.
        let _ = rustix::io::write(place, b"w");
        orders.go()?;
        // On disk before anything runs: whoever finds the run later knows whom
        // to ask.
        let written = file.insert(StatusFile::create(&spec.dir)?);
        written.append(&status)?;
        if let Stdin::Terminal(_) = spec.stdin {
            return Ok(vec![]);
        }
        let (ours, ends) = pipes::open(spec.stdin, &spec.dir)?;
        pipes = Some(ours);
        Ok(ends.into())
    })?;
    let ways = match (pipes, grown.terminal) {
        (Some(pipes), _) => pipes,
        (None, Some(terminal)) => pipes::of_terminal(terminal)?,
        (None, None) => return Err(Error::Io(io::ErrorKind::InvalidData.into())),
    };
    let file = file.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    status.walls = Some(grown.walls);
    Ok((grown.tree, ways, spec, status, file))
}
