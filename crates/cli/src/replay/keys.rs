//! Keys of the player.

/// What was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplayKey {
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
pub(super) fn first(bytes: &[u8]) -> Option<(ReplayKey, &[u8])> {
    let (&first, after) = bytes.split_first()?;
    Some(match (first, after) {
        (27, []) => (ReplayKey::Escape, after),
        (27, [b'[' | b'O', after @ ..]) => sequence(after),
        (27, [_, after @ ..]) => (ReplayKey::Other, after),
        (3 | 4, _) => (ReplayKey::Quit, after),
        (b'\r' | b'\n', _) => (ReplayKey::Enter, after),
        (b' '..=b'~', _) => (ReplayKey::Char(char::from(first)), after),
        _ => (ReplayKey::Other, after),
    })
}

/// Reads what follows `ESC [`.
fn sequence(bytes: &[u8]) -> (ReplayKey, &[u8]) {
    let Some(last) = bytes.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return (ReplayKey::Other, &[]);
    };
    let key = match &bytes[..=last] {
        b"A" => ReplayKey::Up,
        b"B" => ReplayKey::Down,
        b"C" => ReplayKey::Right,
        b"D" => ReplayKey::Left,
        b"H" | b"1~" => ReplayKey::Home,
        b"F" | b"4~" => ReplayKey::End,
        b"5~" => ReplayKey::PageUp,
        b"6~" => ReplayKey::PageDown,
        _ => ReplayKey::Other,
    };
    (key, &bytes[last + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(mut bytes: &[u8]) -> Vec<ReplayKey> {
        let mut keys = vec![];
        while let Some((key, rest)) = first(bytes) {
            keys.push(key);
            bytes = rest;
        }
        keys
    }

    #[test]
    fn keys_are_told_apart() {
        assert_eq!(keys(b"\x1b"), [ReplayKey::Escape]);
        assert_eq!(keys(b"\x1b[C\x1bOD"), [ReplayKey::Right, ReplayKey::Left]);
        assert_eq!(
            keys(b"]] \r"),
            [
                ReplayKey::Char(']'),
                ReplayKey::Char(']'),
                ReplayKey::Char(' '),
                ReplayKey::Enter
            ]
        );
        assert_eq!(
            keys(b"\x1b[1;5Cq"),
            [ReplayKey::Other, ReplayKey::Char('q')]
        );
        assert_eq!(keys(b"\x03"), [ReplayKey::Quit]);
        assert_eq!(keys(b"\x1b[5~"), [ReplayKey::PageUp]);
    }
}
