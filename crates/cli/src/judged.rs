//! A judgement as people read it: the verdict, the parts, the rules, the
//! reasons.

use weighlock_api::{Explanation, PartView, ReasonView, RuleView};

use weighlock_engine::{DEFAULT_SANDBOX, Link, Verdict};

use crate::text::{aligned, command_line, one_line, quote, safe};

/// A verdict in the words that people see everywhere.
pub(crate) fn label(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Auto => "Allowed",
        Verdict::Ask => "Needs approval",
        Verdict::Reject => "Blocked",
    }
}

/// The sign that stands before it.
pub(crate) fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Auto => "✓",
        Verdict::Ask => "◔",
        Verdict::Reject => "⛔",
    }
}

/// A verdict in the word that programs see.
pub(crate) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Auto => "auto",
        Verdict::Ask => "ask",
        Verdict::Reject => "reject",
    }
}

/// How wide pages are where nobody looks: fits the widest tables.
const PLAIN_WIDTH: usize = 100;

/// Less is not readable.
const MIN_WIDTH: usize = 72;

/// How wide a page is on this terminal, if it is one.
pub(crate) fn width(terminal: impl std::os::fd::AsFd) -> usize {
    match rustix::termios::tcgetwinsize(terminal) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col).max(MIN_WIDTH),
        _ => PLAIN_WIDTH,
    }
}

/// Returns the whole page.
pub(crate) fn page(judged: &Explanation, width: usize) -> String {
    let mut page = vec![header(judged, width), String::new()];
    page.extend(parts(judged, width));
    page.push(String::new());
    page.extend(why("Why:  ", &judged.reasons, width));
    page.extend(tried(judged, width));
    page.extend(next_step(judged));
    let mut text = page.join("\n");
    text.push('\n');
    text
}

fn header(judged: &Explanation, width: usize) -> String {
    let verdict = judged.verdict;
    let who = { judged.agent.iter() }.map(|agent| format!("as {} ", one_line(agent, 30)));
    let right = format!(
        "{}in {} · nothing was run",
        who.collect::<String>(),
        one_line(&judged.sandbox, 30)
    );
    aligned(
        &format!("{} {}", mark(verdict), label(verdict)),
        &right,
        width,
    )
}

/// One row for each part, with what stands between and below them.
pub(crate) fn parts(judged: &Explanation, width: usize) -> Vec<String> {
    let parts = in_order(&judged.parts);
    let rules: Vec<String> = parts.iter().map(|part| rule_of(part, judged)).collect();
    let columns = Columns::fit(&parts, &rules, width);
    let mut lines = vec![];
    let mut before = None;
    for (part, rule) in parts.iter().zip(&rules) {
        let indent = "  ".repeat(1 + part.depth.min(8));
        if let Some(link) = link(part, before.replace(*part)) {
            lines.push(format!("{indent}{link}"));
        }
        lines.extend(columns.row(part, rule, &indent));
        lines.extend(facts(part, &indent, width));
    }
    lines
}

/// What contains others comes before them, as in the text. What is only
/// possible is shown where it decided something.
fn in_order(parts: &[PartView]) -> Vec<&PartView> {
    let sure = |part: &PartView| -> Option<&PartView> {
        let mut same = parts.iter().filter(|sure| !sure.possible);
        same.find(|sure| sure.span == part.span)
    };
    let matters = |part: &&PartView| {
        let milder = || sure(part).is_none_or(|sure| sure.verdict < part.verdict);
        !part.possible || part.verdict != Verdict::Auto && milder()
    };
    let mut parts: Vec<&PartView> = parts.iter().filter(matters).collect();
    parts.sort_by_key(|part| (part.span.0, std::cmp::Reverse(part.span.1)));
    parts
}

/// How a part follows the one before, in words.
fn link(part: &PartView, before: Option<&PartView>) -> Option<&'static str> {
    let deeper = before.is_some_and(|before| before.depth < part.depth);
    match part.link {
        _ if part.possible => Some("possibly"),
        Link::With => None,
        Link::Inside => Some("inside"),
        Link::Then if deeper => Some("inside"),
        _ if before.is_none() => None,
        Link::Then => Some("then"),
        Link::And => Some("then, if it succeeded"),
        Link::Or => Some("then, if it failed"),
        Link::Pipe => Some("output goes into"),
    }
}

