//! What a reader gets of long output.

use std::io;

use weighlock_policy::Cut;

use crate::log::{InStream, Log, Stream};
use crate::status::{StreamTotals, Totals};

/// A run's output as text, cut to a reader's measure, never inside a
/// character. Invalid UTF-8 is replaced; the log keeps the true bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The text.
    pub text: Text,
    /// Characters left out.
    pub left_out: u64,
    /// How many of these belong to standard error; 0 where both streams are
    /// joined.
    pub left_out_stderr: u64,
}

/// The shape of an excerpt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// Each stream by itself.
    Streams {
        /// Standard output.
        stdout: String,
        /// Standard error.
        stderr: String,
    },
    /// Both together, standard error last and marked.
    Joined(String),
}

/// A character takes at most this many bytes.
const CHAR_BYTES: usize = 4;

/// Cuts a run's output.
pub fn excerpt(log: &Log, totals: &Totals, cut: Cut) -> io::Result<Excerpt> {
    if let Cut::Head(most) = cut {
        return joined(log, totals, most);
    }
    let (stdout, left_stdout) = one(log, Stream::Stdout, &totals.stdout, cut)?;
    let (stderr, left_stderr) = one(log, Stream::Stderr, &totals.stderr, cut)?;
    Ok(Excerpt {
        text: Text::Streams { stdout, stderr },
        left_out: left_stdout + left_stderr,
        left_out_stderr: left_stderr,
    })
}

/// What a reader does not get, by the lines of both streams together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// Whose.
    pub stream: Stream,
    /// The line in which it begins.
    pub from: u64,
    /// The line in which it ends.
    pub to: u64,
    /// How many characters.
    pub chars: u64,
}

/// Says where a run's output is cut.
pub fn left_out(log: &Log, totals: &Totals, cut: Cut) -> io::Result<Vec<LeftOut>> {
    let mut all = vec![];
    for (stream, totals) in [
        (Stream::Stdout, &totals.stdout),
        (Stream::Stderr, &totals.stderr),
    ] {
        if !totals.binary && totals.chars > most_of(cut) as u64 {
            all.extend(gap(log, stream, totals, cut)?);
        }
    }
    Ok(all)
}

fn gap(log: &Log, stream: Stream, totals: &StreamTotals, cut: Cut) -> io::Result<Option<LeftOut>> {
    let (head, tail) = match cut {
        Cut::Head(most) => (first(log, stream, most)?, String::new()),
        Cut::Tail(most) => (String::new(), last(log, stream, most)?),
        Cut::Ends(most) => (first(log, stream, most / 2)?, last(log, stream, most / 2)?),
    };
    let from = log.line_of(stream, InStream::After(head.len() as u64))?;
    let to = log.line_of(stream, InStream::Last(tail.len() as u64 + 1))?;
    let shown = head.chars().count() + tail.chars().count();
    Ok(from.zip(to).map(|(from, to)| LeftOut {
        stream,
        from,
        to: to.max(from),
        chars: totals.chars.saturating_sub(shown as u64),
    }))
}

fn most_of(cut: Cut) -> usize {
    match cut {
        Cut::Head(most) | Cut::Tail(most) | Cut::Ends(most) => most,
    }
}

fn one(log: &Log, stream: Stream, totals: &StreamTotals, cut: Cut) -> io::Result<(String, u64)> {
    if totals.binary {
        return Ok((binary(totals), totals.chars));
    }
    let most = most_of(cut);
    if totals.bytes == 0 {
        return Ok((String::new(), 0));
    }
    if totals.chars <= most as u64 {
        let whole = log.head(stream, totals.bytes as usize)?;
        return Ok((String::from_utf8_lossy(&whole).into_owned(), 0));
    }
    match cut {
        Cut::Head(_) => {
            let text = first(log, stream, most)?;
            Ok((text, totals.chars - most as u64))
        }
        Cut::Tail(_) => {
            let text = last(log, stream, most)?;
            let left_out = totals.chars - text.chars().count() as u64;
            Ok((text, left_out))
        }
        Cut::Ends(_) => {
            let (head, tail) = (first(log, stream, most / 2)?, last(log, stream, most / 2)?);
            let shown = head.chars().count() + tail.chars().count();
            let left_out = totals.chars - shown as u64;
            let text = format!("{head}\n\n... ({left_out} characters truncated) ...\n\n{tail}");
            Ok((text, left_out))
        }
    }
}

fn joined(log: &Log, totals: &Totals, most: usize) -> io::Result<Excerpt> {
    let mut parts = vec![];
    let mut left_out = 0;
    let mut add = |stream, totals: &StreamTotals, mark: &str| -> io::Result<()> {
        if totals.bytes > 0 {
            let (text, left) = one(log, stream, totals, Cut::Head(most))?;
            left_out += left;
            parts.push(format!("{mark}{text}"));
        }
        Ok(())
    };
    add(Stream::Stdout, &totals.stdout, "")?;
    add(Stream::Stderr, &totals.stderr, "[stderr]\n")?;
    Ok(Excerpt::head(&parts.join("\n"), left_out, most))
}

impl Excerpt {
    /// The beginning of a text, of which some was left out already.
    pub fn head(text: &str, left_out: u64, most: usize) -> Self {
        let total = text.chars().count() as u64 + left_out;
        if total <= most as u64 {
            return Self {
                text: Text::Joined(text.to_owned()),
                left_out,
                left_out_stderr: 0,
            };
        }
        let mut text: String = text.chars().take(most).collect();
        text.push_str(&format!("\n…[truncated — {total} chars total]"));
        Self {
            text: Text::Joined(text),
            left_out: total - most as u64,
            left_out_stderr: 0,
        }
    }
}

