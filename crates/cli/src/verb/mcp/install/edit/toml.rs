//! TOML, where `toml_edit` writes a file again as it was.

use std::ops::Range;

use serde_json::Value;
use toml_edit::{Array, Document, DocumentMut, InlineTable, Item, RawString, Table};

use super::Trouble;

pub(super) fn meaning(text: &str) -> Result<Value, Trouble> {
    toml::from_str(text).map_err(|error| broken(text, error.span(), error.message()))
}

/// Writes a value at a path and replaces what is there.
pub(super) fn put(text: &str, path: &[&str], value: &Value) -> Result<String, Trouble> {
    let is_new = super::get(&meaning(text)?, path).is_none();
    if let (true, Value::Object(members)) = (is_new, value) {
        let new = appended(text, path, members).ok_or(Trouble::Unfit)?;
        if new.parse::<DocumentMut>().is_ok() {
            return Ok(new);
        }
        // Where the tables around it are written inline, it is, too.
    }
    edited(text, |document| {
        let (name, above) = path.split_last()?;
        let mut item = document.as_item_mut();
        for name in above {
            if item.get(name).is_none() {
                insert(item, name, InlineTable::new().into())?;
            }
            item = item.as_table_like_mut()?.get_mut(name)?;
        }
        let mut new = to_toml(value)?;
        match item.as_table_like_mut()?.get_mut(name) {
            Some(Item::Value(old)) => {
                *new.decor_mut() = old.decor().clone();
                *old = new;
            }
            Some(_) => return None,
            None => insert(item, name, new)?,
        }
        Some(())
    })
}

/// Takes out what is at a path. Comments above it stay: they may be about
/// anything.
pub(super) fn cut(text: &str, path: &[&str]) -> Result<String, Trouble> {
    let (name, above) = path.split_last().ok_or(Trouble::Unfit)?;
    let lines = text.replace("\r\n", "\n");
    let kept = above_header(&lines, path);
    edited(text, |document| {
        let mut item = document.as_item_mut();
        for name in above {
            item = item.as_table_like_mut()?.get_mut(name)?;
        }
        let end = take_end(item);
        item.as_table_like_mut()?.remove(name)?;
        if let (Some(end), Some(table)) = (end, item.as_inline_table_mut())
            && let Some((_, last)) = table.iter_mut().last()
        {
            last.decor_mut().set_suffix(end);
        }
        let mut new = document.to_string();
        if let Some(kept) = kept {
            // Tables of the entry that are above its header.
            if new.get(..kept.start) != lines.get(..kept.start) {
                return None;
            }
            new.insert_str(kept.start, &lines[kept]);
            *document = new.parse().ok()?;
        }
        Some(())
    })
}

/// Changes a document that is written again as it is.
fn edited(
    text: &str,
    edit: impl FnOnce(&mut DocumentMut) -> Option<()>,
) -> Result<String, Trouble> {
    // It knows but one kind of line break.
    let is_windows = text.contains("\r\n");
    let lines = text.replace("\r\n", "\n");
    let parsed = lines.parse::<DocumentMut>();
    let mut document = parsed.map_err(|error| broken(&lines, error.span(), error.message()))?;
    let again = document.to_string();
    let is_mixed = is_windows && lines.replace('\n', "\r\n") != text;
    if is_mixed || again.trim_end() != lines.trim_end() {
        return Err(Trouble::Unfit);
    }
    edit(&mut document).ok_or(Trouble::Unfit)?;
    let new = document.to_string();
    Ok(match is_windows {
        true => new.replace('\n', "\r\n"),
        false => new,
    })
}

fn broken(text: &str, span: Option<Range<usize>>, why: &str) -> Trouble {
    Trouble::broken(text, span.map_or(0, |span| span.start), why)
}

/// Adds a table with a header of its own behind all others.
fn appended(text: &str, path: &[&str], members: &serde_json::Map<String, Value>) -> Option<String> {
    let mut table = Table::new();
    for (name, value) in members {
        table.insert(name, Item::Value(to_toml(value)?));
    }
    for name in path.iter().rev() {
        let mut outer = Table::new();
        outer.set_implicit(true);
        outer.insert(name, Item::Table(table));
        table = outer;
    }
    let mut new = DocumentMut::from(table).to_string();
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    new = new.replace('\n', newline);
    let breaks = match text {
        "" => 0,
        text if text.ends_with('\n') => 1,
        _ => 2,
    };
    Some(format!("{text}{}{new}", newline.repeat(breaks)))
}

/// Inserts a value into a table that has no such name.
fn insert(item: &mut Item, name: &str, mut value: toml_edit::Value) -> Option<()> {
    if let Some(end) = take_end(item) {
        value.decor_mut().set_prefix(" ");
        value.decor_mut().set_suffix(end);
    }
    let table = item.as_table_like_mut()?;
    table.insert(name, Item::Value(value));
    Some(())
}

/// Takes what is before the brace that ends an inline table with values.
fn take_end(item: &mut Item) -> Option<RawString> {
    let (_, last) = item.as_inline_table_mut()?.iter_mut().last()?;
    let end = last.decor().suffix().cloned().unwrap_or_default();
    last.decor_mut().set_suffix("");
    Some(end)
}

fn to_toml(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(on) => (*on).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.into(),
        Value::Array(all) => all.iter().map(to_toml).collect::<Option<Array>>()?.into(),
        Value::Object(members) => {
            let mut table = InlineTable::new();
            for (name, value) in members {
                table.insert(name, to_toml(value)?);
            }
            table.into()
        }
    })
}

/// Returns where the comments above a table's header are, without the blank
/// line that parts them from it.
fn above_header(lines: &str, path: &[&str]) -> Option<Range<usize>> {
    let document = Document::parse(lines).ok()?;
    let mut item = document.as_item();
    for name in path {
        item = item.get(name)?;
    }
    let table = item.as_table()?;
    let header = table.span()?.start;
    let start = table.decor().prefix()?.span()?.start;
    let above = lines.get(start..header)?;
    let blank = above == "\n" || above.ends_with("\n\n");
    Some(start..header - usize::from(blank))
}
