//! Reads awk programs, as gawk, mawk and the others have them in common.
//!
//! This is no parser: it splits a program into tokens and looks at those that
//! can do something. What reads differently in different places, such as a
//! slash or `>`, is decided only where it can mean one thing.

use super::Deeds;
use crate::effect::Effect;

/// Tells what a program does.
pub(crate) fn read(script: &str) -> Deeds {
    let mut deeds = Deeds::default();
    let text: Vec<char> = script.chars().collect();
    let result = Lexer::new(&text)
        .tokens()
        .and_then(|tokens| judge(&tokens, &mut deeds));
    deeds.unknown = result.err();
    deeds
}

type Result<T = ()> = std::result::Result<T, &'static str>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum AwkToken {
    /// A keyword, a variable or a function; and whether `(` follows at once.
    Name(String, bool),
    /// A string, and what is in it if it has no escapes.
    Text(Option<String>),
    Number,
    Regex,
    Newline,
    Sign(&'static str),
}

struct Lexer<'a> {
    text: &'a [char],
    at: usize,
    tokens: Vec<AwkToken>,
}

/// Longest first.
const SIGNS: &[&str] = &[
    "**=", "&&", "||", "|&", ">>", ">=", "<=", "==", "!=", "!~", "++", "--", "+=", "-=", "*=",
    "/=", "%=", "^=", "**", "{", "}", "(", ")", "[", "]", ";", ",", "+", "-", "*", "/", "%", "^",
    "!", ">", "<", "|", "?", ":", "~", "$", "=",
];

