//! Explains what this machine's kernel grants for walls, in lines for a person.

use weighlock_confine::{Primitive, Rung, is_root};

use crate::sandbox::Sandbox;

/// One line about the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineFinding {
    /// What it is about, such as `namespaces`.
    pub subject: String,
    /// How serious it is.
    pub severity: Severity,
    /// What was found.
    pub found: String,
    /// What a person can do about it.
    pub fix: Option<String>,
}

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Everything is fine.
    Ok,
    /// Works, and could be better.
    Hint,
    /// Something does not work, or is weaker than it should be.
    Problem,
}

/// The fix of a finding that other findings explain.
const MEND: &str = "mend what is marked ✗ above";

/// The fix where walls are weak and no primitive explains it.
const REPORT: &str = "each part was granted when it was tried alone, so this is a mistake of \
                      weighlock: please report it, with what `weighlock doctor --json` prints";

/// The primitives without which walls are not full. The others are a bonus.
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

/// Explains the primitives that were tried, and compares the walls that they
/// make with what each sandbox demands.
pub fn explain_machine(found: &[Primitive], sandboxes: &[Sandbox]) -> Vec<MachineFinding> {
    let found = Probed(found);
    let mut lines = vec![check_namespaces(found)];
    lines.extend(check_mounts(found));
    lines.push(check_proc(found));
    lines.push(check_landlock(found));
    lines.push(check_seccomp(found));
    lines.extend(check_usual(found));
    lines.push(check_cgroups(found));
    lines.push(check_identity(found));
    lines.push(check_level(found, sandboxes));
    lines
}

/// All primitives that were tried.
#[derive(Clone, Copy)]
struct Probed<'a>(&'a [Primitive]);

impl<'a> Probed<'a> {
    fn get(self, name: &str) -> Option<&'a Primitive> {
        self.0.iter().find(|one| one.name == name)
    }

    /// Returns those of the named ones that the kernel does not grant.
    fn missing(self, names: &[&str]) -> Vec<&'a Primitive> {
        let names = names.iter().filter_map(|name| self.get(name));
        names.filter(|one| !one.ok).collect()
    }

    fn controller(self, name: &str) -> Option<&'a Primitive> {
        self.get(&format!("cgroup-{name}"))
    }

    fn version_of(self, name: &str) -> Option<&'a str> {
        self.get(name)?.found.as_deref()
    }
}

/// The common name of each namespace, and the name of its primitive.
const NAMESPACES: &[(&str, &str)] = &[
    ("user", "user-namespace"),
    ("mount", "mount-namespace"),
    ("pid", "pid-namespace"),
    ("net", "net-namespace"),
    ("ipc", "ipc-namespace"),
    ("uts", "uts-namespace"),
    ("cgroup", "cgroup-namespace"),
];

fn check_namespaces(found: Probed<'_>) -> MachineFinding {
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
    missing_primitive("namespaces", Severity::Problem, &what, first)
}

/// Returns a finding only if something is wrong that [`check_namespaces`] does not
/// explain.
fn check_mounts(found: Probed<'_>) -> Option<MachineFinding> {
    if !found
        .missing(&["user-namespace", "mount-namespace"])
        .is_empty()
        && !is_root()
    {
        return None;
    }
    let missing = found.missing(&["own-mounts", "devpts", "loopback"]);
    let first = missing.first()?;
    Some(missing_primitive(
        "mounts",
        Severity::Problem,
        "not here",
        first,
    ))
}

fn check_proc(found: Probed<'_>) -> MachineFinding {
    match found.get("fresh-proc") {
        Some(one) if !one.ok => missing_primitive("proc", Severity::Problem, "the host's", one),
        _ => ok("proc", "each run has its own".into()),
    }
}

fn check_landlock(found: Probed<'_>) -> MachineFinding {
    if let Some(one) = found.missing(&["landlock-files"]).first() {
        // Mounts are the first lock, where there are any.
        let severity = if found.missing(&["own-mounts"]).is_empty() {
            Severity::Hint
        } else {
            Severity::Problem
        };
        return missing_primitive("Landlock", severity, "none", one);
    }
    let version = found.version_of("landlock-files").unwrap_or_default();
    match found.missing(&["landlock-tcp", "landlock-scopes"]).first() {
        Some(one) => missing_primitive("Landlock", Severity::Hint, version, one),
        None => ok("Landlock", format!("{version}: files, TCP, scopes")),
    }
}

