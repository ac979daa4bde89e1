//! `send`: text and keys for a terminal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_api::{
    ApiRequest, SentView, TerminalInput, WaitKind, WaitRequest, WaitView, Wanted, short_id,
};

use super::looked_for;
use super::read::{filled, screen};
use crate::api::{self, Failure};
use crate::call::Call;
use crate::reply::Reply;
use crate::tool::{Hints, Tool, answer, parse, schema};

/// How long a screen is the same before it is shown, and how long is waited for
/// that.
const STABLE_MS: u64 = 150;
const WITHIN_MS: u64 = 2000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Send")]
struct SendKeysInput {
    /// The terminal's name.
    id: String,
    /// Text to type.
    #[serde(default)]
    text: Option<String>,
    /// Keys after it, such as `C-c`, `Esc`, `Up`, `F5`.
    #[serde(default)]
    keys: Vec<String>,
    /// Enter, last. Default: true if there is text and no key.
    #[serde(default)]
    enter: Option<bool>,
    /// As from a clipboard.
    #[serde(default)]
    paste: bool,
}

/// What a terminal shows after something was typed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Shown")]
struct ScreenAnswer {
    /// `typed`, `held` while a person has the keyboard, or `asked`.
    state: String,
    /// Its lines.
    screen: Vec<String>,
    /// The command that a person is asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// In words.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

pub(super) fn tool() -> Tool {
    Tool {
        name: "send",
        title: "Type in a terminal",
        description: "Type text and keys at an interactive program in a terminal, and get its \
            screen. For a shell command use `run` with `terminal` instead.",
        input: schema::<SendKeysInput>,
        output: Some(answer::<ScreenAnswer>),
        hints: Hints {
            destroys: true,
            open_world: true,
            ..Hints::default()
        },
        deed: |call, arguments| {
            Box::pin(async move {
                let done = send(call, parse(arguments)?).await;
                done.map_err(|failure| looked_for(call, failure))
            })
        },
    }
}

async fn send(call: &Call, asked: SendKeysInput) -> Result<Reply, Failure> {
    let api = call.desk.api();
    let id = api::escape(&call.desk.resolve(&asked.id).await?);
    let enter = asked.enter;
    let enter = enter.unwrap_or(asked.text.is_some() && asked.keys.is_empty());
    let (text, paste) = match asked.paste {
        true => (None, asked.text),
        false => (asked.text, None),
    };
    let input = TerminalInput {
        text,
        paste,
        keys: asked.keys,
        submit: enter,
        eof: false,
    };
    let sent: Option<SentView> = api::post(api, format!("/terminals/{id}/input"), &input).await?;
    let settled = WaitRequest {
        wanted: vec![Wanted {
            id: id.clone(),
            until: WaitKind::Stable,
            ms: Some(STABLE_MS),
            ..Wanted::default()
        }],
        timeout_ms: Some(WITHIN_MS),
        ..WaitRequest::default()
    };
    let _: WaitView = api::send(api, ApiRequest::wait(&settled)).await?;
    let screen = filled(screen(call, &id).await?.rows);
    let shown = ScreenAnswer {
        state: { sent.as_ref() }
            .map_or("typed", |sent| sent.state.as_str())
            .into(),
        id: { sent.as_ref() }.and_then(|sent| sent.command_id.as_deref().map(short_id)),
        message: sent.map(|sent| sent.text),
        screen,
    };
    let mut text = shown.message.clone().unwrap_or_default();
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&shown.screen.join("\n"));
    Ok(Reply::new(text, &shown))
}
