//! Reads rule files: text → [`RawRules`] → [`Layer`].
//!
//! A file with a mistake is refused as a whole.

use std::collections::HashMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::compile;
use super::layer::{Layer, LayerKind};
use super::loader::{LoadError, Loader};
use super::raw::{At, OneOrMany, RawChange, RawRule, RawRules, Strict};
use super::rule::{Rule, RuleSubject, Understand};
use super::whom::Whom;
use super::{WholeText, glob::Bases};
use crate::change::ChangeRule;
use crate::{PartKind, Place, Verdict};

/// Larger than any rule file that a person wrote.
const MAX_BYTES: usize = 1 << 20;

/// Returns where the examples in rules are thought to run.
pub fn example_place() -> Place {
    Place {
        root: "/sandbox".into(),
        cwd: "/sandbox".into(),
        home: "/home/user".into(),
    }
}

/// Reads a rule file. Without `understand`, examples are not checked and
/// nothing that needs it can be said.
pub(crate) fn load(
    kind: LayerKind,
    file: &str,
    text: &str,
    understand: Option<&Understand<'_>>,
) -> Result<Layer, Vec<LoadError>> {
    let mut loader = Loader::new(file, text, understand);
    if text.len() > MAX_BYTES {
        loader.error(0, "the file is too large", "a rule file has at most 1 MiB");
        return Err(loader.errors);
    }
    let layer = loader.table().map(|table| loader.layer(kind, table));
    match layer {
        Some(layer) if loader.errors.is_empty() => Ok(layer),
        _ => Err(loader.finish()),
    }
}

