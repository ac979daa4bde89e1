//! Keeps one run from its start to its end.

mod obey;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, setsid};
use weighlock_confine::{Error, Exit, Notice, Spare, Tree, Usage, exit};

use super::begin::{Begun, begin};
use super::line::ServerLink;
use super::mask::{Mask, hide};
use super::output_file::OutputFile;
use super::pipes::Pipes;
use super::pipestatus;
use crate::diary;
use crate::log::{LogWriter, Stream};
use crate::protocol::{self, KeeperReport};
use crate::spec::Spec;
use crate::status::{Cause, End, Fate, Keeper, Leftover, Status, StatusFile};

/// What a shell leaves running may end by itself for so long, as the rest of
/// `tee >(gzip > f)` does, and is then asked, and then forced.
const SETTLE: Duration = Duration::from_millis(150);

/// How long it has after it was asked.
const SETTLE_GRACE: Duration = Duration::from_millis(50);

/// A run whose time is up has so long to end in order.
const LIMIT_GRACE: Duration = Duration::from_millis(200);

/// More processes than this are not asked one by one. Finding them all takes
/// longer than the grace time, and what forks so much does not listen.
pub const MANY_PROCESSES: usize = 256;

/// How many of the processes that a shell left running are named.
const NAMED_UP_TO: usize = 100;

/// After all processes are gone, their last output is in the pipes already.
/// This only bounds a pipe that somebody else holds open and fills.
const DRAIN: Duration = Duration::from_millis(250);

/// How often the server hears of new output at the most.
const MENTION_EVERY: Duration = Duration::from_millis(1);

/// The poll token of the kernel's limit events, in [`RunningJob::wait`].
const LIMITS: usize = usize::MAX;

/// A run that takes longer than most does not keep others from being made ready.
const PLACE_FOR: Duration = Duration::from_millis(25);

/// What is put away after a run waits for so long: the answer is on its way
/// then, and wants the same processors.
const PUT_AWAY_AFTER: Duration = Duration::from_millis(10);

/// How often a failed write to the disk is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Serves as the keeper of one run, then exits.
///
/// While it holds its place, no other keeper is made ready in it, unless they
/// get few.
pub(super) fn keep(
    line: UnixStream,
    spare: Result<Spare, Error>,
    this: Keeper,
    place: OwnedFd,
) -> ! {
    let _ = setsid();
    // The nursery's own line is not ours.
    if let Ok(null) = std::fs::File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(null);
    }
    let code = match begin(line, spare, this, &place) {
        Ok(begun) => {
            let mut kept = RunningJob::new(begun, place);
            kept.tell_status();
            kept.watch();
            kept.finish();
            0
        }
        Err(_) => 1,
    };
    exit(code)
}

/// A run in progress.
struct RunningJob {
    tree: Tree,
    /// Given up when another keeper may be made.
    place: Option<OwnedFd>,
    pipes: Pipes,
    spec: Spec,
    status: Status,
    file: StatusFile,
    line: ServerLink,
    log: LogWriter,
    diary: diary::DiaryWriter,
    /// What is not shown of each output.
    masks: [Mask; 2],
    /// What its output is also written to.
    output_file: Option<OutputFile>,
    /// Nothing is left inside; what all of it used.
    empty: Option<Usage>,
    /// The first process inside will say nothing more.
    inside_is_silent: bool,
    phase: Phase,
    started: Instant,
    last_output: Instant,
    /// How many processes there were when the run was made to end.
    ended_processes: usize,
    /// Output the server has not heard of.
    unmentioned: bool,
    mentioned: Instant,
}

/// Where in its life the run is.
#[derive(Clone, Copy)]
enum Phase {
    Running,
    /// Asked to end; forced at the given time.
    Ending {
        by_force_at: Instant,
        cause: Cause,
    },
    /// The shell has ended; what is left may end by itself until then.
    Settling(Instant),
    /// What the shell left goes on until then.
    Kept(Instant),
    /// Killed: only the kernel has still something to do.
    Killed,
}

