//! A program that is known: what its words mean.

use weighlock_shell::Span;

use super::{Walk, find, git};
use crate::argument::Arg;
use crate::effect::{Effect, Effects};
use crate::knowledge::{OperandRole, Program};
use crate::language::{Deeds, awk, jq, sed};
use crate::part::{Access, Given, Link, Obeyed, Part, Path, PlaceKind};
use crate::program::{self, Reading, Use};
use crate::{knowledge, paths, variables};

/// Nobody writes a longer script as an argument; reading one takes its time.
const MAX_SCRIPT: usize = 8 * 1024;

impl Walk<'_> {
    pub(super) fn known(
        &mut self,
        program: &'static Program,
        name: &str,
        argv: &[Arg],
        span: Span,
    ) {
        if program.tags.contains(&"shell") && self.shell(name, argv, span) {
            return;
        }
        let reading = program::read(program, &argv[1..]);
        let mut part = self.described(name, argv, span);
        part.subcommand = reading
            .subcommand
            .iter()
            .map(|&sub| sub.to_owned())
            .collect();
        part.effects.extend(reading.effects);
        part.tags.clone_from(&reading.tags);
        part.unknown.clone_from(&reading.unknown);
        if self.only_pages(&reading) {
            part.effects = Effects::READ;
        }
        self.secrets(&mut part, argv);
        self.obeys(&reading, &mut part);
        if self.state.stripped && reading.tags.contains(&"home") {
            let why = "without HOME it loads its settings from the project";
            part.unknown.get_or_insert(why.into());
        }
        let mut nested = vec![];
        for used in &reading.uses {
            self.word(used, &reading, &mut part, &mut nested);
        }
        self.find_deletes(name, &reading, &mut part);
        if name == "find" {
            self.found = Some(find::shapes(&reading));
        }
        nested.extend(self.code_from_input(&reading, &mut part));
        part.does = sentence(reading.does, &part);
        let chdir = self.chdir(&reading);
        let strips = { reading.options.iter() }.any(takes_variables);
        part.options = reading.options;
        self.remember_downloads(&part);
        let executes = part.effects.has(Effect::Execute) || part.unknown.is_some();
        // Where its words were read with certainty, the command is among them.
        let certain = reading.unknown.is_none() && { reading.uses.iter() }
            .any(|used| matches!(used.role, OperandRole::Argv | OperandRole::ArgvUntil));
        self.push(part);
        let cwd = self.state.cwd.clone();
        self.state.cwd = chdir.unwrap_or_else(|| cwd.clone());
        let stripped = self.state.stripped;
        self.state.stripped |= strips;
        if !certain && !reading.help {
            self.commands_among(program, argv, span);
        }
        if executes {
            let risky = reading.risky.iter();
            risky.for_each(|value| self.perhaps_run(value, span));
        }
        for deed in nested {
            self.deed(deed, span);
        }
        self.state.stripped = stripped;
        self.state.cwd = cwd;
        if reading.tags.contains(&"commands") {
            self.commands_from_input(span);
        }
    }

    /// Returns whether a pager only passes on what a pipe brings. A file would
    /// go through a filter, and an option could name one.
    fn only_pages(&self, reading: &Reading) -> bool {
        reading.tags.contains(&"pager")
            && self.state.link == Link::Pipe
            && reading.uses.is_empty()
            && reading.unknown.is_none()
    }

    /// Says whose settings decide what the program does.
    fn obeys(&self, reading: &Reading, part: &mut Part) {
        if reading.obeys.is_empty() {
            return;
        }
        let Some(dir) = self.works_in(reading).filter(|dir| dir.starts_with('/')) else {
            let why = "the project whose settings it obeys is only known when it runs";
            part.unknown.get_or_insert(why.into());
            return;
        };
        let obeyed = reading.obeys.iter().map(|&settings| Obeyed {
            settings,
            dir: dir.clone(),
            stripped: self.state.stripped,
        });
        part.obeys.extend(obeyed);
    }

    /// Returns the directory that a program works in, if that is sure.
    fn works_in(&self, reading: &Reading) -> Option<String> {
        let mut dir = self.state.cwd.clone();
        for used in &reading.uses {
            let Some(arg) = used
                .args
                .first()
                .filter(|_| used.role == OperandRole::Directory)
            else {
                continue;
            };
            let text = arg.text.as_deref()?;
            // Behind a link, `..` leads elsewhere than the letters say.
            if text.split('/').any(|part| part == "..") {
                return None;
            }
            dir = Some(paths::clean(text, dir.as_deref()));
        }
        dir
    }

    /// Standard input says what is run later.
    fn commands_from_input(&mut self, span: Span) {
        if self.state.stdin.download {
            self.downloaded_code(span);
        }
        let text = self.state.stdin.text.clone();
        self.perhaps_runs(text.as_deref(), span);
    }

    /// Keeps in mind which files hold something from the network.
    fn remember_downloads(&mut self, part: &Part) {
        if part.tags.contains(&"download") {
            // The name that such a program gives to what it fetches.
            let names = part.hosts.iter().filter_map(|url| url.rsplit('/').next());
            let names = names.map(|name| name.split(['?', '#']).next().unwrap_or(name));
            let cwd = self.state.cwd.as_deref();
            let files: Vec<String> = names.map(|name| paths::clean(name, cwd)).collect();
            self.downloads.extend(files);
        }
        let old = |path: &Path| path.access != Access::Write && self.downloads.contains(&path.path);
        if part.effects.has(Effect::Network)
            || self.state.stdin.download
            || part.paths.iter().any(old)
        {
            let written = part
                .paths
                .iter()
                .filter(|path| path.access == Access::Write);
            let written: Vec<String> = written.map(|path| path.path.clone()).collect();
            self.downloads.extend(written);
        }
    }

    /// Returns where the command that this one runs will be, if it says so.
    fn chdir(&self, reading: &Reading) -> Option<Option<String>> {
        let mut options = reading.options.iter();
        if options.any(|option| matches!(option.name, "-execdir" | "-okdir")) {
            return Some(None);
        }
        let option = reading
            .options
            .iter()
            .find(|option| option.names.contains(&"--chdir"))?;
        let to = option.value.as_deref();
        Some(to.map(|to| paths::clean(to, self.state.cwd.as_deref())))
    }

    /// What one word means for the command.
    fn word(
        &mut self,
        used: &Use,
        reading: &Reading,
        part: &mut Part,
        nested: &mut Vec<ProgramAction>,
    ) {
        let deep = reading.tags.contains(&"deep");
        let Some(arg) = used.args.first() else { return };
        let place = |walk: &Self, part: &mut Part, access, deep| {
            if arg.text.as_deref() != Some("-") {
                let path = walk.path(arg, access, deep);
                walk.touch(part, path);
            }
        };
        match used.role {
            // A repository names the program that verifies them.
            OperandRole::Format if arg.text.as_deref().is_none_or(verifies_signatures) => {
                part.effects.add(Effect::Execute);
            }
            OperandRole::Text
            | OperandRole::Format
            | OperandRole::Number
            | OperandRole::Revision
            | OperandRole::Any => {}
            OperandRole::File | OperandRole::Directory => place(self, part, Access::Read, deep),
            OperandRole::List => {
                let mut path = self.path(arg, Access::Read, false);
                if path.place == PlaceKind::Device {
                    // Looking at its entry does not open it.
                    path.place = PlaceKind::Ordinary;
                }
                if path.place == PlaceKind::Secret
                    && arg.many
                    && !arg.splits
                    && let Some(dir) = paths::all_of(&path.path)
                {
                    path.place = paths::kind(dir, Access::Read, false, self.place);
                }
                self.touch(part, path);
            }
            OperandRole::Glob => {
                if arg
                    .text
                    .as_deref()
                    .is_some_and(|name| !name.starts_with('!'))
                {
                    place(self, part, Access::Read, false);
                }
            }
            OperandRole::Out => {
                let sink = (arg.text.as_deref() == Some("-") && part.program != "tee")
                    || self.path(arg, Access::Write, false).place == PlaceKind::Sink;
                if !sink {
                    part.effects.add(Effect::Write);
                    place(self, part, Access::Write, false);
                }
            }
            OperandRole::Edit => {
                part.effects.add(Effect::Write);
                // `$DIR/` is hardly ever meant to be the root.
                place(self, part, Access::Write, deep && !arg.unset);
            }
            OperandRole::Delete => {
                part.effects.add(Effect::Delete);
                place(self, part, Access::Delete, deep);
            }
            OperandRole::Move => {
                part.effects.add(Effect::Write);
                part.effects.add(Effect::Delete);
                place(self, part, Access::Delete, true);
            }
            OperandRole::Run => self.run_file(arg, part),
            OperandRole::Program => {
                part.effects.add(Effect::Execute);
                let words = arg.text.as_deref().unwrap_or("").split_whitespace();
                let words: Vec<Arg> = words.map(|word| Arg::known(word, arg.span)).collect();
                if part.effects.has(Effect::Network) && words.first().is_some_and(is_shell) {
                    // It reads its commands from the network.
                    part.tags.push("pipe-to-shell");
                }
                nested.push(ProgramAction::Possible(words));
            }
            OperandRole::Shell | OperandRole::Line => nested.push(ProgramAction::Text(arg.clone())),
            OperandRole::Argv => nested.extend(self.handed_on(part, reading, &used.args)),
            OperandRole::ArgvUntil => {
                let found = find::commands(reading, &used.args);
                nested.extend(found.into_iter().map(ProgramAction::Argv));
            }
            OperandRole::Code => {
                part.effects.add(Effect::Execute);
                if arg.download {
                    part.tags.push("pipe-to-shell");
                }
                nested.push(ProgramAction::Code(arg.clone()));
            }
            OperandRole::Env => nested.push(ProgramAction::Env(arg.clone())),
            OperandRole::Variable => {
                if arg.text.as_deref().is_none_or(variables::is_secret) {
                    part.effects.add(Effect::Secret);
                }
            }
            OperandRole::Config => {
                if !git::is_calm(arg) {
                    part.effects.add(Effect::Execute);
                }
                nested.push(ProgramAction::Perhaps(arg.clone()));
            }
            OperandRole::Url | OperandRole::Host => {
                part.effects.add(Effect::Network);
                part.hosts.push(arg.shown());
            }
            OperandRole::Remote | OperandRole::RemoteOut => {
                let out = used.role == OperandRole::RemoteOut;
                if is_remote(arg) {
                    part.effects.add(Effect::Network);
                    part.hosts.push(arg.shown());
                } else if out {
                    part.effects.add(Effect::Write);
                    place(self, part, Access::Write, false);
                } else {
                    place(self, part, Access::Read, true);
                }
            }
            OperandRole::Sed | OperandRole::Awk | OperandRole::Jq => {
                let read = match used.role {
                    OperandRole::Sed => sed::read,
                    OperandRole::Awk => awk::read,
                    _ => jq::read,
                };
                self.little(arg, read, part, nested);
            }
        }
    }

    fn run_file(&self, arg: &Arg, part: &mut Part) {
        part.effects.add(Effect::Execute);
        let path = self.path(arg, Access::Run, false);
        if arg.download || self.downloads.contains(&path.path) {
            part.tags.push("pipe-to-shell");
        }
        part.paths.push(path);
    }

    /// An interpreter without a script reads its code from standard input.
    fn code_from_input(&self, reading: &Reading, part: &mut Part) -> Option<ProgramAction> {
        let named = reading.uses.iter().any(|used| {
            let dash = used
                .args
                .first()
                .is_some_and(|arg| arg.text.as_deref() == Some("-"));
            matches!(used.role, OperandRole::Code | OperandRole::Run) && !dash
        });
        let asks = reading
            .options
            .iter()
            .any(|option| is_question(option.name));
        let from_input = reading.tags.contains(&"interpreter")
            && !(named || asks || reading.special || reading.help);
        if !from_input {
            return None;
        }
        part.effects.add(Effect::Execute);
        if self.state.stdin.download {
            part.tags.push("pipe-to-shell");
        }
        let text = self.state.stdin.text.as_deref()?;
        Some(ProgramAction::Code(Arg::known(text, part.span)))
    }

    fn little(
        &self,
        arg: &Arg,
        read: fn(&str) -> Deeds,
        part: &mut Part,
        nested: &mut Vec<ProgramAction>,
    ) {
        let Some(text) = &arg.text else {
            part.unknown = Some(format!("`{}` is only known when it runs", arg.shown()));
            return;
        };
        if text.len() > MAX_SCRIPT {
            part.unknown = Some("its script is too long to be read".into());
            return;
        }
        let deeds = read(text);
        part.effects.extend(deeds.effects);
        if let Some(why) = deeds.unknown {
            part.unknown = Some(format!("`{text}`: {why}"));
        }
        for (names, access) in [(deeds.reads, Access::Read), (deeds.writes, Access::Write)] {
            for name in names {
                let path = self.path(&Arg::known(name, arg.span), access, false);
                self.touch(part, path);
            }
        }
        for command in deeds.commands {
            nested.push(ProgramAction::Text(Arg::known(command, arg.span)));
        }
    }

    /// Does what was found inside a command's words.
    fn deed(&mut self, deed: ProgramAction, span: Span) {
        let saved = self.state.clone();
        // Another program knows nothing of this shell's functions.
        let functions = std::mem::take(&mut self.functions);
        self.state.depth += 1;
        self.state.link = Link::Inside;
        match deed {
            ProgramAction::Argv(argv) => {
                if !argv.is_empty() {
                    self.handed(argv, span);
                }
            }
            ProgramAction::Possible(argv) => {
                if !argv.is_empty() && self.guess() {
                    self.possibly(|walk| walk.handed(argv, span));
                }
            }
            ProgramAction::Text(arg) => {
                self.posix = true;
                self.run_text(&arg, None, span);
                self.posix = false;
            }
            ProgramAction::Code(arg) => self.code(&arg, span),
            ProgramAction::Perhaps(arg) => self.perhaps_run(&arg, span),
            ProgramAction::Env(arg) => {
                let (name, value) = match arg.prefix().split_once('=') {
                    Some((name, _)) => (name.to_owned(), arg.rest(name.len() + 1)),
                    None => (arg.shown(), arg.clone()),
                };
                if self.state.words.is_some() {
                    self.state.words = Some(arg.shown().into());
                }
                self.exported(&name, &value, arg.span);
            }
        }
        self.functions = functions;
        self.state = saved;
    }
}