impl Loader<'_> {
    fn layer(&mut self, kind: LayerKind, mut table: DeTable<'_>) -> Layer {
        let rules = self.entries(table.remove("rule"), "rule");
        let changes = self.entries(table.remove("change"), "change");
        let end = self.text.len();
        let head = Spanned::new(0..end, DeValue::Table(table));
        let head: RawRules = self.read(&head).unwrap_or_default();
        let mut layer = Layer {
            kind,
            name: kind.name().to_owned(),
            default: self.only_preset(kind, "default", head.default),
            default_change: self.only_preset(kind, "default_change", head.default_change),
            max_deletions: head.max_deletions.map(|max| max.value),
            ..Layer::default()
        };
        let listing = head.otherwise.is_some();
        let mut names = HashMap::new();
        for value in rules {
            let rule = self.read::<RawRule>(&value);
            let rule = rule.and_then(|raw| self.rule(value.span().start, raw, kind, listing));
            if let Some((at, rule)) = rule {
                self.unique(&mut names, at, &rule.name);
                layer.rules.push(rule);
            }
        }
        let mut names = HashMap::new();
        for value in changes {
            let rule = self.read::<RawChange>(&value);
            let rule = rule.and_then(|raw| self.change(value.span().start, raw, kind));
            if let Some((at, rule)) = rule {
                self.unique(&mut names, at, &rule.name);
                layer.changes.push(rule);
            }
        }
        if let Some(strict) = head.otherwise {
            layer.otherwise = Some(layer.rules.len());
            let line = self.position(strict.at).0;
            layer.rules.push(otherwise(strict.value, line));
        }
        layer
    }

    /// Returns the tables of `[[name]]`.
    fn entries<'i>(
        &mut self,
        value: Option<Spanned<DeValue<'i>>>,
        name: &str,
    ) -> Vec<Spanned<DeValue<'i>>> {
        let Some(value) = value else { return vec![] };
        let at = value.span().start;
        let wrong = match value.into_inner() {
            DeValue::Array(array) => {
                let (tables, others): (Vec<_>, Vec<_>) = array
                    .into_iter()
                    .partition(|entry| entry.get_ref().is_table());
                for other in &others {
                    self.not_a_table(other.span().start, name);
                }
                return tables;
            }
            _ => at,
        };
        self.not_a_table(wrong, name);
        vec![]
    }

    fn not_a_table(&mut self, at: usize, name: &str) {
        self.error(
            at,
            format!("`{name}` must be a list of tables"),
            format!("write [[{name}]] with two brackets"),
        );
    }

    fn only_preset(
        &mut self,
        kind: LayerKind,
        key: &str,
        value: Option<At<Verdict>>,
    ) -> Option<Verdict> {
        let value = value?;
        if kind != LayerKind::BuiltIn {
            self.error(
                value.at,
                format!("`{key}` can only be set by a preset"),
                "use `otherwise` to close a list of what is allowed",
            );
        }
        Some(value.value)
    }

    fn unique(&mut self, names: &mut HashMap<String, usize>, at: usize, name: &str) {
        if let Some(first) = names.get(name) {
            let line = self.position(*first).0;
            self.error(
                at,
                format!("there is another rule `{name}` in line {line}"),
                "give each rule a name of its own",
            );
        } else {
            names.insert(name.to_owned(), at);
        }
    }

    fn rule(
        &mut self,
        start: usize,
        raw: RawRule,
        kind: LayerKind,
        listing: bool,
    ) -> Option<(usize, Rule)> {
        let (verdict, what) = self.one_of(start, [raw.auto, raw.ask, raw.reject])?;
        if verdict == Verdict::Auto && kind.tightens() && !listing {
            self.error(
                what.at,
                format!("a rule for one {} cannot allow anything", kind.name()),
                "set `otherwise` to make the file a list of what is allowed, or let a person \
                 grant it",
            );
        }
        let (at, name) = self.name(start, raw.name)?;
        let about = compile::about(&what.value);
        let what = compile::what(self, verdict, &what, listing)?;
        let because = text(raw.because);
        let rule = Rule {
            name,
            verdict,
            about: match (&what, about) {
                (_, Some(about)) => about,
                // People never wrote the words for classes that presets use.
                (RuleSubject::Part(matcher, _), None)
                    if kind == LayerKind::BuiltIn && matcher.names_classes() =>
                {
                    because.clone()
                }
                (RuleSubject::Part(matcher, _), None) => matcher.about(),
                (RuleSubject::Text(matcher), None) => matcher.about(),
                _ => String::new(),
            },
            what,
            because,
            says: text(raw.says),
            remedy: text(raw.remedy),
            code: text(raw.code),
            who: Whom::read(self, raw.who, raw.agents, raw.sandboxes, raw.until),
            line: self.position(start).0,
        };
        self.examples(&rule, listing, raw.matches.as_ref(), raw.misses.as_ref());
        Some((at, rule))
    }

    fn change(
        &mut self,
        start: usize,
        raw: RawChange,
        kind: LayerKind,
    ) -> Option<(usize, ChangeRule)> {
        let (verdict, paths) = self.one_of(start, [raw.auto, raw.ask, raw.reject])?;
        if verdict == Verdict::Auto && kind.tightens() {
            self.error(
                paths.at,
                format!("a rule for one {} cannot allow anything", kind.name()),
                "allow it for everybody on this server, or not at all",
            );
        }
        let (at, name) = self.name(start, raw.name)?;
        let rule = ChangeRule {
            name,
            verdict,
            paths: compile::globs(self, &paths),
            kinds: compile::words(self, raw.kinds.as_ref()),
            because: text(raw.because),
            remedy: text(raw.remedy),
            line: self.position(start).0,
        };
        for (matches, list) in [(true, &raw.matches), (false, &raw.misses)] {
            for (at, path) in list.iter().flat_map(At::entries) {
                if rule.matches_path(path) != matches {
                    self.example(at, path, matches, "");
                }
            }
        }
        Some((at, rule))
    }

    /// Returns the one verdict that a rule has.
    fn one_of<T>(&mut self, start: usize, given: [Option<At<T>>; 3]) -> Option<(Verdict, At<T>)> {
        let verdicts = [Verdict::Auto, Verdict::Ask, Verdict::Reject];
        let mut given: Vec<_> = verdicts
            .into_iter()
            .zip(given)
            .filter_map(|(verdict, what)| Some((verdict, what?)))
            .collect();
        given.sort_by_key(|(_, what)| what.at);
        match given.len() {
            1 => return given.pop(),
            0 => self.error(
                start,
                "the rule has no verdict",
                "write one of auto, ask and reject, with what it is about",
            ),
            _ => self.error(
                given[1].1.at,
                "the rule has more than one verdict",
                "make two rules of it",
            ),
        }
        None
    }

    fn name(&mut self, start: usize, name: Option<At<String>>) -> Option<(usize, String)> {
        match name {
            None => Some((start, format!("line {}", self.position(start).0))),
            Some(name) if name.value.trim().is_empty() => {
                self.error(name.at, "the name is empty", "leave it out, or write one");
                None
            }
            Some(name) => Some((name.at, name.value)),
        }
    }

    fn examples(
        &mut self,
        rule: &Rule,
        listing: bool,
        matches: Option<&At<OneOrMany<String>>>,
        misses: Option<&At<OneOrMany<String>>>,
    ) {
        let Some(understand) = self.understand else {
            return;
        };
        for (expected, list) in [(true, matches), (false, misses)] {
            for (at, example) in list.into_iter().flat_map(At::entries) {
                let (met, hint) = self.meets(rule, listing, example, understand);
                if met != expected {
                    self.example(at, example, expected, &hint);
                }
            }
        }
    }

    fn example(&mut self, at: usize, example: &str, expected: bool, hint: &str) {
        let message = match expected {
            true => format!("the rule does not match its example `{example}`"),
            false => format!("the rule matches `{example}`, which it should miss"),
        };
        self.error(at, message, hint);
    }

    /// Returns whether a rule is about an example, and if not, why perhaps.
    fn meets(
        &self,
        rule: &Rule,
        listing: bool,
        example: &str,
        understand: &Understand<'_>,
    ) -> (bool, String) {
        if let RuleSubject::Text(matcher) = &rule.what {
            return (
                matcher.find(&WholeText::new(example)).is_some(),
                String::new(),
            );
        }
        let bases = Bases {
            root: Some(&self.place.root),
            home: Some(&self.place.home),
            text: example,
        };
        let parts = understand(example).parts;
        if rule.verdict != Verdict::Auto {
            return (
                parts.iter().any(|part| rule.lists(part, bases)),
                String::new(),
            );
        }
        // What is allowed must be all of it; what only reads needs no rule.
        let commands = || parts.iter().filter(|part| part.kind == PartKind::Command);
        let met = match listing {
            true => commands().count() > 0 && commands().all(|part| rule.lists(part, bases)),
            false => {
                parts.iter().any(|part| rule.covers(part, bases))
                    && parts.iter().all(|part| {
                        let quiet = part.kind != PartKind::Command
                            && part.unknown.is_none()
                            && part.effects.only_read();
                        quiet || rule.covers(part, bases)
                    })
            }
        };
        let beyond = commands()
            .filter(|part| !rule.covers(part, bases))
            .find_map(|part| rule.beyond(part, bases));
        let hint = match beyond {
            Some(beyond) if !met => format!(
                "it does more than the pattern by itself ({beyond}); end the pattern with ` *` to \
                 allow what its arguments do"
            ),
            _ => String::new(),
        };
        (met, hint)
    }
}

fn text(value: Option<At<String>>) -> String {
    value.map(|value| value.value).unwrap_or_default()
}

fn otherwise(strict: Strict, line: usize) -> Rule {
    let verdict = match strict {
        Strict::Ask => Verdict::Ask,
        Strict::Reject => Verdict::Reject,
    };
    Rule {
        code: "not_allowed".into(),
        line,
        ..Rule::new(
            "otherwise",
            verdict,
            RuleSubject::Else,
            "everything else".into(),
        )
    }
}
