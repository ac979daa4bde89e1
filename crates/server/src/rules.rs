//! Rule files: their text, drafts of it, and what it was before.

use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::Response;
use weighlock_api::{
    BackRequest, Compared, PolicyText, RuleEdit, RuleEdited, RuleText, RulesChecked, SaveRequest,
    VersionParams, VersionView,
};
use weighlock_engine::{Engine, Save};

use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Body, Id, IfMatch, Params, Who, page, tagged};

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Response, Problem> {
    let text = blocking(move || Ok(engine.rules().read_file(&id, &who)?)).await?;
    Ok(answer(text))
}

pub(crate) fn show_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getPolicyText")
        .summary("Show a rule file: its text, and its rules with recent matches")
        .response::<200, Json<PolicyText>>()
}

pub(crate) async fn save(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    IfMatch(etag): IfMatch,
    Body(asked): Body<SaveRequest>,
) -> Result<Response, Problem> {
    let save = Save {
        text: asked.text,
        note: asked.note,
        etag,
        phrase: asked.phrase,
    };
    Ok(answer(engine.rules().save_file(&id, save, &who).await?))
}

pub(crate) fn save_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("savePolicyText")
        .summary("Replace the text of a rule file")
        .description(
            "In force at once, and saved as a version that can be restored. 400 `bad_rules` with \
             the first mistake if it cannot be read; 400 `allows_everything` if no command would \
             need approval any more, unless the request contains the phrase in the hint. For \
             administrators.",
        )
        .response::<200, Json<PolicyText>>()
}

pub(crate) async fn check(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Body(asked): Body<RuleText>,
) -> Result<Json<RulesChecked>, Problem> {
    blocking(move || Ok(Json(engine.rules().check_text(&id, &asked.text, &who)?))).await
}

pub(crate) fn check_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("checkPolicyText")
        .summary("Check the text of a rule file, and list its rules")
        .description("Changes nothing.")
}

pub(crate) async fn edit(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Body(asked): Body<RuleEdit>,
) -> Result<Json<RuleEdited>, Problem> {
    blocking(move || Ok(Json(engine.rules().edit_text(&id, &asked, &who)?))).await
}

pub(crate) fn edit_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("editPolicyText")
        .summary("Put one rule into a text, change it or take it out, as a form does")
        .description(
            "Returns the text; all other lines stay unchanged. 400 `not_by_form` if that is not \
             possible. Nothing is saved.",
        )
}

pub(crate) async fn compare(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Body(asked): Body<RuleText>,
) -> Result<Json<Compared>, Problem> {
    blocking(move || {
        Ok(Json(engine.rules().compare_draft(
            &id,
            &asked.text,
            &who,
        )?))
    })
    .await
}

pub(crate) fn compare_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("comparePolicyText")
        .summary("What a text for a rule file would mean for the last 1,000 commands")
        .description("Changes nothing.")
}

pub(crate) async fn versions(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Params(params): Params<VersionParams>,
) -> Result<Json<Vec<VersionView>>, Problem> {
    let limit = page(params.limit);
    blocking(move || {
        Ok(Json(engine.rules().list_versions(
            &id,
            params.before,
            limit,
            &who,
        )?))
    })
    .await
}

pub(crate) fn versions_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listPolicyVersions")
        .summary("The texts that a rule file has had, newest first")
}

pub(crate) async fn back(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    IfMatch(etag): IfMatch,
    Body(asked): Body<BackRequest>,
) -> Result<Response, Problem> {
    let save = Save {
        text: String::new(),
        note: asked.note,
        etag,
        phrase: asked.phrase,
    };
    let back = engine
        .rules()
        .restore_version(&id, asked.version, save, &who);
    Ok(answer(back.await?))
}

pub(crate) fn back_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("goBackToPolicyVersion")
        .summary("Put a text that a rule file has had in its place again")
        .response::<200, Json<PolicyText>>()
}

fn answer(text: PolicyText) -> Response {
    tagged(StatusCode::OK, text.etag, text)
}
