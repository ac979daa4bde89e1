//! Keys by name, as a terminal sends them.

use crate::view::Modes;

/// Returns what to send to a program when a key is pressed.
///
/// Names are those of tmux: `Enter`, `Up`, `F5`, `a`, with `C-`, `M-` (Alt)
/// and `S-` in front, as in `C-c`, `M-x`, `C-Left`. There is nothing for a
/// name that no key has, nor for a combination that terminals cannot send.
pub fn key(name: &str, modes: &Modes) -> Option<Vec<u8>> {
    let (held, name) = Modifiers::split(name);
    let mut letters = name.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return character(letter, held);
    }
    match named(&name.to_ascii_lowercase())? {
        KeyCode::Byte(byte) => control(byte, held),
        KeyCode::Letter(letter) => Some(sequence(letter, held, modes.application_cursor)),
        KeyCode::Function(letter) => Some(sequence(letter, held, true)),
        KeyCode::Number(number) => Some(tilde(number, held)),
        KeyCode::BackTab => {
            (held == Modifiers::default() || held == Modifiers::SHIFT).then(|| b"\x1b[Z".into())
        }
    }
}

/// The keys held down with another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Modifiers {
    shift: bool,
    alt: bool,
    control: bool,
}

impl Modifiers {
    const SHIFT: Self = Self {
        shift: true,
        alt: false,
        control: false,
    };

    fn split(mut name: &str) -> (Self, &str) {
        let mut held = Self::default();
        loop {
            let which = match name.as_bytes() {
                [b'S' | b's', b'-', _, ..] => &mut held.shift,
                [b'M' | b'm', b'-', _, ..] => &mut held.alt,
                [b'C' | b'c', b'-', _, ..] => &mut held.control,
                _ => return (held, name),
            };
            // Said twice is a mistake; the rest is then no key's name.
            if std::mem::replace(which, true) {
                return (held, name);
            }
            name = &name[2..];
        }
    }

    /// The number xterm gives the combination; 1 is none.
    fn number(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.alt) + 4 * u8::from(self.control)
    }
}

enum KeyCode {
    /// Sent as this one byte.
    Byte(u8),
    /// Ends in this letter, and depends on the cursor mode.
    Letter(u8),
    /// Ends in this letter, and does not depend on the cursor mode.
    Function(u8),
    /// Has this number and ends in `~`.
    Number(u8),
    BackTab,
}

fn named(name: &str) -> Option<KeyCode> {
    Some(match name {
        "enter" => KeyCode::Byte(b'\r'),
        "tab" => KeyCode::Byte(b'\t'),
        "btab" => KeyCode::BackTab,
        "esc" | "escape" => KeyCode::Byte(0x1B),
        "space" => KeyCode::Byte(b' '),
        "bspace" | "backspace" => KeyCode::Byte(0x7F),
        "up" => KeyCode::Letter(b'A'),
        "down" => KeyCode::Letter(b'B'),
        "right" => KeyCode::Letter(b'C'),
        "left" => KeyCode::Letter(b'D'),
        "home" => KeyCode::Letter(b'H'),
        "end" => KeyCode::Letter(b'F'),
        "insert" | "ic" => KeyCode::Number(2),
        "delete" | "dc" => KeyCode::Number(3),
        "pageup" | "pgup" | "ppage" => KeyCode::Number(5),
        "pagedown" | "pgdn" | "npage" => KeyCode::Number(6),
        "f1" => KeyCode::Function(b'P'),
        "f2" => KeyCode::Function(b'Q'),
        "f3" => KeyCode::Function(b'R'),
        "f4" => KeyCode::Function(b'S'),
        "f5" => KeyCode::Number(15),
        "f6" => KeyCode::Number(17),
        "f7" => KeyCode::Number(18),
        "f8" => KeyCode::Number(19),
        "f9" => KeyCode::Number(20),
        "f10" => KeyCode::Number(21),
        "f11" => KeyCode::Number(23),
        "f12" => KeyCode::Number(24),
        _ => return None,
    })
}

fn character(letter: char, held: Modifiers) -> Option<Vec<u8>> {
    if letter.is_control() || (held.shift && (held.control || !letter.is_ascii_alphabetic())) {
        return None;
    }
    let sent = match (held.control, held.shift) {
        (true, _) => char::from(controlled(letter)?),
        (false, true) => letter.to_ascii_uppercase(),
        (false, false) => letter,
    };
    Some(with_alt(sent.to_string().as_bytes(), held))
}

fn controlled(letter: char) -> Option<u8> {
    match letter.to_ascii_uppercase() {
        letter @ '@'..='_' => Some(letter as u8 & 0x1F),
        '/' => Some(0x1F),
        '?' => Some(0x7F),
        _ => None,
    }
}

fn control(byte: u8, held: Modifiers) -> Option<Vec<u8>> {
    match (byte, held.control, held.shift) {
        (_, false, false) => Some(with_alt(&[byte], held)),
        (b'\t', false, true) if !held.alt => Some(b"\x1b[Z".into()),
        (b' ', true, false) => Some(with_alt(&[0], held)),
        (0x7F, true, false) => Some(with_alt(&[0x08], held)),
        _ => None,
    }
}

fn with_alt(bytes: &[u8], held: Modifiers) -> Vec<u8> {
    let escape: &[u8] = if held.alt { b"\x1b" } else { b"" };
    [escape, bytes].concat()
}

fn sequence(letter: u8, held: Modifiers, application: bool) -> Vec<u8> {
    match held.number() {
        1 if application => vec![0x1B, b'O', letter],
        1 => vec![0x1B, b'[', letter],
        number => format!("\x1b[1;{number}{}", char::from(letter)).into_bytes(),
    }
}

fn tilde(key: u8, held: Modifiers) -> Vec<u8> {
    match held.number() {
        1 => format!("\x1b[{key}~").into_bytes(),
        number => format!("\x1b[{key};{number}~").into_bytes(),
    }
}
