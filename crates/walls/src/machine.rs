//! What this machine can do for walls, in lines for a person.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_confine::{Rung, is_root};
use weighlock_exec::Primitive;

use crate::engine::Engine;
use crate::error::Error;
use crate::health::{Check, Checks, Level, failed, hint, ok, problem};
use crate::principal::{Principal, Right};
use crate::request::Request;
use crate::run::Outcome;
use crate::sandbox::Sandbox;

/// One thing that walls are made of, and whether it can be had here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrimitiveView {
    /// A stable word, such as `user-namespace`.
    pub name: String,
    /// It can be had.
    pub ok: bool,
    /// What was found: a version, say.
    pub found: Option<String>,
    /// The kernel's error, as a number.
    pub errno: Option<i32>,
    /// What failed and how, with the error's name.
    pub error: Option<String>,
    /// What does not hold without it.
    pub means: String,
    /// What a person can do about it here.
    pub fix: Option<String>,
}

/// What to do about a line that others explain.
const MEND: &str = "mend what is marked ✗ above";

/// What to do where walls are weak and no part of them explains it.
const REPORT: &str = "each part was granted when it was tried alone, so this is a mistake of \
                      weighlock: please report it, with what `weighlock doctor --json` prints";

/// Without one of these, walls are not full. The rest is a bonus.
const VITAL: &[&str] = &[
    "user-namespace",
    "mount-namespace",
    "pid-namespace",
    "ipc-namespace",
    "uts-namespace",
    "net-namespace",
    "cgroup-namespace",
    "own-mounts",
    "fresh-proc",
    "devpts",
    "loopback",
    "no-new-privs",
    "capabilities",
    "seccomp",
    "rlimits",
];

impl From<Primitive> for PrimitiveView {
    fn from(found: Primitive) -> Self {
        Self {
            name: found.name,
            ok: found.ok,
            found: found.found,
            errno: found.errno,
            error: found.error,
            means: found.means,
            fix: found.fix,
        }
    }
}

impl Engine {
    /// Tries each thing that walls are made of. Empty with the reason where
    /// even that could not be tried.
    pub(crate) async fn probe(self: &std::sync::Arc<Self>) -> (Vec<PrimitiveView>, Vec<Check>) {
        let engine = std::sync::Arc::clone(self);
        let probed = tokio::task::spawn_blocking(move || engine.nursery.probe());
        let found: Vec<PrimitiveView> = match probed.await.expect("probing does not panic") {
            Ok(found) => found.into_iter().map(PrimitiveView::from).collect(),
            Err(error) => {
                let found = format!("what the kernel grants could not be tried: {error}");
                let fix = "see that the server's program can still be started";
                return (vec![], vec![problem("walls", found, fix)]);
            }
        };
        let lines = lines(&found, &self.config.sandboxes);
        (found, lines)
    }

    /// Says what protects a sandbox on this machine, by trying it.
    pub async fn protection(
        self: &std::sync::Arc<Self>,
        id: &str,
        who: &Principal,
    ) -> Result<Checks, Error> {
        let info = self.sandbox(id, who)?;
        who.check(Right::Look)?;
        let (primitives, mut checks) = self.probe().await;
        if let Some(sandbox) = self.sandbox_called(&info.sandbox_id)
            && !primitives.is_empty()
        {
            checks = lines(&primitives, std::slice::from_ref(&*sandbox));
        }
        Ok(Checks { checks, primitives })
    }

    /// Runs a command, as any other: recorded, kept, contained.
    pub(crate) async fn check_run(self: &std::sync::Arc<Self>) -> Check {
        let request = Request {
            description: Some("weighlock doctor".into()),
            timeout_ms: Some(5000),
            ..Request::new(Principal::library("doctor"), "true")
        };
        let run = match self.run(request).await {
            Ok(Outcome::Waiting(_)) => {
                let fix = "look at `weighlock explain true`: a rule asks even for that";
                return problem("run", "the policy asks before running `true`".into(), fix);
            }
            Ok(Outcome::Refused(run) | Outcome::Ended(run) | Outcome::Running(run)) => run,
            Err(error) if error.problem().code == "sandbox_unavailable" => {
                let found = format!("nothing was run: {}", error.problem().detail);
                return problem("run", found, MEND);
            }
            Err(error) => return failed("run", error),
        };
        let sandbox = run.detail.sandbox.as_ref();
        let level = sandbox.and_then(|sandbox| sandbox.level.as_deref());
        match (run.exit_code, level, run.detail.duration_ms) {
            (Some(0), Some(level), Some(took)) => ok(
                "run",
                format!("`true` ran inside {level} walls in {took:.0} ms"),
            ),
            _ => problem(
                "run",
                format!("`true` ended as {:?}", run.state),
                "see `weighlock show @last`",
            ),
        }
    }
}

