//! What is told, in words and as data. Nothing of it decides anything: an
//! answer needs a fingerprint, which is only shown to who has signed in.

use std::cmp::Reverse;

use serde_json::{Value, json};
use weighlock_screen::{safe_command, safe_text};
use weighlock_store::{Approval, ApprovalState, CLOSED, Notice, Risk, WAITING};

use crate::engine::Engine;
use crate::error::Error;
use crate::id;
use crate::inbox::is_pending;
use crate::view::time;

/// Characters of a command that are told.
const MOST_COMMAND: usize = 1000;

/// Things that one message tells of; the rest is counted.
const MOST_ITEMS: usize = 10;

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// What has happened, as a stable word.
    pub kind: String,
    /// When it was put together.
    pub time: String,
    /// One line.
    pub title: String,
    /// What it is about, each with a line and a command.
    pub items: Vec<Item>,
    /// Where a person goes from here.
    pub link: String,
    /// How much it presses.
    pub urgency: Urgency,
    /// What a later message about the same takes the place of this one by.
    pub about: String,
    /// The same as data.
    pub data: Value,
}

/// One thing that a message is about. All of it is safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// One line.
    pub line: String,
    /// A command; may be empty.
    pub command: String,
    /// Where a person goes from here.
    pub link: String,
}

/// How much a message presses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// It is good to know.
    Low,
    /// Somebody waits.
    Normal,
    /// Something dangerous waits, or is the matter.
    High,
}

impl Engine {
    /// Puts notices of one kind and one agent together. Those about what waits
    /// no more are left out; nothing is told when none is left.
    pub(super) fn message(
        &self,
        notices: &[Notice],
        address: &str,
    ) -> Result<Option<Message>, Error> {
        let Some(first) = notices.first() else {
            return Ok(None);
        };
        match first.kind.as_str() {
            WAITING => self.waiting_message(notices, address),
            CLOSED => self.closed_message(notices, address).map(Some),
            _ => Ok(Some(self.other_message(notices, address))),
        }
    }

    fn waiting_message(&self, notices: &[Notice], address: &str) -> Result<Option<Message>, Error> {
        let mut waiting = vec![];
        for notice in notices {
            let found = self.store.approvals_named(&notice.subject)?;
            waiting.extend(found.into_iter().filter(is_pending));
        }
        // First things first, as in the inbox.
        waiting.sort_by_key(|approval| (Reverse(approval.risk), approval.created_at));
        let Some(first) = waiting.first() else {
            return Ok(None);
        };
        let agent = safe_text(&first.requested_by);
        let urgency = match first.risk {
            Risk::High => Urgency::High,
            _ => Urgency::Normal,
        };
        let told: Vec<_> = waiting.iter().take(MOST_ITEMS).collect();
        let data = json!({
            "agent": agent,
            "risk": first.risk,
            "count": waiting.len(),
            "approvals": told.iter().map(|one| self.approval_data(one, address)).collect::<Value>(),
        });
        Ok(Some(Message {
            kind: WAITING.into(),
            time: time(self.clock.micros()),
            title: match waiting.len() {
                1 => format!("{agent} needs approval"),
                many => format!("{agent} needs {many} approvals"),
            },
            items: told
                .iter()
                .map(|one| self.approval_item(one, address))
                .collect(),
            link: match waiting.len() {
                1 => link_to(&first.id, address),
                _ => format!("{address}/inbox"),
            },
            urgency,
            about: first.id.clone(),
            data,
        }))
    }

    fn approval_data(&self, approval: &Approval, address: &str) -> Value {
        let (command, left_out) = shown(approval);
        json!({
            "approval_id": approval.id,
            "short_id": id::short(&approval.id),
            "agent": safe_text(&approval.requested_by),
            "sandbox": safe_text(&self.sandbox_name(&approval.sandbox)),
            "risk": approval.risk,
            "summary": safe_text(text(&approval.body, "summary")),
            "command": command,
            "left_out_characters": left_out,
            "created_at": time(approval.created_at),
            "expires_at": time(approval.expires_at),
            "link": link_to(&approval.id, address),
        })
    }

    fn approval_item(&self, approval: &Approval, address: &str) -> Item {
        let (mut command, left_out) = shown(approval);
        if left_out > 0 {
            command.push_str(&format!("… ({left_out} more characters)"));
        }
        let risk = match approval.risk {
            Risk::High => "High risk · ",
            _ => "",
        };
        let until = time(approval.expires_at);
        Item {
            line: format!(
                "{risk}in {}, until {} UTC",
                safe_text(&self.sandbox_name(&approval.sandbox)),
                until.get(11..16).unwrap_or(&until),
            ),
            command,
            link: link_to(&approval.id, address),
        }
    }

