//! Compares two texts line by line.
//!
//! The histogram algorithm gives the changes that people would name, but the
//! time it takes grows with the square of what differs, and so does the depth
//! of its recursion. What differs in more lines than it takes well is divided
//! first, at lines that are on each side once; what cannot be divided counts as
//! replaced. So a run cannot write files that make a diff hang.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, IndentHeuristic, IndentLevel, InternedInput, Token};

use crate::anchors;
use crate::diff::Side;

/// Lines shown around each change.
const CONTEXT: usize = 3;

/// Lines of both sides that the algorithm takes at once: some 30 ms at worst,
/// and less than half the stack of a thread.
const MOST_AT_ONCE: usize = 8_000;

/// How often a part is divided further.
const MOST_DIVISIONS: usize = 8;

/// Two texts, and which of their lines differ.
pub(crate) struct ComparedTexts<'a> {
    pub(crate) before: Vec<&'a [u8]>,
    pub(crate) after: Vec<&'a [u8]>,
    gone: Vec<bool>,
    new: Vec<bool>,
}

/// Changes that are near each other, and the lines around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HunkRange {
    pub(crate) before: Range<usize>,
    pub(crate) after: Range<usize>,
    /// Lines to show: those on both sides count once.
    pub(crate) lines: usize,
}

/// One line of a span; which one it is of each side it is on.
pub(crate) struct ComparedLine {
    pub(crate) side: Side,
    pub(crate) before: Option<usize>,
    pub(crate) after: Option<usize>,
}

impl<'a> ComparedTexts<'a> {
    /// Compares them, and moves what can be moved to where people look for it.
    pub(crate) fn new(before: &'a [u8], after: &'a [u8]) -> Self {
        Self::with(before, after, true)
    }

    /// Compares them for the numbers alone.
    pub(crate) fn roughly(before: &'a [u8], after: &'a [u8]) -> Self {
        Self::with(before, after, false)
    }

    fn with(before: &'a [u8], after: &'a [u8], tidy: bool) -> Self {
        let input = InternedInput::new(before, after);
        let mut marks = DifferenceMarks {
            input: &input,
            tidy,
            gone: vec![false; input.before.len()],
            new: vec![false; input.after.len()],
        };
        marks.mark();
        let DifferenceMarks { gone, new, .. } = marks;
        Self {
            before: lines(&input, &input.before),
            after: lines(&input, &input.after),
            gone,
            new,
        }
    }

    pub(crate) fn added(&self) -> u64 {
        self.new.iter().filter(|&&new| new).count() as u64
    }

    pub(crate) fn removed(&self) -> u64 {
        self.gone.iter().filter(|&&gone| gone).count() as u64
    }

    /// Returns where the changes are, from the top.
    pub(crate) fn spans(&self) -> Vec<HunkRange> {
        let mut spans: Vec<HunkRange> = vec![];
        for (before, after) in self.changes() {
            let lines = before.len() + after.len();
            match spans.last_mut() {
                Some(last) if before.start - last.before.end <= 2 * CONTEXT => {
                    last.lines += before.start - last.before.end + lines;
                    last.before.end = before.end;
                    last.after.end = after.end;
                }
                _ => spans.push(HunkRange {
                    before,
                    after,
                    lines,
                }),
            }
        }
        spans.iter_mut().for_each(|span| self.widen(span));
        spans
    }

    /// Adds the lines around it. No other change is as near as that.
    fn widen(&self, span: &mut HunkRange) {
        let above = CONTEXT.min(span.before.start);
        let below = CONTEXT.min(self.before.len() - span.before.end);
        span.before = span.before.start - above..span.before.end + below;
        span.after = span.after.start - above..span.after.end + below;
        span.lines += above + below;
    }

    /// Returns the lines of a span, what is gone before what is new.
    pub(crate) fn steps(&self, span: &HunkRange) -> impl Iterator<Item = ComparedLine> {
        let (mut before, mut after) = (span.before.clone(), span.after.clone());
        std::iter::from_fn(move || {
            let gone = before.clone().next().is_some_and(|line| self.gone[line]);
            let new = after.clone().next().is_some_and(|line| self.new[line]);
            let (side, before, after) = match (gone, new) {
                (true, _) => (Side::Removed, before.next(), None),
                (false, true) => (Side::Added, None, after.next()),
                (false, false) => (Side::Context, Some(before.next()?), Some(after.next()?)),
            };
            Some(ComparedLine {
                side,
                before,
                after,
            })
        })
    }

