//! A rule file: changing it, what it was before, and going back.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use weighlock_engine::{Compared, ComparedCommand, PolicyText, RulesChecked, VersionView};
use weighlock_server::{BackRequest, RuleText, SaveRequest};

use crate::client::{Client, Failure, block_on, escape};
use crate::ourselves;
use crate::paths::Paths;
use crate::term::{self, prompt, say};
use crate::text::{self, command_line, counted, one_line, safe};
use crate::when;

/// How many commands of a list are shown; the pages show them all.
const SHOWN: usize = 5;

#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock policy edit                            the server's rules, in your editor
  weighlock policy edit sandbox.webshop -m 'no force pushes'
  weighlock policy edit --file rules.toml --yes    in a script: save without asking")]
pub(super) struct EditPolicy {
    /// Which rules: `server`, or `sandbox.NAME`
    #[arg(default_value = "server")]
    policy: String,
    /// Read the rules from a file instead of opening an editor
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The reason for the change
    #[arg(short = 'm', long, default_value = "")]
    note: String,
    /// Save without confirmation
    #[arg(long)]
    yes: bool,
    /// The confirmation phrase for rules that would allow everything
    #[arg(long, value_name = "WORDS")]
    phrase: Option<String>,
}

#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock policy log
  weighlock policy log 14                          what the rules were then
  weighlock policy log --policy sandbox.webshop")]
pub(super) struct PolicyLog {
    /// Print the text of this version
    version: Option<i64>,
    /// Which rules: `server`, or `sandbox.NAME`
    #[arg(long, default_value = "server")]
    policy: String,
}

#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock policy back 14
  weighlock policy back 3 --policy sandbox.webshop -m 'too strict'")]
pub(super) struct RestorePolicy {
    /// The version, from `policy log`
    version: i64,
    /// Which rules: `server`, or `sandbox.NAME`
    #[arg(long, default_value = "server")]
    policy: String,
    /// The reason for the change
    #[arg(short = 'm', long, default_value = "")]
    note: String,
}

/// Changes the rules, after a look at what that would have meant.
pub(super) fn edit(edit: EditPolicy, json: bool, paths: &Paths) -> Result<ExitCode, Failure> {
    ourselves::may_decide()?;
    if edit.file.is_none() && !term::is_there() {
        return Err(Failure::new(
            "there is no terminal for an editor; nothing was changed",
            "give the new text with --file FILE",
        ));
    }
    let path = place(&edit.policy);
    let before: PolicyText = block_on(async { Client::open(paths).await?.get(&path).await })?;
    let (draft, kept) = written(&edit, &before)?;
    if draft.text == before.text {
        say!("It says the same as before; nothing was changed.");
        return Ok(ExitCode::SUCCESS);
    }
    let (checked, compared) = block_on(async { looked_at(&path, &draft, paths).await })?;
    let Some(compared) = compared else {
        print_errors(&checked, kept.as_deref());
        return Ok(ExitCode::FAILURE);
    };
    print_compared(&compared);
    if !edit.yes && !agreed() {
        say!("Nothing was changed.{}", where_kept(kept.as_deref()));
        return Ok(ExitCode::FAILURE);
    }
    let save = SaveRequest {
        text: draft.text,
        note: edit.note,
        phrase: edit.phrase,
    };
    let saved = block_on(async {
        let mut client = Client::open(paths).await?;
        client.put_at(&path, before.etag, &save).await
    });
    let saved: PolicyText =
        saved.inspect_err(|_| say!("{}", where_kept(kept.as_deref()).trim()))?;
    forget(kept.as_deref());
    print_saved(&saved, json);
    Ok(ExitCode::SUCCESS)
}

