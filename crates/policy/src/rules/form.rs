//! One rule as a form has it, and putting it back into the text of its file.
//!
//! The text is what counts: a form changes its own rule and leaves everything
//! else as somebody wrote it, comments too. What came out is read again, and only
//! taken if nothing but that rule has changed.

use std::collections::BTreeMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml_edit::{
    Array, ArrayOfTables, Document, DocumentMut, InlineTable, Item, RawString, Table, TableLike,
    Value,
};

use crate::Verdict;

/// One rule as a form has it; what is empty is left out of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RuleForm {
    /// Its name; its line if empty.
    pub name: String,
    /// What it says about what it matches.
    pub verdict: Verdict,
    /// It is about changes of files, and `patterns` are paths.
    pub change: bool,
    /// What it is about: patterns that look like commands.
    pub patterns: Vec<String>,
    /// Or what must be known of a part: `program`, `paths`, `effects` and so on,
    /// each with what it may be.
    pub table: BTreeMap<String, Vec<String>>,
    /// The kinds of change it is about, where it is about changes.
    pub kinds: Vec<String>,
    /// `users`: only those who are no administrators.
    pub who: String,
    /// Only when one of these agents asks.
    pub agents: Vec<String>,
    /// Only in these sandboxes, by name.
    pub sandboxes: Vec<String>,
    /// The last day or the time until which it counts.
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
    let file = Document::parse(text).ok()?;
    let mut all = vec![];
    for (kind, change) in KINDS {
        for rule in rules(file.get(kind))? {
            all.push((line_of(text, rule)?, RuleForm::read(rule, change)?));
        }
    }
    all.sort_by_key(|(line, _)| *line);
    Some(all)
}

/// Puts a rule into a text: it replaces the rule that begins on `line`, or is
/// added behind all others. Without a rule, the one on that line is removed.
/// Returns none where that cannot be done without changing anything else.
pub fn edit(text: &str, line: Option<usize>, rule: Option<&RuleForm>) -> Option<String> {
    let before = forms(text)?;
    let at = match line {
        Some(line) => Some(before.iter().position(|(at, _)| *at == line)?),
        None => None,
    };
    let edited = match at {
        None => appended(text, rule?),
        Some(at) => replaced(text, &before, at, rule)?,
    };
    let mut wanted: Vec<RuleForm> = before.into_iter().map(|(_, form)| form).collect();
    match at {
        None => wanted.extend(rule.cloned()),
        Some(at) => drop(wanted.splice(at..=at, rule.cloned())),
    }
    let now = forms(&edited)?.into_iter().map(|(_, form)| form);
    now.eq(wanted).then_some(edited)
}

fn appended(text: &str, rule: &RuleForm) -> String {
    let mut file = DocumentMut::new();
    let mut rules = ArrayOfTables::new();
    let mut table = Table::new();
    rule.write(&mut table);
    rules.push(table);
    file.insert(rule.kind(), Item::ArrayOfTables(rules));
    match text.trim_end() {
        "" => file.to_string(),
        before => format!("{before}\n\n{file}"),
    }
}

fn replaced(
    text: &str,
    before: &[(usize, RuleForm)],
    at: usize,
    rule: Option<&RuleForm>,
) -> Option<String> {
    // toml_edit knows but one kind of line break.
    let lines = text.replace("\r\n", "\n");
    let is_windows = lines != text;
    let mut file: DocumentMut = lines.parse().ok()?;
    // Not what it would write in another way or order.
    let is_mixed = is_windows && lines.replace('\n', "\r\n") != text;
    if is_mixed || file.to_string().trim_end() != lines.trim_end() {
        return None;
    }
    let (line, old) = &before[at];
    let of_kind = { before[..at].iter() }.filter(|(_, form)| form.change == old.change);
    let index = of_kind.count();
    let mut table = rules_mut(&mut file, old.kind())?.remove(index);
    let mut edited = match rule {
        Some(rule) => {
            rule.write(&mut table);
            let rules = rules_mut(&mut file, rule.kind())?;
            // It has its position in the file with it.
            match rule.change == old.change {
                true => rules.insert(index, table),
                false => rules.push(table),
            }
            file.to_string()
        }
        None => file.to_string(),
    };
    if rule.is_none() {
        let comments = above_header(&lines, *line, old.kind())?;
        if edited.get(..comments.start) != lines.get(..comments.start) {
            return None;
        }
        edited.insert_str(comments.start, &lines[comments]);
    }
    Some(match is_windows {
        true => edited.replace('\n', "\r\n"),
        false => edited,
    })
}

