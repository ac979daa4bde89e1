//! The journey: one command from request to record.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use weighlock_confine::{Access, Network};
use weighlock_exec::{self as exec, Job, Limits, Nursery, Shell, Spec, Status, Summoned};
use weighlock_policy::{Permit, Question, Settled};
use weighlock_store::{Command, Entry, State};

use crate::engine::Engine;
use crate::env;
use crate::error::{Error, Problem, brief};
use crate::explain::Explanation;
use crate::judge::Judged;
use crate::live::Live;
use crate::place::{self, Place};
use crate::request::{Answer, Input, Request};
use crate::sandbox::Sandbox;
use crate::view::{Detail, LimitsView, Reason, Run, state, stored};
use crate::walls::Guarded;

/// How often an end that could not be recorded is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// What became of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The policy or a person said no; nothing was run.
    Refused(Run),
    /// A person has to be asked first; nothing was run.
    Asked(Box<Explanation>),
    /// It ended while the caller waited.
    Ended(Run),
    /// It goes on; the run's id is the handle.
    Running(Run),
}

impl Engine {
    /// Runs one command and leaves a record, whatever happens.
    ///
    /// Dropping the future does not stop the run: once started, it goes on
    /// under its keeper and is recorded.
    pub async fn run(self: &Arc<Self>, request: Request) -> Result<Outcome, Error> {
        match self.journey(&request).await {
            Ok(outcome) => Ok(outcome),
            // The store that could not take the start takes no refusal either;
            // trying would only make the caller wait twice.
            Err(error @ Error::Store(_)) => Err(error),
            Err(error) => {
                self.record_refusal(&request, &error).await;
                Err(error)
            }
        }
    }

    async fn journey(self: &Arc<Self>, request: &Request) -> Result<Outcome, Error> {
        let wait = request.wait()?;
        request.check()?;
        let sandbox = self.sandbox(request.sandbox.as_deref())?;
        let place = place::resolve(self.directory_of(sandbox), request.cwd.as_deref())?;
        let mut judged = self.judged(request, sandbox, &place, None)?;
        let permit = match judged.judgement.settle() {
            Settled::Allowed(permit) => permit,
            Settled::Refused => return self.refuse(request, &judged, place).await,
            Settled::Asked(question) => match &request.answer {
                None => return self.ask(request, &judged, sandbox).await,
                Some(answer) if answer.fingerprint != judged.fingerprint => {
                    return Err(Error::Stale);
                }
                Some(answer) if !answer.approved => {
                    return self.rejected(request, &judged, place, answer).await;
                }
                Some(_) => approved(question, request),
            },
        };
        let plan = self.plan(request, &self.path().await, judged, place, &permit)?;
        let run = self.start(plan, permit).await?;
        let run = self.wait(&run, wait).await?;
        Ok(match run.state {
            State::Running => Outcome::Running(run),
            _ => Outcome::Ended(run),
        })
    }

    /// Says that a person has to be asked.
    async fn ask(
        &self,
        request: &Request,
        judged: &Judged,
        sandbox: &Sandbox,
    ) -> Result<Outcome, Error> {
        let explanation = judged.explain(request, sandbox);
        let entry = self.entry(
            "run.asked",
            request.principal.name(),
            None,
            json!({ "command": brief(&request.command), "cwd": explanation.cwd,
                    "sandbox": sandbox.name, "agent": request.agent,
                    "reasons": explanation.reasons.iter().map(|reason| &reason.text)
                        .collect::<Vec<_>>(),
                    "fingerprint": judged.fingerprint }),
        );
        self.store.record(vec![entry]).await?;
        Ok(Outcome::Asked(Box::new(explanation)))
    }

    /// Records that the policy said no.
    async fn refuse(
        &self,
        request: &Request,
        judged: &Judged,
        place: Place,
    ) -> Result<Outcome, Error> {
        let reasons = &judged.judgement.reasons;
        let first = reasons.first().expect("a refusal has a reason");
        let reason = Reason {
            code: first.code.clone(),
            text: first.text.clone(),
            rule: Some(first.rule.clone()),
            layer: Some(first.layer.clone()),
            part: first
                .span
                .and_then(|span| request.command.get(span.start..span.end))
                .map(brief),
            remedy: Some(first.remedy.clone()).filter(|remedy| !remedy.is_empty()),
        };
        let command = self.unrun(request, judged, &place);
        let run = self
            .block(command, State::Blocked, "policy", reason)
            .await?;
        Ok(Outcome::Refused(run))
    }

