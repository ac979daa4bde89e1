//! Text that is shown whole, however long it is.

use crate::effect::{DiffLineKind, Paint, Styled};
use crate::keys::{Key, Keys};
use crate::term::{self, prompt, say};
use crate::text::broken;

/// How far somebody has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadPosition {
    Whole,
    /// They have seen enough.
    Left,
    /// Ctrl C, or nobody is there any more.
    Interrupted,
}

/// Shows lines, page by page where they are more than the terminal has room
/// for.
pub(crate) async fn page(keys: &mut Keys<'_>, lines: &[String]) -> ReadPosition {
    let lines = { lines.iter() }.map(|line| (DiffLineKind::Plain, line.clone()));
    page_styled(keys, &lines.collect::<Vec<_>>()).await
}

/// The same for lines that may have colours.
pub(crate) async fn page_styled(keys: &mut Keys<'_>, lines: &[Styled]) -> ReadPosition {
    let paint = Paint::on(&std::io::stderr());
    let (rows, columns) = term::size();
    let pieces = |(style, line): &Styled| {
        let style = *style;
        let pieces = broken(line, columns).into_iter();
        pieces.map(move |piece| (style, piece))
    };
    let lines: Vec<Styled> = lines.iter().flat_map(pieces).collect();
    // Room for our own line, and for one of the page before.
    let height = rows.saturating_sub(2).max(1);
    let mut shown = 0;
    for page in lines.chunks(height) {
        { page.iter() }.for_each(|(style, line)| say!("{}", paint.line(*style, line)));
        shown += page.len();
        if shown < lines.len()
            && let Some(stopped) = stopped(keys, shown, lines.len()).await
        {
            return stopped;
        }
    }
    ReadPosition::Whole
}

/// Waits until the reader goes on, or does not.
async fn stopped(keys: &mut Keys<'_>, shown: usize, of: usize) -> Option<ReadPosition> {
    prompt(&format!(
        "  — {shown} of {of} lines: Space goes on, q quits — "
    ));
    let stopped = loop {
        match keys.press().await.key {
            Key::Quit => break Some(ReadPosition::Interrupted),
            Key::Char(b'q') => break Some(ReadPosition::Left),
            Key::Char(b' ') | Key::Enter | Key::Down => break None,
            _ => {}
        }
    };
    prompt("\r\x1b[K");
    stopped
}
