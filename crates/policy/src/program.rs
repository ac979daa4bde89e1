//! Reads a command line as its program would, by what is known about it.

use crate::argument::Arg;
use crate::effect::{Effect, Effects};
use crate::knowledge::{Choice, Count, Mode, Operand, Program, Role, Style};
use crate::part::Given;

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
    /// How many operands there were.
    pub(crate) operands: usize,
    /// An option has it do something else than usual.
    pub(crate) special: bool,
    /// Why more could happen.
    pub(crate) unknown: Option<String>,
}

/// A word, or the words of a command, in its role.
#[derive(Debug)]
pub(crate) struct Use {
    pub(crate) role: Role,
    pub(crate) args: Vec<Arg>,
}

/// Reads the arguments of a program.
pub(crate) fn read(program: &'static Program, args: &[Arg]) -> Reading {
    let mut reader = Reader {
        reading: Reading::default(),
        inherited: vec![],
        harmless: false,
    };
    reader.level(program, args);
    reader.reading
}

struct Reader {
    reading: Reading,
    /// Options of the programs above that are read here too.
    inherited: Vec<&'static Program>,
    /// The program being read does no harm, whatever its words are.
    harmless: bool,
}

/// An option, and the name that it was given by.
#[derive(Clone, Copy)]
struct Found {
    choice: &'static Choice,
    name: &'static str,
}

/// What an argument turned out to be.
enum Step {
    /// An option; so many words are used up.
    Taken(usize),
    /// No option.
    Operand,
}

impl Reader {
    fn level(&mut self, program: &'static Program, args: &[Arg]) {
        self.reading.does = program.does;
        self.reading.tags.extend(&program.tags);
        if let [only] = args
            && matches!(only.text.as_deref(), Some("--help" | "--version"))
            && program.style != Style::None
            && !Effects::of(program.effects).has(Effect::Privilege)
        {
            self.reading.does = "says how it is used";
            return;
        }
        self.harmless = program.harmless;
        match program.style {
            Style::Find => self.expression(program, args),
            Style::Keyed => self.keyed(program, args),
            _ => self.words(program, args),
        }
    }

    fn words(&mut self, program: &'static Program, args: &[Arg]) {
        let rewritten;
        let args = match old_style(program, args) {
            Some(args) => {
                rewritten = args;
                rewritten.as_slice()
            }
            None => args,
        };
        let first_option = self.reading.options.len();
        let mut operands = vec![];
        let mut ended = program.style == Style::None;
        let mut modes = vec![];
        let mut at = 0;
        while at < args.len() {
            let arg = &args[at];
            if !ended {
                if arg.text.as_deref() == Some("--") {
                    ended = true;
                    at += 1;
                    continue;
                }
                if let Step::Taken(count) = self.option(program, args, at, &mut modes) {
                    at += count;
                    continue;
                }
            }
            if !program.subs.is_empty() && operands.is_empty() {
                match sub(program, arg) {
                    Some(sub) => return self.sub(program, sub, &args[at + 1..]),
                    None if program.operands.is_empty() => return self.no_sub(program, arg),
                    // A word of its own, where both are possible.
                    None => {}
                }
            }
            self.check_count(program, arg, ended, operands.len());
            operands.push(arg.clone());
            ended |= program.style == Style::Posix;
            at += 1;
        }
        if !program.subs.is_empty() && operands.is_empty() && modes.is_empty() {
            return self.bare(program, first_option);
        }
        let mode = self.mode(program, &modes);
        self.assign(program, mode, operands);
    }

    /// A word that could become several could move the others to other places.
    fn check_count(&mut self, program: &'static Program, arg: &Arg, ended: bool, at: usize) {
        if program.harmless || program.style == Style::None {
            return;
        }
        if !ended && arg.text.is_none() && arg.may_be_option() {
            self.doubt(format!(
                "`{}` is only known when it runs, and could be an option",
                arg.shown()
            ));
        } else if arg.many && !alike_from(program, at) {
            self.doubt(format!("`{}` could be several words", arg.shown()));
        }
    }

