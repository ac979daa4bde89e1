//! Judging a request: by an engine that would run it, or by nobody who runs
//! anything.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};
use weighlock_exec::Shell;
use weighlock_policy::{
    Blacklist, Judgement, Layer, LoadError, Place, Reader, Reason, Subject, Verdict, Who, is_loud,
    understand,
};
use weighlock_store::{Clock, Command};
use weighlock_walls::{DEFAULT_SANDBOX, Sandbox, WorkDir, inherit_variables, resolve_home};

use super::Rules;
use super::blacklist::BlacklistFile;
use super::explain::broken;
use crate::config::Config;
use crate::error::{Error, brief};
use crate::hex::hex;
use crate::policy::{self, For, Policy, RuleDraft};
use crate::principal::{Principal, Via};
use crate::project::{self, View};
use crate::request::{Input, Request};
use crate::sandboxes::Known;
use crate::view::{Explanation, ReasonView};

/// Judges commands by the settings and the rule files, and runs none. It keeps
/// nothing and needs no directory of its own; what people have allowed
/// beforehand is the engine's, and unknown here.
pub struct Judge {
    policy: Policy,
    sandboxes: Vec<Sandbox>,
    base: PathBuf,
    home: PathBuf,
    clock: Clock,
    blacklist: BlacklistFile,
}

impl Judge {
    /// Reads the rules. Directories need not exist.
    pub fn open(config: &Config, clock: Clock) -> Result<Self, Error> {
        let policy = Policy::read(config).map_err(|errors| Error::Rules { errors })?;
        let real = |dir: &PathBuf| dir.canonicalize().unwrap_or_else(|_| clean(dir));
        let base = real(&config.base);
        let mut sandboxes = config.sandboxes.clone();
        for sandbox in &mut sandboxes {
            sandbox.directory = sandbox.directory.as_ref().map(real);
        }
        Ok(Self {
            policy,
            sandboxes,
            blacklist: BlacklistFile::load(&base),
            base,
            home: resolve_home(&std::env::var("HOME").unwrap_or_default()),
            clock,
        })
    }

    /// Says what the policy makes of a command. The working directory is taken
    /// as it is written: it need not exist, nor lie in the sandbox.
    pub fn explain(&self, request: &Request) -> Result<Explanation, Error> {
        let (judged, sandbox) = self.judged(request)?;
        Ok(judged.explain(request, sandbox))
    }

    /// Returns the verdict and why it is not `auto`: what many commands are
    /// asked for.
    pub fn verdict(&self, request: &Request) -> Result<(Verdict, Vec<ReasonView>), Error> {
        let (judged, _) = self.judged(request)?;
        Ok((judged.judgement.verdict, judged.reasons()))
    }

    fn judged(&self, request: &Request) -> Result<(Judged, &Sandbox), Error> {
        request.check()?;
        let sandbox = find_sandbox(&self.sandboxes, request.sandbox.as_deref())?;
        let root = sandbox.directory.as_ref().unwrap_or(&self.base);
        let cwd = clean(&root.join(request.cwd.as_deref().unwrap_or(".")));
        let view = || {
            Ok(View {
                root: root.clone(),
                ..View::default()
            })
        };
        let asked = Asked {
            request,
            view: cwd.is_dir().then_some(&view),
            sandbox: &sandbox.name,
            sandbox_id: &sandbox.id,
            layers: &[],
            session: request.session.as_deref(),
            place: policy::place(root, &cwd, &self.home),
            blacklist: self.blacklist.clone(),
            now: self.clock.micros() / 1_000_000,
            draft: None,
            set: set_by(sandbox),
        };
        Ok((self.policy.judge(asked)?, sandbox))
    }
}

/// Returns the sandbox with this name; the default one without a name.
fn find_sandbox<'a>(all: &'a [Sandbox], name: Option<&str>) -> Result<&'a Sandbox, Error> {
    let name = name.unwrap_or(DEFAULT_SANDBOX);
    let found = all.iter().find(|sandbox| sandbox.name == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = all.iter().map(|sandbox| sandbox.name.as_str()).collect();
        Error::NoSuchSandbox {
            name: brief(name),
            known: known.join(", "),
        }
    })
}

/// Checks the text of a rule file, which is called `file` in what is said of it.
pub fn check_rules(file: &str, text: &str) -> Result<(), Vec<LoadError>> {
    policy::draft(file, text).map(drop)
}

/// A request, with all that its verdict depends on.
pub(crate) struct Asked<'a> {
    request: &'a Request,
    sandbox: &'a str,
    /// How grants name it: another can come to have its name.
    sandbox_id: &'a str,
    /// Rules of the sandbox's own.
    layers: &'a [Arc<Layer>],
    /// The session that it belongs to, by id.
    session: Option<&'a str>,
    place: Place,
    blacklist: BlacklistFile,
    /// In seconds since 1970.
    now: i64,
    /// Takes the place of a rule file.
    draft: Option<&'a RuleDraft>,
    /// What the sandbox sets, which can change what programs do.
    set: Vec<(String, String)>,
    /// Returns the files that it would see, to look at settings of the project;
    /// none where it is only judged how it was, or would be.
    view: Option<&'a dyn Fn() -> Result<View, Error>>,
}

