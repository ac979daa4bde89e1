//! A question as a person sees it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weighlock_policy::{Access, Effect, Part, PlaceKind, Verdict};
use weighlock_screen::hidden_characters;
use weighlock_store::{Answer, Approval, ApprovalState, Risk, State};

use super::Questions;
use crate::case::Case;
use crate::error::Error;
use crate::id;
use crate::request::Input;
use crate::time;
use crate::view::{AnswerView, ApprovalView, ReasonView, Situation, Tried};

/// How many of the runs that share a question are named.
const RUNS: usize = 100;

/// How many parts, and things of each, the heading tells of.
const TOLD: usize = 3;

/// What the store keeps of it beside the columns.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Body {
    summary: String,
    claim: Option<String>,
    agent: Option<String>,
    session: Option<String>,
    cwd: String,
    command: String,
    shell: String,
    env: Vec<String>,
    environment: Vec<String>,
    has_input: bool,
    input: Option<String>,
    more_input: usize,
    input_follows: bool,
    network: String,
    files: String,
    reasons: Vec<ReasonView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<Tried>,
}

/// Makes the stored part of a question.
pub(crate) fn body(case: &Case) -> Value {
    let request = &case.request;
    let body = Body {
        summary: summary(case),
        claim: request.description.clone(),
        agent: case.agent().map(str::to_owned),
        session: Some(case.session.clone()),
        cwd: case.place.path.to_string_lossy().into_owned(),
        command: request.command.clone(),
        shell: case.judged.shell.name().into(),
        env: request.env.iter().map(|(name, _)| name.clone()).collect(),
        environment: request.env.iter().map(set).collect(),
        input: request.input.shown(MAX_INPUT),
        more_input: request.input.len().saturating_sub(MAX_INPUT),
        input_follows: request.input == Input::Open,
        has_input: !matches!(request.input, Input::None),
        network: case.view.network.clone(),
        files: case.view.files.clone(),
        reasons: reasons(case),
        effect: None,
    };
    serde_json::to_value(body).expect("plain data")
}

/// Bytes of input that a person is shown.
const MAX_INPUT: usize = 16 * 1024;

/// Says what a variable is set to; a secret is nobody's to read.
fn set((name, value): &(String, String)) -> String {
    const SECRET: &[&str] = &["TOKEN", "SECRET", "PASS", "KEY", "CREDENTIAL"];
    let upper = name.to_uppercase();
    match SECRET.iter().any(|word| upper.contains(word)) {
        true => format!("{name}=•••• (secret)"),
        false => format!("{name}={value}"),
    }
}

/// Why a person is asked: what the policy says, and what only a reader of the
/// request can tell.
fn reasons(case: &Case) -> Vec<ReasonView> {
    let own = |code: &str, text: String| ReasonView {
        code: code.into(),
        text,
        rule: CHECK.into(),
        layer: "built-in".into(),
        remedy: String::new(),
        span: None,
    };
    let mut reasons = case.judged.reasons();
    let hidden = hidden_characters(&case.request.command);
    if hidden > 0 {
        let text = format!("contains hidden or look-alike characters ({hidden})");
        reasons.push(own("hidden_characters", text));
    }
    if is_misdescribed(case) {
        let who = case.agent().unwrap_or(case.request.principal.name());
        let text = format!("{who}'s description does not match the command");
        reasons.push(own("misdescribed", text));
    }
    reasons
}

/// Stands for a rule where none has found it.
const CHECK: &str = "built-in check";

/// Returns what only a reader of the request can tell, from the stored part of a
/// question: that is as true of what the command has changed.
pub(crate) fn of_the_request(body: &Value) -> Vec<ReasonView> {
    let reasons = body.get("reasons").cloned().unwrap_or_default();
    let reasons: Vec<ReasonView> = serde_json::from_value(reasons).unwrap_or_default();
    { reasons.into_iter() }
        .filter(|reason| reason.rule == CHECK)
        .collect()
}

/// Words that say that nothing changes.
const HARMLESS: &[&str] = &[
    "check", "count", "display", "examine", "find", "inspect", "list", "look", "ls", "print",
    "read", "search", "see", "show", "view",
];

/// Returns whether the requester says that it only looks, and it does more.
fn is_misdescribed(case: &Case) -> bool {
    let claim = case.request.description.as_deref().unwrap_or_default();
    let first = claim
        .split(|c: char| !c.is_alphanumeric())
        .find(|word| !word.is_empty());
    let looks = first.is_some_and(|word| {
        let word = word.to_lowercase();
        HARMLESS
            .iter()
            .any(|known| word == *known || word == format!("{known}s"))
    });
    let changes = [
        Effect::Write,
        Effect::Delete,
        Effect::Network,
        Effect::Privilege,
    ];
    let does = |part: &Part| changes.iter().any(|&effect| part.effects.has(effect));
    looks && asked(case).any(does)
}

/// The parts that are the reason for asking.
fn asked(case: &Case) -> impl Iterator<Item = &Part> {
    let judgement = &case.judged.judgement;
    let parts = judgement.facts.parts.iter().zip(&judgement.parts);
    parts
        .filter(|(part, decided)| decided.verdict != Verdict::Auto && !part.possible)
        .map(|(part, _)| part)
}

/// Says in one sentence what it does.
fn summary(case: &Case) -> String {
    let mut told: Vec<String> = vec![];
    for part in asked(case) {
        let does = deed(part);
        if !told.contains(&does) {
            told.push(does);
        }
    }
    let more = told.len().saturating_sub(TOLD);
    told.truncate(TOLD);
    let mut text = match told.as_slice() {
        [] => case
            .judged
            .reasons()
            .first()
            .map_or_else(String::new, |reason| reason.text.clone()),
        told => told.join(", then "),
    };
    if more > 0 {
        text.push_str(&format!(", and {more} more"));
    }
    capitalised(&text)
}

