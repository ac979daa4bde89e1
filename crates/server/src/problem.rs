//! Errors as problem documents (RFC 9457).

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_engine::{ApprovalView, Error, Kind};

/// When what is unavailable may be there again.
const SOON: Duration = Duration::from_secs(1);

/// Every code that there is, in order: part of the contract.
pub(crate) const CODES: &[&str] = &[
    "allows_everything",
    "already_decided",
    "already_exists",
    "already_final",
    "already_running",
    "ambiguous_id",
    "answered_already",
    "backing_up",
    "backup_damaged",
    "backup_newer",
    "bad_backup_place",
    "bad_base",
    "bad_cursor",
    "bad_directory",
    "bad_limits",
    "bad_link",
    "bad_person",
    "bad_quiet_hours",
    "bad_rules",
    "bad_sandbox",
    "bad_secret",
    "bad_token",
    "bad_user",
    "bad_webhook",
    "blocked",
    "body_too_large",
    "cannot_block",
    "cannot_start",
    "changed_meanwhile",
    "changes_blocked",
    "changes_unreadable",
    "command_too_long",
    "commit_failed",
    "conflict",
    "disk_full",
    "earlier_first",
    "empty_command",
    "environment_too_large",
    "file_error",
    "foreign_origin",
    "forged",
    "in_settings",
    "inside_a_run",
    "invalid_blacklist",
    "invalid_body",
    "invalid_command",
    "invalid_environment",
    "invalid_filter",
    "invalid_id",
    "invalid_key",
    "invalid_key_name",
    "invalid_line",
    "invalid_name",
    "invalid_pattern",
    "invalid_query",
    "invalid_settings",
    "invalid_signal",
    "invalid_size",
    "invalid_time",
    "invalid_wait",
    "key_reused",
    "keyboard_given_back",
    "keyboard_taken",
    "lost_request",
    "metrics_off",
    "missing_description",
    "missing_name",
    "name_taken",
    "never_agents",
    "no_backup",
    "no_changes",
    "no_command",
    "no_copy",
    "no_draft",
    "no_prompt",
    "no_sandbox_named",
    "no_secret",
    "no_store",
    "no_such_address",
    "no_such_agent",
    "no_such_approval",
    "no_such_change",
    "no_such_folder",
    "no_such_grant",
    "no_such_method",
    "no_such_person",
    "no_such_policy",
    "no_such_run",
    "no_such_sandbox",
    "no_such_session",
    "no_such_token",
    "no_such_version",
    "no_such_webhook",
    "no_token",
    "no_undo",
    "not_allowed",
    "not_applied",
    "not_begun",
    "not_by_form",
    "not_empty",
    "not_external",
    "not_found",
    "not_json",
    "not_tried",
    "not_waiting",
    "not_your_profile",
    "not_yours",
    "other_sandbox",
    "outside_base",
    "over_quota",
    "own_request",
    "paused",
    "payload_changed",
    "reason_too_long",
    "record_removed",
    "repeated",
    "run_ended",
    "sandbox_changed",
    "sandbox_inactive",
    "sandbox_unavailable",
    "sandbox_violation",
    "send_failed",
    "session_closed",
    "slow_body",
    "storage_full",
    "store_busy",
    "store_damaged",
    "store_error",
    "store_newer",
    "store_older",
    "store_vanished",
    "too_many_connections",
    "too_many_drafts",
    "too_many_requests",
    "too_many_runs",
    "too_many_viewers",
    "too_many_waiting",
    "too_many_webhooks",
    "too_much_input",
    "trying",
    "two_must_see_it",
    "unknown_filter",
    "upgrade_required",
];

/// What went wrong, what did not happen, what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(example = serde_json::json!({
    "title": "Not Found", "status": 404, "code": "no_such_run",
    "detail": "no run `r_7f3k`", "hint": "`weighlock runs` lists all runs",
}))]
pub struct ProblemDocument {
    /// The HTTP status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// Stable word for programs.
    #[schemars(extend("enum" = CODES))]
    pub code: String,
    /// One sentence.
    pub detail: String,
    /// What to do.
    pub hint: String,
    /// The question as it is now, where that is the problem.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<ApprovalView>>,
}

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
