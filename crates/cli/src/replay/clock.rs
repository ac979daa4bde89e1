//! Times in a recording: `8:31`, `1:02:03`.

use std::time::Duration;

use crate::text;

/// Reads `8:31`, `1:02:03`, and what else is a time: `83`, `90s`, `2m`.
pub(crate) fn parse(written: &str) -> Result<Duration, String> {
    let wrong = || format!("`{written}` is not a time; write 8:31, 1:02:03 or 83");
    let parts: Vec<&str> = written.trim().split(':').collect();
    let (hours, minutes, seconds) = match parts[..] {
        [one] => return text::parse_patience(one).map_err(|_| wrong()),
        [minutes, seconds] => ("0", minutes, seconds),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return Err(wrong()),
    };
    let number = |text: &str| text.parse::<u32>().ok();
    let all = number(hours).zip(number(minutes)).zip(number(seconds));
    let ((hours, minutes), seconds) = all.ok_or_else(wrong)?;
    if seconds >= 60 || parts.len() == 3 && minutes >= 60 {
        return Err(wrong());
    }
    let seconds = u64::from(hours) * 3600 + u64::from(minutes) * 60 + u64::from(seconds);
    Ok(Duration::from_secs(seconds))
}

/// `8:31`, and `1:02:03` after an hour.
pub(crate) fn shown(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for (written, seconds) in [
            ("8:31", 511),
            ("1:02:03", 3723),
            ("83", 83),
            ("90s", 90),
            ("75:00", 4500),
            (" 0:05 ", 5),
        ] {
            assert_eq!(
                parse(written),
                Ok(Duration::from_secs(seconds)),
                "{written}"
            );
        }
        for wrong in [
            "", "x", "1:60", "1:2:3:4", "1:75:00", "-1:00", ":5", "-3", "1:-5",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(shown(Duration::from_millis(511_900)), "8:31");
        assert_eq!(shown(Duration::from_secs(3723)), "1:02:03");
    }
}
