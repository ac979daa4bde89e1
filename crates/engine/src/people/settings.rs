//! What somebody has set for themselves on the pages.

use serde_json::Value;

use super::People;
use crate::error::Error;
use crate::principal::{Principal, Right};

/// Bytes of somebody's settings: a few saved views, and no place for files.
const MOST_BYTES: usize = 64 * 1024;

impl People {
    /// Returns what somebody has set for themselves; nothing at first.
    pub fn settings(&self, who: &Principal) -> Result<Value, Error> {
        let text = self.core.store.settings().of(who.name())?;
        let kept = text.and_then(|text| serde_json::from_str(&text).ok());
        Ok(kept.unwrap_or_else(|| serde_json::json!({})))
    }

    /// Keeps what somebody sets for themselves.
    pub async fn save_settings(&self, settings: Value, who: &Principal) -> Result<Value, Error> {
        who.check(Right::Look)?;
        let text = settings.to_string();
        if !settings.is_object() || text.len() > MOST_BYTES {
            return Err(Error::invalid(
                "invalid_settings",
                format!(
                    "settings are one JSON object of at most {MOST_BYTES} bytes; nothing was \
                         changed"
                ),
                "leave something out",
            ));
        }
        let now = self.core.clock.micros();
        self.core
            .store
            .settings()
            .save(who.name().to_owned(), text, now)
            .await?;
        Ok(settings)
    }
}
