//! The letters below a question, and what each of them leads to.

use std::time::{Duration, Instant};

use weighlock_api::{
    ApprovalView, DecisionKind, DecisionRequest, ExplainRequest, Explanation, Risk,
};

use super::pager::{self, ReadPosition};
use super::{Put, ShownQuestion, always, card, first, is_stale};
use crate::client::{Client, Failure};
use crate::effect::{ChangesUrls, unified};
use crate::given;
use crate::judged;
use crate::keys::{Key, Keys};
use crate::paths::Paths;
use crate::term::{prompt, say};
use crate::text::{one_line, which_were};

/// Nobody has read what is repeated to them sooner.
const READ_WITHIN: Duration = Duration::from_secs(1);

/// What a person says.
pub(super) enum PersonReply {
    Decide(DecisionRequest),
    /// They want to see what it does first, or once more.
    Try,
    Next,
    /// They leave it to be answered later.
    Quit,
    /// Ctrl C, or nobody is there any more.
    Interrupt,
}

/// Shows a question and waits for the answer.
pub(super) async fn ask(
    keys: &mut Keys<'_>,
    asked: &ShownQuestion,
    put: Put,
    card: bool,
    paths: &Paths,
) -> PersonReply {
    if card {
        match pager::page(keys, &card::lines(asked, put, width())).await {
            ReadPosition::Whole => {}
            ReadPosition::Left => return PersonReply::Quit,
            ReadPosition::Interrupted => return PersonReply::Interrupt,
        }
    }
    if put.reject
        && let Some(decision) = reject(keys, asked).await
    {
        return PersonReply::Decide(decision);
    }
    loop {
        let Some(letter) = letter(keys, asked, put).await else {
            return PersonReply::Interrupt;
        };
        let decision = match letter {
            b'o' => once(keys, asked).await,
            b'w' => always(keys, asked).await,
            b'e' => edit(keys, asked, paths).await,
            b'r' => reject(keys, asked).await,
            b'd' => diff(keys, asked, paths).await,
            b't' => return PersonReply::Try,
            b'n' => return PersonReply::Next,
            b'q' => return PersonReply::Quit,
            _ => explain(keys, asked).await,
        };
        if let Some(decision) = decision {
            return PersonReply::Decide(decision);
        }
    }
}

/// Shows the letters, and waits for one of them; none after Ctrl C.
async fn letter(keys: &mut Keys<'_>, asked: &ShownQuestion, put: Put) -> Option<u8> {
    let rows = offered(asked, put);
    say!("");
    for (at, row) in rows.iter().enumerate() {
        let words = { row.iter() }.map(|(key, word)| format!("[{}] {word}", char::from(*key)));
        let mut words: Vec<String> = words.collect();
        words.extend((at == 1 && put.own).then(|| "[^C] withdraw".to_owned()));
        say!("  {}", words.join("   "));
    }
    prompt("> ");
    keys.forget();
    let is_offered = |key: u8| rows.iter().flatten().any(|(offered, _)| *offered == key);
    let letter = loop {
        match keys.key().await {
            Key::Char(key) if is_offered(key) => break Some(key),
            Key::Quit => break None,
            // Enter alone, too, does nothing.
            _ => {}
        }
    };
    say!(
        "{}",
        letter.map_or("^C".into(), |letter| char::from(letter).to_string())
    );
    letter
}

