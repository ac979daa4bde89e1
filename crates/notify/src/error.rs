//! Why a webhook could not be managed.

/// Why a webhook could not be managed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked for is not possible.
    #[error("{detail}")]
    Invalid {
        /// The stable error code.
        code: &'static str,
        /// What is wrong.
        detail: String,
        /// What to do.
        hint: &'static str,
    },
    /// No webhook has this id, or it is another person's.
    #[error("no webhook `{id}`")]
    NoSuchWebhook {
        /// The beginning of the id as it was given.
        id: String,
    },
    /// The webhook has changed since the caller read it.
    #[error("the webhook has changed since it was read")]
    Stale,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] weighlock_store::Error),
}

impl Error {
    /// Refuses a change; nothing was changed.
    pub(crate) fn invalid(code: &'static str, why: &str, hint: &'static str) -> Self {
        Self::Invalid {
            code,
            detail: format!("{why}; nothing was changed"),
            hint,
        }
    }
}

/// Characters that are kept of a label, an id in an error, or a failure's reason.
const SHORT_CHARS: usize = 200;

/// Returns the beginning of a text from outside, which may be long.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(SHORT_CHARS).collect()
}
