//! Backups of the whole record.

use std::path::PathBuf;
use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_engine::{BackupView, Engine};

use crate::problem::Problem;
use crate::system::{Optional, Who};

/// Where to write a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBackup {
    /// A new or empty directory on the server's machine; only the server's owner
    /// or root may give one, over the Unix socket. Default: a directory in the
    /// state directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
}

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