    fn doubt(&mut self, why: String) {
        self.reading.unknown.get_or_insert(why);
    }

    fn sub(&mut self, program: &'static Program, sub: &'static Program, args: &[Arg]) {
        self.reading.effects.extend(Effects::of(program.effects));
        self.reading.subcommand.push(sub.names[0]);
        if program.global {
            self.inherited.push(program);
        }
        self.level(sub, args);
    }

    fn no_sub(&mut self, program: &'static Program, arg: &Arg) {
        self.reading.effects.extend(Effects::of(program.effects));
        self.doubt(match &arg.text {
            Some(name) => format!("`{name}` is no subcommand that is known"),
            None => "the subcommand is only known when it runs".into(),
        });
    }

    fn bare(&mut self, program: &'static Program, first_option: usize) {
        self.reading.effects.extend(Effects::of(program.effects));
        match program.bare {
            Some(effects) => self.reading.effects.extend(Effects::of(effects)),
            // An option such as `--version` is all that was asked for.
            None if self.reading.options.len() > first_option => {}
            None => self.doubt("there is no subcommand".into()),
        }
    }

    fn option(
        &mut self,
        program: &'static Program,
        args: &[Arg],
        at: usize,
        modes: &mut Vec<&'static str>,
    ) -> Step {
        let arg = &args[at];
        let known = arg.prefix();
        let plus = known.starts_with('+') && self.find(program, "+*").is_some();
        if (!known.starts_with('-') && !plus) || (known == "-" && arg.text.is_some()) {
            return Step::Operand;
        }
        if plus {
            let choice = self.find(program, "+*").expect("it was found above");
            return self.take(choice, Some(arg.rest(1)), args, at, modes);
        }
        if program.style == Style::Exact {
            self.exact(program, args, at, modes)
        } else if known.starts_with("--") {
            self.long(program, args, at, modes)
        } else {
            self.short(program, args, at, modes)
        }
    }

    fn exact(
        &mut self,
        program: &'static Program,
        args: &[Arg],
        at: usize,
        modes: &mut Vec<&'static str>,
    ) -> Step {
        let arg = &args[at];
        let known = arg.prefix();
        if let (Some(text), Some(choice)) = (&arg.text, self.find(program, known)) {
            debug_assert_eq!(text, known);
            return self.take(choice, None, args, at, modes);
        }
        if let Some((name, _)) = known.split_once('=')
            && let Some(choice) = self.find(program, name)
            && !choice.choice.values.is_empty()
        {
            return self.take(choice, Some(arg.rest(name.len() + 1)), args, at, modes);
        }
        if is_number(arg)
            && let Some(choice) = self.find(program, "-NUM")
        {
            return self.take(choice, None, args, at, modes);
        }
        self.stranger(arg)
    }

    fn long(
        &mut self,
        program: &'static Program,
        args: &[Arg],
        at: usize,
        modes: &mut Vec<&'static str>,
    ) -> Step {
        let arg = &args[at];
        let (name, value) = match arg.prefix().split_once('=') {
            Some((name, _)) => (name, Some(arg.rest(name.len() + 1))),
            None if arg.text.is_some() => (arg.prefix(), None),
            None => return self.stranger(arg),
        };
        match self
            .find(program, name)
            .or_else(|| self.abbreviated(program, name))
        {
            Some(found) if value.is_some() && found.choice.values.is_empty() => self.stranger(arg),
            Some(found) => self.take(found, value, args, at, modes),
            None => self.stranger(arg),
        }
    }

