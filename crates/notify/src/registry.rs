//! Telling people elsewhere of what waits: webhooks, what they are told, and
//! what became of it. Doors deliver; nothing here knows how.

mod address;
mod course;
mod message;
mod outbox;
mod quiet;
mod secret;
mod settings;
mod take_in;

use serde_json::{Value, json};
use weighlock_store::{Course, Entry, WebhookRow};

pub use self::course::{NoticeView, Posted};
pub use self::message::{Item, Message, Urgency};
pub(crate) use self::outbox::Outbox;
pub use self::outbox::Parcel;
pub use self::quiet::Quiet;
pub use self::secret::Secret;
pub use self::settings::{Format, Topic, WebhookSettings, WebhookView, WebhookWish, WithSecret};
use crate::engine::Engine;
use crate::error::{Error, brief};
use crate::principal::{Principal, Right, Via};
use crate::view::time;

/// More than anybody needs; each is looked at whenever something is asked.
const MOST: usize = 20;

/// A question that is told of so late has usually expired.
const MOST_DELAY_SECONDS: u32 = 3600;

impl Engine {
    /// Lists the webhooks of the caller; for administrators, all.
    pub async fn webhooks(&self, who: &Principal) -> Result<Vec<WebhookView>, Error> {
        self.may_notify(who).await?;
        let mut rows = self.store.webhooks()?;
        rows.retain(|row| is_whose(row, who));
        Ok(rows.into_iter().map(view).collect())
    }

    /// Returns one of them.
    pub async fn one_webhook(&self, id: &str, who: &Principal) -> Result<WebhookView, Error> {
        Ok(view(self.webhook(id, who).await?))
    }

    /// Makes a webhook. It is told of what happens from now on.
    pub async fn add_webhook(
        &self,
        wish: WebhookWish,
        who: &Principal,
    ) -> Result<WithSecret, Error> {
        self.may_notify(who).await?;
        let server = wish.server == Some(true);
        if server {
            who.check(Right::Administer)?;
        }
        let mut settings = WebhookSettings::default();
        self.grant_wish(&mut settings, &wish, who)?;
        let url = wish.url.unwrap_or_default();
        address::check(&url)?;
        let (secret, shown) = secret::of(settings.format, wish.secret)?;
        let now = self.clock.micros();
        let row = WebhookRow {
            id: self.ids.next_as("wh", now),
            owner: match server {
                true => String::new(),
                false => who.name().to_owned(),
            },
            url,
            secret,
            active: wish.is_active.unwrap_or(true),
            body: stored(&settings),
            version: 1,
            created_at: now,
            updated_at: now,
            since: 0,
            course: Course::default(),
        };
        let entry = self.entry_of_webhook("webhook.added", &row, who.name());
        let added = self.store.add_webhook(row.clone(), MOST, vec![entry]);
        if !added.await? {
            return Err(Error::invalid(
                "too_many_webhooks",
                format!("there are {MOST} webhooks already; nothing was added"),
                "remove one that is not used: `weighlock notify list`",
            ));
        }
        self.read_webhooks()?;
        Ok(WithSecret {
            secret: shown,
            webhook: view(row),
        })
    }

    /// Changes what is given of a webhook.
    pub async fn change_webhook(
        &self,
        id: &str,
        wish: WebhookWish,
        version: Option<i64>,
        who: &Principal,
    ) -> Result<WebhookView, Error> {
        let mut row = self.webhook(id, who).await?;
        if version.is_some_and(|version| version != row.version) {
            return Err(Error::Stale);
        }
        let mut settings = settings_of(&row);
        let before = settings.format;
        self.grant_wish(&mut settings, &wish, who)?;
        if let Some(url) = wish.url {
            address::check(&url)?;
            row.url = url;
        }
        if wish.secret.is_some() || settings.format != before {
            // A secret of one form means nothing in another.
            if settings.format == Format::Json && wish.secret.is_none() {
                return Err(no_secret());
            }
            row.secret = secret::of(settings.format, wish.secret)?.0;
        }
        row.active = wish.is_active.unwrap_or(row.active);
        row.body = stored(&settings);
        self.put_webhook(row, "webhook.changed", who).await
    }

    /// Makes another secret in the place of a webhook's, and returns it.
    pub async fn new_webhook_secret(&self, id: &str, who: &Principal) -> Result<WithSecret, Error> {
        let mut row = self.webhook(id, who).await?;
        let (secret, shown) = secret::of(settings_of(&row).format, None)?;
        row.secret = secret;
        Ok(WithSecret {
            secret: shown,
            webhook: self.put_webhook(row, "webhook.changed", who).await?,
        })
    }

    async fn put_webhook(
        &self,
        mut row: WebhookRow,
        kind: &'static str,
        who: &Principal,
    ) -> Result<WebhookView, Error> {
        row.updated_at = self.clock.micros();
        let entry = self.entry_of_webhook(kind, &row, who.name());
        let id = row.id.clone();
        if !self.store.change_webhook(row, vec![entry]).await? {
            return Err(Error::Stale);
        }
        self.read_webhooks()?;
        self.one_webhook(&id, who).await
    }

