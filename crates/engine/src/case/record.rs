//! The record of a command that does not run, or not yet.

use crate::request::terminal_detail;
use weighlock_store::{Command, State};

use super::{Case, Cases};
use crate::error::brief;
use crate::quota::cut;
use crate::view::{Detail, Reason, stored};

impl Cases {
    /// The record of a command that does not run, or not yet.
    pub(crate) fn unrun(&self, case: &Case, state: State) -> Command {
        let now = self.core.clock.micros();
        let request = &case.request;
        let detail = Detail {
            description: request
                .description
                .as_deref()
                .map(|text| cut(text).to_owned()),
            token: request.principal.token().map(str::to_owned),
            policy_version: self.rules.version(),
            shell: case.judged.shell.name().into(),
            warnings: case.judged.warnings.clone(),
            sandbox: Some(case.view.clone()),
            terminal: request.terminal().map(terminal_detail),
            in_terminal: request.in_terminal.clone(),
            ..Detail::default()
        };
        Command {
            id: self.core.ids.next_as("r", now),
            session: Some(case.session.clone()),
            sandbox: Some(case.known.sandbox.id.clone()),
            command: request.command.clone(),
            cwd: case.place.path.to_string_lossy().into_owned(),
            state,
            exit_code: None,
            signal: None,
            requested_by: request.principal.name().into(),
            approval: None,
            approved_by: None,
            external: request.external,
            created_at: now,
            updated_at: now,
            started_at: None,
            ended_at: None,
            open: false,
            kept_bytes: 0,
            detail: stored(&detail),
        }
    }
}

impl Case {
    /// Returns why the policy says no.
    pub(crate) fn refusal(&self) -> Reason {
        let first = self.judged.judgement.reasons.first();
        let first = first.expect("a refusal has a reason");
        let text = &self.request.command;
        Reason {
            code: first.code.clone(),
            text: cut(&first.text).to_owned(),
            rule: Some(first.rule.clone()),
            layer: Some(first.layer.clone()),
            part: { first.span }
                .and_then(|span| text.get(span.start..span.end))
                .map(brief),
            remedy: Some(first.remedy.clone()).filter(|remedy| !remedy.is_empty()),
        }
    }
}
