//! Shows how one path changes.

use serde::{Deserialize, Serialize};

use crate::body::SideContent;
use crate::changes::{Change, Changes, Kind};
use crate::compare::{ComparedLine, ComparedTexts, HunkRange};
use crate::content::OpenedFile;
use crate::error::Error;
use crate::node::{Node, NodeKind, Raw};
use crate::secret::Secrets;

/// Characters shown of one line. Longer ones were not made to be read.
const MOST_CHARACTERS: usize = 2_000;

/// How one path changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiff {
    /// Relative to its root.
    pub path: Raw,
    /// What it was called before, if it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Raw>,
    /// What happens to it.
    pub kind: Kind,
    /// What it holds.
    pub shape: Shape,
    /// New lines in all, on whatever page.
    pub added: u64,
    /// Lines that go, in all.
    pub removed: u64,
    /// The lines of this page.
    pub hunks: Vec<Hunk>,
    /// What follows this page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<More>,
}

/// What a changed path holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Text, before and after.
    Text,
    /// Something else, before or after: a NUL among the first 8,000 bytes, or
    /// more than one byte in ten that is no UTF-8.
    Binary {
        /// Bytes it had.
        before: Option<u64>,
        /// Bytes it will have.
        after: Option<u64>,
        /// What it seems to be, as "PNG image".
        guess: Option<String>,
    },
    /// Text of more than 4 MiB or 100,000 lines.
    TooLarge {
        /// Bytes it had.
        before: Option<u64>,
        /// Bytes it will have.
        after: Option<u64>,
    },
    /// A symbolic link, before or after. If it is a file of text on the other
    /// side, the hunks show that.
    Link {
        /// Where it led.
        before: Option<String>,
        /// Where it will lead.
        after: Option<String>,
    },
    /// A directory.
    Directory,
    /// Nothing of the content changes.
    Nothing,
}

/// Changes that are near each other, with three lines around them.
///
/// One that goes over several pages is on each of them, with the same numbers
/// and that page's lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    /// The first of its lines before, from 1; with no lines, the one above.
    pub old_start: u64,
    /// How many lines it had.
    pub old_lines: u64,
    /// The first of its lines after, as `old_start`.
    pub new_start: u64,
    /// How many lines it will have.
    pub new_lines: u64,
    /// What is on this page.
    pub lines: Vec<Line>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// On which side it is.
    pub side: Side,
    /// Its number before, from 1.
    pub old: Option<u64>,
    /// Its number after, from 1.
    pub new: Option<u64>,
    /// What it says, without its newline; a carriage return stays. Bytes that
    /// are no text are replaced, and long lines are cut, with a mark.
    pub text: String,
    /// It is the last, and no newline follows.
    pub no_newline: bool,
    /// A likely secret in it is hidden.
    pub masked: bool,
}

/// On which side a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// On both.
    Context,
    /// After only.
    Added,
    /// Before only.
    Removed,
}

/// Which part of a diff is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The first line of it, counted over all hunks from 0.
    pub offset: u64,
    /// How many lines at most.
    pub limit: u64,
    /// Show likely secrets too.
    pub reveal: bool,
}

/// What follows a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct More {
    /// Where the next page begins.
    pub offset: u64,
    /// How many lines are left.
    pub lines: u64,
}

impl Changes {
    /// Returns one page of the diff of one path.
    ///
    /// The text is what the run wrote: callers that show it on a terminal or in
    /// a document must make its control characters harmless.
    pub fn diff(&self, index: usize, page: Page) -> Result<FileDiff, Error> {
        let change = self.entries.get(index).ok_or(Error::NoSuch { index })?;
        let (shape, texts) = self.look(change)?;
        let mut diff = FileDiff {
            path: change.path.clone(),
            from: change.from.clone(),
            kind: change.kind,
            shape,
            added: 0,
            removed: 0,
            hunks: vec![],
            more: None,
        };
        if let Some(Texts { before, after }) = &texts {
            diff.fill(&ComparedTexts::new(before, after), page);
        }
        Ok(diff)
    }

    /// Counts the lines that one change adds and removes; `None` where they
    /// are not text, or cannot be read.
    pub fn counts(&self, index: usize) -> Option<(u64, u64)> {
        let (_, texts) = self.look(self.entries.get(index)?).ok()?;
        let Texts { before, after } = texts?;
        let compared = ComparedTexts::roughly(&before, &after);
        Some((compared.added(), compared.removed()))
    }

