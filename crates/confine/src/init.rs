//! The first process inside: builds the walls around itself, starts the
//! command, reaps, and says how it ended.
//!
//! In a PID namespace it is PID 1, so that its death is the death of all
//! inside. Without one it is a subreaper, so that nothing gets lost above it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use landlock::PathFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{
    DumpableBehavior, Pid, Signal, getpid, set_child_subreaper, set_dumpable_behavior,
    set_parent_process_death_signal, setsid,
};
use rustix::thread::UnshareFlags;

use crate::fence::{self, Fence, OpenPaths};
use crate::fork::exit;
use crate::limits;
use crate::line::{Built, InitChannel, InitPlan, MAX_ANSWER, Note, Notice};
use crate::network::{name_host, raise_loopback};
use crate::privilege;
use crate::profile::{Access, Identity, Mount, Network, Profile, Rung, Writes};
use crate::root::{self, Failed, NewRoot, failed};
use crate::seccomp::{SeccompFilter, Sockets};
use crate::system::{DEVICES, PRIVATE, SYSTEM};
use crate::terminal::{self, PtyPair};
use crate::tree::{used_by_children, wait, written_by_children};

/// How many bytes the dead may have written without our saying so.
const TELL_EVERY: u64 = 1024 * 1024;

/// In what the keeper made this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitStart {
    /// Namespaces of all kinds but users', by root.
    AsRoot,
    /// Namespaces of all kinds, by this ordinary user.
    AsUser(Identity),
    /// The host's namespaces, by root or not.
    Bare {
        /// Whether the process that made it is root.
        root: bool,
    },
}

/// What could be built before the order came.
struct Ahead {
    start: InitStart,
    /// `None` where there is no root of its own.
    root: Option<NewRoot>,
    /// Why the host's name can be seen, if it can.
    hostname: Option<String>,
    fence: Fence,
    private: Vec<PrivateDir>,
    filter: &'static SeccompFilter,
}

/// A private temporary directory of the run, held open: the profile may have
/// something else mounted at its path.
struct PrivateDir {
    path: &'static Path,
    fd: PathFd,
}

/// Prepares this process, waits for its order, and then serves as init until
/// nothing is left inside.
pub(crate) fn serve(
    start: InitStart,
    network: Network,
    lender: Option<OwnedFd>,
    line: &InitChannel,
) -> ! {
    if let Err(error) = let_go(line, lender.as_ref()) {
        give_up(line, Notice::Unready(error.to_string()));
    }
    let ahead = match prepare(start, network, lender, line) {
        Ok(ahead) => ahead,
        Err(failure) => give_up(line, Notice::Unready(failure.to_string())),
    };
    let rung = ahead.root.as_ref().map_or(Rung::Landlock, NewRoot::rung);
    line.tell(&[Notice::Prepared(rung)]);
    let mut plan = match line.receive_order() {
        Ok(Some(order)) => order,
        Ok(None) => exit(0),
        Err(error) => give_up(line, Notice::Unready(error.to_string())),
    };
    let (built, terminal) = match build(ahead, &plan, line) {
        Ok(done) => done,
        Err(failure) => give_up(line, Notice::Unready(failure.to_string())),
    };
    let Ok(Some(stdio)) = line.receive_go() else {
        exit(0);
    };
    match rung {
        Rung::Landlock if built.homeless.is_none() => settle_in(&mut plan),
        Rung::Landlock => {}
        Rung::SharedProc | Rung::Full => point_tmpdir_at_sockets(&mut plan),
    }
    let note = plan.note.clone();
    // Without a PID namespace the command can kill us, and before we had told
    // that it runs; then it would be said that nothing ran.
    let (before, after) = match rung {
        Rung::Landlock => (Some(built), None),
        Rung::SharedProc | Rung::Full => (None, Some(built)),
    };
    let (master, stdio) = match terminal {
        Some(PtyPair { master, slave }) => (Some(master), CommandStdio::Terminal(slave)),
        None => (None, CommandStdio::Files(stdio)),
    };
    let ready = |built| {
        let with = master.as_ref().map(AsFd::as_fd);
        line.tell_with(&[Notice::Ready(built)], with.as_slice());
    };
    before.into_iter().for_each(&ready);
    let launched = launch(plan, stdio);
    // The keeper reads it while the command runs.
    after.into_iter().for_each(&ready);
    drop(master);
    match launched {
        Ok(shell) => reap_all(shell, note, line),
        Err(error) => give_up(
            line,
            Notice::Failed(error.raw_os_error().unwrap_or(libc::EIO)),
        ),
    }
}

