//! External commands: the requester runs them itself. The engine judges them
//! like any other and records the reported result.

use crate::view::count_output;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use weighlock_exec as exec;
use weighlock_policy::Permit;
use weighlock_store::State;

use super::{Beginning, Life};
use crate::case::Case;
use crate::error::Error;
use crate::principal::{Principal, Right};
use crate::view::RunRecord;
use crate::view::{Reason, Run, stored};

/// What a command did that was run elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Its standard output.
    #[serde(default)]
    pub stdout: String,
    /// Its standard error.
    #[serde(default)]
    pub stderr: String,
    /// Its exit code.
    pub exit_code: i32,
    /// Where its shell was afterwards, if it goes on.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Further messages for the requester.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// Why it was never run, if it was not: then it has no end of its own.
    #[serde(skip)]
    pub not_run: Option<Reason>,
}

/// Why something was not typed.
const CLOSED: &str = "The terminal was closed before its turn came. Nothing was run.";

impl Report {
    pub(crate) fn failed(why: &str) -> Self {
        Self {
            stderr: format!("weighlock: {why}\n"),
            exit_code: -1,
            ..Self::default()
        }
    }

    pub(crate) fn closed() -> Self {
        Self {
            not_run: Some(Reason::new("terminal_closed", CLOSED)),
            ..Self::default()
        }
    }
}

impl Life {
    /// Records that the requester may run it.
    pub(crate) async fn hand_over(
        &self,
        case: Case,
        permit: &Permit,
        beginning: Beginning,
    ) -> Result<Run, Error> {
        let mut command = self.command(&case, permit, &beginning);
        command.started_at = Some(self.core.clock.micros());
        let mut detail = Run::from_command(command.clone()).detail;
        detail.in_terminal = case.request.in_terminal.clone();
        detail.shell_dir = case.request.shell_dir.clone();
        command.detail = stored(&detail);
        let told = json!({ "command": command.command, "cwd": command.cwd, "executor": "external",
                           "in_terminal": case.request.in_terminal,
                           "approved_by": command.approved_by, "approval": command.approval });
        let entry = self
            .core
            .entry_of("run.started", &command.requested_by, &command, told);
        self.record_start(command.clone(), beginning.still(), case.key(), entry)
            .await?;
        Ok(Run::from_command(command))
    }

    /// Records what a command did that its requester has run, exactly once.
    pub async fn finalize(&self, id: &str, report: Report, who: &Principal) -> Result<Run, Error> {
        // One at a time: what is written to the disk is what is recorded.
        let _one = self.finalizing.lock().await;
        let run = self.runs.find(id, who)?;
        if run.requested_by != who.name() {
            who.check(Right::Administer)?;
        }
        let found = self.core.store.commands().named(&run.command_id)?;
        let command = found.into_iter().next().filter(|command| command.external);
        let Some(mut command) = command else {
            return Err(Error::NotExternal { id: run.short_id });
        };
        if matches!(command.state, State::Waiting | State::Held) {
            return Err(Error::NotBegun { id: run.short_id });
        }
        if command.state != State::Running {
            return Err(Error::Final { id: run.short_id });
        }
        let dir = self.core.run_dir(&command.id);
        let texts = (report.stdout.into_bytes(), report.stderr.into_bytes());
        let bound = self.retention.grant_bytes();
        let written = exec::record(&dir, &texts.0, &texts.1, bound);
        let totals = written.map_err(Error::file(&dir))?;
        let mut detail = Run::from_command(command.clone()).detail;
        detail.cwd_after = report.cwd;
        detail.warnings.extend(report.notes);
        count_output(&mut detail.output, &totals);
        detail.output.kept_bytes = totals.bytes().saturating_sub(totals.lost_bytes);
        command.kept_bytes = detail.output.kept_bytes;
        let now = self.core.clock.micros();
        if report.not_run.is_some() {
            command.started_at = None;
        }
        detail.duration_ms = { command.started_at }.map(|began| (now - began) as f64 / 1000.0);
        (command.state, command.exit_code) = match (&report.not_run, report.exit_code) {
            (Some(_), _) => (State::Withdrawn, None),
            (None, 0) => (State::Succeeded, Some(0)),
            (None, code) => (State::Failed, Some(code)),
        };
        detail.reason = report.not_run;
        command.detail = stored(&detail);
        command.updated_at = now;
        command.ended_at = Some(now);
        let told = json!({ "state": command.state, "exit_code": command.exit_code,
                           "executor": "external", "bytes": totals.bytes() });
        let entry = self.core.entry_of("run.ended", who.name(), &command, told);
        let (id, kept) = (command.id.clone(), command.kept_bytes);
        self.retention.count_kept(&command);
        let begun = {
            self.core
                .store
                .pending()
                .begin(command, State::Running, vec![entry])
        }
        .await;
        if !matches!(begun, Ok(true)) {
            self.retention.uncount_kept(kept);
        }
        if !begun? {
            return Err(Error::Final { id: run.short_id });
        }
        // What said nothing needs no directory.
        exec::forget(&self.core.run_dir(&id));
        self.waiters.tell(&id);
        if let Err(error) = self.tidy().await {
            tracing::warn!(%error, "cannot remove old output");
        }
        self.runs.recall(&id)
    }
}
