//! Reads JSON, and remembers where everything is.

use std::ops::Range;

use serde_json::Value;

use super::super::Trouble;

/// More is no settings file.
const DEEPEST: usize = 100;

/// A value, and where it is.
#[derive(Debug)]
pub(super) struct JsonNode {
    pub(super) start: usize,
    pub(super) end: usize,
    kind: JsonKind,
}

#[derive(Debug)]
enum JsonKind {
    Object(Vec<JsonMember>),
    Array(Vec<JsonNode>),
    /// A text, a number or a word.
    Plain,
}

/// A name with its value.
#[derive(Debug)]
pub(super) struct JsonMember {
    pub(super) name: String,
    pub(super) start: usize,
    pub(super) value: JsonNode,
    /// Where the comma after it ends.
    pub(super) comma: Option<usize>,
}

impl JsonNode {
    pub(super) fn span(&self) -> Range<usize> {
        self.start..self.end
    }

    /// What is between its brackets.
    pub(super) fn inside(&self) -> Range<usize> {
        self.start + 1..self.end - 1
    }

    /// Returns what is in it, if it is an object.
    pub(super) fn members(&self) -> Option<&[JsonMember]> {
        match &self.kind {
            JsonKind::Object(members) => Some(members),
            _ => None,
        }
    }

    pub(super) fn value(&self, text: &str) -> Value {
        match &self.kind {
            JsonKind::Object(members) => { members.iter() }
                .map(|member| (member.name.clone(), member.value.value(text)))
                .collect(),
            JsonKind::Array(all) => all.iter().map(|one| one.value(text)).collect(),
            JsonKind::Plain => serde_json::from_str(&text[self.span()]).unwrap_or_default(),
        }
    }
}

/// Reads a whole text; nothing if there is nothing but blanks and comments.
pub(super) fn parse(text: &str) -> Result<Option<JsonNode>, Trouble> {
    let mut reader = JsonReader { text, at: 0 };
    if text.starts_with(BYTE_ORDER) {
        reader.at = BYTE_ORDER.len_utf8();
    }
    reader.skip()?;
    if reader.rest().is_empty() {
        return Ok(None);
    }
    let root = reader.value(0)?;
    reader.skip()?;
    match reader.rest().is_empty() {
        true => Ok(Some(root)),
        false => Err(reader.broken("something follows the end")),
    }
}

/// Some editors begin a file with it.
const BYTE_ORDER: char = '\u{feff}';

struct JsonReader<'a> {
    text: &'a str,
    at: usize,
}

impl JsonReader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn broken(&self, why: impl Into<String>) -> Trouble {
        Trouble::broken(self.text, self.at, why)
    }

    /// Goes on behind blanks and comments.
    fn skip(&mut self) -> Result<(), Trouble> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            self.at += blanks;
            let rest = self.rest();
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let end = rest.find("*/");
                self.at += end.ok_or_else(|| self.broken("a comment has no end"))? + 2;
            } else {
                return Ok(());
            }
        }
    }

    /// Takes a sign, if it is next.
    fn takes(&mut self, sign: char) -> bool {
        let is_next = self.rest().starts_with(sign);
        self.at += if is_next { sign.len_utf8() } else { 0 };
        is_next
    }

    fn value(&mut self, depth: usize) -> Result<JsonNode, Trouble> {
        if depth > DEEPEST {
            return Err(self.broken("it is nested too deeply"));
        }
        let start = self.at;
        let kind = match self.rest().chars().next() {
            Some('{') => JsonKind::Object(self.object(depth)?),
            Some('[') => JsonKind::Array(self.array(depth)?),
            Some('"') => {
                self.string()?;
                JsonKind::Plain
            }
            _ => {
                self.word()?;
                JsonKind::Plain
            }
        };
        Ok(JsonNode {
            start,
            end: self.at,
            kind,
        })
    }

    fn object(&mut self, depth: usize) -> Result<Vec<JsonMember>, Trouble> {
        let mut members: Vec<JsonMember> = vec![];
        self.at += 1;
        loop {
            self.skip()?;
            if self.takes('}') {
                return Ok(members);
            }
            if members.last().is_some_and(|last| last.comma.is_none()) {
                return Err(self.broken("there should be a comma or `}`"));
            }
            if !self.rest().starts_with('"') {
                return Err(self.broken("there should be a name in quotes, or `}`"));
            }
            let start = self.at;
            let name = self.string()?;
            if members.iter().any(|member| member.name == name) {
                return Err(self.broken(format!("`{name}` is there twice")));
            }
            self.skip()?;
            if !self.takes(':') {
                return Err(self.broken("there should be a colon"));
            }
            self.skip()?;
            let value = self.value(depth + 1)?;
            let comma = self.comma()?;
            members.push(JsonMember {
                name,
                start,
                value,
                comma,
            });
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<JsonNode>, Trouble> {
        let mut all = vec![];
        let mut may_follow = true;
        self.at += 1;
        loop {
            self.skip()?;
            if self.takes(']') {
                return Ok(all);
            }
            if !may_follow {
                return Err(self.broken("there should be a comma or `]`"));
            }
            all.push(self.value(depth + 1)?);
            may_follow = self.comma()?.is_some();
        }
    }

    /// Where the comma ends that is next.
    fn comma(&mut self) -> Result<Option<usize>, Trouble> {
        let before = self.at;
        self.skip()?;
        if self.takes(',') {
            return Ok(Some(self.at));
        }
        self.at = before;
        Ok(None)
    }

    fn string(&mut self) -> Result<String, Trouble> {
        let mut escaped = false;
        let end = self.rest().char_indices().skip(1).find(|&(_, sign)| {
            let ends = sign == '"' && !escaped;
            escaped = sign == '\\' && !escaped;
            ends || sign == '\n'
        });
        let end = end.map_or(self.text.len(), |(end, _)| self.at + end + 1);
        let text = self.text.get(self.at..end).unwrap_or_default();
        let read =
            serde_json::from_str(text).map_err(|_| self.broken("a text is not written right"));
        self.at = end;
        read
    }

    fn word(&mut self) -> Result<(), Trouble> {
        let is_in = |sign: char| sign.is_alphanumeric() || "+-._".contains(sign);
        let rest = self.rest();
        let end = rest.find(|sign| !is_in(sign)).unwrap_or(rest.len());
        let word = &rest[..end];
        if serde_json::from_str::<Value>(word).is_err() {
            return Err(self.broken(match word {
                "" => "a value is missing".to_owned(),
                word => format!("`{word}` is not a value"),
            }));
        }
        self.at += end;
        Ok(())
    }
}
