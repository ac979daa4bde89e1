//! `read`: what a run has written, and what a terminal shows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_api::{
    FRAME_HEADER, FoundLines, Frame, LineView, LinesView, ScreenView, State, TaskView,
};

use super::looked_for;
use super::told::word;
use crate::api::{self, Failure, escape};
use crate::call::Call;
use crate::reply::Reply;
use crate::tool::{Hints, Tool, answer, parse, schema};

/// No more lines at once than a model should read.
const MOST_LINES: u64 = 2000;

/// And no more bytes: with this many it does not lose the thread.
const MOST_BYTES: usize = 32 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Read")]
struct ReadInput {
    /// A run's id, or a terminal's name.
    id: String,
    /// Only what was written from this byte on: `cursor` of an earlier answer.
    #[serde(default)]
    cursor: Option<u64>,
    /// Lines by number, as in `41:120`, or the last ones, as in `-50`.
    #[serde(default)]
    lines: Option<String>,
    /// Only lines that match this regular expression; with `lines`, from the
    /// first of those on.
    #[serde(default)]
    search: Option<String>,
}

/// What there is to read.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Found")]
struct ReadAnswer {
    /// What was read.
    text: String,
    /// The state of the run.
    #[serde(skip_serializing_if = "String::is_empty")]
    state: String,
    /// The byte of the output to go on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<u64>,
    /// There is more already.
    more: bool,
    /// Bytes that are not kept any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_bytes: Option<u64>,
    /// How many lines there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_lines: Option<u64>,
    /// What to know about it: how to read on, or why there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

pub(super) fn tool() -> Tool {
    Tool {
        name: "read",
        title: "Read output",
        description: "Read what a run has written: all from `cursor`, by `lines`, or by `search`. \
            Of a terminal without any of these: its screen.",
        input: schema::<ReadInput>,
        output: Some(answer::<ReadAnswer>),
        hints: Hints {
            reads: true,
            idempotent: true,
            ..Hints::default()
        },
        deed: |call, arguments| {
            Box::pin(async move {
                let done = read(call, parse(arguments)?).await;
                done.map_err(|failure| looked_for(call, failure))
            })
        },
    }
}

async fn read(call: &Call, asked: ReadInput) -> Result<Reply, Failure> {
    let desk = &call.desk;
    let id = escape(&desk.resolve(&asked.id).await?);
    let found = match (&asked.search, &asked.lines, asked.cursor) {
        (Some(pattern), lines, _) => {
            let from = lines.as_deref().map(first_line).transpose()?;
            search(call, &id, pattern, from.unwrap_or(1)).await?
        }
        (None, Some(lines), _) => by_lines(call, &id, lines).await?,
        (None, None, None) => match desk.terminal(&asked.id).await? {
            Some(terminal) => {
                let screen = screen(call, &id).await?;
                ReadAnswer {
                    cursor: Some(screen.offset),
                    text: filled(screen.rows).join("\n"),
                    // Who types there, or what they said when they left.
                    note: terminal.control.text,
                    ..ReadAnswer::default()
                }
            }
            None => from(call, &asked.id, &id, 0).await?,
        },
        (None, None, Some(cursor)) => from(call, &asked.id, &id, cursor).await?,
    };
    let text = match &found.note {
        None => found.text.clone(),
        Some(note) if found.text.is_empty() => format!("[{note}]"),
        Some(note) => format!("{}\n[{note}]", found.text.trim_end_matches('\n')),
    };
    Ok(Reply::new(text, &found))
}

async fn from(call: &Call, name: &str, id: &str, cursor: u64) -> Result<ReadAnswer, Failure> {
    let api = call.desk.api();
    let path = format!("/commands/{id}/output/raw?from={cursor}&limit={MOST_BYTES}&frames=true");
    let (bytes, lost) = unframed(&api::bytes(api, path).await?);
    let task: TaskView = api::get(api, format!("/tasks/{id}")).await?;
    let end = cursor.saturating_add(lost + bytes.len() as u64);
    let goes_on = task.output_bytes > end || task.state == State::Running;
    let bytes = match goes_on {
        // The rest of a character is still to come.
        true => &bytes[..whole(&bytes)],
        false => &bytes,
    };
    let next = cursor.saturating_add(lost + bytes.len() as u64);
    let more = next < task.output_bytes && !bytes.is_empty();
    let note = match (more, bytes.is_empty()) {
        (true, _) => Some(format!("more: read {name} with cursor {next}")),
        (false, true) => Some(format!(
            "nothing from byte {cursor} on; {name} is {}",
            word(&task.state)
        )),
        (false, false) => None,
    };
    let missing = (lost > 0).then(|| format!("{lost} bytes are not kept any more"));
    Ok(ReadAnswer {
        text: String::from_utf8_lossy(bytes).into_owned(),
        state: word(&task.state),
        cursor: Some(next),
        more,
        lost_bytes: Some(lost).filter(|&lost| lost > 0),
        note: join([missing, note]),
        ..ReadAnswer::default()
    })
}

/// The bytes in frames, and how many are not kept.
fn unframed(mut frames: &[u8]) -> (Vec<u8>, u64) {
    let (mut bytes, mut lost) = (vec![], 0);
    while let Some((header, rest)) = frames.split_first_chunk::<FRAME_HEADER>() {
        let Some((kind, length)) = Frame::read(*header) else {
            break;
        };
        let (held, rest) = rest.split_at(length.min(rest.len()));
        match kind {
            Frame::Stdout | Frame::Stderr => bytes.extend_from_slice(held),
            Frame::Gap => lost += held.try_into().map_or(0, u64::from_be_bytes),
        }
        frames = rest;
    }
    (bytes, lost)
}

/// How many bytes there are without a character that is cut at the end.
fn whole(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(cut) if cut.error_len().is_none() && cut.valid_up_to() > 0 => cut.valid_up_to(),
        // What is no text anyway is taken as it is.
        _ => bytes.len(),
    }
}