/// A judged request, before it is settled.
pub(crate) struct Judged {
    pub(crate) judgement: Judgement,
    pub(crate) shell: Shell,
    pub(crate) place: Place,
    pub(crate) warnings: Vec<String>,
    pub(crate) fingerprint: String,
    /// The time limit of its agent.
    pub(crate) timeout: Option<Duration>,
}

/// Where a request would be run.
pub(crate) struct Where<'a> {
    pub(crate) known: &'a Known,
    pub(crate) place: &'a WorkDir,
    /// The session, by id.
    pub(crate) session: Option<&'a str>,
}

impl Rules {
    /// Judges a request where it would run. A draft takes the place of a rule
    /// file.
    pub(crate) fn judge(
        &self,
        request: &Request,
        at: &Where<'_>,
        draft: Option<&RuleDraft>,
    ) -> Result<Judged, Error> {
        let (known, sandbox) = (at.known, &at.known.sandbox);
        let view = || self.view_at(sandbox, &at.place.path, at.session);
        self.freed.judged(&request.command);
        self.policy.judge(Asked {
            request,
            view: Some(&view),
            sandbox: &sandbox.name,
            sandbox_id: &sandbox.id,
            layers: &known.layers,
            session: at.session,
            place: policy::place(
                self.walls.directory_of(sandbox),
                &at.place.path,
                self.walls.home(),
            ),
            blacklist: self.blacklist(),
            now: self.core.clock.micros() / 1_000_000,
            draft,
            set: set_by(sandbox),
        })
    }

    /// Returns the files that a run sees which only reads.
    fn view_at(&self, sandbox: &Sandbox, cwd: &Path, session: Option<&str>) -> Result<View, Error> {
        let root = self.walls.usable_directory(sandbox, cwd);
        let homes = self.walls.homes_of(&sandbox.id);
        let home = self.walls.home();
        let layers = homes.iter().map(|at| (home.to_owned(), at.clone()));
        let mut layers: Vec<_> = layers.collect();
        if let Some(session) = session {
            layers.extend((self.held_layers)(&self.core, session)?);
        }
        Ok(View {
            root: root.unwrap_or_else(|| cwd.to_owned()),
            layers,
            homes,
        })
    }

    /// Returns the rules that changes of a request are judged by.
    pub(crate) fn rules_for(&self, request: &Request, known: &Known) -> weighlock_policy::Rules {
        let asker = For {
            agent: request.profile(),
            sandbox: &known.sandbox.name,
            layers: &known.layers,
        };
        let in_force = self.policy.current();
        self.policy.rules(&in_force, None, &asker, None)
    }

    /// Judges a command of the past, as if it were asked for now.
    pub(crate) fn judge_past(
        &self,
        command: &Command,
        draft: Option<&RuleDraft>,
    ) -> Result<Judged, Error> {
        self.freed.judged(&command.command);
        let row = self.core.store.principals().named(&command.requested_by)?;
        let who = row.and_then(|row| Principal::from_row(&row, Via::Record));
        let who = who.unwrap_or_else(|| Principal::library(command.requested_by.clone()));
        let known = command.sandbox.as_deref();
        let known = known.and_then(|id| self.sandboxes.find_known(id));
        let sandbox = known.as_ref().map(|known| &known.sandbox);
        self.policy.judge(Asked {
            request: &Request::new(who, command.command.clone()),
            view: None,
            sandbox: sandbox.map_or("", |sandbox| &sandbox.name),
            sandbox_id: command.sandbox.as_deref().unwrap_or_default(),
            layers: known.as_ref().map_or(&[], |known| &known.layers),
            session: command.session.as_deref(),
            place: self.place_of(command),
            blacklist: self.blacklist(),
            now: self.core.clock.micros() / 1_000_000,
            draft,
            set: sandbox.map_or_else(Vec::new, |sandbox| set_by(sandbox)),
        })
    }
}

/// Returns what a sandbox sets that changes what programs do: with it, what is
/// known of them does not hold. Of secrets only the names are needed.
fn set_by(sandbox: &Sandbox) -> Vec<(String, String)> {
    let mut set = inherit_variables(&sandbox.pass);
    set.extend({ sandbox.set.iter() }.map(|(name, value)| (name.clone(), value.clone())));
    set.extend(
        sandbox
            .secrets
            .keys()
            .map(|name| (name.clone(), String::new())),
    );
    set.retain(|(name, _)| is_loud(name));
    set
}

