//! Reads a command line as its program would, by what is known about it.

mod operand;
mod option;
mod place;
mod query;

use crate::argument::{Arg, UNKNOWN};
use crate::effect::{Effect, Effects};
use crate::knowledge::{Obeys, OperandRole, OptionSyntax, Program};
use crate::part::Given;
pub(crate) use place::places;

/// A command line, read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The subcommands, outermost first.
    pub(crate) subcommand: Vec<&'static str>,
    /// The options given.
    pub(crate) options: Vec<Given>,
    /// What happens whatever the words are.
    pub(crate) effects: Effects,
    /// Groups it belongs to.
    pub(crate) tags: Vec<&'static str>,
    /// The sentence for it.
    pub(crate) does: &'static str,
    /// The words that mean something, in order.
    pub(crate) uses: Vec<Use>,
    /// Values of options that run something.
    pub(crate) risky: Vec<Arg>,
    /// The settings of a project that it obeys.
    pub(crate) obeys: Vec<Obeys>,
    /// It is only asked for its help or its version.
    pub(crate) help: bool,
    /// An option has it do something else than usual.
    pub(crate) special: bool,
    /// Why more could happen.
    pub(crate) unknown: Option<String>,
}

/// A word, or the words of a command, in its role.
#[derive(Debug)]
pub(crate) struct Use {
    pub(crate) role: OperandRole,
    pub(crate) args: Vec<Arg>,
}

/// Reads the arguments of a program.
pub(crate) fn read(program: &'static Program, args: &[Arg]) -> Reading {
    let rewritten = option::old_style(program, args);
    let mut reader = ArgumentReader {
        program,
        inherited: vec![],
        args: rewritten.as_deref().unwrap_or(args),
        at: 0,
        help: None,
        modes: vec![],
        globbed: false,
        reading: Reading::default(),
    };
    reader.level();
    if query::only_asks(program, &reader.reading, args) {
        reader.reading.only_asks();
    }
    reader.reading
}

struct ArgumentReader<'a> {
    /// What the words are for: the program, then its subcommand.
    program: &'static Program,
    /// The programs above whose options are read here too.
    inherited: Vec<&'static Program>,
    args: &'a [Arg],
    /// The word that comes next.
    at: usize,
    /// What asking for help does, as the program or a subcommand says.
    help: Option<u16>,
    /// What the options of this program make of it.
    modes: Vec<&'static str>,
    /// A pattern that the shell expands stood where a value stands.
    globbed: bool,
    reading: Reading,
}

impl<'a> ArgumentReader<'a> {
    fn level(&mut self) {
        let program = self.program;
        self.reading.does = program.does;
        self.reading.tags.extend(&program.tags);
        self.reading.obeys.extend(&program.obeys);
        self.help = program.help.or(self.help);
        if program.tags.contains(&"response") {
            self.args[self.at..]
                .iter()
                .for_each(|arg| self.check_response(arg));
        }
        for pattern in &program.code {
            let may_be = self.args[self.at..]
                .iter()
                .find(|arg| is_code(pattern, arg));
            may_be.into_iter().for_each(|arg| {
                self.doubt(format!("`{}` may be code that it runs", arg.shown()));
            });
        }
        if let [only] = &self.args[self.at..]
            && matches!(only.text.as_deref(), Some("--help" | "--version"))
            && program.style != OptionSyntax::None
            && let Some(effects) = self.help.or_else(|| harmless_help(program))
        {
            self.reading.does = "says how it is used";
            self.reading.help = true;
            self.always(effects);
            return;
        }
        match program.style {
            OptionSyntax::Find => self.expression(),
            OptionSyntax::Keyed => self.keyed(),
            _ => self.words(),
        }
    }

