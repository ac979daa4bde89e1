//! `weighlock policy`: the rules in force, rule files, and what is allowed
//! beforehand.

mod file;
mod grants;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weighlock_engine::{
    Explanation, LoadError, PolicyView, RuleInForce, check_rules, rules_schema,
};
use weighlock_server::ExplainRequest;

use crate::client::{Client, Failure, block_on};
use crate::given;
use crate::judged::{label, mark};
use crate::names::SandboxNames;
use crate::paths::Paths;
use crate::text::{self, one_line, safe};
pub(crate) use grants::{GrantExpiry, parse_until};

/// Show and change rules, check rule files, always allow commands
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock policy show
  weighlock policy test rules.toml                 syntax and examples; exit 1 if wrong
  weighlock policy check draft.toml -- npm test    what would change for a command
  weighlock policy edit -m 'no force pushes'       in your editor; shows what would change
  weighlock policy log                             what the rules were before
  weighlock policy back 14
  weighlock policy grant 'npm test' --until 8h
  weighlock policy revoke g_7f3kq2")]
pub(crate) struct Args {
    #[command(subcommand)]
    deed: PolicyCommand,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum PolicyCommand {
    /// Show presets, rules, agents and grants
    #[command(before_help = "Examples:
  weighlock policy show
  weighlock policy show --json")]
    Show,
    /// Check rule files: what they say, and their examples
    #[command(before_help = "Examples:
  weighlock policy test rules.toml
  weighlock policy test rules/*.toml --json        for CI; exit 1 if one is wrong")]
    Test {
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Check a draft; with a command, show what the draft would change for it
    #[command(before_help = "Examples:
  weighlock policy check draft.toml
  weighlock policy check draft.toml -- npm test    by the rules in force, and by the draft
  weighlock policy check draft.toml -- 'make | tee log'    one word is shell text")]
    Check {
        file: PathBuf,
        /// A command to judge with the rules in force and with the draft
        #[arg(last = true, value_name = "CMD")]
        command: Vec<OsString>,
    },
    /// Edit the rules, and compare them on past commands
    Edit(file::EditPolicy),
    /// List versions of the rules, or print one
    Log(file::PolicyLog),
    /// Restore an earlier version of the rules
    Back(file::RestorePolicy),
    /// Print the JSON schema of rule files, for editors
    #[command(before_help = "Examples:
  weighlock policy schema > rules.schema.json")]
    Schema,
    /// Always allow commands that match a pattern
    Grant(grants::AddGrant),
    /// List what is always allowed
    #[command(before_help = "Examples:
  weighlock policy grants
  weighlock policy grants --json")]
    Grants,
    /// Revoke a grant
    #[command(before_help = "Examples:
  weighlock policy grants                          lists them, with their ids
  weighlock policy revoke g_7f3kq2")]
    Revoke {
        /// The grant, from `policy grants`
        id: String,
    },
}

pub(crate) fn policy(args: Args, paths: Result<Paths, Failure>) -> Result<ExitCode, Failure> {
    match args.deed {
        PolicyCommand::Show => show(args.json, &paths?),
        PolicyCommand::Test { files } => test(&files, args.json),
        PolicyCommand::Check { file, command } => match command.is_empty() {
            true => test(&[file], args.json),
            false => compare(&file, &command, args.json, paths),
        },
        PolicyCommand::Edit(edit) => file::edit(edit, args.json, &paths?),
        PolicyCommand::Log(log) => file::log(log, args.json, &paths?),
        PolicyCommand::Back(back) => file::back(back, args.json, &paths?),
        PolicyCommand::Schema => {
            text::print_json(&rules_schema());
            Ok(ExitCode::SUCCESS)
        }
        PolicyCommand::Grant(grant) => grants::give(grant, args.json, &paths?),
        PolicyCommand::Grants => grants::list(args.json, &paths?),
        PolicyCommand::Revoke { id } => grants::revoke(&id, &paths?),
    }
}

fn show(json: bool, paths: &Paths) -> Result<ExitCode, Failure> {
    let (view, names): (PolicyView, SandboxNames) = block_on(async {
        let mut client = Client::open(paths).await?;
        let view = client.get("/policies").await?;
        Ok((view, SandboxNames::fetch(&mut client).await?))
    })?;
    if json {
        text::print_json(&view);
        return Ok(ExitCode::SUCCESS);
    }
    for broken in &view.broken {
        eprintln!("warning: {}", safe(broken));
    }
    println!("presets     {}", view.presets.join(", "));
    let file = view.rules_file.as_deref().map_or("none".into(), safe);
    println!("rule file   {file}");
    println!("agents      {}", listed(&view.agents));
    println!("\nRules, in their order; the strictest that matches decides:");
    for (at, RuleInForce { rule, .. }) in view.rules.iter().enumerate() {
        let line = format!(
            "{:>4}  {:<10}  {:<14}  {:<24}  {}",
            at + 1,
            one_line(&rule.layer, 10),
            label(rule.verdict),
            one_line(&rule.name, 24),
            one_line(&rule.about, 60)
        );
        println!("{}", line.trim_end());
    }
    println!("\nAllowed beforehand:");
    grants::print(&view.grants, &names);
    Ok(ExitCode::SUCCESS)
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "none".into(),
        names => safe(&names.join(", ")),
    }
}

/// Checks files as the server would read them.
fn test(files: &[PathBuf], json: bool) -> Result<ExitCode, Failure> {
    let mut all: Vec<LoadError> = vec![];
    for file in files {
        let name = file.display().to_string();
        let errors = check_rules(&name, &read(file)?).err().unwrap_or_default();
        if errors.is_empty() && !json {
            println!("{}: ok", safe(&name));
        }
        all.extend(errors);
    }
    if json {
        let errors: Vec<_> = { all.iter() }
            .map(|error| {
                serde_json::json!({ "file": error.file, "line": error.line,
                    "column": error.column, "message": error.message, "hint": error.hint })
            })
            .collect();
        text::print_json(&serde_json::json!({ "ok": all.is_empty(), "errors": errors }));
    } else {
        all.iter().for_each(print_error);
    }
    Ok(ExitCode::from(u8::from(!all.is_empty())))
}

fn print_error(error: &LoadError) {
    println!("{}", safe(&error.to_string()));
    if !error.hint.is_empty() {
        println!("  hint: {}", safe(&error.hint));
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| {
        Failure::new(
            format!("cannot read {}: {error}", file.display()),
            "name a rule file",
        )
    })
}

/// Judges a command by the rules in force, and with a draft in place of the
/// rule file.
fn compare(
    file: &Path,
    command: &[OsString],
    json: bool,
    paths: Result<Paths, Failure>,
) -> Result<ExitCode, Failure> {
    let draft = read(file)?;
    if check_rules("", &draft).is_err() {
        return test(&[file.to_owned()], json);
    }
    let now = ExplainRequest {
        command: given::command(command)?,
        cwd: Some(given::cwd(None)?),
        ..ExplainRequest::default()
    };
    let then = ExplainRequest {
        draft: Some(draft),
        ..now.clone()
    };
    let paths = paths?;
    let (now, then) = block_on(async {
        let mut client = Client::open(&paths).await?;
        let now: Explanation = client.post("/policies/explain", &now).await?;
        let then: Explanation = client.post("/policies/explain", &then).await?;
        Ok((now, then))
    })?;
    if json {
        text::print_json(&serde_json::json!({ "now": now, "draft": then }));
        return Ok(ExitCode::SUCCESS);
    }
    let said = |judged: &Explanation| format!("{} {}", mark(judged.verdict), label(judged.verdict));
    println!("now: {} → draft: {}", said(&now), said(&then));
    for (when, judged) in [("now", &now), ("draft", &then)] {
        for reason in &judged.reasons {
            println!(
                "  {when:<5}  {}   {} ({})",
                safe(&reason.text),
                safe(&reason.rule),
                safe(&reason.layer)
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}
