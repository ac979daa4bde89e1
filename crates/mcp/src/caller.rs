//! A client that has called a tool, as the SDK knows it.

use futures_util::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotificationParam, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationSchema, EnumSchema, InputRequest, InputRequests,
    InputRequiredResult, InputResponses, LoggingLevel, LoggingMessageNotificationParam,
    PrimitiveSchemaDefinition, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    RequestId, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext};

use crate::call::{AskMode, McpClient, PersonAnswer, ReturnedAnswer};

/// The client that made the call.
pub(crate) struct Caller {
    peer: Peer<RoleServer>,
    /// Names the call in progress notifications.
    token: Option<ProgressToken>,
    manner: Option<AskMode>,
    hears_log: bool,
}

impl Caller {
    pub(crate) fn new(context: &RequestContext<RoleServer>) -> Self {
        Self {
            token: context.meta.get_progress_token(),
            peer: context.peer.clone(),
            manner: manner(context),
            hears_log: hears_log(context),
        }
    }
}

/// Returns how the client can ask its person, if it can.
fn manner(context: &RequestContext<RoleServer>) -> Option<AskMode> {
    let offered = context.client_capabilities()?.elicitation?;
    // Who says no more than that has forms.
    let forms = offered.form.is_some() || offered.url.is_none();
    forms.then(|| match is_without_handshake(context) {
        true => AskMode::Instead,
        false => AskMode::Meanwhile,
    })
}

/// Returns whether the client wants log messages below warnings. A client
/// without a handshake gets none unless it asks for them.
fn hears_log(context: &RequestContext<RoleServer>) -> bool {
    let level = context.meta.log_level();
    match is_without_handshake(context) {
        true => matches!(level, Some(LoggingLevel::Debug | LoggingLevel::Info)),
        false => true,
    }
}

/// Whether somebody speaks a revision in which each request says who asks.
pub(crate) fn is_without_handshake(context: &RequestContext<RoleServer>) -> bool {
    let revision = context.protocol_version();
    revision.is_some_and(|revision| revision >= ProtocolVersion::V_2026_07_28)
}

/// The question in an answer that asks for one, by the name that it comes back
/// with.
const QUESTION: &str = "approval";

/// Puts a question instead of an answer.
pub(crate) fn instead(question: String, sealed: String) -> Option<InputRequiredResult> {
    let request = InputRequest::Elicitation(elicitation(question)?);
    let requests = InputRequests::from([(QUESTION.to_owned(), request)]);
    Some(InputRequiredResult::new(Some(requests), Some(sealed)))
}

/// What has come back for it. Whatever else there is was not asked for.
pub(crate) fn back(responses: Option<InputResponses>) -> ReturnedAnswer {
    let answer = responses.and_then(|mut all| all.remove(QUESTION));
    answer.map_or(ReturnedAnswer::Nothing, |answer| {
        ReturnedAnswer::Said(serde_json::from_value(answer).ok().and_then(said))
    })
}

impl McpClient for Caller {
    fn hears_progress(&self) -> bool {
        self.token.is_some()
    }

    fn tell(&self, seconds: f64, message: String) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(token) = &self.token {
                let told = ProgressNotificationParam::new(token.clone(), seconds);
                // Whoever does not listen any more is not missed.
                let _ = self.peer.notify_progress(told.with_message(message)).await;
            }
        })
    }

    fn log(&self, message: String) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if self.hears_log {
                let told = LoggingMessageNotificationParam::new(LoggingLevel::Info, message.into());
                let _ = self.peer.notify_logging_message(told).await;
            }
        })
    }

    fn manner(&self) -> Option<AskMode> {
        self.manner
    }

    fn ask(&self, question: String) -> BoxFuture<'_, Option<PersonAnswer>> {
        Box::pin(async move {
            let request = elicitation(question)?;
            let peer = &self.peer;
            let options = PeerRequestOptions::no_options();
            let asked =
                peer.send_request_with_option(ServerRequest::ElicitRequest(request), options);
            let asked = asked.await.ok()?;
            let mut open = PendingQuestion(Some((peer.clone(), asked.id.clone())));
            let answer = asked.await_response().await;
            open.0 = None;
            match answer {
                Ok(ClientResult::ElicitResult(answer)) => said(answer),
                // They may still answer elsewhere.
                _ => None,
            }
        })
    }
}

fn said(answer: ElicitResult) -> Option<PersonAnswer> {
    let no = PersonAnswer {
        yes: false,
        reason: None,
    };
    match answer.action {
        ElicitationAction::Accept => {
            let decided: FilledForm = serde_json::from_value(answer.content?).ok()?;
            Some(PersonAnswer {
                yes: decided.decision == DecisionWord::Approve,
                reason: decided.reason.filter(|reason| !reason.trim().is_empty()),
            })
        }
        ElicitationAction::Decline => Some(no),
        _ => None,
    }
}

/// A question that the client's person has not answered: it is taken back when
/// nobody waits for the answer any more.
struct PendingQuestion(Option<(Peer<RoleServer>, RequestId)>);

impl Drop for PendingQuestion {
    fn drop(&mut self) {
        if let Some((peer, id)) = self.0.take() {
            let why = Some("the client no longer waits for the answer".into());
            let why = CancelledNotificationParam::new(Some(id), why);
            tokio::spawn(async move { peer.notify_cancelled(why).await });
        }
    }
}

fn elicitation(question: String) -> Option<ElicitRequest> {
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question,
        requested_schema: form()?,
    };
    Some(ElicitRequest::new(params))
}

/// What the client's person fills in. The SDK makes none of a type whose
/// fields have types of their own.
fn form() -> Option<ElicitationSchema> {
    let words = vec!["approve".into(), "reject".into()];
    let decision = EnumSchema::builder(words).description("Whether it may be done.");
    let decision = PrimitiveSchemaDefinition::Enum(decision.build());
    let form = ElicitationSchema::builder()
        .required_property("decision", decision)
        .string_property("reason", |reason| {
            reason.description("What the agent is told.")
        });
    form.build().ok()
}

/// What they have filled in.
#[derive(Debug, serde::Deserialize)]
struct FilledForm {
    decision: DecisionWord,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum DecisionWord {
    Approve,
    Reject,
}
