//! The schema for editors agrees with the files it is for.

use std::collections::HashMap;
use std::path::Path;

use regex::Regex;
use serde_json::Value;

fn knowledge() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("knowledge")
}

/// Checks values against the few words of JSON Schema that ours uses.
struct Checker {
    root: Value,
    patterns: HashMap<String, Regex>,
    wrong: Vec<String>,
}

impl Checker {
    fn check(&mut self, schema: &Value, value: &Value, at: &str) {
        if let Some(name) = schema["$ref"].as_str() {
            let target = name.strip_prefix("#/$defs/").expect("all are there");
            let target = self.root["$defs"][target].clone();
            return self.check(&target, value, at);
        }
        if let (Some(pattern), Some(text)) = (schema["pattern"].as_str(), value.as_str()) {
            let pattern = self
                .patterns
                .entry(pattern.to_owned())
                .or_insert_with(|| Regex::new(pattern).expect("a pattern"));
            if !pattern.is_match(text) {
                self.wrong.push(format!("{at}: {text:?}"));
            }
        }
        if let Some(choices) = schema["enum"].as_array()
            && !choices.contains(value)
        {
            self.wrong.push(format!("{at}: {value}"));
        }
        for item in value.as_array().into_iter().flatten() {
            self.check(&schema["items"], item, at);
        }
        for (key, value) in value.as_object().into_iter().flatten() {
            let at = format!("{at}.{key}");
            match (&schema["properties"][key], &schema["additionalProperties"]) {
                (Value::Null, Value::Bool(_) | Value::Null) => {
                    self.wrong.push(format!("{at}: no such key"));
                }
                (Value::Null, more) => self.check(more, value, &at),
                (own, _) => self.check(own, value, &at),
            }
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test may read files")]
fn every_file_fits_the_schema() {
    let schema = std::fs::read_to_string(knowledge().join("schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let mut files = 0;
    let mut checker = Checker {
        root: schema.clone(),
        patterns: HashMap::new(),
        wrong: vec![],
    };
    for entry in std::fs::read_dir(knowledge()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let value: Value = toml::from_str(&text).unwrap();
            checker.check(&schema, &value, &path.display().to_string());
            files += 1;
        }
    }
    assert!(files > 20, "only {files} files");
    let wrong = checker.wrong;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
