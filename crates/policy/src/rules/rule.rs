//! One rule, checked and ready.

use super::Match;
use super::check::ToolCheck;
use super::glob::{Bases, WordPattern};
use super::matcher::{PartMatcher, TextMatcher};
use super::pattern::{Pattern, ProgramPattern};
use super::whom::Whom;
use crate::{Effect, Effects, Facts, Part, PartKind, Verdict};

/// Says what a text would do; see `understand`.
pub type Understand<'a> = dyn Fn(&str) -> Facts + 'a;

/// One rule about commands.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    pub(crate) what: RuleSubject,
    pub(crate) about: String,
    pub(crate) because: String,
    pub(crate) says: String,
    pub(crate) remedy: String,
    pub(crate) code: String,
    pub(crate) who: Whom,
    /// Where it begins in its file, from 1; 0 where it is in none.
    pub(crate) line: usize,
}

/// What a rule is about.
#[derive(Debug)]
pub(crate) enum RuleSubject {
    Patterns(Vec<(Pattern, Allowance)>),
    /// The allowances are by program; one without a program is for all.
    Part(Box<PartMatcher>, Vec<(Option<ProgramPattern>, Allowance)>),
    Text(TextMatcher),
    Check(ToolCheck),
    /// Whatever no other rule of its layer matches.
    Else,
}

/// What an `auto` rule allows at the most: what its own words do when they
/// stand alone. So `auto = "git diff"` does not allow `git diff --output=F`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Allowance {
    pub(crate) effects: Effects,
    /// Why that is not known, with `?` for the program. A person who names an
    /// unknown program allows what nobody knows.
    unknown: Vec<String>,
}

impl Rule {
    /// A rule for everybody that has no words of its own, and is in no file.
    pub(crate) fn new(name: &str, verdict: Verdict, what: RuleSubject, about: String) -> Self {
        Self {
            name: name.to_owned(),
            verdict,
            what,
            about,
            because: String::new(),
            says: String::new(),
            remedy: String::new(),
            code: String::new(),
            who: Whom::default(),
            line: 0,
        }
    }

    /// Compares with one part, for a verdict.
    pub(crate) fn meets(&self, part: &Part, bases: Bases<'_>) -> Match {
        match self.verdict {
            Verdict::Auto => Match::from(self.covers(part, bases)),
            Verdict::Ask | Verdict::Reject => self.compare(part, bases, false),
        }
    }

    /// Returns whether a part is on the list that this rule belongs to.
    pub(crate) fn lists(&self, part: &Part, bases: Bases<'_>) -> bool {
        self.compare(part, bases, self.verdict == Verdict::Auto) == Match::Yes
    }

    fn compare(&self, part: &Part, bases: Bases<'_>, proof: bool) -> Match {
        match &self.what {
            RuleSubject::Patterns(patterns) => patterns
                .iter()
                .map(|(pattern, _)| pattern.meets(part, proof))
                .max()
                .unwrap_or(Match::No),
            RuleSubject::Part(matcher, _) => matcher.meets(part, bases, proof),
            RuleSubject::Text(_) | RuleSubject::Check(_) | RuleSubject::Else => Match::No,
        }
    }

    /// Returns whether a part is what this rule allows, and no more.
    pub(crate) fn covers(&self, part: &Part, bases: Bases<'_>) -> bool {
        if part.possible {
            return false;
        }
        match &self.what {
            RuleSubject::Patterns(patterns) => patterns.iter().any(|(pattern, allowance)| {
                pattern.meets(part, true) == Match::Yes && allowance.covers(part)
            }),
            RuleSubject::Part(matcher, allowances) => {
                matcher.meets(part, bases, true) == Match::Yes
                    && allowances
                        .iter()
                        .filter(|(program, _)| {
                            program
                                .as_ref()
                                .is_none_or(|program| program.meets(part, true))
                        })
                        .any(|(_, allowance)| allowance.covers(part))
            }
            RuleSubject::Text(_) | RuleSubject::Check(_) | RuleSubject::Else => false,
        }
    }

    /// Returns what is more than the rule allows, if a part would otherwise
    /// be what it is about.
    pub(crate) fn beyond(&self, part: &Part, bases: Bases<'_>) -> Option<String> {
        if self.compare(part, bases, true) != Match::Yes {
            return None;
        }
        if let Some(unknown) = &part.unknown {
            return Some(unknown.clone());
        }
        let more: Vec<&str> = part.effects.iter().map(Effect::name).collect();
        Some(more.join(", "))
    }
}

impl Allowance {
    pub(crate) fn only(effects: Effects) -> Self {
        Self {
            effects,
            unknown: vec![],
        }
    }

    /// Sees what commands do. The first is what was written; the others have
    /// words added, and count only where they are understood.
    pub(crate) fn of(samples: &[String], understand: &Understand<'_>) -> Self {
        let mut allowance = Self::default();
        for (n, sample) in samples.iter().enumerate() {
            let parts = understand(sample).parts;
            if n > 0 && parts.iter().any(|part| part.unknown.is_some()) {
                continue;
            }
            for part in &parts {
                allowance.effects.extend(part.effects);
                allowance.unknown.extend(same_for_all(part));
            }
        }
        allowance
    }

    pub(crate) fn covers(&self, part: &Part) -> bool {
        // Whoever lets a program run the project's code need not know all of
        // its options.
        let runs_code = self.effects.has(Effect::Execute);
        part.kind != PartKind::Unknown
            && part.effects.within(self.effects)
            && same_for_all(part).is_none_or(|why| runs_code || self.unknown.contains(&why))
    }
}

/// Returns why a part is not known, without the program's name in it.
fn same_for_all(part: &Part) -> Option<String> {
    let why = part.unknown.as_ref()?;
    Some(match part.program.as_str() {
        "" => why.clone(),
        program => why.replace(program, "?"),
    })
}

/// Returns commands for a table's program, to see what they do: one set for
/// each subcommand.
pub(crate) fn samples(program: &WordPattern, subcommands: &[Vec<WordPattern>]) -> Vec<Vec<String>> {
    let word = |word: &WordPattern| super::pattern::quote(&word.to_string().replace('*', "x"));
    let program = word(program);
    let heads = match subcommands.is_empty() {
        true => vec![program],
        false => subcommands
            .iter()
            .map(|words| {
                let words: Vec<String> = words.iter().map(word).collect();
                format!("{program} {}", words.join(" "))
            })
            .collect(),
    };
    heads
        .iter()
        .map(|head| vec![head.clone(), format!("{head} x"), format!("{head} x y")])
        .collect()
}
