//! What the notifier asks about people and sandboxes.

use std::sync::Arc;

use weighlock_notify::{Directory, Recipient};
use weighlock_store::{Error, Store};

use crate::principal::{Principal, Via};
use crate::sandboxes::Sandboxes;

/// Looks up owners of webhooks and sandboxes for the notifier.
pub(crate) struct WebhookDirectory {
    pub(crate) store: Arc<Store>,
    pub(crate) sandboxes: Arc<Sandboxes>,
}

impl Directory for WebhookDirectory {
    fn recipient(&self, owner: Option<&str>) -> Result<Option<Recipient>, Error> {
        let principal = match owner {
            None => Some(Principal::library("weighlock")),
            Some(name) => match self.store.principals().named(name)? {
                Some(row) => Principal::from_row(&row, Via::Record),
                // The system's root exists without having been added.
                None => (name == "root").then(|| Principal::root(Via::Record)),
            },
        };
        let person = principal.filter(|principal| !principal.is_agent());
        Ok(person.map(|person| Recipient {
            is_administrator: person.is_administrator(),
            visible: person.visible(),
        }))
    }

    fn sandbox_name(&self, id: &str) -> String {
        self.sandboxes.name_of(id)
    }
}
