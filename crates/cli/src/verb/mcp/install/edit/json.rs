//! JSON, with the comments and commas that editors allow in it.

use std::ops::Range;

use serde_json::Value;

use self::parse::{JsonMember, JsonNode, parse};
use super::{Trouble, ValueTree, nested};

mod parse;

pub(super) fn meaning(text: &str) -> Result<Value, Trouble> {
    let root = parse(text)?;
    Ok(root.map_or(Value::Null, |root| root.value(text)))
}

/// Writes a value at a path and replaces what is there.
pub(super) fn put(text: &str, path: &[&str], tree: &ValueTree) -> Result<String, Trouble> {
    let Some(root) = parse(text)? else {
        let style = JsonStyle::default();
        let whole = style.render(&nested(path, tree.clone()), "");
        return Ok(format!("{text}{whole}\n"));
    };
    let style = JsonStyle::of(text, &root);
    let mut object = &root;
    for (depth, name) in path.iter().enumerate() {
        let members = object.members().ok_or_else(|| no_object(text, object))?;
        let Some(member) = members.iter().find(|member| member.name == *name) else {
            let tree = nested(&path[depth + 1..], tree.clone());
            return Ok(insert(text, &style, object, name, &tree));
        };
        object = &member.value;
        if depth + 1 == path.len() {
            let indent = indent(text, member.start);
            let value = style.render(tree, indent);
            return Ok(replaced(text, &[(object.span(), value)]));
        }
    }
    Err(no_object(text, object))
}

/// Takes out what is at a path, and the objects that it leaves empty.
pub(super) fn cut(text: &str, path: &[&str]) -> Result<String, Trouble> {
    let Some(root) = parse(text)? else {
        return Ok(text.to_owned());
    };
    let mut way: Vec<(&JsonNode, usize)> = vec![];
    let mut object = &root;
    for name in path {
        let members = object.members().ok_or_else(|| no_object(text, object))?;
        let Some(at) = members.iter().position(|member| member.name == *name) else {
            return Ok(text.to_owned());
        };
        way.push((object, at));
        object = &members[at].value;
    }
    while let [.., _, (object, _)] = way.as_slice()
        && is_alone(text, object)
    {
        way.pop();
    }
    let (object, at) = *way.last().ok_or_else(|| no_object(text, &root))?;
    if is_alone(text, object) {
        return Ok(replaced(text, &[(object.inside(), String::new())]));
    }
    Ok(replaced(text, &removal(text, object, at)))
}

fn no_object(text: &str, node: &JsonNode) -> Trouble {
    Trouble::broken(text, node.start, "there should be an object, `{…}`")
}

/// How a file is written.
#[derive(Clone)]
struct JsonStyle {
    unit: String,
    newline: &'static str,
    /// All of it on one line.
    flat: bool,
}

impl Default for JsonStyle {
    fn default() -> Self {
        Self {
            unit: "  ".into(),
            newline: "\n",
            flat: false,
        }
    }
}

impl JsonStyle {
    fn of(text: &str, root: &JsonNode) -> Self {
        let first = root.members().and_then(<[JsonMember]>::first);
        let unit = first.map_or("", |first| indent(text, first.start));
        Self {
            unit: if unit.is_empty() { "  " } else { unit }.to_owned(),
            newline: if text.contains("\r\n") { "\r\n" } else { "\n" },
            flat: first.is_some() && !text[root.span()].contains('\n'),
        }
    }

    fn render(&self, tree: &ValueTree, indent: &str) -> String {
        let Self { unit, newline, .. } = self;
        match tree {
            ValueTree::Leaf(Value::Array(all)) => {
                let all: Vec<String> = all.iter().map(Value::to_string).collect();
                format!("[{}]", all.join(", "))
            }
            ValueTree::Leaf(value) => value.to_string(),
            ValueTree::Branch(parts) if self.flat => {
                let parts = parts.iter().map(|(name, part)| self.member(name, part, ""));
                format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
            }
            ValueTree::Branch(parts) => {
                let deeper = format!("{indent}{unit}");
                let parts = parts.iter().map(|(name, part)| {
                    format!("{newline}{deeper}{}", self.member(name, part, &deeper))
                });
                let parts = parts.collect::<Vec<_>>().join(",");
                format!("{{{parts}{newline}{indent}}}")
            }
        }
    }

    fn member(&self, name: &str, tree: &ValueTree, indent: &str) -> String {
        format!("{}: {}", Value::from(name), self.render(tree, indent))
    }
}

