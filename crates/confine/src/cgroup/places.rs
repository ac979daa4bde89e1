//! Finds where this process may make control groups.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::sweep::Name;
use super::{PerController, Version, number, put};

/// What there is on this machine for us.
pub(super) struct Places {
    /// Where each bound can be had, or why it cannot.
    pub(super) each: PerController<Result<CgroupParent, Errno>>,
    /// What a run gets at most; see [`Ceiling`].
    pub(super) ceiling: Ceiling,
    /// The PID namespace that our pids are numbers of.
    pub(super) namespace: u64,
}

/// A directory in which groups can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CgroupParent {
    pub(super) version: Version,
    pub(super) dir: PathBuf,
    /// Where its hierarchy is mounted.
    pub(super) root: PathBuf,
}

/// The bounds that we are under ourselves. In v2 the groups of runs are beside
/// our own and not below it; a run must not get more by that than we have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ceiling {
    pub(super) memory_bytes: u64,
    pub(super) processes: u64,
}

impl Places {
    /// Looks once; processes forked later know it already.
    pub(super) fn get() -> &'static Self {
        static PLACES: OnceLock<Places> = OnceLock::new();
        PLACES.get_or_init(|| {
            let hierarchies = Hierarchies {
                mounts: mounts(&read("/proc/self/mountinfo")),
                own: read("/proc/self/cgroup"),
            };
            let base = hierarchies.own_dir(None).and_then(|own| base(&own));
            Self {
                ceiling: Ceiling::of(base.as_ref().ok()),
                each: NAMES.map(|name| hierarchies.place(name, base.as_ref())),
                namespace: fs::metadata("/proc/self/ns/pid").map_or(0, |file| file.ino()),
            }
        })
    }

    /// Returns the mounts in which we can have groups, each one once.
    /// Processes come first: with their number bounded, they can be ended.
    pub(super) fn roots(&self) -> Vec<&Path> {
        let mut roots: Vec<&Path> = vec![];
        let PerController {
            memory,
            processes,
            cpu,
        } = &self.each;
        for place in [processes, memory, cpu].into_iter().flatten() {
            if !roots.contains(&place.root.as_path()) {
                roots.push(&place.root);
            }
        }
        roots
    }
}

/// What the kernel calls the controllers, in both versions.
const NAMES: PerController<&str> = PerController {
    memory: "memory",
    processes: "pids",
    cpu: "cpu",
};

impl Ceiling {
    fn of(base: Option<&CgroupBase>) -> Self {
        let own = base.and_then(|base| base.own.as_deref());
        let bound = |file| own.and_then(|own| number(&own.join(file)));
        Self {
            memory_bytes: bound("memory.max").unwrap_or(u64::MAX),
            processes: bound("pids.max").unwrap_or(u64::MAX),
        }
    }
}

/// The mounts of this machine, and where we are in them.
struct Hierarchies {
    mounts: Vec<MountInfo>,
    /// As in `/proc/self/cgroup`.
    own: String,
}

/// A group of v2 that has those of runs.
struct CgroupBase {
    dir: PathBuf,
    root: PathBuf,
    /// Our own group, where that is another.
    own: Option<PathBuf>,
}

impl Hierarchies {
    /// A controller is in one hierarchy only, so at most one of the two works.
    fn place(&self, name: &str, base: Result<&CgroupBase, &Errno>) -> Result<CgroupParent, Errno> {
        let unified = base.map_err(|errno| *errno).and_then(|base| {
            enable(&base.dir, name)?;
            CgroupParent::writable(Version::V2, &base.dir, &base.root)
        });
        unified.or_else(|v2| {
            let own = self.own_dir(Some(name));
            let place =
                own.and_then(|own| CgroupParent::writable(Version::V1, &own.dir, &own.root));
            place.map_err(|v1| if v1 == Errno::NODEV { v2 } else { v1 })
        })
    }

    /// Returns the directory of our own group for a controller of v1, or for
    /// all of v2. Of several mounts that show it, one that can be written to.
    fn own_dir(&self, controller: Option<&str>) -> Result<OwnCgroup, Errno> {
        let path = own_path(&self.own, controller).ok_or(Errno::NODEV)?;
        let mut shown: Vec<_> = self
            .mounts
            .iter()
            .filter(|mount| mount.has(controller))
            .filter_map(|mount| mount.show(path))
            .filter(|own| own.dir.join("cgroup.procs").exists())
            .collect();
        let best = shown.iter().position(|own| writable(&own.dir).is_ok());
        if shown.is_empty() {
            return Err(Errno::NODEV);
        }
        Ok(shown.swap_remove(best.unwrap_or(0)))
    }
}