    /// Which lines were replaced by which.
    fn changes(&self) -> Vec<(Range<usize>, Range<usize>)> {
        let mut found = vec![];
        let (mut before, mut after) = (0, 0);
        while before < self.gone.len() || after < self.new.len() {
            let gone = run(&self.gone[before..]);
            let new = run(&self.new[after..]);
            if gone + new > 0 {
                found.push((before..before + gone, after..after + new));
            }
            before += gone + 1;
            after += new + 1;
        }
        found
    }
}

/// How many at the beginning are marked.
fn run(marks: &[bool]) -> usize {
    marks.iter().take_while(|&&mark| mark).count()
}

fn lines<'a>(input: &InternedInput<&'a [u8]>, tokens: &[Token]) -> Vec<&'a [u8]> {
    tokens.iter().map(|&token| input.interner[token]).collect()
}

/// Marks what differs.
struct DifferenceMarks<'i, 'a> {
    input: &'i InternedInput<&'a [u8]>,
    tidy: bool,
    gone: Vec<bool>,
    new: Vec<bool>,
}

impl DifferenceMarks<'_, '_> {
    fn mark(&mut self) {
        let (before, after) = (0..self.gone.len(), 0..self.new.len());
        let part = self.trimmed(before.clone(), after.clone());
        if part.0.len() + part.1.len() <= MOST_AT_ONCE {
            // With what is around it, into which changes can be moved.
            self.compare(before, after);
        } else {
            self.divide(part, MOST_DIVISIONS);
        }
    }

    fn divide(&mut self, (before, after): (Range<usize>, Range<usize>), left: usize) {
        if before.is_empty() || after.is_empty() {
            return self.replace(before, after);
        }
        if before.len() + after.len() <= MOST_AT_ONCE {
            return self.compare(before, after);
        }
        let input = self.input;
        let found = match left {
            0 => vec![],
            _ => anchors::find(
                &input.before[before.clone()],
                &input.after[after.clone()],
                input.interner.num_tokens() as usize,
            ),
        };
        if found.is_empty() {
            return self.replace(before, after);
        }
        let (mut top, mut other_top) = (before.start, after.start);
        let ends = found
            .iter()
            .map(|&(one, other)| (before.start + one, after.start + other))
            .chain([(before.end, after.end)]);
        for (end, other_end) in ends {
            let part = self.trimmed(top..end, other_top..other_end);
            self.divide(part, left - 1);
            (top, other_top) = (end + 1, other_end + 1);
        }
    }

    fn replace(&mut self, before: Range<usize>, after: Range<usize>) {
        self.gone[before].fill(true);
        self.new[after].fill(true);
    }

    /// What is left without the lines that are the same at both ends.
    fn trimmed(&self, before: Range<usize>, after: Range<usize>) -> (Range<usize>, Range<usize>) {
        let (old, new) = (
            &self.input.before[before.clone()],
            &self.input.after[after.clone()],
        );
        let same = |pair: &(&Token, &Token)| pair.0 == pair.1;
        let top = old.iter().zip(new).take_while(same).count();
        let (old, new) = (&old[top..], &new[top..]);
        let bottom = old
            .iter()
            .rev()
            .zip(new.iter().rev())
            .take_while(same)
            .count();
        (
            before.start + top..before.end - bottom,
            after.start + top..after.end - bottom,
        )
    }

    fn compare(&mut self, before: Range<usize>, after: Range<usize>) {
        let input = self.input;
        let (old, new) = (&input.before[before.clone()], &input.after[after.clone()]);
        // The algorithm sets up something for each number that a line could
        // have, which is too much for each of many small parts.
        let mut known: Vec<Token> = [old, new].concat();
        known.sort_unstable_by_key(|token| token.0);
        known.dedup();
        let (old, new) = (renumbered(old, &known), renumbered(new, &known));
        let mut diff = Diff::default();
        diff.compute_with(Algorithm::Histogram, &old, &new, known.len() as u32);
        if self.tidy {
            let indent = |token: Token| indent(input, known[token.0 as usize]);
            diff.postprocess_with(&old, &new, IndentHeuristic::new(indent));
        }
        for (line, gone) in self.gone[before].iter_mut().enumerate() {
            *gone = diff.is_removed(line as u32);
        }
        for (line, new) in self.new[after].iter_mut().enumerate() {
            *new = diff.is_added(line as u32);
        }
    }
}

fn renumbered(lines: &[Token], known: &[Token]) -> Vec<Token> {
    let number = |token: &Token| known.partition_point(|other| other.0 < token.0);
    lines
        .iter()
        .map(|token| Token(number(token) as u32))
        .collect()
}

fn indent(input: &InternedInput<&[u8]>, token: Token) -> IndentLevel {
    IndentLevel::for_ascii_line(input.interner[token].iter().copied(), 8)
}
