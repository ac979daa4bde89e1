//! What is allowed from now on: one rule for each part that is asked about.

use weighlock_api::{NewGrant, RuleChoice, RuleGroup};

use super::ShownQuestion;
use crate::keys::Keys;
use crate::term::say;
use crate::text::{command_line, safe};
use crate::verb::policy::{GrantExpiry, parse_until};

/// How long a grant holds unless a person says otherwise: a day's work.
const GRANT_FOR: &str = "8h";

/// Asks for a pattern for each part, and for how long; none when it was given
/// up, or nothing is left to save.
pub(super) async fn compose(keys: &mut Keys<'_>, asked: &ShownQuestion) -> Option<Vec<NewGrant>> {
    let rules = asked.rules.as_ref()?;
    let mut patterns = vec![];
    for group in &rules.groups {
        say!(
            "  {} — leave it empty to keep asking",
            command_line(&group.text, 50)
        );
        for (at, choice) in group.choices.iter().enumerate() {
            say!("{}", offer(at, choice, rules.looked_at));
        }
        let pattern = keys
            .line("  allow which commands? ", suggested(group))
            .await?;
        patterns.extend(Some(chosen(group, pattern)).filter(|pattern| !pattern.is_empty()));
    }
    if patterns.is_empty() {
        say!("  No rule was made.");
        return None;
    }
    let until = until(keys).await?;
    let scope = rules.scopes.first();
    let grants = { patterns.into_iter() }.map(|pattern| NewGrant {
        pattern,
        agent: scope.and_then(|scope| scope.agent.clone()),
        sandbox: Some(asked.sandbox.clone()),
        session: None,
        until: until.ends_at(),
    });
    Some(grants.collect())
}

/// One choice with what it would have meant until now.
fn offer(at: usize, choice: &RuleChoice, looked_at: usize) -> String {
    let refused = match choice.refused.len() {
        0 => String::new(),
        1 => "; would also allow a command that was refused".to_owned(),
        count => format!("; would also allow {count} commands that were refused"),
    };
    format!(
        "    {} {} — {} of the last {looked_at}{refused}",
        at + 1,
        safe(&choice.pattern),
        choice.matched,
    )
}

/// What to begin with: nothing, where it should be asked about each time.
fn suggested(group: &RuleGroup) -> &str {
    let choice = group.selected.and_then(|at| group.choices.get(at));
    choice.map_or("", |choice| &choice.pattern)
}

/// A number names a choice; anything else is a pattern.
fn chosen(group: &RuleGroup, said: String) -> String {
    let number = said.trim().parse::<usize>().ok();
    let choice = number.and_then(|number| group.choices.get(number.checked_sub(1)?));
    choice.map_or(said, |choice| choice.pattern.clone())
}

async fn until(keys: &mut Keys<'_>) -> Option<GrantExpiry> {
    loop {
        let question = "  for how long? (or revoked) ";
        match parse_until(&keys.line(question, GRANT_FOR).await?) {
            Ok(until) => return Some(until),
            Err(wrong) => say!("  {}", safe(&wrong)),
        }
    }
}
