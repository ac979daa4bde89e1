//! Over all code points, not over samples alone.

use std::fmt::Write;
use std::path::Path;

use regex::Regex;
use serde_json::json;
use unicode_properties::GeneralCategoryGroup;
use unicode_security::skeleton;

use super::*;

const MANNERS: [Strictness; 3] = [Strictness::Command, Strictness::Names, Strictness::Prose];

fn all() -> impl Iterator<Item = char> {
    (0..=u32::from(char::MAX)).filter_map(char::from_u32)
}

fn one(c: char) -> String {
    format!("⟦U+{:04X}⟧", u32::from(c))
}

/// Whether a character is shown as it is, in this text.
fn is_raw(text: &str, c: char, manner: Strictness) -> bool {
    coded(text, manner).contains(c)
}

#[test]
fn hidden_characters_are_shown() {
    assert_eq!(safe_text("ls\n-la"), "ls\n-la");
    assert_eq!(safe_text("a\u{202E}b\u{200B}"), "a⟦U+202E⟧b⟦U+200B⟧");
    assert_eq!(safe_text("\x1b[31m\r"), "⟦U+001B⟧[31m⟦U+000D⟧");
    assert_eq!(safe_text("ex\u{0430}mple.dev"), "ex⟦U+0430⟧mple.dev");
    assert_eq!(safe_text("rm\u{A0}x\u{3000}y"), "rm⟦U+00A0⟧x⟦U+3000⟧y");
    assert_eq!(hidden_characters("a\u{202E}b\u{200B}c\td\n"), 2);
}

#[test]
fn a_host_that_passes_for_another_is_shown() {
    let look_alike = "https://me@\u{430}\u{440}\u{440}.com/файл.txt";
    let shown = "https://me@⟦U+0430⟧⟦U+0440⟧⟦U+0440⟧.com/файл.txt";
    assert_eq!(safe_text(look_alike), shown);
    assert_eq!(safe_text("https://пример.рф/x"), "https://пример.рф/x");
    assert_eq!(
        safe_prose("https://g\u{131}thub.com"),
        "https://g⟦U+0131⟧thub.com"
    );
}

#[test]
fn spaces_that_matter_can_be_seen() {
    assert_eq!(safe_command("a\tb  \nc "), "a⇥b··\nc·");
    assert_eq!(safe_command("a  b"), "a  b");
}

#[test]
fn nothing_is_raw_that_is_not_plainly_printable() {
    // The tables of another crate, so that a mistake of ours is found.
    let odd =
        Regex::new(r"[^\p{L}\p{M}\p{N}\p{P}\p{S} \n]|\p{Default_Ignorable_Code_Point}").unwrap();
    let all: String = all().collect();
    let odd: Vec<char> = { odd.find_iter(&all) }
        .filter_map(|found| found.as_str().chars().next())
        .filter(|&c| !is_newer(c))
        .collect();
    assert!(odd.len() > 900_000, "{}", odd.len());
    for manner in MANNERS {
        for between in ["", "a"] {
            let text: String = { odd.iter() }
                .flat_map(|c| {
                    [between, c.encode_utf8(&mut [0; 4])]
                        .concat()
                        .chars()
                        .collect::<Vec<_>>()
                })
                .collect();
            let mut raw = vec![];
            each(&text, manner, |c, hidden| {
                if !hidden && !between.contains(c) {
                    raw.push(c);
                }
            });
            assert_eq!(raw, [], "{manner:?} after {between:?}");
        }
    }
}

/// Whether a character was assigned after the version of Unicode that `regex`
/// knows, and not after ours.
fn is_newer(c: char) -> bool {
    let unassigned = |c: char| c.general_category() == GeneralCategory::Unassigned;
    static OLD: std::sync::LazyLock<Regex> = std::sync::LazyLock::new(|| {
        Regex::new(r"^[\p{Cn}&&\P{Default_Ignorable_Code_Point}]$").unwrap()
    });
    !unassigned(c) && OLD.is_match(c.encode_utf8(&mut [0; 4]))
}

#[test]
fn nothing_that_passes_for_ascii_is_raw_in_a_command() {
    let mut looked = 0;
    for c in all().filter(|c| !c.is_ascii()) {
        let passes: String = skeleton(&c.to_string()).collect();
        if !passes.is_ascii() {
            continue;
        }
        looked += 1;
        for text in [
            c.to_string(),
            format!("a{c}b"),
            format!("ls {c} -l"),
            format!("/{c}{c}"),
        ] {
            assert!(
                !is_raw(&text, c, Strictness::Command),
                "{} {text:?}",
                one(c)
            );
        }
        // In a Latin word it does not pass in prose either, if it is a letter.
        let is_letter = c.general_category_group() == GeneralCategoryGroup::Letter;
        if is_letter && !fits(c, Script::Latin) {
            let text = format!("a{c}b");
            assert!(!is_raw(&text, c, Strictness::Prose), "{} {text:?}", one(c));
        }
    }
    assert!(looked > 1500, "{looked}");
}

