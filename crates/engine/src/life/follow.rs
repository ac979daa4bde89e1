//! The end of a run: waiting for it, and recording it whatever happens.

use std::sync::Arc;

use serde_json::json;
use weighlock_exec::{self as exec, Status};
use weighlock_screen::safe_text;
use weighlock_store::{Command, State};
use weighlock_walls::{GuardedDir, HomeLeftovers, RUN_VARIABLE};

use super::Life;
use crate::error::{Error, Problem, brief};
use crate::live::Live;
use crate::view::DetailRecord;
use crate::view::RunRecord;
use crate::view::{Reason, Run, state, stored};

/// Follows a run to its end and records it.
pub(crate) async fn follow(life: Arc<Life>, live: Arc<Live>, mut command: Command) {
    let ended = live.job.ended().await;
    let last = match ended {
        Some(status) if status.closed => Some(status),
        Some(status) => {
            // The shell has ended, and what it left goes on.
            let by = live.stopper();
            life.learn(&mut command, &status, by.as_deref(), &live.end)
                .await;
            live.job.closed().await
        }
        None => None,
    };
    // A keeper whose line was cut may have left its last word on disk.
    let last = last.or_else(|| {
        let status = Status::load(&life.core.run_dir(&command.id))
            .ok()
            .flatten()?;
        status.closed.then_some(status)
    });
    if let Some(guarded) = &live.guarded {
        life.warn_of_traps(&mut command, guarded);
    }
    match last {
        Some(status) => {
            // Before the answer: what is written after it is a person's.
            live.guarded.iter().for_each(GuardedDir::release);
            let by = live.stopper();
            life.learn(&mut command, &status, by.as_deref(), &live.end)
                .await;
            // Whoever waits for the end hears of it before we tidy up.
            tokio::task::yield_now().await;
            life.retention.put_away(&command);
        }
        None => {
            let (last, by) = (live.job.status(), live.stopper());
            life.bury(&mut command, last, by.as_deref(), &live.end)
                .await;
        }
    }
    life.lives.remove(&command.id);
    if let Some(terminal) = &live.terminal {
        life.shells.record_closed(terminal).await;
    }
    live.over.send_replace(true);
    if let Some(guarded) = &live.guarded {
        let (life, dir) = (Arc::clone(&life), guarded.dir().to_owned());
        tokio::task::spawn_blocking(move || life.walls.refresh_repositories(&dir));
    }
    if !live.below.is_empty() {
        life.copies.sweep_copies().await;
    }
    if let Err(error) = life.tidy().await {
        tracing::warn!(%error, "cannot remove old output");
    }
}

impl Life {
    /// Closes a run of which there is no last word.
    pub(super) async fn settle(&self, command: Command, state: State, reason: Reason) -> Run {
        let run = self.retention.settle(command, state, reason).await;
        self.copies.drop_copy(&run.command_id).await;
        run
    }

    pub(crate) async fn never_began(&self, command: Command, problem: Problem) {
        let reason = Reason::new(
            problem.code,
            format!("{}. Nothing was run.", problem.detail),
        )
        .with_remedy(problem.hint);
        let run = self.settle(command, State::Failed, reason).await;
        self.waiters.tell(&run.command_id);
    }

    /// Settles a run whose keeper was killed before it could answer, and may
    /// have begun.
    pub(crate) async fn died_as_it_began(
        &self,
        mut command: Command,
        last: Status,
    ) -> Result<Run, Error> {
        let nobody = tokio::sync::watch::Sender::new(None);
        self.bury(&mut command, last, None, &nobody).await;
        self.waiters.tell(&command.id);
        self.runs.recall(&command.id)
    }

    /// Takes over a keeper's word and records it.
    pub(crate) async fn learn(
        &self,
        command: &mut Command,
        status: &Status,
        stopped_by: Option<&str>,
        end: &tokio::sync::watch::Sender<Option<Run>>,
    ) {
        let first = command.ended_at.is_none();
        let mut detail = Run::from_command(command.clone()).detail;
        detail.learn(status, stopped_by);
        let log = exec::Log::open(&self.core.run_dir(&command.id));
        if status.output.bytes() > 0
            && let Ok((kept, gap)) = log.kept()
        {
            detail.output.kept_bytes = kept;
            detail.output.dropped_bytes = gap.map_or(0, |(from, to)| to - from);
        }
        (command.state, command.exit_code, command.signal) = state(status);
        let failed = command.state == State::Failed;
        if let Some(sandbox) = &detail.sandbox {
            // Also for a run that succeeded: `grep -r x . | head` does.
            let mut denials = self.secret_denials(&log, sandbox, failed);
            if failed || detail.is_on_copy() {
                let found = self.wall_denials(&log, sandbox, &command.cwd);
                // A run that succeeded minded no wall; but the person who reviews
                // it should know which hosts it tried to reach.
                let network = found
                    .into_iter()
                    .filter(|one| failed || one.code == "network");
                denials.extend(network);
            }
            detail.denials = denials;
        }
        command.kept_bytes = detail.bytes_on_disk();
        command.updated_at = self.core.clock.micros();
        command.open = !status.closed;
        if status.closed {
            self.retention.count_kept(command);
        }
        if first {
            command.ended_at = Some(command.updated_at);
        }
        let entry = self.core.entry_of(
            if first { "run.ended" } else { "run.closed" },
            stopped_by.unwrap_or("weighlock"),
            command,
            json!({ "state": command.state, "exit_code": command.exit_code,
                    "signal": command.signal, "duration_ms": detail.duration_ms,
                    "walls": detail.sandbox.as_ref().map(|sandbox| &sandbox.level),
                    "bytes": detail.output.bytes,
                    "left_running": detail.left_running, "reason": detail.reason.as_ref()
                        .map(|reason| &reason.text) }),
        );
        if status.closed && detail.is_on_copy() {
            return self.drafts.settle_copy(command, detail, entry, end).await;
        }
        self.runs
            .record_end(command, detail, None, vec![entry], end)
            .await;
    }

