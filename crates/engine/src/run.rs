//! The journey: one command from request to record.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use weighlock_exec::{self as exec, Job, Nursery, Ordered, Spec};
use weighlock_policy::{Permit, Reason, Settled, Verdict};
use weighlock_store::{Command, Inserted, Key, State};
use weighlock_walls::{Review, WorkDir};

use crate::engine::Engine;
use crate::error::Error;
use crate::follow::{RETRY_EVERY, follow};
use crate::live::Live;
use crate::plan::{Files, Plan};
use crate::principal::{Principal, Right, Via};
use crate::request::Request;
use crate::rules::{Judged, Where};
use crate::sandboxes::Known;
use crate::terminals::{keep_nonce, show_from};
use crate::view::Explanation;
use crate::view::RunRecord;
use crate::view::{Run, SandboxView, stored};

/// What became of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The policy, a person or a clock said no, or it was taken back. It was
    /// not run, or only on a copy that was thrown away.
    Refused(Run),
    /// A person has been asked, or everything is paused. It was not run yet, or
    /// only on a copy, and then its changes are in the run's detail.
    Waiting(Run),
    /// It ended while the caller waited.
    Ended(Run),
    /// It goes on; the run's id is the handle.
    Running(Run),
}

/// A request with everything that is known about it.
pub(crate) struct Case {
    pub(crate) request: Request,
    pub(crate) known: Known,
    pub(crate) session: String,
    pub(crate) place: WorkDir,
    pub(crate) judged: Judged,
    /// The PATH of commands.
    pub(crate) path: String,
    /// Its sandbox as it is shown.
    pub(crate) view: SandboxView,
    /// A person wants to see what it does before answering.
    pub(crate) for_question: bool,
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

impl Outcome {
    /// Returns the run that it is about.
    pub fn run(&self) -> &Run {
        match self {
            Self::Refused(run) | Self::Waiting(run) | Self::Ended(run) | Self::Running(run) => run,
        }
    }
}

impl From<Run> for Outcome {
    fn from(run: Run) -> Self {
        match run.state {
            State::Waiting | State::Held => Self::Waiting(run),
            State::Running => Self::Running(run),
            State::Blocked | State::Rejected | State::Expired | State::Withdrawn => {
                Self::Refused(run)
            }
            State::Succeeded | State::Failed | State::TimedOut | State::Killed | State::Lost => {
                Self::Ended(run)
            }
        }
    }
}

impl Engine {
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
        let case = self.case(request).await.map_err(Error::before_run)?;
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
            Settled::Asked(question) if self.is_tried(&mut case)? => question.tried(),
            Settled::Asked(_) => return self.ask(case, None).await,
        };
        let patience = case.request.wait_for_answer()?;
        let attends = case.request.attends();
        let begun = self.begin_case(case, permit, Beginning::New).await;
        let run = match begun {
            Err(Error::Repeated { command_id, same }) => self.repeated(&command_id, same)?,
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
        Ok(Outcome::from(self.wait(&run, patience).await?))
    }

    /// Finds out everything about a request: who asks, where it would run, and
    /// what the policy says. Nothing is changed.
    pub(crate) async fn case(&self, request: Request) -> Result<Case, Error> {
        request.check()?;
        let who = &request.principal;
        who.check(Right::Run)?;
        request.check_profile()?;
        // Before anybody is asked: nonsense is nobody's question.
        request.limits(self.limits.times(), self.core.config.keep, 0)?;
        let known = self
            .sandboxes
            .find_workplace(request.sandbox.as_deref(), who)?;
        let sandbox = &known.sandbox;
        let named = request.session.as_deref();
        let session = self.sessions.find_or_open(named, who, sandbox).await?;
        let place = match self
            .sandboxes
            .open_work_dir(sandbox, request.cwd.as_deref())
        {
            Ok(place) => place,
            Err(error) => {
                let place = self.place_in_draft(sandbox, request.cwd.as_deref(), &session)?;
                place.ok_or(error)?
            }
        };
        let at = Where {
            known: &known,
            place: &place,
            session: Some(&session),
        };
        let mut judged = self.rules.judge(&request, &at, None)?;
        if request.review == Some(Review::Before)
            && judged.judgement.verdict == Verdict::Auto
            && !judged.judgement.by_people()
            && self.walls.has_secret_files(sandbox, &place.path)?
        {
            judged.judgement.ask_first(reads_secret_files());
        }
        self.rules.record_changes().await?;
        let mut case = Case {
            view: self.sandboxes.describe(sandbox),
            path: self.path().await,
            request,
            known,
            session,
            place,
            judged,
            for_question: false,
        };
        if case.judged.judgement.verdict == Verdict::Ask {
            case.judged.fingerprint = self.fingerprint(&case);
        }
        Ok(case)
    }

