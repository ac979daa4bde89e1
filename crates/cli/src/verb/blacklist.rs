//! `weighlock blacklist`: texts that no command may contain.

use std::process::ExitCode;

use serde_json::json;
use weighlock_engine::Blacklist;
use weighlock_server::BlacklistView;

use crate::client::{Client, Failure, block_on};
use crate::ourselves;
use crate::paths::Paths;
use crate::text;

/// Show or change the blacklist: texts that no command may contain
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock blacklist
  weighlock blacklist add 'drop table'
  weighlock blacklist remove 'format '")]
pub(crate) struct Args {
    #[command(subcommand)]
    deed: Option<BlacklistCommand>,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum BlacklistCommand {
    /// Add a text
    Add { entry: String },
    /// Remove a text
    Remove { entry: String },
    /// Go back to the built-in list
    Reset,
}

pub(crate) fn blacklist(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    if args.deed.is_some() {
        ourselves::may_decide()?;
    }
    block_on(async {
        let mut client = Client::open(paths).await?;
        let mut view: BlacklistView = client.get("/blacklist").await?;
        match args.deed {
            None => {}
            Some(BlacklistCommand::Reset) => view = client.delete("/blacklist").await?,
            Some(deed) => {
                let list = changed(&view, deed)?;
                let body = json!({ "commandBlacklist": list.entries() });
                view = client.put("/blacklist", &body).await?;
                eprintln!("Saved to {}.", text::safe(&view.path));
            }
        }
        if args.json {
            text::print_json(&view);
        } else {
            print(&view);
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn changed(view: &BlacklistView, deed: BlacklistCommand) -> Result<Blacklist, Failure> {
    let unchanged = |why: String| Failure::new(format!("{why}; the list was not changed"), "");
    if let Some(warning) = &view.warning {
        return Err(Failure::new(
            format!("{warning}; the file was not changed"),
            "fix it, or go back to the built-in list: weighlock blacklist reset",
        ));
    }
    // What does not count is no beginning for what will.
    let entries: &[String] = if view.in_force { &view.entries } else { &[] };
    let text = json!({ "commandBlacklist": entries }).to_string();
    let mut list = Blacklist::from_json(&text).map_err(|error| unchanged(error.to_string()))?;
    match deed {
        BlacklistCommand::Add { entry } => {
            list.add(&entry).map_err(|why| unchanged(why.to_string()))?
        }
        BlacklistCommand::Remove { entry } => {
            if !list.remove(&entry) {
                return Err(unchanged(format!("`{entry}` is not in the list")));
            }
        }
        BlacklistCommand::Reset => {}
    }
    Ok(list)
}

fn print(view: &BlacklistView) {
    if let Some(warning) = &view.warning {
        eprintln!("warning: {}", text::safe(warning));
    }
    let from = if view.from_file {
        text::safe(&view.path)
    } else {
        "built-in".into()
    };
    if view.in_force {
        eprintln!("A command that contains one of these is refused ({from}):");
    } else {
        eprintln!("Not in force: the built-in list counts with preset `blacklist` only.");
        eprintln!("`weighlock blacklist add TEXT` begins a list of your own, which always counts.");
    }
    for entry in &view.entries {
        // In quotes: a space at the end counts.
        println!("\"{}\"", text::safe(entry));
    }
}
