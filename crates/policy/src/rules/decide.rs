//! From facts and rules to a judgement.

use super::glob::Bases;
use super::rule::{Rule, RuleSubject};
use super::{Match, Rules, Subject, WholeText};
use crate::verdict::Right;
use crate::{Access, Decided, Facts, Judgement, Layer, LayerKind, Part, PartKind, Tried, Verdict};

/// Which rules were tried, for those who ask.
#[derive(Debug)]
pub(crate) struct Trace {
    rules: Rules,
    matched: Vec<bool>,
}

impl Rules {
    /// Judges one command. Runs nothing and remembers nothing.
    pub fn decide(&self, facts: Facts, subject: &Subject<'_>) -> Judgement {
        let mut bench = Bench::new(self, subject);
        bench.whole();
        let mut parts = Vec::with_capacity(facts.parts.len());
        for (n, part) in facts.parts.iter().enumerate() {
            let decided = bench.part(part);
            if decided.verdict > Verdict::Auto {
                bench.found.push(Finding {
                    part: Some(n),
                    verdict: decided.verdict,
                    rule: decided.rule,
                    said: None,
                });
            }
            parts.push(decided);
        }
        bench.nothing(&facts);
        let verdict = bench.found.iter().map(|found| found.verdict).max();
        let verdict = verdict.unwrap_or(Verdict::Auto);
        let right = Right {
            verdict,
            text: Some(subject.text.to_owned()),
            argv: self.argv(subject),
            reads_only: reads_only(&facts),
            by_people: self.by_people(&facts, &parts),
        };
        Judgement {
            verdict,
            reasons: bench.reasons(&facts),
            facts,
            parts,
            trace: Trace {
                rules: self.clone(),
                matched: bench.matched,
            },
            right,
        }
    }

    /// Returns the words to start without a shell, if a rule says so.
    fn argv(&self, subject: &Subject<'_>) -> Option<Vec<String>> {
        self.layers
            .iter()
            .flat_map(|layer| &layer.rules)
            .find_map(|rule| match &rule.what {
                RuleSubject::Check(super::check::ToolCheck::Allowed(allowed)) => {
                    allowed.argv(subject).ok().flatten()
                }
                _ => None,
            })
    }

    /// Returns whether people have allowed all that a command does, by rules or
    /// grants of theirs: `rg x; npm test` is more than a rule for `npm test`
    /// says. Presets are nobody in particular.
    fn by_people(&self, facts: &Facts, parts: &[Decided]) -> bool {
        let count = self.rule_count();
        let by_people = |decided: &Decided| {
            decided.rule.is_some_and(|at| {
                let own = |(layer, _): (&Layer, &Rule)| layer.kind == LayerKind::Server;
                at >= count || self.rule(at).is_some_and(own)
            })
        };
        let sure = || { facts.parts.iter().zip(parts) }.filter(|(part, _)| !part.possible);
        sure().any(|(_, decided)| by_people(decided))
            && sure().all(|(part, decided)| by_people(decided) || shows_no_file(part))
    }

    pub(super) fn rule(&self, mut at: usize) -> Option<(&Layer, &Rule)> {
        for layer in &self.layers {
            match layer.rules.get(at) {
                Some(rule) => return Some((layer, rule)),
                None => at -= layer.rules.len(),
            }
        }
        None
    }

    fn rule_count(&self) -> usize {
        self.layers.iter().map(|layer| layer.rules.len()).sum()
    }
}

/// Returns whether it is proved that nothing happens but reading. Possible
/// readings do not count: what is allowed in spite of them runs where they
/// fail.
fn reads_only(facts: &Facts) -> bool {
    let mut sure = facts.parts.iter().filter(|part| !part.possible).peekable();
    sure.peek().is_some() && sure.all(|part| part.unknown.is_none() && part.effects.only_read())
}

/// Returns whether a part surely shows nothing of any file: it goes somewhere,
/// says something, or passes on what it is given.
fn shows_no_file(part: &Part) -> bool {
    const ANYWAY: [&str; 9] = [
        "cd", "echo", "printf", "true", "false", ":", "exit", "set", "export",
    ];
    const FILTERS: [&str; 8] = ["head", "tail", "wc", "cat", "sort", "uniq", "cut", "tr"];
    let program = part.program.as_str();
    let reads = part.paths.iter().any(|path| path.access == Access::Read);
    part.unknown.is_none()
        && match part.kind {
            PartKind::Assignment => true,
            PartKind::Redirection => !reads,
            PartKind::Command if ANYWAY.contains(&program) => true,
            PartKind::Command => {
                FILTERS.contains(&program) && !reads && part.argv.iter().all(Option::is_some)
            }
            PartKind::Unknown => false,
        }
}

