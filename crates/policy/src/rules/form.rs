//! One rule as a form has it, and putting it back into the text of its file.
//!
//! The text is what counts: a form changes the lines of its own rule and
//! leaves every other line as somebody wrote it. What came out is read again,
//! and only taken if nothing but that rule has changed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::Verdict;

/// One rule as form fields; empty fields are left out of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RuleForm {
    /// Its name; its line if empty.
    pub name: String,
    /// Its verdict on what it matches.
    pub verdict: Verdict,
    /// It is about changes of files, and `patterns` are paths.
    pub change: bool,
    /// What it matches: patterns that look like commands.
    pub patterns: Vec<String>,
    /// Alternatively, conditions on a part: `program`, `paths`, `effects` and
    /// so on, each with its allowed values.
    pub table: BTreeMap<String, Vec<String>>,
    /// The kinds of change it is about, where it is about changes.
    pub kinds: Vec<String>,
    /// `users`: only those who are no administrators.
    pub who: String,
    /// Only when one of these agents asks.
    pub agents: Vec<String>,
    /// Only in these sandboxes, by name.
    pub sandboxes: Vec<String>,
    /// The last day, or the time, until which it is valid.
    pub until: String,
    /// Why, as the end of a sentence.
    pub because: String,
    /// The whole sentence to say instead.
    pub says: String,
    /// What could be done instead.
    pub remedy: String,
    /// A stable word for programs.
    pub code: String,
    /// Examples that it must match.
    pub matches: Vec<String>,
    /// Examples that it must not match.
    pub misses: Vec<String>,
}

/// Returns the rules of a text that can be read, each with the line on which it
/// begins, in the order of their lines.
pub fn forms(text: &str) -> Option<Vec<(usize, RuleForm)>> {
    let file: Table = text.parse().ok()?;
    let mut all = vec![];
    for (kind, change) in [("rule", false), ("change", true)] {
        let written = file.get(kind).and_then(Value::as_array);
        let written = written.map(Vec::as_slice).unwrap_or_default();
        let lines = headers(text, kind);
        // Written another way than with [[rule]], or quoted in a longer text.
        if lines.len() != written.len() {
            return None;
        }
        for (line, rule) in lines.into_iter().zip(written) {
            all.push((line, RuleForm::read(rule.as_table()?, change)?));
        }
    }
    all.sort_by_key(|(line, _)| *line);
    Some(all)
}

/// Puts a rule into a text: it replaces the rule that begins on `line`, or is
/// added behind all others. Without a rule, the one on that line is removed.
/// Returns none where that cannot be done without changing anything else.
pub fn edit(text: &str, line: Option<usize>, rule: Option<&RuleForm>) -> Option<String> {
    let mut wanted: Vec<RuleForm> = vec![];
    let mut found = line.is_none();
    for (at, form) in forms(text)? {
        match (Some(at) == line, rule) {
            (true, rule) => {
                found = true;
                wanted.extend(rule.cloned());
            }
            (false, _) => wanted.push(form),
        }
    }
    if line.is_none() {
        wanted.extend(rule.cloned());
    }
    let edited = match line {
        None => appended(text, &rule?.write()),
        Some(line) => replaced(text, line, rule),
    };
    let now = forms(&edited)?.into_iter().map(|(_, form)| form);
    (found && now.eq(wanted)).then_some(edited)
}

fn appended(text: &str, rule: &str) -> String {
    match text.trim_end() {
        "" => rule.to_owned(),
        before => format!("{before}\n\n{rule}"),
    }
}

fn replaced(text: &str, line: usize, rule: Option<&RuleForm>) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let start = line.saturating_sub(1).min(lines.len());
    let next =
        { lines[start..].iter().skip(1) }.position(|line| line.trim_start().starts_with('['));
    let mut end = next.map_or(lines.len(), |next| start + 1 + next);
    // What stands right above the next rule belongs to that.
    let is_between = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    while end > start + 1 && is_between(lines[end - 1]) {
        end -= 1;
    }
    let (before, after) = (&lines[..start], &lines[end..]);
    let said = lines[start..end].iter();
    let said = said.filter(|line| line.trim_start().starts_with('#'));
    let own = rule.map(|rule| rule.write());
    let mut own: Vec<&str> = own.iter().flat_map(|own| own.lines()).collect();
    if !own.is_empty() {
        own.splice(1..1, said.copied());
    }
    let after = match own.is_empty() {
        true => after.strip_prefix(&[""]).unwrap_or(after),
        false => after,
    };
    let mut edited = [before, &own, after].concat().join("\n");
    if !edited.is_empty() {
        edited.push('\n');
    }
    edited
}

