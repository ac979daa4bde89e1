//! Judges what a command changed: paths and kinds in, a verdict out.

use serde::{Deserialize, Serialize};

use crate::rules::glob::{Glob, SplitPath};
use crate::{LayerKind, Reason, Rules, Verdict};

/// Deletions that are applied unasked at the most, where no file says another
/// number: more than a person would call a few, fewer than a project has.
const MAX_DELETIONS: u32 = 100;

/// Directories in which version control keeps its own files, in lower case.
const REPOSITORIES: [&str; 6] = [".git", ".hg", ".jj", ".sl", ".svn", ".bzr"];

/// One changed file or directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Relative to the sandbox, or `~/…`, or absolute.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
    /// Other programs run it, as was found by looking at the directory.
    #[serde(default)]
    pub run: bool,
    /// It has other names, which may be anywhere and change with it.
    #[serde(default)]
    pub shared: bool,
    /// What was in it is gone, though something has its name.
    #[serde(default)]
    pub emptied: bool,
}

impl Change {
    /// A change of which there is no more to say.
    pub fn new(path: impl Into<String>, kind: ChangeKind) -> Self {
        Self {
            path: path.into(),
            kind,
            run: false,
            shared: false,
            emptied: false,
        }
    }
}

/// The kinds of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// Its content is another.
    Modified,
    /// It is gone.
    Deleted,
    /// It has this name now, or had it before.
    Renamed,
    /// Its owner, rights or attributes are others.
    Mode,
    /// It is a link, or is one no more.
    Link,
    /// Only its time of modification is another, which nobody is asked about.
    Times,
}

/// The right to apply one set of changes, once.
///
/// As with [`Permit`](crate::Permit), only this crate makes one, and it cannot
/// be copied:
///
/// ```compile_fail,E0616
/// fn forge(permit: &mut weighlock_policy::CommitPermit) {
///     permit.hash = "abc".into();
/// }
/// ```
///
/// ```compile_fail,E0616
/// fn forge(permit: &mut weighlock_policy::CommitPermit) {
///     permit.person = None;
/// }
/// ```
///
/// ```compile_fail,E0599
/// fn twice(permit: &weighlock_policy::CommitPermit) -> weighlock_policy::CommitPermit {
///     weighlock_policy::CommitPermit::clone(permit)
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct CommitPermit {
    hash: String,
    person: Option<String>,
}

/// Changes that a person has to be asked about.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangeQuestion {
    hash: String,
}

/// What follows from a judgement on changes.
#[derive(Debug, PartialEq, Eq)]
pub enum ChangesSettled {
    /// They may be applied.
    Allowed(CommitPermit),
    /// A person has to be asked.
    Asked(ChangeQuestion),
    /// They are never applied.
    Refused,
}

/// The verdict on a set of changes, with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesJudgement {
    /// The strictest of all.
    pub verdict: Verdict,
    /// Why, the strictest first.
    pub reasons: Vec<Reason>,
}

impl ChangesJudgement {
    /// Returns what follows for the changes with this hash.
    pub fn settle(&self, hash: &str) -> ChangesSettled {
        let hash = hash.to_owned();
        match self.verdict {
            Verdict::Auto => ChangesSettled::Allowed(CommitPermit { hash, person: None }),
            Verdict::Ask => ChangesSettled::Asked(ChangeQuestion { hash }),
            Verdict::Reject => ChangesSettled::Refused,
        }
    }
}

impl ChangeQuestion {
    /// A question about changes that nobody judged, such as taking others
    /// back: only a person's answer makes it a permit.
    pub fn about(hash: &str) -> Self {
        Self {
            hash: hash.to_owned(),
        }
    }

    /// Returns the permit that a person's yes is.
    pub fn approved_by(self, person: &str) -> CommitPermit {
        CommitPermit {
            hash: self.hash,
            person: Some(person.to_owned()),
        }
    }
}

impl CommitPermit {
    /// Returns the hash of the changes that may be applied.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns who allowed it, if a person did.
    pub fn person(&self) -> Option<&str> {
        self.person.as_deref()
    }
}

/// One rule about changes.
#[derive(Debug)]
pub(crate) struct ChangeRule {
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    pub(crate) paths: Vec<Glob>,
    /// Empty means all.
    pub(crate) kinds: Vec<ChangeKind>,
    pub(crate) because: String,
    pub(crate) remedy: String,
    /// Where it begins in its file, from 1.
    pub(crate) line: usize,
}