fn lines(found: &[PrimitiveView], sandboxes: &[Sandbox]) -> Vec<Check> {
    let found = Found(found);
    let mut lines = vec![namespaces(found)];
    lines.extend(mounts(found));
    lines.push(proc(found));
    lines.push(landlock(found));
    lines.push(seccomp(found));
    lines.extend(rest(found));
    lines.push(cgroups(found));
    lines.push(identity(found));
    lines.push(walls(found, sandboxes));
    lines
}

/// Everything that was tried.
#[derive(Clone, Copy)]
struct Found<'a>(&'a [PrimitiveView]);

impl<'a> Found<'a> {
    fn get(self, name: &str) -> Option<&'a PrimitiveView> {
        self.0.iter().find(|one| one.name == name)
    }

    /// Those of these that cannot be had.
    fn missing(self, names: &[&str]) -> Vec<&'a PrimitiveView> {
        let names = names.iter().filter_map(|name| self.get(name));
        names.filter(|one| !one.ok).collect()
    }

    fn found(self, name: &str) -> Option<&'a str> {
        self.get(name)?.found.as_deref()
    }
}

/// As people call them, with what each is called among the primitives.
const NAMESPACES: &[(&str, &str)] = &[
    ("user", "user-namespace"),
    ("mount", "mount-namespace"),
    ("pid", "pid-namespace"),
    ("net", "net-namespace"),
    ("ipc", "ipc-namespace"),
    ("uts", "uts-namespace"),
    ("cgroup", "cgroup-namespace"),
];

fn namespaces(found: Found<'_>) -> Check {
    let is_ok = |name: &str| found.get(name).is_some_and(|one| one.ok);
    let (had, missing): (Vec<_>, Vec<_>) = NAMESPACES.iter().partition(|(_, name)| is_ok(name));
    let words = |list: &[(&str, &str)]| {
        let words: Vec<&str> = list.iter().map(|(word, _)| *word).collect();
        words.join(", ")
    };
    let Some(first) = missing.first().and_then(|(_, name)| found.get(name)) else {
        return ok("namespaces", words(&had));
    };
    let what = match had.as_slice() {
        [] => "none".to_owned(),
        _ => format!("no {}", words(&missing)),
    };
    not("namespaces", Level::Problem, &what, first)
}

/// Told only where something is wrong, and not told already.
fn mounts(found: Found<'_>) -> Option<Check> {
    if !found
        .missing(&["user-namespace", "mount-namespace"])
        .is_empty()
        && !is_root()
    {
        return None;
    }
    let missing = found.missing(&["own-mounts", "devpts", "loopback"]);
    let first = missing.first()?;
    Some(not("mounts", Level::Problem, "not here", first))
}

fn proc(found: Found<'_>) -> Check {
    match found.get("fresh-proc") {
        Some(one) if !one.ok => not("proc", Level::Problem, "the host's", one),
        _ => ok("proc", "each run has its own".into()),
    }
}

fn landlock(found: Found<'_>) -> Check {
    if let Some(one) = found.missing(&["landlock-files"]).first() {
        // Mounts are the first lock, where there are any.
        let level = match found.missing(&["own-mounts"]).is_empty() {
            true => Level::Hint,
            false => Level::Problem,
        };
        return not("Landlock", level, "none", one);
    }
    let version = found.found("landlock-files").unwrap_or_default();
    match found.missing(&["landlock-tcp", "landlock-scopes"]).first() {
        Some(one) => not("Landlock", Level::Hint, version, one),
        None => ok("Landlock", format!("{version}: files, TCP, scopes")),
    }
}

fn seccomp(found: Found<'_>) -> Check {
    match found.missing(&["seccomp"]).first() {
        Some(one) => not("seccomp", Level::Problem, "none", one),
        None => ok("seccomp", "filters system calls".into()),
    }
}

