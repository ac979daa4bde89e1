//! YAML, as far as it is written in lines that are indented by blanks.

use std::ops::Range;

use serde_json::Value;

use super::{Trouble, ValueTree, nested};

pub(super) fn meaning(text: &str) -> Result<Value, Trouble> {
    serde_saphyr::from_str(text).map_err(|error| Trouble::Broken {
        line: error.location().map_or(1, |at| at.line() as usize),
        why: why(&error.to_string()),
    })
}

/// Writes a value at a path and replaces what is there.
pub(super) fn put(text: &str, path: &[&str], tree: &ValueTree) -> Result<String, Trouble> {
    let lines = YamlLines::of(text);
    let mut block = Block {
        head: None,
        body: 0..lines.all.len(),
    };
    for (depth, name) in path.iter().enumerate() {
        let Some(found) = lines.find(&block, name) else {
            let tree = nested(&path[depth + 1..], tree.clone());
            return lines.insert(&block, name, &tree);
        };
        block = found;
    }
    let head = block.head.ok_or(Trouble::Unfit)?;
    let name = path.last().ok_or(Trouble::Unfit)?;
    let indent = indent(lines.all[head]);
    let new = lines.render(name, tree, indent);
    Ok(lines.replaced(head..block.body.end, &new))
}

/// Takes out what is at a path, and what it leaves empty.
pub(super) fn cut(text: &str, path: &[&str]) -> Result<String, Trouble> {
    let lines = YamlLines::of(text);
    let mut way = vec![Block {
        head: None,
        body: 0..lines.all.len(),
    }];
    for name in path {
        let Some(found) = way.last().and_then(|block| lines.find(block, name)) else {
            return Err(Trouble::Unfit);
        };
        way.push(found);
    }
    while let [.., outer, inner] = way.as_slice()
        && let (Some(above), Some(head)) = (outer.head, inner.head)
        && outer.body == (head..inner.body.end)
        && above + 1 == head
    {
        way.pop();
    }
    let block = way.pop().ok_or(Trouble::Unfit)?;
    let head = block.head.ok_or(Trouble::Unfit)?;
    Ok(lines.replaced(head..block.body.end, ""))
}

/// Returns the first line of the parser's message, without the position.
fn why(said: &str) -> String {
    let line = said.lines().next().unwrap_or_default();
    let words = line.split_once("column ").map_or(line, |(_, rest)| rest);
    words
        .split_once(": ")
        .map_or(words, |(_, rest)| rest)
        .to_owned()
}

/// The lines of a text, each with its end.
struct YamlLines<'a> {
    all: Vec<&'a str>,
    newline: &'static str,
}

/// A name, and the lines below that are its value.
#[derive(Debug, Clone)]
struct Block {
    head: Option<usize>,
    body: Range<usize>,
}

impl<'a> YamlLines<'a> {
    fn of(text: &'a str) -> Self {
        Self {
            all: text.split_inclusive('\n').collect(),
            newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
        }
    }

    /// Finds a name in a block. What follows it, up to the next name, is its
    /// own; blank lines and comments before that are not.
    fn find(&self, block: &Block, name: &str) -> Option<Block> {
        let level = self.level(block)?;
        let mut lines = block.body.clone();
        let head = lines.find(|&at| {
            let line = self.all[at];
            is_said(line) && indent(line) == level && named(line) == Some(name)
        })?;
        let is_next = |&at: &usize| {
            let line = self.all[at];
            let deeper = indent(line) > level;
            is_said(line) && !deeper && !(indent(line) == level && is_item(line))
        };
        let next = lines.clone().find(is_next).unwrap_or(block.body.end);
        let last = (head + 1..next).rev().find(|&at| is_said(self.all[at]));
        Some(Block {
            head: Some(head),
            body: head + 1..last.map_or(head, |last| last) + 1,
        })
    }

    /// How far the names in a block are indented.
    fn level(&self, block: &Block) -> Option<usize> {
        let mut lines = block.body.clone();
        let first = lines.find(|&at| is_said(self.all[at]) && !self.all[at].starts_with("---"))?;
        Some(indent(self.all[first]))
    }

    /// Adds a name at the end of a block.
    fn insert(&self, block: &Block, name: &str, tree: &ValueTree) -> Result<String, Trouble> {
        let above = block.head.map(|head| self.all[head]);
        let level = self.level(block);
        let indent = level.unwrap_or_else(|| above.map_or(0, |line| indent(line) + STEP));
        let new = self.render(name, tree, indent);
        let last = block.body.clone().rev().find(|&at| is_said(self.all[at]));
        match (last, block.head) {
            (Some(last), _) => Ok(self.replaced(last + 1..last + 1, &new)),
            (None, Some(head)) => {
                let opened = self.opened(head).ok_or(Trouble::Unfit)?;
                Ok(self.replaced(head..head + 1, &format!("{opened}{new}")))
            }
            (None, None) => Ok(self.replaced(block.body.end..block.body.end, &new)),
        }
    }

    /// The line of a name whose value is empty, so that lines can follow.
    fn opened(&self, head: usize) -> Option<String> {
        let line = self.all[head].trim_end();
        let (name, value) = line.split_once(':')?;
        let (value, comment) = match value.split_once(" #") {
            Some((value, comment)) => (value, format!(" #{comment}")),
            None => (value, String::new()),
        };
        let is_empty = ["", "{}", "null", "~"].contains(&value.trim());
        is_empty.then(|| format!("{name}:{comment}{}", self.newline))
    }

    fn replaced(&self, range: Range<usize>, new: &str) -> String {
        let mut text = self.all[..range.start].concat();
        if !text.is_empty() && !text.ends_with('\n') && !new.is_empty() {
            text.push_str(self.newline);
        }
        text.push_str(new);
        text.push_str(&self.all[range.end..].concat());
        text
    }

    fn render(&self, name: &str, tree: &ValueTree, indent: usize) -> String {
        let blanks = " ".repeat(indent);
        match tree {
            // What is JSON is YAML, too.
            ValueTree::Leaf(value) => format!("{blanks}{name}: {}{}", flow(value), self.newline),
            ValueTree::Branch(parts) => {
                let parts = parts.iter();
                let parts = parts.map(|(name, part)| self.render(name, part, indent + STEP));
                format!(
                    "{blanks}{name}:{}{}",
                    self.newline,
                    parts.collect::<String>()
                )
            }
        }
    }
}

/// How much further a value is indented than its name.
const STEP: usize = 2;

fn flow(value: &Value) -> String {
    match value {
        Value::Array(all) => {
            let all: Vec<String> = all.iter().map(flow).collect();
            format!("[{}]", all.join(", "))
        }
        Value::String(text) if is_plain(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Returns whether every YAML reader takes the unquoted text as a string.
fn is_plain(text: &str) -> bool {
    let is_in = |sign: char| sign.is_ascii_alphanumeric() || "/_.- ".contains(sign);
    let words = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    text.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '/')
        && text.chars().all(is_in)
        && !text.ends_with(' ')
        && !words.contains(&text.to_ascii_lowercase().as_str())
}

/// Whether a line is more than a comment.
fn is_said(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

fn is_item(line: &str) -> bool {
    let line = line.trim();
    line == "-" || line.starts_with("- ")
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The name that a line begins with.
fn named(line: &str) -> Option<&str> {
    let (name, value) = line.trim().split_once(':')?;
    let name = name.trim_end();
    let bare = |quote| name.strip_prefix(quote)?.strip_suffix(quote);
    let begins = value.is_empty() || value.starts_with([' ', '\t']);
    begins.then(|| bare('"').or_else(|| bare('\'')).unwrap_or(name))
}
