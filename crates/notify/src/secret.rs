//! Secrets that sign messages or authenticate to a receiver.

use base64::prelude::{BASE64_STANDARD, Engine as _};

use crate::error::Error;
use crate::settings::WebhookFormat;

/// What every signing secret begins with.
const PREFIX: &str = "whsec_";

/// Bytes of a generated secret; Standard Webhooks allows 24 to 64.
const SECRET_BYTES: usize = 32;

/// The longest access token; longer than those that receivers issue.
const MAX_TOKEN_BYTES: usize = 512;

/// A secret of a webhook. `Debug` does not print it.
#[derive(Clone)]
pub(crate) struct WebhookSecret(pub(crate) String);

impl WebhookSecret {
    /// Returns the text, for the request to the receiver.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the signing key, if it is a signing secret.
    pub(crate) fn key(&self) -> Option<Vec<u8>> {
        key(&self.0)
    }
}

impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("WebhookSecret(…)")
    }
}

/// Returns the secret to store for a format, and the generated one to show once.
pub(crate) fn choose_secret(
    format: WebhookFormat,
    given: Option<String>,
) -> Result<(String, Option<String>), Error> {
    let bad = |why: &str, hint| Err(Error::invalid("bad_secret", why, hint));
    match (format, given) {
        (WebhookFormat::Json, None) => {
            let made = generate();
            Ok((made.clone(), Some(made)))
        }
        (WebhookFormat::Json, Some(given)) => match key(&given).map(|key| key.len()) {
            Some(24..=64) => Ok((given, None)),
            _ => bad(
                "a signing secret is `whsec_` and 24 to 64 bytes in base64",
                "omit it, and one is generated",
            ),
        },
        (WebhookFormat::Ntfy, Some(token)) => {
            let plain = token.bytes().all(|byte| byte.is_ascii_graphic());
            if plain && (1..=MAX_TOKEN_BYTES).contains(&token.len()) {
                Ok((token, None))
            } else {
                bad("an access token is ASCII without spaces", "copy it again")
            }
        }
        (WebhookFormat::Chat, Some(_)) => bad(
            "a chat webhook has no secret except its URL",
            "omit the secret",
        ),
        (WebhookFormat::Ntfy | WebhookFormat::Chat, None) => Ok((String::new(), None)),
    }
}

fn generate() -> String {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).expect("the kernel has randomness");
    format!("{PREFIX}{}", BASE64_STANDARD.encode(bytes))
}

/// Decodes a signing secret.
fn key(secret: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(secret.strip_prefix(PREFIX)?).ok()
}
