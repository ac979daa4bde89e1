//! Puts a judgement into words.

use std::collections::HashSet;

use super::decide::{Bench, Finding};
use super::pattern::Arguments;
use super::rule::{Rule, RuleSubject};
use crate::{Effect, Facts, Part, PartKind, Reason, Verdict};

/// Reasons told at the most; every part's verdict is in the judgement anyway.
const MAX_REASONS: usize = 50;

/// Longest piece of a command repeated in a reason, in characters.
const MAX_QUOTED: usize = 60;

impl Bench<'_> {
    /// Puts what was found into words, the strictest first.
    pub(super) fn reasons(&mut self, facts: &Facts) -> Vec<Reason> {
        self.found
            .sort_by_key(|found| std::cmp::Reverse(found.verdict));
        let mut reasons: Vec<Reason> = vec![];
        let mut seen = HashSet::new();
        for found in &self.found {
            let part = found.part.map(|n| &facts.parts[n]);
            // Ten thousand times the same need saying once.
            if let Some(part) = part.filter(|part| !part.program.is_empty())
                && !seen.insert((
                    found.rule,
                    &part.program,
                    &part.subcommand,
                    part.argv.get(1).filter(|_| !part.subcommand.is_empty()),
                    &part.unknown,
                    worst(part).map(weight),
                ))
            {
                continue;
            }
            let reason = self.reason(found, part);
            let same = |other: &Reason| other.text == reason.text && other.rule == reason.rule;
            if !reasons.iter().any(same) {
                reasons.push(reason);
            }
            if reasons.len() == MAX_REASONS {
                break;
            }
        }
        reasons
    }

    fn reason(&self, found: &Finding, part: Option<&Part>) -> Reason {
        let span = part.map(|part| part.span);
        let Some((layer, rule)) = found.rule.and_then(|at| self.rules.rule(at)) else {
            let unknown = part.is_some_and(|part| part.unknown.is_some());
            let (code, text, _) = found.said.clone().unwrap_or_else(|| {
                let code = if unknown {
                    "not_understood"
                } else {
                    "needs_approval"
                };
                (code.into(), self.by_default(part), None)
            });
            return Reason {
                code,
                text,
                rule: "default".into(),
                layer: "built-in".into(),
                remedy: String::new(),
                span,
            };
        };
        let (code, text, entry) = match &found.said {
            Some((code, text, entry)) => (code.clone(), text.clone(), entry.as_deref()),
            None => (String::new(), String::new(), None),
        };
        let or = |text: String, other: &str| {
            if text.is_empty() {
                other.to_owned()
            } else {
                text
            }
        };
        let code = or(
            or(code, &rule.code),
            match found.verdict {
                Verdict::Reject => "blocked",
                _ => "needs_approval",
            },
        );
        let text = match text.is_empty() {
            true => self.by_rule(rule, found, part),
            false => text,
        };
        Reason {
            code,
            text,
            // For a list of texts, the entry says more than the list's name.
            rule: match (&rule.what, entry) {
                (RuleSubject::Check(_), Some(entry)) => entry.to_owned(),
                _ => rule.name.clone(),
            },
            layer: layer.name.clone(),
            remedy: rule.remedy.clone(),
            span,
        }
    }

    fn by_rule(&self, rule: &Rule, found: &Finding, part: Option<&Part>) -> String {
        let object = part.map_or_else(|| "The command".into(), |part| self.object(part));
        if rule.verdict != found.verdict {
            return format!(
                "{object} may be what rule `{}` forbids; part of it is only known when it runs",
                rule.name
            );
        }
        if !rule.says.is_empty() {
            let program = part.map_or("", |part| part.program.as_str());
            return rule.says.replace("{match}", program);
        }
        match (rule.because.as_str(), &rule.what, rule.verdict) {
            ("", RuleSubject::Else, _) => format!("{object} is not on the list"),
            ("", _, Verdict::Reject) => format!("{object} is forbidden by rule `{}`", rule.name),
            ("", _, _) => format!("{object} is to be asked for by rule `{}`", rule.name),
            (because, _, _) => format!("{object} {because}"),
        }
    }

    /// Says why something is asked that no rule is about.
    fn by_default(&self, part: Option<&Part>) -> String {
        let Some(part) = part else {
            return "The command needs approval".into();
        };
        let object = self.object(part);
        if let Some(unknown) = &part.unknown {
            return format!("{object} cannot be judged: {unknown}");
        }
        match worst(part) {
            Some(effect) => format!("{object} {}", deed(effect)),
            None => format!("{object} is not on a list of what may run unasked"),
        }
    }

    /// Returns what a sentence about a part begins with.
    fn object(&self, part: &Part) -> String {
        if part.kind == PartKind::Command && !part.program.is_empty() {
            let mut words = part.program.clone();
            // As it was written: a family's name would say something else.
            let arguments = Arguments::of(part).words.into_iter().flatten();
            for word in arguments.take(part.subcommand.len()) {
                words.push(' ');
                words.push_str(word);
            }
            return format!("`{words}`");
        }
        let text = self
            .subject
            .text
            .get(part.span.start..part.span.end)
            .unwrap_or("")
            .trim();
        if text.is_empty() {
            return "A part of the command".into();
        }
        match text.char_indices().nth(MAX_QUOTED) {
            Some((end, _)) => format!("`{}…`", &text[..end]),
            None => format!("`{text}`"),
        }
    }
}

/// Returns the effect that a person should hear of.
fn worst(part: &Part) -> Option<Effect> {
    let more = part.effects.iter().filter(|effect| *effect != Effect::Read);
    more.max_by_key(|effect| weight(*effect))
}

fn weight(effect: Effect) -> u8 {
    match effect {
        Effect::Read => 0,
        Effect::Shell => 1,
        Effect::Write => 2,
        Effect::Process => 3,
        Effect::Execute => 4,
        Effect::Network => 5,
        Effect::Delete => 6,
        Effect::Secret => 7,
        Effect::Device => 8,
        Effect::Privilege => 9,
    }
}

fn deed(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "reads",
        Effect::Write => "writes files",
        Effect::Delete => "removes files",
        Effect::Execute => "runs other code",
        Effect::Network => "uses the network",
        Effect::Privilege => "raises privileges",
        Effect::Device => "touches devices",
        Effect::Secret => "shows secrets",
        Effect::Process => "acts on other processes",
        Effect::Shell => "changes what later commands mean",
    }
}
