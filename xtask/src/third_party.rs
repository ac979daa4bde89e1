//! Whose work is in the program, with the terms word for word: most ask that
//! these go along with every copy.
//!
//! What is in it is the list that the pages show, which a test keeps current
//! (`cli/tests/it/licences.rs`). The texts are those in the packages' own
//! sources, where cargo and npm have put them to build.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::Result;

/// Name, version and terms of everything that the program is made of.
const LIST: &str = "ui/src/screens/settings/packages.json";

/// How files with terms are called, whatever follows.
const NAMES: [&str; 6] = [
    "licen",
    "copying",
    "copyright",
    "notice",
    "unlicense",
    "authors",
];

const RULE: &str =
    "================================================================================";

/// A package, and where its sources are if they are here.
struct Package {
    name: String,
    version: String,
    terms: String,
    home: String,
    dir: Option<PathBuf>,
}

/// Prints it.
pub(crate) fn main(words: Vec<String>) -> Result<ExitCode> {
    if !words.is_empty() {
        return Err(crate::USAGE.into());
    }
    let mut page = String::from(
        "weighlock is made with the work of others. Each package is named with its terms,\n\
         and the texts that it brings follow: each once, after all who bring the same.\n\
         Where there is a choice (OR), weighlock takes any that Apache-2.0 goes with.\n\
         Its own terms are in the file `copyright` beside this one, and those of Rust's\n\
         standard library, which is in every program, in `COPYRIGHT-library.html`.\n\n",
    );
    let ours = root().join("LICENSE");
    // By text, so that two hundred copies of one licence are one.
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages()? {
        let name = format!("{} {}", package.name, package.version);
        writeln!(page, "{name}: {} <{}>", package.terms, package.home)?;
        let mut found = match &package.dir {
            Some(dir) => found(dir)?,
            None => vec![],
        };
        if found.is_empty() {
            // Who brings none and offers our own terms is taken at that word.
            match &package.dir {
                Some(_) if package.terms.contains("Apache-2.0") => found.push(read(&ours)?),
                Some(dir) => return Err(format!("{name}: no terms in {}", dir.display()).into()),
                // Pages that are not built are not in the program, either.
                None => eprintln!("SKIPPED: the terms of {name}, whose sources are not here."),
            }
        }
        for text in found {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    for (text, mut of) in texts {
        of.dedup();
        write!(page, "\n{RULE}\n{}\n{RULE}\n\n{text}\n", of.join(", "))?;
    }
    print!("{page}");
    Ok(ExitCode::SUCCESS)
}

/// Everything on the list.
fn packages() -> Result<Vec<Package>> {
    let crates = crates()?;
    let list: Vec<Value> = serde_json::from_slice(&fs::read(root().join(LIST))?)?;
    let mut all = vec![];
    for one in list {
        let word = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        let (name, version) = (word("name"), word("version"));
        let (dir, home) = match crates.get(&(name.clone(), version.clone())) {
            Some((dir, home)) => (Some(dir.clone()), home.clone()),
            None => {
                let dir = root().join("ui/node_modules").join(&name);
                let home = format!("https://www.npmjs.com/package/{name}");
                (is_of(&dir, &version).then_some(dir), home)
            }
        };
        all.push(Package {
            terms: word("licence"),
            name,
            version,
            home,
            dir,
        });
    }
    Ok(all)
}

/// Where the sources of each crate are, and where it is at home.
fn crates() -> Result<BTreeMap<(String, String), (PathBuf, String)>> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let done = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        // As for the list: what only other systems need has not been fetched.
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root())
        .output()?;
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into());
    }
    let found: Value = serde_json::from_slice(&done.stdout)?;
    let all = found["packages"].as_array().into_iter().flatten();
    let all = all.filter_map(|one| {
        let (name, version) = (one["name"].as_str()?, one["version"].as_str()?);
        let dir = Path::new(one["manifest_path"].as_str()?).parent()?;
        let home = match one["repository"].as_str() {
            Some(home) => home.to_owned(),
            None => format!("https://crates.io/crates/{name}"),
        };
        Some((
            (name.to_owned(), version.to_owned()),
            (dir.to_owned(), home),
        ))
    });
    Ok(all.collect())
}

/// Whether a directory has this version of an npm package.
fn is_of(dir: &Path, version: &str) -> bool {
    let manifest = fs::read(dir.join("package.json")).unwrap_or_default();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap_or_default();
    manifest["version"] == version
}

/// The terms that a package brings.
fn found(dir: &Path) -> Result<Vec<String>> {
    let mut files = vec![];
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_lowercase();
        let page = [".html", ".rs"].iter().any(|end| name.ends_with(end));
        if path.is_file() && !page && NAMES.iter().any(|begin| name.starts_with(begin)) {
            files.push(path);
        }
    }
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(path: &Path) -> Result<String> {
    let text = fs::read(path)?;
    let text = String::from_utf8_lossy(&text).replace("\r\n", "\n");
    Ok(text.trim_matches('\n').trim_end().to_owned())
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
