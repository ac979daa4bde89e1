//! The life of a run: from a request to the record of its end.
//!
//! | subject | methods |
//! |---|---|
//! | a request | [`Life::run`], [`Life::begin_case`] |
//! | what runs | [`Life::attend`], [`Life::release`], [`Life::stop`] |
//! | what its requester runs | [`Life::finalize`] |
//! | what was paused, a session | [`Life::resume`], [`Life::close_session`] |
//! | what was approved | [`Life::begin_approved`] |
//! | a restart | [`Life::recover`], [`Life::begin_unbegun`], [`Life::put_away_left`] |
//!
//! `plan` works out what a run takes, `follow` waits for its end and records it,
//! `begin` starts what has waited, `attend` ends what nobody waits for any more,
//! `external` is what requesters run themselves. Questions, changes and output
//! are kept by the parts below.

mod attend;
mod begin;
mod closing;
mod denials;
mod external;
mod follow;
mod plan;
mod recover;
mod refuse;
mod resume;
mod stop;
mod tidy;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::mpsc;
use weighlock_backup::Archiver;
use weighlock_exec::{self as exec, Job, Nursery, Ordered, Spec};
use weighlock_policy::{Permit, Settled, Verdict};
use weighlock_store::{Command, Inserted, Key, State};
use weighlock_walls::Walls;

use self::attend::Left;
pub use self::external::Report;
use self::follow::follow;
use self::plan::{Files, Plan};
use crate::case::{Case, Cases};
use crate::copies::Copies;
use crate::core::Core;
use crate::drafts::Drafts;
use crate::error::Error;
use crate::limits::RuntimeLimits;
use crate::live::{Live, Lives};
use crate::measures::Measures;
use crate::pause::Pauses;
use crate::principal::Principal;
use crate::questions::Questions;
use crate::recordings::Recordings;
use crate::request::Request;
use crate::retention::Retention;
use crate::rules::Rules;
use crate::runs::{Outcome, RETRY_EVERY, Runs, Waiters};
use crate::sandboxes::Sandboxes;
use crate::session::Sessions;
use crate::shares::Shares;
use crate::shells::{Shells, keep_nonce};
use crate::traces::Tracer;
use crate::view::RunRecord;
use crate::view::{Run, stored};

/// Starts runs and sees them to their end; see
/// [`Engine::life`](crate::Engine::life).
pub struct Life {
    core: Arc<Core>,
    nursery: Arc<Nursery>,
    walls: Arc<Walls>,
    limits: Arc<RuntimeLimits>,
    sandboxes: Arc<Sandboxes>,
    sessions: Arc<Sessions>,
    pauses: Arc<Pauses>,
    rules: Arc<Rules>,
    tracer: Arc<Tracer>,
    measures: Arc<Measures>,
    archiver: Arc<Archiver>,
    recordings: Arc<Recordings>,
    lives: Arc<Lives>,
    waiters: Arc<Waiters>,
    runs: Arc<Runs>,
    shells: Arc<Shells>,
    retention: Arc<Retention>,
    cases: Arc<Cases>,
    questions: Arc<Questions>,
    copies: Arc<Copies>,
    drafts: Arc<Drafts>,
    /// Types what may run in a shell of a terminal. Terminals stand on this
    /// part, so it tells them through a channel.
    to_type: mpsc::UnboundedSender<ToType>,
    /// One for each run that there may be at once.
    places: Arc<Shares>,
    /// Held while the report of a requester is taken.
    finalizing: tokio::sync::Mutex<()>,
    /// Runs whose client has disconnected.
    left: Left,
}

/// What [`Life`] stands on.
pub(crate) struct LifeNeeds {
    pub(crate) core: Arc<Core>,
    pub(crate) nursery: Arc<Nursery>,
    pub(crate) walls: Arc<Walls>,
    pub(crate) limits: Arc<RuntimeLimits>,
    pub(crate) sandboxes: Arc<Sandboxes>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) pauses: Arc<Pauses>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) tracer: Arc<Tracer>,
    pub(crate) measures: Arc<Measures>,
    pub(crate) archiver: Arc<Archiver>,
    pub(crate) recordings: Arc<Recordings>,
    pub(crate) lives: Arc<Lives>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) shells: Arc<Shells>,
    pub(crate) retention: Arc<Retention>,
    pub(crate) cases: Arc<Cases>,
    pub(crate) questions: Arc<Questions>,
    pub(crate) copies: Arc<Copies>,
    pub(crate) drafts: Arc<Drafts>,
    pub(crate) to_type: mpsc::UnboundedSender<ToType>,
}

