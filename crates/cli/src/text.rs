//! Text for people: safe to show, and short.

use std::io::Write;
use std::time::Duration;

pub(crate) use weighlock_engine::{safe_command, safe_prose, safe_text as safe, size};

/// Makes text safe and fits it into one line.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    fit(&joined(&safe(text)), width)
}

/// The same for sentences in whatever language.
pub(crate) fn prose_line(text: &str, width: usize) -> String {
    fit(&joined(&safe_prose(text)), width)
}

/// The same for a command, whose spaces matter.
pub(crate) fn command_line(text: &str, width: usize) -> String {
    fit(&joined(&safe_command(text)), width)
}

fn joined(text: &str) -> String {
    text.split('\n').collect::<Vec<_>>().join(" ⏎ ")
}

/// Cuts a line, and says so.
pub(crate) fn fit(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let mut short: String = line.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// `1 run`, `2 runs`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `r_a was`, `r_a, r_b were`.
pub(crate) fn were(names: &[String]) -> String {
    let verb = if names.len() == 1 { "was" } else { "were" };
    format!("{} {verb}", names.join(", "))
}

/// `r_a, which was`, `r_a, r_b, which were`.
pub(crate) fn which_were(names: &[String]) -> String {
    let verb = if names.len() == 1 { "was" } else { "were" };
    format!("{}, which {verb}", names.join(", "))
}

/// Two texts on one line, the second at its end.
pub(crate) fn aligned(left: &str, right: &str, width: usize) -> String {
    let pad = width.saturating_sub(left.chars().count() + right.chars().count());
    format!("{left}{}{right}", " ".repeat(pad.max(2)))
}

/// Breaks a line where the terminal would, so that it can be counted.
pub(crate) fn broken(line: &str, width: usize) -> Vec<String> {
    let chars: Vec<char> = line.chars().collect();
    match chars.is_empty() {
        true => vec![String::new()],
        false => { chars.chunks(width.max(1)) }
            .map(|piece| piece.iter().collect())
            .collect(),
    }
}

/// Rows under each other, each column as wide as its widest text; the last one
/// as wide as it likes.
pub(crate) fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        let texts = rows.iter().filter_map(|row| row.get(at));
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let line = |row: &Vec<String>| {
        let padded = row
            .iter()
            .zip(&widths)
            .map(|(text, &width)| format!("{text:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// `38 ms`, `4.2 s`, `12 m 04 s`.
pub(crate) fn duration(millis: f64) -> String {
    match millis {
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms if ms < 59_950.0 => format!("{:.1} s", ms / 1000.0),
        ms => {
            let seconds = (ms / 1000.0).round() as u64;
            match seconds {
                0..3600 => format!("{} m {:02} s", seconds / 60, seconds % 60),
                _ => format!("{} h {:02} m", seconds / 3600, seconds % 3600 / 60),
            }
        }
    }
}

/// Reads `500ms`, `90s`, `2m`, `1h`; a bare number is seconds.
pub(crate) fn parse_time(text: &str) -> Result<i64, String> {
    let text = text.trim();
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number
        .trim()
        .parse()
        .map_err(|_| format!("`{text}` is not a time; write 500ms, 90s, 2m or 1h"))?;
    let factor = match unit {
        "ms" => 1.0,
        "" | "s" => 1000.0,
        "m" | "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => {
            return Err(format!(
                "`{unit}` is not a unit of time; write ms, s, m or h"
            ));
        }
    };
    let millis = number * factor;
    if !millis.is_finite() || millis.abs() > 1e15 {
        return Err(format!("`{text}` is too long a time"));
    }
    Ok(millis.round() as i64)
}

/// Reads the same as a duration for ourselves.
pub(crate) fn parse_patience(text: &str) -> Result<Duration, String> {
    match u64::try_from(parse_time(text)?) {
        Ok(millis) => Ok(Duration::from_millis(millis)),
        Err(_) => Err(format!("`{text}` is negative")),
    }
}

/// Quotes words so that the shell reads them as they are.
pub(crate) fn quote(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    words
        .iter()
        .map(|word| match word.chars().all(plain) && !word.is_empty() {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', r"'\''")),
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Prints one JSON object.
pub(crate) fn print_json(value: &impl serde::Serialize) {
    let text = serde_json::to_string_pretty(value).expect("views are always JSON");
    let _ = writeln!(std::io::stdout(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        assert_eq!(parse_time("500ms"), Ok(500));
        assert_eq!(parse_time("90"), Ok(90_000));
        assert_eq!(parse_time("1.5m"), Ok(90_000));
        assert_eq!(parse_time("-1s"), Ok(-1000));
        for text in ["", "x", "5 lightyears", "inf", "nan", "1e300h"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
        assert_eq!(duration(38.2), "38 ms");
        assert_eq!(duration(4_210.0), "4.2 s");
        assert_eq!(duration(724_000.0), "12 m 04 s");
        assert_eq!(duration(59_960.0), "1 m 00 s");
    }

    #[test]
    fn columns_are_as_wide_as_they_must() {
        let row = |texts: &[&str]| texts.iter().map(|&text| text.into()).collect::<Vec<_>>();
        let rows = [row(&["a", "bb", ""]), row(&["ccc", "d", "e"])];
        assert_eq!(columns(&rows), ["a    bb", "ccc  d   e"]);
        assert_eq!(broken("abcde", 2), ["ab", "cd", "e"]);
        assert_eq!(aligned("ab", "cd", 8), "ab    cd");
        assert_eq!(aligned("ab", "cd", 3), "ab  cd");
    }

    #[test]
    fn words_are_quoted_as_the_shell_reads_them() {
        let quote = |words: &[&str]| quote(&words.iter().map(|&w| w.into()).collect::<Vec<_>>());
        assert_eq!(quote(&["npm", "run", "build"]), "npm run build");
        assert_eq!(
            quote(&["echo", "a b", "", "it's", "$x"]),
            r"echo 'a b' '' 'it'\''s' '$x'"
        );
    }
}
