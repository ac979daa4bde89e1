//! Hours without notifications.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Hours without notifications. What still waits at their end is delivered then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuietHours {
    /// Their begin, as `22:00`.
    pub from: String,
    /// Their end, as `07:00`; on the next day if that is earlier.
    pub to: String,
    /// The time zone, as `Europe/Vienna`; default: the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

impl QuietHours {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let bad = |why: String, hint| Err(Error::invalid("bad_quiet_hours", &why, hint));
        if self.hours().is_none() {
            let why = format!("`{}` to `{}` are not valid hours", self.from, self.to);
            return bad(why, "write 22:00 and 07:00; they must differ");
        }
        if self.zone().is_none() {
            let zone = self.zone.as_deref().unwrap_or_default();
            let why = format!("unknown time zone `{zone}`");
            return bad(
                why,
                "write for example Europe/Vienna, or omit it for the server's",
            );
        }
        Ok(())
    }

    /// Returns when the quiet hours end if `micros` is within them.
    pub(crate) fn until(&self, micros: i64) -> Option<i64> {
        let (from, to) = self.hours()?;
        let zone = self.zone()?;
        let now = Timestamp::from_microsecond(micros)
            .ok()?
            .to_zoned(zone.clone());
        let clock = now.time();
        let overnight = from > to;
        let quiet = if overnight {
            clock >= from || clock < to
        } else {
            clock >= from && clock < to
        };
        let day = if overnight && clock >= from {
            now.date().checked_add(1.day()).ok()?
        } else {
            now.date()
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
        let quiet = QuietHours {
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
            assert!(quiet.check().is_err(), "{from} {to} {zone:?}");
        }
    }
}
