//! `weighlock draft`: changes that nobody has decided about, session by
//! session.

use std::path::PathBuf;
use std::process::ExitCode;

use weighlock_engine::{Draft, Run};
use weighlock_server::{DraftList, RunList, Settle, SettleDraft};

use super::commit;
use super::diff::{self, DiffForm};
use super::discard::{NAMED, confirm};
use crate::client::{Client, Failure, block_on};
use crate::effect::{self, ChangesUrls};
use crate::names::SandboxNames;
use crate::ourselves;
use crate::paths::Paths;
use crate::term::{self, say};
use crate::text::{command_line, counted, one_line, print_json, safe};
use crate::when::minute;

/// Show, apply or discard undecided changes of a session
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock draft                            list them, by session
  weighlock draft show                       all of a session's as one
  weighlock draft diff
  weighlock draft commit                     apply them, in order; a terminal is asked
  weighlock draft discard -m 'Not like this.'
  weighlock draft export > work.patch
  weighlock draft -s webshop commit          of the latest session there")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<DraftCommand>,
    /// The latest session in this sandbox
    #[arg(short, long, value_name = "NAME", global = true)]
    sandbox: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum DraftCommand {
    /// List undecided changes by session
    #[command(before_help = "Examples:
  weighlock draft list
  weighlock draft list -s webshop
  weighlock draft list --json")]
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show which files a session's draft changes
    #[command(before_help = "Examples:
  weighlock draft show                       of the only session
  weighlock draft show s_7f3kq2
  weighlock draft show -s webshop            of the latest session there
  weighlock draft show --json                with the hash that `draft commit` takes")]
    Show {
        #[command(flatten)]
        of: DraftSession,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show a session's draft line by line
    #[command(before_help = "Examples:
  weighlock draft diff
  weighlock draft diff s_7f3kq2 --stat       only which files, and how much
  weighlock draft diff --patch | git apply")]
    Diff {
        #[command(flatten)]
        of: DraftSession,
        #[command(flatten)]
        form: DiffForm,
    },
    /// Apply a session's whole draft, in order
    #[command(before_help = "Examples:
  weighlock draft commit                     shows it, and asks
  weighlock draft commit s_7f3kq2
  weighlock draft show --json                in a script: look, and then
  weighlock draft commit --hash H            apply exactly what was looked at
  weighlock draft commit --yes               apply it whatever it is")]
    Commit {
        #[command(flatten)]
        of: DraftSession,
        /// Apply only if the draft still has this hash, from `weighlock draft
        /// show --json`
        #[arg(long, value_name = "H")]
        hash: Option<String>,
        /// Do not ask for confirmation; without a terminal, this or --hash is
        /// required
        #[arg(long)]
        yes: bool,
        /// Print the runs as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Discard a session's whole draft
    #[command(before_help = "Examples:
  weighlock draft discard
  weighlock draft discard s_7f3kq2 -m 'Not like this.'    what the requester is told
  weighlock draft discard --yes                           without being asked")]
    Discard {
        #[command(flatten)]
        of: DraftSession,
        /// The reason, which the requester sees verbatim
        #[arg(short = 'm', long = "message", value_name = "WHY")]
        why: Option<String>,
        /// Do not ask for confirmation; required without a terminal
        #[arg(long)]
        yes: bool,
        /// Print the runs as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Write a session's draft as a patch in git's format
    #[command(before_help = "Examples:
  weighlock draft export > work.patch
  weighlock draft export s_7f3kq2 -o work.patch
  weighlock draft export | git apply")]
    Export {
        #[command(flatten)]
        of: DraftSession,
        /// Write to this file [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(clap::Args)]
struct DraftSession {
    /// The session: an id, or a unique prefix or suffix of one [default: the
    /// only one, or the latest of --sandbox]
    session: Option<String>,
}

pub(crate) fn draft(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let what = args.what.unwrap_or(DraftCommand::List { json: args.json });
    if matches!(
        what,
        DraftCommand::Commit { .. } | DraftCommand::Discard { .. }
    ) {
        ourselves::may_decide()?;
    }
    block_on(async {
        let mut client = Client::open(paths).await?;
        let names = SandboxNames::fetch(&mut client).await?;
        let sandbox = args.sandbox.as_deref().map(|name| names.id(name));
        let drafts: DraftList = client.get("/drafts").await?;
        let find = |of: &DraftSession| find(&drafts, of.session.as_deref(), sandbox);
        match what {
            DraftCommand::List { json } => list(drafts, sandbox, &names, json),
            DraftCommand::Show { of, json } => {
                let place = ChangesUrls::of_draft(&find(&of)?.session_id);
                let info = place.fetch(&mut client, usize::MAX).await?;
                match json {
                    true => print_json(&info),
                    false => diff::stat(&info),
                }
            }
            DraftCommand::Diff { of, form } => {
                let place = ChangesUrls::of_draft(&find(&of)?.session_id);
                return diff::print(&mut client, &place, &form).await;
            }
            DraftCommand::Commit {
                of,
                hash,
                yes,
                json,
            } => {
                let draft = find(&of)?;
                // Whoever names exactly what they mean has seen it.
                let asks = !yes && hash.is_none();
                if asks && !term::is_there() {
                    return Err(unseen(draft));
                }
                let seen = match asks {
                    true => seen(&mut client, draft).await?,
                    false => hash,
                };
                if asks && seen.is_none() {
                    say!("Nothing was applied.");
                    return Ok(ExitCode::FAILURE);
                }
                let settle = SettleDraft {
                    changes: Settle::Commit,
                    hash: seen,
                    reason: None,
                };
                // A person may have thought for longer than a connection lasts.
                let mut client = Client::open(paths).await?;
                let done = settled(&mut client, draft, &settle).await?;
                match json {
                    true => print_json(&done),
                    false => done.commands.iter().for_each(commit::say_applied),
                }
                let left = |run: &Run| !effect::is(run, "applied");
                return Ok(ExitCode::from(u8::from(done.commands.iter().any(left))));
            }
            DraftCommand::Discard { of, why, yes, json } => {
                let draft = find(&of)?;
                if !yes && !agreed(draft).await? {
                    say!("Nothing was discarded.");
                    return Ok(ExitCode::FAILURE);
                }
                let settle = SettleDraft {
                    changes: Settle::Discard,
                    hash: None,
                    reason: why,
                };
                let mut client = Client::open(paths).await?;
                let done = settled(&mut client, draft, &settle).await?;
                match json {
                    true => print_json(&done),
                    false => { done.commands.iter() }
                        .for_each(|run| eprintln!("⊘ discarded  {}", run.short_id)),
                }
            }
            DraftCommand::Export { of, output } => {
                let place = ChangesUrls::of_draft(&find(&of)?.session_id);
                let patch = place.patch(&mut client).await?;
                return diff::write_patch(&patch, output.as_deref());
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn settled(
    client: &mut Client,
    draft: &Draft,
    settle: &SettleDraft,
) -> Result<RunList, Failure> {
    let path = format!("/sessions/{}/draft", draft.session_id);
    client.post(&path, settle).await
}

/// Finds the draft that is meant.
fn find<'a>(
    drafts: &'a DraftList,
    named: Option<&str>,
    sandbox: Option<&str>,
) -> Result<&'a Draft, Failure> {
    let is_there =
        |draft: &&Draft| sandbox.is_none_or(|id| draft.sandbox_id.as_deref() == Some(id));
    let is_meant = |draft: &&Draft| named.is_none_or(|named| is_called(&draft.session_id, named));
    let mut found: Vec<&Draft> = { drafts.drafts.iter() }
        .filter(is_there)
        .filter(is_meant)
        .collect();
    found.sort_by_key(|draft| draft.runs.last().map(|run| run.command_id.as_str()));
    let latest = found.pop();
    match (
        latest,
        found.is_empty() || sandbox.is_some() && named.is_none(),
    ) {
        (Some(draft), true) => Ok(draft),
        (Some(_), false) => Err(Failure::new(
            format!(
                "{} have undecided changes; nothing was done",
                counted(found.len() as u64 + 1, "session")
            ),
            "name one of those that `weighlock draft` lists, or a sandbox with -s",
        )),
        (None, _) => Err(Failure::new(
            "there are no undecided changes there",
            "`weighlock draft` lists all undecided changes",
        )),
    }
}

fn is_called(session: &str, named: &str) -> bool {
    let bare = named.strip_prefix("s_").unwrap_or(named);
    !bare.is_empty() && (session.starts_with(named) || session.ends_with(bare))
}

fn list(mut drafts: DraftList, sandbox: Option<&str>, names: &SandboxNames, json: bool) {
    let is_there = |draft: &Draft| sandbox.is_none_or(|id| draft.sandbox_id.as_deref() == Some(id));
    drafts.drafts.retain(is_there);
    if json {
        return print_json(&drafts);
    }
    if drafts.drafts.is_empty() {
        println!("Nothing is undecided.");
    }
    for draft in &drafts.drafts {
        println!(
            "{}  {} in {}",
            draft.session_id,
            one_line(&draft.requested_by, 30),
            one_line(names.of(draft.sandbox_id.as_deref().unwrap_or("?")), 30),
        );
        for run in &draft.runs {
            let question = match &run.approval_id {
                Some(_) => "waits for approval".to_owned(),
                None => format!("kept until {}", minute(&run.kept_until)),
            };
            println!(
                "  {:<10} {}, {question}",
                run.short_id,
                safe(&run.changes.summary)
            );
            println!("  {:<10} {}", "", command_line(&run.command, 100));
        }
    }
}

/// Shows all that would be applied, and asks; returns what names exactly that,
/// if the answer is yes.
async fn seen(client: &mut Client, draft: &Draft) -> Result<Option<String>, Failure> {
    let place = ChangesUrls::of_draft(&draft.session_id);
    let info = place.fetch(client, NAMED).await?;
    let links = place.links(client, &info).await?;
    tell(draft);
    say!("{}", safe(&info.view.summary));
    effect::lines(&info, &links, NAMED)
        .iter()
        .for_each(|line| say!("  {line}"));
    let runs = counted(draft.runs.len() as u64, "run");
    let yes = confirm(&format!("apply the changes of {runs}?")).await?;
    Ok(Some(info.view.hash).filter(|_| yes))
}

/// A draft grows while its session goes on, so that without a person who is
/// shown it, nothing says what was meant.
fn unseen(draft: &Draft) -> Failure {
    let runs = counted(draft.runs.len() as u64, "run");
    Failure::new(
        format!("the changes of {runs} would be applied, and nobody has seen them; nothing was"),
        "to apply what `weighlock draft show --json` tells, add --hash H; whatever it is, --yes",
    )
}

/// Says what goes, and asks where somebody can be asked.
async fn agreed(draft: &Draft) -> Result<bool, Failure> {
    let runs = counted(draft.runs.len() as u64, "run");
    if !term::is_there() {
        return Err(Failure::new(
            format!("the changes of {runs} would be discarded; nothing was"),
            "to discard them, add --yes",
        ));
    }
    tell(draft);
    confirm(&format!("discard the changes of {runs}?")).await
}

/// Says which runs a draft is made of.
fn tell(draft: &Draft) {
    for run in &draft.runs {
        say!("  {:<10} {}", run.short_id, safe(&run.changes.summary));
        say!("  {:<10} {}", "", command_line(&run.command, 100));
    }
}
