//! The words of a program that are no options.

use super::{ArgumentReader, Use};
use crate::argument::Arg;
use crate::knowledge::{Arity, Operand, OperandRole, OptionMode, OptionSyntax, Program};

impl ArgumentReader<'_> {
    /// A word that could become several could move the others to other places.
    pub(super) fn check_count(&mut self, arg: &Arg, ended: bool, at: usize) {
        if self.program.harmless || self.program.style == OptionSyntax::None {
            return;
        }
        if !ended && arg.text.is_none() && arg.may_be_option() {
            self.doubt(format!(
                "`{}` is only known when it runs, and could be an option",
                arg.shown()
            ));
        } else if arg.many && !alike_from(self.program, at) {
            self.doubt(format!("`{}` could be several words", arg.shown()));
        }
    }

    /// Gives the words their roles.
    pub(super) fn assign(&mut self, operands: Vec<Arg>) {
        let program = self.program;
        let roles = self.roles();
        if operands.is_empty() && roles.iter().all(|role| role.role != OperandRole::Argv) {
            self.always(program.bare.unwrap_or(0));
        }
        let mut left = operands.len();
        let mut words = operands.into_iter().peekable();
        let mut needed: usize = roles.iter().filter(|role| role.count == Arity::One).count();
        for role in roles {
            if role.role == OperandRole::Argv {
                let args: Vec<Arg> = words.by_ref().collect();
                match args.is_empty() {
                    true => self.always(program.bare.unwrap_or(0)),
                    false => self.operand(role, args),
                }
                return;
            }
            if role.role == OperandRole::Line {
                let args: Vec<Arg> = words.by_ref().collect();
                if !args.is_empty() {
                    self.operand(role, vec![Arg::line(&args)]);
                }
                return;
            }
            let count = match role.count {
                Arity::One => {
                    needed -= 1;
                    if left == 0 && !program.harmless && program.bare.is_none() {
                        self.doubt("a word is missing".into());
                    }
                    left.min(1)
                }
                Arity::Maybe => left.saturating_sub(needed).min(1),
                Arity::Any => left.saturating_sub(needed),
            };
            for _ in 0..count {
                if role.role == OperandRole::Env && !words.peek().is_some_and(is_assignment) {
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

    /// Returns the roles of the words, which an option may have changed along
    /// with what the program does.
    fn roles(&mut self) -> &'static [Operand] {
        let program = self.program;
        let Some(mode) = self.mode() else {
            self.always(program.effects);
            return &program.operands;
        };
        self.reading.special = true;
        if let Some(does) = mode.does {
            self.reading.does = does;
        }
        self.reading.tags.extend(&mode.tags);
        self.always(mode.effects.unwrap_or(program.effects));
        mode.operands.as_deref().unwrap_or(&program.operands)
    }

    fn mode(&mut self) -> Option<&'static OptionMode> {
        match self.modes.as_slice() {
            [] => None,
            [only] => self.program.modes.iter().find(|mode| mode.name == *only),
            several => {
                // Some go together, and are a mode by their joint name.
                let mut names = several.to_vec();
                names.sort_unstable();
                let joint = names.join("+");
                let mode = self.program.modes.iter().find(|mode| mode.name == joint);
                if mode.is_some() {
                    return mode;
                }
                self.doubt("its options contradict each other".into());
                None
            }
        }
    }

    fn operand(&mut self, operand: &Operand, args: Vec<Arg>) {
        self.always(operand.effects);
        self.used(operand.role, args);
    }

    pub(super) fn used(&mut self, role: OperandRole, args: Vec<Arg>) {
        if !matches!(role, OperandRole::Any | OperandRole::Number) {
            self.reading.uses.push(Use { role, args });
        }
    }
}

fn is_assignment(arg: &Arg) -> bool {
    arg.prefix()
        .split_once('=')
        .is_some_and(|(name, _)| !name.is_empty())
}

/// Returns whether all words from one on have the same role, in every mode.
fn alike_from(program: &Program, at: usize) -> bool {
    let alike = |operands: &[Operand]| match operands {
        [first @ .., last] => last.count == Arity::Any && first.len() <= at,
        [] => false,
    };
    let modes = program.modes.iter();
    alike(&program.operands) && { modes }.all(|mode| mode.operands.as_deref().is_none_or(alike))
}