/// Returns the lines that begin a rule of a kind, from 1.
fn headers(text: &str, kind: &str) -> Vec<usize> {
    let begins = |line: &str| {
        let line = line.split('#').next().unwrap_or_default().trim();
        let name = line
            .strip_prefix("[[")
            .and_then(|line| line.strip_suffix("]]"));
        name.is_some_and(|name| name.trim() == kind)
    };
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| begins(line))
        .map(|(at, _)| at + 1)
        .collect()
}

/// The verdicts, as the keys that they are.
const VERDICTS: [(&str, Verdict); 3] = [
    ("auto", Verdict::Auto),
    ("ask", Verdict::Ask),
    ("reject", Verdict::Reject),
];

impl RuleForm {
    /// A rule about what a grant could be about: a pattern, or a table in
    /// braces.
    pub fn about(pattern: &str) -> Self {
        let table = pattern.trim_start().starts_with('{');
        let table = table.then(|| format!("[[rule]]\nask = {pattern}\n"));
        let read = table
            .and_then(|text| forms(&text))
            .and_then(|mut forms| forms.pop());
        match read {
            Some((_, form)) => form,
            None => Self {
                patterns: vec![pattern.to_owned()],
                ..Self::default()
            },
        }
    }

    fn read(rule: &Table, change: bool) -> Option<Self> {
        let text = |key: &str| match rule.get(key) {
            None => Some(String::new()),
            Some(value) => value.as_str().map(str::to_owned),
        };
        let list = |key: &str| rule.get(key).map_or(Some(vec![]), words);
        let (verdict, what) =
            { VERDICTS.into_iter() }.find_map(|(key, verdict)| Some((verdict, rule.get(key)?)))?;
        let mut table = BTreeMap::new();
        for (key, value) in what.as_table().into_iter().flatten() {
            table.insert(key.clone(), words(value)?);
        }
        Some(Self {
            name: text("name")?,
            verdict,
            change,
            patterns: match what {
                Value::Table(_) => vec![],
                what => words(what)?,
            },
            table,
            kinds: list("kinds")?,
            who: text("who")?,
            agents: list("agents")?,
            sandboxes: list("sandboxes")?,
            until: text("until")?,
            because: text("because")?,
            says: text("says")?,
            remedy: text("remedy")?,
            code: text("code")?,
            matches: list("matches")?,
            misses: list("misses")?,
        })
    }

    /// Returns it as it stands in a file.
    fn write(&self) -> String {
        let verdict = { VERDICTS.into_iter() }
            .find_map(|(key, verdict)| (verdict == self.verdict).then_some(key));
        let mut lines = vec![format!(
            "[[{}]]",
            if self.change { "change" } else { "rule" }
        )];
        let mut line = |key: &str, value: Option<String>| {
            lines.extend(value.map(|value| format!("{key:<7} = {value}")));
        };
        line("name", one(&self.name));
        line(
            verdict.unwrap_or("ask"),
            match self.table.is_empty() {
                true => some(&self.patterns).or(Some("[]".into())),
                false => Some(braces(&self.table)),
            },
        );
        line("kinds", some(&self.kinds));
        line("who", one(&self.who));
        line("agents", some(&self.agents));
        line("sandboxes", some(&self.sandboxes));
        line("until", one(&self.until));
        line("because", one(&self.because));
        line("says", one(&self.says));
        line("remedy", one(&self.remedy));
        line("code", one(&self.code));
        line("matches", some(&self.matches));
        line("misses", some(&self.misses));
        lines.push(String::new());
        lines.join("\n")
    }
}

