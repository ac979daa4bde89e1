//! What the shell does itself, without a program.

use weighlock_shell::Span;

use super::Walk;
use crate::argument::Arg;
use crate::effect::Effect;
use crate::part::Access;
use crate::paths;
use crate::pattern;

/// Builtins that change nothing that matters, whatever their words.
const IDLE: &[&str] = &[
    ":", "true", "false", "break", "continue", "return", "exit", "shift", "times", "umask",
    "ulimit", "type", "caller", "dirs", "help", "fg", "bg",
];

/// Options of `set` that do not change what later commands mean.
const CALM_SET: &str = "euxvfCbhmn";

/// Named options of `set -o` of that kind.
pub(super) const CALM_SET_NAMES: &[&str] = &[
    "pipefail",
    "errexit",
    "nounset",
    "xtrace",
    "verbose",
    "noglob",
    "noclobber",
    "notify",
    "errtrace",
    "noexec",
];

/// Options of `shopt` of that kind.
const CALM_SHOPT: &[&str] = &[
    "nullglob",
    "globstar",
    "dotglob",
    "failglob",
    "nocaseglob",
    "nocasematch",
    "inherit_errexit",
    "checkwinsize",
    "globskipdots",
];

impl Walk<'_> {
    /// Handles a builtin; returns whether it was one.
    pub(super) fn builtin(&mut self, name: &str, argv: &[Arg], span: Span) -> bool {
        let args = &argv[1..];
        self.needs_bash |= differs(name, args);
        match name {
            "cd" | "chdir" | "pushd" | "popd" => self.cd(name, argv, span),
            "eval" => {
                self.note(name, argv, span, "runs its words as commands");
                self.state.depth += 1;
                self.eval(args, span);
                self.state.depth -= 1;
            }
            "." | "source" => self.source(name, argv, span),
            "exec" => self.exec(argv, span),
            "command" | "builtin" => self.command_builtin(name, argv, span),
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                self.declare(name, argv, span)
            }
            "set" => self.set_builtin(argv, span),
            "shopt" => self.shopt(argv, span),
            "trap" => self.trap(argv, span),
            "unset" => self.unset(argv, span),
            "jobs"
                if args
                    .iter()
                    .any(|arg| !is_flags(arg, "lnprs") && arg.may_be_option()) =>
            {
                self.change(name, argv, span, "lists jobs, or runs a command with them");
            }
            "wait"
                if args
                    .iter()
                    .any(|arg| !is_flags(arg, "nf") && arg.may_be_option()) =>
            {
                self.change(name, argv, span, "waits, and may set a variable");
            }
            "jobs" | "wait" => self.note(name, argv, span, "is part of the shell"),
            "read" | "mapfile" | "readarray" | "getopts" => self.read_builtin(name, argv, span),
            "let" => self.let_builtin(argv, span),
            "printf" => self.printf_builtin(argv, span),
            "test" | "[" => self.test_builtin(name, argv, span),
            "alias"
                if args
                    .iter()
                    .any(|arg| arg.text.as_ref().is_none_or(|text| text.contains('='))) =>
            {
                self.alias(argv, span);
            }
            "alias" => self.note(name, argv, span, "shows aliases"),
            "hash"
                if args
                    .iter()
                    .all(|arg| matches!(arg.text.as_deref(), Some("-r" | "-l" | "-t"))) =>
            {
                self.note(name, argv, span, "shows where programs are");
            }
            _ if only_shows(name, args) => {
                self.note(name, argv, span, "shows something about the shell");
            }
            "unalias" | "hash" | "enable" | "bind" | "complete" | "compgen" | "compopt" | "fc"
            | "history" | "suspend" | "logout" | "disown" => {
                self.change(name, argv, span, "changes the shell itself");
            }
            _ if IDLE.contains(&name) => self.note(name, argv, span, "is part of the shell"),
            _ => return false,
        }
        true
    }

    fn alias(&mut self, argv: &[Arg], span: Span) {
        let does = "gives a command another meaning";
        // The shell ends before anything could use it; its meaning counts.
        let alone = self.alone && self.nesting == 1;
        match alone && argv.iter().all(|arg| arg.text.is_some()) {
            true => self.note("alias", argv, span, does),
            false => self.change("alias", argv, span, does),
        }
        let texts = argv[1..].iter().filter_map(|arg| arg.text.as_deref());
        for (_, meaning) in texts.filter_map(|text| text.split_once('=')) {
            match alone {
                true => self.parsed(meaning, None, span),
                false => self.perhaps_runs(Some(meaning), span),
            }
        }
    }

    fn note(&mut self, name: &str, argv: &[Arg], span: Span, does: &str) {
        let mut part = self.described(name, argv, span);
        part.does = does.into();
        self.secrets(&mut part, argv);
        self.push(part);
    }

    fn change(&mut self, name: &str, argv: &[Arg], span: Span, does: &str) {
        let mut part = self.described(name, argv, span);
        part.does = does.into();
        part.effects.add(Effect::Shell);
        self.push(part);
    }

    fn cd(&mut self, name: &str, argv: &[Arg], span: Span) {
        let target = argv[1..].iter().find(|arg| {
            !matches!(
                arg.text.as_deref(),
                Some("-P" | "-L" | "-e" | "-@" | "--" | "-n")
            )
        });
        let physical = argv.iter().any(|arg| arg.text.as_deref() == Some("-P"));
        let to = match target {
            None if name == "cd" => Some(self.place.home.clone()),
            Some(arg) => match arg.text.as_deref() {
                Some("-") | None => None,
                // Where a link leads, `..` goes up from there.
                Some(text) if text.contains("..") && physical => None,
                Some(text) if text.starts_with('/') || self.state.cwd.is_some() => {
                    Some(paths::clean(text, self.state.cwd.as_deref()))
                }
                Some(_) => None,
            },
            None => None,
        };
        let mut part = self.described(name, argv, span);
        part.does = match target {
            Some(arg) => format!("goes to {}", arg.shown()),
            None => "goes to another directory".into(),
        };
        self.secrets(&mut part, argv);
        self.push(part);
        // The kernel takes no longer path.
        self.state.cwd = to.filter(|to| to.len() < 4096);
    }

    fn source(&mut self, name: &str, argv: &[Arg], span: Span) {
        let mut part = self.described(name, argv, span);
        part.does = "runs the commands in a file".into();
        part.effects.add(Effect::Execute);
        part.effects.add(Effect::Shell);
        if let Some(file) = argv.get(1) {
            let path = self.path(file, Access::Run, false);
            let input = super::shells::is_input(file) && self.state.stdin.download;
            if input || file.download || self.downloads.contains(&path.path) {
                part.tags.push("pipe-to-shell");
            }
            part.does = format!("runs the commands in {}", file.shown());
            part.paths.push(path);
        }
        self.push(part);
        let Some(file) = argv.get(1) else { return };
        self.perhaps_runs(file.prints.as_deref(), span);
        if super::shells::is_input(file) {
            let text = self.state.stdin.text.clone();
            self.perhaps_runs(text.as_deref(), span);
        }
    }

    fn exec(&mut self, argv: &[Arg], span: Span) {
        let mut rest = &argv[1..];
        while let Some(text) = rest.first().and_then(|arg| arg.text.as_deref()) {
            match text {
                "-a" => rest = rest.get(2..).unwrap_or_default(),
                "-c" | "-l" | "-cl" | "-lc" | "--" => {
                    self.state.stripped |= text.contains('c');
                    rest = &rest[1..];
                }
                _ => break,
            }
        }
        self.note("exec", argv, span, "takes the place of the shell");
        if !rest.is_empty() {
            let functions = std::mem::take(&mut self.functions);
            self.state.depth += 1;
            self.handed(rest.to_vec(), span);
            self.state.depth -= 1;
            self.functions = functions;
        }
    }

    /// `command` and `builtin` look past functions, which only makes what
    /// runs less surprising.
    fn command_builtin(&mut self, name: &str, argv: &[Arg], span: Span) {
        let mut rest = &argv[1..];
        let mut asks = false;
        while let Some(text) = rest.first().and_then(|arg| arg.text.as_deref()) {
            match text {
                "-v" | "-V" | "-pv" | "-pV" => asks = true,
                "-p" | "--" => {}
                _ => break,
            }
            rest = &rest[1..];
        }
        if asks || rest.is_empty() {
            return self.note(name, argv, span, "says what a command is");
        }
        self.note(name, argv, span, "runs a command past functions");
        let functions = std::mem::take(&mut self.functions);
        self.state.depth += 1;
        self.handed(rest.to_vec(), span);
        self.state.depth -= 1;
        self.functions = functions;
    }

    fn declare(&mut self, name: &str, argv: &[Arg], span: Span) {
        let mut flags = String::new();
        let mut words = vec![];
        for arg in &argv[1..] {
            match &arg.text {
                Some(text) if text.starts_with(['-', '+']) && words.is_empty() => {
                    flags.push_str(text)
                }
                _ => words.push(arg),
            }
        }
        let exports = name == "export" || flags.contains('x');
        let mut part = self.described(name, argv, span);
        part.does = "sets variables".into();
        self.secrets(&mut part, argv);
        if words.is_empty() && !flags.contains(['f', 'F']) {
            part.does = "shows all variables".into();
            part.effects.add(Effect::Secret);
        }
        if flags.contains(['n', 'i']) || (flags.contains('p') && names_secret(argv)) {
            part.unknown = Some(format!("`{flags}` makes values mean something else"));
        }
        self.push(part);
        for word in words {
            self.declared(word, exports);
        }
    }

    fn declared(&mut self, word: &Arg, exports: bool) {
        let known = word.prefix();
        let (name, value) = match known.split_once('=') {
            Some((name, _)) => (
                name.trim_end_matches('+').to_owned(),
                word.rest(known.find('=').unwrap_or(0) + 1),
            ),
            None if word.text.is_some() => (known.to_owned(), Arg::anything(word.span)),
            None => {
                return self.unknown(
                    word.span,
                    "which variable it sets is only known when it runs".into(),
                );
            }
        };
        if !is_name(&name) {
            return self.unknown(
                word.span,
                format!("`{name}` is evaluated, which can run code"),
            );
        }
        if value.shape.starts_with('(') && word.text.is_some() {
            // Quoted, it is taken apart and expanded again.
            return self.unknown(
                word.span,
                format!("what {name} is set to is evaluated, which can run code"),
            );
        }
        let assigned = known.contains('=');
        if assigned {
            let variable = self.variables.entry(name.clone()).or_default();
            variable.guesses.extend(value.text.clone());
            variable.download |= value.download;
            let certain = self.state.certain;
            variable.value = (certain && variable.sites <= 1).then(|| value.clone());
        }
        if exports || crate::variables::is_loud(&name) {
            self.exported(&name, &value, word.span);
        }
    }

    fn set_builtin(&mut self, argv: &[Arg], span: Span) {
        let mut part = self.described("set", argv, span);
        part.does = "sets options of the shell".into();
        let mut args = argv[1..].iter();
        if argv.len() == 1 {
            part.does = "shows all variables".into();
            part.effects.add(Effect::Secret);
        }
        while let Some(arg) = args.next() {
            let text = arg.text.as_deref();
            match text {
                Some("--" | "-") => {
                    self.set_args = Some(args.cloned().collect());
                    break;
                }
                Some(flags) if flags.len() > 1 && flags.starts_with(['-', '+']) => {
                    let named = flags.ends_with('o');
                    let letters = flags[1..].trim_end_matches('o');
                    let calm_name = !named
                        || args.next().is_none_or(|arg| {
                            arg.text
                                .as_deref()
                                .is_some_and(|name| CALM_SET_NAMES.contains(&name))
                        });
                    if !calm_name || !letters.chars().all(|letter| CALM_SET.contains(letter)) {
                        part.effects.add(Effect::Shell);
                    }
                }
                Some(_) => {
                    let first = arg.clone();
                    let all = std::iter::once(first).chain(args.cloned());
                    self.set_args = Some(all.collect());
                    break;
                }
                None => {
                    part.effects.add(Effect::Shell);
                    break;
                }
            }
        }
        self.push(part);
    }

    fn shopt(&mut self, argv: &[Arg], span: Span) {
        let args = &argv[1..];
        let calm = args.iter().all(|arg| {
            arg.text.as_deref().is_some_and(|text| {
                matches!(text, "-s" | "-u" | "-q" | "-p") || CALM_SHOPT.contains(&text)
            })
        });
        // Without `-s` or `-u` it only tells what is set.
        let asks = args
            .iter()
            .all(|arg| is_flags(arg, "qpo") || !arg.may_be_option());
        match calm || asks {
            true => self.note("shopt", argv, span, "sets how patterns are read"),
            false => self.change("shopt", argv, span, "changes how the shell reads commands"),
        }
    }

    fn trap(&mut self, argv: &[Arg], span: Span) {
        self.note(
            "trap",
            argv,
            span,
            "says what to do at a signal or at the end",
        );
        let args = match argv.get(1).and_then(|arg| arg.text.as_deref()) {
            Some("--") => &argv[2..],
            Some("-p" | "-l") | None if argv.get(1).is_none_or(|arg| arg.text.is_some()) => return,
            _ => &argv[1..],
        };
        if let [action, rest @ ..] = args
            && (!rest.is_empty() || action.many)
            && !matches!(action.text.as_deref(), Some("" | "-"))
        {
            let action = action.clone();
            self.aside(|walk| walk.run_text(&action, None, span));
        }
    }

    fn unset(&mut self, argv: &[Arg], span: Span) {
        let calm = argv[1..].iter().all(|arg| {
            arg.text.as_deref().is_some_and(|text| {
                text == "-v" || (is_name(text) && !crate::variables::is_loud(text))
            })
        });
        let functions = argv[1..].iter().any(|arg| {
            arg.text
                .as_ref()
                .is_none_or(|text| self.functions.contains_key(text))
        });
        match calm && !functions {
            true => self.note("unset", argv, span, "forgets variables"),
            false => self.change("unset", argv, span, "forgets variables or functions"),
        }
    }

    /// `read` and its like take names of variables, and evaluate what is in
    /// brackets behind one.
    fn read_builtin(&mut self, name: &str, argv: &[Arg], span: Span) {
        let mut part = self.described(name, argv, span);
        part.does = "reads into variables".into();
        if argv[1..].iter().any(|arg| {
            arg.text.as_ref().is_none_or(|text| {
                // A name may be glued to the option that takes it.
                text.contains('[')
                    || (text.starts_with('-') && text[1..].contains('a') && !text.ends_with('a'))
            })
        }) {
            part.unknown = Some("the name of a variable is evaluated, which can run code".into());
        }
        let calls = |arg: &Arg| arg.shape.starts_with('-') && arg.shape.contains('C');
        if name != "read" && argv[1..].iter().any(calls) {
            part.effects.add(Effect::Execute);
        }
        self.push(part);
        let names: Vec<String> = argv[1..]
            .iter()
            .filter_map(|arg| arg.text.clone())
            .filter(|text| is_name(text))
            .collect();
        for name in names {
            if crate::variables::is_loud(&name) {
                self.exported(&name, &Arg::anything(span), span);
            }
            self.assign_unknown(&name);
            let download = self.state.stdin.download;
            self.variables.entry(name).or_default().download |= download;
        }
    }

    fn let_builtin(&mut self, argv: &[Arg], span: Span) {
        let mut part = self.described("let", argv, span);
        part.does = "calculates".into();
        // A name in it stands for its value, which is evaluated again.
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let number = |name: &str| {
            let known = self.variables.get(name);
            digits(name) || known.is_some_and(|variable| variable.number && !self.wild)
        };
        let plain = argv[1..].iter().all(|arg| {
            arg.text.as_ref().is_some_and(|text| {
                let names = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                !text.contains(['[', '$', '`']) && { names }.all(number)
            })
        });
        if !plain {
            part.unknown = Some("an expression can run code".into());
        }
        self.push(part);
        for arg in &argv[1..] {
            let name = arg
                .shape
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next();
            self.assign_unknown(name.unwrap_or_default());
        }
    }

    fn printf_builtin(&mut self, argv: &[Arg], span: Span) {
        let mut part = self.described("printf", argv, span);
        part.does = "prints text".into();
        self.secrets(&mut part, argv);
        let first = argv.get(1);
        if first.is_some_and(|arg| arg.may_be_option() && arg.text.as_deref() != Some("--")) {
            part.effects.add(Effect::Shell);
            part.unknown = Some("it may set a variable".into());
        }
        if argv[1..].iter().take(2).any(|arg| counts(&arg.shape)) {
            part.unknown = Some("`%n` sets a variable".into());
        }
        self.push(part);
    }

    fn test_builtin(&mut self, name: &str, argv: &[Arg], span: Span) {
        let mut part = self.described(name, argv, span);
        part.does = "compares".into();
        self.secrets(&mut part, argv);
        let evaluates = argv.windows(2).any(|pair| {
            matches!(pair[0].text.as_deref(), Some("-v" | "-R"))
                && pair[1].text.as_ref().is_none_or(|text| text.contains('['))
        });
        if evaluates || may_evaluate(&argv[1..]) {
            part.unknown = Some("the name of a variable is evaluated, which can run code".into());
        }
        self.push(part);
    }
}

