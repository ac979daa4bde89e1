//! Says which wall stopped a command, and what a person could change.
//!
//! The command's own words are all there is to go by. Whether a path lies
//! outside is decided by the path alone: looking at the disk would tell an
//! agent which hidden files exist.

mod complaint;
mod secret;
#[cfg(test)]
mod tests;

use std::path::{Component, Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::complaint::{Complaint, Intent, Kind};
pub(crate) use self::secret::{Closed, find_secret};
use crate::health::size;

/// One thing that a wall stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denial {
    /// Stable word: `fs.write`, `fs.read`, `fs.secret`, `fs.setid`, `network`, `syscall`,
    /// `memory`, `processes`, `open_files`, `file_size` or `tmp_full`.
    pub code: String,
    /// The path, host or program, when the message named one. Paths are
    /// absolute.
    pub object: Option<String>,
    /// One sentence: what was stopped, and by which wall.
    pub text: String,
    /// What a person could change.
    pub remedy: String,
}

/// What the walls of a run were, as far as blame goes.
pub(crate) struct Walls<'a> {
    /// The sandbox's name.
    pub(crate) name: &'a str,
    /// Where the command started.
    pub(crate) cwd: &'a Path,
    /// Trees that can be seen.
    pub(crate) readable: &'a [PathBuf],
    /// Trees that can be written.
    pub(crate) writable: &'a [PathBuf],
    /// What is read-only inside a writable tree.
    pub(crate) protected: &'a [PathBuf],
    /// The home directory, if nothing could be written to it.
    pub(crate) closed_home: Option<&'a Path>,
    pub(crate) network_off: bool,
    pub(crate) fence: Fence,
    pub(crate) limits: Limits,
}

/// What keeps files away, which decides how a refusal sounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fence {
    /// Outside is read-only (`EROFS`) or not there (`ENOENT`), and a
    /// protected file is a mount point (`EBUSY`).
    Mounts,
    /// Outside is denied (`EACCES`), as the host denies too.
    Landlock,
}

/// What a run may use; none where there is no limit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) processes: Option<u64>,
    pub(crate) open_files: Option<u64>,
    pub(crate) file_bytes: Option<u64>,
}

/// Names what the walls stopped, from the end of a failed run's standard
/// error. The caller bounds the text.
pub(crate) fn find(stderr: &str, walls: &Walls) -> Vec<Denial> {
    let mut found: Vec<Denial> = Vec::new();
    for complaint in complaint::read(&complaint::plain(stderr)) {
        let Some(denial) = walls.judge(&complaint) else {
            continue;
        };
        if !found.contains(&denial) {
            found.push(denial);
        }
        // Enough, even when the vague ones go.
        if found.len() > MOST + VAGUE.len() {
            break;
        }
    }
    drop_vague(&mut found);
    found.truncate(MOST);
    found
}

/// More would drown the result; the first errors are the causes of the rest.
const MOST: usize = 5;

/// Characters of a path or host that are repeated.
const OBJECT_CHARS: usize = 200;

/// What is said without an object only if nothing is said with one.
const VAGUE: [&str; 2] = ["network", "fs.write"];

/// Trees that the walls put in place of the host's, empty for each run.
const PRIVATE: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];

/// Trees of the kernel's; no setting opens them.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

fn drop_vague(found: &mut Vec<Denial>) {
    for code in VAGUE {
        let exact = |denial: &Denial| denial.code == code && denial.object.is_some();
        if found.iter().any(exact) {
            found.retain(|denial| denial.code != code || denial.object.is_some());
        }
    }
}

