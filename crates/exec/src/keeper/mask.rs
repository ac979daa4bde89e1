//! Hides in a command's output what it was given to use and not to show.
//!
//! Nothing is held back: a prompt is seen when it is written, and byte counts
//! stay the same. So of a value that comes in pieces a few bytes are seen, and
//! what only begins like one is hidden if it is cut there.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::spec::Hidden;

/// Values with fewer bytes are in any text by chance.
const SHORTEST: usize = 6;

/// Lines of a longer value with fewer bytes are, too: `users:`.
const SHORTEST_LINE: usize = 16;

/// Bytes that are seen of a value whose rest has not come yet.
const SEEN: usize = 3;

/// Stands for a byte that is not shown.
const BLACK: u8 = b'*';

/// Hides the same values in one stream.
#[derive(Default)]
pub(super) struct Mask {
    forms: Vec<SecretForm>,
    /// All of them; none where there are none.
    all: Option<AhoCorasick>,
    /// Whether what may go on in the next piece is hidden already.
    in_pieces: bool,
    /// The last bytes before this piece, unmasked: a value may go on.
    before: Vec<u8>,
}

/// How a value may look.
struct SecretForm {
    bytes: Vec<u8>,
    /// For each number of bytes that are the same, how many of them begin the
    /// form anew when the next is another.
    again: Vec<usize>,
}

/// Hides whole values in a text.
pub fn hide(text: &str, values: &[String]) -> String {
    let mut mask = Mask::new(&Hidden {
        values: values.to_vec(),
        in_pieces: false,
    });
    let mut bytes = text.as_bytes().to_vec();
    mask.hide(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Mask {
    pub(super) fn new(hidden: &Hidden) -> Self {
        let mut forms: Vec<_> = hidden.values.iter().flat_map(|one| forms(one)).collect();
        forms.sort();
        forms.dedup();
        if forms.is_empty() {
            return Self::default();
        }
        // Small rather than fast: a key of several KiB has ten times as many states.
        let all = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::Standard)
            .build(&forms);
        Self {
            all: Some(all.expect("an environment is smaller than what fits")),
            forms: forms.into_iter().map(SecretForm::new).collect(),
            in_pieces: hidden.in_pieces,
            before: vec![],
        }
    }

    /// Takes the next bytes of the stream.
    pub(super) fn hide(&mut self, bytes: &mut [u8]) {
        let Some(forms) = &self.all else {
            return;
        };
        let old = self.before.len();
        self.before.extend_from_slice(bytes);
        // Tools break long lines, so ends of lines do not count.
        let solid = |&at: &usize| !is_break(self.before[at]);
        let places: Vec<usize> = (0..self.before.len()).filter(solid).collect();
        let flat: Vec<u8> = places.iter().map(|&at| self.before[at]).collect();
        // At each place, how many begin there less how many end.
        let mut turns = vec![0_i32; flat.len() + 1];
        let mut cover = |from: usize, to: usize| {
            turns[from] += 1;
            turns[to] -= 1;
        };
        for found in forms.find_overlapping_iter(&flat) {
            cover(found.start(), found.end());
        }
        let begun = self.forms.iter().map(|form| form.begun(&flat));
        let begun = begun.max().unwrap_or(0);
        // What goes on in the next line is long.
        let seen = match bytes.last() {
            Some(&byte) if is_break(byte) => SHORTEST_LINE,
            _ => SEEN,
        };
        if self.in_pieces && begun > seen {
            cover(flat.len() - begun + seen, flat.len());
        }
        let mut inside = 0;
        for (&at, turn) in places.iter().zip(turns) {
            inside += turn;
            if inside > 0 && at >= old {
                bytes[at - old] = BLACK;
            }
        }
        self.forget(&places);
    }

    /// Keeps only what a value could begin with.
    fn forget(&mut self, places: &[usize]) {
        let longest = self.forms.iter().map(|form| form.bytes.len()).max();
        let kept = longest.map_or(0, |longest| longest - 1);
        let first = places.len().checked_sub(kept);
        if let Some(first) = first {
            let from = places.get(first).copied();
            self.before.drain(..from.unwrap_or(self.before.len()));
        }
    }
}

impl SecretForm {
    fn new(bytes: Vec<u8>) -> Self {
        let mut form = Self {
            again: vec![0; bytes.len() + 1],
            bytes,
        };
        let mut same = 0;
        for at in 1..form.bytes.len() {
            same = form.step(same, form.bytes[at]);
            form.again[at + 1] = same;
        }
        form
    }

    /// How many bytes are the same after one more.
    fn step(&self, mut same: usize, byte: u8) -> usize {
        while same > 0 && self.bytes[same] != byte {
            same = self.again[same];
        }
        same + usize::from(self.bytes[same] == byte)
    }

    /// How much of its beginning a text ends with.
    fn begun(&self, text: &[u8]) -> usize {
        let most = text.len().min(self.bytes.len() - 1);
        let end = &text[text.len() - most..];
        end.iter().fold(0, |same, &byte| self.step(same, byte))
    }
}

fn is_break(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

/// How a value looks as it is and as tools write it: in base64 wherever it
/// begins, in hexadecimal, in addresses, in JSON. Each line counts by itself, since
/// terminals and tools indent them in their own ways.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let lines = value.lines().map(str::trim);
    let lines = lines.filter(|line| line.len() >= SHORTEST_LINE);
    let mut forms = vec![];
    for text in lines.chain([value.trim()]) {
        let bytes = text.as_bytes();
        forms.push(bytes.to_vec());
        forms.extend(in_base64(bytes));
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        forms.push(hex.to_uppercase().into_bytes());
        forms.push(hex.into_bytes());
        forms.extend(in_addresses(bytes));
        forms.extend(in_json(text));
    }
    for form in &mut forms {
        form.retain(|&byte| !is_break(byte));
    }
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

/// The characters that stand for these bytes alone, whatever is before and
/// behind them.
fn in_base64(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![];
    for before in [&[][..], &[0], &[0, 0]] {
        let whole = (before.len() + bytes.len()) * 8 / 6;
        let first = (before.len() * 8).div_ceil(6).min(whole);
        for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let text = alphabet.encode([before, bytes].concat());
            forms.push(text.as_bytes()[first..whole].to_vec());
        }
    }
    forms
}

/// With all that is special written as `%`, without `/`, and as in forms.
fn in_addresses(bytes: &[u8]) -> Vec<Vec<u8>> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let write = |kept: &[u8], blank: &str| {
        let mut text = String::new();
        for &byte in bytes {
            match byte {
                b' ' if !blank.is_empty() => text.push_str(blank),
                byte if plain(byte) || kept.contains(&byte) => text.push(char::from(byte)),
                byte => text.push_str(&format!("%{byte:02X}")),
            }
        }
        text
    };
    let upper = [write(b"", ""), write(b"/", ""), write(b"", "+")];
    let lower = |text: &String| {
        let mut parts = text.split('%');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| {
            let (code, rest) = part.split_at(2.min(part.len()));
            format!("{text}%{}{rest}", code.to_lowercase())
        })
    };
    let lower: Vec<String> = upper.iter().map(lower).collect();
    let all = upper.into_iter().chain(lower);
    all.map(String::into_bytes).collect()
}

