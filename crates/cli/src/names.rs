//! What sandboxes are called.

use weighlock_api::SandboxList;

use crate::client::{Client, Failure};

/// The sandboxes that somebody may see: ids, and what people call them.
#[derive(Debug, Default)]
pub(crate) struct SandboxNames(Vec<(String, String)>);

impl SandboxNames {
    pub(crate) async fn fetch(client: &mut Client) -> Result<Self, Failure> {
        let list: SandboxList = client.get("/sandboxes").await?;
        let all = list.sandboxes.into_iter();
        Ok(Self(all.map(|one| (one.sandbox_id, one.label)).collect()))
    }

    /// Returns what a sandbox is called; its id if that is not known.
    pub(crate) fn of<'a>(&'a self, id: &'a str) -> &'a str {
        let found = self.0.iter().find(|(known, _)| known == id);
        found.map_or(id, |(_, name)| name)
    }

    /// Returns what a sandbox's id is. One that is gone is still on record by
    /// it, and so may be named by it.
    pub(crate) fn id<'a>(&'a self, name: &'a str) -> &'a str {
        let found = self.0.iter().find(|(_, known)| known == name);
        found.map_or(name, |(id, _)| id)
    }
}
