//! Secrets, of which only hashes are kept.

use sha2::{Digest, Sha256};

use crate::hex::hex;

/// 256 bits that nobody can guess.
pub(super) fn secret(prefix: &str) -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the kernel has randomness");
    format!("{prefix}{}", hex(&bytes))
}

pub(super) fn hash(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}
