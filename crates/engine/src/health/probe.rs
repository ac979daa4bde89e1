//! Tries what this machine's kernel grants for walls, for `weighlock doctor`.

use std::sync::Arc;

pub use weighlock_api::PrimitiveView;
use weighlock_exec::Primitive;
use weighlock_walls::{MachineFinding, Sandbox, Severity, explain_machine};

use super::Doctor;
use super::{Check, Checks, Level, failed, ok, problem};
use crate::error::Error;
use crate::principal::{Principal, Right};
use crate::request::Request;
use crate::runs::Outcome;

/// Describes a primitive.
fn primitive_view(found: Primitive) -> PrimitiveView {
    PrimitiveView {
        name: found.name,
        ok: found.ok,
        found: found.found,
        errno: found.errno,
        error: found.error,
        means: found.means,
        fix: found.fix,
    }
}

/// Describes what was found about the machine.
fn check_of(finding: MachineFinding) -> Check {
    Check {
        name: finding.subject,
        level: match finding.severity {
            Severity::Ok => Level::Ok,
            Severity::Hint => Level::Hint,
            Severity::Problem => Level::Problem,
        },
        found: finding.found,
        fix: finding.fix,
    }
}

impl Doctor {
    /// Tries each primitive that walls are made of, and explains the result for
    /// the sandboxes of the settings. Returns no primitives, and the reason as a
    /// check, where they could not be tried.
    pub(crate) async fn probe(self: &Arc<Self>) -> (Vec<PrimitiveView>, Vec<Check>) {
        self.probe_for(&self.core.config.sandboxes).await
    }

    async fn probe_for(
        self: &Arc<Self>,
        sandboxes: &[Sandbox],
    ) -> (Vec<PrimitiveView>, Vec<Check>) {
        let doctor = Arc::clone(self);
        let probed = tokio::task::spawn_blocking(move || doctor.nursery.probe());
        let found: Vec<Primitive> = match probed.await.expect("probing does not panic") {
            Ok(found) => found,
            Err(error) => {
                let found = format!("what the kernel grants could not be tried: {error}");
                let fix = "see that the server's program can still be started";
                return (vec![], vec![problem("walls", found, fix)]);
            }
        };
        let findings = explain_machine(&found, sandboxes);
        let checks = findings.into_iter().map(check_of).collect();
        let views = found.into_iter().map(primitive_view).collect();
        (views, checks)
    }

    /// Tries what protects a sandbox on this machine.
    pub async fn protection(self: &Arc<Self>, id: &str, who: &Principal) -> Result<Checks, Error> {
        let info = self.sandboxes.find(id, who)?;
        who.check(Right::Look)?;
        let (primitives, checks) = match self.sandboxes.find_by_name(&info.sandbox_id) {
            Some(sandbox) => self.probe_for(std::slice::from_ref(&*sandbox)).await,
            None => self.probe().await,
        };
        Ok(Checks { checks, primitives })
    }

    /// Runs `true` like any other command: recorded, kept, contained.
    pub(crate) async fn check_run(self: &Arc<Self>) -> Check {
        let request = Request {
            description: Some("weighlock doctor".into()),
            timeout_ms: Some(5000),
            ..Request::new(Principal::library("doctor"), "true")
        };
        let run = match self.life.run(request).await {
            Ok(Outcome::Waiting(_)) => {
                let fix = "look at `weighlock explain true`: a rule asks even for that";
                return problem("run", "the policy asks before running `true`".into(), fix);
            }
            Ok(Outcome::Refused(run) | Outcome::Ended(run) | Outcome::Running(run)) => run,
            Err(error) if error.problem().code == "sandbox_unavailable" => {
                let found = format!("nothing was run: {}", error.problem().detail);
                return problem("run", found, "mend what is marked ✗ above");
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
