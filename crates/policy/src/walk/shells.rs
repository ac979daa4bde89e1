//! Shells inside shells, and code in other languages.

use std::rc::Rc;

use weighlock_shell::{Dialect, Span, parse};

use super::Walk;
use super::budget::COMMAND;
use super::builtin::CALM_SET_NAMES;
use super::code::started;
use super::run::is_known;
use crate::argument::Arg;
use crate::effect::Effect;
use crate::part::Access;

/// Shells that read the language of sh, or bash's.
const LIKE_BASH: &[&str] = &["sh", "bash", "dash", "ash", "rbash"];

/// Shells that read most of it.
const NEARLY: &[&str] = &["ksh", "mksh", "zsh"];

/// Letters among a shell's options that do not change what commands mean.
const CALM: &str = "celuxvnfsCbhmo";

/// Options of shells that take a word.
const WITH_VALUE: &[&str] = &["-o", "+o", "-O", "+O", "--rcfile", "--init-file"];

impl Walk<'_> {
    /// A shell that is given text, a file, or whatever its input brings.
    /// Returns false for what is no such shell.
    pub(super) fn shell(&mut self, name: &str, argv: &[Arg], span: Span) -> bool {
        if !LIKE_BASH.contains(&name) && !NEARLY.contains(&name) {
            return false;
        }
        let mut part = self.described(name, argv, span);
        if let Some(file) = only_checked(name, argv) {
            part.does = format!("checks the syntax of {}", file.shown());
            self.secrets(&mut part, argv);
            let path = self.path(file, Access::Read, false);
            self.touch(&mut part, path);
            self.push(part);
            return true;
        }
        part.does = "runs commands".into();
        let ShellOptions {
            text,
            input,
            version,
            operands,
            unknown,
        } = options(&argv[1..]);
        if version {
            part.does = "says its version".into();
            self.push(part);
            return true;
        }
        part.unknown = unknown;
        self.secrets(&mut part, argv);
        if text {
            part.does = "runs the text that it is given".into();
        }
        let file = (!text && !input).then(|| operands.first()).flatten();
        let file = file.filter(|file| !is_input(file));
        if let Some(file) = file {
            part.does = format!("runs the commands in {}", file.shown());
            part.effects.add(Effect::Execute);
            let path = self.path(file, Access::Run, false);
            if file.download || self.downloads.contains(&path.path) {
                part.tags.push("pipe-to-shell");
            }
            part.paths.push(path);
            self.push(part);
            self.perhaps_runs(file.prints.as_deref(), span);
            return true;
        }
        self.push(part);
        let saved = self.state.clone();
        let functions = std::mem::take(&mut self.functions);
        self.state.depth += 1;
        self.posix = !matches!(name, "bash" | "rbash");
        if !LIKE_BASH.contains(&name) {
            self.unknown(span, format!("{name} reads some things differently"));
        }
        match (text, operands.split_first()) {
            (true, Some((code, rest))) => {
                let rest = rest.get(1..).unwrap_or_default().into();
                self.run_text(code, Some(rest), span);
            }
            (true, None) => self.unknown(span, "`-c` has no text".into()),
            (false, _) => self.run_input(operands, span),
        }
        self.posix = false;
        self.functions = functions;
        self.state = saved;
        true
    }

    /// A shell that reads commands from standard input.
    fn run_input(&mut self, operands: Vec<Arg>, span: Span) {
        let feed = self.state.stdin.clone();
        if feed.download {
            self.downloaded_code(span);
        }
        match feed.text {
            Some(text) => {
                // Where it came from was no proof, only plain to see.
                self.unknown(span, "it runs what another command prints".into());
                self.possibly(|walk| walk.parsed(&text, Some(operands.into()), span));
            }
            None => self.unknown(span, "it runs whatever it reads".into()),
        }
    }

    /// Text that a shell runs.
    pub(super) fn run_text(&mut self, code: &Arg, positional: Option<Rc<[Arg]>>, span: Span) {
        if code.download {
            self.downloaded_code(span);
        }
        match &code.text {
            Some(text) => {
                let text = text.clone();
                self.parsed(&text, positional, code.span);
            }
            None => self.unknown(
                span,
                "text that is only known when it runs is run as commands".into(),
            ),
        }
    }

    pub(super) fn parsed(&mut self, text: &str, positional: Option<Rc<[Arg]>>, span: Span) {
        if self.nesting >= super::MAX_NESTING {
            return self.unknown(span, "it is nested too deep".into());
        }
        if !self.spend(COMMAND + 16 * text.len()) {
            return;
        }
        self.nesting += 1;
        let saved = self.state.clone();
        self.state.within.get_or_insert(span);
        self.state.inner = Some(text.into());
        self.state.words = None;
        self.state.placed = false;
        self.state.positional = positional;
        self.state.certain = false;
        let posix = std::mem::replace(&mut self.posix, false);
        let needs_bash = std::mem::replace(&mut self.needs_bash, false);
        let script = parse(text, Dialect::Posix);
        self.script(&script, text);
        if posix && self.needs_bash {
            // That is said of the text as a whole.
            (self.state.inner, self.state.words) = (saved.inner.clone(), saved.words.clone());
            self.unknown(span, "it means something else to `sh` than to bash".into());
        }
        // What another shell reads says nothing about this one.
        self.needs_bash = needs_bash || (self.needs_bash && !posix);
        self.state = saved;
        self.nesting -= 1;
    }

    /// Code in another language: tries the commands that it seems to start.
    pub(super) fn code(&mut self, code: &Arg, span: Span) {
        let Some(text) = &code.text else { return };
        if !self.spend(4 * text.len()) {
            return;
        }
        for command in started(text) {
            if self.guess() {
                self.possibly(|walk| walk.parsed(&command, None, span));
            }
        }
    }

    /// Handles a value that the program which receives it may run as a command.
    pub(super) fn perhaps_run(&mut self, value: &Arg, span: Span) {
        let Some(text) = &value.text else { return };
        // The name of a setting comes first: `core.pager=…`.
        let named = text.split_once('=');
        let named = named.filter(|(name, _)| !name.contains(char::is_whitespace));
        let text = named.map_or(text.as_str(), |(_, value)| value);
        let text = text.trim_start_matches('!').to_owned();
        if (text.contains(' ') || is_known(&text)) && self.guess() {
            self.possibly(|walk| walk.parsed(&text, None, span));
        }
    }

    /// Text that is run if it is what it looks like.
    pub(super) fn perhaps_runs(&mut self, text: Option<&str>, span: Span) {
        if let Some(text) = text
            && self.guess()
        {
            self.possibly(|walk| walk.parsed(text, None, span));
        }
    }

    /// Text for `eval` and its like: the words joined.
    pub(super) fn eval(&mut self, args: &[Arg], span: Span) {
        let line = Arg {
            span,
            ..Arg::line(args)
        };
        self.run_text(&line, self.state.positional.clone(), span);
    }
}

