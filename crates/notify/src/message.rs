//! Composes messages, as text and as data. Text from agents is made safe here.

use std::cmp::Reverse;

use serde_json::{Value, json};
use weighlock_screen::{safe_command, safe_text};
use weighlock_store::{
    Approval, ApprovalState, CLOSED, Error, Notice, Risk, Store, WAITING, id, timestamp,
};

use crate::directory::Directory;

/// Characters of a command in a message: enough to recognise it on a phone.
const COMMAND_CHARS: usize = 1000;

/// Items in one message; the rest is only counted.
const MAX_ITEMS: usize = 10;

/// One message to a receiver.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WebhookMessage {
    /// What happened, as a stable word.
    pub(crate) kind: String,
    /// When it was composed.
    pub(crate) created_at: String,
    /// One line.
    pub(crate) title: String,
    /// What it is about.
    pub(crate) items: Vec<MessageItem>,
    /// The page about it.
    pub(crate) link: String,
    /// How urgent it is.
    pub(crate) urgency: Urgency,
    /// A later message with the same key replaces this one.
    pub(crate) replace_key: String,
    /// The same for programs.
    pub(crate) data: Value,
}

/// One thing that a message is about. All text is safe to display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageItem {
    /// One line.
    pub(crate) line: String,
    /// The command; may be empty.
    pub(crate) command: String,
    /// The page about it.
    pub(crate) link: String,
}

/// How urgent a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// For information.
    Low,
    /// An agent waits.
    Normal,
    /// Something dangerous waits, or the audit is damaged.
    High,
}

/// Composes messages from notices.
pub(crate) struct Composer<'a> {
    pub(crate) store: &'a Store,
    pub(crate) directory: &'a dyn Directory,
    /// Microseconds since 1970.
    pub(crate) now: i64,
    /// What links to the pages begin with.
    pub(crate) public_url: &'a str,
}