    fn next(&mut self) -> Option<&'a Arg> {
        let arg = self.args.get(self.at)?;
        self.at += 1;
        Some(arg)
    }

    fn words(&mut self) {
        let program = self.program;
        let first_option = self.reading.options.len();
        let mut operands = vec![];
        let mut ended = program.style == OptionSyntax::None;
        let mut passed = false;
        while let Some(arg) = self.next() {
            if !ended && arg.text.as_deref() == Some("--") {
                ended = true;
                continue;
            }
            if !ended && self.option(arg) {
                continue;
            }
            if !program.subs.is_empty() && operands.is_empty() {
                match find_sub(program, arg) {
                    Some(sub) => return self.sub(sub),
                    None if !passed && self.is_value(program) => {
                        passed = true;
                        continue;
                    }
                    None if program.operands.is_empty() => return self.no_sub(arg),
                    // A word of its own, where both are possible.
                    None => {}
                }
            }
            self.check_count(arg, ended, operands.len());
            operands.push(arg.clone());
            ended |= program.style == OptionSyntax::Posix;
        }
        if !program.subs.is_empty() && operands.is_empty() && self.modes.is_empty() {
            return self.bare(first_option);
        }
        self.assign(operands);
    }

    fn sub(&mut self, sub: &'static Program) {
        self.always(self.program.effects);
        self.reading.subcommand.push(sub.names[0]);
        if self.program.global {
            self.inherited.push(self.program);
        }
        self.program = sub;
        self.modes.clear();
        self.level();
    }

    /// Returns whether a word before the subcommand may be the value of an option
    /// that is not known.
    fn is_value(&self, program: &'static Program) -> bool {
        let mut rest = self.args[self.at..].iter();
        self.reading.unknown.is_some() && rest.any(|arg| find_sub(program, arg).is_some())
    }

    fn no_sub(&mut self, arg: &Arg) {
        self.always(self.program.effects);
        self.doubt(match &arg.text {
            Some(name) => format!("`{name}` is no subcommand that is known"),
            None => "the subcommand is only known when it runs".into(),
        });
    }

    fn bare(&mut self, first_option: usize) {
        self.always(self.program.effects);
        match self.program.bare {
            Some(effects) => self.always(effects),
            // An option such as `--version` is all that was asked for.
            None if self.reading.options.len() > first_option => {}
            None => self.doubt("there is no subcommand".into()),
        }
    }

    /// `find`: where to begin, then an expression.
    fn expression(&mut self) {
        let mut begun = false;
        let mut operands = vec![];
        while let Some(arg) = self.next() {
            let known = arg.prefix();
            match arg.text.as_deref() {
                Some("(" | ")" | "!" | ",") => begun = true,
                _ if known.starts_with('-') && known.len() > 1 => {
                    begun |= !matches!(known, "-H" | "-L" | "-P");
                    self.exact(arg);
                }
                _ => {
                    if begun || (arg.text.is_none() && arg.may_be_option()) {
                        self.doubt(format!("`{}` is not understood where it is", arg.shown()));
                    }
                    operands.push(arg.clone());
                }
            }
        }
        self.assign(operands);
    }

    /// `dd`: every word is `key=value`.
    fn keyed(&mut self) {
        self.always(self.program.effects);
        while let Some(arg) = self.next() {
            let Some((key, _)) = arg.prefix().split_once('=') else {
                self.stranger(arg);
                continue;
            };
            match self.find(&format!("{key}=")) {
                Some(found) => self.take(found, Some(arg.rest(key.len() + 1))),
                None => self.stranger(arg),
            }
        }
    }

    /// `@FILE` stands for all that the file says, which may be options.
    fn check_response(&mut self, arg: &Arg) {
        let may_be = match &arg.text {
            Some(text) => text.starts_with('@'),
            None => arg.prefix().is_empty() || arg.prefix().starts_with('@'),
        };
        if may_be {
            self.doubt(format!(
                "`{}` may name a file with further options",
                arg.shown()
            ));
        }
    }

    fn always(&mut self, effects: u16) {
        self.reading.effects.extend(Effects::of(effects));
    }

    fn doubt(&mut self, why: String) {
        self.reading.unknown.get_or_insert(why);
    }
}

/// Returns what asking for help does where nothing is said about it. Most
/// programs read their options first. Those that run other code may do that
/// before: a copy of themselves in the project, its settings, its plug-ins.
fn harmless_help(program: &Program) -> Option<u16> {
    let effects = Effects::of(program.effects);
    let sure = !effects.has(Effect::Privilege) && !effects.has(Effect::Execute);
    sure.then_some(Effect::Read as u16)
}

/// Returns whether a word, or the value that is attached to it, may be one that
/// the program runs: `"x*"` begins so, in capitals or not, and `"*x"` ends so.
fn is_code(pattern: &str, arg: &Arg) -> bool {
    let Some(end) = pattern.strip_prefix('*') else {
        let start = pattern.trim_end_matches('*').to_ascii_lowercase();
        let may_begin = |known: &str| match &arg.text {
            Some(_) => known.starts_with(&start),
            None => arg.splits || known.starts_with(&start) || start.starts_with(known),
        };
        let known = arg.prefix().to_ascii_lowercase();
        return may_begin(&known)
            || known
                .split_once('=')
                .is_some_and(|(_, value)| may_begin(value));
    };
    let shape = arg.shape.trim_end();
    let open = arg.text.is_none() && (arg.splits || shape.ends_with([UNKNOWN, '*', '?', ']', '}']));
    open || shape.ends_with(end)
}

/// Finds a subcommand by its name; a name that ends in `*` is any that begins
/// so.
fn find_sub(program: &'static Program, arg: &Arg) -> Option<&'static Program> {
    let name = arg.text.as_deref()?;
    program.subs.iter().find(|sub| {
        sub.names.iter().any(|known| match known.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => *known == name,
        })
    })
}