/// The group that we are in.
#[derive(Debug, PartialEq, Eq)]
struct OwnCgroup {
    dir: PathBuf,
    root: PathBuf,
}

impl CgroupParent {
    fn writable(version: Version, dir: &Path, root: &Path) -> Result<Self, Errno> {
        writable(dir)?;
        Ok(Self {
            version,
            dir: dir.to_owned(),
            root: root.to_owned(),
        })
    }
}

fn writable(dir: &Path) -> Result<(), Errno> {
    access(dir, Access::WRITE_OK | Access::EXEC_OK)
}

/// Finds the group of v2 that can have ours below it. A group with processes,
/// as our own is, can have none but for the root of all; so it is the one
/// above. (Enabling `pids` or `cpu` in a group with processes may succeed, but
/// makes it one of threads, and no process can enter what is below it.)
fn base(own: &OwnCgroup) -> Result<CgroupBase, Errno> {
    let root = own.root.clone();
    // Only the root of all has no type.
    if !own.dir.join("cgroup.type").exists() {
        let dir = own.dir.clone();
        return Ok(CgroupBase {
            dir,
            root,
            own: None,
        });
    }
    // Out of the group of a run there would be no bounds any more.
    let in_a_run = Name::of(&own.dir).is_some();
    match own.dir.parent() {
        Some(above) if own.dir != own.root && !in_a_run => Ok(CgroupBase {
            dir: above.to_owned(),
            root,
            own: Some(own.dir.clone()),
        }),
        _ => Err(Errno::BUSY),
    }
}

/// Sees that groups below `dir` have a controller.
fn enable(dir: &Path, name: &str) -> Result<(), Errno> {
    let lists = |file| {
        let names = fs::read_to_string(dir.join(file)).unwrap_or_default();
        names.split_ascii_whitespace().any(|found| found == name)
    };
    if lists("cgroup.subtree_control") {
        Ok(())
    } else if lists("cgroup.controllers") {
        put(dir, "cgroup.subtree_control", format!("+{name}"))
    } else {
        Err(Errno::NODEV)
    }
}

/// Finds our path in the hierarchy of a controller, or in that of v2.
fn own_path<'a>(own: &'a str, controller: Option<&str>) -> Option<&'a str> {
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, names, path) = (fields.next()?, fields.next()?, fields.next()?);
        let found = match controller {
            Some(name) => names.split(',').any(|found| found == name),
            None => number == "0" && names.is_empty(),
        };
        found.then_some(path)
    })
}

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, PartialEq, Eq)]
struct MountInfo {
    /// Which part of its file system is shown: in a container, our own group.
    root: PathBuf,
    point: PathBuf,
    /// Empty for v2.
    controllers: Vec<String>,
    version: Version,
}

fn mounts(mountinfo: &str) -> Vec<MountInfo> {
    mountinfo.lines().filter_map(MountInfo::parse).collect()
}

impl MountInfo {
    fn parse(line: &str) -> Option<Self> {
        // The number of fields before the dash varies.
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let mut kind = kind.split(' ');
        let version = match kind.next()? {
            "cgroup" => Version::V1,
            "cgroup2" => Version::V2,
            _ => return None,
        };
        let options = kind.nth(1)?.split(',').map(str::to_owned);
        Some(Self {
            root: unescape(place.next()?),
            point: unescape(place.next()?),
            controllers: options.filter(|_| version == Version::V1).collect(),
            version,
        })
    }

    fn has(&self, controller: Option<&str>) -> bool {
        match controller {
            Some(name) => self.controllers.iter().any(|found| found == name),
            None => self.version == Version::V2,
        }
    }

    /// Returns where a group is seen in this mount, if it is. One outside of
    /// our cgroup namespace has a path with `..`, which leads nowhere good.
    fn show(&self, path: &str) -> Option<OwnCgroup> {
        let below = Path::new(path).strip_prefix(&self.root).ok()?;
        if path.split('/').any(|part| part == "..") {
            return None;
        }
        Some(OwnCgroup {
            // Collected: joining an empty path would leave a slash.
            dir: self.point.iter().chain(below).collect(),
            root: self.point.clone(),
        })
    }
}

