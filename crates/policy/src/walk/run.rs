//! A program and its arguments.

use weighlock_shell::{Redirection, Simple, Span, Value};

use super::budget::{COMMAND, WORD};
use super::{Function, MAX_NESTING, MAX_OWN_TEXT, Walk};
use crate::argument::Arg;
use crate::effect::{Effect, Effects};
use crate::knowledge::Program;
use crate::part::{Part, PartKind};
use crate::rules::pattern::quote;
use crate::{knowledge, paths, pattern, program, variables};

/// Places among the words of one command where a dangerous one is tried. Each
/// takes time in the length of the whole; past them a person is asked.
const MAX_PLACES: usize = 8;

/// Dangerous programs whose names are hardly ever anything else.
pub(super) const NOTORIOUS: &[&str] = &[
    "sudo", "su", "doas", "rm", "reboot", "shutdown", "mkfs", "dd",
];

impl Walk<'_> {
    pub(super) fn simple(&mut self, simple: &Simple, redirections: &[Redirection], span: Span) {
        let before = self.parts.len();
        let mut downloads = vec![];
        // Words that are many cost something even before they are expanded.
        if !self.spend(WORD * simple.words.len()) {
            return;
        }
        for word in &simple.words {
            downloads.push(self.substitutions(word));
        }
        let stdin = self.state.stdin.clone();
        if simple.words.is_empty() {
            for set in &simple.assignments {
                if self.is_spent() {
                    return;
                }
                self.assign(set);
            }
            self.redirections(redirections);
            self.state.stdin = stdin;
            return;
        }
        let reads = simple.words[0].literal().is_some_and(|name| name == "read");
        for set in &simple.assignments {
            if self.is_spent() {
                return;
            }
            self.inside_assignment(set);
            if reads && set.name == "IFS" {
                // It only says where `read` splits.
                continue;
            }
            let value = match &set.value {
                Value::Scalar(word) => self.joined(word),
                Value::Array(_) => Arg::anything(set.span),
            };
            self.exported(&set.name, &value, set.span);
        }
        self.redirections(redirections);
        let mut argv = vec![];
        for (word, download) in simple.words.iter().zip(downloads) {
            for mut arg in self.expand(word, None) {
                arg.download |= download;
                argv.push(arg);
            }
            if self.is_spent() {
                return;
            }
        }
        self.command(argv.clone(), span);
        if self.downloaded(before) {
            let written = self.parts[before..]
                .iter()
                .filter(|part| part.kind == PartKind::Redirection);
            let written = written
                .flat_map(|part| &part.paths)
                .map(|path| path.path.clone());
            self.downloads.extend(written);
        }
        if argv.iter().any(|arg| arg.text.is_none()) || argv.is_empty() {
            self.try_readings(simple, &argv, span);
        }
        self.state.stdin = stdin;
    }

    /// Tries what words could be that are only known when they run.
    fn try_readings(&mut self, simple: &Simple, strict: &[Arg], span: Span) {
        let download = strict.iter().any(|arg| arg.download);
        let mut last = strict.to_vec();
        for guess in 0..self.readings(&simple.words) {
            if self.is_spent() {
                return;
            }
            let mut reading = self.argv(&simple.words, Some(guess));
            if reading == last {
                continue;
            }
            if !self.guess() {
                return;
            }
            last.clone_from(&reading);
            reading.iter_mut().for_each(|arg| arg.download |= download);
            self.possibly(|walk| walk.command(reading, span));
        }
    }

    /// Finds out what one command does.
    pub(super) fn command(&mut self, argv: Vec<Arg>, span: Span) {
        let Some(first) = argv.first() else {
            // Everything expanded to nothing; what is left is a question.
            return self.stranger(&argv, span, "it is empty when it runs".into());
        };
        if self.nesting >= MAX_NESTING {
            return self.unknown(span, "it is nested too deep".into());
        }
        if !self.spend(COMMAND) || !self.spend_on(&argv) {
            return;
        }
        self.nesting += 1;
        match first.text.clone() {
            Some(name) => self.named(&name, &argv, span),
            None => {
                let shape = first.shape.clone();
                if first.download {
                    self.downloaded_code(span);
                }
                self.stranger(&argv, span, "the program is only known when it runs".into());
                self.likely(&shape, &argv, span);
            }
        }
        self.nesting -= 1;
    }

    /// Finds out what a command does that another was given the words of.
    pub(super) fn handed(&mut self, argv: Vec<Arg>, span: Span) {
        let outer = self.state.words.replace(joined(&argv).into());
        self.command(argv, span);
        self.state.words = outer;
    }

    fn named(&mut self, name: &str, argv: &[Arg], span: Span) {
        if let Some(function) = self.functions.get(name).cloned() {
            self.call(name, &function, argv, span);
            if function.certain {
                return;
            }
        }
        if !name.contains('/') && self.builtin(name, argv, span) {
            return;
        }
        let clean = paths::clean(name, self.state.cwd.as_deref());
        let base = name.rsplit('/').next().unwrap_or(name);
        let lower;
        let base = match self.windows {
            // There, case means nothing, and programs have endings.
            true => {
                lower = base.to_ascii_lowercase();
                lower.strip_suffix(".exe").unwrap_or(&lower)
            }
            false => base,
        };
        let dir = clean.rsplit_once('/').map_or("", |(dir, _)| dir);
        if name.contains('/') && !variables::is_bin(dir) {
            return self.foreign(base, &clean, argv, span);
        }
        match knowledge::program(base) {
            Some(program) => self.known(program, base, argv, span),
            None => self.stranger(argv, span, format!("`{base}` is not known")),
        }
    }

    /// A program at a place of its own: whatever its name, it could be
    /// anything.
    fn foreign(&mut self, base: &str, path: &str, argv: &[Arg], span: Span) {
        if self.downloads.contains(path) {
            self.downloaded_code(span);
        }
        self.stranger(
            argv,
            span,
            format!("{} is not a program of the system", argv[0].shown()),
        );
        // A program of the workspace may have any name.
        let own = paths::below(path, &self.place.root);
        if let Some(program) = knowledge::program(base)
            && (!own || NOTORIOUS.contains(&base))
            && self.guess()
        {
            self.possibly(|walk| walk.known(program, base, argv, span));
        }
    }

    /// A name that is a pattern: tries the dangerous programs it plainly means.
    fn likely(&mut self, shape: &str, argv: &[Arg], span: Span) {
        let base = shape.rsplit('/').next().unwrap_or(shape);
        for &name in NOTORIOUS {
            // Two letters with anything between them are many a name.
            let plain = pattern::spelled(base) * 2 > name.len();
            if plain && pattern::overlap(base, name) && self.guess() {
                let mut argv = argv.to_vec();
                argv[0] = Arg::known(name, argv[0].span);
                self.possibly(|walk| walk.command(argv, span));
            }
        }
    }

    /// A program that runs some of its words, and not all of its options are
    /// known: tries the dangerous commands that stand where one may begin.
    /// What is tried looks no further, so that each word is tried once.
    pub(super) fn commands_among(&mut self, program: &'static Program, argv: &[Arg], span: Span) {
        if program.runs.is_empty() || self.state.placed {
            return;
        }
        let elsewhere = program.tags.contains(&"elsewhere");
        let places = program::places(program, argv).into_iter();
        let dangerous = places.filter(|place| {
            let text = argv[place.at].text.as_deref().unwrap_or_default();
            let name = text.split_whitespace().next().unwrap_or_default();
            is_dangerous(name, place.plain) || (place.plain && !elsewhere && is_known(name))
        });
        for place in dangerous.take(MAX_PLACES) {
            if self.guess() {
                let before = self.parts.len();
                self.possibly(|walk| {
                    walk.state.placed = true;
                    walk.placed(&argv[place.at..], span);
                });
                if elsewhere {
                    self.parts[before..].iter_mut().for_each(happens_elsewhere);
                }
            }
        }
    }

    /// A command among the words of another: as words, or all in the first one.
    fn placed(&mut self, argv: &[Arg], span: Span) {
        match argv[0].text.as_deref() {
            Some(text) if text.trim().contains(char::is_whitespace) => {
                self.perhaps_runs(Some(text), span);
            }
            _ => self.handed(argv.to_vec(), span),
        }
    }

    pub(super) fn possibly(&mut self, walk: impl FnOnce(&mut Self)) {
        let saved = self.state.clone();
        self.state.possible = true;
        walk(self);
        self.state = saved;
    }

    fn call(&mut self, name: &str, function: &Function, argv: &[Arg], span: Span) {
        let mut part = self.described(name, argv, span);
        part.does = format!("calls the function `{name}`");
        self.secrets(&mut part, argv);
        self.push(part);
        // Its body is judged where it is defined; with its arguments it may
        // be worse.
        if self.state.calls.iter().any(|call| call == name) || !self.guess() {
            return;
        }
        let saved = self.state.clone();
        self.state.possible = true;
        self.state.calls.push(name.to_owned());
        self.state.positional = Some(argv[1..].into());
        self.state.inner.clone_from(&function.inner);
        self.state.words = None;
        self.compound(&function.body);
        self.state = saved;
    }

    fn stranger(&mut self, argv: &[Arg], span: Span, why: String) {
        let name = argv
            .first()
            .and_then(|arg| arg.text.as_deref())
            .unwrap_or("");
        let base = name.rsplit('/').next().unwrap_or(name).to_owned();
        let mut part = self.described(&base, argv, span);
        part.does =
            "unknown program; it may read, write and run anything the sandbox allows".into();
        part.unknown = Some(why);
        self.secrets(&mut part, argv);
        self.push(part);
    }

    pub(super) fn described(&self, program: &str, argv: &[Arg], span: Span) -> Part {
        let mut part = self.part(PartKind::Command, span);
        part.program = program.to_owned();
        part.argv = argv.iter().map(|arg| arg.text.clone()).collect();
        part
    }

    pub(super) fn secrets(&self, part: &mut Part, argv: &[Arg]) {
        if argv.iter().any(|arg| arg.secret) {
            part.effects.add(Effect::Secret);
        }
        if argv.iter().any(|arg| arg.download) {
            part.tags.push("download");
        }
    }

    /// Something from the network is run as code.
    pub(super) fn downloaded_code(&mut self, span: Span) {
        let mut part = self.part(PartKind::Command, span);
        part.does = "runs what was downloaded".into();
        part.effects.add(Effect::Execute);
        part.tags.push("pipe-to-shell");
        self.push(part);
    }
}