impl Life {
    pub(crate) fn new(needs: LifeNeeds) -> Self {
        let LifeNeeds {
            core,
            nursery,
            walls,
            limits,
            sandboxes,
            sessions,
            pauses,
            rules,
            tracer,
            measures,
            archiver,
            recordings,
            lives,
            waiters,
            runs,
            shells,
            retention,
            cases,
            questions,
            copies,
            drafts,
            to_type,
        } = needs;
        Self {
            places: Shares::new("runs", core.config.max_running),
            finalizing: tokio::sync::Mutex::default(),
            left: Left::default(),
            core,
            nursery,
            walls,
            limits,
            sandboxes,
            sessions,
            pauses,
            rules,
            tracer,
            measures,
            archiver,
            recordings,
            lives,
            waiters,
            runs,
            shells,
            retention,
            cases,
            questions,
            copies,
            drafts,
            to_type,
        }
    }
}

/// A permitted command that is to be typed at a terminal.
pub(crate) struct ToType {
    /// The terminal, by the id of its run.
    pub(crate) terminal: String,
    pub(crate) run: Run,
    pub(crate) who: Principal,
}

/// What a run begins as.
pub(crate) enum Beginning {
    /// It was asked for just now.
    New,
    /// It is on record, and has waited until now.
    After {
        command: Box<Command>,
        /// A person has edited the command.
        edited: bool,
    },
    /// It waits for an answer, and is tried meanwhile.
    Tried { command: Box<Command> },
}

/// What must still be true of a command when it begins.
pub(crate) enum Still {
    /// It is new.
    New,
    /// It is in this state.
    In(State),
    /// It waits, and goes on waiting while it is tried.
    Asked,
}

impl Life {
    /// Runs one command and leaves a record, whatever happens.
    ///
    /// Dropping the future does not stop the run: once started, it goes on
    /// under its keeper and is recorded.
    pub async fn run(self: &Arc<Self>, request: Request) -> Result<Outcome, Error> {
        self.core.check_quota(request.principal.name()).await?;
        let asked = (request.principal.clone(), request.command.clone());
        match self.journey(request).await {
            Ok(outcome) => Ok(outcome),
            // The store that could not take the start takes no refusal either;
            // trying would only make the caller wait twice.
            Err(error @ (Error::Store(_) | Error::Unrecorded(_))) => Err(error),
            Err(error) => {
                self.record_refusal(&asked.0, &asked.1, &error).await;
                Err(error)
            }
        }
    }

    async fn journey(self: &Arc<Self>, request: Request) -> Result<Outcome, Error> {
        let wait = request.wait_for_end()?;
        if let Some(outcome) = self.asked_before(&request).await? {
            return Ok(outcome);
        }
        let since = self.core.clock.micros();
        let case = self.cases.case(request).await.map_err(Error::before_run)?;
        let judged = self.core.clock.micros();
        let outcome = self.pursue(case, wait).await?;
        let run = outcome.run();
        self.tracer
            .trace_judging(&run.command_id, run.state, (since, judged));
        Ok(outcome)
    }

    /// Goes on with what is judged.
    async fn pursue(
        self: &Arc<Self>,
        mut case: Case,
        wait: Option<Duration>,
    ) -> Result<Outcome, Error> {
        if case.judged.judgement.verdict != Verdict::Reject
            && let Some(pause) = self.pauses.of(case.request.principal.name())
            && !case.is_doctor()
        {
            return self.hold(case, &pause).await;
        }
        let permit = match case.judged.judgement.settle() {
            Settled::Allowed(permit) => permit,
            Settled::Refused => return self.refuse(&case).await,
            Settled::Asked(question) if self.copies.is_tried(&mut case)? => question.tried(),
            Settled::Asked(_) => return self.questions.ask(case, None).await,
        };
        let patience = case.request.wait_for_answer()?;
        let attends = case.request.attends();
        let begun = self.begin_case(case, permit, Beginning::New).await;
        let run = match begun {
            Err(Error::Repeated { command_id, same }) => self.runs.repeated(&command_id, same)?,
            begun => begun.map_err(Error::before_run)?,
        };
        if run.executor == "external" {
            // It is up to the requester now.
            return Ok(Outcome::from(run));
        }
        let run = self.wait_as(attends, &run, wait).await?;
        if run.state != State::Waiting {
            return Ok(Outcome::from(run));
        }
        // It has run, and a person is asked about what it changed.
        Ok(Outcome::from(self.runs.wait(&run, patience).await?))
    }

