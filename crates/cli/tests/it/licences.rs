//! Whose work is in the program, under which terms, and that nobody's is there,
//! or is there twice, without a reason.
//!
//! Cargo knows all of it without a network and in less than a second, so this
//! is a test and no further tool that would have to be built first.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Value, json};

use crate::generated::{assert_current, read, root};

/// Terms that a program under Apache-2.0 may be made of without further duties
/// than to pass their texts on, which `cargo xtask third-party` gathers for
/// packages.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

/// For tools that build or try the pages, and are no part of them.
const ALLOWED_TOOLS: &[&str] = &["CC0-1.0", "MPL-2.0", "Python-2.0"];

/// What the pages are made of; the rest of the lock file only builds them.
const IN_PAGES: &[&str] = &["@xterm/xterm", "clsx", "esm-env", "svelte"];

/// Packages that are there in several versions, and who needs the older one.
const TWICE: &[(&str, &str)] = &[
    ("base64", "axum's WebSocket and alacritty_terminal"),
    (
        "bitflags",
        "defmt, which jiff names for machines without a system; it is not built",
    ),
    ("block-buffer", "sha1 of the WebSocket's handshake"),
    ("cpufeatures", "sha1 of the WebSocket's handshake"),
    ("crypto-common", "sha1 of the WebSocket's handshake"),
    ("digest", "sha1 of the WebSocket's handshake"),
    ("foldhash", "imara-diff"),
    (
        "getrandom",
        "ring has one of its own, and tungstenite's rand another",
    ),
    ("hashbrown", "imara-diff"),
    ("rand", "tungstenite"),
    ("rand_core", "tungstenite"),
    ("sha1", "the WebSocket's handshake"),
    ("syn", "derive macros move to the third version one by one"),
    (
        "synstructure",
        "derive macros move to the third version one by one",
    ),
];

/// The list that the pages show.
const SHOWN: &str = "ui/src/screens/settings/packages.json";

fn metadata() -> Value {
    let done = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    serde_json::from_slice(&done.stdout).unwrap()
}

fn lock() -> BTreeMap<String, Value> {
    let lock: Value = serde_json::from_str(&read("ui/package-lock.json")).unwrap();
    let packages = lock["packages"].as_object().unwrap();
    let named = packages.iter().filter_map(|(path, package)| {
        let (_, name) = path.rsplit_once("node_modules/")?;
        Some((name.to_owned(), package.clone()))
    });
    named.collect()
}

/// Whether terms can be kept with those that are allowed: one of what `OR`
/// joins, all of what `AND` does.
fn fits(terms: &str, allowed: &[&str]) -> bool {
    let terms = terms.replace('/', " OR ");
    let all = split(&terms, " AND ");
    if all.len() > 1 {
        return all.iter().all(|part| fits(part, allowed));
    }
    let any = split(&terms, " OR ");
    if any.len() > 1 {
        return any.iter().any(|part| fits(part, allowed));
    }
    match terms.trim().strip_prefix('(') {
        Some(inner) => fits(inner.trim_end_matches(')'), allowed),
        None => allowed.contains(&terms.trim()),
    }
}

/// Splits where no parenthesis is open.
fn split(terms: &str, at: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    let mut rest = terms;
    while let Some(next) = rest.chars().next() {
        if depth == 0 && rest.starts_with(at) {
            parts.push(String::new());
            rest = &rest[at.len()..];
            continue;
        }
        depth += i32::from(next == '(') - i32::from(next == ')');
        parts.last_mut().unwrap().push(next);
        rest = &rest[next.len_utf8()..];
    }
    parts
}

