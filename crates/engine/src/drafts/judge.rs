//! Whether changes may be applied, must be asked about, or are never applied.

use std::fs;
use std::path::PathBuf;

use weighlock_effects::{Change, Changes, Kind, NodeKind};
use weighlock_policy::{self as policy, ChangeKind, ChangesJudgement, Rules, Verdict};
use weighlock_store::Risk;

use super::Drafts;
use crate::copied::Copied;
use crate::error::Error;

impl Drafts {
    /// Judges what a run changed, by the rules as they are now.
    pub(super) fn judge_changes(
        &self,
        changes: &Changes,
        copied: &Copied,
    ) -> Result<ChangesJudgement, Error> {
        let judge = self.judge_for(changes, copied)?;
        let judged = judge.all(changes);
        let mut judgement = policy::judge_changes(&judge.rules, &judged, copied.allowed);
        if copied.ask_all && judgement.verdict == Verdict::Auto {
            judgement.verdict = Verdict::Ask;
        }
        if let Some(refused) = changes.refused.first() {
            judgement.verdict = Verdict::Reject;
            judgement.reasons.insert(0, never(refused));
        }
        Ok(judgement)
    }

    /// Returns what changes are judged by.
    pub(super) fn judge_for(&self, changes: &Changes, copied: &Copied) -> Result<Judge, Error> {
        let request = self.cases.revive(&copied.request)?;
        let known = self
            .sandboxes
            .find_workplace(request.sandbox.as_deref(), &request.principal)?;
        let live = changes.roots.iter().map(|root| &root.live);
        let run = live.flat_map(|dir| self.walls.protected_paths(dir, &known.sandbox.unprotected));
        Ok(Judge {
            rules: self.rules.rules_for(&request, &known),
            run: run.collect(),
            home: self.walls.home().to_owned(),
        })
    }
}

/// What changes are judged by.
pub(super) struct Judge {
    rules: Rules,
    /// What other programs run, as it is found now: files that the git
    /// configuration names, for example.
    run: Vec<PathBuf>,
    home: PathBuf,
}

impl Judge {
    /// Returns why a change is not simply applied: that other programs run the
    /// file, for example.
    pub(super) fn mark(&self, changes: &Changes, change: &Change) -> Option<String> {
        policy::mark(&self.rules, &self.one(changes, change))
    }

    fn all(&self, changes: &Changes) -> Vec<policy::Change> {
        let mut judged = vec![];
        let mut entries = changes.entries.iter().peekable();
        while let Some(change) = entries.next() {
            // A directory is judged by what was in it, if there was anything.
            let holds_next = { entries.peek() }.is_some_and(|next| {
                next.root == change.root && next.path.path().starts_with(change.path.path())
            });
            if change.kind == Kind::Deleted && is_dir(change) && holds_next {
                continue;
            }
            judged.push(self.one(changes, change));
            if let Some(from) = &change.from {
                let from = Change {
                    path: from.clone(),
                    ..change.clone()
                };
                judged.push(self.one(changes, &from));
            }
        }
        if is_all_gone(changes) {
            judged.push(policy::Change::new(".", ChangeKind::Deleted));
        }
        judged
    }

    fn one(&self, changes: &Changes, change: &Change) -> policy::Change {
        let path = change.path.path();
        let whole = changes.roots[change.root].live.join(path);
        let path = match (change.root, whole.strip_prefix(&self.home)) {
            (0, _) => path.to_string_lossy().into_owned(),
            (_, Ok(rest)) => format!("~/{}", rest.to_string_lossy()),
            (_, Err(_)) => whole.to_string_lossy().into_owned(),
        };
        let kind = match change.kind {
            Kind::Created => ChangeKind::Created,
            Kind::Modified => ChangeKind::Modified,
            Kind::Deleted => ChangeKind::Deleted,
            Kind::Renamed => ChangeKind::Renamed,
            Kind::Mode => ChangeKind::Mode,
            Kind::Link => ChangeKind::Link,
            Kind::Times => ChangeKind::Times,
        };
        policy::Change {
            run: self.run.iter().any(|run| whole.starts_with(run)),
            shared: change.shared,
            emptied: is_emptied(change),
            ..policy::Change::new(path, kind)
        }
    }
}

/// Returns how much is at stake.
pub(super) fn risk(changes: &Changes, judgement: &ChangesJudgement) -> Risk {
    const FLOORS: &[&str] = &[
        "root",
        "outside",
        "max_deletions",
        "runs-by-itself",
        "startup-files",
        "other-names",
        "repository",
    ];
    let mut rules = judgement.reasons.iter().map(|reason| reason.rule.as_str());
    let loses = |change: &Change| change.kind == Kind::Deleted;
    if rules.any(|rule| FLOORS.contains(&rule)) {
        Risk::High
    } else if changes.entries.iter().any(loses) {
        Risk::Medium
    } else {
        Risk::Low
    }
}

fn is_dir(change: &Change) -> bool {
    let node = change.before.as_ref();
    node.is_some_and(|node| node.kind == NodeKind::Directory)
}

/// Whether a file that had something in it has next to nothing any more, or is
/// none.
fn is_emptied(change: &Change) -> bool {
    let (Some(before), Some(after)) = (&change.before, &change.after) else {
        return false;
    };
    let held = before.kind == NodeKind::File && before.size > 0;
    let holds = after.kind == NodeKind::File && after.size > before.size / 8;
    held && !holds && change.kind != Kind::Renamed
}

/// Returns whether the changes delete everything in the sandbox's directory.
fn is_all_gone(changes: &Changes) -> bool {
    let Some(root) = changes.roots.first() else {
        return false;
    };
    let gone = |change: &&Change| {
        change.root == 0 && change.kind == Kind::Deleted && change.path.path().iter().count() == 1
    };
    let gone: Vec<&Change> = changes.entries.iter().filter(gone).collect();
    let names = fs::read_dir(&root.live).map_or(0, Iterator::count);
    // One file that was all there was is no tree that is lost.
    let tree = gone.len() > 1 || gone.iter().any(|change| is_dir(change));
    tree && gone.len() >= names
}

fn never(refused: &weighlock_effects::Refusal) -> policy::Reason {
    policy::Reason {
        code: "never_applied".into(),
        text: format!("`{}` {}", refused.path.path().display(), refused.why),
        rule: "never".into(),
        layer: "built-in".into(),
        remedy: "Make something else of it, or do it by hand.".into(),
        span: None,
    }
}
