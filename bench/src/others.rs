//! One short command in the sandboxes that other tools bring.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::install::{self, Registry};
use crate::one::bare;
use crate::server::Server;
use crate::table::{Row, Samples, Unit, not_measured};
use crate::{Effort, Result, programs};

/// Runs before the first that counts.
const WARM_UP: usize = 2;

/// What one turn leaves to be done is not charged to the next.
const PAUSE: Duration = Duration::from_millis(50);

/// They take a hundred times as long as what else is measured.
const SHARE: usize = 10;

const SPAWN: &str = "bare `true`";
const OURS: &str = "`weighlock run -q -- true`";

/// A tool with a command for running others in its sandbox.
struct Tool {
    name: &'static str,
    package: &'static str,
    program: &'static str,
    args: &'static [&'static str],
    /// What it wants of Debian: a program and its package.
    needs: &'static [(&'static str, &'static str)],
}

const TOOLS: [Tool; 2] = [
    Tool {
        name: "codex's `codex sandbox -- true`",
        package: "@openai/codex",
        program: "codex",
        args: &["sandbox", "--", "true"],
        needs: &[],
    },
    Tool {
        name: "sandbox-runtime's `srt true`",
        package: "@anthropic-ai/sandbox-runtime",
        program: "srt",
        args: &["true"],
        needs: &[
            ("bwrap", "bubblewrap"),
            ("rg", "ripgrep"),
            ("socat", "socat"),
        ],
    },
];

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let server = Server::start("")?;
    let cache = install::cache()?;
    let mut ours = server.command_line();
    ours.args(["run", "-q", "--", "true"]);
    let mut turns = vec![(SPAWN, Command::new("true")), (OURS, ours)];
    for tool in &TOOLS {
        match tool.command(&cache) {
            Ok(command) => turns.push((tool.name, command)),
            Err(error) => not_measured(tool.name, error),
        }
    }
    let rounds = (effort.runs / SHARE).max(SHARE);
    let measured = take_turns(&mut turns, rounds)?;
    let spawn = &measured[0].1;
    let row = |(name, times): &(&str, Samples)| {
        Row::new(*name, Unit::Millis, times).against("bare true", spawn)
    };
    Ok(measured.iter().map(row).collect())
}

/// Measures all of them by turns. A tool of others that fails is left out from
/// then on; the rest goes on.
fn take_turns(
    turns: &mut [(&'static str, Command)],
    rounds: usize,
) -> Result<Vec<(&'static str, Samples)>> {
    let mut samples: Vec<Option<Samples>> =
        turns.iter().map(|_| Some(Samples::default())).collect();
    for round in 0..WARM_UP + rounds {
        for ((name, command), own) in turns.iter_mut().zip(&mut samples) {
            let Some(times) = own else {
                continue;
            };
            std::thread::sleep(PAUSE);
            let began = Instant::now();
            match bare(command) {
                Ok(()) if round >= WARM_UP => times.push_millis(began.elapsed()),
                Ok(()) => {}
                Err(error) if [SPAWN, OURS].contains(name) => return Err(error),
                Err(error) => {
                    not_measured(name, error);
                    *own = None;
                }
            }
        }
    }
    let measured = turns.iter().zip(samples);
    let measured = measured.filter_map(|((name, _), times)| Some((*name, times?)));
    Ok(measured.collect())
}

impl Tool {
    /// Installs it, and tries it once.
    fn command(&self, cache: &Path) -> Result<Command> {
        for (program, package) in self.needs {
            if !programs::install(program, "--version", package) {
                return Err(format!("there is no {program}").into());
            }
        }
        let dir = cache.join(self.program);
        let program = Registry::Npm.install(&dir, self.package, self.program)?;
        // A home of its own, and not below /tmp, where codex puts no helpers.
        let home = dir.join("home");
        std::fs::create_dir_all(&home)?;
        let mut command = Command::new(program);
        command.args(self.args).env("HOME", &home).current_dir(home);
        bare(&mut command)?;
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::rows_not_measured;

    #[test]
    fn a_tool_that_refuses_its_directory_does_not_end_the_rest() {
        let mut turns = [
            (SPAWN, Command::new("true")),
            ("a tool that refuses", Command::new("false")),
            ("a tool that is gone", Command::new("/nonexistent/tool")),
            ("a tool that works", Command::new("true")),
        ];
        let measured = take_turns(&mut turns, 1).expect("the rest is measured");
        let names: Vec<&str> = measured.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, [SPAWN, "a tool that works"]);
        assert_eq!(rows_not_measured().len(), 2);
        // Without what all is held against, there is nothing to say.
        assert!(take_turns(&mut [(SPAWN, Command::new("false"))], 1).is_err());
    }
}
