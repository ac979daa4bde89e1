//! Builds the pages with npm and lists what came of it.
//!
//! Cargo starts this when a source of theirs has changed, and only then. What
//! is built goes to cargo's own directory, so that nothing of it is ever
//! committed. Where there is no npm, a page says so instead.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, error};

use flate2::Compression;
use flate2::write::GzEncoder;

/// What the pages are made of, below `ui/`. Nothing that is made there may be
/// among it, or they would be built each time.
const SOURCES: [&str; 7] = [
    "index.html",
    "package.json",
    "package-lock.json",
    "public",
    "src",
    "tsconfig.json",
    "vite.config.ts",
];

/// Set to anything, it leaves the pages out: for machines without a network.
const WITHOUT: &str = "WEIGHLOCK_WITHOUT_UI";

type Done = Result<(), Box<dyn error::Error>>;

fn main() -> Done {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = here.join("../..").canonicalize()?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let (ui, pages) = (root.join("ui"), out.join("pages"));
    for source in SOURCES {
        println!("cargo:rerun-if-changed={}", ui.join(source).display());
    }
    println!("cargo:rerun-if-env-changed={WITHOUT}");
    let _ = fs::remove_dir_all(&pages);
    fs::create_dir_all(&pages)?;
    match without() {
        None => build(&ui, &pages)?,
        Some(why) => {
            println!("cargo:warning=the web pages are left out: {why}");
            fs::write(pages.join("index.html"), instead(why))?;
        }
    }
    list(&pages, &out)
}

/// Returns why the pages cannot be built, if they cannot.
fn without() -> Option<&'static str> {
    if env::var_os(WITHOUT).is_some() {
        return Some("WEIGHLOCK_WITHOUT_UI is set");
    }
    let npm = Command::new("npm").arg("--version").output();
    npm.is_err().then_some("npm was not found")
}

fn build(ui: &Path, pages: &Path) -> Done {
    let lock = fs::metadata(ui.join("package-lock.json"))?.modified()?;
    let installed = fs::metadata(ui.join("node_modules/.package-lock.json"));
    if !installed.is_ok_and(|has| has.modified().is_ok_and(|at| at >= lock)) {
        npm(ui, &["ci", "--no-audit", "--no-fund"])?;
    }
    let out = pages.display().to_string();
    npm(
        ui,
        &["run", "build", "--", "--outDir", &out, "--emptyOutDir"],
    )
}

fn npm(ui: &Path, args: &[&str]) -> Done {
    let done = Command::new("npm").args(args).current_dir(ui).output()?;
    if done.status.success() {
        return Ok(());
    }
    io::stderr().write_all(&done.stdout)?;
    io::stderr().write_all(&done.stderr)?;
    let what = args.join(" ");
    Err(format!("`npm {what}` failed in ui/; {WITHOUT}=1 builds without the pages").into())
}

/// The page for who opens a program that has none.
fn instead(why: &str) -> String {
    format!(
        "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>weighlock</title>
<h1>This program was built without its web pages</h1>
<p>When it was built, {why}. Install Node.js 20.19 or newer with npm and build it again:
<code>cargo build --release</code>. Everything else works: the command line, REST and MCP.</p>
</html>
"
    )
}

/// Writes down every file, compressed, as the source of a table.
fn list(pages: &Path, out: &Path) -> Done {
    let mut table = String::from("&[\n");
    let mut dirs = vec![pages.to_owned()];
    let mut files = vec![];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            match path.is_dir() {
                true => dirs.push(path),
                false => files.push(path),
            }
        }
    }
    files.sort();
    let (smaller, files): (Vec<_>, Vec<_>) =
        { files.into_iter() }.partition(|file| file.extension().is_some_and(|end| end == "br"));
    for file in files {
        let name = file.strip_prefix(pages)?.display().to_string();
        let brotli = PathBuf::from(format!("{}.br", file.display()));
        let brotli = match smaller.contains(&brotli) {
            true => format!("Some(include_bytes!({brotli:?}))"),
            false => "None".to_owned(),
        };
        let packed = out.join(format!("{}.gz", name.replace('/', "-")));
        let mut pack = GzEncoder::new(fs::File::create(&packed)?, Compression::best());
        pack.write_all(&fs::read(&file)?)?;
        pack.finish()?;
        writeln!(
            table,
            "    File {{ path: {name:?}, gzip: include_bytes!({packed:?}), brotli: {brotli} }},"
        )?;
    }
    table.push(']');
    fs::write(out.join("files.rs"), table)?;
    Ok(())
}
