//! What commands are judged by, and how.
//!
//! ```text
//!  files ─▶ RawRules ─▶ Layer ┐
//!  presets, blacklist ─▶ Layer ├─▶ Rules ─▶ decide(Facts, Subject) ─▶ Judgement
//!  grants ─▶ Granted           ┘
//! ```
//!
//! Each part of a command gets the strictest verdict that any rule has for it,
//! and the command gets the strictest of its parts. Only a grant, which a
//! person gave, makes a question unnecessary; nothing makes a rejection so.

pub(crate) mod check;
pub(crate) mod compile;
mod decide;
mod form;
pub(crate) mod glob;
mod layer;
mod load;
mod loader;
pub(crate) mod matcher;
pub(crate) mod pattern;
pub(crate) mod raw;
mod reason;
pub(crate) mod rule;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod whom;

use std::cell::OnceCell;
use std::sync::Arc;

use crate::grant::Granted;
use crate::{Place, Preset, Settings, blacklist, preset, shlex};

pub(crate) use decide::Trace;
pub use form::{RuleForm, edit, forms};
pub use layer::{Layer, LayerKind, Outline};
pub use load::example_place;
pub(crate) use load::load;
pub(crate) use loader::Loader;
pub use loader::{LoadError, nearest};
pub use rule::Understand;

/// Everything that a command is judged by. Cheap to copy.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// In the order of [`LayerKind`].
    layers: Vec<Arc<Layer>>,
    grants: Vec<Arc<Granted>>,
}

/// A command to judge, and who asks for it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subject<'a> {
    /// The command.
    pub text: &'a str,
    /// Where it would run; rules about relative paths need it.
    pub place: Option<&'a Place>,
    /// The requester.
    pub who: Who<'a>,
    /// What the asker says it is for.
    pub description: Option<&'a str>,
    /// It is to run in a terminal that stays open.
    pub terminal: bool,
    /// Seconds since 1970, for grants that end.
    pub now: i64,
}

/// Who asks, and from where.
#[derive(Debug, Clone, Copy, Default)]
pub struct Who<'a> {
    /// The agent's profile.
    pub agent: Option<&'a str>,
    /// The sandbox.
    pub sandbox: Option<&'a str>,
    /// The sandbox as people call it, which is what rules do.
    pub sandbox_name: Option<&'a str>,
    /// The agent's session.
    pub session: Option<&'a str>,
    /// The principal's name; none where there are no users.
    pub principal: Option<&'a str>,
    /// The principal's role.
    pub role: Option<&'a str>,
}

impl Rules {
    /// Puts presets together. Each judges by itself; the strictest wins.
    pub fn base(presets: &[Preset], settings: &Settings) -> Self {
        let mut rules = Self::default();
        for layer in preset::layers(presets, settings) {
            rules.add(layer);
        }
        rules
    }

    /// Adds a layer behind those that come before it.
    pub fn add(&mut self, layer: Arc<Layer>) {
        let at = self
            .layers
            .partition_point(|other| other.kind() <= layer.kind());
        self.layers.insert(at, layer);
    }

    /// Adds what a person granted.
    pub fn grant(&mut self, granted: Arc<Granted>) {
        self.grants.push(granted);
    }

    /// Returns the layers in their order.
    pub fn layers(&self) -> &[Arc<Layer>] {
        &self.layers
    }
}

impl<'a> Subject<'a> {
    /// Returns what paths in rules are relative to.
    pub(crate) fn bases(&self) -> glob::Bases<'a> {
        glob::Bases {
            root: self.place.map(|place| place.root.as_str()),
            home: self.place.map(|place| place.home.as_str()),
            text: self.text,
        }
    }
}

impl Who<'_> {
    /// Returns whether it is somebody, and no administrator.
    pub(crate) fn is_user(&self) -> bool {
        self.principal.is_some_and(|name| !name.is_empty()) && self.role != Some("admin")
    }
}

/// Whether something is what a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    No,
    /// Only running it would tell.
    Perhaps,
    Yes,
}

impl Match {
    /// Returns the lesser one, without asking if it cannot become less.
    fn min_with(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::No => Self::No,
            _ => self.min(other()),
        }
    }
}

impl From<bool> for Match {
    fn from(yes: bool) -> Self {
        match yes {
            true => Self::Yes,
            false => Self::No,
        }
    }
}

/// The whole text, with what several rules need from it.
pub(crate) struct WholeText<'a> {
    pub(crate) text: &'a str,
    normal: OnceCell<String>,
}

impl<'a> WholeText<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            normal: OnceCell::new(),
        }
    }

    /// Returns it trimmed, with single spaces, in lower case.
    pub(crate) fn normal(&self) -> &str {
        self.normal.get_or_init(|| blacklist::normalise(self.text))
    }

    /// Returns its first word.
    pub(crate) fn first_word(&self) -> &'a str {
        shlex::first_word(self.text)
    }
}
