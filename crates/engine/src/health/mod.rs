//! How the engine and its machine are.
//!
//! | subject | methods |
//! |---|---|
//! | at a glance | [`Doctor::health`] |
//! | each thing, tried | [`Doctor::checks`], [`Doctor::protection`] |
//! | what is counted | [`Doctor::measures`] |

mod gauges;
mod probe;
mod upkeep;

use std::sync::Arc;

pub use weighlock_api::{Check, Checks, Health, Level};
use weighlock_backup::Archiver;
use weighlock_exec::Nursery;
use weighlock_store::Checkpoint;
use weighlock_walls::{DEFAULT_SANDBOX, LoginPath, Review, Walls, format_bytes as size};

pub use self::probe::PrimitiveView;
use crate::audit::Audit;
use crate::case::Cases;
use crate::copies::Copies;
use crate::core::Core;
use crate::error::Error;
use crate::life::Life;
use crate::limits::RuntimeLimits;
use crate::live::Lives;
use crate::measures::Measures;
use crate::principal::{Principal, Right};
use crate::retention::Retention;
use crate::rules::Rules;
use crate::sandboxes::Sandboxes;
use crate::traces::Tracer;
use crate::webhooks::Webhooks;

/// Says how the engine and its machine are; see
/// [`Engine::doctor`](crate::Engine::doctor).
pub struct Doctor {
    core: Arc<Core>,
    nursery: Arc<Nursery>,
    walls: Arc<Walls>,
    limits: Arc<RuntimeLimits>,
    sandboxes: Arc<Sandboxes>,
    rules: Arc<Rules>,
    cases: Arc<Cases>,
    tracer: Arc<Tracer>,
    measures: Arc<Measures>,
    archiver: Arc<Archiver>,
    audit: Arc<Audit>,
    lives: Arc<Lives>,
    retention: Arc<Retention>,
    copies: Arc<Copies>,
    life: Arc<Life>,
    webhooks: Arc<Webhooks>,
}

/// What the [`Doctor`] stands on.
pub(crate) struct DoctorNeeds {
    pub(crate) core: Arc<Core>,
    pub(crate) nursery: Arc<Nursery>,
    pub(crate) walls: Arc<Walls>,
    pub(crate) limits: Arc<RuntimeLimits>,
    pub(crate) sandboxes: Arc<Sandboxes>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) cases: Arc<Cases>,
    pub(crate) tracer: Arc<Tracer>,
    pub(crate) measures: Arc<Measures>,
    pub(crate) archiver: Arc<Archiver>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) lives: Arc<Lives>,
    pub(crate) retention: Arc<Retention>,
    pub(crate) copies: Arc<Copies>,
    pub(crate) life: Arc<Life>,
    pub(crate) webhooks: Arc<Webhooks>,
}

impl Doctor {
    pub(crate) fn new(needs: DoctorNeeds) -> Self {
        let DoctorNeeds {
            core,
            nursery,
            walls,
            limits,
            sandboxes,
            rules,
            cases,
            tracer,
            measures,
            archiver,
            audit,
            lives,
            retention,
            copies,
            life,
            webhooks,
        } = needs;
        Self {
            core,
            nursery,
            walls,
            limits,
            sandboxes,
            rules,
            cases,
            tracer,
            measures,
            archiver,
            audit,
            lives,
            retention,
            copies,
            life,
            webhooks,
        }
    }
}

impl Doctor {
    /// Returns how the engine is.
    pub fn health(&self, who: &Principal) -> Health {
        Health {
            status: "ok".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            uptime_seconds: self.core.uptime().as_secs_f64(),
            running: self.lives.count(),
            base: self.core.config.base.to_string_lossy().into_owned(),
            sandboxes: self.sandboxes.list_views(who),
            output_bytes: self.retention.ended_bytes(),
        }
    }

    /// Checks everything that can be checked from here, by trying it.
    pub async fn checks(self: &Arc<Self>, who: &Principal) -> Result<Checks, Error> {
        who.check(Right::Review)?;
        let mut checks = vec![self.check_database(), self.check_audit().await];
        let (primitives, machine) = self.probe().await;
        checks.extend(machine);
        checks.push(self.check_run().await);
        checks.push(self.check_copies().await);
        checks.push(self.check_blacklist());
        checks.push(self.check_output());
        checks.push(self.check_path().await);
        checks.push(self.check_webhooks());
        checks.extend(self.check_upkeep());
        Ok(Checks { checks, primitives })
    }

