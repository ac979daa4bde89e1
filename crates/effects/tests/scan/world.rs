//! A live tree, layers over it, and scripts that run in them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use weighlock_confine::{FileId, Identity};
use weighlock_effects::{Changes, Layer, Raw, Root, Source, Time};
use weighlock_testing::skip;

/// A temporary directory with all of it.
pub(crate) struct World {
    dir: tempfile::TempDir,
    layers: Vec<PathBuf>,
}

impl World {
    /// Makes a live tree with a script. Skips and returns `None` where nobody may
    /// mount.
    pub(crate) fn new(setup: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let world = Self {
            dir,
            layers: Vec::new(),
        };
        fs::create_dir(world.live()).unwrap();
        fs::create_dir(world.path("mnt")).unwrap();
        world.in_live(setup);
        world.can_mount_or_skips().then_some(world)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn live(&self) -> PathBuf {
        self.path("live")
    }

    pub(crate) fn upper(&self) -> PathBuf {
        self.layers.last().unwrap().join("upper")
    }

    /// Runs a script in the live tree itself.
    pub(crate) fn in_live(&self, script: &str) {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).current_dir(self.live());
        done(script, command.output().unwrap());
    }

    /// Runs a script through a new layer over all earlier ones.
    pub(crate) fn run(&mut self, script: &str) {
        let dir = self.path(&format!("layer{}", self.layers.len()));
        Layer::make(&dir, &self.live()).unwrap();
        self.layers.push(dir);
        done(script, self.mounted(script));
    }

    /// Returns the moment from which on a change counts as a later one.
    pub(crate) fn now(&self) -> Time {
        let clock = self.path("clock");
        fs::write(&clock, "").unwrap();
        time_of(&clock)
    }

    /// Reads the newest layer.
    pub(crate) fn scan(&self) -> Changes {
        self.scan_since(self.now())
    }

    pub(crate) fn scan_since(&self, since: Time) -> Changes {
        Changes::scan(vec![self.root()], since).unwrap()
    }

    pub(crate) fn root(&self) -> Root {
        let is = fs::metadata(self.live()).unwrap();
        Root {
            live: self.live(),
            is: FileId {
                device: is.dev(),
                inode: is.ino(),
            },
            owner: Identity {
                uid: is.uid(),
                gid: is.gid(),
            },
            source: Source::Upper(self.upper()),
            below: self.below(),
        }
    }

    fn below(&self) -> Vec<PathBuf> {
        let earlier = self.layers.iter().rev().skip(1);
        earlier.map(|layer| layer.join("upper")).collect()
    }

    /// Says once for each test, however many worlds it makes, that none can be
    /// mounted.
    fn can_mount_or_skips(&self) -> bool {
        static CAN_MOUNT: OnceLock<bool> = OnceLock::new();
        *CAN_MOUNT.get_or_init(|| {
            let can = self.can_mount();
            if !can {
                skip("this kernel lets us mount no overlay");
            }
            can
        })
    }

    fn can_mount(&self) -> bool {
        let probe = self.path("probe");
        Layer::make(&probe, &self.live()).unwrap();
        let lower = self.live().display().to_string();
        let can = self.mount(&probe, &lower, "true").status.success();
        Layer::remove(&probe).unwrap();
        can
    }

    fn mounted(&self, script: &str) -> Output {
        let lower: Vec<String> = self
            .below()
            .into_iter()
            .chain([self.live()])
            .map(|path| path.display().to_string())
            .collect();
        self.mount(self.layers.last().unwrap(), &lower.join(":"), script)
    }

    fn mount(&self, layer: &Path, lower: &str, script: &str) -> Output {
        let root = is_root();
        let options = format!(
            // Without `volatile`, each of them writes out the whole disk at its end.
            "userxattr,volatile{},lowerdir={lower},upperdir={},workdir={}",
            if root { ",index=on" } else { "" },
            layer.join("upper").display(),
            layer.join("work").display(),
        );
        Command::new("unshare")
            .arg(if root { "-m" } else { "-Urm" })
            .args(["sh", "-ec", MOUNT])
            .env("OPTIONS", options)
            .env("MNT", self.path("mnt"))
            .env("SCRIPT", script)
            .output()
            .unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for layer in &self.layers {
            Layer::remove(layer).unwrap();
        }
    }
}

const MOUNT: &str = r#"
mount -t overlay overlay -o "$OPTIONS" "$MNT"
cd "$MNT"
umask 022
sh -ec "$SCRIPT"
"#;

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn time_of(path: &Path) -> Time {
    let stat = fs::symlink_metadata(path).unwrap();
    Time {
        seconds: stat.ctime(),
        nanos: stat.ctime_nsec() as u32,
    }
}

/// Says what changes do, a line each.
pub(crate) fn said(changes: &Changes) -> Vec<String> {
    let entries = changes.entries.iter().map(|change| {
        let kind = format!("{:?}", change.kind).to_lowercase();
        let from = change
            .from
            .as_ref()
            .map(|from| format!("{} -> ", text(from)));
        format!("{kind} {}{}", from.unwrap_or_default(), text(&change.path))
    });
    let refused = changes
        .refused
        .iter()
        .map(|refusal| format!("refused {}: {}", text(&refusal.path), refusal.why));
    entries.chain(refused).collect()
}

pub(crate) fn text(path: &Raw) -> String {
    match path.path().to_str() {
        Some(text) => text.replace('\n', "\\n"),
        None => path.bytes().escape_ascii().to_string(),
    }
}

/// Makes a tree, changes it in a layer and compares what is read from that.
pub(crate) fn check(setup: &str, script: &str, expected: &[&str]) {
    let Some(mut world) = World::new(setup) else {
        return;
    };
    world.run(script);
    let changes = world.scan();
    assert_eq!(said(&changes), expected, "after `{script}` on `{setup}`");
    assert!(changes.entries.iter().all(|change| !change.overtaken));
    assert_eq!(changes.conflicts().unwrap(), []);
}

fn done(script: &str, output: Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{script}` failed: {said}");
}
