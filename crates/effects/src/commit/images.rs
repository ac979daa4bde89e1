//! What stood there before: kept so that a commit can be taken back.
//!
//! Each image has the number of its change. Files and links are under that
//! number in a directory; what else there is to know is in its index.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::symlinkat;
use serde::{Deserialize, Serialize};
use weighlock_confine::FileId;

use super::attributes::Attributes;
use super::handle::{Handle, Traits};
use super::make::copy_file;
use super::tree::{OpenDirs, Spot};
use crate::node::{Node, NodeKind, Raw, Time};

const INDEX: &str = "index";

/// Where the images of a commit are.
pub(crate) fn dir_of(place: &Path) -> PathBuf {
    place.join("images")
}

/// What is known of the images besides their content.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ImageIndex {
    kept: BTreeMap<u64, ImageRecord>,
    /// When directories changed last before, by root.
    dirs: Vec<(usize, Raw, Time)>,
    pub(crate) bytes: u64,
    pub(crate) files: u64,
}

#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
struct ImageRecord {
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    attributes: Attributes,
    /// The file was written to and not replaced, for the sake of its other names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    in_place: bool,
    /// The image that has the content, where that is another: both were names
    /// of one file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    same_as: Option<u64>,
}

impl ImageIndex {
    pub(crate) fn load(images: &Path) -> io::Result<Self> {
        let text = std::fs::read(images.join(INDEX))?;
        Ok(serde_json::from_slice(&text)?)
    }

    pub(crate) fn attributes(&self, image: u64) -> Attributes {
        let kept = self.kept.get(&image);
        kept.map(|kept| kept.attributes.clone()).unwrap_or_default()
    }

    pub(crate) fn is_in_place(&self, image: u64) -> bool {
        self.kept.get(&image).is_some_and(|kept| kept.in_place)
    }

    /// Returns the number under which the content of an image is.
    pub(crate) fn content(&self, image: u64) -> u64 {
        let kept = self.kept.get(&image);
        kept.and_then(|kept| kept.same_as).unwrap_or(image)
    }

    /// Returns when these directories changed last before.
    pub(crate) fn dir_times(&self) -> HashMap<(usize, PathBuf), Time> {
        let all = self.dirs.iter().cloned();
        all.map(|(root, path, time)| ((root, path.0), time))
            .collect()
    }
}

/// The images of a commit that is being prepared.
pub(crate) struct Images {
    path: PathBuf,
    dir: Rc<OwnedFd>,
    index: ImageIndex,
    /// Files with more names than one, and their images.
    shared: HashMap<(u64, u64), u64>,
}

impl Images {
    pub(crate) fn create(place: &Path) -> io::Result<Self> {
        let path = dir_of(place);
        std::fs::create_dir(&path)?;
        let dir = OpenDirs::open(&path.canonicalize()?)?.dir(Path::new(""))?;
        Ok(Self {
            path,
            dir,
            index: ImageIndex::default(),
            shared: HashMap::new(),
        })
    }

    /// Keeps a file, link or directory that will be replaced or removed.
    pub(crate) fn keep(&mut self, image: u64, live: &Handle) -> io::Result<()> {
        let node = live.node()?;
        self.keep_traits(image, live)?;
        match node.kind {
            NodeKind::File => self.keep_file(image, live, &node),
            NodeKind::Link => self.keep_link(image, &node),
            NodeKind::Directory | NodeKind::Special => Ok(()),
        }
    }

    /// Keeps a file that will be written to.
    pub(crate) fn keep_copy(&mut self, image: u64, live: &Handle) -> io::Result<()> {
        self.keep_traits(image, live)?;
        self.index.kept.entry(image).or_default().in_place = true;
        let node = live.node()?;
        self.copy(image, live, &node)
    }

    /// Keeps all but the content.
    pub(crate) fn keep_traits(&mut self, image: u64, live: &Handle) -> io::Result<()> {
        let attributes = live.attributes()?;
        if !attributes.is_empty() {
            self.index.kept.entry(image).or_default().attributes = attributes;
        }
        Ok(())
    }

    pub(crate) fn keep_time(&mut self, root: usize, path: &Raw, mtime: Time) {
        self.index.dirs.push((root, path.clone(), mtime));
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        let mut file = BufWriter::new(File::create_new(self.path.join(INDEX))?);
        serde_json::to_writer(&mut file, &self.index)?;
        file.flush()
    }

    fn keep_file(&mut self, image: u64, live: &Handle, node: &Node) -> io::Result<()> {
        if node.links == 1 {
            let spot = self.spot(image);
            if live.link(&spot.dir, &spot.name).is_ok() {
                self.count(node);
                return Ok(());
            }
        } else if let Some(first) = self.shared.get(&(node.device, node.inode)) {
            self.index.kept.entry(image).or_default().same_as = Some(*first);
            return Ok(());
        }
        // Whoever writes to it by another name would write to the image.
        self.shared.insert((node.device, node.inode), image);
        match self.copy(image, live, node) {
            // Its owner may rename what nobody may read.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let spot = self.spot(image);
                live.link(&spot.dir, &spot.name)?;
                self.count(node);
                Ok(())
            }
            done => done,
        }
    }

    fn copy(&mut self, image: u64, live: &Handle, node: &Node) -> io::Result<()> {
        let traits = Traits::of(node, live.attributes()?);
        copy_file(live, &self.spot(image), &traits)?;
        self.count(node);
        Ok(())
    }

    fn keep_link(&mut self, image: u64, node: &Node) -> io::Result<()> {
        let spot = self.spot(image);
        if let Some(target) = &node.target {
            symlinkat(target.path(), &spot.dir, &spot.name)?;
            spot.hold()?.set(&Traits::of(node, Attributes::default()))?;
        }
        self.count(node);
        Ok(())
    }

    fn count(&mut self, node: &Node) {
        self.index.bytes += node.size;
        self.index.files += 1;
    }

    fn spot(&self, image: u64) -> Spot {
        Spot::new(&self.dir, image.to_string())
    }
}

/// Writes the content and traits of an image back into a file.
pub(crate) fn write_back(place: &Path, image: u64, to: &File) -> io::Result<()> {
    super::copy::copy(&open(place, image)?, to)
}

/// Opens the content of an image.
pub(crate) fn open(place: &Path, image: u64) -> io::Result<File> {
    File::open(dir_of(place).join(image.to_string()))
}

/// Removes all images.
pub(crate) fn remove(place: &Path) -> io::Result<()> {
    super::journal::absent_ok(std::fs::remove_dir_all(dir_of(place)))
}

/// Which file a node is.
pub(crate) fn id(node: &Node) -> FileId {
    FileId {
        device: node.device,
        inode: node.inode,
    }
}