/// Judges what a command changed. Pure; the strictest verdict wins.
///
/// Where a person has `allowed` the command beforehand, only rules and floors
/// count, and not what presets say about all other changes.
pub fn judge_changes(rules: &Rules, changes: &[Change], allowed: bool) -> ChangesJudgement {
    let mut groups: Vec<RuleChanges<'_>> = vec![];
    for change in changes {
        if let Some((verdict, rule)) = judge(rules, change, allowed) {
            match groups.iter_mut().find(|group| group.is(rule)) {
                Some(group) => group.count += 1,
                None => groups.push(RuleChanges {
                    verdict,
                    rule,
                    first: &change.path,
                    count: 1,
                }),
            }
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.verdict));
    let mut verdict = groups.first().map_or(Verdict::Auto, |group| group.verdict);
    let mut reasons: Vec<Reason> = groups.iter().map(RuleChanges::reason).collect();
    if let Some(reason) = too_many(rules, changes) {
        verdict = verdict.max(Verdict::Ask);
        reasons.push(reason);
    }
    ChangesJudgement { verdict, reasons }
}

/// Returns what is special about a change, if a rule or floor says so.
pub fn mark(rules: &Rules, change: &Change) -> Option<String> {
    let (verdict, rule) = judge(rules, change, true)?;
    let group = RuleChanges {
        verdict,
        rule,
        first: &change.path,
        count: 1,
    };
    Some(group.because().to_owned())
}

/// Changes that are not simply applied, for one rule.
struct RuleChanges<'a> {
    verdict: Verdict,
    rule: Which<'a>,
    first: &'a str,
    count: usize,
}

/// What decided.
#[derive(Clone, Copy)]
enum Which<'a> {
    Rule(&'a str, &'a ChangeRule),
    /// The sandbox itself or a home directory goes away.
    Root,
    /// It is not in the sandbox.
    Outside,
    /// Other programs run it.
    Run,
    /// It changes what has other names.
    Shared,
    /// It makes a directory a repository.
    Repository,
    Default,
}

fn judge<'a>(rules: &'a Rules, change: &Change, allowed: bool) -> Option<(Verdict, Which<'a>)> {
    let path = SplitPath::new(&change.path);
    if path.is_root() && matches!(change.kind, ChangeKind::Deleted | ChangeKind::Renamed) {
        return Some((Verdict::Ask, Which::Root));
    }
    let mut strictest: Option<(Verdict, Which<'_>)> = None;
    if change.run {
        strictest = Some((Verdict::Ask, Which::Run));
    } else if change.shared {
        strictest = Some((Verdict::Ask, Which::Shared));
    } else if makes_repository(change) {
        strictest = Some((Verdict::Ask, Which::Repository));
    }
    // There are file systems to which it is all the same.
    let lower = change.path.to_lowercase();
    let lower = SplitPath::new(&lower);
    let repository = Repository::around(&change.path);
    let mut outside = change.path.starts_with(['/', '~']);
    let (mut named, mut default) = (false, None);
    for layer in rules.layers() {
        let mut base = false;
        let about = layer.changes.iter().filter(|rule| match rule.verdict {
            Verdict::Auto => rule.allows(change, &path, repository.as_ref()),
            _ => rule.is_about(change, &path) || rule.is_about(change, &lower),
        });
        for rule in about {
            match rule.verdict {
                Verdict::Auto if layer.kind() == LayerKind::BuiltIn => {
                    base = true;
                    // Build output may be anywhere; plain edits may not.
                    outside &= rule.paths.iter().all(Glob::is_everything);
                }
                Verdict::Auto => named = true,
                verdict if strictest.is_none_or(|(worst, _)| worst < verdict) => {
                    strictest = Some((verdict, Which::Rule(layer.name(), rule)));
                }
                _ => {}
            }
        }
        if !base {
            default = default.max(layer.default_change);
        }
    }
    if rules
        .layers()
        .iter()
        .all(|layer| layer.default_change.is_none())
    {
        default = Some(Verdict::Ask);
    }
    // A time alone makes nothing run, and git often writes its settings anew as
    // they are.
    if change.kind == ChangeKind::Times {
        return strictest.filter(|(verdict, _)| *verdict == Verdict::Reject);
    }
    if named {
        return strictest;
    }
    let default = default.filter(|verdict| !allowed && *verdict > Verdict::Auto);
    let default = default.map(|verdict| (verdict, Which::Default));
    let floor = outside.then_some((Verdict::Ask, Which::Outside));
    strictest.or(default).or(floor)
}

/// The directory of version control that holds a changed file.
struct Repository<'p> {
    path: SplitPath<'p>,
    /// Its last name.
    name: &'p str,
}

impl<'p> Repository<'p> {
    fn around(path: &'p str) -> Option<Self> {
        let mut end = 0;
        for name in path.split('/') {
            end += name.len();
            if REPOSITORIES.contains(&name.to_lowercase().as_str()) && end < path.len() {
                let path = SplitPath::new(&path[..end]);
                return Some(Self { path, name });
            }
            end += 1;
        }
        None
    }
}

