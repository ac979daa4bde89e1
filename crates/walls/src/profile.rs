//! Builds the profile of one run from its sandbox and working directory.

mod protection;

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{fstat, statvfs};
use weighlock_confine::{Access, FileId, Inodes, Limits, Mount, Profile, Writes};

use crate::build_caches::open_caches;
use crate::error::Error;
use crate::guarded_dir::GuardedDir;
use crate::home::{HomeSnapshot, open_home};
use crate::layers::CopyLayers;
use crate::run_user::RunUser;
use crate::sandbox::{Sandbox, SandboxSource};
use crate::secret_files::ClosedFiles;
use crate::state::WallState;
use crate::toolchains::{ToolSearch, show_read_only};
use crate::work_dir::WorkDir;

/// A run that needs walls.
pub struct WallRequest<'a> {
    /// The run's sandbox.
    pub sandbox: &'a Sandbox,
    /// The run's working directory.
    pub work_dir: &'a WorkDir,
    /// The run's PATH.
    pub path: &'a str,
    /// The directories of all other sandboxes, into which no worktree may lead.
    pub other_dirs: &'a [PathBuf],
}

/// The walls around one run, and what was found on the way.
pub struct RunWalls {
    /// What confine builds.
    pub profile: Profile,
    /// The run's user needs what root owns lent to it.
    pub for_root: bool,
    /// The directory that the run may use; `None` if it sees only the system.
    pub directory: Option<PathBuf>,
    /// What the run can do with the files there.
    pub files: FileAccess,
    /// Names of the secret files that are closed to it, relative to the
    /// directory.
    pub closed: Vec<String>,
    /// What people and agents should know.
    pub warnings: Vec<String>,
    /// Variables that describe the run's user.
    pub env: Vec<(String, String)>,
    /// The directory that is checked after the run, if it is writable.
    pub guarded: Option<GuardedDir>,
}

/// What a run can do with the files of its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// It sees no directory.
    None,
    /// It reads them.
    Read,
    /// It changes them.
    Write,
    /// It changes a copy of them.
    Copy,
}

/// Builds the profile of a run.
pub(crate) fn build_profile(
    state: &WallState,
    request: &WallRequest<'_>,
    layers: &mut CopyLayers,
) -> Result<RunWalls, Error> {
    let (settings, sandbox) = (&state.settings, request.sandbox);
    let dir = settings.usable_directory(sandbox, &request.work_dir.path);
    let user = RunUser::find(sandbox, dir.as_deref(), &settings.home)?;
    let whole = settings.directory_of(sandbox);
    let part = dir.as_deref().filter(|&dir| dir != whole);
    let home = open_home(&settings.state_dir, &sandbox.id, &user, part)?;
    let home_writes = layers.mount_over_home(&home, || open_caches(&home, &user));
    let home_writes = home_writes.map_err(Error::at_path(&home))?;
    let mut builder = ProfileBuilder {
        files: find_toolchains(state, request, &user, &home),
        warnings: vec![],
        state,
        request,
        user: &user,
        layers,
    };
    let guarded = match &dir {
        Some(dir) => builder.show_directory(dir, &home)?,
        None => None,
    };
    // After the directory: a person may say more about a part of it.
    builder.show_further_paths()?;
    builder.hide_paths();
    let closed = builder.close_secrets(dir.as_deref())?;
    let (cwd, cwd_is) = builder.choose_cwd(&home, &home_writes)?;
    let ProfileBuilder {
        files, warnings, ..
    } = builder;
    Ok(RunWalls {
        for_root: user.for_root,
        env: user.variables(),
        files: file_access(sandbox, dir.as_deref(), layers),
        profile: Profile {
            identity: user.identity,
            home: user.home,
            home_layer: home,
            home_writes,
            files,
            cwd,
            cwd_is,
            network: sandbox.network,
            limits: bound_limits(state, sandbox, dir.as_deref(), layers.is_writable()),
            minimum: sandbox.minimum,
        },
        directory: dir,
        closed,
        warnings,
        guarded,
    })
}