/// One judging.
pub(super) struct Bench<'a> {
    pub(super) rules: &'a Rules,
    pub(super) subject: &'a Subject<'a>,
    bases: Bases<'a>,
    whole: WholeText<'a>,
    matched: Vec<bool>,
    pub(super) found: Vec<Finding>,
    /// For each layer, whether the text as a whole is on its list.
    listed: Vec<bool>,
    /// The grants that apply now and here.
    grants: Vec<usize>,
    rule_count: usize,
    /// There is no preset to say what happens to the rest: then it is asked.
    default: Option<Verdict>,
}

/// Something that is not simply allowed.
pub(super) struct Finding {
    pub(super) part: Option<usize>,
    pub(super) verdict: Verdict,
    pub(super) rule: Option<usize>,
    /// What the rule itself says: a code, a sentence, what it found.
    pub(super) said: Option<(String, String, Option<String>)>,
}

/// The strictest that was said about one part so far: the first rule of each
/// kind.
#[derive(Default)]
struct StrictestRules {
    reject: Option<usize>,
    /// Would be rejected if it is what it may be.
    perhaps: Option<usize>,
    ask: Option<usize>,
    /// Allowed for everybody on this server.
    auto: Option<usize>,
    /// Allowed by a preset.
    base: Option<usize>,
    /// What the strictest preset says about what it has no rule for.
    default: Option<Verdict>,
}

impl<'a> Bench<'a> {
    fn new(rules: &'a Rules, subject: &'a Subject<'a>) -> Self {
        let rule_count = rules.rule_count();
        Self {
            rules,
            subject,
            bases: subject.bases(),
            whole: WholeText::new(subject.text),
            matched: vec![false; rule_count + rules.grants.len()],
            found: vec![],
            listed: vec![false; rules.layers.len()],
            grants: (0..rules.grants.len())
                .filter(|n| rules.grants[*n].applies(subject))
                .collect(),
            rule_count,
            default: match rules.layers.iter().any(|layer| layer.default.is_some()) {
                true => None,
                false => Some(Verdict::Ask),
            },
        }
    }

    /// Applies the rules about the text as a whole.
    fn whole(&mut self) {
        let mut at = 0;
        for (l, layer) in self.rules.layers.iter().enumerate() {
            for rule in &layer.rules {
                let at = {
                    at += 1;
                    at - 1
                };
                if !self.concerns(rule) {
                    continue;
                }
                let said = match &rule.what {
                    RuleSubject::Text(matcher) => {
                        // The text lives as long as the rules do.
                        let Some(found) = find(matcher, &self.whole) else {
                            continue;
                        };
                        (
                            rule.code.clone(),
                            rule.says.replace("{match}", &found),
                            Some(found),
                        )
                    }
                    RuleSubject::Check(check) => match check.refuse(self.subject, &self.whole) {
                        Some(refusal) => (refusal.code, refusal.text, refusal.found),
                        None => continue,
                    },
                    _ => continue,
                };
                self.matched[at] = true;
                match rule.verdict {
                    Verdict::Auto => self.listed[l] = true,
                    verdict => self.found.push(Finding {
                        part: None,
                        verdict,
                        rule: Some(at),
                        said: Some(said),
                    }),
                }
            }
        }
    }

    /// Judges one part.
    fn part(&mut self, part: &Part) -> Decided {
        let heard = self.hear(part);
        let decided = |verdict, rule| Decided { verdict, rule };
        if heard.reject.is_some() {
            return decided(Verdict::Reject, heard.reject);
        }
        if part.possible {
            // What a rule asks about by name, as secrets, is asked about even
            // when it is only possible; the default is not.
            return match heard.ask {
                Some(_) => decided(Verdict::Ask, heard.ask),
                None => decided(Verdict::Auto, None),
            };
        }
        if heard.perhaps.is_some() {
            return decided(Verdict::Ask, heard.perhaps);
        }
        let granted = self
            .grants
            .iter()
            .copied()
            .find(|n| self.rules.grants[*n].covers(part, self.bases));
        if let Some(n) = granted {
            self.matched[self.rule_count + n] = true;
            return decided(Verdict::Auto, Some(self.rule_count + n));
        }
        if heard.ask.is_some() {
            return decided(Verdict::Ask, heard.ask);
        }
        if heard.auto.is_some() {
            return decided(Verdict::Auto, heard.auto);
        }
        match heard.default {
            None => decided(Verdict::Auto, heard.base),
            Some(default) => decided(default, None),
        }
    }

