//! A build: thousands of files are read and written, and the processor is busy.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Copies, DIRECT, PAUSE, bare, order, walled};
use crate::server::Server;
use crate::table::{Goal, Row, Samples, Unit};
use crate::{Effort, Result};

/// Crates that the program consists of, and functions in each: some seconds.
const PARTS: usize = 6;
const FUNCTIONS: usize = 120;

/// Not counted: the first pays for files that the others find in memory.
const WARM_UP: usize = 1;

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let Some(tools) = toolchain() else {
        eprintln!("effects: a build is not measured: there is no `rustc`");
        return Ok(vec![]);
    };
    let shown = std::slice::from_ref(&tools);
    let direct = Server::start_showing(DIRECT, shown)?;
    let mut walls = direct.connect()?;
    let mut copies = Copies::of(Server::start_showing("", shown)?)?;
    let (beside, below) = (direct.base(), copies.server.base());
    write(&beside, &tools)?;
    write(&below, &tools)?;
    let build = format!("'{}/bin/cargo' build --offline --quiet", tools.display());
    let by_hand = format!("CARGO_HOME='{0}/.home' {build}", beside.display());
    let mut samples: [Samples; 4] = Default::default();
    for round in 0..WARM_UP + effort.floods {
        for turn in order::<3>(round) {
            std::thread::sleep(PAUSE);
            let took = match turn {
                0 => vec![(0, bare(&beside, &by_hand)?)],
                1 => vec![(1, walled(&mut walls, &build)?)],
                _ => {
                    let held = copies.preview(&build, None)?;
                    copies.discard(&held)?;
                    vec![(2, held.lasted()?), (3, held.took)]
                }
            };
            if turn < 2 {
                fs::remove_dir_all(beside.join("target"))?;
            }
            if round >= WARM_UP {
                took.iter()
                    .for_each(|(row, t)| samples[*row].push_millis(*t));
            }
        }
    }
    let [bare, walls, copy, asked] = &samples;
    let row = |what, samples| Row::new(what, Unit::Millis, samples);
    Ok(vec![
        row("`cargo build` of 7 crates, bare", bare),
        row("the same behind walls, no copy", walls).against("bare", bare),
        row("the same on a copy", copy)
            .against("walls", walls)
            .goal(Goal::AtMost(1.1)),
        row("  until its changes are asked about", asked)
            .against("walls", walls)
            .goal(Goal::AtMost(1.1)),
    ])
}

/// Finds the compiler itself: what chooses one of several needs more of a home
/// directory than walls show.
fn toolchain() -> Option<PathBuf> {
    let said = Command::new("rustc").args(["--print", "sysroot"]).output();
    let path = PathBuf::from(String::from_utf8(said.ok()?.stdout).ok()?.trim());
    path.join("bin/cargo").exists().then_some(path)
}

fn write(dir: &Path, tools: &Path) -> Result<()> {
    fs::create_dir_all(dir.join(".cargo"))?;
    let rustc = tools.join("bin/rustc");
    let config = format!("[build]\nrustc = {:?}\n", rustc.to_string_lossy());
    fs::write(dir.join(".cargo/config.toml"), config)?;
    let mut needed = String::new();
    let mut calls = String::new();
    for part in 0..PARTS {
        let at = dir.join(format!("part{part}"));
        manifest(&at, &format!("part{part}"), "")?;
        fs::write(at.join("src/lib.rs"), code())?;
        needed += &format!("part{part} = {{ path = \"part{part}\" }}\n");
        calls += &format!("    println!(\"{{}}\", part{part}::f0(1));\n");
    }
    manifest(dir, "whole", &needed)?;
    fs::write(
        dir.join("src/main.rs"),
        format!("fn main() {{\n{calls}}}\n"),
    )?;
    Ok(())
}

fn manifest(dir: &Path, name: &str, needs: &str) -> Result<()> {
    fs::create_dir_all(dir.join("src"))?;
    let text = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n\
         [dependencies]\n{needs}"
    );
    Ok(fs::write(dir.join("Cargo.toml"), text)?)
}

fn code() -> String {
    let function = |number: usize| {
        format!(
            "pub fn f{number}(n: u64) -> String {{\n    \
             let all: Vec<String> = (0..n).map(|i| format!(\"{{i}} {number}\")).collect();\n    \
             let by: std::collections::BTreeMap<_, _> = all.iter().enumerate().collect();\n    \
             format!(\"{{by:?}}\")\n}}\n"
        )
    };
    (0..FUNCTIONS).map(function).collect()
}