    fn look(&self, change: &Change) -> Result<(Shape, Option<Texts>), Error> {
        let nodes = [change.before.as_ref(), change.after.as_ref()];
        let is = |kind| nodes.iter().flatten().any(|node| node.kind == kind);
        if is(NodeKind::Directory) {
            return Ok((Shape::Directory, None));
        }
        let same = matches!(change.kind, Kind::Mode | Kind::Times | Kind::Renamed);
        let (shape, texts) = if same || !is(NodeKind::File) {
            (Shape::Nothing, None)
        } else {
            let before = OpenedFile::before(self, change)?;
            let after = OpenedFile::after(self, change)?;
            look_inside(before.as_ref(), after.as_ref())?
        };
        if is(NodeKind::Link) {
            let [before, after] = nodes.map(leads_to);
            return Ok((Shape::Link { before, after }, texts));
        }
        Ok((shape, texts))
    }
}

/// Compares two texts that are no run's; likely secrets are hidden.
pub fn compare(before: &[u8], after: &[u8]) -> Vec<Hunk> {
    let compared = ComparedTexts::new(before, after);
    let secrets = Secrets::of(&compared.before, &compared.after);
    let shown = |span: &HunkRange| {
        let steps = compared.steps(span);
        let lines = steps.map(|step| line(&compared, &step, Some(&secrets)));
        hunk(span, lines.collect())
    };
    compared.spans().iter().map(shown).collect()
}

/// Both sides of a change; empty where there is none.
struct Texts {
    before: Vec<u8>,
    after: Vec<u8>,
}

fn look_inside(
    before: Option<&OpenedFile>,
    after: Option<&OpenedFile>,
) -> Result<(Shape, Option<Texts>), Error> {
    let missing = || SideContent::Text(vec![]);
    let bodies = (
        after.map_or_else(|| Ok(missing()), SideContent::of)?,
        before.map_or_else(|| Ok(missing()), SideContent::of)?,
    );
    let (before, after) = (before.map(OpenedFile::size), after.map(OpenedFile::size));
    Ok(match bodies {
        (SideContent::Text(after), SideContent::Text(before)) => {
            (Shape::Text, Some(Texts { before, after }))
        }
        // What it will be says more than what it was.
        (SideContent::Binary(guess), _) | (_, SideContent::Binary(guess)) => {
            let guess = guess.map(str::to_owned);
            let shape = Shape::Binary {
                before,
                after,
                guess,
            };
            (shape, None)
        }
        _ => (Shape::TooLarge { before, after }, None),
    })
}

fn leads_to(node: Option<&Node>) -> Option<String> {
    let target = node?.target.as_ref()?;
    Some(target.path().to_string_lossy().into_owned())
}

impl FileDiff {
    fn fill(&mut self, compared: &ComparedTexts<'_>, page: Page) {
        self.added = compared.added();
        self.removed = compared.removed();
        let secrets = (!page.reveal).then(|| Secrets::of(&compared.before, &compared.after));
        let end = page.offset.saturating_add(page.limit);
        let mut at = 0;
        for span in compared.spans() {
            let next = at + span.lines as u64;
            if next > page.offset && at < end {
                let skip = page.offset.saturating_sub(at) as usize;
                let take = (end - at.max(page.offset)) as usize;
                let lines = compared.steps(&span).skip(skip).take(take);
                let lines = lines.map(|step| line(compared, &step, secrets.as_ref()));
                self.hunks.push(hunk(&span, lines.collect()));
            }
            at = next;
        }
        self.more = (end < at).then(|| More {
            offset: end,
            lines: at - end,
        });
    }
}

fn hunk(span: &HunkRange, lines: Vec<Line>) -> Hunk {
    let start = |range: &std::ops::Range<usize>| range.start + usize::from(!range.is_empty());
    Hunk {
        old_start: start(&span.before) as u64,
        old_lines: span.before.len() as u64,
        new_start: start(&span.after) as u64,
        new_lines: span.after.len() as u64,
        lines,
    }
}

fn line(compared: &ComparedTexts<'_>, step: &ComparedLine, secrets: Option<&Secrets>) -> Line {
    let bytes = match (step.before, step.after) {
        (_, Some(line)) => compared.after[line],
        (Some(line), None) => compared.before[line],
        (None, None) => b"",
    };
    let (bytes, no_newline) = match bytes.strip_suffix(b"\n") {
        Some(rest) => (rest, false),
        None => (bytes, true),
    };
    let text = String::from_utf8_lossy(bytes);
    let masked = secrets.and_then(|secrets| secrets.mask(step.before, step.after, &text));
    Line {
        side: step.side,
        old: step.before.map(|line| line as u64 + 1),
        new: step.after.map(|line| line as u64 + 1),
        masked: masked.is_some(),
        text: cut(masked.unwrap_or_else(|| text.into_owned())),
        no_newline,
    }
}

fn cut(text: String) -> String {
    match text.char_indices().nth(MOST_CHARACTERS) {
        None => text,
        Some((at, _)) => {
            let (shown, rest) = text.split_at(at);
            format!("{shown} … {} more characters", rest.chars().count())
        }
    }
}
