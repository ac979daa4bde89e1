//! The question whether a command may run, put to whoever sits at the terminal.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use weighlock_engine::{Explanation, GrantView, PartKind, PartView, Verdict};
use weighlock_server::{Approval, CommandView, NewCommand, NewGrant, ProblemDocument};

use super::attend::Signals;
use super::keys::{Key, Keys};
use super::show::{Show, say};
use crate::client::{Client, Failure};
use crate::judged;
use crate::ourselves;
use crate::paths::Paths;
use crate::text::{one_line, print_json, safe};
use crate::verb::policy;

/// Nothing was run, and nobody said no.
const UNDECIDED: u8 = 75;

/// How long a grant holds unless a person says otherwise: a day's work.
const GRANT_FOR: &str = "8h";

/// What became of asking.
pub(super) enum Asked {
    /// It was allowed, or rejected, and this is the run.
    Answered(Box<CommandView>),
    /// Nobody decided; nothing was run.
    Undecided(ExitCode),
}

/// Asks for a run; and where a person has to allow it first, asks the person.
pub(super) async fn request(
    client: &mut Client,
    request: &NewCommand,
    signals: &mut Signals,
    paths: &Paths,
    show: &Show,
) -> Result<Asked, Failure> {
    let mut note = None;
    loop {
        let problem = match client.post("/commands", request).await {
            Ok(begun) => return Ok(Asked::Answered(Box::new(begun))),
            Err(failure) => pending(failure)?,
        };
        let question = problem.question.as_deref().expect("it is pending");
        if let Some(note) = note.take() {
            say!("{note}");
        }
        if show.json {
            print_json(&problem);
            return Ok(Asked::Undecided(ExitCode::from(UNDECIDED)));
        }
        if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
            refusal(&problem, question);
            return Ok(Asked::Undecided(ExitCode::from(UNDECIDED)));
        }
        if let Err(inside) = ourselves::may_decide() {
            refusal(&problem, question);
            say!("{}", inside.to_string().trim_end());
            return Ok(Asked::Undecided(ExitCode::from(UNDECIDED)));
        }
        put(question);
        let answer = {
            let keys = Keys::new(signals);
            let mut keys = keys
                .map_err(|error| Failure::new(format!("cannot use the terminal: {error}"), ""))?;
            decide(&mut keys, question).await
        };
        // A person may take longer than a connection lasts.
        *client = Client::open(paths).await?;
        match answer {
            Answer::Quit => {
                say!("Nothing was decided, nothing was run.");
                return Ok(Asked::Undecided(ExitCode::from(UNDECIDED)));
            }
            Answer::Once => return answered(client, request, question, true, None).await,
            Answer::Reject(why) => return answered(client, request, question, false, why).await,
            Answer::Always(grant) => {
                let given = client.post::<GrantView>("/policies/grants", &grant).await;
                note = Some(match given {
                    Ok(given) => {
                        say!("Allowed beforehand: {}", policy::in_words(&given));
                        format!(
                            "{} does not cover all of it, so it is asked again.",
                            given.id
                        )
                    }
                    Err(failure) => format!("{failure}").trim_end().to_owned(),
                });
            }
        }
    }
}

/// Returns what is asked, if that is what went wrong.
fn pending(failure: Failure) -> Result<ProblemDocument, Failure> {
    match failure.problem {
        Some(problem) if problem.question.is_some() => Ok(*problem),
        problem => Err(Failure { problem, ..failure }),
    }
}

async fn answered(
    client: &mut Client,
    request: &NewCommand,
    question: &Explanation,
    approved: bool,
    reason: Option<String>,
) -> Result<Asked, Failure> {
    let request = NewCommand {
        approval: Some(Approval {
            fingerprint: question.fingerprint.clone(),
            approved,
            reason,
        }),
        ..request.clone()
    };
    let begun = client.post("/commands", &request).await?;
    Ok(Asked::Answered(Box::new(begun)))
}

/// What is said where nobody can be asked.
fn refusal(problem: &ProblemDocument, question: &Explanation) {
    say!("◔ Needs approval — nothing was run ({})", problem.code);
    for line in judged::why(&question.reasons, width()) {
        say!("  {line}");
    }
    say!("hint: {}", safe(&problem.hint));
}

