//! Reads scripts of GNU sed.
//!
//! Versions differ on whether a delimiter inside brackets ends a regular
//! expression (`s/[/]/x/`). Where it matters, a script is read each way, and
//! what any of them does counts.

use super::Deeds;
use crate::effect::Effect;

/// Ways of reading one script before it is given up. Real scripts have one or
/// two bracketed delimiters, and the other way of reading fails at once.
const FORKS: usize = 64;

/// Tells what a script does.
pub(crate) fn read(script: &str) -> Deeds {
    let text: Vec<char> = script.chars().collect();
    let mut reader = SedReader {
        text: &text,
        at: 0,
        forks: FORKS,
        deeds: Deeds::default(),
    };
    let result = reader.script();
    let mut deeds = reader.deeds;
    deeds.unknown = result.err();
    deeds
}

type Result<T = ()> = std::result::Result<T, &'static str>;

struct SedReader<'a> {
    text: &'a [char],
    at: usize,
    forks: usize,
    deeds: Deeds,
}

/// What follows a regular expression.
#[derive(Clone, Copy)]
enum Tail {
    Address,
    Substitution(char),
}

/// What a backslash means between brackets, or that brackets mean nothing.
#[derive(Clone, Copy)]
enum Brackets {
    Plain,
    Escaping,
    Ignored,
}