/// Lists what the rules were, or prints one version.
pub(super) fn log(log: PolicyLog, json: bool, paths: &Paths) -> Result<ExitCode, Failure> {
    let before = log
        .version
        .map(|version| format!("&before={}", version.saturating_add(1)));
    let path = format!(
        "{}/versions?limit={}{}",
        place(&log.policy),
        if log.version.is_some() { 1 } else { 500 },
        before.unwrap_or_default()
    );
    let versions: Vec<VersionView> =
        block_on(async { Client::open(paths).await?.get(&path).await })?;
    if let Some(version) = log.version {
        let found = versions.iter().find(|found| found.version == version);
        let found = found.ok_or_else(|| {
            Failure::new(
                format!("there is no version {version}"),
                "`weighlock policy log` lists all versions",
            )
        })?;
        print!("{}", found.text);
        return Ok(ExitCode::SUCCESS);
    }
    if json {
        text::print_json(&versions);
        return Ok(ExitCode::SUCCESS);
    }
    if versions.is_empty() {
        say!("The rules were not changed through weighlock yet.");
    }
    for version in &versions {
        let line = format!(
            "{:>4}  {}  {:<12}  {}{}",
            version.version,
            when::minute(&version.created_at),
            one_line(version.author.as_deref().unwrap_or("—"), 12),
            one_line(&version.note, 60),
            if version.current { "  (now)" } else { "" },
        );
        println!("{}", line.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// Goes back to what the rules were.
pub(super) fn back(back: RestorePolicy, json: bool, paths: &Paths) -> Result<ExitCode, Failure> {
    ourselves::may_decide()?;
    let path = format!("{}/back", place(&back.policy));
    let request = BackRequest {
        version: back.version,
        note: back.note,
        phrase: None,
    };
    let saved: PolicyText =
        block_on(async { Client::open(paths).await?.post(&path, &request).await })?;
    print_saved(&saved, json);
    Ok(ExitCode::SUCCESS)
}

fn place(policy: &str) -> String {
    format!("/policies/{}", escape(policy))
}

/// Returns what a person has written, and the file that it is kept in.
fn written(edit: &EditPolicy, before: &PolicyText) -> Result<(RuleText, Option<PathBuf>), Failure> {
    if let Some(file) = &edit.file {
        let text = super::read(file)?;
        return Ok((RuleText { text }, None));
    }
    let failed = |error: std::io::Error| {
        Failure::new(
            format!("cannot write a draft: {error}; nothing was changed"),
            "give the new text with --file FILE",
        )
    };
    // Kept until it is saved: nobody should have to write it twice.
    let name = format!("weighlock-rules-{}.toml", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut options = std::fs::OpenOptions::new();
    let draft = options.write(true).create_new(true).mode(0o600).open(&path);
    let mut draft = draft.map_err(failed)?;
    draft.write_all(before.text.as_bytes()).map_err(failed)?;
    drop(draft);
    open_editor(&path)?;
    let text = super::read(&path)?;
    Ok((RuleText { text }, Some(path)))
}

/// Opens the person's own editor, which may be a command with options.
fn open_editor(file: &Path) -> Result<(), Failure> {
    let own = ["VISUAL", "EDITOR"].iter().find_map(std::env::var_os);
    let editor = own.unwrap_or_else(|| "vi".into());
    let ended = Command::new("/bin/sh")
        .arg("-c")
        .arg("exec $0 \"$1\"")
        .arg(&editor)
        .arg(file)
        .status();
    match ended {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Failure::new(
            format!(
                "the editor {} has failed; nothing was changed",
                safe(&editor.to_string_lossy())
            ),
            "name one that works in EDITOR, or give the text with --file FILE",
        )),
    }
}

/// Checks a draft, and compares it with the rules in force if nothing is wrong.
async fn looked_at(
    path: &str,
    draft: &RuleText,
    paths: &Paths,
) -> Result<(RulesChecked, Option<Compared>), Failure> {
    let mut client = Client::open(paths).await?;
    let checked: RulesChecked = client.post(&format!("{path}/check"), draft).await?;
    let compared = match checked.ok {
        true => Some(client.post(&format!("{path}/compare"), draft).await?),
        false => None,
    };
    Ok((checked, compared))
}

fn print_errors(checked: &RulesChecked, kept: Option<&Path>) {
    for error in &checked.errors {
        say!("{}:{}: {}", error.line, error.column, safe(&error.message));
        if !error.hint.is_empty() {
            say!("  hint: {}", safe(&error.hint));
        }
    }
    say!("Nothing was changed.{}", where_kept(kept));
}

fn where_kept(kept: Option<&Path>) -> String {
    kept.map_or_else(String::new, |kept| {
        format!(" Your text is in {}", safe(&kept.display().to_string()))
    })
}

fn forget(kept: Option<&Path>) {
    if let Some(kept) = kept {
        let _ = std::fs::remove_file(kept);
    }
}

fn print_compared(compared: &Compared) {
    say!(
        "Compared with the last {}: {} newly allowed, {} newly asked, {} newly blocked",
        counted(compared.looked_at as u64, "command"),
        compared.newly_allowed,
        compared.newly_asked,
        compared.newly_blocked,
    );
    let lists = [
        ("allowed", &compared.allowed),
        ("asked", &compared.asked),
        ("blocked", &compared.blocked),
    ];
    for (what, list) in lists {
        list.iter()
            .take(SHOWN)
            .for_each(|command| print_one(what, command));
    }
}

fn print_one(what: &str, command: &ComparedCommand) {
    let refused = match command.refused && what == "allowed" {
        true => "  (was refused once)",
        false => "",
    };
    let text = command_line(&command.newest.command, 50);
    say!("  {what:<8} {text}  ×{}{refused}", command.times);
}

/// Asks, where there is somebody to ask.
fn agreed() -> bool {
    if !term::is_there() {
        return true;
    }
    prompt("Save it? (y/n) ");
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    read.is_ok() && matches!(line.trim(), "y" | "yes")
}

fn print_saved(saved: &PolicyText, json: bool) {
    if json {
        return text::print_json(saved);
    }
    match saved.version {
        Some(version) => println!("Saved as version {version}."),
        None => println!("It says that already."),
    }
}
