//! A message in the form that its receiver takes.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use hmac::{Hmac, KeyInit, Mac};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::json;
use sha2::Sha256;
use weighlock_engine::{Format, Message, Parcel, Secret, Urgency};

/// Past 4 KiB ntfy makes a file of a text, which no phone shows.
const MOST_TEXT: usize = 3900;

/// What is sent: headers and a body.
pub(super) struct Form {
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: String,
}

/// Puts a message into its form, at a time in seconds since 1970.
pub(super) fn of(parcel: &Parcel, now: i64) -> Result<Form, String> {
    let mut form = match parcel.format {
        Format::Json => json_form(parcel, now)?,
        Format::Ntfy => ntfy(&parcel.message, &parcel.secret)?,
        Format::Chat => chat(&parcel.message),
    };
    // The same when it is tried again, so that it can be told from another.
    form.headers.push(header("webhook-id", &parcel.id)?);
    Ok(form)
}

fn json_form(parcel: &Parcel, now: i64) -> Result<Form, String> {
    let message = &parcel.message;
    let body = json!({ "type": message.kind, "timestamp": message.time, "data": message.data });
    let body = body.to_string();
    let key = parcel
        .secret
        .key()
        .ok_or("there is no secret to sign with")?;
    let signed = format!("{}.{now}.{body}", parcel.id);
    Ok(Form {
        headers: vec![
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            header("webhook-timestamp", &now.to_string())?,
            header("webhook-signature", &sign(&key, &signed))?,
        ],
        body,
    })
}

/// Signs as Standard Webhooks does.
fn sign(key: &[u8], text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(text.as_bytes());
    let signature = BASE64_STANDARD.encode(mac.finalize().into_bytes());
    format!("v1,{signature}")
}

fn ntfy(message: &Message, token: &Secret) -> Result<Form, String> {
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
        // What is told later about the same takes its place.
        header("x-sequence-id", &message.about)?,
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
    Ok(Form {
        headers,
        body: shortened(body),
    })
}

/// What Slack and those who follow it take. The text is a person's to read and
/// an agent's to have written: none of it becomes a link, a mention or a style.
fn chat(message: &Message) -> Form {
    let mut text = format!("*{}*", plain(&message.title));
    for item in &message.items {
        text.push('\n');
        text.push_str(&plain(&item.line));
        if !item.command.is_empty() {
            text.push_str(&format!("\n```\n{}\n```", fenced(&item.command)));
        }
        text.push_str(&format!("\n{}", item.link));
    }
    Form {
        headers: vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
        body: json!({ "text": text }).to_string(),
    }
}

fn plain(text: &str) -> String {
    { text.replace('&', "&amp;").replace('<', "&lt;") }.replace('>', "&gt;")
}

/// Three of these end a block, and what follows would be read as style.
fn fenced(command: &str) -> String {
    plain(command).replace("```", "⟦U+0060⟧⟦U+0060⟧⟦U+0060⟧")
}

fn shortened(mut text: String) -> String {
    if text.len() > MOST_TEXT {
        text.truncate(text.floor_char_boundary(MOST_TEXT));
        text.push('…');
    }
    text
}

/// Text of ours as a header. What it quotes was made safe before; a line end
/// in it is refused here.
fn header(name: &'static str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let value = HeaderValue::from_bytes(value.as_bytes());
    let value = value.map_err(|_| format!("`{name}` cannot be sent"))?;
    Ok((HeaderName::from_static(name), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_as_the_standard_says() {
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
    fn an_agent_writes_no_links_into_a_chat() {
        let hostile = "echo '<!channel> <https://evil|Approve>'\n```\n*[x](https://evil)*";
        let told = fenced(hostile);
        assert!(
            !told.contains('<') && !told.contains('>') && !told.contains("```"),
            "{told}"
        );
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let cut = shortened("ä".repeat(4000));
        assert!(
            cut.len() <= MOST_TEXT + 3 && cut.ends_with("ä…"),
            "{}",
            cut.len()
        );
    }
}
