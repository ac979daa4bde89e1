//! The overlay layers through which a run sees its directories.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weighlock_confine::{FileId, Identity, Mount, Writes};
use weighlock_effects::{Layer, Root, Source};

/// The name of the layer over the home directory, beside those with numbers.
const HOME_LAYER: &str = "home";

/// The owner of new files in a directory of root's, which is lent to the run.
const ROOT: Identity = Identity { uid: 0, gid: 0 };

/// The undecided changes of one earlier run, which a later run sees below its
/// own layers.
pub struct LowerCopy {
    /// The id of the run that made the changes.
    pub run: String,
    /// Each directory that it changed, with the layer's upper directory.
    pub uppers: Vec<(PathBuf, PathBuf)>,
    /// The upper directory over the home directory, if it had one.
    pub home: Option<PathBuf>,
    /// A person or a rule had allowed the command before it ran.
    pub allowed: bool,
    /// Secret files were closed to it.
    pub closed: bool,
}

impl LowerCopy {
    fn upper_of(&self, live: &Path) -> Option<PathBuf> {
        let (_, upper) = self.uppers.iter().find(|(root, _)| root == live)?;
        Some(upper.clone())
    }
}

/// The layers of one run: where it writes, and what it sees of earlier runs.
pub struct CopyLayers {
    /// The directory in which new layers are created; `None` where the run
    /// writes to none.
    dir: Option<PathBuf>,
    /// The newest first.
    below: Vec<LowerCopy>,
    roots: Vec<Root>,
    /// Whether what the run writes to the home directory is kept.
    keeps_home: bool,
    home_upper: Option<PathBuf>,
    /// Whether secret files are closed to the run.
    pub closed: bool,
}

impl CopyLayers {
    /// Returns no layers: the run sees its directories as they are.
    pub fn direct(keeps_home: bool) -> Self {
        Self {
            dir: None,
            below: vec![],
            roots: vec![],
            keeps_home,
            home_upper: None,
            closed: false,
        }
    }

    /// Shows the changes of earlier runs, the newest first.
    pub fn show_below(&mut self, below: Vec<LowerCopy>) {
        self.below = below;
    }

    /// Sends what the run writes to new layers in `dir`.
    pub fn write_to(&mut self, dir: PathBuf) {
        self.dir = Some(dir);
    }

    /// Discards what the run writes to the home directory.
    pub fn discard_home(&mut self) {
        self.keeps_home = false;
    }

    /// Returns whether the run sees changes that neither a person nor a rule
    /// has allowed: an agent may have written programs that it runs.
    pub fn has_undecided(&self) -> bool {
        self.below.iter().any(|copy| !copy.allowed)
    }

    /// Returns whether the run writes to layers instead of its directories.
    pub fn is_writable(&self) -> bool {
        self.dir.is_some()
    }

    /// Returns the ids of the runs whose changes are seen.
    pub fn runs_below(&self) -> Vec<String> {
        self.below.iter().map(|copy| copy.run.clone()).collect()
    }

    /// Returns the directories that the run sees through new layers, and the
    /// upper directory over the home directory.
    pub fn into_roots(self) -> (Vec<Root>, Option<PathBuf>) {
        (self.roots, self.home_upper)
    }

    /// Returns whether directories have to be shown through layers at all.
    pub(crate) fn is_needed(&self) -> bool {
        self.dir.is_some() || !self.below.is_empty()
    }

    /// Returns the mount that shows a directory through layers.
    pub(crate) fn mount_over(
        &mut self,
        at: &Path,
        owner: Identity,
        lent: bool,
    ) -> io::Result<Mount> {
        let is = FileId::from(&at.symlink_metadata()?);
        let below: Vec<PathBuf> = self.uppers_of(at).collect();
        let number = self.roots.len().to_string();
        let layer = self.dir.as_ref().map(|dir| dir.join(number));
        if let Some(layer) = &layer {
            self.roots.push(Root {
                live: at.to_owned(),
                is,
                owner: if lent { ROOT } else { owner },
                source: Source::Upper(Layer::make(layer, at)?.upper()),
                below: below.clone(),
            });
        }
        Ok(Mount::Layered {
            from: at.to_owned(),
            at: at.to_owned(),
            is: Some(is),
            lent,
            below,
            layer,
        })
    }

    /// Returns where writes to the home directory go, which is `home` on the
    /// host. A layer shows the `shared` directories in it.
    pub(crate) fn mount_over_home(
        &mut self,
        home: &Path,
        shared: impl FnOnce() -> io::Result<Vec<(PathBuf, PathBuf)>>,
    ) -> io::Result<Writes> {
        if self.keeps_home {
            return Ok(Writes::Kept);
        }
        let Some(dir) = &self.dir else {
            return Ok(Writes::Refused);
        };
        let layer = dir.join(HOME_LAYER);
        self.home_upper = Some(Layer::make(&layer, home)?.upper());
        let below = self.below.iter().filter_map(|copy| copy.home.clone());
        Ok(Writes::Layered {
            below: below.collect(),
            layer,
            shared: shared()?,
        })
    }

    /// Returns the upper directory over the home directory, if what the run
    /// writes there is discarded.
    pub(crate) fn home_upper(&self) -> Option<&Path> {
        self.home_upper.as_deref()
    }

    /// Returns the upper directories over a directory to which earlier runs
    /// wrote that could read secret files.
    pub(crate) fn uppers_with_secrets(&self, at: &Path) -> Vec<PathBuf> {
        let open = self.below.iter().filter(|copy| !copy.closed);
        open.filter_map(|copy| copy.upper_of(at)).collect()
    }

    fn uppers_of(&self, at: &Path) -> impl Iterator<Item = PathBuf> {
        self.below.iter().filter_map(move |copy| copy.upper_of(at))
    }
}

/// Returns why a copy of a directory would be incomplete: an overlay does not
/// show what is mounted below its lower directory.
pub(crate) fn find_mount_below(dir: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mut points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let point = points.find(|point| {
        let point = Path::new(point);
        point != dir && point.starts_with(dir)
    })?;
    Some(format!(
        "{point} is mounted below the directory, and would not be seen on a copy"
    ))
}