impl Composer<'_> {
    /// Composes one message from notices of one kind about one agent. Questions
    /// that no longer wait are left out; `None` if nothing remains.
    pub(crate) fn compose(&self, notices: &[Notice]) -> Result<Option<WebhookMessage>, Error> {
        let Some(first) = notices.first() else {
            return Ok(None);
        };
        match first.kind.as_str() {
            WAITING => self.waiting_message(notices),
            CLOSED => self.closed_message(notices).map(Some),
            _ => Ok(Some(self.other_message(notices))),
        }
    }

    fn waiting_message(&self, notices: &[Notice]) -> Result<Option<WebhookMessage>, Error> {
        let mut waiting = vec![];
        for notice in notices {
            let found = self.store.approvals().named(&notice.subject)?;
            waiting.extend(
                found
                    .into_iter()
                    .filter(|one| one.state == ApprovalState::Pending),
            );
        }
        // The order of the inbox.
        waiting.sort_by_key(|approval| (Reverse(approval.risk), approval.created_at));
        let Some(first) = waiting.first() else {
            return Ok(None);
        };
        let agent = safe_text(&first.requested_by);
        let urgency = match first.risk {
            Risk::High => Urgency::High,
            _ => Urgency::Normal,
        };
        let included: Vec<_> = waiting.iter().take(MAX_ITEMS).collect();
        let data = json!({
            "agent": agent,
            "risk": first.risk,
            "count": waiting.len(),
            "approvals": included.iter().map(|one| self.approval_data(one)).collect::<Value>(),
        });
        Ok(Some(WebhookMessage {
            kind: WAITING.into(),
            created_at: timestamp(self.now),
            title: match waiting.len() {
                1 => format!("{agent} needs approval"),
                many => format!("{agent} needs {many} approvals"),
            },
            items: included.iter().map(|one| self.approval_item(one)).collect(),
            link: match waiting.len() {
                1 => self.link_to(&first.id),
                _ => format!("{}/inbox", self.public_url),
            },
            urgency,
            replace_key: first.id.clone(),
            data,
        }))
    }

    fn approval_data(&self, approval: &Approval) -> Value {
        let (command, left_out) = shown(approval);
        json!({
            "approval_id": approval.id,
            "short_id": id::short(&approval.id),
            "agent": safe_text(&approval.requested_by),
            "sandbox": safe_text(&self.directory.sandbox_name(&approval.sandbox)),
            "risk": approval.risk,
            "summary": safe_text(text(&approval.body, "summary")),
            "command": command,
            "left_out_characters": left_out,
            "created_at": timestamp(approval.created_at),
            "expires_at": timestamp(approval.expires_at),
            "link": self.link_to(&approval.id),
        })
    }

    fn approval_item(&self, approval: &Approval) -> MessageItem {
        let (mut command, left_out) = shown(approval);
        if left_out > 0 {
            command.push_str(&format!("… ({left_out} more characters)"));
        }
        let risk = match approval.risk {
            Risk::High => "High risk · ",
            _ => "",
        };
        let until = timestamp(approval.expires_at);
        MessageItem {
            line: format!(
                "{risk}in {}, until {} UTC",
                safe_text(&self.directory.sandbox_name(&approval.sandbox)),
                until.get(11..16).unwrap_or(&until),
            ),
            command,
            link: self.link_to(&approval.id),
        }
    }

    fn closed_message(&self, notices: &[Notice]) -> Result<WebhookMessage, Error> {
        let mut closed = vec![];
        for notice in notices {
            closed.extend(self.store.approvals().named(&notice.subject)?);
        }
        let included: Vec<_> = closed.iter().take(MAX_ITEMS).collect();
        let agent = notices.first().map(|notice| safe_text(&notice.agent));
        let agent = agent.unwrap_or_default();
        let data = |one: &&Approval| {
            json!({ "approval_id": one.id, "short_id": id::short(&one.id), "state": one.state,
                    "decided_by": one.decided_by.as_deref().map(safe_text),
                    "decided_at": one.decided_at.map(timestamp),
                    "link": self.link_to(&one.id) })
        };
        let item = |one: &&Approval| MessageItem {
            line: closing_text(one),
            command: shown(one).0,
            link: self.link_to(&one.id),
        };
        Ok(WebhookMessage {
            kind: CLOSED.into(),
            created_at: timestamp(self.now),
            title: match included.as_slice() {
                [one] => format!("{agent}: {}", closing_text(one).to_lowercase()),
                _ => format!("{agent}: {} questions no longer wait", closed.len()),
            },
            items: included.iter().map(item).collect(),
            link: match included.as_slice() {
                [one] => self.link_to(&one.id),
                _ => format!("{}/inbox", self.public_url),
            },
            urgency: Urgency::Low,
            replace_key: included
                .first()
                .map_or_else(String::new, |one| one.id.clone()),
            data: json!({ "agent": agent, "count": closed.len(),
                          "approvals": included.iter().map(data).collect::<Value>() }),
        })
    }

    fn link_to(&self, approval: &str) -> String {
        format!("{}/a/{approval}", self.public_url)
    }

    /// Composes a message whose text was written when the notice was collected.
    fn other_message(&self, notices: &[Notice]) -> WebhookMessage {
        let first = notices.first().map(|notice| &notice.body);
        let first = first.cloned().unwrap_or_default();
        let link = |notice: &Notice| format!("{}{}", self.public_url, text(&notice.body, "path"));
        let data = |notice: &Notice| {
            let mut data = notice.body["data"].clone();
            data["link"] = link(notice).into();
            data
        };
        let item = |notice: &Notice| MessageItem {
            line: text(&notice.body, "line").to_owned(),
            command: text(&notice.body, "command").to_owned(),
            link: link(notice),
        };
        let kind = notices.first().map(|notice| notice.kind.clone());
        let included = &notices[..notices.len().min(MAX_ITEMS)];
        WebhookMessage {
            kind: kind.unwrap_or_default(),
            created_at: timestamp(self.now),
            title: match notices.len() {
                1 => text(&first, "title").to_owned(),
                many => format!("{} ({many})", text(&first, "title")),
            },
            items: included.iter().map(item).collect(),
            link: included.first().map(link).unwrap_or_default(),
            urgency: match first["urgent"].as_bool() {
                Some(true) => Urgency::High,
                _ => Urgency::Low,
            },
            replace_key: included
                .first()
                .map_or_else(String::new, |one| one.event.clone()),
            data: json!({ "count": notices.len(),
                          "events": included.iter().map(data).collect::<Value>() }),
        }
    }
}

/// Returns a message that only shows that it arrives.
pub(crate) fn test_message(now: i64, public_url: &str) -> WebhookMessage {
    let line = "This webhook works. This is only a test.".to_owned();
    WebhookMessage {
        kind: "test".into(),
        created_at: timestamp(now),
        title: "weighlock: a test".into(),
        data: json!({ "text": line, "link": public_url }),
        items: vec![MessageItem {
            line,
            command: String::new(),
            link: public_url.to_owned(),
        }],
        link: public_url.to_owned(),
        urgency: Urgency::Low,
        replace_key: "test".into(),
    }
}

/// Makes a command safe and truncates it; returns how many characters are left
/// out.
pub(crate) fn safe_excerpt(command: &str) -> (String, usize) {
    let safe = safe_command(command);
    let all = safe.chars().count();
    let kept = safe.chars().take(COMMAND_CHARS).collect();
    (kept, all.saturating_sub(COMMAND_CHARS))
}

fn shown(approval: &Approval) -> (String, usize) {
    safe_excerpt(text(&approval.body, "command"))
}

fn text<'a>(body: &'a Value, field: &str) -> &'a str {
    body[field].as_str().unwrap_or_default()
}

fn closing_text(approval: &Approval) -> String {
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
