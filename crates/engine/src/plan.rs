//! What running a permitted request takes, worked out before anything begins.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use weighlock_confine::{Access, Network};
use weighlock_exec::{Limits, Spec};
use weighlock_marks::Nonce;
use weighlock_policy::{Permit, Times};
use weighlock_store::{Command, Key};

use crate::effects::Comes;
use crate::engine::Engine;
use crate::env;
use crate::error::Error;
use crate::request::Input;
use crate::run::{Beginning, Case, Still};
use crate::sandbox::Sandbox;
use crate::terminals::{is_plain_shell, startup};
use crate::view::{Detail, LimitsView, Run, SandboxView, TerminalDetail, stored};
use crate::walls::{Guarded, Walls};

/// What running a request takes.
pub(crate) struct Plan {
    pub(crate) command: Command,
    /// What must still be true of it.
    pub(crate) still: Still,
    pub(crate) key: Option<Key>,
    /// Names of the variables that the request sets; values may be secret.
    pub(crate) env: Vec<String>,
    /// What the policy said.
    pub(crate) verdict: &'static str,
    pub(crate) spec: Spec,
    pub(crate) room: OwnedSemaphorePermit,
    /// Its sandbox as it is shown.
    pub(crate) sandbox: SandboxView,
    /// What is protected in the directory that it may write.
    pub(crate) guarded: Option<Guarded>,
    /// Runs whose copies it sees.
    pub(crate) below: Vec<String>,
    /// Keeps them and its own there until it has begun.
    pub(crate) comes: Option<Comes>,
    /// Keeps the working directory what it is until the walls stand.
    pub(crate) cwd: OwnedFd,
    pub(crate) files: Files,
}

/// What is in a run's directory before it begins.
pub(crate) struct Files {
    /// All that it will read, where that is known.
    pub(crate) input: Option<Vec<u8>>,
    /// The secret by which its shell tells where it is.
    pub(crate) nonce: Option<Nonce>,
}

impl Engine {
    /// Works out everything that running a permitted request takes.
    pub(crate) fn plan(
        &self,
        case: Case,
        permit: &Permit,
        beginning: Beginning,
    ) -> Result<Plan, Error> {
        let room = self.take_place()?;
        let narrowed = narrowed(&case.known.sandbox, permit);
        let allowed = Allowed {
            engine: self,
            case: &case,
            permit,
            sandbox: narrowed.as_ref().unwrap_or(&case.known.sandbox),
        };
        let (limits, mut warnings) = allowed.limits()?;
        warnings.extend(case.judged.warnings.iter().cloned());
        let mut command = self.command(&case, permit, &beginning);
        let mut layers = self.layers(&case, permit, &command.id)?;
        let mut walls = self.walls(allowed.sandbox, &case.place, &case.path, &mut layers)?;
        let tasks = self.show_tasks(&case.session, walls.for_root);
        walls.profile.files.extend(tasks);
        let (below, comes) = (layers.below(), layers.comes.take());
        self.keep_copy(&case, permit, layers)?;
        warnings.append(&mut walls.warnings);
        let (startup, nonce) = startup(&case.request).unzip();
        let (guarded, sandbox) = (walls.guarded.take(), walls.view.clone());
        let spec = Spec {
            startup,
            ..allowed.spec(walls, limits, &command.id)
        };
        let before = Run::from_command(command.clone()).detail;
        warnings.extend(before.warnings.iter().cloned());
        command.detail = stored(&Detail {
            sandbox: Some(sandbox.clone()),
            warnings,
            ..allowed.detail(before, &spec)
        });
        command.started_at = Some(self.clock.micros());
        command.open = true;
        let request = &case.request;
        Ok(Plan {
            still: beginning.still(),
            key: request.keyed(),
            env: request.env.iter().map(|(name, _)| name.clone()).collect(),
            verdict: match permit.person() {
                None if !permit.on_copy() => "auto",
                _ => "ask",
            },
            files: Files {
                input: match &request.input {
                    Input::Text(text) => Some(text.clone()),
                    Input::None | Input::Open | Input::Terminal(_) => None,
                },
                nonce,
            },
            command,
            spec,
            room,
            guarded,
            sandbox,
            below,
            comes,
            cwd: case.place.fd,
        })
    }

    /// Takes one of the places for runs, of which there are so many.
    fn take_place(&self) -> Result<OwnedSemaphorePermit, Error> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        place.map_err(|_| Error::TooMany {
            running: self.config.max_running,
        })
    }
}