/// What may stand before a slash.
enum BeforeSlash {
    /// A value, so the slash divides.
    Value,
    /// Something that wants a value, so the slash opens a regular expression.
    Want,
    /// Either.
    Unclear,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a [char]) -> Self {
        Self {
            text,
            at: 0,
            tokens: Vec::new(),
        }
    }

    fn tokens(mut self) -> Result<Vec<AwkToken>> {
        while let Some(c) = self.peek(0) {
            match c {
                '\n' => self.push(AwkToken::Newline, 1),
                ' ' | '\t' | '\r' => self.at += 1,
                '\\' if self.peek(1) == Some('\n') => self.at += 2,
                '#' => self.comment(),
                '"' => self.string()?,
                '/' => self.slash()?,
                '@' => return Err("`@` brings in other code"),
                _ if c.is_ascii_digit() => self.number()?,
                '.' if self.peek(1).is_some_and(|c| c.is_ascii_digit()) => self.number()?,
                _ if c.is_ascii_alphabetic() || c == '_' => self.name()?,
                _ => self.sign()?,
            }
        }
        Ok(self.tokens)
    }

    fn comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    fn string(&mut self) -> Result {
        let mut content = Some(String::new());
        self.at += 1;
        loop {
            match self.next() {
                Some('"') => break,
                Some('\\') => {
                    self.next().ok_or("a string has no end")?;
                    content = None;
                }
                Some('\n') | None => return Err("a string has no end"),
                Some(c) => {
                    if let Some(content) = &mut content {
                        content.push(c);
                    }
                }
            }
        }
        self.tokens.push(AwkToken::Text(content));
        Ok(())
    }

    fn slash(&mut self) -> Result {
        match self.before() {
            BeforeSlash::Value => self.sign(),
            BeforeSlash::Want => self.regex(),
            BeforeSlash::Unclear => {
                let line = self.text[self.at + 1..].split(|c| *c == '\n').next();
                match line.is_some_and(|line| line.contains(&'/')) {
                    true => Err("a slash may divide or open a regular expression"),
                    false => self.sign(),
                }
            }
        }
    }

    fn before(&self) -> BeforeSlash {
        match self.tokens.last() {
            Some(AwkToken::Text(_) | AwkToken::Number | AwkToken::Regex | AwkToken::Sign("]")) => {
                BeforeSlash::Value
            }
            Some(AwkToken::Sign(")" | "++" | "--" | "$")) => BeforeSlash::Unclear,
            Some(AwkToken::Name(name, _)) => match name.as_str() {
                "getline" | "length" | "exit" | "next" | "nextfile" => BeforeSlash::Unclear,
                name if KEYWORDS.contains(&name) => BeforeSlash::Want,
                _ => BeforeSlash::Value,
            },
            Some(AwkToken::Newline | AwkToken::Sign(_)) | None => BeforeSlash::Want,
        }
    }

    /// Reads a regular expression. Whether a slash inside brackets ends it
    /// depends on who reads it, so then it is not read.
    fn regex(&mut self) -> Result {
        self.at += 1;
        let mut bracket = false;
        loop {
            match self.next() {
                Some('/') if bracket => return Err("a slash stands between brackets"),
                Some('/') => break,
                Some('\\') => {
                    self.next();
                }
                Some('[') if !bracket => {
                    bracket = true;
                    if self.peek(0) == Some('^') {
                        self.at += 1;
                    }
                    if self.peek(0) == Some(']') {
                        self.at += 1;
                    }
                }
                Some('[') if matches!(self.peek(0), Some(':' | '.' | '=')) => self.class(),
                Some(']') => bracket = false,
                Some('\n') | None => return Err("a regular expression has no end"),
                Some(_) => {}
            }
        }
        self.tokens.push(AwkToken::Regex);
        Ok(())
    }

    /// Skips `[:alpha:]` inside a bracket, if it is closed.
    fn class(&mut self) {
        let kind = self.text[self.at];
        let inside = &self.text[self.at + 1..];
        let name = inside
            .iter()
            .take_while(|c| c.is_ascii_alphabetic())
            .count();
        if inside.get(name) == Some(&kind) && inside.get(name + 1) == Some(&']') {
            self.at += name + 3;
        }
    }

    /// Reads a number. A letter right behind it may belong to it or begin a
    /// name, such as `system`, depending on who reads it.
    fn number(&mut self) -> Result {
        self.digits();
        if self.peek(0) == Some('.') {
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(0), Some('e' | 'E')) {
            let sign = usize::from(matches!(self.peek(1), Some('+' | '-')));
            if self.peek(1 + sign).is_some_and(|c| c.is_ascii_digit()) {
                self.at += 1 + sign;
                self.digits();
            }
        }
        if self
            .peek(0)
            .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        {
            return Err("a letter follows a number");
        }
        self.tokens.push(AwkToken::Number);
        Ok(())
    }

    fn digits(&mut self) {
        while self.peek(0).is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn name(&mut self) -> Result {
        let from = self.at;
        while self
            .peek(0)
            .is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            self.at += 1;
        }
        if self.peek(0) == Some(':') && self.peek(1) == Some(':') {
            return Err("a name belongs to a namespace");
        }
        let name = self.text[from..self.at].iter().collect();
        let call = self.peek(0) == Some('(');
        self.tokens.push(AwkToken::Name(name, call));
        Ok(())
    }

    fn sign(&mut self) -> Result {
        let rest = &self.text[self.at..];
        let sign = SIGNS
            .iter()
            .find(|sign| sign.chars().zip(rest).filter(|(a, b)| a == *b).count() == sign.len())
            .ok_or("a character is not known")?;
        self.push(AwkToken::Sign(sign), sign.len());
        Ok(())
    }

    fn push(&mut self, token: AwkToken, length: usize) {
        self.tokens.push(token);
        self.at += length;
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        Some(c)
    }
}

