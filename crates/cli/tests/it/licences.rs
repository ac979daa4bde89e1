//! Whose work is in the program, under which terms, and that nobody's is there,
//! or is there twice, without a reason.
//!
//! deny.toml has the lists. Cargo knows the rest without a network and in less
//! than a second, so this is a test; cargo-deny, which takes minutes to build,
//! reads the same lists where it is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Value, json};

use crate::generated::{assert_current, read, root};

/// For tools that build or try the pages, and are no part of them.
const ALLOWED_TOOLS: &[&str] = &["CC0-1.0", "MPL-2.0", "Python-2.0"];

/// What the pages are made of; the rest of the lock file only builds them.
const IN_PAGES: &[&str] = &["@xterm/xterm", "clsx", "esm-env", "svelte"];

/// Older versions that Cargo names and never builds, so that deny.toml, which is
/// about what is built, has no word about them.
const NOT_BUILT: &[(&str, &str)] = &[
    // Of defmt, which jiff names for machines without a system.
    ("bitflags", "1"),
    // Derive macros move to the next version one by one.
    ("synstructure", "0.13"),
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

/// The terms that the program and its pages may be under.
fn allowed() -> Vec<String> {
    let allowed = deny()["licenses"]["allow"].clone();
    allowed.try_into().unwrap()
}

fn deny() -> toml::Table {
    read("deny.toml").parse().unwrap()
}

/// Returns names with the beginnings of those versions that deny.toml lets be
/// there beside another.
fn skipped() -> Vec<(String, String)> {
    let deny = deny();
    let skip = deny["bans"]["skip"].as_array().unwrap().iter();
    let mut skipped: Vec<_> = skip
        .map(|one| {
            assert!(
                one["reason"]
                    .as_str()
                    .is_some_and(|reason| !reason.is_empty())
            );
            let (name, version) = one["crate"].as_str().unwrap().split_once('@').unwrap();
            (name.to_owned(), version.to_owned())
        })
        .collect();
    let not_built = NOT_BUILT.iter();
    skipped.extend(not_built.map(|(name, version)| ((*name).into(), (*version).into())));
    skipped
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
fn fits(terms: &str, allowed: &[String]) -> bool {
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
        None => allowed.iter().any(|one| one == terms.trim()),
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
        assert_eq!(fits(terms, &allowed()), fine, "{terms}");
    }
}

#[test]
fn every_package_has_terms_that_are_allowed_and_comes_from_the_registry() {
    let found = metadata();
    let allowed = allowed();
    for package in found["packages"].as_array().unwrap() {
        let (name, terms) = (
            &package["name"],
            package["license"].as_str().unwrap_or_default(),
        );
        assert!(fits(terms, &allowed), "{name}: `{terms}` is not allowed");
        let source = package["source"].as_str();
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        assert!(
            source.is_none_or(|source| source == registry),
            "{name}: {source:?}"
        );
    }
    let tools = ALLOWED_TOOLS.iter().map(|terms| (*terms).to_owned());
    let of_tools: Vec<String> = allowed.iter().cloned().chain(tools).collect();
    for (name, package) in lock() {
        let terms = package["license"].as_str().unwrap_or_default();
        let is_shipped = IN_PAGES.contains(&name.as_str());
        let allowed = if is_shipped { &allowed } else { &of_tools };
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
    let skipped = skipped();
    let skips = |name: &str, version: &str| {
        let is_of = |prefix: &str| {
            let rest = version.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        { skipped.iter() }.any(|(of, prefix)| of == name && is_of(prefix))
    };
    let mut used = 0;
    for (name, all) in &versions {
        let (old, kept): (Vec<&str>, Vec<&str>) = all.iter().partition(|one| skips(name, one));
        assert!(kept.len() <= 1, "{name} is there twice: {all:?}");
        assert!(
            old.is_empty() || !kept.is_empty(),
            "{name} is there once: {all:?}"
        );
        used += old.len();
    }
    assert_eq!(used, skipped.len(), "deny.toml skips what is not there");
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