impl Walls<'_> {
    fn judge(&self, complaint: &Complaint) -> Option<Denial> {
        let limits = &self.limits;
        match complaint.kind {
            Kind::Unreachable => self.network(complaint),
            Kind::Unconnected if self.fence == Fence::Landlock => self.network(complaint),
            Kind::Privilege => self.privilege(complaint.objects.first()?),
            Kind::Memory => self.limit("memory", size(limits.memory_bytes?)),
            Kind::Processes => self.limit("processes", limits.processes?.to_string()),
            Kind::OpenFiles => self.limit("open_files", limits.open_files?.to_string()),
            Kind::FileSize => self.limit("file_size", size(limits.file_bytes?)),
            Kind::ReadOnly if complaint.objects.is_empty() => self.somewhere(),
            _ => self.file(complaint),
        }
    }

    fn network(&self, complaint: &Complaint) -> Option<Denial> {
        let host = complaint.objects.first();
        let local = host.map_or(complaint.local, |host| is_local(host));
        if !self.network_off || local {
            return None;
        }
        let host = host.map(|host| clean(host));
        let text = match &host {
            Some(host) => format!("network is off: cannot reach {host}"),
            None => "network is off".into(),
        };
        let remedy = self.person(&format!("set `network = \"on\"` for {}", self.sandbox()));
        Some(denial("network", host, text, remedy))
    }

    fn privilege(&self, program: &str) -> Option<Denial> {
        let program = clean(program);
        let text = format!("`{program}` needs what the walls do not allow");
        let remedy = "no setting opens this: a person can do it outside the walls; agents cannot";
        Some(denial("syscall", Some(program), text, remedy.into()))
    }

    /// Speaks with care: the kernel does not say which limit was met, and
    /// without a cgroup some of them count for each process.
    fn limit(&self, code: &str, limit: String) -> Option<Denial> {
        let words = match code {
            "memory" => format!("may have met its memory limit of {limit}"),
            "processes" => format!("may have met its limit of {limit} processes"),
            "open_files" => format!("may have met its limit of {limit} open files per process"),
            _ => format!("may have met its limit of {limit} per file"),
        };
        let setting = match code {
            "memory" => "memory_mib",
            "file_size" => "file_mib",
            other => other,
        };
        let remedy = self.person(&format!("raise `{setting}` of {}", self.sandbox()));
        Some(denial(code, None, format!("the command {words}"), remedy))
    }

    /// A read-only file system that the message does not name. Among mounts
    /// of ours it is all but certainly one of them.
    fn somewhere(&self) -> Option<Denial> {
        (self.fence == Fence::Mounts).then(|| {
            let what = format!("add the directory to `write` of {}", self.sandbox());
            let text = "cannot write: outside the sandbox (the message names no path)";
            denial("fs.write", None, text.into(), self.person(&what))
        })
    }

    /// Judges where something was to go before where it came from.
    fn file(&self, complaint: &Complaint) -> Option<Denial> {
        complaint.objects.iter().rev().find_map(|written| {
            // Whose home is meant, the message does not say.
            if written.starts_with('~') {
                return None;
            }
            let path = resolve(self.cwd, Path::new(written));
            self.path(complaint, &path, Path::new(written))
        })
    }

    fn path(&self, complaint: &Complaint, path: &Path, written: &Path) -> Option<Denial> {
        let intent = complaint.intent;
        match (self.fence, complaint.kind) {
            (_, Kind::Mode) => self.set_id(path),
            (Fence::Mounts, Kind::NoSpace) => self.full(path),
            (Fence::Mounts, Kind::ReadOnly) => self
                .protected(path, written)
                .or_else(|| self.at_home(path))
                .or_else(|| self.unwritable(path)),
            (Fence::Mounts, Kind::Busy) => self
                .protected(path, written)
                .or_else(|| self.replaced(path, intent)),
            (Fence::Mounts, Kind::Missing) => self.unseen(path, intent),
            (Fence::Landlock, Kind::Denied) => self.denied(path, written, intent),
            _ => None,
        }
    }

    /// Under Landlock the host may have denied it as well. A path that can be
    /// read is blamed only if the words tell that it was to be written.
    fn denied(&self, path: &Path, written: &Path, intent: Intent) -> Option<Denial> {
        if !self.visible(path) {
            return Some(self.outside(path, intent));
        }
        match intent {
            Intent::Write | Intent::Replace => self
                .protected(path, written)
                .or_else(|| self.at_home(path))
                .or_else(|| self.unwritable(path)),
            Intent::Shell if !self.can_write(path) && !is_program(path) => {
                let text = format!(
                    "cannot open {}: it can be read, but writing there is outside the sandbox",
                    self.shown(path)
                );
                Some(denial(
                    "fs.write",
                    object(path),
                    text,
                    self.open_write(path),
                ))
            }
            _ => None,
        }
    }

    fn unseen(&self, path: &Path, intent: Intent) -> Option<Denial> {
        let above = |root: &PathBuf| root.starts_with(path);
        let ordinary = self.visible(path)
            || self.readable.iter().chain(self.writable).any(above)
            // Processes come and go.
            || path.starts_with("/proc");
        (!ordinary).then(|| self.outside(path, intent))
    }

    fn outside(&self, path: &Path, intent: Intent) -> Denial {
        let shown = self.shown(path);
        if intent.writes() {
            let text = format!("cannot write {shown}: outside the sandbox");
            return denial("fs.write", object(path), text, self.open_write(path));
        }
        let text = match self.fence {
            Fence::Mounts => {
                format!("cannot read {shown}: outside the sandbox, it is not visible there")
            }
            Fence::Landlock => format!("cannot read {shown}: outside the sandbox"),
        };
        let what = format!(
            "add `{}` or its directory to `read` of {} in the configuration",
            cleaned(path),
            self.sandbox()
        );
        denial("fs.read", object(path), text, self.person(&what))
    }

    fn at_home(&self, path: &Path) -> Option<Denial> {
        path.starts_with(self.closed_home?).then(|| {
            let text = format!(
                "cannot write {}: what is proved to read does not write to the sandbox's home \
                 directory",
                self.shown(path)
            );
            let remedy = "write to /tmp, or have a person asked before it runs \
                          (`--review before`)";
            denial("fs.write", object(path), text, remedy.into())
        })
    }

    fn unwritable(&self, path: &Path) -> Option<Denial> {
        if self.can_write(path) {
            return None;
        }
        let text = match deepest(self.readable, path) {
            Some(root) if self.cwd.starts_with(root) => "read-only in this sandbox",
            _ => "outside the sandbox",
        };
        let text = format!("cannot write {}: {text}", self.shown(path));
        Some(denial(
            "fs.write",
            object(path),
            text,
            self.open_write(path),
        ))
    }

    fn protected(&self, path: &Path, written: &Path) -> Option<Denial> {
        let here = deepest(self.protected, path).map(|_| path);
        let there = || {
            let mut roots = self.protected.iter().map(PathBuf::as_path);
            roots.find(|root| written.is_relative() && ends(root, written))
        };
        let path = here.or_else(there)?;
        Some(self.guarded(path, format!("cannot write {}", self.shown(path))))
    }

    /// `sed -i` and many editors write a new file and rename it over the old
    /// one; only the new one's name is told.
    fn replaced(&self, path: &Path, intent: Intent) -> Option<Denial> {
        let dir = path.parent()?;
        let beside = |root: &PathBuf| root.parent() == Some(dir);
        (intent == Intent::Replace && self.protected.iter().any(beside)).then(|| {
            let shown = self.shown(dir);
            self.guarded(dir, format!("cannot replace a file in {shown}"))
        })
    }

    fn guarded(&self, path: &Path, what: String) -> Denial {
        let text = format!("{what}: protected, it would run outside the walls");
        let remedy = "a person can change it outside the walls; agents cannot";
        denial("fs.write", object(path), text, remedy.into())
    }

    /// The message does not tell the mode, and the host denies a mode too
    /// when the file is another's. So it is said with an if.
    fn set_id(&self, path: &Path) -> Option<Denial> {
        self.can_write(path).then(|| {
            let text = format!(
                "cannot change the mode of {}: set-id bits cannot be set inside the walls, \
                 if that was asked",
                self.shown(path)
            );
            let remedy = "leave the set-id bits out, or let a person set them outside the walls";
            denial("fs.setid", object(path), text, remedy.into())
        })
    }

    fn full(&self, path: &Path) -> Option<Denial> {
        let tree = PRIVATE.iter().find(|tree| path.starts_with(tree))?;
        let text = format!("the private {tree} is full (writing {})", self.shown(path));
        let remedy = "remove files there, or write inside the sandbox's directory";
        Some(denial("tmp_full", object(path), text, remedy.into()))
    }

    fn visible(&self, path: &Path) -> bool {
        self.readable
            .iter()
            .chain(self.writable)
            .any(|root| path.starts_with(root))
    }

    /// The deepest tree decides: a readable one may lie in a writable one.
    fn can_write(&self, path: &Path) -> bool {
        let depth = |roots| deepest(roots, path).map(|root| root.components().count());
        let writable = depth(self.writable);
        writable.is_some() && writable >= depth(self.readable) && writable > depth(self.protected)
    }

    fn open_write(&self, path: &Path) -> String {
        if KERNEL.iter().any(|tree| path.starts_with(tree)) {
            return "no setting opens the kernel's own files".into();
        }
        // Nobody should be told to open the whole machine.
        let dir = path
            .parent()
            .filter(|dir| dir.parent().is_some())
            .unwrap_or(path);
        self.person(&format!(
            "add `{}` to `write` of {} in the configuration",
            cleaned(dir),
            self.sandbox()
        ))
    }

    fn person(&self, what: &str) -> String {
        format!("if it should be allowed, a person can {what}; agents cannot")
    }

    fn sandbox(&self) -> String {
        format!("sandbox `{}`", self.name)
    }

    /// Names a path as short as it stays clear.
    fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(self.cwd) {
            Ok(short) if !short.as_os_str().is_empty() => cleaned(short),
            _ => cleaned(path),
        }
    }
}

