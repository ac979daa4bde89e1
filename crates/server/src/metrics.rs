//! What is counted, in the words of Prometheus.
//!
//! The format is a line for each number; a library for it would be larger than
//! this and bring a registry that nobody needs.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aide::transform::TransformOperation;
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use weighlock_engine::{BOUNDS, Counted, Engine, Gauges, Histogram, Measures};

use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Who, of_kinds};
use weighlock_api::CODES;

/// Answers that were problems, by code. Of the process, as its descriptors are:
/// where a problem becomes an answer, nobody knows any engine.
static ERRORS: [AtomicU64; CODES.len()] = [const { AtomicU64::new(0) }; CODES.len()];

/// Counts a problem that was sent as an answer.
pub(crate) fn told(code: &str) {
    if let Ok(at) = CODES.binary_search(&code) {
        ERRORS[at].fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
) -> Result<Response, Problem> {
    let text = blocking(move || match engine.doctor().measures(&who)? {
        Some((measures, now)) => {
            let mut page = written(measures, engine.audit().commit_times(), &now);
            let name = "weighlock_webhook_deliveries_total";
            page.head(name, "counter", "Attempts to deliver to webhooks.");
            for (result, count) in engine.webhooks().attempts() {
                page.line(name, &[("result", result)], count);
            }
            let name = "weighlock_spans_lost_total";
            page.head(name, "counter", "Spans that no collector took.");
            page.line(name, &[], engine.tracer().lost_spans());
            Ok(page.0)
        }
        None => Err(off()),
    })
    .await?;
    let kind = [(
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8",
    )];
    Ok((kind, text).into_response())
}

pub(crate) fn show_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getMetrics")
        .summary("Get metrics in the text format of Prometheus")
        .description(
            "404 unless the settings say `[metrics] on = true`. For people who may see \
             everything: give Prometheus the token of a viewer.",
        )
        .response_with::<200, String, _>(|res| of_kinds(res, &["text/plain"]))
}

fn off() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "metrics_off",
        "metrics are off".into(),
        "set `on = true` under [metrics] and restart the server",
    )
}

fn written(measures: &Measures, commits: &Histogram, now: &Gauges) -> MetricsText {
    let mut page = MetricsText::default();
    page.head("weighlock_build_info", "gauge", "The version that runs.");
    page.line(
        "weighlock_build_info",
        &[("version", env!("CARGO_PKG_VERSION"))],
        1,
    );
    for (what, name, label, help) in COUNTS {
        page.head(name, "counter", help);
        for (how, count) in measures.counts(what) {
            match label {
                "" => page.line(name, &[], count),
                label => page.line(name, &[(label, how)], count),
            }
        }
    }
    page.histogram(
        "weighlock_run_duration_seconds",
        "How long runs took.",
        &measures.duration,
    );
    page.histogram(
        "weighlock_run_start_seconds",
        "From the permit to the beginning of the command: walls and record.",
        &measures.start,
    );
    page.histogram(
        "weighlock_store_commit_seconds",
        "How long the store took to commit what waited.",
        commits,
    );
    gauges(&mut page, now);
    page.head(
        "weighlock_errors_total",
        "counter",
        "Answers that were problems.",
    );
    for (code, count) in CODES.iter().zip(&ERRORS) {
        let count = count.load(Ordering::Relaxed);
        if count > 0 {
            page.line("weighlock_errors_total", &[("code", code)], count);
        }
    }
    process(&mut page);
    page
}

/// What is counted, its name, what tells the numbers apart, and what it is.
const COUNTS: [(Counted, &str, &str, &str); 5] = [
    (
        Counted::Started,
        "weighlock_runs_started_total",
        "verdict",
        "Runs that began.",
    ),
    (
        Counted::Ended,
        "weighlock_runs_ended_total",
        "state",
        "Runs that ended, or never began.",
    ),
    (
        Counted::Asked,
        "weighlock_questions_total",
        "",
        "Questions that people were asked.",
    ),
    (
        Counted::Decided,
        "weighlock_decisions_total",
        "decision",
        "How questions were closed.",
    ),
    (
        Counted::Changes,
        "weighlock_changes_total",
        "outcome",
        "What became of changes on copies.",
    ),
];

