//! The policy: what it says about a command, and what is in force.

use std::collections::BTreeMap;
use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use weighlock_engine::{
    Engine, Explanation, GrantView, LoadError, PolicyView, Request, Scope, Shell,
};

use crate::commands::ShellName;
use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Body, Id, Params, Who};

/// A command to say something about. Nothing is run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainRequest {
    /// The text for the shell.
    pub command: String,
    /// Who would ask for it; the caller when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The profile that the agent works under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The sandbox, by id or name; the default one when not given.
    #[serde(default, alias = "sandbox_id", skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Environment variables that would be added.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// What would read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellName>,
    /// Rules to try in place of a rule file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<String>,
    /// The rule file that the draft is for: `server` when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

/// Rules to check.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckRequest {
    /// The text of a rule file.
    text: String,
}

/// What is wrong with rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CheckView {
    /// Nothing is.
    ok: bool,
    /// All errors, in their order.
    errors: Vec<RuleError>,
}

/// One mistake in rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RuleError {
    /// From 1.
    line: usize,
    /// In characters, from 1.
    column: usize,
    /// What is wrong.
    message: String,
    /// What to do about it; may be empty.
    hint: String,
}

/// What to say of the policy.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ShowParams")]
pub(crate) struct PolicyShowParams {
    /// Also how many commands each rule was about, for which the newest thousand
    /// are judged again.
    #[serde(default)]
    hits: bool,
}

/// What a person allows beforehand.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewGrant {
    /// What a rule could say behind `auto =`: `npm test`.
    pub pattern: String,
    /// Only for this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only in this sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Only in this session, by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// When it ends, in seconds since 1970; when it is taken back if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
}

/// How many commands are explained at once: each may take 32 MiB, and this is
/// the door at which many can ask together.
static EXPLAINING: Semaphore = Semaphore::const_new(4);

pub(crate) async fn explain(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Body(asked): Body<ExplainRequest>,
) -> Result<Json<Explanation>, Problem> {
    let draft = asked.draft;
    let policy = asked.policy.unwrap_or_else(|| "server".into());
    let principal = match &asked.principal {
        Some(name) => engine.people().stand_in(name, &who)?,
        None => who.clone(),
    };
    let request = Request {
        agent: asked.agent,
        sandbox: asked.sandbox,
        cwd: asked.cwd,
        env: asked.env.into_iter().collect(),
        shell: asked.shell.map(Shell::from),
        ..Request::new(principal, asked.command)
    };
    let _turn = EXPLAINING.acquire().await.expect("it is never closed");
    blocking(move || {
        let draft = draft.as_deref().map(|text| (policy.as_str(), text));
        Ok(Json(engine.rules().explain(&request, draft, &who)?))
    })
    .await
}

pub(crate) fn explain_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("explainCommand")
        .summary("Explain the verdict on a command")
        .description(
            "Returns the verdict, each part with its rule, every rule tried, and the words of the \
             text. Nothing is run.",
        )
}

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Params(asked): Params<PolicyShowParams>,
) -> Result<Json<PolicyView>, Problem> {
    blocking(move || Ok(Json(engine.rules().describe(asked.hits, &who)?))).await
}

pub(crate) fn show_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getPolicy").summary("Show the policy in force")
}

pub(crate) async fn check(
    Who(_): Who,
    Body(rules): Body<CheckRequest>,
) -> Result<Json<CheckView>, Problem> {
    blocking(move || {
        let checked = weighlock_engine::check_rules("draft", &rules.text);
        let errors = checked.err().unwrap_or_default();
        Ok(Json(CheckView {
            ok: errors.is_empty(),
            errors: errors.into_iter().map(RuleError::from).collect(),
        }))
    })
    .await
}

pub(crate) fn check_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("checkRules")
        .summary("Check the text of a rule file")
        .description("Changes nothing; all errors are reported, with line and column.")
}

pub(crate) async fn schema() -> Json<serde_json::Value> {
    Json(weighlock_engine::rules_schema())
}

pub(crate) fn schema_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getRulesSchema")
        .summary("Get the JSON schema of rule files, for editors")
}

pub(crate) async fn grants(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
) -> Result<Json<Vec<GrantView>>, Problem> {
    Ok(Json(engine.rules().list_grants(&who)?))
}

pub(crate) fn grants_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listGrants")
        .summary("List grants: what people always allow")
}

pub(crate) async fn grant(
    Shared(engine): Shared<Arc<Engine>>,
    Who(principal): Who,
    Body(new): Body<NewGrant>,
) -> Result<Json<GrantView>, Problem> {
    let given = engine
        .rules()
        .add_grant(&new.pattern, new.scope(), new.until, &principal);
    Ok(Json(given.await?))
}

pub(crate) fn grant_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("createGrant")
        .summary("Add a grant: always allow commands that match a pattern")
        .description(
            "Rules that reject override it. For administrators; approvers may add grants for the \
             sandboxes in which they decide.",
        )
}

pub(crate) async fn revoke(
    Shared(engine): Shared<Arc<Engine>>,
    Who(principal): Who,
    Id(id): Id,
) -> Result<StatusCode, Problem> {
    engine.rules().revoke_grant(&id, &principal).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) fn revoke_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("deleteGrant")
        .summary("Revoke a grant")
        .response_with::<204, (), _>(|res| res.description("Taken back"))
}

impl NewGrant {
    pub(crate) fn scope(&self) -> Scope {
        Scope {
            agent: self.agent.clone(),
            sandbox: self.sandbox.clone(),
            session: self.session.clone(),
        }
    }
}

impl From<LoadError> for RuleError {
    fn from(error: LoadError) -> Self {
        Self {
            line: error.line,
            column: error.column,
            message: error.message,
            hint: error.hint,
        }
    }
}
