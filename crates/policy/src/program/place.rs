//! Where a command begins among the words of a program that runs one.
//!
//! Not every option of such a program is known, nor which of them take a value.
//! So a word behind an option may be its value or not, and there may be several
//! places where the command begins.

use crate::argument::Arg;
use crate::knowledge::{self, Program};

/// Programs among the words whose own words are looked through: nobody writes
/// more of them into one command.
const MAX_INNER: usize = 8;

/// A place where a command may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommandStart {
    pub(crate) at: usize,
    /// The word is not behind an option, whose value it could be.
    pub(crate) plain: bool,
}

/// Returns the places in `argv` where a command may begin that is run by the
/// program, or by another one that it runs.
pub(crate) fn places(program: &Program, argv: &[Arg]) -> Vec<CommandStart> {
    let mut found = StartSearch {
        places: vec![],
        seen: vec![false; argv.len()],
    };
    found.behind(program, argv, 0);
    let (mut next, mut inner) = (0, 0);
    while let Some(&CommandStart { at, .. }) = found.places.get(next)
        && inner < MAX_INNER
    {
        next += 1;
        let text = argv[at].text.as_deref().unwrap_or_default();
        let base = text.rsplit('/').next().unwrap_or(text);
        if let Some(program) = knowledge::program(base)
            && !program.runs.is_empty()
        {
            inner += 1;
            found.behind(program, argv, at);
        }
    }
    found.places
}

struct StartSearch {
    places: Vec<CommandStart>,
    /// The words that are among them.
    seen: Vec<bool>,
}

impl StartSearch {
    /// Adds the places behind one program.
    fn behind(&mut self, program: &Program, argv: &[Arg], program_at: usize) {
        for pattern in &program.runs {
            let steps: Vec<&str> = pattern.split_whitespace().collect();
            let mut search = PatternSearch::new(&steps);
            for (at, arg) in argv.iter().enumerate().skip(program_at + 1) {
                let plain = !(search.after_option || search.doubtful);
                if search.step(arg) && !std::mem::replace(&mut self.seen[at], true) {
                    self.places.push(CommandStart { at, plain });
                }
                if search.is_over() {
                    break;
                }
            }
        }
    }
}

/// How far along a pattern of words one may be.
struct PatternSearch<'a> {
    steps: &'a [&'a str],
    /// `reached[n]`: the first `n` words of the pattern may have passed.
    reached: Vec<bool>,
    after_option: bool,
    /// A word was passed that may be the value of an option, but is also the
    /// name of a program: probably the command has begun there.
    doubtful: bool,
}

impl<'a> PatternSearch<'a> {
    fn new(steps: &'a [&'a str]) -> Self {
        let mut reached = vec![false; steps.len() + 1];
        reached[0] = true;
        Self {
            steps,
            reached,
            after_option: false,
            doubtful: false,
        }
    }

    fn is_over(&self) -> bool {
        !self.reached.contains(&true)
    }

    /// Takes one word; returns whether the command may begin with it.
    fn step(&mut self, arg: &Arg) -> bool {
        let known = arg.prefix();
        let end = self.steps.len();
        let is_option = known.len() > 1 && known.starts_with(['-', '/']);
        let mut is_step = false;
        for at in (0..end).rev().filter(|_| is_option) {
            if self.reached[at] && names_option(self.steps[at]) && is_word(self.steps[at], arg) {
                self.reached[at + 1] = true;
                is_step = true;
            }
        }
        if known.len() > 1 && known.starts_with('-') {
            // What follows an option that is a step is the next step.
            let alone = is_step || arg.text.as_deref() == Some("--") || known.contains('=');
            self.after_option = !alone;
            return false;
        }
        let begins = self.reached[end];
        // A value of an option, or of a variable.
        let skipped = self.after_option || known.contains('=');
        let base = known.rsplit('/').next().unwrap_or(known);
        // Where a name of something else comes first, that is no sign.
        self.doubtful |= begins
            && self.after_option
            && !self.steps.contains(&"*")
            && knowledge::program(base).is_some();
        for at in (0..=end).rev() {
            let stays = skipped || (at < end && names_option(self.steps[at]));
            let comes = at > 0 && self.reached[at - 1] && is_word(self.steps[at - 1], arg);
            self.reached[at] = self.reached[at] && stays || comes;
        }
        self.after_option = false;
        begins
    }
}

/// Returns whether a step is an option: then other words may come before it.
fn names_option(step: &str) -> bool {
    step.starts_with(['-', '/'])
}

/// Returns whether a word is what a step of a pattern says.
fn is_word(step: &str, arg: &Arg) -> bool {
    match &arg.text {
        _ if step == "*" => true,
        Some(text) => step.split('|').any(|word| word == text),
        None => false,
    }
}
