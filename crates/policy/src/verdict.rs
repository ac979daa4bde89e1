//! What the rules say about a command, and why.

use serde::{Deserialize, Serialize};
use weighlock_shell::Span;

use crate::rules::Trace;
use crate::{Effect, Facts, LayerKind, Permit};

/// The judgement on one command, mildest first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It may run; no person is asked.
    Auto,
    /// A person is asked.
    #[default]
    Ask,
    /// It does not run, and no approval is possible.
    Reject,
}

/// Why a verdict is what it is, for a person and for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// Stable word for programs.
    pub code: String,
    /// One sentence.
    pub text: String,
    /// The rule that decided.
    pub rule: String,
    /// The layer that the rule is from: `built-in`, `server`, `sandbox`,
    /// `agent`, `grant`, or a preset's name.
    pub layer: String,
    /// What could be done instead.
    pub remedy: String,
    /// The part of the text it is about; none when it is about all of it.
    #[serde(skip)]
    pub span: Option<Span>,
}

impl Reason {
    /// Nothing matched, and so a person is asked.
    fn is_default(&self) -> bool {
        self.rule == "default" && self.layer == "built-in"
    }
}

/// A verdict with everything that led to it.
#[derive(Debug)]
pub struct Judgement {
    /// The strictest verdict of all parts.
    pub verdict: Verdict,
    /// Why, the deciding one first; empty for `auto`.
    pub reasons: Vec<Reason>,
    /// What the command consists of.
    pub facts: Facts,
    /// For each part, its verdict and the rule that decided it.
    pub parts: Vec<Decided>,
    pub(crate) trace: Trace,
    pub(crate) right: Right,
}

/// What a judgement gives the right to. Apart from the fields that anybody may
/// change, and gone once it was taken.
#[derive(Debug)]
pub(crate) struct Right {
    pub(crate) verdict: Verdict,
    pub(crate) text: Option<String>,
    pub(crate) argv: Option<Vec<String>>,
    pub(crate) reads_only: bool,
    pub(crate) by_people: bool,
}

/// What became of one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// Its verdict.
    pub verdict: Verdict,
    /// The rule that decided, as an index into [`Judgement::tried`]; none
    /// means that nothing matched and the default applies.
    pub rule: Option<usize>,
}

/// A rule that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Its name.
    pub name: String,
    /// The layer it is from.
    pub layer: String,
    /// Its verdict on what it matches.
    pub verdict: Verdict,
    /// In short, what it is about: `sudo *`.
    pub about: String,
    /// It matched something.
    pub matched: bool,
}

/// What may be done with a judgement.
#[derive(Debug)]
pub enum Settled {
    /// It may run.
    Allowed(Permit),
    /// A person has to say yes.
    Asked(Question),
    /// It may not run.
    Refused,
}

/// Awaits a person. Only the answer of one turns it into a [`Permit`].
#[derive(Debug)]
pub struct Question {
    text: String,
    argv: Option<Vec<String>>,
}

impl Judgement {
    /// Takes the right to run out of it, or the question for it. There is
    /// only one: a second time it is refused.
    pub fn settle(&mut self) -> Settled {
        let Some(text) = self.right.text.take() else {
            return Settled::Refused;
        };
        let Right {
            argv,
            reads_only,
            by_people,
            ..
        } = &self.right;
        let argv = argv.clone();
        match self.right.verdict {
            Verdict::Auto => Settled::Allowed(Permit::by_rule(text, argv, *reads_only, *by_people)),
            Verdict::Ask => Settled::Asked(Question { text, argv }),
            Verdict::Reject => Settled::Refused,
        }
    }

    /// Turns an automatic verdict into a question. There is no method for the
    /// other way round.
    pub fn ask_first(&mut self, reason: Reason) {
        if self.right.verdict == Verdict::Auto {
            self.verdict = Verdict::Ask;
            self.right.verdict = Verdict::Ask;
            self.reasons.push(reason);
        }
    }

    /// Returns whether people have allowed all that it does, by rules or grants.
    pub fn by_people(&self) -> bool {
        self.right.by_people
    }

    /// Returns the words to start without a shell, where the rules say that
    /// there is to be none.
    pub fn argv(&self) -> Option<&[String]> {
        self.right.argv.as_deref()
    }

    /// Returns every rule tried, in order.
    pub fn tried(&self) -> Vec<Tried> {
        self.trace.tried()
    }

    /// Returns the names of the rules of a kind of layer that matched.
    pub fn met(&self, kind: LayerKind) -> Vec<&str> {
        self.trace.met(kind)
    }

    /// Returns whether what it would do can be found out by trying it on a
    /// copy, offline, instead of asking before: nothing but files is at stake,
    /// and no rule wants a person to be asked.
    pub fn can_be_tried(&self) -> bool {
        let elsewhere = [Effect::Privilege, Effect::Device, Effect::Secret];
        self.verdict == Verdict::Ask
            && self.reasons.iter().all(Reason::is_default)
            && !self.has_any(&elsewhere)
    }

    /// Returns whether a part of it is known to use the network.
    pub fn uses_network(&self) -> bool {
        self.has_any(&[Effect::Network])
    }

    fn has_any(&self, effects: &[Effect]) -> bool {
        let mut parts = self.facts.parts.iter();
        parts.any(|part| effects.iter().any(|&effect| part.effects.has(effect)))
    }

    /// Returns whether a part of it is allowed by a built-in rule alone, and by
    /// no rule or grant of a person.
    pub fn is_allowed_by_built_in(&self) -> bool {
        let mut parts = self.parts.iter();
        self.verdict == Verdict::Auto && parts.any(|part| self.trace.is_built_in(part.rule))
    }

    /// Asks a person about what would be allowed. What is asked or refused
    /// already stays so.
    pub fn ask_because(&mut self, reason: Reason) {
        if self.verdict == Verdict::Auto {
            self.verdict = Verdict::Ask;
            self.right.verdict = Verdict::Ask;
            self.reasons.push(reason);
        }
    }

    /// Returns whether it is proved to read and nothing else.
    pub fn reads_only(&self) -> bool {
        self.right.reads_only
    }
}

impl Question {
    /// Lets it be tried on a copy, where nothing can happen that a person
    /// would have to be asked about.
    pub fn tried(self) -> Permit {
        Permit::for_a_try(self.text, self.argv)
    }

    /// Takes a person's yes.
    pub fn approved_by(self, person: &str) -> Permit {
        Permit::by_person(self.text, self.argv, person)
    }
}
