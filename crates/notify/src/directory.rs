//! What the notifier needs to know about people and sandboxes.

use weighlock_store::{Error, Visible};

/// Looks up people and sandboxes, which the notifier does not know itself.
pub trait Directory: Send + Sync {
    /// Returns what the owner of a webhook may see now, without an owner what
    /// the server's own webhooks may. `None` if the owner is no longer active,
    /// or is an agent.
    fn recipient(&self, owner: Option<&str>) -> Result<Option<Recipient>, Error>;

    /// Returns the name of a sandbox; its id if the sandbox is gone.
    fn sandbox_name(&self, id: &str) -> String;
}

/// What the owner of a webhook may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// Administrators are notified of a damaged audit, and their webhooks may be
    /// in the server's own network.
    pub is_administrator: bool,
    /// Whose runs and questions the owner may see.
    pub visible: Visible,
}