impl RunningJob {
    fn new(begun: Begun, place: OwnedFd) -> Self {
        let now = Instant::now();
        Self {
            log: LogWriter::new(&begun.spec.dir, begun.spec.limits.output_bytes),
            masks: [(); 2].map(|()| Mask::new(&begun.spec.hidden)),
            output_file: OutputFile::open(&begun.spec),
            diary: diary::DiaryWriter::default(),
            tree: begun.tree,
            place: Some(place),
            pipes: begun.pipes,
            spec: begun.spec,
            status: begun.status,
            file: begun.file,
            line: begun.line,
            empty: None,
            inside_is_silent: false,
            phase: Phase::Running,
            started: now,
            last_output: now,
            ended_processes: 0,
            unmentioned: false,
            mentioned: now - MENTION_EVERY,
        }
    }

    /// Serves the run until nothing of it is left.
    fn watch(&mut self) {
        loop {
            let ready = self.wait();
            if ready.output {
                self.take_output();
            }
            if ready.input {
                self.hand_over_input();
            }
            if ready.line {
                self.serve_line();
            }
            if ready.notice {
                self.take_notice();
            }
            if ready.gone || self.empty.is_some() {
                return;
            }
            self.mind_the_limits(ready.limits);
            self.mind_the_clock();
            self.mention_output();
        }
    }

    /// Waits for something to happen or for the next deadline.
    fn wait(&self) -> ReadySources {
        let [stdout, stderr] = &self.pipes.outputs;
        let notices = (!self.inside_is_silent).then(|| self.tree.notices());
        let line_flags = if self.line.wants_to_write() {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        };
        let wanted = [
            (Some(self.tree.init()), PollFlags::IN),
            (notices, PollFlags::IN),
            (stdout.fd(), PollFlags::IN),
            (stderr.fd(), PollFlags::IN),
            (self.pipes.stdin.fd(), PollFlags::OUT),
            (self.line.fd(), line_flags),
        ];
        let (mut fds, mut roles) = (vec![], vec![]);
        for (role, (fd, flags)) in wanted.into_iter().enumerate() {
            if let Some(fd) = fd {
                fds.push(PollFd::from_borrowed_fd(fd, flags));
                roles.push(role);
            }
        }
        for limit in self.tree.watched() {
            fds.push(limit);
            roles.push(LIMITS);
        }
        let patience = self
            .next_deadline()
            .saturating_duration_since(Instant::now());
        let patience = Timespec::try_from(patience).expect("days fit");
        let mut ready = ReadySources::default();
        if poll(&mut fds, Some(&patience)).is_err() {
            return ready;
        }
        for (fd, role) in fds.iter().zip(roles) {
            if fd.revents().is_empty() {
                continue;
            }
            match role {
                0 => ready.gone = true,
                1 => ready.notice = true,
                2 | 3 => ready.output = true,
                4 => ready.input = true,
                LIMITS => ready.limits = true,
                _ => ready.line = true,
            }
        }
        ready
    }

    fn next_deadline(&self) -> Instant {
        let limits = &self.spec.limits;
        let mut next = match self.phase {
            Phase::Running => {
                let hard = self.started + limits.hard;
                let idle = limits.idle.map(|idle| self.last_output + idle);
                idle.map_or(hard, |idle| idle.min(hard))
            }
            Phase::Ending { by_force_at, .. } => by_force_at,
            Phase::Settling(until) | Phase::Kept(until) => until,
            Phase::Killed => Instant::now() + RETRY_EVERY,
        };
        if !matches!(self.phase, Phase::Ending { .. } | Phase::Killed) {
            next = next.min(self.tree.look_again_at());
        }
        if self.unmentioned {
            next = next.min(self.mentioned + MENTION_EVERY);
        }
        if self.place.is_some() {
            next = next.min(self.started + PLACE_FOR);
        }
        if !self.line.is_connected() && !self.line.has_door() {
            next = next.min(Instant::now() + RETRY_EVERY);
        }
        next
    }

    /// Ends a run that uses more than it may, all of it and at once: one that
    /// lost a process to the kernel is not worth waiting for.
    fn mind_the_limits(&mut self, told: bool) {
        if matches!(self.phase, Phase::Ending { .. } | Phase::Killed) {
            return;
        }
        if let Some(what) = self.tree.exceeded(told) {
            self.ended_processes = self.tree.members(MANY_PROCESSES).len();
            self.phase = Phase::Ending {
                by_force_at: Instant::now(),
                cause: Cause::Exceeded(what),
            };
            self.kill();
        } else if !self.line.is_connected() {
            self.tree.stir();
        } else if let Some(alarm) = self.tree.rest() {
            self.line.say(&KeeperReport::Resting(alarm));
        }
    }

