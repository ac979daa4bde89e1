//! What an answer is bound to. If any of it changes, the answer is void.

use crate::sandboxes::guard_of;
use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use weighlock_policy::{Access, Effect, Part, PartKind};

use super::{Case, Cases};
use crate::hex::hex;
use crate::request::Request;

/// Bytes of a fingerprint. Nobody finds two requests with the same 96 bits.
const LENGTH: usize = 12;

/// Bytes of files that are read to be told apart: scripts are small, and who
/// approves should not wait while programs are read (some 3 ms for so much).
const READ: u64 = 1024 * 1024;

/// How many directories a command may change to and still be followed.
const MAX_DIRS: usize = 64;

impl Cases {
    /// Names exactly what a person is asked about: the bytes of the command,
    /// where and with what it would run, behind which walls, and which files
    /// would be run by it.
    pub(crate) fn fingerprint(&self, case: &Case) -> String {
        let Case {
            request,
            known,
            place,
            judged,
            path,
            ..
        } = case;
        let looked = Looked {
            request,
            parts: &judged.judgement.facts.parts,
            cwd: &place.path,
            home: self.walls.home(),
            homes: self.walls.homes_of(&known.sandbox.id),
            path,
        };
        let files = looked.files();
        let mut read = READ;
        let files: Vec<Value> = files.iter().map(|file| identity(file, &mut read)).collect();
        let sandbox = &known.sandbox;
        let bound = json!([
            judged.fingerprint,
            request.principal.name(),
            [request.timeout_ms, request.idle_ms],
            [request.keep, request.external, request.background],
            [&request.in_terminal, &request.shell_dir],
            sandbox.id,
            guard_of(sandbox),
            identity(self.walls.directory_of(sandbox), &mut read),
            identity(&place.path, &mut read),
            path,
            files,
        ]);
        let hash = Sha256::digest(bound.to_string().as_bytes());
        hex(&hash[..LENGTH])
    }
}

/// What tells which files a command would run.
struct Looked<'a> {
    request: &'a Request,
    parts: &'a [Part],
    cwd: &'a Path,
    /// What `~` is as the policy reads it.
    home: &'a Path,
    /// What it is for commands.
    homes: Vec<PathBuf>,
    path: &'a str,
}