/// Whether git would take its directory for a repository without `.git`.
fn makes_repository(change: &Change) -> bool {
    let mut names = change.path.split('/').rev();
    let made = matches!(
        change.kind,
        ChangeKind::Created | ChangeKind::Renamed | ChangeKind::Link
    );
    made && names.next() == Some("HEAD") && !names.any(|name| name == ".git")
}

/// A number for everybody replaces ours; the others can only lower it.
fn too_many(rules: &Rules, changes: &[Change]) -> Option<Reason> {
    let mut max = MAX_DELETIONS;
    for layer in rules.layers() {
        max = match (layer.max_deletions, layer.kind().tightens()) {
            (Some(own), true) => max.min(own),
            (Some(own), false) => own,
            (None, _) => max,
        };
    }
    let deleted = |change: &&Change| change.kind == ChangeKind::Deleted;
    let deleted = changes.iter().filter(deleted).count();
    let emptied = changes.iter().filter(|change| change.emptied).count();
    let how = match emptied {
        0 => "deleted",
        _ => "deleted or emptied",
    };
    let lost = deleted + emptied;
    (lost > max as usize).then(|| Reason {
        code: "many_deletions".into(),
        text: format!("{lost} files would be {how}; more than {max} are never {how} unasked"),
        rule: "max_deletions".into(),
        layer: "built-in".into(),
        remedy: String::new(),
        span: None,
    })
}

impl ChangeRule {
    /// Returns in short what it is about.
    pub(crate) fn about(&self) -> String {
        let paths: Vec<&str> = self.paths.iter().map(Glob::as_str).collect();
        paths.join(", ")
    }

    fn is_about(&self, change: &Change, path: &SplitPath<'_>) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&change.kind))
            && self.paths.iter().any(|glob| glob.matches(path))
    }

    /// Returns whether it is about a change that it allows. A pattern for files
    /// of the project does not reach into `.git`: `**/target/**` is no word on
    /// a branch called `target`. It must name that directory, or hold it.
    fn allows(
        &self,
        change: &Change,
        path: &SplitPath<'_>,
        repository: Option<&Repository<'_>>,
    ) -> bool {
        let reaches = |glob: &Glob| {
            repository.is_none_or(|repository| {
                glob.matches(&repository.path) || glob.names(repository.name)
            })
        };
        let mut globs = self.paths.iter();
        (self.kinds.is_empty() || self.kinds.contains(&change.kind))
            && globs.any(|glob| glob.matches(path) && reaches(glob))
    }

    pub(crate) fn matches_path(&self, path: &str) -> bool {
        let path = SplitPath::new(path);
        self.paths.iter().any(|glob| glob.matches(&path))
    }
}

impl RuleChanges<'_> {
    fn is(&self, rule: Which<'_>) -> bool {
        match (self.rule, rule) {
            (Which::Rule(_, own), Which::Rule(_, other)) => std::ptr::eq(own, other),
            (Which::Root, Which::Root)
            | (Which::Outside, Which::Outside)
            | (Which::Run, Which::Run)
            | (Which::Shared, Which::Shared)
            | (Which::Repository, Which::Repository)
            | (Which::Default, Which::Default) => true,
            _ => false,
        }
    }

    fn because(&self) -> &str {
        match self.rule {
            Which::Rule(_, rule) => match (rule.because.as_str(), self.verdict) {
                ("", Verdict::Reject) => "must not change",
                ("", _) => "is to be asked for",
                (because, _) => because,
            },
            Which::Root => "must never go away unasked",
            Which::Outside => "is outside the sandbox",
            Which::Run => "is run by other programs, outside the walls",
            Which::Shared => "has other names, wherever those are, which change with it",
            Which::Repository => {
                "makes its directory a repository, in which git runs what the settings name"
            }
            Which::Default => "changes",
        }
    }

    fn reason(&self) -> Reason {
        let (name, layer, remedy) = match self.rule {
            Which::Rule(layer, rule) => (rule.name.as_str(), layer, rule.remedy.as_str()),
            Which::Root => ("root", "built-in", ""),
            Which::Outside => ("outside", "built-in", ""),
            Which::Run => ("runs-by-itself", "built-in", ""),
            Which::Shared => ("other-names", "built-in", ""),
            Which::Repository => ("repository", "built-in", ""),
            Which::Default => ("default", "built-in", ""),
        };
        let more = match self.count - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        Reason {
            code: match self.verdict {
                Verdict::Reject => "blocked".into(),
                _ => "needs_approval".into(),
            },
            text: format!("`{}` {}{more}", self.first, self.because()),
            rule: name.to_owned(),
            layer: layer.to_owned(),
            remedy: remedy.to_owned(),
            span: None,
        }
    }
}

#[cfg(test)]
mod tests;