    /// Records that a person said no.
    async fn rejected(
        &self,
        request: &Request,
        judged: &Judged,
        place: Place,
        answer: &Answer,
    ) -> Result<Outcome, Error> {
        let who = request.principal.name();
        let reason = Reason {
            code: "rejected".into(),
            text: match &answer.reason {
                Some(why) => format!("Rejected by {who}: ‘{}’ Nothing was run.", brief(why)),
                None => format!("Rejected by {who}. Nothing was run."),
            },
            rule: None,
            layer: None,
            part: None,
            remedy: None,
        };
        let command = self.unrun(request, judged, &place);
        let run = self.block(command, State::Rejected, who, reason).await?;
        Ok(Outcome::Refused(run))
    }

    /// The record of a command that does not run.
    fn unrun(&self, request: &Request, judged: &Judged, place: &Place) -> Command {
        let now = self.clock.micros();
        let detail = Detail {
            description: request.description.clone(),
            shell: name_of(judged.shell),
            warnings: judged.warnings.clone(),
            ..Detail::default()
        };
        let cwd = place.path.to_string_lossy().into_owned();
        command(request, self.ids.next(now), now, cwd, detail)
    }

    /// Returns the PATH of commands, once the login shell has told its own.
    pub(crate) async fn path(&self) -> String {
        env::path(self.login.answer().await.path(), &self.server_env)
    }

    /// Works out everything that running a permitted request takes.
    fn plan(
        &self,
        request: &Request,
        path: &str,
        judged: Judged,
        place: Place,
        permit: &Permit,
    ) -> Result<Plan, Error> {
        let room = Arc::clone(&self.places).try_acquire_owned();
        let room = room.map_err(|_| Error::TooMany {
            running: self.config.max_running,
        })?;
        let sandbox = self.sandbox(request.sandbox.as_deref())?;
        let sandbox = match permit.read_only() {
            true => &sandbox.read_only(),
            false => sandbox,
        };
        let mut times = self.config.times();
        if let Some(timeout) = judged.timeout {
            times.default = timeout.min(times.max);
        }
        let (limits, mut warnings) = request.limits(times, self.config.keep, self.grant_bytes())?;
        warnings.extend(judged.warnings);
        let now = self.clock.micros();
        let id = self.ids.next(now);
        let cwd = place.path.to_string_lossy().into_owned();
        let walls = self.walls(sandbox, place, path)?;
        warnings.extend(walls.warnings);
        let bounds = walls.profile.limits;
        let spec = Spec {
            dir: self.dir_of(&id),
            shell: judged.shell,
            env: env::build(&env::Parts {
                server: &self.server_env,
                person: &walls.env,
                path,
                asked: &request.env,
                cwd: &walls.profile.cwd.to_string_lossy(),
                run: &id,
                read_only: sandbox.files == Access::Read,
                offline: sandbox.network == Network::Off,
            }),
            profile: walls.profile,
            stdin: request.stdin(),
            limits,
            run: id.clone(),
        };
        let detail = Detail {
            sandbox: Some(walls.view),
            limits: Some(LimitsView {
                memory_bytes: bounds.memory_bytes,
                processes: bounds.processes,
                open_files: bounds.open_files,
                file_bytes: bounds.file_bytes,
                disk_bytes: bounds.disk_bytes,
            }),
            ..detail(request, judged.shell, &limits, warnings)
        };
        let mut command = command(request, id, now, cwd, detail);
        command.approved_by = permit.person().map(str::to_owned);
        Ok(Plan {
            command,
            env: request.env.iter().map(|(name, _)| name.clone()).collect(),
            verdict: match permit.person() {
                Some(_) => "ask",
                None => "auto",
            },
            spec,
            room,
            guarded: walls.guarded,
            cwd: walls.cwd,
            input: match &request.input {
                Input::Text(text) => Some(text.clone()),
                Input::None | Input::Open => None,
            },
        })
    }

