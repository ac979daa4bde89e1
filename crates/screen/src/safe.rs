//! Text from anywhere, made safe for a person's eyes.
//!
//! What may be shown as it is follows from the data of Unicode (`class.rs`) and
//! from the word that a character stands in. The pages do the same with a table
//! made from it (`ui/src/lib/safe.ts`); a test compares them.

mod class;
#[cfg(test)]
mod tests;

use unicode_properties::{GeneralCategory, UnicodeEmoji, UnicodeGeneralCategory};
use unicode_script::{Script, UnicodeScript};

use class::{CharClass, class, is_mark, is_word};

/// How strictly a text is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strictness {
    /// It is run: nothing in it may pass for ASCII.
    Command,
    /// It names things: what a command does, paths, names, reasons.
    Names,
    /// Sentences and output, in whatever language.
    Prose,
}

/// Makes text safe to show: what is invisible, moves the cursor, reorders text
/// or passes for another letter appears as its code. Newlines stay.
pub fn safe_text(text: &str) -> String {
    coded(text, Strictness::Names)
}

/// Makes sentences and output safe to show. Punctuation and words of other
/// languages stay, unless they are mixed into Latin words.
pub fn safe_prose(text: &str) -> String {
    coded(text, Strictness::Prose)
}

/// Makes a command safe to show. Tabs and spaces at the end of a line, which
/// matter to a shell, can be seen too.
pub fn safe_command(text: &str) -> String {
    let lines = text.split('\n').map(|line| {
        let kept = line.trim_end_matches(' ');
        let spaces = "·".repeat(line.len() - kept.len());
        let parts: Vec<String> = { kept.split('\t') }
            .map(|part| coded(part, Strictness::Command))
            .collect();
        parts.join("⇥") + &spaces
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns how many characters of a command a person would not see for what
/// they are. Typographic quotes are shown as codes, but not counted.
pub fn hidden_characters(text: &str) -> usize {
    let mut count = 0;
    each(text, Strictness::Names, |c, hidden| {
        count += usize::from(hidden && c != '\t');
    });
    count
}

fn coded(text: &str, manner: Strictness) -> String {
    let mut shown = String::with_capacity(text.len());
    each(text, manner, |c, hidden| {
        if hidden {
            shown.push_str(&format!("⟦U+{:04X}⟧", u32::from(c)))
        } else {
            shown.push(c)
        }
    });
    shown
}

/// Goes through a text; tells of each character whether it is shown as its code.
fn each(text: &str, manner: Strictness, mut with: impl FnMut(char, bool)) {
    if text.is_ascii() {
        return text
            .chars()
            .for_each(|c| with(c, c.is_ascii_control() && c != '\n'));
    }
    let chars: Vec<char> = text.chars().collect();
    let mut is_code = false;
    for word in words(&chars) {
        let nature = Nature::of(&chars[word.from..word.to], word.is_host, manner);
        for at in word.from..word.to {
            let c = chars[at];
            is_code = match c {
                '\n' => false,
                c if c.is_ascii() => c.is_ascii_control(),
                _ if joins_emoji(&chars, at) => false,
                // What is drawn onto a code would change how that looks.
                c => nature.hides(c) || is_mark(c) && (is_code || is_stacked(&chars, at)),
            };
            with(c, is_code);
        }
    }
}

/// What the word that a character stands in tells about it.
struct Nature {
    manner: Strictness,
    is_host: bool,
    /// It has Latin letters; in prose, ASCII ones.
    is_latin: bool,
    /// Its letters are of scripts that no language uses together.
    is_mixed: bool,
    /// It has a letter or digit that does not pass for an ASCII one.
    is_own: bool,
}

impl Nature {
    fn of(word: &[char], is_host: bool, manner: Strictness) -> Self {
        let is_ascii = word.iter().all(char::is_ascii);
        let has_ascii = word.iter().any(char::is_ascii_alphabetic);
        let is_latin = match manner {
            Strictness::Prose => has_ascii,
            _ => has_ascii || !is_ascii && word.iter().any(|c| c.script() == Script::Latin),
        };
        let looks = manner != Strictness::Prose || has_ascii;
        let own =
            |&c: &char| !c.is_ascii() && is_word(c) && !is_mark(c) && class(c) == CharClass::Plain;
        Self {
            manner,
            is_host,
            is_latin,
            is_mixed: !is_ascii && looks && !go_together(word),
            is_own: !is_ascii && word.iter().any(own),
        }
    }

    /// Whether a character of this word is shown as its code.
    fn hides(&self, c: char) -> bool {
        let is_prose = self.manner == Strictness::Prose;
        match class(c) {
            CharClass::Nowhere => true,
            CharClass::InProse => !is_prose || self.is_foreign(c),
            CharClass::NotInCommands => self.manner == Strictness::Command,
            CharClass::Plain => self.is_foreign(c),
            // Also what all scripts share.
            CharClass::InOwnScript if fits(c, Script::Latin) => !is_prose || self.is_host,
            CharClass::InOwnScript => self.is_latin || self.is_mixed || !is_prose && !self.is_own,
        }
    }

    /// Whether a letter is of another script than those it is mixed with.
    fn is_foreign(&self, c: char) -> bool {
        self.is_mixed && is_word(c) && !fits(c, Script::Latin)
    }
}

/// Scripts that languages use together, each also with Latin; but for those
/// whose letters pass for Latin ones too easily (UTS 39, moderately restrictive).
const TOGETHER: &[&[Script]] = &[
    &[Script::Han, Script::Hiragana, Script::Katakana],
    &[Script::Han, Script::Bopomofo],
    &[Script::Han, Script::Hangul],
    &[Script::Arabic],
    &[Script::Armenian],
    &[Script::Bengali],
    &[Script::Devanagari],
    &[Script::Ethiopic],
    &[Script::Georgian],
    &[Script::Gujarati],
    &[Script::Gurmukhi],
    &[Script::Hebrew],
    &[Script::Kannada],
    &[Script::Khmer],
    &[Script::Lao],
    &[Script::Malayalam],
    &[Script::Myanmar],
    &[Script::Oriya],
    &[Script::Sinhala],
    &[Script::Tamil],
    &[Script::Telugu],
    &[Script::Thaana],
    &[Script::Thai],
    &[Script::Tibetan],
];

/// Scripts that stand alone in a word.
const ALONE: &[Script] = &[Script::Cyrillic, Script::Greek];

fn go_together(word: &[char]) -> bool {
    let all = |fit: &dyn Fn(char) -> bool| word.iter().all(|&c| !is_word(c) || fit(c));
    let with_latin = |scripts: &&[Script]| {
        all(&|c| fits(c, Script::Latin) || scripts.iter().any(|&script| fits(c, script)))
    };
    TOGETHER.iter().any(with_latin) || ALONE.iter().any(|&script| all(&|c| fits(c, script)))
}

/// Whether a character is used in a script; what all scripts share is in each.
fn fits(c: char, script: Script) -> bool {
    c.script_extension().contains_script(script)
}

/// A part of a text: a word, or a character between words.
struct TextPart {
    from: usize,
    to: usize,
    is_host: bool,
}

/// Takes a text apart into words. The name of a host stays whole: its last part
/// is Latin in most, and all before it may pass for Latin.
fn words(chars: &[char]) -> Vec<TextPart> {
    let (mut words, mut from, mut is_host) = (vec![], 0, false);
    let push = |words: &mut Vec<TextPart>, from, to, is_host| {
        if from < to {
            words.push(TextPart { from, to, is_host });
        }
    };
    for (at, &c) in chars.iter().enumerate() {
        if is_word(c) || is_host && matches!(c, '.' | '-') {
            continue;
        }
        push(&mut words, from, at, is_host);
        push(&mut words, at, at + 1, false);
        from = at + 1;
        is_host = chars[..from].ends_with(&[':', '/', '/']) || is_host && c == '@';
    }
    push(&mut words, from, chars.len(), is_host);
    words
}

/// Whether an invisible character does no more than to choose or join emoji.
fn joins_emoji(chars: &[char], at: usize) -> bool {
    const AS_EMOJI: char = '\u{FE0F}';
    const JOINER: char = '\u{200D}';
    let is_emoji = |c: &char| !c.is_ascii() && c.is_emoji_char();
    let before = |at: usize| at.checked_sub(1).map(|at| chars[at]);
    match chars[at] {
        AS_EMOJI => before(at).is_some_and(|c| is_emoji(&c)),
        JOINER => {
            let first = before(at).and_then(|c| match c {
                AS_EMOJI => before(at - 1),
                c => Some(c),
            });
            first.is_some_and(|c| is_emoji(&c)) && chars.get(at + 1).is_some_and(is_emoji)
        }
        _ => false,
    }
}

/// Whether a mark has nothing to stand on, is of another script than a Latin
/// letter or digit below it, where some fonts do not draw it, or stands on too
/// many others: more than any language has would cover what is above and below.
fn is_stacked(chars: &[char], at: usize) -> bool {
    let mark = chars[at];
    // Two of those that go with any letter, as in Vietnamese; four of a script's
    // own (UTS 39, 5.4).
    let most = if mark.script() == Script::Inherited {
        2
    } else {
        4
    };
    let below = chars[..at]
        .iter()
        .rev()
        .take_while(|c| is_mark(**c))
        .take(most);
    let count = below.count();
    let base = (at - count).checked_sub(1).map(|at| chars[at]);
    count == most
        || !base.is_some_and(is_word)
        || base.is_some_and(|base| fits(base, Script::Latin)) && !fits(mark, Script::Latin)
        || mark.general_category() == GeneralCategory::EnclosingMark
        || count > 0 && chars[at - 1] == mark
}