    /// Returns what became of a request that was made before, under the same
    /// key.
    async fn asked_before(self: &Arc<Self>, request: &Request) -> Result<Option<Outcome>, Error> {
        let Some(key) = request.keyed() else {
            return Ok(None);
        };
        let Some((hash, id)) = self.core.store.commands().keyed(&key.principal, &key.key)? else {
            return Ok(None);
        };
        let run = self.runs.repeated(&id, hash == key.hash)?;
        let wait = match run.state {
            State::Waiting | State::Held => request.wait_for_answer()?,
            _ => request.wait_for_end()?,
        };
        let run = self.wait_as(request.attends(), &run, wait).await?;
        Ok(Some(Outcome::from(run)))
    }

    /// Waits for a run as somebody it does not go on without, or as anybody.
    async fn wait_as(
        self: &Arc<Self>,
        attends: Option<Principal>,
        run: &Run,
        time: Option<Duration>,
    ) -> Result<Run, Error> {
        match attends {
            Some(who) => self.attend(run, time, &who).await,
            None => self.runs.wait(run, time).await,
        }
    }

    /// Begins what is permitted: here, or in the hands of whoever asked.
    pub(crate) async fn begin_case(
        self: &Arc<Self>,
        case: Case,
        permit: Permit,
        beginning: Beginning,
    ) -> Result<Run, Error> {
        if case.request.external {
            let (terminal, who) = (
                case.request.in_terminal.clone(),
                case.request.principal.clone(),
            );
            let run = self.hand_over(case, &permit, beginning).await?;
            if let Some(terminal) = terminal {
                let run = run.clone();
                // Nobody types any more when the engine goes.
                let _ = self.to_type.send(ToType { terminal, run, who });
            }
            return Ok(run);
        }
        let (began, since) = (Instant::now(), self.core.clock.micros());
        let (plan, permit) = self.plan(case, permit, beginning)?;
        let run = self.start(plan, permit).await?;
        self.measures.start.observe(began.elapsed());
        self.tracer.trace_stage(&run.command_id, "start", since);
        Ok(run)
    }

    /// The record of a permitted command.
    pub(crate) fn command(&self, case: &Case, permit: &Permit, beginning: &Beginning) -> Command {
        let mut fresh = self.cases.unrun(case, State::Running);
        fresh.approved_by = permit.person().map(str::to_owned);
        let (command, edited) = match beginning {
            Beginning::New => return fresh,
            Beginning::After { command, edited } => (command, *edited),
            Beginning::Tried { command } => (command, false),
        };
        let mut detail = Run::from_command(fresh.clone()).detail;
        let other = edited && fresh.command != command.command;
        if edited && !other {
            let by = command.approved_by.as_deref().unwrap_or("a person");
            let told = format!("Approved by {by}, and run for real after it was tried on a copy.");
            detail.warnings.push(told);
        }
        if other {
            let by = command.approved_by.as_deref().unwrap_or("a person");
            detail.warnings.push(format!(
                "Approved by {by} with a change. Ran: `{}` instead of `{}`.",
                fresh.command, command.command
            ));
            detail.original = Some(command.command.clone());
        }
        Command {
            id: command.id.clone(),
            approval: command.approval.clone(),
            approved_by: command.approved_by.clone(),
            created_at: command.created_at,
            detail: stored(&detail),
            ..fresh
        }
    }

