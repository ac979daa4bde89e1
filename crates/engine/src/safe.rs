//! Text from anywhere, made safe for a person's eyes.

/// Makes text safe to show: what is invisible, moves the cursor, reorders text
/// or passes for another letter appears as its code. Newlines stay.
pub fn safe_text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    each(text, |c, hidden| match hidden {
        true => shown.push_str(&format!("⟦U+{:04X}⟧", u32::from(c))),
        false => shown.push(c),
    });
    shown
}

/// Makes a command safe to show. Tabs and spaces at the end of a line, which
/// matter to a shell, can be seen too.
pub fn safe_command(text: &str) -> String {
    let lines = text.split('\n').map(|line| {
        let kept = line.trim_end_matches(' ');
        let spaces = "·".repeat(line.len() - kept.len());
        let parts: Vec<String> = kept.split('\t').map(safe_text).collect();
        parts.join("⇥") + &spaces
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns how many characters of a command a person would not see for what
/// they are.
pub(crate) fn hidden(text: &str) -> usize {
    let mut count = 0;
    each(text, |c, hidden| count += usize::from(hidden && c != '\t'));
    count
}

fn each(text: &str, mut with: impl FnMut(char, bool)) {
    for word in words(text) {
        let mixed = word.bytes().any(|byte| byte.is_ascii_alphabetic());
        for c in word.chars() {
            with(c, c != '\n' && (is_hidden(c) || mixed && is_look_alike(c)));
        }
    }
}

/// Takes a text apart after all that is no letter or digit. The name of a host
/// stays whole: its last part is Latin in most, and all before it may pass for
/// Latin.
fn words(text: &str) -> Vec<&str> {
    let (mut words, mut begins, mut in_host) = (vec![], 0, false);
    for (at, c) in text.char_indices() {
        if c.is_alphanumeric() || in_host && matches!(c, '.' | '-') {
            continue;
        }
        let end = at + c.len_utf8();
        words.push(&text[begins..end]);
        begins = end;
        in_host = text[..end].ends_with("://") || in_host && c == '@';
    }
    words.push(&text[begins..]);
    words
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        // Spaces to the eye, and parts of a word to a shell.
        || c.is_whitespace() && c != ' '
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}'
            | '\u{17B5}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E0FFF}')
}

/// A Greek or Cyrillic letter, which in a Latin word passes for another.
fn is_look_alike(c: char) -> bool {
    matches!(c, '\u{0370}'..='\u{03FF}' | '\u{0400}'..='\u{052F}' | '\u{1F00}'..='\u{1FFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown() {
        assert_eq!(safe_text("ls\n-la"), "ls\n-la");
        assert_eq!(safe_text("a\u{202E}b\u{200B}"), "a⟦U+202E⟧b⟦U+200B⟧");
        assert_eq!(safe_text("\x1b[31m\r"), "⟦U+001B⟧[31m⟦U+000D⟧");
        assert_eq!(safe_text("ex\u{0430}mple.dev"), "ex⟦U+0430⟧mple.dev");
        assert_eq!(safe_text("привет мир äöü 漢字"), "привет мир äöü 漢字");
        assert_eq!(safe_text("rm\u{A0}x\u{3000}y"), "rm⟦U+00A0⟧x⟦U+3000⟧y");
        assert_eq!(hidden("a\u{202E}b\u{200B}c\td\n"), 2);
    }

    #[test]
    fn a_host_that_passes_for_another_is_shown() {
        let look_alike = "https://me@\u{430}\u{440}\u{440}.com/файл.txt";
        let shown = "https://me@⟦U+0430⟧⟦U+0440⟧⟦U+0440⟧.com/файл.txt";
        assert_eq!(safe_text(look_alike), shown);
        assert_eq!(safe_text("https://пример.рф/x"), "https://пример.рф/x");
        assert_eq!(safe_text("cat файл.txt"), "cat файл.txt");
    }

    #[test]
    fn spaces_that_matter_can_be_seen() {
        assert_eq!(safe_command("a\tb  \nc "), "a⇥b··\nc·");
        assert_eq!(safe_command("a  b"), "a  b");
    }
}
