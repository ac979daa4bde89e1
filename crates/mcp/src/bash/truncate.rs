//! Long text, cut in the middle.

/// Characters of a text that are shown.
pub(super) const MOST: usize = 30_000;

/// Returns both ends of a text that is longer than may be shown, as the
/// server's own cut does; and whether it was.
pub(super) fn truncate(text: String) -> (String, bool) {
    let count = text.chars().count();
    if count <= MOST {
        return (text, false);
    }
    let byte = |chars: usize| text.char_indices().nth(chars).map_or(0, |(byte, _)| byte);
    let (head, tail) = (&text[..byte(MOST / 2)], &text[byte(count - MOST / 2)..]);
    let left_out = count - MOST;
    let cut = format!("{head}\n\n... ({left_out} characters truncated) ...\n\n{tail}");
    (cut, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_kept() {
        let (text, cut) = truncate("ä".repeat(MOST));
        assert_eq!((text.chars().count(), cut), (MOST, false));
        let long = format!("{}x{}", "a".repeat(MOST / 2), "ö".repeat(MOST / 2));
        let (text, cut) = truncate(long);
        let expected = format!(
            "{}\n\n... (1 characters truncated) ...\n\n{}",
            "a".repeat(MOST / 2),
            "ö".repeat(MOST / 2)
        );
        assert_eq!((text, cut), (expected, true));
    }
}
