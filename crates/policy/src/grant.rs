//! What a person allowed beyond the rules, for some, for a while.

use serde::{Deserialize, Serialize};

use crate::rules::glob::Bases;
use crate::rules::pattern::quote;
use crate::rules::raw::{At, OneOrMany, RawRule, RawWhat};
use crate::rules::rule::{Allowance, Rule};
use crate::rules::{Loader, compile};
use crate::{LoadError, Part, PartKind, Subject, Tried, Understand, Verdict};

/// What a person allowed, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Names the grant; a person takes it back by this id.
    pub id: String,
    /// What is allowed.
    pub allows: Allows,
    /// The agent, sandbox and session that it holds for.
    #[serde(default)]
    pub scope: Scope,
    /// When it ends, in seconds since 1970; none means when it is taken back.
    #[serde(default)]
    pub until: Option<i64>,
    /// The person.
    pub by: String,
    /// When it was given, in seconds since 1970.
    pub created: i64,
}

/// What is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allows {
    /// Exactly this program with these arguments.
    Argv(Vec<String>),
    /// What a rule could say behind `auto =`: a pattern, or a table in braces.
    Pattern(String),
}

/// The agent, sandbox and session that a grant holds for; a missing field
/// matches any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scope {
    /// The agent's profile.
    pub agent: Option<String>,
    /// The sandbox.
    pub sandbox: Option<String>,
    /// The agent's session.
    pub session: Option<String>,
}

/// A grant that was checked and can be used.
#[derive(Debug)]
pub struct Granted {
    grant: Grant,
    meaning: Meaning,
}

#[derive(Debug)]
enum Meaning {
    Exact(Vec<String>, Allowance),
    Rule(Box<Rule>),
}

impl Grant {
    /// Checks that it means something.
    pub fn check(self, understand: &Understand<'_>) -> Result<Granted, Vec<LoadError>> {
        let file = format!("grant {}", self.id);
        let meaning = match &self.allows {
            Allows::Argv(argv) => {
                if argv.first().is_none_or(|program| program.is_empty()) {
                    let mut loader = Loader::new(&file, "", None);
                    loader.error(0, "the grant names no program", "");
                    return Err(loader.finish());
                }
                let words: Vec<String> = argv.iter().map(|word| quote(word)).collect();
                let allowance = Allowance::of(&[words.join(" ")], understand);
                Meaning::Exact(argv.clone(), allowance)
            }
            Allows::Pattern(pattern) => Meaning::Rule(Box::new(rule(&file, pattern, understand)?)),
        };
        Ok(Granted {
            grant: self,
            meaning,
        })
    }
}

/// Reads what stands behind `auto =`.
fn rule(file: &str, pattern: &str, understand: &Understand<'_>) -> Result<Rule, Vec<LoadError>> {
    let is_table = pattern.trim_start().starts_with('{');
    let text = match is_table {
        true => format!("auto = {pattern}"),
        false => pattern.to_owned(),
    };
    let mut loader = Loader::new(file, &text, Some(understand));
    let raw = match is_table {
        true => loader.parse::<RawRule>().and_then(|raw| raw.auto),
        false => Some(At {
            at: 0,
            value: RawWhat::Patterns(OneOrMany::one(pattern.to_owned())),
        }),
    };
    let what = raw.and_then(|raw| compile::what(&mut loader, Verdict::Auto, &raw, false));
    match what {
        Some(what) if loader.errors.is_empty() => {
            Ok(Rule::new(file, Verdict::Auto, what, pattern.to_owned()))
        }
        _ => Err(loader.finish()),
    }
}

impl Granted {
    /// Returns the grant.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Returns whether it is for this asker, here and now.
    pub(crate) fn applies(&self, subject: &Subject<'_>) -> bool {
        let scope = &self.grant.scope;
        let who = &subject.who;
        let fits = |wanted: &Option<String>, given: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| given == Some(wanted))
        };
        self.grant.until.is_none_or(|until| subject.now < until)
            && fits(&scope.agent, who.agent)
            && fits(&scope.sandbox, who.sandbox)
            && fits(&scope.session, who.session)
    }

    pub(crate) fn covers(&self, part: &Part, bases: Bases<'_>) -> bool {
        match &self.meaning {
            Meaning::Rule(rule) => rule.covers(part, bases),
            Meaning::Exact(argv, allowance) => {
                part.kind == PartKind::Command
                    && !part.possible
                    && part.argv.len() == argv.len()
                    && part
                        .argv
                        .iter()
                        .zip(argv)
                        .all(|(given, word)| given.as_ref() == Some(word))
                    && allowance.covers(part)
            }
        }
    }

    pub(crate) fn tried(&self) -> Tried {
        let about = match &self.grant.allows {
            Allows::Argv(argv) => {
                let words: Vec<String> = argv.iter().map(|word| quote(word)).collect();
                words.join(" ")
            }
            Allows::Pattern(pattern) => pattern.clone(),
        };
        Tried {
            name: self.grant.id.clone(),
            layer: "grant".into(),
            verdict: Verdict::Auto,
            about,
            matched: false,
        }
    }
}