/// Undoes how the kernel writes spaces and the like: `\040`.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = vec![];
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..3).and_then(|code| str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 8).ok());
        match code {
            Some(byte) if first == b'\\' => {
                bytes.push(byte);
                rest = &after[3..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// What is not there has nothing to say.
fn read(file: &str) -> String {
    let bytes = fs::read(file).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(dir: &str, root: &str) -> Option<OwnCgroup> {
        let (dir, root) = (dir.into(), root.into());
        Some(OwnCgroup { dir, root })
    }

    fn shown(mount: &str, path: &str) -> Option<OwnCgroup> {
        MountInfo::parse(mount)?.show(path)
    }

    #[test]
    fn own_group_is_found_in_every_kind_of_mount() {
        let whole = "35 31 0:32 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory";
        let memory = "/sys/fs/cgroup/memory";
        assert_eq!(shown(whole, "/"), own(memory, memory));
        assert_eq!(
            shown(whole, "/a/b"),
            own("/sys/fs/cgroup/memory/a/b", memory)
        );
        // A container without a cgroup namespace sees its own part only.
        let part = "35 31 0:32 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup rw";
        assert_eq!(
            shown(part, "/docker/1"),
            own("/sys/fs/cgroup", "/sys/fs/cgroup")
        );
        assert_eq!(
            shown(part, "/docker/1/x"),
            own("/sys/fs/cgroup/x", "/sys/fs/cgroup")
        );
        assert_eq!(shown(part, "/docker/12"), None);
        assert_eq!(shown(whole, "/../x"), None);
        let odd = r"35 31 0:32 / /my\040own\134cg rw - cgroup2 cgroup2 rw";
        assert_eq!(shown(odd, "/a"), own(r"/my own\cg/a", r"/my own\cg"));
        assert_eq!(
            shown("31 23 0:28 / /sys rw - tmpfs tmpfs rw,memory", "/"),
            None
        );
    }

    #[test]
    fn controllers_are_told_apart() {
        let line = "33 31 0:30 / /c rw - cgroup cgroup rw,cpu,cpuacct";
        let mount = MountInfo::parse(line).unwrap();
        assert!(mount.has(Some("cpu")) && mount.has(Some("cpuacct")));
        assert!(!mount.has(Some("cpuset")) && !mount.has(None));
        let groups = "4:memory:/a:b\n2:cpu,cpuacct:/c\n1:name=systemd:/d\n0::/e\n";
        assert_eq!(own_path(groups, Some("memory")), Some("/a:b"));
        assert_eq!(own_path(groups, Some("cpu")), Some("/c"));
        assert_eq!(own_path(groups, Some("pids")), None);
        assert_eq!(own_path(groups, None), Some("/e"));
    }

    /// Makes the files that a group of v2 has, as far as we look at them.
    fn group(dir: &Path, controllers: &str, enabled: &str) -> OwnCgroup {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("cgroup.controllers"), controllers).unwrap();
        fs::write(dir.join("cgroup.subtree_control"), enabled).unwrap();
        fs::write(dir.join("cgroup.type"), "domain\n").unwrap();
        OwnCgroup {
            dir: dir.to_owned(),
            root: dir.ancestors().nth(2).unwrap().to_owned(),
        }
    }

    #[test]
    fn groups_of_v2_are_made_beside_our_own_but_never_out_of_a_run() {
        let top = std::env::temp_dir().join(format!("weighlock-places-{}", std::process::id()));
        let slice = group(&top.join("slice"), "cpu memory pids\n", "memory\n");
        let leaf = group(&slice.dir.join("leaf"), "memory\n", "");
        fs::write(leaf.dir.join("memory.max"), "4096\n").unwrap();
        fs::write(leaf.dir.join("pids.max"), "max\n").unwrap();

        let found = base(&leaf).unwrap();
        assert_eq!(found.dir, slice.dir);
        let ceiling = Ceiling {
            memory_bytes: 4096,
            processes: u64::MAX,
        };
        assert_eq!(Ceiling::of(Some(&found)), ceiling);
        assert_eq!(enable(&found.dir, "memory"), Ok(()));
        assert_eq!(enable(&found.dir, "pids"), Ok(()));
        let control = fs::read_to_string(slice.dir.join("cgroup.subtree_control"));
        assert!(control.unwrap().starts_with("+pids"));
        assert_eq!(enable(&found.dir, "io"), Err(Errno::NODEV));

        let run = group(&slice.dir.join("weighlock-1-2-3-0"), "memory\n", "");
        assert_eq!(base(&run).err(), Some(Errno::BUSY));
        // At the top of what a container sees.
        let seen = OwnCgroup {
            dir: leaf.dir.clone(),
            root: leaf.dir.clone(),
        };
        assert_eq!(base(&seen).err(), Some(Errno::BUSY));
        fs::remove_file(leaf.dir.join("cgroup.type")).unwrap();
        assert_eq!(base(&leaf).unwrap().dir, leaf.dir);
        fs::remove_dir_all(top).unwrap();
    }
}
