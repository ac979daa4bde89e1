//! People and agents as people read them.

use weighlock_api::{PersonView, Role, TokenInfo};

use crate::names::SandboxNames;
use crate::text::{columns, counted, one_line, safe};
use crate::when;

/// Prints one row for each, agents first.
pub(super) fn table(people: &[PersonView], names: &SandboxNames) {
    let (agents, persons): (Vec<_>, Vec<_>) =
        people.iter().partition(|one| one.role == Role::Agent);
    println!("Agents");
    match agents.is_empty() {
        true => println!("  No agent is connected."),
        false => rows(agents.iter().map(|agent| row(agent, names))),
    }
    println!("People");
    rows(persons.iter().map(|person| row(person, names)));
}

fn rows(rows: impl Iterator<Item = Vec<String>>) {
    for line in columns(&rows.collect::<Vec<_>>()) {
        println!("  {line}");
    }
}

fn row(person: &PersonView, names: &SandboxNames) -> Vec<String> {
    let mut said = vec![rights(person, names)];
    said.extend(person.uid.map(|uid| format!("uid {uid}")));
    let live = person.tokens.iter().filter(|token| counts(token)).count();
    if live > 0 {
        said.push(counted(live as u64, "token"));
    }
    let used = person
        .tokens
        .iter()
        .filter_map(|token| token.last_used_at.as_deref())
        .max();
    said.extend(used.map(|time| format!("last seen {}", when::ago(time))));
    vec![
        one_line(&person.principal_id, 30),
        said.join(" · "),
        state(person),
    ]
}

/// `agent in webshop, scratch`, `approver everywhere`
pub(super) fn rights(person: &PersonView, names: &SandboxNames) -> String {
    let role = person.role.word();
    match &person.sandboxes {
        None => format!("{role} everywhere"),
        Some(ids) if ids.is_empty() => format!("{role} nowhere"),
        Some(ids) => {
            let ids: Vec<String> = ids.iter().map(|id| one_line(names.of(id), 40)).collect();
            format!("{role} in {}", ids.join(", "))
        }
    }
}

fn state(person: &PersonView) -> String {
    match (&person.paused_by, person.is_active) {
        (_, false) => "off".into(),
        (Some(by), true) => format!("paused by {}", one_line(by, 30)),
        (None, true) => String::new(),
    }
}

/// Prints everything about somebody.
pub(super) fn whole(person: &PersonView, names: &SandboxNames) {
    let default = person.default_sandbox.as_deref();
    let said = [
        ("name", Some(safe(&person.principal_id))),
        ("role", Some(rights(person, names))),
        ("user", person.uid.map(|uid| format!("uid {uid}"))),
        ("default", default.map(|id| one_line(names.of(id), 40))),
        (
            "state",
            Some(state(person)).filter(|state| !state.is_empty()),
        ),
        ("added", Some(when::exact(&person.created_at))),
    ];
    for (name, value) in said {
        if let Some(value) = value {
            println!("{name:<12} {value}");
        }
    }
    if !person.tokens.is_empty() {
        println!("tokens");
        rows(person.tokens.iter().map(token));
    }
}

fn token(token: &TokenInfo) -> Vec<String> {
    let time = |what: &str, time: &Option<String>| {
        let time = time
            .as_deref()
            .map(|time| format!("{what} {}", when::minute(time)));
        time.unwrap_or_default()
    };
    let used = match token.last_used_at {
        None => "never used".into(),
        Some(_) => time("used", &token.last_used_at),
    };
    let ends = match token.revoked_at {
        None => time("until", &token.expires_at),
        Some(_) => time("revoked", &token.revoked_at),
    };
    vec![
        format!("{}…", safe(&token.prefix)),
        safe(&token.token_id),
        one_line(&token.label, 30),
        format!("by {}", one_line(&token.created_by, 30)),
        used,
        ends,
    ]
}

fn counts(token: &TokenInfo) -> bool {
    let over = |time: &String| {
        let end = time.parse::<jiff::Timestamp>();
        end.is_ok_and(|end| end <= jiff::Timestamp::now())
    };
    token.revoked_at.is_none() && !token.expires_at.as_ref().is_some_and(over)
}