/// Goes through the tokens and notes what they do.
fn judge(tokens: &[AwkToken], deeds: &mut Deeds) -> Result {
    let own = functions(tokens);
    let mut depth = 0_usize;
    // How deep the parentheses were where a `print` began.
    let mut print = None;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            AwkToken::Sign("(" | "[") => depth += 1,
            AwkToken::Sign(")" | "]") => depth = depth.saturating_sub(1),
            AwkToken::Sign(";" | "{" | "}") => print = None,
            AwkToken::Newline if !goes_on(tokens, at) => print = None,
            AwkToken::Sign(">" | ">>") if print == Some(depth) => output(tokens, at, deeds),
            AwkToken::Sign(">>") => return Err("`>>` stands outside of a print"),
            AwkToken::Sign("|" | "|&") => pipe(tokens, at, deeds),
            AwkToken::Name(name, call) => match name.as_str() {
                "print" | "printf" => print = Some(depth),
                "getline" => input(tokens, at, deeds)?,
                "system" => {
                    deeds.effects.add(Effect::Execute);
                    if let [
                        AwkToken::Sign("("),
                        AwkToken::Text(Some(command)),
                        AwkToken::Sign(")"),
                        ..,
                    ] = &tokens[at + 1..]
                    {
                        deeds.commands.push(command.clone());
                    }
                }
                "ENVIRON" => deeds.effects.add(Effect::Secret),
                "ARGV" | "SYMTAB" | "FUNCTAB" => return Err("it reaches for its own insides"),
                name if *call && !CALLS.contains(&name) && !own.contains(&name) => {
                    return Err("a function is not known");
                }
                _ => {}
            },
            _ => {}
        }
    }
    Ok(())
}

/// Returns whether a statement goes on behind a line end.
fn goes_on(tokens: &[AwkToken], at: usize) -> bool {
    matches!(
        tokens[..at].iter().rev().find(|t| **t != AwkToken::Newline),
        Some(AwkToken::Sign("," | "&&" | "||" | "?" | ":"))
    )
}

/// Notes where a `print` goes.
fn output(tokens: &[AwkToken], at: usize, deeds: &mut Deeds) {
    match alone(tokens, at + 1) {
        Some("/dev/stdout" | "/dev/stderr") => {}
        Some(file) => {
            add_host(file, deeds);
            deeds.effects.add(Effect::Write);
            deeds.writes.push(file.into());
        }
        None => deeds.effects.add(Effect::Write),
    }
}

/// Notes which command a pipe leads to or comes from.
fn pipe(tokens: &[AwkToken], at: usize, deeds: &mut Deeds) {
    deeds.effects.add(Effect::Execute);
    let from = matches!(tokens.get(at + 1), Some(AwkToken::Name(name, _)) if name == "getline");
    let command = match from {
        true => at
            .checked_sub(1)
            .filter(|before| starts(tokens, *before))
            .and_then(|before| match &tokens[before] {
                AwkToken::Text(text) => text.as_deref(),
                _ => None,
            }),
        false => alone(tokens, at + 1),
    };
    if let Some(command) = command {
        add_host(command, deeds);
        deeds.commands.push(command.into());
    }
}

/// Notes which file `getline` reads.
fn input(tokens: &[AwkToken], at: usize, deeds: &mut Deeds) -> Result {
    let at = target(tokens, at + 1)?;
    if tokens.get(at) != Some(&AwkToken::Sign("<")) {
        return Ok(());
    }
    match (tokens.get(at + 1), tokens.get(at + 2)) {
        (Some(AwkToken::Text(Some(file))), next) if !continues(next) => {
            add_host(file, deeds);
            if file != "-" && file != "/dev/stdin" {
                deeds.reads.push(file.clone());
            }
            Ok(())
        }
        _ => Err("it reads a file whose name is computed"),
    }
}

