//! What people type to find runs again: `agent:coder status:failed rm`.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use weighlock_policy::Verdict;
use weighlock_store::{By, Exit, Filter, RunStatus, State};

use super::Runs;
use crate::error::{Error, brief};
use crate::principal::Principal;

/// The filters there are.
const KEYS: [&str; 11] = [
    "agent", "status", "verdict", "by", "sandbox", "terminal", "since", "until", "exit", "rule",
    "id",
];

/// Letters that may be wrong for a word to be meant.
const NEAR: usize = 2;

/// More words than anybody types; each costs a look at every command.
const MAX_WORDS: usize = 16;

impl Runs {
    /// Adds what somebody typed to a filter.
    pub fn filter(&self, typed: &str, filter: Filter, who: &Principal) -> Result<Filter, Error> {
        let mut filter = filter;
        let mut seen: Vec<&str> = vec![];
        for word in words(typed)? {
            let Some((key, value)) = word.key() else {
                filter.text.push(word.text);
                continue;
            };
            let key = known(key)?;
            if seen.contains(&key) {
                return Err(twice(key));
            }
            seen.push(key);
            self.apply(key, value, &mut filter, who)?;
        }
        match filter.text.len() > MAX_WORDS {
            true => Err(wrong(
                format!("these are more than {MAX_WORDS} words"),
                "put quotes around words that belong together",
            )),
            false => Ok(filter),
        }
    }

    fn apply(
        &self,
        key: &str,
        value: &str,
        filter: &mut Filter,
        who: &Principal,
    ) -> Result<(), Error> {
        match key {
            "agent" => filter.requested_by = Some(value.to_owned()),
            "status" => status(value, filter)?,
            "verdict" => filter.verdict = Some(verdict(value)?.to_owned()),
            "by" => {
                filter.by = Some(match value {
                    "policy" => By::Nobody,
                    name => By::Person(name.to_owned()),
                });
            }
            "sandbox" => filter.sandbox = Some(self.sandboxes.find(value, who)?.sandbox_id),
            "terminal" => {
                filter.terminal = Some(self.find_terminal(value, who)?.command_id);
            }
            "since" => filter.since = Some(self.moment(value)?),
            "until" => filter.until = Some(self.moment(value)?),
            "exit" => filter.exit = Some(exit(value)?),
            "rule" => filter.rule = Some(value.to_owned()),
            _ => filter.id = Some(id(value)),
        }
        Ok(())
    }

    /// Reads `24h` (ago), `2026-01-15`, or a time with its zone.
    fn moment(&self, text: &str) -> Result<i64, Error> {
        let now = self.core.clock.micros();
        let ago = ago(text).and_then(|ago| now.checked_sub(ago));
        let time = || {
            text.parse::<Timestamp>()
                .ok()
                .map(Timestamp::as_microsecond)
        };
        let day = || {
            let day = text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok()?;
            Some(day.timestamp().as_microsecond())
        };
        ago.or_else(time).or_else(day).ok_or_else(|| {
            wrong(
                format!("`{}` is not a time", brief(text)),
                "write 24h or 7d (ago), 2026-01-15 or 2026-01-15T14:02:00Z",
            )
        })
    }
}

/// One word as it was typed.
struct Word {
    text: String,
    /// It begins with a quote, so that it is text whatever it looks like.
    quoted: bool,
}

impl Word {
    /// Returns the filter and its value, if it is one. `http://x` and
    /// `std::fmt` are text.
    fn key(&self) -> Option<(&str, &str)> {
        let (key, value) = self.text.split_once(':')?;
        let is_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase());
        (is_key && !self.quoted && !value.starts_with([':', '/'])).then_some((key, value))
    }
}

/// Splits at white space; quotes keep it together.
fn words(typed: &str) -> Result<Vec<Word>, Error> {
    let mut words = vec![];
    let mut word: Option<Word> = None;
    let mut chars = typed.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '"' => {
                let quoted = word.is_none();
                let text = String::new();
                let word = word.get_or_insert(Word { text, quoted });
                let mut closed = false;
                for c in chars.by_ref() {
                    if c == '"' {
                        closed = true;
                        break;
                    }
                    word.text.push(c);
                }
                if !closed {
                    return Err(wrong("a quote is not closed".into(), "close it with \""));
                }
            }
            c => {
                let empty = Word {
                    text: String::new(),
                    quoted: false,
                };
                word.get_or_insert(empty).text.push(c);
            }
        }
    }
    words.extend(word);
    words.retain(|word| !word.text.is_empty());
    Ok(words)
}

fn known(key: &str) -> Result<&'static str, Error> {
    if let Some(known) = KEYS.into_iter().find(|known| *known == key) {
        return Ok(known);
    }
    let near = KEYS.into_iter().map(|known| (distance(key, known), known));
    let near = near.min().filter(|(distance, _)| *distance <= NEAR);
    Err(Error::invalid(
        "unknown_filter",
        format!("there is no filter `{}:`", brief(key)),
        match near {
            Some((_, known)) => format!("did you mean `{known}:`?"),
            None => format!(
                "there are: {}; put quotes around what is only to be looked for",
                KEYS.join(", ")
            ),
        },
    ))
}

