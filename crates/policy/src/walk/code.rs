//! Commands in code of other languages.
//!
//! Only the look of it counts: text in quotes that a call takes which starts
//! programs, `os.system("…")`, `run(["…", "…"])`. What other texts say is no
//! command, unless it is plainly one: `rm -rf /`.

use super::run::NOTORIOUS;

/// What is in the name of a call that starts programs.
const STARTERS: &[&str] = &[
    "system",
    "popen",
    "exec",
    "spawn",
    "fork",
    "shell",
    "qx",
    "check_call",
    "check_output",
    "getoutput",
    "startfile",
    "capture2",
    "capture3",
    "%x",
];

/// Names of such calls that are too short to look for inside of others.
const CALLS: &[&str] = &["run", "call", "sh", "cmd", "pty"];

/// Returns the commands that code seems to start.
pub(super) fn started(code: &str) -> Vec<String> {
    let groups = groups(code);
    let calls = groups.iter().any(|group| group.called);
    let lower = code.to_lowercase();
    let starts = calls || STARTERS.iter().any(|name| lower.contains(name));
    let mut commands = vec![];
    for group in groups {
        if group.called || (starts && is_plain(&group.texts.join(" "))) {
            if group.texts.len() > 1 {
                commands.push(group.texts[0].to_owned());
            }
            commands.push(group.texts.join(" "));
        }
    }
    commands.retain(|command| !command.trim().is_empty());
    commands
}

/// Returns whether a text is plainly a command, wherever it is: `sudo id`,
/// `rm -rf /`, and not `su means…`.
fn is_plain(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let (Some(first), Some(second)) = (words.next(), words.next()) else {
        return false;
    };
    let base = first.rsplit('/').next().unwrap_or(first);
    let option = second.starts_with(['-', '/']) || second.contains('=');
    matches!(base, "sudo" | "doas") || (option && NOTORIOUS.contains(&base))
}

/// Texts in quotes with nothing but commas between them.
struct Group<'a> {
    texts: Vec<&'a str>,
    /// They are what a call takes that starts programs.
    called: bool,
}

fn groups(code: &str) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = vec![];
    let mut from = 0;
    while let Some(start) = code[from..].find(['"', '\'', '`']).map(|at| from + at) {
        let quote = char::from(code.as_bytes()[start]);
        let Some(length) = code[start + 1..].find(quote) else {
            break;
        };
        let text = &code[start + 1..start + 1 + length];
        let between = &code[from..start];
        let follows = between
            .chars()
            .all(|c| c == ',' || c == '[' || c.is_whitespace());
        match groups.last_mut() {
            Some(group) if follows && between.contains(',') => group.texts.push(text),
            _ => groups.push(Group {
                texts: vec![text],
                called: quote == '`' || is_call(between),
            }),
        }
        from = start + 2 + length;
    }
    groups
}

/// Returns whether code ends in the beginning of a call that starts programs.
fn is_call(before: &str) -> bool {
    let opening = |c: char| c.is_whitespace() || matches!(c, '(' | '[' | '{');
    let before = before.trim_end_matches(opening);
    // What says how the quoted text is to be read: `f"…"`.
    let name = before.trim_end_matches(|c: char| c.is_alphanumeric() || "_.%$!:@".contains(c));
    let name = before[name.len()..].to_lowercase();
    let outer = match name.len() {
        0..=2 if !CALLS.contains(&name.as_str()) => {
            let before = before[..before.len() - name.len()].trim_end_matches(opening);
            let start =
                before.trim_end_matches(|c: char| c.is_alphanumeric() || "_.%$!:@".contains(c));
            before[start.len()..].to_lowercase()
        }
        _ => name,
    };
    let last = outer.rsplit(['.', ':']).next().unwrap_or(&outer);
    STARTERS.iter().any(|starter| outer.contains(starter)) || CALLS.contains(&last)
}