fn gauges(page: &mut MetricsText, now: &Gauges) {
    for (name, help, value) in [
        (
            "weighlock_runs_running",
            "Runs under way, each with a keeper.",
            now.running as u64,
        ),
        (
            "weighlock_terminals_open",
            "Terminals among them.",
            now.terminals as u64,
        ),
        (
            "weighlock_runs_held",
            "Runs that wait because work is paused.",
            now.held,
        ),
        (
            "weighlock_questions_waiting",
            "Questions that wait for a person.",
            now.questions,
        ),
        (
            "weighlock_question_oldest_seconds",
            "How long the oldest of them has waited.",
            now.oldest_question.as_secs(),
        ),
        (
            "weighlock_changes_undecided",
            "Runs whose changes are undecided.",
            now.undecided,
        ),
        (
            "weighlock_output_bytes",
            "Output on disk.",
            now.output_bytes,
        ),
        (
            "weighlock_disk_free_bytes",
            "Free where everything is kept.",
            now.free_bytes,
        ),
    ] {
        page.head(name, "gauge", help);
        page.line(name, &[], value);
    }
    page.head(
        "weighlock_audit_entries_total",
        "counter",
        "Entries of the audit, from the first.",
    );
    page.line("weighlock_audit_entries_total", &[], now.entries);
    let name = "weighlock_last_backup_timestamp_seconds";
    page.head(
        name,
        "gauge",
        "When a backup was last made; absent if never.",
    );
    if let Some(at) = now.backup {
        page.line(name, &[], at.max(0) as u64);
    }
}

/// What Prometheus' own libraries tell of a process, under the same names.
fn process(page: &mut MetricsText) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    let open = std::fs::read_dir("/proc/self/fd").map(Iterator::count);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    for (name, kind, help, value) in [
        (
            "process_cpu_seconds_total",
            "counter",
            "CPU time of the server itself.",
            Some(spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9),
        ),
        (
            "process_resident_memory_bytes",
            "gauge",
            "Memory of the server itself.",
            kib("VmRSS:").map(|kib| (kib * 1024) as f64),
        ),
        (
            "process_threads",
            "gauge",
            "Threads of the server itself.",
            kib("Threads:").map(|count| count as f64),
        ),
        (
            "process_open_fds",
            "gauge",
            "Open descriptors.",
            open.ok().map(|count| count as f64),
        ),
        (
            "process_max_fds",
            "gauge",
            "How many there may be.",
            limit.map(|most| most as f64),
        ),
    ] {
        if let Some(value) = value {
            page.head(name, kind, help);
            page.line(name, &[], value);
        }
    }
}

#[derive(Default)]
struct MetricsText(String);

impl MetricsText {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// No value of a label comes from what somebody wrote, so none is escaped.
    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<_> = { labels.iter() }
            .map(|(label, value)| format!("{label}=\"{value}\""))
            .collect();
        let _ = match labels.is_empty() {
            true => writeln!(self.0, "{name} {value}"),
            false => writeln!(self.0, "{name}{{{}}} {value}", labels.join(",")),
        };
    }

    fn histogram(&mut self, name: &str, help: &str, times: &Histogram) {
        let (up_to, all, micros) = times.read();
        self.head(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for (bound, count) in BOUNDS.iter().zip(up_to) {
            let bound = (*bound as f64 / 1e6).to_string();
            self.line(&bucket, &[("le", &bound)], count);
        }
        self.line(&bucket, &[("le", "+Inf")], all);
        self.line(&format!("{name}_sum"), &[], micros as f64 / 1e6);
        self.line(&format!("{name}_count"), &[], all);
    }
}