/// What is nearly always there, told only where it is not.
fn rest(found: Found<'_>) -> Vec<Check> {
    let vital = found.missing(&["no-new-privs", "capabilities", "rlimits"]);
    let vital = vital
        .into_iter()
        .map(|one| not(&one.name, Level::Problem, "not here", one));
    // A PID namespace's bound is wanted only where no cgroup has one.
    let mut second = vec!["keyring"];
    if found.missing(&["uts-namespace"]).is_empty() {
        second.push("hostname");
    }
    if !found.missing(&["cgroup-pids"]).is_empty() && found.missing(&["fresh-proc"]).is_empty() {
        second.push("pid-max");
    }
    let second = found.missing(&second);
    let second = second
        .into_iter()
        .map(|one| not(&one.name, Level::Hint, "not here", one));
    vital.chain(second).collect()
}

fn cgroups(found: Found<'_>) -> Check {
    let controllers = ["memory", "pids", "cpu"];
    let of = |name: &str| found.get(&format!("cgroup-{name}"));
    let held: Vec<String> = ["v1", "v2"]
        .into_iter()
        .filter_map(|version| {
            let has = |name: &&str| of(name).and_then(|one| one.found.as_deref()) == Some(version);
            let names: Vec<&str> = controllers.into_iter().filter(has).collect();
            (!names.is_empty()).then(|| format!("{version}: {}", names.join(", ")))
        })
        .collect();
    let missing: Vec<_> = { controllers.into_iter() }
        .filter_map(of)
        .filter(|one| !one.ok)
        .collect();
    let Some(first) = missing.first() else {
        return ok("cgroups", held.join("; "));
    };
    let names: Vec<&str> = { missing.iter() }
        .map(|one| one.name.trim_start_matches("cgroup-"))
        .collect();
    let errno = first.error.as_deref().unwrap_or_default();
    let errno = errno.rsplit_once('(').map_or("", |(_, name)| name);
    let errno = errno.trim_end_matches(')');
    let why = match errno {
        "EACCES" | "EPERM" => "not delegated to this user",
        "ENODEV" => "not there",
        "EBUSY" => "taken by the server itself",
        _ => "not usable",
    };
    let means = match names.as_slice() {
        ["cpu"] => "commands only have a lower priority",
        _ => "memory and processes are bounded per process and watched",
    };
    let held = match held.as_slice() {
        [] => String::new(),
        some => format!("{}; ", some.join("; ")),
    };
    Check {
        name: "cgroups".into(),
        level: if names == ["cpu"] {
            Level::Hint
        } else {
            Level::Problem
        },
        found: format!("{held}{} {why} ({errno}) — {means}", names.join(", ")),
        fix: first.fix.clone(),
    }
}

fn identity(found: Found<'_>) -> Check {
    if !is_root() {
        let uid = rustix::process::geteuid().as_raw();
        return ok(
            "identity",
            format!("commands are user {uid}, as the server is"),
        );
    }
    if let Some(one) = found.missing(&["other-user"]).first() {
        return not("identity", Level::Problem, "only root", one);
    }
    match found.missing(&["idmapped-mounts"]).first() {
        Some(one) => not(
            "identity",
            Level::Problem,
            "commands are the owner of their directory, and root's own cannot be lent",
            one,
        ),
        None => ok(
            "identity",
            "commands are the owner of their directory, or nobody, to whom root's is lent \
             (idmapped mounts)"
                .into(),
        ),
    }
}

/// What all of that makes, beside what each sandbox demands.
fn walls(found: Found<'_>, sandboxes: &[Sandbox]) -> Check {
    let word = found.found("walls").unwrap_or("none");
    let rung = [Rung::Full, Rung::SharedProc, Rung::Landlock]
        .into_iter()
        .find(|rung| rung.word() == word);
    let too_weak: Vec<&Sandbox> = sandboxes
        .iter()
        .filter(|sandbox| rung.is_none_or(|rung| rung < sandbox.minimum))
        .collect();
    let why = found.get("walls").and_then(|one| one.error.as_deref());
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let explained = !found.missing(VITAL).is_empty();
    let own = found.get("walls").and_then(|one| one.fix.as_deref());
    let mend = own.unwrap_or(if explained { MEND } else { REPORT });
    if let Some(first) = too_weak.first() {
        let names: Vec<String> = { too_weak.iter() }
            .map(|sandbox| format!("`{}` demands {}", sandbox.name, sandbox.minimum.word()))
            .collect();
        let fix = match rung {
            // Not where it would only hide a mistake.
            Some(_) if explained => format!(
                "{MEND}, or accept less: minimum = \"{word}\" under [sandbox.{}]",
                first.name
            ),
            _ => mend.into(),
        };
        let found = format!(
            "{word}{why} — sandbox {}, and runs nothing",
            names.join(", ")
        );
        return problem("walls", found, &fix);
    }
    match rung {
        Some(Rung::Full) => ok("walls", word.into()),
        _ => hint(
            "walls",
            format!("{word}, which every sandbox accepts{why}"),
            mend,
        ),
    }
}