    fn short(
        &mut self,
        program: &'static Program,
        args: &[Arg],
        at: usize,
        modes: &mut Vec<&'static str>,
    ) -> Step {
        let arg = &args[at];
        let known = arg.prefix().to_owned();
        if arg.text.is_some()
            && known.len() > 2
            && let Some(choice) = self.find(program, &known)
        {
            return self.take(choice, None, args, at, modes);
        }
        if is_number(arg)
            && let Some(choice) = self.find(program, "-NUM")
        {
            return self.take(choice, None, args, at, modes);
        }
        for (offset, letter) in known.char_indices().skip(1) {
            let next = offset + letter.len_utf8();
            let mut buffer = [b'-'; 5];
            let name = {
                letter.encode_utf8(&mut buffer[1..]);
                std::str::from_utf8(&buffer[..=letter.len_utf8()]).unwrap_or("-")
            };
            let Some(found) = self.find(program, name) else {
                let digits = known[offset..].bytes().all(|byte| byte.is_ascii_digit());
                if digits && arg.text.is_some() && self.find(program, "-NUM").is_some() {
                    return Step::Taken(1);
                }
                return self.stranger(arg);
            };
            let choice = found.choice;
            let attached = arg.text.is_none() || next < known.len();
            if !choice.values.is_empty() && attached {
                return self.take(found, Some(arg.rest(next)), args, at, modes);
            }
            if !choice.values.is_empty() && !choice.attached {
                return self.take(found, None, args, at, modes);
            }
            self.note(found, None, modes);
        }
        if arg.text.is_none() {
            return self.stranger(arg);
        }
        Step::Taken(1)
    }

    fn stranger(&mut self, arg: &Arg) -> Step {
        self.doubt(match &arg.text {
            Some(text) => format!("`{text}` is no option that is known"),
            None => format!(
                "`{}` is only known when it runs, and could be any option",
                arg.shown()
            ),
        });
        Step::Taken(1)
    }

    /// Takes an option and its values. The first may be attached to it.
    fn take(
        &mut self,
        found: Found,
        attached: Option<Arg>,
        args: &[Arg],
        at: usize,
        modes: &mut Vec<&'static str>,
    ) -> Step {
        let choice = found.choice;
        let value = attached.as_ref().or_else(|| args.get(at + 1));
        let value = (!choice.values.is_empty() && (!choice.attached || attached.is_some()))
            .then_some(value)
            .flatten();
        self.note(found, value, modes);
        let mut next = at + 1;
        if choice.attached {
            if let (Some(value), Some(role)) = (attached, choice.values.first()) {
                self.use_one(*role, value);
            }
            return Step::Taken(1);
        }
        let mut attached = attached;
        for role in &choice.values {
            if *role == Role::ArgvUntil || *role == Role::Argv {
                let rest = &args[next.min(args.len())..];
                let end = match role {
                    Role::Argv => rest.len(),
                    _ => end_of_command(rest),
                };
                self.reading.uses.push(Use {
                    role: *role,
                    args: rest[..end].to_vec(),
                });
                next += (end + 1).min(rest.len());
                continue;
            }
            let value = match attached.take() {
                Some(value) => value,
                None => match args.get(next) {
                    Some(value) => {
                        next += 1;
                        value.clone()
                    }
                    None => {
                        self.doubt(format!("`{}` has no value", choice.names[0]));
                        break;
                    }
                },
            };
            if value.many && !self.harmless {
                self.doubt(format!("`{}` could be several words", value.shown()));
            }
            self.use_one(*role, value);
        }
        Step::Taken(next - at)
    }

    fn note(&mut self, found: Found, value: Option<&Arg>, modes: &mut Vec<&'static str>) {
        let choice = found.choice;
        let effects = Effects::of(choice.effects);
        self.reading.effects.extend(effects);
        if effects.has(Effect::Execute) {
            self.reading.risky.extend(value.cloned());
        }
        self.reading.tags.extend(&choice.tags);
        if let Some(mode) = choice.mode
            && !modes.contains(&mode)
        {
            modes.push(mode);
        }
        self.reading.options.push(Given {
            name: found.name,
            names: &choice.names,
            value: value.and_then(|value| value.text.clone()),
            gloss: choice.gloss,
        });
    }

