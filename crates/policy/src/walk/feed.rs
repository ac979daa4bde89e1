//! What flows into standard input, where that can be told.

use std::rc::Rc;

use weighlock_shell::{Command, CommandKind, List};

use super::Walk;

/// What standard input brings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StdinFeed {
    /// The text, where it is plain to see.
    pub(super) text: Option<Rc<str>>,
    /// Something from the network is in it.
    pub(super) download: bool,
    /// It is a list of paths like these.
    pub(super) paths: Option<Vec<String>>,
}

impl Walk<'_> {
    /// Returns what a substitution puts out, where that is plain to see.
    pub(super) fn output_of(&mut self, list: &List) -> Option<String> {
        let [item] = list.items.as_slice() else {
            return None;
        };
        let mut text = None;
        for (at, stage) in item.pipeline.stages.iter().enumerate() {
            text = self.output(stage, text.as_deref());
            if text.is_none() {
                debug_assert!(at < item.pipeline.stages.len());
                return None;
            }
        }
        text
    }

    /// Returns what one command puts out, given what comes in. Only for
    /// programs that echo what they are given.
    pub(super) fn output(&mut self, stage: &Command, input: Option<&str>) -> Option<String> {
        let CommandKind::Simple(simple) = &stage.kind else {
            return None;
        };
        let argv = self.argv(&simple.words, Some(0));
        let words: Vec<&str> = argv
            .iter()
            .map(|arg| arg.text.as_deref())
            .collect::<Option<_>>()?;
        let here = stage
            .redirections
            .iter()
            .rev()
            .find(|redirection| {
                matches!(
                    redirection.op,
                    weighlock_shell::Redirect::HereDocument | weighlock_shell::Redirect::HereString
                )
            })
            .and_then(|redirection| self.plain_text(&redirection.target));
        let input = here.as_deref().or(input);
        match *words.first()? {
            "echo" => Some(echo(&words[1..])),
            "printf" => printf(&words[1..]),
            "cat" | "tee" if words.len() == 1 => input.map(str::to_owned),
            "base64"
                if words[1..]
                    .iter()
                    .any(|word| matches!(*word, "-d" | "-D" | "--decode" | "-di")) =>
            {
                base64(input?)
            }
            "which" | "command" | "type" => Some(program_of(&words)?.to_owned()),
            "rev" => Some(input?.trim_end().chars().rev().collect()),
            "xxd" if words.contains(&"-r") => hex(input?),
            _ => None,
        }
    }
}

/// Returns the program whose path is asked for: `which sudo`. Its path is as good
/// as its name.
fn program_of<'a>(words: &[&'a str]) -> Option<&'a str> {
    match *words {
        ["which", name] | ["command", "-v", name] | ["type", "-P" | "-p", name] => Some(name),
        _ => None,
    }
}

fn echo(words: &[&str]) -> String {
    let flags = words
        .iter()
        .take_while(|word| matches!(**word, "-n" | "-e" | "-E" | "-ne" | "-en"))
        .count();
    let text = words[flags..].join(" ");
    let escapes = words[..flags].iter().any(|word| word.contains('e'));
    if escapes { unescape(&text) } else { text }
}

/// Fills in the arguments in order, whatever the letter of the directive is.
fn printf(words: &[&str]) -> Option<String> {
    let words = words.strip_prefix(&["--"]).unwrap_or(words);
    let (format, mut values) = (unescape(words.first()?), words[1..].iter());
    let mut out = String::new();
    loop {
        let mut rest = format.chars();
        let mut used = false;
        while let Some(next) = rest.next() {
            if next != '%' {
                out.push(next);
                continue;
            }
            let directive: Option<char> = rest.find(|c| c.is_alphabetic() || *c == '%');
            match directive? {
                '%' => out.push('%'),
                'b' => out.push_str(&unescape(values.next().unwrap_or(&""))),
                _ => out.push_str(values.next().unwrap_or(&"")),
            }
            used |= directive != Some('%');
        }
        if !used || values.len() == 0 {
            return Some(out);
        }
    }
}

fn unescape(text: &str) -> String {
    let mut out = vec![];
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' || at + 1 == bytes.len() {
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        let next = bytes[at + 1];
        at += 2;
        let number = |from: usize, most: usize, radix: u32| {
            let digits = bytes[from..]
                .iter()
                .take(most)
                .take_while(|byte| (**byte as char).is_digit(radix))
                .count();
            let text = std::str::from_utf8(&bytes[from..from + digits]).unwrap_or("");
            (u32::from_str_radix(text, radix).unwrap_or(0) as u8, digits)
        };
        match next {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'x' => {
                let (value, digits) = number(at, 2, 16);
                out.push(value);
                at += digits;
            }
            b'0'..=b'7' => {
                let (value, digits) = number(at - 1, 4, 8);
                out.push(value);
                at += digits - 1;
            }
            other => out.push(other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn base64(text: &str) -> Option<String> {
    let mut out = vec![];
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    String::from_utf8(out).ok()
}

fn hex(text: &str) -> Option<String> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    let bytes = digits
        .chunks_exact(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect();
    String::from_utf8(bytes).ok()
}