    /// Says what a run has made that other programs will run, outside of all
    /// walls. What decides about later runs is set aside.
    fn warn_of_traps(&self, command: &mut Command, guarded: &GuardedDir) {
        let mut detail = Run::from_command(command.clone()).detail;
        let blacklist = self.walls.blacklist();
        for path in guarded.find_replaced() {
            let whole = guarded.dir().join(&path);
            if whole == blacklist.dir() {
                if !blacklist.is_forged() {
                    continue;
                }
                let Ok(aside) = blacklist.set_aside() else {
                    continue;
                };
                detail.warnings.push(format!(
                    "it made {}, which says what agents may run; that was set aside as {}",
                    path.display(),
                    aside.display()
                ));
                continue;
            }
            detail.warnings.push(format!(
                "it made or changed {}, which other programs run outside the walls: look at it",
                path.display()
            ));
        }
        let left = guarded
            .home_leftovers()
            .map(|left| warn_of_leftovers(&left));
        let left = left.map(|warning| self.sandboxes.hide_secrets(&detail, &warning));
        detail.warnings.extend(left);
        command.detail = stored(&detail);
    }

    /// Settles a run whose keeper was killed. How its shell ended stands, if
    /// it had; then only what it left running was lost.
    pub(crate) async fn bury(
        &self,
        command: &mut Command,
        mut last: Status,
        stopped_by: Option<&str>,
        end: &tokio::sync::watch::Sender<Option<Run>>,
    ) {
        // Whatever cut the line to it: what is written off does not go on.
        last.keeper.end();
        if last.end.is_none() {
            let why = if last.keeper.is_of_earlier_boot() {
                "the machine was restarted while it ran"
            } else {
                "its keeper was killed, and with it everything inside"
            };
            end.send_replace(Some(self.lose(command.clone(), why).await));
            return;
        }
        exec::kill_tagged(&tag(&command.id));
        if let Ok(totals) = exec::Log::open(&self.core.run_dir(&command.id)).totals()
            && totals.bytes() > last.output.bytes()
        {
            last.output = totals;
        }
        last.closed = true;
        self.learn(command, &last, stopped_by, end).await;
        self.retention.put_away(command);
    }

    /// Settles a run whose end nobody saw.
    pub(crate) async fn lose(&self, command: Command, why: &str) -> Run {
        // Without a PID namespace, what was inside may have outlived its keeper.
        let survivors = exec::kill_tagged(&tag(&command.id));
        let mut text = format!("Lost: {why}.");
        if survivors > 0 {
            text.push_str(&format!(" {survivors} processes left of it were ended."));
        }
        let reason = Reason::new("lost", text).with_remedy(
            "Its output up to then is kept. Check what it did before running it again.",
        );
        self.settle(command, State::Lost, reason).await
    }
}

/// How many names a warning lists.
const MOST_NAMED: usize = 5;

/// Describes what a run created in its home directory, where a person would not
/// find it.
fn warn_of_leftovers(left: &HomeLeftovers) -> String {
    let named = left.names.iter().take(MOST_NAMED).map(|name| {
        let name = brief(&name.to_string_lossy());
        format!("~/{}", safe_text(&name).replace('\n', " "))
    });
    let mut named: Vec<_> = named.collect();
    if left.names.len() > MOST_NAMED {
        named.push(format!("and {} more", left.names.len() - MOST_NAMED));
    }
    let names = named.join(", ");
    match left.is_kept {
        true => format!("it made {names} in the sandbox's own home directory; yours is unchanged"),
        false => format!(
            "what it wrote to {names} is not kept: only what a person has allowed before it runs \
             (`--review before`) writes to the sandbox's home directory"
        ),
    }
}

/// What every process of a run has in its environment.
fn tag(id: &str) -> String {
    format!("{}={id}", RUN_VARIABLE)
}