fn first(log: &Log, stream: Stream, chars: usize) -> io::Result<String> {
    let bytes = log.head(stream, chars * CHAR_BYTES)?;
    Ok(String::from_utf8_lossy(&bytes)
        .chars()
        .take(chars)
        .collect())
}

fn last(log: &Log, stream: Stream, chars: usize) -> io::Result<String> {
    let bytes = log.tail(stream, chars * CHAR_BYTES)?;
    // The first bytes may be the rest of a character.
    let start = bytes
        .iter()
        .take(CHAR_BYTES - 1)
        .take_while(|&&byte| byte & 0xC0 == 0x80)
        .count();
    let text = String::from_utf8_lossy(&bytes[start..]);
    let skip = text.chars().count().saturating_sub(chars);
    Ok(text.chars().skip(skip).collect())
}

fn binary(totals: &StreamTotals) -> String {
    format!("[binary output, {} bytes]", totals.bytes)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::log::LogWriter;

    fn check(stdout: &str, stderr: &str, cut: Cut, expected: Text, left_out: u64) {
        let dir = tempfile::tempdir().unwrap();
        let (log, totals) = logged(dir.path(), stdout.as_bytes(), stderr.as_bytes());
        let found = excerpt(&log, &totals, cut).unwrap();
        assert_eq!((found.text, found.left_out), (expected, left_out));
    }

    fn logged(dir: &Path, stdout: &[u8], stderr: &[u8]) -> (Log, Totals) {
        let mut writer = LogWriter::new(dir, 1 << 20);
        // In pieces that cut characters, as a pipe would.
        for piece in stdout.chunks(7) {
            writer.append(Stream::Stdout, piece, 0);
        }
        for piece in stderr.chunks(5) {
            writer.append(Stream::Stderr, piece, 0);
        }
        (Log::open(dir), writer.totals())
    }

    fn streams(stdout: &str, stderr: &str) -> Text {
        Text::Streams {
            stdout: stdout.into(),
            stderr: stderr.into(),
        }
    }

    #[test]
    fn short_output_is_whole() {
        for cut in [Cut::Tail(10), Cut::Ends(10)] {
            check("äöü\n", "x", cut, streams("äöü\n", "x"), 0);
            check("", "", cut, streams("", ""), 0);
        }
        check(
            "a",
            "b",
            Cut::Head(50),
            Text::Joined("a\n[stderr]\nb".into()),
            0,
        );
        check("a", "", Cut::Head(50), Text::Joined("a".into()), 0);
    }

    #[test]
    fn head_says_how_much_there_was() {
        let expected = Text::Joined("ééééé\n…[truncated — 12 chars total]".into());
        check(&"é".repeat(12), "", Cut::Head(5), expected, 7);
    }

    #[test]
    fn head_counts_both_streams() {
        // 3 + newline + "[stderr]\n" + 4.
        let expected = Text::Joined("aaa\n[…[truncated — 17 chars total]".replace("[…", "[\n…"));
        check("aaa", "bbbb", Cut::Head(5), expected, 12);
    }

    #[test]
    fn tail_is_per_stream() {
        check("0123456789", "abc", Cut::Tail(4), streams("6789", "abc"), 6);
        check(
            &"漢".repeat(9),
            "",
            Cut::Tail(4),
            streams("漢漢漢漢", ""),
            5,
        );
    }

    #[test]
    fn what_is_left_out_of_each_stream_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let (log, totals) = logged(dir.path(), b"0123456789", "äbcdefg".as_bytes());
        let expected = Excerpt {
            text: streams("6789", "defg"),
            left_out: 9,
            left_out_stderr: 3,
        };
        assert_eq!(excerpt(&log, &totals, Cut::Tail(4)).unwrap(), expected);
    }

    #[test]
    fn ends_keep_both_and_name_the_gap() {
        check(
            "0123456789",
            "",
            Cut::Ends(4),
            streams("01\n\n... (6 characters truncated) ...\n\n89", ""),
            6,
        );
    }

    #[test]
    fn where_it_is_cut_is_known_by_line() {
        let dir = tempfile::tempdir().unwrap();
        let lines: String = (1..=100).map(|number| format!("{number:03}\n")).collect();
        let (log, totals) = logged(dir.path(), lines.as_bytes(), b"x\ny\n");
        let left = |cut| left_out(&log, &totals, cut).unwrap();
        let stdout = |from, to, chars| {
            vec![LeftOut {
                stream: Stream::Stdout,
                from,
                to,
                chars,
            }]
        };
        assert_eq!(left(Cut::Ends(40)), stdout(6, 95, 360));
        assert_eq!(left(Cut::Ends(42)), stdout(6, 95, 358));
        assert_eq!(left(Cut::Tail(40)), stdout(1, 90, 360));
        assert_eq!(left(Cut::Head(40)), stdout(11, 100, 360));
        assert_eq!(left(Cut::Ends(400)), vec![]);
    }

    #[test]
    fn invalid_bytes_are_replaced_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (log, totals) = logged(dir.path(), &[b'a', 0xFF, 0xFE, b'b', b'c', b'd'], b"");
        let found = excerpt(&log, &totals, Cut::Tail(3)).unwrap();
        assert_eq!(found.text, streams("bcd", ""));
        assert_eq!(found.left_out, 3);
    }

    #[test]
    fn binary_output_is_named_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let (log, totals) = logged(dir.path(), &[0; 100], b"");
        let found = excerpt(&log, &totals, Cut::Ends(30_000)).unwrap();
        assert_eq!(found.text, streams("[binary output, 100 bytes]", ""));
    }
}