/// Returns where the lines above a rule are that stay when it goes: all but the
/// blank one that parts it from the rule before.
fn above_header(text: &str, line: usize, kind: &str) -> Option<Range<usize>> {
    let file = Document::parse(text).ok()?;
    let mut rules = rules(file.get(kind))?;
    let rule = rules.find(|rule| line_of(text, rule) == Some(line))?;
    let header = rule.span()?.start;
    let above = rule.decor().prefix().and_then(RawString::span);
    let above = above.unwrap_or(header..header);
    let comments = text.get(above.clone())?.trim_start_matches('\n');
    match comments {
        "" => Some(above.start..above.start),
        _ => Some(above),
    }
}

fn rules_mut<'f>(file: &'f mut DocumentMut, kind: &str) -> Option<&'f mut ArrayOfTables> {
    let none = || Item::ArrayOfTables(ArrayOfTables::new());
    file.entry(kind)
        .or_insert_with(none)
        .as_array_of_tables_mut()
}

fn line_of(text: &str, rule: &Table) -> Option<usize> {
    let before = text.get(..rule.span()?.start)?;
    Some(before.matches('\n').count() + 1)
}

/// The names of the lists of rules, and whether they are about changes.
const KINDS: [(&str, bool); 2] = [("rule", false), ("change", true)];