/// Closes the copies of the keeper's descriptors that came along.
fn let_go(line: &InitChannel, lender: Option<&OwnedFd>) -> io::Result<()> {
    let kept = [Some(line.fd().as_raw_fd()), lender.map(AsRawFd::as_raw_fd)];
    keep_only(kept.into_iter().flatten().collect());
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Does what does not depend on the run.
fn prepare(
    start: InitStart,
    network: Network,
    lender: Option<OwnedFd>,
    line: &InitChannel,
) -> Result<Ahead, Failed> {
    if let InitStart::AsUser(user) = start {
        privilege::map(user).map_err(failed("enter a user namespace"))?;
    }
    die_with_the_keeper(line).map_err(failed("be bound to the keeper"))?;
    // No controlling terminal, and no way for the command to get one.
    setsid().map_err(failed("begin a session"))?;
    // Raising it needs no privilege. When memory runs out, a command goes
    // before the server and its keepers do.
    let _ = fs::write("/proc/self/oom_score_adj", "500");
    privilege::leave_keyring().map_err(failed("leave the keyring"))?;
    privilege::bound_capabilities().map_err(failed("give up privileges"))?;
    limits::bound_alike().map_err(failed("set limits"))?;
    let bare = matches!(start, InitStart::Bare { .. });
    let hostname = match bare {
        true => None,
        // Some filters of system calls refuse it, and walls stand without.
        false => name_host().err().map(|error| error.to_string()),
    };
    let root = if bare {
        set_child_subreaper(Some(getpid())).map_err(failed("keep orphans"))?;
        None
    } else {
        if network == Network::Off {
            raise_loopback().map_err(failed("raise the loopback"))?;
        }
        Some(NewRoot::prepare(lender)?)
    };
    let rung = root.as_ref().map_or(Rung::Landlock, NewRoot::rung);
    let private = match bare {
        true => vec![],
        false => private_dirs().map_err(failed("open the temporary directories"))?,
    };
    // A network namespace shuts better, and leaves the loopback.
    let fence = Fence::new(!bare || network == Network::On)
        .and_then(|fence| fence.open(&always_open(rung)))
        .map_err(failed("set up Landlock"))?;
    let sockets = if bare && network == Network::Off {
        Sockets::Local
    } else {
        Sockets::All
    };
    Ok(Ahead {
        start,
        root,
        hostname,
        fence,
        private,
        filter: SeccompFilter::get(sockets),
    })
}

/// Builds the rest of the walls, each on this process; what it starts is
/// inside of all of them.
fn build(
    ahead: Ahead,
    plan: &InitPlan,
    line: &InitChannel,
) -> Result<(Built, Option<PtyPair>), Failed> {
    let profile = &plan.profile;
    let bare = ahead.root.is_none();
    let pids_bounded = match ahead.root {
        Some(root) => root.finish(profile)?,
        None => {
            can_do_without_root(profile).map_err(failed("use Landlock alone"))?;
            root::enter(profile).map_err(failed("enter the working directory"))?;
            false
        }
    };
    if !bare {
        // SAFETY: we have one thread, and share no files with another.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWCGROUP) }
            .map_err(failed("enter a cgroup namespace"))?;
    }
    let user_namespace = become_the_run(ahead.start, profile)?;
    // Not before: what a user namespace is made under bounds all processes of
    // the user outside, and one run could take them from the others.
    limits::bound(&profile.limits).map_err(failed("set limits"))?;
    if let Some(note) = &plan.note {
        leave_note(note).map_err(failed("leave a note"))?;
    }
    privilege::drop_all().map_err(failed("give up privileges"))?;
    let terminal = plan.terminal.map(PtyPair::open).transpose();
    let terminal = terminal.map_err(failed("open a terminal"))?;
    let homeless = bare.then(|| make_tmp(profile).err()).flatten();
    let tmp = tmp(profile);
    let mut open = open_to(profile, bare);
    if bare && homeless.is_none() {
        open.write.push(&tmp);
    }
    let private = ahead.private.iter();
    let sockets = private.filter(|dir| can_have_sockets(dir.path, &open.share));
    let fence = ahead.fence.open(&open);
    let fenced = fence
        .and_then(|fence| fence.open_to_sockets(sockets.map(|dir| &dir.fd)))
        .and_then(Fence::shut)
        .map_err(failed("set up Landlock"))?;
    if bare && !fenced {
        return Err(failed("set up Landlock")(io::Error::from(
            io::ErrorKind::Unsupported,
        )));
    }
    // After the last change of who we are, which undoes both. What we hold is
    // not for the command, which is the same user.
    die_with_the_keeper(line).map_err(failed("be bound to the keeper"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(failed("close our memory"))?;
    let landlock = if fenced { fence::version() } else { 0 };
    let filtered = ahead.filter.install();
    filtered.map_err(failed("filter system calls"))?;
    let built = Built {
        landlock,
        user_namespace,
        pids_bounded,
        hostname: ahead.hostname,
        homeless: homeless.map(|error| error.to_string()),
    };
    Ok((built, terminal))
}

/// Where temporary files go when there is no private `/tmp`: below the one
/// directory that is always the run's own.
const TMP: &str = "tmp";

fn tmp(profile: &Profile) -> PathBuf {
    profile.home_layer.join(TMP)
}

/// Makes that directory as the run's user. Root's state directory is closed to
/// others, and then there is none.
fn make_tmp(profile: &Profile) -> io::Result<()> {
    let tmp = tmp(profile);
    match fs::create_dir(&tmp) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        done => done?,
    }
    // It may be somebody else's, or a link out of here.
    if fs::symlink_metadata(&tmp)?.is_dir() {
        Ok(rustix::fs::access(&tmp, rustix::fs::Access::WRITE_OK)?)
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}

/// Without mounts, the private home is where it is and not where the real one
/// is. What the request has set stays.
fn settle_in(plan: &mut InitPlan) {
    let tmp = tmp(&plan.profile).to_string_lossy().into_owned();
    let Profile {
        home, home_layer, ..
    } = &plan.profile;
    let set = |name: &str| plan.env.iter().position(|(known, _)| known == name);
    let (old_home, tmpdir) = (set("HOME"), set("TMPDIR"));
    if let Some(at) = old_home
        && Path::new(&plan.env[at].1) == home
    {
        plan.env[at].1 = home_layer.to_string_lossy().into_owned();
    }
    if tmpdir.is_none() {
        plan.env.push(("TMPDIR".into(), tmp));
    }
}

/// Makes us the user that the run is. Returns whether nobody else is known.
fn become_the_run(start: InitStart, profile: &Profile) -> Result<bool, Failed> {
    match start {
        // Not asked of the kernel: root of a rootless container looks like the
        // host's root from here.
        InitStart::AsUser(_) => return Ok(true),
        InitStart::Bare { root: false } => return Ok(false),
        InitStart::AsRoot | InitStart::Bare { root: true } => {}
    }
    privilege::become_user(profile.identity).map_err(failed("become an ordinary user"))?;
    let entered = match start {
        InitStart::AsRoot => privilege::enter_user_namespace().ok(),
        _ => None,
    };
    if let Some(user) = entered {
        privilege::map(user).map_err(failed("enter a user namespace"))?;
    }
    // Again: a new user namespace begins with all of them.
    privilege::bound_capabilities().map_err(failed("give up privileges"))?;
    Ok(entered.is_some())
}

/// Landlock can open trees, and cannot shut a part of one again.
fn can_do_without_root(profile: &Profile) -> io::Result<()> {
    let shown = |at: &Path| {
        profile.files.iter().any(|mount| match mount {
            Mount::Show { from, .. } => at.starts_with(from),
            _ => false,
        })
    };
    let exposed = profile.files.iter().any(|mount| match mount {
        Mount::Hide { at } => shown(at),
        _ => false,
    });
    let layered = |mount: &Mount| matches!(mount, Mount::Layered { .. });
    let home_layered = matches!(profile.home_writes, Writes::Layered { .. });
    if home_layered || profile.files.iter().any(layered) {
        return Err(io::Error::other(
            "a copy-on-write layer needs a mount namespace",
        ));
    }
    let lent = |mount: &Mount| matches!(mount, Mount::Show { lent: true, .. });
    if profile.files.iter().any(lent) {
        return Err(io::Error::other(
            "root owns the sandbox's directory, and only a mount can lend it to another user",
        ));
    }
    if exposed {
        return Err(io::Error::other(
            "the sandbox holds something that only a mount namespace can hide",
        ));
    }
    Ok(())
}

/// What Landlock leaves open in every run. Inside a root of its own only what
/// may be written matters, since all there can be read.
fn always_open(rung: Rung) -> OpenPaths<'static> {
    let paths = |names: &[&'static str]| names.iter().map(|&name| Path::new(name)).collect();
    match rung {
        Rung::Landlock => OpenPaths {
            read: paths(&[SYSTEM, &["/proc"]].concat()),
            // The rest of the host's `/dev` is others': shared memory, and the
            // terminals that a person types into.
            use_files: paths(DEVICES),
            ..OpenPaths::default()
        },
        // The host's `/proc` could be written to other processes of this user.
        Rung::SharedProc => OpenPaths {
            read: paths(&["/"]),
            use_files: paths(&["/dev", "/dev/null"]),
            share: paths(PRIVATE),
            ..OpenPaths::default()
        },
        // The last is the command's input as a rule. It was opened outside, and
        // can be opened again as `/dev/stdin` if the file itself is named.
        Rung::Full => OpenPaths {
            read: paths(&["/"]),
            use_files: paths(&["/dev", "/proc", "/dev/null"]),
            // Sockets follow when it is known what lies below.
            share: paths(PRIVATE),
            ..OpenPaths::default()
        },
    }
}

/// What it leaves open in this one.
fn open_to(profile: &Profile, bare: bool) -> OpenPaths<'_> {
    let home = if bare {
        &profile.home_layer
    } else {
        &profile.home
    };
    let mut open = OpenPaths::default();
    match (bare, &profile.home_writes) {
        (true, Writes::Refused) => open.read.push(home),
        (true, _) => open.write.push(home),
        (false, Writes::Refused) => {}
        // With what others write to that is seen in it.
        (false, _) => open.share.push(home),
    }
    for mount in &profile.files {
        match mount {
            Mount::Show {
                from, at, access, ..
            } => match access {
                Access::Read if bare => open.read.push(from),
                Access::Read => {}
                Access::Write => open.write.push(if bare { from } else { at }),
            },
            Mount::Layered {
                at, layer: Some(_), ..
            } => open.write.push(at),
            Mount::Layered { .. }
            | Mount::Guard { .. }
            | Mount::Close { .. }
            | Mount::Hide { .. } => {}
        }
    }
    open
}

fn private_dirs() -> io::Result<Vec<PrivateDir>> {
    let dirs = PRIVATE.iter().map(|path| {
        let fd = PathFd::new(path).map_err(io::Error::other)?;
        let path = Path::new(*path);
        Ok(PrivateDir { path, fd })
    });
    dirs.collect()
}

/// Whether sockets may be made in a private directory. Landlock grants a right
/// for all that lies below, other mounts too, and cannot take it back there. So
/// not where something lies below that other runs write to as well.
fn can_have_sockets(private: &Path, shared: &[&Path]) -> bool {
    !shared.iter().any(|shared| shared.starts_with(private))
}

/// Sets `TMPDIR` to a directory that can have sockets where `/tmp` cannot. A
/// value that the request has set stays.
fn point_tmpdir_at_sockets(plan: &mut InitPlan) {
    let open = open_to(&plan.profile, false);
    let with_sockets = |path: &&&str| can_have_sockets(Path::new(path), &open.share);
    let first = PRIVATE.iter().find(with_sockets);
    let is_set = plan.env.iter().any(|(name, _)| name == "TMPDIR");
    if let Some(&first) = first
        && first != PRIVATE[0]
        && !is_set
    {
        plan.env.push(("TMPDIR".into(), first.into()));
    }
}

fn leave_note(note: &Note) -> io::Result<()> {
    if let Some(dir) = note.path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(&note.path, &note.text)
}

fn die_with_the_keeper(line: &InitChannel) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The keeper may have died before that call; then nobody holds the line.
    let mut fds = [PollFd::from_borrowed_fd(line.fd(), PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&at_once))?;
    if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(())
}

/// What the command is given to read and write.
enum CommandStdio {
    Files(Vec<OwnedFd>),
    Terminal(OwnedFd),
}

fn launch(plan: InitPlan, given: CommandStdio) -> io::Result<Pid> {
    limits::give_way()?;
    // Whatever we hold, the command gets three descriptors and no more.
    close_range(3, RawFd::MAX, libc::CLOSE_RANGE_CLOEXEC)?;
    let mut command = Command::new(&plan.argv[0]);
    command.args(&plan.argv[1..]).env_clear().envs(plan.env);
    let files = match given {
        CommandStdio::Files(files) => {
            command.process_group(0);
            files
        }
        CommandStdio::Terminal(slave) => {
            // SAFETY: these are single system calls; nothing is allocated and
            // no lock is taken, and we have one thread.
            unsafe { command.pre_exec(terminal::take) };
            vec![slave.try_clone()?, slave.try_clone()?, slave]
        }
    };
    let files = <[OwnedFd; 3]>::try_from(files).map_err(|_| io::ErrorKind::InvalidInput)?;
    let [stdin, stdout, stderr] = files.map(Stdio::from);
    let child = command.stdin(stdin).stdout(stdout).stderr(stderr).spawn()?;
    Ok(Pid::from_raw(child.id() as i32).expect("a child has a positive pid"))
}

/// Closes all descriptors above 2 but these.
fn keep_only(mut kept: Vec<RawFd>) {
    kept.sort_unstable();
    let mut from = 3;
    for fd in kept.into_iter().filter(|&fd| fd >= 3) {
        let _ = close_range(from, fd - 1, 0);
        from = fd + 1;
    }
    let _ = close_range(from, RawFd::MAX, 0);
}

fn close_range(from: RawFd, to: RawFd, flags: libc::c_uint) -> io::Result<()> {
    if from > to {
        return Ok(());
    }
    // SAFETY: `CLOSE_RANGE_CLOEXEC` only marks them. What is closed at once are
    // the keeper's descriptors: their owners are on the keeper's part of the
    // stack, to which `serve` never returns, so nothing uses or drops them. The
    // two that `serve` owns itself are among those that are kept.
    let done = unsafe { libc::syscall(libc::SYS_close_range, from, to, flags) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn reap_all(shell: Pid, note: Option<Note>, line: &InitChannel) -> ! {
    let mut news: Vec<Notice> = vec![];
    let mut told = 0;
    loop {
        // With news at hand, only what has ended already is waited for: most
        // shells leave nothing behind, and then one message tells all.
        match wait(None, news.is_empty()) {
            Ok(Some((pid, exit, usage))) if pid == shell => news.push(Notice::Exited {
                exit,
                usage,
                answer: note
                    .as_ref()
                    .and_then(|note| read_small(note.answer.as_ref()?)),
            }),
            Ok(Some(_)) => {
                // What orphans wrote is counted as ours now, and only we know.
                let wrote = written_by_children();
                if wrote >= told + TELL_EVERY {
                    told = wrote;
                    news.push(Notice::Wrote(wrote));
                }
            }
            Ok(None) => line.tell(&std::mem::take(&mut news)),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            // No child is left: nothing inside but us. Taking the namespace
            // down takes the kernel a moment; nobody has to wait for it.
            Err(_) => {
                news.push(Notice::Empty(used_by_children()));
                line.tell(&news);
                exit(0);
            }
        }
    }
}

/// Whatever the command put there must not hold us.
fn read_small(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_ANSWER as u64)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

fn give_up(line: &InitChannel, why: Notice) -> ! {
    line.tell(&[why]);
    // With something unread, our end would tear down what we have just said.
    // Whoever hears it ends us.
    let _ = line.receive_go();
    exit(1)
}
