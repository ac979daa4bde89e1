//! Hours without notifications.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::error::Error;
pub use weighlock_api::QuietHours;

pub(crate) fn check(quiet: &QuietHours) -> Result<(), Error> {
    let bad = |why: String, hint| Err(Error::invalid("bad_quiet_hours", &why, hint));
    if hours(quiet).is_none() {
        let why = format!("`{}` to `{}` are not valid hours", quiet.from, quiet.to);
        return bad(why, "write 22:00 and 07:00; they must differ");
    }
    if zone(quiet).is_none() {
        let zone = quiet.zone.as_deref().unwrap_or_default();
        let why = format!("unknown time zone `{zone}`");
        return bad(
            why,
            "write for example Europe/Vienna, or omit it for the server's",
        );
    }
    Ok(())
}

/// Returns when the quiet hours end if `micros` is within them.
pub(crate) fn until(quiet: &QuietHours, micros: i64) -> Option<i64> {
    let (from, to) = hours(quiet)?;
    let zone = zone(quiet)?;
    let now = Timestamp::from_microsecond(micros)
        .ok()?
        .to_zoned(zone.clone());
    let clock = now.time();
    let overnight = from > to;
    let is_quiet = match overnight {
        true => clock >= from || clock < to,
        false => clock >= from && clock < to,
    };
    let day = match overnight && clock >= from {
        true => now.date().checked_add(1.day()).ok()?,
        false => now.date(),
    };
    let end = DateTime::from_parts(day, to).to_zoned(zone).ok()?;
    is_quiet.then(|| end.timestamp().as_microsecond())
}

fn hours(quiet: &QuietHours) -> Option<(Time, Time)> {
    let time = |text: &str| {
        let (hour, minute) = text.split_once(':')?;
        Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
    };
    Some((time(&quiet.from)?, time(&quiet.to)?)).filter(|(from, to)| from != to)
}

fn zone(quiet: &QuietHours) -> Option<TimeZone> {
    match &quiet.zone {
        Some(name) => TimeZone::get(name).ok(),
        None => Some(TimeZone::system()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(from: &str, to: &str, now: &str, until: Option<&str>) {
        let quiet = QuietHours {
            from: from.into(),
            to: to.into(),
            zone: Some("UTC".into()),
        };
        super::check(&quiet).unwrap();
        let now: Timestamp = now.parse().unwrap();
        let until = until.map(|time| time.parse::<Timestamp>().unwrap().as_microsecond());
        assert_eq!(
            super::until(&quiet, now.as_microsecond()),
            until,
            "{from} {to} {now}"
        );
    }

    #[test]
    fn quiet_hours_end_when_they_say() {
        check("22:00", "07:00", "2026-01-01T21:59:59Z", None);
        check(
            "22:00",
            "07:00",
            "2026-01-01T22:00:00Z",
            Some("2026-01-02T07:00:00Z"),
        );
        check(
            "22:00",
            "07:00",
            "2026-01-02T06:59:59Z",
            Some("2026-01-02T07:00:00Z"),
        );
        check("22:00", "07:00", "2026-01-02T07:00:00Z", None);
        check(
            "12:00",
            "13:30",
            "2026-01-01T12:30:00Z",
            Some("2026-01-01T13:30:00Z"),
        );
        check("12:00", "13:30", "2026-01-01T13:30:00Z", None);
    }

    #[test]
    fn invalid_hours_are_refused() {
        for (from, to, zone) in [
            ("22:00", "22:00", None),
            ("24:00", "07:00", None),
            ("ten", "07:00", None),
            ("22:00", "07:00", Some("Nowhere/Here")),
        ] {
            let quiet = QuietHours {
                from: from.into(),
                to: to.into(),
                zone: zone.map(str::to_owned),
            };
            assert!(super::check(&quiet).is_err(), "{from} {to} {zone:?}");
        }
    }
}