/// Counts the letters to change, add, take away or swap.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut least = (rows[i][j] + usize::from(x != y)).min(row[j] + 1);
            least = least.min(rows[i][j + 1] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// Takes a state, or one of the coarser words: `failed` is whatever did not
/// end well.
fn status(value: &str, filter: &mut Filter) -> Result<(), Error> {
    // `rejected` is a state of its own.
    let status = RunStatus::from_word(value).filter(|&status| status != RunStatus::Rejected);
    if status.is_some() {
        filter.status = status;
        return Ok(());
    }
    let state = serde_json::from_value::<State>(value.into());
    filter.state = Some(state.map_err(|_| {
        wrong(
            format!("`{}` is not a status", brief(value)),
            "there are: waiting, held, running, succeeded, failed, timed_out, killed, blocked, \
             rejected, expired, withdrawn, lost, pending, approved, executed",
        )
    })?);
    Ok(())
}

fn verdict(value: &str) -> Result<&'static str, Error> {
    let read = serde_json::from_value::<Verdict>(value.into());
    match read {
        Ok(Verdict::Auto) => Ok("auto"),
        Ok(Verdict::Ask) => Ok("ask"),
        Ok(Verdict::Reject) => Ok("reject"),
        Err(_) => Err(wrong(
            format!("`{}` is not a verdict", brief(value)),
            "there are: auto, ask, reject",
        )),
    }
}

/// Reads `2`, or `!0` for every other.
fn exit(value: &str) -> Result<Exit, Error> {
    let code = value.strip_prefix('!').unwrap_or(value).parse();
    match code {
        Ok(code) if value.starts_with('!') => Ok(Exit::Not(code)),
        Ok(code) => Ok(Exit::Is(code)),
        Err(_) => Err(wrong(
            format!("`{}` is not an exit code", brief(value)),
            "write exit:1, or exit:!0 for all but 0",
        )),
    }
}

/// Takes the beginning of an id, with or without what all begin with.
fn id(value: &str) -> String {
    value.strip_prefix("r_").unwrap_or(value).to_owned()
}

/// Reads `90s`, `30m`, `24h`, `7d` or `2w`, in microseconds.
fn ago(text: &str) -> Option<i64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds: i64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        "w" => 7 * 24 * 3600,
        _ => return None,
    };
    let number: i64 = number.parse().ok().filter(|number| *number >= 0)?;
    number.checked_mul(seconds)?.checked_mul(1_000_000)
}

fn twice(key: &str) -> Error {
    wrong(format!("`{key}:` is given twice"), "leave one of them out")
}

fn wrong(what: String, hint: &str) -> Error {
    Error::invalid("invalid_filter", what, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_told_from_text() {
        let check = |typed: &str, expected: &[(Option<&str>, &str)]| {
            let words = words(typed).unwrap();
            let read: Vec<(Option<&str>, &str)> = { words.iter() }
                .map(|word| match word.key() {
                    Some((key, value)) => (Some(key), value),
                    None => (None, word.text.as_str()),
                })
                .collect();
            assert_eq!(read, expected, "{typed}");
        };
        check("agent:coder rm", &[(Some("agent"), "coder"), (None, "rm")]);
        check("\"rm -rf\" x", &[(None, "rm -rf"), (None, "x")]);
        check("\"agent:x\"", &[(None, "agent:x")]);
        check("by:\"Ana B\"", &[(Some("by"), "Ana B")]);
        check(
            "http://x std::fmt A:b",
            &[(None, "http://x"), (None, "std::fmt"), (None, "A:b")],
        );
        check("  ", &[]);
        assert!(words("\"x").is_err());
    }

    #[test]
    fn an_unknown_filter_names_the_nearest() {
        let hint = |key| known(key).unwrap_err().problem().hint;
        assert_eq!(hint("staus"), "did you mean `status:`?");
        assert_eq!(hint("agnet"), "did you mean `agent:`?");
        assert_eq!(hint("sinze"), "did you mean `since:`?");
        assert!(hint("colour").starts_with("there are: agent, "));
        assert_eq!(known("exit").unwrap(), "exit");
    }

    #[test]
    fn times_ago_and_exit_codes() {
        assert_eq!(ago("24h"), Some(24 * 3600 * 1_000_000));
        assert_eq!(ago("2w"), Some(14 * 24 * 3600 * 1_000_000));
        for text in ["", "h", "-1h", "1y", "99999999999999999w", "é"] {
            assert_eq!(ago(text), None, "{text}");
        }
        assert_eq!(exit("!0").unwrap(), Exit::Not(0));
        assert_eq!(exit("2").unwrap(), Exit::Is(2));
        assert!(exit("x").is_err());
    }
}
