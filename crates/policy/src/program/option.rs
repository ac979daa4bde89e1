//! The options of a program, and the values they take.

use super::{ArgumentReader, Use};
use crate::argument::{Arg, UNKNOWN};
use crate::effect::{Effect, Effects};
use crate::knowledge::{OperandRole, OptionSpec, OptionSyntax, Program};
use crate::part::Given;
use crate::pattern::overlap;

/// An option, and the name that it was given by.
#[derive(Clone, Copy)]
pub(super) struct OptionMatch {
    choice: &'static OptionSpec,
    name: &'static str,
}

impl ArgumentReader<'_> {
    /// Takes a word and its values if it is an option.
    pub(super) fn option(&mut self, arg: &Arg) -> bool {
        let known = arg.prefix();
        if known.starts_with('+')
            && let Some(found) = self.find("+*")
        {
            self.take(found, Some(arg.rest(1)));
            return true;
        }
        if known == "-" && arg.text.is_some() {
            let found = self.find(known);
            found.into_iter().for_each(|found| self.take(found, None));
            return found.is_some();
        }
        if !known.starts_with('-') {
            return false;
        }
        if self.program.style == OptionSyntax::Exact {
            self.exact(arg);
        } else if known.starts_with("--") {
            self.long(arg);
        } else {
            self.short(arg);
        }
        true
    }

    pub(super) fn exact(&mut self, arg: &Arg) {
        let known = arg.prefix();
        if arg.text.is_some()
            && let Some(found) = self.find(known)
        {
            return self.take(found, None);
        }
        if let Some((name, _)) = known.split_once('=')
            && let Some(found) = self.find(name)
            && !found.choice.values.is_empty()
        {
            return self.take(found, Some(arg.rest(name.len() + 1)));
        }
        match self.number(arg) {
            Some(found) => self.take(found, None),
            None => self.stranger(arg),
        }
    }

    fn long(&mut self, arg: &Arg) {
        let (name, value) = match arg.prefix().split_once('=') {
            Some((name, _)) => (name, Some(arg.rest(name.len() + 1))),
            None if arg.text.is_some() => (arg.prefix(), None),
            None => return self.stranger(arg),
        };
        match self.find(name).or_else(|| self.abbreviated(name)) {
            Some(found) if value.is_some() && found.choice.values.is_empty() => self.stranger(arg),
            Some(found) => self.take(found, value),
            None => self.stranger(arg),
        }
    }

    fn short(&mut self, arg: &Arg) {
        let known = arg.prefix();
        if arg.text.is_some()
            && known.len() > 2
            && let Some(found) = self.find(known)
        {
            return self.take(found, None);
        }
        if let Some(found) = self.number(arg) {
            return self.take(found, None);
        }
        for (offset, letter) in known.char_indices().skip(1) {
            let Some(found) = self.find(letter_name(&mut [b'-'; 5], letter)) else {
                let digits = known[offset..].bytes().all(|byte| byte.is_ascii_digit());
                if !digits || arg.text.is_none() || self.find("-NUM").is_none() {
                    self.stranger(arg);
                }
                return;
            };
            let next = offset + letter.len_utf8();
            let choice = found.choice;
            let attached = arg.text.is_none() || next < known.len();
            if !choice.values.is_empty() && attached {
                return self.take(found, Some(arg.rest(next)));
            }
            if !choice.values.is_empty() && !choice.attached {
                return self.take(found, None);
            }
            self.note(found, None);
        }
        if arg.text.is_none() {
            self.stranger(arg);
        }
    }

    pub(super) fn stranger(&mut self, arg: &Arg) {
        self.doubt(match &arg.text {
            Some(text) => format!("`{text}` is no option that is known"),
            None => format!(
                "`{}` is only known when it runs, and could be any option",
                arg.shown()
            ),
        });
    }

    /// Takes an option and its values. The first may be attached to it.
    pub(super) fn take(&mut self, found: OptionMatch, mut attached: Option<Arg>) {
        let choice = found.choice;
        let value = attached.as_ref().or_else(|| self.args.get(self.at));
        let value = (!choice.values.is_empty() && (!choice.attached || attached.is_some()))
            .then_some(value)
            .flatten();
        self.note(found, value);
        if choice.attached {
            if let (Some(value), Some(role)) = (attached, choice.values.first()) {
                self.used(*role, vec![value]);
            }
            return;
        }
        for role in &choice.values {
            if matches!(role, OperandRole::Argv | OperandRole::ArgvUntil) {
                self.take_command(*role);
                continue;
            }
            let Some(value) = attached.take().or_else(|| self.next().cloned()) else {
                self.doubt(format!("`{}` has no value", choice.names[0]));
                return;
            };
            let glob = self.is_file_pattern(&value);
            if self.globbed && value.may_be_option() && !glob {
                // Without a match the pattern may vanish, and this be an option.
                self.doubt(format!("`{}` could be an option", value.shown()));
            }
            self.globbed |= glob;
            if value.many && !self.program.harmless && !glob {
                self.doubt(format!("`{}` could be several words", value.shown()));
            }
            self.used(*role, vec![value]);
        }
    }

    fn take_command(&mut self, role: OperandRole) {
        let rest = &self.args[self.at..];
        let end = match role {
            OperandRole::Argv => rest.len(),
            _ => end_of_command(rest),
        };
        self.at += (end + 1).min(rest.len());
        self.reading.uses.push(Use {
            role,
            args: rest[..end].to_vec(),
        });
    }

    fn note(&mut self, found: OptionMatch, value: Option<&Arg>) {
        let choice = found.choice;
        self.always(choice.effects);
        if Effects::of(choice.effects).has(Effect::Execute) {
            self.reading.risky.extend(value.cloned());
        }
        self.reading.tags.extend(&choice.tags);
        if let Some(mode) = choice.mode
            && !self.modes.contains(&mode)
        {
            self.modes.push(mode);
        }
        // Whatever a pattern becomes, it finds no more than the pattern itself.
        let pattern = |value: &Arg| {
            let glob = self.is_file_pattern(value);
            glob.then(|| value.shape.clone())
        };
        let value = value.and_then(|value| value.text.clone().or_else(|| pattern(value)));
        self.reading.options.push(Given {
            name: found.name,
            names: &choice.names,
            value,
            gloss: choice.gloss,
        });
    }

    pub(super) fn find(&self, name: &str) -> Option<OptionMatch> {
        self.choices().find_map(|choice| {
            let name = choice.names.iter().find(|known| **known == name)?;
            Some(OptionMatch { choice, name })
        })
    }

    /// Finds the only option that begins so, as GNU programs do.
    fn abbreviated(&self, start: &str) -> Option<OptionMatch> {
        if start.len() < 3 {
            return None;
        }
        let mut found: Option<OptionMatch> = None;
        for choice in self.choices() {
            if let Some(name) = choice.names.iter().find(|name| name.starts_with(start)) {
                if found.is_some_and(|other| !std::ptr::eq(other.choice, choice)) {
                    return None;
                }
                found = Some(OptionMatch { choice, name });
            }
        }
        found
    }

    /// Finds the option that is a dash and a number, if this is one.
    fn number(&self, arg: &Arg) -> Option<OptionMatch> {
        let digits = arg.text.as_deref()?.get(1..)?;
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| self.find("-NUM")).flatten()
    }

    /// Returns whether `find` takes whatever a pattern becomes for a file, or for
    /// a test that only reads: `*.txt`, `foo*`.
    fn is_file_pattern(&self, value: &Arg) -> bool {
        let pattern = value.many && !value.splits && !value.shape.contains(UNKNOWN);
        let risky = |choice: &&'static OptionSpec| {
            choice.effects != 0 || choice.values.iter().any(|role| !is_test(*role))
        };
        self.program.style == OptionSyntax::Find
            && pattern
            && !(self.choices().filter(risky))
                .any(|choice| (choice.names.iter()).any(|name| overlap(&value.shape, name)))
    }

    fn choices(&self) -> impl Iterator<Item = &'static OptionSpec> {
        std::iter::once(self.program)
            .chain(self.inherited.iter().copied())
            .flat_map(|program| &program.options)
    }
}

/// Returns whether a value of `find` in this role is only compared.
fn is_test(role: OperandRole) -> bool {
    matches!(
        role,
        OperandRole::Text | OperandRole::Number | OperandRole::File | OperandRole::List
    )
}

/// Rewrites `tar xzf a b`: letters without a dash, whose values follow in
/// order.
pub(super) fn old_style(program: &'static Program, args: &[Arg]) -> Option<Vec<Arg>> {
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

/// Writes the name of a short option behind the dash in a buffer: one is
/// looked up for every letter of every command.
fn letter_name(buffer: &mut [u8; 5], letter: char) -> &str {
    let end = letter.encode_utf8(&mut buffer[1..]).len();
    std::str::from_utf8(&buffer[..=end]).unwrap_or("-")
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
