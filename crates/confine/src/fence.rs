//! Landlock: the second fence inside the namespaces, and the main one where
//! there are none.

use std::io;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};

/// The newest that we know. Older kernels do what they can.
const NEWEST: ABI = ABI::V7;

/// What is open; all else is shut.
#[derive(Default)]
pub(crate) struct OpenPaths<'a> {
    /// To be looked at and executed.
    pub(crate) read: Vec<&'a Path>,
    /// To be changed in every way.
    pub(crate) write: Vec<&'a Path>,
    /// The same, where other runs can write, too: without sockets, by which one
    /// could hand its files to another.
    pub(crate) share: Vec<&'a Path>,
    /// Existing files below can be written, and devices controlled.
    pub(crate) use_files: Vec<&'a Path>,
}

/// A fence under construction.
pub(crate) struct Fence(RulesetCreated);

/// Returns which version of Landlock the kernel has; 0 for none.
pub(crate) fn version() -> i32 {
    find_version().unwrap_or(0)
}

/// The same, with the reason where there is none.
pub(crate) fn find_version() -> io::Result<i32> {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the kernel reads no attributes, so none are given.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    if version < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(i32::try_from(version).unwrap_or(0))
}

impl Fence {
    /// Begins a fence that lets nothing through but, if said so, TCP.
    pub(crate) fn new(network: bool) -> io::Result<Self> {
        let create = || {
            let mut rules = Ruleset::default()
                .set_compatibility(CompatLevel::BestEffort)
                .handle_access(AccessFs::from_all(NEWEST))?
                .scope(Scope::from_all(NEWEST))?;
            if !network {
                rules = rules.handle_access(AccessNet::from_all(NEWEST))?;
            }
            rules.create()
        };
        create().map(Self).map_err(io::Error::other)
    }

    /// Opens gates.
    pub(crate) fn open(self, open: &OpenPaths<'_>) -> io::Result<Self> {
        let look = AccessFs::from_read(NEWEST);
        let shared = AccessFs::from_all(NEWEST) & !AccessFs::MakeSock;
        let file = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
        allow(self.0, &open.read, look)
            .and_then(|rules| allow(rules, &open.use_files, look | file))
            .and_then(|rules| allow(rules, &open.write, AccessFs::from_all(NEWEST)))
            .and_then(|rules| allow(rules, &open.share, shared))
            .map(Self)
            .map_err(io::Error::other)
    }

    /// Lets sockets be made below directories.
    pub(crate) fn open_to_sockets<'a>(
        self,
        dirs: impl IntoIterator<Item = &'a PathFd>,
    ) -> io::Result<Self> {
        let mut rules = self.0;
        for dir in dirs {
            let rule = PathBeneath::new(dir, AccessFs::MakeSock);
            rules = rules.add_rule(rule).map_err(io::Error::other)?;
        }
        Ok(Self(rules))
    }

    /// Shuts us in, for good. Returns whether there is such a fence at all.
    pub(crate) fn shut(self) -> io::Result<bool> {
        let done = self.0.restrict_self().map_err(io::Error::other)?;
        Ok(done.ruleset != RulesetStatus::NotEnforced)
    }
}

fn allow(
    mut rules: RulesetCreated,
    paths: &[&Path],
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    for path in paths {
        // What is not there needs no rule.
        let Ok(fd) = PathFd::new(path) else {
            continue;
        };
        let access = if path.is_dir() {
            access
        } else {
            access & AccessFs::from_file(NEWEST)
        };
        rules = rules.add_rule(PathBeneath::new(fd, access))?;
    }
    Ok(rules)
}
