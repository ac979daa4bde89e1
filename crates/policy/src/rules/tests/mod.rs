//! What rules promise, as tables.

mod grant;
mod layer;
mod load;
mod pattern;
mod table;
mod verdict;

use std::sync::Arc;

use crate::{
    Allows, Facts, Grant, Judgement, Layer, LayerKind, Place, Preset, Reader, Rules, Scope,
    Settings, Subject, Verdict, Who, example_place,
};

/// Says what a text does, in the place of examples.
pub(crate) fn understand(text: &str) -> Facts {
    understand_in(text, &example_place())
}

fn understand_in(text: &str, place: &Place) -> Facts {
    crate::understand(text, Reader::Either, &[], place)
}

/// Judges a command there.
fn decide(rules: &Rules, text: &str) -> Judgement {
    let place = example_place();
    let subject = Subject {
        text,
        place: Some(&place),
        ..Subject::default()
    };
    rules.decide(understand(text), &subject)
}

/// Judges a command and says `verdict rule`.
fn judged(rules: &Rules, text: &str) -> String {
    said(&decide(rules, text))
}

fn said(judgement: &Judgement) -> String {
    let verdict = format!("{:?}", judgement.verdict).to_lowercase();
    match judgement.reasons.first() {
        Some(reason) => format!("{verdict} {}", reason.rule),
        None => verdict,
    }
}

fn layer(kind: LayerKind, text: &str) -> Arc<Layer> {
    match Layer::load(kind, "rules.toml", text, &understand) {
        Ok(layer) => Arc::new(layer),
        Err(errors) => panic!("{errors:#?}"),
    }
}

fn strict() -> Rules {
    Rules::base(&[Preset::Strict], &Settings::default())
}

fn with(kind: LayerKind, text: &str) -> Rules {
    let mut rules = strict();
    rules.add(layer(kind, text));
    rules
}

/// Checks one server rule against commands.
#[track_caller]
fn check(rule: &str, cases: &[(&str, &str)]) {
    let rules = with(LayerKind::Server, &format!("[[rule]]\nname = 'r'\n{rule}"));
    for (command, expected) in cases {
        assert_eq!(judged(&rules, command), *expected, "{rule} on {command}");
    }
}

fn grant(allows: Allows) -> Grant {
    Grant {
        id: "g1".into(),
        allows,
        scope: Scope::default(),
        until: None,
        by: "ana".into(),
        created: 1_000,
    }
}

fn granted(grant: Grant, server: &str) -> Rules {
    let mut rules = with(LayerKind::Server, server);
    rules.grant(Arc::new(grant.check(&understand).expect("valid")));
    rules
}

/// A small generator of numbers, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}
