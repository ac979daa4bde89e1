//! `weighlock man`: manual pages, made from what `--help` says.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::client::Failure;

/// Print the manual page, or write those of all commands
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock man | man -l -
  weighlock man --dir ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Write a page for each command into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn man(args: &Args) -> Result<ExitCode, Failure> {
    let mut command = crate::Cli::command();
    command.build();
    let done = match &args.dir {
        Some(dir) => fs::create_dir_all(dir).and_then(|()| write_all(&command, dir)),
        None => page(&command).and_then(|page| io::stdout().write_all(&page)),
    };
    done.map_err(|error| Failure::new(format!("cannot write manual pages: {error}"), ""))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of a command and of those below it.
fn write_all(command: &Command, dir: &Path) -> io::Result<()> {
    fs::write(dir.join(format!("{}.1", name(command))), page(command)?)?;
    let mut below = command.get_subcommands();
    below.try_for_each(|below| match below.is_hide_set() || is_help(below) {
        true => Ok(()),
        false => write_all(below, dir),
    })
}

/// `weighlock-term-open` for `weighlock term open`.
fn name(command: &Command) -> String {
    let name = command.get_display_name().unwrap_or(command.get_name());
    name.to_owned()
}

/// Clap's own, which every command with others below it has.
fn is_help(command: &Command) -> bool {
    command.get_name() == "help"
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone()).title(name(command).to_uppercase());
    let mut page = vec![];
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    if let Some(examples) = command.get_before_help() {
        page.extend(shown(&examples.to_string()).into_bytes());
    }
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    Ok(page)
}

/// Examples as they stand in `--help`, in the language of manual pages.
fn shown(examples: &str) -> String {
    let mut section = String::from(".SH EXAMPLES\n.nf\n");
    for line in examples.lines().filter(|line| *line != "Examples:") {
        // A line that begins with a dot or a quote would be an order.
        section += "\\&";
        section += &line
            .replace('\\', "\\e")
            .replace('-', "\\-")
            .replace('\'', "\\(aq");
        section.push('\n');
    }
    section + ".fi\n"
}