fn find_toolchains(
    state: &WallState,
    request: &WallRequest<'_>,
    user: &RunUser,
    home: &Path,
) -> Vec<Mount> {
    let search = ToolSearch {
        home: &user.home,
        layer: home,
        path: request.path,
        server: &state.settings.server_env,
        network: request.sandbox.network,
    };
    state.toolchains.get_or_find(home, || search.find_mounts())
}

fn file_access(sandbox: &Sandbox, dir: Option<&Path>, layers: &CopyLayers) -> FileAccess {
    match sandbox.files {
        _ if dir.is_none() => FileAccess::None,
        _ if layers.is_writable() => FileAccess::Copy,
        Access::Read => FileAccess::Read,
        Access::Write => FileAccess::Write,
    }
}

/// Returns the sandbox's limits; for the disk, at most half of the free space
/// on the file systems of the directory and, for a copy, of the state
/// directory.
fn bound_limits(
    state: &WallState,
    sandbox: &Sandbox,
    dir: Option<&Path>,
    is_copied: bool,
) -> Limits {
    let mut limits = sandbox.limits;
    let state_dir = state.settings.state_dir.as_path();
    let copy = Some(state_dir).filter(|_| is_copied || dir.is_none());
    for disk in [dir, copy].into_iter().flatten() {
        let Ok(disk) = statvfs(disk) else {
            continue;
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        limits.disk_bytes = limits.disk_bytes.min(free / 2);
        limits.file_bytes = limits.file_bytes.min(limits.disk_bytes);
    }
    if let Some(inodes) = Inodes::of(state_dir) {
        limits.disk_files = limits.disk_files.min(inodes.free / 2);
    }
    limits
}

/// Collects the mounts of one run, in the order in which they are made.
struct ProfileBuilder<'a> {
    state: &'a WallState,
    request: &'a WallRequest<'a>,
    user: &'a RunUser,
    layers: &'a mut CopyLayers,
    files: Vec<Mount>,
    warnings: Vec<String>,
}