    fn mind_the_clock(&mut self) {
        let now = Instant::now();
        if now >= self.started + PLACE_FOR {
            self.place = None;
        }
        let limits = self.spec.limits;
        match self.phase {
            Phase::Running if now >= self.started + limits.hard => {
                self.end(Signal::TERM, LIMIT_GRACE, Cause::Hard);
            }
            Phase::Running
                if limits
                    .idle
                    .is_some_and(|idle| now >= self.last_output + idle) =>
            {
                self.end(Signal::TERM, LIMIT_GRACE, Cause::Idle);
            }
            Phase::Ending { by_force_at, .. } if now >= by_force_at => self.kill(),
            Phase::Settling(until) if now >= until => self.settle(),
            Phase::Kept(until) if now >= until => self.kill(),
            _ => {}
        }
        if !self.line.is_connected() && !self.line.has_door() {
            // Tried again until the disk has room for a socket.
            let _ = self.line.open_door(&self.spec.dir);
        }
    }

    /// Asks everything inside to end, and forces it after the grace time.
    fn end(&mut self, signal: Signal, grace: Duration, cause: Cause) {
        self.phase = Phase::Ending {
            by_force_at: (Instant::now() + grace).min(self.last_moment()),
            cause,
        };
        // A stopped process sees no signal until it goes on.
        self.ended_processes = self.tree.signal(&[signal, Signal::CONT], MANY_PROCESSES);
        if self.ended_processes == MANY_PROCESSES {
            // It forks faster than it can be asked.
            self.kill();
        }
    }

    /// When the run would be ended by force anyway: no grace time is longer.
    fn last_moment(&self) -> Instant {
        match self.phase {
            Phase::Kept(until) => until,
            _ => (self.started + self.spec.limits.hard).max(Instant::now()) + LIMIT_GRACE,
        }
    }

    fn kill(&mut self) {
        if self.status.end.is_none() {
            self.record_end(Exit::Signal(Signal::KILL.as_raw()), Usage::default());
        }
        self.tree.kill();
        self.phase = Phase::Killed;
    }

    /// Decides about what the shell left running.
    fn settle(&mut self) {
        let left = self.tree.members(NAMED_UP_TO);
        let hidden = &self.spec.hidden;
        let fate = if self.spec.limits.keep.is_some() {
            Fate::Kept
        } else {
            Fate::Ended
        };
        if let Some(end) = &mut self.status.end
            && end.left.is_empty()
        {
            end.left = left
                .into_iter()
                .map(|member| Leftover {
                    pid: member.pid,
                    command: hide(&member.command(), &hidden.values),
                    fate,
                })
                .collect();
        }
        match self.spec.limits.keep {
            Some(keep) => {
                self.phase = Phase::Kept(Instant::now() + keep);
                self.report();
            }
            None => self.end(Signal::TERM, SETTLE_GRACE, Cause::Own),
        }
    }

    /// Hears what the first process inside has to say. Once it says nothing
    /// more it has died, or is dying with all inside.
    fn take_notice(&mut self) {
        match self.tree.hear() {
            Ok(news) if !news.is_empty() => news.into_iter().for_each(|news| self.heed(news)),
            _ => self.inside_is_silent = true,
        }
    }

    fn heed(&mut self, notice: Notice) {
        match notice {
            // Killed already; this only crossed our signal on its way.
            Notice::Exited { .. } if self.status.end.is_some() => {}
            Notice::Exited {
                exit,
                usage,
                answer,
            } => {
                self.record_end(exit, usage);
                if let Some(end) = &mut self.status.end {
                    end.pipestatus = answer.as_deref().and_then(pipestatus::understand);
                }
                if matches!(self.phase, Phase::Running) {
                    self.phase = Phase::Settling(Instant::now() + SETTLE);
                }
            }
            Notice::Failed(errno) => {
                self.phase = Phase::Ending {
                    by_force_at: Instant::now(),
                    cause: Cause::NotStarted(errno),
                };
                self.record_end(Exit::Code(127), Usage::default());
            }
            Notice::Wrote(bytes) => self.tree.wrote(bytes),
            Notice::Empty(usage) => self.empty = Some(usage),
            Notice::Prepared(_) | Notice::Ready(_) | Notice::Unready(_) => {}
        }
    }

