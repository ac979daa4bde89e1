//! Closing runs of which there is no last word, and removing what is not needed
//! any more.

use crate::view::count_output;
use serde_json::json;
use weighlock_exec as exec;
use weighlock_store::{Command, State};

use super::Retention;
use crate::view::DetailRecord;
use crate::view::RunRecord;
use crate::view::{Reason, Run, stored};

impl Retention {
    /// Closes a run of which there is no last word.
    pub(crate) async fn settle(&self, mut command: Command, state: State, reason: Reason) -> Run {
        let detail = json!({ "state": state, "reason": reason.text });
        let entry = self
            .core
            .entry_of("run.ended", "weighlock", &command, detail);
        let mut detail = Run::from_command(command.clone()).detail;
        detail.reason = Some(reason);
        let log = exec::Log::open(&self.core.run_dir(&command.id));
        if let Ok(totals) = log.totals() {
            count_output(&mut detail.output, &totals);
        }
        if let Ok((kept, gap)) = log.kept() {
            detail.output.kept_bytes = kept;
            detail.output.dropped_bytes = gap.map_or(0, |(from, to)| to - from);
        }
        command.kept_bytes = detail.bytes_on_disk();
        self.count_kept(&command);
        command.state = state;
        command.ended_at = Some(self.core.clock.micros());
        command.updated_at = self.core.clock.micros();
        command.open = false;
        command.detail = stored(&detail);
        self.runs.write_until_done(&command, &None, &[entry]).await;
        self.put_away(&command);
        Run::from_command(command)
    }

    /// Removes what is not needed once a run is recorded, and its directory
    /// when that leaves nothing.
    pub(crate) fn put_away(&self, command: &Command) {
        self.shells.forget_nonce(&command.id);
        exec::forget(&self.core.run_dir(&command.id));
    }
}