#[test]
fn terms_are_read_as_they_are_meant() {
    for (terms, fine) in [
        ("MIT", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(GPL-3.0 OR MIT) AND BSD-3-Clause", true),
        ("(GPL-3.0 OR LGPL-3.0) AND MIT", false),
        ("Apache-2.0 WITH LLVM-exception OR GPL-2.0", true),
        ("", false),
    ] {
        assert_eq!(fits(terms, ALLOWED), fine, "{terms}");
    }
}

#[test]
fn every_package_has_terms_that_are_allowed_and_comes_from_the_registry() {
    let found = metadata();
    for package in found["packages"].as_array().unwrap() {
        let (name, terms) = (
            &package["name"],
            package["license"].as_str().unwrap_or_default(),
        );
        assert!(fits(terms, ALLOWED), "{name}: `{terms}` is not allowed");
        let source = package["source"].as_str();
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        assert!(
            source.is_none_or(|source| source == registry),
            "{name}: {source:?}"
        );
    }
    let tools = [ALLOWED, ALLOWED_TOOLS].concat();
    for (name, package) in lock() {
        let terms = package["license"].as_str().unwrap_or_default();
        let allowed = match IN_PAGES.contains(&name.as_str()) {
            true => ALLOWED,
            false => &tools,
        };
        assert!(fits(terms, allowed), "{name}: `{terms}` is not allowed");
    }
}

#[test]
fn nothing_is_there_twice_without_a_reason() {
    let found = metadata();
    let mut versions = BTreeMap::<&str, BTreeSet<&str>>::new();
    for package in found["packages"].as_array().unwrap() {
        let (name, version) = (package["name"].as_str(), package["version"].as_str());
        versions
            .entry(name.unwrap())
            .or_default()
            .insert(version.unwrap());
    }
    let twice: Vec<_> = versions.iter().filter(|(_, all)| all.len() > 1).collect();
    let names: Vec<_> = twice.iter().map(|(name, _)| **name).collect();
    let known: Vec<_> = TWICE.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, known, "{twice:?}");
}

#[test]
fn the_pages_list_every_package_with_its_terms() {
    let found = metadata();
    let made = serde_json::to_string_pretty(&packages(&found)).unwrap() + "\n";
    assert_current(SHOWN, &made);
}

#[test]
fn every_dependency_says_what_it_is_for() {
    let manifest = read("Cargo.toml");
    let (_, rest) = manifest.split_once("[workspace.dependencies]\n").unwrap();
    let (list, _) = rest.split_once("\n[").unwrap();
    let mut named = 0;
    for pair in list.lines().collect::<Vec<_>>().windows(2) {
        let (above, line) = (pair[0], pair[1]);
        if line.is_empty() || line.starts_with('#') || line.contains("path = ") {
            continue;
        }
        assert!(above.starts_with("# "), "nothing says what for: {line}");
        named += 1;
    }
    // What is not in that list is seen by nobody who reads it.
    let found = metadata();
    let all = found["packages"].as_array().unwrap();
    let ours = all.iter().filter(|one| one["source"].is_null());
    let direct: BTreeSet<_> = ours
        .flat_map(|one| one["dependencies"].as_array().unwrap())
        .filter(|need| !need["source"].is_null())
        .map(|need| need["name"].as_str().unwrap())
        .collect();
    assert_eq!(named, direct.len(), "{direct:?}");
    let manifest: Value = serde_json::from_str(&read("ui/package.json")).unwrap();
    let reasons = read("ui/README.md");
    assert!(manifest["dependencies"].is_null());
    for name in manifest["devDependencies"].as_object().unwrap().keys() {
        let row = format!("| `{name}` |");
        assert!(reasons.contains(&row), "ui/README.md does not name {name}");
    }
}

/// Everything that the program and its pages are made of: name, version, terms.
fn packages(found: &Value) -> Vec<Value> {
    let all = found["packages"].as_array().unwrap();
    let by_id: BTreeMap<_, _> = all
        .iter()
        .map(|one| (one["id"].as_str().unwrap(), one))
        .collect();
    let nodes = found["resolve"]["nodes"].as_array().unwrap();
    let needs: BTreeMap<_, _> = nodes
        .iter()
        .map(|one| (one["id"].as_str().unwrap(), one))
        .collect();
    let ours = all.iter().find(|one| one["name"] == "weighlock").unwrap();
    let mut todo = vec![ours["id"].as_str().unwrap()];
    let mut used = BTreeSet::new();
    while let Some(id) = todo.pop() {
        if !used.insert(id) {
            continue;
        }
        for need in needs[id]["deps"].as_array().unwrap() {
            let kinds = need["dep_kinds"].as_array().unwrap();
            if kinds.iter().any(|kind| kind["kind"].is_null()) {
                todo.push(need["pkg"].as_str().unwrap());
            }
        }
    }
    let used = used.into_iter().map(|id| by_id[id]);
    let used = used.filter(|one| !one["source"].is_null()).map(
        |one| json!({ "name": one["name"], "version": one["version"], "licence": one["license"] }),
    );
    let lock = lock();
    let pages = IN_PAGES.iter().map(|name| {
        let one = &lock[*name];
        json!({ "name": name, "version": one["version"], "licence": one["license"] })
    });
    let mut list: Vec<_> = used.chain(pages).collect();
    list.sort_by_key(|one| (one["name"].to_string(), one["version"].to_string()));
    list
}
