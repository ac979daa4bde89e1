//! What signs what is sent, or opens the receiver's door.

use base64::prelude::{BASE64_STANDARD, Engine as _};

use super::Format;
use crate::error::Error;

/// What every secret that signs begins with.
const PREFIX: &str = "whsec_";

/// Bytes of a secret that we make; Standard Webhooks has 24 to 64.
const BYTES: usize = 32;

/// The longest token that a receiver may have given out.
const MOST_TOKEN: usize = 512;

/// Something that only its receiver may see. It has no form to be printed in.
#[derive(Clone)]
pub struct Secret(pub(super) String);

impl Secret {
    /// Returns it, for whoever sends it or signs with it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the bytes that sign, if it is a secret that does.
    pub fn key(&self) -> Option<Vec<u8>> {
        key(&self.0)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Secret(…)")
    }
}

/// Returns the secret for a form, and what the caller is shown of it, once.
pub(super) fn of(format: Format, given: Option<String>) -> Result<(String, Option<String>), Error> {
    let bad = |why: &str, hint: &str| {
        let told = format!("{why}; nothing was changed");
        Err(Error::invalid("bad_secret", told, hint))
    };
    match (format, given) {
        (Format::Json, None) => {
            let made = make();
            Ok((made.clone(), Some(made)))
        }
        (Format::Json, Some(given)) => match key(&given).map(|key| key.len()) {
            Some(24..=64) => Ok((given, None)),
            _ => bad(
                "a secret that signs is `whsec_` and 24 to 64 bytes in base64",
                "leave it out, and one is made",
            ),
        },
        (Format::Ntfy, Some(token)) => {
            let plain = token.bytes().all(|byte| byte.is_ascii_graphic());
            match plain && (1..=MOST_TOKEN).contains(&token.len()) {
                true => Ok((token, None)),
                false => bad("an access token is ASCII without spaces", "copy it again"),
            }
        }
        (Format::Chat, Some(_)) => bad(
            "a chat's webhook has no secret but its address",
            "leave the secret out",
        ),
        (Format::Ntfy | Format::Chat, None) => Ok((String::new(), None)),
    }
}

fn make() -> String {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).expect("the kernel has randomness");
    format!("{PREFIX}{}", BASE64_STANDARD.encode(bytes))
}

/// Returns the bytes that sign.
fn key(secret: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(secret.strip_prefix(PREFIX)?).ok()
}
