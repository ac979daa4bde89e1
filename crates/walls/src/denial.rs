//! Explains which wall stopped a command, and what a person could change.
//!
//! The only evidence is the command's own output. Whether a path is outside the
//! sandbox is decided by its text alone: looking at the disk would reveal to an
//! agent which hidden files exist.

mod error_line;
mod secret;
#[cfg(test)]
mod tests;

use std::path::{Component, Path, PathBuf};

use self::error_line::{ErrorLine, FailureKind, FileIntent};
pub use self::secret::{ClosedNames, find_secret_denials};
pub use weighlock_api::Denial;

/// The walls of one run, as far as denials depend on them.
pub(crate) struct WallMap<'a> {
    /// The sandbox's name.
    pub(crate) name: &'a str,
    /// The working directory of the command.
    pub(crate) cwd: &'a Path,
    /// Trees that the command can see.
    pub(crate) readable: &'a [PathBuf],
    /// Trees that the command can write.
    pub(crate) writable: &'a [PathBuf],
    /// Paths that are read-only inside a writable tree.
    pub(crate) protected: &'a [PathBuf],
    /// The home directory, if it is read-only.
    pub(crate) closed_home: Option<&'a Path>,
    pub(crate) network_off: bool,
    pub(crate) fence: FileFence,
    pub(crate) limits: LimitValues,
}

/// The mechanism that keeps files away, which decides the error of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileFence {
    /// Paths outside are read-only (`EROFS`) or missing (`ENOENT`), and a
    /// protected file is a mount point (`EBUSY`).
    Mounts,
    /// Paths outside are denied (`EACCES`), as the host denies others.
    Landlock,
}

/// The limits of a run; `None` where there is no limit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LimitValues {
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) processes: Option<u64>,
    pub(crate) open_files: Option<u64>,
    pub(crate) file_bytes: Option<u64>,
}

/// Finds what the walls stopped, from the end of a failed run's standard error.
/// The caller bounds the text.
pub(crate) fn find_denials(stderr: &str, walls: &WallMap) -> Vec<Denial> {
    let mut found: Vec<Denial> = Vec::new();
    for line in error_line::find_error_lines(&error_line::strip_colour(stderr)) {
        let Some(denial) = walls.explain_line(&line) else {
            continue;
        };
        if !found.contains(&denial) {
            found.push(denial);
        }
        // Enough, even after the vague ones are dropped.
        if found.len() > MOST_DENIALS + VAGUE_CODES.len() {
            break;
        }
    }
    drop_vague(&mut found);
    found.truncate(MOST_DENIALS);
    found
}

/// How many denials a result holds. More would hide the rest of it, and the
/// first errors are usually the causes of the others.
const MOST_DENIALS: usize = 5;

/// Characters that a denial repeats of a path or host.
const OBJECT_CHARS: usize = 200;

/// Codes of which a denial without an object is dropped if there is one with.
const VAGUE_CODES: [&str; 2] = ["network", "fs.write"];

/// Trees that are empty and private in each run.
const PRIVATE_TREES: [&str; 4] = ["/tmp", "/var/tmp", "/dev/shm", "/run"];

/// Trees of the kernel, which no setting opens.
const KERNEL_TREES: [&str; 3] = ["/proc", "/sys", "/dev"];

fn drop_vague(found: &mut Vec<Denial>) {
    for code in VAGUE_CODES {
        let exact = |denial: &Denial| denial.code == code && denial.object.is_some();
        if found.iter().any(exact) {
            found.retain(|denial| denial.code != code || denial.object.is_some());
        }
    }
}