impl ProfileBuilder<'_> {
    /// Shows the directory of the run, and protects what other programs run in
    /// it if it is writable.
    fn show_directory(&mut self, dir: &Path, home: &Path) -> Result<Option<GuardedDir>, Error> {
        if self.layers.is_needed() {
            self.show_layered(dir)?;
        } else {
            self.show_live(dir)?;
        }
        if self.request.sandbox.files != Access::Write {
            return Ok(None);
        }
        let guarded = if self.layers.is_writable() {
            self.guard_copy(dir)?
        } else {
            self.guard_live(dir)?
        };
        let home = HomeSnapshot::take(home, self.layers.home_upper());
        Ok(Some(guarded.with_home(home)))
    }

    fn show_live(&mut self, dir: &Path) -> Result<(), Error> {
        let meta = dir.symlink_metadata().map_err(Error::at_path(dir))?;
        self.files.push(Mount::Show {
            from: dir.to_owned(),
            at: dir.to_owned(),
            access: self.request.sandbox.files,
            is: Some(FileId::from(&meta)),
            lent: self.user.for_root && meta.uid() == 0,
            required: true,
        });
        Ok(())
    }

    fn show_layered(&mut self, dir: &Path) -> Result<(), Error> {
        let lent = self.user.for_root && is_owned_by_root(dir);
        let mount = self.layers.mount_over(dir, self.user.identity, lent);
        self.files.push(mount.map_err(Error::at_path(dir))?);
        Ok(())
    }

    /// Shows the further paths that the sandbox's settings name.
    fn show_further_paths(&mut self) -> Result<(), Error> {
        let sandbox = self.request.sandbox;
        let read = sandbox.read.iter().map(|path| (path, Access::Read));
        let write = sandbox.write.iter().map(|path| (path, Access::Write));
        // In this order: a path that is named twice is writable.
        for (path, access) in read.chain(write) {
            self.show_further_path(path, access)?;
        }
        Ok(())
    }

    fn show_further_path(&mut self, path: &Path, access: Access) -> Result<(), Error> {
        let at = self.user.expand_home(path);
        let Some(Mount::Show { from, at, .. }) = show_read_only(&at, at.clone()) else {
            self.warnings.push(format!(
                "sandbox `{}` is to show {}, which is not there",
                self.request.sandbox.name,
                path.display()
            ));
            return Ok(());
        };
        let on_copy = self.layers.is_writable();
        if access == Access::Write && on_copy && from.is_dir() {
            return self.show_layered(&from);
        }
        self.files.push(Mount::Show {
            lent: self.user.for_root && access == Access::Write && is_owned_by_root(&from),
            from,
            at,
            // A single file has no layer, so it cannot change on a copy.
            access: if on_copy { Access::Read } else { access },
            is: None,
            required: true,
        });
        Ok(())
    }

    /// Hides the server's own files and what the sandbox hides, wherever the
    /// run could see them.
    fn hide_paths(&mut self) {
        let (settings, sandbox) = (&self.state.settings, self.request.sandbox);
        let private = settings.private_dirs.as_ref();
        let private = private.filter(|_| sandbox.source != SandboxSource::Private);
        let ours = [&settings.state_dir].into_iter();
        let ours = ours.chain(&settings.hidden).chain(private).cloned();
        let others = sandbox.hidden.iter();
        let others = others.map(|path| self.user.expand_home(path));
        for path in ours.chain(others) {
            // The run's home directory is in the state directory, and is shown
            // under another path.
            if let Ok(path) = path.canonicalize()
                && is_visible(&path, &self.files)
            {
                self.files.push(Mount::Hide { at: path });
            }
        }
    }

    /// Closes the secret files, and returns their names.
    fn close_secrets(&mut self, dir: Option<&Path>) -> Result<Vec<String>, Error> {
        let Some(dir) = dir.filter(|_| self.layers.closed) else {
            return Ok(vec![]);
        };
        let finder = &self.state.secret_files;
        let ClosedFiles {
            mounts,
            names,
            warnings,
        } = finder.close_files(self.request.sandbox, dir, self.user, self.layers)?;
        self.files.extend(mounts);
        self.warnings.extend(warnings);
        Ok(names)
    }

    /// Returns the working directory and what it must be: the home directory
    /// where the run cannot see the one that was asked for.
    fn choose_cwd(
        &mut self,
        home: &Path,
        home_writes: &Writes,
    ) -> Result<(PathBuf, Option<FileId>), Error> {
        let WorkDir { path, fd } = self.request.work_dir;
        if is_layered(path, &self.files) {
            return Ok((path.clone(), None));
        }
        if is_visible(path, &self.files) {
            return Ok((path.clone(), Some(file_id(fd)?)));
        }
        self.warnings.push(format!(
            "{} is not shown to commands, since it holds more than a project; this one runs in an \
             empty home directory. Go to a directory below it, or set up a sandbox",
            path.display()
        ));
        let meta = home.metadata().map_err(Error::at_path(home))?;
        let is_layered = matches!(home_writes, Writes::Layered { .. });
        let home_is = (!is_layered).then(|| FileId::from(&meta));
        Ok((self.user.home.clone(), home_is))
    }
}

fn is_visible(path: &Path, files: &[Mount]) -> bool {
    let mut system = weighlock_confine::SYSTEM.iter();
    system.any(|part| path.starts_with(part))
        || files.iter().any(|mount| match mount {
            Mount::Show { from, at, .. } => from == at && path.starts_with(at),
            Mount::Layered { at, .. } => path.starts_with(at),
            _ => false,
        })
}

fn is_layered(path: &Path, files: &[Mount]) -> bool {
    files.iter().any(|mount| match mount {
        Mount::Layered { at, .. } => path.starts_with(at),
        _ => false,
    })
}

pub(crate) fn is_owned_by_root(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.uid() == 0)
}

fn file_id(fd: &OwnedFd) -> Result<FileId, Error> {
    let stat = fstat(fd).map_err(|error| Error::at_path(Path::new("."))(error.into()))?;
    Ok(FileId::from(&stat))
}
