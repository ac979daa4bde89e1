//! A program that is known: what its words mean.

use weighlock_shell::Span;

use super::Walk;
use crate::argument::{Arg, UNKNOWN};
use crate::effect::Effect;
use crate::knowledge::{Program, Role};
use crate::language::{Deeds, awk, jq, sed};
use crate::part::{Access, Link, Part, Path, PlaceKind};
use crate::program::{self, Reading, Use};
use crate::{paths, variables};

/// Tests of `find` that leave most files out.
const NARROW: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-newer",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-size",
    "-empty",
    "-user",
    "-group",
    "-perm",
    "-inum",
    "-samefile",
    "-lname",
    "-ilname",
    "-nouser",
    "-nogroup",
];

/// What is in a pattern that is meant to find secrets.
const HINTS: &[&str] = &[
    "ssh",
    "id_rsa",
    "id_ed",
    "shadow",
    "gnupg",
    "aws",
    ".env",
    "credential",
    "secret",
    "token",
    "netrc",
    "pem",
    ".key",
    "passw",
];

/// Starting points times names, above which each is only taken by itself: all
/// pairs of a long text would be too many.
const MAX_PAIRS: usize = 64;

/// Nobody writes a longer script as an argument; reading one takes its time.
const MAX_SCRIPT: usize = 8 * 1024;

/// What is handed over by `echo` is short.
const MAX_ECHO: usize = 4 * 1024;

