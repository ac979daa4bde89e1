//! Finds what is too random to be anything but a secret.

/// Characters from which on something random is noticed; what is shorter is
/// found by its name alone.
const LEAST: usize = 40;

/// Bits for each character, of 6 that base64 could have. Names made of words
/// stay below.
const LEAST_BITS: f64 = 4.0;

/// Lengths of the usual hashes in hexadecimal. Those are to be seen.
const HASHES: [usize; 5] = [40, 56, 64, 96, 128];

/// What is random and public.
const PUBLIC: &[&str] = &[
    "integrity",
    "checksum",
    "sha1",
    "sha256",
    "sha384",
    "sha512",
    "sha-256",
    "sha-512",
    "h1:",
    "md5",
    "digest",
    "hash",
    "ssh-rsa ",
    "ssh-ed25519 ",
    "ecdsa-sha2-",
    "base64,",
    "publickey",
    "public_key",
    "public key",
    "signature",
    "certificate",
    "resolved",
    "commit",
    "sourcemappingurl",
    "nonce-",
];

/// Returns where it is in a line.
pub(crate) fn find(line: &str) -> Vec<(usize, usize)> {
    // Most lines end here.
    if line.len() < LEAST {
        return vec![];
    }
    let found: Vec<_> = runs(line)
        .filter(|&(from, to)| is_random(&line[from..to]))
        .collect();
    if found.is_empty() || is_public(line) {
        return vec![];
    }
    found
}

fn is_public(line: &str) -> bool {
    let lower = line.to_lowercase();
    PUBLIC.iter().any(|word| lower.contains(word))
}

/// Runs of characters of base64, long enough.
fn runs(line: &str) -> impl Iterator<Item = (usize, usize)> {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    let bytes = line.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() && !plain(bytes[at]) {
            at += 1;
        }
        let from = at;
        while at < bytes.len() && plain(bytes[at]) {
            at += 1;
        }
        (from < at).then_some((from, at))
    })
    .filter(|(from, to)| to - from >= LEAST)
}

fn is_random(text: &str) -> bool {
    if text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        // 16 digits have at most 4 bits.
        return !HASHES.contains(&text.len()) && entropy(text) > 3.0;
    }
    let has = |kind: ByteClass| text.bytes().any(|byte| class(byte) == kind);
    has(ByteClass::Lower)
        && has(ByteClass::Upper)
        && has(ByteClass::Digit)
        && entropy(text) >= LEAST_BITS
        && turns(text) * 20 >= text.len() * 9
}

#[derive(PartialEq, Eq)]
enum ByteClass {
    Lower,
    Upper,
    Digit,
    Other,
}

fn class(byte: u8) -> ByteClass {
    match byte {
        b'a'..=b'z' => ByteClass::Lower,
        b'A'..=b'Z' => ByteClass::Upper,
        b'0'..=b'9' => ByteClass::Digit,
        _ => ByteClass::Other,
    }
}

/// How often the kind of character changes: in base64 at two of three places,
/// in names and paths at one of four.
fn turns(text: &str) -> usize {
    let bytes = text.as_bytes();
    bytes
        .windows(2)
        .filter(|pair| class(pair[0]) != class(pair[1]))
        .count()
}

/// Shannon's, in bits for each character.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let all = text.len() as f64;
    let share = |&count: &u32| f64::from(count) / all;
    let bits = |share: f64| -share * share.log2();
    counts
        .iter()
        .filter(|&&count| count > 0)
        .map(share)
        .map(bits)
        .sum()
}
