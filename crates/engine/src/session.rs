//! What belongs together: the requests of one principal in one sandbox.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::json;
pub use weighlock_api::SessionView;
use weighlock_store::{RunStatus, SessionRow};
use weighlock_walls::Sandbox;

use crate::config::OnClose;
use crate::core::Core;
use crate::error::{Error, brief};
use crate::mutex::lock;
use crate::principal::Principal;
use crate::sandboxes::Sandboxes;
use crate::time;

/// How many sessions are remembered without asking the store.
const REMEMBERED: usize = 10_000;

/// The sessions; see [`Engine::sessions`](crate::Engine::sessions).
pub struct Sessions {
    core: Arc<Core>,
    sandboxes: Arc<Sandboxes>,
    /// The open ones that were used lately: by principal, sandbox and label.
    recent: Mutex<HashMap<(String, String, String), String>>,
}

impl Sessions {
    pub(crate) fn new(core: Arc<Core>, sandboxes: Arc<Sandboxes>) -> Self {
        Self {
            core,
            sandboxes,
            recent: Mutex::default(),
        }
    }

    /// Returns the session that a request belongs to: the one it names, or one
    /// that is opened for it.
    pub(crate) async fn find_or_open(
        &self,
        named: Option<&str>,
        who: &Principal,
        sandbox: &Sandbox,
    ) -> Result<String, Error> {
        let label = named.unwrap_or_default();
        if label.starts_with("s_")
            && let Some(row) = self.core.store.sessions().get(label)?
            && row.principal == who.name()
        {
            return match row.closed_at {
                None if row.sandbox == sandbox.id => Ok(row.id),
                None => Err(Error::invalid(
                    "other_sandbox",
                    format!("session {label} is in another sandbox; nothing was run"),
                    "name that sandbox, or no session",
                )),
                Some(_) => Err(Error::SessionClosed { id: row.id }),
            };
        }
        let key = (who.name().to_owned(), sandbox.id.clone(), brief(label));
        if let Some(id) = lock(&self.recent).get(&key) {
            return Ok(id.clone());
        }
        let now = self.core.clock.micros();
        let row = SessionRow {
            id: self.core.ids.next_as("s", now),
            principal: key.0.clone(),
            sandbox: key.1.clone(),
            label: key.2.clone(),
            status: RunStatus::Pending,
            created_at: now,
            updated_at: now,
            closed_at: None,
        };
        let row = self.core.store.sessions().open(row, vec![]).await?;
        {
            let mut known = lock(&self.recent);
            if known.len() >= REMEMBERED {
                known.clear();
            }
            known.insert(key, row.id.clone());
        }
        if self.is_closed(&row.id)? {
            // Whoever closed it meanwhile may have looked before it was there.
            self.forget(&row.id);
        }
        Ok(row.id)
    }

    /// Returns whether a session was closed.
    pub(crate) fn is_closed(&self, session: &str) -> Result<bool, Error> {
        let row = self.core.store.sessions().get(session)?;
        Ok(row.is_some_and(|row| row.closed_at.is_some()))
    }

    fn forget(&self, session: &str) {
        lock(&self.recent).retain(|_, id| id != session);
    }

    /// Lists sessions, newest first; the cursor is from the page before.
    pub fn list(
        &self,
        cursor: Option<&str>,
        limit: usize,
        who: &Principal,
    ) -> Result<(Vec<SessionView>, Option<String>), Error> {
        let (rows, next) = self
            .core
            .store
            .sessions()
            .list(&who.visible(), cursor, limit)?;
        Ok((rows.into_iter().map(session_view).collect(), next))
    }

    /// Returns the open session that somebody's requests in a sandbox belong to
    /// when they name it so, if there is one yet.
    pub fn find_called(
        &self,
        name: &str,
        sandbox: Option<&str>,
        who: &Principal,
    ) -> Result<Option<SessionView>, Error> {
        let sandbox = self
            .sandboxes
            .find_workplace(sandbox, who)?
            .sandbox
            .id
            .clone();
        let row = match name.starts_with("s_") {
            true => self.core.store.sessions().get(name)?,
            false => None,
        };
        let own = |row: &SessionRow| row.principal == who.name();
        let row = match row.filter(own) {
            Some(row) => Some(row).filter(|row| row.closed_at.is_none() && row.sandbox == sandbox),
            None => self
                .core
                .store
                .sessions()
                .called(who.name(), &sandbox, &brief(name))?,
        };
        Ok(row.map(session_view))
    }

    /// Returns one session.
    pub fn find(&self, id: &str, who: &Principal) -> Result<SessionView, Error> {
        let row = self.core.store.sessions().get(id)?;
        let seen = |row: &SessionRow| who.sees(&row.principal, Some(&row.sandbox));
        row.filter(seen)
            .map(session_view)
            .ok_or_else(|| Error::NoSuchSession { id: brief(id) })
    }

    /// Closes a session. What waits and runs in it is not ended by this; see
    /// [`Life::close_session`](crate::Life::close_session).
    pub(crate) async fn close(
        &self,
        session: &SessionView,
        on_close: OnClose,
        who: &Principal,
    ) -> Result<(), Error> {
        let detail = json!({ "session": session.session_id, "runs": on_close });
        let entry = self.core.entry("session.closed", who.name(), None, detail);
        let now = self.core.clock.micros();
        let id = session.session_id.clone();
        self.core
            .store
            .sessions()
            .close(id, now, vec![entry])
            .await?;
        self.forget(&session.session_id);
        Ok(())
    }
}

/// Describes a session.
fn session_view(row: SessionRow) -> SessionView {
    SessionView {
        session_id: row.id,
        principal_id: row.principal,
        sandbox_id: row.sandbox,
        label: row.label,
        status: row.status.word().into(),
        created_at: time(row.created_at),
        updated_at: time(row.updated_at),
        closed_at: row.closed_at.map(time),
    }
}
