//! Follows the audit and delivers messages.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use weighlock_store::{Clock, DeliveryStatus, Notice, NoticeOutcome, Store, WebhookRow, id};

use crate::attempt::{Attempt, AttemptCounts, status_after_failure};
use crate::client::HttpClient;
use crate::collector::Collector;
use crate::delivery::{BusyWebhooks, Delivery};
use crate::directory::Directory;
use crate::error::Error;
use crate::message::test_message;
use crate::outbox::Outbox;
use crate::registry::{Actor, WebhookRegistry};
use crate::settings::{owner_of, settings_of};
use crate::url::origin;

/// Deliveries at once. A slow one takes ten seconds and must not delay others.
const MAX_DELIVERIES: usize = 32;

/// How long finished notices are kept for `weighlock notify show`.
const KEEP_NOTICES: Duration = Duration::from_secs(30 * 24 * 3600);

/// When messages are sent and repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// A webhook gets at most one message about an agent in this time.
    pub collapse: Duration,
    /// The delay after the first failure; it doubles with each further one.
    pub retry: Duration,
    /// A notice older than this is not repeated.
    pub give_up: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            collapse: Duration::from_secs(30),
            retry: Duration::from_secs(5),
            give_up: Duration::from_secs(6 * 3600),
        }
    }
}

/// How messages reach receivers, and how people reach the pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outbound {
    /// What links to the pages begin with.
    pub public_url: String,
    /// A PEM file of CA certificates to trust, beside the system's.
    pub ca_file: Option<PathBuf>,
}

/// The state of all webhooks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebhookSummary {
    /// How many are active.
    pub active: usize,
    /// The label or host of each failing one, and why.
    pub failing: Vec<String>,
}

/// Notifies people about waiting questions and failed runs, through their
/// webhooks.
pub struct Notifier {
    store: Arc<Store>,
    clock: Clock,
    directory: Arc<dyn Directory>,
    config: Config,
    ids: id::Ids,
    registry: Arc<WebhookRegistry>,
    outbox: Outbox,
    attempts: AttemptCounts,
}

impl Notifier {
    /// Opens the webhooks of a store.
    pub fn open(
        store: Arc<Store>,
        clock: Clock,
        directory: Arc<dyn Directory>,
        config: Config,
    ) -> Result<Arc<Self>, Error> {
        let changed = Arc::new(Notify::new());
        let registry = WebhookRegistry::open(Arc::clone(&store), clock.clone(), changed.clone())?;
        let registry = Arc::new(registry);
        let outbox = Outbox {
            store: Arc::clone(&store),
            clock: clock.clone(),
            directory: Arc::clone(&directory),
            registry: Arc::clone(&registry),
            collector: Collector::new(Arc::clone(&store), Arc::clone(&directory)),
            collapse: config.collapse,
            busy: BusyWebhooks::default(),
            changed,
        };
        Ok(Arc::new(Self {
            store,
            clock,
            directory,
            config,
            ids: id::Ids::after(None),
            registry,
            outbox,
            attempts: AttemptCounts::default(),
        }))
    }

    /// Returns the webhooks, to list and change them.
    pub fn webhooks(&self) -> &WebhookRegistry {
        &self.registry
    }

    /// Delivers messages until it is dropped. A delivery that is interrupted is
    /// repeated by the next server, under the same id.
    pub async fn deliver(self: Arc<Self>, outbound: Outbound) {
        let client = HttpClient::new(outbound.ca_file);
        let slots = Arc::new(Semaphore::new(MAX_DELIVERIES));
        let mut deliveries = JoinSet::new();
        loop {
            let slot = Arc::clone(&slots).acquire_owned().await;
            let delivery = self.outbox.next(&outbound.public_url).await;
            let (notifier, client) = (Arc::clone(&self), client.clone());
            deliveries.spawn(async move {
                let _slot = slot;
                let attempt = client.deliver(&delivery).await;
                notifier.record(delivery, &attempt).await;
            });
            while deliveries.try_join_next().is_some() {}
        }
    }