/// Something that a command does through its words.
pub(super) enum ProgramAction {
    /// It runs another command.
    Argv(Vec<Arg>),
    /// It runs a program in a way that is not known in full.
    Possible(Vec<Arg>),
    /// It has a shell run text.
    Text(Arg),
    /// It runs text in another language.
    Code(Arg),
    /// It has a setting that may be run.
    Perhaps(Arg),
    /// It sets a variable.
    Env(Arg),
}

/// Returns whether an option takes variables away that change what programs do:
/// `env -i`, `env -u HOME`.
fn takes_variables(option: &Given) -> bool {
    let named = |name| option.names.contains(&name);
    let loud = || option.value.as_deref().is_none_or(variables::is_loud);
    named("--ignore-environment") || named("--unset") && loud()
}

fn is_question(option: &str) -> bool {
    matches!(option, "--version" | "--help" | "-version" | "-V" | "-h")
}

fn is_shell(arg: &Arg) -> bool {
    let name = arg.prefix().rsplit('/').next().unwrap_or_default();
    knowledge::program(name).is_some_and(|program| program.tags.contains(&"shell"))
}

/// Returns whether a word names another machine: `host:path`, `url://…`.
fn is_remote(arg: &Arg) -> bool {
    let text = arg.shown();
    match text.find([':', '/']) {
        Some(at) => text[at..].starts_with(':'),
        None => arg.text.is_none(),
    }
}

/// Fills the paths into the sentence for a program.
fn sentence(does: &str, part: &Part) -> String {
    let Some((before, rest)) = does.split_once('{') else {
        return does.to_owned();
    };
    let (word, after) = rest.split_once('}').unwrap_or((rest, ""));
    let mut names: Vec<&str> = part
        .paths
        .iter()
        .map(|path| path.written.as_str())
        .collect();
    names.dedup();
    let object = match names.as_slice() {
        [] => word.to_owned(),
        [only] => (*only).to_owned(),
        [first, second] => format!("{first} and {second}"),
        [first, second, rest @ ..] => format!("{first}, {second} and {} more", rest.len()),
    };
    let deep = part
        .paths
        .iter()
        .any(|path| path.deep && path.access == Access::Delete);
    let deep = if deep { " and everything in it" } else { "" };
    format!("{before}{object}{deep}{after}")
}

/// Whether a format of git's has signatures verified, or one of rpm's has the
/// text of a package run as macros.
fn verifies_signatures(format: &str) -> bool {
    let signs = [
        "%G",
        "%+G",
        "%-G",
        "% G",
        "(signature",
        "(*signature",
        ":expand",
    ];
    signs.iter().any(|sign| format.contains(sign))
}
