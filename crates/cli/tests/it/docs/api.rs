//! References that are made from the code: the addresses, and who may ask for
//! what there; the keys of rule files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::Value;

use crate::generated::{assert_current, read};
use crate::roles;

/// The columns, by what the table of roles calls them.
const ROLES: [(&str, &str); 5] = [
    ("agent", "agent"),
    ("viewer", "viewer"),
    ("approver", "approver"),
    ("operator", "operator"),
    ("admin", "administrator"),
];

const HEAD: &str = "# REST, address by address

<!-- Made from docs/openapi.json and the test of roles:
     WEIGHLOCK_BLESS=1 cargo nextest run -p weighlock -E 'test(/^docs::api::/)' -->

Every address is below `/agent/terminal`. [openapi.json](openapi.json) has the parameters, bodies
and answers; [people.md](people.md) says what the roles are, and how a request shows whose it is.
Errors are problem documents with a stable `code` and a `hint`.

✓ is any that can be seen, *own* is only one's own, – is refused (403) or not there (404). The
columns come from the test that asks every address in every role
([roles.rs](../crates/cli/tests/it/roles.rs)); one who has a role in some sandboxes only has it there.
";

#[test]
fn the_page_about_the_addresses_is_current() {
    assert_current("docs/api.md", &page());
}

#[test]
fn the_guide_to_rules_names_every_key_and_value() {
    let guide = read("docs/rules.md");
    let schema: Value = serde_json::from_str(&read("docs/rules.schema.json")).unwrap();
    let mut names = vec![];
    named(&schema, &mut names);
    assert!(names.len() > 30, "{names:?}");
    // In code only: many of the keys are everyday words.
    let code: Vec<&str> = guide.split('`').skip(1).step_by(2).collect();
    let code = code.join(" ");
    let words: BTreeSet<&str> = code.split(|one: char| !is_part(one)).collect();
    names.retain(|name| !words.contains(name.as_str()));
    assert!(names.is_empty(), "docs/rules.md says nothing of {names:?}");
}

fn is_part(one: char) -> bool {
    one.is_alphanumeric() || one == '_' || one == '-'
}

/// The keys that a schema has, and the values that are one of some.
fn named(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("properties", Value::Object(keys)) => names.extend(keys.keys().cloned()),
                    ("const", Value::String(value)) => names.push(value.clone()),
                    ("enum", Value::Array(values)) => {
                        names.extend(values.iter().filter_map(Value::as_str).map(str::to_owned));
                    }
                    _ => {}
                }
                named(value, names);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| named(value, names)),
        _ => {}
    }
}

fn page() -> String {
    let description: Value = serde_json::from_str(&read("docs/openapi.json")).unwrap();
    let may = may();
    let mut groups: BTreeMap<String, String> = BTreeMap::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        let path = path.strip_prefix("/agent/terminal").unwrap_or(path);
        let group = path.split('/').nth(1).unwrap().to_owned();
        let lines = groups.entry(group).or_default();
        for (method, operation) in methods.as_object().unwrap() {
            let asked = format!("{} {path}", method.to_uppercase());
            let who = &may[&plain(&asked)];
            let summary = operation["summary"]
                .as_str()
                .expect("it says what it is for");
            writeln!(lines, "| `{asked}` | {summary} | {} |", who.join(" | ")).unwrap();
        }
    }
    let mut page = HEAD.to_owned();
    let columns = ROLES.map(|(_, name)| name).join(" | ");
    for (group, lines) in groups {
        write!(
            page,
            "\n## {group}\n\n| address | | {columns} |\n|---|---|---|---|---|---|---|\n{lines}"
        )
        .unwrap();
    }
    page
}

/// What each role may, by method and address.
fn may() -> BTreeMap<String, Vec<&'static str>> {
    let mut may: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for (operation, object, answers) in roles::expected() {
        let who = may
            .entry(plain(&operation))
            .or_insert_with(|| vec!["–"; ROLES.len()]);
        for (at, (role, _)) in ROLES.iter().enumerate() {
            let column = roles::ROLES.iter().position(|one| one == role).unwrap();
            let refused = ["401", "403", "404", "-"].contains(&answers[column]);
            match (refused, object) {
                (true, _) => {}
                (false, "own") if who[at] == "–" => who[at] = "own",
                (false, "own") => {}
                (false, _) => who[at] = "✓",
            }
        }
    }
    may
}

/// An address without the names of what stands for something.
fn plain(operation: &str) -> String {
    let mut plain = String::new();
    let mut inside = false;
    for one in operation.chars() {
        inside = (inside || one == '{') && one != '}';
        if !inside {
            plain.push(one);
        }
    }
    plain
}