    /// Sends a test message to a webhook now, and returns the result.
    pub async fn test(
        &self,
        id: &str,
        actor: Actor<'_>,
        outbound: &Outbound,
    ) -> Result<Attempt, Error> {
        let row = self.registry.find(id, actor)?;
        let recipient = self.directory.recipient(owner_of(&row))?;
        let may_reach_private =
            recipient.map_or(actor.is_administrator, |one| one.is_administrator);
        let now = self.clock.micros();
        let id = self.ids.next_as("msg_test", now);
        let message = test_message(now, &outbound.public_url);
        let delivery = Delivery::new(row, id, message, may_reach_private);
        let client = HttpClient::new(outbound.ca_file.clone());
        let attempt = client.deliver(&delivery).await;
        self.record(delivery, &attempt).await;
        Ok(attempt)
    }

    /// Notifies administrators that an audit entry is damaged, once per entry.
    pub async fn report_fault(&self, seq: u64, what: &str) -> Result<(), Error> {
        let (webhooks, now) = (self.registry.cached(), self.clock.micros());
        let collector = &self.outbox.collector;
        if collector.add_fault(&webhooks, seq, what, now).await? {
            self.outbox.changed.notify_one();
        }
        Ok(())
    }

    /// Returns how many webhooks are active, and which are failing.
    pub fn summary(&self) -> Result<WebhookSummary, Error> {
        let rows = self.store.webhooks()?;
        let failing = rows.iter().filter_map(|row| {
            let trouble = row.status.trouble.as_deref()?;
            Some(format!("{}: {trouble}", name_of(row)))
        });
        Ok(WebhookSummary {
            active: rows.iter().filter(|row| row.active).count(),
            failing: failing.collect(),
        })
    }

    /// Counts attempts by result, under the labels of the metrics.
    pub fn attempts(&self) -> [(&'static str, u64); 3] {
        self.attempts.labelled()
    }

    async fn record(&self, delivery: Delivery, attempt: &Attempt) {
        self.attempts.add(attempt);
        let webhook = delivery.webhook.clone();
        if let Attempt::Failed { reason, .. } = attempt {
            tracing::warn!(webhook, reason, "a delivery to a webhook failed");
        }
        if let Err(error) = self.try_record(delivery, attempt).await {
            tracing::error!(webhook, %error, "cannot record the result of a delivery");
        }
    }

    async fn try_record(&self, mut delivery: Delivery, attempt: &Attempt) -> Result<(), Error> {
        let Some(row) = self.store.webhook(&delivery.webhook)? else {
            return Ok(());
        };
        let notices = std::mem::take(&mut delivery.notices);
        match attempt {
            Attempt::Accepted => self.record_success(row, notices).await?,
            Attempt::Gone => self.registry.deactivate(row).await?,
            Attempt::Failed {
                reason,
                retry_after,
            } => {
                let retry_after = *retry_after;
                self.record_failure(row, notices, reason, retry_after)
                    .await?;
            }
        }
        self.registry.reload()?;
        // The next delivery to this webhook may begin now, and not before.
        drop(delivery);
        Ok(())
    }

    async fn record_success(&self, row: WebhookRow, notices: Vec<Notice>) -> Result<(), Error> {
        let now = self.clock.micros();
        self.store
            .settle_notices(notices, NoticeOutcome::Sent)
            .await?;
        let status = DeliveryStatus {
            told_at: Some(now),
            ..DeliveryStatus::default()
        };
        self.store.set_delivery_status(row.id, status).await?;
        let oldest = now.saturating_sub(KEEP_NOTICES.as_micros() as i64);
        Ok(self.store.forget_notices(oldest).await?)
    }

    async fn record_failure(
        &self,
        row: WebhookRow,
        notices: Vec<Notice>,
        reason: &str,
        retry_after: Option<Duration>,
    ) -> Result<(), Error> {
        let now = self.clock.micros();
        let give_up = self.config.give_up.as_micros() as i64;
        let is_old = |notice: &Notice| now.saturating_sub(notice.created_at) > give_up;
        let old: Vec<_> = notices.into_iter().filter(is_old).collect();
        self.store
            .settle_notices(old, NoticeOutcome::Failed)
            .await?;
        let status = status_after_failure(&row.status, reason, retry_after, self.config.retry, now);
        Ok(self.store.set_delivery_status(row.id, status).await?)
    }
}

/// Returns the label of a webhook, or its host.
fn name_of(row: &WebhookRow) -> String {
    let label = settings_of(row).label;
    if label.is_empty() {
        origin(&row.url)
    } else {
        label
    }
}
