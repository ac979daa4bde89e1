//! `weighlock undo`: take back what runs have changed.

use std::cmp::Reverse;
use std::process::ExitCode;

use jiff::Timestamp;
use weighlock_engine::{ChangesView, Run};
use weighlock_server::{CommandView, RunList};

use super::show::resolve_here;
use crate::client::{Client, Failure, block_on};
use crate::paths::Paths;
use crate::text::{aligned, counted, one_line, print_json};
use crate::{effect, judged, ourselves};

/// Undo the changes of runs, the latest first
#[derive(clap::Args)]
#[command(
    before_help = "Examples:
  weighlock undo @last
  weighlock undo r_7f3kq2 r_9b20m1           both, the later one first",
    after_help = "Each undo is a run of its own, which can be undone too. If a file was changed \
since, nothing of that run is undone, and the files are listed. @last is refused if the last run \
was in another sandbox's directory than the current one."
)]
pub(crate) struct Args {
    /// The runs: ids, unique prefixes of ids, or @last
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Print the undo runs as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn undo(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    ourselves::may_decide()?;
    block_on(async {
        let mut client = Client::open(paths).await?;
        let mut done = RunList::default();
        let mut failed = None;
        for run in to_undo(&mut client, &args.ids).await? {
            let path = format!("/commands/{}/revert", run.command_id);
            let nothing = serde_json::json!({});
            match client.post::<CommandView>(&path, &nothing).await {
                Ok(view) if args.json => done.commands.push(view.run),
                Ok(view) => say_undone(&run, &view.run),
                Err(failure) => {
                    failed = Some(of(&run, failure));
                    break;
                }
            }
        }
        if args.json && (failed.is_none() || !done.commands.is_empty()) {
            print_json(&done);
        }
        failed.map_or(Ok(ExitCode::SUCCESS), Err)
    })
}

/// Finds the runs, the one that was applied last first. None is undone if one
/// of them cannot be.
async fn to_undo(client: &mut Client, ids: &[String]) -> Result<Vec<Run>, Failure> {
    let mut runs: Vec<Run> = vec![];
    for id in ids {
        let id = resolve_here(client, id).await?;
        let view: CommandView = client.get(&format!("/commands/{id}")).await?;
        if !effect::is(&view.run, "applied") {
            let id = &view.run.short_id;
            return Err(Failure::new(
                format!("run {id} has no applied changes; nothing was undone"),
                format!("`weighlock show {id}` shows its state"),
            ));
        }
        runs.push(view.run);
    }
    runs.sort_by_cached_key(|run| Reverse((moment(&run.updated_at), run.command_id.clone())));
    runs.dedup_by(|a, b| a.command_id == b.command_id);
    Ok(runs)
}

/// A moment that can be compared: in texts, zeros at the end are left out.
fn moment(time: &str) -> Option<Timestamp> {
    time.parse().ok()
}

fn say_undone(run: &Run, by: &Run) {
    let Some(changes) = &by.detail.changes else {
        return;
    };
    let said = format!("✓ undone · {}, {}", run.short_id, taken_back(changes));
    let width = judged::width(std::io::stderr());
    eprintln!("{}", aligned(&said, &by.short_id, width));
    for path in &changes.paths {
        eprintln!("  {}", one_line(path, usize::MAX));
    }
    let more = changes.count().saturating_sub(changes.paths.len() as u64);
    if more > 0 {
        eprintln!("  … and {more} more: weighlock diff {}", by.short_id);
    }
}

/// `3 files restored, 2 removed`
fn taken_back(changes: &ChangesView) -> String {
    let deeds = [
        (
            changes.created + changes.modified + changes.other,
            "restored",
        ),
        (changes.deleted, "removed"),
        (changes.renamed, "renamed back"),
    ];
    let mut deeds = deeds.into_iter().filter(|(count, _)| *count > 0);
    let Some((count, deed)) = deeds.next() else {
        return "times of modification restored".into();
    };
    let mut said = vec![format!("{} {deed}", counted(count, "file"))];
    said.extend(deeds.map(|(count, deed)| format!("{count} {deed}")));
    said.join(", ")
}

/// Says which run it was that could not be undone.
fn of(run: &Run, failure: Failure) -> Failure {
    let what = failure.what.trim_end_matches("; nothing was applied");
    Failure {
        what: format!("{} was not undone: {what}", run.short_id),
        hint: match failure.code() {
            Some("conflict") => format!(
                "`weighlock diff {}` shows what it changed; what was undone before it stays so",
                run.short_id
            ),
            _ => failure.hint.clone(),
        },
        ..failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_a_second_is_before_eleven_hundredths() {
        let (earlier, later) = ("2026-01-01T00:00:00.1Z", "2026-01-01T00:00:00.11Z");
        assert!(earlier > later, "as texts");
        assert!(moment(earlier) < moment(later));
    }
}
