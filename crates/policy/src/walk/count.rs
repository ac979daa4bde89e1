//! Commands that print numbers and nothing else.
//!
//! What a command prints may be anything, and an expression runs code that is
//! in its values. Counting is the everyday reason to calculate, though.

use std::collections::HashSet;

use weighlock_shell::{Command, CommandKind, List, Redirect, Redirection, Word};

/// What `date` prints as digits.
const DATES: &str = "sYmdHMSNjuwy";

/// Options of `grep` that leave it at counting, in one file.
const GREP: &str = "cEFGPivwxsh";

/// Takes the place of a program that is missing.
const MISSING: &str = "command_not_found_handle";

/// Returns whether all that a substitution can put out is numbers. Names that
/// are functions are not the programs that they are known for.
pub(super) fn only_numbers(body: &List, functions: &HashSet<String>) -> bool {
    let [item] = body.items.as_slice() else {
        return false;
    };
    let Some((last, words)) = item.pipeline.stages.last().and_then(plain) else {
        return false;
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let own = words
        .first()
        .is_some_and(|first| functions.contains(*first));
    prints_numbers(&words) && is_silent(last) && !own && !functions.contains(MISSING)
}

/// Returns the words of a command of which all are plain, so that no option
/// comes in from elsewhere.
fn plain(stage: &Command) -> Option<(&Command, Vec<String>)> {
    let CommandKind::Simple(simple) = &stage.kind else {
        return None;
    };
    let words = simple.words.iter().map(Word::literal);
    let words: Option<Vec<String>> = words.collect();
    words
        .filter(|_| simple.assignments.is_empty())
        .map(|words| (stage, words))
}

fn prints_numbers(words: &[&str]) -> bool {
    match words {
        ["wc", options @ ..] => options.iter().all(|word| is_option(word, "lwcm")),
        ["grep", option, operands @ ..] => {
            // With more than one file, their names are printed.
            is_option(option, GREP)
                && option.contains('c')
                && operands.len() <= 2
                && !operands.iter().any(|word| word.starts_with('-'))
        }
        ["date", format] | ["date", "-u", format] => is_digits(format),
        ["nproc"] | ["id", "-u" | "-g"] => true,
        ["stat", "-c", "%s" | "%X" | "%Y" | "%Z", file] => !file.starts_with('-'),
        ["git", "rev-list", "--count", revision] => !revision.starts_with('-'),
        _ => false,
    }
}

/// Returns whether errors stay apart from what is put out.
fn is_silent(command: &Command) -> bool {
    let calm = |redirection: &Redirection| match redirection.op {
        Redirect::Read | Redirect::HereDocument | Redirect::HereString => true,
        Redirect::Write => redirection.target.literal().as_deref() == Some("/dev/null"),
        _ => false,
    };
    command.redirections.iter().all(calm)
}

fn is_option(word: &str, letters: &str) -> bool {
    let option = word.strip_prefix('-').unwrap_or_default();
    !option.is_empty() && option.chars().all(|letter| letters.contains(letter))
}

/// Returns whether a format of `date` has nothing but numbers in it.
fn is_digits(format: &str) -> bool {
    let Some(directives) = format.strip_prefix("+%") else {
        return false;
    };
    let mut directives = directives.split('%');
    directives.all(|letter| letter.len() == 1 && DATES.contains(letter))
}
