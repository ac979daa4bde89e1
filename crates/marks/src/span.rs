//! Which bytes of a terminal's output a command wrote.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::mark::{Mark, ShellCommand, Sign};
use crate::nonce::Nonce;
use crate::scan::{MarkScanner, OutputPart};

/// A longer line is no command that anyone typed, and is not remembered.
const TYPED_BYTES: usize = 4096;

/// A command that ran in a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The command, if known.
    pub command: Option<ShellCommand>,
    /// Where it was started, if known.
    pub directory: Option<PathBuf>,
    /// Which bytes of the terminal's output it wrote.
    pub output: Range<u64>,
    /// The shell's `$?` after it; `None` when the shell ended with it.
    pub exit: Option<i32>,
    /// Whether the shell told where the output begins. If it cannot, the line
    /// after what was typed is taken.
    pub exact: bool,
}

impl Span {
    /// Returns as much of the output as is in `bytes`, which begin at `base`
    /// of the terminal's output.
    pub fn cut<'a>(&self, bytes: &'a [u8], base: u64) -> &'a [u8] {
        let place = |offset: u64| {
            let after = usize::try_from(offset.saturating_sub(base)).unwrap_or(usize::MAX);
            after.min(bytes.len())
        };
        &bytes[place(self.output.start)..place(self.output.end)]
    }
}

/// Finds commands in bytes that are cut anywhere.
///
/// At Ctrl-C the kernel throws away what is on its way to the terminal, and
/// marks may be lost with it. The next prompt sets things right; until then a
/// command may seem to run. A signal to the foreground group loses nothing.
#[derive(Debug)]
pub struct Spans {
    scan: MarkScanner,
    walk: SpanWalk,
}

impl Spans {
    /// Starts at `offset` of the terminal's output.
    pub fn new(nonce: &Nonce, offset: u64) -> Self {
        Self {
            scan: MarkScanner::new(nonce, offset),
            walk: SpanWalk {
                directory: None,
                stage: ShellStage::Away,
                end: offset,
                done: None,
                asked: 0,
                edits: false,
            },
        }
    }

    /// Returns the commands that ended in these bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Span> {
        let mut ended = vec![];
        let walk = &mut self.walk;
        self.scan.feed(bytes, |part| ended.extend(walk.part(part)));
        ended
    }

    /// Returns the command with which the shell ended, if any.
    pub fn finish(mut self) -> Option<Span> {
        let walk = &mut self.walk;
        self.scan.finish(|part| {
            walk.part(part);
        });
        let end = walk.end;
        walk.ended(end, None)
    }

    /// Whether the shell waits for a command.
    pub fn waits(&self) -> bool {
        matches!(&self.walk.stage, ShellStage::Typing(typed) if typed.ended.is_none() && !typed.more)
    }

    /// Whether it says that it waits for the rest of one. Not every shell does.
    pub fn wants_more(&self) -> bool {
        matches!(&self.walk.stage, ShellStage::Typing(typed) if typed.ended.is_none() && typed.more)
    }

    /// Where the shell was last done with something, and its `$?` then; with a
    /// line that was no command, too.
    pub fn done(&self) -> Option<(u64, Option<i32>)> {
        self.walk.done
    }

    /// Where the last prompt ends.
    pub fn asked(&self) -> u64 {
        self.walk.asked
    }

    /// Whether it edits lines itself at its last prompt, and takes what is
    /// pasted as it is.
    pub fn edits(&self) -> bool {
        self.walk.edits
    }

    /// Whether a command runs, as far as the shell has told.
    pub fn runs(&self) -> bool {
        match &self.walk.stage {
            ShellStage::Away => false,
            ShellStage::Typing(typed) => typed.ended.is_some(),
            ShellStage::Running { .. } => true,
        }
    }

    /// The shell's working directory at its last prompt.
    pub fn directory(&self) -> Option<&Path> {
        self.walk.directory.as_deref()
    }
}

#[derive(Debug)]
struct SpanWalk {
    directory: Option<PathBuf>,
    stage: ShellStage,
    /// Where the bytes seen end.
    end: u64,
    /// Where the shell was last done with something, and its `$?` then.
    done: Option<(u64, Option<i32>)>,
    /// Where its last prompt ends.
    asked: u64,
    /// It edits lines itself there.
    edits: bool,
}

