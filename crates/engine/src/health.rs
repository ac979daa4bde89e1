//! How the engine and its machine are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::error::Error;
use crate::login::Answer;
use crate::request::{Principal, Request};

/// Whether the engine serves, at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Always `ok`: whoever can answer serves.
    pub status: String,
    /// The server's version.
    pub version: String,
    /// How long it has been up.
    pub uptime_seconds: f64,
    /// Runs under way.
    pub running: usize,
    /// Commands run in this directory or below it.
    pub base: String,
    /// Bytes of output on disk.
    pub output_bytes: u64,
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Hint,
    /// Something is not as promised.
    Problem,
}

/// One line of `weighlock doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// How it came out.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub fix: Option<String>,
}

impl Engine {
    /// Returns how the engine is.
    pub fn health(&self) -> Health {
        Health {
            status: "ok".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            uptime_seconds: self.began.elapsed().as_secs_f64(),
            running: self.lives.count(),
            base: self.config.base.to_string_lossy().into_owned(),
            output_bytes: self.kept.load(std::sync::atomic::Ordering::Relaxed),
        }
    }

    /// Checks everything that can be checked from here, by trying it.
    pub async fn checks(self: &std::sync::Arc<Self>) -> Vec<Check> {
        vec![
            self.check_database(),
            self.check_audit(),
            self.check_processes().await,
            self.check_blacklist(),
            self.check_output(),
            self.check_path().await,
            Check {
                name: "walls".into(),
                level: Level::Hint,
                found: "only the process tree is contained: commands have this user's files \
                        and network"
                    .into(),
                fix: Some("run the server as a user who may do no more than agents should".into()),
            },
        ]
    }

    fn check_database(&self) -> Check {
        match self.store.check() {
            Ok((bytes, None)) => ok("database", format!("SQLite {}, integrity ok", size(bytes))),
            Ok((_, Some(what))) => problem("database", what, "restore a backup"),
            Err(error) => failed("database", error.into()),
        }
    }

    fn check_audit(&self) -> Check {
        match self.store.verify() {
            Ok(found) => match found.fault {
                None => ok("audit", format!("{} entries, chain ok", found.entries)),
                Some(fault) => problem(
                    "audit",
                    format!("entry {}: {}", fault.seq, fault.what),
                    "somebody or something changed the record; compare with an export",
                ),
            },
            Err(error) => failed("audit", error.into()),
        }
    }

    /// Runs a command, as any other: recorded, kept, contained.
    async fn check_processes(self: &std::sync::Arc<Self>) -> Check {
        let request = Request {
            description: Some("weighlock doctor".into()),
            timeout_ms: Some(5000),
            ..Request::new(Principal::named("doctor"), "true")
        };
        let run = match self.run(request).await {
            Ok(outcome) => outcome.run(),
            Err(error) => return failed("processes", error),
        };
        match (run.exit_code, run.detail.containment.as_deref()) {
            (Some(0), Some("pid_namespace")) => ok(
                "processes",
                "held in a PID namespace: nothing outlives its run".into(),
            ),
            (Some(0), _) => Check {
                name: "processes".into(),
                level: Level::Problem,
                found: "no PID namespace: a run is ended by walking its processes, and a \
                        process could kill its keeper"
                    .into(),
                fix: Some(
                    "allow user namespaces (sysctl user.max_user_namespaces, \
                     kernel.apparmor_restrict_unprivileged_userns) or run as root"
                        .into(),
                ),
            },
            _ => problem(
                "processes",
                format!("`true` ended as {:?}", run.state),
                "see `weighlock show @last`",
            ),
        }
    }

    fn check_blacklist(&self) -> Check {
        let file = self.blacklist();
        match file.warning {
            Some(warning) => problem("blacklist", warning, "mend or remove the file"),
            None if file.from_file => ok(
                "blacklist",
                format!(
                    "{} entries from {}",
                    file.list.entries().len(),
                    file.path.display()
                ),
            ),
            None => ok(
                "blacklist",
                format!("built-in, {} entries", file.list.entries().len()),
            ),
        }
    }

    async fn check_path(&self) -> Check {
        let directories = self.path().await.split(':').count();
        match self.login.answer().await {
            Answer::Path { shell, .. } => ok(
                "path",
                format!("{directories} directories, asked of {shell}"),
            ),
            Answer::Off => ok(
                "path",
                format!("{directories} directories, the server's own"),
            ),
            Answer::None { why } => Check {
                name: "path".into(),
                level: Level::Hint,
                found: format!("{why}; PATH is the server's own, {directories} directories"),
                fix: Some(
                    "mend your shell's startup files and restart the server, or set \
                     `login_path = false` under [environment]"
                        .into(),
                ),
            },
        }
    }

    fn check_output(&self) -> Check {
        let kept = self.kept.load(std::sync::atomic::Ordering::Relaxed);
        ok(
            "output",
            format!("{} of {} kept", size(kept), size(self.config.output_total)),
        )
    }
}

fn ok(name: &str, found: String) -> Check {
    Check {
        name: name.into(),
        level: Level::Ok,
        found,
        fix: None,
    }
}

fn problem(name: &str, found: String, fix: &str) -> Check {
    Check {
        name: name.into(),
        level: Level::Problem,
        found,
        fix: Some(fix.into()),
    }
}

fn failed(name: &str, error: Error) -> Check {
    let told = error.problem();
    problem(name, told.detail, &told.hint)
}

/// Returns a size in words: KiB, MiB or GiB.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", bytes as f64 / 1048576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1073741824.0),
    }
}
