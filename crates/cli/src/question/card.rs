//! A question as a person reads it at a terminal.

use weighlock_api::{ApprovalView, Explanation, Risk, Situation, Tried};

use super::{MAX_FILES, Put, ShownQuestion, is_stale};
use crate::text::{aligned, one_line, prose_line, safe, safe_command};
use crate::when::{counter, seconds_since};
use crate::{effect, judged};

/// Lines about parts that a card has at the most; a terminal shows about twice
/// as many.
const MAX_PARTS: usize = 12;

/// Returns the whole card.
pub(crate) fn lines(asked: &ShownQuestion, put: Put, width: usize) -> Vec<String> {
    let id = one_line(&asked.short_id, 20);
    if let Some(effect) = asked.effect.as_ref().filter(|_| put.own) {
        // Whoever has asked for it knows the rest.
        let mut lines = headed(&safe(&effect.header), &id, width);
        let files = files(asked, effect, put).into_iter();
        lines.extend(files.map(|file| format!("  {file}")));
        lines.extend(judged::why("Why    ", &asked.reasons, width));
        return lines;
    }
    let mut lines = headed(&header(asked, put), &id, width);
    lines.push(safe(&asked.summary));
    lines.extend(claim(asked, width));
    lines.push(conditions(asked, put));
    lines.extend(company(asked));
    if let Some(explanation) = &asked.explanation {
        let warnings = explanation.warnings.iter();
        lines.extend(warnings.map(|warning| format!("warning: {}", safe(warning))));
    }
    lines.push(String::new());
    lines.extend(
        asked
            .environment
            .iter()
            .map(|set| format!("  {}", safe_command(set))),
    );
    lines.extend(command(&asked.command));
    lines.extend(input(asked));
    lines.push(String::new());
    lines.extend(judged::why("Why    ", &asked.reasons, width));
    match (&asked.effect, &asked.explanation) {
        (Some(effect), _) => lines.extend(tried(asked, effect, put)),
        (None, Some(explanation)) => lines.extend(parts(explanation, width)),
        (None, None) => {}
    }
    lines
}

/// Returns the lines that show the requester what the command did on a copy.
pub(crate) fn effect(asked: &ShownQuestion) -> Vec<String> {
    let Some(effect) = &asked.effect else {
        return vec![];
    };
    let mut lines = vec![safe(&effect.header)];
    lines.extend(files(asked, effect, Put::default()));
    lines
}

/// What it did on a copy.
fn tried(asked: &ShownQuestion, effect: &Tried, put: Put) -> Vec<String> {
    let mut said = vec![match (is_stale(effect), effect.exit_code) {
        (true, _) => safe(&effect.header),
        (false, Some(0)) => "✓ tried in a copy, exit 0".into(),
        (false, Some(code)) => format!("✗ tried in a copy, exit {code}"),
        (false, None) => "✗ tried in a copy, and it did not end by itself".into(),
    }];
    said.extend({ effect.changes.network.iter() }.map(|hosts| {
        let hosts = one_line(&hosts.join(", "), 60);
        let hosts = Some(hosts).filter(|hosts| !hosts.is_empty());
        let hosts = hosts.map_or_else(String::new, |hosts| format!(" ({hosts})"));
        format!("it had network access{hosts}; what it did there is not shown")
    }));
    said.extend(files(asked, effect, put));
    let margins = std::iter::once("Effect ").chain(std::iter::repeat("       "));
    { margins.zip(said) }
        .map(|(margin, line)| format!("{margin}{line}"))
        .collect()
}

/// What would be applied, and what hangs on it.
fn files(asked: &ShownQuestion, effect: &Tried, put: Put) -> Vec<String> {
    let mut lines = match &asked.changes {
        Some(changes) => effect::lines(changes, &asked.links, MAX_FILES),
        None => { effect.changes.paths.iter() }
            .map(|path| one_line(path, usize::MAX))
            .collect(),
    };
    if lines.is_empty() {
        lines.push("changes nothing".into());
    }
    lines.extend(built_on(asked, &effect.after, put));
    lines
}

/// Says what has to be decided before, and how.
fn built_on(asked: &ApprovalView, first: &[String], put: Put) -> Vec<String> {
    let comes = match first {
        [] => return vec![],
        [_] => "comes",
        _ => "come",
    };
    let mut lines = vec![format!(
        "built on {}, which {comes} first",
        first.join(", ")
    )];
    // Whoever goes through all of them has just passed by it.
    if put.place.is_none() {
        let session = asked.session.as_deref().unwrap_or_default();
        lines.push(format!(
            "weighlock approve {} asks about that",
            first.join(" ")
        ));
        lines.push(format!(
            "weighlock draft commit {session} applies all of it"
        ));
    }
    lines
}