    fn hear(&mut self, part: &Part) -> StrictestRules {
        let mut heard = StrictestRules {
            default: self.default,
            ..StrictestRules::default()
        };
        let mut first = 0;
        for (l, layer) in self.rules.layers.iter().enumerate() {
            let mut base = None;
            for (at, rule) in (first..).zip(&layer.rules) {
                if !self.concerns(rule) {
                    continue;
                }
                let met = rule.meets(part, self.bases);
                if met == Match::No || part.possible && met == Match::Perhaps {
                    continue;
                }
                self.matched[at] = true;
                let slot = match (rule.verdict, met) {
                    (Verdict::Reject, Match::Yes) => &mut heard.reject,
                    (Verdict::Reject, _) => &mut heard.perhaps,
                    (Verdict::Ask, _) => &mut heard.ask,
                    (Verdict::Auto, _) if layer.kind == LayerKind::BuiltIn => &mut base,
                    (Verdict::Auto, _) if layer.kind == LayerKind::Server => &mut heard.auto,
                    // On a list that makes nothing milder.
                    (Verdict::Auto, _) => continue,
                };
                slot.get_or_insert(at);
            }
            self.close(l, layer, first, part, &mut heard);
            if layer.kind == LayerKind::BuiltIn {
                match (base, layer.default) {
                    (Some(at), _) => {
                        heard.base.get_or_insert(at);
                    }
                    (None, default) if default > Some(Verdict::Auto) => {
                        heard.default = heard.default.max(default);
                    }
                    (None, _) => {}
                }
            }
            first += layer.rules.len();
        }
        heard
    }

    /// Applies `otherwise`: an allow-list is about programs, and about parts
    /// that were not understood.
    fn close(
        &mut self,
        l: usize,
        layer: &Layer,
        first: usize,
        part: &Part,
        heard: &mut StrictestRules,
    ) {
        let Some(otherwise) = layer.otherwise else {
            return;
        };
        let concerned = matches!(part.kind, PartKind::Command | PartKind::Unknown);
        if part.possible || !concerned || self.listed[l] || layer.lists(part, self.bases) {
            return;
        }
        let at = first + otherwise;
        self.matched[at] = true;
        let slot = match layer.rules[otherwise].verdict {
            Verdict::Reject => &mut heard.reject,
            _ => &mut heard.ask,
        };
        slot.get_or_insert(at);
    }

    /// A text without parts says nothing; that is only fine if it is blank
    /// or a comment.
    fn nothing(&mut self, facts: &Facts) {
        let says = |line: &str| !line.trim().is_empty() && !line.trim().starts_with('#');
        if !facts.parts.is_empty() || !self.subject.text.lines().any(says) {
            return;
        }
        let default = self
            .rules
            .layers
            .iter()
            .filter_map(|layer| layer.default)
            .max();
        if let Some(verdict) = default
            .or(self.default)
            .filter(|verdict| *verdict > Verdict::Auto)
        {
            self.found.push(Finding {
                part: None,
                verdict,
                rule: None,
                said: Some((
                    "not_understood".into(),
                    "Nothing in this text is understood.".into(),
                    None,
                )),
            });
        }
    }

    fn concerns(&self, rule: &Rule) -> bool {
        rule.who.concerns(self.subject)
    }
}

/// Returns what a text matcher found, apart from the text it is in.
fn find(matcher: &super::matcher::TextMatcher, whole: &WholeText<'_>) -> Option<String> {
    matcher.find(whole).map(str::to_owned)
}

impl Trace {
    /// Returns whether this is a rule of a built-in layer.
    pub(crate) fn is_built_in(&self, rule: Option<usize>) -> bool {
        let found = rule.and_then(|at| self.rules.rule(at));
        found.is_some_and(|(layer, _)| layer.kind == LayerKind::BuiltIn)
    }

    pub(crate) fn met(&self, kind: LayerKind) -> Vec<&str> {
        let rules = { self.rules.layers.iter() }
            .flat_map(|layer| layer.rules.iter().map(move |rule| (layer.kind, rule)));
        { rules.zip(&self.matched) }
            .filter(|((of, _), matched)| *of == kind && **matched)
            .map(|((_, rule), _)| rule.name.as_str())
            .collect()
    }

    pub(crate) fn tried(&self) -> Vec<Tried> {
        let rules = self.rules.layers.iter().flat_map(|layer| {
            layer.rules.iter().map(|rule| Tried {
                name: rule.name.clone(),
                layer: layer.name.clone(),
                verdict: rule.verdict,
                about: rule.about.clone(),
                matched: false,
            })
        });
        let grants = self.rules.grants.iter().map(|granted| granted.tried());
        let mut tried: Vec<Tried> = rules.chain(grants).collect();
        for (tried, matched) in tried.iter_mut().zip(&self.matched) {
            tried.matched = *matched;
        }
        tried
    }
}
