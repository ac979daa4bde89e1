//! Errors as problem documents (RFC 9457).

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use weighlock_api::{CODES, ProblemDocument};
use weighlock_engine::{Error, Kind};

/// When what is unavailable may be there again.
const SOON: Duration = Duration::from_secs(1);

/// An answer that is a problem.
#[derive(Debug)]
pub(crate) struct Problem {
    document: Box<ProblemDocument>,
    /// When the same may be asked again, where that is all there is to do.
    retry_after: Option<Duration>,
}

impl Problem {
    pub(crate) fn document(&self) -> &ProblemDocument {
        &self.document
    }

    pub(crate) fn new(status: StatusCode, code: &str, detail: String, hint: &str) -> Self {
        debug_assert!(
            CODES.binary_search(&code).is_ok(),
            "{code} is not in the contract"
        );
        let document = ProblemDocument {
            title: status.canonical_reason().unwrap_or("Error").into(),
            status: status.as_u16(),
            code: code.into(),
            detail,
            hint: hint.into(),
            approval: None,
        };
        Self {
            document: Box::new(document),
            retry_after: (status == StatusCode::SERVICE_UNAVAILABLE).then_some(SOON),
        }
    }

    /// Others want to be served too.
    pub(crate) fn too_many(detail: &str, retry_after: Duration) -> Self {
        let problem = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_requests",
            format!("{detail}; nothing was done"),
            "wait as long as `Retry-After` says, and send fewer requests",
        );
        Self {
            retry_after: Some(retry_after),
            ..problem
        }
    }

    /// Who asked is not known.
    pub(crate) fn is_unauthorized(&self) -> bool {
        self.document.status == StatusCode::UNAUTHORIZED.as_u16()
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let problem = error.problem();
        let status = match problem.kind {
            Kind::Invalid => StatusCode::BAD_REQUEST,
            Kind::Forbidden => StatusCode::FORBIDDEN,
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::Conflict => StatusCode::CONFLICT,
            Kind::Changed => StatusCode::PRECONDITION_FAILED,
            Kind::TooMuch => StatusCode::TOO_MANY_REQUESTS,
            Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Kind::Full => StatusCode::INSUFFICIENT_STORAGE,
            Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        if status.is_server_error() {
            tracing::error!(code = problem.code, "{}", problem.detail);
        }
        let mut told = Self::new(status, problem.code, problem.detail, &problem.hint);
        told.document.approval = match error {
            Error::Closed { approval } => Some(approval),
            Error::PayloadChanged { approval } => approval,
            _ => None,
        };
        told
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        crate::metrics::told(&self.document.code);
        let status = StatusCode::from_u16(self.document.status).expect("made from a status");
        let mut response = (status, Json(self.document)).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(after) = self.retry_after {
            // It knows whole seconds only, and none would invite to try at once.
            let seconds = after.as_millis().div_ceil(1000).max(1);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds as u64));
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