/// What it is given to read: to a shell that is a command, too.
fn input(asked: &ApprovalView) -> Vec<String> {
    let Some(text) = &asked.input else {
        return vec![];
    };
    let mut lines = vec!["  reads".to_owned()];
    lines.extend(safe_command(text).lines().map(|line| format!("  < {line}")));
    if asked.more_input > 0 {
        lines.push(format!("  < … and {} bytes more", asked.more_input));
    }
    lines
}

/// What it does part by part, as long as that does not hide the rest.
fn parts(asked: &Explanation, width: usize) -> Vec<String> {
    let lines = judged::parts(asked, width);
    match lines.len() {
        0..=MAX_PARTS => lines,
        _ => vec![format!(
            "       {} parts: [x] explains each",
            asked.parts.len()
        )],
    }
}

/// The first line, with the id behind it where there is room.
fn headed(head: &str, id: &str, width: usize) -> Vec<String> {
    match head.chars().count() + id.len() + 2 <= width {
        true => vec![aligned(head, id, width)],
        false => judged::wrap(head, width),
    }
}

/// Who asks for what, and how long already.
fn header(asked: &ApprovalView, put: Put) -> String {
    let mut said = vec![match put.place {
        Some((at, of)) => format!("{at} of {of}"),
        None => "◔ Needs approval".into(),
    }];
    if asked.risk == Risk::High {
        said.push("High risk".into());
    }
    said.push(format!(
        "{} in {}",
        requester(asked),
        one_line(&asked.sandbox, 30)
    ));
    let waits = counter(seconds_since(&asked.created_at));
    let left = counter(asked.expires_in_seconds);
    said.push(format!("waiting {waits}, expires in {left}"));
    said.join(" · ")
}

/// Who asks, and where it is another, under whose profile.
pub(crate) fn requester(asked: &ApprovalView) -> String {
    let by = one_line(&asked.requested_by, 30);
    match &asked.agent {
        Some(agent) if *agent != asked.requested_by => {
            format!("{by} as {}", one_line(agent, 30))
        }
        _ => by,
    }
}

/// What the requester says: a claim, and so at most two lines of it.
fn claim(asked: &ApprovalView, width: usize) -> Option<String> {
    let claim = asked.claim.as_deref()?;
    let claim = prose_line(claim, width * 2 - 40);
    Some(format!(
        "{} says “{claim}”",
        one_line(&asked.requested_by, 30)
    ))
}

/// Where it would run and with what, beside its text.
fn conditions(asked: &ApprovalView, put: Put) -> String {
    let mut said = vec![
        safe(&asked.cwd),
        format!("network {}", safe(&asked.network)),
    ];
    if asked.files != "write" {
        said.push(format!("files {}", safe(&asked.files)));
    }
    if asked.input_follows {
        said.push("can be given any input later".into());
    }
    let who = one_line(&asked.requested_by, 30);
    said.extend(match asked.situation {
        _ if put.own => None,
        Situation::Waiting => Some(format!("{who} is waiting")),
        Situation::WentOn => Some(format!("{who} went on, it will get the answer later")),
        Situation::Over => None,
    });
    said.join(" · ")
}

/// What else hangs on the answer, and who else has to give it.
fn company(asked: &ApprovalView) -> Vec<String> {
    let mut lines = vec![];
    if asked.count > 1 {
        lines.push(format!(
            "×{}: the decision applies to all of them",
            asked.count
        ));
    }
    if asked.needed > 1 {
        let yes = asked.answers.iter().filter(|answer| answer.approved);
        let yes: Vec<String> = yes.map(|answer| one_line(&answer.by, 30)).collect();
        let so_far = match yes.as_slice() {
            [] => "nobody has yet".into(),
            names => format!("{} did", names.join(", ")),
        };
        lines.push(format!(
            "{} people have to approve it; {so_far}",
            asked.needed
        ));
    }
    lines
}

/// The text that would run, whole.
pub(super) fn command(text: &str) -> Vec<String> {
    let text = safe_command(text);
    let signs = std::iter::once("$").chain(std::iter::repeat(" "));
    { signs.zip(text.split('\n')) }
        .map(|(sign, line)| format!("  {sign} {line}"))
        .collect()
}
