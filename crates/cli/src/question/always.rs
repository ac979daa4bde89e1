//! What is allowed from now on: one rule for each part that is asked about.

use weighlock_engine::{ApprovalView, Explanation, PartKind, PartView, Verdict};
use weighlock_server::NewGrant;

use crate::keys::Keys;
use crate::term::say;
use crate::text::{command_line, safe};
use crate::verb::policy::{Until, parse_until};

/// How long a grant holds unless a person says otherwise: a day's work.
const GRANT_FOR: &str = "8h";

/// What should be asked about each time, unless a person says otherwise.
const WEIGHTY: &[&str] = &["delete", "execute", "network"];

/// What nobody can foresee cannot be allowed beforehand.
pub(super) fn is_possible(asked: &Explanation) -> bool {
    let unclear = |part: &PartView| part.kind == PartKind::Unknown || part.unknown.is_some();
    !asked.command.contains("<<") && !asked.parts.iter().any(unclear)
}

/// Asks for a pattern for each part, and for how long; none when it was given
/// up, or nothing is left to save.
pub(super) async fn compose(keys: &mut Keys<'_>, asked: &ApprovalView) -> Option<Vec<NewGrant>> {
    let explanation = asked.explanation.as_deref()?;
    let mut patterns = vec![];
    for part in parts(explanation) {
        say!(
            "  {} — leave it empty to keep asking",
            command_line(&part.text, 50)
        );
        let pattern = keys
            .line("  allow which commands? ", &suggested(part))
            .await?;
        patterns.extend(Some(pattern).filter(|pattern| !pattern.is_empty()));
    }
    if patterns.is_empty() {
        say!("  No rule was made.");
        return None;
    }
    let until = until(keys).await?;
    let grants = { patterns.into_iter() }.map(|pattern| NewGrant {
        pattern,
        agent: asked.agent.clone(),
        sandbox: Some(asked.sandbox.clone()),
        session: None,
        until: until.ends_at(),
    });
    Some(grants.collect())
}

async fn until(keys: &mut Keys<'_>) -> Option<Until> {
    loop {
        let question = "  for how long? (or revoked) ";
        match parse_until(&keys.line(question, GRANT_FOR).await?) {
            Ok(until) => return Some(until),
            Err(wrong) => say!("  {}", safe(&wrong)),
        }
    }
}

/// The parts that are not allowed already, each once.
fn parts(asked: &Explanation) -> Vec<&PartView> {
    let wanted = |part: &&PartView| part.verdict != Verdict::Auto && !part.possible;
    let mut parts: Vec<&PartView> = asked.parts.iter().filter(wanted).collect();
    parts.dedup_by_key(|part| part.span);
    parts
}

/// Exactly this part, where it reads as a pattern as it reads as a command and
/// does nothing that should be asked about each time.
fn suggested(part: &PartView) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+ ".contains(c);
    let weighty = part
        .effects
        .iter()
        .any(|effect| WEIGHTY.contains(&effect.as_str()));
    match part.kind == PartKind::Command && part.text.chars().all(plain) && !weighty {
        true => part.text.clone(),
        false => String::new(),
    }
}
