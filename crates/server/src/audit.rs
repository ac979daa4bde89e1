//! The record: one run's, a part of it, and the whole.

use std::io::{self, BufWriter};
use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_engine::{Engine, EntryFilter, Verified};

use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Id, Params, Who, of_kinds, when};

/// How many entries there are when nothing is asked, and at the most.
const PAGE: usize = 100;
const MAX_PAGE: usize = 1000;

/// What a verification of the audit found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct VerifiedView {
    /// The number of the last entry up to which all are right.
    entries: u64,
    /// The hash of the last of them.
    head: String,
    /// The entries up to this one were removed by retention, as a checkpoint in
    /// the chain tells.
    removed_to: Option<u64>,
    /// The first entry that is wrong, and how.
    fault: Option<FaultView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FaultView {
    seq: u64,
    what: String,
    /// Set when the entries are right, and a row is not what they say: its table
    /// and its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<String>,
}

/// Audit entries.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Entries {
    /// Oldest first.
    entries: Vec<serde_json::Value>,
    /// Ask for what follows with `after` this; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// The audit entries of one run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunEntries {
    /// Oldest first.
    entries: Vec<serde_json::Value>,
    /// What they say of the run's life.
    steps: Vec<Steps>,
}

/// What one entry says of a run's life. The record is not repeated: what began
/// at once was requested and judged by the same entry.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Steps {
    /// The entry's number.
    seq: u64,
    /// In their order: `requested`, `verdict`, `held` while work was paused,
    /// `asked`, `decided`, `started`, `ended`.
    steps: Vec<&'static str>,
}

/// Which entries to list.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListParams")]
pub(crate) struct AuditListParams {
    /// Only those about this run, by its whole id.
    run: Option<String>,
    /// Only those about this sandbox, by id.
    sandbox: Option<String>,
    /// Only what this one did.
    actor: Option<String>,
    /// Only what is about runs and questions of this one.
    owner: Option<String>,
    /// Only this kind: `run.started`, or all of `run.`.
    kind: Option<String>,
    /// Only from this time on (RFC 3339).
    from: Option<String>,
    /// Only before this time.
    to: Option<String>,
    /// Only those after this number.
    #[serde(default)]
    after: u64,
    /// How many, at most 1000.
    limit: Option<usize>,
}

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
        .summary("Who did what, where, between two times")
        .description(
            "For people who may see everything. `sandbox=S&kind=run.started&from=…&to=…` is who \
             ran what in a sandbox between two times.",
        )
}

pub(crate) async fn verify(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
) -> Result<Json<VerifiedView>, Problem> {
    Ok(Json(engine.audit().verify(&who).await?.into()))
}

pub(crate) fn verify_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("verifyAudit")
        .summary("Check the audit's chain, and the rows that it speaks of")
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
        .summary("The whole audit as JSON Lines, for `weighlock audit verify --file`")
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
            steps: said.into_iter().flatten().collect(),
        });
    }
    told
}

pub(crate) fn of_run_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getCommandAudit")
        .summary("The audit entries of a run")
}

impl From<Verified> for VerifiedView {
    fn from(found: Verified) -> Self {
        Self {
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
