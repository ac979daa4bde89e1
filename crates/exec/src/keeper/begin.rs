//! From a keeper's first order to a command that runs.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::process::fchdir;
use weighlock_confine::{Program, Tree};

use super::line::Line;
use super::pipes::{self, Pipes};
use super::pipestatus;
use crate::protocol::{self, Order, Report};
use crate::spec::Spec;
use crate::status::{Keeper, Status, StatusFile};

/// A server that has made a keeper tells it at once what to do.
const ORDER_WITHIN: Duration = Duration::from_secs(15);

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
pub(super) fn begin(line: UnixStream, cwd: OwnedFd, this: Keeper) -> io::Result<Begun> {
    let (spec, command) = first_order(&line)?;
    let mut line = Line::new(line)?;
    match start(spec, &command, cwd, this) {
        Ok((tree, pipes, spec, status, file)) => Ok(Begun {
            tree,
            pipes,
            spec,
            status,
            file,
            line,
        }),
        Err(error) => {
            line.say(&match error.kind() {
                io::ErrorKind::StorageFull => Report::Full,
                _ => Report::Refused(error.to_string()),
            });
            line.finish();
            Err(error)
        }
    }
}

fn first_order(line: &UnixStream) -> io::Result<(Spec, String)> {
    line.set_read_timeout(Some(ORDER_WITHIN))?;
    let (mut buffer, mut piece) = (vec![], [0; 4 * 1024]);
    loop {
        match protocol::take(&mut buffer)? {
            Some(Order::Start {
                version,
                spec,
                command,
            }) if version == protocol::VERSION => return Ok((*spec, command)),
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

fn start(
    mut spec: Spec,
    command: &str,
    cwd: OwnedFd,
    this: Keeper,
) -> io::Result<(Tree, Pipes, Spec, Status, StatusFile)> {
    let mut status = Status {
        run: spec.run.clone(),
        keeper: this,
        containment: None,
        output: Default::default(),
        end: None,
        closed: false,
    };
    // On disk before anything runs: whoever finds the run later knows whom to
    // ask.
    let mut file = StatusFile::create(&spec.dir)?;
    file.append(&status)?;
    pipestatus::ask(&mut spec, command)?;
    let (pipes, ends) = pipes::open(spec.stdin, &spec.dir)?;
    fchdir(&cwd)?;
    drop(cwd);
    let env = spec.env.iter();
    let env: Vec<_> = env
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let tree = Tree::spawn(|| {
        let ends = ends.try_clone()?;
        Ok(Program {
            argv: vec![spec.shell.path().into(), "-c".into(), command.into()],
            env: env.clone(),
            stdin: ends.stdin,
            stdout: ends.stdout,
            stderr: ends.stderr,
        })
    })
    .map_err(io::Error::other)?;
    // Not to keep the directory's file system busy.
    std::env::set_current_dir("/")?;
    status.containment = Some(tree.containment());
    Ok((tree, pipes, spec, status, file))
}
