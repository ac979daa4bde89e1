//! The requesters, sandboxes and time that a rule is limited to.

use super::Subject;
use super::loader::Loader;
use super::raw::{At, Audience, OneOrMany};

/// The requesters, sandboxes and time that a rule is limited to. An empty field
/// is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Whom {
    audience: Audience,
    agents: Vec<String>,
    /// By name.
    sandboxes: Vec<String>,
    /// In seconds since 1970.
    until: Option<i64>,
}

impl Whom {
    /// Reads what a rule says, noting what is wrong with it.
    pub(super) fn read(
        loader: &mut Loader<'_>,
        who: Option<At<Audience>>,
        agents: Option<At<OneOrMany<String>>>,
        sandboxes: Option<At<OneOrMany<String>>>,
        until: Option<At<String>>,
    ) -> Self {
        let until = until.and_then(|until| {
            let ends = ends_at(&until.value);
            if ends.is_none() {
                loader.error(
                    until.at,
                    format!("`{}` is neither a day nor a time", until.value),
                    "write 2026-11-20, or 2026-11-20T17:00:00Z",
                );
            }
            ends
        });
        Self {
            audience: who.map(|who| who.value).unwrap_or_default(),
            agents: names(loader, agents),
            sandboxes: names(loader, sandboxes),
            until,
        }
    }

    /// Returns whether it is about who asks, where they ask, now.
    pub(super) fn concerns(&self, subject: &Subject<'_>) -> bool {
        let who = &subject.who;
        let named = |names: &[String], name: Option<&str>| {
            names.is_empty() || name.is_some_and(|name| names.iter().any(|one| one == name))
        };
        let audience = match self.audience {
            Audience::Everyone => true,
            Audience::Users => who.is_user(),
        };
        audience
            && named(&self.agents, who.agent)
            && named(&self.sandboxes, who.sandbox_name)
            && self.until.is_none_or(|until| subject.now < until)
    }
}

/// An empty list would be about nobody, which nobody means.
fn names(loader: &mut Loader<'_>, list: Option<At<OneOrMany<String>>>) -> Vec<String> {
    let Some(list) = list else {
        return vec![];
    };
    if list.value.is_empty() {
        loader.error(
            list.at,
            "the list of names is empty",
            "leave it out, or name one",
        );
    }
    list.entries().map(|(_, name)| name.clone()).collect()
}

/// Returns when a day or a time ends, in seconds since 1970, in UTC.
fn ends_at(text: &str) -> Option<i64> {
    const DAY: i64 = 24 * 3600;
    let (day, time) = match text.split_once('T') {
        None => (text, None),
        Some((day, time)) => (day, Some(time.strip_suffix('Z')?)),
    };
    let numbers = |text: &str, by: char| -> Option<Vec<i64>> {
        let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        { text.split(by) }
            .map(|part| part.parse().ok().filter(|_| plain(part)))
            .collect()
    };
    let [year, month, day] = numbers(day, '-')?[..] else {
        return None;
    };
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let start = days(year, month, day) * DAY;
    let Some(time) = time else {
        return Some(start + DAY);
    };
    let [hour, minute, second] = numbers(time, ':')?[..] else {
        return None;
    };
    let fits = hour < 24 && minute < 60 && second < 60;
    fits.then_some(start + hour * 3600 + minute * 60 + second)
}

/// Days from 1970-01-01, in the Gregorian calendar whose year begins in March:
/// then the day that comes and goes is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let in_year = (153 * month + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + in_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_counts_to_its_end_and_a_time_to_itself() {
        for (text, ends) in [
            ("1970-01-01", Some(86_400)),
            ("1970-01-01T00:00:01Z", Some(1)),
            ("2000-02-29", Some(951_868_800)),
            ("2026-11-20T17:00:00Z", Some(1_795_194_000)),
            ("2026-13-01", None),
            ("2026-11-20T17:00:00", None),
            ("2026-11-20T24:00:00Z", None),
            ("2026-+1-20", None),
            ("tomorrow", None),
        ] {
            assert_eq!(ends_at(text), ends, "{text}");
        }
    }
}
