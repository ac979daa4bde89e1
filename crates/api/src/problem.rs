//! Errors as problem documents (RFC 9457), and every code that they have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_policy::nearest;

use crate::ApprovalView;

/// Every code that there is, in order: part of the contract.
pub const CODES: &[&str] = &[
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
    /// The current question, if the problem is that it changed or is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<ApprovalView>>,
}

/// Returns what is said, and the hint, where no agent has a name.
pub fn no_such_agent(name: &str, known: &[String]) -> (String, String) {
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let hint = match nearest(name, &names) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => {
            "there are none: leave it out, or add one with `weighlock people add NAME --agent`"
                .into()
        }
        None => format!("there are: {}", names.join(", ")),
    };
    (format!("no agent `{name}`; nothing was run"), hint)
}
