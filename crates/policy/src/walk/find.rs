//! What `find` finds, and the commands it runs with that.

use super::Walk;
use crate::argument::{Arg, UNKNOWN};
use crate::effect::Effect;
use crate::knowledge::OperandRole;
use crate::part::{Access, Part};
use crate::program::{Reading, Use};

/// Tests of `find` that compare a whole path.
const ON_PATHS: &[&str] = &[
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
];

/// Its other tests that leave most files out.
const NARROW: &[&str] = &[
    "-name",
    "-iname",
    "-newer",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-size",
    "-empty",
    "-user",
    "-group",
    "-perm",
    "-inum",
    "-samefile",
    "-lname",
    "-ilname",
    "-nouser",
    "-nogroup",
];

/// What is in a pattern that is meant to find secrets.
const HINTS: &[&str] = &[
    "ssh",
    "id_rsa",
    "id_ed",
    "shadow",
    "gnupg",
    "aws",
    ".env",
    "credential",
    "secret",
    "token",
    "netrc",
    "pem",
    ".key",
    "passw",
];

/// Starting points times names, above which each is only taken by itself: all
/// pairs of a long text would be too many.
const MAX_PAIRS: usize = 64;

impl Walk<'_> {
    /// What `find` deletes by itself.
    pub(super) fn find_deletes(&self, name: &str, reading: &Reading, part: &mut Part) {
        let all = !is_narrow(reading) && reading.uses.iter().any(removes);
        if name != "find" || !(part.effects.has(Effect::Delete) || all) {
            return;
        }
        let starts: Vec<Arg> = reading
            .uses
            .iter()
            .filter(|used| used.role == OperandRole::List)
            .filter_map(|used| used.args.first().cloned())
            .collect();
        let here = [Arg::known(".", part.span)];
        let starts = if starts.is_empty() {
            here.as_slice()
        } else {
            &starts
        };
        for start in starts {
            let mut start = start.clone();
            if is_narrow(reading) {
                start.shape.push_str("/[found]");
                start.text = None;
            }
            let path = self.path(&start, Access::Delete, true);
            self.touch(part, path);
        }
    }
}

/// Returns the commands that `find -exec` runs, with what it found in the
/// place of `{}`.
pub(super) fn commands(reading: &Reading, args: &[Arg]) -> Vec<Vec<Arg>> {
    let with = |shape: String| {
        let mut argv = args.to_vec();
        let found = Arg {
            shape,
            undashed: true,
            many: true,
            ..Arg::default()
        };
        fill(&mut argv, "{}", &found);
        argv
    };
    shapes(reading).into_iter().map(with).collect()
}

/// Returns what the paths are like that `find` finds.
pub(super) fn shapes(reading: &Reading) -> Vec<String> {
    let given = |names: &[&str]| {
        let of = reading.options.iter();
        let of: Vec<&str> = { of }
            .filter(|option| names.contains(&option.name))
            .map(|option| option.value.as_deref().unwrap_or_default())
            .collect();
        of
    };
    let lists = reading
        .uses
        .iter()
        .filter(|used| used.role == OperandRole::List);
    let mut starts: Vec<String> = { lists }
        .filter_map(|used| Some(used.args.first()?.shape.clone()))
        .collect();
    if !given(&["-files0-from"]).is_empty() {
        starts.push(UNKNOWN.into());
    }
    if starts.is_empty() {
        starts.push(".".into());
    }
    let mut names = given(&["-name", "-iname"]);
    if !given(&["-o", "-or"]).is_empty() || (names.is_empty() && !is_narrow(reading)) {
        names.push("**");
    }
    let patterns = given(ON_PATHS);
    let hints = |pattern: &&str| HINTS.iter().any(|hint| pattern.contains(hint));
    if patterns.iter().any(hints) {
        names.push(".ssh");
    }
    if names.is_empty() {
        names.push("[found]");
    }
    let pair = |start: &str, name: &str| format!("{}/{name}", start.trim_end_matches('/'));
    if starts.len() * names.len() > MAX_PAIRS {
        let everything = starts.iter().map(|start| pair(start, "**"));
        let anywhere = names.iter().map(|name| pair(".", name));
        return everything.chain(anywhere).collect();
    }
    let pairs = starts
        .iter()
        .flat_map(|start| names.iter().map(|name| pair(start, name)));
    pairs.collect()
}

fn is_narrow(reading: &Reading) -> bool {
    let mut options = reading.options.iter();
    options.any(|option| {
        let narrow = NARROW.contains(&option.name) || ON_PATHS.contains(&option.name);
        narrow && option.value.as_deref() != Some("*")
    })
}

/// Returns whether a command that `find` runs removes what it is given.
fn removes(used: &Use) -> bool {
    let first = used.args.first().and_then(|arg| arg.text.as_deref());
    let name = first.and_then(|text| text.rsplit('/').next());
    used.role == OperandRole::ArgvUntil && matches!(name, Some("rm" | "unlink" | "shred"))
}

/// Puts what is found or read in the place that a command has for it.
pub(super) fn fill(argv: &mut [Arg], place: &str, input: &Arg) {
    for arg in argv {
        let Some((before, after)) = arg.text.as_deref().and_then(|text| text.split_once(place))
        else {
            continue;
        };
        *arg = Arg {
            text: None,
            shape: format!("{before}{}{after}", input.shape),
            known: before.len(),
            many: input.many && before.is_empty() && after.is_empty(),
            undashed: input.undashed,
            download: input.download,
            ..arg.clone()
        };
    }
}
