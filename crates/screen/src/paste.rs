//! Text as a terminal pastes it.

use crate::view::Modes;

const START: &str = "\x1b[200~";
const END: &str = "\x1b[201~";

/// The same with the control character that stands for `ESC [`.
const SHORT_END: &str = "\u{9b}201~";

/// Returns what to send to a program to paste a text.
///
/// With bracketed paste on, the text is sent between start and end marks, and
/// nothing within the text can end it early.
pub fn paste(text: &str, modes: &Modes) -> Vec<u8> {
    let text = text.replace("\r\n", "\r").replace('\n', "\r");
    if modes.bracketed_paste {
        [START, &without_ends(&text), END].concat().into_bytes()
    } else {
        text.into_bytes()
    }
}

/// Removes each end, also one that appears only when another is removed.
fn without_ends(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for letter in text.chars() {
        kept.push(letter);
        for end in [END, SHORT_END] {
            if let Some(before) = kept.strip_suffix(end) {
                kept.truncate(before.len());
            }
        }
    }
    kept
}
