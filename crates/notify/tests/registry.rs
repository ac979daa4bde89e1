//! Webhooks over a real store, without a server.

use std::sync::Arc;

use weighlock_notify::{
    Actor, Config, Directory, Error, Notifier, QuietHours, Recipient, WebhookFormat, WebhookPatch,
};
use weighlock_store::{Clock, Durability, Store, Visible};

/// Lets everybody see everything.
struct Everybody;

impl Directory for Everybody {
    fn recipient(&self, _: Option<&str>) -> Result<Option<Recipient>, weighlock_store::Error> {
        Ok(Some(Recipient {
            is_administrator: false,
            visible: Visible::All,
        }))
    }

    fn sandbox_name(&self, id: &str) -> String {
        id.to_owned()
    }
}

fn open(dir: &tempfile::TempDir) -> Arc<Notifier> {
    let store = Arc::new(Store::open(dir.path(), Durability::Process).expect("a new store opens"));
    let directory = Arc::new(Everybody);
    Notifier::open(store, Clock::system(), directory, Config::default())
        .expect("a new notifier opens")
}

fn person(name: &str) -> Actor<'_> {
    Actor {
        name,
        is_administrator: false,
    }
}

fn patch() -> WebhookPatch {
    WebhookPatch {
        url: Some("https://hooks.example.com/secret-path".into()),
        ..WebhookPatch::default()
    }
}

#[tokio::test]
async fn only_owners_and_administrators_find_a_webhook() {
    let dir = tempfile::tempdir().unwrap();
    let notifier = open(&dir);
    let webhooks = notifier.webhooks();
    let added = webhooks.add(patch(), person("ann")).await.unwrap();
    let id = added.webhook.webhook_id.clone();
    assert!(added.secret.is_some(), "JSON is signed");
    assert_eq!(added.webhook.place, "https://hooks.example.com");

    assert_eq!(webhooks.list(person("ben")).unwrap(), []);
    let missing = webhooks.get(&id, person("ben")).unwrap_err();
    assert!(matches!(missing, Error::NoSuchWebhook { .. }), "{missing}");
    let administrator = Actor {
        name: "root",
        is_administrator: true,
    };
    assert_eq!(webhooks.get(&id, administrator).unwrap(), added.webhook);

    webhooks.remove(&id, person("ann")).await.unwrap();
    assert_eq!(webhooks.list(administrator).unwrap(), []);
}

#[tokio::test]
async fn a_change_needs_the_current_version_and_valid_settings() {
    let dir = tempfile::tempdir().unwrap();
    let notifier = open(&dir);
    let (webhooks, ann) = (notifier.webhooks(), person("ann"));
    let id = webhooks.add(patch(), ann).await.unwrap().webhook.webhook_id;
    let label = WebhookPatch {
        label: Some("on call".into()),
        ..WebhookPatch::default()
    };
    let changed = webhooks.change(&id, label.clone(), Some(1), ann).await;
    assert_eq!(changed.unwrap().settings.label, "on call");
    let stale = webhooks.change(&id, label, Some(1), ann).await;
    assert!(matches!(stale, Err(Error::Stale)), "{stale:?}");

    let bad_hours = WebhookPatch {
        quiet: Some(QuietHours {
            from: "ten".into(),
            to: "07:00".into(),
            zone: None,
        }),
        ..WebhookPatch::default()
    };
    let chat = WebhookPatch {
        format: Some(WebhookFormat::Chat),
        secret: Some("x".into()),
        ..WebhookPatch::default()
    };
    let url = WebhookPatch {
        url: Some("http://example.com".into()),
        ..WebhookPatch::default()
    };
    for (patch, expected) in [
        (bad_hours, "bad_quiet_hours"),
        (chat, "bad_secret"),
        (url, "bad_webhook"),
    ] {
        match webhooks.change(&id, patch, None, ann).await.unwrap_err() {
            Error::Invalid { code, detail, .. } => {
                assert_eq!(code, expected);
                assert!(detail.ends_with("nothing was changed"), "{detail}");
            }
            error => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn an_owner_has_at_most_twenty_webhooks() {
    let dir = tempfile::tempdir().unwrap();
    let notifier = open(&dir);
    let webhooks = notifier.webhooks();
    for _ in 0..20 {
        webhooks.add(patch(), person("ann")).await.unwrap();
    }
    let refused = webhooks.add(patch(), person("ann")).await;
    let code = match refused {
        Err(Error::Invalid { code, .. }) => code,
        other => panic!("{other:?}"),
    };
    assert_eq!(code, "too_many_webhooks");
    webhooks.add(patch(), person("ben")).await.unwrap();
}