/// A line about something that cannot be had.
fn not(name: &str, level: Level, what: &str, one: &PrimitiveView) -> Check {
    let error = one.error.as_deref().unwrap_or("refused");
    Check {
        name: name.into(),
        level,
        found: format!("{what}: {error} — {}", one.means),
        fix: one.fix.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine on which all but these can be had.
    fn machine(missing: &[(&str, &str)]) -> Vec<PrimitiveView> {
        let names = NAMESPACES.iter().map(|(_, name)| *name);
        let names = names.chain([
            "own-mounts",
            "fresh-proc",
            "landlock-files",
            "landlock-tcp",
            "landlock-scopes",
            "seccomp",
            "cgroup-memory",
            "cgroup-pids",
            "cgroup-cpu",
            "walls",
        ]);
        names
            .map(|name| {
                let error = missing.iter().find(|(one, _)| *one == name);
                PrimitiveView {
                    name: name.into(),
                    ok: error.is_none(),
                    found: match name {
                        "walls" => error.map_or(Some("full"), |_| Some("landlock")),
                        _ if name.starts_with("cgroup-") => error.is_none().then_some("v1"),
                        _ => None,
                    }
                    .map(str::to_owned),
                    errno: None,
                    error: error.map(|(_, error)| (*error).to_owned()),
                    means: "so".into(),
                    fix: error.filter(|_| name != "walls").map(|_| "mend it".into()),
                }
            })
            .collect()
    }

    #[test]
    fn a_line_says_what_is_missing_why_and_what_that_means() {
        let sandbox = Sandbox::new("app");
        let all = machine(&[]);
        let found = Found(&all);
        let want = "user, mount, pid, net, ipc, uts, cgroup";
        assert_eq!(namespaces(found), ok("namespaces", want.into()));
        assert_eq!(
            cgroups(found),
            ok("cgroups", "v1: memory, pids, cpu".into())
        );
        assert_eq!(
            walls(found, std::slice::from_ref(&sandbox)),
            ok("walls", "full".into())
        );

        let some = machine(&[
            ("net-namespace", "cannot have it: no (EPERM)"),
            ("cgroup-memory", "cannot make a control group: no (EACCES)"),
            ("walls", "cannot enter"),
        ]);
        let found = Found(&some);
        let line = namespaces(found);
        assert_eq!(line.found, "no net: cannot have it: no (EPERM) — so");
        assert_eq!(line.fix.as_deref(), Some("mend it"));
        assert_eq!(
            cgroups(found).found,
            "v1: pids, cpu; memory not delegated to this user (EACCES) — memory and processes \
             are bounded per process and watched"
        );
        let line = walls(found, std::slice::from_ref(&sandbox));
        assert_eq!(line.level, Level::Problem);
        assert_eq!(
            line.found,
            "landlock: cannot enter — sandbox `app` demands full, and runs nothing"
        );
        assert!(line.fix.is_some_and(|fix| fix.contains("accept less")));

        // Bonuses explain nothing, and nobody is talked into weaker walls.
        let odd = machine(&[
            ("landlock-tcp", "since version 4"),
            ("walls", "cannot make /proc: Permission denied"),
        ]);
        let line = walls(Found(&odd), std::slice::from_ref(&sandbox));
        assert_eq!(line.level, Level::Problem);
        assert_eq!(line.fix.as_deref(), Some(REPORT));

        let modest = Sandbox {
            minimum: Rung::Landlock,
            ..sandbox
        };
        assert_eq!(walls(found, &[modest]).level, Level::Hint);
    }
}
