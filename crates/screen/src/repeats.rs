//! Bounds how often a program has its terminal repeat a character.
//!
//! The parser below writes each of them: half a megabyte of such requests would
//! keep it busy for half a minute.

use std::borrow::Cow;

/// More than any line has.
const MOST: usize = 1000;

/// Digits and what is between them, at the most.
const LONGEST: usize = 24;

/// Lowers the numbers in requests to repeat (`CSI n b`). One that comes in two
/// pieces is passed on as it is.
pub(crate) fn bounded(bytes: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let mut found: Vec<(usize, usize)> = vec![];
    for end in memchr::memchr_iter(b'b', &bytes) {
        let from = end.saturating_sub(LONGEST);
        let is_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b';' | b':');
        let length = { bytes[from..end].iter().rev() }
            .take_while(|byte| is_number(byte))
            .count();
        let begin = end - length;
        if length >= 4 && bytes[..begin].ends_with(b"\x1b[") {
            found.push((begin, end));
        }
    }
    if found.is_empty() {
        return bytes;
    }
    let mut bytes = bytes.into_owned();
    for (begin, end) in found {
        bytes[begin..end]
            .split_mut(|byte| !byte.is_ascii_digit())
            .for_each(lower);
    }
    Cow::Owned(bytes)
}

/// Lowers a number, in as many digits.
fn lower(digits: &mut [u8]) {
    let is_large = { digits.iter() }.fold(0_usize, |number, digit| {
        number.saturating_mul(10) + usize::from(digit - b'0')
    }) > MOST;
    if is_large {
        let most = format!("{MOST:0width$}", width = digits.len());
        digits.copy_from_slice(most.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_numbers_of_repeats_are_lowered() {
        for (text, expected) in [
            ("plain b", "plain b"),
            ("x\x1b[12b", "x\x1b[12b"),
            ("x\x1b[1000b", "x\x1b[1000b"),
            ("x\x1b[65535by\x1b[9999b", "x\x1b[01000by\x1b[1000b"),
            ("\x1b[65535;70000b", "\x1b[01000;01000b"),
            ("\x1b[65535C b", "\x1b[65535C b"),
            ("65535b", "65535b"),
        ] {
            let bounded = bounded(Cow::Borrowed(text.as_bytes()));
            assert_eq!(String::from_utf8_lossy(&bounded), expected);
        }
    }
}
