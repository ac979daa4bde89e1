//! Choosing a directory for a sandbox: what there is below the allowed roots,
//! and whether it will do.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_walls::PasswdEntry;

use super::Sandboxes;
use crate::error::{Error, brief};
use crate::principal::{Principal, Right};

/// Directories that are listed; who has more types the name.
const LISTED: usize = 500;

/// Entries that are counted for the size. A person waits for it.
const COUNTED: u64 = 50_000;

/// How long is spent on counting.
const COUNT_FOR: Duration = Duration::from_millis(200);

/// A directory that could become a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FolderView {
    /// The directory, resolved; none where the roots are listed.
    pub path: Option<String>,
    /// What it is in, where that may be looked at.
    pub parent: Option<String>,
    /// Whose it is.
    pub owner: Option<String>,
    /// Bytes of the files in it, as far as they were counted.
    pub bytes: u64,
    /// How many files that are.
    pub files: u64,
    /// There is more than was counted.
    pub more: bool,
    /// Why it cannot be a sandbox; none if it can.
    pub refused: Option<String>,
    /// Directories in it, or the allowed roots; at most 500, by name.
    pub folders: Vec<Folder>,
}

/// One directory in another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Folder {
    /// Its name; the whole path of a root.
    pub name: String,
    /// Its whole path.
    pub path: String,
}

impl Sandboxes {
    /// Looks at a directory below an allowed root; at the roots themselves
    /// without one.
    pub fn look_at_folder(&self, path: Option<&str>, who: &Principal) -> Result<FolderView, Error> {
        who.check(Right::Administer)?;
        let roots = self.roots();
        let Some(asked) = path else {
            return Ok(FolderView {
                folders: roots.iter().filter_map(|root| shown(root, None)).collect(),
                ..FolderView::default()
            });
        };
        let whole = Path::new(asked).is_absolute();
        let dir = Path::new(asked).canonicalize();
        // Of what is elsewhere nobody is told whether it is there.
        let dir = { dir.ok() }.filter(|dir| whole && within(dir, &roots));
        let dir = dir.ok_or_else(|| {
            Error::invalid(
                "no_such_folder",
                format!("{} is not below an allowed root", brief(asked)),
                "`roots` in the configuration lists where sandboxes may be",
            )
        })?;
        let refused = self.check_directory(&dir.to_string_lossy(), who.name());
        let meta = dir.metadata().ok();
        let (bytes, files, more) = count(&dir);
        Ok(FolderView {
            parent: dir.parent().filter(|above| within(above, &roots)).map(text),
            owner: meta.map(|meta| owner(meta.uid())),
            bytes,
            files,
            more,
            refused: refused.err().map(|error| error.problem().detail),
            folders: inside(&dir),
            path: Some(text(&dir)),
        })
    }
}

fn within(dir: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| dir.starts_with(root))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn owner(uid: u32) -> String {
    let entry = PasswdEntry::find_user(|user| user.uid == uid);
    entry.map_or_else(|| uid.to_string(), |entry| entry.name)
}

/// Lists the directories in another. A link is none: what it leads to has a
/// place of its own.
fn inside(dir: &Path) -> Vec<Folder> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found: Vec<Folder> = { dirs.map(|entry| entry.path()) }
        .filter_map(|path| shown(&path, path.file_name().and_then(|name| name.to_str())))
        .collect();
    found.sort();
    found.truncate(LISTED);
    found
}

/// Returns a directory as it is listed, if its name can be shown and sent.
fn shown(path: &Path, name: Option<&str>) -> Option<Folder> {
    let whole = path.to_str()?;
    Some(Folder {
        name: name.unwrap_or(whole).to_owned(),
        path: whole.to_owned(),
    })
}

/// Counts what is in a directory: bytes, files, and whether there is more.
fn count(dir: &Path) -> (u64, u64, bool) {
    let (mut bytes, mut files, mut seen) = (0, 0, 0);
    let began = Instant::now();
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            seen += 1;
            if seen > COUNTED || began.elapsed() > COUNT_FOR {
                return (bytes, files, true);
            }
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => left.push(entry.path()),
                Ok(meta) => {
                    bytes += meta.len();
                    files += 1;
                }
                Err(_) => {}
            }
        }
    }
    (bytes, files, false)
}