/// Says what one part does, and to what.
fn deed(part: &Part) -> String {
    let things = |access: Access| {
        let paths = part.paths.iter().filter(|path| path.access == access);
        named(
            paths
                .filter(|path| path.place != PlaceKind::Sink)
                .map(|path| path.written.as_str()),
        )
    };
    let hosts = named(part.hosts.iter().map(String::as_str));
    let known = [
        ("deletes", things(Access::Delete)),
        ("writes", things(Access::Write)),
        (verb_of_network(part), hosts),
    ];
    let known = known
        .into_iter()
        .filter_map(|(verb, things)| Some(format!("{verb} {}", things?)));
    let known: Vec<String> = known.collect();
    match (&part.unknown, things(Access::Run)) {
        (Some(_), Some(program)) => format!("unknown: runs {program}"),
        _ if !known.is_empty() => known.join(" and "),
        (Some(_), None) if part.does.is_empty() => "has unpredictable effects".into(),
        _ => unended(&part.does).to_owned(),
    }
}

/// Names what a part does on the network, by what its program is known to do.
fn verb_of_network(part: &Part) -> &'static str {
    match part.does.split(' ').next() {
        Some("pushes") => "pushes to",
        Some("fetches") => "fetches from",
        _ => "connects to",
    }
}

/// Returns a sentence without its full stop; a dot by itself is a directory.
fn unended(sentence: &str) -> &str {
    match sentence.strip_suffix('.') {
        Some(rest) if !rest.ends_with(' ') => rest,
        _ => sentence,
    }
}

/// Names the first few things of a list.
fn named<'a>(things: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut things: Vec<&str> = things.collect();
    things.dedup();
    let more = things.len().saturating_sub(TOLD);
    things.truncate(TOLD);
    let text = things.join(", ");
    match more {
        _ if things.is_empty() => None,
        0 => Some(text),
        more => Some(format!("{text} and {more} more")),
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Returns how much harm a wrong yes could do.
pub(crate) fn risk(case: &Case) -> Risk {
    let own = reasons(case);
    let tricky = |reason: &ReasonView| reason.rule == "built-in check";
    if own.iter().any(tricky) || asked(case).any(is_high) {
        return Risk::High;
    }
    let medium = [
        Effect::Delete,
        Effect::Execute,
        Effect::Network,
        Effect::Process,
    ];
    let is_medium = |part: &Part| {
        part.unknown.is_some() || medium.iter().any(|&effect| part.effects.has(effect))
    };
    match asked(case).any(is_medium) {
        true => Risk::Medium,
        false => Risk::Low,
    }
}

/// What walls do not hold, or what nobody can take back.
fn is_high(part: &Part) -> bool {
    let high = [Effect::Privilege, Effect::Device, Effect::Secret];
    let changed = |access: Access| matches!(access, Access::Write | Access::Delete);
    let outside = |place: PlaceKind| !matches!(place, PlaceKind::Sandbox | PlaceKind::Sink);
    let loads_code = part.effects.has(Effect::Network) && part.effects.has(Effect::Execute);
    loads_code
        || part.tags.contains(&"pipe-to-shell")
        || high.iter().any(|&effect| part.effects.has(effect))
        || { part.paths.iter() }.any(|path| changed(path.access) && outside(path.place))
}

impl Questions {
    /// Makes an approval what doors show of it.
    pub(crate) fn card(&self, approval: Approval) -> Result<ApprovalView, Error> {
        let runs = self.core.store.approvals().runs_of(&approval.id)?;
        let body: Body = serde_json::from_value(approval.body).unwrap_or_default();
        let pending = approval.state == ApprovalState::Pending;
        let left = self.deadlines.left(&approval.id).unwrap_or_default();
        let waits =
            |(id, state): &(String, State)| *state == State::Waiting && self.waiters.any(id);
        let situation = match pending {
            false => Situation::Over,
            true if runs.iter().any(waits) => Situation::Waiting,
            true => Situation::WentOn,
        };
        Ok(ApprovalView {
            short_id: id::short(&approval.id),
            approval_id: approval.id,
            state: approval.state,
            risk: approval.risk,
            summary: body.summary,
            claim: body.claim,
            requested_by: approval.requested_by,
            agent: body.agent,
            sandbox: self.sandboxes.name_of(&approval.sandbox),
            sandbox_id: approval.sandbox,
            session: body.session,
            cwd: body.cwd,
            command: body.command,
            shell: body.shell,
            env: body.env,
            environment: body.environment,
            has_input: body.has_input,
            input: body.input,
            more_input: body.more_input,
            input_follows: body.input_follows,
            network: body.network,
            files: body.files,
            reasons: body.reasons,
            count: approval.count,
            command_ids: { runs.into_iter() }.take(RUNS).map(|(id, _)| id).collect(),
            situation,
            created_at: time(approval.created_at),
            expires_at: time(approval.expires_at),
            expires_in_seconds: match pending {
                // What is left of a second is time to answer, too.
                true => left.as_millis().div_ceil(1000) as u64,
                false => 0,
            },
            decided_at: approval.decided_at.map(time),
            decided_by: approval.decided_by,
            needed: approval.needed,
            answers: vec![],
            fingerprint: approval.fingerprint,
            version: approval.version,
            effect: body.effect,
            explanation: None,
        })
    }
}

/// Describes an answer.
pub(crate) fn answer_view(answer: Answer) -> AnswerView {
    AnswerView {
        by: answer.by,
        approved: answer.approve,
        how: answer.how,
        origin: answer.origin,
        reason: answer.reason,
        edited: answer.edited,
        at: time(answer.at),
    }
}
