//! Webhooks for people's eyes.

use weighlock_api::{NoticeView, Topic, WebhookFormat, WebhookView, short_id};

use crate::names::SandboxNames;
use crate::text::{self, columns, one_line, safe};
use crate::when;

/// Prints one line for each, and a line below for what is the matter with it.
pub(super) fn table(webhooks: &[WebhookView]) {
    if webhooks.is_empty() {
        eprintln!(
            "No other notifications. `weighlock notify add --help` shows how to add a webhook."
        );
        return;
    }
    let rows: Vec<_> = webhooks.iter().map(row).collect();
    for (line, webhook) in columns(&rows).iter().zip(webhooks) {
        println!("{line}");
        if let Some(trouble) = &webhook.trouble {
            println!("    ! {}", one_line(trouble, 160));
        }
    }
}

fn row(webhook: &WebhookView) -> Vec<String> {
    vec![
        short_id(&webhook.webhook_id),
        one_line(&webhook.place, 50),
        format(webhook.settings.format).into(),
        one_line(&webhook.settings.label, 30),
        webhook.owner.as_deref().map_or("server".into(), safe),
        state(webhook),
    ]
}

fn state(webhook: &WebhookView) -> String {
    match (webhook.is_active, webhook.failures, &webhook.told_at) {
        (false, ..) => "off".into(),
        (true, 0, None) => "not told anything yet".into(),
        (true, 0, Some(time)) => format!("told {}", when::ago(time)),
        (true, failures, _) => {
            format!("failed {} in a row", text::counted(failures.into(), "time"))
        }
    }
}

/// Prints everything about one webhook, and its latest notifications.
pub(super) fn whole(webhook: &WebhookView, notices: &[NoticeView], names: &SandboxNames) {
    let settings = &webhook.settings;
    let mut rows = vec![
        ("webhook", short_id(&webhook.webhook_id)),
        ("to", safe(&webhook.place)),
        ("form", format(settings.format).into()),
        ("state", state(webhook)),
    ];
    if !settings.label.is_empty() {
        rows.push(("label", safe(&settings.label)));
    }
    let at_once = if settings.high_risk_at_once {
        ", high risk at once"
    } else {
        ""
    };
    rows.push(("delay", format!("{} s{at_once}", settings.delay_seconds)));
    if let Some(quiet) = &settings.quiet {
        let zone = quiet.zone.as_deref().unwrap_or("the server's clock");
        rows.push((
            "quiet",
            format!(
                "{} to {} ({})",
                safe(&quiet.from),
                safe(&quiet.to),
                safe(zone)
            ),
        ));
    }
    if let Some(listed) = &settings.sandboxes {
        let listed: Vec<_> = listed.iter().map(|id| safe(names.of(id))).collect();
        rows.push(("sandboxes", listed.join(", ")));
    }
    let topics: Vec<_> = settings
        .topics
        .iter()
        .map(|topic| topic_word(*topic))
        .collect();
    rows.push(("told of", topics.join(", ")));
    if let Some(trouble) = &webhook.trouble {
        rows.push(("trouble", safe(trouble)));
    }
    for (name, value) in rows {
        println!("{name:<10} {value}");
    }
    for notice in notices {
        println!("  {}", told(notice));
    }
}

fn told(notice: &NoticeView) -> String {
    let about = notice.approval_id.as_deref().map(short_id);
    format!(
        "{}  {:<8} {}  {} {}",
        when::minute(&notice.created_at),
        safe(&notice.state),
        safe(&notice.kind),
        safe(&notice.agent),
        about.unwrap_or_default(),
    )
}

fn format(format: WebhookFormat) -> &'static str {
    match format {
        WebhookFormat::Json => "json",
        WebhookFormat::Ntfy => "ntfy",
        WebhookFormat::Chat => "chat",
    }
}

fn topic_word(topic: Topic) -> String {
    let word = serde_json::to_value(topic).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}