fn denial(code: &str, object: Option<String>, text: String, remedy: String) -> Denial {
    Denial {
        code: code.into(),
        object,
        text,
        remedy,
    }
}

/// Resolves a path by its text alone.
fn resolve(cwd: &Path, path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in cwd.join(path).components() {
        match part {
            Component::CurDir => {}
            // The parent of the root is the root.
            Component::ParentDir => _ = resolved.pop(),
            part => resolved.push(part),
        }
    }
    resolved
}

fn deepest<'a>(roots: &'a [PathBuf], path: &Path) -> Option<&'a Path> {
    roots
        .iter()
        .filter(|root| path.starts_with(root))
        .max_by_key(|root| root.components().count())
        .map(PathBuf::as_path)
}

/// Whether a relative path is a protected one seen from another directory:
/// the command may have changed it. One plain word is too little to tell.
fn ends(root: &Path, written: &Path) -> bool {
    let written = written.strip_prefix("./").unwrap_or(written);
    let dotted = |path: &Path| path.to_string_lossy().starts_with('.');
    let telling = |path: &Path| path.components().count() > 1 || dotted(path);
    written
        .ancestors()
        .any(|path| telling(path) && root.ends_with(path))
}

/// A shell that may not execute a file says the same as one that may not
/// write it; programs are where people try to execute.
fn is_program(path: &Path) -> bool {
    path.components()
        .any(|part| matches!(part.as_os_str().to_str(), Some("bin" | "sbin" | "libexec")))
}

fn is_local(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let host = host.strip_prefix("::ffff:").unwrap_or(&host);
    host == "localhost"
        || host.ends_with(".localhost")
        || host.starts_with("ip6-l")
        || host.starts_with("127.")
        || matches!(host, "::1" | "0.0.0.0" | "::")
}

fn object(path: &Path) -> Option<String> {
    Some(cleaned(path))
}

fn cleaned(path: &Path) -> String {
    clean(&path.to_string_lossy())
}

/// Bounds what the command wrote, and takes out what could disguise it:
/// control characters, invisible ones, those that turn the direction of
/// writing, and the mark that ends a quotation of ours.
fn clean(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '`')
    };
    text.chars()
        .filter(|c| !hidden(*c))
        .take(OBJECT_CHARS)
        .collect()
}
