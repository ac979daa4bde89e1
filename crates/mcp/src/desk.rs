//! What a client has in common over all its calls.

use std::sync::{Arc, OnceLock};

use weighlock_api::{SessionList, TerminalList, TerminalView};

use crate::api::{self, Api, Failure, escape};
use crate::options::Options;

/// Longer than any id or name.
const LONGEST: usize = 256;

/// A client's place: its way to the server, and what it has chosen.
pub(crate) struct ClientDesk {
    api: Box<dyn Api>,
    pub(crate) options: Options,
    /// The client's own name for its session.
    pub(crate) session: String,
    /// Nobody else knows that name.
    is_new: bool,
    /// And ours, once something has run in it.
    session_id: OnceLock<String>,
    /// Set once somebody is found who has the name of the agent.
    pub(crate) agent_is_known: OnceLock<()>,
}

impl ClientDesk {
    pub(crate) fn new(api: Box<dyn Api>, options: Options) -> Arc<Self> {
        let named = options.session.clone();
        Arc::new(Self {
            api,
            is_new: named.is_none(),
            session: named.unwrap_or_else(|| format!("mcp-{}", api::random())),
            options,
            session_id: OnceLock::new(),
            agent_is_known: OnceLock::new(),
        })
    }

    pub(crate) fn api(&self) -> &dyn Api {
        &*self.api
    }

    /// Returns where a command runs: below where the client is, if it does not
    /// say otherwise.
    pub(crate) fn cwd(&self, asked: Option<String>) -> Option<String> {
        match (&self.options.cwd, asked) {
            (Some(here), Some(asked)) => {
                let joined = std::path::Path::new(here).join(asked);
                Some(joined.to_string_lossy().into_owned())
            }
            (here, asked) => asked.or_else(|| here.clone()),
        }
    }

    /// Notes which session it is, from anything that has run in it.
    pub(crate) fn learn(&self, session: Option<&str>) {
        if let Some(session) = session {
            let _ = self.session_id.set(session.to_owned());
        }
    }

    /// Returns the id of the session, if there is one already.
    pub(crate) async fn session_id(&self) -> Result<Option<String>, Failure> {
        if let Some(known) = self.session_id.get() {
            return Ok(Some(known.clone()));
        }
        if self.is_new {
            return Ok(None);
        }
        let mut path = format!("/sessions?name={}", escape(&self.session));
        if let Some(sandbox) = &self.options.sandbox {
            path.push_str(&format!("&sandbox={}", escape(sandbox)));
        }
        let list: SessionList = api::get(self.api(), path).await?;
        let found = list.sessions.into_iter().next();
        self.learn(found.as_ref().map(|one| one.session_id.as_str()));
        Ok(found.map(|one| one.session_id))
    }

    /// Returns the terminals of the session.
    pub(crate) async fn terminals(&self) -> Result<Vec<TerminalView>, Failure> {
        let Some(session) = self.session_id().await? else {
            return Ok(vec![]);
        };
        let path = format!("/terminals?session={}", escape(&session));
        let list: TerminalList = api::get(self.api(), path).await?;
        Ok(list.terminals)
    }

    /// Finds a terminal of the session by its name.
    pub(crate) async fn terminal(&self, name: &str) -> Result<Option<TerminalView>, Failure> {
        let all = self.terminals().await?;
        Ok(all.into_iter().find(|one| one.name == name))
    }

    /// Makes what a tool was given the id of a run: a terminal is meant by its
    /// name in this session, not in another's.
    pub(crate) async fn resolve(&self, id: &str) -> Result<String, Failure> {
        if id.len() > LONGEST {
            return Err(Failure::new(
                "no_such_run",
                format!("no run has a name of {} bytes", id.len()),
                "",
            ));
        }
        if id.starts_with("r_") || id.starts_with("bash-") {
            return Ok(id.to_owned());
        }
        let terminal = self.terminal(id).await?;
        Ok(terminal.map_or_else(|| id.to_owned(), |terminal| terminal.terminal_id))
    }
}
