//! All addresses, and the document that describes them.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with, patch_with, post_with, put_with};
use aide::openapi::{Info, OpenApi, SecurityScheme};
use axum::extract::{DefaultBodyLimit, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tower::ServiceExt;
use weighlock_engine::{Engine, Outbound, Shares};

use crate::access::{AccessTable, ROOT, Routes};
use crate::auth::{self, Gate, Guest, no_token};
use crate::pages::Pages;
use crate::problem::Problem;
use crate::rate::TcpLimits;
use crate::{
    approvals, audit, backups, changes, commands, events, export, limits, metrics, output, pages,
    people, policies, recordings, rules, sandboxes, sessions, signin, stream, system, tasks,
    terminals, waits, webhooks,
};

/// Larger than any command with its environment; input comes in pieces.
const MAX_BODY: usize = 4 * 1024 * 1024;

/// Who watches terminals at once, at the most.
const MAX_VIEWERS: usize = 1024;

/// The address of the document that describes all others.
const DESCRIPTION: &str = "/openapi.json";

/// Builds the whole service, with a further door that reaches it from within.
pub(crate) fn app(
    engine: Arc<Engine>,
    hosts: Vec<String>,
    pages: Pages,
    outbound: Outbound,
    within: fn(Within) -> Router,
) -> Router {
    let (router, mut access, document) = documented();
    let document = Arc::new(document);
    let described = get(move || async move { Json((*document).clone()) });
    access.open(Method::GET, DESCRIPTION);
    let gate = Arc::new(Gate {
        engine: Arc::clone(&engine),
        limits: TcpLimits::default(),
        viewers: Shares::new("viewers", MAX_VIEWERS),
        access,
        hosts,
    });
    let router = router.layer(axum::Extension(Arc::new(outbound)));
    let within = within(Within(router.clone().with_state(Arc::clone(&engine))));
    router
        .route(&format!("{ROOT}{DESCRIPTION}"), described)
        .with_state(engine)
        .route_layer(axum::middleware::from_fn(small_enough))
        .merge(within)
        .fallback(pages::answer)
        .method_not_allowed_fallback(no_such_method)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(axum::middleware::from_fn_with_state(
            Arc::clone(&gate),
            auth::identify,
        ))
        .layer(axum::Extension(gate))
        .layer(axum::Extension(Arc::new(pages)))
        .layer(axum::middleware::map_response(private))
}

/// Refuses a body that is too large before any of it has come.
async fn small_enough(request: Request, next: Next) -> Response {
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_none_or(|bytes| bytes <= MAX_BODY as u64) {
        return next.run(request).await;
    }
    let problem = Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "body_too_large",
        format!("a body has at most {MAX_BODY} bytes; nothing was done"),
        "send input in pieces, or put it into a file",
    );
    ([(header::CONNECTION, "close")], problem).into_response()
}

/// Answers are for who has asked, and for nobody on the way to keep; files of the
/// pages say for how long they may be kept.
async fn private(mut response: Response) -> Response {
    let headers = response.headers_mut();
    // Streams of events come with a word that lets them be kept.
    let is_stream = { headers.get(header::CONTENT_TYPE) }
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if is_stream || !headers.contains_key(header::CACHE_CONTROL) {
        let never = HeaderValue::from_static("no-store");
        headers.insert(header::CACHE_CONTROL, never);
    }
    response
}

/// The service, for doors of which those who come in are known already.
#[derive(Clone)]
pub struct Within(Router);

impl Within {
    /// Passes on what somebody asks, whose own request has come in as `head`:
    /// if they would still be let in, since that may be long ago.
    pub async fn ask(&self, head: &Parts, mut request: Request) -> Response {
        let guest = Guest::from_request_parts(&mut head.clone(), &()).await;
        match guest {
            Ok(guest) if guest.is_welcome().await => {}
            Ok(_) => return no_token().into_response(),
            Err(problem) => return problem.into_response(),
        }
        let path = request.uri().path_and_query();
        let path = path.map_or("/", |path| path.as_str());
        if let Ok(address) = format!("{ROOT}{path}").parse() {
            *request.uri_mut() = address;
        }
        *request.extensions_mut() = head.extensions.clone();
        let answer = self.0.clone().oneshot(request).await;
        answer.unwrap_or_else(|never| match never {})
    }
}

