//! A place between two pages of a list.
//!
//! The text is opaque to callers. Its last part is a checksum: a cursor that
//! was cut off or mistyped is refused instead of showing some other page. It
//! is no secret, and gives nobody more to see than the list itself does.

use crate::entry::hash;
use crate::error::Error;

/// Digits of the checksum: enough against accidents.
const CHECK: usize = 8;

/// The sort key of the last item of a page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PageCursor {
    pub(crate) rank: i64,
    pub(crate) time: i64,
    pub(crate) id: String,
}

impl PageCursor {
    /// Returns the text for the list of this name.
    pub(crate) fn text(&self, list: &str) -> String {
        let Self { rank, time, id } = self;
        let place = format!("{list}.{rank}.{time}.{id}");
        format!("{place}.{}", check(&place))
    }

    /// Reads a text that was given out for the list of this name.
    pub(crate) fn parse(text: &str, list: &str) -> Result<Self, Error> {
        let cursor = parts(text, list).ok_or(Error::Cursor)?;
        // What the text could be besides what we would write does not matter.
        (cursor.text(list) == text)
            .then_some(cursor)
            .ok_or(Error::Cursor)
    }
}

fn parts(text: &str, list: &str) -> Option<PageCursor> {
    let place = text.strip_prefix(list)?.strip_prefix('.')?;
    let (place, _) = place.rsplit_once('.')?;
    let mut parts = place.splitn(3, '.');
    Some(PageCursor {
        rank: parts.next()?.parse().ok()?,
        time: parts.next()?.parse().ok()?,
        id: parts.next()?.to_owned(),
    })
}

fn check(place: &str) -> String {
    let mut digits = hash(place.as_bytes());
    digits.truncate(CHECK);
    digits
}

/// Returns a limit as the database counts.
pub(crate) fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