impl Looked<'_> {
    /// Returns the files that a command runs: programs, and scripts that it
    /// names. Where something in it runs other code, whatever it reads may be
    /// that code.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = self.programs();
        let runs_code = self.parts.iter().any(|part| {
            part.unknown.is_some()
                || part.effects.has(Effect::Execute)
                || part.tags.contains(&"pipe-to-shell")
        });
        for part in self.parts {
            let run = part.paths.iter().filter(|path| {
                path.access == Access::Run || runs_code && path.access == Access::Read
            });
            files.extend(run.map(|path| PathBuf::from(&path.path)));
        }
        let startup = self.values(&["BASH_ENV", "ENV"]);
        files.extend(startup.iter().map(|file| self.cwd.join(file)));
        let at_home = files.iter().flat_map(|file| self.at_home(file));
        let at_home: Vec<PathBuf> = at_home.collect();
        files.extend(at_home);
        files.sort();
        files.dedup();
        files
    }

    /// Finds what a shell could take for the programs that are named. It takes
    /// the first that can be run, which only it can tell; so all of them count.
    fn programs(&self) -> Vec<PathBuf> {
        let commands = self
            .parts
            .iter()
            .filter(|part| part.kind == PartKind::Command);
        let words = commands.filter_map(|part| part.argv.first()?.as_deref());
        let words: BTreeSet<&str> = words.collect();
        let (dirs, places) = (self.dirs(), self.places());
        let mut files = vec![];
        for word in words {
            if word.contains('/') {
                let word = self.resolved(word);
                files.extend(dirs.iter().map(|dir| dir.join(&word)));
            } else {
                let found = places.iter().map(|dir| dir.join(word));
                files.extend(found.filter(|file| file.is_file() || file.starts_with(self.home)));
            }
        }
        files
    }

    /// The directories that a command may be in when it starts something.
    fn dirs(&self) -> BTreeSet<PathBuf> {
        let changes = self.parts.iter();
        let changes = changes.filter(|part| matches!(&*part.program, "cd" | "pushd"));
        let mut dirs = BTreeSet::from([self.cwd.to_owned()]);
        for word in changes.flat_map(|part| part.argv.iter().skip(1).flatten()) {
            let word = self.resolved(word);
            let more: Vec<PathBuf> = dirs.iter().map(|dir| dir.join(&word)).collect();
            // Doubling with each; nobody changes directories so often.
            dirs.extend(more.into_iter().take(MAX_DIRS.saturating_sub(dirs.len())));
        }
        dirs
    }

    /// The directories in which programs are looked for.
    fn places(&self) -> BTreeSet<PathBuf> {
        let set = self.values(&["PATH"]);
        let paths = set.iter().map(String::as_str).chain([self.path]);
        let dirs = paths.flat_map(|path| path.split(':'));
        dirs.map(|dir| self.cwd.join(self.resolved(dir))).collect()
    }

    /// What variables are set to, by the request or in the command.
    fn values(&self, names: &[&str]) -> Vec<String> {
        let text = self.request.command.as_str();
        let set = self.request.env.iter();
        let set = set.filter(|(name, _)| names.contains(&name.as_str()));
        let mut values: Vec<String> = set.map(|(_, value)| value.clone()).collect();
        // By the letters of the text: what is set to a variable's value has no
        // word that is known.
        for name in names {
            let sign = format!("{name}=");
            let set = text.match_indices(&sign).map(|(at, set)| {
                let rest = &text[at + set.len()..];
                let rest = rest.trim_start_matches(['"', '\'']);
                let end = rest.find(|c: char| c.is_whitespace() || ";&|()\"'`".contains(c));
                rest[..end.unwrap_or(rest.len())].to_owned()
            });
            values.extend(set);
        }
        values
    }

    /// Puts directories for what commonly stands for them.
    fn resolved(&self, word: &str) -> PathBuf {
        let home = self.home.to_string_lossy();
        let cwd = self.cwd.to_string_lossy();
        let word = match word.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
            _ => word.to_owned(),
        };
        let word = word.replace("$HOME", &home).replace("${HOME}", &home);
        word.replace("$PWD", &cwd).replace("${PWD}", &cwd).into()
    }

    /// Where a file of the home directory is for commands. One that is not
    /// there counts for nothing: the directory itself is made by the first run.
    fn at_home<'a>(&'a self, file: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
        let rest = file.strip_prefix(self.home).ok();
        let homes = self.homes.iter();
        homes
            .filter_map(move |home| rest.map(|rest| home.join(rest)))
            .filter(|file| file.exists())
    }
}

/// What tells a file from another, and from itself once it was written to.
/// Nobody but root sets back the time of its last change; but two changes at
/// once may have the same, so what may be a script is read as well.
fn identity(file: &Path, read: &mut u64) -> Value {
    match file.metadata() {
        Ok(meta) if meta.is_dir() => json!([file, meta.dev(), meta.ino()]),
        Ok(meta) => json!([
            file,
            meta.dev(),
            meta.ino(),
            meta.size(),
            [meta.mtime(), meta.mtime_nsec()],
            [meta.ctime(), meta.ctime_nsec()],
            digest(file, &meta, read),
        ]),
        Err(_) => json!([file]),
    }
}

/// Returns the hash of a file that a command could have written.
fn digest(file: &Path, meta: &Metadata, read: &mut u64) -> Option<String> {
    if !meta.is_file()
        || weighlock_confine::SYSTEM
            .iter()
            .any(|dir| file.starts_with(dir))
    {
        return None;
    }
    *read = read.checked_sub(meta.len())?;
    // It may have become a pipe by now, at which we would wait for ever.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = File::from(open(file, flags, Mode::empty()).ok()?);
    let mut bytes = vec![];
    open.take(meta.len()).read_to_end(&mut bytes).ok()?;
    Some(hex(&Sha256::digest(&bytes)[..LENGTH]))
}
