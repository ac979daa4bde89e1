//! One line of a recording.

use std::fmt::Write;
use std::time::Duration;

use super::header::Size;

/// Something that happened in a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, since the beginning of the recording.
    pub time: Duration,
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// The terminal showed this.
    Output(String),
    /// Someone typed this.
    Input(String),
    /// The terminal has another size.
    Resize(Size),
    /// A place worth finding: `$ npm test`, `approved by ana`, `exit 0`.
    Marker(String),
    /// The process ended (version 3).
    Exit(i32),
    /// Something that other recorders know.
    Other { code: String, data: String },
}

impl Event {
    /// Appends the line that says this.
    pub(super) fn line(&self, line: &mut String) {
        let size;
        let exit;
        let (code, data) = match &self.kind {
            EventKind::Output(text) => ("o", text.as_str()),
            EventKind::Input(text) => ("i", text.as_str()),
            EventKind::Resize(Size { width, height }) => {
                size = format!("{width}x{height}");
                ("r", size.as_str())
            }
            EventKind::Marker(label) => ("m", label.as_str()),
            EventKind::Exit(code) => {
                exit = code.to_string();
                ("x", exit.as_str())
            }
            EventKind::Other { code, data } => (code.as_str(), data.as_str()),
        };
        let (seconds, micros) = (self.time.as_secs(), self.time.subsec_micros());
        let json = |text: &str| serde_json::to_string(text).expect("text");
        let (code, data) = (json(code), json(data));
        writeln!(line, "[{seconds}.{micros:06}, {code}, {data}]").expect("memory");
    }

    /// Reads a line, with its time as it is written.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (seconds, code, data): (f64, String, String) = serde_json::from_str(line).ok()?;
        let micros = Duration::try_from_secs_f64(seconds + 0.000_000_5).ok()?;
        let micros = u64::try_from(micros.as_micros()).ok()?;
        let kind = match code.as_str() {
            "o" => EventKind::Output(data),
            "i" => EventKind::Input(data),
            "r" => EventKind::Resize(size(&data)?),
            "m" => EventKind::Marker(data),
            "x" => EventKind::Exit(data.parse().ok()?),
            _ => EventKind::Other { code, data },
        };
        let time = Duration::from_micros(micros);
        Some(Self { time, kind })
    }
}

fn size(data: &str) -> Option<Size> {
    let (width, height) = data.split_once('x')?;
    let (width, height) = (width.parse().ok()?, height.parse().ok()?);
    Some(Size { width, height })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_stay_exact_for_months() {
        for micros in [0, 1, 999_999, 1_000_001, 86_400_000_007 * 90] {
            let time = Duration::from_micros(micros);
            let kind = EventKind::Marker("$ ls".into());
            let event = Event { time, kind };
            let mut line = String::new();
            event.line(&mut line);
            assert_eq!(Event::parse(&line), Some(event));
        }
    }

    #[test]
    fn times_that_make_no_sense_are_refused() {
        for line in [
            r#"[-5, "o", ""]"#,
            r#"[1e300, "o", ""]"#,
            r#"["1", "o", ""]"#,
        ] {
            assert_eq!(Event::parse(line), None, "{line}");
        }
    }
}
