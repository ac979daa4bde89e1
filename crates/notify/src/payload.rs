//! Formats a message for its receiver.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use hmac::{Hmac, KeyInit, Mac};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::json;
use sha2::Sha256;

use crate::delivery::Delivery;
use crate::message::{Urgency, WebhookMessage};
use crate::secret::WebhookSecret;
use crate::settings::WebhookFormat;

/// ntfy turns a text of more than 4 KiB into a file, which phones do not show.
const MAX_TEXT_BYTES: usize = 3900;

/// Headers and body of a request.
pub(crate) struct HttpPayload {
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: String,
}

/// Formats a message. `now` is in seconds since 1970.
pub(crate) fn format_message(delivery: &Delivery, now: i64) -> Result<HttpPayload, String> {
    let mut payload = match delivery.format {
        WebhookFormat::Json => signed_json(delivery, now)?,
        WebhookFormat::Ntfy => ntfy_text(&delivery.message, &delivery.secret)?,
        WebhookFormat::Chat => chat_text(&delivery.message),
    };
    payload.headers.push(header("webhook-id", &delivery.id)?);
    Ok(payload)
}

fn signed_json(delivery: &Delivery, now: i64) -> Result<HttpPayload, String> {
    let message = &delivery.message;
    let body =
        json!({ "type": message.kind, "timestamp": message.created_at, "data": message.data });
    let body = body.to_string();
    let key = delivery
        .secret
        .key()
        .ok_or("there is no secret to sign with")?;
    let signed = format!("{}.{now}.{body}", delivery.id);
    Ok(HttpPayload {
        headers: vec![
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            header("webhook-timestamp", &now.to_string())?,
            header("webhook-signature", &sign(&key, &signed))?,
        ],
        body,
    })
}

/// Signs a text as Standard Webhooks specifies.
fn sign(key: &[u8], text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(text.as_bytes());
    let signature = BASE64_STANDARD.encode(mac.finalize().into_bytes());
    format!("v1,{signature}")
}

fn ntfy_text(message: &WebhookMessage, token: &WebhookSecret) -> Result<HttpPayload, String> {
    let priority = match message.urgency {
        Urgency::High => "5",
        Urgency::Normal => "4",
        Urgency::Low => "2",
    };
    let mut headers = vec![
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        ),
        header("title", &message.title)?,
        header("priority", priority)?,
        header("click", &message.link)?,
        // A later message about the same approval replaces this one.
        header("x-sequence-id", &message.replace_key)?,
    ];
    if !token.reveal().is_empty() {
        let mut bearer = header("x", &format!("Bearer {}", token.reveal()))?.1;
        bearer.set_sensitive(true);
        headers.push((AUTHORIZATION, bearer));
    }
    let items = message
        .items
        .iter()
        .map(|item| match item.command.as_str() {
            "" => item.line.clone(),
            command => format!("{command}\n{}", item.line),
        });
    let body = items.collect::<Vec<_>>().join("\n\n");
    Ok(HttpPayload {
        headers,
        body: truncated(body),
    })
}

/// Formats text for Slack and compatible chats. An agent may have written parts
/// of it, so no part becomes a link, a mention or markup.
fn chat_text(message: &WebhookMessage) -> HttpPayload {
    let mut text = format!("*{}*", escaped(&message.title));
    for item in &message.items {
        text.push('\n');
        text.push_str(&escaped(&item.line));
        if !item.command.is_empty() {
            text.push_str(&format!("\n```\n{}\n```", fenced(&item.command)));
        }
        text.push_str(&format!("\n{}", item.link));
    }
    HttpPayload {
        headers: vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
        body: json!({ "text": text }).to_string(),
    }
}

fn escaped(text: &str) -> String {
    { text.replace('&', "&amp;").replace('<', "&lt;") }.replace('>', "&gt;")
}

/// Escapes a command for a code block. Three backticks would end the block, and
/// the rest would be markup.
fn fenced(command: &str) -> String {
    escaped(command).replace("```", "⟦U+0060⟧⟦U+0060⟧⟦U+0060⟧")
}

fn truncated(mut text: String) -> String {
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.push('…');
    }
    text
}

/// Builds a header. Quoted text was made safe before; a line break is refused
/// here.
fn header(name: &'static str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let value = HeaderValue::from_bytes(value.as_bytes());
    let value = value.map_err(|_| format!("`{name}` cannot be sent"))?;
    Ok((HeaderName::from_static(name), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_matches_the_standard() {
        // The example of Standard Webhooks' own libraries.
        let key = BASE64_STANDARD
            .decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
            .unwrap();
        let text = "msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}";
        assert_eq!(
            sign(&key, text),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn an_agent_cannot_write_links_into_a_chat() {
        let hostile = "echo '<!channel> <https://evil|Approve>'\n```\n*[x](https://evil)*";
        let text = fenced(hostile);
        assert!(
            !text.contains('<') && !text.contains('>') && !text.contains("```"),
            "{text}"
        );
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let cut = truncated("ä".repeat(4000));
        assert!(
            cut.len() <= MAX_TEXT_BYTES + 3 && cut.ends_with("ä…"),
            "{}",
            cut.len()
        );
    }
}
