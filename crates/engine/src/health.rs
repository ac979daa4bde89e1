//! How the engine and its machine are.

pub use weighlock_api::{Check, Checks, Health, Level};
use weighlock_store::Checkpoint;
use weighlock_walls::{DEFAULT_SANDBOX, LoginPath, Review, format_bytes as size};

use crate::engine::Engine;
use crate::error::Error;
use crate::principal::{Principal, Right};

impl Engine {
    /// Returns how the engine is.
    pub fn health(&self, who: &Principal) -> Health {
        Health {
            status: "ok".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            uptime_seconds: self.core.uptime().as_secs_f64(),
            running: self.lives.count(),
            base: self.core.config.base.to_string_lossy().into_owned(),
            sandboxes: self.sandboxes.list_views(who),
            output_bytes: self.kept.load(std::sync::atomic::Ordering::Relaxed),
        }
    }

    /// Checks everything that can be checked from here, by trying it.
    pub async fn checks(self: &std::sync::Arc<Self>, who: &Principal) -> Result<Checks, Error> {
        who.check(Right::Review)?;
        let mut checks = vec![self.check_database(), self.check_audit().await];
        let (primitives, machine) = self.probe().await;
        checks.extend(machine);
        checks.push(self.check_run().await);
        checks.push(self.check_copies().await);
        checks.push(self.check_blacklist());
        checks.push(self.check_output());
        checks.push(self.check_path().await);
        checks.push(self.webhooks().check_health());
        checks.extend(self.check_upkeep());
        Ok(Checks { checks, primitives })
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

    async fn check_audit(self: &std::sync::Arc<Self>) -> Check {
        match self.audit().verify_chain().await {
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
    async fn check_copies(self: &std::sync::Arc<Self>) -> Check {
        let engine = std::sync::Arc::clone(self);
        let tried = tokio::task::spawn_blocking(move || {
            let sandbox = engine.sandboxes.find_by_name(DEFAULT_SANDBOX)?;
            let why = engine.why_no_copies(&sandbox)?;
            let wanted = sandbox.review.or(engine.core.config.effects.review);
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
                self.core.store.image_bytes()?,
                self.core.store.held_changes(None)?,
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
        let directories = self.path().await.split(':').count();
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
        let kept = self.kept.load(std::sync::atomic::Ordering::Relaxed);
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