    /// Records the start, and only then starts.
    async fn start(self: &Arc<Self>, plan: Plan, permit: Permit) -> Result<Run, Error> {
        let command = plan.command;
        let entry = self.core.entry_of(
            "run.started",
            &command.requested_by,
            &command,
            json!({ "command": command.command, "cwd": command.cwd, "verdict": plan.verdict,
                    "approved_by": command.approved_by, "approval": command.approval,
                    "session": command.session,
                    "shell": plan.spec.shell, "env": plan.env,
                    "sandbox": plan.sandbox,
                    "timeout_ms": plan.spec.limits.hard.as_millis() as u64 }),
        );
        // The caller's patience does not matter here: what was begun is
        // recorded to its end, even when nobody waits any more.
        let life = Arc::clone(self);
        let started = tokio::spawn(async move {
            let _comes = plan.comes;
            let room = OutputRoom::of(&plan.spec);
            // It builds the walls while the start is being recorded.
            let keeper = exec::summon(&life.nursery)?;
            let keeper = exec::order(keeper, permit, plan.spec).await?;
            life.record_start(command.clone(), plan.still, plan.key, entry)
                .await?;
            let launched = launch(&life.nursery, keeper, &room.dir, plan.files).await;
            drop(plan.cwd);
            match launched {
                Ok(job) => {
                    let live = Live::new(job, room.bytes, plan.room, plan.guarded, plan.below);
                    let run = Run::from_command(command.clone());
                    let nonce = life.shells.kept_nonce(&run);
                    let live = Arc::new(live.with_terminal(&run, nonce));
                    life.lives.insert(&command.id, Arc::clone(&live));
                    life.waiters.tell(&command.id);
                    life.shells.show_from(&live, &run, 0);
                    life.shells.record_opened(&run).await;
                    tokio::spawn(follow(life, live, command));
                    Ok(run)
                }
                Err(Error::Start(exec::Error::Died(status))) => {
                    life.died_as_it_began(command, *status).await
                }
                Err(error) => {
                    let problem = error.problem();
                    let recorded =
                        tokio::spawn(async move { life.never_began(command, problem).await });
                    // The record may have to wait for room on the disk; the
                    // caller does not.
                    let _ = tokio::time::timeout(RETRY_EVERY, recorded).await;
                    Err(error)
                }
            }
        });
        started.await.expect("starting does not panic")
    }

    /// Writes down that a command begins, if it may: a key begins one, and
    /// what has waited begins once.
    pub(crate) async fn record_start(
        &self,
        command: Command,
        still: Still,
        key: Option<Key>,
        entry: weighlock_store::Entry,
    ) -> Result<(), Error> {
        let id = command.id.clone();
        let begun = match still {
            Still::In(from) => {
                self.core
                    .store
                    .pending()
                    .begin(command, from, vec![entry])
                    .await
            }
            Still::Asked => {
                self.core
                    .store
                    .changes()
                    .try_out(command, vec![entry])
                    .await
            }
            Still::New => match self
                .core
                .store
                .commands()
                .insert(command, key, vec![entry])
                .await
            {
                Ok(Inserted::New) => Ok(true),
                Ok(Inserted::Before { command_id, same }) => {
                    return Err(Error::Repeated { command_id, same });
                }
                Err(error) => Err(error),
            },
        };
        match begun.map_err(Error::Unrecorded)? {
            true => Ok(()),
            false => Err(Error::NotWaiting { id }),
        }
    }
}

impl Beginning {
    /// Returns what must still be true of it.
    pub(crate) fn still(&self) -> Still {
        match self {
            Self::New => Still::New,
            Self::After { command, .. } => Still::In(command.state),
            Self::Tried { .. } => Still::Asked,
        }
    }
}

/// Where the output of a run goes, and how much of it there may be.
struct OutputRoom {
    dir: PathBuf,
    bytes: u64,
}

impl OutputRoom {
    fn of(spec: &Spec) -> Self {
        // A task's output is on disk twice.
        let copies = 1 + u64::from(spec.output_file.is_some());
        Self {
            dir: spec.dir.clone(),
            bytes: spec.limits.output_bytes * copies,
        }
    }
}

async fn launch(
    nursery: &Nursery,
    keeper: Ordered,
    dir: &Path,
    files: Files,
) -> Result<Job, Error> {
    let prepare = || {
        std::fs::create_dir_all(dir)?;
        if let Some(nonce) = &files.nonce {
            keep_nonce(dir, nonce)?;
        }
        match &files.input {
            Some(input) => exec::write_input(dir, input),
            None => Ok(()),
        }
    };
    prepare().map_err(Error::file(dir))?;
    Ok(exec::start(nursery, keeper).await?)
}
