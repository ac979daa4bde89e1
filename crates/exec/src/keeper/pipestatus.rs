//! The exit codes of a pipeline, where bash can tell them.
//!
//! The command's text is not touched. Bash reads a file of ours first, which
//! leaves a trap for the shell's own exit; a command that sets its own exit
//! trap, or ends with `exec`, keeps its meaning and has no `pipestatus`.

use weighlock_confine::{Note, Rung};

use crate::spec::{Shell, Spec};

/// What bash reads first, and where it leaves its answer: in a directory of
/// the run's own.
const NOTE: &str = "/run/weighlock/bash_env";
const ANSWER: &str = "/run/weighlock/pipestatus";

/// Makes bash tell, where that makes sense. Without private directories there
/// is no place for it.
pub(super) fn ask(spec: &mut Spec, command: &str, rung: Rung) -> Option<Note> {
    let wanted = spec.shell == Shell::Bash
        && command.contains('|')
        && rung > Rung::Landlock
        && !spec.env.iter().any(|(name, _)| name == "BASH_ENV");
    if !wanted {
        return None;
    }
    spec.env.push(("BASH_ENV".into(), NOTE.into()));
    let trap = format!("printf \"%s \" \"${{PIPESTATUS[@]}}\" 2>/dev/null > {ANSWER}");
    Some(Note {
        path: NOTE.into(),
        text: format!("unset BASH_ENV\ntrap '{trap}' EXIT\n"),
        answer: Some(ANSWER.into()),
    })
}

/// Reads what bash told.
pub(super) fn understand(answer: &str) -> Option<Vec<i32>> {
    let codes: Result<Vec<i32>, _> = answer.split_ascii_whitespace().map(str::parse).collect();
    // One code is the exit code again.
    codes.ok().filter(|codes| codes.len() > 1)
}