/// Returns the rules of a list that is written with `[[…]]`, or is not there.
fn rules(list: Option<&Item>) -> Option<impl Iterator<Item = &Table>> {
    let rules = match list {
        None => None,
        Some(Item::ArrayOfTables(rules)) => Some(rules),
        Some(_) => return None,
    };
    Some(rules.into_iter().flatten())
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

    fn kind(&self) -> &'static str {
        if self.change { "change" } else { "rule" }
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
        for (key, value) in what.as_table_like().into_iter().flat_map(TableLike::iter) {
            table.insert(key.to_owned(), words(value)?);
        }
        Some(Self {
            name: text("name")?,
            verdict,
            change,
            patterns: if what.is_table_like() {
                vec![]
            } else {
                words(what)?
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

    /// Writes it into a table of a file. Comments there stay, also those above
    /// what it no longer says.
    fn write(&self, rule: &mut Table) {
        let verdict = { VERDICTS.into_iter() }
            .find_map(|(key, verdict)| (verdict == self.verdict).then_some(key));
        let verdict = verdict.unwrap_or("ask");
        let about = match self.table.is_empty() {
            true => Some(some(&self.patterns).unwrap_or_else(|| Array::new().into())),
            false => Some(braces(&self.table)),
        };
        let mut comments = String::new();
        let others = { VERDICTS.iter() }.filter(|(key, _)| *key != verdict);
        for (key, _) in others {
            comments += &put(rule, key, None);
        }
        for (key, value) in [
            ("name", one(&self.name)),
            (verdict, about),
            ("kinds", some(&self.kinds)),
            ("who", one(&self.who)),
            ("agents", some(&self.agents)),
            ("sandboxes", some(&self.sandboxes)),
            ("until", one(&self.until)),
            ("because", one(&self.because)),
            ("says", one(&self.says)),
            ("remedy", one(&self.remedy)),
            ("code", one(&self.code)),
            ("matches", some(&self.matches)),
            ("misses", some(&self.misses)),
        ] {
            comments += &put(rule, key, value);
        }
        if let Some(mut key) = rule.key_mut(verdict) {
            let decor = key.leaf_decor_mut();
            let above = decor
                .prefix()
                .and_then(RawString::as_str)
                .unwrap_or_default();
            let above = format!("{comments}{above}");
            decor.set_prefix(above);
        }
    }
}

/// Makes a table say something, or no longer, and returns the comments that it
/// leaves alone.
fn put(rule: &mut Table, key: &str, value: Option<Value>) -> String {
    let Some(value) = value else {
        let gone = rule.remove_entry(key);
        let above = gone.as_ref().and_then(|(key, _)| key.leaf_decor().prefix());
        let above = above.and_then(RawString::as_str).unwrap_or_default();
        let comments = above
            .lines()
            .filter(|line| line.trim_start().starts_with('#'));
        return comments.map(|line| format!("{line}\n")).collect();
    };
    match rule.get_mut(key) {
        Some(Item::Value(old)) => {
            // What is written in another way is left so.
            if words(&Item::Value(old.clone())) != words(&Item::Value(value.clone()))
                || old.is_inline_table()
            {
                let decor = old.decor().clone();
                *old = value;
                *old.decor_mut() = decor;
            }
        }
        _ => {
            rule.insert(key, Item::Value(value));
            if let Some(mut name) = rule.key_mut(key) {
                let padding = 1 + KEY_WIDTH.saturating_sub(key.len());
                name.leaf_decor_mut().set_suffix(" ".repeat(padding));
            }
        }
    }
    String::new()
}

/// Keys are padded to the longest that most rules have, so that values line up.
const KEY_WIDTH: usize = "because".len();

/// Returns one or several texts; a switch counts as its word.
fn words(item: &Item) -> Option<Vec<String>> {
    match item.as_value()? {
        Value::String(text) => Some(vec![text.value().clone()]),
        Value::Boolean(on) => Some(vec![on.value().to_string()]),
        Value::Array(list) => { list.iter() }
            .map(|one| one.as_str().map(str::to_owned))
            .collect(),
        _ => None,
    }
}

fn one(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| text.into())
}

fn some(list: &[String]) -> Option<Value> {
    match list {
        [] => None,
        [only] => Some(only.into()),
        list => Some(list.iter().collect::<Array>().into()),
    }
}

fn braces(table: &BTreeMap<String, Vec<String>>) -> Value {
    let entry = |(key, list): (&String, &Vec<String>)| match key.as_str() {
        "ignore_case" => Some((key.clone(), (list.first()? == "true").into())),
        _ => Some((key.clone(), some(list)?)),
    };
    table
        .iter()
        .filter_map(entry)
        .collect::<InlineTable>()
        .into()
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
            edited.starts_with(
                "# Ours.\notherwise = \"ask\"\n\n# Shared work.\n[[rule]]\n\
                 name = \"push\" # why not\n# Bob insisted.\nreject  = "
            ),
            "{edited}"
        );
        assert!(edited.ends_with(rest), "{edited}");
        assert_eq!(forms(&edited).unwrap()[0].1, form("push"));
    }

    #[test]
    fn a_rule_that_goes_takes_nothing_else_along() {
        let edited = edit(FILE, Some(14), None).unwrap();
        assert_eq!(forms(&edited).unwrap().len(), 2);
        assert!(edited.contains("# Shared work.\n[[rule]]"));
        assert!(edited.contains("\n\n# Scratch.\n\n[[change]]"), "{edited}");
        let edited = edit(FILE, Some(17), None).unwrap();
        assert!(FILE.starts_with(&edited), "{edited}");
    }

    #[test]
    fn a_rule_becomes_one_about_changes_at_its_place() {
        let change = RuleForm {
            change: true,
            ..form("push")
        };
        let edited = edit(FILE, Some(5), Some(&change)).unwrap();
        assert!(
            edited.contains("# Shared work.\n[[change]]\nname"),
            "{edited}"
        );
        assert_eq!(forms(&edited).unwrap()[0], (5, change));
    }

    #[test]
    fn line_breaks_stay_what_they_are() {
        let windows = FILE.replace('\n', "\r\n");
        let edited = edit(&windows, Some(5), Some(&form("push"))).unwrap();
        let unix = edit(FILE, Some(5), Some(&form("push"))).unwrap();
        assert_eq!(edited, unix.replace('\n', "\r\n"));
    }

    #[test]
    fn what_cannot_be_done_without_changing_more_is_not_done() {
        let quoted = "[[rule]]\nask = '''\n[[rule]]\n'''\n";
        assert_eq!(edit(quoted, Some(1), None).as_deref(), Some(""));
        assert_eq!(edit(quoted, Some(3), None), None);
        assert_eq!(
            edit("rule = [{ ask = \"ls\" }]\n", None, Some(&form("x"))),
            None
        );
        assert_eq!(edit(FILE, Some(6), Some(&form("x"))), None);
        assert_eq!(edit("[[rule", None, Some(&form("x"))), None);
    }
}
