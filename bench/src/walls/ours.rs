//! Our walls, around files such as a project and a home directory have.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weighlock_confine::{
    Access, Exit, FileId, Identity, Limits, Mount, NOBODY, Network, Notice, Profile, ProgramSpec,
    Rung, Spare, Tree, Writes, is_root,
};

use crate::Result;

/// Toolchains that a person may have.
const TOOLS: [&str; 5] = [".cargo/bin", ".local/bin", ".nvm", ".pyenv", ".rustup"];

/// What other programs run, in a directory that can be written.
const GUARDED: [&str; 3] = [".git/config", ".git/hooks", ".vscode"];

/// Files for a run, of which nothing is left in the end.
pub(super) struct Files {
    _dir: TempDir,
    /// The project, which can be written.
    pub(super) project: PathBuf,
    /// What stands where `home` does.
    pub(super) layer: PathBuf,
    /// The person's own.
    pub(super) home: PathBuf,
}

/// How long one run took.
pub(super) struct Took {
    pub(super) ahead: Duration,
    /// From the order until the program has ended and was reaped.
    pub(super) run: Duration,
    pub(super) after: Duration,
}

/// What every run is given.
pub(super) struct Ours {
    pub(super) files: Files,
    profile: Profile,
}

impl Files {
    fn new() -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("wlwalls").tempdir()?;
        let top = dir.path().canonicalize()?;
        let files = Self {
            project: top.join("project"),
            layer: top.join("layer"),
            home: top.join("home"),
            _dir: dir,
        };
        fs::create_dir_all(files.project.join(".git/hooks"))?;
        fs::create_dir_all(files.project.join(".vscode"))?;
        fs::write(files.project.join(".git/config"), "")?;
        fs::create_dir(&files.layer)?;
        for tool in TOOLS {
            fs::create_dir_all(files.home.join(tool))?;
            // Where it is mounted: from the second run on it is there anyway.
            fs::create_dir_all(files.layer.join(tool))?;
        }
        if is_root() {
            std::os::unix::fs::chown(&files.layer, Some(NOBODY.uid), Some(NOBODY.gid))?;
        }
        Ok(files)
    }

    pub(super) fn tools(&self) -> impl Iterator<Item = PathBuf> {
        TOOLS.iter().map(|tool| self.home.join(tool))
    }

    pub(super) fn guarded(&self) -> impl Iterator<Item = PathBuf> {
        GUARDED.iter().map(|part| self.project.join(part))
    }
}

impl Ours {
    pub(super) fn new() -> Result<Self> {
        let files = Files::new()?;
        let profile = profile(&files)?;
        Ok(Self { files, profile })
    }

    /// Runs one program, which must succeed, inside of full walls.
    pub(super) fn run(&self, argv: &[&str]) -> Result<Took> {
        let null = || File::options().read(true).write(true).open("/dev/null");
        let (profile, env) = (self.profile.clone(), vec![]);
        let program = ProgramSpec {
            argv: argv.iter().map(|&word| word.into()).collect(),
            env,
            note: None,
            terminal: None,
        };
        let began = Instant::now();
        let spare = Spare::prepare()?;
        let ahead = began.elapsed();
        // As long as it takes a server to hear of a request, at the least.
        std::thread::sleep(Duration::from_millis(1));
        let began = Instant::now();
        let stdio = || Ok(vec![null()?.into(), null()?.into(), null()?.into()]);
        let tree = Tree::spawn(spare, profile, program, stdio)?.tree;
        wait(&tree)?;
        let run = began.elapsed();
        let began = Instant::now();
        drop(tree);
        Ok(Took {
            ahead,
            run,
            after: began.elapsed(),
        })
    }
}

fn wait(tree: &Tree) -> Result<()> {
    let mut ended = None;
    loop {
        let news = tree.hear()?;
        if news.is_empty() {
            return Err("the walls fell".into());
        }
        for notice in news {
            match notice {
                Notice::Exited { exit, .. } => ended = Some(exit),
                Notice::Empty(_) if ended == Some(Exit::Code(0)) => return Ok(()),
                other => return Err(format!("{other:?}").into()),
            }
        }
    }
}

/// The walls that the engine would ask for.
fn profile(files: &Files) -> Result<Profile> {
    let show = |path: PathBuf, access, lent| Mount::Show {
        from: path.clone(),
        at: path,
        access,
        is: None,
        lent,
        required: true,
    };
    let mut mounts: Vec<Mount> = files
        .tools()
        .map(|tool| show(tool, Access::Read, false))
        .collect();
    mounts.push(show(files.project.clone(), Access::Write, is_root()));
    mounts.extend(files.guarded().map(|at| Mount::Guard {
        at,
        access: Access::Read,
    }));
    Ok(Profile {
        identity: whoever(),
        home: files.home.clone(),
        home_layer: files.layer.clone(),
        home_writes: Writes::Kept,
        files: mounts,
        cwd: files.project.clone(),
        cwd_is: Some(file_id(&files.project)?),
        network: Network::Off,
        limits: Limits {
            memory_bytes: 4 << 30,
            processes: 512,
            cpu_weight: 100,
            open_files: 1024,
            file_bytes: 1 << 30,
            disk_bytes: 1 << 30,
            disk_files: 1 << 20,
        },
        minimum: Rung::Full,
    })
}

fn whoever() -> Identity {
    if is_root() {
        return NOBODY;
    }
    Identity {
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
    }
}

fn file_id(path: &Path) -> Result<FileId> {
    let meta = path.metadata()?;
    Ok(FileId {
        device: meta.dev(),
        inode: meta.ino(),
    })
}