    fn closed_message(&self, notices: &[Notice], address: &str) -> Result<Message, Error> {
        let mut closed = vec![];
        for notice in notices {
            closed.extend(self.store.approvals_named(&notice.subject)?);
        }
        let told: Vec<_> = closed.iter().take(MOST_ITEMS).collect();
        let agent = notices.first().map(|notice| safe_text(&notice.agent));
        let agent = agent.unwrap_or_default();
        let data = |one: &&Approval| {
            json!({ "approval_id": one.id, "short_id": id::short(&one.id), "state": one.state,
                    "decided_by": one.decided_by.as_deref().map(safe_text),
                    "decided_at": one.decided_at.map(time),
                    "link": link_to(&one.id, address) })
        };
        let item = |one: &&Approval| Item {
            line: ending(one),
            command: shown(one).0,
            link: link_to(&one.id, address),
        };
        Ok(Message {
            kind: CLOSED.into(),
            time: time(self.clock.micros()),
            title: match told.as_slice() {
                [one] => format!("{agent}: {}", ending(one).to_lowercase()),
                _ => format!("{agent}: {} questions wait no more", closed.len()),
            },
            items: told.iter().map(item).collect(),
            link: match told.as_slice() {
                [one] => link_to(&one.id, address),
                _ => format!("{address}/inbox"),
            },
            urgency: Urgency::Low,
            about: told.first().map_or_else(String::new, |one| one.id.clone()),
            data: json!({ "agent": agent, "count": closed.len(),
                          "approvals": told.iter().map(data).collect::<Value>() }),
        })
    }

    /// What was put into words when it was taken in.
    fn other_message(&self, notices: &[Notice], address: &str) -> Message {
        let first = notices.first().map(|notice| &notice.body);
        let first = first.cloned().unwrap_or_default();
        let link = |notice: &Notice| format!("{address}{}", text(&notice.body, "path"));
        let data = |notice: &Notice| {
            let mut data = notice.body["data"].clone();
            data["link"] = link(notice).into();
            data
        };
        let item = |notice: &Notice| Item {
            line: text(&notice.body, "line").to_owned(),
            command: text(&notice.body, "command").to_owned(),
            link: link(notice),
        };
        let kind = notices.first().map(|notice| notice.kind.clone());
        let told = &notices[..notices.len().min(MOST_ITEMS)];
        Message {
            kind: kind.unwrap_or_default(),
            time: time(self.clock.micros()),
            title: match notices.len() {
                1 => text(&first, "title").to_owned(),
                many => format!("{} ({many})", text(&first, "title")),
            },
            items: told.iter().map(item).collect(),
            link: told.first().map(link).unwrap_or_default(),
            urgency: match first["urgent"].as_bool() {
                Some(true) => Urgency::High,
                _ => Urgency::Low,
            },
            about: told
                .first()
                .map_or_else(String::new, |one| one.event.clone()),
            data: json!({ "count": notices.len(),
                          "events": told.iter().map(data).collect::<Value>() }),
        }
    }
}

/// A message that only says that it arrives.
pub(super) fn test(now: i64, address: &str) -> Message {
    let line = "This webhook works. Nothing waits because of it.".to_owned();
    Message {
        kind: "test".into(),
        time: time(now),
        title: "weighlock: a test".into(),
        data: json!({ "text": line, "link": address }),
        items: vec![Item {
            line,
            command: String::new(),
            link: address.to_owned(),
        }],
        link: address.to_owned(),
        urgency: Urgency::Low,
        about: "test".into(),
    }
}

fn link_to(approval: &str, address: &str) -> String {
    format!("{address}/a/{approval}")
}

/// Cuts a command, made safe, and returns how many characters are left out.
pub(super) fn cut(command: &str) -> (String, usize) {
    let safe = safe_command(command);
    let all = safe.chars().count();
    let kept = safe.chars().take(MOST_COMMAND).collect();
    (kept, all.saturating_sub(MOST_COMMAND))
}

fn shown(approval: &Approval) -> (String, usize) {
    cut(text(&approval.body, "command"))
}

fn text<'a>(body: &'a Value, field: &str) -> &'a str {
    body[field].as_str().unwrap_or_default()
}

fn ending(approval: &Approval) -> String {
    let by = approval.decided_by.as_deref().map(safe_text);
    let by = by.map_or_else(String::new, |by| format!(" by {by}"));
    match approval.state {
        ApprovalState::Approved => format!("Approved{by}"),
        ApprovalState::Rejected => format!("Rejected{by}"),
        ApprovalState::Withdrawn => format!("Withdrawn{by}"),
        ApprovalState::Blocked => "Blocked by a rule".into(),
        ApprovalState::Expired => "Nobody answered in time".into(),
        ApprovalState::Pending => "Asked again".into(),
    }
}
