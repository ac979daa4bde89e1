//! Points in time: as people write them, and as they read them.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

use crate::text;

/// Reads `24h` (ago), `2026-01-15`, `2026-01-15 14:02`, `14:02` (today), or a
/// time with its zone. Returns it as the server reads it.
pub(crate) fn parse(written: &str) -> Result<String, String> {
    read(written, &Zoned::now()).map(|time| time.to_string())
}

fn read(written: &str, now: &Zoned) -> Result<Timestamp, String> {
    let written = written.trim();
    if let Ok(ago) = text::parse_time(written) {
        let then = now
            .timestamp()
            .checked_sub(SignedDuration::from_millis(ago));
        return then.map_err(|_| format!("`{written}` was before time began"));
    }
    if let Ok(time) = written.parse::<Timestamp>() {
        return Ok(time);
    }
    let day = |time: Time| now.date().to_datetime(time);
    let here = written.parse::<DateTime>().ok();
    let here = here.or_else(|| written.parse::<Time>().ok().map(day));
    let here = here.and_then(|here| here.to_zoned(now.time_zone().clone()).ok());
    here.map(|here| here.timestamp()).ok_or_else(|| {
        format!("`{written}` is not a time; write 24h (ago), 14:02, 2026-01-15 or 2026-01-15T14:02")
    })
}

/// The time of day here, or the date if that was not today.
pub(crate) fn clock(time: &str) -> String {
    let Some(then) = here(time) else {
        return String::new();
    };
    match then.date() == Zoned::now().date() {
        true => time_of_day(time),
        false => then.strftime("%d %b").to_string(),
    }
}

/// Formats a time as the local time of day.
pub(crate) fn time_of_day(time: &str) -> String {
    here(time).map_or_else(String::new, |then| then.strftime("%H:%M:%S").to_string())
}

/// The whole time here, to the second.
pub(crate) fn exact(time: &str) -> String {
    here(time).map_or_else(String::new, |then| {
        then.strftime("%Y-%m-%d %H:%M:%S").to_string()
    })
}

/// The time of day here, to the minute; with the date if that was not today.
pub(crate) fn minute(time: &str) -> String {
    let Some(then) = here(time) else {
        return String::new();
    };
    match then.date() == Zoned::now().date() {
        true => then.strftime("%H:%M").to_string(),
        false => then.strftime("%Y-%m-%d %H:%M").to_string(),
    }
}

/// `42 s ago`, and after an hour the time.
pub(crate) fn ago(time: &str) -> String {
    match seconds_since(time) {
        seconds @ 0..60 => format!("{seconds} s ago"),
        seconds @ 60..3600 => format!("{} m ago", seconds / 60),
        _ => minute(time),
    }
}

/// Whole seconds that have gone by.
pub(crate) fn seconds_since(time: &str) -> u64 {
    let then = time
        .parse::<Timestamp>()
        .unwrap_or_else(|_| Timestamp::now());
    let gone = Timestamp::now().duration_since(then).as_secs();
    u64::try_from(gone).unwrap_or(0)
}

/// `0:42`, `4:18`, `2:05:00`.
pub(crate) fn counter(seconds: u64) -> String {
    let (minutes, rest) = (seconds / 60, seconds % 60);
    match minutes {
        0..60 => format!("{minutes}:{rest:02}"),
        _ => format!("{}:{:02}:{rest:02}", minutes / 60, minutes % 60),
    }
}

fn here(time: &str) -> Option<Zoned> {
    let time = time.parse::<Timestamp>().ok()?;
    Some(time.to_zoned(TimeZone::system()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now: Zoned = "2026-01-15T12:00:00+01:00[Europe/Berlin]"
            .parse()
            .unwrap_or_else(|_| {
                let now: Timestamp = "2026-01-15T11:00:00Z".parse().unwrap();
                now.to_zoned(TimeZone::fixed(jiff::tz::offset(1)))
            });
        for (written, meant) in [
            ("24h", "2026-01-14T11:00:00Z"),
            ("90", "2026-01-15T10:58:30Z"),
            ("10:30", "2026-01-15T09:30:00Z"),
            ("2026-01-10", "2026-01-09T23:00:00Z"),
            ("2026-01-10T08:00", "2026-01-10T07:00:00Z"),
            ("2026-01-10 08:00", "2026-01-10T07:00:00Z"),
            ("2026-01-10T08:00:00Z", "2026-01-10T08:00:00Z"),
        ] {
            let read = read(written, &now).map(|time| time.to_string());
            assert_eq!(read.as_deref(), Ok(meant), "{written}");
        }
        for wrong in ["", "yesterday", "25:00", "2026-13-01"] {
            assert!(read(wrong, &now).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counters_count() {
        assert_eq!(counter(42), "0:42");
        assert_eq!(counter(258), "4:18");
        assert_eq!(counter(7500), "2:05:00");
    }
}