    async fn block(
        &self,
        mut command: Command,
        state: State,
        by: &str,
        reason: Reason,
    ) -> Result<Run, Error> {
        let kind = match state {
            State::Rejected => "run.rejected",
            _ => "run.blocked",
        };
        let entry = self.entry(
            kind,
            by,
            Some(&command.id),
            json!({ "command": command.command, "cwd": command.cwd,
                    "requested_by": command.requested_by, "rule": reason.rule, "reason": reason.text }),
        );
        let mut detail = Run::from_command(command.clone()).detail;
        detail.reason = Some(reason);
        command.state = state;
        command.detail = stored(detail);
        self.store.insert(command.clone(), vec![entry]).await?;
        Ok(Run::from_command(command))
    }

    /// Records the start, and only then starts.
    async fn start(self: &Arc<Self>, plan: Plan, permit: Permit) -> Result<Run, Error> {
        let mut command = plan.command;
        command.started_at = Some(command.created_at);
        command.open = true;
        let sandbox = Run::from_command(command.clone()).detail.sandbox;
        let entry = self.entry(
            "run.started",
            &command.requested_by,
            Some(&command.id),
            json!({ "command": command.command, "cwd": command.cwd, "verdict": plan.verdict,
                    "approved_by": command.approved_by,
                    "shell": plan.spec.shell, "env": plan.env,
                    "sandbox": sandbox,
                    "timeout_ms": plan.spec.limits.hard.as_millis() as u64 }),
        );
        // The caller's patience does not matter here: what was begun is
        // recorded to its end, even when nobody waits any more.
        let engine = Arc::clone(self);
        let started = tokio::spawn(async move {
            // It wakes up while the start is being recorded.
            let keeper = exec::summon(&engine.nursery)?;
            engine.store.insert(command.clone(), vec![entry]).await?;
            let launched = launch(&engine.nursery, keeper, permit, plan.spec, plan.input).await;
            drop(plan.cwd);
            match launched {
                Ok((job, reserved)) => {
                    let live = Live::new(job, reserved, Some(plan.room), plan.guarded);
                    let live = Arc::new(live);
                    engine.lives.insert(&command.id, Arc::clone(&live));
                    let run = Run::from_command(command.clone());
                    tokio::spawn(follow(engine, live, command));
                    Ok(run)
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

    async fn never_began(&self, command: Command, problem: Problem) {
        let reason = Reason {
            code: problem.code.into(),
            text: format!("{}. Nothing was run.", problem.detail),
            rule: None,
            layer: None,
            part: None,
            remedy: Some(problem.hint),
        };
        self.settle(command, State::Failed, reason).await;
    }

    /// Closes a run of which there is no last word.
    pub(crate) async fn settle(&self, mut command: Command, state: State, reason: Reason) -> Run {
        let entry = self.entry(
            "run.ended",
            "weighlock",
            Some(&command.id),
            json!({ "state": state, "reason": reason.text }),
        );
        let mut detail = Run::from_command(command.clone()).detail;
        detail.reason = Some(reason);
        let log = exec::Log::open(&self.dir_of(&command.id));
        if let Ok(totals) = log.totals() {
            detail.output.learn(&totals);
        }
        if let Ok((kept, gap)) = log.kept() {
            detail.output.kept_bytes = kept;
            detail.output.dropped_bytes = gap.map_or(0, |(from, to)| to - from);
        }
        command.kept_bytes = detail.output.kept_bytes;
        command.state = state;
        command.ended_at = Some(self.clock.micros());
        command.updated_at = self.clock.micros();
        command.open = false;
        command.detail = stored(detail);
        self.write_until_done(&command, entry).await;
        self.put_away(&command);
        Run::from_command(command)
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
        let log = exec::Log::open(&self.dir_of(&command.id));
        if status.output.bytes() > 0
            && let Ok((kept, gap)) = log.kept()
        {
            detail.output.kept_bytes = kept;
            detail.output.dropped_bytes = gap.map_or(0, |(from, to)| to - from);
        }
        (command.state, command.exit_code, command.signal) = state(status);
        if command.state == State::Failed
            && let Some(sandbox) = &detail.sandbox
        {
            detail.denials = self.denials(&log, sandbox, &command.cwd);
        }
        command.kept_bytes = detail.output.kept_bytes;
        command.updated_at = self.clock.micros();
        command.open = !status.closed;
        if first {
            command.ended_at = Some(command.updated_at);
        }
        let entry = self.entry(
            if first { "run.ended" } else { "run.closed" },
            stopped_by.unwrap_or("weighlock"),
            Some(&command.id),
            json!({ "state": command.state, "exit_code": command.exit_code,
                    "signal": command.signal, "duration_ms": detail.duration_ms,
                    "walls": detail.sandbox.as_ref().map(|sandbox| &sandbox.level),
                    "bytes": detail.output.bytes,
                    "left_running": detail.left_running, "reason": detail.reason.as_ref()
                        .map(|reason| &reason.text) }),
        );
        command.detail = stored(detail.clone());
        if let Err(error) = self
            .store
            .update(command.clone(), vec![entry.clone()])
            .await
        {
            // The caller gets its answer; the record follows when it can.
            detail.warnings.push(format!(
                "the end is not recorded yet, and will be: {}",
                Error::from(error).problem().detail
            ));
            let unrecorded = Command {
                detail: stored(detail),
                ..command.clone()
            };
            end.send_replace(Some(Run::from_command(unrecorded)));
            self.write_until_done(command, entry).await;
        }
        end.send_replace(Some(Run::from_command(command.clone())));
    }

    /// Writes an end, however long the disk is full or the database locked.
    async fn write_until_done(&self, command: &Command, entry: Entry) {
        while let Err(error) = self
            .store
            .update(command.clone(), vec![entry.clone()])
            .await
        {
            tracing::error!(run = command.id, %error, "cannot record the end of a run yet");
            tokio::time::sleep(RETRY_EVERY).await;
        }
    }

    /// Removes what is not needed once a run is recorded, and its directory
    /// when that leaves nothing.
    pub(crate) fn put_away(&self, command: &Command) {
        exec::forget(&self.dir_of(&command.id));
        self.kept
            .fetch_add(command.kept_bytes, std::sync::atomic::Ordering::Relaxed);
    }

    /// Writes down that a request made no sense. It had no effect, so nothing
    /// is undone when that fails too.
    async fn record_refusal(&self, request: &Request, error: &Error) {
        let problem = error.problem();
        let entry = self.entry(
            "run.refused",
            request.principal.name(),
            None,
            json!({ "command": brief(&request.command), "code": problem.code, "detail": problem.detail }),
        );
        if let Err(error) = self.store.record(vec![entry]).await {
            tracing::error!(%error, "cannot record a refusal");
        }
    }
}

async fn launch(
    nursery: &Nursery,
    keeper: Summoned,
    permit: Permit,
    spec: Spec,
    input: Option<Vec<u8>>,
) -> Result<(Job, u64), Error> {
    let reserved = spec.limits.output_bytes;
    let prepare = || {
        std::fs::create_dir_all(&spec.dir)?;
        match &input {
            Some(input) => exec::write_input(&spec.dir, input),
            None => Ok(()),
        }
    };
    prepare().map_err(|source| Error::File {
        path: spec.dir.clone(),
        source,
    })?;
    let job = exec::start(nursery, keeper, permit, spec).await?;
    Ok((job, reserved))
}

/// Follows a run to its end and records it.
pub(crate) async fn follow(engine: Arc<Engine>, live: Arc<Live>, mut command: Command) {
    let ended = live.job.ended().await;
    let last = match ended {
        Some(status) if status.closed => Some(status),
        Some(status) => {
            // The shell has ended, and what it left goes on.
            let by = live.stopper();
            engine
                .learn(&mut command, &status, by.as_deref(), &live.end)
                .await;
            live.job.closed().await
        }
        None => None,
    };
    // A keeper whose line was cut may have left its last word on disk.
    let last = last.or_else(|| {
        let status = Status::load(&engine.dir_of(&command.id)).ok().flatten()?;
        status.closed.then_some(status)
    });
    if let Some(guarded) = &live.guarded {
        engine.warn_of_traps(&mut command, guarded);
    }
    match last {
        Some(status) => {
            // Before the answer: what is written after it is a person's.
            live.guarded.iter().for_each(Guarded::release);
            let by = live.stopper();
            engine
                .learn(&mut command, &status, by.as_deref(), &live.end)
                .await;
            // Whoever waits for the end hears of it before we tidy up.
            tokio::task::yield_now().await;
            engine.put_away(&command);
        }
        None => {
            let (last, by) = (live.job.status(), live.stopper());
            engine
                .bury(&mut command, last, by.as_deref(), &live.end)
                .await;
        }
    }
    engine.lives.remove(&command.id);
    live.over.send_replace(true);
    if let Some(guarded) = &live.guarded {
        let (engine, dir) = (Arc::clone(&engine), guarded.dir.clone());
        tokio::task::spawn_blocking(move || engine.found.repositories.look_again(&dir));
    }
    if let Err(error) = engine.tidy().await {
        tracing::warn!(%error, "cannot remove old output");
    }
}

impl Engine {
    /// Says what a run has made that other programs will run, outside of all
    /// walls. What decides about later runs is set aside.
    fn warn_of_traps(&self, command: &mut Command, guarded: &Guarded) {
        let mut detail = Run::from_command(command.clone()).detail;
        for path in guarded.appeared() {
            let whole = guarded.dir.join(&path);
            if whole == self.forgery.dir() {
                if !self.forgery.is_forged() {
                    continue;
                }
                let Ok(aside) = self.forgery.set_aside() else {
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
        for name in guarded.left_at_home() {
            detail.warnings.push(format!(
                "it made ~/{} in the sandbox's own home directory; yours is unchanged",
                name.to_string_lossy()
            ));
        }
        command.detail = stored(detail);
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
        if let Ok(totals) = exec::Log::open(&self.dir_of(&command.id)).totals()
            && totals.bytes() > last.output.bytes()
        {
            last.output = totals;
        }
        last.closed = true;
        self.learn(command, &last, stopped_by, end).await;
        self.put_away(command);
    }

    /// Settles a run whose end nobody saw.
    pub(crate) async fn lose(&self, command: Command, why: &str) -> Run {
        // Without a PID namespace, what was inside may have outlived its keeper.
        let survivors = exec::kill_tagged(&tag(&command.id));
        let mut text = format!("Lost: {why}.");
        if survivors > 0 {
            text.push_str(&format!(" {survivors} processes left of it were ended."));
        }
        let reason = Reason {
            code: "lost".into(),
            text,
            rule: None,
            layer: None,
            part: None,
            remedy: Some(
                "Its output up to then is kept. Check what it did before running it again.".into(),
            ),
        };
        self.settle(command, State::Lost, reason).await
    }
}

/// Takes the yes of whoever asks. Only people reach us by now; who may decide
/// comes with principals.
fn approved(question: Question, request: &Request) -> Permit {
    question.approved_by(request.principal.name())
}

fn name_of(shell: Shell) -> String {
    match shell {
        Shell::Sh => "sh".into(),
        Shell::Bash => "bash".into(),
    }
}

fn detail(request: &Request, shell: Shell, limits: &Limits, warnings: Vec<String>) -> Detail {
    Detail {
        description: request.description.clone(),
        shell: name_of(shell),
        timeout_ms: limits.hard.as_millis() as u64,
        idle_ms: limits.idle.map(|idle| idle.as_millis() as u64),
        warnings,
        ..Detail::default()
    }
}

/// The command as it is remembered before anything happened.
fn command(request: &Request, id: String, now: i64, cwd: String, detail: Detail) -> Command {
    Command {
        id,
        session: request.session.clone(),
        command: request.command.clone(),
        cwd,
        state: State::Running,
        exit_code: None,
        signal: None,
        requested_by: request.principal.name().into(),
        approved_by: None,
        created_at: now,
        updated_at: now,
        started_at: None,
        ended_at: None,
        open: false,
        kept_bytes: 0,
        detail: stored(detail),
    }
}

/// What running a request takes.
struct Plan {
    command: Command,
    /// Names of the variables that the request sets; values may be secret.
    env: Vec<String>,
    /// What the policy said.
    verdict: &'static str,
    spec: Spec,
    room: OwnedSemaphorePermit,
    /// What is protected in the directory that it may write.
    guarded: Option<Guarded>,
    /// Keeps the working directory what it is until the walls stand.
    cwd: OwnedFd,
    /// All that it will read, where that is known.
    input: Option<Vec<u8>>,
}

/// What every process of a run has in its environment.
fn tag(id: &str) -> String {
    format!("{}={id}", env::RUN)
}