/// The letters there are for a question, in two rows: what decides it, and what
/// does not.
fn offered(asked: &ShownQuestion, put: Put) -> [Vec<(u8, String)>; 2] {
    let always = asked.rules.as_ref().is_some_and(|rules| rules.offered);
    let effect = asked.effect.as_ref();
    let stale = effect.is_some_and(is_stale);
    let possible = !stale && first(asked).is_empty();
    let yes = match (effect, asked.risk, asked.count) {
        (Some(effect), _, _) if effect.changes.count() == 0 => "approve".to_owned(),
        (Some(_), Risk::High, _) => "apply anyway…".to_owned(),
        (Some(_), _, _) => "apply these changes".to_owned(),
        (None, Risk::High, _) => "run anyway…".to_owned(),
        (None, _, 0 | 1) => "run once".to_owned(),
        (None, _, count) => format!("run once ({count})"),
    };
    let again = match effect {
        Some(_) => "try again",
        None => "try in a copy",
    };
    let leave = match put.own {
        true => "decide later",
        false => "quit",
    };
    let decide = [
        (possible, b'o', yes.as_str()),
        (possible && always, b'w', "always…"),
        (true, b'e', "edit"),
        (true, b'r', "reject…"),
    ];
    let look = [
        (effect.is_some(), b'd', "diff"),
        (stale || effect.is_none(), b't', again),
        (true, b'x', "explain"),
        (put.place.is_some(), b'n', "next"),
        (true, b'q', leave),
    ];
    let there = |row: &[(bool, u8, &str)]| {
        let row = row.iter().filter(|(possible, ..)| *possible);
        row.map(|(_, key, word)| (*key, (*word).to_owned()))
            .collect()
    };
    [there(&decide), there(&look)]
}

async fn once(keys: &mut Keys<'_>, asked: &ShownQuestion) -> Option<DecisionRequest> {
    let (what, kind) = match &asked.effect {
        Some(effect) if effect.changes.count() == 0 => ("approve it?", DecisionKind::ApplyEffect),
        Some(_) => ("apply these changes?", DecisionKind::ApplyEffect),
        None => ("run it once?", DecisionKind::ApproveOnce),
    };
    let yes = sure(keys, asked, what).await;
    yes.then(|| decision(asked, kind))
}

async fn always(keys: &mut Keys<'_>, asked: &ShownQuestion) -> Option<DecisionRequest> {
    let rules = always::compose(keys, asked).await?;
    let then = match asked.effect {
        Some(_) => "apply these changes",
        None => "run it",
    };
    let what = match rules.len() {
        1 => format!("save this rule and {then}?"),
        count => format!("save {count} rules and {then}?"),
    };
    let yes = sure(keys, asked, &what).await;
    yes.then(|| DecisionRequest {
        rules,
        ..decision(asked, DecisionKind::ApproveAlways)
    })
}

async fn reject(keys: &mut Keys<'_>, asked: &ShownQuestion) -> Option<DecisionRequest> {
    if let Some(effect) = &asked.effect
        && !effect.needed_by.is_empty()
    {
        let with = which_were(&effect.needed_by);
        say!("  rejecting also discards {with} built on it");
    }
    let question = "  why? (Enter rejects, Esc goes back) ";
    let why = keys.line(question, "").await?;
    Some(DecisionRequest {
        reason: Some(why).filter(|why| !why.is_empty()),
        ..decision(asked, DecisionKind::Reject)
    })
}

/// Takes another text, and shows what the policy makes of it.
async fn edit(
    keys: &mut Keys<'_>,
    asked: &ShownQuestion,
    paths: &Paths,
) -> Option<DecisionRequest> {
    let text = keys.line("  $ ", &asked.command).await?;
    if text.is_empty() || text == asked.command {
        say!("  It is the same as before.");
        return None;
    }
    let judged = judge(asked, &text, paths).await;
    let judged = { judged }.map_err(|failure| say!("{}", failure.to_string().trim_end()));
    let judged = judged.ok()?;
    let mut lines = vec![String::new()];
    lines.extend(card::command(&text));
    let (mark, label) = (judged::mark(judged.verdict), judged::label(judged.verdict));
    lines.push(format!("  {mark} {label}"));
    lines.extend(judged::why("Why    ", &judged.reasons, width()));
    let seen = pager::page(keys, &lines).await;
    let yes = seen == ReadPosition::Whole && sure(keys, asked, "run the edited command?").await;
    yes.then(|| DecisionRequest {
        command: Some(text),
        ..decision(asked, DecisionKind::ApproveEdited)
    })
}

