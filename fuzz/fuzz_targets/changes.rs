//! Whatever is done on a copy, applying what is found there gives what doing
//! it directly gives, and undoing that gives what was there before.
//!
//! Needs a mount namespace of its own, and a small disk at `$TMPDIR`: see
//! `fuzz/run`.

#![no_main]

use std::collections::BTreeMap;
use std::fs::{self, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use weighlock_confine::{FileId, Identity};
use weighlock_effects::{Applied, Changes, Layer, Place, Root, Source, Time, commit};
use weighlock_policy::ChangeQuestion;

/// Few names, so that things meet.
const NAMES: [&str; 10] = [
    "a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/b", "f", "\u{e9} x",
];

/// At most this many deeds before and on the copy; more only repeat.
const MOST: usize = 24;

fuzz_target!(|bytes: &[u8]| {
    let (before, after) = bytes.split_at(bytes.len() / 2);
    let dir = std::env::temp_dir().join("world");
    let _ = Layer::remove(&dir);
    for name in ["", "live", "twin", "seen"] {
        fs::create_dir(dir.join(name)).expect("a small disk at $TMPDIR");
    }
    let world = World {
        dir: dir.canonicalize().expect("it was just made"),
    };
    world.check(before, after);
    Layer::remove(&dir).expect("nobody else is there");
});

struct World {
    dir: PathBuf,
}

impl World {
    fn check(&self, before: &[u8], after: &[u8]) {
        for deed in deeds(before) {
            let _ = deed.be_done(&self.path("live"));
            let _ = deed.be_done(&self.path("twin"));
        }
        let was = tree(&self.path("live"));
        let layer = Layer::make(&self.path("layer"), &self.path("live")).expect("a layer");
        if !self.on_copy(&layer, after) {
            return;
        }
        assert_eq!(
            tree(&self.path("live")),
            was,
            "a copy changed the live tree"
        );
        let changes = Changes::scan(vec![self.root(&layer)], self.now()).expect("a scan");
        assert_eq!(changes.refused, [], "nothing here is refused");
        let applied = self.apply(&changes, "commit");
        assert_alike(&self.path("live"), &self.path("twin"));
        let undo = applied.inverse(&self.path("commit"));
        self.apply(&undo, "undo");
        assert_eq!(tree(&self.path("live")), was, "undone");
    }

    /// Does the deeds through the layer, and directly on the twin; returns
    /// whether they came out alike. What an overlay refuses is no change.
    fn on_copy(&self, layer: &Layer, bytes: &[u8]) -> bool {
        let options = format!(
            "userxattr,volatile,lowerdir={},upperdir={},workdir={}",
            self.path("live").display(),
            layer.upper().display(),
            layer.work().display()
        );
        let seen = self.path("seen");
        let options = std::ffi::CString::new(options).expect("no zero byte");
        let mounted = mount("overlay", &seen, "overlay", MountFlags::empty(), &*options);
        mounted.expect("an overlay can be mounted here");
        let alike = deeds(bytes)
            .all(|deed| deed.be_done(&seen).is_ok() == deed.be_done(&self.path("twin")).is_ok());
        unmount(&seen, UnmountFlags::empty()).expect("nobody uses it");
        alike
    }

    fn apply(&self, changes: &Changes, name: &str) -> Applied {
        let place = Place {
            dir: self.path(name),
            durable: false,
            alone: true,
        };
        let permit = ChangeQuestion::about(&changes.hash()).approved_by("ana");
        commit(changes, permit, &place).unwrap_or_else(|error| panic!("{name}: {error:?}"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn root(&self, layer: &Layer) -> Root {
        let is = fs::metadata(self.path("live")).expect("it is there");
        Root {
            live: self.path("live"),
            is: FileId {
                device: is.dev(),
                inode: is.ino(),
            },
            owner: Identity {
                uid: is.uid(),
                gid: is.gid(),
            },
            source: Source::Upper(layer.upper()),
            below: vec![],
        }
    }

    /// The moment from which on a change counts as a later one.
    fn now(&self) -> Time {
        let clock = self.path("clock");
        fs::write(&clock, "").expect("there is room");
        let is = fs::metadata(&clock).expect("it was just made");
        Time {
            seconds: is.ctime(),
            nanos: is.ctime_nsec() as u32,
        }
    }
}

/// One thing that a command may do.
struct Deed {
    what: u8,
    at: &'static str,
    other: &'static str,
    with: u8,
}

/// Three bytes are a deed.
fn deeds(bytes: &[u8]) -> impl Iterator<Item = Deed> {
    let name = |byte: u8| NAMES[usize::from(byte) % NAMES.len()];
    let deeds = bytes.chunks_exact(3).take(MOST).map(move |three| Deed {
        what: three[0] % 11,
        at: name(three[1]),
        other: name(three[2]),
        with: three[2],
    });
    deeds.collect::<Vec<_>>().into_iter()
}

impl Deed {
    fn be_done(&self, root: &Path) -> io::Result<()> {
        let (at, other) = (root.join(self.at), root.join(self.other));
        let text = [self.with; 3];
        match self.what {
            0 => fs::write(at, text),
            1 => fs::File::options().append(true).open(at)?.write_all(&text),
            2 => fs::remove_file(at),
            3 => fs::create_dir(at),
            4 => fs::remove_dir(at),
            5 => symlink(self.other, at),
            // A directory that was there before cannot be renamed on a copy.
            6 if fs::symlink_metadata(&at)?.is_dir() => Ok(()),
            6 => fs::rename(at, other),
            7 if fs::symlink_metadata(&at)?.is_symlink() => Ok(()),
            7 => fs::set_permissions(
                at,
                Permissions::from_mode(0o700 | u32::from(self.with & 0o77)),
            ),
            8 => fs::remove_dir_all(at),
            9 => fs::File::options()
                .write(true)
                .open(at)?
                .set_len(u64::from(self.with % 5)),
            // Another file takes the place of one, as editors do it.
            _ => {
                let new = root.join("new");
                fs::write(&new, text)?;
                fs::rename(&new, at).inspect_err(|_| drop(fs::remove_file(&new)))
            }
        }
    }
}

/// All that can be seen of one path.
type Seen = (u32, Vec<u8>, PathBuf, (i64, i64));

fn tree(dir: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut all = BTreeMap::new();
    let mut left = vec![PathBuf::new()];
    while let Some(path) = left.pop() {
        let whole = dir.join(&path);
        let is = fs::symlink_metadata(&whole).expect("it is there");
        if is.is_dir() {
            let names = fs::read_dir(&whole).expect("it can be read");
            left.extend(names.map(|name| path.join(name.expect("a name").file_name())));
        }
        all.insert(path, see(&whole, &is));
    }
    all
}

fn see(whole: &Path, is: &Metadata) -> Seen {
    let content = match is.is_file() {
        true => fs::read(whole).expect("it can be read"),
        false => vec![],
    };
    let target = fs::read_link(whole).unwrap_or_default();
    (is.mode(), content, target, (is.mtime(), is.mtime_nsec()))
}

/// Compares two trees that were made at different moments.
fn assert_alike(left: &Path, right: &Path) {
    let without_times = |dir| -> BTreeMap<_, _> {
        let all = tree(dir).into_iter();
        all.map(|(path, (mode, content, target, _))| (path, (mode, content, target)))
            .collect()
    };
    assert_eq!(
        without_times(left),
        without_times(right),
        "applied and direct"
    );
}
