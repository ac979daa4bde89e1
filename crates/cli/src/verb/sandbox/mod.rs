//! `weighlock sandbox`: directories that commands may use, and how they are
//! guarded.

mod guard;
mod print;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use weighlock_engine::{Checks, SandboxInfo, SandboxPatch};
use weighlock_server::{CommandList, SandboxList};

use crate::client::{Client, Failure, block_on, escape};
use crate::ourselves;
use crate::paths::Paths;
use crate::term::prompt;
use crate::text::{one_line, print_json};
use guard::GuardOptions;

/// Show, add and change sandboxes
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock sandbox list
  weighlock sandbox add webshop /srv/webshop --agent coder
  weighlock sandbox edit webshop --network on --memory-mib 2048
  weighlock sandbox off webshop          keep everything, take no new runs")]
pub(crate) struct Args {
    #[command(subcommand)]
    deed: Option<SandboxCommand>,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum SandboxCommand {
    /// List all sandboxes
    List,
    /// Show a sandbox, and how this machine protects it
    Show { name: String },
    /// Add a directory as a sandbox
    #[command(before_help = "Examples:
  weighlock sandbox add webshop /srv/webshop
  weighlock sandbox add notes ~/notes --files read --agent researcher")]
    Add {
        /// Letters, digits, `-` and `_`
        name: String,
        /// An existing directory below an allowed root
        directory: PathBuf,
        #[command(flatten)]
        options: GuardOptions,
    },
    /// Change only the given options; a list replaces the old one
    #[command(before_help = "Examples:
  weighlock sandbox edit webshop --network on
  weighlock sandbox edit webshop --name shop --agent coder --agent writer")]
    Edit {
        name: String,
        /// A new name
        #[arg(long = "name", value_name = "NAME")]
        new_name: Option<String>,
        #[command(flatten)]
        options: GuardOptions,
    },
    /// Deactivate: refuse new runs
    Off { name: String },
    /// Activate again: accept new runs
    On { name: String },
    /// Delete a sandbox; its runs stay on record, its directory is not touched
    Rm {
        name: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

pub(crate) fn sandbox(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let deed = args.deed.unwrap_or(SandboxCommand::List);
    if !matches!(deed, SandboxCommand::List | SandboxCommand::Show { .. }) {
        ourselves::may_decide()?;
    }
    block_on(async {
        let mut client = Client::open(paths).await?;
        match deed {
            SandboxCommand::List => list(&mut client, args.json).await?,
            SandboxCommand::Show { name } => show(&mut client, &name, args.json).await?,
            SandboxCommand::Rm { name, yes } => remove(&mut client, &name, yes).await?,
            SandboxCommand::Add {
                name,
                directory,
                options,
            } => told(
                &add(&mut client, name, directory, options).await?,
                args.json,
            ),
            SandboxCommand::Edit {
                name,
                new_name,
                options,
            } => {
                let patch = options.patch(new_name)?;
                told(&change(&mut client, &name, &patch).await?, args.json);
            }
            SandboxCommand::Off { name } => {
                told(
                    &change(&mut client, &name, &active(false)).await?,
                    args.json,
                );
            }
            SandboxCommand::On { name } => {
                told(&change(&mut client, &name, &active(true)).await?, args.json);
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn told(info: &SandboxInfo, json: bool) {
    match json {
        true => print_json(info),
        false => print::table(std::slice::from_ref(info)),
    }
}

async fn list(client: &mut Client, json: bool) -> Result<(), Failure> {
    let list: SandboxList = client.get("/sandboxes").await?;
    match json {
        true => print_json(&list),
        false => print::table(&list.sandboxes),
    }
    Ok(())
}

async fn show(client: &mut Client, name: &str, json: bool) -> Result<(), Failure> {
    let info = fetch(client, name).await?;
    if json {
        print_json(&info);
        return Ok(());
    }
    print::whole(&info);
    let path = format!("{}/protection", address(&info.sandbox_id));
    let checks: Checks = client.get(&path).await?;
    print::protection(&checks);
    Ok(())
}

async fn change(
    client: &mut Client,
    name: &str,
    patch: &SandboxPatch,
) -> Result<SandboxInfo, Failure> {
    let info = fetch(client, name).await?;
    client
        .patch(&address(&info.sandbox_id), info.version, patch)
        .await
}

async fn add(
    client: &mut Client,
    name: String,
    directory: PathBuf,
    options: GuardOptions,
) -> Result<SandboxInfo, Failure> {
    let directory = std::path::absolute(&directory).ok();
    let directory = directory.as_ref().and_then(|directory| directory.to_str());
    let path = directory.ok_or_else(|| {
        Failure::new(
            "the directory's name cannot be used; nothing was changed",
            "",
        )
    })?;
    let new = json!({ "label": name, "path": path, "owner_principal_id": options.owner(),
                      "guard": options.guard()? });
    client.post("/sandboxes", &new).await
}

fn active(is_active: bool) -> SandboxPatch {
    SandboxPatch {
        is_active: Some(is_active),
        ..SandboxPatch::default()
    }
}

async fn remove(client: &mut Client, name: &str, yes: bool) -> Result<(), Failure> {
    let info = fetch(client, name).await?;
    let path = format!("/commands?limit=1&sandbox={}", escape(&info.sandbox_id));
    let used = !client.get::<CommandList>(&path).await?.commands.is_empty();
    if used && !yes {
        confirm(&info.label)?;
    }
    client
        .remove_at(&address(&info.sandbox_id), info.version)
        .await?;
    eprintln!(
        "Removed: {}. The directory is not touched.",
        one_line(&info.label, 64)
    );
    Ok(())
}

/// Asks the person to type the name before a sandbox that has runs is removed.
fn confirm(name: &str) -> Result<(), Failure> {
    let hint = "`weighlock sandbox off` keeps it; `--yes` removes it without asking";
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(
            "the sandbox has runs; nothing was changed",
            hint,
        ));
    }
    prompt(&format!(
        "Its runs stay in the audit. The directory is not touched.\nType {name} to remove it: "
    ));
    let mut typed = String::new();
    let _ = std::io::stdin().read_line(&mut typed);
    match typed.trim() == name {
        true => Ok(()),
        false => Err(Failure::new(
            "that is not its name; nothing was changed",
            hint,
        )),
    }
}

async fn fetch(client: &mut Client, name: &str) -> Result<SandboxInfo, Failure> {
    client.get(&address(name)).await
}

fn address(name: &str) -> String {
    format!("/sandboxes/{}", escape(name))
}
