//! Bytes as text, with characters whole.

/// Makes text of bytes that are cut anywhere.
#[derive(Debug, Default)]
pub(super) struct TextDecoder {
    /// The beginning of a character, at most three bytes.
    begun: Vec<u8>,
}

impl TextDecoder {
    /// Returns the text so far. A character that is cut off comes with the
    /// next bytes; what is not UTF-8 is replaced.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> String {
        let joined;
        let mut rest = match self.begun.is_empty() {
            true => bytes,
            false => {
                self.begun.extend_from_slice(bytes);
                joined = std::mem::take(&mut self.begun);
                &joined
            }
        };
        let mut text = String::with_capacity(rest.len());
        loop {
            let error = match str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => error,
            };
            let (valid, after) = rest.split_at(error.valid_up_to());
            text.push_str(str::from_utf8(valid).expect("valid up to here"));
            let Some(invalid) = error.error_len() else {
                self.begun = after.to_vec();
                return text;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &after[invalid..];
        }
    }

    /// Returns what stands for a character that will not be completed.
    pub(super) fn finish(&mut self) -> Option<String> {
        let begun = std::mem::take(&mut self.begun);
        (!begun.is_empty()).then(|| String::from_utf8_lossy(&begun).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_whole_however_they_are_cut() {
        let all = "aä漢😀\u{301}z".as_bytes();
        for first in 0..=all.len() {
            for second in first..=all.len() {
                let mut text = TextDecoder::default();
                let found = [&all[..first], &all[first..second], &all[second..]]
                    .map(|bytes| text.feed(bytes))
                    .concat();
                assert_eq!(found.as_bytes(), all);
                assert_eq!(text.finish(), None);
            }
        }
    }

    #[test]
    fn what_is_not_text_is_replaced() {
        let mut text = TextDecoder::default();
        assert_eq!(text.feed(b"a\xFF\xC3"), "a\u{FFFD}");
        assert_eq!(text.feed(b"b\xE6\xBC"), "\u{FFFD}b");
        assert_eq!(text.finish(), Some("\u{FFFD}".into()));
    }
}
