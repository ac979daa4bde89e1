//! `weighlock audit`: the record, and whether anybody changed it.

mod log;

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use weighlock_engine::{Fault, Store, Verified, verify_export};

use crate::client::Failure;
use crate::paths::Paths;

/// Read, verify or export the audit of everything that was requested and run
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock audit log --sandbox webshop --since 24h --kind run.started
  weighlock audit verify
  weighlock audit export -o audit.jsonl
  weighlock audit verify --file audit.jsonl      anywhere, without a server")]
pub(crate) struct Args {
    #[command(subcommand)]
    deed: AuditCommand,
}

#[derive(clap::Subcommand)]
enum AuditCommand {
    /// List audit entries: who did what, where and when
    Log(log::Args),
    /// Verify the audit chain and find the first entry, or row of a request,
    /// run, answer or change, that was edited, removed, reordered or cut off
    Verify {
        /// Verify an export instead of the store
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Export the whole audit as JSON Lines
    Export {
        /// The output file [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// The last two read the store directly: proof must not depend on a server's word.
pub(crate) fn audit(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    match args.deed {
        AuditCommand::Log(args) => log::log(&args, paths),
        AuditCommand::Verify { file, json } => verify(file, json, paths),
        AuditCommand::Export { output } => export(output, paths),
    }
}

fn verify(file: Option<PathBuf>, json: bool, paths: &Paths) -> Result<ExitCode, Failure> {
    let found = match file {
        Some(path) => {
            let cannot = |error: std::io::Error| {
                Failure::new(format!("cannot read {}: {error}", path.display()), "")
            };
            let file = File::open(&path).map_err(cannot)?;
            verify_export(BufReader::new(file)).map_err(cannot)?
        }
        None => open(paths)?
            .verify()
            .map_err(weighlock_engine::Error::from)?,
    };
    if json {
        crate::text::print_json(&found);
    } else {
        print(&found);
    }
    Ok(ExitCode::from(u8::from(found.fault.is_some())))
}

fn print(found: &Verified) {
    match &found.fault {
        None => {
            println!("✓ {} entries, chain ok, head {}", found.entries, found.head);
            if let Some(removed) = &found.removed {
                println!("  {}", removed.told());
            }
        }
        Some(Fault {
            seq,
            what,
            row: Some(row),
        }) => {
            println!("✗ row {row} is wrong: {what} (entry {seq})");
            println!("  all {} entries are right", found.entries);
        }
        Some(fault) => {
            println!("✗ entry {} is wrong: {}", fault.seq, fault.what);
            println!("  the {} entries before it are right", found.entries);
        }
    }
}

fn export(output: Option<PathBuf>, paths: &Paths) -> Result<ExitCode, Failure> {
    let store = open(paths)?;
    let write = |to: &mut dyn Write| -> Result<u64, Failure> {
        let mut to = BufWriter::new(to);
        let count = store
            .export(&mut to)
            .map_err(weighlock_engine::Error::from)?;
        to.flush()
            .map_err(|error| Failure::new(format!("cannot write the export: {error}"), ""))?;
        Ok(count)
    };
    let count = match output {
        None => write(&mut std::io::stdout().lock())?,
        Some(path) => {
            let mut file = File::create(&path).map_err(|error| {
                Failure::new(format!("cannot write {}: {error}", path.display()), "")
            })?;
            write(&mut file)?
        }
    };
    eprintln!("{count} entries exported");
    Ok(ExitCode::SUCCESS)
}

fn open(paths: &Paths) -> Result<Store, Failure> {
    Ok(Store::open_read_only(&paths.state_dir).map_err(weighlock_engine::Error::from)?)
}
