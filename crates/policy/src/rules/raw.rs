//! What a rule file says, before it is known whether that makes sense.
//!
//! Everything is optional here: what must be there is checked later, where
//! the message can say more. Each value remembers where it stands.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::{Access, ChangeKind, Effect, PartKind, PlaceKind, Verdict};

/// A rule file.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "weighlock rules")]
pub(crate) struct RawRules {
    /// Makes the file an allow-list: this is the verdict on commands that no
    /// rule of this file matches.
    pub(crate) otherwise: Option<At<Strict>>,
    /// Only in presets: the verdict on commands that no rule at all matches.
    pub(crate) default: Option<At<Verdict>>,
    /// Only in presets: the same for changes.
    pub(crate) default_change: Option<At<Verdict>>,
    /// More deleted files than this are never applied unasked.
    pub(crate) max_deletions: Option<At<u32>>,
    /// Rules about commands.
    pub(crate) rule: Vec<RawRule>,
    /// Rules about what commands changed.
    pub(crate) change: Vec<RawChange>,
}

/// A rule about commands. Exactly one of `auto`, `ask` and `reject`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Rule")]
pub(crate) struct RawRule {
    /// What it is called in answers; its line if not given.
    pub(crate) name: Option<At<String>>,
    /// What may run unasked.
    pub(crate) auto: Option<At<RawWhat>>,
    /// What a person is asked about.
    pub(crate) ask: Option<At<RawWhat>>,
    /// What never runs.
    pub(crate) reject: Option<At<RawWhat>>,
    /// Why, as the end of a sentence: "raises privileges".
    pub(crate) because: Option<At<String>>,
    /// The whole sentence to say instead; `{match}` is what was found.
    pub(crate) says: Option<At<String>>,
    /// What could be done instead.
    pub(crate) remedy: Option<At<String>>,
    /// A stable word for programs.
    pub(crate) code: Option<At<String>>,
    /// Which requesters it is about.
    pub(crate) who: Option<At<Audience>>,
    /// Only when one of these agents asks; any agent if not given.
    pub(crate) agents: Option<At<OneOrMany<String>>>,
    /// Only in these sandboxes, by name; everywhere if not given.
    pub(crate) sandboxes: Option<At<OneOrMany<String>>>,
    /// The last day it counts (`2026-11-20`), or the time at which it ends
    /// (`2026-11-20T17:00:00Z`).
    pub(crate) until: Option<At<String>>,
    /// Commands that it must match; checked when the file is loaded.
    pub(crate) matches: Option<At<OneOrMany<String>>>,
    /// Commands that it must not match; checked when the file is loaded.
    pub(crate) misses: Option<At<OneOrMany<String>>>,
}

/// A rule about changed files. Exactly one of `auto`, `ask` and `reject`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "ChangeRule")]
pub(crate) struct RawChange {
    /// What it is called in answers; its line if not given.
    pub(crate) name: Option<At<String>>,
    /// Paths whose changes are applied unasked.
    pub(crate) auto: Option<At<OneOrMany<String>>>,
    /// Paths whose changes a person is asked about.
    pub(crate) ask: Option<At<OneOrMany<String>>>,
    /// Paths that are never changed.
    pub(crate) reject: Option<At<OneOrMany<String>>>,
    /// The kinds of change it is about; all if not given.
    pub(crate) kinds: Option<At<OneOrMany<ChangeKind>>>,
    /// Why, as the end of a sentence: "is run by git".
    pub(crate) because: Option<At<String>>,
    /// What could be done instead.
    pub(crate) remedy: Option<At<String>>,
    /// Paths that it must match; checked when the file is loaded.
    pub(crate) matches: Option<At<OneOrMany<String>>>,
    /// Paths that it must not match; checked when the file is loaded.
    pub(crate) misses: Option<At<OneOrMany<String>>>,
}

/// A verdict that can close a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Strict {
    Ask,
    Reject,
}

/// Which requesters a rule is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Audience {
    /// Every requester.
    #[default]
    Everyone,
    /// Named principals that are no administrators.
    Users,
}

/// What a rule is about: a pattern, several, or a table.
#[derive(Debug, JsonSchema)]
#[schemars(untagged, rename = "What")]
pub(crate) enum RawWhat {
    Patterns(OneOrMany<String>),
    Table(Box<RawMatch>),
}