/// Returns the place behind the variable that `getline` fills, if there is one.
fn target(tokens: &[AwkToken], at: usize) -> Result<usize> {
    match tokens.get(at) {
        Some(AwkToken::Name(name, false)) if !KEYWORDS.contains(&name.as_str()) => {
            match tokens.get(at + 1) {
                Some(AwkToken::Sign("[")) => closing(tokens, at + 1),
                _ => Ok(at + 1),
            }
        }
        Some(AwkToken::Sign("$")) => match (tokens.get(at + 1), tokens.get(at + 2)) {
            (Some(AwkToken::Sign("(")), _) => closing(tokens, at + 1),
            (Some(AwkToken::Number), _) => Ok(at + 2),
            (Some(AwkToken::Name(..)), after) if after != Some(&AwkToken::Sign("[")) => Ok(at + 2),
            _ => Err("it is not clear what `getline` fills"),
        },
        Some(AwkToken::Name(_, true) | AwkToken::Sign("(" | "++" | "--")) => {
            Err("it is not clear what `getline` fills")
        }
        _ => Ok(at),
    }
}

/// Returns the place behind the bracket that closes the one here.
fn closing(tokens: &[AwkToken], from: usize) -> Result<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token {
            AwkToken::Sign("(" | "[") => depth += 1,
            AwkToken::Sign(")" | "]") => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok(at + 1);
        }
    }
    Err("a bracket is not closed")
}

/// Returns the text of a string that is all there is up to the end of the
/// statement.
fn alone(tokens: &[AwkToken], at: usize) -> Option<&str> {
    match (tokens.get(at)?, tokens.get(at + 1)) {
        (AwkToken::Text(text), None | Some(AwkToken::Newline | AwkToken::Sign(";" | "}"))) => {
            text.as_deref()
        }
        _ => None,
    }
}

/// Returns whether nothing is joined to the value here from the left.
fn starts(tokens: &[AwkToken], at: usize) -> bool {
    match at.checked_sub(1).map(|before| &tokens[before]) {
        None | Some(AwkToken::Newline) => true,
        Some(AwkToken::Sign(sign)) => {
            matches!(*sign, "(" | "{" | "}" | ";" | "!" | "&&" | "||" | "=")
        }
        _ => false,
    }
}

/// Returns whether a token goes on with the value before it.
fn continues(token: Option<&AwkToken>) -> bool {
    !matches!(
        token,
        None | Some(
            AwkToken::Newline
                | AwkToken::Sign(
                    ")" | ";" | "}" | ">" | ">=" | "<" | "<=" | "==" | "!=" | "&&" | "||"
                )
        )
    )
}

/// Notes gawk's names for sockets.
fn add_host(name: &str, deeds: &mut Deeds) {
    if name.starts_with("/inet") {
        deeds.effects.add(Effect::Network);
    }
}

/// Returns the functions a program defines.
fn functions(tokens: &[AwkToken]) -> Vec<&str> {
    tokens
        .windows(2)
        .filter_map(|pair| match pair {
            [AwkToken::Name(word, _), AwkToken::Name(name, _)]
                if word == "function" || word == "func" =>
            {
                Some(name.as_str())
            }
            _ => None,
        })
        .collect()
}

/// Words that are no value.
#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "BEGIN", "END", "BEGINFILE", "ENDFILE", "function", "func", "if", "else", "while", "for",
    "do", "break", "continue", "next", "nextfile", "exit", "return", "delete", "in", "getline",
    "print", "printf", "switch", "case", "default",
];

/// What may stand right before a parenthesis and does no harm by itself.
#[rustfmt::skip]
const CALLS: &[&str] = &[
    "BEGIN", "END", "if", "while", "for", "switch", "case", "exit", "return", "delete", "in",
    "else", "do", "length", "substr", "index", "split", "sub", "gsub", "gensub", "match", "sprintf",
    "sin", "cos", "atan2", "exp", "log", "sqrt", "int", "rand", "srand", "tolower", "toupper",
    "systime", "strftime", "mktime", "close", "fflush", "asort", "asorti", "patsplit", "strtonum",
    "and", "or", "xor", "compl", "lshift", "rshift", "isarray", "typeof", "mkbool",
];

#[cfg(test)]
mod tests;
