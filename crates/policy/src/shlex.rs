//! Splits a text into words as Python's `shlex.split` does, with its errors.

/// Why a text cannot be split. The words are Python's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsplit {
    Quotation,
    Escape,
}

impl std::fmt::Display for Unsplit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Quotation => "No closing quotation",
            Self::Escape => "No escaped character",
        })
    }
}

/// Splits a text: POSIX quotes, no comments, no operators.
pub(crate) fn split(text: &str) -> Result<Vec<String>, Unsplit> {
    let mut words = vec![];
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            // Python's white space here is these four.
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or(Unsplit::Quotation)? {
                        '\'' => break,
                        inner => word.push(inner),
                    }
                }
            }
            '"' => double(&mut chars, word.get_or_insert_default())?,
            '\\' => {
                let next = chars.next().ok_or(Unsplit::Escape)?;
                word.get_or_insert_default().push(next);
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Reads the rest of `"…"`. A backslash is special before `"` and itself.
fn double(chars: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), Unsplit> {
    loop {
        match chars.next().ok_or(Unsplit::Quotation)? {
            '"' => return Ok(()),
            '\\' => {
                let next = chars.next().ok_or(Unsplit::Escape)?;
                if next != '"' && next != '\\' {
                    word.push('\\');
                }
                word.push(next);
            }
            inner => word.push(inner),
        }
    }
}

/// Returns a list of texts as Python prints it.
pub(crate) fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| repr(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// Returns a text as Python prints it inside a list.
fn repr(text: &str) -> String {
    let quote = match text.contains('\'') && !text.contains('"') {
        true => '"',
        false => '\'',
    };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str(r"\\"),
            '\n' => out.push_str(r"\n"),
            '\r' => out.push_str(r"\r"),
            '\t' => out.push_str(r"\t"),
            c if c == quote => out.extend(['\\', c]),
            c if (c as u32) < 0x20 || c == '\x7f' => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// Takes white space away at both ends, as Python's `str.strip`.
pub(crate) fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Returns the first word as Python's `str.split` finds it.
pub(crate) fn first_word(text: &str) -> &str {
    strip(text).split(is_space).next().unwrap_or("")
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    // The right side is what Python 3.11 answers.
    #[test]
    fn splits_as_python_does() {
        for (text, words) in [
            ("", &[][..]),
            ("  ", &[]),
            ("ls -la", &["ls", "-la"]),
            ("a  b\tc\nd\re", &["a", "b", "c", "d", "e"]),
            ("echo 'a b' \"c d\"", &["echo", "a b", "c d"]),
            ("''", &[""]),
            ("a''b", &["ab"]),
            (
                r#""a\"b" "a\\b" "a\nb" "a\$b""#,
                &["a\"b", r"a\b", r"a\nb", r"a\$b"],
            ),
            (r"'a\b'", &[r"a\b"]),
            (r"a\ b \'", &["a b", "'"]),
            ("ls;rm x|y>z", &["ls;rm", "x|y>z"]),
            ("a # b", &["a", "#", "b"]),
            ("a\\\nb", &["a\nb"]),
            ("a\u{a0}b", &["a\u{a0}b"]),
        ] {
            assert_eq!(split(text).unwrap(), words, "{text:?}");
        }
    }

    #[test]
    fn fails_as_python_does() {
        for (text, error) in [
            ("echo 'a", "No closing quotation"),
            ("echo \"a", "No closing quotation"),
            ("echo \"a\\", "No escaped character"),
            ("echo \\", "No escaped character"),
            ("it's", "No closing quotation"),
        ] {
            assert_eq!(split(text).unwrap_err().to_string(), error, "{text:?}");
        }
    }

    #[test]
    fn prints_lists_as_python_does() {
        let texts = ["ls", "it's", "a\"b", "both'\"", "\\", "\n"].map(str::to_owned);
        assert_eq!(
            list(&texts),
            r#"['ls', "it's", 'a"b', 'both\'"', '\\', '\n']"#
        );
        assert_eq!(list(&[]), "[]");
    }
}