/// As it is, and in plain characters alone.
fn in_json(text: &str) -> [Vec<u8>; 2] {
    let whole = serde_json::to_string(text).unwrap_or_default();
    let inner = whole.get(1..whole.len().saturating_sub(1));
    let inner = inner.unwrap_or_default().to_owned();
    let mut plain = String::new();
    for c in inner.chars() {
        match c.is_ascii() {
            true => plain.push(c),
            false => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    plain.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    [inner.into_bytes(), plain.into_bytes()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "gh/p_16C7e42F+2?9\"2c";

    fn hidden(values: &[&str]) -> Hidden {
        Hidden {
            values: values.iter().map(|&value| value.into()).collect(),
            in_pieces: true,
        }
    }

    fn shown(pieces: &[&[u8]]) -> String {
        let mut mask = Mask::new(&hidden(&[VALUE, "short"]));
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
    fn lines_that_tools_have_broken_count() {
        let long = VALUE.repeat(5);
        let hex: String = long.bytes().map(|byte| format!("{byte:02x}")).collect();
        for text in [STANDARD_NO_PAD.encode(&long), hex] {
            let lines: Vec<&[u8]> = text.as_bytes().chunks(60).collect();
            let text = lines.join(&b"\r\n"[..]);
            let mut mask = Mask::new(&hidden(&[&long]));
            let mut said = text.clone();
            mask.hide(&mut said);
            let said = String::from_utf8(said).unwrap();
            let left = said.chars().filter(|&c| c != '*' && c != '\r' && c != '\n');
            assert!(left.count() <= 2, "{said}");
            assert_eq!(said.lines().count(), lines.len());
        }
    }

    #[test]
    fn the_lines_of_a_key_are_hidden_wherever_they_are() {
        let key = "users:\n  token: abcdefghijklmnop\n  key: qrstuvwxyz0123456789\n";
        let mut mask = Mask::new(&hidden(&[key]));
        let mut text = b"users: |token: abcdefghijklmnop|\r\n".to_vec();
        mask.hide(&mut text);
        let stars = stars("token: abcdefghijklmnop".len());
        assert_eq!(text, format!("users: |{stars}|\r\n").into_bytes());
    }

    #[test]
    fn a_value_that_is_all_alike_takes_no_longer_than_others() {
        let value = "a".repeat(30_000);
        let mut mask = Mask::new(&hidden(&[&value]));
        let mut text = vec![b'a'; 1 << 20];
        mask.hide(&mut text);
        assert!(text.iter().all(|&byte| byte == b'*'));
    }

    #[test]
    fn who_was_not_given_a_value_learns_nothing_of_its_beginning() {
        let mut mask = Mask::new(&Hidden {
            in_pieces: false,
            ..hidden(&[VALUE])
        });
        let mut guess = VALUE.as_bytes()[..10].to_vec();
        mask.hide(&mut guess);
        assert_eq!(guess, &VALUE.as_bytes()[..10]);
        assert_eq!(
            hide(&format!("x{VALUE}"), &[VALUE.into()]),
            format!("x{}", stars(20))
        );
    }
}