    fn check_webhooks(&self) -> Check {
        let summary = match self.webhooks.summary() {
            Ok(summary) => summary,
            Err(error) => return failed("webhooks", error),
        };
        match (summary.failing.is_empty(), summary.active) {
            (true, 0) => ok("webhooks", "none".into()),
            (true, active) => ok("webhooks", format!("{active} on, none failing")),
            (false, _) => problem(
                "webhooks",
                summary.failing.join("; "),
                "`weighlock notify list` shows details, and `weighlock notify test` tries one",
            ),
        }
    }

    fn check_database(&self) -> Check {
        match self.core.store.check() {
            Ok((bytes, None)) => ok("database", format!("SQLite {}, integrity ok", size(bytes))),
            Ok((_, Some(what))) => problem(
                "database",
                what,
                "`weighlock restore` a backup into an empty state directory",
            ),
            Err(error) => failed("database", error.into()),
        }
    }

    async fn check_audit(self: &Arc<Self>) -> Check {
        match self.audit.verify_chain().await {
            Ok(found) => match found.fault {
                None => ok("audit", chain_ok(&found.removed, found.entries)),
                Some(fault) => problem(
                    "audit",
                    format!("entry {}: {}", fault.seq, fault.what),
                    "somebody or something changed the record; compare with an export",
                ),
            },
            Err(error) => failed("audit", error),
        }
    }

    /// Says whether the default sandbox can be shown as a copy, and what is
    /// kept of changes.
    async fn check_copies(self: &Arc<Self>) -> Check {
        let doctor = Arc::clone(self);
        let tried = tokio::task::spawn_blocking(move || {
            let sandbox = doctor.sandboxes.find_by_name(DEFAULT_SANDBOX)?;
            let why = doctor.copies.why_no_copies(&sandbox)?;
            let wanted = sandbox.review.or(doctor.core.config.effects.review);
            Some(match wanted {
                None | Some(Review::Before) => {
                    format!("{why}, so people are asked before commands")
                }
                Some(_) => format!("{why}, but `review` wants one, so nothing is changed there"),
            })
        });
        let why = tried.await.expect("trying does not panic");
        let kept = || {
            let (bytes, held) = (
                self.core.store.changes().image_bytes()?,
                self.core.store.changes().held(None)?,
            );
            Ok::<_, Error>((bytes, held.len()))
        };
        let (bytes, drafts) = match kept() {
            Ok(kept) => kept,
            Err(error) => return failed("copies", error),
        };
        let kept = format!(
            "{} of {} kept for undo, {drafts} undecided (`weighlock draft`)",
            size(bytes),
            size(self.limits.undo_bytes())
        );
        match why {
            None => ok(
                "copies",
                format!("sandboxes can be shown as copies, {kept}"),
            ),
            Some(why) => hint(
                "copies",
                format!("{why}; {kept}"),
                "see `weighlock doctor -v`: it takes overlay mounts, in user namespaces where the \
                 server is not root",
            ),
        }
    }

    fn check_blacklist(&self) -> Check {
        let file = self.rules.blacklist();
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
        let directories = self.cases.path().await.split(':').count();
        match self.walls.login_path().await {
            LoginPath::Known { shell, .. } => ok(
                "path",
                format!("{directories} directories, asked of {shell}"),
            ),
            LoginPath::Off => ok(
                "path",
                format!("{directories} directories, the server's own"),
            ),
            LoginPath::Unknown { why } => hint(
                "path",
                format!("{why}; PATH is the server's own, {directories} directories"),
                "mend your shell's startup files and restart the server, or set \
                 `login_path = false` under [environment]",
            ),
        }
    }

    fn check_output(&self) -> Check {
        let kept = self.retention.ended_bytes();
        ok(
            "output",
            format!(
                "{} of {} kept",
                size(kept),
                size(self.limits.output_total())
            ),
        )
    }
}

fn chain_ok(removed: &Option<Checkpoint>, entries: u64) -> String {
    match removed {
        None => format!("{entries} entries, chain ok"),
        Some(removed) => format!("{entries} entries, chain ok; {}", removed.told()),
    }
}

pub(crate) fn ok(name: &str, found: String) -> Check {
    Check {
        name: name.into(),
        level: Level::Ok,
        found,
        fix: None,
    }
}

pub(crate) fn problem(name: &str, found: String, fix: &str) -> Check {
    Check {
        name: name.into(),
        level: Level::Problem,
        found,
        fix: Some(fix.into()),
    }
}

pub(crate) fn hint(name: &str, found: String, fix: &str) -> Check {
    Check {
        level: Level::Hint,
        ..problem(name, found, fix)
    }
}

pub(crate) fn failed(name: &str, error: Error) -> Check {
    let told = error.problem();
    problem(name, told.detail, &told.hint)
}
