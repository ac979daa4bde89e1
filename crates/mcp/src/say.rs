//! What is said of runs in the tools of others, which have no words for it.

use weighlock_api::{Run, State};

use crate::api::Failure;
use crate::request::notes;
use crate::weighlock::word;

/// Says that a run has not ended, why, and what to do.
pub(crate) fn unfinished(run: &Run) -> String {
    let id = &run.short_id;
    match run.state {
        State::Running if run.detail.reason.is_none() => format!(
            "It takes longer than this call may, and goes on as run {id}. Call `wait` with id \
             {id} for the rest; do not repeat the command."
        ),
        _ => {
            let why = run.detail.reason.as_ref();
            format!("{}\n{}", why.map_or("", |why| &why.text), wait_for(run))
        }
    }
}

/// What to do while a person is asked, or work is paused.
pub(crate) fn wait_for(run: &Run) -> String {
    let id = &run.short_id;
    format!(
        "Run {id} is {}. Call `wait` with id {id}, or go on with other work; do not repeat the \
         command.",
        word(&run.state)
    )
}

/// Rewrites a hint for an agent, which has our tools and no command line: that
/// is for people.
pub(crate) fn to_agent(hint: &str) -> String {
    match (
        hint.split_once(", or `weighlock "),
        hint.contains("`weighlock "),
    ) {
        // It is only what else could be done.
        (Some((hint, _)), _) => hint.to_owned(),
        (None, true) => format!("For your person: {hint}"),
        (None, false) => hint.to_owned(),
    }
}

/// What is to be known of a run that has ended beside its output, walls that
/// it has met first.
pub(crate) fn beside(run: &Run) -> Vec<String> {
    let denials = run.detail.denials.iter().map(|denial| denial.text.clone());
    denials.chain(notes(run)).collect()
}

/// A failure in short sentences.
pub(crate) fn sentences(failure: &Failure) -> String {
    let parts = [&failure.what, &failure.hint];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts
        .map(|part| sentence(part))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A sentence, from what may stand within one.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect::<String>();
    let end = match text.ends_with(['.', '!', '?', '…']) {
        true => "",
        false => ".",
    };
    format!("{first}{}{end}", chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_a_persons() {
        for (hint, told) in [
            ("give more of the id", "give more of the id"),
            ("use another, or `weighlock serve --replace`", "use another"),
            (
                "`weighlock doctor` says more",
                "For your person: `weighlock doctor` says more",
            ),
        ] {
            assert_eq!(to_agent(hint), told);
        }
    }

    #[test]
    fn failures_become_sentences() {
        let said = |what: &str, hint: &str| sentences(&Failure::new("x", what, hint));
        assert_eq!(said("it is empty", ""), "It is empty.");
        assert_eq!(said("No.", "give one"), "No. Give one.");
    }
}
