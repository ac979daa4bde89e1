//! Judges commands: a text and [`Rules`] in, a [`Judgement`] out.
//!
//! [`understand`] finds out what a text does, by parsing it and by what is
//! known about programs; [`Rules::decide`] says what may become of that.
//!
//! Pure: no files, no clock, no network. What a rule file says is read by the
//! engine and handed in as text, so that the same words always get the same
//! verdict.
//!
//! ```
//! use weighlock_policy::{Place, Preset, Reader, Rules, Settings, Subject, Verdict, understand};
//!
//! let rules = Rules::base(&[Preset::Strict], &Settings::default());
//! let place = Place { root: "/srv/app".into(), cwd: "/srv/app".into(), home: "/home/ana".into() };
//! let judge = |text| {
//!     let facts = understand(text, Reader::Either, &[], &place);
//!     rules.decide(facts, &Subject { text, ..Subject::default() }).verdict
//! };
//! assert_eq!(judge("git status | head"), Verdict::Auto);
//! assert_eq!(judge("git status > notes.txt"), Verdict::Ask);
//! assert_eq!(judge("cd /; r\\m -rf './'*"), Verdict::Reject);
//! ```

pub mod agents;
mod argument;
mod blacklist;
mod change;
mod effect;
mod grant;
mod knowledge;
mod language;
mod part;
mod paths;
mod pattern;
mod permit;
mod preset;
mod program;
mod propose;
mod rules;
mod schema;
mod secret_files;
#[cfg(test)]
mod seed_tests;
mod shlex;
mod token;
mod variables;
mod verdict;
mod walk;

pub use agents::{Agent, Agents};
pub use blacklist::{Blacklist, InvalidFile, Refused};
pub use change::{
    Change, ChangeKind, ChangeQuestion, ChangesJudgement, ChangesSettled, CommitPermit,
    judge_changes, mark,
};
pub use effect::{Effect, Effects};
pub use grant::{Allows, Grant, Granted, Scope};
pub use knowledge::{Obeys, load as load_knowledge};
pub use part::{Access, Facts, Given, Link, Obeyed, Part, PartKind, Path, Place, PlaceKind};
pub use permit::Permit;
pub use preset::{Cut, Preset, Settings, Times, preset_layers};
pub use propose::{Proposal, propose};
pub use rules::{
    Layer, LayerKind, LoadError, Outline, RuleForm, Rules, Subject, Understand, Who, edit,
    example_place, forms, nearest,
};
pub use schema::rules_schema;
pub use secret_files::{SECRET_FILES, SecretFiles};
pub use token::{Token, TokenKind, tokens};
pub use variables::is_loud;
pub use verdict::{Decided, Judgement, Question, Reason, Settled, Tried, Verdict};
pub use walk::{Reader, understand};
