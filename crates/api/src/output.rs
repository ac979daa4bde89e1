//! Output of runs: lines, excerpts, frames.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use weighlock_policy::Cut;

/// The most characters of a cut; longer output is read in pieces.
const MAX_CUT: usize = 1_000_000;

/// Bytes before each frame: the kind, three zeros, and the length of the
/// content, in network order. The shape is that of Docker's streams.
pub const FRAME_HEADER: usize = 8;

/// How much output there was, whether kept or not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Standard output.
    pub stdout: StreamTotals,
    /// Standard error.
    pub stderr: StreamTotals,
    /// Bytes that could not be stored because writing failed.
    pub lost_bytes: u64,
    /// Why, the first time.
    pub lost_because: Option<String>,
}

/// How much came out of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamTotals {
    /// Bytes.
    pub bytes: u64,
    /// Newlines.
    pub lines: u64,
    /// Characters, each invalid sequence counted as one.
    pub chars: u64,
    /// It has NUL bytes near its beginning.
    pub binary: bool,
}

impl Totals {
    /// Bytes of both streams.
    pub fn bytes(&self) -> u64 {
        self.stdout.bytes + self.stderr.bytes
    }

    /// Newlines of both streams.
    pub fn lines(&self) -> u64 {
        self.stdout.lines + self.stderr.lines
    }
}

/// The size of a run's output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OutputView {
    /// Bytes of both streams, kept or not.
    pub bytes: u64,
    /// Newlines of both streams.
    pub lines: u64,
    /// Bytes of standard output.
    pub stdout_bytes: u64,
    /// Bytes of standard error.
    pub stderr_bytes: u64,
    /// Bytes that are on disk and can be read.
    pub kept_bytes: u64,
    /// Bytes left out between the beginning and the end.
    pub dropped_bytes: u64,
    /// Bytes that could not be stored, and why.
    pub lost_bytes: u64,
    /// See `lost_bytes`.
    pub lost_because: Option<String>,
    /// Not text.
    pub binary: bool,
    /// It was removed to make room.
    pub removed: bool,
    /// For cutting it to a reader's measure.
    #[serde(skip)]
    #[schemars(skip)]
    pub totals: Totals,
}

/// `head:5000` is the beginning of both streams joined, `tail:50000` the end of
/// each, `ends:30000` both ends of each; in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CutTo(Cut);

impl From<CutTo> for Cut {
    fn from(cut: CutTo) -> Self {
        cut.0
    }
}

impl From<Cut> for CutTo {
    fn from(cut: Cut) -> Self {
        Self(cut)
    }
}

impl TryFrom<String> for CutTo {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = "give head, tail or ends with a number of characters, such as tail:50000";
        let (part, chars) = text.split_once(':').ok_or(wrong)?;
        let chars: usize = chars.parse().map_err(|_| wrong)?;
        if !(1..=MAX_CUT).contains(&chars) {
            return Err("give between 1 and 1000000 characters");
        }
        match part {
            "head" => Ok(Self(Cut::Head(chars))),
            "tail" => Ok(Self(Cut::Tail(chars))),
            "ends" => Ok(Self(Cut::Ends(chars))),
            _ => Err(wrong),
        }
    }
}

impl From<CutTo> for String {
    fn from(cut: CutTo) -> Self {
        match cut.0 {
            Cut::Head(chars) => format!("head:{chars}"),
            Cut::Tail(chars) => format!("tail:{chars}"),
            Cut::Ends(chars) => format!("ends:{chars}"),
        }
    }
}

impl JsonSchema for CutTo {
    fn schema_name() -> Cow<'static, str> {
        "CutTo".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "`head:5000` is the beginning of both streams joined, `tail:50000` the \
                end of each, `ends:30000` both ends of each; in characters, 1000000 at most.",
            "pattern": "^(head|tail|ends):([1-9][0-9]{0,5}|1000000)$",
        })
    }
}

