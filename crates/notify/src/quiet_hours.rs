//! Hours in which nobody is told anything.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Hours in which nothing is told. What still waits when they end is told then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quiet {
    /// When they begin, as `22:00`.
    pub from: String,
    /// When they end, as `07:00`; on the next day if that is earlier.
    pub to: String,
    /// Whose clock that is, as `Europe/Vienna`; the server's if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

impl Quiet {
    pub(super) fn check(&self) -> Result<(), Error> {
        let bad = |why: String, hint: &str| {
            Err(Error::invalid(
                "bad_quiet_hours",
                format!("{why}; nothing was changed"),
                hint,
            ))
        };
        if self.hours().is_none() {
            let said = format!("`{}` to `{}` are no hours", self.from, self.to);
            return bad(said, "write 22:00 and 07:00; they must differ");
        }
        if self.zone().is_none() {
            let zone = self.zone.as_deref().unwrap_or_default();
            let said = format!("no time zone `{zone}` is known here");
            return bad(
                said,
                "write Europe/Vienna, or leave it out for the server's",
            );
        }
        Ok(())
    }

    /// Returns when the quiet hours around a time end, if it is in them.
    pub(super) fn until(&self, micros: i64) -> Option<i64> {
        let (from, to) = self.hours()?;
        let zone = self.zone()?;
        let now = Timestamp::from_microsecond(micros)
            .ok()?
            .to_zoned(zone.clone());
        let clock = now.time();
        let overnight = from > to;
        let quiet = match overnight {
            true => clock >= from || clock < to,
            false => clock >= from && clock < to,
        };
        let day = match overnight && clock >= from {
            true => now.date().checked_add(1.day()).ok()?,
            false => now.date(),
        };
        let end = DateTime::from_parts(day, to).to_zoned(zone).ok()?;
        quiet.then(|| end.timestamp().as_microsecond())
    }

    fn hours(&self) -> Option<(Time, Time)> {
        let time = |text: &str| {
            let (hour, minute) = text.split_once(':')?;
            Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
        };
        Some((time(&self.from)?, time(&self.to)?)).filter(|(from, to)| from != to)
    }

    fn zone(&self) -> Option<TimeZone> {
        match &self.zone {
            Some(name) => TimeZone::get(name).ok(),
            None => Some(TimeZone::system()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(from: &str, to: &str, now: &str, until: Option<&str>) {
        let quiet = Quiet {
            from: from.into(),
            to: to.into(),
            zone: Some("UTC".into()),
        };
        quiet.check().unwrap();
        let now: Timestamp = now.parse().unwrap();
        let until = until.map(|time| time.parse::<Timestamp>().unwrap().as_microsecond());
        assert_eq!(
            quiet.until(now.as_microsecond()),
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
    fn what_are_no_hours_is_refused() {
        for (from, to, zone) in [
            ("22:00", "22:00", None),
            ("24:00", "07:00", None),
            ("ten", "07:00", None),
            ("22:00", "07:00", Some("Nowhere/Here")),
        ] {
            let quiet = Quiet {
                from: from.into(),
                to: to.into(),
                zone: zone.map(str::to_owned),
            };
            assert!(quiet.check().is_err(), "{from} {to} {zone:?}");
        }
    }
}