    fn use_one(&mut self, role: Role, arg: Arg) {
        if !matches!(role, Role::Number | Role::Any) {
            self.reading.uses.push(Use {
                role,
                args: vec![arg],
            });
        }
    }

    fn find(&self, program: &'static Program, name: &str) -> Option<Found> {
        let mut options = self.tables(program).flat_map(|table| &table.options);
        options.find_map(|choice| {
            let name = choice.names.iter().find(|known| **known == name)?;
            Some(Found { choice, name })
        })
    }

    /// Finds the only option that begins so, as GNU programs do.
    fn abbreviated(&self, program: &'static Program, start: &str) -> Option<Found> {
        if start.len() < 3 {
            return None;
        }
        let mut found: Option<Found> = None;
        for choice in self.tables(program).flat_map(|table| &table.options) {
            if let Some(name) = choice.names.iter().find(|name| name.starts_with(start)) {
                if found.is_some_and(|other| !std::ptr::eq(other.choice, choice)) {
                    return None;
                }
                found = Some(Found { choice, name });
            }
        }
        found
    }

    fn tables(&self, program: &'static Program) -> impl Iterator<Item = &'static Program> {
        std::iter::once(program).chain(self.inherited.iter().copied())
    }

    fn mode(&mut self, program: &'static Program, modes: &[&'static str]) -> Option<&'static Mode> {
        match modes {
            [] => None,
            [only] => program.modes.iter().find(|mode| mode.name == *only),
            _ => {
                self.doubt("its options contradict each other".into());
                None
            }
        }
    }

    fn assign(
        &mut self,
        program: &'static Program,
        mode: Option<&'static Mode>,
        operands: Vec<Arg>,
    ) {
        let mut roles = program.operands.as_slice();
        let mut effects = program.effects;
        self.reading.special = mode.is_some();
        if let Some(mode) = mode {
            if let Some(does) = &mode.does {
                self.reading.does = does;
            }
            effects = mode.effects.unwrap_or(effects);
            if let Some(own) = &mode.operands {
                roles = own;
            }
            self.reading.tags.extend(&mode.tags);
        }
        self.reading.effects.extend(Effects::of(effects));
        self.reading.operands = operands.len();
        if operands.is_empty() && roles.iter().all(|role| role.role != Role::Argv) {
            self.reading
                .effects
                .extend(Effects::of(program.bare.unwrap_or(0)));
        }
        let mut left = operands.len();
        let mut words = operands.into_iter().peekable();
        let mut needed: usize = roles.iter().filter(|role| role.count == Count::One).count();
        for role in roles {
            if role.role == Role::Argv {
                let args: Vec<Arg> = words.by_ref().collect();
                match args.is_empty() {
                    true => self
                        .reading
                        .effects
                        .extend(Effects::of(program.bare.unwrap_or(0))),
                    false => self.operand(role, args),
                }
                return;
            }
            let count = match role.count {
                Count::One => {
                    needed -= 1;
                    if left == 0 && !program.harmless && program.bare.is_none() {
                        self.doubt("a word is missing".into());
                    }
                    left.min(1)
                }
                Count::Maybe => left.saturating_sub(needed).min(1),
                Count::Any => left.saturating_sub(needed),
            };
            for _ in 0..count {
                if role.role == Role::Env && !words.peek().is_some_and(is_assignment) {
                    break;
                }
                if let Some(word) = words.next() {
                    left -= 1;
                    self.operand(role, vec![word]);
                }
            }
        }
        if let Some(extra) = words.next() {
            self.doubt(format!(
                "`{}` is a word more than it is known to take",
                extra.shown()
            ));
        }
    }

    fn operand(&mut self, operand: &Operand, args: Vec<Arg>) {
        self.reading.effects.extend(Effects::of(operand.effects));
        if !matches!(operand.role, Role::Any | Role::Number) {
            self.reading.uses.push(Use {
                role: operand.role,
                args,
            });
        }
    }

    /// `find`: where to begin, then an expression.
    fn expression(&mut self, program: &'static Program, args: &[Arg]) {
        let mut modes = vec![];
        let mut begun = false;
        let mut operands = vec![];
        let mut at = 0;
        while at < args.len() {
            let arg = &args[at];
            let known = arg.prefix();
            match arg.text.as_deref() {
                Some("(" | ")" | "!" | ",") => {
                    begun = true;
                    at += 1;
                }
                _ if known.starts_with('-') && known.len() > 1 => {
                    begun |= !matches!(known, "-H" | "-L" | "-P");
                    match self.exact(program, args, at, &mut modes) {
                        Step::Taken(count) => at += count,
                        Step::Operand => at += 1,
                    }
                }
                _ => {
                    if begun || (arg.text.is_none() && arg.may_be_option()) {
                        self.doubt(format!("`{}` is not understood where it is", arg.shown()));
                    }
                    operands.push(arg.clone());
                    at += 1;
                }
            }
        }
        let mode = self.mode(program, &modes);
        self.assign(program, mode, operands);
    }

    /// `dd`: every word is `key=value`.
    fn keyed(&mut self, program: &'static Program, args: &[Arg]) {
        let mut modes = vec![];
        self.reading.effects.extend(Effects::of(program.effects));
        for arg in args {
            let Some((key, _)) = arg.prefix().split_once('=') else {
                self.stranger(arg);
                continue;
            };
            let value = arg.rest(key.len() + 1);
            match self.find(program, &format!("{key}=")) {
                Some(choice) => drop(self.take(choice, Some(value), &[], 0, &mut modes)),
                None => drop(self.stranger(arg)),
            }
        }
    }
}