impl SedReader<'_> {
    fn script(&mut self) -> Result {
        loop {
            self.skip(|c| c == ';' || c.is_ascii_whitespace());
            if self.peek().is_none() {
                return Ok(());
            }
            if self.address()? {
                self.range()?;
            }
            self.verb()?;
        }
    }

    /// Reads one address, if there is one.
    fn address(&mut self) -> Result<bool> {
        match self.peek() {
            Some('0'..='9') => {
                self.digits();
                if self.eat('~') {
                    self.digits();
                }
            }
            Some('$') => self.at += 1,
            Some('/') => {
                self.at += 1;
                self.regex('/', Tail::Address)?;
                self.skip(|c| c == 'I' || c == 'M');
            }
            Some('\\') => {
                self.at += 1;
                let delimiter = self.delimiter()?;
                self.regex(delimiter, Tail::Address)?;
                self.skip(|c| c == 'I' || c == 'M');
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the second address of a range, if there is one.
    fn range(&mut self) -> Result {
        self.blanks();
        if !self.eat(',') {
            return Ok(());
        }
        self.blanks();
        if self.eat('+') || self.eat('~') {
            self.digits();
            return Ok(());
        }
        match self.address()? {
            true => Ok(()),
            false => Err("a range has no end"),
        }
    }

    fn verb(&mut self) -> Result {
        self.skip(|c| c == '!' || c == ' ' || c == '\t');
        let verb = self.next().ok_or("an address has no command")?;
        match verb {
            '{' => Ok(()),
            '#' => {
                self.line();
                Ok(())
            }
            '}' | '=' | 'd' | 'D' | 'F' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x'
            | 'z' => self.end(),
            'l' | 'L' | 'q' | 'Q' => {
                self.blanks();
                self.digits();
                self.end()
            }
            'a' | 'i' | 'c' => self.text(),
            ':' => self.label(),
            'b' | 't' | 'T' | 'v' => {
                self.blanks();
                self.skip(|c| !c.is_ascii_whitespace() && c != ';' && c != '}');
                self.end()
            }
            'r' | 'R' => {
                let file = self.file()?;
                if file != "/dev/stdin" {
                    self.deeds.reads.push(file);
                }
                Ok(())
            }
            'w' | 'W' => self.write(),
            'e' => {
                self.deeds.effects.add(Effect::Execute);
                self.blanks();
                let command = self.continued();
                if !command.is_empty() {
                    self.deeds.commands.push(command);
                }
                Ok(())
            }
            's' => self.substitute(),
            'y' => {
                let delimiter = self.delimiter()?;
                self.plain(delimiter)?;
                self.plain(delimiter)?;
                self.end()
            }
            _ => Err("a command is not known"),
        }
    }

    /// Reads what `a`, `i` and `c` print. A backslash in front only counts
    /// before a line end; elsewhere it escapes what follows.
    fn text(&mut self) -> Result {
        self.blanks();
        let from = self.at;
        if self.eat('\\') {
            let behind = self.at;
            self.blanks();
            match self.peek() {
                Some('\n') if self.at == behind => self.at += 1,
                Some('\n' | '\\') => return Err("versions read the start of a text differently"),
                _ => self.at = from,
            }
        }
        self.continued();
        Ok(())
    }

    /// Reads a label, up to the end of the command. Some versions take blanks
    /// and braces into its name and others do not.
    fn label(&mut self) -> Result {
        self.blanks();
        let from = self.at;
        self.skip(|c| c != ';' && c != '\n');
        let name: String = self.text[from..self.at].iter().collect();
        let name = name.trim_end();
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '}') {
            return Err("a label has no plain name");
        }
        Ok(())
    }

    fn substitute(&mut self) -> Result {
        let delimiter = self.delimiter()?;
        self.regex(delimiter, Tail::Substitution(delimiter))?;
        self.replacement(delimiter)
    }

    /// Reads the second half of a substitution, with its flags.
    fn replacement(&mut self, delimiter: char) -> Result {
        self.plain(delimiter)?;
        loop {
            match self.peek() {
                Some('g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' | ' ' | '\t') => self.at += 1,
                Some('e') => {
                    self.at += 1;
                    self.deeds.effects.add(Effect::Execute);
                }
                Some('w') => {
                    self.at += 1;
                    return self.write();
                }
                None | Some(';' | '\n' | '}' | '#') => return Ok(()),
                Some(_) => return Err("a flag of a substitution is not known"),
            }
        }
    }

    fn write(&mut self) -> Result {
        let file = self.file()?;
        if file != "/dev/stdout" && file != "/dev/stderr" {
            self.deeds.effects.add(Effect::Write);
            self.deeds.writes.push(file);
        }
        Ok(())
    }

    /// Reads a file name, which goes to the end of the line.
    fn file(&mut self) -> Result<String> {
        self.blanks();
        let file = self.line();
        match file.is_empty() {
            true => Err("a file has no name"),
            false => Ok(file),
        }
    }

    /// Checks that a command is over.
    fn end(&mut self) -> Result {
        self.blanks();
        match self.peek() {
            None | Some(';' | '\n' | '}' | '#') => Ok(()),
            Some(_) => Err("something follows a command"),
        }
    }

    /// Reads a regular expression and its delimiter, and the rest of the
    /// script for every other place where it might end.
    fn regex(&mut self, delimiter: char, tail: Tail) -> Result {
        let plain = self.regex_end(delimiter, Brackets::Plain);
        let mut seen = vec![plain];
        for brackets in [Brackets::Escaping, Brackets::Ignored] {
            let end = self.regex_end(delimiter, brackets);
            if seen.contains(&end) {
                continue;
            }
            seen.push(end);
            if let Some(end) = end {
                self.fork(end, tail)?;
            }
        }
        self.at = plain.ok_or("a regular expression has no end")?;
        Ok(())
    }

    /// Reads on from another place. A failure there is sed's own: it would
    /// have stopped, too.
    fn fork(&mut self, at: usize, tail: Tail) -> Result {
        self.forks = self
            .forks
            .checked_sub(1)
            .ok_or("it can be read in too many ways")?;
        let mut other = SedReader {
            text: self.text,
            at,
            forks: self.forks,
            deeds: std::mem::take(&mut self.deeds),
        };
        let head = match tail {
            Tail::Address => {
                other.skip(|c| c == 'I' || c == 'M');
                other.range().and_then(|()| other.verb())
            }
            Tail::Substitution(delimiter) => other.replacement(delimiter),
        };
        let _ = head.and_then(|()| other.script());
        self.deeds = other.deeds;
        self.forks = other.forks;
        Ok(())
    }

    /// Returns the place behind the delimiter that ends a regular expression.
    fn regex_end(&self, delimiter: char, brackets: Brackets) -> Option<usize> {
        let mut at = self.at;
        loop {
            match *self.text.get(at)? {
                c if c == delimiter => return Some(at + 1),
                '\n' => return None,
                '\\' => at += 2,
                '[' if !matches!(brackets, Brackets::Ignored) => {
                    at = self.bracket_end(at + 1, brackets)?;
                }
                _ => at += 1,
            }
        }
    }

    /// Returns the place behind the `]` that closes a bracket.
    fn bracket_end(&self, mut at: usize, brackets: Brackets) -> Option<usize> {
        if self.text.get(at) == Some(&'^') {
            at += 1;
        }
        if self.text.get(at) == Some(&']') {
            at += 1;
        }
        loop {
            match (*self.text.get(at)?, self.text.get(at + 1)) {
                (']', _) => return Some(at + 1),
                ('\n', _) => return None,
                ('\\', _) if matches!(brackets, Brackets::Escaping) => at += 2,
                ('[', Some(&kind @ ('.' | ':' | '='))) => {
                    let close = self.text[at + 2..]
                        .windows(2)
                        .position(|pair| pair == [kind, ']']);
                    at = match close {
                        Some(close) => at + 2 + close + 2,
                        None => at + 1,
                    };
                }
                _ => at += 1,
            }
        }
    }

    /// Skips what a delimiter ends, where brackets mean nothing.
    fn plain(&mut self, delimiter: char) -> Result {
        self.at = self
            .regex_end(delimiter, Brackets::Ignored)
            .ok_or("a command has no end")?;
        Ok(())
    }

    fn delimiter(&mut self) -> Result<char> {
        match self.next() {
            Some(c) if c != '\n' && c != '\\' => Ok(c),
            _ => Err("a delimiter is missing"),
        }
    }

    /// Returns the rest of the line, and of those it goes on in.
    fn continued(&mut self) -> String {
        let mut text = String::new();
        while let Some(c) = self.next() {
            match c {
                '\n' => break,
                '\\' => text.extend(self.next()),
                _ => text.push(c),
            }
        }
        text
    }

    /// Returns the rest of the line.
    fn line(&mut self) -> String {
        let from = self.at;
        self.skip(|c| c != '\n');
        self.text[from..self.at].iter().collect()
    }

    fn digits(&mut self) {
        self.skip(|c| c.is_ascii_digit());
    }

    fn blanks(&mut self) {
        self.skip(|c| c == ' ' || c == '\t');
    }

    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
    }

    fn eat(&mut self, wanted: char) -> bool {
        let here = self.peek() == Some(wanted);
        self.at += usize::from(here);
        here
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::told;

    fn check(cases: &[(&str, &str)]) {
        told::check(read, cases);
    }

    #[test]
    fn printing_is_harmless() {
        for script in [
            "",
            "p",
            "1,20p",
            "10,20p;20q",
            "/fn main/,/}/p",
            "s/TODO/DONE/",
            "$=",
            "s/([a-z]+)/<\\1>/g",
            "1d",
            "$d",
            "s#/etc#/w#",
            "/e/p",
            "s/where/e/",
            "s/^/> /",
            "0~3p",
            "1~2,3p",
            "2,~4p",
            "/x/,+3p",
            "0,/re/d",
            "/x/I,/y/MId",
            "\\,/etc/w,p",
            "\\|a\\|b|d",
            "1!G;h;$!d",
            "1 ! p",
            "$!N;P;D",
            ":a;N;$!ba;s/\\n/ /g",
            ":a\ns/x/y/\nta",
            "b end;p;:end",
            "bx;:x",
            "{p;p}",
            "/a/{s/b/c/;p}",
            "/a/ { /b/ !{ p } }",
            "y/abc/wex/",
            "y,a\\,b,xyz,",
            "l;l 5;L",
            "q;q5;Q 1",
            "F;z;x;g;G;h;H;n;N",
            "#n\np",
            "# w file\np # e rm",
            "p;;;  ;p\n\n",
            "a\\\nw file\\\ne rm",
            "a w file",
            "i\\  w file",
            "$a\\",
            "1i\\\nfoo\n2d",
            "c\\\nfoo",
            "s/a/b/2gp",
            "s/a/b/I;s/c/d/M",
            "s/a/b/w /dev/stdout",
            "w /dev/stderr",
            "r /dev/stdin",
            "s/x/\\\n/",
            "s/[^/]*$//",
            "s/[/]/x/g",
            "s/[]/]/x/",
            "s/[[:alpha:]/]/x/",
            "/[/]/d",
            "s/\\[/x/",
            "s/a/[/;s/b/y/",
            "s,x\\,y,w a,",
            "s|a|b|;s:c:w d:",
            "v 4.2",
            "s/e/w/;y/w/e/",
            "s/ä/w ö/",
            "T;t;b",
            "s/a/b/ ; s/c/d/",
        ] {
            check(&[(script, "prints")]);
        }
    }

    #[test]
    fn files_are_written() {
        check(&[
            ("w out", "writes [out]"),
            ("1w out", "writes [out]"),
            ("/a/w out file", "writes [out file]"),
            ("W out", "writes [out]"),
            ("s/a/b/w out", "writes [out]"),
            ("s/a/b/gpw out", "writes [out]"),
            ("s/a/b/ w out", "writes [out]"),
            ("s/a/b/2 g w out;p}", "writes [out;p}]"),
            ("p;w a\nw b", "writes [a|b]"),
            ("s#a#b#wout", "writes [out]"),
            ("sxaxbxw out", "writes [out]"),
            ("1{w out\n}", "writes [out]"),
            ("/[/]/w out", "writes [out]"),
            ("\\,w,w out", "writes [out]"),
            ("$!{/a/!w out\n}", "writes [out]"),
            ("a foo\nw out", "writes [out]"),
            ("a\\\nfoo\nw out", "writes [out]"),
            ("i a\\\\\nw out", "writes [out]"),
            ("#n\nw out", "writes [out]"),
            (":a;w out", "writes [out]"),
            ("ba;w out", "writes [out]"),
            ("w /dev/stdout/../x", "writes [/dev/stdout/../x]"),
            ("y/a/b/;w out", "writes [out]"),
            ("}w out", "unknown"),
        ]);
    }

    #[test]
    fn every_way_to_read_brackets_counts() {
        check(&[
            ("s,[,x,w out],y,", "writes [out],y,]"),
            ("s/[\\]/x]/w out", "writes [out]"),
            ("/[/w out]/p", "writes [out]/p]"),
            ("s/[/x/", "unknown"),
        ]);
    }

    #[test]
    fn commands_run() {
        check(&[
            ("e", "runs []"),
            ("1e", "runs []"),
            ("e date", "runs [date]"),
            ("1e touch x; rm y", "runs [touch x; rm y]"),
            ("e a\\\nb", "runs [a\nb]"),
            ("s/.*/date/e", "runs []"),
            ("s/x/y/ge;p", "runs []"),
            ("s/x/y/pew out", "runs [], writes [out]"),
            ("/x/{e ls\n}", "runs [ls]"),
            ("e;p", "runs [;p]"),
        ]);
    }

    #[test]
    fn files_are_read() {
        check(&[
            ("r /etc/passwd", "reads [/etc/passwd]"),
            ("$r a;b", "reads [a;b]"),
            ("R list", "reads [list]"),
        ]);
    }

    #[test]
    fn what_is_not_understood_is_unknown() {
        for script in [
            "s/a/b",
            "s/a/b/w",
            "s/a/b/w  ",
            "w",
            "r",
            "s/a/b/k",
            "s/a\nb/c/",
            "1,p",
            "1",
            "p p",
            "k",
            "y/a/b",
            "/unclosed",
            "s\\a\\b\\",
            ":",
            ":a b",
            "bx}w out",
            "a\\ \nw out",
            "i\\\\\nw out",
            "dw out",
        ] {
            assert!(read(script).unknown.is_some(), "{script}");
        }
    }

    #[test]
    fn many_brackets_do_not_take_for_ever() {
        let script = "s/[^/]*x[/]//;".repeat(500);
        let _ = read(&script);
        let script = "s/[/]/[/]/;".repeat(500);
        let _ = read(&script);
    }
}