#[test]
fn look_alikes_are_shown_in_commands() {
    let samples = [
        0x1D173, 0xFFF0, 0xE000, 0xF8FF, 0x10FFFD, 0xFF52, 0x1D5CB, 0x261, 0x2215, 0x2044, 0xFF1B,
        0x17F, 0x131, 0x430, 0x3BF, 0x4CF, 0x501, 0x29F8, 0x2571, 0xFF5C, 0x2223, 0x37E, 0x2024,
        0x2010, 0x2212, 0x2019, 0x201C, 0xFF0F, 0xFF3C, 0xFF04, 0xFE69, 0x2800, 0x3164, 0xFFA0,
        0x115F, 0x180E, 0x2061, 0xFE0F, 0xE0041, 0xFFFC, 0xFFF9, 0x13A1, 0x1D7D8, 0x24E1, 0x1F150,
        0xA4F2, 0x212A, 0x2126, 0x30CE, 0x4E3F, 0x338, 0x20DD, 0x13441, 0x29C, 0x1D04,
    ];
    for c in samples.map(|code| char::from_u32(code).unwrap()) {
        for text in [c.to_string(), format!("a{c}b"), format!("rm {c}x")] {
            if c == '\u{2126}' && !text.contains('b') {
                continue; // The ohm sign is a Greek letter alone.
            }
            if c == '\u{1F150}' {
                continue;
            }
            assert!(
                !is_raw(&text, c, Strictness::Command),
                "{} {text:?}",
                one(c)
            );
        }
    }
    // Whole words that pass for others.
    for word in ["сос", "ср", "рм", "аре", "οο", "ո"] {
        let first = word.chars().next().unwrap();
        if word != "рм" {
            assert!(safe_command(word).starts_with(&one(first)), "{word}");
        }
    }
    assert_eq!(safe_command("fooжbar"), "foo⟦U+0436⟧bar");
    assert_eq!(safe_command("αжα"), "⟦U+03B1⟧⟦U+0436⟧⟦U+03B1⟧");
}

#[test]
fn stacked_marks_are_shown() {
    assert_eq!(safe_command("cafe\u{301}"), "cafe\u{301}");
    assert_eq!(safe_command("/\u{301}"), "/⟦U+0301⟧");
    assert_eq!(safe_command("\u{301}"), "⟦U+0301⟧");
    assert_eq!(
        safe_text("e\u{302}\u{301}"),
        "e\u{302}\u{301}",
        "as in Vietnamese"
    );
    assert_eq!(safe_prose("e\u{301}\u{301}"), "e\u{301}⟦U+0301⟧");
    for manner in MANNERS {
        let marks = "\u{300}\u{301}\u{302}\u{303}".repeat(100);
        let shown = coded(&format!("e{marks}"), manner);
        assert_eq!(shown.chars().filter(|&c| is_mark(c)).count(), 2, "{shown}");
    }
    assert_eq!(safe_command("р\u{301}"), "⟦U+0440⟧⟦U+0301⟧", "on a code");
    // Marks of other scripts on Latin letters, which some fonts do not draw.
    for mark in [
        '\u{1039}', '\u{E31}', '\u{64B}', '\u{94D}', '\u{3099}', '\u{5B0}',
    ] {
        for manner in MANNERS {
            for base in ['r', 'é', '1'] {
                let text = format!("{base}{mark}m");
                assert!(!is_raw(&text, mark, manner), "{manner:?} {}", one(mark));
            }
        }
    }
    for blank in [
        '\u{13441}',
        '\u{13442}',
        '\u{16FE4}',
        '\u{2800}',
        '\u{1D159}',
    ] {
        assert_eq!(
            safe_prose(&format!("a {blank} b")),
            format!("a {} b", one(blank))
        );
    }
    // Pointed Hebrew, and Devanagari.
    for text in ["שָׁלוֹם", "नमस्ते", "ภาษาไทยนี้", "बुद्धिमत्ता"]
    {
        assert_eq!(safe_prose(text), text);
    }
}

#[test]
fn what_is_plainly_what_it_seems_stays_readable() {
    for text in [
        "git commit -m 'Größe für Café'",
        "git commit -m 'привет мир'",
        "cat файл2.txt",
        "echo 日本語のテスト ノート 漢字 한국어",
        "echo 'v2版 READMEを読む'",
        "touch ελληνικά",
        "git commit -m '🎉 done ♻️ 👩‍💻 ✨'",
        "echo → ✓ ■ — ≤ €",
        "echo שלום",
        "echo สวัสดี",
    ] {
        assert_eq!(safe_command(text), text);
        assert_eq!(safe_text(text), text);
        assert_eq!(safe_prose(text), text);
    }
    for text in [
        "don’t “quote” … 1–2 × 3",
        "а я с тобой, и у нас",
        "你好，世界！（是的）",
        "│ ├── src ½ ② № 5",
        "yapıldı, œuvre, æble",
    ] {
        assert_eq!(safe_prose(text), text);
    }
    let own = "the token abc… of ‘coder’ says “yes”, 80 × 24";
    assert_eq!(safe_text(own), own, "our own sentences");
    assert_eq!(
        hidden_characters("git commit -m 'don’t…'"),
        0,
        "shown, but no reason"
    );
}

