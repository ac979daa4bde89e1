//! Backups of everything that is on record.

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

/// What backup to make.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBackup {
    /// A directory on the server's machine that is new or empty; only from the
    /// server's owner or root, over the Unix socket. In the state directory if
    /// not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
}

pub(crate) async fn make(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Optional(new): Optional<NewBackup>,
) -> Result<(StatusCode, Json<BackupView>), Problem> {
    let made = engine.back_up(new.directory, &who).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

pub(crate) fn make_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("makeBackup")
        .summary("Make a backup of everything that is on record")
        .description(
            "Answers when it is whole and on record, which takes as long as copying takes. For \
             administrators. `weighlock restore` puts it back.",
        )
        .response::<201, Json<BackupView>>()
}