/// One line of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineView {
    /// Counted from 1 over both streams.
    pub line: u64,
    /// Byte offset where it starts.
    pub offset: u64,
    /// Milliseconds after the start.
    pub ms: u64,
    /// `stdout` or `stderr`.
    pub stream: String,
    /// Without the newline; invalid UTF-8 replaced.
    pub text: String,
    /// The line is longer than this; read it raw, by its offset.
    pub cut: bool,
    /// Where it does not look as usual, with a `view`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<SpanView>,
}

/// A part of a line that looks alike.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SpanView {
    /// The first byte of the text.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
    /// The colour of the letters: `0` to `255`, of which the first 16 are those
    /// that people choose, or `#rrggbb`; the usual one if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fg: Option<String>,
    /// The colour behind them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bg: Option<String>,
    /// Heavier.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bold: bool,
    /// Fainter.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dim: bool,
    /// Slanted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub italic: bool,
    /// With a line below.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub underline: bool,
    /// With both colours exchanged.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inverse: bool,
    /// With a line through.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub strike: bool,
}

/// A part of a run's output that its requester was not shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOutView {
    /// `stdout` or `stderr`.
    pub stream: String,
    /// The line in which it begins, of the whole output.
    pub from: u64,
    /// The line in which it ends.
    pub to: u64,
    /// How many characters.
    pub chars: u64,
}

/// A range of lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinesView {
    /// The lines.
    pub lines: Vec<LineView>,
    /// Lines asked for that are not kept: first and last.
    pub missing: Option<(u64, u64)>,
    /// Newlines there have been so far; in the agent's view, lines of it.
    pub total: u64,
    /// Where the requester's copy was cut, with a `view`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutView>,
}

/// Lines that match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FoundLines {
    /// The lines.
    pub lines: Vec<LineView>,
    /// There may be more after the last.
    pub more: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinesParams {
    /// The first line; 1 when not given.
    pub from: Option<u64>,
    /// How many, at most 10,000.
    pub lines: Option<usize>,
    /// With `full` or `agent`, lines come rendered: without escape sequences,
    /// with `spans`, and at most 2 MiB at a time. `agent` is the shortened
    /// output that the requester got, with its own line numbers.
    pub view: Option<OutputAudience>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "View")]
pub enum OutputAudience {
    Full,
    Agent,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindParams {
    /// A regular expression.
    pub q: String,
    /// The first line to look at.
    pub from: Option<u64>,
    /// How many lines to find, at most 10,000.
    pub limit: Option<usize>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawParams {
    /// Byte offset to begin at.
    #[serde(default)]
    pub from: u64,
    /// Bytes to send at the most.
    pub limit: Option<u64>,
    /// Only this stream.
    pub stream: Option<StreamName>,
    /// Follow the output until the run ends.
    #[serde(default)]
    pub follow: FollowMode,
    /// Send frames that tell the streams and gaps apart.
    #[serde(default)]
    pub frames: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamName {
    Stdout,
    Stderr,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FollowMode {
    /// What is stored now.
    #[default]
    No,
    /// Until the command has ended.
    Ended,
    /// Until nothing of the run is left.
    Closed,
}

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// Bytes of standard output.
    Stdout = 1,
    /// Bytes of standard error.
    Stderr = 2,
    /// Eight bytes: how many bytes of output are not kept here.
    Gap = 3,
}

impl Frame {
    /// Reads the header of a frame: what it holds, and how many bytes.
    pub fn read(header: [u8; FRAME_HEADER]) -> Option<(Self, usize)> {
        let kind = match header[0] {
            1 => Self::Stdout,
            2 => Self::Stderr,
            3 => Self::Gap,
            _ => return None,
        };
        let length = u32::from_be_bytes(header[4..].try_into().expect("4 bytes"));
        Some((kind, length as usize))
    }

    /// Appends the frame to `to`.
    pub fn write(self, to: &mut Vec<u8>, bytes: &[u8]) {
        to.extend_from_slice(&[self as u8, 0, 0, 0]);
        to.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        to.extend_from_slice(bytes);
    }
}