/// Returns the description of the whole service.
pub fn openapi() -> OpenApi {
    documented().2
}

fn documented() -> (Router<Arc<Engine>>, AccessTable, OpenApi) {
    aide::generate::extract_schemas(true);
    let mut document = OpenApi {
        info: Info {
            title: "weighlock".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: Some("A shell for AI agents".into()),
            ..Info::default()
        },
        ..OpenApi::default()
    };
    let routes = Routes::new()
        .add_for_runs(
            "/commands",
            post_with(commands::create, commands::create_docs)
                .get_with(commands::list, commands::list_docs),
        )
        .add(
            "/commands/export",
            get_with(export::export, export::export_docs),
        )
        .add(
            "/commands/{id}",
            get_with(commands::show, commands::show_docs),
        )
        .add_for_runs(
            "/commands/{id}/stop",
            post_with(commands::stop, commands::stop_docs),
        )
        .add_for_runs(
            "/commands/{id}/stdin",
            post_with(commands::stdin, commands::stdin_docs),
        )
        .add(
            "/commands/{id}/approve",
            post_with(commands::approve, commands::approve_docs),
        )
        .add(
            "/commands/{id}/reject",
            post_with(commands::reject, commands::reject_docs),
        )
        .add_settling(
            "/commands/{id}/finalize",
            post_with(commands::finalize, commands::finalize_docs),
        )
        .add_for_runs(
            "/commands/{id}/withdraw",
            post_with(commands::withdraw, commands::withdraw_docs),
        )
        .add(
            "/commands/{id}/changes",
            get_with(changes::list, changes::list_docs),
        )
        .add(
            "/commands/{id}/changes/{index}/diff",
            get_with(changes::diff, changes::diff_docs),
        )
        .add(
            "/commands/{id}/patch",
            get_with(changes::patch, changes::patch_docs),
        )
        .add_settling(
            "/commands/{id}/revert",
            post_with(changes::revert, changes::revert_docs),
        )
        .add("/drafts", get_with(changes::drafts, changes::drafts_docs))
        .add_settling(
            "/sessions/{id}/draft",
            get_with(changes::draft, changes::draft_docs)
                .post_with(changes::settle_draft, changes::settle_draft_docs),
        )
        .add(
            "/sessions/{id}/draft/{index}/diff",
            get_with(changes::draft_diff, changes::draft_diff_docs),
        )
        .add(
            "/sessions/{id}/draft/patch",
            get_with(changes::draft_patch, changes::draft_patch_docs),
        )
        .add(
            "/approvals/{id}/preview",
            post_with(changes::try_out, changes::try_out_docs),
        )
        .add(
            "/commands/{id}/audit",
            get_with(audit::of_run, audit::of_run_docs),
        )
        .add(
            "/commands/{id}/output",
            get_with(output::lines, output::lines_docs),
        )
        .add(
            "/commands/{id}/output/find",
            get_with(output::find, output::find_docs),
        )
        .add(
            "/commands/{id}/output/raw",
            get_with(output::raw, output::raw_docs),
        )
        .add(
            "/commands/{id}/stream",
            get_with(stream::follow, stream::follow_docs),
        )
        .add(
            "/commands/{id}/recording",
            get_with(recordings::show, recordings::show_docs("getRecording")),
        )
        .add(
            "/commands/{id}/recording/index",
            get_with(
                recordings::index,
                recordings::index_docs("getRecordingIndex"),
            ),
        )
        .add(
            "/blacklist",
            get_with(system::blacklist, system::blacklist_docs),
        )
        .add(
            "/blacklist",
            put_with(system::save_blacklist, system::save_blacklist_docs)
                .delete_with(system::reset_blacklist, system::reset_blacklist_docs),
        )
        .add_for_runs(
            "/blacklist/compare",
            post_with(system::listed, system::listed_docs),
        )
        .add("/policies", get_with(policies::show, policies::show_docs))
        .add_for_runs(
            "/policies/explain",
            post_with(policies::explain, policies::explain_docs),
        )
        .add_for_runs(
            "/policies/check",
            post_with(policies::check, policies::check_docs),
        )
        .add(
            "/policies/schema",
            get_with(policies::schema, policies::schema_docs),
        )
        .add(
            "/policies/grants",
            get_with(policies::grants, policies::grants_docs)
                .post_with(policies::grant, policies::grant_docs),
        )
        .add(
            "/policies/grants/{id}",
            delete_with(policies::revoke, policies::revoke_docs),
        )
        .add(
            "/policies/{id}",
            get_with(rules::show, rules::show_docs).put_with(rules::save, rules::save_docs),
        )
        .add_for_runs(
            "/policies/{id}/check",
            post_with(rules::check, rules::check_docs),
        )
        .add(
            "/policies/{id}/edit",
            post_with(rules::edit, rules::edit_docs),
        )
        .add_for_runs(
            "/policies/{id}/compare",
            post_with(rules::compare, rules::compare_docs),
        )
        .add(
            "/policies/{id}/versions",
            get_with(rules::versions, rules::versions_docs),
        )
        .add(
            "/policies/{id}/back",
            post_with(rules::back, rules::back_docs),
        )
        .add(
            "/approvals",
            get_with(approvals::list, approvals::list_docs),
        )
        .add(
            "/approvals/{id}",
            get_with(approvals::show, approvals::show_docs),
        )
        .add(
            "/approvals/{id}/decision",
            post_with(approvals::decide, approvals::decide_docs),
        )
        .add(
            "/approvals/{id}/rule-proposals",
            get_with(approvals::rules, approvals::rules_docs),
        )
        .add(
            "/approvals/{id}/extend",
            post_with(approvals::extend, approvals::extend_docs),
        )
        .add(
            "/folders",
            get_with(sandboxes::folders, sandboxes::folders_docs),
        )
        .add(
            "/limits",
            get_with(limits::show, limits::show_docs).put_with(limits::save, limits::save_docs),
        )
        .add("/kept", get_with(limits::kept, limits::kept_docs))
        .add(
            "/sandboxes",
            get_with(sandboxes::list, sandboxes::list_docs)
                .post_with(sandboxes::create, sandboxes::create_docs),
        )
        .add(
            "/sandboxes/{id}",
            get_with(sandboxes::show, sandboxes::show_docs)
                .patch_with(sandboxes::change, sandboxes::change_docs)
                .delete_with(sandboxes::remove, sandboxes::remove_docs),
        )
        .add(
            "/sandboxes/{id}/protection",
            get_with(sandboxes::protection, sandboxes::protection_docs),
        )
        .add_for_runs(
            "/terminals",
            get_with(terminals::list, terminals::list_docs)
                .post_with(terminals::open, terminals::open_docs),
        )
        .add_for_runs(
            "/terminals/{id}",
            get_with(terminals::show, terminals::show_docs)
                .delete_with(terminals::close, terminals::close_docs),
        )
        .add(
            "/terminals/{id}/screen",
            get_with(terminals::screen, terminals::screen_docs),
        )
        .add_for_runs(
            "/terminals/{id}/input",
            post_with(terminals::input, terminals::input_docs),
        )
        .add_for_runs(
            "/terminals/{id}/exec",
            post_with(terminals::exec, terminals::exec_docs),
        )
        .add(
            "/terminals/{id}/stream",
            get_with(stream::watch, stream::watch_docs),
        )
        .add(
            "/terminals/{id}/recording",
            get_with(
                recordings::show_of_terminal,
                recordings::show_docs("getTerminalRecording"),
            ),
        )
        .add(
            "/terminals/{id}/recording/index",
            get_with(
                recordings::index_of_terminal,
                recordings::index_docs("getTerminalRecordingIndex"),
            ),
        )
        .add_for_runs(
            "/terminals/{id}/size",
            post_with(terminals::resize, terminals::resize_docs),
        )
        .add_for_runs(
            "/terminals/{id}/signal",
            post_with(terminals::signal, terminals::signal_docs),
        )
        .add("/tasks", get_with(tasks::list, tasks::list_docs))
        .add("/tasks/{id}", get_with(tasks::show, tasks::show_docs))
        .add(
            "/tasks/{id}/output",
            get_with(tasks::output, tasks::output_docs),
        )
        .add_for_runs("/wait", post_with(waits::wait, waits::wait_docs))
        .add("/sessions", get_with(sessions::list, sessions::list_docs))
        .add(
            "/sessions/{id}",
            get_with(sessions::show, sessions::show_docs),
        )
        .add_for_runs(
            "/sessions/{id}/close",
            post_with(sessions::close, sessions::close_docs),
        )
        .add(
            "/webhooks",
            get_with(webhooks::list, webhooks::list_docs)
                .post_with(webhooks::create, webhooks::create_docs),
        )
        .add(
            "/webhooks/{id}",
            get_with(webhooks::show, webhooks::show_docs)
                .patch_with(webhooks::change, webhooks::change_docs)
                .delete_with(webhooks::remove, webhooks::remove_docs),
        )
        .add(
            "/webhooks/{id}/secret",
            post_with(webhooks::secret, webhooks::secret_docs),
        )
        .add(
            "/webhooks/{id}/test",
            post_with(webhooks::test, webhooks::test_docs),
        )
        .add(
            "/webhooks/{id}/notices",
            get_with(webhooks::notices, webhooks::notices_docs),
        )
        .add("/me", get_with(people::me, people::me_docs))
        .add(
            "/me/settings",
            get_with(people::settings, people::settings_docs)
                .put_with(people::save_settings, people::save_settings_docs),
        )
        .add(
            "/people",
            get_with(people::list, people::list_docs)
                .post_with(people::create, people::create_docs),
        )
        .add("/people/{id}", get_with(people::show, people::show_docs))
        .add(
            "/people/{id}",
            patch_with(people::change, people::change_docs),
        )
        .add(
            "/people/{id}/tokens",
            post_with(people::token, people::token_docs),
        )
        .add(
            "/people/{id}/tokens/{token}",
            delete_with(people::revoke, people::revoke_docs),
        )
        .add(
            "/people/{id}/tokens/{token}/rotate",
            post_with(people::rotate, people::rotate_docs),
        )
        .add("/pauses", get_with(people::pauses, people::pauses_docs))
        .add("/pause", post_with(people::pause, people::pause_docs))
        .add("/resume", post_with(people::resume, people::resume_docs))
        .add("/signin/link", post_with(signin::link, signin::link_docs))
        .add_for_anyone(
            Method::POST,
            "/signin",
            post_with(signin::enter, signin::enter_docs),
        )
        .add("/signout", post_with(signin::leave, signin::leave_docs))
        .add("/events", get_with(events::stream, events::stream_docs))
        .add("/audit", get_with(audit::list, audit::list_docs))
        .add(
            "/audit/verify",
            post_with(audit::verify, audit::verify_docs),
        )
        .add("/audit/export", get_with(audit::export, audit::export_docs))
        .add("/backups", post_with(backups::make, backups::make_docs))
        .add("/metrics", get_with(metrics::show, metrics::show_docs))
        .add("/health", get_with(system::health, system::health_docs))
        .add(
            "/health/checks",
            get_with(system::checks, system::checks_docs),
        );
    let router = ApiRouter::new()
        .nest(ROOT, routes.router)
        .finish_api_with(&mut document, |api| {
            api.security_scheme(
                "token",
                SecurityScheme::Http {
                    scheme: "bearer".into(),
                    bearer_format: None,
                    description: Some(
                        "Over TCP. On the Unix socket the kernel says who you are.".into(),
                    ),
                    extensions: Default::default(),
                },
            )
            .security_requirement("token")
            .default_response::<Problem>()
        });
    (router, routes.access, document)
}

async fn no_such_method() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "no_such_method",
        "this URL does not accept this method".into(),
        "see /agent/terminal/openapi.json",
    )
}