/// Settings of git that change how things look, by how they begin.
const CALM_CONFIG: &[&str] = &[
    "color.",
    "column.",
    "advice.",
    "i18n.",
    "log.date",
    "log.decorate",
    "log.abbrevcommit",
    "log.follow",
    "log.showroot",
    "status.",
    "blame.date",
    "blame.coloring",
    "blame.showemail",
    "core.quotepath",
    "core.abbrev",
    "core.precomposeunicode",
    "core.optionallocks",
    "diff.renames",
    "diff.renamelimit",
    "diff.noprefix",
    "diff.mnemonicprefix",
    "diff.algorithm",
    "diff.context",
    "diff.colormoved",
    "diff.wordregex",
    "diff.statgraphwidth",
    "diff.submodule",
    "diff.interhunkcontext",
    "diff.suppressblankempty",
    "diff.indentheuristic",
    "diff.relative",
    "grep.linenumber",
    "grep.column",
    "grep.patterntype",
    "grep.extendedregexp",
    "grep.threads",
    "grep.fullname",
    "user.name",
    "user.email",
    "init.defaultbranch",
    "format.pretty",
    "core.commentchar",
    "safe.directory",
    "versionsort.",
    "tag.sort",
    "branch.sort",
];

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
        self.secrets(&mut part, argv);
        let mut nested = vec![];
        for used in &reading.uses {
            self.word(used, &reading, &mut part, &mut nested);
        }
        self.find_deletes(name, &reading, &mut part);
        if name == "find" {
            self.found = Some(shapes_of_found(&reading));
        }
        self.code_from_input(&reading, &mut part);
        part.does = sentence(reading.does, &part);
        let chdir = self.chdir(&reading);
        part.options = reading.options;
        self.remember_downloads(&part);
        let runs = part.effects.has(Effect::Execute) || part.unknown.is_some();
        self.push(part);
        let cwd = self.state.cwd.clone();
        self.state.cwd = chdir.unwrap_or_else(|| cwd.clone());
        if runs {
            self.tail(argv, span);
            let risky = reading.risky.iter();
            risky.for_each(|value| self.perhaps_run(value, span));
        }
        for deed in nested {
            self.deed(deed, span);
        }
        self.state.cwd = cwd;
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
        let option = reading
            .options
            .iter()
            .find(|option| option.names.contains(&"--chdir"))?;
        let to = option.value.as_deref();
        Some(to.map(|to| paths::clean(to, self.state.cwd.as_deref())))
    }

    /// What one word means for the command.
    fn word(&mut self, used: &Use, reading: &Reading, part: &mut Part, nested: &mut Vec<Deed>) {
        let deep = reading.tags.contains(&"deep");
        let Some(arg) = used.args.first() else { return };
        let place = |walk: &Self, part: &mut Part, access, deep| {
            if arg.text.as_deref() != Some("-") {
                let path = walk.path(arg, access, deep);
                walk.touch(part, path);
            }
        };
        match used.role {
            Role::Text | Role::Number | Role::Revision | Role::Any => {}
            Role::File => place(self, part, Access::Read, deep),
            Role::List => {
                let mut path = self.path(arg, Access::Read, false);
                if path.place == PlaceKind::Device {
                    // Looking at its entry does not open it.
                    path.place = PlaceKind::Ordinary;
                }
                self.touch(part, path);
            }
            Role::Glob => {
                if arg
                    .text
                    .as_deref()
                    .is_some_and(|name| !name.starts_with('!'))
                {
                    place(self, part, Access::Read, false);
                }
            }
            Role::Out => {
                let sink = (arg.text.as_deref() == Some("-") && part.program != "tee")
                    || self.path(arg, Access::Write, false).place == PlaceKind::Sink;
                if !sink {
                    part.effects.add(Effect::Write);
                    place(self, part, Access::Write, false);
                }
            }
            Role::Edit => {
                part.effects.add(Effect::Write);
                place(self, part, Access::Write, deep);
            }
            Role::Delete => {
                part.effects.add(Effect::Delete);
                place(self, part, Access::Delete, deep);
            }
            Role::Move => {
                part.effects.add(Effect::Write);
                part.effects.add(Effect::Delete);
                place(self, part, Access::Delete, true);
            }
            Role::Run => self.run_file(arg, part),
            Role::Program => {
                part.effects.add(Effect::Execute);
                let words = arg.text.as_deref().unwrap_or("").split_whitespace();
                let words: Vec<Arg> = words.map(|word| Arg::known(word, arg.span)).collect();
                nested.push(Deed::Possible(words));
            }
            Role::Shell => nested.push(Deed::Text(arg.clone())),
            Role::Argv => {
                nested.extend(
                    self.fed(part, reading, &used.args)
                        .into_iter()
                        .map(Deed::Argv),
                );
                if let (Some(text), "xargs") = (&self.state.stdin.text, part.program.as_str())
                    && text.len() <= MAX_ECHO
                {
                    let words = text.split_whitespace();
                    let words = words.map(|word| Arg::known(word, arg.span));
                    let argv = used.args.iter().cloned().chain(words);
                    nested.push(Deed::Possible(argv.collect()));
                }
            }
            Role::ArgvUntil => {
                let found = found(reading, &used.args);
                nested.extend(found.into_iter().map(Deed::Argv));
            }
            Role::Code => {
                part.effects.add(Effect::Execute);
                if arg.download {
                    part.tags.push("pipe-to-shell");
                }
                nested.push(Deed::Code(arg.clone()));
            }
            Role::Env => nested.push(Deed::Env(arg.clone())),
            Role::Variable => {
                if arg.text.as_deref().is_none_or(variables::is_secret) {
                    part.effects.add(Effect::Secret);
                }
            }
            Role::Config => {
                self.config(arg, part);
                nested.push(Deed::Perhaps(arg.clone()));
            }
            Role::Url | Role::Host => {
                part.effects.add(Effect::Network);
                part.hosts.push(arg.shown());
            }
            Role::Remote | Role::RemoteOut => {
                let out = used.role == Role::RemoteOut;
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
            Role::Sed | Role::Awk | Role::Jq => {
                let read = match used.role {
                    Role::Sed => sed::read,
                    Role::Awk => awk::read,
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

    /// Returns the commands that `xargs` runs with what it reads.
    fn fed(&self, part: &Part, reading: &Reading, args: &[Arg]) -> Vec<Vec<Arg>> {
        if part.program != "xargs" && part.program != "parallel" {
            return vec![args.to_vec()];
        }
        let options = || reading.options.iter();
        // The last one counts.
        let place = options()
            .rfind(|option| matches!(option.name, "-I" | "-i" | "--replace"))
            .map(|option| option.value.clone().unwrap_or_else(|| "{}".into()));
        // Of this and that the later wins, and then the input goes to the end.
        let batches = ["-n", "--max-args", "-L", "-l", "--max-lines"];
        let batched = options().any(|option| batches.contains(&option.name));
        let inputs = self.inputs(reading, args);
        let Some(place) = place else {
            return vec![args.iter().cloned().chain(inputs).collect()];
        };
        let filled = inputs.iter().map(|input| {
            let mut argv = args.to_vec();
            let one = Arg {
                many: false,
                ..input.clone()
            };
            fill(&mut argv, &place, &one);
            argv.extend(batched.then(|| input.clone()));
            argv
        });
        filled.collect()
    }

    /// What `xargs` reads, as far as it is known.
    fn inputs(&self, reading: &Reading, args: &[Arg]) -> Vec<Arg> {
        let span = args.first().map_or_else(Span::default, |arg| arg.span);
        let mut words = reading.uses.iter().flat_map(|used| &used.args);
        let mut input = Arg::anything(span);
        input.download = self.state.stdin.download || words.any(|arg| arg.download);
        let Some(paths) = &self.state.stdin.paths else {
            return vec![input];
        };
        let like = |path: &String| Arg {
            shape: path.clone(),
            ..input.clone()
        };
        paths.iter().map(like).collect()
    }

    /// What `find` deletes by itself.
    fn find_deletes(&self, name: &str, reading: &Reading, part: &mut Part) {
        if name != "find" || !part.effects.has(Effect::Delete) {
            return;
        }
        let starts: Vec<Arg> = reading
            .uses
            .iter()
            .filter(|used| used.role == Role::List)
            .filter_map(|used| used.args.first().cloned())
            .collect();
        let here = [Arg::known(".", part.span)];
        let starts = if starts.is_empty() {
            here.as_slice()
        } else {
            &starts
        };
        for start in starts {
            let mut start = start.clone();
            if is_narrow(reading) {
                start.shape.push_str("/[found]");
                start.text = None;
            }
            let path = self.path(&start, Access::Delete, true);
            self.touch(part, path);
        }
    }

    /// An interpreter without a script reads its code from standard input.
    fn code_from_input(&self, reading: &Reading, part: &mut Part) {
        let named = reading.uses.iter().any(|used| {
            let dash = used
                .args
                .first()
                .is_some_and(|arg| arg.text.as_deref() == Some("-"));
            matches!(used.role, Role::Code | Role::Run) && !dash
        });
        let asks = reading
            .options
            .iter()
            .any(|option| is_question(option.name));
        let from_input = reading.tags.contains(&"interpreter")
            && !(named || asks || reading.special || reading.help);
        if from_input {
            part.effects.add(Effect::Execute);
            if self.state.stdin.download {
                part.tags.push("pipe-to-shell");
            }
        }
    }

    fn config(&self, arg: &Arg, part: &mut Part) {
        let text = arg.prefix().to_ascii_lowercase();
        let (key, value) = text.split_once('=').unwrap_or((&text, ""));
        let is_calm = |calm: &&str| match calm.ends_with('.') {
            true => key.starts_with(*calm),
            // `diff.renames.textconv` is another key.
            false => key == *calm,
        };
        let calm = CALM_CONFIG.iter().any(is_calm)
            || (key == "core.pager" || key.starts_with("pager."))
                && arg.text.is_some()
                && matches!(value, "cat" | "" | "false");
        if !calm || !text.contains('=') && arg.text.is_none() {
            part.effects.add(Effect::Execute);
        }
    }

    fn little(&self, arg: &Arg, read: fn(&str) -> Deeds, part: &mut Part, nested: &mut Vec<Deed>) {
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
            nested.push(Deed::Text(Arg::known(command, arg.span)));
        }
    }

    /// Does what was found inside a command's words.
    fn deed(&mut self, deed: Deed, span: Span) {
        let saved = self.state.clone();
        // Another program knows nothing of this shell's functions.
        let functions = std::mem::take(&mut self.functions);
        self.state.depth += 1;
        self.state.link = Link::Inside;
        match deed {
            Deed::Argv(argv) => {
                if !argv.is_empty() {
                    self.command(argv, span);
                }
            }
            Deed::Possible(argv) => {
                if !argv.is_empty() && self.guess() {
                    self.possibly(|walk| walk.command(argv, span));
                }
            }
            Deed::Text(arg) => {
                self.posix = true;
                self.run_text(&arg, None, span);
                self.posix = false;
            }
            Deed::Code(arg) => self.code(&arg, span),
            Deed::Perhaps(arg) => self.perhaps_run(&arg, span),
            Deed::Env(arg) => {
                let (name, value) = match arg.prefix().split_once('=') {
                    Some((name, _)) => (name.to_owned(), arg.rest(name.len() + 1)),
                    None => (arg.shown(), arg.clone()),
                };
                self.exported(&name, &value, arg.span);
            }
        }
        self.functions = functions;
        self.state = saved;
    }
}

/// Something that a command does through its words.
enum Deed {
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

fn fill(argv: &mut [Arg], place: &str, input: &Arg) {
    for arg in argv {
        let Some((before, after)) = arg.text.as_deref().and_then(|text| text.split_once(place))
        else {
            continue;
        };
        *arg = Arg {
            text: None,
            shape: format!("{before}{}{after}", input.shape),
            known: before.len(),
            many: input.many && before.is_empty() && after.is_empty(),
            undashed: input.undashed,
            download: input.download,
            ..arg.clone()
        };
    }
}

/// Returns the commands that `find -exec` runs, with what it found in the
/// place of `{}`.
fn found(reading: &Reading, args: &[Arg]) -> Vec<Vec<Arg>> {
    let with = |shape: String| {
        let mut argv = args.to_vec();
        let found = Arg {
            shape,
            undashed: true,
            many: true,
            ..Arg::default()
        };
        fill(&mut argv, "{}", &found);
        argv
    };
    shapes_of_found(reading).into_iter().map(with).collect()
}

/// Returns what the paths are like that `find` finds.
fn shapes_of_found(reading: &Reading) -> Vec<String> {
    let given = |names: &[&str]| {
        let of = reading.options.iter();
        let of: Vec<&str> = { of }
            .filter(|option| names.contains(&option.name))
            .map(|option| option.value.as_deref().unwrap_or_default())
            .collect();
        of
    };
    let lists = reading.uses.iter().filter(|used| used.role == Role::List);
    let mut starts: Vec<String> = { lists }
        .filter_map(|used| Some(used.args.first()?.shape.clone()))
        .collect();
    if !given(&["-files0-from"]).is_empty() {
        starts.push(UNKNOWN.into());
    }
    if starts.is_empty() {
        starts.push(".".into());
    }
    let mut names = given(&["-name", "-iname"]);
    if !given(&["-o", "-or"]).is_empty() || (names.is_empty() && !is_narrow(reading)) {
        names.push("**");
    }
    let patterns = given(&[
        "-path",
        "-ipath",
        "-wholename",
        "-iwholename",
        "-regex",
        "-iregex",
    ]);
    let hints = |pattern: &&str| HINTS.iter().any(|hint| pattern.contains(hint));
    if patterns.iter().any(hints) {
        names.push(".ssh");
    }
    if names.is_empty() {
        names.push("[found]");
    }
    let pair = |start: &str, name: &str| format!("{}/{name}", start.trim_end_matches('/'));
    if starts.len() * names.len() > MAX_PAIRS {
        let everything = starts.iter().map(|start| pair(start, "**"));
        let anywhere = names.iter().map(|name| pair(".", name));
        return everything.chain(anywhere).collect();
    }
    let pairs = starts
        .iter()
        .flat_map(|start| names.iter().map(|name| pair(start, name)));
    pairs.collect()
}

fn is_narrow(reading: &Reading) -> bool {
    reading
        .options
        .iter()
        .any(|option| NARROW.contains(&option.name))
}

fn is_question(option: &str) -> bool {
    matches!(option, "--version" | "--help" | "-version" | "-V" | "-h")
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