fn check_seccomp(found: Probed<'_>) -> MachineFinding {
    match found.missing(&["seccomp"]).first() {
        Some(one) => missing_primitive("seccomp", Severity::Problem, "none", one),
        None => ok("seccomp", "filters system calls".into()),
    }
}

/// Returns findings about primitives that are nearly always granted, only for
/// those that are not.
fn check_usual(found: Probed<'_>) -> Vec<MachineFinding> {
    let vital = found.missing(&["no-new-privs", "capabilities", "rlimits"]);
    let vital = vital
        .into_iter()
        .map(|one| missing_primitive(&one.name, Severity::Problem, "not here", one));
    // The limit of a PID namespace is needed only where no cgroup has one.
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
        .map(|one| missing_primitive(&one.name, Severity::Hint, "not here", one));
    vital.chain(second).collect()
}

/// The controllers of control groups that limit a run.
const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];

fn check_cgroups(found: Probed<'_>) -> MachineFinding {
    let held = held_controllers(found);
    let all = CONTROLLERS.iter().filter_map(|name| found.controller(name));
    let missing: Vec<&Primitive> = all.filter(|one| !one.ok).collect();
    let Some(first) = missing.first() else {
        return ok("cgroups", held.join("; "));
    };
    let names = missing.iter();
    let names: Vec<&str> = names
        .map(|one| one.name.trim_start_matches("cgroup-"))
        .collect();
    let errno = errno_name(first);
    let why = match errno {
        "EACCES" | "EPERM" => "not delegated to this user",
        "ENODEV" => "not there",
        "EBUSY" => "taken by the server itself",
        _ => "not usable",
    };
    let (severity, means) = match names.as_slice() {
        ["cpu"] => (Severity::Hint, "commands only have a lower priority"),
        _ => (
            Severity::Problem,
            "memory and processes are bounded per process and watched",
        ),
    };
    let mut text = held;
    text.push(format!("{} {why} ({errno}) — {means}", names.join(", ")));
    MachineFinding {
        subject: "cgroups".into(),
        severity,
        found: text.join("; "),
        fix: first.fix.clone(),
    }
}

/// Returns the granted controllers of each version of control groups.
fn held_controllers(found: Probed<'_>) -> Vec<String> {
    let of_version = |version: &str| {
        let version_of = |name: &str| found.controller(name)?.found.as_deref();
        let held = CONTROLLERS.into_iter();
        let held: Vec<&str> = held
            .filter(|name| version_of(name) == Some(version))
            .collect();
        (!held.is_empty()).then(|| format!("{version}: {}", held.join(", ")))
    };
    ["v1", "v2"].into_iter().filter_map(of_version).collect()
}

/// Returns the name at the end of an error's text: `… (EPERM)`.
fn errno_name(primitive: &Primitive) -> &str {
    let text = primitive.error.as_deref().unwrap_or_default();
    let name = text.rsplit_once('(').map_or("", |(_, name)| name);
    name.trim_end_matches(')')
}