/// Returns whether a program raises privileges, works on disks, deletes or runs
/// text. Where it may be something else than a program, only by a name that
/// means nothing else.
pub(super) fn is_dangerous(name: &str, plain: bool) -> bool {
    let (dir, base) = name.rsplit_once('/').unwrap_or(("", name));
    let Some(program) = knowledge::program(base) else {
        return false;
    };
    let shell = program.tags.contains(&"shell");
    let dangerous = shell
        || program.tags.contains(&"disk")
        || Effects::of(program.effects).has(Effect::Privilege)
        || base == "rm";
    let plain = plain || shell || NOTORIOUS.contains(&base);
    dangerous && plain && (dir.is_empty() || variables::is_bin(dir))
}

/// Returns whether something is known about a program of the system.
pub(super) fn is_known(name: &str) -> bool {
    let (dir, base) = name.rsplit_once('/').unwrap_or(("", name));
    knowledge::program(base).is_some() && (dir.is_empty() || variables::is_bin(dir))
}

/// A container or another machine has software and a power switch of its own.
fn happens_elsewhere(part: &mut Part) {
    part.tags.retain(|tag| !matches!(*tag, "install" | "power"));
}

/// Joins words as a person would write them. Where they were written, other
/// words stood between them, or patterns that the shell expands.
fn joined(argv: &[Arg]) -> String {
    let mut text = String::new();
    for arg in argv {
        if text.len() >= MAX_OWN_TEXT {
            text.push_str(" …");
            break;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&match &arg.text {
            Some(word) => quote(word),
            None => arg.shown(),
        });
    }
    text.truncate(text.floor_char_boundary(2 * MAX_OWN_TEXT));
    text
}
