//! Counts characters in bytes that come in pieces.

/// Counts what [`String::from_utf8_lossy`] would show, piece by piece, without
/// keeping the text.
#[derive(Debug, Default)]
pub(crate) struct CharCount {
    counted: u64,
    /// The beginning of a character whose rest is still to come.
    open: Vec<u8>,
}

impl CharCount {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if self.open.is_empty() && bytes.is_ascii() {
            self.counted += bytes.len() as u64;
            return;
        }
        let mut joined = std::mem::take(&mut self.open);
        joined.extend_from_slice(bytes);
        let mut rest = joined.len();
        for chunk in joined.utf8_chunks() {
            self.counted += chunk.valid().chars().count() as u64;
            rest -= chunk.valid().len() + chunk.invalid().len();
            if rest == 0 && is_open(chunk.invalid()) {
                self.open = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                self.counted += 1;
            }
        }
    }

    /// Characters so far; an unfinished one counts as one.
    pub(crate) fn total(&self) -> u64 {
        self.counted + u64::from(!self.open.is_empty())
    }
}

/// Tells whether these bytes could still become a character.
fn is_open(bytes: &[u8]) -> bool {
    !bytes.is_empty() && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_as_lossy_decoding_shows_however_the_bytes_are_split() {
        let samples: [&[u8]; 6] = [
            b"plain",
            "é漢😀 mixed".as_bytes(),
            b"\xff\xfe\xfd",
            b"a\xe2\x82",
            b"\xf0\x9f\x98a\xc3\xa9\xed\xa0\x80",
            b"",
        ];
        for sample in samples {
            let expected = String::from_utf8_lossy(sample).chars().count() as u64;
            for size in 1..=sample.len().max(1) {
                let mut count = CharCount::default();
                sample.chunks(size).for_each(|piece| count.feed(piece));
                assert_eq!(count.total(), expected, "{sample:?} in pieces of {size}");
            }
        }
    }
}
