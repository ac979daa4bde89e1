//! The secret that tells a shell's marks from forged ones.

use std::fmt;

/// A secret made for one terminal.
#[derive(Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// Makes a nonce of bytes that nobody can guess.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Reads a nonce that was kept, if it is one.
    pub fn from_secret(text: &str) -> Option<Self> {
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 32 && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    /// Returns the text, which must not reach a program, a log or a person.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Nonce(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_nonce_is_the_same() {
        let nonce = Nonce::from_random(*b"0123456789abcdef");
        assert_eq!(Nonce::from_secret(nonce.secret()), Some(nonce));
        assert_eq!(Nonce::from_secret("'; rm -rf ~; '"), None);
    }

    #[test]
    fn a_nonce_is_not_shown_by_debugging() {
        let nonce = Nonce::from_random([0xab; 16]);
        assert!(!format!("{nonce:?}").contains("ab"));
    }
}