#[derive(Debug)]
enum ShellStage {
    /// Neither typing nor running, as far as told.
    Away,
    Typing(TypedCommand),
    Running {
        start: u64,
        command: Option<ShellCommand>,
    },
}

/// What is typed into a shell that does not tell where output begins.
#[derive(Debug, Default)]
struct TypedCommand {
    quiet: bool,
    /// It goes on on another line.
    more: bool,
    text: Vec<u8>,
    /// Where the line after it begins.
    ended: Option<u64>,
}

impl SpanWalk {
    fn part(&mut self, part: OutputPart<'_>) -> Option<Span> {
        match part {
            OutputPart::Plain(bytes, at) => {
                self.end = at.end;
                if let ShellStage::Typing(typed) = &mut self.stage {
                    typed.echo(bytes, at.start);
                }
                None
            }
            OutputPart::Mark(mark) => {
                self.end = mark.at.end;
                self.mark(mark)
            }
        }
    }

    fn mark(&mut self, Mark { at, sign }: Mark) -> Option<Span> {
        match sign {
            Sign::Prompt => self.ended(at.start, None),
            Sign::Input { quiet, edits } => {
                (self.asked, self.edits) = (at.end, edits);
                self.input(quiet);
                None
            }
            Sign::More => {
                if let ShellStage::Typing(typed) = &mut self.stage {
                    typed.go_on();
                    typed.more = true;
                }
                None
            }
            Sign::Output { command } => {
                // Of several that came at once, each is told, and one end.
                if !matches!(self.stage, ShellStage::Running { .. }) {
                    let start = at.end;
                    self.stage = ShellStage::Running { start, command };
                }
                None
            }
            Sign::Done { exit } => {
                self.done = Some((at.start, exit));
                self.ended(at.start, exit)
            }
            Sign::Directory(directory) => {
                self.directory = Some(directory);
                None
            }
        }
    }

    /// A prompt is complete; or it was drawn again.
    fn input(&mut self, quiet: bool) {
        match &mut self.stage {
            ShellStage::Typing(typed) => typed.go_on(),
            stage => {
                *stage = ShellStage::Typing(TypedCommand {
                    quiet,
                    ..TypedCommand::default()
                });
            }
        }
    }

    fn ended(&mut self, end: u64, exit: Option<i32>) -> Option<Span> {
        let (command, start, exact) = match std::mem::replace(&mut self.stage, ShellStage::Away) {
            ShellStage::Away => return None,
            ShellStage::Running { start, command } => (command, start, true),
            ShellStage::Typing(typed) => (typed.command()?, typed.ended?, false),
        };
        Some(Span {
            command,
            directory: self.directory.clone(),
            output: start..end,
            exit,
            exact,
        })
    }
}

impl TypedCommand {
    /// Takes what the terminal shows while someone types.
    fn echo(&mut self, bytes: &[u8], offset: u64) {
        if !self.quiet || self.ended.is_some() {
            return;
        }
        let newline = memchr::memchr(b'\n', bytes);
        let line = &bytes[..newline.unwrap_or(bytes.len())];
        let room = TYPED_BYTES.saturating_sub(self.text.len());
        self.text.extend_from_slice(&line[..line.len().min(room)]);
        self.ended = newline.map(|at| offset + at as u64 + 1);
    }

    fn go_on(&mut self) {
        // Without a line's end the prompt was only drawn again.
        if self.ended.take().is_some() {
            self.text.push(b'\n');
        }
    }

    /// Returns `None` if nothing was run, `Some(None)` if it is not known what.
    fn command(&self) -> Option<Option<ShellCommand>> {
        let shown = String::from_utf8_lossy(&self.text).replace('\r', "");
        if !self.quiet || shown.trim().is_empty() || shown.ends_with("^C") {
            return None;
        }
        let corrected = |char: char| char.is_control() && char != '\n' && char != '\t';
        if self.text.len() >= TYPED_BYTES || shown.contains(corrected) {
            return Some(None);
        }
        Some(Some(ShellCommand {
            text: shown,
            whole: true,
        }))
    }
}
