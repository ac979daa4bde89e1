//! JSON, with the comments and the commas at the end that editors allow in it.

use std::collections::HashSet;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use jsonc_parser::errors::ParseError;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

use super::Trouble;

/// What clients read themselves, and no more of JSON5 than that.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(super) fn meaning(text: &str) -> Result<Value, Trouble> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS);
    let Some(root) = parsed.map_err(broken)?.value else {
        return Ok(Value::Null);
    };
    if root.as_object().is_none() {
        return Err(no_object(text, &root));
    }
    check_names(text, &root)?;
    Ok(root.into())
}

/// Writes a value at a path and replaces what is there.
pub(super) fn put(text: &str, path: &[&str], value: &Value) -> Result<String, Trouble> {
    check_objects(text, path)?;
    edited(text, |root| {
        let mut object = root.object_value_or_create()?;
        let (name, above) = path.split_last()?;
        let is_there = |object: &CstObject| {
            above
                .iter()
                .try_fold(object.clone(), |object, name| object.object_value(name))
        };
        if let Some(member) = is_there(&object).and_then(|object| object.get(name)) {
            member.set_value(input(value));
            return Some(());
        }
        for name in above {
            object.ensure_multiline();
            object = object.object_value_or_create(name)?;
        }
        object.append(name, input(value));
        Some(())
    })
}

/// Takes out what is at a path, and the objects that it leaves empty.
pub(super) fn cut(text: &str, path: &[&str]) -> Result<String, Trouble> {
    edited(text, |root| {
        let mut object = root.object_value()?;
        let mut way = vec![];
        for name in path {
            let member = object.get(name)?;
            let inner = member.object_value();
            way.push((object.clone(), member));
            object = inner.unwrap_or(object);
        }
        while let Some((object, member)) = way.pop() {
            member.remove();
            if !is_empty(&object) {
                break;
            }
        }
        Some(())
    })
}

fn edited(text: &str, edit: impl FnOnce(&CstRootNode) -> Option<()>) -> Result<String, Trouble> {
    let root = CstRootNode::parse(text, &OPTIONS).map_err(broken)?;
    edit(&root).ok_or(Trouble::Unfit)?;
    Ok(root.to_string())
}

/// Returns whether nothing is in an object, not even a comment.
fn is_empty(object: &CstObject) -> bool {
    let mut inside = object.children().into_iter();
    inside.all(|part| part.is_whitespace() || part.is_newline() || part.is_token())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(on) => CstInputValue::Bool(*on),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(all) => CstInputValue::Array(all.iter().map(input).collect()),
        Value::Object(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| (name.clone(), input(value)));
            CstInputValue::Object(members.collect())
        }
    }
}

/// Refuses a name that is there twice: of which one counts, programs disagree.
fn check_names(text: &str, value: &ast::Value<'_>) -> Result<(), Trouble> {
    match value {
        ast::Value::Object(object) => {
            let mut names = HashSet::new();
            for member in &object.properties {
                let name = member.name.as_str();
                if !names.insert(name) {
                    let why = format!("`{name}` is there twice");
                    return Err(Trouble::broken(text, member.start(), why));
                }
                check_names(text, &member.value)?;
            }
            Ok(())
        }
        ast::Value::Array(array) => {
            let mut elements = array.elements.iter();
            elements.try_for_each(|element| check_names(text, element))
        }
        _ => Ok(()),
    }
}

/// Refuses a path that leads through something else than objects.
fn check_objects(text: &str, path: &[&str]) -> Result<(), Trouble> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS);
    let root = parsed.map_err(broken)?.value;
    let mut found = root.as_ref();
    for name in path {
        let Some(value) = found else {
            return Ok(());
        };
        let object = value.as_object().ok_or_else(|| no_object(text, value))?;
        found = object.get(name).map(|member| &member.value);
    }
    Ok(())
}

fn no_object(text: &str, value: &ast::Value<'_>) -> Trouble {
    let why = "there should be an object, `{…}`";
    Trouble::broken(text, value.start(), why)
}

fn broken(error: ParseError) -> Trouble {
    Trouble::Broken {
        line: error.line_display(),
        why: error.kind().to_string(),
    }
}