/// Finds a subcommand by its name; a name that ends in `*` is any that begins
/// so.
fn sub(program: &'static Program, arg: &Arg) -> Option<&'static Program> {
    let name = arg.text.as_deref()?;
    program.subs.iter().find(|sub| {
        sub.names.iter().any(|known| match known.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => *known == name,
        })
    })
}

/// `tar xzf a b`: letters without a dash, whose values follow in order.
fn old_style(program: &'static Program, args: &[Arg]) -> Option<Vec<Arg>> {
    if !program.tags.contains(&"old-style") {
        return None;
    }
    let first = args.first()?;
    let letters = first.text.as_ref()?;
    if letters.is_empty() || !letters.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    let mut rest = args[1..].iter();
    let mut out = vec![];
    for letter in letters.chars() {
        let name = format!("-{letter}");
        let takes = program
            .options
            .iter()
            .any(|choice| choice.names.contains(&name.as_str()) && !choice.values.is_empty());
        out.push(Arg::known(name, first.span));
        if takes {
            out.extend(rest.next().cloned());
        }
    }
    out.extend(rest.cloned());
    Some(out)
}

fn end_of_command(args: &[Arg]) -> usize {
    let text = |at: usize| args[at].text.as_deref();
    let ends = |at: &usize| match text(*at) {
        Some(";") => true,
        Some("+") => *at > 0 && text(at - 1) == Some("{}"),
        _ => false,
    };
    (0..args.len()).find(ends).unwrap_or(args.len())
}

fn is_number(arg: &Arg) -> bool {
    arg.text
        .as_ref()
        .is_some_and(|text| text.len() > 1 && text[1..].bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_assignment(arg: &Arg) -> bool {
    arg.prefix()
        .split_once('=')
        .is_some_and(|(name, _)| !name.is_empty())
}

/// Returns whether all words from one on have the same role, in every mode.
fn alike_from(program: &Program, at: usize) -> bool {
    let alike = |operands: &[Operand]| match operands {
        [first @ .., last] => last.count == Count::Any && first.len() <= at,
        [] => false,
    };
    let modes = program.modes.iter();
    alike(&program.operands) && { modes }.all(|mode| mode.operands.as_deref().is_none_or(alike))
}
