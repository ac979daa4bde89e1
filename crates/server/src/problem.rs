//! Errors as problem documents (RFC 9457).

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_engine::{Error, Explanation, Kind};

/// What went wrong, what did not happen, what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemDocument {
    /// The HTTP status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// Stable word for programs.
    pub code: String,
    /// One sentence.
    pub detail: String,
    /// What to do.
    pub hint: String,
    /// What a person is asked, where that is the problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Box<Explanation>>,
}

/// An answer that is a problem.
#[derive(Debug)]
pub(crate) struct Problem(pub(crate) ProblemDocument);

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &str, detail: String, hint: &str) -> Self {
        Self(ProblemDocument {
            title: status.canonical_reason().unwrap_or("Error").into(),
            status: status.as_u16(),
            code: code.into(),
            detail,
            hint: hint.into(),
            question: None,
        })
    }

    /// A person has to be asked first.
    pub(crate) fn asked(question: Explanation) -> Self {
        let why = question.reasons.first();
        let why = why.map_or("a rule says so", |reason| reason.text.as_str());
        let mut problem = Self::new(
            StatusCode::CONFLICT,
            "pending_approval",
            format!("a person must allow this first: {why}; nothing was run"),
            "let a person run it with `weighlock run` in a terminal, which asks, or allow it with \
             `weighlock policy grant`; or use a command that only reads",
        );
        problem.0.question = Some(Box::new(question));
        problem
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let problem = error.problem();
        let status = match problem.kind {
            Kind::Invalid => StatusCode::BAD_REQUEST,
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::Conflict => StatusCode::CONFLICT,
            Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Kind::Full => StatusCode::INSUFFICIENT_STORAGE,
            Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        if status.is_server_error() {
            tracing::error!(code = problem.code, "{}", problem.detail);
        }
        Self::new(status, problem.code, problem.detail, &problem.hint)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).expect("made from a status");
        let mut response = (status, Json(self.0)).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl aide::OperationOutput for Problem {
    type Inner = ProblemDocument;

    fn operation_response(
        ctx: &mut aide::generate::GenContext,
        operation: &mut aide::openapi::Operation,
    ) -> Option<aide::openapi::Response> {
        Json::<ProblemDocument>::operation_response(ctx, operation).map(|mut response| {
            response.description = "A problem document".into();
            if let Some(content) = response.content.swap_remove("application/json") {
                response
                    .content
                    .insert("application/problem+json".into(), content);
            }
            response
        })
    }

    fn inferred_responses(
        ctx: &mut aide::generate::GenContext,
        operation: &mut aide::openapi::Operation,
    ) -> Vec<(Option<aide::openapi::StatusCode>, aide::openapi::Response)> {
        Self::operation_response(ctx, operation)
            .into_iter()
            .map(|response| (None, response))
            .collect()
    }
}