fn check_identity(found: Probed<'_>) -> MachineFinding {
    if !is_root() {
        let uid = rustix::process::geteuid().as_raw();
        return ok(
            "identity",
            format!("commands are user {uid}, as the server is"),
        );
    }
    if let Some(one) = found.missing(&["other-user"]).first() {
        return missing_primitive("identity", Severity::Problem, "only root", one);
    }
    match found.missing(&["idmapped-mounts"]).first() {
        Some(one) => missing_primitive(
            "identity",
            Severity::Problem,
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

/// Compares the level of the walls with what each sandbox demands.
fn check_level(found: Probed<'_>, sandboxes: &[Sandbox]) -> MachineFinding {
    let walls = found.get("walls");
    let word = found.version_of("walls").unwrap_or("none");
    let mut rungs = [Rung::Full, Rung::SharedProc, Rung::Landlock].into_iter();
    let rung = rungs.find(|rung| rung.word() == word);
    let why = walls.and_then(|one| one.error.as_deref());
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let is_explained = !found.missing(VITAL).is_empty();
    let own_fix = walls.and_then(|one| one.fix.as_deref());
    let fix = own_fix.unwrap_or(if is_explained { MEND } else { REPORT });
    let is_too_weak = |sandbox: &&Sandbox| rung.is_none_or(|rung| rung < sandbox.minimum);
    let refusing: Vec<&Sandbox> = sandboxes.iter().filter(is_too_weak).collect();
    match (refusing.first(), rung) {
        (None, Some(Rung::Full)) => ok("walls", word.into()),
        (None, _) => hint(
            "walls",
            format!("{word}, which every sandbox accepts{why}"),
            fix,
        ),
        // Not suggested where it would only hide a mistake of ours.
        (Some(first), Some(_)) if is_explained => {
            let less = format!(
                "{MEND}, or accept less: minimum = \"{word}\" under [sandbox.{}]",
                first.name
            );
            problem("walls", too_weak(word, &why, &refusing), &less)
        }
        (Some(_), _) => problem("walls", too_weak(word, &why, &refusing), fix),
    }
}

fn too_weak(word: &str, why: &str, refusing: &[&Sandbox]) -> String {
    let demands = refusing.iter();
    let demands: Vec<String> = demands
        .map(|sandbox| format!("`{}` demands {}", sandbox.name, sandbox.minimum.word()))
        .collect();
    let demands = demands.join(", ");
    format!("{word}{why} — sandbox {demands}, and runs nothing")
}

/// Returns a finding about a primitive that the kernel does not grant.
fn missing_primitive(
    subject: &str,
    severity: Severity,
    what: &str,
    one: &Primitive,
) -> MachineFinding {
    let error = one.error.as_deref().unwrap_or("refused");
    MachineFinding {
        subject: subject.into(),
        severity,
        found: format!("{what}: {error} — {}", one.means),
        fix: one.fix.clone(),
    }
}

fn ok(subject: &str, found: String) -> MachineFinding {
    MachineFinding {
        subject: subject.into(),
        severity: Severity::Ok,
        found,
        fix: None,
    }
}

fn hint(subject: &str, found: String, fix: &str) -> MachineFinding {
    MachineFinding {
        subject: subject.into(),
        severity: Severity::Hint,
        found,
        fix: Some(fix.into()),
    }
}

fn problem(subject: &str, found: String, fix: &str) -> MachineFinding {
    MachineFinding {
        severity: Severity::Problem,
        ..hint(subject, found, fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the primitives of a machine that grants all but these.
    fn machine(missing: &[(&str, &str)]) -> Vec<Primitive> {
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
                Primitive {
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
        let found = Probed(&all);
        let want = "user, mount, pid, net, ipc, uts, cgroup";
        assert_eq!(check_namespaces(found), ok("namespaces", want.into()));
        assert_eq!(
            check_cgroups(found),
            ok("cgroups", "v1: memory, pids, cpu".into())
        );
        assert_eq!(
            check_level(found, std::slice::from_ref(&sandbox)),
            ok("walls", "full".into())
        );

        let some = machine(&[
            ("net-namespace", "cannot have it: no (EPERM)"),
            ("cgroup-memory", "cannot make a control group: no (EACCES)"),
            ("walls", "cannot enter"),
        ]);
        let found = Probed(&some);
        let line = check_namespaces(found);
        assert_eq!(line.found, "no net: cannot have it: no (EPERM) — so");
        assert_eq!(line.fix.as_deref(), Some("mend it"));
        assert_eq!(
            check_cgroups(found).found,
            "v1: pids, cpu; memory not delegated to this user (EACCES) — memory and processes \
             are bounded per process and watched"
        );
        let line = check_level(found, std::slice::from_ref(&sandbox));
        assert_eq!(line.severity, Severity::Problem);
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
        let line = check_level(Probed(&odd), std::slice::from_ref(&sandbox));
        assert_eq!(line.severity, Severity::Problem);
        assert_eq!(line.fix.as_deref(), Some(REPORT));

        let modest = Sandbox {
            minimum: Rung::Landlock,
            ..sandbox
        };
        assert_eq!(check_level(found, &[modest]).severity, Severity::Hint);
    }
}
