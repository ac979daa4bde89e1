//! `${…}` in all its forms.

use crate::arithmetic::{SLICE, SUBSCRIPT};
use crate::atoms::Quoting;
use crate::cursor::{ParseStop, Result, starts_name};
use crate::dollar::is_parameter;
use crate::operand::QuoteStyle;
use crate::reader::WordReader;
use crate::{Operation, Parameter, Piece, Substitution, Word};

const BAD: ParseStop = ParseStop("a bad substitution");

impl WordReader<'_> {
    /// Reads `${…}`.
    pub(crate) fn braced(&mut self, quoting: Quoting) -> Result<Piece> {
        let start = self.pos;
        self.bump();
        self.bump();
        if matches!(self.peek(), b' ' | b'\t' | b'\n' | b'|') {
            return self.function_substitution(start, quoting);
        }
        let mut parameter = self.head()?;
        self.operation(&mut parameter, quoting)?;
        if !self.eat("}") {
            return Err(BAD);
        }
        parameter.quoted = quoting.quoted();
        parameter.span = self.span(start);
        Ok(Piece::Parameter(Box::new(parameter)))
    }

    /// Reads `${ …; }` or `${| …; }`, of which bash 5.2 knows neither.
    fn function_substitution(&mut self, start: usize, quoting: Quoting) -> Result<Piece> {
        self.eat("|");
        let body = self.enclosed(b'}')?;
        self.bump();
        self.bashism(start);
        let quoted = quoting.quoted();
        Ok(Piece::Command(Substitution {
            body,
            quoted,
            span: self.span(start),
        }))
    }

    /// Reads `#` or `!` in front, the name and the index.
    fn head(&mut self) -> Result<Parameter> {
        let first = self.peek();
        let save = self.save();
        if (first == b'#' || first == b'!') && self.peek_at(1) != b'}' {
            self.bump();
            if let Some(parameter) = self.prefixed(first)? {
                return Ok(parameter);
            }
            self.restore(&save);
        }
        let name = self.parameter_name().ok_or(BAD)?;
        let index = self.index()?;
        Ok(plain(name, index, Operation::Plain))
    }

    /// Reads what follows `${#` or `${!`; none if that is the parameter itself.
    fn prefixed(&mut self, prefix: u8) -> Result<Option<Parameter>> {
        let start = self.pos;
        let Some(name) = self.parameter_name() else {
            return Ok(None);
        };
        let index = self.index()?;
        let next = self.peek();
        if prefix == b'#' {
            let length = plain(name, index, Operation::Length);
            return Ok((next == b'}').then_some(length));
        }
        let special = name.bytes().all(is_parameter);
        if special && next != b'}' {
            return Ok(None);
        }
        self.bashism(start - 1);
        let operation = match (&index, next) {
            (None, b'*' | b'@') if !special && self.peek_at(1) == b'}' => {
                self.bump();
                Operation::Names
            }
            (Some(word), b'}') if matches!(word.literal().as_deref(), Some("@" | "*")) => {
                Operation::Keys
            }
            _ => Operation::Indirect,
        };
        Ok(Some(plain(name, index, operation)))
    }

    fn parameter_name(&mut self) -> Option<String> {
        let first = self.peek();
        if starts_name(first) {
            return Some(self.name());
        }
        if first.is_ascii_digit() {
            let mut name = String::new();
            while self.peek().is_ascii_digit() {
                name.push_str(self.character());
            }
            return Some(name);
        }
        is_parameter(first).then(|| {
            self.bump();
            char::from(first).to_string()
        })
    }

    fn index(&mut self) -> Result<Option<Word>> {
        if self.peek() != b'[' {
            return Ok(None);
        }
        let start = self.pos;
        self.bump();
        let word = self.nested(|inner| inner.expression(SUBSCRIPT, b""))?;
        self.bump();
        self.bashism(start);
        Ok(Some(word))
    }

    /// Reads what is done with the value, up to the closing brace.
    fn operation(&mut self, parameter: &mut Parameter, quoting: Quoting) -> Result<()> {
        if self.peek() == b'}' {
            return Ok(());
        }
        let start = self.pos;
        let operation = self.operator_name()?;
        let bash_only = matches!(
            operation,
            Operation::Replace | Operation::Slice | Operation::Transform(_) | Operation::Case
        );
        if bash_only {
            self.bashism(start);
        }
        let style = QuoteStyle::of(operation, quoting);
        match operation {
            Operation::Transform(_) => {}
            Operation::Slice => self.slice(parameter)?,
            Operation::Replace => self.replacement(parameter, style)?,
            _ => parameter.operands.push(self.operand(b"}", style)?),
        }
        match parameter.operation {
            Operation::Plain => parameter.operation = operation,
            Operation::Indirect => {}
            _ => return Err(BAD),
        }
        Ok(())
    }

    fn operator_name(&mut self) -> Result<Operation> {
        let (first, second) = (self.peek(), self.peek_at(1));
        let colon = first == b':';
        let operation = match if colon { second } else { first } {
            b'-' => Operation::Default,
            b'=' => Operation::Assign,
            b'?' => Operation::Error,
            b'+' => Operation::Alternate,
            _ if colon => Operation::Slice,
            b'#' | b'%' => Operation::Trim,
            b'/' => Operation::Replace,
            b'^' | b',' | b'~' => Operation::Case,
            b'@' if second.is_ascii_alphabetic() => Operation::Transform(char::from(second)),
            _ => return Err(BAD),
        };
        let long = match operation {
            Operation::Slice => false,
            Operation::Trim | Operation::Case => first == second,
            Operation::Replace => matches!(second, b'/' | b'#' | b'%'),
            Operation::Transform(_) => true,
            _ => colon,
        };
        self.bump();
        if long {
            self.bump();
        }
        Ok(operation)
    }

    fn replacement(&mut self, parameter: &mut Parameter, style: QuoteStyle) -> Result<()> {
        let word = self.operand(b"/}", style)?;
        parameter.operands.push(word);
        if self.eat("/") {
            let word = self.operand(b"}", style)?;
            parameter.operands.push(word);
        }
        Ok(())
    }

    fn slice(&mut self, parameter: &mut Parameter) -> Result<()> {
        let word = self.nested(|inner| inner.expression(SLICE, b":}"))?;
        parameter.operands.push(word);
        if self.eat(":") {
            // What a `?` asks for may have further colons; they are text here.
            let word = self.nested(|inner| inner.expression(SLICE, b"}"))?;
            parameter.operands.push(word);
        }
        Ok(())
    }
}

fn plain(name: String, index: Option<Word>, operation: Operation) -> Parameter {
    let span = crate::Span::default();
    Parameter {
        name,
        index,
        operation,
        operands: vec![],
        quoted: false,
        span,
    }
}