fn rule_of(part: &PartView, judged: &Explanation) -> String {
    match part.rule.and_then(|at| Some((at, judged.rules.get(at)?))) {
        Some((at, rule)) => format!("rule {}  {}", at + 1, one_line(&rule.name, 40)),
        None if part.possible && part.verdict == Verdict::Auto => String::new(),
        None => "default".into(),
    }
}

/// How wide the columns of the parts are.
struct Columns {
    text: usize,
    does: usize,
    /// The rule stands at the end of the row, not below it.
    rule_beside: bool,
}

/// `Needs approval`, the longest label.
const LABEL: usize = 14;

impl Columns {
    fn fit(parts: &[&PartView], rules: &[String], width: usize) -> Self {
        let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
        let text = longest(&mut parts.iter().map(|part| {
            let indent = 2 * part.depth.min(8);
            indent + count(&command_line(part.text.trim(), usize::MAX))
        }));
        let text = text.min(width / 3);
        let does = longest(&mut parts.iter().map(|part| count(&safe(&part.does))));
        let rule = longest(&mut rules.iter().map(|rule| count(rule)));
        // The margin, and two spaces between columns.
        let left = width.saturating_sub(2 + text + 2 + 2 + LABEL);
        let beside = left.saturating_sub(rule + 2);
        // Below that, a sentence is more important than a name.
        let rule_beside = beside >= does.min(28);
        Self {
            text,
            does: does.min(if rule_beside { beside } else { left }).max(12),
            rule_beside,
        }
    }

    fn row(&self, part: &PartView, rule: &str, indent: &str) -> Vec<String> {
        let text_width = (self.text + 2).saturating_sub(indent.len()).max(8);
        let text = command_line(part.text.trim(), text_width);
        let mut does = wrap(&safe(&part.does), self.does).into_iter();
        let row = format!(
            "{indent}{text:<text_width$}  {:<width$}  {:<LABEL$}  {}",
            does.next().unwrap_or_default(),
            label(part.verdict),
            if self.rule_beside { rule } else { "" },
            width = self.does,
        );
        let mut lines = vec![row.trim_end().to_owned()];
        let below = " ".repeat(self.text + 4);
        lines.extend(does.map(|more| format!("{below}{more}")));
        if !self.rule_beside && !rule.is_empty() {
            lines.push(format!("{indent}   {rule}"));
        }
        lines
    }
}

/// What is known of a part beyond its sentence.
fn facts(part: &PartView, indent: &str, width: usize) -> Vec<String> {
    let mut facts = vec![];
    for option in part
        .options
        .iter()
        .filter(|option| !option.means.is_empty())
    {
        facts.push(format!("{} {}", safe(&option.name), safe(&option.means)));
    }
    for (what, names) in [
        ("reads", &part.reads),
        ("writes", &part.writes),
        ("deletes", &part.deletes),
        ("runs", &part.runs),
        ("network", &part.hosts),
    ] {
        let shown: Vec<String> = names.iter().map(|name| one_line(name, 60)).collect();
        if !shown.is_empty() {
            facts.push(format!("{what}: {}", shown.join(", ")));
        }
    }
    let indent = format!("{indent}   ");
    let mut lines = flow(&facts, "   ", &indent, width);
    if let Some(why) = &part.unknown {
        let why = format!("unknown: {}", safe(why));
        let why = wrap(&why, width - indent.len());
        lines.extend(why.into_iter().map(|line| format!("{indent}{line}")));
    }
    lines
}

