//! The agent whose profile a client's configuration names.

use weighlock_api::{Me, PeopleList, PolicyView, Role, no_such_agent};

use crate::api::{self, Failure, brief};
use crate::call::Call;
use crate::say::to_agent;

impl Call {
    /// Refuses a name that nobody has: with a letter too few it would have
    /// nobody's rules, and nothing would show it.
    pub(crate) async fn check_agent(&self) -> Result<(), Failure> {
        let desk = &self.desk;
        let Some(name) = desk.options.agent.as_deref() else {
            return Ok(());
        };
        if desk.agent_is_known.get().is_some() {
            return Ok(());
        }
        if let Some(known) = self.agents().await?
            && known.iter().all(|one| one != name)
        {
            let name = brief(name);
            let (what, hint) = no_such_agent(&name, &known);
            return Err(Failure::new("no_such_agent", what, to_agent(&hint)));
        }
        let _ = desk.agent_is_known.set(());
        Ok(())
    }

    /// Returns the known agents: those that were added, or that have grants.
    /// Returns none where the server checks the name itself, or the caller may
    /// not list agents.
    async fn agents(&self) -> Result<Option<Vec<String>>, Failure> {
        let api = self.desk.api();
        let me: Me = api::get(api, "/me".into()).await?;
        // An agent's own profile is the only one that it may name; and who is
        // somebody in a few sandboxes only does not see everybody.
        if me.role == Role::Agent || me.sandboxes.is_some() {
            return Ok(None);
        }
        let policy: PolicyView = api::get(api, "/policies".into()).await?;
        if !policy.agents.is_empty() {
            return Ok(None);
        }
        let people: PeopleList = api::get(api, "/people".into()).await?;
        let added = { people.people.into_iter() }.filter(|one| one.role == Role::Agent);
        let allowed = policy.grants.into_iter().filter_map(|grant| grant.agent);
        let added = added.map(|one| one.principal_id);
        Ok(Some(added.chain(allowed).collect()))
    }
}
