//! Who may manage webhooks.

use std::sync::Arc;

use serde_json::json;
use weighlock_notify::{
    Actor, Attempt, NoticeView, Notifier, Outbound, WebhookPatch, WebhookRegistry, WebhookSummary,
    WebhookView, WebhookWithSecret,
};

use crate::core::Core;
use crate::error::Error;
use crate::principal::{Principal, Right};
use crate::sandboxes::Sandboxes;

/// Manages webhooks for those who may, and delivers to them; see
/// [`Engine::webhooks`](crate::Engine::webhooks).
pub struct Webhooks {
    core: Arc<Core>,
    sandboxes: Arc<Sandboxes>,
    /// Notifies people through webhooks.
    notifier: Arc<Notifier>,
}

/// What [`Webhooks`] stand on.
pub(crate) struct WebhooksNeeds {
    pub(crate) core: Arc<Core>,
    pub(crate) sandboxes: Arc<Sandboxes>,
    pub(crate) notifier: Arc<Notifier>,
}

impl Webhooks {
    pub(crate) fn new(needs: WebhooksNeeds) -> Self {
        let WebhooksNeeds {
            core,
            sandboxes,
            notifier,
        } = needs;
        Self {
            core,
            sandboxes,
            notifier,
        }
    }
}

impl Webhooks {
    /// Lists the caller's webhooks; for administrators, everybody's.
    pub async fn list(&self, who: &Principal) -> Result<Vec<WebhookView>, Error> {
        self.check_person(who).await?;
        Ok(self.registry().list(actor(who))?)
    }

    /// Returns one webhook.
    pub async fn get(&self, id: &str, who: &Principal) -> Result<WebhookView, Error> {
        self.check_person(who).await?;
        Ok(self.registry().get(id, actor(who))?)
    }

    /// Adds a webhook, which gets notices of later events. Only administrators
    /// add webhooks of the server.
    pub async fn add(
        &self,
        patch: WebhookPatch,
        who: &Principal,
    ) -> Result<WebhookWithSecret, Error> {
        self.check_person(who).await?;
        if patch.server == Some(true) {
            who.check(Right::Administer)?;
        }
        let patch = self.with_sandbox_ids(patch, who)?;
        let added = self.registry().add(patch, actor(who)).await?;
        self.charge(&added.webhook, who);
        Ok(added)
    }

    /// Changes a webhook, if it still has the version that the caller read.
    pub async fn change(
        &self,
        id: &str,
        patch: WebhookPatch,
        version: Option<i64>,
        who: &Principal,
    ) -> Result<WebhookView, Error> {
        self.check_person(who).await?;
        // What somebody else owns is not found, whatever the patch names.
        self.registry().get(id, actor(who))?;
        let patch = self.with_sandbox_ids(patch, who)?;
        let changed = self.registry().change(id, patch, version, actor(who));
        let changed = changed.await?;
        self.charge(&changed, who);
        Ok(changed)
    }

    /// Replaces the secret of a webhook by a generated one, and returns it.
    pub async fn renew_secret(
        &self,
        id: &str,
        who: &Principal,
    ) -> Result<WebhookWithSecret, Error> {
        self.check_person(who).await?;
        let renewed = self.registry().renew_secret(id, actor(who)).await?;
        self.charge(&renewed.webhook, who);
        Ok(renewed)
    }

    /// Deletes a webhook and its notices.
    pub async fn remove(&self, id: &str, who: &Principal) -> Result<(), Error> {
        self.check_person(who).await?;
        let removed = self.registry().remove(id, actor(who)).await?;
        self.charge(&removed, who);
        Ok(())
    }

    /// Lists the newest notices of a webhook, sent or not.
    pub async fn notices(&self, id: &str, who: &Principal) -> Result<Vec<NoticeView>, Error> {
        self.check_person(who).await?;
        Ok(self.registry().notices(id, actor(who))?)
    }

    /// Sends a test message to a webhook now, and returns the result.
    pub async fn test(
        &self,
        id: &str,
        outbound: &Outbound,
        who: &Principal,
    ) -> Result<Attempt, Error> {
        self.check_person(who).await?;
        Ok(self.notifier.test(id, actor(who), outbound).await?)
    }

    /// Delivers messages until it is dropped. A delivery that is interrupted is
    /// repeated by the next server.
    pub async fn deliver(&self, outbound: Outbound) {
        Arc::clone(&self.notifier).deliver(outbound).await;
    }

    /// Counts delivery attempts by result, under the labels of the metrics.
    pub fn attempts(&self) -> [(&'static str, u64); 3] {
        self.notifier.attempts()
    }

    /// Returns how many webhooks are on, and which of them fail.
    pub(crate) fn summary(&self) -> Result<WebhookSummary, Error> {
        Ok(self.notifier.summary()?)
    }

    fn registry(&self) -> &WebhookRegistry {
        self.notifier.webhooks()
    }

    async fn check_person(&self, who: &Principal) -> Result<(), Error> {
        match who.is_agent() {
            true => Err(self.core.refuse_agent("set up webhooks", None, who).await),
            false => who.check(Right::Look),
        }
    }

    /// Replaces names of sandboxes by their ids.
    fn with_sandbox_ids(
        &self,
        mut patch: WebhookPatch,
        who: &Principal,
    ) -> Result<WebhookPatch, Error> {
        patch.sandboxes = self.sandboxes.resolve_ids(patch.sandboxes, who)?;
        Ok(patch)
    }

    /// Counts the audit entry of a change against the caller's quota.
    fn charge(&self, webhook: &WebhookView, who: &Principal) {
        self.core.charge_entry(who.name(), &json!(webhook));
    }
}

fn actor(who: &Principal) -> Actor<'_> {
    Actor {
        name: who.name(),
        is_administrator: who.is_administrator(),
    }
}

impl From<weighlock_notify::Error> for Error {
    fn from(error: weighlock_notify::Error) -> Self {
        match error {
            weighlock_notify::Error::Invalid { code, detail, hint } => {
                Self::invalid(code, detail, hint)
            }
            weighlock_notify::Error::NoSuchWebhook { id } => Self::NoSuchWebhook { id },
            weighlock_notify::Error::Stale => Self::Stale,
            weighlock_notify::Error::Store(error) => Self::Store(error),
        }
    }
}