/// One line for each reason, the first behind a heading, with what to do
/// instead.
pub(crate) fn why(head: &str, reasons: &[ReasonView], width: usize) -> Vec<String> {
    let mut lines = vec![];
    let indent = " ".repeat(head.len());
    for (at, reason) in reasons.iter().enumerate() {
        let head = if at == 0 { head } else { &indent };
        let from = source(reason);
        let text = wrap(&safe(&reason.text), width - indent.len());
        match text.as_slice() {
            [line] if count(line) + count(&from) + indent.len() + 2 <= width => {
                lines.push(aligned(&format!("{head}{line}"), &from, width));
            }
            text => {
                let heads = std::iter::once(head).chain(std::iter::repeat(indent.as_str()));
                lines.extend(
                    { heads }
                        .zip(text)
                        .map(|(head, line)| format!("{head}{line}")),
                );
                lines.push(format!("{indent}{from}"));
            }
        }
        if !reason.remedy.is_empty() {
            let remedy = wrap(&safe(&reason.remedy), width - indent.len());
            lines.extend(remedy.into_iter().map(|line| format!("{indent}{line}")));
        }
    }
    lines
}

/// Who says so.
pub(crate) fn source(reason: &ReasonView) -> String {
    let layer = one_line(&reason.layer, 30);
    match reason.rule.as_str() {
        "built-in check" => "built-in check".into(),
        "default" => format!("default ({layer})"),
        rule => format!("rule {} ({layer})", one_line(rule, 40)),
    }
}

/// So many rules are listed at the most; of more, those that matched.
const MAX_RULES: usize = 24;

fn tried(judged: &Explanation, width: usize) -> Vec<String> {
    let decides = decides(judged);
    let few = judged.rules.len() <= MAX_RULES;
    let mut shown = vec![];
    for (at, rule) in judged.rules.iter().enumerate() {
        if few || rule.matched || decides == Some(at) {
            let arrow = if decides == Some(at) {
                "  ← decides"
            } else {
                ""
            };
            shown.push(format!("{} {}{arrow}", at + 1, one_line(&rule.name, 40)));
        }
    }
    let left_out = judged.rules.len() - shown.len();
    if left_out > 0 {
        shown.push(format!("{left_out} that do not match"));
    }
    if decides.is_none() {
        shown.push(format!("otherwise {}  ← decides", word(judged.verdict)));
    }
    let head = "Rules tried: ";
    let mut lines = flow(&shown, "  ·  ", &" ".repeat(head.len()), width);
    if let Some(first) = lines.first_mut() {
        first.replace_range(..head.len(), head);
    }
    lines
}

/// The rule that decided, if it was one.
fn decides(judged: &Explanation) -> Option<usize> {
    let named = |rule: &RuleView, reason: &ReasonView| {
        rule.name == reason.rule && rule.layer == reason.layer && rule.verdict == judged.verdict
    };
    match judged.reasons.first() {
        Some(reason) => judged.rules.iter().position(|rule| named(rule, reason)),
        None => {
            { judged.rules.iter() }.rposition(|rule| rule.matched && rule.verdict == Verdict::Auto)
        }
    }
}

fn next_step(judged: &Explanation) -> Vec<String> {
    let command = command_line(&quote(std::slice::from_ref(&judged.command)), usize::MAX);
    let tail = if judged.read_only {
        "   (read-only, no network)"
    } else {
        ""
    };
    let there = match judged.sandbox == DEFAULT_SANDBOX {
        true => String::new(),
        false => format!("-s {} ", safe(&judged.sandbox)),
    };
    vec![match judged.verdict {
        Verdict::Auto => format!("Try it: weighlock run {there}-- {command}{tail}"),
        Verdict::Ask => format!("Try it: weighlock run {there}-- {command}   (asks you)"),
        Verdict::Reject => "Use another command: no approval is possible for this one.".into(),
    }]
}

fn count(text: &str) -> usize {
    text.chars().count()
}

/// Puts items one after the other, and on a new line where they do not fit.
fn flow(items: &[String], between: &str, indent: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for item in items {
        match lines.last_mut() {
            Some(line) if count(line) + count(between) + count(item) <= width => {
                line.push_str(between);
                line.push_str(item);
            }
            _ => lines.push(format!("{indent}{item}")),
        }
    }
    lines
}

/// Breaks a text between words; a word that is too long stays whole.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    flow(&words, " ", "", width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_between_words() {
        assert_eq!(wrap("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrap("abcdef g", 3), ["abcdef", "g"]);
        assert_eq!(wrap("", 3), Vec::<String>::new());
    }
}
