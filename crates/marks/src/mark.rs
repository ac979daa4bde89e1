//! One thing that a shell told.

use std::ops::Range;
use std::path::PathBuf;

use crate::nonce::Nonce;
use crate::platform::path_from_bytes;

/// A mark that the shell made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Which bytes of the terminal's output it takes.
    pub at: Range<u64>,
    /// What it says.
    pub sign: Sign,
}

/// What a shell can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// A prompt begins.
    Prompt,
    /// The prompt is complete; what follows is typed. May come again when the
    /// shell draws its prompt again.
    Input {
        /// The shell will not tell where output begins.
        quiet: bool,
        /// It edits lines itself, and takes what is pasted as it is.
        edits: bool,
    },
    /// The prompt for the rest of a command is complete.
    More,
    /// The command was read; what follows is its output.
    Output {
        /// The command, if the shell remembers it.
        command: Option<ShellCommand>,
    },
    /// Comes before every prompt. Ends the output if there was a command.
    Done {
        /// The shell's `$?`.
        exit: Option<i32>,
    },
    /// The working directory.
    Directory(PathBuf),
}

/// A command as the shell remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    /// Its text.
    pub text: String,
    /// Whether that is all of it. Of long ones the shell tells the beginning.
    pub whole: bool,
}

impl Sign {
    /// Reads what stands between `ESC ] 133 ;` and the end of the sequence.
    /// Returns `None` for what our shell did not make.
    pub(crate) fn read(body: &[u8], nonce: &Nonce) -> Option<Self> {
        let mut fields = body.split(|&byte| byte == b';');
        let kind = fields.next()?;
        let fields: Vec<&[u8]> = fields.collect();
        let (secret, fields) = fields.split_last()?;
        if secret.strip_prefix(b"wl=") != Some(nonce.secret().as_bytes()) {
            return None;
        }
        let field = fields.first().copied();
        match kind {
            b"A" => Some(Self::Prompt),
            b"B" if field == Some(b"more") => Some(Self::More),
            b"B" => Some(Self::Input {
                quiet: field == Some(b"quiet"),
                edits: field == Some(b"edits"),
            }),
            b"C" => Some(Self::Output {
                command: field.and_then(command),
            }),
            b"D" => Some(Self::Done {
                exit: field.and_then(number),
            }),
            b"P" => {
                let path = decode(field?.strip_prefix(b"cwd=")?);
                Some(Self::Directory(path_from_bytes(path)))
            }
            _ => None,
        }
    }
}

fn command(field: &[u8]) -> Option<ShellCommand> {
    if let Some(text) = field.strip_prefix(b"cmd=") {
        let text = String::from_utf8_lossy(&decode(text)).into_owned();
        return Some(ShellCommand { text, whole: true });
    }
    let text = decode(field.strip_prefix(b"head=")?);
    let mut text = String::from_utf8_lossy(&text).into_owned();
    // The shell counts bytes and may have cut a character.
    if text.ends_with(char::REPLACEMENT_CHARACTER) {
        text.pop();
    }
    Some(ShellCommand { text, whole: false })
}

fn number(field: &[u8]) -> Option<i32> {
    str::from_utf8(field).ok()?.parse().ok()
}

/// Decodes `%41`; anything else stands for itself.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        match (byte, after.get(..2).and_then(hex)) {
            (b'%', Some(code)) => {
                decoded.push(code);
                rest = &after[2..];
            }
            _ => {
                decoded.push(byte);
                rest = after;
            }
        }
    }
    decoded
}

fn hex(digits: &[u8]) -> Option<u8> {
    // Not parsed as a number, which could have a sign.
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(digits[0])? * 16 + digit(digits[1])?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: [u8; 16] = [0x11; 16];

    fn check(body: &str, expected: Option<Sign>) {
        let nonce = Nonce::from_random(NONCE);
        let body = body.replace("NONCE", nonce.secret());
        assert_eq!(Sign::read(body.as_bytes(), &nonce), expected, "{body}");
    }

    #[test]
    fn every_sign_is_read() {
        check("A;wl=NONCE", Some(Sign::Prompt));
        let input = |quiet, edits| Some(Sign::Input { quiet, edits });
        check("B;wl=NONCE", input(false, false));
        check("B;quiet;wl=NONCE", input(true, false));
        check("B;edits;wl=NONCE", input(false, true));
        check("B;more;wl=NONCE", Some(Sign::More));
        check("C;wl=NONCE", Some(Sign::Output { command: None }));
        check("D;130;wl=NONCE", Some(Sign::Done { exit: Some(130) }));
        check("D;wl=NONCE", Some(Sign::Done { exit: None }));
        check(
            "P;cwd=/a%3Bb%25%;wl=NONCE",
            Some(Sign::Directory("/a;b%%".into())),
        );
    }

    #[test]
    fn a_command_is_whole_or_says_that_it_is_not() {
        let told = |text: &str, whole| {
            let text = text.to_owned();
            Some(Sign::Output {
                command: Some(ShellCommand { text, whole }),
            })
        };
        check("C;cmd=a%0Ab%3B ü;wl=NONCE", told("a\nb; ü", true));
        check("C;head=abc%C3;wl=NONCE", told("abc", false));
    }

    #[test]
    fn without_the_nonce_it_is_no_mark() {
        for body in [
            "",
            "A",
            "A;wl=",
            "A;wl=00000000000000000000000000000000",
            "A;wl=NONCEx",
            "A;NONCE",
            "A;wl=NONCE;",
            "D;0;wl=NONCE;wl=1",
            "X;wl=NONCE",
            "P;wl=NONCE",
        ] {
            check(body, None);
        }
    }
}
