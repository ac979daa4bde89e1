//! One source of rules.

use serde::{Deserialize, Serialize};

use super::check::ToolCheck;
use super::glob::Bases;
use super::load::load;
use super::loader::LoadError;
use super::rule::{Rule, RuleSubject, Understand};
use crate::change::ChangeRule;
use crate::{Part, Verdict};

/// Rules from one source, in their order.
#[derive(Debug, Default)]
pub struct Layer {
    pub(crate) kind: LayerKind,
    pub(crate) name: String,
    pub(crate) rules: Vec<Rule>,
    pub(crate) changes: Vec<ChangeRule>,
    /// The rule in `rules` for what no other matches.
    pub(crate) otherwise: Option<usize>,
    /// A preset's verdict on what no rule matches.
    pub(crate) default: Option<Verdict>,
    pub(crate) default_change: Option<Verdict>,
    pub(crate) max_deletions: Option<u32>,
}

/// One rule of a layer, for people who look at its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Its name.
    pub name: String,
    /// Where it begins in its file, from 1.
    pub line: usize,
    /// Its verdict on what it matches.
    pub verdict: Verdict,
    /// A short summary.
    pub about: String,
    /// Why.
    pub because: String,
    /// It is about changes of files, not about commands.
    pub change: bool,
}

/// Where a layer is from, in the order in which they apply.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// A preset.
    #[default]
    BuiltIn,
    /// For everybody on this server.
    Server,
    /// For one sandbox.
    Sandbox,
    /// For one agent.
    Agent,
}

impl LayerKind {
    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Server => "server",
            Self::Sandbox => "sandbox",
            Self::Agent => "agent",
        }
    }

    /// Returns whether it may only make things stricter.
    pub(crate) fn tightens(self) -> bool {
        self > Self::Server
    }
}

impl Layer {
    /// Reads a rule file. Any error refuses all of it; all are reported.
    pub fn load(
        kind: LayerKind,
        file: &str,
        text: &str,
        understand: &Understand<'_>,
    ) -> Result<Self, Vec<LoadError>> {
        load(kind, file, text, Some(understand))
    }

    /// Returns where it is from.
    pub fn kind(&self) -> LayerKind {
        self.kind
    }

    /// Returns what it is called in answers.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its rules in the order of their file.
    pub fn outline(&self) -> Vec<Outline> {
        let rules = self.rules.iter().map(|rule| Outline {
            name: rule.name.clone(),
            line: rule.line,
            verdict: rule.verdict,
            about: rule.about.clone(),
            because: rule.because.clone(),
            change: false,
        });
        let changes = self.changes.iter().map(|rule| Outline {
            name: rule.name.clone(),
            line: rule.line,
            verdict: rule.verdict,
            about: rule.about(),
            because: rule.because.clone(),
            change: true,
        });
        let mut all: Vec<Outline> = rules.chain(changes).collect();
        all.sort_by_key(|rule| rule.line);
        all
    }

    /// Returns whether some rule of it is about a part.
    pub(crate) fn lists(&self, part: &Part, bases: Bases<'_>) -> bool {
        self.rules.iter().any(|rule| rule.lists(part, bases))
    }

    /// Adds a test at the front or at the end.
    pub(crate) fn check(&mut self, at: usize, name: &str, remedy: &str, check: ToolCheck) {
        let about = check.about();
        let rule = Rule {
            remedy: remedy.to_owned(),
            ..Rule::new(name, Verdict::Reject, RuleSubject::Check(check), about)
        };
        self.rules.insert(at.min(self.rules.len()), rule);
    }
}
