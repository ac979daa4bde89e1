//! Backups of the whole record.

use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use weighlock_api::{BackupView, NewBackup};
use weighlock_engine::Engine;

use crate::problem::Problem;
use crate::system::{Optional, Who};

pub(crate) async fn make(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Optional(new): Optional<NewBackup>,
) -> Result<(StatusCode, Json<BackupView>), Problem> {
    let made = engine.backups().create(new.directory, &who).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

pub(crate) fn make_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("makeBackup")
        .summary("Back up the state directory")
        .description(
            "Returns when the backup is complete and in the audit, which takes as long as copying \
             takes. Only administrators may. `weighlock restore` restores it.",
        )
        .response::<201, Json<BackupView>>()
}
