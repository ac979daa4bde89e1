//! The server's view of one run.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex, mpsc, watch};
use weighlock_confine::Size;
use weighlock_policy::Permit;

use crate::alarms::AlarmSlot;
use crate::diary::Mark;
use crate::keeper::{IN_ITS_PLACE, KEEPER_SOCKET};
use crate::nursery::Nursery;
use crate::protocol::{self, KeeperOrder, KeeperReport, Message, Polite};
use crate::short::ShortPath;
use crate::spec::{self, Spec};
use crate::status::{self, Status, TerminalState};

/// Every keeper answers the first order within this; it only has to fork.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// Input goes over in such pieces, each taken before the next is sent.
const INPUT_PIECE: usize = 64 * 1024;

/// Why a command could not be started. Nothing ran, unless it says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No keeper could be made.
    #[error("cannot start a keeper")]
    Keeper(#[source] io::Error),
    /// The keeper could not do it.
    #[error("the keeper could not start the command: {0}")]
    Refused(String),
    /// The walls that are demanded could not be built.
    #[error("{0}")]
    Walls(String),
    /// There is no room for the run's files.
    #[error("the disk is full")]
    Full,
    /// The keeper vanished.
    #[error("the keeper is gone")]
    Gone,
    /// The keeper was silent.
    #[error("the keeper did not answer")]
    Silent,
    /// The keeper was killed when it had left word that it begins: nobody
    /// knows how far it came.
    #[error("the keeper was killed as the command began")]
    Died(Box<Status>),
}

/// A run under its keeper. Dropping it leaves the run alone.
pub struct Job {
    /// To the task that writes: an order is written whole even when the
    /// caller's future is dropped meanwhile.
    orders: mpsc::Sender<Vec<u8>>,
    /// How much input was sent. Held while input is on its way, so that two
    /// feeders cannot mix.
    fed: Mutex<InputCount>,
    /// Held while an answer about the terminal is awaited.
    looking: Mutex<()>,
    seen: watch::Receiver<KeeperView>,
}

/// Bytes of input that were sent so far.
#[derive(Debug, Default)]
struct InputCount {
    all: u64,
    /// Those that nobody waits for, at the end.
    offered: u64,
}

/// What the keeper said last.
#[derive(Debug, Clone)]
struct KeeperView {
    status: Status,
    stdin_taken: u64,
    /// How its terminal is set, and how often that was told.
    terminal: (u64, Option<TerminalState>),
    /// How often its terminal was given another size.
    resized: u64,
    /// The line to the keeper is cut.
    gone: bool,
}

/// What became of a keeper that the server lost sight of.
pub enum Orphan {
    /// It goes on.
    Running(Job),
    /// It finished and left its last word.
    Ended(Box<Status>),
    /// It was killed with its run, or the machine went down.
    Dead(Box<Status>),
    /// It never started the command.
    NeverBegan,
}

/// A keeper that waits for its order. Dropped, it goes away again.
pub struct Summoned(UnixStream);

/// Calls a keeper, which gets ready while the caller does other things.
pub fn summon(nursery: &Nursery) -> Result<Summoned, Error> {
    let line = nursery.launch().map_err(Error::Keeper)?;
    line.set_nonblocking(true).map_err(Error::Keeper)?;
    let line = UnixStream::from_std(line).map_err(Error::Keeper)?;
    Ok(Summoned(line))
}

/// A keeper that builds walls for a command. Dropped, it goes away again, and
/// nothing has run.
pub struct Ordered {
    line: UnixStream,
    /// What it was told, for another in its place.
    order: Vec<u8>,
    dir: PathBuf,
}

/// Has the walls built for the permitted command, which does not start yet.
pub async fn order(keeper: Summoned, permit: Permit, spec: Spec) -> Result<Ordered, Error> {
    let dir = spec.dir.clone();
    let (command, args) = match permit.argv() {
        // The shell finds the program and is gone: it reads none of the words.
        Some(argv) => (IN_ITS_PLACE, argv),
        None => (permit.command(), &[] as &[String]),
    };
    let order = KeeperOrder::Start {
        version: protocol::VERSION,
        spec: Box::new(spec),
        command: command.to_owned(),
        args: args.to_vec(),
    };
    let (order, mut line) = (order.encode(), keeper.0);
    // One that was killed while it waited is replaced when it has to start.
    let _ = tokio::time::timeout(ANSWER_WITHIN, line.write_all(&order))
        .await
        .map_err(|_| Error::Silent)?;
    Ok(Ordered { line, order, dir })
}

