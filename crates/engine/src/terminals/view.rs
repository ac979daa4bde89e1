//! A terminal as doors show it.

use std::time::Duration;

pub use weighlock_api::{CursorView, ScreenView, TerminalView};
use weighlock_store::State;

use super::Terminals;
use crate::error::Error;
use crate::live::{ControlView, Picture, last_picture};
use crate::time;
use crate::view::Run;
use crate::view::opened_size;

/// Lines of a terminal's output that are told with it.
const TAIL: usize = 20;

impl Terminals {
    /// Returns a terminal as doors show it.
    pub fn terminal_view(&self, run: Run) -> TerminalView {
        let run = self.runs.freshen(run);
        let terminal = run.detail.terminal.clone().unwrap_or_default();
        let live = self.lives.get(&run.command_id);
        let shown = live.as_ref().and_then(|live| live.shown.clone());
        let keeper = live.as_ref().map(|live| live.job.status().keeper.pid);
        let (title, tail) = match &shown {
            Some(shown) => shown.with(|picture| {
                let screen = &picture.screen;
                (screen.view().title, tail(screen.history(TAIL)))
            }),
            None => (String::new(), vec![]),
        };
        let idle = run.open && keeper.is_some_and(weighlock_confine::waits_for_input);
        let prompt = shown.as_ref().filter(|_| idle);
        let silent = shown.as_ref().map(|shown| shown.fed.borrow().at.elapsed());
        let size = { shown.as_ref() }.map_or(opened_size(&terminal), |shown| *shown.size.borrow());
        let now = self.core.clock.micros();
        let since = run.started_at.as_deref().or(Some(&run.created_at));
        let since = since.and_then(|text| text.parse::<jiff::Timestamp>().ok());
        let uptime = since.map_or(0, |since| (now - since.as_microsecond()).max(0) / 1_000_000);
        TerminalView {
            status: match (run.state, run.open) {
                (State::Waiting | State::Held, _) => "waiting",
                (_, true) if idle => "idle",
                (_, true) => "busy",
                (_, false) => "closed",
            }
            .into(),
            pid: keeper.and_then(weighlock_confine::first_inside),
            last_active: time(now - silent.unwrap_or(Duration::ZERO).as_micros() as i64),
            uptime_seconds: uptime as u64,
            terminal_id: run.command_id,
            short_id: run.short_id,
            name: terminal.name,
            description: run.detail.description.unwrap_or_default(),
            command: run.command,
            session_id: run.session_id,
            sandbox_id: run.sandbox_id,
            requested_by: run.requested_by,
            state: run.state,
            exit_code: run.exit_code,
            cwd: run.cwd,
            columns: size.columns,
            rows: size.rows,
            prompt: prompt.map(|shown| shown.with(|picture| picture.prompt())),
            shell: live.as_ref().is_some_and(|live| live.job.status().told),
            control: live.map_or_else(ControlView::default, |live| live.keyboard.view()),
            title,
            output_tail: tail,
        }
    }

    /// Returns what a terminal shows, and so many of the last lines of all that
    /// it has shown.
    pub fn screen(&self, run: &Run, lines: usize) -> Result<ScreenView, Error> {
        let live = self.lives.get(&run.command_id);
        if let Some(shown) = live.and_then(|live| live.shown.clone()) {
            return Ok(shown.with(|picture| screen_view(picture, lines)));
        }
        let terminal = run.detail.terminal.clone().unwrap_or_default();
        let (log, dir) = (self.outputs.log(run), self.core.run_dir(&run.command_id));
        match last_picture(&log, &dir, opened_size(&terminal)) {
            Ok(picture) => Ok(screen_view(&picture, lines)),
            Err(source) => Err(Error::file(&dir)(source)),
        }
    }
}

fn screen_view(picture: &Picture, lines: usize) -> ScreenView {
    let view = picture.screen.view();
    ScreenView {
        columns: view.size.columns(),
        cursor: CursorView {
            row: view.cursor.row,
            column: view.cursor.column,
            visible: view.cursor.visible,
        },
        title: view.title,
        alternate: view.alternate,
        rows: view.rows,
        history: match lines {
            0 => vec![],
            lines => tail(picture.screen.history(lines)),
        },
        offset: picture.offset,
    }
}

/// Leaves out the empty lines at the end.
fn tail(mut lines: Vec<String>) -> Vec<String> {
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}
