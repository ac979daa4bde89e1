//! TOML, as far as its tables have headers or are written inline.

use std::ops::Range;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Trouble, ValueTree, nested};

pub(super) fn meaning(text: &str) -> Result<Value, Trouble> {
    toml::from_str(text).map_err(|error| broken(text, &error))
}

/// Writes a value at a path and replaces what is there.
pub(super) fn put(text: &str, path: &[&str], tree: &ValueTree) -> Result<String, Trouble> {
    let root = parse(text)?;
    let mut table = root.get_ref();
    let mut span = None;
    for (depth, name) in path.iter().enumerate() {
        let Some(found) = table.get(*name) else {
            let tree = nested(&path[depth + 1..], tree.clone());
            let begins = |sign: char| {
                let span = span.clone();
                span.is_some_and(|span: Range<usize>| text[span].starts_with(sign))
            };
            return match (&tree, &span) {
                // An entry has a line of its own, so that it can be cut out.
                (_, Some(_)) if begins('{') && depth < 2 => Err(Trouble::Unfit),
                (_, Some(span)) if begins('{') => Ok(insert(text, span, name, &tree)),
                (ValueTree::Leaf(_), Some(span)) if begins('[') => {
                    Ok(insert(text, span, name, &tree))
                }
                (ValueTree::Branch(_), _) => Ok(append(text, &path[..=depth], &tree)),
                _ => Err(Trouble::Unfit),
            };
        };
        span = Some(found.span());
        if let DeValue::Table(inner) = found.get_ref() {
            table = inner;
        } else if depth + 1 == path.len() {
            let mut new = text.to_owned();
            new.replace_range(found.span(), &render(tree));
            return Ok(new);
        }
    }
    Err(Trouble::Unfit)
}

/// Takes out what is at a path.
pub(super) fn cut(text: &str, path: &[&str]) -> Result<String, Trouble> {
    let root = parse(text)?;
    let mut table = root.get_ref();
    let mut found = None;
    for name in path {
        let Some((key, value)) = table.get_key_value(*name) else {
            return Ok(text.to_owned());
        };
        found = Some((key.span(), value));
        if let DeValue::Table(inner) = value.get_ref() {
            table = inner;
        }
    }
    let mut cuts = vec![];
    if let Some((key, value)) = found {
        sections(text, &key, value, &mut cuts);
    }
    cuts.sort_by_key(|cut| cut.start);
    let mut new = text.to_owned();
    for cut in cuts.into_iter().rev() {
        new.replace_range(cut, "");
    }
    Ok(new)
}

fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, Trouble> {
    DeTable::parse(text).map_err(|error| broken(text, &error))
}

fn broken(text: &str, error: &toml::de::Error) -> Trouble {
    let at = error.span().map_or(0, |span| span.start);
    Trouble::broken(text, at, error.message())
}

/// Adds a key to a table: below its header, or within its braces.
fn insert(text: &str, table: &Range<usize>, name: &str, tree: &ValueTree) -> String {
    let pair = format!("{} = {}", key(name), render(tree));
    let mut new = text.to_owned();
    if text[table.clone()].starts_with('{') {
        let inside = text[table.start + 1..table.end - 1].trim_end();
        let at = table.start + 1 + inside.len();
        match inside.trim().is_empty() {
            true => new.replace_range(table.start..table.end, &format!("{{ {pair} }}")),
            false => new.insert_str(at, &format!(", {pair}")),
        }
        return new;
    }
    let end = line_end(text, table.end);
    match text[..end].ends_with('\n') {
        true => new.insert_str(end, &format!("{pair}{}", newline(text))),
        false => new.push_str(&format!("{}{pair}", newline(text))),
    }
    new
}

/// Adds a table with a header of its own.
fn append(text: &str, path: &[&str], tree: &ValueTree) -> String {
    let newline = newline(text);
    let mut new = text.to_owned();
    if !new.is_empty() {
        let breaks = if new.ends_with('\n') { 1 } else { 2 };
        new.push_str(&newline.repeat(breaks));
    }
    let (mut path, mut tree) = (path.to_vec(), tree);
    while let ValueTree::Branch(parts) = tree
        && let [(name, part @ ValueTree::Branch(_))] = parts.as_slice()
    {
        path.push(name);
        tree = part;
    }
    let header: Vec<String> = path.iter().map(|name| key(name)).collect();
    new.push_str(&format!("[{}]{newline}", header.join(".")));
    if let ValueTree::Branch(parts) = tree {
        for (name, part) in parts {
            new.push_str(&format!("{} = {}{newline}", key(name), render(part)));
        }
    }
    new
}

/// Collects the lines of a key, or of a table and those below it, with the
/// empty line before.
fn sections(
    text: &str,
    key: &Range<usize>,
    value: &Spanned<DeValue<'_>>,
    cuts: &mut Vec<Range<usize>>,
) {
    let span = value.span();
    let DeValue::Table(table) = value.get_ref() else {
        return;
    };
    let line = line_start(text, key.start);
    if text[span.clone()].starts_with('{') && text[line..key.start].trim().is_empty() {
        cuts.push(line..line_end(text, span.end));
        return;
    }
    let mut end = span.end;
    for (key, value) in table {
        match value.get_ref() {
            DeValue::Table(inner) if !text[value.span()].starts_with('[') => {
                end = end.max(last(inner).max(value.span().end));
            }
            DeValue::Table(_) => sections(text, &key.span(), value, cuts),
            _ => end = end.max(value.span().end),
        }
    }
    if !text[span.clone()].starts_with('[') {
        return;
    }
    let start = line_start(text, span.start);
    let above = text[..start]
        .strip_suffix(newline(text))
        .unwrap_or_default();
    let blank = above.is_empty() || above.ends_with('\n');
    let start = if blank { above.len() } else { start };
    cuts.push(start..line_end(text, end));
}

/// Where the last value of a table ends that has no header.
fn last(table: &DeTable<'_>) -> usize {
    let ends = table.values().map(|value| match value.get_ref() {
        DeValue::Table(inner) => last(inner).max(value.span().end),
        _ => value.span().end,
    });
    ends.max().unwrap_or(0)
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Behind the line break.
fn line_end(text: &str, at: usize) -> usize {
    text[at..]
        .find('\n')
        .map_or(text.len(), |newline| at + newline + 1)
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn key(name: &str) -> String {
    let is_bare = |sign: char| sign.is_ascii_alphanumeric() || "-_".contains(sign);
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => string(name),
    }
}

fn render(tree: &ValueTree) -> String {
    match tree {
        ValueTree::Leaf(Value::String(text)) => string(text),
        ValueTree::Leaf(Value::Array(all)) => {
            let all = all.iter().map(|one| render(&ValueTree::Leaf(one.clone())));
            format!("[{}]", all.collect::<Vec<_>>().join(", "))
        }
        ValueTree::Leaf(value) => value.to_string(),
        ValueTree::Branch(parts) => {
            let parts = parts.iter();
            let parts = parts.map(|(name, part)| format!("{} = {}", key(name), render(part)));
            format!("{{ {} }}", parts.collect::<Vec<_>>().join(", "))
        }
    }
}

fn string(text: &str) -> String {
    toml::Value::from(text).to_string()
}