/// A request that may run.
struct Allowed<'a> {
    engine: &'a Engine,
    case: &'a Case,
    permit: &'a Permit,
    /// Its sandbox as it is for this one.
    sandbox: &'a Sandbox,
}

impl Allowed<'_> {
    /// Returns its limits, and what has to be said about them.
    fn limits(&self) -> Result<(Limits, Vec<String>), Error> {
        let output = self.engine.grant_bytes();
        let most = self.sandbox.output_bytes;
        let output = most.map_or(output, |most| output.min(most));
        let keep = self.engine.config.keep;
        self.case.request.limits(self.times(), keep, output)
    }

    /// Returns how long it may take: as all, unless it is a terminal, or the
    /// rules or the sandbox say otherwise.
    fn times(&self) -> Times {
        let is_terminal = self.case.request.terminal().is_some();
        let mut times = self.engine.times();
        if is_terminal {
            let age = self.engine.config.terminal_age;
            times = Times {
                default: age,
                max: age,
            };
        }
        if let Some(timeout) = self.case.judged.timeout {
            times.default = timeout.min(times.max);
        }
        if let Some(time) = self.sandbox.time.filter(|_| !is_terminal) {
            times.max = times.max.min(time);
            times.default = times.default.min(time);
        }
        times
    }

    /// Returns what its keeper has to know.
    fn spec(&self, walls: Walls, limits: Limits, run: &str) -> Spec {
        let request = &self.case.request;
        let is_task = request.background && request.terminal().is_none();
        Spec {
            run: run.to_owned(),
            dir: self.engine.dir_of(run),
            shell: self.case.judged.shell,
            env: self.env(&walls, run),
            stdin: request.stdin(),
            profile: walls.profile,
            limits,
            startup: None,
            hidden: secrets(self.sandbox, self.permit)
                .map(|(_, value)| value.clone())
                .collect(),
            output_file: is_task
                .then(|| self.engine.make_output_file(run, &self.case.session).ok())
                .flatten(),
        }
    }

    fn env(&self, walls: &Walls, run: &str) -> Vec<(String, String)> {
        let request = &self.case.request;
        env::build(&env::Parts {
            server: &self.engine.server_env,
            person: &walls.env,
            path: &self.case.path,
            sandbox: &variables(self.sandbox, self.permit),
            asked: &request.env,
            cwd: &walls.profile.cwd.to_string_lossy(),
            run,
            read_only: self.sandbox.files == Access::Read,
            offline: self.sandbox.network == Network::Off,
            terminal: request.terminal().is_some(),
            shell: is_plain_shell(&request.command),
        })
    }

    /// Returns what has no column of its own in the record, and what of it was
    /// there before.
    fn detail(&self, before: Detail, spec: &Spec) -> Detail {
        let request = &self.case.request;
        let file = spec.output_file.as_ref();
        Detail {
            description: request.description.clone(),
            shell: spec.shell.name().into(),
            timeout_ms: spec.limits.hard.as_millis() as u64,
            idle_ms: spec.limits.idle.map(|idle| idle.as_millis() as u64),
            terminal: request.terminal().map(TerminalDetail::from),
            limits: Some(LimitsView::from(&spec.profile.limits)),
            original: before.original,
            token: before.token,
            policy_version: before.policy_version,
            background: request.background,
            output_file: file.map(|path| path.to_string_lossy().into_owned()),
            without_shell: self.permit.argv().is_some(),
            ..Detail::default()
        }
    }
}

/// Returns a sandbox as it is for what is proved to read, or only tried; `None`
/// where it is as it is.
fn narrowed(sandbox: &Sandbox, permit: &Permit) -> Option<Sandbox> {
    match permit.read_only() {
        true => Some(sandbox.read_only()),
        false => permit.on_copy().then(|| sandbox.offline()),
    }
}

/// Returns what a sandbox sets for a command.
fn variables(sandbox: &Sandbox, permit: &Permit) -> Vec<(String, String)> {
    let mut set = env::of_server(&sandbox.pass);
    let own = sandbox.set.iter().chain(secrets(sandbox, permit));
    set.extend(own.map(|(name, value)| (name.clone(), value.clone())));
    set
}

/// Returns what is secret and set for a command. That is for those that a person
/// or a rule has allowed: whoever asks reads the output of what is only tried, or
/// proved to read, without anybody being asked.
fn secrets<'a>(
    sandbox: &'a Sandbox,
    permit: &Permit,
) -> impl Iterator<Item = (&'a String, &'a String)> + use<'a> {
    let given = !permit.is_unasked();
    let secrets = sandbox.secrets.iter();
    secrets.filter(move |_| given)
}
