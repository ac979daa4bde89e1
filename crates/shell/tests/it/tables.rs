//! Texts and the trees they become: `tests/cases`.

use weighlock_shell::{Dialect, Script, parse};

use crate::render;

/// Compares every line of a table with what `show` makes of its text.
fn check(table: &str, dialect: Dialect, show: fn(&str, &Script) -> String) {
    let mut wrong = vec![];
    for line in table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
    {
        let (text, tree) = line.split_once("  =>").expect("a line has two sides");
        let (text, tree) = (decode(text), decode(tree.trim_start()));
        let found = show(&text, &parse(&text, dialect));
        if found != tree {
            wrong.push(format!(
                "{text:?}\n  expected {tree:?}\n  found    {found:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn decode(line: &str) -> String {
    let signs = [
        ('⏎', "\n"),
        ('⇥', "\t"),
        ('␍', "\r"),
        ('␣', "\u{a0}"),
        ('␛', "\u{1b}"),
    ];
    signs.iter().fold(line.to_owned(), |text, (sign, meaning)| {
        text.replace(*sign, meaning)
    })
}

fn tree(_: &str, script: &Script) -> String {
    let tree = render::script(script);
    match script.unknowns.first() {
        Some(unknown) => format!("{tree}  ##  {}", unknown.why),
        None => tree.trim_end().to_owned(),
    }
}

fn bashisms(text: &str, script: &Script) -> String {
    let parts: Vec<&str> = script
        .bashisms
        .iter()
        .map(|span| &text[span.start..span.end])
        .collect();
    parts.join("|")
}

#[test]
fn bash_is_read_as_bash_reads_it() {
    check(include_str!("../cases/bash.txt"), Dialect::Bash, tree);
}

#[test]
fn what_only_bash_reads_this_way_is_noted() {
    check(include_str!("../cases/posix.txt"), Dialect::Posix, bashisms);
}

#[test]
fn commands_of_windows_are_found() {
    check(
        include_str!("../cases/powershell.txt"),
        Dialect::PowerShell,
        tree,
    );
    check(include_str!("../cases/cmd.txt"), Dialect::Cmd, tree);
}

#[test]
fn marks_come_in_order() {
    let text = "if a <<E; then # c\n$(b | c)\nE\nd && e; fi";
    let script = parse(text, Dialect::Bash);
    let marks: Vec<&str> = script
        .marks
        .iter()
        .map(|(span, _)| &text[span.start..span.end])
        .collect();
    assert_eq!(
        marks,
        ["if", "<<", ";", "then", "# c", "|", "E", "&&", ";", "fi"]
    );
}

#[test]
fn earlier_lines_stay_when_a_later_one_is_refused() {
    let script = parse("a\nb; c\nd; e )\nf", Dialect::Bash);
    assert_eq!(render::script(&script), "a; b; c; ??");
    assert_eq!(
        (script.unknowns[0].span.start, script.unknowns[0].span.end),
        (7, 15)
    );
}
