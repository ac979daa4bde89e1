//! `weighlock backup`: a copy of everything that is on record, and whether it
//! is whole.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weighlock_engine::{BackupView, verify_backup};
use weighlock_server::NewBackup;

use crate::client::{Client, Failure, block_on};
use crate::paths::Paths;
use crate::text;

/// Back up the state directory, or verify a backup
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    before_help = "Examples:
  weighlock backup /mnt/backup/weighlock-monday   a new directory, while the server runs
  weighlock backup                                beside the database, before an upgrade
  weighlock --socket /run/weighlock/weighlock.sock backup /var/backups/weighlock/monday
  weighlock backup verify /mnt/backup/weighlock-monday
  weighlock restore /mnt/backup/weighlock-monday  into an empty state directory"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    deed: Option<BackupCommand>,
    /// A new or empty directory that no command can see [default: backups/TIME
    /// in the state directory]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum BackupCommand {
    /// Verify every file, the database and the audit of a backup, without a
    /// server
    Verify {
        /// The backup
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// The hash that `weighlock backup` printed
        #[arg(long, value_name = "HASH")]
        sha256: Option<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn backup(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    match args.deed {
        None => make(args.directory, args.json, paths),
        Some(BackupCommand::Verify {
            directory,
            sha256,
            json,
        }) => verify(&directory, sha256.as_deref(), json),
    }
}

fn make(directory: Option<PathBuf>, json: bool, paths: &Paths) -> Result<ExitCode, Failure> {
    let absolute = |dir: PathBuf| {
        std::path::absolute(&dir)
            .map_err(|error| Failure::new(format!("cannot use {}: {error}", dir.display()), ""))
    };
    let own = directory.is_none();
    let new = NewBackup {
        directory: directory.map(absolute).transpose()?,
    };
    let made: BackupView = block_on(async {
        Client::open_running(paths)
            .await?
            .post("/backups", &new)
            .await
    })?;
    if json {
        text::print_json(&made);
        return Ok(ExitCode::SUCCESS);
    }
    println!("✓ {}", text::safe(&made.directory));
    println!(
        "  {}, {}, {}",
        format_args!("{} audit entries", made.entries),
        text::counted(made.files, "file"),
        text::size(made.bytes)
    );
    println!("  sha256 {}", made.sha256);
    if made.undecided > 0 {
        let undecided = text::counted(made.undecided, "undecided change");
        println!("  not in it: {undecided} (`weighlock draft`)");
    }
    if own {
        eprintln!("on the same disk as the original: copy it elsewhere, with rsync say");
    }
    Ok(ExitCode::SUCCESS)
}

fn verify(directory: &Path, sha256: Option<&str>, json: bool) -> Result<ExitCode, Failure> {
    let found = verify_backup(directory, sha256)?;
    if json {
        text::print_json(&found);
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "✓ {} of {}: {} audit entries, chain ok, {}, {}",
        text::safe(&directory.display().to_string()),
        found.made_at,
        found.entries,
        text::counted(found.files, "file"),
        text::size(found.bytes)
    );
    println!("  sha256 {}", found.sha256);
    if sha256.is_none() {
        eprintln!(
            "whole in itself; whether it is the one that was made, the hash tells that was kept \
             elsewhere: --sha256 HASH"
        );
    }
    Ok(ExitCode::SUCCESS)
}