/// Returns whether a builtin that can change the shell only shows something
/// with these words.
fn only_shows(name: &str, args: &[Arg]) -> bool {
    let flags = |letters: &str| args.iter().all(|arg| is_flags(arg, letters));
    let number = |arg: &Arg| {
        let digits = arg
            .text
            .as_deref()
            .map(|text| text.strip_prefix('-').unwrap_or(text));
        digits.is_some_and(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
    };
    match name {
        "history" => args.iter().all(number) && args.len() <= 1,
        "fc" => {
            let lists = args.first().is_some_and(|arg| {
                is_flags(arg, "lnr") && arg.text.as_deref().is_some_and(|text| text.contains('l'))
            });
            lists
                && args[1..]
                    .iter()
                    .all(|arg| is_flags(arg, "nr") || number(arg))
        }
        "enable" => flags("anps"),
        "bind" => !args.is_empty() && flags("lpPsSvVX"),
        "complete" => match args {
            [] => true,
            [flag, rest @ ..] => {
                flag.text.as_deref() == Some("-p") && rest.iter().all(|arg| !arg.may_be_option())
            }
        },
        // `-F`, `-C` and `-W` run code.
        "compgen" => match args {
            [action, kind, rest @ ..] if action.text.as_deref() == Some("-A") => {
                rest.len() <= 1 && { rest.iter().chain([kind]) }.all(|arg| !arg.may_be_option())
            }
            [kind, rest @ ..] => {
                is_flags(kind, "abcdefgjksuv")
                    && rest.len() <= 1
                    && rest.iter().all(|arg| !arg.may_be_option())
            }
            [] => true,
        },
        _ => false,
    }
}

/// Returns whether a word is a dash and some of these letters.
fn is_flags(arg: &Arg, letters: &str) -> bool {
    let flags = arg.text.as_deref().and_then(|text| text.strip_prefix('-'));
    flags.is_some_and(|flags| !flags.is_empty() && flags.chars().all(|flag| letters.contains(flag)))
}

/// Returns whether a format of `printf` has `%n`, however it is written.
fn counts(format: &str) -> bool {
    format.split('%').skip(1).any(|rest| {
        rest.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #.*'hjlLqtz".contains(c))
            .starts_with('n')
    })
}

/// Returns whether `-v` and the name of a variable may come out of words that
/// are only known when they run.
fn may_evaluate(args: &[Arg]) -> bool {
    let unknown = |arg: &Arg| arg.text.is_none() && arg.may_be_option();
    let found = |arg: &Arg, name| arg.many && pattern::overlap(&arg.shape, name);
    let splits = |arg: &Arg| arg.splits || found(arg, "-v") || found(arg, "-R");
    let names = |arg: &Arg| arg.text.as_ref().is_none_or(|text| text.contains('['));
    let mut pairs = args.windows(2);
    args.iter().any(splits) || pairs.any(|pair| unknown(&pair[0]) && names(&pair[1]))
}

fn names_secret(argv: &[Arg]) -> bool {
    let mut names = argv.iter().filter_map(|arg| arg.text.as_deref());
    names.any(crate::variables::is_secret)
}

/// Returns whether shells other than bash lack a builtin, or take its words
/// differently.
fn differs(name: &str, args: &[Arg]) -> bool {
    let any = |found: fn(&str) -> bool| args.iter().any(|arg| found(&arg.shape));
    match name {
        "declare" | "typeset" | "source" | "shopt" | "mapfile" | "readarray" | "let" | "pushd"
        | "popd" | "dirs" | "enable" | "caller" | "disown" | "builtin" | "compgen" | "history"
        | "help" | "suspend" => true,
        "echo" => any(|text| text.contains('\\') || matches!(text, "-e" | "-E" | "-ne" | "-en")),
        "test" | "[" => any(|text| matches!(text, "==" | "=~" | "-v" | "<" | ">")),
        "type" | "read" => any(|text| text.starts_with('-') && text != "-r"),
        "trap" => any(|text| matches!(text, "ERR" | "DEBUG" | "RETURN")),
        "set" => any(|text| text == "pipefail"),
        "printf" => any(|text| text.contains("%q") || text.starts_with("-v")),
        _ => false,
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