/// Adds a member at the end of an object.
fn insert(
    text: &str,
    style: &JsonStyle,
    object: &JsonNode,
    name: &str,
    tree: &ValueTree,
) -> String {
    let newline = style.newline;
    let Some(last) = object.members().and_then(<[JsonMember]>::last) else {
        return replaced(text, &[fill(text, style, object, name, tree)]);
    };
    let end = last.comma.unwrap_or(last.value.end);
    let again = if last.comma.is_some() { "," } else { "" };
    let mut edits = vec![];
    if last.comma.is_none() {
        edits.push((last.value.end..last.value.end, ",".to_owned()));
    }
    if text[object.start..last.start].contains('\n') {
        let indent = indent(text, last.start);
        let member = style.member(name, tree, indent);
        let at = rest_of_line(text, end).unwrap_or(end);
        edits.push((at..at, format!("{newline}{indent}{member}{again}")));
    } else {
        let flat = JsonStyle {
            flat: true,
            ..style.clone()
        };
        let member = flat.member(name, tree, "");
        edits.push((end..end, format!(" {member}{again}")));
    }
    replaced(text, &edits)
}

/// Puts the first member into an object.
fn fill(
    text: &str,
    style: &JsonStyle,
    object: &JsonNode,
    name: &str,
    tree: &ValueTree,
) -> (Range<usize>, String) {
    if style.flat {
        return (object.inside(), style.member(name, tree, ""));
    }
    let JsonStyle { unit, newline, .. } = style;
    let base = indent(text, object.start);
    let deeper = format!("{base}{unit}");
    let member = style.member(name, tree, &deeper);
    // Comments in it stay above.
    let inside = object.inside();
    let kept = inside.start + text[inside.clone()].trim_end().len();
    let filled = format!("{newline}{deeper}{member}{newline}{base}");
    (kept..inside.end, filled)
}

/// What takes a member away of an object that has others, or comments.
fn removal(text: &str, object: &JsonNode, at: usize) -> Vec<(Range<usize>, String)> {
    let members = object.members().unwrap_or_default();
    let member = &members[at];
    let before = at.checked_sub(1).map(|at| &members[at]);
    let end = member.comma.unwrap_or(member.value.end);
    let mut cuts = vec![];
    let line = text[..member.start].trim_end_matches([' ', '\t']);
    let line = line.strip_suffix('\n');
    let line = line.map(|line| line.strip_suffix('\r').unwrap_or(line).len());
    match (line, rest_of_line(text, end)) {
        (Some(start), Some(end)) => cuts.push((start..end, String::new())),
        _ => match (members.get(at + 1), before) {
            (Some(next), _) => cuts.push((member.start..next.start, String::new())),
            (None, Some(before)) => {
                let start = before.comma.unwrap_or(before.value.end);
                cuts.push((start..end, String::new()));
            }
            (None, None) => cuts.push((member.start..end, String::new())),
        },
    }
    // The last one before it has no comma any more, if it had none itself.
    if let (None, Some(comma)) = (member.comma, before.and_then(|before| before.comma)) {
        cuts.insert(0, (comma - 1..comma, String::new()));
    }
    cuts
}

/// Whether an object has one member, and nothing beside it.
fn is_alone(text: &str, object: &JsonNode) -> bool {
    let Some([only]) = object.members() else {
        return false;
    };
    let end = only.comma.unwrap_or(only.value.end);
    let inside = object.inside();
    let between = &text[only.value.end..end];
    let around = [&text[inside.start..only.start], &text[end..inside.end]];
    around.iter().all(|part| part.trim().is_empty()) && matches!(between.trim(), "" | ",")
}

/// The blanks that the line of a place begins with.
fn indent(text: &str, at: usize) -> &str {
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let blanks = text[line..at].trim_start_matches([' ', '\t']);
    &text[line..at - blanks.len()]
}

/// Where the line ends, if nothing follows on it but a comment.
fn rest_of_line(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let rest = &text[at..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let next = &rest[blanks..];
        if next.is_empty() || next.starts_with('\n') || next.starts_with("\r\n") {
            // Blanks at its end are nobody's.
            return Some(at);
        } else if next.starts_with("//") {
            let end = next.find('\n').unwrap_or(next.len());
            return Some(at + blanks + next[..end].trim_end_matches('\r').len());
        }
        let comment = next.strip_prefix("/*")?;
        let end = comment.find("*/")?;
        if comment[..end].contains('\n') {
            return None;
        }
        at += blanks + end + 4;
    }
}

/// Replaces parts of a text, which come in their order.
fn replaced(text: &str, edits: &[(Range<usize>, String)]) -> String {
    let mut new = text.to_owned();
    for (range, with) in edits.iter().rev() {
        new.replace_range(range.clone(), with);
    }
    new
}