async fn judge(asked: &ApprovalView, text: &str, paths: &Paths) -> Result<Explanation, Failure> {
    let request = ExplainRequest {
        command: text.to_owned(),
        agent: asked.agent.clone(),
        sandbox: Some(asked.sandbox_id.clone()),
        cwd: Some(asked.cwd.clone()),
        shell: Some(given::shell(&asked.shell)),
        ..ExplainRequest::default()
    };
    let mut client = Client::open(paths).await?;
    client.post("/policies/explain", &request).await
}

async fn explain(keys: &mut Keys<'_>, asked: &ShownQuestion) -> Option<DecisionRequest> {
    if let Some(explanation) = &asked.explanation {
        let page = judged::page(explanation, width());
        let lines: Vec<String> = page.lines().map(str::to_owned).collect();
        pager::page(keys, &lines).await;
    }
    None
}

/// Shows what would be applied, line by line.
async fn diff(
    keys: &mut Keys<'_>,
    asked: &ShownQuestion,
    paths: &Paths,
) -> Option<DecisionRequest> {
    let run = asked.command_ids.first()?;
    let place = ChangesUrls::of_run(run);
    let lines = async {
        let mut client = Client::open(paths).await?;
        let mut lines = vec![];
        for change in place.fetch(&mut client, usize::MAX).await?.changes {
            lines.extend(unified(&place.diff(&mut client, &change, false).await?));
        }
        Ok::<_, Failure>(lines)
    };
    match lines.await {
        Ok(lines) => {
            pager::page_styled(keys, &lines).await;
        }
        Err(failure) => say!("{}", failure.to_string().trim_end()),
    }
    None
}

/// Asks once more. Of high risk, everything that matters is repeated first,
/// and an Enter that comes at once was meant for something else.
async fn sure(keys: &mut Keys<'_>, asked: &ShownQuestion, what: &str) -> bool {
    let high = asked.risk == Risk::High;
    if high {
        let mut lines = vec![format!("  High risk, in {}:", one_line(&asked.sandbox, 30))];
        lines.extend(card::command(&asked.command));
        let effect = card::effect(asked).into_iter();
        lines.extend(effect.map(|line| format!("  {line}")));
        lines.extend(judged::why("  Why  ", &asked.reasons, width()));
        if pager::page(keys, &lines).await != ReadPosition::Whole {
            return false;
        }
    }
    confirmed(keys, what, if high { READ_WITHIN } else { Duration::ZERO }).await
}

/// Asks for an Enter that does not come sooner than what is asked can be read.
pub(crate) async fn confirmed(keys: &mut Keys<'_>, what: &str, read_within: Duration) -> bool {
    prompt(&format!("  {what} Enter = yes, any other key = no "));
    keys.forget();
    let shown = Instant::now();
    loop {
        match keys.key().await {
            Key::Enter if shown.elapsed() < read_within => {}
            key => break said(key == Key::Enter),
        }
    }
}

/// Asks where nothing is run and nothing is lost by a yes: `y` is one, too.
pub(crate) async fn agreed(keys: &mut Keys<'_>, what: &str) -> bool {
    prompt(&format!("  {what} Enter or y = yes, any other key = no "));
    keys.forget();
    said(matches!(
        keys.key().await,
        Key::Enter | Key::Char(b'y' | b'Y')
    ))
}

fn said(yes: bool) -> bool {
    say!("{}", if yes { "yes" } else { "no" });
    yes
}

/// An answer to exactly what was shown.
pub(crate) fn decision(asked: &ApprovalView, kind: DecisionKind) -> DecisionRequest {
    DecisionRequest {
        kind,
        fingerprint: asked.fingerprint.clone(),
        reason: None,
        through: None,
        command: None,
        rules: vec![],
        blocks: vec![],
    }
}

fn width() -> usize {
    judged::width(std::io::stderr())
}
