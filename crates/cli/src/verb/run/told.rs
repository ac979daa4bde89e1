//! Prints the state of runs that have not begun, or never will.

use std::io::Write;
use std::time::Duration;

use weighlock_api::{CommandView, Reason, Run, State};

use super::show::{Show, WIDTH};
use crate::client::Failure;
use crate::paths::Paths;
use crate::question;
use crate::term::{self, say};
use crate::text::{self, aligned, print_json};
use crate::verb::show::nothing;
use crate::when::{counter, time_of_day};
use crate::{effect, judged};

impl Show {
    /// Says that it waits, and for what; and where nobody sits who would be
    /// asked, how it is answered, unless that is said as we leave it. Said even
    /// when asked to be quiet: nothing else tells what happens.
    pub(super) async fn waits(
        &mut self,
        paths: &Paths,
        view: &CommandView,
        leaves: bool,
    ) -> Result<(), Failure> {
        if self.json && !self.terminal {
            return Ok(());
        }
        self.hide_status();
        match (view.run.state, &view.run.approval_id) {
            (State::Waiting, Some(id)) => {
                let question = question::look(paths, id).await?;
                asked(&question);
                if !leaves && !term::is_there() {
                    answered_by(&question, &view.run);
                }
            }
            _ => say!("◔ {}", reason(&view.run)),
        }
        Ok(())
    }

    /// A line that says how long already.
    pub(super) fn patience(&mut self, waited: Duration) {
        if self.terminal && !self.quiet && self.is_due() {
            let waited = counter(waited.as_secs());
            self.turn(&format!(
                "waiting {waited}   (Ctrl C withdraws the request)"
            ));
        }
    }

    /// Says who has allowed it.
    pub(super) fn answered(&mut self, run: &Run) {
        if let Some(note) = effect::applied_note(run) {
            self.say(&text::safe(note));
        } else if let Some(by) = { &run.approved_by }
            .as_ref()
            .filter(|_| run.state != State::Waiting)
        {
            self.say(&format!("✓ approved by {}", text::one_line(by, 40)));
            self.introduced.set(true);
        }
    }

    /// Hands over what names a run that still waits.
    pub(super) fn left_waiting(&mut self, view: &CommandView) {
        if self.json {
            return print_json(view);
        }
        let id = &view.run.short_id;
        if let Some(asked) = self.left.take() {
            // They know which it is, and nobody else reads it.
            let said = format!("◔ Still waiting — weighlock approve {asked}");
            return say!("{}", aligned(&said, id, WIDTH));
        }
        self.say(&match effect::is_asked_about(&view.run) {
            true => {
                format!("  weighlock diff {id}    weighlock approve {id}    weighlock show {id}")
            }
            false => format!("  weighlock show {id}    weighlock output {id} --follow"),
        });
        let _ = writeln!(std::io::stdout(), "{id}");
    }

    /// Says why nothing was run, even when asked to be quiet.
    pub(super) fn refused(&mut self, view: &CommandView) {
        if self.json {
            return print_json(view);
        }
        self.hide_status();
        let run = &view.run;
        let nothing = nothing(run);
        match run.state {
            State::Blocked => blocked(run),
            State::Rejected => say!("⊘ Rejected — {nothing}\n   {}", reason(run)),
            State::Expired => say!("◌ Expired — {nothing}\n   {}", reason(run)),
            _ => say!("◌ Withdrawn — {nothing}"),
        }
    }
}

fn asked(asked: &question::ShownQuestion) {
    let left = counter(asked.expires_in_seconds);
    let right = format!("{}, expires in {left}", asked.short_id);
    let what = match &asked.effect {
        Some(effect) => text::safe(&effect.changes.summary),
        None => "asked a person".into(),
    };
    let head = format!("◔ Needs approval — {what}");
    say!("{}", aligned(&head, &right, WIDTH));
    for line in question::effect(asked) {
        say!("  {line}");
    }
    for reason in &asked.reasons {
        let what = format!("   {}", text::safe(&reason.text));
        say!("{}", aligned(&what, &judged::source(reason), WIDTH));
    }
}

/// Says how a person answers, and until when.
fn answered_by(asked: &question::ShownQuestion, run: &Run) {
    let (id, until) = (&asked.short_id, time_of_day(&asked.expires_at));
    say!("  a person answers in a terminal, until {until}:");
    let diff = match &asked.effect {
        Some(_) => format!("weighlock diff {}    ", run.short_id),
        None => String::new(),
    };
    say!("  {diff}weighlock approve {id}    weighlock reject {id}");
}

fn blocked(run: &Run) {
    say!("⛔ Blocked — {}", nothing(run));
    let Some(reason) = &run.detail.reason else {
        return;
    };
    if run.detail.changes.is_some() {
        say!("   {}", text::safe(&reason.text));
    } else {
        let part = reason.part.as_ref().unwrap_or(&run.command);
        let part = text::command_line(part, 60);
        let what = format!("   {part}   {}", text::safe(&reason.text));
        say!("{}", aligned(&what, &rule(reason), WIDTH));
    }
    if let Some(remedy) = &reason.remedy {
        say!("   {}", text::safe(remedy));
    }
}

fn rule(reason: &Reason) -> String {
    let rule = reason.rule.as_deref().unwrap_or("default");
    let layer = reason.layer.as_deref().unwrap_or("built-in");
    format!("rule {} ({})", text::safe(rule), text::safe(layer))
}

fn reason(run: &Run) -> String {
    let reason = run.detail.reason.as_ref();
    reason.map_or_else(String::new, |reason| text::safe(&reason.text))
}
