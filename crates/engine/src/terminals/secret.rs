//! Prompts at which a secret is typed.

use crate::live::Picture;

/// What programs ask for that nobody else shall read.
const SECRETS: [&str; 10] = [
    "password",
    "passphrase",
    "passcode",
    "pass phrase",
    "api key",
    "secret",
    "token",
    "one-time code",
    "verification code",
    "pin",
];

/// Returns whether a program asks for a secret in the line that the cursor is
/// in. Those that take single keys show asterisks, or nothing, by themselves:
/// how the terminal is set does not tell them from editors.
pub(super) fn asks_secret(picture: &Picture) -> bool {
    !picture.screen.view().alternate && is_secret(&picture.prompt())
}

fn is_secret(prompt: &str) -> bool {
    // What was typed so far.
    let prompt = prompt.trim_end_matches(['*', '•', ' ']);
    let Some(asked) = prompt.strip_suffix([':', '?', '›', '»', ']', '>']) else {
        return false;
    };
    let asked = asked.to_lowercase();
    SECRETS.iter().any(|secret| has_word(&asked, secret))
}

/// Whether a word is in a text, and not only in another word.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let inside = |char: char| char.is_alphabetic();
        let after = text[at + word.len()..].trim_start_matches('s');
        !text[..at].ends_with(inside) && !after.starts_with(inside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_that_asks_for_a_secret_is_known() {
        for secret in [
            "Password:",
            "[sudo] password for ana: ***",
            "Enter passphrase for key '/home/ana/.ssh/id_ed25519':",
            "? Paste your authentication token: ****",
            "PIN for card 3:",
            "New password (again) ›",
            "Verification code:",
            "? npm password: [input is hidden]",
        ] {
            assert!(is_secret(secret), "{secret}");
        }
        for other in [
            "$ echo password",
            ">>> tokens = 3",
            "Name:",
            "shopping:",
            "Tokenizer:",
            "ana@host:~/secrets$",
            "Continue? [y/N]",
            "spinner >",
            "",
        ] {
            assert!(!is_secret(other), "{other}");
        }
    }
}
