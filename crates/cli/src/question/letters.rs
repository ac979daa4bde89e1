//! The letters below a question, and what each of them leads to.

use std::time::{Duration, Instant};

use weighlock_engine::{ApprovalView, DecisionKind, Explanation, Risk};
use weighlock_server::{DecisionRequest, ExplainRequest};

use super::{Put, always, card, pager};
use crate::client::{Client, Failure};
use crate::given;
use crate::judged;
use crate::keys::{Key, Keys};
use crate::paths::Paths;
use crate::term::{prompt, say};
use crate::text::one_line;

/// Nobody has read what is repeated to them sooner.
const READ_WITHIN: Duration = Duration::from_secs(1);

/// What a person says.
pub(super) enum Answer {
    Decide(DecisionRequest),
    Next,
    Quit,
}

/// Shows a question and waits for the answer.
pub(super) async fn ask(
    keys: &mut Keys<'_>,
    asked: &ApprovalView,
    put: Put,
    card: bool,
    paths: &Paths,
) -> Answer {
    if card && !pager::page(keys, &card::lines(asked, put, width())).await {
        return Answer::Quit;
    }
    if put.reject
        && let Some(decision) = reject(keys, asked).await
    {
        return Answer::Decide(decision);
    }
    loop {
        let decision = match letter(keys, asked, put).await {
            b'o' => once(keys, asked).await,
            b'w' => always(keys, asked).await,
            b'e' => edit(keys, asked, paths).await,
            b'r' => reject(keys, asked).await,
            b'n' => return Answer::Next,
            b'q' => return Answer::Quit,
            _ => explain(keys, asked).await,
        };
        if let Some(decision) = decision {
            return Answer::Decide(decision);
        }
    }
}

/// Shows the letters, and waits for one of them.
async fn letter(keys: &mut Keys<'_>, asked: &ApprovalView, put: Put) -> u8 {
    let always = asked
        .explanation
        .as_deref()
        .is_some_and(always::is_possible);
    let once = match (asked.risk, asked.count) {
        (Risk::High, _) => "run anyway…".to_owned(),
        (_, 0 | 1) => "run once".to_owned(),
        (_, count) => format!("run once ({count})"),
    };
    let next = if put.place.is_some() {
        "[n] next   "
    } else {
        ""
    };
    say!("");
    say!(
        "  [o] {once}   {}[e] edit   [r] reject…",
        if always { "[w] always…   " } else { "" }
    );
    say!("  [x] explain   {next}[q] quit");
    prompt("> ");
    keys.forget();
    let letter = loop {
        match keys.key().await {
            Key::Char(b'w') if !always => {}
            Key::Char(b'n') if next.is_empty() => {}
            Key::Char(key) if b"owernxq".contains(&key) => break key,
            Key::Quit => break b'q',
            // Enter alone, too, does nothing.
            _ => {}
        }
    };
    say!("{}", char::from(letter));
    letter
}

async fn once(keys: &mut Keys<'_>, asked: &ApprovalView) -> Option<DecisionRequest> {
    let yes = confirmed(keys, asked, "run it once?").await;
    yes.then(|| decision(asked, DecisionKind::ApproveOnce))
}

async fn always(keys: &mut Keys<'_>, asked: &ApprovalView) -> Option<DecisionRequest> {
    let rules = always::compose(keys, asked).await?;
    let what = match rules.len() {
        1 => "save this rule and run it?".to_owned(),
        count => format!("save {count} rules and run it?"),
    };
    let yes = confirmed(keys, asked, &what).await;
    yes.then(|| DecisionRequest {
        rules,
        ..decision(asked, DecisionKind::ApproveAlways)
    })
}

async fn reject(keys: &mut Keys<'_>, asked: &ApprovalView) -> Option<DecisionRequest> {
    let question = "  why? (Enter rejects, Esc goes back) ";
    let why = keys.line(question, "").await?;
    Some(DecisionRequest {
        reason: Some(why).filter(|why| !why.is_empty()),
        ..decision(asked, DecisionKind::Reject)
    })
}

/// Takes another text, and shows what the policy makes of it.
async fn edit(keys: &mut Keys<'_>, asked: &ApprovalView, paths: &Paths) -> Option<DecisionRequest> {
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
    let yes = seen && confirmed(keys, asked, "run the edited command?").await;
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

async fn explain(keys: &mut Keys<'_>, asked: &ApprovalView) -> Option<DecisionRequest> {
    if let Some(explanation) = &asked.explanation {
        let page = judged::page(explanation, width());
        let lines: Vec<String> = page.lines().map(str::to_owned).collect();
        pager::page(keys, &lines).await;
    }
    None
}

/// Asks once more. Of high risk, everything that matters is repeated first,
/// and an Enter that comes at once was meant for something else.
async fn confirmed(keys: &mut Keys<'_>, asked: &ApprovalView, what: &str) -> bool {
    let high = asked.risk == Risk::High;
    if high {
        let mut lines = vec![format!("  High risk, in {}:", one_line(&asked.sandbox, 30))];
        lines.extend(card::command(&asked.command));
        lines.extend(judged::why("  Why  ", &asked.reasons, width()));
        if !pager::page(keys, &lines).await {
            return false;
        }
    }
    prompt(&format!("  {what} Enter = yes, any other key = no "));
    keys.forget();
    let shown = Instant::now();
    let yes = loop {
        match keys.key().await {
            Key::Enter if high && shown.elapsed() < READ_WITHIN => {}
            key => break key == Key::Enter,
        }
    };
    say!("{}", if yes { "yes" } else { "no" });
    yes
}

/// An answer to exactly what was shown.
pub(crate) fn decision(asked: &ApprovalView, kind: DecisionKind) -> DecisionRequest {
    DecisionRequest {
        kind,
        fingerprint: asked.fingerprint.clone(),
        reason: None,
        command: None,
        rules: vec![],
    }
}

fn width() -> usize {
    judged::width(std::io::stderr())
}
