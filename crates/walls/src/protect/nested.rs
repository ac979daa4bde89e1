//! Finds the repositories below a directory.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Finds the directories below `dir` that git takes for a repository, relative
/// to it, and returns whether it has seen everything.
///
/// Lists at most `budget` directories, breadth first: a deep tree must not hide
/// a repository beside it. Does not enter links and other file systems.
pub(crate) fn find_repositories(dir: &Path, budget: usize) -> (Vec<PathBuf>, bool) {
    let Ok(device) = fs::symlink_metadata(dir).map(|meta| meta.dev()) else {
        return (Vec::new(), false);
    };
    let mut found = Vec::new();
    let mut complete = true;
    let mut waiting = VecDeque::from([PathBuf::new()]);
    for _ in 0..budget {
        let Some(at) = waiting.pop_front() else {
            break;
        };
        let Some(listing) = DirListing::read_from(&dir.join(&at), device) else {
            complete = false;
            continue;
        };
        if listing.repository && at != Path::new("") {
            found.push(at.clone());
        }
        waiting.extend(listing.dirs.into_iter().map(|name| at.join(name)));
    }
    found.sort();
    (found, complete && waiting.is_empty())
}

struct DirListing {
    repository: bool,
    dirs: Vec<PathBuf>,
}

impl DirListing {
    fn read_from(path: &Path, device: u64) -> Option<Self> {
        let mut listing = Self {
            repository: false,
            dirs: Vec::new(),
        };
        let meta = fs::symlink_metadata(path).ok()?;
        if !meta.is_dir() || meta.dev() != device {
            return Some(listing);
        }
        // The three that make git take a directory for a bare repository.
        let mut bare = 0;
        for entry in fs::read_dir(path).ok()? {
            let Ok(entry) = entry else {
                return None;
            };
            let name = entry.file_name();
            match name.as_encoded_bytes() {
                b".git" => {
                    listing.repository = true;
                    continue;
                }
                b"HEAD" | b"objects" | b"refs" => bare += 1,
                _ => {}
            }
            if entry.file_type().ok()?.is_dir() {
                listing.dirs.push(name.into());
            }
        }
        if bare == 3 {
            listing.repository = true;
            listing.dirs.clear();
        }
        Some(listing)
    }
}
