//! Keys of the player.

/// What was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Enter,
    Escape,
    Left,
    Right,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl C, Ctrl D.
    Quit,
    Other,
}

/// Takes the first key from what was typed, of which there may be more when
/// one is held. Returns the rest with it.
pub(super) fn first(bytes: &[u8]) -> Option<(Key, &[u8])> {
    let (&first, after) = bytes.split_first()?;
    Some(match (first, after) {
        (27, []) => (Key::Escape, after),
        (27, [b'[' | b'O', after @ ..]) => sequence(after),
        (27, [_, after @ ..]) => (Key::Other, after),
        (3 | 4, _) => (Key::Quit, after),
        (b'\r' | b'\n', _) => (Key::Enter, after),
        (b' '..=b'~', _) => (Key::Char(char::from(first)), after),
        _ => (Key::Other, after),
    })
}

/// Reads what follows `ESC [`.
fn sequence(bytes: &[u8]) -> (Key, &[u8]) {
    let Some(last) = bytes.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return (Key::Other, &[]);
    };
    let key = match &bytes[..=last] {
        b"A" => Key::Up,
        b"B" => Key::Down,
        b"C" => Key::Right,
        b"D" => Key::Left,
        b"H" | b"1~" => Key::Home,
        b"F" | b"4~" => Key::End,
        b"5~" => Key::PageUp,
        b"6~" => Key::PageDown,
        _ => Key::Other,
    };
    (key, &bytes[last + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(mut bytes: &[u8]) -> Vec<Key> {
        let mut keys = vec![];
        while let Some((key, rest)) = first(bytes) {
            keys.push(key);
            bytes = rest;
        }
        keys
    }

    #[test]
    fn keys_are_told_apart() {
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        assert_eq!(keys(b"\x1b[C\x1bOD"), [Key::Right, Key::Left]);
        assert_eq!(
            keys(b"]] \r"),
            [Key::Char(']'), Key::Char(']'), Key::Char(' '), Key::Enter]
        );
        assert_eq!(keys(b"\x1b[1;5Cq"), [Key::Other, Key::Char('q')]);
        assert_eq!(keys(b"\x03"), [Key::Quit]);
        assert_eq!(keys(b"\x1b[5~"), [Key::PageUp]);
    }
}