/// What a part of a command must be like. Every key given must hold; of a
/// list, one entry is enough (in an `auto` rule: everything there is must be
/// on the list).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Table")]
pub(crate) struct RawMatch {
    /// The program's name.
    pub(crate) program: Option<At<OneOrMany<String>>>,
    /// Its subcommand: `push`, `remote add`.
    pub(crate) subcommand: Option<At<OneOrMany<String>>>,
    /// An option, in any of its spellings.
    pub(crate) options: Option<At<OneOrMany<String>>>,
    /// An argument that is no option.
    pub(crate) args: Option<At<OneOrMany<String>>>,
    /// A path it touches.
    pub(crate) paths: Option<At<OneOrMany<String>>>,
    /// What happens to the path.
    pub(crate) access: Option<At<OneOrMany<Access>>>,
    /// What kind of place the path is.
    pub(crate) place: Option<At<OneOrMany<PlaceKind>>>,
    /// A host it names.
    pub(crate) hosts: Option<At<OneOrMany<String>>>,
    /// What it does.
    pub(crate) effects: Option<At<OneOrMany<Effect>>>,
    /// It is known and does nothing but this.
    pub(crate) effects_only: Option<At<OneOrMany<Effect>>>,
    /// A group it belongs to: `install`, `power`, `disk`…
    pub(crate) tags: Option<At<OneOrMany<String>>>,
    /// What kind of part it is.
    pub(crate) kind: Option<At<OneOrMany<PartKind>>>,
    /// The whole text contains this, whatever its case and spacing.
    pub(crate) text: Option<At<OneOrMany<String>>>,
    /// The whole text contains exactly this.
    pub(crate) contains: Option<At<OneOrMany<String>>>,
    /// The whole text contains a match of this regular expression.
    pub(crate) regex: Option<At<OneOrMany<String>>>,
    /// For `regex`: upper and lower case are the same.
    pub(crate) ignore_case: Option<At<bool>>,
    /// The first word of the whole text.
    pub(crate) first_word: Option<At<OneOrMany<String>>>,
}

/// A value and where it stands, as an offset in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<T> {
    pub(crate) at: usize,
    pub(crate) value: T,
}

/// One or several, each with its place. A single one has none of its own.
#[derive(Debug)]
pub(crate) struct OneOrMany<T>(Vec<(Option<usize>, T)>);

impl<T> At<OneOrMany<T>> {
    /// Returns the entries and where they stand.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, &T)> {
        self.value.entries_from(self.at)
    }
}

impl<T> OneOrMany<T> {
    /// Returns the entries and where they stand, given where the list does.
    pub(crate) fn entries_from(&self, own: usize) -> impl Iterator<Item = (usize, &T)> {
        self.0
            .iter()
            .map(move |(at, value)| (at.unwrap_or(own), value))
    }

    pub(crate) fn one(value: T) -> Self {
        Self(vec![(None, value)])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = toml::Spanned::<T>::deserialize(deserializer)?;
        Ok(Self {
            at: spanned.span().start,
            value: spanned.into_inner(),
        })
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for ListVisitor<T> {
    type Value = OneOrMany<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OneOrMany<T>, E> {
        let value = T::deserialize(StrDeserializer::new(text))?;
        Ok(OneOrMany::one(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<OneOrMany<T>, A::Error> {
        let mut list = vec![];
        while let Some(next) = seq.next_element::<At<T>>()? {
            list.push((Some(next.at), next.value));
        }
        Ok(OneOrMany(list))
    }
}

impl<'de> Deserialize<'de> for RawWhat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WhatVisitor)
    }
}

struct WhatVisitor;

impl<'de> Visitor<'de> for WhatVisitor {
    type Value = RawWhat;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a pattern, a list of patterns or a table")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RawWhat, E> {
        Ok(RawWhat::Patterns(OneOrMany::one(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<RawWhat, A::Error> {
        ListVisitor(PhantomData)
            .visit_seq(seq)
            .map(RawWhat::Patterns)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawWhat, A::Error> {
        RawMatch::deserialize(MapAccessDeserializer::new(map))
            .map(|table| RawWhat::Table(Box::new(table)))
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("List_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one.clone(), { "type": "array", "items": one }] })
    }
}

/// Says which words an enum of the facts has. A test compares them with what
/// is read.
macro_rules! words {
    ($type:ty, $name:literal, [$($word:literal),*]) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "enum": [$($word),*] })
            }
        }

        #[cfg(test)]
        impl Words for $type {
            const WORDS: &'static [&'static str] = &[$($word),*];
        }
    };
}

#[cfg(test)]
trait Words {
    const WORDS: &'static [&'static str];
}

words!(
    Effect,
    "Effect",
    [
        "read",
        "write",
        "delete",
        "execute",
        "network",
        "privilege",
        "device",
        "secret",
        "process",
        "shell"
    ]
);
words!(Access, "Access", ["read", "write", "delete", "run"]);
words!(
    PlaceKind,
    "Place",
    [
        "ordinary",
        "sandbox",
        "sink",
        "secret",
        "device",
        "protected"
    ]
);
words!(
    PartKind,
    "Kind",
    ["command", "redirection", "assignment", "unknown"]
);
words!(
    ChangeKind,
    "Change",
    [
        "created", "modified", "deleted", "renamed", "mode", "link", "times"
    ]
);
words!(Verdict, "Verdict", ["auto", "ask", "reject"]);

#[cfg(test)]
mod tests {
    use super::*;

    /// The error for a wrong word lists the right ones.
    #[track_caller]
    fn check<T: DeserializeOwned + Words>() {
        let error = T::deserialize(StrDeserializer::<serde::de::value::Error>::new("?"))
            .err()
            .expect("no such word")
            .to_string();
        let listed: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        assert_eq!(listed, T::WORDS);
    }

    #[test]
    fn the_schema_has_the_words_that_are_read() {
        check::<Effect>();
        check::<Access>();
        check::<PlaceKind>();
        check::<PartKind>();
        check::<ChangeKind>();
        check::<Verdict>();
    }
}
