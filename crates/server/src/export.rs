//! Runs as a file: what is filtered, as a table or line by line.

use std::io::{self, Write};
use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::extract::State as Shared;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use weighlock_api::{ExportFormat as Format, Run, RunListParams};
use weighlock_engine::{Engine, Filter, Principal};

use crate::audit::sent;
use crate::commands::filter_of;
use crate::problem::Problem;
use crate::system::{Params, Who, of_kinds};

/// How many runs are read at a time.
const STEP: usize = 500;

/// The columns of a table.
const COLUMNS: [&str; 13] = [
    "command_id",
    "created_at",
    "requested_by",
    "sandbox",
    "session_id",
    "state",
    "verdict",
    "approved_by",
    "exit_code",
    "duration_ms",
    "cwd",
    "command",
    "description",
];

pub(crate) async fn export(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Params(params): Params<RunListParams>,
) -> Result<Response, Problem> {
    let format = params.format.unwrap_or_default();
    let filter = Filter {
        limit: STEP,
        ..filter_of(&params, &engine, &who)?
    };
    let (kind, name) = match format {
        Format::Jsonl => ("application/jsonl", "runs.jsonl"),
        Format::Csv => ("text/csv; charset=utf-8", "runs.csv"),
    };
    let body = sent(move |to| write(&engine, filter, &who, format, to));
    let named = format!("attachment; filename=\"{name}\"");
    let head = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, named),
    ];
    Ok((head, body).into_response())
}

pub(crate) fn export_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("exportCommands")
        .summary("Export runs that match a filter, newest first")
        .description(
            "JSON Lines with everything, or CSV. In CSV, a text that a spreadsheet would read as \
             a formula starts with an apostrophe.",
        )
        .response_with::<200, String, _>(|res| of_kinds(res, &["application/jsonl", "text/csv"]))
}

fn write(
    engine: &Engine,
    mut filter: Filter,
    who: &Principal,
    format: Format,
    to: &mut dyn Write,
) -> io::Result<()> {
    if format == Format::Csv {
        row(to, &COLUMNS.map(str::to_owned))?;
    }
    loop {
        let runs = engine
            .runs()
            .list(filter.clone(), who)
            .map_err(io::Error::other)?;
        for run in &runs {
            match format {
                Format::Csv => row(to, &cells(run))?,
                Format::Jsonl => {
                    serde_json::to_writer(&mut *to, run)?;
                    to.write_all(b"\n")?;
                }
            }
        }
        match runs.last() {
            Some(last) if runs.len() == STEP => filter.before = Some(last.command_id.clone()),
            _ => return Ok(()),
        }
    }
}

fn cells(run: &Run) -> [String; COLUMNS.len()] {
    let detail = &run.detail;
    let number = |number: Option<i32>| number.map_or_else(String::new, |n| n.to_string());
    [
        run.command_id.clone(),
        run.created_at.clone(),
        run.requested_by.clone(),
        { detail.sandbox.as_ref() }.map_or_else(String::new, |sandbox| sandbox.name.clone()),
        run.session_id.clone().unwrap_or_default(),
        run.state.word().into(),
        run.verdict().into(),
        run.approved_by.clone().unwrap_or_default(),
        number(run.exit_code),
        detail
            .duration_ms
            .map_or_else(String::new, |ms| ms.to_string()),
        run.cwd.clone(),
        run.command.clone(),
        detail.description.clone().unwrap_or_default(),
    ]
}

fn row(to: &mut dyn Write, cells: &[String]) -> io::Result<()> {
    let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
    write!(to, "{}\r\n", cells.join(","))
}

/// Writes a text so that it is one cell, and never a formula: commands are
/// written by agents, and spreadsheets run what begins with `=`.
fn cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = match formula {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn a_cell_is_one_cell_and_no_formula() {
        assert_eq!(cell("ls -l"), "ls -l");
        assert_eq!(cell("echo \"a\", b"), "\"echo \"\"a\"\", b\"");
        assert_eq!(cell("a\nb"), "\"a\nb\"");
        assert_eq!(cell("=HYPERLINK(1)"), "'=HYPERLINK(1)");
        assert_eq!(cell("-1"), "'-1");
    }
}
