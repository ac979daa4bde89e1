//! Packages of others, installed where they are in nobody's way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::{Result, machine};

/// Where a package comes from.
#[derive(Clone, Copy)]
pub(crate) enum Registry {
    Npm,
    PyPi,
}

impl Registry {
    /// Installs a package in a directory where it is missing; returns its
    /// program.
    pub(crate) fn install(self, dir: &Path, package: &str, program: &str) -> Result<PathBuf> {
        let program = match self {
            Self::Npm => dir.join("node_modules/.bin").join(program),
            Self::PyPi => dir.join("bin").join(program),
        };
        if !program.exists() {
            eprintln!("installing {package}");
            fs::create_dir_all(dir)?;
            match self {
                Self::Npm => npm(dir, package)?,
                Self::PyPi => pip(dir, package)?,
            }
        }
        machine::met(package, &self.version(dir, package).unwrap_or_default());
        Ok(program)
    }

    /// Returns which version is there.
    fn version(self, dir: &Path, package: &str) -> Option<String> {
        match self {
            Self::Npm => {
                let about = dir.join("node_modules").join(package).join("package.json");
                let about: Value = serde_json::from_slice(&fs::read(about).ok()?).ok()?;
                Some(about["version"].as_str()?.to_owned())
            }
            Self::PyPi => {
                let python = dir.join("bin/python");
                let ask = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))";
                machine::said(python.to_str()?, &["-c", ask, package])
            }
        }
    }
}

/// Below where this program was built, so that it goes away with that.
pub(crate) fn cache() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let built = program.parent().and_then(Path::parent);
    Ok(built.ok_or("this program is nowhere")?.join("peers"))
}

fn npm(dir: &Path, package: &str) -> Result<()> {
    // Of a part that reads spreadsheets not every registry has the version
    // that is asked for. No command needs it.
    let settings = json!({ "private": true, "overrides": { "typedarray.prototype.slice": ">=1" } });
    fs::write(dir.join("package.json"), settings.to_string())?;
    // What a package does when it is installed is to count that, or to fetch
    // programs that no command needs.
    let options = ["install", "--no-audit", "--no-fund", "--ignore-scripts"];
    run(Command::new("npm")
        .args(options)
        .arg("--prefix")
        .args([dir, Path::new(package)]))
}

fn pip(dir: &Path, package: &str) -> Result<()> {
    run(Command::new("python3").args(["-m", "venv"]).arg(dir))?;
    run(Command::new(dir.join("bin/pip")).args(["install", "--quiet", package]))
}

fn run(command: &mut Command) -> Result<()> {
    let done = command.stdin(Stdio::null()).output();
    let done =
        done.map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).trim().into()),
    }
}
