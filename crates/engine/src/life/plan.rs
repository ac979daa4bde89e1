//! What running a permitted request takes, worked out before anything begins.

use crate::request::terminal_detail;
use crate::view::{limits_view, walls_view};
use std::os::fd::OwnedFd;
use weighlock_api::is_plain_shell;

use weighlock_confine::{Access, Network};
use weighlock_exec::{Hidden, Limits, Spec};
use weighlock_marks::Nonce;
use weighlock_policy::{Permit, Times};
use weighlock_store::{Command, Key};
use weighlock_walls::{
    CopyLayers, EnvironmentParts, GuardedDir, RunWalls, Sandbox, WallRequest, build_environment,
    inherit_variables,
};

use super::{Beginning, Life, Still};
use crate::case::Case;
use crate::copies::Comes;
use crate::error::Error;
use crate::request::Input;
use crate::shares::Place;
use crate::shells::startup;
use crate::view::RunRecord;
use crate::view::{Detail, Run, SandboxView, stored};

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
    pub(crate) room: Place,
    /// Its sandbox as it is shown.
    pub(crate) sandbox: SandboxView,
    /// What is protected in the directory that it may write.
    pub(crate) guarded: Option<GuardedDir>,
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

impl Life {
    /// Works out everything that running a permitted request takes, and returns
    /// what of the permit counts then.
    pub(crate) fn plan(
        &self,
        case: Case,
        permit: Permit,
        beginning: Beginning,
    ) -> Result<(Plan, Permit), Error> {
        let room = { &self.places }.take(&case.request.principal);
        let room = room.map_err(Error::TooMany)?;
        let mut command = self.command(&case, &permit, &beginning);
        let (mut layers, comes) = self.copies.layers(&case, &permit, &command.id)?;
        let (permit, doubt) = self.doubted(permit, &case, &mut layers)?;
        let narrowed = narrowed(&case.known.sandbox, &permit);
        let allowed = Allowed {
            life: self,
            case: &case,
            permit: &permit,
            sandbox: narrowed.as_ref().unwrap_or(&case.known.sandbox),
        };
        let (limits, mut warnings) = allowed.limits()?;
        warnings.extend(case.judged.warnings.iter().cloned());
        warnings.extend(doubt);
        warnings.extend(allowed.withheld());
        layers.closed = !allowed.reads_secret_files(&layers);
        let request = WallRequest {
            sandbox: allowed.sandbox,
            work_dir: &case.place,
            path: &case.path,
            other_dirs: &self.sandboxes.other_dirs(allowed.sandbox),
        };
        let mut walls = self.walls.build(&request, &mut layers)?;
        let tasks = self.retention.show_tasks(&case.session, walls.for_root);
        walls.profile.files.extend(tasks);
        let below = layers.runs_below();
        self.copies.keep_copy(&case, &permit, &command.id, layers)?;
        warnings.append(&mut walls.warnings);
        let (startup, nonce) = startup(&case.request).unzip();
        let sandbox = walls_view(allowed.sandbox, &walls);
        let guarded = walls.guarded.take();
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
        command.started_at = Some(self.core.clock.micros());
        command.open = true;
        let request = &case.request;
        let plan = Plan {
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
        };
        Ok((plan, permit))
    }

    /// Restricts a command that a rule allows but that could run code the
    /// requester has written since people saw it. Such a command leaves nothing
    /// in the home directory, and with secrets or a network available it only
    /// runs on a copy. The same holds for a preview. Returns the warnings about
    /// this.
    fn doubted(
        &self,
        permit: Permit,
        case: &Case,
        layers: &mut CopyLayers,
    ) -> Result<(Permit, Option<String>), Error> {
        if permit.is_unasked() || permit.person().is_some() || !layers.is_writable() {
            return Ok((permit, None));
        }
        let doubtful = layers.has_undecided();
        if !doubtful && !self.copies.is_previewed(case)? {
            return Ok((permit, None));
        }
        layers.discard_home();
        let sandbox = &case.known.sandbox;
        let has_more = sandbox.network == Network::On || !sandbox.secrets.is_empty();
        if doubtful && !has_more && !self.copies.is_previewed(case)? {
            return Ok((permit, None));
        }
        let said = doubtful.then(|| {
            "it sees changes that nobody has decided about, so the rule that allows it does not \
             count: it was only tried, without network and secrets; `weighlock draft` lists them"
                .to_owned()
        });
        Ok((permit.only_tried(), said))
    }
}

