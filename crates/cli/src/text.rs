//! Text for people: safe to show, and short.

use std::io::Write;
use std::time::Duration;

pub(crate) use weighlock_engine::size;

/// Makes text from anywhere safe to show: what is invisible, moves the cursor
/// or reorders text appears as its code. Newlines stay.
pub(crate) fn safe(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let mixed = word.bytes().any(|byte| byte.is_ascii_alphabetic());
        for c in word.chars() {
            if c == '\n' || !(is_hidden(c) || mixed && is_look_alike(c)) {
                shown.push(c);
            } else {
                shown.push_str(&format!("⟦U+{:04X}⟧", u32::from(c)));
            }
        }
    }
    shown
}

/// Makes text safe and fits it into one line.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    let text = safe(&text.split('\n').collect::<Vec<_>>().join(" ⏎ "));
    if text.chars().count() <= width {
        return text;
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}'
            | '\u{17B5}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E0FFF}')
}

/// A Greek or Cyrillic letter, which in a Latin word passes for another.
fn is_look_alike(c: char) -> bool {
    matches!(c, '\u{0370}'..='\u{03FF}' | '\u{0400}'..='\u{052F}' | '\u{1F00}'..='\u{1FFF}')
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
        .map_err(|_| format!("`{text}` is no time; write 500ms, 90s, 2m or 1h"))?;
    let factor = match unit {
        "ms" => 1.0,
        "" | "s" => 1000.0,
        "m" | "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return Err(format!("`{unit}` is no unit of time; write ms, s, m or h")),
    };
    let millis = number * factor;
    if !millis.is_finite() || millis.abs() > 1e15 {
        return Err(format!("`{text}` is no time that anyone can wait"));
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
    fn hidden_characters_are_shown() {
        assert_eq!(safe("ls\n-la"), "ls\n-la");
        assert_eq!(safe("a\u{202E}b\u{200B}"), "a⟦U+202E⟧b⟦U+200B⟧");
        assert_eq!(safe("\x1b[31m\r"), "⟦U+001B⟧[31m⟦U+000D⟧");
        assert_eq!(safe("ex\u{0430}mple.dev"), "ex⟦U+0430⟧mple.dev");
        assert_eq!(safe("привет мир äöü 漢字"), "привет мир äöü 漢字");
    }

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
    fn words_are_quoted_as_the_shell_reads_them() {
        let quote = |words: &[&str]| quote(&words.iter().map(|&w| w.into()).collect::<Vec<_>>());
        assert_eq!(quote(&["npm", "run", "build"]), "npm run build");
        assert_eq!(
            quote(&["echo", "a b", "", "it's", "$x"]),
            r"echo 'a b' '' 'it'\''s' '$x'"
        );
    }
}