/// Starts the command. When this returns an error, nothing ran; but for
/// [`Error::Died`].
pub async fn start(nursery: &Nursery, keeper: Ordered) -> Result<Job, Error> {
    let Ordered { line, order, dir } = keeper;
    let go = KeeperOrder::Go.encode();
    let mut job = Job::connect(line, &go).await;
    // Killed while it waited: it leaves a word before it begins anything. Those
    // that waited beside it may have been killed with it.
    for _ in 0..REPLACED {
        let gone = matches!(job, Err(Error::Gone));
        if !gone || !matches!(Status::load(&dir), Ok(None)) {
            break;
        }
        job = Job::connect(summon(nursery)?.0, &[&order[..], &go].concat()).await;
    }
    match (job, Status::load(&dir)) {
        (Err(Error::Gone | Error::Silent), Ok(Some(status))) => Err(Error::Died(Box::new(status))),
        (job, _) => job,
    }
}

/// How many dead keepers are replaced: more than are ready at once.
const REPLACED: usize = 8;

/// Finds the keeper of a run that was started by an earlier server.
pub async fn adopt(dir: &Path) -> io::Result<Orphan> {
    loop {
        let Some(status) = Status::load(dir)? else {
            // A keeper that comes late cannot begin without its directory, so
            // taking that away is what makes it true. It fails when the keeper
            // was faster.
            let _ = std::fs::remove_file(dir.join(spec::INPUT));
            match std::fs::remove_dir(dir) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    continue;
                }
                _ => return Ok(Orphan::NeverBegan),
            }
        };
        if status.closed {
            return Ok(Orphan::Ended(Box::new(status)));
        }
        // Asked before the connection is tried: a keeper that dies in between
        // has left its last status, which the next round reads.
        let alive = status.keeper.is_alive();
        let door = ShortPath::new(dir, KEEPER_SOCKET)?;
        if let Ok(line) = UnixStream::connect(&door).await
            && let Ok(job) = Job::connect(line, &[]).await
        {
            return Ok(Orphan::Running(job));
        }
        if !alive {
            return Ok(match Status::load(dir)? {
                Some(status) if status.closed => Orphan::Ended(Box::new(status)),
                _ => Orphan::Dead(Box::new(status)),
            });
        }
        // It is about to notice that its server is gone and to open its
        // socket. The file system tells nobody when that happens.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Removes what a keeper left in a run's directory besides output, once that
/// is recorded; and the directory, when that leaves nothing.
pub fn forget(dir: &Path) {
    for file in [status::FILE, KEEPER_SOCKET, spec::INPUT] {
        let _ = std::fs::remove_file(dir.join(file));
    }
    let _ = std::fs::remove_dir(dir);
}

/// Tells whether there is something to forget in a run's directory.
pub fn is_left(dir: &Path) -> bool {
    dir.join(status::FILE).exists()
        || std::fs::read_dir(dir).is_ok_and(|mut files| files.next().is_none())
}

impl Job {
    /// Says what is to be said first, and waits for an answer.
    async fn connect(line: UnixStream, first: &[u8]) -> Result<Self, Error> {
        let (mut reports, mut orders) = line.into_split();
        tokio::time::timeout(ANSWER_WITHIN, orders.write_all(first))
            .await
            .map_err(|_| Error::Silent)?
            .map_err(|_| Error::Gone)?;
        let mut buffer = vec![];
        let answer = tokio::time::timeout(ANSWER_WITHIN, next(&mut reports, &mut buffer)).await;
        let status = match answer {
            Ok(Ok(Some(KeeperReport::Status { version, status })))
                if version <= protocol::VERSION =>
            {
                *status
            }
            Ok(Ok(Some(KeeperReport::Refused(reason)))) => return Err(Error::Refused(reason)),
            Ok(Ok(Some(KeeperReport::NoWalls(why)))) => return Err(Error::Walls(why)),
            Ok(Ok(Some(KeeperReport::Full))) => return Err(Error::Full),
            Ok(Ok(None) | Err(_)) => return Err(Error::Gone),
            _ => return Err(Error::Silent),
        };
        let (tell, seen) = watch::channel(KeeperView {
            status,
            stdin_taken: 0,
            terminal: (0, None),
            resized: 0,
            gone: false,
        });
        let (give, given) = mpsc::channel(16);
        let slot = AlarmSlot::new(give.downgrade());
        tokio::spawn(listen(reports, buffer, tell, slot));
        tokio::spawn(write(orders, given));
        Ok(Self {
            orders: give,
            fed: Mutex::default(),
            looking: Mutex::new(()),
            seen,
        })
    }

