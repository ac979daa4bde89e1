//! `weighlock diff`: what a run changed, line by line.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use weighlock_engine::{ChangesInfo, FileDiff};

use super::show::resolve;
use crate::client::{Client, Failure, block_on};
use crate::effect::{self, ChangesUrls, Links, Paint, unified};
use crate::paths::Paths;
use crate::progress::ProgressLine;
use crate::text::{counted, print_json, safe};

/// Show what a run changed, applied or not
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock diff @last
  weighlock diff r_7f3kq2 --stat             only which files, and how much
  weighlock diff r_7f3kq2 --patch > fix.patch
  weighlock diff r_7f3kq2 --patch | git apply
  weighlock diff r_7f3kq2 --json")]
pub(crate) struct Args {
    /// The run: an id, a unique prefix of one, or @last
    id: String,
    #[command(flatten)]
    form: DiffForm,
}

/// How changes are shown.
#[derive(clap::Args)]
pub(crate) struct DiffForm {
    /// Only list the files and how much they change
    #[arg(long, conflicts_with = "patch")]
    stat: bool,
    /// Print the exact bytes, for `git apply`
    #[arg(long, conflicts_with = "json")]
    patch: bool,
    /// Show likely secrets, too
    #[arg(long)]
    reveal: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn diff(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    block_on(async {
        let mut client = Client::open(paths).await?;
        let id = resolve(&mut client, &args.id).await?;
        print(&mut client, &ChangesUrls::of_run(&id), &args.form).await
    })
}

/// Everything about changes.
#[derive(Serialize)]
struct WholeDiff {
    #[serde(flatten)]
    info: ChangesInfo,
    diffs: Vec<FileDiff>,
}

/// Prints changes in the form that was asked for.
pub(crate) async fn print(
    client: &mut Client,
    place: &ChangesUrls,
    form: &DiffForm,
) -> Result<ExitCode, Failure> {
    if form.patch {
        return write_patch(&place.patch(client).await?, None);
    }
    // What is printed as it comes needs no line beside it.
    let streams = !form.json && !form.stat && std::io::stdout().is_terminal();
    let mut progress = ProgressLine::new(!streams);
    let listing = place.fetch(client, usize::MAX);
    let info = progress.during("listing files", listing).await?;
    let of = counted(info.changes.len() as u64, "file");
    match (form.json, form.stat) {
        (true, true) => {
            drop(progress);
            print_json(&info);
        }
        (false, true) => {
            drop(progress);
            stat(&info);
        }
        (true, false) => {
            let mut diffs = vec![];
            for (at, change) in info.changes.iter().enumerate() {
                let diff = place.diff(client, change, form.reveal);
                diffs.push(progress.during(&format!("{at} of {of}"), diff).await?);
            }
            drop(progress);
            print_json(&WholeDiff { info, diffs });
        }
        (false, false) => {
            let paint = Paint::on(&std::io::stdout());
            for (at, change) in info.changes.iter().enumerate() {
                let diff = place.diff(client, change, form.reveal);
                let diff = progress.during(&format!("{at} of {of}"), diff).await?;
                for (style, line) in unified(&diff) {
                    println!("{}", paint.line(style, &line));
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints which files change.
pub(crate) fn stat(info: &ChangesInfo) {
    for line in effect::lines(info, &Links::default(), usize::MAX) {
        println!("{line}");
    }
    println!("{}", safe(&info.view.summary));
}

/// Writes a patch as it is, to a file or to standard output.
pub(crate) fn write_patch(patch: &[u8], to: Option<&Path>) -> Result<ExitCode, Failure> {
    let written = match to {
        Some(file) => std::fs::write(file, patch),
        None => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(patch).and_then(|()| stdout.flush())
        }
    };
    written.map_err(|error| Failure::new(format!("cannot write the patch: {error}"), ""))?;
    Ok(ExitCode::SUCCESS)
}