impl WallMap<'_> {
    fn explain_line(&self, line: &ErrorLine) -> Option<Denial> {
        let limits = &self.limits;
        match line.kind {
            FailureKind::Unreachable => self.network_denial(line),
            FailureKind::Unconnected if self.fence == FileFence::Landlock => {
                self.network_denial(line)
            }
            FailureKind::Privilege => self.privilege_denial(line.objects.first()?),
            FailureKind::Memory => self.limit_denial("memory", format_bytes(limits.memory_bytes?)),
            FailureKind::Processes => self.limit_denial("processes", limits.processes?.to_string()),
            FailureKind::OpenFiles => {
                self.limit_denial("open_files", limits.open_files?.to_string())
            }
            FailureKind::FileSize => {
                self.limit_denial("file_size", format_bytes(limits.file_bytes?))
            }
            FailureKind::ReadOnly if line.objects.is_empty() => self.unnamed_path_denial(),
            _ => self.file_denial(line),
        }
    }

    fn network_denial(&self, line: &ErrorLine) -> Option<Denial> {
        let host = line.objects.first();
        let local = host.map_or(line.local, |host| is_local(host));
        if !self.network_off || local {
            return None;
        }
        let host = host.map(|host| clean_text(host));
        let text = match &host {
            Some(host) => format!("network is off: cannot reach {host}"),
            None => "network is off".into(),
        };
        let remedy = self.person_remedy(&format!(
            "set `network = \"on\"` for {}",
            self.sandbox_text()
        ));
        Some(new_denial("network", host, text, remedy))
    }

    fn privilege_denial(&self, program: &str) -> Option<Denial> {
        let program = clean_text(program);
        let text = format!("`{program}` needs what the walls do not allow");
        let remedy = "no setting opens this: a person can do it outside the walls; agents cannot";
        Some(new_denial("syscall", Some(program), text, remedy.into()))
    }

    /// Says "may": the kernel does not report which limit was met, and without a
    /// cgroup some limits apply to each process.
    fn limit_denial(&self, code: &str, limit: String) -> Option<Denial> {
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
        let remedy = self.person_remedy(&format!("raise `{setting}` of {}", self.sandbox_text()));
        Some(new_denial(
            code,
            None,
            format!("the command {words}"),
            remedy,
        ))
    }

    /// Explains a read-only file system where the message names no path. It is
    /// almost certainly one of our mounts.
    fn unnamed_path_denial(&self) -> Option<Denial> {
        (self.fence == FileFence::Mounts).then(|| {
            let what = format!("add the directory to `write` of {}", self.sandbox_text());
            let text = "cannot write: outside the sandbox (the message names no path)";
            new_denial("fs.write", None, text.into(), self.person_remedy(&what))
        })
    }

    /// Tries the last path first: the destination is named after the source.
    fn file_denial(&self, line: &ErrorLine) -> Option<Denial> {
        line.objects.iter().rev().find_map(|written| {
            // The message does not say whose home directory that is.
            if written.starts_with('~') {
                return None;
            }
            let path = resolve_text(self.cwd, Path::new(written));
            self.path_denial(line, &path, Path::new(written))
        })
    }

    fn path_denial(&self, line: &ErrorLine, path: &Path, written: &Path) -> Option<Denial> {
        let intent = line.intent;
        match (self.fence, line.kind) {
            (_, FailureKind::Mode) => self.set_id_denial(path),
            (FileFence::Mounts, FailureKind::NoSpace) => self.full_denial(path),
            (FileFence::Mounts, FailureKind::ReadOnly) => self
                .protected_denial(path, written)
                .or_else(|| self.home_denial(path))
                .or_else(|| self.unwritable_denial(path)),
            (FileFence::Mounts, FailureKind::Busy) => self
                .protected_denial(path, written)
                .or_else(|| self.replaced_denial(path, intent)),
            (FileFence::Mounts, FailureKind::Missing) => self.missing_denial(path, intent),
            (FileFence::Landlock, FailureKind::Denied) => {
                self.landlock_denial(path, written, intent)
            }
            _ => None,
        }
    }

    /// Explains a denial under Landlock, where the host's permissions may be the
    /// cause as well. A readable path is explained only if the message shows that
    /// the command wanted to write it.
    fn landlock_denial(&self, path: &Path, written: &Path, intent: FileIntent) -> Option<Denial> {
        if !self.is_visible(path) {
            return Some(self.outside_denial(path, intent));
        }
        match intent {
            FileIntent::Write | FileIntent::Replace => self
                .protected_denial(path, written)
                .or_else(|| self.home_denial(path))
                .or_else(|| self.unwritable_denial(path)),
            FileIntent::Shell if !self.can_write(path) && !is_program(path) => {
                let text = format!(
                    "cannot open {}: it can be read, but writing there is outside the sandbox",
                    self.short_path(path)
                );
                Some(new_denial(
                    "fs.write",
                    object_of(path),
                    text,
                    self.write_remedy(path),
                ))
            }
            _ => None,
        }
    }

    fn missing_denial(&self, path: &Path, intent: FileIntent) -> Option<Denial> {
        let above = |root: &PathBuf| root.starts_with(path);
        let ordinary = self.is_visible(path)
            || self.readable.iter().chain(self.writable).any(above)
            // Processes come and go.
            || path.starts_with("/proc");
        (!ordinary).then(|| self.outside_denial(path, intent))
    }

    fn outside_denial(&self, path: &Path, intent: FileIntent) -> Denial {
        let shown = self.short_path(path);
        if intent.writes() {
            let text = format!("cannot write {shown}: outside the sandbox");
            return new_denial("fs.write", object_of(path), text, self.write_remedy(path));
        }
        let text = match self.fence {
            FileFence::Mounts => {
                format!("cannot read {shown}: outside the sandbox, it is not visible there")
            }
            FileFence::Landlock => format!("cannot read {shown}: outside the sandbox"),
        };
        let what = format!(
            "add `{}` or its directory to `read` of {} in the configuration",
            clean_path(path),
            self.sandbox_text()
        );
        new_denial("fs.read", object_of(path), text, self.person_remedy(&what))
    }

    fn home_denial(&self, path: &Path) -> Option<Denial> {
        path.starts_with(self.closed_home?).then(|| {
            let text = format!(
                "cannot write {}: what is proved to read does not write to the sandbox's home \
                 directory",
                self.short_path(path)
            );
            let remedy = "write to /tmp, or have a person asked before it runs \
                          (`--review before`)";
            new_denial("fs.write", object_of(path), text, remedy.into())
        })
    }

    fn unwritable_denial(&self, path: &Path) -> Option<Denial> {
        if self.can_write(path) {
            return None;
        }
        let text = match deepest_root(self.readable, path) {
            Some(root) if self.cwd.starts_with(root) => "read-only in this sandbox",
            _ => "outside the sandbox",
        };
        let text = format!("cannot write {}: {text}", self.short_path(path));
        Some(new_denial(
            "fs.write",
            object_of(path),
            text,
            self.write_remedy(path),
        ))
    }

    fn protected_denial(&self, path: &Path, written: &Path) -> Option<Denial> {
        let here = deepest_root(self.protected, path).map(|_| path);
        let there = || {
            let mut roots = self.protected.iter().map(PathBuf::as_path);
            roots.find(|root| written.is_relative() && is_seen_elsewhere(root, written))
        };
        let path = here.or_else(there)?;
        Some(self.protection_denial(path, format!("cannot write {}", self.short_path(path))))
    }

    /// Explains a failed rename: `sed -i` and many editors write a new file and
    /// rename it over the old one, and the message names only the new one.
    fn replaced_denial(&self, path: &Path, intent: FileIntent) -> Option<Denial> {
        let dir = path.parent()?;
        let beside = |root: &PathBuf| root.parent() == Some(dir);
        (intent == FileIntent::Replace && self.protected.iter().any(beside)).then(|| {
            let shown = self.short_path(dir);
            self.protection_denial(dir, format!("cannot replace a file in {shown}"))
        })
    }

    fn protection_denial(&self, path: &Path, what: String) -> Denial {
        let text = format!("{what}: protected, it would run outside the walls");
        let remedy = "a person can change it outside the walls; agents cannot";
        new_denial("fs.write", object_of(path), text, remedy.into())
    }

    /// Explains a failed `chmod`. The message does not name the mode, and the
    /// host refuses too where another user owns the file. So it says "if".
    fn set_id_denial(&self, path: &Path) -> Option<Denial> {
        self.can_write(path).then(|| {
            let text = format!(
                "cannot change the mode of {}: set-id bits cannot be set inside the walls, \
                 if that was asked",
                self.short_path(path)
            );
            let remedy = "leave the set-id bits out, or let a person set them outside the walls";
            new_denial("fs.setid", object_of(path), text, remedy.into())
        })
    }

    fn full_denial(&self, path: &Path) -> Option<Denial> {
        let tree = PRIVATE_TREES.iter().find(|tree| path.starts_with(tree))?;
        let text = format!(
            "the private {tree} is full (writing {})",
            self.short_path(path)
        );
        let remedy = "remove files there, or write inside the sandbox's directory";
        Some(new_denial("tmp_full", object_of(path), text, remedy.into()))
    }

    fn is_visible(&self, path: &Path) -> bool {
        self.readable
            .iter()
            .chain(self.writable)
            .any(|root| path.starts_with(root))
    }

    /// Returns whether a path is writable. The deepest tree decides: a readable
    /// one may be inside a writable one.
    fn can_write(&self, path: &Path) -> bool {
        let depth = |roots| deepest_root(roots, path).map(|root| root.components().count());
        let writable = depth(self.writable);
        writable.is_some() && writable >= depth(self.readable) && writable > depth(self.protected)
    }

    fn write_remedy(&self, path: &Path) -> String {
        if KERNEL_TREES.iter().any(|tree| path.starts_with(tree)) {
            return "no setting opens the kernel's own files".into();
        }
        // Never suggests to open the whole machine.
        let dir = path
            .parent()
            .filter(|dir| dir.parent().is_some())
            .unwrap_or(path);
        self.person_remedy(&format!(
            "add `{}` to `write` of {} in the configuration",
            clean_path(dir),
            self.sandbox_text()
        ))
    }

    fn person_remedy(&self, what: &str) -> String {
        format!("if it should be allowed, a person can {what}; agents cannot")
    }

    fn sandbox_text(&self) -> String {
        format!("sandbox `{}`", self.name)
    }

    /// Returns a path relative to the working directory if it is below that.
    fn short_path(&self, path: &Path) -> String {
        match path.strip_prefix(self.cwd) {
            Ok(short) if !short.as_os_str().is_empty() => clean_path(short),
            _ => clean_path(path),
        }
    }
}