    /// Returns what is known now.
    pub fn status(&self) -> Status {
        self.seen.borrow().status.clone()
    }

    /// Returns how many processes the run has now, and their resident memory.
    pub fn load(&self) -> (usize, u64) {
        let keeper = self.seen.borrow().status.keeper.pid;
        let (processes, bytes) = weighlock_confine::load_below(keeper);
        // The first process inside is ours.
        (processes.saturating_sub(1), bytes)
    }

    /// Returns whether nothing more will be heard of the run.
    pub fn is_over(&self) -> bool {
        let seen = self.seen.borrow();
        seen.gone || seen.status.closed
    }

    /// Waits until the command has ended and returns the last word on it;
    /// `None` when the keeper vanished without one.
    pub async fn ended(&self) -> Option<Status> {
        self.until(|status| status.end.is_some()).await
    }

    /// Waits until nothing of the run is left.
    pub async fn closed(&self) -> Option<Status> {
        self.until(|status| status.closed).await
    }

    /// Waits for more output than `offset` bytes, or for the end: of the
    /// command, or of everything it left running.
    pub async fn output_past(&self, offset: u64, all: bool) {
        let mut seen = self.seen.clone();
        let _ = seen
            .wait_for(|seen| {
                seen.gone
                    || seen.status.closed
                    || seen.status.output.bytes() > offset
                    || (!all && seen.status.end.is_some())
            })
            .await;
    }

    /// Asks the run to end, and ends it by force after the grace time.
    pub async fn stop(&self, interrupt: bool, grace: Duration) -> io::Result<()> {
        self.order(&KeeperOrder::Stop {
            signal: if interrupt {
                Polite::Interrupt
            } else {
                Polite::Terminate
            },
            grace_millis: grace.as_millis() as u64,
        })
        .await
    }

    /// Feeds the command and returns when it has taken all of it, or reads no
    /// more.
    pub async fn feed(&self, bytes: &[u8]) -> io::Result<()> {
        let mut fed = self.fed.lock().await;
        // What a feeder that went away has left behind comes first, so that
        // no more than one piece waits in the keeper.
        fed.offered = 0;
        self.taken(fed.all).await?;
        for piece in bytes.chunks(INPUT_PIECE) {
            self.order(&KeeperOrder::Stdin(piece.to_vec())).await?;
            fed.all += piece.len() as u64;
            self.taken(fed.all).await?;
        }
        Ok(())
    }