/// A request that may run.
struct Allowed<'a> {
    life: &'a Life,
    case: &'a Case,
    permit: &'a Permit,
    /// Its sandbox as it is for this one.
    sandbox: &'a Sandbox,
}

impl Allowed<'_> {
    /// Returns its limits, and what has to be said about them.
    fn limits(&self) -> Result<(Limits, Vec<String>), Error> {
        let output = self.life.retention.grant_bytes();
        let most = self.sandbox.output_bytes;
        let output = most.map_or(output, |most| output.min(most));
        let keep = self.life.core.config.keep;
        self.case.request.limits(self.times(), keep, output)
    }

    /// Returns how long it may take: as all, unless it is a terminal, or the
    /// rules or the sandbox say otherwise.
    fn times(&self) -> Times {
        let is_terminal = self.case.request.terminal().is_some();
        let mut times = self.life.limits.times();
        if is_terminal {
            let age = self.life.core.config.terminal_age;
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
    fn spec(&self, walls: RunWalls, limits: Limits, run: &str) -> Spec {
        let request = &self.case.request;
        let is_task = request.background && request.terminal().is_none();
        Spec {
            run: run.to_owned(),
            dir: self.life.core.run_dir(run),
            shell: self.case.judged.shell,
            env: self.env(&walls, run),
            stdin: request.stdin(),
            profile: walls.profile,
            limits,
            startup: None,
            hidden: Hidden {
                values: self.sandbox.secrets.values().cloned().collect(),
                in_pieces: self.has_secrets(),
            },
            output_file: is_task
                .then(|| {
                    self.life
                        .retention
                        .make_output_file(run, &self.case.session)
                        .ok()
                })
                .flatten(),
        }
    }

    /// Returns whether the run gets the sandbox's secrets. Only commands that a
    /// person or a rule has allowed do, because the requester reads the output
    /// of read-only runs and of runs on a copy without approval. A terminal or
    /// an open input never gets them, because the requester decides later what
    /// runs there.
    fn has_secrets(&self) -> bool {
        !self.permit.is_unasked() && !self.is_open()
    }

    /// Returns whether it may read secret files: a person has allowed it, or
    /// rules of people have allowed all of it, and it sees nothing that nobody
    /// has decided about. A shell that somebody types at runs other commands,
    /// and each of those is judged by itself.
    fn reads_secret_files(&self, layers: &CopyLayers) -> bool {
        let by_rules = self.permit.by_people() && !layers.has_undecided();
        let is_shell = self.is_open() && is_plain_shell(&self.case.request.command);
        (self.permit.person().is_some() || by_rules) && !is_shell
    }

    fn is_open(&self) -> bool {
        matches!(self.case.request.input, Input::Open | Input::Terminal(_))
    }

    /// Says that secrets are missing where they could be expected.
    fn withheld(&self) -> Option<String> {
        let some = !self.sandbox.secrets.is_empty() && !self.permit.is_unasked();
        (some && self.is_open()).then(|| {
            "the sandbox's secrets are not set where somebody can type input later; a task has them"
                .into()
        })
    }

    /// Returns what the sandbox sets for it.
    fn variables(&self) -> Vec<(String, String)> {
        let mut set = inherit_variables(&self.sandbox.pass);
        let secrets = self.sandbox.secrets.iter().filter(|_| self.has_secrets());
        let own = self.sandbox.set.iter().chain(secrets);
        set.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        set
    }

    fn env(&self, walls: &RunWalls, run: &str) -> Vec<(String, String)> {
        let request = &self.case.request;
        build_environment(&EnvironmentParts {
            server: self.life.walls.server_env(),
            user: &walls.env,
            path: &self.case.path,
            sandbox: &self.variables(),
            requested: &request.env,
            cwd: &walls.profile.cwd.to_string_lossy(),
            run,
            read_only: self.sandbox.files == Access::Read,
            offline: self.sandbox.network == Network::Off,
            terminal: request.terminal().is_some(),
            shell: is_plain_shell(&request.command),
        })
    }

    /// Returns the record's fields that have no column, with those that were
    /// set before.
    fn detail(&self, before: Detail, spec: &Spec) -> Detail {
        let request = &self.case.request;
        let file = spec.output_file.as_ref();
        Detail {
            description: request.description.clone(),
            shell: spec.shell.name().into(),
            timeout_ms: spec.limits.hard.as_millis() as u64,
            idle_ms: spec.limits.idle.map(|idle| idle.as_millis() as u64),
            terminal: request.terminal().map(terminal_detail),
            limits: Some(limits_view(&spec.profile.limits)),
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
