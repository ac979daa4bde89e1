//! Limits that administrators change while the server runs, and how much is
//! kept.

use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use weighlock_api::{Kept, KeptParams, LimitsInForce, ServerLimits};
use weighlock_engine::Engine;

use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Body, Params, Who};

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
) -> Result<Json<LimitsInForce>, Problem> {
    Ok(Json(engine.limits().in_force(&who)?))
}

pub(crate) fn show_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getLimits")
        .summary("Limits and times of the whole server, and where each comes from")
}

pub(crate) async fn save(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Body(limits): Body<ServerLimits>,
) -> Result<Json<LimitsInForce>, Problem> {
    Ok(Json(engine.limits().change(limits, &who).await?))
}

pub(crate) fn save_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("setLimits")
        .summary("Set limits and times of the whole server")
        .description(
            "In force at once, and after a restart. Omitted limits come from the configuration \
             file. For administrators.",
        )
}

pub(crate) async fn kept(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Params(params): Params<KeptParams>,
) -> Result<Json<Kept>, Problem> {
    let limits = ServerLimits {
        output_days: params.output_days,
        output_mib: params.output_mib,
        undo_days: params.undo_days,
        undo_mib: params.undo_mib,
        draft_days: params.draft_days,
        ..ServerLimits::default()
    };
    blocking(move || Ok(Json(engine.retention().kept(&limits, &who)?))).await
}

pub(crate) fn kept_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getKept")
        .summary("How much is kept, and what limits would remove now")
        .description("Removes nothing.")
}