impl Policy {
    fn judge(&self, asked: Asked<'_>) -> Result<Judged, Error> {
        let Asked { request, place, .. } = asked;
        let agent = request.profile();
        let in_force = self.current();
        if let Some(name) = request.agent.as_deref()
            && !in_force.knows(name)
        {
            return Err(Error::NoSuchAgent {
                name: brief(name),
                known: in_force.agents(),
            });
        }
        let mut warnings = broken(&in_force.broken);
        warnings.extend(asked.blacklist.warning);
        let saved: Option<Blacklist> =
            { asked.blacklist.from_file }.then_some(asked.blacklist.list);
        let asker = For {
            agent,
            sandbox: asked.sandbox,
            layers: asked.layers,
        };
        let rules = self.rules(&in_force, saved, &asker, asked.draft);
        let reader = match request.shell {
            None => Reader::Either,
            Some(Shell::Sh) => Reader::Sh,
            Some(Shell::Bash) => Reader::Bash,
        };
        let mut env = asked.set;
        env.extend_from_slice(&request.env);
        let mut facts = understand(&request.command, reader, &env, &place);
        if let Some(view) = asked.view
            && facts.parts.iter().any(|part| !part.obeys.is_empty())
        {
            project::look(&mut facts, &view()?);
        }
        if let Some(dir) = &request.shell_dir
            && *dir != place.cwd
        {
            project::doubt(&mut facts, dir);
        }
        let shell = request.shell.unwrap_or(match facts.needs_bash {
            true => Shell::Bash,
            false => Shell::Sh,
        });
        let subject = Subject {
            text: &request.command,
            place: Some(&place),
            who: Who {
                agent,
                sandbox: Some(asked.sandbox_id),
                sandbox_name: Some(asked.sandbox),
                session: asked.session,
                principal: Some(request.principal.name()),
                role: Some(match request.principal.is_administrator() {
                    true => "admin",
                    false => "user",
                }),
            },
            description: request.description.as_deref(),
            terminal: request.terminal().is_some(),
            now: asked.now,
        };
        let mut judgement = rules.decide(facts, &subject);
        if request.writes_directly
            && judgement.is_allowed_by_built_in()
            && !only_moves(&request.command)
        {
            judgement.ask_because(writes_directly());
        }
        Ok(Judged {
            fingerprint: fingerprint(request, asked.sandbox, &place, &judgement),
            timeout: in_force.timeout(agent),
            judgement,
            shell,
            place,
            warnings,
        })
    }
}

/// Returns whether a line does nothing but go to another directory, spelled so
/// that no shell finds anything else in it.
fn only_moves(line: &str) -> bool {
    let plain = |char: char| char.is_ascii_alphanumeric() || " ._/-~".contains(char);
    let words: Vec<_> = line.split_whitespace().collect();
    line.chars().all(plain) && matches!(words.as_slice(), ["cd"] | ["cd", _])
}

/// Why a command that reads is asked about at a terminal. Elsewhere the kernel
/// keeps it from doing anything else; there, a mistake of ours would be done.
fn writes_directly() -> Reason {
    Reason {
        code: "terminal_writes".into(),
        text: "This terminal writes directly, so commands that only read are asked about, too."
            .into(),
        rule: "terminal-writes".into(),
        layer: "built-in".into(),
        remedy: "Run it as a command of its own: there it needs no approval.".into(),
        span: None,
    }
}

/// Names what a person is asked about: the text, where it would run and with
/// what, and why it is asked.
fn fingerprint(request: &Request, sandbox: &str, place: &Place, judgement: &Judgement) -> String {
    let reasons = judgement.reasons.iter();
    let reasons: Vec<&str> = reasons.map(|reason| reason.text.as_str()).collect();
    let input = match &request.input {
        Input::None => json!(null),
        Input::Open => json!("open"),
        Input::Terminal(terminal) => json!({ "terminal": terminal.name }),
        Input::Text(bytes) => json!(bytes),
    };
    let asked = json!([
        request.command,
        input,
        request.shell,
        request.env,
        request.profile(),
        sandbox,
        place.cwd,
        reasons
    ]);
    let hash = Sha256::digest(asked.to_string().as_bytes());
    hex(&hash[..12])
}

/// Takes `.` and `..` out of an absolute path, by its letters alone.
pub(crate) fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(config: &Config) -> Judge {
        Judge::open(config, Clock::system()).unwrap()
    }

    fn request(command: &str) -> Request {
        Request::new(Principal::library("test"), command)
    }

    #[test]
    fn it_needs_no_directory() {
        let config = Config::new("/nonexistent/state".into(), "/nonexistent/base".into());
        let judge = judge(&config);
        let verdict = |command| judge.verdict(&request(command)).unwrap().0;
        assert_eq!(verdict("git status | head"), Verdict::Auto);
        assert_eq!(verdict("rm -r build"), Verdict::Ask);
        assert_eq!(verdict("rm -rf /"), Verdict::Reject);
        let elsewhere = Request {
            cwd: Some("../../etc/./x".into()),
            ..request("ls")
        };
        let explained = judge.explain(&elsewhere).unwrap();
        assert_eq!(explained.cwd, "/etc/x");
        assert_eq!(explained.verdict, Verdict::Auto);
    }

    #[test]
    fn an_unknown_sandbox_is_an_error() {
        let config = Config::new("/nonexistent".into(), "/nonexistent".into());
        let request = Request {
            sandbox: Some("x".into()),
            ..request("ls")
        };
        let error = judge(&config).verdict(&request).unwrap_err();
        assert_eq!(error.problem().code, "no_such_sandbox");
    }
}