/// Returns the file of `bash -n FILE`, which is read and not run. Only just so:
/// a later option (`+n`, `-i`) would have it run after all.
fn only_checked<'a>(name: &str, argv: &'a [Arg]) -> Option<&'a Arg> {
    let [_, option, file, ..] = argv else {
        return None;
    };
    let start = file.prefix();
    let is_one = !(start.is_empty() || file.many || file.splits);
    let checks = LIKE_BASH.contains(&name) && option.text.as_deref() == Some("-n");
    (checks && is_one && !start.starts_with(['-', '+'])).then_some(file)
}

pub(super) fn is_input(file: &Arg) -> bool {
    let input = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
    file.text
        .as_deref()
        .is_some_and(|path| input.contains(&path))
}

struct ShellOptions {
    /// `-c`: the first operand is text to run.
    text: bool,
    /// `-s`: commands come from standard input.
    input: bool,
    version: bool,
    operands: Vec<Arg>,
    unknown: Option<String>,
}

/// Reads a shell's own words. `-c` does not take the next word but the first
/// that is no option, which is why no list of options can say it.
fn options(args: &[Arg]) -> ShellOptions {
    let mut found = ShellOptions {
        text: false,
        input: false,
        version: false,
        operands: vec![],
        unknown: None,
    };
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let Some(text) = &arg.text else {
            if arg.may_be_option() && !found.text {
                found.unknown = Some(format!("`{}` could be an option", arg.shown()));
            }
            break;
        };
        if text == "--" || text == "-" {
            at += 1;
            break;
        }
        if !text.starts_with(['-', '+']) || text.len() < 2 {
            break;
        }
        at += 1;
        match text.as_str() {
            "--version" | "--help" => found.version = true,
            "--rcfile" | "--init-file" => {
                found.unknown = Some(format!("`{text}` runs another file first"));
            }
            _ if text.starts_with("--") => {
                if !matches!(
                    text.as_str(),
                    "--login" | "--norc" | "--noprofile" | "--posix" | "--noediting"
                ) {
                    found.unknown = Some(format!("`{text}` is no option that is known"));
                }
            }
            _ => {
                found.text |= text.starts_with('-') && text.contains('c');
                found.input |= text.starts_with('-') && text.contains('s');
                let calm = text[1..].chars().all(|letter| CALM.contains(letter));
                let value = args.get(at).and_then(|arg| arg.text.as_deref());
                let calm_name = !text.ends_with('o')
                    || value.is_some_and(|name| CALM_SET_NAMES.contains(&name));
                if !calm || !calm_name {
                    found.unknown = Some(format!("`{text}` changes how it reads commands"));
                }
            }
        }
        if WITH_VALUE.contains(&text.as_str())
            || (!text.starts_with("--") && text.ends_with(['o', 'O']))
        {
            at += 1;
        }
    }
    found.operands = args[at.min(args.len())..].to_vec();
    found
}
