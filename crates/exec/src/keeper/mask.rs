//! Hides in a command's output what it was given to use and not to show.
//!
//! Nothing is held back: a prompt is seen when it is written, and whoever counts
//! bytes counts the same as before. So of a value that comes in pieces a few
//! bytes are seen, and what only begins like one is hidden if it is cut there.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem::Finder;

/// Values with fewer bytes are in any text by chance.
const SHORTEST: usize = 6;

/// Bytes that are seen of a value whose rest has not come yet.
const SEEN: usize = 3;

/// Stands for a byte that is not shown.
const BLACK: u8 = b'*';

/// Hides the same values in one stream.
pub(super) struct Mask {
    forms: Vec<Finder<'static>>,
    /// The end of what came before, as it was: a value may go on.
    before: Vec<u8>,
}

impl Mask {
    pub(super) fn new(values: &[String]) -> Self {
        let mut forms: Vec<_> = values.iter().flat_map(|value| forms(value)).collect();
        forms.sort();
        forms.dedup();
        Self {
            forms: { forms.iter() }
                .map(|form| Finder::new(form).into_owned())
                .collect(),
            before: vec![],
        }
    }

    /// Takes the next bytes of the stream.
    pub(super) fn hide(&mut self, bytes: &mut [u8]) {
        if self.forms.is_empty() {
            return;
        }
        let old = self.before.len();
        let mut all = std::mem::take(&mut self.before);
        all.extend_from_slice(bytes);
        let mut black = |from: usize, to: usize| {
            bytes[from.max(old) - old..to - old].fill(BLACK);
        };
        for form in &self.forms {
            let size = form.needle().len();
            let mut from = 0;
            while let Some(at) = form.find(&all[from..]) {
                from += at + 1;
                let end = from - 1 + size;
                if end > old {
                    black(from - 1, end);
                }
            }
            let begun = begun(form.needle(), &all);
            let end = all.len();
            if begun > SEEN && end > old {
                black((end - begun + SEEN).max(old), end);
            }
        }
        let longest = self.forms.iter().map(|form| form.needle().len()).max();
        let kept = longest.unwrap_or(1) - 1;
        all.drain(..all.len().saturating_sub(kept));
        self.before = all;
    }
}

/// How much of the beginning of a form a text ends with.
fn begun(form: &[u8], text: &[u8]) -> usize {
    let most = (form.len() - 1).min(text.len());
    let sizes = (1..=most).rev();
    { sizes }
        .find(|&size| text.ends_with(&form[..size]))
        .unwrap_or(0)
}

/// How a value looks as it is and as tools write it: in base64 wherever it
/// begins, in hexadecimal, in addresses, in JSON. Each line counts by itself, since
/// terminals and tools indent and end them in their own ways.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![];
    for line in value.lines().map(str::trim).chain([value]) {
        if line.len() < SHORTEST {
            continue;
        }
        let bytes = line.as_bytes();
        forms.push(bytes.to_vec());
        forms.extend(in_base64(bytes));
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        forms.push(hex.to_uppercase().into_bytes());
        forms.push(hex.into_bytes());
        forms.extend(in_address(bytes));
        let json = serde_json::to_string(line).unwrap_or_default();
        forms.push(json.trim_matches('"').as_bytes().to_vec());
    }
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

/// The characters that stand for these bytes alone, whatever is before and
/// behind them.
fn in_base64(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![];
    for skipped in 0..3 {
        let padded = [&[0; 2][..skipped.min(2)], bytes].concat();
        let whole = padded.len() * 8 / 6;
        let first = (skipped * 8).div_ceil(6);
        for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let text = alphabet.encode(&padded).into_bytes();
            forms.push(text[first..whole.max(first)].to_vec());
        }
    }
    forms
}

fn in_address(bytes: &[u8]) -> [Vec<u8>; 2] {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let mut upper = String::new();
    for &byte in bytes {
        match plain(byte) {
            true => upper.push(char::from(byte)),
            false => upper.push_str(&format!("%{byte:02X}")),
        }
    }
    let lower = bytes.iter().map(|&byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02x}"),
    });
    let lower: String = lower.collect();
    [upper.into_bytes(), lower.into_bytes()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "gh/p_16C7e42F+2?9\"2c";

    fn shown(pieces: &[&[u8]]) -> String {
        let mut mask = Mask::new(&[VALUE.into(), "short".into()]);
        let mut shown = vec![];
        for piece in pieces {
            let mut piece = piece.to_vec();
            mask.hide(&mut piece);
            shown.extend(piece);
        }
        String::from_utf8(shown).unwrap()
    }

    fn stars(count: usize) -> String {
        "*".repeat(count)
    }

    #[test]
    fn a_value_is_hidden_and_what_is_around_it_is_not() {
        let text = format!("a {VALUE}{VALUE} short gh/p\n");
        let expected = format!("a {}{} short gh/p\n", stars(20), stars(20));
        assert_eq!(shown(&[text.as_bytes()]), expected);
    }

    #[test]
    fn of_a_value_in_pieces_three_bytes_are_seen() {
        let text = format!("a {VALUE} z");
        for at in 0..text.len() {
            let (one, two) = text.as_bytes().split_at(at);
            let said = shown(&[one, two]);
            let seen = said.trim_start_matches("a ").trim_end_matches(" z");
            assert_eq!(seen.len(), VALUE.len(), "{said}");
            let seen = seen.trim_end_matches('*');
            assert!(seen.len() <= SEEN && VALUE.starts_with(seen), "{said}");
        }
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(shown(&single), format!("a gh/{} z", stars(17)));
    }

    #[test]
    fn what_only_begins_alike_is_seen() {
        assert_eq!(shown(&[b"gh/p_16C7 ok"]), "gh/p_16C7 ok");
        assert_eq!(shown(&[b"gh/", b"x"]), "gh/x");
    }

    #[test]
    fn other_ways_to_write_it_are_known() {
        let hidden = |text: &str| {
            let said = shown(&[text.as_bytes()]);
            let left = said.len() - said.matches('*').count();
            // What is before and behind it has a part in some characters.
            assert!(left <= 5, "{text}: {said}");
        };
        for before in ["", "a", "ab"] {
            let text = format!("{before}{VALUE}\n");
            hidden(&STANDARD_NO_PAD.encode(&text));
            hidden(&URL_SAFE_NO_PAD.encode(&text));
        }
        hidden("gh%2Fp_16C7e42F%2B2%3F9%222c");
        hidden("gh%2fp_16C7e42F%2b2%3f9%222c");
        hidden(r#"gh/p_16C7e42F+2?9\"2c"#);
        let hex: String = VALUE.bytes().map(|byte| format!("{byte:02X}")).collect();
        hidden(&hex);
    }

    #[test]
    fn the_lines_of_a_key_are_hidden_wherever_they_are() {
        let mut mask = Mask::new(&["BEGIN KEY\nabcdefgh\nijklmnop\n".into()]);
        let mut text = b"  abcdefgh\r\n  ijklmnop\r\n".to_vec();
        mask.hide(&mut text);
        assert_eq!(text, b"  ********\r\n  ********\r\n");
    }
}
