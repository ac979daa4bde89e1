//! What is allowed beforehand.

use std::process::ExitCode;
use std::time::Duration;

use weighlock_engine::GrantView;
use weighlock_server::NewGrant;

use crate::client::{Client, Failure, block_on, escape};
use crate::names::SandboxNames;
use crate::ourselves;
use crate::paths::Paths;
use crate::text::{self, command_line, one_line, safe};

#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock policy grant 'npm test'                for 8 hours
  weighlock policy grant 'git commit *' --agent coder --sandbox webshop
  weighlock policy grant 'cargo build' --until revoked")]
pub(super) struct AddGrant {
    /// A pattern as in a rule's `auto =`: 'npm test', 'git commit *'
    pattern: String,
    /// Only for this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only in this sandbox
    #[arg(short, long, value_name = "NAME")]
    sandbox: Option<String>,
    /// How long: 30m, 8h, 7d; or "revoked", until you revoke it
    #[arg(long, value_name = "TIME", default_value = "8h", value_parser = parse_until)]
    until: GrantExpiry,
}

/// How long a grant holds; none is until it is taken back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GrantExpiry(Option<Duration>);

pub(crate) fn parse_until(text: &str) -> Result<GrantExpiry, String> {
    match text.trim() {
        "revoked" => Ok(GrantExpiry(None)),
        text => match text::parse_patience(text)? {
            time if time < Duration::from_secs(1) => Err("that is over at once".into()),
            time => Ok(GrantExpiry(Some(time))),
        },
    }
}

impl GrantExpiry {
    /// Returns when that is, in seconds since 1970.
    pub(crate) fn ends_at(self) -> Option<i64> {
        let seconds = i64::try_from(self.0?.as_secs()).unwrap_or(i64::MAX / 2);
        Some(jiff::Timestamp::now().as_second().saturating_add(seconds))
    }
}

/// Allows commands beforehand.
pub(super) fn give(grant: AddGrant, json: bool, paths: &Paths) -> Result<ExitCode, Failure> {
    ourselves::may_decide()?;
    let new = NewGrant {
        pattern: grant.pattern,
        agent: grant.agent,
        sandbox: grant.sandbox,
        session: None,
        until: grant.until.ends_at(),
    };
    let (given, names): (GrantView, SandboxNames) = block_on(async {
        let mut client = Client::open(paths).await?;
        let given = client.post("/policies/grants", &new).await?;
        Ok((given, SandboxNames::fetch(&mut client).await?))
    })?;
    if json {
        text::print_json(&given);
    } else {
        print(&[given], &names);
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists what is allowed beforehand.
pub(super) fn list(json: bool, paths: &Paths) -> Result<ExitCode, Failure> {
    let (grants, names): (Vec<GrantView>, SandboxNames) = block_on(async {
        let mut client = Client::open(paths).await?;
        let grants = client.get("/policies/grants").await?;
        Ok((grants, SandboxNames::fetch(&mut client).await?))
    })?;
    if json {
        text::print_json(&grants);
    } else {
        print(&grants, &names);
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes a grant back.
pub(super) fn revoke(id: &str, paths: &Paths) -> Result<ExitCode, Failure> {
    ourselves::may_decide()?;
    block_on(async {
        let mut client = Client::open(paths).await?;
        let path = format!("/policies/grants/{}", escape(id));
        client.remove(&path).await
    })?;
    eprintln!("Taken back: {}", safe(id));
    Ok(ExitCode::SUCCESS)
}

/// Prints one line for each.
pub(super) fn print(grants: &[GrantView], names: &SandboxNames) {
    if grants.is_empty() {
        println!("  nothing");
    }
    for grant in grants {
        println!("  {}", in_words(grant, names));
    }
}

/// `g_7f3kq2  npm test   for coder in webshop, until 2026-01-15 18:00, by uid:0`
fn in_words(grant: &GrantView, names: &SandboxNames) -> String {
    let agent = grant.agent.as_deref().map_or("everyone".into(), safe);
    let place = grant.sandbox.as_deref().map_or("anywhere".into(), |name| {
        format!("in {}", one_line(names.of(name), 30))
    });
    let until = match grant.until {
        None => "until it is taken back".into(),
        Some(time) if time <= jiff::Timestamp::now().as_second() => "over".into(),
        Some(time) => format!("until {}", clock(time)),
    };
    format!(
        "{}  {}   for {agent} {place}, {until}, by {}",
        grant.id,
        command_line(&grant.pattern, 60),
        one_line(&grant.by, 30)
    )
}

fn clock(seconds: i64) -> String {
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => {
            let here = time.to_zoned(jiff::tz::TimeZone::system());
            here.strftime("%Y-%m-%d %H:%M").to_string()
        }
        Err(_) => "the end of time".into(),
    }
}
