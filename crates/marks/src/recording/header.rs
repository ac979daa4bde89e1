//! The first line of a recording.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How large a terminal is, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub width: u16,
    pub height: u16,
}

/// What a recording is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The terminal's size at the beginning.
    pub size: Size,
    /// When it began, in seconds since 1970.
    pub timestamp: Option<u64>,
    /// What it is called.
    pub title: Option<String>,
    /// Variables that matter for playing, such as `TERM` and `SHELL`.
    pub env: BTreeMap<String, String>,
}

/// How a file counts time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventClock {
    /// From the beginning (version 2).
    Start,
    /// From the event before (version 3).
    Before,
}

impl Header {
    pub(super) fn line(&self) -> String {
        let raw = RawHeader {
            version: 2,
            width: Some(self.size.width),
            height: Some(self.size.height),
            term: None,
            timestamp: self.timestamp,
            title: self.title.clone(),
            env: Some(self.env.clone()),
        };
        serde_json::to_string(&raw).expect("text and numbers") + "\n"
    }

    pub(super) fn parse(line: &str) -> Result<(Self, EventClock), String> {
        let raw: RawHeader = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let (size, clock) = match (&raw, raw.version) {
            (_, 2) => (raw.width.zip(raw.height), EventClock::Start),
            (
                RawHeader {
                    term: Some(term), ..
                },
                3,
            ) => (Some((term.cols, term.rows)), EventClock::Before),
            (_, version) => return Err(format!("version {version} is not understood")),
        };
        let (width, height) = size.ok_or("the size is missing")?;
        let header = Self {
            size: Size { width, height },
            timestamp: raw.timestamp,
            title: raw.title,
            env: raw.env.unwrap_or_default(),
        };
        Ok((header, clock))
    }
}

#[derive(Serialize, Deserialize)]
struct RawHeader {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u16>,
    #[serde(skip_serializing)]
    term: Option<RawTerm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    env: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct RawTerm {
    cols: u16,
    rows: u16,
}
