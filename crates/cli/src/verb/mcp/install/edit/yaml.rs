//! YAML, which is read and written down, and not changed: nothing changes it
//! that keeps comments and layout.

use serde_json::Value;

use super::Trouble;

pub(super) fn meaning(text: &str) -> Result<Value, Trouble> {
    serde_saphyr::from_str(text).map_err(|error| Trouble::Broken {
        line: error.location().map_or(1, |at| at.line() as usize),
        why: why(&error.to_string()),
    })
}

/// Returns the lines that say something: names below one another, and values as
/// JSON has them, which is YAML, too.
pub(super) fn render(value: &Value, indent: usize) -> String {
    let members = value.as_object().into_iter().flatten();
    let lines = members.map(|(name, value)| match value {
        Value::Object(_) => format!(
            "{:indent$}{name}:\n{}",
            "",
            render(value, indent + INDENT_STEP)
        ),
        value => format!("{:indent$}{name}: {value}\n", ""),
    });
    lines.collect()
}

/// How much further a value is indented than its name.
const INDENT_STEP: usize = 2;

/// Returns the first line of the parser's message, without the position.
fn why(said: &str) -> String {
    let line = said.lines().next().unwrap_or_default();
    let words = line.split_once("column ").map_or(line, |(_, rest)| rest);
    words
        .split_once(": ")
        .map_or(words, |(_, rest)| rest)
        .to_owned()
}
