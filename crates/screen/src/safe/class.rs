//! Where a character may be shown as it is, by the data of Unicode.

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};
use unicode_script::{Script, UnicodeScript};
use unicode_security::{GeneralSecurityProfile, skeleton};

/// Where a character may be shown as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CharClass {
    /// Everywhere.
    Plain,
    /// Everywhere but in commands: typographic quotes, an ellipsis, and symbols
    /// that pass for letters.
    NotInCommands,
    /// Only in prose: symbols that pass for what means something to a shell or
    /// in a path, and letters and marks in no common use.
    InProse,
    /// Only in a word of its own script: a letter that passes for an ASCII one.
    InOwnScript,
    /// Nowhere: invisible, without a meaning of its own, or a letter whose only
    /// use is to look like another.
    Nowhere,
}

/// Returns where a character may be shown as it is. Newlines are for the caller.
pub(crate) fn class(c: char) -> CharClass {
    if c.is_ascii() {
        return if c.is_ascii_control() {
            CharClass::Nowhere
        } else {
            CharClass::Plain
        };
    }
    if is_hidden(c) {
        return CharClass::Nowhere;
    }
    match imitated(c) {
        Some(ascii) if ascii.trim().is_empty() => CharClass::Nowhere,
        Some(_) if is_letter(c) => {
            if c.identifier_allowed() {
                CharClass::InOwnScript
            } else {
                CharClass::Nowhere
            }
        }
        Some(ascii) if is_typographic(&ascii) => CharClass::NotInCommands,
        Some(_) => CharClass::InProse,
        None if is_uncommon(c) => CharClass::InProse,
        None => CharClass::Plain,
    }
}

/// Returns whether a character is part of a word.
pub(crate) fn is_word(c: char) -> bool {
    use GeneralCategoryGroup::{Letter, Mark, Number};
    if c.is_ascii() {
        c.is_ascii_alphanumeric()
    } else {
        matches!(c.general_category_group(), Letter | Mark | Number)
    }
}

/// Returns whether a character is drawn onto the one before it.
pub(crate) fn is_mark(c: char) -> bool {
    !c.is_ascii() && c.general_category_group() == GeneralCategoryGroup::Mark
}

/// Letters, their marks, and digits: what names are made of.
fn is_letter(c: char) -> bool {
    use GeneralCategoryGroup::{Letter, Mark};
    match c.general_category() {
        GeneralCategory::DecimalNumber => true,
        // Chinese zero is; Roman numerals are not.
        GeneralCategory::LetterNumber => c.identifier_allowed(),
        _ => matches!(c.general_category_group(), Letter | Mark),
    }
}

/// Neither letter, mark, number, punctuation nor symbol, or made to be ignored.
pub(super) fn is_hidden(c: char) -> bool {
    use GeneralCategoryGroup::{Other, Separator};
    matches!(c.general_category_group(), Other | Separator)
        // The skeleton leaves out exactly what is to be ignored by default.
        || skeleton(c.encode_utf8(&mut [0; 4])).next().is_none()
        // What has no picture of its own, which no property tells: two symbols,
        // blanks of Egyptian, a filler of Khitan.
        || matches!(c, '\u{FFFC}' | '\u{1D159}' | '\u{13441}' | '\u{13442}' | '\u{16FE4}')
}

/// Returns the ASCII text that a character passes for, as its skeleton: those of
/// `1` and `l` are the same.
fn imitated(c: char) -> Option<String> {
    static SKELETONS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let ascii = (b' '..=b'~').map(char::from);
        ascii
            .map(|c| skeleton(c.encode_utf8(&mut [0; 4])).collect())
            .collect()
    });
    let is_ascii = |found: &String| found.is_ascii() || SKELETONS.contains(found);
    let compatible: String = std::iter::once(c).nfkd().collect();
    [c.encode_utf8(&mut [0; 4]), compatible.as_str()]
        .into_iter()
        .map(|text| skeleton(text).collect::<String>())
        .find(is_ascii)
}

/// Quotes, an ellipsis, or letters and digits: nothing that a shell reads as
/// more, that parts a path or begins an option. The skeleton of `|` is `l`.
fn is_typographic(ascii: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() && c != 'l' || matches!(c, '\'' | ',');
    ascii == "..." || ascii.chars().all(plain)
}

/// Letters of scripts that are not in common use today, and Latin letters and
/// general marks that no language's ordinary spelling has.
fn is_uncommon(c: char) -> bool {
    if !is_word(c) {
        return false;
    }
    let general = matches!(c.script(), Script::Latin | Script::Inherited);
    let known = c.script_extension().iter().any(Script::is_recommended);
    !known || general && !c.identifier_allowed()
}
