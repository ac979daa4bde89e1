//! What a run would alter in the live tree.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weighlock_confine::{FileId, Identity};

use crate::node::{Node, Raw};

/// All that one run, or one undo, would alter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The directories that it is about. The first is the sandbox's own.
    pub roots: Vec<Root>,
    /// Each altered path. Sorted by root and path; what is deleted to make
    /// way for something else at the same path comes before that.
    pub entries: Vec<Change>,
    /// What can never be applied, and why. With any of these, nothing is.
    pub refused: Vec<Refusal>,
}

impl Changes {
    /// Returns whether nothing would be altered, and nothing was refused.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.refused.is_empty()
    }
}

/// One directory of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// Where it is on the host; without symbolic links.
    pub live: PathBuf,
    /// What it must be.
    pub is: FileId,
    /// Who owns what is new there, as the host knows them.
    pub owner: Identity,
    /// Where the new content is.
    pub source: Source,
    /// The upper directories of the layers that the run saw below its own,
    /// the newest first: changes of earlier runs that were not applied then.
    pub below: Vec<PathBuf>,
}

/// Where new content is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// In the upper directory of a layer, at the path of the change.
    Upper(PathBuf),
    /// In a directory of before-images, under the number of the change's image.
    Images(PathBuf),
    /// In the live tree, for it was applied. What it replaced is in a directory
    /// of before-images. Such changes can be looked at, and not applied again.
    Live(PathBuf),
}

/// One altered path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Index of the root it is in.
    pub root: usize,
    /// Relative to the root.
    pub path: Raw,
    /// What happens to it.
    pub kind: Kind,
    /// What it was called before, for [`Kind::Renamed`]. The old name has no
    /// entry of its own then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Raw>,
    /// What stood there before; of a renamed one, at its old name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Node>,
    /// What will stand there; its inode, device and times of change are those
    /// of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Node>,
    /// What stood there before is in `roots[root].below[n]`, and not in the
    /// live tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_on: Option<usize>,
    /// The live tree had changed here while the run went on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overtaken: bool,
    /// The run wrote to a file that has more names than this one, wherever
    /// those are; they change with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// What stood there counts by what it is, and not by which file it is: it
    /// may have been taken away and put back since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alike: bool,
    /// The before-image that holds the new content, for [`Source::Images`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<u64>,
}

impl Change {
    /// Returns whether any file like the one that stood there will do.
    pub(crate) fn takes_like(&self) -> bool {
        self.alike || self.built_on.is_some()
    }
}

/// What can happen to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It is gone.
    Deleted,
    /// It was not there before.
    Created,
    /// Its content is another.
    Modified,
    /// It has another name, and the same content.
    Renamed,
    /// Its rights, owner or attributes are others.
    Mode,
    /// It is a symbolic link, or was one.
    Link,
    /// Only its time of modification is another.
    Times,
}

/// Something that can never be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Index of the root it is in.
    pub root: usize,
    /// Relative to the root.
    pub path: Raw,
    /// Why, as a sentence without a full stop.
    pub why: String,
}
