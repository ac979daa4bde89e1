//! Expressions, which are evaluated more than once.

use weighlock_shell::{List, Operation, Parameter, Piece, Word};

use super::{Variable, Walk, count, scan};
use crate::argument::Arg;
use crate::variables;

/// Variables that the shell makes a new number of whenever they are read.
/// Setting one is a question of its own.
const KEPT: &[&str] = &["RANDOM", "SRANDOM", "SECONDS", "LINENO"];

impl Walk<'_> {
    /// An expression can run code: a variable in it is evaluated again, and
    /// `a[$(…)]` in its value is executed.
    pub(super) fn arithmetic(&mut self, expression: &Word) {
        self.substitutions(expression);
        self.calculation(expression);
    }

    /// Doubts an expression whose substitutions were walked through already.
    fn calculation(&mut self, expression: &Word) {
        let mut doubts = vec![];
        scan::identifiers(expression, |name| {
            let known = self.variables.get(name);
            let changes = |variable: &Variable| variable.sites > 0 && !variable.number;
            let kept = KEPT.contains(&name) && !scan::has_assignment(expression);
            if known.is_some_and(changes)
                || (self.wild && known.is_some())
                || (variables::is_loud(name) && !kept)
            {
                doubts.push(name.to_owned());
            }
        });
        for piece in &expression.pieces {
            match piece {
                Piece::Parameter(parameter) if !self.is_number(parameter) => {
                    doubts.push(parameter.name.clone());
                }
                Piece::Command(inner) if !self.counts(&inner.body) => {
                    doubts.push("the output of a command".into());
                }
                // It was quoted, and is expanded all the same.
                Piece::Text { text, .. } if text.contains(['$', '`']) => doubts.push(text.clone()),
                _ => {}
            }
        }
        if let Some(name) = doubts.first() {
            self.unknown(
                expression.span,
                format!("{name} is evaluated as an expression, which can run code"),
            );
        }
    }

    pub(super) fn is_number(&self, parameter: &Parameter) -> bool {
        let name = parameter.name.as_str();
        match parameter.operation {
            Operation::Length => true,
            Operation::Plain => {
                matches!(
                    name,
                    "#" | "?"
                        | "$"
                        | "!"
                        | "RANDOM"
                        | "SECONDS"
                        | "LINENO"
                        | "PPID"
                        | "UID"
                        | "EUID"
                        | "COLUMNS"
                        | "LINES"
                        | "EPOCHSECONDS"
                        | "BASHPID"
                        | "SHLVL"
                        | "OPTIND"
                ) || self.variables.get(name).is_some_and(|variable| {
                    variable.number || variable.value.as_ref().is_some_and(is_digits)
                })
            }
            _ => false,
        }
    }

    /// Returns whether all that a substitution can put out is numbers.
    pub(super) fn counts(&self, body: &List) -> bool {
        !self.wild && count::only_numbers(body, &self.redefined)
    }

    /// The elements of an array may say where they go, `[index]=value`, and
    /// that is evaluated.
    pub(super) fn indexes(&mut self, elements: &[Word]) {
        for index in elements.iter().filter_map(scan::index) {
            self.arithmetic_value(&index);
        }
    }

    /// `[[ … ]]`: comparing numbers evaluates expressions too.
    pub(super) fn test(&mut self, words: &[Word]) {
        for word in words {
            self.substitutions(word);
        }
        for (at, word) in words.iter().enumerate() {
            let Some(op) = word.literal() else { continue };
            let (operands, names): (&[Word], bool) = match op.as_str() {
                "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" if at > 0 => {
                    (&words[at - 1..], false)
                }
                "-v" | "-R" => (&words[at..], true),
                _ => continue,
            };
            for operand in operands.iter().take(3) {
                match operand.literal() {
                    Some(text) if text == op => {}
                    Some(text) if names && !text.contains('[') => {}
                    None if names => self.evaluated(operand),
                    // A name stands for its value, which is evaluated again.
                    _ => self.arithmetic_value(operand),
                }
            }
        }
    }

    fn arithmetic_value(&mut self, operand: &Word) {
        let text = operand.literal();
        if text.is_some_and(|text| text.contains(['[', '$', '`'])) {
            self.evaluated(operand);
        } else {
            self.calculation(operand);
        }
    }

    fn evaluated(&mut self, operand: &Word) {
        let why = "it is evaluated as an expression, which can run code";
        self.unknown(operand.span, why.into());
    }
}

fn is_digits(value: &Arg) -> bool {
    value
        .text
        .as_ref()
        .is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
}
