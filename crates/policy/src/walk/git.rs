//! Settings that git is given on its command line.

use crate::argument::Arg;

/// Settings of git that change how things look, by how they begin.
const CALM_CONFIG: &[&str] = &[
    "color.",
    "column.",
    "advice.",
    "i18n.",
    "log.date",
    "log.decorate",
    "log.abbrevcommit",
    "log.follow",
    "log.showroot",
    "status.aheadbehind",
    "status.branch",
    "status.relativepaths",
    "status.renames",
    "status.short",
    "status.showstash",
    "status.showuntrackedfiles",
    "blame.date",
    "blame.coloring",
    "blame.showemail",
    "core.quotepath",
    "core.abbrev",
    "core.precomposeunicode",
    "core.optionallocks",
    "diff.renames",
    "diff.renamelimit",
    "diff.noprefix",
    "diff.mnemonicprefix",
    "diff.algorithm",
    "diff.context",
    "diff.colormoved",
    "diff.wordregex",
    "diff.statgraphwidth",
    "diff.interhunkcontext",
    "diff.suppressblankempty",
    "diff.indentheuristic",
    "diff.relative",
    "grep.linenumber",
    "grep.column",
    "grep.patterntype",
    "grep.extendedregexp",
    "grep.threads",
    "grep.fullname",
    "user.name",
    "user.email",
    "init.defaultbranch",
    "core.commentchar",
    "safe.directory",
    "versionsort.",
    "tag.sort",
    "branch.sort",
];

/// Returns whether a setting, `key=value`, only changes how things look.
pub(super) fn is_calm(arg: &Arg) -> bool {
    let text = arg.prefix().to_ascii_lowercase();
    let (key, value) = match text.split_once('=') {
        Some(pair) => pair,
        None if arg.text.is_some() => (text.as_str(), ""),
        None => return false,
    };
    let pager = key == "core.pager" || key.starts_with("pager.");
    is_calm_key(key) || pager && arg.text.is_some() && matches!(value, "cat" | "" | "false")
}

fn is_calm_key(key: &str) -> bool {
    CALM_CONFIG.iter().any(|calm| match calm.ends_with('.') {
        true => key.starts_with(calm),
        // `diff.renames.textconv` is another key.
        false => key == *calm,
    })
}
