//! `weighlock people`: who may ask, and who may decide.

mod print;
mod token;

use std::process::ExitCode;

use weighlock_engine::{NewPerson, PersonPatch, PersonView, Role};
use weighlock_server::{PauseRequest, PeopleList};

use crate::client::{Client, Failure, block_on, escape};
use crate::names::SandboxNames;
use crate::ourselves;
use crate::paths::Paths;
use crate::text::print_json;

/// Show, add and change people and agents, and their tokens
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock people list
  weighlock people add coder --agent --sandbox webshop
  weighlock people add maria --role approver --sandbox notes --uid 1001
  weighlock people token coder --label laptop --expires 30d
  weighlock people rotate coder wl_1a2b3c --overlap 1h
  weighlock people edit maria --off")]
pub(crate) struct Args {
    #[command(subcommand)]
    deed: Option<PeopleCommand>,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum PeopleCommand {
    /// List people and agents
    List,
    /// Add a person or an agent; an agent gets its first token
    #[command(before_help = "Examples:
  weighlock people add coder --agent --sandbox webshop
  weighlock people add maria --role approver --sandbox notes --uid 1001")]
    Add(AddPerson),
    /// Show a person or an agent, with their tokens
    Show { name: String },
    /// Change only the given options; a list replaces the old one
    #[command(before_help = "Examples:
  weighlock people edit maria --role operator --everywhere
  weighlock people edit coder --off")]
    Edit(EditPerson),
    /// Create a token
    Token(token::AddToken),
    /// Rotate a token: replace it with a new one
    Rotate(token::Rotate),
    /// Revoke a token, at once
    Revoke(token::Revoke),
    /// Pause: hold new runs of a person or an agent
    Pause {
        name: String,
        /// Why
        #[arg(short = 'm', long = "message", value_name = "WHY")]
        why: Option<String>,
    },
    /// Resume runs of a person or an agent
    Resume { name: String },
}

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
struct AddPerson {
    /// Small letters, digits, `.`, `-` and `_`
    name: String,
    /// Add an agent: it runs commands and never approves
    #[arg(long, conflicts_with = "uid", group = "what")]
    agent: bool,
    /// Add a person with this role: viewer, approver, operator or administrator
    #[arg(long, value_parser = role, group = "what")]
    role: Option<Role>,
    /// Their user id (uid) on this machine
    #[arg(long, value_name = "N")]
    uid: Option<u32>,
    /// A sandbox where the role applies; may be given several times, and the
    /// first is their default [default: everywhere]
    #[arg(short, long = "sandbox", value_name = "NAME")]
    sandboxes: Vec<String>,
    /// Their default sandbox
    #[arg(long, value_name = "NAME")]
    default_sandbox: Option<String>,
}

#[derive(clap::Args)]
struct EditPerson {
    name: String,
    /// Their role
    #[arg(long, value_parser = role)]
    role: Option<Role>,
    /// A sandbox where the role applies; may be given several times
    #[arg(short, long = "sandbox", value_name = "NAME")]
    sandboxes: Vec<String>,
    /// The role applies everywhere
    #[arg(long, conflicts_with = "sandboxes")]
    everywhere: bool,
    /// Their default sandbox; empty for none
    #[arg(long, value_name = "NAME")]
    default_sandbox: Option<String>,
    /// Deactivate: tokens and sign-ins stop working
    #[arg(long, conflicts_with = "on")]
    off: bool,
    /// Activate again
    #[arg(long)]
    on: bool,
}

fn role(word: &str) -> Result<Role, String> {
    let read = serde_json::from_value(word.into());
    read.map_err(|_| "write viewer, approver, operator or administrator".into())
}

pub(crate) fn people(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let json = args.json;
    let deed = match args.deed.unwrap_or(PeopleCommand::List) {
        PeopleCommand::Pause { name, why } => {
            let request = PauseRequest {
                principal: Some(name),
                reason: why,
            };
            return super::pause::hold(&request, json, paths);
        }
        PeopleCommand::Resume { name } => return super::resume::go_on(Some(name), json, paths),
        deed => deed,
    };
    if !matches!(deed, PeopleCommand::List | PeopleCommand::Show { .. }) {
        ourselves::may_decide()?;
    }
    block_on(async {
        let mut client = Client::open(paths).await?;
        match deed {
            PeopleCommand::Add(add) => self::add(&mut client, add, json).await?,
            PeopleCommand::Edit(edit) => {
                let changed = change(&mut client, edit).await?;
                shown(&mut client, &changed, json).await?;
            }
            PeopleCommand::Show { name } => {
                let person = fetch(&mut client, &name).await?;
                shown(&mut client, &person, json).await?;
            }
            PeopleCommand::Token(deed) => token::make(&mut client, deed, json).await?,
            PeopleCommand::Rotate(deed) => token::rotate(&mut client, deed, json).await?,
            PeopleCommand::Revoke(deed) => token::revoke(&mut client, &deed).await?,
            PeopleCommand::List | PeopleCommand::Pause { .. } | PeopleCommand::Resume { .. } => {
                list(&mut client, json).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn list(client: &mut Client, json: bool) -> Result<(), Failure> {
    let list: PeopleList = client.get("/people").await?;
    match json {
        true => print_json(&list),
        false => print::table(&list.people, &SandboxNames::fetch(client).await?),
    }
    Ok(())
}

async fn shown(client: &mut Client, person: &PersonView, json: bool) -> Result<(), Failure> {
    match json {
        true => print_json(person),
        false => print::whole(person, &SandboxNames::fetch(client).await?),
    }
    Ok(())
}

async fn add(client: &mut Client, add: AddPerson, json: bool) -> Result<(), Failure> {
    let role = add.role.filter(|_| !add.agent).unwrap_or(Role::Agent);
    let first = add.sandboxes.first().cloned();
    let new = NewPerson {
        principal_id: add.name,
        role,
        uid: add.uid,
        default_sandbox: add.default_sandbox.or(first),
        sandboxes: Some(add.sandboxes).filter(|named| !named.is_empty()),
    };
    let added: PersonView = client.post("/people", &new).await?;
    if role == Role::Agent {
        let names = SandboxNames::fetch(client).await?;
        return token::first(client, &added, &names, json).await;
    }
    shown(client, &added, json).await
}

async fn change(client: &mut Client, edit: EditPerson) -> Result<PersonView, Failure> {
    let patch = PersonPatch {
        role: edit.role,
        is_active: (edit.on || edit.off).then_some(edit.on),
        sandboxes: Some(edit.sandboxes).filter(|named| !named.is_empty()),
        everywhere: edit.everywhere,
        default_sandbox: edit.default_sandbox,
    };
    let person = fetch(client, &edit.name).await?;
    client
        .patch(&address(&edit.name), person.version, &patch)
        .await
}

async fn fetch(client: &mut Client, name: &str) -> Result<PersonView, Failure> {
    client.get(&address(name)).await
}

fn address(name: &str) -> String {
    format!("/people/{}", escape(name))
}