    /// Feeds the command without waiting for it; nothing is sent while other
    /// input waits.
    pub async fn offer(&self, bytes: &[u8]) -> io::Result<()> {
        let mut fed = self.fed.lock().await;
        if self.seen.borrow().stdin_taken < fed.all {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.order(&KeeperOrder::Stdin(bytes.to_vec())).await?;
        fed.all += bytes.len() as u64;
        fed.offered = bytes.len() as u64;
        Ok(())
    }

    /// Waits until the command has taken so much input in all.
    async fn taken(&self, goal: u64) -> io::Result<()> {
        let mut seen = self.seen.clone();
        let seen = seen
            .wait_for(|seen| seen.gone || seen.status.closed || seen.stdin_taken >= goal)
            .await
            .map_err(|_| io::ErrorKind::BrokenPipe)?;
        if seen.stdin_taken < goal {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }

    /// Returns whether input waits that its feeder has given up on.
    pub fn is_stuck(&self) -> bool {
        let fed = self.fed.try_lock();
        fed.is_ok_and(|fed| self.seen.borrow().stdin_taken < fed.all - fed.offered)
    }

    /// Presses a key that its terminal makes a signal of, whatever input waits:
    /// that is dropped. The signal was sent when this returns.
    pub async fn interrupt(&self, key: u8) -> io::Result<()> {
        self.order(&KeeperOrder::Interrupt(key)).await?;
        self.terminal().await;
        let fed = self.fed.lock().await;
        self.taken(fed.all).await
    }

    /// Ends the command's input.
    pub async fn close_stdin(&self) -> io::Result<()> {
        self.order(&KeeperOrder::CloseStdin).await
    }

    /// Returns how the command's terminal is set; nothing if it has none, or
    /// nobody can tell any more.
    pub async fn terminal(&self) -> Option<TerminalState> {
        let _one = self.looking.lock().await;
        let told = self.seen.borrow().terminal.0;
        self.order(&KeeperOrder::LookAtTerminal).await.ok()?;
        let mut seen = self.seen.clone();
        let seen = seen
            .wait_for(|seen| seen.gone || seen.status.closed || seen.terminal.0 > told)
            .await
            .ok()?;
        seen.terminal.1.filter(|_| seen.terminal.0 > told)
    }

    /// Gives the command's terminal another size, which its diary says.
    pub async fn resize(&self, size: Size) -> io::Result<()> {
        let _one = self.looking.lock().await;
        let before = self.seen.borrow().resized;
        self.order(&KeeperOrder::Resize(size)).await?;
        let mut seen = self.seen.clone();
        let seen = seen
            .wait_for(|seen| seen.gone || seen.status.closed || seen.resized > before)
            .await
            .map_err(|_| io::ErrorKind::BrokenPipe)?;
        match seen.resized > before {
            true => Ok(()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Leaves a mark in the run's diary.
    pub async fn note(&self, mark: Mark) -> io::Result<()> {
        self.order(&KeeperOrder::Note(mark)).await
    }

    /// Sends a signal to what is in the foreground of the command's terminal;
    /// with one that interrupts, what is unread is dropped. It was sent when
    /// this returns.
    pub async fn signal(&self, number: i32) -> io::Result<()> {
        self.order(&KeeperOrder::Signal(number)).await?;
        self.terminal().await;
        Ok(())
    }

    async fn order(&self, order: &KeeperOrder) -> io::Result<()> {
        let sent = self.orders.send(order.encode()).await;
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    async fn until(&self, enough: impl Fn(&Status) -> bool) -> Option<Status> {
        let mut seen = self.seen.clone();
        let seen = seen
            .wait_for(|seen| seen.gone || enough(&seen.status))
            .await
            .ok()?;
        enough(&seen.status).then(|| seen.status.clone())
    }
}

async fn listen(
    mut reports: OwnedReadHalf,
    mut buffer: Vec<u8>,
    tell: watch::Sender<KeeperView>,
    slot: AlarmSlot,
) {
    while let Ok(Some(report)) = next(&mut reports, &mut buffer).await {
        if let KeeperReport::Resting(alarm) = report {
            slot.set(alarm);
            continue;
        }
        tell.send_modify(|seen| match report {
            KeeperReport::Status { status, .. } => seen.status = *status,
            KeeperReport::Output(totals) => seen.status.output = totals,
            KeeperReport::StdinTaken(bytes) => seen.stdin_taken += bytes,
            KeeperReport::Terminal(found) => seen.terminal = (seen.terminal.0 + 1, found),
            KeeperReport::Resized => seen.resized += 1,
            KeeperReport::Resting(_)
            | KeeperReport::Refused(_)
            | KeeperReport::NoWalls(_)
            | KeeperReport::Full => {}
        });
    }
    tell.send_modify(|seen| seen.gone = true);
}

async fn write(mut to: OwnedWriteHalf, mut orders: mpsc::Receiver<Vec<u8>>) {
    while let Some(order) = orders.recv().await {
        if to.write_all(&order).await.is_err() {
            return;
        }
    }
}

async fn next(
    reports: &mut OwnedReadHalf,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<KeeperReport>> {
    loop {
        if let Some(report) = protocol::take(buffer)? {
            return Ok(Some(report));
        }
        // A status has a few hundred bytes: one read.
        buffer.reserve(4096);
        if reports.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}
