//! Tasks: runs that go on while nobody waits for them, and what they use.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;
use weighlock_api::{ProcessView, TaskOutput, TaskView};

use weighlock_exec::Item;
use weighlock_store::{Filter, State};

use super::Runs;
use crate::error::Error;
use crate::live::end_of;
use crate::mutex::lock;
use crate::output::whole_characters;
use crate::principal::Principal;
use crate::time;
use crate::view::Run;
use crate::view::RunRecord;

/// What the id of a task begins with; the rest is that of its run.
const PREFIX: &str = "bash-";

/// How many of the newest runs are looked through for tasks that have ended.
const LOOKED_THROUGH: usize = 200;

/// Where to begin with the output of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFrom<'a> {
    /// At a byte.
    Byte(u64),
    /// Where the last call of the same principal ended that had the same name
    /// for itself, if any.
    LastCall(&'a str),
}

/// Up to where each has read the output of each task.
#[derive(Default)]
pub(crate) struct ReadTo(Mutex<HashMap<(String, String), u64>>);

impl ReadTo {
    fn get(&self, key: &(String, String)) -> u64 {
        lock(&self.0).get(key).copied().unwrap_or(0)
    }

    fn set(&self, key: (String, String), to: u64) {
        let mut all = lock(&self.0);
        if all.len() >= REMEMBERED && !all.contains_key(&key) {
            // Whoever reads on after that is given all of it once more.
            all.clear();
        }
        all.insert(key, to);
    }
}

/// How many readers are remembered.
const REMEMBERED: usize = 10_000;

/// How much is read at once.
const STEP: usize = 256 * 1024;

/// Returns what a run is called as a task.
pub(crate) fn task_id(run: &str) -> String {
    format!("{PREFIX}{}", crate::id::short(run).trim_start_matches("r_"))
}

/// Returns the name of the file that a task's output is also written to.
pub(crate) fn output_file_name(run: &str) -> String {
    format!("{}.log", task_id(run))
}

/// Returns the run's id that a task's id stands for; any other is as it was.
pub(crate) fn run_of_task(id: &str) -> Cow<'_, str> {
    match id.strip_prefix(PREFIX) {
        Some(run) => format!("r_{run}").into(),
        None => id.into(),
    }
}

impl Runs {
    /// Lists what goes on while nobody waits, and what has ended lately.
    pub fn tasks(&self, session: Option<&str>, who: &Principal) -> Result<Vec<TaskView>, Error> {
        let open = self.core.store.commands().open()?;
        let newest = self.core.store.commands().list(&Filter {
            limit: LOOKED_THROUGH,
            ..Filter::default()
        })?;
        let mut runs: Vec<Run> = vec![];
        for command in newest.into_iter().rev().chain(open) {
            let run = Run::from_command(command);
            let known = runs.iter().any(|known| known.command_id == run.command_id);
            let wanted = session.is_none_or(|session| run.session_id.as_deref() == Some(session));
            let task = run.detail.background || run.open;
            if !known
                && wanted
                && task
                && run.detail.terminal.is_none()
                && who.sees(&run.requested_by, run.sandbox_id.as_deref())
            {
                runs.push(run);
            }
        }
        runs.sort_by(|one, other| one.command_id.cmp(&other.command_id));
        Ok(runs.into_iter().map(|run| self.task_view(run)).collect())
    }

    /// Returns a run as a task.
    pub fn task_view(&self, run: Run) -> TaskView {
        let run = self.freshen(run);
        let live = self.lives.get(&run.command_id).filter(|_| run.open);
        let keeper = live.map(|live| live.job.status().keeper.pid);
        let mut processes = keeper.map_or(vec![], weighlock_confine::processes_below);
        for process in &mut processes {
            process.command = self.sandboxes.hide_secrets(&run.detail, &process.command);
        }
        let adopted = run.open && run.ended_at.is_some();
        let until = run.started_at.as_deref().filter(|_| run.open && !adopted);
        let until = until.and_then(|began| began.parse::<jiff::Timestamp>().ok());
        TaskView {
            task_id: task_id(&run.command_id),
            status: match run.state {
                _ if run.open => "running",
                State::Running => "running",
                State::Waiting | State::Held => "waiting",
                State::Succeeded => "completed",
                State::Killed => "stopped",
                _ => "failed",
            }
            .into(),
            output_file: run.detail.output_file.clone(),
            until: until
                .map(|began| time(began.as_microsecond() + run.detail.timeout_ms as i64 * 1000)),
            ports: keeper.map_or(vec![], weighlock_confine::ports_below),
            cpu_ms: processes
                .iter()
                .map(|process| process.cpu_micros)
                .sum::<u64>()
                / 1000,
            memory_bytes: processes.iter().map(|process| process.memory_bytes).sum(),
            processes: processes.into_iter().map(process_view).collect(),
            output_bytes: run.detail.output.bytes,
            idle_ms: run.detail.idle_ms,
            description: run.detail.description,
            command_id: run.command_id,
            short_id: run.short_id,
            command: run.command,
            state: run.state,
            exit_code: run.exit_code,
            requested_by: run.requested_by,
            session_id: run.session_id,
            sandbox_id: run.sandbox_id,
            started_at: run.started_at,
            ended_at: run.ended_at,
            adopted,
        }
    }

    /// Returns what a task has written: from a byte on, or since the same
    /// reader asked last. Waits for its end first, if a time is given.
    pub async fn task_output(
        &self,
        run: &Run,
        from: OutputFrom<'_>,
        wait: Option<Duration>,
        who: &Principal,
    ) -> Result<TaskOutput, Error> {
        if let Some(wait) = wait {
            self.wait(run, Some(wait)).await?;
        }
        let is_byte = matches!(from, OutputFrom::Byte(_));
        let reader = match from {
            OutputFrom::Byte(_) => "",
            OutputFrom::LastCall(reader) => reader,
        };
        let key = (format!("{} {reader}", who.name()), run.command_id.clone());
        let from = match from {
            OutputFrom::Byte(from) => from,
            OutputFrom::LastCall(_) => self.read_to.get(&key),
        };
        let items = self.outputs.log(run).read(from, STEP);
        let items = items.map_err(Error::file(&self.core.run_dir(&run.command_id)))?;
        let (mut bytes, mut lost_bytes) = (vec![], 0);
        for item in &items {
            match item {
                Item::Piece(piece) => bytes.extend_from_slice(&piece.bytes),
                Item::Gap { from, to } => lost_bytes += to - from,
            }
        }
        let mut next = items.last().map_or(from, end_of);
        let task = self.task_view(self.recall(&run.command_id)?);
        // The rest of a character comes with the next call.
        let whole = whole_characters(&bytes);
        if next < task.output_bytes || task.ended_at.is_none() {
            next -= (bytes.len() - whole) as u64;
            bytes.truncate(whole);
        }
        if !is_byte {
            self.read_to.set(key, next);
        }
        Ok(TaskOutput {
            more: next < task.output_bytes,
            output: String::from_utf8_lossy(&bytes).into_owned(),
            task,
            from,
            next,
            lost_bytes,
        })
    }
}

fn process_view(process: weighlock_confine::Process) -> ProcessView {
    ProcessView {
        pid: process.pid,
        parent: process.parent,
        command: process.command,
        cpu_ms: process.cpu_micros / 1000,
        memory_bytes: process.memory_bytes,
    }
}
