//! Where new content comes from.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use super::attributes::Attributes;
use super::handle::{Handle, Traits};
use super::images::ImageIndex;
use super::tree::OpenDirs;
use crate::changes::{Change, Source};
use crate::node::{Node, NodeKind, Time};

pub(crate) enum Origin {
    Layer(OpenDirs),
    Images {
        dir: OpenDirs,
        index: ImageIndex,
        times: HashMap<(usize, PathBuf), Time>,
    },
}

impl Origin {
    pub(crate) fn open(source: &Source) -> io::Result<Self> {
        match source {
            Source::Upper(path) => Ok(Self::Layer(OpenDirs::open(&path.canonicalize()?)?)),
            Source::Live(_) => Err(io::ErrorKind::Unsupported.into()),
            Source::Images(path) => {
                let index = ImageIndex::load(path)?;
                Ok(Self::Images {
                    dir: OpenDirs::open(&path.canonicalize()?)?,
                    times: index.dir_times(),
                    index,
                })
            }
        }
    }

    /// Opens the file that has the new content. A directory among images has
    /// none.
    pub(crate) fn handle(&mut self, change: &Change, after: &Node) -> io::Result<Option<Handle>> {
        match self {
            Self::Layer(tree) => tree.handle(change.path.path()),
            Self::Images { .. } if after.kind == NodeKind::Directory => Ok(None),
            Self::Images { dir, index, .. } => {
                let name = index.content(image(change)?).to_string();
                dir.handle(Path::new(&name))
            }
        }
    }

    /// Returns what is to be set besides the content.
    pub(crate) fn traits(&mut self, change: &Change, after: &Node) -> io::Result<Traits> {
        let attributes = match self {
            Self::Layer(tree) => match tree.handle(change.path.path())? {
                Some(handle) => handle.attributes()?.outer(),
                None => Attributes::default(),
            },
            Self::Images { index, .. } => index.attributes(image(change)?),
        };
        Ok(Traits::of(after, attributes))
    }

    /// Whether the run wrote to the file, rather than putting another there.
    pub(crate) fn is_in_place(&mut self, change: &Change) -> io::Result<bool> {
        match self {
            Self::Layer(tree) => match tree.handle(change.path.path())? {
                Some(handle) => Ok(handle.attributes()?.has_origin()),
                None => Ok(false),
            },
            Self::Images { index, .. } => Ok(index.is_in_place(image(change)?)),
        }
    }

    /// Whether it must be exactly the file that was shown.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self, Self::Layer(_))
    }

    /// Returns when a directory should have changed last.
    pub(crate) fn dir_time(&mut self, root: usize, path: &Path) -> io::Result<Option<Time>> {
        match self {
            Self::Images { times, .. } => Ok(times.get(&(root, path.to_owned())).copied()),
            Self::Layer(tree) => match tree.handle(path) {
                Ok(Some(handle)) => {
                    let node = handle.node()?;
                    Ok((node.kind == NodeKind::Directory).then_some(node.mtime))
                }
                _ => Ok(None),
            },
        }
    }
}

fn image(change: &Change) -> io::Result<u64> {
    change
        .image
        .ok_or_else(|| io::Error::other("the change names no image"))
}
