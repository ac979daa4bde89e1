//! The record: one run's, a part of it, and the whole.

use std::io::{self, BufWriter};
use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use weighlock_api::{AuditListParams, Entries, FaultView, RunEntries, Steps, VerifiedView};
use weighlock_engine::{Engine, EntryFilter, Verified};

use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Id, Params, Who, of_kinds, when};

/// How many entries there are when nothing is asked, and at the most.
const PAGE: usize = 100;
const MAX_PAGE: usize = 1000;

pub(crate) async fn list(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Params(params): Params<AuditListParams>,
) -> Result<Json<Entries>, Problem> {
    let limit = params.limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
    let filter = EntryFilter {
        run: params.run,
        sandbox: params.sandbox,
        actor: params.actor,
        owner: params.owner,
        kind: params.kind,
        from: params.from.as_deref().map(when).transpose()?,
        to: params.to.as_deref().map(when).transpose()?,
        after: params.after,
        limit,
    };
    let entries = blocking(move || Ok(engine.audit().entries(&filter, &who)?)).await?;
    let next = entries.last().filter(|_| entries.len() == limit);
    Ok(Json(Entries {
        next: next.and_then(|last| last["seq"].as_u64()),
        entries,
    }))
}

pub(crate) fn list_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listAudit")
        .summary("List audit entries: who did what, where and when")
        .description(
            "For people who may see everything. `sandbox=S&kind=run.started&from=…&to=…` lists \
             who ran what in a sandbox between two times.",
        )
}

pub(crate) async fn verify(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
) -> Result<Json<VerifiedView>, Problem> {
    Ok(Json(verified_view(engine.audit().verify(&who).await?)))
}

pub(crate) fn verify_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("verifyAudit")
        .summary("Verify the audit chain, and the database rows it covers")
}

pub(crate) async fn export(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
) -> Result<Response, Problem> {
    engine.audit().may_export(&who)?;
    let kind = [(axum::http::header::CONTENT_TYPE, "application/jsonl")];
    let body = sent(move |mut to| {
        engine
            .audit()
            .export(&mut to, &who)
            .map(drop)
            .map_err(io::Error::other)
    });
    Ok((kind, body).into_response())
}

/// Sends what is written as it is written: a few pieces ahead of the reader,
/// never all of it in memory.
pub(crate) fn sent(
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()> + Send + 'static,
) -> axum::body::Body {
    let (pieces, reader) = tokio::sync::mpsc::channel(4);
    tokio::task::spawn_blocking(move || {
        let mut writer = BufWriter::with_capacity(PIECE, Pieces(pieces));
        if let Err(error) = write(&mut writer) {
            tracing::error!(%error, "cannot export");
            // Without its last line, the export shows that it is cut off.
            let _ = writer.into_parts();
        }
    });
    let stream = futures_util::stream::unfold(reader, |mut reader| async move {
        let piece = reader.recv().await?;
        Some((Ok::<_, io::Error>(piece), reader))
    });
    axum::body::Body::from_stream(stream)
}

/// How much of the record is sent at a time.
const PIECE: usize = 64 * 1024;

/// Writes into a stream; fails when nobody reads it any more.
struct Pieces(tokio::sync::mpsc::Sender<Bytes>);

impl io::Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .blocking_send(Bytes::copy_from_slice(bytes))
            .map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn export_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("exportAudit")
        .summary("Export the whole audit as JSON Lines, for `weighlock audit verify --file`")
        .response_with::<200, String, _>(|res| of_kinds(res, &["application/jsonl"]))
}

pub(crate) async fn of_run(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<RunEntries>, Problem> {
    let run = engine.runs().find(&id, &who)?;
    let entries = engine.audit().entries_of(&run)?;
    Ok(Json(RunEntries {
        steps: steps(&entries),
        entries,
    }))
}

/// Tells what the entries of one run say of its life.
fn steps(entries: &[serde_json::Value]) -> Vec<Steps> {
    let (mut requested, mut judged) = (false, false);
    let mut told = vec![];
    for entry in entries {
        let kind = entry["kind"].as_str().unwrap_or_default();
        let (judges, step) = match kind {
            "run.held" => (false, Some("held")),
            "run.blocked" => (true, None),
            "run.waiting" => (true, Some("asked")),
            "run.started" => (true, Some("started")),
            "changes.held" => (false, Some("asked")),
            "run.ended" => (false, Some("ended")),
            "run.approved" | "run.rejected" | "run.expired" | "run.withdrawn"
            | "changes.applied" | "changes.discarded" => (false, Some("decided")),
            _ => continue,
        };
        let first = !std::mem::replace(&mut requested, true);
        let verdict = judges && !std::mem::replace(&mut judged, true);
        let said = [
            first.then_some("requested"),
            verdict.then_some("verdict"),
            step,
        ];
        told.push(Steps {
            seq: entry["seq"].as_u64().unwrap_or_default(),
            steps: said.into_iter().flatten().map(str::to_owned).collect(),
        });
    }
    told
}

pub(crate) fn of_run_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getCommandAudit")
        .summary("List the audit entries of a run")
}

fn verified_view(found: Verified) -> VerifiedView {
    VerifiedView {
        entries: found.entries,
        head: found.head,
        removed_to: found.removed.map(|removed| removed.removed_to),
        fault: found.fault.map(|fault| FaultView {
            seq: fault.seq,
            what: fault.what,
            row: fault.row,
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_tells_all_that_it_stands_for() {
        let said = |kinds: &[&str]| -> Vec<String> {
            let entries = kinds.iter().enumerate();
            let entries = entries.map(|(seq, kind)| json!({ "seq": seq, "kind": kind }));
            steps(&entries.collect::<Vec<_>>())
                .iter()
                .map(|told| told.steps.join(" "))
                .collect()
        };
        assert_eq!(
            said(&["run.started", "run.stop", "run.ended"]),
            ["requested verdict started", "ended"]
        );
        assert_eq!(said(&["run.blocked"]), ["requested verdict"]);
        assert_eq!(
            said(&["run.waiting", "run.approved", "run.started", "run.ended"]),
            ["requested verdict asked", "decided", "started", "ended"]
        );
        assert_eq!(
            said(&["run.held", "run.started", "run.ended"]),
            ["requested held", "verdict started", "ended"]
        );
    }
}
