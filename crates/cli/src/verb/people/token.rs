//! Tokens, by which agents and people are known who are not at this machine.

use std::time::Duration;

use serde_json::json;
use weighlock_engine::{NewToken, PersonView};
use weighlock_server::{RotateRequest, TokenRequest};

use super::address;
use super::print::rights;
use crate::client::{Client, Failure, escape};
use crate::names::SandboxNames;
use crate::text::{self, one_line, print_json, safe};
use crate::when;

#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock people token coder --label laptop --expires 30d")]
pub(super) struct AddToken {
    name: String,
    /// What it is for
    #[arg(long)]
    label: Option<String>,
    /// Time until it expires: 30d [default: never]
    #[arg(long, value_name = "TIME", value_parser = text::parse_patience)]
    expires: Option<Duration>,
}

#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock people rotate coder wl_1a2b3c
  weighlock people rotate coder wl_1a2b3c --overlap 0")]
pub(super) struct Rotate {
    name: String,
    /// The token: its id or its beginning, from `weighlock people show NAME`
    token: String,
    /// How long the old token stays valid
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = text::parse_patience)]
    overlap: Duration,
}

#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock people revoke coder wl_1a2b3c")]
pub(super) struct Revoke {
    name: String,
    /// The token: its id or its beginning, from `weighlock people show NAME`
    token: String,
}

/// Makes an agent's first token.
pub(super) async fn first(
    client: &mut Client,
    agent: &PersonView,
    names: &SandboxNames,
    json: bool,
) -> Result<(), Failure> {
    let path = format!("{}/tokens", address(&agent.principal_id));
    let made: NewToken = client.post(&path, &TokenRequest::default()).await?;
    if json {
        print_json(&json!({ "person": agent, "token": made }));
        return Ok(());
    }
    eprintln!(
        "Added {}, {}.",
        one_line(&agent.principal_id, 64),
        rights(agent, names)
    );
    print(&made);
    if agent.default_sandbox.is_none() {
        eprintln!(
            "It has to name a sandbox in each request: --sandbox NAME makes one the default."
        );
    }
    Ok(())
}

pub(super) async fn make(client: &mut Client, asked: AddToken, json: bool) -> Result<(), Failure> {
    let request = TokenRequest {
        label: asked.label,
        expires_in_seconds: asked.expires.map(|time| time.as_secs()),
    };
    let path = format!("{}/tokens", address(&asked.name));
    show(&client.post(&path, &request).await?, json);
    Ok(())
}

pub(super) async fn rotate(client: &mut Client, asked: Rotate, json: bool) -> Result<(), Failure> {
    let request = RotateRequest {
        overlap_seconds: Some(asked.overlap.as_secs()),
    };
    let path = format!("{}/rotate", of(&asked.name, &asked.token));
    show(&client.post(&path, &request).await?, json);
    if !json {
        let left = text::duration(asked.overlap.as_millis() as f64);
        eprintln!("The old one counts for {left} more.");
    }
    Ok(())
}

pub(super) async fn revoke(client: &mut Client, asked: &Revoke) -> Result<(), Failure> {
    client.remove(&of(&asked.name, &asked.token)).await?;
    eprintln!(
        "Revoked: {}. It counts no more.",
        one_line(&asked.token, 40)
    );
    Ok(())
}

fn of(name: &str, token: &str) -> String {
    format!("{}/tokens/{}", address(name), escape(token))
}

fn show(made: &NewToken, json: bool) {
    match json {
        true => print_json(made),
        false => print(made),
    }
}

/// The secret alone is the result; what is said about it is not.
fn print(made: &NewToken) {
    println!("{}", made.token);
    let ends = made.info.expires_at.as_deref();
    let ends = ends.map_or_else(String::new, |time| format!(", until {}", when::exact(time)));
    eprintln!(
        "You will not see it again. ({}{ends}; for programs in WEIGHLOCK_TOKEN)",
        safe(&made.info.token_id)
    );
}
