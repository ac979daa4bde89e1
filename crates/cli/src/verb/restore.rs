//! `weighlock restore`: puts a backup back.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::client::{Failure, block_on};
use crate::ourselves;
use crate::paths::Paths;
use crate::text;

/// Restore a backup into an empty state directory, after verifying it
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock restore /mnt/backup/weighlock-monday
  weighlock restore DIR --sha256 HASH            only if it is the very one
  weighlock restore DIR --state-dir /tmp/drill   look whether it works, elsewhere

What ran or waited when the backup was made is settled as lost or withdrawn: nothing runs
twice. Nobody stays signed in. Tokens that were revoked since the backup count again.")]
pub(crate) struct Args {
    /// The backup
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The hash that `weighlock backup` printed
    #[arg(long, value_name = "HASH")]
    sha256: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn restore(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    ourselves::may_decide()?;
    let by = format!("uid {}", rustix::process::geteuid().as_raw());
    let put = block_on(async {
        let put = weighlock_engine::restore_backup(
            &args.directory,
            &paths.state_dir,
            args.sha256.as_deref(),
            &by,
        );
        Ok(put.await?)
    })?;
    if args.json {
        text::print_json(&put);
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "✓ restored to {}: {} audit entries of {}, chain ok, {}",
        text::safe(&paths.state_dir.display().to_string()),
        put.backup.entries,
        put.backup.made_at,
        text::counted(put.backup.files, "file")
    );
    for (count, what) in [
        (put.lost, "run that was under way is lost"),
        (put.withdrawn, "run that waited is withdrawn"),
        (put.discarded, "undecided change is discarded"),
    ] {
        if count > 0 {
            println!("  {count} × {what}");
        }
    }
    eprintln!(
        "tokens that were revoked since then count again: `weighlock --state-dir {} people`; \
         settings and rules are in {}, for you to compare",
        text::safe(&paths.state_dir.display().to_string()),
        text::safe(&args.directory.join("settings").display().to_string())
    );
    Ok(ExitCode::SUCCESS)
}