    fn record_end(&mut self, exit: Exit, usage: Usage) {
        let cause = match self.phase {
            Phase::Ending { cause, .. } => cause,
            // The kernel may have been faster than we are.
            _ if exit != Exit::Code(0) => match self.tree.exceeded(true) {
                Some(what) => Cause::Exceeded(what),
                None => Cause::Own,
            },
            _ => Cause::Own,
        };
        self.status.end = Some(End {
            exit,
            cause,
            usage,
            micros: self.started.elapsed().as_micros() as u64,
            unix_micros: unix_micros(),
            pipestatus: None,
            left: vec![],
            ended_processes: self.ended_processes,
        });
    }

    fn take_output(&mut self) -> bool {
        let micros = self.started.elapsed().as_micros() as u64;
        let mut any = false;
        let outputs = self.pipes.outputs.iter_mut().zip(&mut self.masks);
        for ((output, mask), stream) in outputs.zip([Stream::Stdout, Stream::Stderr]) {
            let bytes = output.read();
            if !bytes.is_empty() {
                mask.hide(bytes);
                self.log.append(stream, bytes, micros);
                if let Some(file) = &mut self.output_file {
                    file.append(bytes);
                }
                any = true;
            }
        }
        if any {
            self.last_output = Instant::now();
            self.unmentioned = true;
            self.tree.stir();
        }
        any
    }

    /// Mentions output that the server has not heard of; not if there is more to
    /// tell in a moment, as when `echo` has ended.
    fn mention_output(&mut self) {
        if self.unmentioned
            && Instant::now() >= self.mentioned + MENTION_EVERY
            && (self.inside_is_silent || !has_come(self.tree.notices()))
        {
            self.mention_now();
        }
    }

    fn mention_now(&mut self) {
        let log = &self.log;
        if self.line.mention(|| KeeperReport::Output(log.totals())) || !self.line.is_connected() {
            self.unmentioned = false;
        }
        self.mentioned = Instant::now();
    }

    fn hand_over_input(&mut self) {
        let taken = self.pipes.stdin.hand_over();
        if taken > 0 {
            self.line.say(&KeeperReport::StdinTaken(taken));
        }
    }

    /// Tells the server and the disk what is known.
    fn report(&mut self) {
        self.status.output = self.log.totals();
        // A status that cannot be written now is written at the end.
        let _ = self.file.append(&self.status);
        self.tell_status();
    }

    fn tell_status(&mut self) {
        self.line.say(&KeeperReport::Status {
            version: protocol::VERSION,
            status: Box::new(self.status.clone()),
        });
    }

    /// Leaves the last word: on disk, and with the server if there is one.
    fn finish(mut self) {
        let usage = match self.empty {
            Some(usage) => usage,
            None => self.tree.reap().unwrap_or_default(),
        };
        while self.empty.is_none() && !self.inside_is_silent {
            self.take_notice();
        }
        if self.status.end.is_none() {
            // Inside, nobody can kill the first process; outside, somebody did.
            self.record_end(Exit::Signal(Signal::KILL.as_raw()), usage);
        }
        let until = Instant::now() + DRAIN;
        while self.take_output() && Instant::now() < until {}
        if let Some(end) = &mut self.status.end {
            end.usage = usage;
        }
        if let Some(end) = &mut self.status.end
            && matches!(self.phase, Phase::Ending { .. } | Phase::Killed)
        {
            end.left.iter_mut().for_each(|left| left.fate = Fate::Ended);
        }
        self.status.output = self.log.totals();
        self.status.closed = true;
        let mut saved = self.file.append(&self.status);
        self.tell_status();
        // While the disk is full this process may be the only one that knows
        // how the run ended.
        while saved.is_err() && !self.file.is_gone() {
            std::thread::sleep(RETRY_EVERY);
            if !self.line.is_connected() && self.line.answer_door() {
                self.tell_status();
            }
            saved = self.file.append(&self.status);
        }
        self.line.finish();
        std::thread::sleep(PUT_AWAY_AFTER);
    }
}

/// What `wait` found.
#[derive(Default)]
struct ReadySources {
    gone: bool,
    notice: bool,
    output: bool,
    input: bool,
    line: bool,
    limits: bool,
}

fn has_come(notices: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(notices, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

fn unix_micros() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as i64)
}