async fn search(call: &Call, id: &str, pattern: &str, from: u64) -> Result<ReadAnswer, Failure> {
    let path = format!(
        "/commands/{id}/output/find?q={}&from={from}&limit={MOST_LINES}",
        escape(pattern)
    );
    let found: FoundLines = api::get(call.desk.api(), path).await?;
    let (text, shown) = numbered(&found.lines);
    let last = found.lines[..shown].last().map_or(0, |line| line.line);
    let more = found.more || shown < found.lines.len();
    let note = match (more, shown) {
        (true, _) => Some(format!("more match: search again with lines {}:", last + 1)),
        (false, 0) => Some("no line matches".into()),
        (false, _) => None,
    };
    Ok(ReadAnswer {
        text,
        more,
        note,
        ..ReadAnswer::default()
    })
}

async fn by_lines(call: &Call, id: &str, lines: &str) -> Result<ReadAnswer, Failure> {
    let api = call.desk.api();
    let (from, count) = match lines.strip_prefix('-') {
        Some(last) => {
            let last: u64 = last.parse().map_err(|_| no_lines(lines))?;
            let path = format!("/commands/{id}/output?lines=0");
            let now: LinesView = api::get(api, path).await?;
            (now.total.saturating_sub(last) + 1, last)
        }
        None => {
            let from = first_line(lines)?;
            let to = match lines.split_once(':') {
                Some((_, "")) => u64::MAX,
                Some((_, to)) => to.parse().map_err(|_| no_lines(lines))?,
                None => from,
            };
            (from, to.saturating_add(1).saturating_sub(from))
        }
    };
    let path = format!(
        "/commands/{id}/output?from={from}&lines={}",
        count.min(MOST_LINES)
    );
    let found: LinesView = api::get(api, path).await?;
    let (text, shown) = numbered(&found.lines);
    let next = found.lines[..shown]
        .last()
        .map_or(from, |line| line.line + 1);
    let wanted = from.saturating_add(count).min(found.total + 1);
    let more = shown > 0 && next < wanted;
    let note = match (more, shown) {
        (true, _) => Some(format!("more: lines {next}:{}", wanted - 1)),
        (false, 0) => Some(format!("no such lines; there are {}", found.total)),
        (false, _) => None,
    };
    let missing =
        { found.missing }.map(|(first, last)| format!("lines {first}:{last} are not kept"));
    Ok(ReadAnswer {
        text,
        more,
        total_lines: Some(found.total),
        note: join([missing, note]),
        ..ReadAnswer::default()
    })
}

fn join(notes: [Option<String>; 2]) -> Option<String> {
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    Some(notes.join("; ")).filter(|notes| !notes.is_empty())
}

/// The first of some lines.
fn first_line(lines: &str) -> Result<u64, Failure> {
    let (from, _) = lines.split_once(':').unwrap_or((lines, ""));
    let from: u64 = from.parse().map_err(|_| no_lines(lines))?;
    Ok(from.max(1))
}

fn no_lines(lines: &str) -> Failure {
    let brief: String = lines.chars().take(40).collect();
    Failure::new(
        "invalid_arguments",
        format!("`{brief}` are no lines"),
        "Write 41:120, or -50 for the last 50.",
    )
}

/// Lines with their numbers, and how many of them are not too many.
fn numbered(lines: &[LineView]) -> (String, usize) {
    let mut text = String::new();
    for (shown, line) in lines.iter().enumerate() {
        let cut = match line.cut {
            true => format!("… [cut: read with cursor {}]", line.offset),
            false => String::new(),
        };
        let next = format!("{}: {}{cut}", line.line, line.text);
        if shown > 0 {
            if text.len() + next.len() > MOST_BYTES {
                return (text, shown);
            }
            text.push('\n');
        }
        text.push_str(&next);
    }
    (text, lines.len())
}

/// What a terminal shows.
pub(super) async fn screen(call: &Call, id: &str) -> Result<ScreenView, Failure> {
    api::get(call.desk.api(), format!("/terminals/{id}/screen")).await
}

/// Leaves out the empty lines below.
pub(super) fn filled(mut rows: Vec<String>) -> Vec<String> {
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_not_cut() {
        assert_eq!(whole("aü".as_bytes()), 3);
        assert_eq!(whole(&"aü".as_bytes()[..2]), 1);
        // It would not go on otherwise.
        assert_eq!(whole(b"\xc3"), 1);
        assert_eq!(whole(b"a\xff"), 2);
    }

    #[test]
    fn frames_are_taken_apart() {
        let mut frames = vec![3, 0, 0, 0, 0, 0, 0, 8];
        frames.extend_from_slice(&7u64.to_be_bytes());
        frames.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 2, b'h', b'i']);
        frames.extend_from_slice(&[2, 0, 0, 0, 0, 0, 0, 1, b'!']);
        assert_eq!(unframed(&frames), (b"hi!".to_vec(), 7));
        assert_eq!(unframed(&frames[..30]), (b"hi".to_vec(), 7));
        assert_eq!(unframed(b"?"), (vec![], 0));
    }
}
