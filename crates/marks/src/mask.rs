//! Hides a secret in bytes that are cut anywhere, without holding any back.

use crate::nonce::Nonce;

/// This much of the secret is shown. A few characters of a nonce appear by
/// chance, and eight practically never do; the others are still 96 bits.
const SHOWN: usize = 8;

#[derive(Debug)]
pub(crate) struct Mask {
    nonce: Nonce,
    /// For each number of characters seen, how many of them begin the secret
    /// anew when the next one is wrong.
    again: Vec<usize>,
    seen: usize,
}

impl Mask {
    pub(crate) fn new(nonce: &Nonce) -> Self {
        let secret = nonce.secret().as_bytes();
        let mut again = vec![0; secret.len() + 1];
        let mut length = 0;
        for at in 1..secret.len() {
            while length > 0 && secret[at] != secret[length] {
                length = again[length];
            }
            if secret[at] == secret[length] {
                length += 1;
            }
            again[at + 1] = length;
        }
        Self {
            nonce: nonce.clone(),
            again,
            seen: 0,
        }
    }

    /// Replaces what is left of the secret once its beginning was seen.
    pub(crate) fn hide(&mut self, bytes: &mut [u8]) {
        let secret = self.nonce.secret().as_bytes();
        for byte in bytes {
            if self.seen == secret.len() {
                self.seen = self.again[self.seen];
            }
            while self.seen > 0 && *byte != secret[self.seen] {
                self.seen = self.again[self.seen];
            }
            if *byte == secret[self.seen] {
                self.seen += 1;
            }
            if self.seen > SHOWN {
                *byte = b'*';
            }
        }
    }
}
