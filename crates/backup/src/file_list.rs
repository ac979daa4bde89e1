//! The list of files in a backup, read by whoever does not trust it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use super::files::{Thing, What};
use super::tree::Tree;
use super::{Hashed, LIST, PARTS, UNDO_NAMES, damaged};
use crate::error::Error;
use crate::people::hex;

/// The longest path that Linux takes. State directories have much shorter ones.
const PATH_BYTES: usize = 4096;

/// The longest line: a path and where a link points, all of it escaped.
const LINE_BYTES: u64 = 64 * 1024;

/// What a list has named.
#[derive(Default)]
pub(super) struct Named(HashMap<PathBuf, Kind>);

/// What something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Dir,
    File,
    Link,
}

impl Named {
    pub(super) fn kind(&self, path: &Path) -> Option<Kind> {
        self.0.get(path).copied()
    }

    /// Takes in one thing: where a backup has any, once, and in a directory
    /// that was named before. So no path leads through a link.
    fn take(&mut self, thing: &Thing) -> Result<(), Error> {
        let path = Path::new(&thing.path);
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        let as_written: PathBuf = path.components().collect();
        let fine = thing.path.len() <= PATH_BYTES
            && path.components().all(plain)
            && as_written.as_os_str() == path.as_os_str();
        let kind = match thing.what {
            What::Dir => Kind::Dir,
            What::File { .. } => Kind::File,
            What::Link { .. } => Kind::Link,
        };
        let within = match path.parent() {
            Some(around) if around != Path::new("") => self.kind(around) == Some(Kind::Dir),
            _ => kind == Kind::Dir && PARTS.contains(&thing.path.as_str()),
        };
        if !fine || !within || !is_kept(path, kind) {
            return Err(damaged(format!(
                "{LIST} names `{}`, which belongs to no backup",
                crate::error::brief(&thing.path)
            )));
        }
        match self.0.insert(as_written, kind) {
            None => Ok(()),
            Some(_) => Err(damaged(format!("{LIST} names `{}` twice", thing.path))),
        }
    }
}

/// Whether a backup has such a thing there. Signs of an apply that is under way
/// would be believed by whoever finds them, and lead anywhere; so would links,
/// but for those that are kept of before.
fn is_kept(path: &Path, kind: Kind) -> bool {
    let names: Vec<&OsStr> = path.iter().collect();
    let in_undo = names.first().is_some_and(|part| *part == "undo");
    let what = names.get(2).filter(|_| in_undo);
    let known = what.is_none_or(|name| UNDO_NAMES.iter().any(|known| name == known));
    let image = names.len() > 3 && what.is_some_and(|name| *name == "images");
    known && (kind != Kind::Link || image)
}

/// Calls `deed` with everything that the list has, and returns what that was.
/// The list must be the one that the manifest names; what was done before that
/// is known has to be taken back.
pub(super) fn each(
    from: &Tree,
    listed: &Hashed,
    mut deed: impl FnMut(Thing) -> Result<(), Error>,
) -> Result<Named, Error> {
    let path = from.path(LIST);
    let mut list = BufReader::new(super::check::open(from, LIST)?);
    let (mut named, mut hasher, mut line) = (Named::default(), Sha256::new(), vec![]);
    let (mut bytes, mut number) = (0, 0);
    loop {
        line.clear();
        let mut bounded = list.by_ref().take(LINE_BYTES);
        let read = bounded
            .read_until(b'\n', &mut line)
            .map_err(Error::file(&path))?;
        if read == 0 {
            break;
        }
        (bytes, number) = (bytes + read as u64, number + 1);
        hasher.update(&line);
        let wrong = |error| damaged(format!("{LIST}, line {number}: {error}"));
        let thing: Thing = serde_json::from_slice(&line).map_err(wrong)?;
        named.take(&thing)?;
        deed(thing)?;
    }
    let found = Hashed {
        bytes,
        sha256: hex(&hasher.finalize()),
    };
    match found == *listed {
        true => Ok(named),
        false => Err(damaged(format!("{LIST} was changed"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thing(path: &str, what: What) -> Thing {
        Thing {
            path: path.into(),
            mode: 0o600,
            uid: 0,
            gid: 0,
            mtime: (0, 0),
            what,
        }
    }

    fn link() -> What {
        What::Link {
            target: "2f".into(),
        }
    }

    fn file() -> What {
        What::File {
            bytes: 0,
            sha256: String::new(),
        }
    }

    #[track_caller]
    fn refused(things: &[(&str, What)], why: &str) {
        let mut named = Named::default();
        named.take(&thing("tasks", What::Dir)).unwrap();
        let taken: Result<Vec<()>, _> = { things.iter() }
            .map(|(path, what)| named.take(&thing(path, what.clone())))
            .collect();
        let told = taken.unwrap_err().to_string();
        assert!(told.contains(why), "{told}");
    }

    #[test]
    fn what_undoing_needs_has_no_signs_of_an_apply_under_way() {
        let mut named = Named::default();
        for (path, what) in [
            ("undo", What::Dir),
            ("undo/r_x", What::Dir),
            ("undo/r_x/applied", file()),
            ("undo/r_x/images", What::Dir),
            ("undo/r_x/images/1", link()),
        ] {
            named.take(&thing(path, what)).unwrap();
        }
        for name in ["journal", "progress", "applied.new"] {
            let path = format!("undo/r_x/{name}");
            assert!(named.take(&thing(&path, file())).is_err(), "{path}");
        }
    }

    #[test]
    fn a_list_names_each_thing_once_and_nothing_below_a_link() {
        let nowhere = "belongs to no backup";
        refused(&[("tasks/f", file()), ("tasks/f", What::Dir)], "twice");
        refused(&[("tasks/f", file()), ("tasks/f/g", file())], nowhere);
        refused(&[("tasks/no/such", file())], nowhere);
        for path in [
            "",
            "/etc/x",
            "../x",
            "tasks/../x",
            "tasks//x",
            "tasks/./x",
            "tasks/x/",
            "other",
        ] {
            refused(&[(path, What::Dir)], nowhere);
        }
        refused(&[("runs", link())], nowhere);
        refused(&[("tasks/l", link())], nowhere);
        refused(&[(&format!("tasks/{}", "x".repeat(5000)), file())], nowhere);
    }
}