/// Returns one or several texts; a switch counts as its word.
fn words(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Boolean(on) => Some(vec![on.to_string()]),
        Value::Array(list) => { list.iter() }
            .map(|one| one.as_str().map(str::to_owned))
            .collect(),
        _ => None,
    }
}

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fn one(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| quoted(text))
}

fn some(list: &[String]) -> Option<String> {
    match list {
        [] => None,
        [only] => Some(quoted(only)),
        list => {
            let list: Vec<String> = list.iter().map(|text| quoted(text)).collect();
            Some(format!("[{}]", list.join(", ")))
        }
    }
}

fn braces(table: &BTreeMap<String, Vec<String>>) -> String {
    let entry = |(key, list): (&String, &Vec<String>)| match key.as_str() {
        "ignore_case" => Some(format!("{key} = {}", list.first()?)),
        _ => Some(format!("{key} = {}", some(list)?)),
    };
    let entries: Vec<String> = table.iter().filter_map(entry).collect();
    format!("{{ {} }}", entries.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Ours.\notherwise = \"ask\"\n\n# Shared work.\n[[rule]]\nname = \"push\" # why not\n\
        reject  = \"git push --force\"\n# Bob insisted.\nmatches = [\n  \"git push -f\",\n]\n\n\
        # Scratch.\n[[rule]]\nauto = { program = \"rm\", paths = [\"tmp\"] }\n\n\
        [[change]]\nask = \"db/**\"\nkinds = [\"deleted\"]\n";

    fn form(name: &str) -> RuleForm {
        RuleForm {
            name: name.into(),
            verdict: Verdict::Reject,
            patterns: vec![r#"say "it's" \ so"#.into()],
            until: "2026-11-20".into(),
            agents: vec!["coder".into(), "writer".into()],
            ..RuleForm::default()
        }
    }

    #[test]
    fn rules_are_found_with_their_lines() {
        let forms = forms(FILE).unwrap();
        let lines: Vec<usize> = forms.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [5, 14, 17]);
        assert_eq!(forms[0].1.matches, ["git push -f"]);
        assert_eq!(forms[1].1.table["paths"], ["tmp"]);
        assert!(forms[2].1.change);
    }

    #[test]
    fn a_new_rule_comes_last_and_leaves_the_rest_alone() {
        let edited = edit(FILE, None, Some(&form("new"))).unwrap();
        assert!(edited.starts_with(FILE.trim_end()));
        assert_eq!(forms(&edited).unwrap().pop().unwrap().1, form("new"));
        assert_eq!(
            forms(&edit("", None, Some(&form("x"))).unwrap())
                .unwrap()
                .len(),
            1
        );
    }

    #[test]
    fn a_changed_rule_keeps_its_place_and_what_was_said_of_it() {
        let edited = edit(FILE, Some(5), Some(&form("push"))).unwrap();
        let (_, rest) = FILE.split_at(FILE.find("\n\n# Scratch").unwrap());
        assert!(
            edited.starts_with("# Ours.\notherwise = \"ask\"\n\n# Shared work.\n[[rule]]\n# Bob")
        );
        assert!(edited.ends_with(rest), "{edited}");
        assert_eq!(forms(&edited).unwrap()[0].1, form("push"));
    }

    #[test]
    fn a_rule_that_goes_takes_nothing_else_along() {
        let edited = edit(FILE, Some(14), None).unwrap();
        assert_eq!(forms(&edited).unwrap().len(), 2);
        assert!(edited.contains("# Shared work.\n[[rule]]"));
    }

    #[test]
    fn what_cannot_be_done_by_lines_is_not_done() {
        let tricky = "[[rule]]\nask = '''\n[[rule]]\n'''\n";
        assert_eq!(edit(tricky, Some(1), None), None);
        assert_eq!(
            edit("rule = [{ ask = \"ls\" }]\n", None, Some(&form("x"))),
            None
        );
        assert_eq!(edit(FILE, Some(6), Some(&form("x"))), None);
        assert_eq!(edit("[[rule", None, Some(&form("x"))), None);
    }
}
