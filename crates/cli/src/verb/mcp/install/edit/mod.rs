//! Changes one entry of a settings file, and nothing else of it.
//!
//! Such files are written by people, with comments, in an order of their own.
//! So they are changed by libraries that keep all of that, and YAML, for which
//! there is none, is not changed at all. Afterwards both texts are read, and only
//! if they mean the same but for the entry is the new one used.

mod json;
mod toml;
mod yaml;

use serde_json::{Map, Value};

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingsFormat {
    /// Also with comments, and commas at the end.
    Json,
    Toml,
    Yaml,
}

/// One thing that an entry says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    /// Where in the entry.
    pub(super) path: &'static [&'static str],
    pub(super) value: Value,
    /// Left as it is where there is an entry already: the person's to change.
    pub(super) at_first: bool,
}

/// Why a file was not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It cannot be read.
    Broken { line: usize, why: String },
    /// It can, but is written in a way that is not changed here.
    Unfit,
}

impl Trouble {
    fn broken(text: &str, at: usize, why: impl Into<String>) -> Self {
        let before = text.get(..at).unwrap_or(text);
        Self::Broken {
            line: before.matches('\n').count() + 1,
            why: why.into(),
        }
    }
}

impl SettingsFormat {
    /// Returns a file that has the entry alone.
    pub(super) fn alone(self, place: &[&str], fields: &[Field]) -> Result<String, Trouble> {
        let entry = entry(fields);
        match self {
            Self::Yaml => Ok(yaml::render(&nested(place, entry), 0)),
            _ => self.put("", place, &entry),
        }
    }

    /// Makes the entry at a place say this. Whatever else it says stays.
    pub(super) fn set(
        self,
        text: &str,
        place: &[&str],
        fields: &[Field],
    ) -> Result<String, Trouble> {
        let (mark, text) = text.split_at(mark(text));
        let mut after = text.to_owned();
        let before = self.meaning(text)?;
        let there = get(&before, place);
        let mut changed = vec![];
        if there.is_some_and(|there| is_alike(there, fields)) {
            changed.extend(fields.iter().filter(|field| !field.at_first));
            for field in &changed {
                let path = [place, field.path].concat();
                if get(&before, &path) != Some(&field.value) {
                    after = self.put(&after, &path, &field.value)?;
                }
            }
        } else {
            changed.extend(fields);
            if there.is_some() {
                after = self.cut(&after, place)?;
            }
            after = self.put(&after, place, &entry(fields))?;
        }
        let meant = self.compare(&before, &after, place)?;
        let says =
            |field: &&Field| get(&meant, &[place, field.path].concat()) == Some(&field.value);
        match changed.iter().all(says) {
            true => Ok(format!("{mark}{after}")),
            false => Err(Trouble::Unfit),
        }
    }

    /// Takes the entry at a place out, and what was there for it alone.
    pub(super) fn remove(self, text: &str, place: &[&str]) -> Result<String, Trouble> {
        let before = self.meaning(text)?;
        if get(&before, place).is_none() {
            return Ok(text.to_owned());
        }
        let (mark, text) = text.split_at(mark(text));
        let after = self.cut(text, place)?;
        let meant = self.compare(&before, &after, place)?;
        match get(&meant, place) {
            None => Ok(format!("{mark}{after}")),
            Some(_) => Err(Trouble::Unfit),
        }
    }

    /// Returns whether there is something at a place.
    pub(super) fn has(self, text: &str, place: &[&str]) -> bool {
        { self.meaning(text) }.is_ok_and(|meaning| get(&meaning, place).is_some())
    }

    /// Returns the keys of the object at a path.
    pub(super) fn names(self, text: &str, place: &[&str]) -> Vec<String> {
        let meaning = self.meaning(text).unwrap_or_default();
        let there = get(&meaning, place).and_then(Value::as_object);
        there.map_or(vec![], |there| there.keys().cloned().collect())
    }

    /// Returns whether a file says nothing at all.
    pub(super) fn is_empty(self, text: &str) -> bool {
        let text = text.trim();
        text.is_empty() || (self == Self::Json && text == "{}")
    }

    fn meaning(self, text: &str) -> Result<Value, Trouble> {
        let text = &text[mark(text)..];
        match self {
            Self::Json => json::meaning(text),
            Self::Toml => toml::meaning(text),
            Self::Yaml => yaml::meaning(text),
        }
    }

    fn put(self, text: &str, path: &[&str], value: &Value) -> Result<String, Trouble> {
        match self {
            Self::Json => json::put(text, path, value),
            Self::Toml => toml::put(text, path, value),
            Self::Yaml => Err(Trouble::Unfit),
        }
    }

    fn cut(self, text: &str, path: &[&str]) -> Result<String, Trouble> {
        match self {
            Self::Json => json::cut(text, path),
            Self::Toml => toml::cut(text, path),
            Self::Yaml => Err(Trouble::Unfit),
        }
    }

    /// Returns what a new text means, if that is the same but for the entry.
    fn compare(self, before: &Value, after: &str, place: &[&str]) -> Result<Value, Trouble> {
        let after = self.meaning(after).map_err(|_| Trouble::Unfit)?;
        match without(before.clone(), place) == without(after.clone(), place) {
            true => Ok(after),
            false => Err(Trouble::Unfit),
        }
    }
}

/// Returns how long the byte order mark is with which some editors begin a file.
fn mark(text: &str) -> usize {
    const MARK: char = '\u{feff}';
    text.len() - text.trim_start_matches(MARK).len()
}

/// Whether an entry is of the same kind: what is started is not mixed with
/// what is reached by an address.
fn is_alike(entry: &Value, fields: &[Field]) -> bool {
    let named = |field: &Field| ["command", "cmd"].contains(&field.path[0]);
    let command = fields.iter().find(|field| named(field));
    command.is_none_or(|command| entry.get(command.path[0]).is_some())
}

/// What fields are together.
fn entry(fields: &[Field]) -> Value {
    let field = |field: &Field| {
        let value = nested(&field.path[1..], field.value.clone());
        (field.path[0].to_owned(), value)
    };
    fields.iter().map(field).collect()
}

/// A value further down.
fn nested(path: &[&str], value: Value) -> Value {
    let wrap = |value, name: &&str| Value::Object(Map::from_iter([((*name).to_owned(), value)]));
    path.iter().rev().fold(value, wrap)
}

fn get<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// Everything but what is at a place, and what holds nothing but that.
fn without(mut value: Value, place: &[&str]) -> Value {
    if let ([first, rest @ ..], Value::Object(members)) = (place, &mut value)
        && let Some(member) = members.remove(*first)
        && !rest.is_empty()
    {
        let left = without(member, rest);
        if left != Value::Object(Map::new()) {
            members.insert((*first).to_owned(), left);
        }
    }
    match value {
        Value::Null => Value::Object(Map::new()),
        value => value,
    }
}

#[cfg(test)]
mod tests;
