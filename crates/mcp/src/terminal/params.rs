//! What the tool was given, read as the Python of its origin would.

use serde_json::Value;

use super::result::ToolResult;
use super::{DEFAULT_TIMEOUT, MAX_TIMEOUT};
use crate::tool::Arguments;

/// So much of a wrong word is repeated.
const REPEATED: usize = 200;

pub(super) struct TerminalParams(pub(super) Arguments);

impl TerminalParams {
    pub(super) fn action(&self) -> Result<String, ToolResult> {
        match self.0.get("action") {
            Some(action) if is_true(action) => Ok(match action {
                Value::String(action) => action.chars().take(REPEATED).collect(),
                other => other.to_string().chars().take(REPEATED).collect(),
            }),
            _ => Err(ToolResult::failed(
                "Missing 'action' parameter.",
                "missing_action",
            )),
        }
    }

    /// A text as it is; empty if there is none.
    pub(super) fn text(&self, name: &str) -> Result<&str, ToolResult> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(wrong(name, "a string")),
        }
    }

    /// A text without blanks around it.
    pub(super) fn stripped(&self, name: &str) -> Result<String, ToolResult> {
        Ok(self.text(name)?.trim().to_owned())
    }

    /// Without blanks around it; it may not be empty.
    pub(super) fn name_for(&self, action: &str) -> Result<String, ToolResult> {
        let name = self.stripped("terminal_name")?;
        match name.is_empty() {
            true => Err(ToolResult::failed(
                format!("Missing 'terminal_name' for {action}."),
                "missing_name",
            )),
            false => Ok(name),
        }
    }

    /// A directory; whatever counts as nothing is none.
    pub(super) fn working_dir(&self) -> Result<Option<String>, ToolResult> {
        match self.0.get("working_dir") {
            Some(Value::String(dir)) if !dir.is_empty() => Ok(Some(dir.clone())),
            Some(other) if is_true(other) => Err(wrong("working_dir", "a string")),
            _ => Ok(None),
        }
    }

    pub(super) fn background(&self) -> bool {
        self.0.get("background").is_some_and(is_true)
    }

    /// Seconds, within bounds.
    pub(super) fn timeout(&self) -> Result<u64, ToolResult> {
        let seconds = match self.0.get("timeout") {
            None | Some(Value::Null) => return Ok(DEFAULT_TIMEOUT),
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::Bool(yes)) => Some(f64::from(u8::from(*yes))),
            Some(Value::String(text)) => whole(text.trim()),
            Some(_) => None,
        };
        let seconds = seconds.ok_or_else(|| wrong("timeout", "an integer"))?;
        Ok(seconds.clamp(1.0, MAX_TIMEOUT as f64) as u64)
    }
}

/// A whole number in words, however long.
fn whole(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn wrong(name: &str, kind: &str) -> ToolResult {
    ToolResult::failed(format!("'{name}' must be {kind}."), "invalid_parameters")
}

/// What Python takes for true.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(yes) => *yes,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(all) => !all.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn params(value: Value) -> TerminalParams {
        match value {
            Value::Object(fields) => TerminalParams(fields),
            other => panic!("no object: {other}"),
        }
    }

    #[test]
    fn timeouts_are_read_as_whole_numbers_within_bounds() {
        for (given, seconds) in [
            (json!(null), 20),
            (json!(1), 1),
            (json!(0), 1),
            (json!(-5), 1),
            (json!(2.9), 2),
            (json!(299.99), 299),
            (json!(300), 300),
            (json!(301), 300),
            (json!(1e30), 300),
            (json!(u64::MAX), 300),
            (json!(true), 1),
            (json!(" 30 "), 30),
            (json!("-1"), 1),
            (json!("9".repeat(500)), 300),
        ] {
            let read = params(json!({ "timeout": given })).timeout();
            assert_eq!(read.unwrap(), seconds, "{given}");
        }
        assert_eq!(params(json!({})).timeout().unwrap(), 20);
        for wrong in [
            json!(""),
            json!("x"),
            json!("1.5"),
            json!("1e3"),
            json!("inf"),
            json!([]),
            json!({}),
        ] {
            let read = params(json!({ "timeout": wrong })).timeout().unwrap_err();
            assert_eq!(read.error.unwrap(), "invalid_parameters", "{wrong}");
        }
    }

    #[test]
    fn what_counts_as_nothing_is_no_directory() {
        for nothing in [
            json!(null),
            json!(""),
            json!(0),
            json!(false),
            json!([]),
            json!({}),
        ] {
            let read = params(json!({ "working_dir": nothing })).working_dir();
            assert_eq!(read.unwrap(), None, "{nothing}");
        }
        let read = params(json!({ "working_dir": " " })).working_dir();
        assert_eq!(read.unwrap().unwrap(), " ");
        assert!(params(json!({ "working_dir": 5 })).working_dir().is_err());
    }
}