#[test]
fn an_invisible_character_stays_only_inside_of_emoji() {
    for text in [
        "a\u{FE0F}",
        "1\u{FE0F}",
        "a\u{200D}b",
        "🎉\u{200D}",
        "🎉\u{200D}a",
        "🎉\u{200D}\u{200D}🎉",
    ] {
        assert!(safe_prose(text).contains('⟦'), "{text:?}");
    }
    let flag = "🏴\u{E0067}\u{E0062}\u{E007F}";
    assert!(!safe_prose(flag).contains('\u{E0067}'));
}

/// What the pages know: `ui/src/lib/look-alikes.ts`, and what they must come to:
/// `ui/src/lib/safe.cases.json`.
#[test]
fn the_pages_have_the_same_table() {
    let classes = |wanted: CharClass| {
        // What is hidden is told by the browser's own data.
        let seen = |c: &char| !c.is_ascii() && !class::is_hidden(*c);
        ranges(all().filter(seen).filter(|&c| class(c) == wanted))
    };
    let table = format!(
        "// Where characters may be shown as they are, from Unicode's list of look-alikes: pairs of\n\
         // how many are left out and how many follow. Made by crates/screen/src/safe/tests.rs.\n\
         export const NOWHERE = '{}';\nexport const IN_PROSE = '{}';\n\
         export const NOT_IN_COMMANDS = '{}';\nexport const IN_OWN_SCRIPT = '{}';\n",
        classes(CharClass::Nowhere),
        classes(CharClass::InProse),
        classes(CharClass::NotInCommands),
        classes(CharClass::InOwnScript),
    );
    assert_current("ui/src/lib/look-alikes.ts", &table);
    let raw = |manner: Strictness, of: &dyn Fn(char) -> String| {
        let seen = |c: &char| !class::is_hidden(*c) && !matches!(c, 'a' | 'b');
        ranges(all().filter(seen).filter(|&c| is_raw(&of(c), c, manner)))
    };
    let alone = MANNERS.map(|manner| raw(manner, &|c| c.to_string()));
    let inside = MANNERS.map(|manner| raw(manner, &|c| format!("a{c}b")));
    let texts = TEXTS.iter().map(|text| {
        let [command, names, prose] = MANNERS.map(|manner| coded(text, manner));
        json!({ "text": text, "command": command, "names": names, "prose": prose })
    });
    let cases = json!({ "alone": alone, "inside": inside, "texts": texts.collect::<Vec<_>>() });
    let cases = serde_json::to_string_pretty(&cases).unwrap() + "\n";
    assert_current("ui/src/lib/safe.cases.json", &cases);
}

/// What depends on more than one character.
const TEXTS: &[&str] = &[
    "р\u{301} cafe\u{301} /\u{301} e\u{302}\u{301}\u{303} e\u{301}\u{301}",
    "привет сос ср а fooжbar αжα файл2",
    "日本語READMEノート ノ ノa 한국어x ใช้git",
    "https://me@\u{430}\u{440}\u{440}/файл https://пример.рф https://g\u{131}thub",
    "🎉\u{FE0F} ♻\u{FE0F} a\u{FE0F} 1\u{FE0F}\u{20E3} 👩\u{200D}💻 ❤\u{FE0F}\u{200D}🔥 🎉\u{200D}a",
    "don’t … 1–2 × 3，（ノ） ½ ② ｒｍ 𝗋𝗆 ɡit ∕ ⁄ ；",
    "yapıldı œuvre \u{202E}x\u{200B} \u{E0041}",
    "שלום ו सः १ ᏣᎳᎩ ʜello x\u{338}",
    "r\u{1039}m a\u{E31} é\u{64B} 1\u{94D} ใช้ नमस्ते か\u{3099}",
];

/// Characters in order, as pairs of how many are left out and how many follow.
fn ranges(chars: impl Iterator<Item = char>) -> String {
    let mut found: Vec<(u32, u32)> = vec![];
    for code in chars.map(u32::from) {
        match found.last_mut() {
            Some((_, end)) if *end == code => *end += 1,
            _ => found.push((code, code + 1)),
        }
    }
    let mut text = String::new();
    let mut at = 0;
    for (from, to) in found {
        let (gap, count) = (base36(from - at), base36(to - from));
        let one = if count == "1" {
            gap
        } else {
            format!("{gap}.{count}")
        };
        write!(text, "{}{one}", if text.is_empty() { "" } else { " " }).unwrap();
        at = to;
    }
    text
}

fn base36(mut number: u32) -> String {
    let mut digits = vec![];
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap());
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// Checks that a file of the repository is as it would be made now, or makes it
/// anew when `WEIGHLOCK_BLESS` is set.
#[track_caller]
fn assert_current(path: &str, made: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path);
    if std::env::var("WEIGHLOCK_BLESS").is_ok() {
        std::fs::write(&file, made).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == made,
        "{path} is stale; WEIGHLOCK_BLESS=1 before this test makes it anew"
    );
}
