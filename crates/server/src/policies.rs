//! The policy: what it says about a command, and what is in force.

use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use tokio::sync::Semaphore;
use weighlock_api::{
    CheckRequest, CheckView, ExplainRequest, Explanation, GrantView, NewGrant, PolicyShowParams,
    PolicyView, RuleError,
};
use weighlock_engine::{Engine, Request};

use crate::commands::shell_of;
use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Body, Id, Params, Who};

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
        shell: asked.shell.map(shell_of),
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
