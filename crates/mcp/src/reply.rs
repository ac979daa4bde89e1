//! What a tool answers.

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::Failure;

/// An answer: for a model to read, and for a program.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) data: Option<Value>,
    /// What was asked for was not done.
    pub(crate) failed: bool,
}

impl Reply {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// An answer in both shapes.
    pub(crate) fn new(text: impl Into<String>, data: &impl Serialize) -> Self {
        Self {
            text: text.into(),
            data: Some(serde_json::to_value(data).expect("answers are always JSON")),
            failed: false,
        }
    }

    /// An answer whose text is the same, for hosts that read nothing else.
    pub(crate) fn json(data: &impl Serialize) -> Self {
        let text = serde_json::to_string(data).expect("answers are always JSON");
        Self::new(text, data)
    }

    pub(crate) fn failing(self, failed: bool) -> Self {
        Self { failed, ..self }
    }
}

impl From<Failure> for Reply {
    fn from(failure: Failure) -> Self {
        Self {
            text: failure.to_string(),
            data: Some(json!({ "error": failure.data() })),
            failed: true,
        }
    }
}

impl Failure {
    /// As a program reads it.
    pub(crate) fn data(&self) -> Value {
        json!({ "code": self.code, "message": self.what, "hint": self.hint })
    }
}