/// Shows what is asked about.
fn put(question: &Explanation) {
    let who = question.agent.as_deref().map_or(String::new(), |agent| {
        format!("as {} ", one_line(agent, 30))
    });
    let place = format!("{who}in {}", one_line(&question.sandbox, 30));
    say!("{}", judged::aligned("◔ Needs approval", &place, width()));
    for warning in &question.warnings {
        say!("warning: {}", safe(warning));
    }
    say!("");
    for (at, line) in safe(&question.command).lines().enumerate() {
        say!("  {} {line}", if at == 0 { "$" } else { " " });
    }
    say!("");
    for line in judged::why(&question.reasons, width()) {
        say!("{line}");
    }
    for line in judged::parts(question, width()) {
        say!("{line}");
    }
}

fn width() -> usize {
    judged::width(std::io::stderr())
}

enum Answer {
    Once,
    Always(NewGrant),
    Reject(Option<String>),
    Quit,
}

async fn decide(keys: &mut Keys<'_>, question: &Explanation) -> Answer {
    let always = can_grant(question);
    loop {
        say!("");
        say!(
            "  [o] run once   {}[r] reject…   [x] explain   [q] quit",
            if always { "[w] always…   " } else { "" }
        );
        prompt("> ");
        keys.forget();
        let key = loop {
            match keys.key().await {
                Key::Char(key) if b"orxq".contains(&key) || always && key == b'w' => break key,
                Key::Quit => break b'q',
                // Enter alone, too, does nothing.
                _ => {}
            }
        };
        say!("{}", char::from(key));
        match key {
            b'o' if confirmed(keys).await => return Answer::Once,
            b'w' => {
                if let Some(grant) = ask_grant(keys, question).await {
                    return Answer::Always(grant);
                }
            }
            b'r' => {
                let why = keys
                    .line("  why? (Enter rejects, Esc goes back) ", "")
                    .await;
                if let Some(why) = why {
                    return Answer::Reject(Some(why).filter(|why| !why.is_empty()));
                }
            }
            b'x' => {
                let _ = write!(std::io::stderr(), "{}", judged::page(question, width()));
            }
            b'q' => return Answer::Quit,
            _ => {}
        }
    }
}

async fn confirmed(keys: &mut Keys<'_>) -> bool {
    prompt("  run it once? Enter = yes, any other key = no ");
    keys.forget();
    let yes = keys.key().await == Key::Enter;
    say!("{}", if yes { "yes" } else { "no" });
    yes
}

/// What nobody can foresee cannot be allowed beforehand.
fn can_grant(question: &Explanation) -> bool {
    let unclear = |part: &PartView| part.kind == PartKind::Unknown || part.unknown.is_some();
    !question.command.contains("<<") && !question.parts.iter().any(unclear)
}

async fn ask_grant(keys: &mut Keys<'_>, question: &Explanation) -> Option<NewGrant> {
    let suggested = suggested(question);
    let pattern = keys.line("  allow which commands? ", &suggested).await;
    let pattern = pattern.filter(|pattern| !pattern.is_empty())?;
    let until = loop {
        let until = keys
            .line("  for how long? (or revoked) ", GRANT_FOR)
            .await?;
        match policy::parse_until(&until) {
            Ok(until) => break until,
            Err(wrong) => say!("  {}", safe(&wrong)),
        }
    };
    Some(NewGrant {
        pattern,
        agent: question.agent.clone(),
        sandbox: Some(question.sandbox.clone()),
        session: None,
        until: until.ends_at(),
    })
}

/// The part that is asked about, where it is one and reads as a pattern as it
/// reads as a command.
fn suggested(question: &Explanation) -> String {
    let mut asked = { question.parts.iter() }
        .filter(|part| part.verdict != Verdict::Auto)
        .collect::<Vec<_>>();
    asked.dedup_by_key(|part| part.span);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+ ".contains(c);
    match asked.as_slice() {
        [part] if part.kind == PartKind::Command && part.text.chars().all(plain) => {
            part.text.clone()
        }
        _ => String::new(),
    }
}

fn prompt(text: &str) {
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "{text}");
    let _ = stderr.flush();
}