    /// Forgets a webhook.
    pub async fn remove_webhook(&self, id: &str, who: &Principal) -> Result<(), Error> {
        let row = self.webhook(id, who).await?;
        let entry = self.entry_of_webhook("webhook.removed", &row, who.name());
        self.store.remove_webhook(row.id, vec![entry]).await?;
        self.read_webhooks()
    }

    /// Finds a webhook that concerns somebody; another's is not there.
    pub(crate) async fn webhook(&self, id: &str, who: &Principal) -> Result<WebhookRow, Error> {
        self.may_notify(who).await?;
        let mut rows = self.store.webhooks()?;
        rows.retain(|row| is_whose(row, who) && is_called(row, id));
        match (rows.pop(), rows.pop()) {
            (Some(row), None) => Ok(row),
            _ => Err(Error::NoSuchWebhook { id: brief(id) }),
        }
    }

    async fn may_notify(&self, who: &Principal) -> Result<(), Error> {
        match who.is_agent() {
            true => Err(self.never_agents("set up webhooks", None, who).await),
            false => who.check(Right::Look),
        }
    }

    /// Puts what a wish gives, once that is known to be sound.
    fn grant_wish(
        &self,
        to: &mut WebhookSettings,
        wish: &WebhookWish,
        who: &Principal,
    ) -> Result<(), Error> {
        if let Some(label) = &wish.label {
            to.label = brief(label);
        }
        to.format = wish.format.unwrap_or(to.format);
        let delay = wish.delay_seconds.unwrap_or(to.delay_seconds);
        to.delay_seconds = delay.min(MOST_DELAY_SECONDS);
        to.high_risk_at_once = wish.high_risk_at_once.unwrap_or(to.high_risk_at_once);
        if let Some(quiet) = &wish.quiet {
            quiet.check()?;
            to.quiet = Some(quiet.clone());
        }
        if wish.never_quiet == Some(true) {
            to.quiet = None;
        }
        if let Some(named) = &wish.sandboxes {
            to.sandboxes = self.ids_of(Some(named.clone()), who)?;
        }
        if wish.everywhere == Some(true) {
            to.sandboxes = None;
        }
        if let Some(topics) = &wish.topics {
            to.topics.clone_from(topics);
        }
        to.long_minutes = wish.long_minutes.unwrap_or(to.long_minutes);
        Ok(())
    }

    /// What the record says: where to, but nothing that may be a secret.
    fn entry_of_webhook(&self, kind: &'static str, row: &WebhookRow, by: &str) -> Entry {
        let detail = json!({ "webhook": row.id, "for": whose(row), "place": address::place(&row.url),
                             "active": row.active, "settings": row.body });
        self.entry(kind, by, None, detail)
    }

    /// Returns whoever a webhook tells, as far as they are still let in; for
    /// the server's own, who sees everything.
    fn told(&self, row: &WebhookRow) -> Result<Option<Principal>, Error> {
        if row.owner.is_empty() {
            return Ok(Some(Principal::library("weighlock")));
        }
        let owner = match self.store.principal(&row.owner)? {
            Some(owner) => Principal::from_row(&owner, Via::Record),
            // The system's own root need not have been added.
            None => (row.owner == "root").then(|| Principal::root(Via::Record)),
        };
        Ok(owner.filter(|owner| !owner.is_agent()))
    }
}

fn no_secret() -> Error {
    Error::invalid(
        "no_secret",
        "JSON is signed, and there is no secret to sign with; nothing was changed".into(),
        "give one as `secret`, or make a new webhook",
    )
}

fn is_whose(row: &WebhookRow, who: &Principal) -> bool {
    row.owner == who.name() || who.is_administrator()
}

fn is_called(row: &WebhookRow, id: &str) -> bool {
    row.id == id || crate::id::short(&row.id) == id
}

fn whose(row: &WebhookRow) -> Option<String> {
    Some(row.owner.clone()).filter(|name| !name.is_empty())
}

fn settings_of(row: &WebhookRow) -> WebhookSettings {
    serde_json::from_value(row.body.clone()).unwrap_or_default()
}

fn stored(settings: &WebhookSettings) -> Value {
    serde_json::to_value(settings).expect("plain data")
}

fn view(row: WebhookRow) -> WebhookView {
    let Course {
        failures,
        retry_at,
        told_at,
        ref trouble,
    } = row.course;
    WebhookView {
        owner: whose(&row),
        place: address::place(&row.url),
        settings: settings_of(&row),
        is_active: row.active,
        version: row.version,
        created_at: time(row.created_at),
        updated_at: time(row.updated_at),
        told_at: told_at.map(time),
        failures,
        trouble: trouble.clone(),
        retry_at: (failures > 0).then(|| time(retry_at)),
        webhook_id: row.id,
    }
}