    /// Returns what became of a request that was made before, under the same
    /// key.
    async fn asked_before(self: &Arc<Self>, request: &Request) -> Result<Option<Outcome>, Error> {
        let Some(key) = request.keyed() else {
            return Ok(None);
        };
        let Some((hash, id)) = self.core.store.keyed(&key.principal, &key.key)? else {
            return Ok(None);
        };
        let run = self.repeated(&id, hash == key.hash)?;
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
            None => self.wait(run, time).await,
        }
    }

    pub(crate) fn repeated(&self, id: &str, same: bool) -> Result<Run, Error> {
        match same {
            true => self.recall(id),
            false => Err(Error::KeyReused),
        }
    }

    /// Answers a repeated request with what became of the first.
    pub(crate) async fn again(
        &self,
        wait: Option<Duration>,
        id: &str,
        same: bool,
    ) -> Result<Outcome, Error> {
        let run = self.repeated(id, same)?;
        Ok(Outcome::from(self.wait(&run, wait).await?))
    }

    /// Starts a permitted command, or lets its requester run it.
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
                tokio::spawn(Arc::clone(self).type_at(terminal, run.clone(), who));
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

    /// Returns the PATH of commands, once the login shell has told its own.
    pub(crate) async fn path(&self) -> String {
        self.walls.search_path().await
    }

    /// The record of a permitted command.
    pub(crate) fn command(&self, case: &Case, permit: &Permit, beginning: &Beginning) -> Command {
        let mut fresh = self.unrun(case, State::Running);
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
        let engine = Arc::clone(self);
        let started = tokio::spawn(async move {
            let _comes = plan.comes;
            let room = OutputRoom::of(&plan.spec);
            // It builds the walls while the start is being recorded.
            let keeper = exec::summon(&engine.nursery)?;
            let keeper = exec::order(keeper, permit, plan.spec).await?;
            engine
                .record_start(command.clone(), plan.still, plan.key, entry)
                .await?;
            let launched = launch(&engine.nursery, keeper, &room.dir, plan.files).await;
            drop(plan.cwd);
            match launched {
                Ok(job) => {
                    let live = Live::new(job, room.bytes, plan.room, plan.guarded, plan.below);
                    let run = Run::from_command(command.clone());
                    let nonce = engine.kept_nonce(&run);
                    let live = Arc::new(live.with_terminal(&run, nonce));
                    engine.lives.insert(&command.id, Arc::clone(&live));
                    engine.waiters.tell(&command.id);
                    show_from(&engine, &live, &run, 0);
                    engine.record_opened(&run).await;
                    tokio::spawn(follow(engine, live, command));
                    Ok(run)
                }
                Err(Error::Start(exec::Error::Died(status))) => {
                    engine.died_as_it_began(command, *status).await
                }
                Err(error) => {
                    let problem = error.problem();
                    let recorded =
                        tokio::spawn(async move { engine.never_began(command, problem).await });
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
            Still::In(from) => self.core.store.begin(command, from, vec![entry]).await,
            Still::Asked => self.core.store.try_out(command, vec![entry]).await,
            Still::New => match self.core.store.insert(command, key, vec![entry]).await {
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

impl Case {
    /// Returns the profile it is judged under.
    pub(crate) fn agent(&self) -> Option<&str> {
        self.request.profile()
    }

    pub(crate) fn key(&self) -> Option<Key> {
        self.request.keyed()
    }

    /// Returns the verdict with everything that led to it.
    pub(crate) fn explain(&self) -> Explanation {
        self.judged.explain(&self.request, &self.known.sandbox)
    }

    /// The system's root, who may be absent from the store.
    pub(crate) fn by_root(&self) -> bool {
        matches!(self.request.principal.via(), Via::Socket { uid: 0, .. })
            && self.request.principal.name() == "root"
    }

    /// It is our own check whether anything runs.
    fn is_doctor(&self) -> bool {
        self.request.principal.name() == "doctor"
    }
}

/// Why a command is asked about that could run unasked, though without what is
/// secret.
fn reads_secret_files() -> Reason {
    Reason {
        code: "secret_files".into(),
        text: "Asks to read the secret files of its sandbox.".into(),
        rule: "secret-files".into(),
        layer: "built-in".into(),
        remedy: String::new(),
        span: None,
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
