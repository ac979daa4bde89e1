//! Whether changes may be applied, must be asked about, or are never applied.

use std::fs;

use weighlock_effects::{Change, Changes, Kind, Node, NodeKind};
use weighlock_policy::{self as policy, ChangeKind, ChangesJudgement, Rules, Verdict};
use weighlock_store::Risk;

use super::copy::Copied;
use crate::engine::Engine;
use crate::error::Error;
use crate::policy::For;
use crate::request::Request;

impl Engine {
    /// Judges what a run changed, by the rules as they are now.
    pub(super) fn judge_changes(
        &self,
        changes: &Changes,
        copied: &Copied,
    ) -> Result<ChangesJudgement, Error> {
        let request = self.revive(&copied.request)?;
        let rules = self.rules_for(&request)?;
        let judged: Vec<policy::Change> = self.as_judged(changes);
        let mut judgement = policy::judge_changes(&rules, &judged, copied.allowed);
        if copied.ask_all && judgement.verdict == Verdict::Auto {
            judgement.verdict = Verdict::Ask;
        }
        if let Some(refused) = changes.refused.first() {
            judgement.verdict = Verdict::Reject;
            judgement.reasons.insert(0, never(refused));
        }
        Ok(judgement)
    }

    /// Returns why a change is not simply applied: that other programs run the
    /// file, for example.
    pub(super) fn marks(&self, changes: &Changes, copied: &Copied) -> Result<Marks, Error> {
        let request = self.revive(&copied.request)?;
        let rules = self.rules_for(&request)?;
        let judged = changes.entries.iter();
        let judged = judged.map(|change| self.one(changes, change));
        Ok(Marks(
            judged.map(|change| policy::mark(&rules, &change)).collect(),
        ))
    }

    fn rules_for(&self, request: &Request) -> Result<Rules, Error> {
        let known = self.workplace(request.sandbox.as_deref(), &request.principal)?;
        let who = For {
            agent: request.profile(),
            sandbox: &known.sandbox.name,
            layers: &known.layers,
        };
        let in_force = self.policy.current();
        Ok(self.policy.rules(&in_force, None, &who, None))
    }

    fn as_judged(&self, changes: &Changes) -> Vec<policy::Change> {
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
        let path = match change.root {
            0 => path.to_string_lossy().into_owned(),
            root => {
                let whole = changes.roots[root].live.join(path);
                match whole.strip_prefix(&self.home) {
                    Ok(rest) => format!("~/{}", rest.to_string_lossy()),
                    Err(_) => whole.to_string_lossy().into_owned(),
                }
            }
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
            shared: change.shared,
            emptied: is_emptied(change),
            ..policy::Change::new(path, kind)
        }
    }
}

/// For each change, why it is not simply applied.
pub(super) struct Marks(pub(super) Vec<Option<String>>);

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

/// Whether a file that had something in it has nothing any more, or is none.
fn is_emptied(change: &Change) -> bool {
    let holds = |node: &Node| node.kind == NodeKind::File && node.size > 0;
    change.kind != Kind::Renamed
        && change.before.as_ref().is_some_and(holds)
        && change.after.as_ref().is_some_and(|node| !holds(node))
}

/// Whether nothing would be left of what was in the sandbox's directory.
fn is_all_gone(changes: &Changes) -> bool {
    let Some(root) = changes.roots.first() else {
        return false;
    };
    let gone = |change: &&Change| {
        change.root == 0 && change.kind == Kind::Deleted && change.path.path().iter().count() == 1
    };
    let gone = changes.entries.iter().filter(gone).count();
    let names = fs::read_dir(&root.live).map_or(0, Iterator::count);
    // One file that was all there was is no tree that is lost.
    gone > 1 && gone >= names
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