fn new_denial(code: &str, object: Option<String>, text: String, remedy: String) -> Denial {
    Denial {
        code: code.into(),
        object,
        text,
        remedy,
    }
}

/// Makes a path absolute by its text alone.
fn resolve_text(cwd: &Path, path: &Path) -> PathBuf {
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

fn deepest_root<'a>(roots: &'a [PathBuf], path: &Path) -> Option<&'a Path> {
    roots
        .iter()
        .filter(|root| path.starts_with(root))
        .max_by_key(|root| root.components().count())
        .map(PathBuf::as_path)
}

/// Returns whether a relative path may be a protected one seen from another
/// directory: the command may have changed its directory. A single word without
/// a leading dot is too ambiguous.
fn is_seen_elsewhere(root: &Path, written: &Path) -> bool {
    let written = written.strip_prefix("./").unwrap_or(written);
    let dotted = |path: &Path| path.to_string_lossy().starts_with('.');
    let telling = |path: &Path| path.components().count() > 1 || dotted(path);
    written
        .ancestors()
        .any(|path| telling(path) && root.ends_with(path))
}

/// Returns whether a path is in a directory of programs. A shell that may not
/// execute a file prints the same message as one that may not write it.
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

fn object_of(path: &Path) -> Option<String> {
    Some(clean_path(path))
}

fn clean_path(path: &Path) -> String {
    clean_text(&path.to_string_lossy())
}

/// Shortens what the command wrote, and removes what could disguise it: control
/// characters, invisible ones, those that change the direction of writing, and
/// the backquote, which ends our own quotations.
fn clean_text(text: &str) -> String {
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

/// Returns a number of bytes as text: KiB, MiB or GiB, with one decimal unless
/// it is zero.
pub fn format_bytes(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1024 => return format!("{bytes} B"),
        1024..0x10_0000 => (1024.0, "KiB"),
        0x10_0000..0x4000_0000 => (1048576.0, "MiB"),
        _ => (1073741824.0, "GiB"),
    };
    let number = format!("{:.1}", bytes as f64 / unit);
    format!("{} {name}", number.trim_end_matches(".0"))
}
